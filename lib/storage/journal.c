/* SPDX-License-Identifier: Apache-2.0 */
/* What a running shard writes: records, snapshots, and what goes then.
 * journal_read.c reads it at a start. */
#include "storage/journal.h"

#include <string.h>

#include "base/alloc.h"
#include "storage/journal_inner.h"

#define ZSTD_LEVEL 1

static psd_status_t
no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a journal");
}

/* ---- parts ---- */

static uint64_t
key_of(uint32_t table, uint32_t partition)
{
    return (uint64_t)table << 32 | partition;
}

ps_journal_part_t *
ps_journal_find(const ps_journal_t *self, uint32_t table, uint32_t partition)
{
    return ps_map_get(&self->parts, key_of(table, partition));
}

static void
part_destroy(ps_journal_part_t **part_p)
{
    if (*part_p != NULL) {
        ps_snapshot_close(&(*part_p)->reader);
        ps_free(*part_p);
        *part_p = NULL;
    }
}

ps_journal_part_t *
ps_journal_part(ps_journal_t *self, uint32_t table, uint32_t partition)
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

/* ---- open ---- */

static psd_status_t
take_name(void *context, const char *name, psd_error_t *err)
{
    bool *any = context;

    (void)err;
    *any = *any || strcmp(name, "log-flushed") == 0;
    return PSD_OK;
}

psd_status_t
ps_journal_open(const ps_journal_args_t *args,
                ps_journal_t **ret_journal,
                psd_error_t *err)
{
    PSD_AUTO(ps_journal_close) ps_journal_t *self = ps_alloc(1, sizeof *self);
    const ps_shard_log_args_t log = {.disk = args->disk,
                                     .dir = args->dir,
                                     .cluster = args->cluster,
                                     .node = args->node,
                                     .shard = args->shard,
                                     .segment_bytes = args->segment_bytes};
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return no_memory(err);
    }
    self->disk = args->disk;
    self->cluster = args->cluster;
    self->n_shards = args->n_shards;
    self->dir = ps_strdup(args->dir);
    if (self->dir == NULL) {
        return no_memory(err);
    }
    rc = self->disk->make_dir(self->disk, self->dir, err);
    if (rc == PSD_OK) {
        rc = self->disk->list(self->disk, self->dir, take_name,
                              &self->was_there, err);
    }
    if (rc == PSD_OK) {
        rc = ps_shard_log_open(&log, &self->log, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_journal = self;
    self = NULL;
    return PSD_OK;
}

void
ps_journal_close(ps_journal_t **self_p)
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
    ps_free(self->positions);
    ps_free(self->dir);
    ps_free(self);
    *self_p = NULL;
}

/* ---- records ---- */

psd_status_t
ps_journal_append(ps_journal_t *self,
                  const ps_record_t *record,
                  ps_payload_t *payload,
                  psd_error_t *err)
{
    ps_journal_part_t *part =
        ps_journal_part(self, record->table, record->partition);
    psd_status_t rc = PSD_OK;

    if (part == NULL || !ps_grow(&self->positions, &self->positions_capacity,
                                 self->n_dirty + 1, sizeof *self->positions)) {
        return no_memory(err);
    }
    rc = ps_shard_log_append(self->log, record, payload, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (record->kind == PS_RECORD_ANEW) {
        part->life = record->seq;
        part->needs_base = record->lsn > 0;
        part->is_stale = true;
    }
    part->appended_lsn = record->lsn;
    self->n_dirty += part->is_dirty ? 0 : 1;
    part->is_dirty = true;
    return PSD_OK;
}

psd_status_t
ps_journal_flush(ps_journal_t *self,
                 const ps_position_t **ret_positions,
                 size_t *ret_n,
                 psd_error_t *err)
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

        if (part->is_dirty && !part->needs_base) {
            part->is_dirty = false;
            self->n_dirty--;
            self->positions[n++] = (ps_position_t){
                part->table, part->partition, part->appended_lsn, part->life};
        }
    }
    *ret_positions = self->positions;
    *ret_n = n;
    return PSD_OK;
}

uint64_t
ps_journal_log_bytes(const ps_journal_t *self)
{
    return ps_shard_log_bytes(self->log) + ps_shard_log_waiting(self->log);
}

/* The first record that a start needs of the part: all that are here, while no
 * snapshot of its life counts. */
static uint64_t
needed_lsn(const ps_journal_part_t *part)
{
    bool counts = part->has_snapshot && !part->is_stale && !part->needs_base;

    return counts ? part->snapshot_lsn + 1 : 0;
}

/* Removes the segments that nobody needs. */
static psd_status_t
cut(ps_journal_t *self, psd_error_t *err)
{
    uint64_t lowest = UINT64_MAX;
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    while (ps_map_next(&self->parts, &at, &key, &value)) {
        const ps_journal_part_t *part = value;
        uint64_t needed = ps_shard_log_segment_with(
            self->log, part->table, part->partition, needed_lsn(part));

        lowest = needed < lowest ? needed : lowest;
    }
    return ps_shard_log_cut(self->log, lowest, err);
}

/* ---- tables ---- */

psd_status_t
ps_journal_put_table(ps_journal_t *self,
                     uint32_t table,
                     const ps_table_spec_t *spec,
                     psd_error_t *err)
{
    const ps_table_dir_t tables = ps_journal_tables(self);

    return ps_table_file_write(&tables, table, spec, err);
}

static psd_status_t
drop_part(ps_journal_t *self, ps_journal_part_t *part, psd_error_t *err)
{
    const ps_snapshot_dir_t dir = ps_journal_snapshots(self);
    const ps_snapshot_id_t id = {part->table, part->partition,
                                 part->snapshot_lsn};
    psd_status_t rc =
        part->has_snapshot ? ps_snapshot_remove(&dir, &id, err) : PSD_OK;

    if (rc == PSD_OK) {
        self->n_dirty -= part->is_dirty ? 1 : 0;
        (void)ps_map_remove(&self->parts, key_of(part->table, part->partition));
        part_destroy(&part);
    }
    return rc;
}

/* One of the table's; NULL: there is none. */
static ps_journal_part_t *
any_of(const ps_journal_t *self, uint32_t table)
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

psd_status_t
ps_journal_drop_table(ps_journal_t *self, uint32_t table, psd_error_t *err)
{
    const ps_table_dir_t tables = ps_journal_tables(self);
    psd_status_t rc = PSD_OK;

    if (self->writer != NULL && self->writing.table == table) {
        ps_snapshot_abort(&self->writer);
    }
    /* From here on its records and snapshots are nobody's. */
    rc = ps_table_file_remove(&tables, table, err);
    for (ps_journal_part_t *part = any_of(self, table);
         rc == PSD_OK && part != NULL; part = any_of(self, table)) {
        rc = drop_part(self, part, err);
    }
    return rc == PSD_OK ? cut(self, err) : rc;
}

/* ---- snapshots ---- */

static psd_status_t
begin(ps_journal_t *self, const ps_piece_t *piece, psd_error_t *err)
{
    const ps_snapshot_dir_t dir = ps_journal_snapshots(self);

    ps_snapshot_abort(&self->writer);
    self->writing =
        (ps_snapshot_id_t){piece->table, piece->partition, piece->first_lsn};
    return ps_snapshot_begin(&dir, &self->writing, ZSTD_LEVEL, &self->writer,
                             err);
}

/* A snapshot of an earlier life of the copy goes before there is a newer one,
 * behind whose lsn it may be. From the ANEW record on, it is of no use. */
static psd_status_t
remove_stale(ps_journal_t *self, ps_journal_part_t *part, psd_error_t *err)
{
    const ps_snapshot_dir_t dir = ps_journal_snapshots(self);
    const ps_snapshot_id_t id = {part->table, part->partition,
                                 part->snapshot_lsn};
    psd_status_t rc = PSD_OK;

    if (part->is_stale && part->has_snapshot) {
        rc = ps_snapshot_remove(&dir, &id, err);
        if (rc == PSD_OK) {
            rc = self->disk->flush_dir(self->disk, self->dir, err);
        }
    }
    if (rc == PSD_OK && part->is_stale) {
        part->is_stale = false;
        part->has_snapshot = false;
    }
    return rc;
}

/* The pieces are all there: it counts, when the log has what they were read
 * behind. The positions stay dirty: the next flush tells of them. */
static psd_status_t
commit(ps_journal_t *self, const ps_piece_t *piece, psd_error_t *err)
{
    const ps_snapshot_dir_t dir = ps_journal_snapshots(self);
    ps_journal_part_t *part =
        ps_journal_part(self, piece->table, piece->partition);
    ps_snapshot_id_t old = self->writing;
    bool has_old = false;
    psd_status_t rc = part == NULL ? no_memory(err) : PSD_OK;

    if (rc == PSD_OK) {
        rc = ps_shard_log_flush(self->log, err);
    }
    if (rc == PSD_OK) {
        rc = remove_stale(self, part, err);
    }
    if (rc != PSD_OK) {
        ps_snapshot_abort(&self->writer);
        return rc;
    }
    rc = ps_snapshot_commit(&self->writer, piece->lsn, err);
    if (rc != PSD_OK) {
        return rc;
    }
    has_old = part->has_snapshot && part->snapshot_lsn != piece->first_lsn;
    old.lsn = part->snapshot_lsn;
    part->has_snapshot = true;
    part->snapshot_lsn = piece->first_lsn;
    part->needs_base = false;
    if (has_old) {
        rc = ps_snapshot_remove(&dir, &old, err);
    }
    return rc == PSD_OK ? cut(self, err) : rc;
}

psd_status_t
ps_journal_piece(ps_journal_t *self,
                 const ps_piece_t *piece,
                 ps_bytes_t bytes,
                 psd_error_t *err)
{
    const ps_journal_part_t *part =
        ps_journal_find(self, piece->table, piece->partition);
    psd_status_t rc = piece->is_first ? begin(self, piece, err) : PSD_OK;

    if (part != NULL && part->life != piece->life) {
        ps_snapshot_abort(&self->writer); /* it began anew meanwhile */
    }
    if (rc == PSD_OK && self->writer == NULL) {
        return PSD_OK; /* it was given up */
    }
    if (rc == PSD_OK) {
        rc = ps_snapshot_add(self->writer, piece->lsn, bytes, err);
    }
    if (rc != PSD_OK) {
        ps_snapshot_abort(&self->writer);
        return rc;
    }
    return piece->is_last ? commit(self, piece, err) : PSD_OK;
}
