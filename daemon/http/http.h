/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room daemon/http: the HTTP port
 *
 * It is       /healthz, /readyz and /metrics, by libmicrohttpd, in a thread of its own.
 * It uses     the room metrics, which has the words; lib/transport/threads, lib/base.
 * It ignores  Shards, the registry, and everything else that could make it wait.
 * Start at    http.c
 */
/*
 * ps_http - the HTTP port of this node
 *
 * What     Answers from what the threads have counted; asks none of them, so that it
 *          answers while they hang. Only GET and HEAD, no bodies. A connection that is
 *          slow, or the oldest of too many, is closed.
 * Owner    The caller; ps_http_stop ends the thread.
 * Threads  Its own, "http", at a lower priority than all others.
 */
#ifndef PS_DAEMON_HTTP_H
#define PS_DAEMON_HTTP_H

#include "server/metrics/metrics.h"

#define PS_HTTP_HOST_SIZE 256

typedef struct ps_http ps_http_t;

typedef struct ps_http_args {
    char host[PS_HTTP_HOST_SIZE]; /* an address, or a name of one */
    uint16_t port;                /* 0: the kernel chooses */
    ps_metrics_t *metrics;        /* borrowed until the stop */
    uint64_t head_ms;             /* for a whole request to come; 0: 5 s */
    uint64_t body_ms;             /* for its answer to be taken; 0: 10 s */
} ps_http_args_t;

/* Errors: PSD_IO naming the address and why it cannot be bound; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_http_start(const ps_http_args_t *args, ps_http_t **ret_http,
                                          psd_error_t *err);
/* From now on its thread reports there that it turns. Not called twice. */
void ps_http_enter(ps_http_t *self, ps_turns_t *turns);
/* Closes its connections. Takes NULL, nulls *self_p. */
void ps_http_stop(ps_http_t **self_p);
/* "http://127.0.0.1:7173", with the port that was chosen. Borrowed. */
const char *ps_http_url(const ps_http_t *self);
#endif
