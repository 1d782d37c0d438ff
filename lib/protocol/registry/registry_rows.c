/* SPDX-License-Identifier: Apache-2.0 */
/* Current values of rows. */
#include "protocol/registry/registry_rows.h"

#include <string.h>

#include "protocol/registry/registry_journal.h"

static psd_status_t put(const ps_row_sink_t *sink, ps_registry_row_t row, const void *value,
                        psd_error_t *err)
{
    return sink->put(sink->context, row, value, err);
}

static psd_status_t cut(const ps_row_sink_t *sink, ps_registry_row_t row, const uint64_t *keys,
                        psd_error_t *err)
{
    return sink->cut(sink->context, row, keys, err);
}

static const ps_node_t *node_by_id(const ps_registry_t *self, uint64_t id)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (self->nodes[i].id == id) {
            return &self->nodes[i];
        }
    }
    return NULL;
}

uint64_t ps_registry_incarnation(const ps_registry_t *self, uint32_t node_id)
{
    const ps_node_t *node = node_by_id(self, node_id);

    return node == NULL ? 0 : node->incarnation;
}

static psd_status_t give_cluster(const ps_registry_t *self, const ps_row_sink_t *sink,
                                 psd_error_t *err)
{
    ps_cluster_t row = self->cluster;

    row.epoch = self->epoch;
    return put(sink, PS_ROW_CLUSTER, &row, err);
}

/* A node, and all of its shards. */
static psd_status_t give_node(const ps_registry_t *self, const ps_row_sink_t *sink,
                              const uint64_t *keys, psd_error_t *err)
{
    const ps_node_t *node = node_by_id(self, keys[0]);
    psd_status_t rc = PSD_OK;

    if (node == NULL) {
        return cut(sink, PS_ROW_NODE, keys, err);
    }
    rc = put(sink, PS_ROW_NODE, node, err);
    if (rc == PSD_OK) {
        rc = cut(sink, PS_ROW_SHARD, keys, err);
    }
    for (uint32_t i = 0; i < node->n_shards && rc == PSD_OK; i++) {
        const ps_shard_row_t row = {.node_id = node->id, .at = node->shards[i]};

        rc = put(sink, PS_ROW_SHARD, &row, err);
    }
    return rc;
}

static psd_status_t give_table(const ps_registry_t *self, const ps_row_sink_t *sink,
                               const uint64_t *keys, psd_error_t *err)
{
    const ps_table_t *table = ps_registry_find_table(self, (uint32_t)keys[0]);

    return table == NULL ? cut(sink, PS_ROW_TABLE, keys, err) : put(sink, PS_ROW_TABLE, table, err);
}

/* A partition, and all of its copies. */
static psd_status_t give_partition(const ps_registry_t *self, const ps_row_sink_t *sink,
                                   const uint64_t *keys, psd_error_t *err)
{
    const ps_table_t *table = ps_registry_find_table(self, (uint32_t)keys[0]);
    const ps_copies_t *copies = table == NULL ? NULL : &table->copies[keys[1]];
    ps_partition_row_t row = {.table_id = (uint32_t)keys[0], .partition = (uint32_t)keys[1]};
    psd_status_t rc = PSD_OK;

    if (copies == NULL) {
        return PSD_OK; /* it went with its table */
    }
    row.copies.epoch = copies->epoch;
    row.copies.fenced = copies->fenced;
    rc = put(sink, PS_ROW_PARTITION, &row, err);
    if (rc == PSD_OK) {
        rc = cut(sink, PS_ROW_COPY, keys, err);
    }
    for (uint32_t i = 0; i < copies->n && rc == PSD_OK; i++) {
        const ps_copy_t *copy = &copies->at[i];
        const ps_node_t *node = ps_registry_node_by_incarnation(self, copy->incarnation);
        const ps_copy_row_t of = {.table_id = row.table_id,
                                  .partition = row.partition,
                                  .place = i,
                                  .node_id = node == NULL ? 0 : node->id,
                                  .copy = *copy};

        rc = put(sink, PS_ROW_COPY, &of, err);
    }
    return rc;
}

static psd_status_t give_job(const ps_registry_t *self, const ps_row_sink_t *sink,
                             const uint64_t *keys, psd_error_t *err)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, (uint32_t)keys[0]);
    ps_job_row_t row = {0};

    if (entry == NULL) {
        return cut(sink, PS_ROW_JOB, keys, err);
    }
    row = (ps_job_row_t){.job = entry->job,
                         .n_expected = entry->n_expected,
                         .created_unix_ms = entry->created_unix_ms,
                         .ended = entry->ended};
    return put(sink, PS_ROW_JOB, &row, err);
}

static psd_status_t give_worker(const ps_job_entry_t *entry, const ps_row_sink_t *sink,
                                const uint64_t *keys, psd_error_t *err)
{
    const ps_worker_t *worker = ps_job_worker(&entry->job, (uint32_t)keys[1]);
    ps_worker_row_t row = {.job_id = entry->job.id};

    if (worker == NULL) {
        return PSD_OK; /* workers do not leave the list */
    }
    row.worker = *worker;
    return put(sink, PS_ROW_WORKER, &row, err);
}

static psd_status_t give_job_tables(const ps_job_entry_t *entry, const ps_row_sink_t *sink,
                                    const uint64_t *keys, psd_error_t *err)
{
    psd_status_t rc = cut(sink, PS_ROW_JOB_TABLE, keys, err);

    for (size_t i = 0; i < entry->n_tables && rc == PSD_OK; i++) {
        const ps_job_table_row_t row = {
            .job_id = entry->job.id, .place = (uint32_t)i + 1, .table_id = entry->tables[i]};

        rc = put(sink, PS_ROW_JOB_TABLE, &row, err);
    }
    return rc;
}

static psd_status_t give_queue(const ps_job_entry_t *entry, const ps_row_sink_t *sink,
                               const uint64_t *keys, psd_error_t *err)
{
    const ps_queue_t *queue = ps_job_queue(entry, (uint32_t)keys[1]);
    ps_queue_row_t row = {.job_id = entry->job.id, .queue = (uint32_t)keys[1]};

    if (queue == NULL) {
        return PSD_OK; /* queues go with their job only */
    }
    memcpy(row.is.name, queue->name, sizeof row.is.name);
    row.is.n_slices = queue->n_slices;
    row.is.n_epochs = queue->n_epochs;
    row.is.epoch = queue->epoch;
    return put(sink, PS_ROW_QUEUE, &row, err);
}

static psd_status_t give_done(const ps_job_entry_t *entry, const ps_row_sink_t *sink,
                              const uint64_t *keys, psd_error_t *err)
{
    const ps_done_row_t row = {
        .job_id = entry->job.id, .queue = (uint32_t)keys[1], .slice = (uint32_t)keys[2]};
    const ps_queue_t *queue = ps_job_queue(entry, row.queue);

    if (keys[2] == PS_DONE_ALL) {
        return cut(sink, PS_ROW_DONE, keys, err);
    }
    return queue != NULL && queue->slices[row.slice] == PS_SLICE_DONE
               ? put(sink, PS_ROW_DONE, &row, err)
               : PSD_OK;
}

static psd_status_t give_given(const ps_job_entry_t *entry, const ps_row_sink_t *sink,
                               const uint64_t *keys, psd_error_t *err)
{
    const ps_queue_t *queue = ps_job_queue(entry, (uint32_t)keys[1]);
    const ps_work_hold_t *hold = queue == NULL ? NULL : ps_queue_hold(queue, keys[2], keys[3]);
    ps_given_row_t row = {.job_id = entry->job.id, .queue = (uint32_t)keys[1]};

    if (hold == NULL) {
        return cut(sink, PS_ROW_GIVEN, keys, err);
    }
    row.hold = *hold;
    row.done = hold->kind == PS_WORK_DONE;
    return put(sink, PS_ROW_GIVEN, &row, err);
}

/* A job's dependent rows; none when it was forgotten. */
static psd_status_t give_of_job(const ps_registry_t *self, const ps_row_sink_t *sink,
                                const ps_touch_t *touch, psd_error_t *err)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, (uint32_t)touch->keys[0]);

    if (entry == NULL) {
        return PSD_OK;
    }
    switch ((int)touch->row) {
    case PS_ROW_WORKER:
        return give_worker(entry, sink, touch->keys, err);
    case PS_ROW_JOB_TABLE:
        return give_job_tables(entry, sink, touch->keys, err);
    case PS_ROW_QUEUE:
        return give_queue(entry, sink, touch->keys, err);
    case PS_ROW_DONE:
        return give_done(entry, sink, touch->keys, err);
    default:
        return give_given(entry, sink, touch->keys, err);
    }
}

static psd_status_t give_answer(const ps_registry_t *self, const ps_row_sink_t *sink,
                                const uint64_t *keys, psd_error_t *err)
{
    const ps_outcome_t *outcome = ps_registry_outcome(self, keys[0]);

    return outcome == NULL ? cut(sink, PS_ROW_ANSWER, keys, err)
                           : put(sink, PS_ROW_ANSWER, outcome, err);
}

static psd_status_t give_setting(const ps_registry_t *self, const ps_row_sink_t *sink,
                                 const uint64_t *keys, psd_error_t *err)
{
    for (size_t i = 0; i < self->n_settings; i++) {
        if (self->settings[i].id == keys[0]) {
            return put(sink, PS_ROW_SETTING, &self->settings[i], err);
        }
    }
    return cut(sink, PS_ROW_SETTING, keys, err);
}

/* A principal, and all of its rules. */
static psd_status_t give_principal(const ps_registry_t *self, const ps_row_sink_t *sink,
                                   const uint64_t *keys, psd_error_t *err)
{
    const ps_principal_t *principal = &self->principals[keys[0] - 1];
    psd_status_t rc = put(sink, PS_ROW_PRINCIPAL, principal, err);

    if (rc == PSD_OK) {
        rc = cut(sink, PS_ROW_RULE, keys, err);
    }
    for (uint32_t i = 0; i < principal->n_rules && rc == PSD_OK; i++) {
        const ps_rule_row_t row = {
            .principal_id = principal->id, .place = i + 1, .rule = principal->rules[i]};

        rc = put(sink, PS_ROW_RULE, &row, err);
    }
    return rc;
}

static psd_status_t give(const ps_registry_t *self, const ps_row_sink_t *sink,
                         const ps_touch_t *touch, psd_error_t *err)
{
    switch ((int)touch->row) {
    case PS_ROW_NODE:
        return give_node(self, sink, touch->keys, err);
    case PS_ROW_TABLE:
        return give_table(self, sink, touch->keys, err);
    case PS_ROW_PARTITION:
        return give_partition(self, sink, touch->keys, err);
    case PS_ROW_JOB:
        return give_job(self, sink, touch->keys, err);
    case PS_ROW_ANSWER:
        return give_answer(self, sink, touch->keys, err);
    case PS_ROW_SETTING:
        return give_setting(self, sink, touch->keys, err);
    case PS_ROW_PRINCIPAL:
        return give_principal(self, sink, touch->keys, err);
    default:
        return give_of_job(self, sink, touch, err);
    }
}

psd_status_t ps_registry_rows(const ps_registry_t *self, const ps_row_sink_t *sink,
                              psd_error_t *err)
{
    const struct ps_registry_journal *journal = self->journal;
    psd_status_t rc = give_cluster(self, sink, err);

    for (size_t i = 0; i < journal->n_touches && rc == PSD_OK; i++) {
        rc = give(self, sink, &journal->touches[i], err);
    }
    return rc;
}

/* All that depends on a queue. */
static psd_status_t give_work(const ps_job_entry_t *entry, const ps_row_sink_t *sink,
                              uint32_t number, psd_error_t *err)
{
    const ps_queue_t *queue = ps_job_queue(entry, number);
    uint64_t keys[4] = {entry->job.id, number};
    psd_status_t rc = give_queue(entry, sink, keys, err);

    for (uint32_t i = 0; i < queue->n_slices && rc == PSD_OK; i++) {
        keys[2] = i;
        rc = give_done(entry, sink, keys, err);
    }
    for (size_t i = 0; i < queue->n_holds && rc == PSD_OK; i++) {
        keys[2] = queue->holds[i].session;
        keys[3] = queue->holds[i].ask;
        rc = give_given(entry, sink, keys, err);
    }
    return rc;
}

static psd_status_t give_whole_job(const ps_registry_t *self, const ps_job_entry_t *entry,
                                   const ps_row_sink_t *sink, psd_error_t *err)
{
    uint64_t keys[4] = {entry->job.id};
    psd_status_t rc = give_job(self, sink, keys, err);

    for (size_t i = 0; i < entry->job.n_workers && rc == PSD_OK; i++) {
        keys[1] = entry->job.workers[i].worker;
        rc = give_worker(entry, sink, keys, err);
    }
    if (rc == PSD_OK) {
        rc = give_job_tables(entry, sink, keys, err);
    }
    for (uint32_t i = 1; i <= entry->n_queues && rc == PSD_OK; i++) {
        rc = give_work(entry, sink, i, err);
    }
    return rc;
}

static psd_status_t give_whole_table(const ps_registry_t *self, const ps_table_t *table,
                                     const ps_row_sink_t *sink, psd_error_t *err)
{
    uint64_t keys[4] = {table->id};
    psd_status_t rc = give_table(self, sink, keys, err);

    for (uint32_t i = 0; i < table->spec.n_partitions && rc == PSD_OK; i++) {
        keys[1] = i;
        rc = give_partition(self, sink, keys, err);
    }
    return rc;
}

psd_status_t ps_registry_all_rows(const ps_registry_t *self, const ps_row_sink_t *sink,
                                  psd_error_t *err)
{
    psd_status_t rc = self->has_cluster ? give_cluster(self, sink, err) : PSD_OK;

    for (size_t i = 0; i < self->n_settings && rc == PSD_OK; i++) {
        rc = put(sink, PS_ROW_SETTING, &self->settings[i], err);
    }
    for (size_t i = 0; i < self->n_principals && rc == PSD_OK; i++) {
        const uint64_t keys[4] = {self->principals[i].id};

        rc = give_principal(self, sink, keys, err);
    }
    for (size_t i = 0; i < self->n_nodes && rc == PSD_OK; i++) {
        const uint64_t keys[4] = {self->nodes[i].id};

        rc = give_node(self, sink, keys, err);
    }
    for (size_t i = 0; i < self->n_tables && rc == PSD_OK; i++) {
        rc = give_whole_table(self, &self->tables[i], sink, err);
    }
    for (size_t i = 0; i < self->n_jobs && rc == PSD_OK; i++) {
        rc = give_whole_job(self, &self->jobs[i], sink, err);
    }
    for (uint64_t n = 0; n < PS_OUTCOMES_KEPT && n < self->n_outcomes && rc == PSD_OK; n++) {
        const uint64_t keys[4] = {self->n_outcomes - n};

        rc = give_answer(self, sink, keys, err);
    }
    return rc;
}
