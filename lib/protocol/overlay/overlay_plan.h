/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/overlay: which worker sends what to whom
 *
 * It is       The measured network of a job, the plan that follows from it, and the
 *             settings that limit both.
 * It uses     lib/base.
 * It ignores  Connections, messages, rows, and who carries a plan out.
 * Start at    ps_overlay_plan_make.
 */
/*
 * ps_overlay_plan - a tree over the workers of a job for each colour, by which deltas are added
 *           on their way to the nodes
 *
 * What     The deltas of a clock are added in one fixed binary tree over the workers'
 *          positions. For each of its intervals one of the two workers that hold a half
 *          sends that half to the other. Who sends to whom is free; a plan says it. So a
 *          plan is a tournament: each worker sends once for each colour, and receives
 *          at most once for each level.
 * Colours  Partitions are cut into colours, each with a tournament of its own, so that
 *          load spreads over workers, and the links of all nodes are used.
 * Cost     As network.h counts it, of a tree as of its absence, the star.
 * Split    Where the network allows no way between two halves, both go to the nodes
 *          directly, and so do all halves beside the intervals above: nobody can add
 *          what it does not have.
 * Down     The same tree the other way round serves rows on their way out: transpose
 *          the network and read each edge backwards.
 * Threads  Pure functions.
 * Source   Method: exact for one colour, by dynamic programming over intervals and
 *          their holders, O(n^2); colours in turn until nothing improves.
 */
#ifndef PS_PROTOCOL_OVERLAY_PLAN_H
#define PS_PROTOCOL_OVERLAY_PLAN_H

#include "protocol/overlay/network.h"
#include "psd/status.h"

#define PS_OVERLAY_WORKERS_MAX 512u
#define PS_OVERLAY_COLOURS_MAX 16u

typedef struct ps_overlay_plan {
    uint32_t n_workers;
    uint32_t n_colours;
    uint32_t *parents; /* owned, [n_colours][n_workers]: a worker, or PS_OVERLAY_NODES */
    double seconds;    /* predicted, for the deltas of one clock */
    double star_s;     /* … when each worker sends to the nodes itself; INFINITY: some
                          worker has no way to a node */
} ps_overlay_plan_t;

/* The best plan that is found. Errors: PSD_INVALID sizes, positions that do not ascend;
 * PSD_NOMEM. Then *ret_plan is not touched. */
PSD_MUST_CHECK psd_status_t ps_overlay_plan_make(const ps_network_t *network, const ps_load_t *load,
                                                 ps_overlay_plan_t *ret_plan, psd_error_t *err);
/* Each worker sends to the nodes itself. */
PSD_MUST_CHECK psd_status_t ps_overlay_plan_star(const ps_network_t *network, const ps_load_t *load,
                                                 ps_overlay_plan_t *ret_plan, psd_error_t *err);
void ps_overlay_plan_done(ps_overlay_plan_t *plan);

/* Seconds that these parents would take; INFINITY where there is no way. */
double ps_overlay_plan_seconds(const ps_network_t *network, const ps_load_t *load,
                               const uint32_t *parents);
#endif
