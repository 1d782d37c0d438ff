/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_relay_plan - a plan as one relay reads it
 *
 * What     Which worker sends to which, for each colour; a plan has a version and begins at a
 *          clock. The tree is a relay's checked copy of it: it also knows whose deltas come
 *          through this relay, those below it.
 * Shape    Workers are numbered in the order of their positions, which ascend.
 * Owner    The caller's arrays are copied; ps_relay_tree_done.
 * Threads  Plain values.
 */
#ifndef PS_PROTOCOL_RELAY_PLAN_H
#define PS_PROTOCOL_RELAY_PLAN_H

#include "protocol/overlay/overlay_plan.h"

#define PS_RELAY_NOBODY (UINT32_MAX - 1) /* no worker; PS_OVERLAY_NODES: the nodes */

typedef struct ps_relay_plan {
    uint64_t version;          /* from 1; grows */
    uint64_t clock;            /* the first one that it applies to */
    uint32_t n_workers;        /* 1 .. PS_OVERLAY_WORKERS_MAX */
    uint32_t n_colours;        /* 1 .. PS_OVERLAY_COLOURS_MAX */
    const uint32_t *positions; /* ascending, below PS_COMBINE_POSITIONS */
    const uint32_t *members;   /* clients of each worker, from 1 */
    const uint32_t *parents;   /* [n_colours][n_workers]: a worker's number, or PS_OVERLAY_NODES */
    const uint64_t *rates;     /* [n_colours]: bytes/s from this relay to its parent; 0: unknown */
} ps_relay_plan_t;

/* Zeroed: there is none. */
typedef struct ps_relay_tree {
    uint64_t version;
    uint64_t clock;
    uint32_t n_workers;
    uint32_t n_colours;
    uint32_t *numbers; /* owned: positions, members, then parents' positions of each colour */
    uint64_t *rates;   /* owned, [n_colours] */
    bool *below;       /* owned, [n_colours][n_workers]: passes this relay, or is it */
} ps_relay_tree_t;

/* worker: this relay's position; PS_RELAY_NOBODY: it has no worker, and nobody is below.
 * Errors: PSD_INVALID sizes, positions that do not ascend, a parent that is not there, workers
 * that name each other in a circle; PSD_NOMEM. *ret_tree is not touched then. */
PSD_MUST_CHECK psd_status_t ps_relay_tree_make(const ps_relay_plan_t *plan, uint32_t worker,
                                               ps_relay_tree_t *ret_tree, psd_error_t *err);
void ps_relay_tree_done(ps_relay_tree_t *self);

/* The number of the worker at that position; UINT32_MAX: none. */
uint32_t ps_relay_tree_find(const ps_relay_tree_t *self, uint32_t position);
static inline uint32_t ps_relay_tree_position(const ps_relay_tree_t *self, uint32_t i)
{
    return self->numbers[i];
}
static inline uint32_t ps_relay_tree_members(const ps_relay_tree_t *self, uint32_t i)
{
    return self->numbers[self->n_workers + i];
}
static inline bool ps_relay_tree_is_below(const ps_relay_tree_t *self, uint32_t colour, uint32_t i)
{
    return self->below[(size_t)colour * self->n_workers + i];
}
/* The position that the worker at `position` sends to; PS_OVERLAY_NODES also of one that is not
 * there. */
uint32_t ps_relay_tree_parent(const ps_relay_tree_t *self, uint32_t colour, uint32_t position);
/* True when every worker at positions first … first + n - 1 is in has[], by number. */
bool ps_relay_tree_covers(const ps_relay_tree_t *self, uint32_t first, uint32_t n, const bool *has);
#endif
