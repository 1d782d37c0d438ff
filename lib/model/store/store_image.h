/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_store_image, ps_store_put - the rows of a store as they were at one moment
 *
 * What     An image hands out, in pieces, the state of the store when the image
 *          began, while pushes continue between the pieces (copy on write): a
 *          row that is about to change and was not handed out yet is copied
 *          first (an *early row*), and the walk skips it. Rows that are created
 *          meanwhile are not part of it. A piece names each of its rows, so any
 *          store of the same table's shape may take its own share of it,
 *          however the two are partitioned, and in any order.
 * Shape    a piece is parts, one after the other, each: u32 kind, u32 first
 *          column (of the table), u32 n columns, u32 zero, u64 n rows, u64
 *          first row; then
 *          1 RUN    neighbouring rows: u64 versions of all (where the table has
 *                   them), values of all, each state of all
 *          2 ITEMS  each: u64 key, u64 version (where the table has them),
 *                   values, states
 *          3 SPARSE each: u64 key, u64 version, u32 n entries; n values, n of
 *                   each state, n u32 columns, which ascend
 *          Rows that read as first values may be left out. A piece is untrusted
 *          bytes: everything that is read is checked.
 * Owner    The store owns its image.
 * Threads  Confined to the store's.
 */
#ifndef PS_MODEL_STORE_IMAGE_H
#define PS_MODEL_STORE_IMAGE_H

#include "model/store/store.h"

typedef struct ps_image_args {
    uint64_t since;       /* only rows whose version is greater; 0: all */
    uint64_t early_bytes; /* the limit of early rows; above it the image fails and pushes
                             continue */
    size_t step_bytes;    /* about this many are read in one call; 0: a piece */
} ps_image_args_t;

/* Begins an image of a whole store; ends the previous one. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_store_image_begin(ps_store_t *self, const ps_image_args_t *args,
                                                 psd_error_t *err);
bool ps_store_has_image(const ps_store_t *self);
/*
 * The next piece, which the caller frees: about max_bytes, but at least one
 * row. NULL: this step's rows had nothing to hand out, or do not fill a piece
 * yet.
 *
 * ret_done  out  the image is complete
 *
 * Errors: PSD_LIMIT early rows took too much; PSD_NOMEM. The caller then ends
 * the image.
 */
PSD_MUST_CHECK psd_status_t ps_store_image_next(ps_store_t *self, size_t max_bytes,
                                                ps_payload_t **ret_piece, bool *ret_done,
                                                psd_error_t *err);
/* Rows in the pieces that were handed out. */
uint64_t ps_store_image_rows(const ps_store_t *self);
/* Ends the image. */
void ps_store_image_end(ps_store_t *self);

/*
 * Sets the rows of a piece that belong to this partition: values, states and
 * versions, only columns of this partition. In a partial store, sets only rows
 * that it has taken in.
 *
 * version  in/out  raised to the greatest version that was set
 *
 * Errors: PSD_PROTO the bytes are not a piece of this table, naming what is
 * wrong; PSD_NOMEM: some rows may be set; setting them again is harmless.
 */
PSD_MUST_CHECK psd_status_t ps_store_put(ps_store_t *self, ps_bytes_t piece, uint64_t *version,
                                         psd_error_t *err);
/* Checks that the bytes are a piece of this table that ps_store_put accepts, as
 * far as possible without setting rows. Errors: PSD_PROTO naming what is
 * wrong. */
PSD_MUST_CHECK psd_status_t ps_store_check_piece(ps_store_t *self, ps_bytes_t piece,
                                                 psd_error_t *err);
#endif
