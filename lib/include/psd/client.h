/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_client - a connection to a cluster
 *
 * Units    timeouts in milliseconds; 0 means: do not wait
 */
#ifndef PSD_CLIENT_H
#define PSD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psd_client psd_client_t;
typedef struct psd_options psd_options_t;
typedef struct psd_call psd_call_t;

/* Names one request that was started and not waited for yet; 0 names none. */
typedef uint64_t psd_ticket_t;

/* The library's version, such as "1.0.0"; static. */
PSD_EXPORT const char *psd_version(void);

/* How to connect. NULL when there is no memory. */
PSD_EXPORT psd_options_t *psd_options_new(void);
PSD_EXPORT void psd_options_destroy(psd_options_t **self_p);
/* Deadline of every call that sets none of its own. Not set: $PSD_TIMEOUT_MS, 1
 * .. 86400000, else 10000. */
PSD_EXPORT void psd_options_set_timeout_ms(psd_options_t *self, uint32_t timeout_ms);
/* Which transport the client uses to shards. "auto": a lane (shared memory) if
 * the node is on this host and accepts the client, else ipc if a connection to
 * its socket succeeds now, else tcp. "lane", "ipc", "tcp": that one, and never
 * another. Not set: $PSD_TRANSPORT, else "auto". PSD_INVALID for another
 * word. */
PSD_EXPORT psd_status_t psd_options_set_transport(psd_options_t *self, const char *transport,
                                                  psd_error_t *err);
/* How long a waiting call polls for answers before it sleeps, in microseconds,
 * 0 .. 10000. 0: never. It does not poll when that does not pay, or when other
 * threads need the processor (over ipc and tcp: those that carry large values).
 * It polls up to 4 times as long while answers arrive regularly within that
 * time. Over a lane it polls up to 1000 us longer while the shard works on
 * large values of this client. Not set: $PSD_SPIN_US, else 50. PSD_INVALID. */
PSD_EXPORT psd_status_t psd_options_set_spin_us(psd_options_t *self, uint32_t spin_us,
                                                psd_error_t *err);
/* What psd_connect does when the connection is refused. true: it retries until
 * its timeout. false: it fails at once. Not set: $PSD_WAIT, 1 or 0; else it
 * fails at once for an address of this host, and retries for others. */
PSD_EXPORT void psd_options_set_wait(psd_options_t *self, bool wait);

/* What psd_connect does while the registry has no leader. true, also when it is not set: where
 * that lasts for 2 s, a node lets the client in as a guest, with the map that it has. A guest
 * opens tables and pulls at once; pushes, and all that asks the registry, wait for a session,
 * which the client asks for once a second, until their timeout: then PSD_NOT_LEADER, and nothing
 * was sent. false: psd_connect waits for a leader until its timeout. */
PSD_EXPORT void psd_options_set_guest(psd_options_t *self, bool guest);

/*
 * A call-back that reports long waits. The library calls it
 * - once, when psd_connect has waited for 1 s of a longer timeout without an
 *   answer. `what` names the address, the reason as far as the system knows it,
 *   and the time that is left ("tcp://h:7171: no answer for 1 s: Connection
 *   refused; waiting 9 s more");
 * - at most once in 30 s, when a call on rows has been open for 3 s of a longer
 *   timeout and the program waits for anything. `what` names the call and what
 *   it waits for (`pull of table "t", partition 0: 3 s passed: …; waiting 27 s
 *   more`);
 * - once for each move, when another node than before has the registry;
 * - once for each key, when the file of PSD_KEY_FILE has another one than before.
 * The thread that connects or waits runs the call-back. It must not use the
 * client. `what` is valid until the call-back returns. Not set: no report.
 */
typedef void psd_on_wait_t(void *user, const char *what);
PSD_EXPORT void psd_options_set_on_wait(psd_options_t *self, psd_on_wait_t *on_wait, void *user);

/*
 * Connects and waits for the cluster's WELCOME.
 *
 * endpoint  in  "tcp://host:port" or "ipc://path" of any node, or up to 16 of
 *               them with commas between them: the first that answers. NULL:
 *               $PSD_ENDPOINT, else the psd of this host as endpoints.json in
 *               $PSD_RUNTIME_DIR names it; if that is not set, in the default data
 *               directory of this user, if that psd runs, else in /run/psd (over its unix
 *               socket if that accepts the client), else tcp://127.0.0.1:7171. A psd of
 *               this host and user that asks for keys is reached by "tcp://127.0.0.1:port"
 *               as well: over its unix socket, or with the key of its admin. "embed:": a
 *               server in this process, which all its clients share; it starts
 *               with the first and ends with the last one, or with the process.
 *               "embed:" and an endpoint: a node here, which joins that cluster; others
 *               use it, so that an exit with code 0 waits until no worker of $PSD_JOB is
 *               left. "mpi:": the same in each rank of an mpirun, which find each other
 * options   in  NULL: defaults
 *
 * A node that is not the registry names it, and the client asks there; when the
 * registry is silent later, the client asks the other nodes that it knows, and
 * repeats what it asked.
 *
 * Errors: PSD_INVALID endpoint or environment not understood, naming the place
 * in a list; PSD_CONNECT the connection was refused (psd_options_set_wait), or
 * no WELCOME arrived within the timeout; PSD_NOT_LEADER the same, and some nodes
 * answered, but none with the registry. The text has the system's reason, of a
 * list what each address said; to find it the call may take up to 200 ms longer,
 * with a list 30 ms for each address if that is more. PSD_VERSION, PSD_CLUSTER, PSD_DENIED the node
 * refused the client; PSD_NOMEM.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_connect(const char *endpoint,
                                                   const psd_options_t *options,
                                                   psd_client_t **ret_client, psd_error_t *err);
/* Closes at once. Pushes that are not acknowledged may or may not be applied;
 * call psd_flush before to be sure. Afterwards the client's tables may only be
 * closed. Takes NULL. */
PSD_EXPORT void psd_close(psd_client_t **client_p);

/* Options of one call; NULL anywhere means the defaults. The caller may use the
 * same options for any number of calls; no call keeps them. Returns NULL when
 * there is no memory. */
PSD_EXPORT psd_call_t *psd_call_new(void);
PSD_EXPORT void psd_call_destroy(psd_call_t **self_p);
PSD_EXPORT void psd_call_set_timeout_ms(psd_call_t *self, uint32_t timeout_ms);
/* "memory", "replica", "disk", or "default" (the table's). PSD_INVALID. */
PSD_EXPORT psd_status_t psd_call_set_ack(psd_call_t *self, const char *level, psd_error_t *err);
/* Among calls that wait for credits of one partition the one of the highest
 * priority goes first; default 0. No call overtakes the end of a clock. */
PSD_EXPORT void psd_call_set_priority(psd_call_t *self, int32_t priority);
/* Start this call only when that ticket has ended. */
PSD_EXPORT void psd_call_set_after(psd_call_t *self, psd_ticket_t ticket);
/* A number of the user's choice; the errors of this call name it. */
PSD_EXPORT void psd_call_set_command(psd_call_t *self, uint32_t command);
/* true: the library uses the caller's rows and values in place, and they must
 * not change until the ticket has ended. false (default): it copies them. */
PSD_EXPORT void psd_call_set_borrow(psd_call_t *self, bool borrow);
/* true: this push is the last one of the worker's clock and finishes the clock
 * as psd_clock does, with fewer messages. Only for pushes that are started
 * (psd_push_start). A push that cannot be started does not finish the clock;
 * one that is started and fails later has finished it. PSD_INVALID when the
 * call is no push, PSD_NOT_JOINED when the client is no worker. Default
 * false. */
PSD_EXPORT void psd_call_set_ends_clock(psd_call_t *self, bool ends);
/*
 * Filters that shrink the messages of this call; they replace the table's own
 * filter. Words joined by "+" or ",", each at most once:
 *
 *   cache        a list of rows that was sent before is sent as its hash
 *   delta        ascending rows are sent as differences
 *   lz4, zstd    (one of them) bytes are compressed where that makes them fewer
 *   f16, bf16, fixed1, fixed2, fixed3, fixed4
 *                (one of them) f32 and f64 values in 16 bits, or 1..4 bytes of
 *                fixed point; stochastic rounding, without bias
 *   topk=S       (one of these) a push of whole dense rows sends the largest
 *                values, a share S of all; the client holds the others back and
 *                adds them to the next push of their rows, or to psd_push_rest
 *   threshold=T  the same with the values of magnitude T or more
 *   skip=S       each value is dropped with probability S, and multiplied by
 *                1 / (1 - S) otherwise
 *
 * or "none". Filters that the node does not support are left out. Over a lane
 * delta, lz4 and zstd are left out too, because they take longer than they
 * save. Integers are never rounded: PSD_INVALID refuses such a call when it is
 * made. The last three filters are for the updaters add and sgd, and have no
 * effect on pulls and pushpulls.
 * Errors: PSD_INVALID, naming the word and what is allowed.
 */
PSD_EXPORT psd_status_t psd_call_set_filter(psd_call_t *self, const char *filter, psd_error_t *err);

/*
 * Waits until the ticket has ended and returns its result. A ticket can be
 * waited for once; afterwards it is PSD_INVALID.
 * Errors: the status of the request (PSD_DEADLINE when its own deadline passed:
 * a push then goes on without its ticket, see psd_flush); PSD_DEADLINE when
 * timeout_ms passed first, naming what it waits for: the ticket goes on and can
 * be waited for again.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_wait(psd_client_t *client, psd_ticket_t ticket,
                                                uint32_t timeout_ms, psd_error_t *err);
/* Waits for every ticket of this client and returns the first failure. All
 * tickets are used up, unless it returns PSD_DEADLINE. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_wait_all(psd_client_t *client, uint32_t timeout_ms,
                                                    psd_error_t *err);
/* Handles the messages that have arrived, without waiting, and says whether the
 * ticket has ended (psd_wait then returns its result at once). */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_poll(psd_client_t *client, psd_ticket_t ticket,
                                                bool *ret_done, psd_error_t *err);
/* Waits until every push of this client is acknowledged or refused, including
 * pushes whose own deadline has passed. Errors: PSD_DEADLINE; the reason why
 * the client is broken. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_flush(psd_client_t *client, uint32_t timeout_ms,
                                                 psd_error_t *err);

/*
 * Sends one control request of docs/protocol.md section 7 (without v, id and
 * session) and returns the whole reply; for tools.
 * ret_reply  out  JSON text; the caller frees it with psd_free. Set on PSD_OK
 *                 and on every refusal by the node
 * Errors: the reply's own status; PSD_DEADLINE; PSD_INVALID no JSON object.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_request(psd_client_t *client, const char *request,
                                                   uint32_t timeout_ms, char **ret_reply,
                                                   psd_error_t *err);
/* Frees a text that a call returned to the caller. */
PSD_EXPORT void psd_free(void *text);

#ifdef __cplusplus
}
#endif
#endif
