/* SPDX-License-Identifier: Apache-2.0 */
/* How each of the two layouts hands out and takes in rows; store_copy.h
 * describes the bytes. For store_copy.c. */
#ifndef PS_MODEL_ROWS_COPY_H
#define PS_MODEL_ROWS_COPY_H

#include "model/rows/array_rows.h"
#include "model/rows/indexed_rows.h"

#define PS_PIECE_HEAD 32 /* bytes in front of the rows */

/* A piece with the rows from `first` on, of about max_bytes; the caller writes
 * its head. *ret_n rows, at least 1 unless none are left. NULL: no memory. */
PSD_MUST_CHECK ps_payload_t *ps_array_rows_give(const ps_array_rows_t *self, uint64_t first,
                                                size_t max_bytes, uint64_t *ret_n);
PSD_MUST_CHECK ps_payload_t *ps_indexed_rows_give(const ps_indexed_rows_t *self, uint64_t first,
                                                  size_t max_bytes, uint64_t *ret_n);
/* Takes the bytes after the head of a piece of n rows: for an array the rows
 * from `first` on, which must be within the array; otherwise new rows, after
 * which `left` more are announced. Errors: PSD_PROTO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_array_rows_take(ps_array_rows_t *self, uint64_t first, uint64_t n,
                                               ps_bytes_t rows, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_indexed_rows_take(ps_indexed_rows_t *self, const ps_extent_t *extent,
                                                 uint64_t n, uint64_t left, ps_bytes_t rows,
                                                 psd_error_t *err);
#endif
