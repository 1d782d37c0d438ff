/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_http_conns - the connections of the HTTP port, and how long they may take
 *
 * What     Each open connection has a place here. One that takes too long for its
 *          request or its answer is cut; when there are too many, the oldest is. So
 *          neither a slow nor a hostile client keeps others out.
 * Units    ms of any monotonic clock
 * Owner    The caller; plain memory. Threads: confined to one.
 */
#ifndef PS_DAEMON_HTTP_CONNS_H
#define PS_DAEMON_HTTP_CONNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PS_HTTP_CONNS_MAX 48   /* above this the oldest is cut */
#define PS_HTTP_CONNS_LIMIT 64 /* above this none is accepted */
#define PS_HTTP_IDLE_MS 120000 /* between two requests of one connection */

typedef enum ps_http_phase {
    PS_HTTP_FREE = 0, /* no connection */
    PS_HTTP_HEAD = 1, /* its first request comes */
    PS_HTTP_BODY = 2, /* its answer is sent */
    PS_HTTP_IDLE = 3, /* it may send another request */
    PS_HTTP_CUT = 4   /* it is being closed */
} ps_http_phase_t;

typedef struct ps_http_conn {
    int fd;
    ps_http_phase_t phase;
    uint64_t since_ms; /* that it is in this phase */
} ps_http_conn_t;

typedef struct ps_http_conns {
    ps_http_conn_t at[PS_HTTP_CONNS_LIMIT];
    size_t n;         /* that are not free */
    uint64_t head_ms; /* for each phase */
    uint64_t body_ms;
    uint64_t n_cut; /* ever */
} ps_http_conns_t;

/* A new connection; NULL: there is no place. Cuts the oldest when there are too
 * many. */
ps_http_conn_t *ps_http_conns_add(ps_http_conns_t *self, int fd, uint64_t now_ms);
void ps_http_conns_remove(ps_http_conns_t *self, ps_http_conn_t *conn);
/* Takes NULL. */
void ps_http_conn_enter(ps_http_conn_t *conn, ps_http_phase_t phase, uint64_t now_ms);
/* Cuts all that take too long. */
void ps_http_conns_tick(ps_http_conns_t *self, uint64_t now_ms);
#endif
