/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_turns - who sends to whom in a clock in which workers take turns
 *
 * What     The policies `pairs` and `queue`, played for one clock: each worker asks for a receiver
 *          when its delta is ready, and again when all that is sent to it has come. Askers are
 *          gathered until `num` of them wait, or nobody else can come; then each is given a
 *          receiver, or waits on. What is played becomes a plan for the clocks to come.
 * Order    Sums are added by halves of the workers' positions. So the holder of one half of an
 *          interval sends to that of the other: over the way by which it comes sooner, which is
 *          the faster one when both wait. One that waits sends to one that still works, or waits
 *          for it, where the way back is so much faster. A holder to which no other worker has a
 *          way, and which has none, gets it only if nothing else is possible. Where two halves
 *          have no way to each other, the interval above decides: the holder of its other half
 *          gets all of it, if all that have parts have a way to that one. Where nobody gets all,
 *          all that is left goes to the nodes.
 * Queue    num 1: who comes first is served first.
 * Greed    Where there are two ways, and the sooner one is measured, the other one is taken with
 *          probability 1 - greed: so it gets known.
 * Cost     O(n^2).
 * Threads  Pure, but for the generator.
 * Source   LeMethod (pairs), TSEngine (queue); docs/adr/0034-pairs-and-queue.md says what differs.
 */
#ifndef PS_PROTOCOL_OVERLAY_TURNS_H
#define PS_PROTOCOL_OVERLAY_TURNS_H

#include "base/rng.h"
#include "protocol/overlay/overlay_plan.h"

typedef struct ps_overlay_turns {
    uint32_t n_workers;        /* 1 .. PS_OVERLAY_WORKERS_MAX */
    const uint32_t *positions; /* ascending, without repeats */
    const double *rates;       /* [from][to], bytes per second; 0: there is no way */
    const bool *known;         /* [from][to]: measured */
    const double *late_s;      /* when each one's delta is ready */
    double bytes;              /* of a delta */
    uint32_t num;              /* askers that are served together, from 1 */
    double greed;              /* 0 .. 1: how often the best way is taken */
    ps_rng_t *rng;
    uint64_t *n_looks; /* is counted up for each look at a rate; NULL: nobody counts */
} ps_overlay_turns_t;

/* ret_parents: [n_workers]: a worker's number, or PS_OVERLAY_NODES. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_overlay_turns_play(const ps_overlay_turns_t *turns,
                                                  uint32_t *ret_parents, psd_error_t *err);
#endif
