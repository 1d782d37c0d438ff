/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the shards of a node; each shard knows its own part. */
#include "server/shards/shard_tell.h"

#define TELL_AGAIN_MS 1000 /* after rows were given */

void ps_shard_tell(ps_shard_told_t *self, ps_shard_common_t *common, const ps_shard_t *core,
                   uint64_t now_ms)
{
    uint64_t bytes = ps_shard_bytes(core);
    uint64_t tail_bytes = ps_shard_tail_bytes(core);
    uint32_t giving = ps_shard_gives_rows(core, now_ms) ? 1 : 0;

    if (bytes != self->bytes) {
        (void)atomic_fetch_add_explicit(&common->bytes, bytes - self->bytes, memory_order_relaxed);
        self->bytes = bytes;
    }
    if (self->unfinished != self->pieces) {
        (void)atomic_fetch_add_explicit(&common->pieces, self->unfinished - self->pieces,
                                        memory_order_relaxed);
        self->pieces = self->unfinished;
    }
    if (tail_bytes != self->tail_bytes) {
        (void)atomic_fetch_add_explicit(&common->tail_bytes, tail_bytes - self->tail_bytes,
                                        memory_order_relaxed);
        self->tail_bytes = tail_bytes;
    }
    if (giving != self->giving) {
        (void)atomic_fetch_add_explicit(&common->n_giving, giving - self->giving,
                                        memory_order_relaxed);
        self->giving = giving;
    }
}

uint64_t ps_shard_others(const ps_shard_told_t *self, const ps_shard_common_t *common)
{
    return atomic_load_explicit(&common->bytes, memory_order_relaxed) - self->bytes +
           atomic_load_explicit(&common->pieces, memory_order_relaxed) - self->pieces;
}

void ps_shard_hear(const ps_shard_told_t *self, const ps_shard_common_t *common, ps_event_t *event)
{
    event->other_bytes = atomic_load_explicit(&common->bytes, memory_order_relaxed) - self->bytes;
    event->other_giving =
        atomic_load_explicit(&common->n_giving, memory_order_relaxed) - self->giving;
    event->limits = (ps_shard_limits_t){
        .slow_after_ms = atomic_load_explicit(&common->slow_after_ms, memory_order_acquire),
        .copy_bytes_per_s = atomic_load_explicit(&common->copy_bytes_per_s, memory_order_relaxed),
        .busy_copy_bytes_per_s =
            atomic_load_explicit(&common->busy_copy_bytes_per_s, memory_order_relaxed)};
}

uint64_t ps_shard_tell_ms(const ps_shard_told_t *self)
{
    return self->giving == 0 ? UINT64_MAX : TELL_AGAIN_MS;
}
