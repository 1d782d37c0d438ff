/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a plan, and finds out whose deltas pass. */
#include "protocol/relay/relay_plan.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "model/combine/combine.h"

void ps_relay_tree_done(ps_relay_tree_t *self)
{
    ps_free(self->numbers);
    ps_free(self->rates);
    ps_free(self->below);
    *self = (ps_relay_tree_t){.version = 0};
}

static psd_status_t check_sizes(const ps_relay_plan_t *plan, psd_error_t *err)
{
    if (plan->version == 0) {
        return psd_error_set(err, PSD_INVALID, "plan 0; allowed: 1 and more");
    }
    if (plan->n_workers == 0 || plan->n_workers > PS_OVERLAY_WORKERS_MAX) {
        return psd_error_set(err, PSD_INVALID, "plan %" PRIu64 " has %u workers; allowed: 1..%u",
                             plan->version, plan->n_workers, PS_OVERLAY_WORKERS_MAX);
    }
    if (plan->n_colours == 0 || plan->n_colours > PS_OVERLAY_COLOURS_MAX) {
        return psd_error_set(err, PSD_INVALID, "plan %" PRIu64 " has %u colours; allowed: 1..%u",
                             plan->version, plan->n_colours, PS_OVERLAY_COLOURS_MAX);
    }
    return PSD_OK;
}

static psd_status_t check_workers(const ps_relay_plan_t *plan, psd_error_t *err)
{
    for (uint32_t i = 0; i < plan->n_workers; i++) {
        uint32_t position = plan->positions[i];

        if (position >= PS_COMBINE_POSITIONS || (i > 0 && position <= plan->positions[i - 1])) {
            return psd_error_set(err, PSD_INVALID,
                                 "plan %" PRIu64 ": position %u of worker %u; allowed: ascending, "
                                 "below %u",
                                 plan->version, position, i, PS_COMBINE_POSITIONS);
        }
        if (plan->members[i] == 0) {
            return psd_error_set(err, PSD_INVALID,
                                 "plan %" PRIu64 ": the worker at position %u has no member",
                                 plan->version, position);
        }
    }
    return PSD_OK;
}

/* The parents of one colour: each leads to the nodes. */
static psd_status_t check_parents(const ps_relay_plan_t *plan, const uint32_t *parents,
                                  psd_error_t *err)
{
    for (uint32_t i = 0; i < plan->n_workers; i++) {
        uint32_t at = i;
        uint32_t steps = 0;

        while (parents[at] != PS_OVERLAY_NODES && steps < plan->n_workers) {
            if (parents[at] >= plan->n_workers) {
                return psd_error_set(err, PSD_INVALID,
                                     "plan %" PRIu64 ": worker %u sends to worker %u of %u",
                                     plan->version, at, parents[at], plan->n_workers);
            }
            at = parents[at];
            steps++;
        }
        if (parents[at] != PS_OVERLAY_NODES) {
            return psd_error_set(err, PSD_INVALID,
                                 "plan %" PRIu64 ": what worker %u sends goes round in a circle",
                                 plan->version, i);
        }
    }
    return PSD_OK;
}

static psd_status_t check_plan(const ps_relay_plan_t *plan, psd_error_t *err)
{
    psd_status_t rc = check_sizes(plan, err);

    if (rc == PSD_OK) {
        rc = check_workers(plan, err);
    }
    for (uint32_t c = 0; rc == PSD_OK && c < plan->n_colours; c++) {
        rc = check_parents(plan, plan->parents + (size_t)c * plan->n_workers, err);
    }
    return rc;
}

/* Does what worker i sends pass the relay at number `me`? */
static bool passes(const uint32_t *parents, uint32_t i, uint32_t me)
{
    while (i != me && i != PS_OVERLAY_NODES) {
        i = parents[i];
    }
    return i == me;
}

static void fill(const ps_relay_plan_t *plan, uint32_t worker, ps_relay_tree_t *tree)
{
    uint32_t n = plan->n_workers;
    uint32_t me = PS_RELAY_NOBODY;

    for (uint32_t i = 0; i < n; i++) {
        tree->numbers[i] = plan->positions[i];
        tree->numbers[n + i] = plan->members[i];
        me = plan->positions[i] == worker ? i : me;
    }
    for (uint32_t c = 0; c < plan->n_colours; c++) {
        const uint32_t *parents = plan->parents + (size_t)c * n;

        tree->rates[c] = plan->rates != NULL ? plan->rates[c] : 0;
        for (uint32_t i = 0; i < n; i++) {
            tree->numbers[(2 + (size_t)c) * n + i] =
                parents[i] == PS_OVERLAY_NODES ? PS_OVERLAY_NODES : plan->positions[parents[i]];
            tree->below[(size_t)c * n + i] = me != PS_RELAY_NOBODY && passes(parents, i, me);
        }
    }
}

psd_status_t ps_relay_tree_make(const ps_relay_plan_t *plan, uint32_t worker,
                                ps_relay_tree_t *ret_tree, psd_error_t *err)
{
    PSD_AUTO(ps_relay_tree_done) ps_relay_tree_t tree = {.version = plan->version};
    psd_status_t rc = check_plan(plan, err);

    if (rc != PSD_OK) {
        return rc;
    }
    tree.clock = plan->clock;
    tree.n_workers = plan->n_workers;
    tree.n_colours = plan->n_colours;
    tree.numbers = ps_alloc((2 + (size_t)plan->n_colours) * plan->n_workers, sizeof(uint32_t));
    tree.rates = ps_alloc(plan->n_colours, sizeof(uint64_t));
    tree.below = ps_alloc((size_t)plan->n_colours * plan->n_workers, sizeof(bool));
    if (tree.numbers == NULL || tree.rates == NULL || tree.below == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    fill(plan, worker, &tree);
    *ret_tree = tree;
    tree = (ps_relay_tree_t){.version = 0};
    return PSD_OK;
}

/* The first worker at that position or beyond it. */
static uint32_t lower_bound(const ps_relay_tree_t *self, uint32_t position)
{
    uint32_t low = 0;
    uint32_t high = self->n_workers;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (self->numbers[middle] < position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t ps_relay_tree_find(const ps_relay_tree_t *self, uint32_t position)
{
    uint32_t i = lower_bound(self, position);

    return i < self->n_workers && self->numbers[i] == position ? i : UINT32_MAX;
}

uint32_t ps_relay_tree_parent(const ps_relay_tree_t *self, uint32_t colour, uint32_t position)
{
    uint32_t i = ps_relay_tree_find(self, position);

    return i == UINT32_MAX ? PS_OVERLAY_NODES
                           : self->numbers[(2 + (size_t)colour) * self->n_workers + i];
}

bool ps_relay_tree_covers(const ps_relay_tree_t *self, uint32_t first, uint32_t n, const bool *has)
{
    for (uint32_t i = lower_bound(self, first); i < self->n_workers && self->numbers[i] - first < n;
         i++) {
        if (!has[i]) {
            return false;
        }
    }
    return true;
}
