/* SPDX-License-Identifier: Apache-2.0 */
/* Recovers partitions from their snapshots and records. */
#include "protocol/shard/shard_recover.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "protocol/partition/partition_copy.h"
#include "protocol/partition/replay.h"
#include "protocol/shard/shard_state.h"

psd_status_t ps_shard_recover_table(ps_shard_t *self, uint32_t table, const ps_table_spec_t *spec,
                                    psd_error_t *err)
{
    PSD_AUTO(ps_shard_table_destroy)
    ps_local_table_t *fresh = ps_alloc(1, sizeof *fresh);
    psd_status_t rc = PSD_OK;

    if (fresh == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    rc = ps_table_spec_copy(spec, &fresh->spec, err);
    if (rc != PSD_OK) {
        return rc;
    }
    fresh->id = table;
    fresh->was_found = true;
    fresh->routes = ps_alloc(spec->n_partitions, sizeof *fresh->routes);
    fresh->partitions = ps_alloc(spec->n_partitions, sizeof(ps_partition_t *));
    if (fresh->routes == NULL || fresh->partitions == NULL ||
        !ps_map_put(&self->step.tables, table, fresh)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    fresh = NULL;
    return PSD_OK;
}

static ps_partition_t *find(const ps_shard_t *self, uint32_t table, uint32_t partition)
{
    const ps_local_table_t *known = ps_map_get(&self->step.tables, table);

    return known == NULL || partition >= known->spec.n_partitions ? NULL
                                                                  : known->partitions[partition];
}

/* A copy that takes records, until the map says what it is. */
static psd_status_t make(ps_shard_t *self, uint32_t table, uint32_t number, ps_partition_t **ret,
                         psd_error_t *err)
{
    ps_local_table_t *known = ps_map_get(&self->step.tables, table);
    PSD_AUTO(ps_shard_partition_destroy) ps_partition_t *partition = NULL;
    psd_status_t rc = PSD_OK;

    if (known == NULL || number >= known->spec.n_partitions) {
        return psd_error_set(err, PSD_DAMAGED,
                             "there is no partition %" PRIu32 " of table %" PRIu32, number, table);
    }
    rc = ps_partition_new(&known->spec, &known->use, table, number, 0, &partition, err);
    if (rc == PSD_OK) {
        rc = ps_replicas_new(&self->step, 0, 0, &partition->replicas, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    partition->has_log = true;
    partition->replicas->settled = true;
    ps_replicas_set_lead(partition);
    known->partitions[number] = partition;
    *ret = partition;
    partition = NULL;
    return PSD_OK;
}

/* Sets up a step; recovery answers no requests. */
static void begin(ps_shard_t *self, ps_outbox_t *scratch)
{
    self->step.outbox = scratch;
}

static void end(ps_shard_t *self, ps_outbox_t *scratch)
{
    self->step.outbox = NULL;
    ps_outbox_done(scratch);
}

/* Bytes that are wrong in spite of their checksum. */
static psd_status_t as_damage(psd_status_t rc, psd_error_t *err)
{
    return rc == PSD_PROTO ? psd_error_wrap(err, PSD_DAMAGED, "snapshot") : rc;
}

psd_status_t ps_shard_recover_state(ps_shard_t *self, uint32_t table, uint32_t partition,
                                    ps_bytes_t bytes, psd_error_t *err)
{
    ps_outbox_t scratch = {0};
    ps_partition_t *fresh = NULL;
    psd_status_t rc = PSD_OK;

    if (find(self, table, partition) != NULL) {
        return psd_error_set(err, PSD_DAMAGED,
                             "a second state of partition %" PRIu32 " of table %" PRIu32, partition,
                             table);
    }
    rc = make(self, table, partition, &fresh, err);
    if (rc != PSD_OK) {
        return rc;
    }
    begin(self, &scratch);
    rc = as_damage(ps_partition_take_state(&self->step, fresh, bytes, err), err);
    fresh->snapshot_lsn = fresh->lsn;
    end(self, &scratch);
    return rc;
}

psd_status_t ps_shard_recover_rows(ps_shard_t *self, uint32_t table, uint32_t partition,
                                   ps_bytes_t bytes, psd_error_t *err)
{
    ps_outbox_t scratch = {0};
    ps_partition_t *known = find(self, table, partition);
    psd_status_t rc = PSD_OK;

    if (known == NULL || !ps_store_is_partial(known->store)) {
        return psd_error_set(err, PSD_DAMAGED,
                             "rows of partition %" PRIu32 " of table %" PRIu32
                             ", of which there is no state",
                             partition, table);
    }
    begin(self, &scratch);
    rc = as_damage(ps_partition_take_rows(&self->step, known, bytes, false, err), err);
    end(self, &scratch);
    return rc;
}

psd_status_t ps_shard_recover_whole(ps_shard_t *self, uint32_t table, uint32_t partition,
                                    uint64_t last_lsn, psd_error_t *err)
{
    ps_partition_t *known = find(self, table, partition);

    if (known == NULL || !ps_store_is_partial(known->store)) {
        return psd_error_set(err, PSD_DAMAGED,
                             "the end of partition %" PRIu32 " of table %" PRIu32
                             ", of which there is no state",
                             partition, table);
    }
    ps_store_set_partial(known->store, false);
    known->replicas->flushed_lsn = last_lsn; /* looked at by the end */
    return PSD_OK;
}

static psd_status_t replay(ps_shard_t *self, ps_partition_t *partition, const ps_record_t *record,
                           const ps_body_t *body, psd_error_t *err)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;

    if (body->keys.size + body->index.size + body->values.size > 0) {
        payload = ps_payload_copy(body->keys, body->index, body->values);
        if (payload == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a record");
        }
    }
    if (!ps_partition_takes_record(&self->step, partition, record, payload)) {
        return psd_error_set(err, PSD_DAMAGED,
                             "record %" PRIu64 ", a %s of session %" PRIu64
                             ", does not fit partition %" PRIu32 " of table %" PRIu32,
                             record->lsn, ps_record_kind_name(record->kind), record->session,
                             record->partition, record->table);
    }
    if (!ps_partition_replay(&self->step, partition, record, payload)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to replay record %" PRIu64, record->lsn);
    }
    if (record->epoch > partition->epoch) {
        partition->epoch = record->epoch;
    }
    return PSD_OK;
}

psd_status_t ps_shard_recover_record(ps_shard_t *self, const ps_record_t *record,
                                     const ps_body_t *body, psd_error_t *err)
{
    const ps_local_table_t *table = ps_map_get(&self->step.tables, record->table);
    ps_partition_t *partition = find(self, record->table, record->partition);
    ps_outbox_t scratch = {0};
    psd_status_t rc = PSD_OK;

    if (table == NULL) {
        return PSD_OK; /* it was dropped */
    }
    if (partition == NULL) {
        rc = make(self, record->table, record->partition, &partition, err);
    }
    if (rc != PSD_OK || ps_shard_recover_has(self, record)) {
        return rc;
    }
    if (record->lsn != partition->lsn + 1) {
        return psd_error_set(err, PSD_DAMAGED,
                             "records %" PRIu64 " .. %" PRIu64 " of partition %" PRIu32
                             " of table %" PRIu32 " are missing",
                             partition->lsn + 1, record->lsn - 1, record->partition, record->table);
    }
    begin(self, &scratch);
    rc = replay(self, partition, record, body, err);
    end(self, &scratch);
    return rc;
}

bool ps_shard_recover_has(const ps_shard_t *self, const ps_record_t *record)
{
    const ps_partition_t *known = find(self, record->table, record->partition);

    return known != NULL && (record->lsn <= known->lsn || record->epoch < known->lsn_epoch);
}

void ps_shard_recover_drop(ps_shard_t *self, uint32_t table, uint32_t partition)
{
    ps_local_table_t *known = ps_map_get(&self->step.tables, table);
    ps_partition_t *old = find(self, table, partition);

    if (old != NULL) {
        ps_partition_count_rows(&self->step, old, true);
        ps_partition_uncount_open(&self->step, old);
        ps_shard_partition_destroy(&known->partitions[partition]);
    }
}

void ps_shard_recover_life(ps_shard_t *self, uint32_t table, uint32_t partition, uint64_t life)
{
    ps_partition_t *known = find(self, table, partition);

    if (known != NULL) {
        known->life = life;
    }
}

void ps_shard_recover_lives(ps_shard_t *self, uint64_t last)
{
    self->step.n_lives = last;
}

bool ps_shard_recover_is_whole(const ps_shard_t *self, uint32_t table, uint32_t partition)
{
    const ps_partition_t *known = find(self, table, partition);

    return known == NULL ||
           (!ps_store_is_partial(known->store) && known->lsn >= known->replicas->flushed_lsn);
}

bool ps_shard_recover_is_strange(const ps_shard_t *self, const ps_record_t *record)
{
    const ps_partition_t *known = find(self, record->table, record->partition);

    return known != NULL && record->lsn <= known->lsn && record->epoch > known->lsn_epoch;
}

uint32_t ps_shard_recover_n_partitions(const ps_shard_t *self, uint32_t table)
{
    const ps_local_table_t *known = ps_map_get(&self->step.tables, table);

    return known == NULL ? 0 : known->spec.n_partitions;
}

bool ps_shard_recover_knows(const ps_shard_t *self, uint32_t table)
{
    return ps_map_get(&self->step.tables, table) != NULL;
}

psd_status_t ps_shard_recover_tables(const ps_shard_t *self, uint32_t **ret_tables, size_t *ret_n,
                                     psd_error_t *err)
{
    uint32_t *tables = ps_alloc(self->step.tables.count, sizeof *tables);
    size_t n = 0;
    size_t at = 0;
    uint64_t id = 0;
    void *value = NULL;

    if (tables == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for tables");
    }
    while (ps_map_next(&self->step.tables, &at, &id, &value)) {
        tables[n++] = (uint32_t)id;
    }
    *ret_tables = tables;
    *ret_n = n;
    return PSD_OK;
}

uint64_t ps_shard_recover_lsn(const ps_shard_t *self, uint32_t table, uint32_t partition)
{
    const ps_partition_t *known = find(self, table, partition);

    return known == NULL ? 0 : known->lsn;
}

static psd_status_t visit_end(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                              psd_error_t *err)
{
    ps_replicas_t *replicas = partition->replicas;

    (void)arg;
    if (ps_store_is_partial(partition->store) || partition->lsn < replicas->flushed_lsn) {
        return psd_error_set(err, PSD_DAMAGED,
                             "records %" PRIu64 " .. %" PRIu64 " of partition %" PRIu32
                             " of table %" PRIu32 " are missing at the end of the log",
                             partition->lsn + 1, replicas->flushed_lsn, partition->number,
                             partition->table);
    }
    replicas->flushed_lsn = partition->lsn;
    ps_tail_restart(&replicas->tail, partition->lsn, partition->lsn_epoch);
    ps_partition_count_rows(&self->step, partition, false);
    return PSD_OK;
}

psd_status_t ps_shard_recover_end(ps_shard_t *self, psd_error_t *err)
{
    return ps_shard_visit(self, visit_end, NULL, err);
}
