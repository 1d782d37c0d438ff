/* SPDX-License-Identifier: Apache-2.0 */
/* Connections and sessions, found either way. */
#include "protocol/partition/peer.h"

#include <assert.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "wire/messages/message.h"

/* Lists belong to a connection: a new one starts without them. */
static void forget_lists(ps_peer_t *peer)
{
    for (size_t way = 0; way < PS_WAYS; way++) {
        ps_key_cache_destroy(&peer->lists[way]);
    }
}

static void drop_peer(ps_peers_t *self, ps_peer_t *peer)
{
    if (self->latest == peer) {
        self->latest = NULL;
    }
    for (size_t way = 0; way < PS_WAYS; way++) {
        if (peer->conns[way] != PS_PEER_NO_CONN) {
            (void)ps_map_remove(&self->by_conn, peer->conns[way]);
        }
    }
    (void)ps_map_remove(&self->by_session, peer->session);
    forget_lists(peer);
    ps_free(peer);
}

void ps_peers_done(ps_peers_t *self)
{
    size_t at = 0;
    uint64_t session = 0;
    void *peer = NULL;

    while (ps_map_next(&self->by_session, &at, &session, &peer)) {
        forget_lists(peer);
        ps_free(peer);
    }
    ps_map_done(&self->by_session);
    ps_map_done(&self->by_conn);
}

ps_peer_t *ps_peers_at(ps_peers_t *self, uint64_t conn)
{
    if (conn == PS_PEER_NO_CONN) {
        return NULL;
    }
    if (self->latest == NULL || self->latest->conns[PS_WAY_FIRST] != conn) {
        self->latest = ps_map_get(&self->by_conn, conn);
    }
    return self->latest;
}

ps_peer_t *ps_peers_of(const ps_peers_t *self, uint64_t session)
{
    return ps_map_get(&self->by_session, session);
}

/* Makes room for one more; false when every peer has held requests. */
static bool evict_idle(ps_peers_t *self)
{
    ps_peer_t *idle = NULL;
    size_t at = 0;
    uint64_t session = 0;
    void *value = NULL;

    while (ps_map_next(&self->by_session, &at, &session, &value)) {
        ps_peer_t *peer = value;

        if (peer->n_held == 0 &&
            (idle == NULL || peer->used_ms < idle->used_ms ||
             (peer->used_ms == idle->used_ms && peer->session < idle->session))) {
            idle = peer;
        }
    }
    if (idle == NULL) {
        return false;
    }
    drop_peer(self, idle);
    return true;
}

static psd_status_t make_peer(ps_peers_t *self, const ps_peer_hello_t *hello, uint32_t max,
                              ps_peer_t **ret_peer, psd_error_t *err)
{
    ps_peer_t *peer = NULL;

    if (self->by_session.count >= max && !evict_idle(self)) {
        return psd_error_set(err, PSD_LIMIT,
                             "%" PRIu32 " clients are connected, no more are "
                             "allowed",
                             max);
    }
    peer = ps_alloc(1, sizeof *peer);
    if (peer == NULL || !ps_map_put(&self->by_session, hello->session, peer)) {
        ps_free(peer);
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    peer->session = hello->session;
    peer->client = hello->client;
    peer->conns[PS_WAY_FIRST] = PS_PEER_NO_CONN;
    peer->conns[PS_WAY_BULK] = PS_PEER_NO_CONN;
    *ret_peer = peer;
    return PSD_OK;
}

/* The peer has the connection no more. */
static void lose(ps_peer_t *peer, uint64_t conn)
{
    for (size_t way = 0; way < PS_WAYS; way++) {
        if (peer->conns[way] == conn) {
            peer->conns[way] = PS_PEER_NO_CONN;
            ps_key_cache_destroy(&peer->lists[way]);
        }
    }
}

psd_status_t ps_peers_hello(ps_peers_t *self, const ps_peer_hello_t *hello, uint64_t now_ms,
                            uint32_t max, psd_error_t *err)
{
    ps_peer_t *peer = ps_peers_of(self, hello->session);
    ps_peer_t *other = NULL;
    psd_status_t rc;

    if (peer != NULL && !ps_id_equal(&peer->client, &hello->client)) {
        return psd_error_set(err, PSD_DENIED, "session %" PRIu64 " belongs to another client",
                             hello->session);
    }
    if (peer == NULL) {
        rc = make_peer(self, hello, max, &peer, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    assert(peer != NULL);
    peer->used_ms = now_ms;
    peer->filters = hello->filters;
    if (peer->conns[hello->way] == hello->conn) {
        return PSD_OK;
    }
    other = ps_peers_at(self, hello->conn);
    if (!ps_map_put(&self->by_conn, hello->conn, peer)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    if (other != NULL) {
        lose(other, hello->conn);
        if (other->session >= PS_GUEST_FIRST && other->n_held == 0 &&
            ps_peer_conn(other, PS_WAY_FIRST) == PS_PEER_NO_CONN) {
            drop_peer(self, other); /* it has a session now */
        }
    }
    if (peer->conns[hello->way] != PS_PEER_NO_CONN) {
        (void)ps_map_remove(&self->by_conn, peer->conns[hello->way]);
    }
    peer->conns[hello->way] = hello->conn;
    ps_key_cache_destroy(&peer->lists[hello->way]);
    self->latest = NULL;
    return PSD_OK;
}

void ps_peers_gone(ps_peers_t *self, uint64_t conn)
{
    ps_peer_t *peer = ps_map_remove(&self->by_conn, conn);

    if (peer == NULL) {
        return;
    }
    lose(peer, conn);
    self->latest = NULL;
    if (peer->n_held == 0 && !peer->ended && ps_peer_conn(peer, PS_WAY_FIRST) == PS_PEER_NO_CONN) {
        drop_peer(self, peer);
    }
}

uint64_t ps_peers_take_ended(ps_peers_t *self)
{
    size_t at = 0;
    uint64_t session = 0;
    void *value = NULL;

    while (ps_map_next(&self->by_session, &at, &session, &value)) {
        ps_peer_t *peer = value;

        if (peer->ended && peer->n_held == 0 &&
            ps_peer_conn(peer, PS_WAY_FIRST) == PS_PEER_NO_CONN) {
            drop_peer(self, peer);
            return session;
        }
    }
    return 0;
}
