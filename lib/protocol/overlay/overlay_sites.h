/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_sites - plans by which one worker of each site sends out of it
 *
 * What     Workers of a site add up among themselves, and one of them, the gateway, sends the
 *          sum to the nodes; with `between` the gateways add up, too, and one of them sends to
 *          the nodes. Each colour has gateways of its own. All workers that name no site are
 *          one site.
 * Spans    The sum of a site is one span where its ranks fill an aligned block (0 to 3, 4 to 7);
 *          elsewhere as many as its ranks fill of them, side by side in one bundle.
 * Shape    Workers are numbered in the order of their positions.
 * Threads  Pure functions.
 */
#ifndef PS_PROTOCOL_OVERLAY_SITES_H
#define PS_PROTOCOL_OVERLAY_SITES_H

#include "protocol/overlay/overlay_plan.h"

typedef struct ps_overlay_sites {
    uint32_t n_workers;        /* 1 .. PS_OVERLAY_WORKERS_MAX */
    const uint32_t *positions; /* ascending, without repeats, below 4096 */
    const uint32_t *sites;     /* of each worker: any number of its site */
    bool between;              /* sums of sites are added, too */
    bool apart;                /* workers of a site do not add up: each one sends to the nodes */
} ps_overlay_sites_t;

/* The plan where nobody has measured anything: a fixed tree within each site, and one of the
 * gateways. ret_parents: [n_workers]. */
void ps_overlay_sites_tree(const ps_overlay_sites_t *self, uint32_t colour, uint32_t *ret_parents);
/* May a worker send to another one? */
bool ps_overlay_sites_may(const ps_overlay_sites_t *self, uint32_t from, uint32_t to);
/* Makes one worker of each site its gateway, in a plan in which several send out of it: the others
 * send to that one then, where they may. may: [from][to]. */
void ps_overlay_sites_join(const ps_overlay_sites_t *self, const bool *may, uint32_t *parents);
#endif
