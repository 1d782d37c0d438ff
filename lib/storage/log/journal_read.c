/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A start: snapshots and log into a shard, in order of lsn.
 *
 * The order is that of the log's records. Before it replays a record of a
 * partition, it takes the snapshot pieces that were read before that record was
 * made.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "protocol/shard/shard_recover.h"
#include "storage/log/journal_inner.h"

#define PROGRESS_BYTES (UINT64_C(64) << 20) /* between two */

typedef struct reading {
    ps_journal_t *self;
    ps_shard_t *shard;
    ps_journal_progress_t *progress;
    void *context;
    uint64_t bytes; /* read, about */
    uint64_t told;  /* of them */
    ps_journal_found_t found;
    uint64_t max_life; /* of all that there were */
} reading_t;

static void count(reading_t *self, uint64_t bytes)
{
    self->bytes += bytes;
    if (self->progress != NULL && self->bytes - self->told >= PROGRESS_BYTES) {
        self->told = self->bytes;
        self->progress(self->context, self->bytes);
    }
}

/* ---- tables ---- */

static psd_status_t each_table(void *context, uint32_t table, const ps_table_spec_t *spec,
                               psd_error_t *err)
{
    reading_t *self = context;

    self->found.n_tables++;
    return ps_shard_recover_table(self->shard, table, spec, err);
}

static psd_status_t damaged_table(void *context, uint32_t table, const char *path, psd_error_t *err)
{
    reading_t *self = context;

    return ps_journal_pass_table(self->self, table, path, err);
}

/* ---- snapshots ---- */

static void see_life(reading_t *self, uint64_t life)
{
    self->max_life = life > self->max_life ? life : self->max_life;
}

/* The newest snapshot of each partition counts: it was complete before an older
 * one could be removed. */
static psd_status_t each_snapshot(void *context, const ps_snapshot_id_t *id, psd_error_t *err)
{
    reading_t *self = context;
    ps_journal_part_t *part = NULL;
    ps_snapshot_id_t older = *id;

    see_life(self, id->life);
    if (!ps_shard_recover_knows(self->shard, id->table)) {
        return ps_journal_give_up(self->self, id, err);
    }
    part = ps_journal_part(self->self, id->table, id->partition);
    if (part == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a journal");
    }
    if (part->base_lsn == 0 || id->life > part->base_life ||
        (id->life == part->base_life && id->lsn > part->base_lsn)) {
        older = ps_journal_base(part);
        part->base_life = id->life;
        part->base_lsn = id->lsn;
        part->life = id->life;
        part->stage = PS_JOURNAL_BASED;
    }
    return older.lsn == 0 ? PSD_OK : ps_journal_give_up(self->self, &older, err);
}

static psd_status_t name_file(const reading_t *self, const ps_journal_part_t *part, psd_status_t rc,
                              psd_error_t *err)
{
    return rc != PSD_DAMAGED
               ? rc
               : psd_error_wrap(err, rc,
                                "%s/snap-%" PRIu32 "-%" PRIu32 "-%" PRIu64 "-%" PRIu64 ".rows",
                                self->self->dir, part->table, part->partition, part->base_life,
                                part->base_lsn);
}

/* Looks at the next piece; after the last one the partition is complete. */
static psd_status_t look(reading_t *self, ps_journal_part_t *part, psd_error_t *err)
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
        return name_file(
            self, part,
            ps_shard_recover_whole(self->shard, part->table, part->partition, last_lsn, err), err);
    }
    return PSD_OK;
}

/* Takes the pieces that were read before record `lsn` was made. */
static psd_status_t take_pieces(reading_t *self, ps_journal_part_t *part, uint64_t lsn,
                                psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && part->reader != NULL && part->piece.lsn < lsn) {
        rc = name_file(self, part,
                       ps_shard_recover_rows(self->shard, part->table, part->partition,
                                             part->piece.bytes, err),
                       err);
        if (rc == PSD_OK) {
            rc = look(self, part, err);
        }
    }
    return rc;
}

static psd_status_t open_snapshot(reading_t *self, ps_journal_part_t *part, psd_error_t *err)
{
    const ps_snapshot_dir_t dir = ps_journal_snapshots(self->self);
    const ps_snapshot_id_t id = ps_journal_base(part);
    psd_status_t rc = ps_snapshot_open(&dir, &id, &part->reader, err);

    if (rc == PSD_OK) {
        rc = ps_snapshot_next(part->reader, &part->piece, err);
    }
    if (rc == PSD_OK) {
        rc = name_file(self, part,
                       ps_shard_recover_state(self->shard, part->table, part->partition,
                                              part->piece.bytes, err),
                       err);
    }
    if (rc == PSD_OK && ps_shard_recover_lsn(self->shard, part->table, part->partition) != id.lsn) {
        rc = name_file(self, part,
                       psd_error_set(err, PSD_DAMAGED, "its state is that after another record"),
                       err);
    }
    if (rc == PSD_OK) {
        rc = look(self, part, err);
    }
    return rc;
}

static psd_status_t open_first(reading_t *self, ps_journal_part_t *part, psd_error_t *err)
{
    return ps_journal_pass_snapshot(self->self, self->shard, part, open_snapshot(self, part, err),
                                    err);
}

/* Does it with every part. */
static psd_status_t for_parts(reading_t *self,
                              psd_status_t (*each)(reading_t *self, ps_journal_part_t *part,
                                                   psd_error_t *err),
                              psd_error_t *err)
{
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && ps_map_next(&self->self->parts, &at, &key, &value)) {
        rc = each(self, value, err);
    }
    return rc;
}

/* ---- records ---- */

static uint64_t lsn_of(const reading_t *self, const ps_journal_part_t *part)
{
    return ps_shard_recover_lsn(self->shard, part->table, part->partition);
}

/* What was read of the part until now is of a life that is over. */
static void throw_away(reading_t *self, ps_journal_part_t *part, ps_journal_stage_t stage)
{
    ps_snapshot_close(&part->reader);
    ps_shard_recover_drop(self->shard, part->table, part->partition);
    part->stage = stage;
}

/* What there is of the life that ANEW begins, without a snapshot. */
static ps_journal_stage_t stage_without_base(const ps_journal_part_t *part, const ps_record_t *anew)
{
    if (anew->lsn == 0) {
        return PS_JOURNAL_LOGGED;
    }
    return part->lost_life == anew->seq ? PS_JOURNAL_LOST : PS_JOURNAL_AWAITED;
}

/* One life ends, and with ANEW another one begins: with its snapshot, if there
 * is one; empty, if the log has all of it. Otherwise the life leads to nothing,
 * and the mark stays until another mark ends it. A snapshot of a later life
 * stays for that life. */
static psd_status_t take_mark(reading_t *self, ps_journal_part_t *part, const ps_record_t *record,
                              psd_error_t *err)
{
    bool begins = record->kind == PS_RECORD_ANEW;
    const ps_snapshot_id_t base = ps_journal_base(part);
    psd_status_t rc = PSD_OK;

    see_life(self, record->seq);
    throw_away(self, part, PS_JOURNAL_OVER);
    part->life = record->seq;
    if (base.lsn > 0 && begins && base.life == part->life) {
        part->stage = PS_JOURNAL_BASED;
        return open_first(self, part, err);
    }
    if (base.lsn > 0 && base.life <= part->life) {
        part->base_lsn = 0;
        rc = ps_journal_give_up(self->self, &base, err);
    }
    if (begins && part->base_lsn == 0) {
        part->stage = stage_without_base(part, record);
        part->lost_lsn = 0;
    }
    return rc;
}

/* Its records lead to nothing. */
static bool is_passed_over(const ps_journal_part_t *part)
{
    return part->stage == PS_JOURNAL_AWAITED || part->stage >= PS_JOURNAL_OVER;
}

static psd_status_t take_record(reading_t *self, ps_journal_part_t *part, const ps_record_t *record,
                                const ps_body_t *body, psd_error_t *err)
{
    psd_status_t rc = ps_journal_pass_snapshot(self->self, self->shard, part,
                                               take_pieces(self, part, record->lsn, err), err);

    part->appended_lsn = record->lsn;
    if (rc != PSD_OK || part->stage == PS_JOURNAL_LOST) {
        return rc;
    }
    rc = ps_shard_recover_record(self->shard, record, body, err);
    if (rc == PSD_DAMAGED) {
        rc = psd_error_wrap(err, rc, "%s", self->self->dir);
    }
    return ps_journal_pass_records(self->self, self->shard, part, rc, err);
}

static psd_status_t each_record(void *context, const ps_record_t *record, const ps_body_t *body,
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
    if (record->kind == PS_RECORD_ANEW || record->kind == PS_RECORD_LEAVE) {
        rc = take_mark(self, part, record, err);
        return rc == PSD_OK ? ps_journal_see_record(self->self, self->shard, part, record, err)
                            : rc;
    }
    rc = ps_journal_see_record(self->self, self->shard, part, record, err);
    if (rc != PSD_OK || is_passed_over(part) || ps_shard_recover_has(self->shard, record)) {
        return rc;
    }
    if (record->lsn != lsn_of(self, part) + 1) {
        part->lost_lsn = lsn_of(self, part) + 1;
        part->appended_lsn = record->lsn;
        throw_away(self, part, PS_JOURNAL_LOST);
        return PSD_OK;
    }
    return take_record(self, part, record, body, err);
}

static psd_status_t missing(const reading_t *self, const ps_journal_part_t *part, uint64_t first,
                            uint64_t last, const char *where, psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED,
                         "%s: records %" PRIu64 " .. %" PRIu64 " of partition %" PRIu32
                         " of table %" PRIu32 " are missing%s",
                         self->self->dir, first, last, part->partition, part->table, where);
}

static psd_status_t check_rest(reading_t *self, ps_journal_part_t *part, psd_error_t *err)
{
    if (part->stage == PS_JOURNAL_LOST) {
        return part->lost_lsn == 0 /* that was noted already */
                   ? PSD_OK
                   : missing(self, part, part->lost_lsn, part->appended_lsn - 1, "", err);
    }
    if (part->stage == PS_JOURNAL_OVER && part->base_lsn > 0) {
        return name_file(self, part,
                         psd_error_set(err, PSD_DAMAGED,
                                       "the log does not have the beginning of "
                                       "life %" PRIu64,
                                       part->base_life),
                         err);
    }
    return part->reader == NULL ? PSD_OK
                                : missing(self, part, lsn_of(self, part) + 1, part->piece.lsn,
                                          " at the end of the log", err);
}

/* The log is at its end: so are the pieces of the part. */
static psd_status_t take_rest(reading_t *self, ps_journal_part_t *part, psd_error_t *err)
{
    uint64_t lsn = lsn_of(self, part);
    psd_status_t rc = ps_journal_pass_snapshot(self->self, self->shard, part,
                                               take_pieces(self, part, lsn + 1, err), err);

    if (rc == PSD_OK) {
        rc = ps_journal_pass_records(self->self, self->shard, part, check_rest(self, part, err),
                                     err);
    }
    if (rc == PSD_OK && part->stage != PS_JOURNAL_LOST) {
        self->found.n_snapshots += part->stage == PS_JOURNAL_BASED ? 1 : 0;
        ps_shard_recover_life(self->shard, part->table, part->partition, part->life);
    }
    return rc;
}

/* ---- all of it ---- */

static psd_status_t each_missing(void *context, const char *name, psd_error_t *err)
{
    reading_t *self = context;
    ps_snapshot_id_t id = {0};

    if (ps_snapshot_parse(name, &id)) {
        see_life(self, id.life);
    }
    return ps_journal_pass_missing(self->self, self->shard, name, err);
}

/* An inventory that is damaged costs nothing: all else may be there. */
static psd_status_t check_inventory(reading_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_inventory_check(&self->self->inventory, each_missing, self, err);

    return ps_damage_pass(self->self->damage, rc, NULL, err);
}

/* Lives that are over are not needed any more. */
static void forget_over(ps_journal_t *self)
{
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    while (ps_map_next(&self->parts, &at, &key, &value)) {
        ps_journal_part_t *part = value;

        if (part->stage == PS_JOURNAL_OVER) {
            ps_journal_forget(self, part);
            at = 0; /* the others may lie elsewhere now */
        }
    }
}

static psd_status_t read_all(reading_t *self, psd_error_t *err)
{
    const ps_table_dir_t tables = ps_journal_tables(self->self);
    const ps_snapshot_dir_t snapshots = ps_journal_snapshots(self->self);
    psd_status_t rc = ps_table_file_list(&tables, each_table, damaged_table, self, err);

    if (rc == PSD_OK) {
        rc = ps_snapshot_list(&snapshots, each_snapshot, self, err);
    }
    if (rc == PSD_OK) {
        rc = for_parts(self, open_first, err);
    }
    if (rc == PSD_OK) {
        rc = check_inventory(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_shard_log_read(self->self->log, each_record, self, &self->found.log, err);
    }
    if (rc == PSD_OK) {
        rc = for_parts(self, take_rest, err);
    }
    if (rc == PSD_OK) {
        rc = ps_journal_list_lost(self->self, self->shard, err);
    }
    if (rc == PSD_OK) {
        rc = ps_shard_recover_end(self->shard, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_shard_recover_lives(self->shard, self->max_life);
    forget_over(self->self);
    self->self->is_untidy = true;
    self->found.is_unsettled = self->self->is_unsettled;
    return self->found.is_unsettled ? PSD_OK : ps_journal_tidy(self->self, err);
}

psd_status_t ps_journal_recover(ps_journal_t *self, ps_shard_t *shard,
                                ps_journal_progress_t *progress, void *context,
                                ps_journal_found_t *ret_found, psd_error_t *err)
{
    reading_t reading = {.self = self,
                         .shard = shard,
                         .progress = progress,
                         .context = context,
                         .found.was_there = self->was_there};
    psd_status_t rc = read_all(&reading, err);

    if (rc == PSD_OK) {
        *ret_found = reading.found;
    }
    return rc;
}
