/* SPDX-License-Identifier: Apache-2.0 */
/* The writes of a running shard: records, snapshots, and the removal of old
 * files. journal_read.c reads them at a start. */
#include "storage/log/journal.h"

#include "base/alloc.h"
#include "storage/log/journal_inner.h"
#include "storage/log/log_dir.h"

#define ZSTD_LEVEL 1

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a journal");
}

/* ---- parts ---- */

static uint64_t key_of(uint32_t table, uint32_t partition)
{
    return (uint64_t)table << 32 | partition;
}

ps_journal_part_t *ps_journal_find(const ps_journal_t *self, uint32_t table, uint32_t partition)
{
    return ps_map_get(&self->parts, key_of(table, partition));
}

static void part_destroy(ps_journal_part_t **part_p)
{
    if (*part_p != NULL) {
        ps_snapshot_close(&(*part_p)->reader);
        ps_free(*part_p);
        *part_p = NULL;
    }
}

ps_journal_part_t *ps_journal_part(ps_journal_t *self, uint32_t table, uint32_t partition)
{
    ps_journal_part_t *part = ps_journal_find(self, table, partition);

    if (part != NULL) {
        return part;
    }
    part = ps_alloc(1, sizeof *part);
    if (part != NULL) {
        part->table = table;
        part->partition = partition;
        if (!ps_map_put(&self->parts, key_of(table, partition), part)) {
            part_destroy(&part);
        }
    }
    return part;
}

void ps_journal_forget(ps_journal_t *self, ps_journal_part_t *part)
{
    self->n_dirty -= part->is_dirty ? 1 : 0;
    (void)ps_map_remove(&self->parts, key_of(part->table, part->partition));
    part_destroy(&part);
}

psd_status_t ps_journal_give_up(ps_journal_t *self, const ps_snapshot_id_t *id, psd_error_t *err)
{
    if (!ps_grow(&self->old, &self->old_capacity, self->n_old + 1, sizeof *self->old)) {
        return no_memory(err);
    }
    self->old[self->n_old++] = *id;
    self->is_untidy = true;
    return PSD_OK;
}

/* The part's snapshot, if there is one, is of no use from here on. */
static psd_status_t give_up_base(ps_journal_t *self, ps_journal_part_t *part, psd_error_t *err)
{
    const ps_snapshot_id_t id = ps_journal_base(part);
    psd_status_t rc = id.lsn == 0 ? PSD_OK : ps_journal_give_up(self, &id, err);

    if (rc == PSD_OK) {
        part->base_lsn = 0;
    }
    return rc;
}

/* ---- open ---- */

psd_status_t ps_journal_open(const ps_journal_args_t *args, ps_journal_t **ret_journal,
                             psd_error_t *err)
{
    PSD_AUTO(ps_journal_close) ps_journal_t *self = ps_alloc(1, sizeof *self);
    const ps_shard_log_args_t log = {.disk = args->disk,
                                     .dir = args->dir,
                                     .cluster = args->cluster,
                                     .node = args->node,
                                     .shard = args->shard,
                                     .segment_bytes = args->segment_bytes,
                                     .damage = args->damage};
    ps_log_dir_t before = {0};
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return no_memory(err);
    }
    self->disk = args->disk;
    self->cluster = args->cluster;
    self->n_shards = args->n_shards;
    self->shard = args->shard;
    self->damage = args->damage;
    self->dir = ps_strdup(args->dir);
    if (self->dir == NULL) {
        return no_memory(err);
    }
    self->inventory = (ps_inventory_t){.disk = self->disk, .dir = self->dir};
    rc = ps_log_dir_look(self->disk, self->dir, &before, err);
    if (rc == PSD_OK) {
        self->was_there = ps_log_dir_is_used(&before);
        rc = ps_shard_log_open(&log, &self->log, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_journal = self;
    self = NULL;
    return PSD_OK;
}

void ps_journal_close(ps_journal_t **self_p)
{
    ps_journal_t *self = *self_p;
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    if (self == NULL) {
        return;
    }
    ps_snapshot_abort(&self->writer);
    while (ps_map_next(&self->parts, &at, &key, &value)) {
        ps_journal_part_t *part = value;

        part_destroy(&part);
    }
    ps_map_done(&self->parts);
    ps_shard_log_close(&self->log);
    ps_inventory_done(&self->inventory);
    ps_free(self->positions);
    ps_free(self->old);
    ps_free(self->dropped);
    ps_free(self->dir);
    ps_free(self);
    *self_p = NULL;
}

/* ---- records ---- */

static bool is_mark(const ps_record_t *record)
{
    return record->kind == PS_RECORD_ANEW || record->kind == PS_RECORD_LEAVE;
}

/* The mark is in the log: a life ends, and maybe another one begins. */
static psd_status_t mark(ps_journal_t *self, ps_journal_part_t *part, const ps_record_t *record,
                         psd_error_t *err)
{
    psd_status_t rc = give_up_base(self, part, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->is_untidy = true;
    if (self->writer != NULL && self->writing.table == part->table &&
        self->writing.partition == part->partition) {
        ps_snapshot_abort(&self->writer);
    }
    part->life = record->seq;
    part->stage = record->lsn > 0 ? PS_JOURNAL_AWAITED : PS_JOURNAL_LOGGED;
    return PSD_OK;
}

psd_status_t ps_journal_append(ps_journal_t *self, const ps_record_t *record, ps_payload_t *payload,
                               psd_error_t *err)
{
    ps_journal_part_t *part = ps_journal_part(self, record->table, record->partition);
    psd_status_t rc = PSD_OK;

    if (part == NULL ||
        !ps_grow(&self->positions, &self->positions_capacity, self->n_dirty + 1,
                 sizeof *self->positions) ||
        !ps_grow(&self->old, &self->old_capacity, self->n_old + 1, sizeof *self->old)) {
        return no_memory(err);
    }
    rc = ps_shard_log_append(self->log, record, payload, err);
    if (rc == PSD_OK && is_mark(record)) {
        rc = mark(self, part, record, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (record->kind == PS_RECORD_LEAVE) {
        ps_journal_forget(self, part);
        return PSD_OK;
    }
    part->appended_lsn = record->lsn;
    self->n_dirty += part->is_dirty ? 0 : 1;
    part->is_dirty = true;
    return PSD_OK;
}

psd_status_t ps_journal_flush(ps_journal_t *self, const ps_position_t **ret_positions,
                              size_t *ret_n, psd_error_t *err)
{
    psd_status_t rc = ps_shard_log_flush(self->log, err);
    size_t n = 0;
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    if (rc != PSD_OK) {
        return rc;
    }
    while (self->n_dirty > 0 && ps_map_next(&self->parts, &at, &key, &value)) {
        ps_journal_part_t *part = value;

        if (part->is_dirty && part->stage != PS_JOURNAL_AWAITED) {
            part->is_dirty = false;
            self->n_dirty--;
            self->positions[n++] =
                (ps_position_t){part->table, part->partition, part->appended_lsn, part->life};
        }
    }
    *ret_positions = self->positions;
    *ret_n = n;
    return PSD_OK;
}

uint64_t ps_journal_log_bytes(const ps_journal_t *self)
{
    return ps_shard_log_bytes(self->log) + ps_shard_log_waiting(self->log);
}

/* ---- what goes ---- */

/* Of those that remove_files removes. */
static bool goes(const void *context, const char *name)
{
    const ps_journal_t *self = context;
    ps_snapshot_id_t id = {0};
    uint32_t table = 0;
    bool is_table = ps_table_file_parse(name, &table);
    bool is_snapshot = !is_table && ps_snapshot_parse(name, &id);
    bool found = false;

    for (size_t i = 0; is_table && !found && i < self->n_dropped; i++) {
        found = self->dropped[i] == table;
    }
    for (size_t i = 0; is_snapshot && !found && i < self->n_old; i++) {
        const ps_snapshot_id_t *old = &self->old[i];

        found = old->table == id.table && old->partition == id.partition && old->life == id.life &&
                old->lsn == id.lsn;
    }
    return found;
}

/* Removes the files that are of no use, and those of dropped tables. */
static psd_status_t remove_files(ps_journal_t *self, psd_error_t *err)
{
    const ps_table_dir_t tables = ps_journal_tables(self);
    const ps_snapshot_dir_t snapshots = ps_journal_snapshots(self);
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && self->n_dropped > 0) {
        rc = ps_table_file_remove(&tables, self->dropped[self->n_dropped - 1], err);
        self->n_dropped -= rc == PSD_OK ? 1 : 0;
    }
    while (rc == PSD_OK && self->n_old > 0) {
        rc = ps_snapshot_remove(&snapshots, &self->old[self->n_old - 1], err);
        self->n_old -= rc == PSD_OK ? 1 : 0;
    }
    return rc;
}

/* Removes the segments that are not needed: a part with a snapshot needs the
 * records after it, any other part all records since its life began. */
static psd_status_t cut(ps_journal_t *self, psd_error_t *err)
{
    uint64_t lowest = UINT64_MAX;
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    while (ps_map_next(&self->parts, &at, &key, &value)) {
        const ps_journal_part_t *part = value;
        uint64_t needed =
            ps_shard_log_segment_with(self->log, part->table, part->partition,
                                      part->stage == PS_JOURNAL_BASED ? part->base_lsn + 1 : 0);

        lowest = needed < lowest ? needed : lowest;
    }
    return ps_shard_log_cut(self->log, lowest, err);
}

/* The marks are on the disk before the files that they replace are removed, and
 * so is an inventory without these files. Snapshots are removed before the
 * marks that make them invalid. */
psd_status_t ps_journal_tidy(ps_journal_t *self, psd_error_t *err)
{
    psd_status_t rc = self->is_untidy ? ps_shard_log_flush(self->log, err) : PSD_OK;

    if (rc == PSD_OK && self->is_untidy) {
        rc = ps_inventory_write(&self->inventory, goes, self, err);
    }
    if (rc == PSD_OK && self->is_untidy) {
        rc = remove_files(self, err);
    }
    if (rc == PSD_OK && self->is_untidy) {
        rc = cut(self, err);
    }
    self->is_untidy = self->is_untidy && rc != PSD_OK;
    return rc;
}

/* ---- tables ---- */

psd_status_t ps_journal_put_table(ps_journal_t *self, uint32_t table, const ps_table_spec_t *spec,
                                  psd_error_t *err)
{
    const ps_table_dir_t tables = ps_journal_tables(self);

    return ps_table_file_write(&tables, table, spec, err);
}

/* One of the table's; NULL: there is none. */
static ps_journal_part_t *any_of(const ps_journal_t *self, uint32_t table)
{
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    while (ps_map_next(&self->parts, &at, &key, &value)) {
        ps_journal_part_t *part = value;

        if (part->table == table) {
            return part;
        }
    }
    return NULL;
}

/* From here on its records and snapshots are not needed. A file whose name
 * could not be stored is removed at the next start. */
psd_status_t ps_journal_drop_table(ps_journal_t *self, uint32_t table, psd_error_t *err)
{
    if (!ps_grow(&self->dropped, &self->dropped_capacity, self->n_dropped + 1,
                 sizeof *self->dropped)) {
        return no_memory(err);
    }
    if (self->writer != NULL && self->writing.table == table) {
        ps_snapshot_abort(&self->writer);
    }
    self->dropped[self->n_dropped++] = table;
    self->is_untidy = true;
    for (ps_journal_part_t *part = any_of(self, table); part != NULL; part = any_of(self, table)) {
        (void)give_up_base(self, part, NULL);
        ps_journal_forget(self, part);
    }
    return ps_journal_tidy(self, err);
}

/* ---- snapshots ---- */

static psd_status_t begin(ps_journal_t *self, const ps_piece_t *piece, psd_error_t *err)
{
    const ps_snapshot_dir_t dir = ps_journal_snapshots(self);

    ps_snapshot_abort(&self->writer);
    self->writing =
        (ps_snapshot_id_t){piece->table, piece->partition, piece->first_lsn, piece->life};
    return ps_snapshot_begin(&dir, &self->writing, ZSTD_LEVEL, &self->writer, err);
}

/* The pieces are complete: the snapshot counts when the log has the records
 * before them. The positions stay dirty: the next flush reports them. */
static psd_status_t commit(ps_journal_t *self, ps_journal_part_t *part, const ps_piece_t *piece,
                           psd_error_t *err)
{
    const ps_snapshot_id_t old = ps_journal_base(part);
    bool has_old = old.lsn != 0 && old.lsn != piece->first_lsn;
    psd_status_t rc = ps_shard_log_flush(self->log, err);

    if (rc == PSD_OK &&
        !ps_grow(&self->old, &self->old_capacity, self->n_old + 1, sizeof *self->old)) {
        rc = no_memory(err);
    }
    if (rc != PSD_OK) {
        ps_snapshot_abort(&self->writer);
        return rc;
    }
    rc = ps_snapshot_commit(&self->writer, piece->lsn, err);
    if (rc != PSD_OK) {
        return rc;
    }
    part->stage = PS_JOURNAL_BASED;
    part->base_lsn = piece->first_lsn;
    part->base_life = part->life;
    self->is_untidy = true;
    return has_old ? ps_journal_give_up(self, &old, err) : PSD_OK;
}

psd_status_t ps_journal_piece(ps_journal_t *self, const ps_piece_t *piece, ps_bytes_t bytes,
                              psd_error_t *err)
{
    ps_journal_part_t *part = ps_journal_find(self, piece->table, piece->partition);
    bool is_alive = part != NULL && part->life == piece->life;
    psd_status_t rc = PSD_OK;

    if (is_alive && piece->is_first) {
        rc = begin(self, piece, err);
    }
    if (rc == PSD_OK && (!is_alive || self->writer == NULL)) {
        return PSD_OK; /* it was abandoned, or the life is over */
    }
    if (rc == PSD_OK) {
        rc = ps_snapshot_add(self->writer, piece->lsn, bytes, err);
    }
    if (rc != PSD_OK) {
        ps_snapshot_abort(&self->writer);
        return rc;
    }
    return piece->is_last ? commit(self, part, piece, err) : PSD_OK;
}
