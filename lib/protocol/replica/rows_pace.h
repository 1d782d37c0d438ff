/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_pace - when the next rows may go to a new copy
 *
 * What     Rows give way to requests: while clients ask this shard for
 *          something, or the one that takes the rows, they go no faster than
 *          args.busy_copy_bytes_per_s, and in bursts; with nobody there as fast
 *          as they can.
 *          Neither is more than args.copy_bytes_per_s. Both are of the node:
 *          shards that give at the same time share them. Who asks for a turn
 *          first has it first; what a shard that was late has not used of the
 *          last moments it may send at once.
 * Units    bytes, ms of the shard's clock
 * Threads  Confined to the shard's one.
 */
#ifndef PS_PROTOCOL_ROWS_PACE_H
#define PS_PROTOCOL_ROWS_PACE_H

#include "protocol/partition/partition.h"
#include "protocol/replica/transfer.h"

/* Clients ask this shard for something. */
bool ps_pace_is_busy(const ps_step_t *step);
/* Whether `bytes` may go now; if not, the shard is woken when they may. */
bool ps_pace_has_turn(ps_step_t *step, ps_partition_t *partition, ps_giving_t *giving,
                      uint64_t bytes);
/* Of its turn, for `asked` bytes, so many have gone. */
void ps_pace_gone(ps_step_t *step, ps_giving_t *giving, uint64_t asked, uint64_t bytes);
/* The copy says whether clients ask its shard for something. */
void ps_pace_heard(const ps_step_t *step, ps_giving_t *giving, bool is_busy);
#endif
