/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a checkpoint's files on their way into a shard's partitions. */
#include <inttypes.h>

#include "daemon/checkpoint_inner.h"

#define WAIT_MS 1 /* for the disk, or for copies */

/* The piece for every partition that is primary here; NULL: the first or last
 * words. false: it has to go on later, from self->next on, or has failed. */
static bool
set_rows(ps_checkpoint_task_t *self,
         ps_shard_t *shard,
         const ps_image_step_t *step,
         ps_payload_t *piece,
         bool is_last)
{
    ps_image_view_t view;

    for (; self->next < self->n_partitions; self->next++) {
        psd_status_t rc = PSD_OK;

        if (!ps_shard_image_look(shard, self->table, self->next, &view)) {
            continue;
        }
        rc = ps_shard_restore(shard, step, self->table, self->next, piece,
                              is_last, self->err);
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
static void
finish_file(ps_checkpoint_task_t *self, const ps_piece_done_t *done)
{
    ps_item_t *item = &self->items[self->at];

    if (done->sum != item->sum) {
        ps_checkpoint_fail(
            self,
            psd_error_set(
                self->err, PSD_DAMAGED,
                "the file of partition %" PRIu32 " of table %" PRIu32
                " is whole, but not the one that the manifest "
                "means: its rows give %016" PRIx64 ", there it is %016" PRIx64,
                item->id.partition, item->id.table, done->sum, item->sum));
        return;
    }
    item->state = PS_ITEM_DONE;
    self->at++;
}

static void
order_file(ps_checkpoint_task_t *self)
{
    ps_item_t *item = &self->items[self->at];

    if (item->state != PS_ITEM_WAITING) {
        return;
    }
    item->state = PS_ITEM_WALKING;
    if (!ps_piece_thread_read(self->thread, &item->id)) {
        ps_checkpoint_fail(
            self, psd_error_set(self->err, PSD_NOMEM, "no memory to read"));
    }
}

static uint64_t
take_next(ps_checkpoint_task_t *self)
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

uint64_t
ps_checkpoint_take_in(ps_checkpoint_task_t *self,
                      ps_shard_t *shard,
                      const ps_image_step_t *step)
{
    if (!self->has_begun) {
        self->has_begun = set_rows(self, shard, step, NULL, false);
        return WAIT_MS;
    }
    if (self->piece != NULL) {
        uint64_t size = self->piece->span.size;

        if (!set_rows(self, shard, step, self->piece, false)) {
            return WAIT_MS;
        }
        self->bytes += size;
        ps_payload_destroy(&self->piece);
        return 0;
    }
    if (self->at < self->n_items) {
        return take_next(self);
    }
    self->is_done = set_rows(self, shard, step, NULL, true);
    return WAIT_MS;
}
