/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_fixed - the plan of a job whose network nobody has measured
 *
 * What     The balanced tree over the workers' positions: at each interval of the tree by which a
 *          clock's deltas are added, the holder of one half sends to that of the other. Each
 *          colour has winners of its own, so the last sums are made at different workers.
 * Shape    At most 12 workers send to any one, and as many steps lead from any to the nodes.
 * Threads  Pure.
 */
#ifndef PS_PROTOCOL_OVERLAY_FIXED_H
#define PS_PROTOCOL_OVERLAY_FIXED_H

#include "protocol/overlay/overlay_plan.h"

/*
 * positions    ascending, without repeats, below 4096
 * n_workers    1 .. PS_OVERLAY_WORKERS_MAX
 * colour       any
 * ret_parents  [n_workers]: a worker's number, or PS_OVERLAY_NODES for the one that sends to the
 *              nodes
 */
void ps_overlay_fixed(const uint32_t *positions, uint32_t n_workers, uint32_t colour,
                      uint32_t *ret_parents);
#endif
