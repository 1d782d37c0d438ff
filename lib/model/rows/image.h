/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_image - what remembers which rows of a store were handed out
 *
 * What     Rows are counted by their place: an array's from 0, others in the
 *          order of their coming. A few neighbouring places are a unit, which
 *          is handed out whole. For the store_*.c files alone.
 */
#ifndef PS_MODEL_IMAGE_H
#define PS_MODEL_IMAGE_H

#include "model/store/store_image.h"
#include "model/store/store_impl.h"
#include "model/store/store_ops.h"

#define PS_IMAGE_PART 32 /* bytes in front of the rows of a part */

enum { PS_IMAGE_RUN = 1, PS_IMAGE_ITEMS = 2, PS_IMAGE_SPARSE = 3 };

typedef struct ps_image {
    ps_image_args_t args;
    uint64_t n;         /* places when it began */
    uint64_t next;      /* place of the walk, begins a unit */
    uint64_t unit;      /* places */
    uint8_t *early;     /* owned; a bit per unit: it was handed out early */
    ps_buffer_t walked; /* rows of the walk that fill no piece yet */
    ps_buffer_t open;   /* early rows that fill no piece yet */
    ps_buffer_t *ready; /* owned, each too: early rows, oldest first */
    size_t n_ready;
    size_t ready_capacity;
    uint64_t waiting;    /* bytes of early rows that nobody has taken */
    uint64_t rows;       /* handed out */
    psd_status_t status; /* PSD_OK, or why it cannot be finished */
} ps_image_t;

/* Rows of these places are about to change; NULL: there is no image. */
void ps_image_before_push(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload);
void ps_image_before_change(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload,
                            const ps_row_change_t *change);
/* image_rows.c: appends the rows of places [from, end), as far as the image has
 * them. false: no memory. */
PSD_MUST_CHECK bool ps_image_add_rows(ps_store_t *self, uint64_t from, uint64_t end,
                                      ps_buffer_t *to);
/* Bytes that a unit takes in memory, about. */
size_t ps_image_row_bytes(const ps_store_t *self);
#endif
