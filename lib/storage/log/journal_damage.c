/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A start in spite of damaged files: which partitions that costs.
 *
 * A damaged snapshot costs its partition, a damaged table's file its table. A
 * hole in the log may have had records of any partition. It costs the
 * partitions that cannot show that it had none of theirs. Records of a
 * partition are numbered without a gap, so the next one after the hole shows
 * it.
 */
#include "base/alloc.h"
#include "protocol/shard/shard_recover.h"
#include "storage/log/journal_inner.h"
#include "storage/snapshot/snapshot_block.h"

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to note damage");
}

static void lose(ps_shard_t *shard, ps_journal_part_t *part)
{
    ps_snapshot_close(&part->reader);
    ps_shard_recover_drop(shard, part->table, part->partition);
    part->stage = PS_JOURNAL_LOST;
    part->lost_lsn = 0;
}

psd_status_t ps_journal_pass_snapshot(ps_journal_t *self, ps_shard_t *shard,
                                      ps_journal_part_t *part, psd_status_t rc, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    const ps_snapshot_dir_t dir = ps_journal_snapshots(self);
    const ps_snapshot_id_t id = ps_journal_base(part);

    if (rc != PSD_DAMAGED || self->damage == NULL) {
        return rc;
    }
    if (ps_snapshot_path(&dir, &id, "", &path, NULL) != PSD_OK) {
        return no_memory(err);
    }
    lose(shard, part);
    part->lost_life = part->base_life;
    part->base_lsn = 0;
    return ps_damage_pass(self->damage, rc, (const char *)path.data, err);
}

psd_status_t ps_journal_pass_records(ps_journal_t *self, ps_shard_t *shard, ps_journal_part_t *part,
                                     psd_status_t rc, psd_error_t *err)
{
    if (rc == PSD_DAMAGED && self->damage != NULL) {
        lose(shard, part);
    }
    return ps_damage_pass(self->damage, rc, NULL, err);
}

/* ---- tables ---- */

static psd_status_t add_lost(ps_journal_t *self, uint32_t table, uint32_t first, uint32_t last,
                             psd_error_t *err)
{
    ps_damage_t *to = self->damage;
    ps_lost_t *before = to->n_lost > 0 ? &to->lost[to->n_lost - 1] : NULL;

    if (before != NULL && before->shard == self->shard && before->table == table && first > 0 &&
        before->last == first - 1) {
        before->last = last;
        return PSD_OK;
    }
    if (!ps_grow(&to->lost, &to->lost_capacity, to->n_lost + 1, sizeof *to->lost)) {
        return no_memory(err);
    }
    to->lost[to->n_lost++] = (ps_lost_t){self->shard, table, first, last};
    return PSD_OK;
}

psd_status_t ps_journal_pass_table(ps_journal_t *self, uint32_t table, const char *path,
                                   psd_error_t *err)
{
    psd_status_t rc = ps_damage_pass(self->damage, PSD_DAMAGED, path, err);

    return rc == PSD_OK ? add_lost(self, table, 0, UINT32_MAX, err) : rc;
}

/* ---- missing files ---- */

/* The newest snapshot of its partition; an older one is not enough. */
static psd_status_t miss_snapshot(ps_journal_t *self, ps_shard_t *shard, const ps_snapshot_id_t *id,
                                  psd_status_t rc, psd_error_t *err)
{
    ps_journal_part_t *part = ps_journal_part(self, id->table, id->partition);
    ps_snapshot_id_t older = {0};

    if (part == NULL) {
        return no_memory(err);
    }
    older = ps_journal_base(part);
    part->base_life = id->life;
    part->base_lsn = id->lsn;
    rc = ps_journal_pass_snapshot(self, shard, part, rc, err);
    return rc != PSD_OK || older.lsn == 0 ? rc : ps_journal_give_up(self, &older, err);
}

static bool is_newer(const ps_journal_part_t *part, const ps_snapshot_id_t *id)
{
    return part == NULL || id->life > part->base_life ||
           (id->life == part->base_life && id->lsn > part->base_lsn);
}

psd_status_t ps_journal_pass_missing(ps_journal_t *self, ps_shard_t *shard, const char *name,
                                     psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_snapshot_id_t id = {0};
    uint32_t table = 0;
    psd_status_t rc = ps_disk_path(&path, err, self->dir, "%s", name);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = psd_error_set(err, PSD_DAMAGED, "%s: byte 0: the file is missing; it was removed",
                       (const char *)path.data);
    if (self->damage != NULL && ps_table_file_parse(name, &table)) {
        return ps_journal_pass_table(self, table, (const char *)path.data, err);
    }
    return ps_snapshot_parse(name, &id) && ps_shard_recover_knows(shard, id.table) &&
                   is_newer(ps_journal_find(self, id.table, id.partition), &id)
               ? miss_snapshot(self, shard, &id, rc, err)
               : ps_damage_pass(self->damage, rc, NULL, err);
}

/* ---- holes ---- */

psd_status_t ps_journal_see_record(ps_journal_t *self, ps_shard_t *shard, ps_journal_part_t *part,
                                   const ps_record_t *record, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->damage == NULL || part->n_holes == self->damage->n_holes ||
        part->stage == PS_JOURNAL_LOST) {
        return PSD_OK;
    }
    part->n_holes = self->damage->n_holes;
    if (record->kind != PS_RECORD_ANEW && record->kind != PS_RECORD_LEAVE &&
        ps_shard_recover_is_strange(shard, record)) {
        rc = psd_error_set(err, PSD_DAMAGED,
                           "%s: record %llu of partition %u of table %u is of "
                           "a life whose beginning is missing",
                           self->dir, (unsigned long long)record->lsn, record->partition,
                           record->table);
    }
    return ps_journal_pass_records(self, shard, part, rc, err);
}

/* A partition that has nothing here, or all of it. */
static bool is_sound(const ps_journal_t *self, const ps_shard_t *shard, uint32_t table,
                     uint32_t partition)
{
    const ps_journal_part_t *part = ps_journal_find(self, table, partition);

    if (part == NULL) {
        return self->damage->n_holes == 0;
    }
    return part->stage != PS_JOURNAL_LOST && part->n_holes == self->damage->n_holes &&
           ps_shard_recover_is_whole(shard, table, partition);
}

/* It is over here; its files are removed when the damage is accepted. */
static psd_status_t give_up(ps_journal_t *self, ps_shard_t *shard, ps_journal_part_t *part,
                            psd_error_t *err)
{
    const ps_snapshot_id_t base = ps_journal_base(part);
    psd_status_t rc = base.lsn == 0 ? PSD_OK : ps_journal_give_up(self, &base, err);

    lose(shard, part);
    part->stage = PS_JOURNAL_OVER;
    part->base_lsn = 0;
    return rc;
}

static psd_status_t list_table(ps_journal_t *self, ps_shard_t *shard, uint32_t table,
                               psd_error_t *err)
{
    uint32_t n = ps_shard_recover_n_partitions(shard, table);
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
        ps_journal_part_t *part = ps_journal_find(self, table, i);

        if (is_sound(self, shard, table, i)) {
            continue;
        }
        rc = add_lost(self, table, i, i, err);
        if (rc == PSD_OK && part != NULL) {
            rc = give_up(self, shard, part, err);
        }
    }
    return rc;
}

psd_status_t ps_journal_list_lost(ps_journal_t *self, ps_shard_t *shard, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) uint32_t *tables = NULL;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (self->damage == NULL || self->damage->n_texts == 0) {
        return PSD_OK;
    }
    rc = ps_shard_recover_tables(shard, &tables, &n, err);
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        rc = list_table(self, shard, tables[i], err);
    }
    self->is_unsettled = rc == PSD_OK;
    return rc;
}

psd_status_t ps_journal_settle(ps_journal_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (!self->is_unsettled) {
        return PSD_OK;
    }
    /* A valid log-flushed comes first: whatever happens then, the next start
     * sees that there was a log. */
    rc = ps_shard_log_settle(self->log, err);
    if (rc == PSD_OK) {
        rc = ps_damage_put_aside(self->damage, self->disk, self->dir, err);
    }
    if (rc == PSD_OK) {
        self->is_unsettled = false;
        self->damage = NULL;
    }
    return rc;
}
