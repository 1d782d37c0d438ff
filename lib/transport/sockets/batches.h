/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_batches - small messages that are sent and received in batches
 * (wire/messages/batch.h)
 *
 * What     Sending: messages to one connection are collected until the socket
 *          is flushed or the batch is full. Receiving: a frame that is a batch
 *          is held, and its messages are taken one by one.
 * Shape    one batch for each connection that has something in it; ZeroMQ only
 * Owner    The socket.
 */
#ifndef PS_TRANSPORT_BATCHES_H
#define PS_TRANSPORT_BATCHES_H

#include <zmq.h>

#include "base/map.h"
#include "wire/messages/batch.h"

typedef struct ps_outgoing {
    uint64_t conn;
    ps_batch_t batch;
} ps_outgoing_t;

typedef struct ps_batches {
    ps_outgoing_t *out; /* owned; the first n_out hold something, the others
                           their memory */
    size_t n_out;
    size_t out_capacity;
    ps_map_t out_of; /* conn -> its place in out + 1, as a pointer */
    zmq_msg_t frame; /* the batch that is being read */
    uint64_t conn;   /* it came from */
    bool is_open;    /* there is one */
    ps_batch_rest_t rest;
} ps_batches_t;

void ps_batches_done(ps_batches_t *self);
/* The batch of a connection; borrowed until the next call. NULL: no memory. */
ps_outgoing_t *ps_batches_of(ps_batches_t *self, uint64_t conn);
/* The batch of a connection when something is in it, else NULL. */
ps_outgoing_t *ps_batches_find(ps_batches_t *self, uint64_t conn);
/* All that was collected went: keeps some of the memory. */
void ps_batches_clear(ps_batches_t *self);

/* Takes the frame (an empty one is left). Errors: PSD_PROTO, PSD_VERSION. */
PSD_MUST_CHECK psd_status_t ps_batches_open(ps_batches_t *self, uint64_t conn, zmq_msg_t *frame,
                                            psd_error_t *err);
/* True while messages of an opened frame are left. */
static inline bool ps_batches_is_open(const ps_batches_t *self)
{
    return self->is_open;
}
/* The next one; borrowed until ps_batches_settle. Errors: PSD_PROTO; what is
 * left of the frame is dropped. */
PSD_MUST_CHECK psd_status_t ps_batches_next(ps_batches_t *self, uint64_t *ret_conn,
                                            ps_bytes_t *ret_message, psd_error_t *err);
/* What was borrowed is not used any more: a frame of which nothing is left
 * goes. */
void ps_batches_settle(ps_batches_t *self);
#endif
