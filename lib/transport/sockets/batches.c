/* SPDX-License-Identifier: Apache-2.0 */
/* Batches on their way out and in. */
#include "transport/sockets/batches.h"

#include "base/alloc.h"

#define KEPT_MAX 16 /* batches whose memory is kept for the next turn */

static void close_frame(ps_batches_t *self)
{
    if (self->is_open) {
        (void)zmq_msg_close(&self->frame);
        self->is_open = false;
    }
}

void ps_batches_done(ps_batches_t *self)
{
    close_frame(self);
    for (size_t i = 0; i < self->out_capacity; i++) {
        ps_batch_done(&self->out[i].batch);
    }
    ps_free(self->out);
    ps_map_done(&self->out_of);
    *self = (ps_batches_t){.n_out = 0};
}

ps_outgoing_t *ps_batches_find(ps_batches_t *self, uint64_t conn)
{
    uintptr_t place = 0;

    if (self->n_out > 0 && self->out[self->n_out - 1].conn == conn) {
        return &self->out[self->n_out - 1];
    }
    place = (uintptr_t)ps_map_get(&self->out_of, conn);
    return place == 0 ? NULL : &self->out[place - 1];
}

/* Room for one more batch, zeroed. false: no memory. */
static bool make_room(ps_batches_t *self)
{
    size_t before = self->out_capacity;

    if (!ps_grow(&self->out, &self->out_capacity, self->n_out + 1, sizeof *self->out)) {
        return false;
    }
    for (size_t i = before; i < self->out_capacity; i++) {
        self->out[i] = (ps_outgoing_t){.conn = 0};
    }
    return true;
}

ps_outgoing_t *ps_batches_of(ps_batches_t *self, uint64_t conn)
{
    ps_outgoing_t *found = ps_batches_find(self, conn);

    if (found != NULL) {
        return found;
    }
    if (!make_room(self) ||
        !ps_map_put(&self->out_of, conn, (void *)(uintptr_t)(self->n_out + 1))) {
        return NULL;
    }
    found = &self->out[self->n_out++];
    found->conn = conn;
    return found;
}

void ps_batches_clear(ps_batches_t *self)
{
    for (size_t i = 0; i < self->n_out; i++) {
        (void)ps_map_remove(&self->out_of, self->out[i].conn);
        if (i < KEPT_MAX) {
            ps_batch_clear(&self->out[i].batch);
        } else {
            ps_batch_done(&self->out[i].batch);
        }
    }
    self->n_out = 0;
}

psd_status_t ps_batches_open(ps_batches_t *self, uint64_t conn, zmq_msg_t *frame, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    close_frame(self);
    (void)zmq_msg_init(&self->frame);
    (void)zmq_msg_move(&self->frame, frame);
    self->is_open = true;
    self->conn = conn;
    rc = ps_batch_open(
        (ps_bytes_t){.data = zmq_msg_data(&self->frame), .size = zmq_msg_size(&self->frame)},
        &self->rest, err);
    if (rc != PSD_OK) {
        close_frame(self);
    }
    return rc;
}

psd_status_t ps_batches_next(ps_batches_t *self, uint64_t *ret_conn, ps_bytes_t *ret_message,
                             psd_error_t *err)
{
    *ret_conn = self->conn;
    return ps_batch_next(&self->rest, ret_message, err);
}

void ps_batches_settle(ps_batches_t *self)
{
    if (self->is_open && self->rest.n == 0) {
        close_frame(self);
    }
}
