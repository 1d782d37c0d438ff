/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_embed - a node of a cluster inside a program
 *
 *     psd_embed_options_t *options = psd_embed_options_new();
 *     psd_embed_t *server = NULL;
 *     psd_embed_options_set(options, "shards", "2", err);
 *     psd_embed_start(options, &server, err);
 *     psd_connect(psd_embed_endpoint(server), NULL, &client, err);
 *     ...
 *     psd_embed_stop(&server);
 *
 * What     What the program psd runs, in threads of the caller's process: the
 *          node has a registry of its own, or joins one (key cluster.join).
 *          Other processes may use it; `pscli --endpoint` shows it. This is a
 *          library of its own (pkg-config libpsd_server): a worker of a cluster
 *          does not load it.
 * Place    The library touches no signal handler, signal mask, stdio stream,
 *          limit of the process, locale or setting of the allocator. Its threads
 *          block all signals but faults. Any number of servers may run in one
 *          process. exit() is safe while they run. A child of fork has none of
 *          their threads: it must not use a server of its parent, and may exit.
 * Owner    What a call returns through `ret_x` belongs to the caller; a
 *          destructor takes the pointer's address, accepts NULL, and nulls it.
 * Threads  One at a time uses a server or its options.
 * Units    timeouts in milliseconds
 */
#ifndef PSD_SERVER_H
#define PSD_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "psd/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psd_embed psd_embed_t;
typedef struct psd_embed_options psd_embed_options_t;

/* How to serve. NULL when there is no memory. */
PSD_EXPORT psd_embed_options_t *psd_embed_options_new(void);
PSD_EXPORT void psd_embed_options_destroy(psd_embed_options_t **self_p);
/*
 * Sets one key of psd.yaml by its path ("shards", "copies.lease_ms"), from its
 * text; items of a list have commas between them. It wins over the environment
 * (PSD_SHARDS), which wins over the default. Three defaults differ from those
 * of the program psd:
 *
 *   data_dir          "": a temporary directory, which goes with the server
 *   listen.endpoints  tcp://127.0.0.1:0
 *   log.level         warn
 *
 * node.name "" is the default, the host's name, whatever the environment says.
 * Errors: PSD_CONFIG naming the key, the value and what is allowed; PSD_NOMEM.
 */
PSD_EXPORT psd_status_t psd_embed_options_set(psd_embed_options_t *self, const char *key,
                                              const char *value, psd_error_t *err);
/* Gets each line of the server's log, without a line break, of log.level or more
 * important: level 3 error, 4 warn, 6 info, 7 debug. Any of the server's threads
 * runs it; it must not use the server. Not set: lines go to descriptor 2. */
typedef void psd_on_log_t(void *user, int level, const char *line);
PSD_EXPORT void psd_embed_options_set_on_log(psd_embed_options_t *self, psd_on_log_t *on_log,
                                             void *user);
/* The server has ended by itself, and why; it is still to be stopped. Runs once
 * at most, on the server's thread, and not for psd_embed_stop; it must not use
 * the server. */
typedef void psd_on_end_t(void *user, psd_status_t status, const char *why);
PSD_EXPORT void psd_embed_options_set_on_end(psd_embed_options_t *self, psd_on_end_t *on_end,
                                             void *user);

/*
 * Starts a server, and returns when it serves. A server that joins a cluster
 * waits for its registry. One with much in its data directory reads that first,
 * also past the deadline: raise $PSD_TIMEOUT_MS for it.
 *
 * options  in  NULL: defaults; not used after the call
 *
 * Errors: PSD_CONFIG, also of a variable of the environment; PSD_IO a port or a
 * directory, named; PSD_HELD another server has the data directory; PSD_FOREIGN
 * it is another cluster's or node's; PSD_DAMAGED; PSD_NOMEM; PSD_DEADLINE it was
 * not ready within $PSD_TIMEOUT_MS, else 10000 ms; those of a registry that
 * refuses to be joined.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_embed_start(const psd_embed_options_t *options,
                                                       psd_embed_t **ret_server, psd_error_t *err);
/* For psd_connect, here and elsewhere: "tcp://127.0.0.1:40001", or what the
 * server listens on. Borrowed until the stop. */
PSD_EXPORT const char *psd_embed_endpoint(const psd_embed_t *self);
/*
 * Moves the node's partitions to other nodes, so that a stop loses nothing;
 * returns when none is left. When it fails, the node goes on draining.
 * Errors: PSD_DEADLINE, naming what is left; what the registry answers.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_embed_drain(psd_embed_t *self, uint32_t timeout_ms,
                                                       psd_error_t *err);
/*
 * Waits until the job has ended: workers have joined it, and all of them have
 * left or are lost, or it was stopped.
 * Errors: PSD_DEADLINE, naming the job's state; what the registry answers.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_embed_wait(psd_embed_t *self, const char *job,
                                                      uint32_t timeout_ms, psd_error_t *err);
/* Ends the server and its threads, and removes a temporary data directory.
 * Takes NULL. In a forked child it frees nothing but the handle. */
PSD_EXPORT void psd_embed_stop(psd_embed_t **self_p);

/*
 * Makes the process what $PSD_ROLE says (or $DMLC_ROLE, with $DMLC_PS_ROOT_URI and
 * _PORT), so that one program is started as scheduler, server and worker:
 *
 *   worker     waits until a psd answers at $PSD_ENDPOINT; *ret_works: go on, connect and
 *              join. Also where no role is set, without waiting
 *   scheduler  is the registry, at $PSD_ENDPOINT, until the job has ended and all servers
 *              have
 *   server     is a node that joins it, until the job has ended
 *   none       returns at once
 *
 * job        in   NULL: $PSD_JOB, else "default"
 * ret_works  out  false: the process has served, and ends now
 *
 * Errors: those of psd_embed_start and psd_connect; PSD_DEADLINE no worker has joined the
 * job for 60 s; PSD_INVALID naming the variable.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_start(const char *job, bool *ret_works,
                                                 psd_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
