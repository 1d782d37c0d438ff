/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_batch - several small messages in one frame
 *
 * What     What travels on one connection in one turn goes as one frame: to the
 *          transport below, many small messages cost as much as one. Each
 *          message in it is as it would be alone in a frame of its own.
 * Shape    head as of a message, kind PS_BATCH_KIND, no flags; n u32; then n
 *          times: size u32 and that many bytes. No batch lies in a batch.
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

/* Appends a message whose body (payload may be NULL) goes behind its header.
 * false: no memory; nothing changed. */
PSD_MUST_CHECK bool ps_batch_add(ps_batch_t *self, const ps_message_t *message,
                                 const ps_payload_t *payload);
/* What is to be sent: the batch, or the only message alone; n > 0. Borrowed
 * until the batch changes. */
ps_bytes_t ps_batch_frame(ps_batch_t *self);
/* Empties it and keeps its memory. */
void ps_batch_clear(ps_batch_t *self);
/* Frees and zeroes; fits PSD_AUTO. */
void ps_batch_done(ps_batch_t *self);

/* Received: the messages that are left, borrowed from the frame. */
typedef struct ps_batch_rest {
    ps_bytes_t bytes;
    uint32_t n;
} ps_batch_rest_t;

/* True when the frame calls itself a batch; else it is a message's. */
static inline bool ps_is_batch(ps_bytes_t frame)
{
    return frame.size >= PS_HEAD_SIZE && frame.data[6] == PS_BATCH_KIND;
}
/* Begins to read. Errors: PSD_PROTO, PSD_VERSION. */
PSD_MUST_CHECK psd_status_t ps_batch_open(ps_bytes_t frame, ps_batch_rest_t *ret_rest,
                                          psd_error_t *err);
/* Takes the next of n > 0 messages: the only frame of one. Errors: PSD_PROTO;
 * nothing more can then be taken out of this batch. */
PSD_MUST_CHECK psd_status_t ps_batch_next(ps_batch_rest_t *self, ps_bytes_t *ret_message,
                                          psd_error_t *err);
#endif
