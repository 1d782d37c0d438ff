/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A start: snapshots and log into a shard, in order of lsn.
 *
 * The records of the log lead. Before a record of a partition is replayed, the
 * pieces of its snapshot that were read before that record was made are taken.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "protocol/shard_recover.h"
#include "storage/journal_inner.h"

#define PROGRESS_BYTES (UINT64_C(64) << 20) /* between two */

typedef struct reading {
    ps_journal_t *self;
    ps_shard_t *shard;
    ps_journal_progress_t *progress;
    void *context;
    uint64_t bytes; /* read, about */
    uint64_t told;  /* of them */
    ps_journal_found_t found;
    ps_snapshot_id_t *old; /* owned; snapshots that a later one replaces */
    size_t n_old;
    size_t old_capacity;
} reading_t;

static void
count(reading_t *self, uint64_t bytes)
{
    self->bytes += bytes;
    if (self->progress != NULL && self->bytes - self->told >= PROGRESS_BYTES) {
        self->told = self->bytes;
        self->progress(self->context, self->bytes);
    }
}

/* ---- tables ---- */

static psd_status_t
each_table(void *context,
           uint32_t table,
           const ps_table_spec_t *spec,
           psd_error_t *err)
{
    reading_t *self = context;

    self->found.n_tables++;
    return ps_shard_recover_table(self->shard, table, spec, err);
}

/* ---- snapshots ---- */

static psd_status_t
give_up(reading_t *self, const ps_snapshot_id_t *id, psd_error_t *err)
{
    if (!ps_grow(&self->old, &self->old_capacity, self->n_old + 1,
                 sizeof *self->old)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a journal");
    }
    self->old[self->n_old++] = *id;
    return PSD_OK;
}

/* The newest of each partition counts: it was whole before an older one was
 * to be removed. */
static psd_status_t
each_snapshot(void *context, const ps_snapshot_id_t *id, psd_error_t *err)
{
    reading_t *self = context;
    ps_journal_part_t *part = NULL;
    ps_snapshot_id_t older = *id;
    psd_status_t rc = PSD_OK;

    if (!ps_shard_recover_knows(self->shard, id->table)) {
        return give_up(self, id, err);
    }
    part = ps_journal_part(self->self, id->table, id->partition);
    if (part == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a journal");
    }
    if (part->has_snapshot) {
        older.lsn = id->lsn < part->snapshot_lsn ? id->lsn : part->snapshot_lsn;
        rc = give_up(self, &older, err);
    }
    if (!part->has_snapshot || id->lsn > part->snapshot_lsn) {
        part->snapshot_lsn = id->lsn;
    }
    part->has_snapshot = true;
    return rc;
}

static psd_status_t
name_file(const reading_t *self,
          const ps_journal_part_t *part,
          psd_status_t rc,
          psd_error_t *err)
{
    return rc != PSD_DAMAGED
               ? rc
               : psd_error_wrap(err, rc,
                                "%s/snap-%" PRIu32 "-%" PRIu32 "-%" PRIu64
                                ".rows",
                                self->self->dir, part->table, part->partition,
                                part->snapshot_lsn);
}

/* Looks at the next piece; behind the last one the partition is whole. */
static psd_status_t
look(reading_t *self, ps_journal_part_t *part, psd_error_t *err)
{
    psd_status_t rc = ps_snapshot_next(part->reader, &part->piece, err);

    if (rc != PSD_OK) {
        return rc;
    }
    count(self, part->piece.bytes.size);
    self->found.snapshot_bytes += part->piece.bytes.size;
    if (part->piece.is_end) {
        uint64_t last_lsn = part->piece.lsn;

        ps_snapshot_close(&part->reader);
        return name_file(self, part,
                         ps_shard_recover_whole(self->shard, part->table,
                                                part->partition, last_lsn, err),
                         err);
    }
    return PSD_OK;
}

/* Takes the pieces that were read before record `lsn` was made. */
static psd_status_t
take_pieces(reading_t *self,
            ps_journal_part_t *part,
            uint64_t lsn,
            psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && part->reader != NULL && part->piece.lsn < lsn) {
        rc = name_file(self, part,
                       ps_shard_recover_rows(self->shard, part->table,
                                             part->partition, part->piece.bytes,
                                             err),
                       err);
        if (rc == PSD_OK) {
            rc = look(self, part, err);
        }
    }
    return rc;
}

static psd_status_t
open_snapshot(reading_t *self, ps_journal_part_t *part, psd_error_t *err)
{
    const ps_snapshot_dir_t dir = ps_journal_snapshots(self->self);
    const ps_snapshot_id_t id = {part->table, part->partition,
                                 part->snapshot_lsn};
    psd_status_t rc = ps_snapshot_open(&dir, &id, &part->reader, err);

    if (rc == PSD_OK) {
        rc = ps_snapshot_next(part->reader, &part->piece, err);
    }
    if (rc == PSD_OK) {
        rc = name_file(self, part,
                       ps_shard_recover_state(self->shard, part->table,
                                              part->partition,
                                              part->piece.bytes, err),
                       err);
    }
    if (rc == PSD_OK && ps_shard_recover_lsn(self->shard, part->table,
                                             part->partition) != id.lsn) {
        rc = name_file(self, part,
                       psd_error_set(err, PSD_DAMAGED,
                                     "its state is that behind another record"),
                       err);
    }
    if (rc == PSD_OK) {
        self->found.n_snapshots++;
        rc = look(self, part, err);
    }
    return rc;
}

/* Does it with every part that has a snapshot. */
static psd_status_t
for_snapshots(reading_t *self,
              psd_status_t (*each)(reading_t *self,
                                   ps_journal_part_t *part,
                                   psd_error_t *err),
              psd_error_t *err)
{
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && ps_map_next(&self->self->parts, &at, &key, &value)) {
        ps_journal_part_t *part = value;

        if (part->has_snapshot) {
            rc = each(self, part, err);
        }
    }
    return rc;
}

/* ---- records ---- */

/* The copy threw away what it had, and began with a state behind record->lsn,
 * or with nothing. A snapshot that was thrown away for an earlier beginning may
 * be the one of this life. If what was read is of an earlier life, the map does
 * not call the copy whole: there was no snapshot of this life. */
static psd_status_t
begin_anew(reading_t *self,
           ps_journal_part_t *part,
           const ps_record_t *record,
           psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    part->is_passed_over = false;
    if (ps_shard_recover_anew(self->shard, record)) {
        return PSD_OK;
    }
    ps_snapshot_close(&part->reader);
    if (record->lsn > 0 && part->has_snapshot) {
        rc = open_snapshot(self, part, err);
        if (rc != PSD_OK || ps_shard_recover_anew(self->shard, record)) {
            part->needs_base = false;
            part->is_stale = false;
            return rc;
        }
        ps_snapshot_close(&part->reader);
    }
    part->is_passed_over = record->lsn > 0;
    part->needs_base = record->lsn > 0;
    part->is_stale = true;
    return PSD_OK;
}

static psd_status_t
each_record(void *context,
            const ps_record_t *record,
            const ps_body_t *body,
            psd_error_t *err)
{
    reading_t *self = context;
    ps_journal_part_t *part = NULL;
    psd_status_t rc = PSD_OK;

    count(self, PS_RECORD_HEAD + body->values.size);
    if (!ps_shard_recover_knows(self->shard, record->table)) {
        return PSD_OK; /* the table was dropped */
    }
    part = ps_journal_part(self->self, record->table, record->partition);
    if (part == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a journal");
    }
    if (record->kind == PS_RECORD_ANEW) {
        return begin_anew(self, part, record, err);
    }
    if (part->is_passed_over || ps_shard_recover_has(self->shard, record)) {
        return PSD_OK;
    }
    rc = take_pieces(self, part, record->lsn, err);
    if (rc == PSD_OK) {
        rc = ps_shard_recover_record(self->shard, record, body, err);
    }
    part->appended_lsn = record->lsn;
    return rc == PSD_DAMAGED ? psd_error_wrap(err, rc, "%s", self->self->dir)
                             : rc;
}

static psd_status_t
take_rest(reading_t *self, ps_journal_part_t *part, psd_error_t *err)
{
    uint64_t lsn =
        ps_shard_recover_lsn(self->shard, part->table, part->partition);
    psd_status_t rc = take_pieces(self, part, lsn + 1, err);

    if (rc == PSD_OK && part->reader != NULL) {
        rc = psd_error_set(err, PSD_DAMAGED,
                           "%s: records %" PRIu64 " .. %" PRIu64
                           " of partition %" PRIu32 " of table %" PRIu32
                           " are missing at the end of the log",
                           self->self->dir, lsn + 1, part->piece.lsn,
                           part->partition, part->table);
    }
    return rc;
}

/* ---- all of it ---- */

static psd_status_t
remove_old(reading_t *self, psd_error_t *err)
{
    const ps_snapshot_dir_t dir = ps_journal_snapshots(self->self);
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < self->n_old; i++) {
        rc = ps_snapshot_remove(&dir, &self->old[i], err);
    }
    return rc;
}

static psd_status_t
read_all(reading_t *self, psd_error_t *err)
{
    const ps_table_dir_t tables = ps_journal_tables(self->self);
    const ps_snapshot_dir_t snapshots = ps_journal_snapshots(self->self);
    psd_status_t rc = ps_table_file_list(&tables, each_table, self, err);

    if (rc == PSD_OK) {
        rc = ps_snapshot_list(&snapshots, each_snapshot, self, err);
    }
    if (rc == PSD_OK) {
        rc = for_snapshots(self, open_snapshot, err);
    }
    if (rc == PSD_OK) {
        rc = ps_shard_log_read(self->self->log, each_record, self,
                               &self->found.log, err);
    }
    if (rc == PSD_OK) {
        rc = for_snapshots(self, take_rest, err);
    }
    if (rc == PSD_OK) {
        rc = ps_shard_recover_end(self->shard, err);
    }
    return rc == PSD_OK ? remove_old(self, err) : rc;
}

psd_status_t
ps_journal_recover(ps_journal_t *self,
                   ps_shard_t *shard,
                   ps_journal_progress_t *progress,
                   void *context,
                   ps_journal_found_t *ret_found,
                   psd_error_t *err)
{
    reading_t reading = {.self = self,
                         .shard = shard,
                         .progress = progress,
                         .context = context,
                         .found.was_there = self->was_there};
    psd_status_t rc = read_all(&reading, err);

    ps_free(reading.old);
    if (rc == PSD_OK) {
        *ret_found = reading.found;
    }
    return rc;
}
