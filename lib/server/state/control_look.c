/* SPDX-License-Identifier: Apache-2.0 */
/* One look at all that the registry's leader knows, for /metrics. */
#include <stdio.h>

#include "server/quorum/replica.h"
#include "server/state/control_inner.h"

void ps_control_count_checkpoint(ps_control_t *self, bool is_done)
{
    if (self->checkpoint.kind == PS_CHECKPOINT_VERIFY || self->checkpoint.number == 0) {
        return;
    }
    ps_count_add(&self->counts->checkpoints[is_done ? 0 : 1], 1);
    if (is_done && self->checkpoint.kind == PS_CHECKPOINT_CREATE) {
        ps_count_set(self->counts->checkpoint_unix_ms, ps_unix_ms());
    }
}

/* ---- the lists ---- */

static void set_name(ps_looked_name_t *to, uint32_t id, const char *name)
{
    to->id = id;
    (void)snprintf(to->name, sizeof to->name, "%s", name);
}

static bool is_live(const ps_job_t *job)
{
    for (size_t i = 0; i < job->n_workers; i++) {
        if (ps_worker_is_live(&job->workers[i])) {
            return true;
        }
    }
    return false;
}

static void look_at_job(const ps_job_t *job, ps_cluster_look_t *look,
                        uint64_t workers[PS_DIM_WORKER_STATE])
{
    ps_looked_job_t *looked = &look->jobs[look->n_jobs++];
    uint64_t live = 0;
    uint64_t lost = 0;

    for (size_t i = 0; i < job->n_workers; i++) {
        const ps_worker_t *worker = &job->workers[i];

        live += ps_worker_is_live(worker) ? 1 : 0;
        lost += worker->state == PS_WORKER_LOST ? 1 : 0;
        workers[worker->state - PS_WORKER_EXPECTED]++;
    }
    set_name(&looked->is, job->id, job->name);
    ps_count_set(looked->counts.is_there, 1);
    ps_count_set(looked->counts.live, live);
    ps_count_set(looked->counts.lost, lost);
}

static void look_at_jobs(ps_control_t *self, ps_cluster_look_t *look)
{
    const ps_registry_t *registry = self->is.registry;
    uint64_t workers[PS_DIM_WORKER_STATE] = {0};

    for (size_t i = 0; i < ps_registry_n_jobs(registry); i++) {
        const ps_job_t *job = ps_registry_job_at(registry, i);

        if (is_live(job)) {
            look_at_job(job, look, workers);
        }
    }
    ps_count_set(self->counts->jobs, look->n_jobs);
    for (size_t i = 0; i < PS_DIM_WORKER_STATE; i++) {
        ps_count_set(&self->counts->workers[i], workers[i]);
    }
}

static void look_at_nodes(ps_control_t *self, ps_cluster_look_t *look)
{
    const ps_registry_t *registry = self->is.registry;
    uint64_t states[PS_DIM_HEALTH] = {0};

    for (size_t i = 0; i < ps_registry_n_nodes(registry); i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);
        const ps_sight_t sight = ps_overseer_look(self->overseer, node, ps_now_ms());
        bool is_up = sight.state == PS_HEALTH_UP;
        ps_looked_member_t *looked = &look->members[look->n_members++];

        set_name(&looked->is, node->id, node->name);
        ps_count_set(looked->counts.is_there, 1);
        ps_count_set(looked->counts.up, is_up ? 1 : 0);
        ps_count_set(looked->counts.draining, node->draining ? 1 : 0);
        states[is_up ? (node->draining ? PS_NODES_DRAINING : PS_NODES_UP) : PS_NODES_DOWN]++;
    }
    for (size_t i = 0; i < PS_DIM_HEALTH; i++) {
        ps_count_set(&self->counts->nodes[i], states[i]);
    }
}

/* By id: they are listed in the order of their making. */
static void look_at_tables(ps_control_t *self, ps_cluster_look_t *look)
{
    const ps_registry_t *registry = self->is.registry;
    uint64_t headless = 0;
    uint64_t few = 0;
    uint64_t lost = 0;

    for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);

        set_name(&look->tables[look->n_tables++], table->id, table->spec.name);
        lost += table->rows_lost && !table->loss_acked ? 1 : 0;
        for (uint32_t k = 0; k < table->spec.n_partitions; k++) {
            headless += table->copies[k].fenced ? 1 : 0;
            few += ps_copies_n_whole(&table->copies[k]) < table->spec.replicas ? 1 : 0;
        }
    }
    ps_count_set(self->counts->tables, look->n_tables);
    ps_count_set(self->counts->headless, headless);
    ps_count_set(self->counts->few_copies, few);
    ps_count_set(self->counts->rows_lost, lost);
}

/* ---- all of it ---- */

static ps_cluster_look_t *new_look(const ps_control_t *self)
{
    const ps_registry_t *registry = self->is.registry;
    ps_cluster_look_t *look = ps_alloc(1, sizeof *look);

    if (look == NULL) {
        return NULL;
    }
    look->tables = ps_alloc(ps_registry_n_tables(registry) + 1, sizeof *look->tables);
    look->jobs = ps_alloc(ps_registry_n_jobs(registry) + 1, sizeof *look->jobs);
    look->members = ps_alloc(ps_registry_n_nodes(registry) + 1, sizeof *look->members);
    if (look->tables == NULL || look->jobs == NULL || look->members == NULL) {
        ps_cluster_look_destroy(&look);
    }
    return look;
}

static void leave(ps_control_t *self, ps_cluster_look_t *look)
{
    ps_cluster_look_t *before = ps_box_put(&self->is.meter->look, look);

    ps_cluster_look_destroy(&before);
}

void ps_control_look(ps_control_t *self)
{
    ps_cluster_look_t *look = NULL;
    uint64_t now_ms = ps_now_ms();

    if (self->is.meter == NULL || now_ms < self->look_ms) {
        return;
    }
    self->look_ms = now_ms + PS_CLUSTER_LOOK_MS;
    look = new_look(self);
    if (look == NULL) {
        return;
    }
    ps_count_set(self->counts->leads, 1);
    ps_count_set(self->counts->term, ps_replica_led_term(self->is.replica));
    ps_count_set(self->counts->voters, ps_control_n_voters(self));
    ps_count_set(self->counts->unserved, self->n_unserved);
    ps_count_set(self->counts->epoch, ps_registry_epoch(self->is.registry));
    look_at_tables(self, look);
    look_at_jobs(self, look);
    look_at_nodes(self, look);
    leave(self, look);
}

uint64_t ps_control_look_at(const ps_control_t *self)
{
    return self->is.meter == NULL ? UINT64_MAX : self->look_ms;
}

/* What it counted stays; what it saw is another node's to say. */
void ps_control_look_away(ps_control_t *self)
{
    ps_control_counts_t *counts = self->counts;

    if (self->is.meter == NULL) {
        return;
    }
    leave(self, ps_alloc(1, sizeof(ps_cluster_look_t)));
    ps_count_set(counts->leads, 0);
    ps_count_set(counts->term, 0);
    ps_count_set(counts->voters, 0);
    ps_count_set(counts->unserved, 0);
    ps_count_set(counts->epoch, 0);
    ps_count_set(counts->tables, 0);
    ps_count_set(counts->jobs, 0);
    ps_count_set(counts->headless, 0);
    ps_count_set(counts->few_copies, 0);
    ps_count_set(counts->rows_lost, 0);
    for (size_t i = 0; i < PS_DIM_HEALTH; i++) {
        ps_count_set(&counts->nodes[i], 0);
    }
    for (size_t i = 0; i < PS_DIM_WORKER_STATE; i++) {
        ps_count_set(&counts->workers[i], 0);
    }
}
