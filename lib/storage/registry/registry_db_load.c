/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds what is stored to an empty registry. Here every column is checked for
 * its type and every text for its length; that it makes sense is checked where
 * it is applied. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/facts/table_filter.h"
#include "storage/registry/registry_db_impl.h"

#define WORD_MAX 32
/* "list:" and the longest boundaries, each with a comma. */
#define PARTITION_BY_MAX (8 + (size_t)PS_TABLE_PARTITIONS_MAX * 21)

/* Says where it was that something does not fit. */
static psd_status_t damaged_at(const ps_query_t *query, psd_status_t rc, const psd_error_t *why,
                               psd_error_t *err)
{
    char place[PS_PLACE_SIZE];

    if (rc == PSD_OK || rc == PSD_NOMEM) {
        return rc == PSD_OK ? rc : psd_error_set(err, rc, "no memory");
    }
    ps_query_place(query, place);
    return psd_error_set(err, PSD_DAMAGED, "%s: %s", place, psd_error_text(why));
}

psd_status_t ps_registry_load_apply(const ps_registry_load_t *load, const ps_query_t *query,
                                    ps_command_t *command, psd_error_t *err)
{
    psd_error_t *why = NULL;
    psd_status_t rc = ps_query_check(query, err);

    if (rc != PSD_OK) {
        return rc;
    }
    why = psd_error_new();
    if (why == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory");
    }
    command->epoch = load->epoch;
    rc = ps_registry_apply(load->registry, command, load->now_ms, why);
    rc = damaged_at(query, rc, why, err);
    psd_error_destroy(&why);
    return rc;
}

psd_status_t ps_registry_load_end(ps_query_t *query, psd_status_t rc, psd_error_t *err)
{
    if (rc == PSD_OK) {
        return ps_query_end(query, err);
    }
    ps_query_reset(query);
    return rc;
}

static psd_status_t load_cluster(ps_registry_load_t *load, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_CLUSTER_ALL);
    ps_command_t command = {.kind = PS_COMMAND_CLUSTER};
    psd_status_t rc = PSD_OK;

    if (ps_query_next(&query)) {
        (void)ps_query_u64(&query);
        ps_query_copy_text(&query, command.name, sizeof command.name);
        ps_query_copy_blob(&query, command.uuid.bytes, sizeof command.uuid.bytes);
        load->epoch = ps_query_u64(&query);
        command.number = ps_query_u64(&query);
        command.last_table = ps_query_u32(&query);
        command.last_job = ps_query_u32(&query);
        command.unix_ms = ps_query_u64(&query);
        rc = ps_registry_load_apply(load, &query, &command, err);
    }
    return ps_registry_load_end(&query, rc, err);
}

static psd_status_t load_shards(const ps_registry_load_t *load, uint64_t id, ps_node_t *node,
                                psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_SHARD_ALL);
    size_t capacity = 0;
    psd_status_t rc = PSD_OK;

    ps_query_put_u64(&query, id);
    while (rc == PSD_OK && ps_query_next(&query)) {
        uint32_t n = node->n_shards;

        if (!ps_grow(&node->shards, &capacity, n + 1, sizeof *node->shards)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for shards");
            break;
        }
        (void)ps_query_u64(&query);
        node->shards[n] = (ps_route_t){.shard = ps_query_u32(&query)};
        ps_query_copy_text(&query, node->shards[n].tcp, sizeof node->shards[n].tcp);
        ps_query_copy_text(&query, node->shards[n].ipc, sizeof node->shards[n].ipc);
        if (node->shards[n].shard != n || n >= PS_NODE_SHARDS_MAX) {
            rc = psd_error_set(err, PSD_DAMAGED, "table shards: number %u of node %s is %u", n,
                               node->name, node->shards[n].shard);
        }
        node->n_shards = n + 1;
    }
    return ps_registry_load_end(&query, rc, err);
}

static psd_status_t read_state(ps_query_t *query, ps_node_t *node, psd_error_t *err)
{
    const char *word = ps_query_text(query, WORD_MAX);
    char place[PS_PLACE_SIZE];

    node->draining = strcmp(word, "draining") == 0;
    if (node->draining || strcmp(word, "up") == 0) {
        return PSD_OK;
    }
    ps_query_place(query, place);
    return psd_error_set(err, PSD_DAMAGED, "%s: state is \"%s\"", place, word);
}

static psd_status_t load_nodes(const ps_registry_load_t *load, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_NODE_ALL);
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && ps_query_next(&query)) {
        PSD_AUTO(ps_command_done)
        ps_command_t command = {.kind = PS_COMMAND_NODE};
        ps_node_t *node = &command.node;
        uint64_t id = ps_query_u64(&query);

        ps_query_copy_text(&query, node->name, sizeof node->name);
        node->incarnation = ps_query_u64(&query);
        ps_query_copy_text(&query, node->control, sizeof node->control);
        rc = read_state(&query, node, err);
        node->weight = ps_query_u32(&query);
        ps_query_copy_blob(&query, node->secret.bytes, PS_ID_SIZE);
        if (rc == PSD_OK) {
            rc = load_shards(load, id, node, err);
        }
        if (rc == PSD_OK) {
            rc = ps_registry_load_apply(load, &query, &command, err);
        }
    }
    return ps_registry_load_end(&query, rc, err);
}

static psd_status_t parse_type(const char *word, ps_type_t *ret, psd_error_t *err)
{
    return ps_type_parse(word, ret) ? PSD_OK
                                    : psd_error_set(err, PSD_DAMAGED, "type is \"%s\"", word);
}

/* Columns in the order of STATEMENT_TABLE_ALL. */
static psd_status_t read_spec(ps_query_t *query, ps_table_spec_t *spec, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    spec->n_rows = ps_query_u64(query);
    spec->n_cols = ps_query_u32(query);
    rc = parse_type(ps_query_text(query, WORD_MAX), &spec->type, err);
    if (rc == PSD_OK) {
        rc = ps_row_format_parse(ps_query_text(query, WORD_MAX), &spec->row_format, err);
    }
    if (rc == PSD_OK) {
        rc = ps_keys_parse(ps_query_text(query, WORD_MAX), &spec->keys, err);
    }
    if (rc == PSD_OK) {
        rc = ps_updater_spec_parse(ps_query_text(query, PS_SPEC_TEXT_SIZE), &spec->updater, err);
    }
    if (rc == PSD_OK) {
        rc = ps_init_spec_parse(ps_query_text(query, PS_SPEC_TEXT_SIZE), &spec->init, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    spec->seed = ps_query_u64(query);
    spec->n_partitions = ps_query_u32(query);
    spec->n_col_slices = ps_query_u32(query);
    rc = ps_partition_by_parse(ps_query_text(query, PARTITION_BY_MAX), spec, err);
    if (rc != PSD_OK) {
        return rc;
    }
    spec->replicas = ps_query_u32(query);
    rc = ps_ack_parse(ps_query_text(query, WORD_MAX), &spec->ack, err);
    spec->allow_nonfinite = ps_query_bool(query);
    if (rc == PSD_OK) {
        rc = ps_table_filter_set(spec, ps_query_text(query, PS_TABLE_FILTER_SIZE), err);
    }
    if (rc == PSD_OK) {
        spec->versions = ps_query_bool(query);
    }
    return rc;
}

static psd_status_t read_table(ps_query_t *query, ps_table_t *table, psd_error_t *err)
{
    psd_error_t *why = psd_error_new();
    psd_status_t rc = PSD_OK;

    if (why == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory");
    }
    ps_table_spec_init(&table->spec);
    table->id = ps_query_u32(query);
    ps_query_copy_text(query, table->spec.name, sizeof table->spec.name);
    table->created_unix_ms = ps_query_u64(query);
    table->rows_lost = ps_query_bool(query);
    rc = read_spec(query, &table->spec, why);
    rc = damaged_at(query, rc, why, err);
    if (rc == PSD_OK) {
        table->lost_sessions = ps_query_u64(query);
        table->lost_jobs = ps_query_u32(query);
        table->restoring = ps_query_bool(query);
        table->loss_acked = ps_query_bool(query);
    }
    psd_error_destroy(&why);
    if (rc == PSD_OK) {
        rc = ps_query_check(query, err);
    }
    return rc;
}

/* The first partition that is missing, or is one too many. */
static psd_status_t wrong_partition(const ps_table_t *table, uint32_t partition, psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED,
                         "table partitions, row table_id=%u, partition=%u: "
                         "missing or not one of %u",
                         table->id, partition, table->spec.n_partitions);
}

static psd_status_t load_partitions(const ps_registry_load_t *load, ps_table_t *table,
                                    psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_PARTITION_ALL);
    size_t capacity = 0;
    uint32_t n = 0;
    psd_status_t rc = PSD_OK;

    ps_query_put_u64(&query, table->id);
    while (rc == PSD_OK && ps_query_next(&query)) {
        ps_copies_t *copies = NULL;
        uint32_t partition = 0;

        if (!ps_grow(&table->copies, &capacity, n + 1, sizeof *table->copies)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for partitions");
            break;
        }
        copies = &table->copies[n];
        *copies = (ps_copies_t){0};
        (void)ps_query_u64(&query);
        partition = ps_query_u32(&query);
        copies->epoch = ps_query_u64(&query);
        copies->fenced = ps_query_bool(&query);
        rc = ps_query_check(&query, err);
        if (rc == PSD_OK && (partition != n || n >= table->spec.n_partitions)) {
            rc = wrong_partition(table, n, err);
        }
        n++;
    }
    rc = ps_registry_load_end(&query, rc, err);
    if (rc == PSD_OK && n != table->spec.n_partitions) {
        rc = wrong_partition(table, n, err);
    }
    return rc;
}

/* What the load has no place for; that it makes sense is checked later. */
static psd_status_t take_copy(ps_query_t *query, ps_table_t *table, psd_error_t *err)
{
    uint32_t partition = 0;
    uint32_t place = 0;
    ps_copy_t copy = {0};
    psd_status_t rc = PSD_OK;

    (void)ps_query_u64(query);
    partition = ps_query_u32(query);
    place = ps_query_u32(query);
    copy.incarnation = ps_query_u64(query);
    copy.shard = ps_query_u32(query);
    copy.state = ps_copy_state_parse(ps_query_text(query, WORD_MAX));
    copy.leaving = ps_query_bool(query);
    copy.dropped = ps_query_bool(query);
    rc = ps_query_check(query, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (partition >= table->spec.n_partitions || place >= PS_COPIES_MAX ||
        place != table->copies[partition].n) {
        return psd_error_set(err, PSD_DAMAGED,
                             "table copies, row table_id=%u, partition=%u, "
                             "place=%u: out of order",
                             table->id, partition, place);
    }
    table->copies[partition].at[table->copies[partition].n++] = copy;
    return PSD_OK;
}

static psd_status_t load_copies(const ps_registry_load_t *load, ps_table_t *table, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_COPY_ALL);
    psd_status_t rc = PSD_OK;

    ps_query_put_u64(&query, table->id);
    while (rc == PSD_OK && ps_query_next(&query)) {
        rc = take_copy(&query, table, err);
    }
    return ps_registry_load_end(&query, rc, err);
}

static psd_status_t load_tables(const ps_registry_load_t *load, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_TABLE_ALL);
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && ps_query_next(&query)) {
        PSD_AUTO(ps_command_done)
        ps_command_t command = {.kind = PS_COMMAND_TABLE};

        rc = read_table(&query, &command.table, err);
        if (rc == PSD_OK) {
            rc = load_partitions(load, &command.table, err);
        }
        if (rc == PSD_OK) {
            rc = load_copies(load, &command.table, err);
        }
        if (rc == PSD_OK) {
            rc = ps_registry_load_apply(load, &query, &command, err);
        }
    }
    return ps_registry_load_end(&query, rc, err);
}

/* 0, which is no state, for a word that names none. */
static ps_worker_state_t state_of(const char *word)
{
    for (int i = PS_WORKER_EXPECTED; i <= PS_WORKER_LOST; i++) {
        if (strcmp(word, ps_worker_state_name((ps_worker_state_t)i)) == 0) {
            return (ps_worker_state_t)i;
        }
    }
    return (ps_worker_state_t)0;
}

static psd_status_t load_workers(const ps_registry_load_t *load, ps_job_t *job, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_WORKER_ALL);
    size_t capacity = 0;
    psd_status_t rc = PSD_OK;

    ps_query_put_u64(&query, job->id);
    /* One more than there may be is enough to be refused. */
    while (rc == PSD_OK && job->n_workers <= PS_WORKERS_MAX && ps_query_next(&query)) {
        ps_worker_t worker = {0};

        (void)ps_query_u64(&query);
        worker.worker = ps_query_u32(&query);
        worker.state = state_of(ps_query_text(&query, WORD_MAX));
        worker.n_members = ps_query_u32(&query);
        worker.joins = ps_query_u32(&query);
        worker.start = ps_query_u64(&query);
        if (!ps_grow(&job->workers, &capacity, job->n_workers + 1, sizeof *job->workers)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for workers");
        } else {
            job->workers[job->n_workers++] = worker;
        }
    }
    return ps_registry_load_end(&query, rc, err);
}

static psd_status_t load_job_tables(const ps_registry_load_t *load, const ps_job_t *job,
                                    psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_JOB_TABLE_ALL);
    psd_status_t rc = PSD_OK;

    ps_query_put_u64(&query, job->id);
    while (rc == PSD_OK && ps_query_next(&query)) {
        ps_command_t command = {.kind = PS_COMMAND_JOB_TABLE};

        command.job.id = ps_query_u32(&query);
        command.job.version = job->version;
        command.number = ps_query_u64(&query);
        rc = ps_registry_load_apply(load, &query, &command, err);
    }
    return ps_registry_load_end(&query, rc, err);
}

static psd_status_t load_jobs(const ps_registry_load_t *load, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_JOB_ALL);
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && ps_query_next(&query)) {
        PSD_AUTO(ps_command_done)
        ps_command_t command = {.kind = PS_COMMAND_JOB};
        ps_job_t *job = &command.job;

        job->id = ps_query_u32(&query);
        ps_query_copy_text(&query, job->name, sizeof job->name);
        job->max_delay = ps_query_i32(&query);
        job->version = ps_query_u64(&query);
        job->stopped = ps_query_bool(&query);
        command.n_expected = ps_query_u32(&query);
        command.created_unix_ms = ps_query_u64(&query);
        rc = load_workers(load, job, err);
        if (rc == PSD_OK) {
            rc = ps_registry_load_apply(load, &query, &command, err);
        }
        if (rc == PSD_OK) {
            rc = load_job_tables(load, job, err);
        }
        if (rc == PSD_OK) {
            rc = ps_registry_db_load_queues(load, job->id, err);
        }
    }
    return ps_registry_load_end(&query, rc, err);
}

psd_status_t ps_registry_db_load(ps_registry_db_t *self, ps_registry_t *registry, uint64_t now_ms,
                                 psd_error_t *err)
{
    ps_registry_load_t load = {.db = self, .registry = registry, .now_ms = now_ms};
    psd_status_t rc = load_cluster(&load, err);

    if (rc == PSD_OK) {
        rc = load_nodes(&load, err);
    }
    if (rc == PSD_OK) {
        rc = load_tables(&load, err);
    }
    if (rc == PSD_OK) {
        rc = load_jobs(&load, err);
    }
    return psd_error_wrap(err, rc, "%s", sqlite3_db_filename(self->db, "main"));
}
