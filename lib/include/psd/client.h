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

/* Names one request that was started and not yet waited for; 0 names none. */
typedef uint64_t psd_ticket_t;

/* "1.0.0" of the library; static. */
PSD_EXPORT const char *psd_version(void);

/* How to connect. NULL when there is no memory. */
PSD_EXPORT psd_options_t *psd_options_new(void);
PSD_EXPORT void psd_options_destroy(psd_options_t **self_p);
/* Deadline of every call that names none. Not set: $PSD_TIMEOUT_MS, 1 ..
 * 86400000, else 10000. */
PSD_EXPORT void psd_options_set_timeout_ms(psd_options_t *self, uint32_t timeout_ms);
/* Which transport to use to shards: "auto" (a lane through shared memory if the
 * node is on this host and takes us, else ipc if connecting to its socket
 * succeeds now, else tcp), "lane", "ipc", "tcp"; the last three and nothing
 * else. Not set: $PSD_TRANSPORT, else "auto". PSD_INVALID for another word. */
PSD_EXPORT psd_status_t psd_options_set_transport(psd_options_t *self, const char *transport,
                                                  psd_error_t *err);
/* For how long a call that waits looks for answers before it sleeps, in
 * microseconds, 0 .. 10000; not at all when that does not pay or others need
 * the processor (over ipc and tcp those who carry large values), up to 4 times
 * as long while answers come that regularly, and over a lane up to 1000 more
 * while the shard has large values of ours to work on. 0: never. Not set:
 * $PSD_SPIN_US, else 50. PSD_INVALID. */
PSD_EXPORT psd_status_t psd_options_set_spin_us(psd_options_t *self, uint32_t spin_us,
                                                psd_error_t *err);
/* What psd_connect does when the connection is refused: true: it tries again
 * until its timeout; false: it ends at once. Not set: $PSD_WAIT, 1 or 0, else
 * it ends at once for an address of this host, where nobody is on the way, and
 * tries again for others. */
PSD_EXPORT void psd_options_set_wait(psd_options_t *self, bool wait);

/* Is told, once, when psd_connect has waited for a second of a longer timeout
 * and nobody has answered: by whom and why not, as far as the system says it,
 * and for how long it goes on ("tcp://h:7171: no answer for 1 s: Connection
 * refused; waiting 9 s more"). And when a call on rows is open for 3 s of a
 * longer timeout and the program waits, for whatever it is, at most once in
 * 30 s: which call, and what it waits for (`pull of table "t", partition 0: 3 s
 * passed: …; waiting 27 s more`). It is called by the thread that connects or
 * waits, and must not use the client; `what` lives as long as the call. Not
 * set: nobody is told. */
typedef void psd_on_wait_t(void *user, const char *what);
PSD_EXPORT void psd_options_set_on_wait(psd_options_t *self, psd_on_wait_t *on_wait, void *user);

/*
 * Connects and waits for the cluster's WELCOME.
 *
 * endpoint  in  "tcp://host:port" or "ipc://path"; NULL: $PSD_ENDPOINT, else
 *               the psd of this host by endpoints.json in $PSD_RUNTIME_DIR or
 *               /run/psd (over its unix socket when that lets us in), else
 *               tcp://127.0.0.1:7171
 * options   in  NULL: defaults
 *
 * Errors: PSD_INVALID endpoint or environment not understood; PSD_CONNECT the
 * connection was refused (psd_options_set_wait), or no WELCOME within the
 * timeout, and why, as far as the system says it, for which it is asked for up
 * to 200 ms more; PSD_VERSION, PSD_CLUSTER, PSD_DENIED
 * refused by the node; PSD_NOMEM.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_connect(const char *endpoint,
                                                   const psd_options_t *options,
                                                   psd_client_t **ret_client, psd_error_t *err);
/* Closes at once: what was not acknowledged may or may not be applied
 * (psd_flush first to know). Tables made from it must not be used again, only
 * closed. Takes NULL. */
PSD_EXPORT void psd_close(psd_client_t **client_p);

/* How one call is to be done; NULL anywhere means the defaults. Used as often
 * as wanted, never kept by a call. NULL when there is no memory. */
PSD_EXPORT psd_call_t *psd_call_new(void);
PSD_EXPORT void psd_call_destroy(psd_call_t **self_p);
PSD_EXPORT void psd_call_set_timeout_ms(psd_call_t *self, uint32_t timeout_ms);
/* "memory", "replica", "disk", or "default" (the table's). PSD_INVALID. */
PSD_EXPORT psd_status_t psd_call_set_ack(psd_call_t *self, const char *level, psd_error_t *err);
/* Greater goes first among calls that wait for credits of one partition;
 * default 0. No call passes the end of a clock. */
PSD_EXPORT void psd_call_set_priority(psd_call_t *self, int32_t priority);
/* Start this call only when that ticket has ended. */
PSD_EXPORT void psd_call_set_after(psd_call_t *self, psd_ticket_t ticket);
/* A number of the user's; named in what this call's errors say. */
PSD_EXPORT void psd_call_set_command(psd_call_t *self, uint32_t command);
/* true: the caller's rows and values are used in place and must stay untouched
 * until the ticket has ended; false (default): they are copied. */
PSD_EXPORT void psd_call_set_borrow(psd_call_t *self, bool borrow);
/* true: this push is the last one of the worker's clock, and what psd_clock
 * does is done with it: the same, with fewer messages. Of pushes that are only
 * started; where one cannot be started, its clock is not finished either. One
 * that is started and fails later has finished it. PSD_INVALID when it is no
 * push, PSD_NOT_JOINED when the client is no worker. Default false. */
PSD_EXPORT void psd_call_set_ends_clock(psd_call_t *self, bool ends);
/*
 * What shrinks this call's messages on their way, instead of the table's own
 * filter: words joined by "+" or ",", each at most once, of
 *
 *   cache        a list of rows that was sent before goes as its hash
 *   delta        ascending rows go as differences
 *   lz4, zstd    (one of them) bytes are packed where that makes them fewer
 *   f16, bf16, fixed1, fixed2, fixed3, fixed4
 *                (one of them) f32 and f64 values in 16 bits, or 1..4 bytes of
 *                fixed point; rounded by chance, without bias
 *   topk=S       (one of these) a push of whole dense rows sends the share S of
 *                its values that is largest; the others wait here, and are
 *                added to the next push of their rows, or to psd_push_rest
 *   threshold=T  the same with the values of at least the size T
 *   skip=S       each value is left out with the chance S, and sent 1 / (1 - S)
 *                fold otherwise
 *
 * or "none". What the node does not speak is left out, and over a lane delta,
 * lz4 and zstd are, which take longer than they save. Values of integers are
 * never rounded: such a call is refused with PSD_INVALID when it is made.
 * The last three are for the updaters add and sgd, and do nothing to pulls and
 * pushpulls.
 * Errors: PSD_INVALID, naming the word and what is allowed.
 */
PSD_EXPORT psd_status_t psd_call_set_filter(psd_call_t *self, const char *filter, psd_error_t *err);

/*
 * Waits until the ticket has ended and gives its result. A ticket can be waited
 * for once; afterwards it is PSD_INVALID.
 * Errors: what the request ended with (PSD_DEADLINE when its own deadline
 * passed: a push then goes on without its ticket, see psd_flush); PSD_DEADLINE
 * when timeout_ms passed first, naming who is waited for: the ticket goes on
 * and can be waited for again.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_wait(psd_client_t *client, psd_ticket_t ticket,
                                                uint32_t timeout_ms, psd_error_t *err);
/* Waits for every ticket of this client; the first failure is returned, all are
 * used up unless it is PSD_DEADLINE. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_wait_all(psd_client_t *client, uint32_t timeout_ms,
                                                    psd_error_t *err);
/* Works off what has arrived without waiting, and says whether the ticket has
 * ended (psd_wait then gives its result at once). */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_poll(psd_client_t *client, psd_ticket_t ticket,
                                                bool *ret_done, psd_error_t *err);
/* Waits until every push of this client is acknowledged or refused, also those
 * whose own deadline passed. Errors: PSD_DEADLINE; a broken client's reason. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_flush(psd_client_t *client, uint32_t timeout_ms,
                                                 psd_error_t *err);

/*
 * Sends one control request as docs/protocol.md section 7 has it (without v, id
 * and session) and gives the whole reply; for tools.
 * ret_reply  out  JSON text; the caller frees it with psd_free. Set on PSD_OK
 *                 and on every refusal by the node
 * Errors: the reply's own status; PSD_DEADLINE; PSD_INVALID no JSON object.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_request(psd_client_t *client, const char *request,
                                                   uint32_t timeout_ms, char **ret_reply,
                                                   psd_error_t *err);
/* Frees text that a call gave to the caller. */
PSD_EXPORT void psd_free(void *text);

#ifdef __cplusplus
}
#endif
#endif
