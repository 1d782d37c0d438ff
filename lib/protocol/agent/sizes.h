/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_sizes - sizes of this node's primary partitions, sent with the beats
 *
 * What     The next beat carries up to PS_SIZES_MAX sizes that differ from the
 *          last ones sent, later beats the others. Small differences wait.
 * Owner    The caller; embedded, zeroed at first. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_SIZES_H
#define PS_PROTOCOL_SIZES_H

#include "base/map.h"
#include "protocol/agent/node_message.h"

#define PS_SIZES_EVERY_MS 1000
#define PS_SIZES_SETTLE_MS 10000 /* delay of a small difference */

typedef struct ps_sizes {
    ps_map_t by_partition; /* owned; with what it points at */
    uint64_t looked;       /* how often the shards have answered */
    size_t next;           /* where the next beat goes on */
} ps_sizes_t;

void ps_sizes_done(ps_sizes_t *self);
/* Takes the shards' answers to SIZES and forgets partitions that are not in
 * them. What finds no memory goes later. */
void ps_sizes_learn(ps_sizes_t *self, const ps_answers_t *answers);
/* Forgets what was sent: the registry is another one, or has restarted. */
void ps_sizes_forget(ps_sizes_t *self);
/* Fills in what is due, and counts it as sent; returns how many. */
size_t ps_sizes_take_due(ps_sizes_t *self, uint64_t now_ms, ps_size_info_t ret_due[PS_SIZES_MAX]);
#endif
