/* SPDX-License-Identifier: Apache-2.0 */
/* Stores one command: what it changes and its line of the history, in one
 * transaction. */
#include <string.h>

#include "base/alloc.h"
#include "storage/registry/registry_db_impl.h"

static const char *kind_name(ps_command_kind_t kind)
{
    switch (kind) {
    case PS_COMMAND_CLUSTER:
        return "cluster";
    case PS_COMMAND_NODE:
        return "node";
    case PS_COMMAND_SESSIONS:
        return "sessions";
    case PS_COMMAND_TABLE:
        return "table";
    case PS_COMMAND_DROP:
        return "drop";
    case PS_COMMAND_JOB:
        return "job";
    case PS_COMMAND_JOB_TABLE:
        return "job_table";
    case PS_COMMAND_COPIES:
        return "copies";
    case PS_COMMAND_NODE_STATE:
        return "node_state";
    case PS_COMMAND_QUEUE:
        return "queue";
    case PS_COMMAND_WORK:
        return "work";
    case PS_COMMAND_RESTORED:
        return "restored";
    case PS_COMMAND_ACK:
        return "loss_acked";
    case PS_COMMAND_NOTE:
        return "note";
    default:
        return "?";
    }
}

psd_status_t ps_registry_db_run(ps_registry_db_t *self, ps_statement_t statement,
                                const uint64_t *numbers, size_t n, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, statement);

    for (size_t i = 0; i < n; i++) {
        ps_query_put_u64(&query, numbers[i]);
    }
    return ps_query_run(&query, err);
}

/* What a command changed must have been there. */
static psd_status_t check_one_changed(ps_registry_db_t *self, const ps_command_t *command,
                                      psd_error_t *err)
{
    if (sqlite3_changes(self->db) == 1) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_DAMAGED, "%s: what the command \"%s\" changes is not there",
                         sqlite3_db_filename(self->db, "main"), kind_name(command->kind));
}

static psd_status_t store_cluster(ps_registry_db_t *self, const ps_command_t *command,
                                  psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_CLUSTER_ADD);

    ps_query_put_text(&query, command->name);
    ps_query_put_blob(&query, command->uuid.bytes, sizeof command->uuid.bytes);
    ps_query_put_u64(&query, command->epoch);
    ps_query_put_u64(&query, command->number);
    ps_query_put_u64(&query, command->last_table);
    ps_query_put_u64(&query, command->last_job);
    ps_query_put_u64(&query, command->unix_ms);
    return ps_query_run(&query, err);
}

static psd_status_t put_node(ps_registry_db_t *self, const ps_command_t *command, uint64_t *ret_id,
                             psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_NODE_PUT);

    ps_query_put_text(&query, command->node.name);
    ps_query_put_u64(&query, command->node.incarnation);
    ps_query_put_text(&query, command->node.control);
    ps_query_put_u64(&query, command->unix_ms);
    ps_query_put_u64(&query, command->node.weight);
    ps_query_put_blob(&query, command->node.secret.bytes, PS_ID_SIZE);
    if (ps_query_next(&query)) {
        *ret_id = ps_query_u64(&query);
    }
    return ps_query_run(&query, err);
}

static psd_status_t add_copy(ps_registry_db_t *self, uint32_t table, uint32_t partition,
                             uint32_t place, const ps_copy_t *copy, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_COPY_ADD);

    ps_query_put_u64(&query, table);
    ps_query_put_u64(&query, partition);
    ps_query_put_u64(&query, place);
    ps_query_put_u64(&query, copy->incarnation);
    ps_query_put_u64(&query, copy->shard);
    ps_query_put_text(&query, ps_copy_state_name(copy->state));
    ps_query_put_u64(&query, copy->leaving ? 1 : 0);
    ps_query_put_u64(&query, copy->dropped ? 1 : 0);
    return ps_query_run(&query, err);
}

static psd_status_t put_copies(ps_registry_db_t *self, uint32_t table, uint32_t partition,
                               const ps_copies_t *copies, psd_error_t *err)
{
    uint64_t values[] = {table, partition, copies->epoch, copies->fenced ? 1 : 0};
    psd_status_t rc = ps_registry_db_run(self, STATEMENT_PARTITION_PUT, values, 4, err);

    if (rc == PSD_OK) {
        rc = ps_registry_db_run(self, STATEMENT_COPIES_CUT, values, 2, err);
    }
    for (uint32_t i = 0; i < copies->n && rc == PSD_OK; i++) {
        rc = add_copy(self, table, partition, i, &copies->at[i], err);
    }
    return rc;
}

static psd_status_t put_changes(ps_registry_db_t *self, const ps_command_t *command,
                                psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < command->n_changes && rc == PSD_OK; i++) {
        const ps_change_t *change = &command->changes[i];
        uint64_t table = change->table;

        rc = put_copies(self, change->table, change->partition, &change->copies, err);
        if (rc == PSD_OK && change->rows_lost) {
            rc = ps_registry_db_run(self, STATEMENT_TABLE_LOST, &table, 1, err);
        }
    }
    return rc;
}

static psd_status_t put_shards(ps_registry_db_t *self, uint64_t node_id, const ps_node_t *node,
                               psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; i < node->n_shards && rc == PSD_OK; i++) {
        ps_query_t query = ps_registry_db_query(self, STATEMENT_SHARD_PUT);

        ps_query_put_u64(&query, node_id);
        ps_query_put_u64(&query, i);
        ps_query_put_text(&query, node->shards[i].tcp);
        ps_query_put_text(&query, node->shards[i].ipc);
        rc = ps_query_run(&query, err);
    }
    return rc;
}

static psd_status_t store_node(ps_registry_db_t *self, const ps_command_t *command,
                               psd_error_t *err)
{
    uint64_t id = 0;
    psd_status_t rc = put_node(self, command, &id, err);

    if (rc == PSD_OK) {
        rc = put_shards(self, id, &command->node, err);
    }
    if (rc == PSD_OK) {
        rc = put_changes(self, command, err);
    }
    if (rc == PSD_OK) {
        uint64_t values[] = {id, command->node.n_shards};

        rc = ps_registry_db_run(self, STATEMENT_SHARD_CUT, values, 2, err);
    }
    return rc;
}

static psd_status_t store_node_state(ps_registry_db_t *self, const ps_command_t *command,
                                     psd_error_t *err)
{
    bool goes = command->number == PS_NODE_REMOVED;
    psd_status_t rc = put_changes(self, command, err);

    if (rc == PSD_OK) {
        ps_query_t query =
            ps_registry_db_query(self, goes ? STATEMENT_NODE_REMOVE : STATEMENT_NODE_STATE);

        if (!goes) {
            ps_query_put_text(&query, command->number == PS_NODE_DRAINING ? "draining" : "up");
        }
        ps_query_put_text(&query, command->name);
        rc = ps_query_run(&query, err);
    }
    return rc == PSD_OK ? check_one_changed(self, command, err) : rc;
}

static psd_status_t add_table(ps_registry_db_t *self, const ps_table_t *table, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t partition_by = {0};
    const ps_table_spec_t *spec = &table->spec;
    ps_query_t query = ps_registry_db_query(self, STATEMENT_TABLE_ADD);
    char updater[PS_SPEC_TEXT_SIZE];
    char init[PS_SPEC_TEXT_SIZE];

    if (!ps_partition_by_format(spec, &partition_by) || !ps_buffer_append(&partition_by, "", 1)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for boundaries");
    }
    ps_updater_spec_format(&spec->updater, updater);
    ps_init_spec_format(&spec->init, init);
    ps_query_put_u64(&query, table->id);
    ps_query_put_text(&query, spec->name);
    ps_query_put_u64(&query, table->created_unix_ms);
    ps_query_put_u64(&query, table->rows_lost ? 1 : 0);
    ps_query_put_u64(&query, spec->n_rows);
    ps_query_put_u64(&query, spec->n_cols);
    ps_query_put_text(&query, ps_type_name(spec->type));
    ps_query_put_text(&query, ps_row_format_name(spec->row_format));
    ps_query_put_text(&query, ps_keys_name(spec->keys));
    ps_query_put_text(&query, updater);
    ps_query_put_text(&query, init);
    ps_query_put_u64(&query, spec->seed);
    ps_query_put_u64(&query, spec->n_partitions);
    ps_query_put_u64(&query, spec->n_col_slices);
    ps_query_put_text(&query, (const char *)partition_by.data);
    ps_query_put_u64(&query, spec->replicas);
    ps_query_put_text(&query, ps_ack_name(spec->ack));
    ps_query_put_u64(&query, spec->allow_nonfinite ? 1 : 0);
    ps_query_put_text(&query, spec->filter);
    ps_query_put_u64(&query, spec->versions ? 1 : 0);
    ps_query_put_u64(&query, table->lost_sessions);
    ps_query_put_u64(&query, table->lost_jobs);
    ps_query_put_u64(&query, table->restoring ? 1 : 0);
    ps_query_put_u64(&query, table->loss_acked ? 1 : 0);
    return ps_query_run(&query, err);
}

static psd_status_t store_table(ps_registry_db_t *self, const ps_command_t *command,
                                psd_error_t *err)
{
    const ps_table_t *table = &command->table;
    psd_status_t rc = add_table(self, table, err);

    for (uint32_t i = 0; i < table->spec.n_partitions && rc == PSD_OK; i++) {
        rc = put_copies(self, table->id, i, &table->copies[i], err);
    }
    return rc;
}

static psd_status_t store_drop(ps_registry_db_t *self, const ps_command_t *command,
                               psd_error_t *err)
{
    psd_status_t rc = ps_registry_db_run(self, STATEMENT_TABLE_CLOSE, &command->number, 1, err);

    if (rc == PSD_OK) {
        rc = ps_registry_db_run(self, STATEMENT_TABLE_DROP, &command->number, 1, err);
    }
    return rc == PSD_OK ? check_one_changed(self, command, err) : rc;
}

static psd_status_t store_restored(ps_registry_db_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    psd_status_t rc = ps_registry_db_run(self, STATEMENT_TABLE_RESTORED, &command->number, 1, err);

    return rc == PSD_OK ? check_one_changed(self, command, err) : rc;
}

static psd_status_t store_ack(ps_registry_db_t *self, const ps_command_t *command, psd_error_t *err)
{
    psd_status_t rc = ps_registry_db_run(self, STATEMENT_TABLE_ACKED, &command->number, 1, err);

    return rc == PSD_OK ? check_one_changed(self, command, err) : rc;
}

static bool has_live(const ps_job_t *job)
{
    for (size_t i = 0; i < job->n_workers; i++) {
        if (ps_worker_is_live(&job->workers[i])) {
            return true;
        }
    }
    return false;
}

static psd_status_t put_job(ps_registry_db_t *self, const ps_command_t *command, psd_error_t *err)
{
    const ps_job_t *job = &command->job;
    ps_query_t query = ps_registry_db_query(self, STATEMENT_JOB_PUT);

    ps_query_put_u64(&query, job->id);
    ps_query_put_text(&query, job->name);
    ps_query_put_i64(&query, job->max_delay);
    ps_query_put_u64(&query, job->version);
    ps_query_put_u64(&query, job->stopped ? 1 : 0);
    ps_query_put_u64(&query, command->n_expected);
    ps_query_put_u64(&query, command->created_unix_ms);
    ps_query_put_u64(&query, has_live(job) ? 1 : 0);
    return ps_query_run(&query, err);
}

static psd_status_t put_worker(ps_registry_db_t *self, const ps_job_t *job,
                               const ps_worker_t *worker, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_WORKER_PUT);

    ps_query_put_u64(&query, job->id);
    ps_query_put_u64(&query, worker->worker);
    ps_query_put_text(&query, ps_worker_state_name(worker->state));
    ps_query_put_u64(&query, worker->n_members);
    ps_query_put_u64(&query, worker->joins);
    ps_query_put_u64(&query, worker->start);
    return ps_query_run(&query, err);
}

static psd_status_t store_job(ps_registry_db_t *self, const ps_command_t *command, psd_error_t *err)
{
    const uint64_t kept = PS_JOBS_ENDED_MAX;
    const uint64_t id = command->job.id;
    psd_status_t rc = put_job(self, command, err);

    for (size_t i = 0; i < command->job.n_workers && rc == PSD_OK; i++) {
        rc = put_worker(self, &command->job, &command->job.workers[i], err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_run(self, STATEMENT_GIVEN_RETURN, &id, 1, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_store_resumed(self, command, err);
    }
    return rc == PSD_OK ? ps_registry_db_run(self, STATEMENT_JOBS_CUT, &kept, 1, err) : rc;
}

static psd_status_t store_job_table(ps_registry_db_t *self, const ps_command_t *command,
                                    psd_error_t *err)
{
    uint64_t opened[] = {command->job.id, command->number};
    uint64_t version[] = {command->job.id, command->job.version};
    psd_status_t rc = ps_registry_db_run(self, STATEMENT_JOB_TABLE_ADD, opened, 2, err);

    if (rc == PSD_OK && command->told) {
        rc = ps_registry_db_run(self, STATEMENT_TABLE_TOLD, &opened[1], 1, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_run(self, STATEMENT_JOB_VERSION, version, 2, err);
    }
    return rc == PSD_OK ? check_one_changed(self, command, err) : rc;
}

static psd_status_t store_kind(ps_registry_db_t *self, const ps_command_t *command,
                               psd_error_t *err)
{
    switch (command->kind) {
    case PS_COMMAND_CLUSTER:
        return store_cluster(self, command, err);
    case PS_COMMAND_NODE:
        return store_node(self, command, err);
    case PS_COMMAND_SESSIONS:
    case PS_COMMAND_NOTE:
        return PSD_OK; /* store_counters and store_event do it */
    case PS_COMMAND_TABLE:
        return store_table(self, command, err);
    case PS_COMMAND_DROP:
        return store_drop(self, command, err);
    case PS_COMMAND_RESTORED:
        return store_restored(self, command, err);
    case PS_COMMAND_ACK:
        return store_ack(self, command, err);
    case PS_COMMAND_JOB:
        return store_job(self, command, err);
    case PS_COMMAND_JOB_TABLE:
        return store_job_table(self, command, err);
    case PS_COMMAND_COPIES:
        return put_changes(self, command, err);
    case PS_COMMAND_NODE_STATE:
        return store_node_state(self, command, err);
    case PS_COMMAND_QUEUE:
        return ps_registry_db_store_queue(self, command, err);
    case PS_COMMAND_WORK:
        return ps_registry_db_store_work(self, command, err);
    default:
        return psd_error_set(err, PSD_INVALID, "command kind is %d", (int)command->kind);
    }
}

static psd_status_t store_counters(ps_registry_db_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    uint64_t values[] = {command->epoch, command->kind == PS_COMMAND_SESSIONS ? command->number : 0,
                         command->table.id, command->kind == PS_COMMAND_JOB ? command->job.id : 0};
    psd_status_t rc = ps_registry_db_run(self, STATEMENT_CLUSTER_SET, values, 4, err);

    return rc == PSD_OK ? check_one_changed(self, command, err) : rc;
}

static psd_status_t store_event(ps_registry_db_t *self, const ps_command_t *command,
                                psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_EVENT_ADD);
    psd_status_t rc = PSD_OK;
    int64_t id = 0;
    uint64_t before = 0;

    ps_query_put_u64(&query, command->unix_ms);
    ps_query_put_u64(&query, command->epoch);
    ps_query_put_text(&query, kind_name(command->kind));
    ps_query_put_text(&query, command->text);
    rc = ps_query_run(&query, err);
    id = sqlite3_last_insert_rowid(self->db);
    if (rc != PSD_OK || id <= PS_EVENTS_KEPT) {
        return rc;
    }
    before = (uint64_t)id - PS_EVENTS_KEPT;
    return ps_registry_db_run(self, STATEMENT_EVENT_CUT, &before, 1, err);
}

psd_status_t ps_registry_db_store(ps_registry_db_t *self, const ps_command_t *command,
                                  psd_error_t *err)
{
    psd_status_t rc = ps_registry_db_run(self, STATEMENT_BEGIN, NULL, 0, err);

    if (rc == PSD_OK) {
        rc = store_kind(self, command, err);
    }
    if (rc == PSD_OK) {
        rc = store_counters(self, command, err);
    }
    if (rc == PSD_OK && command->kind != PS_COMMAND_WORK) {
        rc = store_event(self, command, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_run(self, STATEMENT_COMMIT, NULL, 0, err);
    }
    if (rc != PSD_OK && sqlite3_get_autocommit(self->db) == 0) {
        psd_status_t rolled = ps_registry_db_run(self, STATEMENT_ROLLBACK, NULL, 0, NULL);

        (void)rolled; /* the first cause is told */
    }
    if (rc == PSD_OK) {
        ps_commit_note_write(&self->note, ++self->n_commits);
    }
    return rc;
}
