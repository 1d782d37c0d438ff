/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_store_image, ps_store_put - the rows of a store as they were at one moment
 *
 * What     An image hands out, in pieces, what the store was when the image
 *          began, while pushes go on between the pieces: a row that is about to
 *          change and was not handed out yet is copied first (an *early row*),
 *          and the walk passes over it. Rows that come to be meanwhile are not
 *          part of it. A piece says of each row which one it is, so that any
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
    uint64_t early_bytes; /* most that early rows may take; above it the image
                             fails and pushes go on */
    size_t step_bytes;    /* about as many are read in one call; 0: a piece */
} ps_image_args_t;

/* Begins an image of a whole store; ends the one that there was. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_store_image_begin(ps_store_t *self, const ps_image_args_t *args,
                                                 psd_error_t *err);
bool ps_store_has_image(const ps_store_t *self);
/*
 * The next piece, which the caller frees: of about max_bytes, and one row at
 * least. NULL: these rows had nothing to hand out, or fill no piece yet.
 *
 * ret_done  out  that was all
 *
 * Errors: PSD_LIMIT early rows took too much; PSD_NOMEM: the image is then to
 * be ended.
 */
PSD_MUST_CHECK psd_status_t ps_store_image_next(ps_store_t *self, size_t max_bytes,
                                                ps_payload_t **ret_piece, bool *ret_done,
                                                psd_error_t *err);
/* Rows in the pieces that were handed out. */
uint64_t ps_store_image_rows(const ps_store_t *self);
/* Forgets it. */
void ps_store_image_end(ps_store_t *self);

/*
 * Sets the rows of a piece that are of this partition, values, states and
 * versions; only columns that are here. Of a partial store, only rows that it
 * has taken in.
 *
 * version  in/out  raised to the greatest version that was set
 *
 * Errors: PSD_PROTO the bytes are no such piece of this table, naming what is
 * wrong; PSD_NOMEM: some rows may be set; setting them again does no harm.
 */
PSD_MUST_CHECK psd_status_t ps_store_put(ps_store_t *self, ps_bytes_t piece, uint64_t *version,
                                         psd_error_t *err);
/* The bytes are a piece of this table, that ps_store_put takes as far as it can
 * be told without setting rows. Errors: PSD_PROTO naming what is wrong. */
PSD_MUST_CHECK psd_status_t ps_store_check_piece(ps_store_t *self, ps_bytes_t piece,
                                                 psd_error_t *err);
#endif
