/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_pace - when the next rows may go to a new copy
 *
 * What     A rate limiter: requests have priority over rows. While clients use
 *          this shard or the receiving one, rows are limited to
 *          args.busy_copy_bytes_per_s, in bursts; otherwise they are sent at
 *          full speed. args.copy_bytes_per_s always limits both. The limits are
 *          the node's: shards that send at the same time share them. Turns are
 *          first come, first served. A shard that was late may send its unused
 *          allowance of the last moments at once.
 * Units    bytes, ms of the shard's clock
 * Threads  Confined to the shard's thread.
 */
#ifndef PS_PROTOCOL_ROWS_PACE_H
#define PS_PROTOCOL_ROWS_PACE_H

#include "protocol/partition/partition.h"
#include "protocol/replica/transfer.h"

/* True while clients use this shard. */
bool ps_pace_is_busy(const ps_step_t *step);
/* Whether `bytes` may go now; if not, the shard is woken when they may. */
bool ps_pace_has_turn(ps_step_t *step, ps_partition_t *partition, ps_giving_t *giving,
                      uint64_t bytes);
/* Notes that of its turn for `asked` bytes this number was sent. */
void ps_pace_gone(ps_step_t *step, ps_giving_t *giving, uint64_t asked, uint64_t bytes);
/* Notes whether clients use the copy's shard. */
void ps_pace_heard(const ps_step_t *step, ps_giving_t *giving, bool is_busy);
#endif
