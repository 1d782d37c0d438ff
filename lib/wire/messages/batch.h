/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_batch - several small messages in one frame
 *
 * What     All messages for one connection in one turn of the loop go as one
 *          frame: to the transport below, a frame of many small messages costs
 *          as much as one message. Each message in it has the same bytes as in
 *          a frame of its own.
 * Shape    a message's head, kind PS_BATCH_KIND, no flags; n u32; then n times:
 *          size u32 and that number of bytes. Batches do not nest.
 * Owner    The caller; embedded. ps_batch_done frees.
 */
#ifndef PS_WIRE_BATCH_H
#define PS_WIRE_BATCH_H

#include "wire/messages/message.h"

#define PS_BATCH_KIND 14                  /* no message is of this kind */
#define PS_BATCH_BYTES ((size_t)64 << 10) /* a sender makes none larger */

typedef struct ps_batch {
    ps_buffer_t bytes;
    uint32_t n; /* messages in it */
} ps_batch_t;

/* Appends a message whose body (payload may be NULL) goes after its header.
 * false: no memory; nothing changed. */
PSD_MUST_CHECK bool ps_batch_add(ps_batch_t *self, const ps_message_t *message,
                                 const ps_payload_t *payload);
/* The frame to send: the batch, or the only message alone; n > 0. Borrowed
 * until the batch changes. */
ps_bytes_t ps_batch_frame(ps_batch_t *self);
/* Empties it and keeps its memory. */
void ps_batch_clear(ps_batch_t *self);
/* Frees and zeroes; fits PSD_AUTO. */
void ps_batch_done(ps_batch_t *self);

/* A received batch: the remaining messages, borrowed from the frame. */
typedef struct ps_batch_rest {
    ps_bytes_t bytes;
    uint32_t n;
} ps_batch_rest_t;

/* True when the frame is a batch; otherwise it is a message. */
static inline bool ps_is_batch(ps_bytes_t frame)
{
    return frame.size >= PS_HEAD_SIZE && frame.data[6] == PS_BATCH_KIND;
}
/* Begins to read a batch. Errors: PSD_PROTO, PSD_VERSION. */
PSD_MUST_CHECK psd_status_t ps_batch_open(ps_bytes_t frame, ps_batch_rest_t *ret_rest,
                                          psd_error_t *err);
/* Takes the next of n > 0 messages, a message of one frame. Errors: PSD_PROTO;
 * the rest of the batch is then unreadable. */
PSD_MUST_CHECK psd_status_t ps_batch_next(ps_batch_rest_t *self, ps_bytes_t *ret_message,
                                          psd_error_t *err);
#endif
