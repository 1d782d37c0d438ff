/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends faults at their times. */
#include "sim_cluster_lead.h"

#define START_MS 400    /* between the first node that restarts and the others */
#define ROOM_BYTES 3000 /* left on a disk that will be full */

static bool is_on(const cluster_t *self, const cluster_fault_t *fault)
{
    return self->now_ms >= fault->at_ms && self->now_ms < fault->end_ms;
}

void cluster_faults_start(cluster_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        const cluster_fault_t *fault = &self->plan.faults[i];

        if (fault->kind != CLUSTER_ABSENT) {
            (void)cluster_at(self, fault->at_ms, CLUSTER_FAULTS, i);
        }
        (void)cluster_at(self, fault->end_ms, CLUSTER_FAULTS, i);
    }
}

/* Whether every partition has another whole copy. If not, and there are
 * disks, less is promised from here on. */
static bool is_spared(cluster_t *self, uint32_t node)
{
    bool spares = true;

    for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
        if (!cluster_registry_spares(self, node, i)) {
            spares = false;
            if (self->plan.disk) {
                cluster_check_void(self, i);
            }
        }
    }
    return spares;
}

/* What the crash destroys on the disk, if allowed. */
static cluster_loss_t settle_loss(cluster_t *self, uint32_t node, cluster_loss_t loss)
{
    if (loss == CLUSTER_DISK && !cluster_registry_spares_disk(self, node)) {
        loss = CLUSTER_FLUSHED;
    }
    self->nodes[node].loses_disk = loss == CLUSTER_DISK;
    return loss;
}

/* Skips a crash that would destroy the last whole copy in memory: nothing
 * would be promised then. */
static void crash(cluster_t *self, cluster_fault_t *fault)
{
    if (fault->who == CLUSTER_REGISTRY) {
        cluster_registry_crash(self, fault->to);
    } else if (self->nodes[fault->who].alive && (is_spared(self, fault->who) || self->plan.disk)) {
        cluster_node_crash(self, fault->who, settle_loss(self, fault->who, fault->loss));
    } else {
        cluster_trace(self, "node %u is spared", fault->who);
        fault->ended = true;
    }
}

/* Each node loses the allowed part of its disk, and restarts at its own time. */
static void crash_all(cluster_t *self, const cluster_fault_t *fault)
{
    cluster_loss_t losses[CLUSTER_NODES_MAX];

    for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
        cluster_check_void(self, i);
    }
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        losses[i] = (cluster_loss_t)cluster_below(self, fault->loss + 1);
        if (self->nodes[i].alive) {
            losses[i] = settle_loss(self, i, losses[i]);
        }
    }
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        if (self->nodes[i].alive) {
            cluster_node_crash(self, i, losses[i]);
            self->nodes[i].starts = true;
            (void)cluster_at(self, fault->end_ms + cluster_below(self, START_MS),
                             CLUSTER_NODE_START, i);
        }
    }
    if (!cluster_is_replicated(self) && self->registry->machine != NULL &&
        cluster_below(self, 2) == 0) {
        cluster_registry_crash(self, 0);
    }
}

/* The registry gives up a node that is silent for long: if the others were
 * lost before, one that restarts serves with its own rows. */
static void silence(cluster_t *self, const cluster_fault_t *fault)
{
    bool is_given_up =
        self->nodes[fault->who].alive && fault->end_ms - fault->at_ms > CLUSTER_REPAIR_MS;

    for (uint32_t i = 0; is_given_up && self->plan.disk && i < self->plan.n_partitions; i++) {
        if (cluster_registry_is_last(self, fault->who, i)) {
            cluster_check_void(self, i);
        }
    }
}

/* ---- disks ---- */

static void trouble(cluster_t *self, const cluster_fault_t *fault)
{
    sim_disk_t *disk = self->nodes[fault->who].disk;

    if (disk == NULL || fault->kind == CLUSTER_STILL) {
        return;
    }
    cluster_trace(self, "the disk of node %u %s", fault->who,
                  fault->kind == CLUSTER_FULL ? "is full soon" : "fails soon");
    if (fault->kind == CLUSTER_FULL) {
        sim_disk_set_capacity(disk, sim_disk_bytes(disk) + cluster_below(self, ROOM_BYTES));
    } else {
        sim_disk_plan(disk, sim_disk_ops(disk) + cluster_below(self, 20),
                      1 + cluster_below(self, 6), SIM_DISK_FAIL);
    }
}

static void end_trouble(cluster_t *self, const cluster_fault_t *fault)
{
    sim_disk_t *disk = self->nodes[fault->who].disk;

    if (disk != NULL && fault->kind == CLUSTER_FULL) {
        sim_disk_set_capacity(disk, UINT64_MAX);
    } else if (disk != NULL && fault->kind == CLUSTER_FAILS) {
        sim_disk_plan(disk, 0, 0, SIM_DISK_SOUND);
    }
}

uint64_t cluster_disk_still(const cluster_t *self, uint32_t node)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        const cluster_fault_t *fault = &self->plan.faults[i];

        if (fault->kind == CLUSTER_STILL && fault->who == node && is_on(self, fault)) {
            return fault->end_ms;
        }
    }
    return 0;
}

/* ---- start and end ---- */

static void drain(cluster_t *self, cluster_fault_t *fault, bool *done, bool drains)
{
    if (self->registry->machine == NULL || self->registry->waits) {
        return; /* its start comes here again, and the end of its wait */
    }
    *done = true; /* what happens meanwhile comes here, too */
    *done = cluster_registry_drain(self, fault->who, drains);
    cluster_registry_newest(self);
}

/* What happens to a registry that is replicated happens to the node of a member,
 * most often of the one that leads; some crashes are of the member alone. */
static void aim(cluster_t *self, cluster_fault_t *fault)
{
    bool is_cut = fault->kind == CLUSTER_CUT;

    if (!cluster_is_replicated(self) ||
        (fault->who != CLUSTER_REGISTRY && (!is_cut || fault->to != CLUSTER_REGISTRY))) {
        return;
    }
    if (is_cut && fault->to == CLUSTER_REGISTRY) {
        fault->to = cluster_registry_place(self);
    } else if (!is_cut) {
        fault->to = cluster_registry_place(self);
    }
    if (fault->who == CLUSTER_REGISTRY &&
        (fault->kind != CLUSTER_CRASH || cluster_below(self, 2) == 0)) {
        fault->who = is_cut ? cluster_registry_place(self) : fault->to;
    }
}

static void begin(cluster_t *self, cluster_fault_t *fault)
{
    if (fault->kind == CLUSTER_DRAIN) {
        drain(self, fault, &fault->begun, true);
        return;
    }
    fault->begun = true;
    aim(self, fault);
    if (fault->kind == CLUSTER_CRASH) {
        crash(self, fault);
    } else if (fault->kind == CLUSTER_ALL) {
        crash_all(self, fault);
    } else if (fault->kind >= CLUSTER_FULL) {
        trouble(self, fault);
    } else if (fault->kind == CLUSTER_FREEZE) {
        cluster_trace(self, "place %u stands still until %llu", fault->who,
                      (unsigned long long)fault->end_ms);
    }
    if (fault->who < self->plan.n_nodes &&
        (fault->kind == CLUSTER_FREEZE ||
         (fault->kind == CLUSTER_CUT && fault->to == CLUSTER_REGISTRY))) {
        silence(self, fault);
    }
}

static void end(cluster_t *self, cluster_fault_t *fault)
{
    if (fault->kind == CLUSTER_DRAIN) {
        drain(self, fault, &fault->ended, false);
        return;
    }
    fault->ended = true;
    if (fault->kind == CLUSTER_ALL || fault->who == CLUSTER_REGISTRY) {
        if (fault->kind == CLUSTER_ALL || fault->kind == CLUSTER_CRASH) {
            cluster_registry_restart(self, fault->to);
        }
    } else if (fault->kind >= CLUSTER_FULL) {
        end_trouble(self, fault);
    } else if ((fault->kind == CLUSTER_CRASH || fault->kind == CLUSTER_ABSENT) &&
               !self->nodes[fault->who].alive) {
        cluster_node_start(self, fault->who);
    }
}

void cluster_faults(cluster_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_faults && !self->begins; i++) {
        cluster_fault_t *fault = &self->plan.faults[i];

        if (!fault->begun && self->now_ms >= fault->at_ms) {
            begin(self, fault);
        }
        if (fault->begun && !fault->ended && self->now_ms >= fault->end_ms) {
            end(self, fault);
        }
    }
}

uint64_t cluster_frozen(const cluster_t *self, uint32_t place)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        const cluster_fault_t *fault = &self->plan.faults[i];

        if (fault->kind == CLUSTER_FREEZE && fault->who == place && is_on(self, fault)) {
            return fault->end_ms;
        }
    }
    return 0;
}

bool cluster_is_cut(const cluster_t *self, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        const cluster_fault_t *fault = &self->plan.faults[i];

        if (fault->kind == CLUSTER_CUT && fault->who == from && fault->to == to &&
            is_on(self, fault)) {
            return true;
        }
    }
    return false;
}

uint64_t cluster_lateness(const cluster_t *self, uint32_t node)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        const cluster_fault_t *fault = &self->plan.faults[i];

        if (fault->kind == CLUSTER_LATE && fault->who == node && is_on(self, fault)) {
            return fault->end_ms - self->now_ms;
        }
    }
    return 0;
}

bool cluster_is_absent(const cluster_t *self, uint32_t node)
{
    for (uint32_t i = 0; i < self->plan.n_faults; i++) {
        if (self->plan.faults[i].kind == CLUSTER_ABSENT && self->plan.faults[i].who == node) {
            return true;
        }
    }
    return false;
}
