/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_peers - the clients that have sent HELLO to this shard
 *
 * What     Finds a client by its connection or by its session. A client may
 *          have two connections, one of them for bulk: large bodies use it, so
 *          that nothing else queues behind them. Answers go to the newest
 *          connection of each kind; while one is missing, the other replaces
 *          it. A forgotten client only needs to send HELLO again.
 * Owner    The shard. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_PEER_H
#define PS_PROTOCOL_PEER_H

#include "base/bytes.h"
#include "base/map.h"
#include "wire/filters/keys_cache.h"

typedef enum ps_way { PS_WAY_FIRST = 0, PS_WAY_BULK = 1 } ps_way_t;
#define PS_WAYS 2
#define PS_PEER_NO_CONN UINT64_MAX

typedef struct ps_peer {
    uint64_t session;
    uint64_t conns[PS_WAYS]; /* by ps_way_t; PS_PEER_NO_CONN: none */
    ps_id_t client;
    uint64_t used_ms;
    bool ended;                     /* it has sent BYE */
    uint32_t job;                   /* of its last request as a worker; 0: none yet */
    uint32_t n_held;                /* its held requests */
    uint64_t held_bytes;            /* of their bodies */
    uint32_t filters;               /* filters that it may use; PS_FILTER_BIT_… */
    ps_key_cache_t *lists[PS_WAYS]; /* owned; key lists received on that way's connection; NULL:
                                       none yet */
} ps_peer_t;

typedef struct ps_peers {
    ps_map_t by_conn;    /* conn -> ps_peer_t, borrowed */
    ps_map_t by_session; /* session -> ps_peer_t, owned */
    ps_peer_t *latest;   /* the peer that ps_peers_at found last, or NULL */
} ps_peers_t;

void ps_peers_done(ps_peers_t *self);
/* NULL when the connection has not said HELLO. */
ps_peer_t *ps_peers_at(ps_peers_t *self, uint64_t conn);
ps_peer_t *ps_peers_of(const ps_peers_t *self, uint64_t session);
/* The sender of a HELLO and its connection. */
typedef struct ps_peer_hello {
    uint64_t conn;
    uint64_t session;
    ps_id_t client;
    ps_way_t way;
    uint32_t filters; /* that both sides speak */
} ps_peer_hello_t;

/* Handles a HELLO: creates the peer or gives it a new connection. When there
 * are `max` peers already, evicts the one idle longest without held requests.
 * Errors: PSD_DENIED the session belongs to another client; PSD_LIMIT;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_peers_hello(ps_peers_t *self, const ps_peer_hello_t *hello,
                                           uint64_t now_ms, uint32_t max, psd_error_t *err);
/* The connection for an answer: that way's, or the other's while it is missing;
 * PS_PEER_NO_CONN when both are missing. */
static inline uint64_t ps_peer_conn(const ps_peer_t *self, ps_way_t way)
{
    return self->conns[way] != PS_PEER_NO_CONN ? self->conns[way] : self->conns[PS_WAY_BULK - way];
}
/* Removes a peer that has ended and has no connection and no held requests;
 * returns its session. 0: there is none. */
uint64_t ps_peers_take_ended(ps_peers_t *self);
/* The connection is gone; the peer stays while it has the other one, or held
 * requests. */
void ps_peers_gone(ps_peers_t *self, uint64_t conn);
#endif
