/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_bundle_turn - is it the turn of what a bundle brings?
 *
 * What     Exactly once stays where it is for direct pushes: in the windows. A
 *          group of contributors (those of a span, or one that only marks) is
 *          taken when the range of each is next in its window, and answered
 *          again when each is finished already. Anything else is split: refused
 *          whole, without consuming a seq, and each contributor sends its own.
 *          No part of a group is ever taken, because a sum cannot be taken
 *          apart.
 * Threads  Confined to the shard's thread; nothing changes here.
 */
#ifndef PS_PROTOCOL_BUNDLE_TURN_H
#define PS_PROTOCOL_BUNDLE_TURN_H

#include "protocol/partition/partition.h"
#include "wire/records/bundle.h"

typedef enum ps_bundle_turn {
    PS_BUNDLE_TAKE = 1,  /* each range is next */
    PS_BUNDLE_AGAIN = 2, /* each is finished: it was taken before */
    PS_BUNDLE_SPLIT = 3  /* some are, or one waits here, or one lacks what comes before it */
} ps_bundle_turn_t;

/* The turn of n contributors. *ret_in: how many of them are finished already.
 * A session that the partition refuses has no turn: SPLIT. */
ps_bundle_turn_t ps_bundle_turn(const ps_partition_t *self, const ps_bundle_from_t *from, size_t n,
                                size_t *ret_in);
/*
 * True when the bits of a sum of these contributors are those that the server
 * would make: each of their workers brings all of its clock. Needed of a span of
 * several positions in a table that combines, since a push of one of them that
 * came beside the sum would have to be added inside of it. That is: every member
 * of each worker is among them and marks, and the open clock has no push of the
 * worker yet.
 *
 * from   n contributors, in order
 * clock  that they have finished before
 */
bool ps_bundle_is_whole(const ps_job_place_t *place, const ps_bundle_from_t *from, size_t n,
                        uint64_t clock);
/*
 * True when the span may stand in the clock's tree as it is: it is one push that could have come
 * directly; or its contributors are whole, none of its positions has anything of the clock here,
 * and no other live worker at them may bring more of it.
 */
bool ps_bundle_fills(const ps_job_place_t *place, const ps_bundle_t *bundle,
                     const ps_bundle_span_t *span, uint64_t clock);
/*
 * Of a job with a max_delay other than 0, whose bundles have no clock: true when the gate is open
 * to all that the bundle brings, counting the marks that it brings itself. A bundle for which it is
 * closed must not wait for its clock, since the slowest worker's push may be in it.
 */
bool ps_bundle_is_open(const ps_job_place_t *place, const ps_bundle_t *bundle);
#endif
