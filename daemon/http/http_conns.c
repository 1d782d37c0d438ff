/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections are cut. */
#include "daemon/http/http_conns.h"

#include <sys/socket.h>

/* Both directions end: the server sees that, and closes it. */
static void cut(ps_http_conns_t *self, ps_http_conn_t *conn)
{
    (void)shutdown(conn->fd, SHUT_RDWR);
    conn->phase = PS_HTTP_CUT;
    self->n_cut++;
}

static void cut_oldest(ps_http_conns_t *self, const ps_http_conn_t *but)
{
    ps_http_conn_t *oldest = NULL;

    for (size_t i = 0; i < PS_HTTP_CONNS_LIMIT; i++) {
        ps_http_conn_t *conn = &self->at[i];

        if (conn != but && conn->phase != PS_HTTP_FREE && conn->phase != PS_HTTP_CUT &&
            (oldest == NULL || conn->since_ms < oldest->since_ms)) {
            oldest = conn;
        }
    }
    if (oldest != NULL) {
        cut(self, oldest);
    }
}

ps_http_conn_t *ps_http_conns_add(ps_http_conns_t *self, int fd, uint64_t now_ms)
{
    ps_http_conn_t *conn = NULL;

    for (size_t i = 0; conn == NULL && i < PS_HTTP_CONNS_LIMIT; i++) {
        conn = self->at[i].phase == PS_HTTP_FREE ? &self->at[i] : NULL;
    }
    if (conn == NULL) {
        return NULL;
    }
    *conn = (ps_http_conn_t){.fd = fd, .phase = PS_HTTP_HEAD, .since_ms = now_ms};
    self->n++;
    if (self->n > PS_HTTP_CONNS_MAX) {
        cut_oldest(self, conn);
    }
    return conn;
}

void ps_http_conns_remove(ps_http_conns_t *self, ps_http_conn_t *conn)
{
    conn->phase = PS_HTTP_FREE;
    self->n--;
}

void ps_http_conn_enter(ps_http_conn_t *conn, ps_http_phase_t phase, uint64_t now_ms)
{
    if (conn != NULL && conn->phase != PS_HTTP_CUT) {
        conn->phase = phase;
        conn->since_ms = now_ms;
    }
}

/* How long a connection may be in that phase. */
static uint64_t allowed_ms(const ps_http_conns_t *self, ps_http_phase_t phase)
{
    switch (phase) {
    case PS_HTTP_HEAD:
        return self->head_ms;
    case PS_HTTP_BODY:
        return self->body_ms;
    case PS_HTTP_IDLE:
        return PS_HTTP_IDLE_MS;
    case PS_HTTP_FREE:
    case PS_HTTP_CUT:
    default:
        return UINT64_MAX;
    }
}

void ps_http_conns_tick(ps_http_conns_t *self, uint64_t now_ms)
{
    for (size_t i = 0; i < PS_HTTP_CONNS_LIMIT; i++) {
        ps_http_conn_t *conn = &self->at[i];

        if (now_ms - conn->since_ms > allowed_ms(self, conn->phase)) {
            cut(self, conn);
        }
    }
}
