/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the stored state to an empty registry, as commands. It checks the
 * type of every column and the length of every text; the registry checks the
 * meaning when it applies them. */
#include <string.h>

#include "base/alloc.h"
#include "storage/registry/registry_db_impl.h"

/* What a load goes by. */
typedef struct load {
    ps_registry_db_t *db;
    ps_registry_t *registry;
    uint64_t now_ms;
    uint64_t epoch; /* of the map as it was stored */
} load_t;

/* A row became the command. */
static psd_status_t apply(const load_t *load, const ps_query_t *query, ps_command_t *command,
                          psd_error_t *err)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    char place[PS_PLACE_SIZE];
    psd_status_t rc = PSD_NOMEM;

    command->epoch = load->epoch;
    if (why != NULL) {
        rc = ps_registry_apply(load->registry, command, load->now_ms, why);
    }
    if (rc == PSD_OK || rc == PSD_NOMEM) {
        return rc == PSD_OK ? rc : psd_error_set(err, rc, "no memory");
    }
    ps_query_place(query, place);
    return psd_error_set(err, PSD_DAMAGED, "%s: %s", place, psd_error_text(why));
}

/* A row of any table. */
typedef union row {
    ps_cluster_t cluster;
    ps_node_t node;
    ps_shard_row_t shard;
    ps_table_t table;
    ps_partition_row_t partition;
    ps_copy_row_t copy;
    ps_job_row_t job;
    ps_worker_row_t worker;
    ps_job_table_row_t job_table;
    ps_queue_row_t queue;
    ps_done_row_t done;
    ps_given_row_t given;
    ps_outcome_t outcome;
    ps_setting_t setting;
    ps_principal_t principal;
    ps_rule_row_t rule;
} row_t;

/* Puts a row into `into`, and takes what the row owns. */
typedef psd_status_t take_t(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                            psd_error_t *err);

/* Takes the rows that belong to the one with these keys, in order. */
static psd_status_t each(const load_t *load, ps_registry_row_t table, uint64_t key, uint64_t key_2,
                         take_t *take, void *into, psd_error_t *err)
{
    ps_query_t query = ps_registry_rows_begin(load->db, table, key, key_2);
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && ps_query_next(&query)) {
        row_t row;

        memset(&row, 0, sizeof row);
        rc = ps_registry_rows_read(&query, table, &row, err);
        if (rc == PSD_OK) {
            rc = take(load, &query, &row, into, err);
        } else if (table == PS_ROW_TABLE) {
            ps_table_spec_done(&row.table.spec);
        }
    }
    if (rc == PSD_OK) {
        return ps_query_end(&query, err);
    }
    ps_query_reset(&query); /* the row's error came first */
    return rc;
}

static psd_status_t no_memory(const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for %s", what);
}

static psd_status_t take_cluster(const load_t *load, const ps_query_t *query, row_t *row,
                                 void *into, psd_error_t *err)
{
    ps_command_t command = {.kind = PS_COMMAND_CLUSTER,
                            .unix_ms = row->cluster.created_unix_ms,
                            .cluster = row->cluster};

    *(uint64_t *)into = row->cluster.epoch;
    return apply(load, query, &command, err);
}

static psd_status_t take_shard(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                               psd_error_t *err)
{
    ps_node_t *node = into;
    uint32_t n = node->n_shards;
    ps_route_t *shards = NULL;

    (void)load;
    (void)query;
    if (row->shard.at.shard != n || n >= PS_NODE_SHARDS_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "table shards: number %u of node %s is %u", n,
                             node->name, row->shard.at.shard);
    }
    shards = ps_alloc_resize(node->shards, n + 1, sizeof *shards);
    if (shards == NULL) {
        return no_memory("shards", err);
    }
    node->shards = shards;
    node->shards[node->n_shards++] = row->shard.at;
    return PSD_OK;
}

static psd_status_t take_node(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                              psd_error_t *err)
{
    PSD_AUTO(ps_command_done)
    ps_command_t command = {
        .kind = PS_COMMAND_NODE, .unix_ms = row->node.started_unix_ms, .node = row->node};
    psd_status_t rc = each(load, PS_ROW_SHARD, row->node.id, 0, take_shard, &command.node, err);

    (void)into;
    if (rc == PSD_OK) {
        rc = apply(load, query, &command, err);
    }
    /* It has not been heard since. */
    ps_registry_set_node_up(load->registry, command.node.incarnation, false, load->now_ms);
    return rc;
}

/* A table whose partitions and copies are read. */
typedef struct reading {
    ps_table_t *table;
    uint32_t n; /* partitions so far */
} reading_t;

/* The first partition that is missing, or is one too many. */
static psd_status_t wrong_partition(const reading_t *reading, psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED,
                         "table partitions, row table_id=%u, partition=%u: "
                         "missing or not one of %u",
                         reading->table->id, reading->n, reading->table->spec.n_partitions);
}

static psd_status_t take_partition(const load_t *load, const ps_query_t *query, row_t *row,
                                   void *into, psd_error_t *err)
{
    reading_t *reading = into;

    (void)load;
    (void)query;
    if (row->partition.partition != reading->n || reading->n >= reading->table->spec.n_partitions) {
        return wrong_partition(reading, err);
    }
    reading->table->copies[reading->n++] = row->partition.copies;
    return PSD_OK;
}

static psd_status_t take_copy(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                              psd_error_t *err)
{
    ps_table_t *table = ((reading_t *)into)->table;
    ps_copy_row_t *copy = &row->copy;
    ps_copies_t *copies =
        copy->partition < table->spec.n_partitions ? &table->copies[copy->partition] : NULL;

    (void)query;
    if (copies == NULL || copy->place >= PS_COPIES_MAX || copy->place != copies->n) {
        return psd_error_set(err, PSD_DAMAGED,
                             "table copies, row table_id=%u, partition=%u, "
                             "place=%u: out of order",
                             table->id, copy->partition, copy->place);
    }
    copy->copy.incarnation = ps_registry_incarnation(load->registry, copy->node_id);
    copies->at[copies->n++] = copy->copy;
    return PSD_OK;
}

static psd_status_t take_table(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                               psd_error_t *err)
{
    PSD_AUTO(ps_command_done)
    ps_command_t command = {.kind = PS_COMMAND_TABLE, .table = row->table};
    ps_table_t *table = &command.table;
    reading_t reading = {.table = table};
    psd_status_t rc = PSD_OK;

    (void)into;
    if (table->spec.n_partitions <= PS_TABLE_PARTITIONS_MAX) {
        table->copies = ps_alloc(table->spec.n_partitions, sizeof *table->copies);
        rc = table->copies == NULL ? no_memory("partitions", err) : PSD_OK;
    } else {
        rc = wrong_partition(&reading, err);
    }
    if (rc == PSD_OK) {
        rc = each(load, PS_ROW_PARTITION, table->id, 0, take_partition, &reading, err);
    }
    if (rc == PSD_OK && reading.n != table->spec.n_partitions) {
        rc = wrong_partition(&reading, err);
    }
    if (rc == PSD_OK) {
        rc = each(load, PS_ROW_COPY, table->id, 0, take_copy, &reading, err);
    }
    return rc == PSD_OK ? apply(load, query, &command, err) : rc;
}

/* One more than there may be is enough to be refused. */
static psd_status_t take_worker(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                                psd_error_t *err)
{
    ps_job_t *job = into;
    ps_worker_t *workers = NULL;

    (void)load;
    (void)query;
    if (job->n_workers > PS_WORKERS_MAX) {
        return PSD_OK;
    }
    workers = ps_alloc_resize(job->workers, job->n_workers + 1, sizeof *workers);
    if (workers == NULL) {
        return no_memory("workers", err);
    }
    job->workers = workers;
    job->workers[job->n_workers++] = row->worker.worker;
    return PSD_OK;
}

static psd_status_t take_job_table(const load_t *load, const ps_query_t *query, row_t *row,
                                   void *into, psd_error_t *err)
{
    const ps_job_t *job = into;
    ps_command_t command = {.kind = PS_COMMAND_JOB_TABLE, .number = row->job_table.table_id};

    command.job.id = job->id;
    command.job.version = job->version;
    return apply(load, query, &command, err);
}

/* A slice of a queue, given or done. */
static psd_status_t apply_hold(const load_t *load, const ps_query_t *query,
                               const ps_queue_row_t *queue, ps_work_hold_t *hold, psd_error_t *err)
{
    /* Borrowed for the call: the command is not freed. */
    ps_command_t command = {
        .kind = PS_COMMAND_WORK,
        .work = {.queue = queue->queue, .epoch = queue->is.epoch, .holds = hold, .n_holds = 1}};

    command.job.id = queue->job_id;
    return apply(load, query, &command, err);
}

static psd_status_t take_done(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                              psd_error_t *err)
{
    const ps_queue_row_t *queue = into;
    ps_work_hold_t hold = {
        .kind = PS_WORK_WAS_DONE, .epoch = queue->is.epoch, .slice = row->done.slice};

    return apply_hold(load, query, queue, &hold, err);
}

static psd_status_t take_given(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                               psd_error_t *err)
{
    row->given.hold.kind = PS_WORK_GIVEN;
    return row->given.done ? PSD_OK : apply_hold(load, query, into, &row->given.hold, err);
}

static psd_status_t take_last(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                              psd_error_t *err)
{
    row->given.hold.kind = PS_WORK_WAS_LAST;
    return row->given.done ? apply_hold(load, query, into, &row->given.hold, err) : PSD_OK;
}

static psd_status_t take_queue(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                               psd_error_t *err)
{
    ps_queue_row_t *queue = &row->queue;
    ps_command_t command = {.kind = PS_COMMAND_QUEUE,
                            .work = {.queue = queue->queue,
                                     .n_slices = queue->is.n_slices,
                                     .n_epochs = queue->is.n_epochs,
                                     .epoch = queue->is.epoch}};
    psd_status_t rc = PSD_OK;

    (void)into;
    command.job.id = queue->job_id;
    memcpy(command.name, queue->is.name, sizeof command.name);
    rc = apply(load, query, &command, err);
    if (rc == PSD_OK) {
        rc = each(load, PS_ROW_DONE, queue->job_id, queue->queue, take_done, queue, err);
    }
    /* Assigned slices come first: they make the registry forget done slices of
     * their client. */
    if (rc == PSD_OK) {
        rc = each(load, PS_ROW_GIVEN, queue->job_id, queue->queue, take_given, queue, err);
    }
    return rc == PSD_OK
               ? each(load, PS_ROW_GIVEN, queue->job_id, queue->queue, take_last, queue, err)
               : rc;
}

static psd_status_t take_job(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                             psd_error_t *err)
{
    PSD_AUTO(ps_command_done)
    ps_command_t command = {.kind = PS_COMMAND_JOB,
                            .job = row->job.job,
                            .n_expected = row->job.n_expected,
                            .created_unix_ms = row->job.created_unix_ms,
                            .ended = row->job.ended};
    ps_job_t *job = &command.job;
    psd_status_t rc = each(load, PS_ROW_WORKER, job->id, 0, take_worker, job, err);

    (void)into;
    if (rc == PSD_OK) {
        rc = apply(load, query, &command, err);
    }
    if (rc == PSD_OK) {
        rc = each(load, PS_ROW_JOB_TABLE, job->id, 0, take_job_table, job, err);
    }
    return rc == PSD_OK ? each(load, PS_ROW_QUEUE, job->id, 0, take_queue, NULL, err) : rc;
}

static psd_status_t take_setting(const load_t *load, const ps_query_t *query, row_t *row,
                                 void *into, psd_error_t *err)
{
    ps_command_t command = {.kind = PS_COMMAND_SETTING, .setting = row->setting, .is_set = true};

    (void)into;
    return apply(load, query, &command, err);
}

static psd_status_t take_rule(const load_t *load, const ps_query_t *query, row_t *row, void *into,
                              psd_error_t *err)
{
    ps_principal_t *principal = into;
    const ps_rule_row_t *rule = &row->rule;

    (void)load;
    (void)query;
    if (rule->place != principal->n_rules + 1 || principal->n_rules >= PS_RULES_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "table rules: number %u of principal %s is %u",
                             principal->n_rules + 1, principal->name, rule->place);
    }
    principal->rules[principal->n_rules++] = rule->rule;
    return PSD_OK;
}

static psd_status_t take_principal(const load_t *load, const ps_query_t *query, row_t *row,
                                   void *into, psd_error_t *err)
{
    ps_principal_t *principal = &row->principal;
    /* Borrowed for the call: the command is not freed. */
    ps_command_t command = {
        .kind = PS_COMMAND_PRINCIPAL, .principals = principal, .n_principals = 1};
    psd_status_t rc = each(load, PS_ROW_RULE, principal->id, 0, take_rule, principal, err);

    (void)into;
    return rc == PSD_OK ? apply(load, query, &command, err) : rc;
}

static psd_status_t take_outcome(const load_t *load, const ps_query_t *query, row_t *row,
                                 void *into, psd_error_t *err)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    char place[PS_PLACE_SIZE];
    psd_status_t rc = ps_registry_load_outcome(load->registry, &row->outcome, why);

    (void)into;
    if (rc == PSD_OK || rc == PSD_NOMEM || why == NULL) {
        return rc == PSD_OK ? rc : psd_error_set(err, PSD_NOMEM, "no memory");
    }
    ps_query_place(query, place);
    return psd_error_set(err, PSD_DAMAGED, "%s: %s", place, psd_error_text(why));
}

psd_status_t ps_registry_db_load(ps_registry_db_t *self, ps_registry_t *registry, uint64_t now_ms,
                                 psd_error_t *err)
{
    load_t load = {.db = self, .registry = registry, .now_ms = now_ms};
    psd_status_t rc = each(&load, PS_ROW_CLUSTER, 0, 0, take_cluster, &load.epoch, err);

    if (rc == PSD_OK) {
        rc = each(&load, PS_ROW_SETTING, 0, 0, take_setting, NULL, err);
    }
    if (rc == PSD_OK) {
        rc = each(&load, PS_ROW_PRINCIPAL, 0, 0, take_principal, NULL, err);
    }
    if (rc == PSD_OK) {
        rc = each(&load, PS_ROW_NODE, 0, 0, take_node, NULL, err);
    }
    if (rc == PSD_OK) {
        rc = each(&load, PS_ROW_TABLE, 0, 0, take_table, NULL, err);
    }
    if (rc == PSD_OK) {
        rc = each(&load, PS_ROW_JOB, 0, 0, take_job, NULL, err);
    }
    if (rc == PSD_OK) {
        rc = each(&load, PS_ROW_ANSWER, 0, 0, take_outcome, NULL, err);
    }
    return psd_error_wrap(err, rc, "%s", sqlite3_db_filename(self->db, "main"));
}
