/* SPDX-License-Identifier: Apache-2.0 */
/* Does a command fit the state? */
#include "protocol/registry/registry_job.h"
#include "protocol/registry/registry_queue.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* A terminated text in an array of `size` bytes. */
static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static bool is_name(const char *name)
{
    return is_text(name, PS_NAME_MAX + 1) && ps_text_is_name(name);
}

static psd_status_t bad_name(const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "name of the %s; allowed: 1..%d of letters, digits, "
                         "\"_\", \".\", \"-\", not beginning with \".\" or "
                         "\"-\"",
                         what, PS_NAME_MAX);
}

static psd_status_t check_shard(const ps_node_t *node, uint32_t i, psd_error_t *err)
{
    const ps_route_t *shard = &node->shards[i];

    if (!is_text(shard->tcp, sizeof shard->tcp) || !is_text(shard->ipc, sizeof shard->ipc) ||
        ps_route_any(shard)[0] == '\0') {
        return psd_error_set(err, PSD_INVALID, "shard %u of node %s has no endpoint", i,
                             node->name);
    }
    return PSD_OK;
}

psd_status_t ps_node_check(const ps_node_t *node, psd_error_t *err)
{
    if (!is_name(node->name)) {
        return bad_name("node", err);
    }
    if (node->incarnation == 0) {
        return psd_error_set(err, PSD_INVALID, "incarnation of node %s is 0", node->name);
    }
    if (!is_text(node->control, sizeof node->control)) {
        return psd_error_set(err, PSD_INVALID, "control endpoint of node %s is too long",
                             node->name);
    }
    if (node->weight > PS_NODE_SHARDS_MAX) {
        return psd_error_set(err, PSD_INVALID, "weight of node %s is %u; allowed: 0..%d",
                             node->name, node->weight, PS_NODE_SHARDS_MAX);
    }
    if (node->n_shards < 1 || node->n_shards > PS_NODE_SHARDS_MAX || node->shards == NULL) {
        return psd_error_set(err, PSD_INVALID, "node %s has %u shards; allowed: 1..%d", node->name,
                             node->n_shards, PS_NODE_SHARDS_MAX);
    }
    for (uint32_t i = 0; i < node->n_shards; i++) {
        psd_status_t rc = check_shard(node, i, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    return PSD_OK;
}

psd_status_t ps_command_check_cluster(const ps_registry_t *self, const ps_command_t *command,
                                      psd_error_t *err)
{
    if (self->has_cluster) {
        return psd_error_set(err, PSD_DAMAGED, "there is a cluster already");
    }
    if (!is_name(command->name)) {
        return bad_name("cluster", err);
    }
    if (ps_id_is_zero(&command->uuid)) {
        return psd_error_set(err, PSD_DAMAGED, "the cluster's UUID is 0");
    }
    if (command->number > PS_STORED_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "sessions are out of range");
    }
    return PSD_OK;
}

psd_status_t ps_command_check_node(const ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    const ps_node_t *node = &command->node;
    const ps_node_t *other = NULL;
    psd_status_t rc = ps_node_check(node, err);

    if (rc != PSD_OK) {
        return rc;
    }
    other = ps_registry_node_by_incarnation(self, node->incarnation);
    if (other != NULL) {
        return psd_error_set(err, PSD_DAMAGED, "nodes %s and %s have one incarnation", node->name,
                             other->name);
    }
    return ps_registry_check_changes(self, command, err);
}

psd_status_t ps_command_check_copies(const ps_registry_t *self, const ps_command_t *command,
                                     psd_error_t *err)
{
    if (command->n_changes == 0 || command->epoch <= self->epoch) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%zu changes of copies in epoch %llu; the epoch is %llu already",
                             command->n_changes, (unsigned long long)command->epoch,
                             (unsigned long long)self->epoch);
    }
    return ps_registry_check_changes(self, command, err);
}

psd_status_t ps_command_check_node_state(const ps_registry_t *self, const ps_command_t *command,
                                         psd_error_t *err)
{
    if (!is_name(command->name) || ps_registry_find_node(self, command->name) == NULL ||
        command->number < PS_NODE_UP || command->number > PS_NODE_REMOVED) {
        return psd_error_set(err, PSD_DAMAGED, "a node that does not exist is in state %llu",
                             (unsigned long long)command->number);
    }
    return ps_registry_check_changes(self, command, err);
}

psd_status_t ps_command_check_table(const ps_registry_t *self, const ps_command_t *command,
                                    psd_error_t *err)
{
    const ps_table_t *table = &command->table;
    psd_status_t rc = PSD_OK;

    if (!is_name(table->spec.name)) {
        return bad_name("table", err);
    }
    if (table->id == 0 || ps_registry_find_table(self, table->id) != NULL ||
        ps_registry_table(self, table->spec.name) != NULL) {
        return psd_error_set(err, PSD_DAMAGED, "table %s with id %u exists already",
                             table->spec.name, table->id);
    }
    rc = ps_table_spec_check(&table->spec, err);
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "table %s", table->spec.name);
    }
    if (table->copies == NULL) {
        return psd_error_set(err, PSD_DAMAGED, "table %s has no partitions", table->spec.name);
    }
    return ps_registry_check_copies(self, command, err);
}

static const ps_table_t *table_of(const ps_registry_t *self, const ps_command_t *command)
{
    return command->number > UINT32_MAX ? NULL
                                        : ps_registry_find_table(self, (uint32_t)command->number);
}

/* The table that the command names is there, and as it must be. */
static psd_status_t need_table(const ps_command_t *command, bool good, const char *what,
                               psd_error_t *err)
{
    return good ? PSD_OK
                : psd_error_set(err, PSD_DAMAGED, "there is no table %llu %s",
                                (unsigned long long)command->number, what);
}

psd_status_t ps_command_check_drop(const ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    return need_table(command, table_of(self, command) != NULL, "to drop", err);
}

psd_status_t ps_command_check_restored(const ps_registry_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    const ps_table_t *table = table_of(self, command);

    return need_table(command, table != NULL && table->restoring, "that is being restored", err);
}

psd_status_t ps_command_check_loss_acked(const ps_registry_t *self, const ps_command_t *command,
                                         psd_error_t *err)
{
    const ps_table_t *table = table_of(self, command);

    return need_table(command, table != NULL && table->rows_lost && !table->loss_acked,
                      "with an unacknowledged loss of rows", err);
}

psd_status_t ps_command_check_sessions(const ps_registry_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    return command->number >= self->sessions && command->number <= PS_STORED_MAX
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED, "sessions would shrink");
}

psd_status_t ps_command_check_note(const ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    (void)self;
    (void)command;
    (void)err;
    return PSD_OK;
}

static psd_status_t check_worker(const ps_job_t *job, size_t i, psd_error_t *err)
{
    const ps_worker_t *worker = &job->workers[i];
    bool in_order = i == 0 || job->workers[i - 1].worker < worker->worker;
    bool came = worker->state == PS_WORKER_JOINING || worker->state == PS_WORKER_RUNNING ||
                worker->state == PS_WORKER_FINISHED;

    if (!in_order || worker->worker >= PS_WORKERS_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "worker %u of job %s is out of order or range",
                             worker->worker, job->name);
    }
    if (worker->state < PS_WORKER_EXPECTED || worker->state > PS_WORKER_LOST ||
        worker->n_members > PS_MEMBERS_MAX ||
        (came && (worker->n_members < 1 || worker->joins < 1)) || worker->start > PS_STORED_MAX) {
        return psd_error_set(err, PSD_DAMAGED,
                             "worker %u of job %s has state %d, %u members, "
                             "joins %u, start %llu",
                             worker->worker, job->name, (int)worker->state, worker->n_members,
                             worker->joins, (unsigned long long)worker->start);
    }
    return PSD_OK;
}

psd_status_t ps_command_check_job(const ps_registry_t *self, const ps_command_t *command,
                                  psd_error_t *err)
{
    const ps_job_t *job = &command->job;
    const ps_job_entry_t *known = ps_registry_find_job(self, job->id);
    psd_status_t rc = PSD_OK;

    if (!is_name(job->name)) {
        return bad_name("job", err);
    }
    if (job->id == 0 || job->version == 0 || job->version > PS_STORED_MAX || job->n_workers < 1 ||
        job->n_workers > PS_WORKERS_MAX || job->workers == NULL || command->n_expected < 1 ||
        command->n_expected > PS_WORKERS_MAX) {
        return psd_error_set(err, PSD_DAMAGED,
                             "job %s has id %u, version %llu, %zu workers, %u "
                             "expected",
                             job->name, job->id, (unsigned long long)job->version, job->n_workers,
                             command->n_expected);
    }
    if (known != NULL &&
        (strcmp(known->job.name, job->name) != 0 || known->job.version >= job->version)) {
        return psd_error_set(err, PSD_DAMAGED, "job %u is %s at version %llu, not %s before %llu",
                             job->id, known->job.name, (unsigned long long)known->job.version,
                             job->name, (unsigned long long)job->version);
    }
    for (size_t i = 0; i < job->n_workers && rc == PSD_OK; i++) {
        rc = check_worker(job, i, err);
        if (rc == PSD_OK && command->ended != 0 &&
            (command->ended > PS_STORED_MAX || ps_worker_is_live(&job->workers[i]))) {
            rc = psd_error_set(err, PSD_DAMAGED, "job %s has ended as %llu, worker %u is %s",
                               job->name, (unsigned long long)command->ended,
                               job->workers[i].worker, ps_worker_state_name(job->workers[i].state));
        }
    }
    return rc == PSD_OK ? ps_registry_check_resumed(self, command, err) : rc;
}

psd_status_t ps_command_check_job_table(const ps_registry_t *self, const ps_command_t *command,
                                        psd_error_t *err)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, command->job.id);

    if (entry == NULL || command->number > UINT32_MAX ||
        ps_registry_find_table(self, (uint32_t)command->number) == NULL) {
        return psd_error_set(err, PSD_DAMAGED, "there is no job %u or no table %llu",
                             command->job.id, (unsigned long long)command->number);
    }
    if (command->job.version < entry->job.version || command->job.version > PS_STORED_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "job %s is at version %llu, not before %llu",
                             entry->job.name, (unsigned long long)entry->job.version,
                             (unsigned long long)command->job.version);
    }
    for (size_t i = 0; i < entry->n_tables; i++) {
        if (entry->tables[i] == command->number) {
            return psd_error_set(err, PSD_DAMAGED, "job %s has table %u open already",
                                 entry->job.name, entry->tables[i]);
        }
    }
    return PSD_OK;
}
