/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_image - records which rows of a store were handed out
 *
 * What     Rows are counted by their place: an array's from 0, others in
 *          insertion order. A few neighbouring places form a unit, which is
 *          handed out whole. For the store_*.c files only.
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
    uint64_t n;         /* places when the image began */
    uint64_t next;      /* place of the walk, at the start of a unit */
    uint64_t unit;      /* places */
    uint8_t *early;     /* owned; a bit per unit: handed out early */
    ps_buffer_t walked; /* rows of the walk that do not fill a piece yet */
    ps_buffer_t open;   /* early rows that do not fill a piece yet */
    ps_buffer_t *ready; /* owned, and each element too: early rows, oldest first */
    size_t n_ready;
    size_t ready_capacity;
    uint64_t waiting;    /* bytes of early rows that are not taken yet */
    uint64_t rows;       /* handed out */
    psd_status_t status; /* PSD_OK, or why the image cannot be finished */
} ps_image_t;

/* Call before rows at these places change; NULL: there is no image. */
void ps_image_before_push(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload);
void ps_image_before_change(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload,
                            const ps_row_change_t *change);
#endif
