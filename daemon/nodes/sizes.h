/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_sizes - what the partitions take whose primaries are on this node, told to
 *            the registry with the beats
 *
 * What     The shards are asked now and then; what differs from what was told
 *          goes with the next beat, PS_SIZES_MAX of them at most, the others
 *          with those behind it. A difference that matters to nobody waits.
 * Shape    in a beat: "sizes":[table,partition,bytes,…]
 * Owner    The caller; embedded, zeroed at first. Threads: confined to one.
 */
#ifndef PS_DAEMON_SIZES_H
#define PS_DAEMON_SIZES_H

#include "base/map.h"
#include "daemon/shards/shards.h"
#include "protocol/registry/registry.h"
#include "wire/messages/doc.h"

#define PS_SIZES_MAX 128 /* in one beat */
#define PS_SIZES_EVERY_MS 1000
#define PS_SIZES_SETTLE_MS 10000 /* a small difference is told so late */

typedef struct ps_sizes {
    ps_map_t by_partition; /* owned; with what it points at */
    uint64_t looked;       /* how often the shards have answered */
    size_t next;           /* where the next beat goes on */
} ps_sizes_t;

void ps_sizes_done(ps_sizes_t *self);
/* What the shards have answered to SIZES; partitions that are not in it are
 * forgotten. What there is no memory for is told later. */
void ps_sizes_learn(ps_sizes_t *self, const ps_answers_t *answers);
/* Nothing was told: the registry is another one, or has begun again. */
void ps_sizes_forget(ps_sizes_t *self);
/* Adds "sizes" to a beat, when there is something to say, which counts as told.
 * false: no memory. */
PSD_MUST_CHECK bool ps_sizes_tell(ps_sizes_t *self, uint64_t now_ms, ps_doc_t *doc);

/* ---- the registry's side ---- */

/* Reads "sizes" of a beat of that node. Errors: PSD_PROTO, PSD_INVALID; some of
 * them may have been taken. */
PSD_MUST_CHECK psd_status_t ps_sizes_from_doc(const ps_doc_t *doc, uint64_t incarnation,
                                              ps_registry_t *registry, psd_error_t *err);
/* What the shards of the registry's own node have answered. */
void ps_sizes_learn_here(ps_registry_t *registry, uint64_t incarnation,
                         const ps_answers_t *answers);
#endif
