/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_told - what the shards of a node know about each other
 *
 * What     They share limits of the node: memory, and the speed of rows to new
 *          copies. Each shard publishes its own part, and passes the others' to
 *          its core.
 * Units    bytes, ms
 * Owner    Embedded in the actor.
 * Threads  Confined to the shard's one; what is shared is atomic.
 */
#ifndef PS_SERVER_SHARD_TELL_H
#define PS_SERVER_SHARD_TELL_H

#include "server/shards/shard_actor.h"

typedef struct ps_shard_told {
    uint64_t bytes;      /* as the others know them */
    uint64_t unfinished; /* bytes of messages of which pieces have come … */
    uint64_t pieces;     /* … as the others know them */
    uint64_t tail_bytes;
    uint32_t giving; /* 1: they know that this one gives rows */
} ps_shard_told_t;

/* Publishes changes to the others. The caller sets self->unfinished. */
void ps_shard_tell(ps_shard_told_t *self, ps_shard_common_t *common, const ps_shard_t *core,
                   uint64_t now_ms);
/* Bytes that the others keep, with unfinished messages. */
uint64_t ps_shard_others(const ps_shard_told_t *self, const ps_shard_common_t *common);
/* Bytes that the others keep, for the core, without unfinished messages:
 * pieces come and go, but a refusal for lack of memory is final. */
void ps_shard_hear(const ps_shard_told_t *self, const ps_shard_common_t *common, ps_event_t *event);
/* Milliseconds after which there may be a change to publish although nothing
 * has arrived. */
uint64_t ps_shard_tell_ms(const ps_shard_told_t *self);
#endif
