/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_gate - may this connection send that message?
 *
 * What     Who is at the other end of a connection is asked once, at its HELLO. What
 *          it may do to a table is worked out at its first message for that, and again
 *          when the auth epoch has grown (rights.h).
 * Owner    The shard's thread; embedded. Threads: confined to it.
 */
#ifndef PS_SERVER_SHARD_GATE_H
#define PS_SERVER_SHARD_GATE_H

#include "base/map.h"
#include "server/shards/rights.h"
#include "storage/audit/audit_log.h"
#include "transport/sockets/asker.h"
#include "wire/messages/message.h"

/* What the gate asks its shard. */
typedef struct ps_gate_view {
    /* A table's name, borrowed until the next call; NULL: it is not here. */
    const char *(*table)(const void *of, uint32_t id);
    /* The connection stands. */
    bool (*stands)(const void *of, uint64_t conn);
    const void *of; /* borrowed */
} ps_gate_view_t;

typedef struct ps_shard_gate {
    ps_rights_t *rights;   /* borrowed; NULL: everybody may everything, and nothing is asked */
    ps_audit_log_t *audit; /* borrowed; has who was refused; NULL: nobody is noted */
    ps_gate_view_t view;
    ps_map_t conns;     /* conn -> its rights, owned */
    size_t sweep_count; /* connections at which those that have ended are dropped */
} ps_shard_gate_t;

void ps_shard_gate_init(ps_shard_gate_t *self, ps_rights_t *rights, const ps_gate_view_t *view);
void ps_shard_gate_done(ps_shard_gate_t *self);
/* HELLO or PEER has come. asker: NULL: it is not known who sent it. */
void ps_shard_gate_greet(ps_shard_gate_t *self, uint64_t conn, const ps_asker_t *asker);
/* The connection is gone, or has said BYE. */
void ps_shard_gate_forget(ps_shard_gate_t *self, uint64_t conn);
/* May it? With rights only. Errors: PSD_DENIED, in words; PSD_NO_SESSION the connection has not
 * said HELLO; PSD_BUSY this node has not heard of the principals yet. */
PSD_MUST_CHECK psd_status_t ps_shard_gate_check(ps_shard_gate_t *self, uint64_t conn,
                                                const ps_message_t *message, psd_error_t *err);
#endif
