/* SPDX-License-Identifier: Apache-2.0 */
/* Images of a shard's partitions on their way into files. */
#include <inttypes.h>

#include "server/shards/checkpoint_inner.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define FULL_MS 1     /* the disk is slower than the walk */
#define PENDING_MS 10 /* a clock must close first */

/* Files that the thread has finished. */
static void take_done(ps_checkpoint_task_t *self)
{
    ps_piece_done_t done;
    size_t n_done = 0;

    while (ps_piece_thread_take(self->thread, &done)) {
        for (size_t i = 0; i < self->n_items; i++) {
            ps_checkpoint_item_t *item = &self->items[i];

            if (item->id.table == done.id.table && item->id.partition == done.id.partition) {
                item->bytes = done.bytes;
                item->sum = done.sum;
                item->state = PS_ITEM_DONE;
            }
        }
    }
    for (size_t i = 0; i < self->n_items; i++) {
        n_done += self->items[i].state == PS_ITEM_DONE ? 1 : 0;
    }
    self->is_done = n_done == self->n_items;
}

static void fail(ps_checkpoint_task_t *self, const ps_checkpoint_item_t *item, psd_status_t rc)
{
    ps_checkpoint_fail(self,
                       psd_error_wrap(self->err, rc, "partition %" PRIu32 " of table %" PRIu32,
                                      item->id.partition, item->id.table));
}

/* The file of an image that has begun. */
static psd_status_t open_file(ps_checkpoint_task_t *self, ps_checkpoint_item_t *item)
{
    item->id.lsn = item->view.lsn;
    item->state = PS_ITEM_WALKING;
    return ps_piece_thread_open(self->thread, &item->id)
               ? PSD_OK
               : psd_error_set(self->err, PSD_NOMEM, "no memory to write");
}

static psd_status_t walk(ps_checkpoint_task_t *self, ps_shard_t *shard, ps_checkpoint_item_t *item)
{
    ps_payload_t *piece = NULL;
    bool is_last = false;
    psd_status_t rc = ps_shard_image_next(shard, item->id.table, item->id.partition, PIECE_BYTES,
                                          &piece, &is_last, self->err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (piece != NULL) {
        self->bytes += piece->span.size;
        if (!ps_piece_thread_add(self->thread, &piece)) {
            return psd_error_set(self->err, PSD_NOMEM, "no memory to write");
        }
    }
    if (is_last) {
        ps_image_view_t view = {0};

        if (ps_shard_image_look(shard, item->id.table, item->id.partition, &view)) {
            item->view.rows = view.rows;
        }
        ps_shard_image_end(shard, item->id.table, item->id.partition);
        item->state = PS_ITEM_WRITING;
        if (!ps_piece_thread_commit(self->thread)) {
            return psd_error_set(self->err, PSD_NOMEM, "no memory to write");
        }
    }
    return PSD_OK;
}

/* Goes on with an item. *ret_idle: it waits for its clock. */
static psd_status_t go_on(ps_checkpoint_task_t *self, ps_shard_t *shard,
                          const ps_image_step_t *step, ps_checkpoint_item_t *item, bool *ret_idle)
{
    ps_image_view_t view = {0};
    psd_status_t rc = PSD_OK;

    if (item->state == PS_ITEM_WAITING) {
        ps_shard_image_take_turn(shard, step, item->id.table, item->id.partition);
    }
    if (!ps_shard_image_look(shard, item->id.table, item->id.partition, &view) ||
        view.state == PS_IMAGE_NONE) {
        return psd_error_set(self->err, PSD_BUSY, "it is no longer served here");
    }
    if (view.state == PS_IMAGE_FAILED) {
        return psd_error_set(self->err, PSD_NOMEM, "no memory for an image");
    }
    if (view.state == PS_IMAGE_RESTORING) {
        return psd_error_set(self->err, PSD_BUSY, "rows of a checkpoint are missing");
    }
    *ret_idle = view.state == PS_IMAGE_PENDING;
    if (*ret_idle) {
        return PSD_OK;
    }
    if (item->state == PS_ITEM_WAITING) {
        item->view = view;
        rc = open_file(self, item);
    }
    return rc == PSD_OK ? walk(self, shard, item) : rc;
}

uint64_t ps_checkpoint_put_out(ps_checkpoint_task_t *self, ps_shard_t *shard,
                               const ps_image_step_t *step)
{
    bool is_pending = false;

    take_done(self);
    if (self->is_done) {
        return PS_CHECKPOINT_LEASE_MS;
    }
    if (!ps_piece_thread_has_room(self->thread)) {
        return FULL_MS;
    }
    for (size_t i = 0; i < self->n_items; i++) {
        ps_checkpoint_item_t *item = &self->items[(self->at + i) % self->n_items];
        bool is_idle = false;
        psd_status_t rc = PSD_OK;

        if (item->state > PS_ITEM_WALKING) {
            continue;
        }
        rc = go_on(self, shard, step, item, &is_idle);
        if (rc != PSD_OK) {
            fail(self, item, rc);
            return PS_CHECKPOINT_LEASE_MS;
        }
        if (!is_idle) {
            self->at = (self->at + i) % self->n_items; /* one file at a time */
            return 0;
        }
        is_pending = true;
    }
    return is_pending ? PENDING_MS : FULL_MS;
}
