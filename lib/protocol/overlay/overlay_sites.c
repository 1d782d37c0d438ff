/* SPDX-License-Identifier: Apache-2.0 */
/* Trees within sites, and between their gateways. */
#include "protocol/overlay/overlay_sites.h"

#include "protocol/overlay/overlay_fixed.h"

/* Some of the workers, for a tree of their own. */
typedef struct group {
    uint32_t n;
    uint32_t workers[PS_OVERLAY_WORKERS_MAX];
    uint32_t positions[PS_OVERLAY_WORKERS_MAX];
} group_t;

static void add(const ps_overlay_sites_t *self, uint32_t worker, group_t *group)
{
    group->workers[group->n] = worker;
    group->positions[group->n++] = self->positions[worker];
}

static void plan_group(const group_t *group, uint32_t colour, uint32_t *parents)
{
    uint32_t own[PS_OVERLAY_WORKERS_MAX];

    ps_overlay_fixed(group->positions, group->n, colour, own);
    for (uint32_t i = 0; i < group->n; i++) {
        parents[group->workers[i]] =
            own[i] == PS_OVERLAY_NODES ? PS_OVERLAY_NODES : group->workers[own[i]];
    }
}

/* Is it the first one of its site? */
static bool is_first(const ps_overlay_sites_t *self, uint32_t worker)
{
    for (uint32_t i = 0; i < worker; i++) {
        if (self->sites[i] == self->sites[worker]) {
            return false;
        }
    }
    return true;
}

static void plan_site(const ps_overlay_sites_t *self, uint32_t first, uint32_t colour,
                      uint32_t *parents)
{
    group_t group = {.n = 0};

    for (uint32_t i = first; i < self->n_workers; i++) {
        if (self->sites[i] == self->sites[first]) {
            add(self, i, &group);
        }
    }
    plan_group(&group, colour, parents);
}

void ps_overlay_sites_tree(const ps_overlay_sites_t *self, uint32_t colour, uint32_t *ret_parents)
{
    group_t gateways = {.n = 0};

    for (uint32_t i = 0; i < self->n_workers; i++) {
        if (self->apart) {
            ret_parents[i] = PS_OVERLAY_NODES;
        } else if (is_first(self, i)) {
            plan_site(self, i, colour, ret_parents);
        }
    }
    for (uint32_t i = 0; self->between && i < self->n_workers; i++) {
        if (ret_parents[i] == PS_OVERLAY_NODES) {
            add(self, i, &gateways);
        }
    }
    if (gateways.n > 0) {
        plan_group(&gateways, colour, ret_parents);
    }
}

bool ps_overlay_sites_may(const ps_overlay_sites_t *self, uint32_t from, uint32_t to)
{
    return self->sites[from] == self->sites[to] ? !self->apart : self->between;
}

static bool leaves(const ps_overlay_sites_t *self, const uint32_t *parents, uint32_t worker)
{
    return parents[worker] == PS_OVERLAY_NODES ||
           self->sites[parents[worker]] != self->sites[worker];
}

/* The last one of its site on its way to the nodes: nobody of the site is beyond. */
static uint32_t gateway_of(const ps_overlay_sites_t *self, const uint32_t *parents, uint32_t worker)
{
    uint32_t gateway = worker;

    for (uint32_t at = worker; at != PS_OVERLAY_NODES; at = parents[at]) {
        gateway = self->sites[at] == self->sites[worker] ? at : gateway;
    }
    return gateway;
}

void ps_overlay_sites_join(const ps_overlay_sites_t *self, const bool *may, uint32_t *parents)
{
    for (uint32_t first = 0; first < self->n_workers && !self->apart; first++) {
        uint32_t gateway = PS_OVERLAY_NODES;

        if (!is_first(self, first)) {
            continue;
        }
        gateway = gateway_of(self, parents, first);
        for (uint32_t i = first; i < self->n_workers; i++) {
            if (self->sites[i] == self->sites[first] && i != gateway && leaves(self, parents, i) &&
                may[(size_t)i * self->n_workers + gateway]) {
                parents[i] = gateway;
            }
        }
    }
}
