/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong, when it is time. */
#include "sim_cluster.h"

static bool
is_on(const cluster_t *self, const cluster_fault_t *fault)
{
    return self->now_ms >= fault->at_ms && self->now_ms < fault->end_ms;
}

void
cluster_faults_start(cluster_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        const cluster_fault_t *fault = &self->plan.faults[i];

        if (fault->kind != CLUSTER_ABSENT) {
            (void)cluster_at(self, fault->at_ms, CLUSTER_FAULTS, i);
        }
        (void)cluster_at(self, fault->end_ms, CLUSTER_FAULTS, i);
    }
}

/* A crash that would take the last whole copy of something is left out: nothing
 * is promised then. */
static void
crash(cluster_t *self, cluster_fault_t *fault)
{
    if (fault->who == CLUSTER_REGISTRY) {
        cluster_registry_crash(self);
    } else if (self->nodes[fault->who].alive &&
               cluster_registry_spares(self, fault->who)) {
        cluster_node_crash(self, fault->who);
    } else {
        cluster_trace(self, "node %u is spared", fault->who);
        fault->ended = true;
    }
}

static void
drain(cluster_t *self, cluster_fault_t *fault, bool *done, bool drains)
{
    if (self->registry.machine == NULL) {
        return; /* its start comes here again */
    }
    cluster_registry_drain(self, fault->who, drains);
    *done = true;
}

static void
begin(cluster_t *self, cluster_fault_t *fault)
{
    if (fault->kind == CLUSTER_DRAIN) {
        drain(self, fault, &fault->begun, true);
        return;
    }
    fault->begun = true;
    if (fault->kind == CLUSTER_CRASH) {
        crash(self, fault);
    } else if (fault->kind == CLUSTER_FREEZE) {
        cluster_trace(self, "place %u stands still until %llu", fault->who,
                      (unsigned long long)fault->end_ms);
    }
}

static void
end(cluster_t *self, cluster_fault_t *fault)
{
    if (fault->kind == CLUSTER_DRAIN) {
        drain(self, fault, &fault->ended, false);
        return;
    }
    fault->ended = true;
    if (fault->kind == CLUSTER_CRASH && fault->who == CLUSTER_REGISTRY) {
        cluster_registry_restart(self);
    } else if ((fault->kind == CLUSTER_CRASH ||
                fault->kind == CLUSTER_ABSENT) &&
               !self->nodes[fault->who].alive) {
        cluster_node_start(self, fault->who);
    }
}

void
cluster_faults(cluster_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        cluster_fault_t *fault = &self->plan.faults[i];

        if (!fault->begun && self->now_ms >= fault->at_ms) {
            begin(self, fault);
        }
        if (fault->begun && !fault->ended && self->now_ms >= fault->end_ms) {
            end(self, fault);
        }
    }
}

uint64_t
cluster_frozen(const cluster_t *self, uint32_t place)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        const cluster_fault_t *fault = &self->plan.faults[i];

        if (fault->kind == CLUSTER_FREEZE && fault->who == place &&
            is_on(self, fault)) {
            return fault->end_ms;
        }
    }
    return 0;
}

bool
cluster_is_cut(const cluster_t *self, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        const cluster_fault_t *fault = &self->plan.faults[i];

        if (fault->kind == CLUSTER_CUT && fault->who == from &&
            fault->to == to && is_on(self, fault)) {
            return true;
        }
    }
    return false;
}

uint64_t
cluster_lateness(const cluster_t *self, uint32_t node)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        const cluster_fault_t *fault = &self->plan.faults[i];

        if (fault->kind == CLUSTER_LATE && fault->who == node &&
            is_on(self, fault)) {
            return fault->end_ms - self->now_ms;
        }
    }
    return 0;
}

bool
cluster_is_absent(const cluster_t *self, uint32_t node)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        if (self->plan.faults[i].kind == CLUSTER_ABSENT &&
            self->plan.faults[i].who == node) {
            return true;
        }
    }
    return false;
}
