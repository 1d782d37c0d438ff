/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room daemon/http: the HTTP port
 *
 * It is       /healthz, /readyz, /metrics, the page and /api/v1, by libmicrohttpd, in a
 *             thread of its own; another one asks the control port for /api/v1.
 * It uses     the room metrics, which has the words; page, which has the page's files;
 *             lib/client for the control port; lib/transport/threads, lib/wire, lib/base.
 * It ignores  Shards, the registry, and everything else that could make it wait; what the
 *             control port's answers say.
 * Start at    http.c
 */
/*
 * ps_http - the HTTP port of this node
 *
 * What     Answers from what the threads have counted; asks none of them, so that it
 *          answers while they hang. Paths below /api/v1/ are asked of the control port,
 *          in 3 s, and meanwhile it answers others. Only GET and HEAD, no bodies. A
 *          connection that is slow, or the oldest of too many, is closed.
 * Owner    The caller; ps_http_stop ends the thread.
 * Threads  Its own, "http", at a lower priority than all others.
 */
#ifndef PS_DAEMON_HTTP_H
#define PS_DAEMON_HTTP_H

#include "daemon/http/http_token.h"
#include "server/metrics/metrics.h"

#define PS_HTTP_HOST_SIZE 256

typedef struct ps_http ps_http_t;

typedef struct ps_http_args {
    char host[PS_HTTP_HOST_SIZE]; /* an address, or a name of one */
    uint16_t port;                /* 0: the kernel chooses */
    ps_metrics_t *metrics;        /* borrowed until the stop */
    bool token_for_all;           /* every path but probes' wants the token; else /api/v1 */
    uint64_t head_ms;             /* for a whole request to come; 0: 5 s */
    uint64_t body_ms;             /* for its answer to be taken; 0: 10 s */
} ps_http_args_t;

/* Errors: PSD_IO naming the address and why it cannot be bound; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_http_start(const ps_http_args_t *args, ps_http_t **ret_http,
                                          psd_error_t *err);
/* From now on its thread reports there that it turns. Not called twice. */
void ps_http_enter(ps_http_t *self, ps_turns_t *turns);
/* From now on it answers /api/v1, by asking that endpoint of the control port, for those
 * who have the token. Not called twice. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_http_open_api(ps_http_t *self, const char token[PS_HTTP_TOKEN_SIZE],
                                             const char *endpoint, psd_error_t *err);
/* Closes its connections. Takes NULL, nulls *self_p. */
void ps_http_stop(ps_http_t **self_p);
/* "http://127.0.0.1:7173", with the port that was chosen. Borrowed. */
const char *ps_http_url(const ps_http_t *self);
#endif
