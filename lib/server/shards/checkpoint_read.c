/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a checkpoint's files on their way into a shard's partitions. */
#include <inttypes.h>

#include "base/alloc.h"
#include "server/shards/checkpoint_inner.h"

#define FILES_MAX 65536
#define WAIT_MS 1 /* for the disk, or for copies */

/* ---- the command ---- */

static psd_status_t read_file(const ps_checkpoint_task_t *self, const ps_doc_t *files, size_t i,
                              ps_checkpoint_item_t *ret, psd_error_t *err)
{
    const ps_doc_t *doc = NULL;
    uint64_t table = 0;
    uint64_t partition = 0;
    uint64_t dir = 0;
    psd_status_t rc = ps_doc_at_object(files, i, &doc, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "dir", 0, self->n_dirs - 1, &dir, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "table", 1, UINT32_MAX, &table, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "partition", 0, UINT32_MAX, &partition, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "lsn", 0, UINT64_MAX, &ret->id.lsn, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "sum", 0, UINT64_MAX, &ret->sum, err);
    }
    ret->id.table = (uint32_t)table;
    ret->id.partition = (uint32_t)partition;
    ret->dir = (size_t)dir;
    return rc;
}

static psd_status_t read_dirs(ps_checkpoint_task_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    const ps_doc_t *dirs = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "dirs", FILES_MAX, &dirs, err);

    if (rc == PSD_OK && ps_doc_count(dirs) == 0) {
        rc = psd_error_set(err, PSD_PROTO, "dirs is empty");
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(dirs); i++) {
        const char *dir = NULL;

        rc = ps_doc_at_text(dirs, i, 4096, &dir, err);
        if (rc == PSD_OK &&
            !ps_grow(&self->dirs, &self->dirs_capacity, self->n_dirs + 1, sizeof *self->dirs)) {
            rc = ps_checkpoint_no_memory(err);
        }
        if (rc == PSD_OK) {
            self->dirs[self->n_dirs] = (ps_buffer_t){0};
            if (!ps_buffer_print(&self->dirs[self->n_dirs++], "%s", dir)) {
                rc = ps_checkpoint_no_memory(err);
            }
        }
    }
    return rc;
}

/* The table's partitions that this shard answers for, now. */
static psd_status_t find_mine(ps_checkpoint_task_t *self, const ps_shard_t *shard, psd_error_t *err)
{
    ps_image_view_t view;

    self->n_partitions = ps_shard_image_partitions(shard, self->table);
    self->mine = ps_alloc(self->n_partitions + 1, sizeof *self->mine);
    if (self->mine == NULL) {
        return ps_checkpoint_no_memory(err);
    }
    for (uint32_t i = 0; i < self->n_partitions; i++) {
        if (ps_shard_image_look(shard, self->table, i, &view)) {
            self->mine[i].is_mine = true;
            self->n_mine++;
        }
    }
    return PSD_OK;
}

/* Whether it has any; without a table, it reads all files for their checksums. */
static bool wants_files(const ps_checkpoint_task_t *self, uint64_t reader)
{
    return self->n_mine > 0 ||
           (self->table == 0 && self->incarnation == reader && self->shard == 0);
}

static psd_status_t read_files(ps_checkpoint_task_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    const ps_doc_t *files = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "files", FILES_MAX, &files, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(files); i++) {
        ps_checkpoint_item_t item = {.dir = 0};

        rc = read_file(self, files, i, &item, err);
        if (rc == PSD_OK) {
            rc = ps_checkpoint_add_item(self, &item, err);
        }
    }
    return rc;
}

psd_status_t ps_checkpoint_restore(ps_checkpoint_task_t *self, ps_shard_t *shard,
                                   const ps_image_step_t *step, const ps_doc_t *doc,
                                   ps_doc_t *answer, psd_error_t *err)
{
    ps_id_t cluster = {{0}};
    uint64_t number = 0;
    uint64_t table = 0;
    uint64_t reader = 0;
    psd_status_t rc = ps_doc_get_id(doc, "cluster", &cluster, err);

    (void)answer;
    ps_checkpoint_end(self, shard);
    self->restores = true;
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "number", 1, UINT64_MAX, &number, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "table", 0, UINT32_MAX, &table, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "reader", 0, UINT64_MAX, &reader, err);
    }
    if (rc == PSD_OK) {
        rc = read_dirs(self, doc, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_start(self, step, &cluster, (const char *)self->dirs[0].data, number,
                                 err);
    }
    if (rc == PSD_OK) {
        self->table = (uint32_t)table;
        rc = find_mine(self, shard, err);
    }
    if (rc == PSD_OK && wants_files(self, reader)) {
        rc = read_files(self, doc, err);
    }
    if (rc != PSD_OK) {
        ps_checkpoint_end(self, shard);
    }
    return rc;
}

/* ---- the rows ---- */

/* Applies the present piece to every partition that is restored here; fails
 * when one has moved. false: it must go on later, from self->next on, or has
 * failed. */
static bool set_rows(ps_checkpoint_task_t *self, ps_shard_t *shard, const ps_image_step_t *step)
{
    for (; self->next < self->n_partitions; self->next++) {
        ps_mine_t *mine = &self->mine[self->next];
        psd_status_t rc = PSD_OK;

        if (!mine->is_mine) {
            continue;
        }
        rc = ps_shard_restore(shard, step, self->table, self->next, self->piece, &mine->at,
                              self->err);
        if (rc == PSD_BUSY) {
            psd_error_clear(self->err);
            return false;
        }
        if (rc != PSD_OK) {
            ps_checkpoint_fail(self, rc);
            return false;
        }
    }
    self->next = 0;
    return true;
}

/* The file is read: it must be the one that the manifest means. */
static void finish_file(ps_checkpoint_task_t *self, const ps_piece_done_t *done)
{
    ps_checkpoint_item_t *item = &self->items[self->at];

    if (done->sum != item->sum) {
        ps_checkpoint_fail(
            self, psd_error_set(self->err, PSD_DAMAGED,
                                "the file of partition %" PRIu32 " of table %" PRIu32
                                " is complete, but the manifest names another one: its blocks give "
                                "%016" PRIx64 ", the manifest has %016" PRIx64,
                                item->id.partition, item->id.table, done->sum, item->sum));
        return;
    }
    item->state = PS_ITEM_DONE;
    self->at++;
}

static void order_file(ps_checkpoint_task_t *self)
{
    ps_checkpoint_item_t *item = &self->items[self->at];

    if (item->state != PS_ITEM_WAITING) {
        return;
    }
    item->state = PS_ITEM_WALKING;
    if (!ps_piece_thread_read(self->thread, (const char *)self->dirs[item->dir].data, &item->id)) {
        ps_checkpoint_fail(self, psd_error_set(self->err, PSD_NOMEM, "no memory to read"));
    }
}

static uint64_t take_next(ps_checkpoint_task_t *self)
{
    ps_piece_done_t done;

    order_file(self);
    if (!ps_piece_thread_take(self->thread, &done)) {
        return WAIT_MS;
    }
    if (done.piece == NULL) {
        finish_file(self, &done);
    } else {
        self->piece = done.piece;
    }
    return 0;
}

/* All rows are set. A partition is done when its rows have reached the
 * table's level, since nothing less survives the failures that the level is
 * for. */
static void await_level(ps_checkpoint_task_t *self, ps_shard_t *shard, const ps_image_step_t *step)
{
    for (; self->next < self->n_partitions; self->next++) {
        uint64_t reached = 0;
        psd_status_t rc = PSD_OK;

        if (self->mine[self->next].is_mine) {
            rc = ps_shard_restored(shard, step, self->table, self->next, &self->mine[self->next].at,
                                   &reached, self->err);
        }
        if (rc == PSD_BUSY && (self->moved_ms == 0 || reached > self->reached)) {
            self->reached = reached;
            self->moved_ms = step->now_ms;
        }
        if (rc == PSD_BUSY && step->now_ms - self->moved_ms < PS_CHECKPOINT_LEVEL_MS) {
            psd_error_clear(self->err);
            return;
        }
        if (rc != PSD_OK) {
            ps_checkpoint_fail(self, psd_error_wrap(self->err, rc == PSD_BUSY ? PSD_DEADLINE : rc,
                                                    "rows that were restored"));
            return;
        }
        self->moved_ms = 0;
    }
    self->is_done = true;
}

void ps_checkpoint_check_done(ps_checkpoint_task_t *self, ps_shard_t *shard,
                              const ps_image_step_t *step)
{
    if (self->is_done && self->status == PSD_OK) {
        self->is_done = false;
        self->next = 0;
        await_level(self, shard, step);
    }
}

uint64_t ps_checkpoint_take_in(ps_checkpoint_task_t *self, ps_shard_t *shard,
                               const ps_image_step_t *step)
{
    if (self->piece != NULL) {
        uint64_t size = self->piece->span.size;

        if (!set_rows(self, shard, step)) {
            return WAIT_MS;
        }
        self->bytes += size;
        ps_payload_destroy(&self->piece);
        return 0;
    }
    if (self->at < self->n_items) {
        return take_next(self);
    }
    await_level(self, shard, step);
    return WAIT_MS;
}
