/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_sparsify - sends the important values of a push, and holds the others back
 *
 * What     topk and threshold first add the values held back earlier.
 *          topk=S       sends the largest values, a share S of those that the
 *                       push touches, at least one; holds the others back
 *          threshold=T  sends values of magnitude T or more; holds the others
 *                       back
 *          skip=S       drops each value with probability S, and sends the
 *                       others times 1 / (1 - S), so that the mean is right;
 *                       holds nothing back
 *          With topk and threshold, values sent plus values held back equal the
 *          values pushed, to the last bit of f64. Zeros are never sent. NaN and
 *          infinite values count as the largest, so that the server sees them.
 *          This makes sense for updaters that add up deltas: add, sgd.
 * Shape    dense rows of n_cols f32 or f64; a row named twice is summed
 * Units    limit_bytes bounds the memory for held-back rows: 8 bytes for each
 *          value of a row and PS_SPARSIFY_ROW_COST for the row. A row beyond it
 *          is sent whole.
 * Owner    The caller; the values to send are borrowed until the next call.
 * Threads  Confined to one thread.
 * Source   Aji and Heafield, EMNLP 2017 (topk); Hsieh et al., Gaia, NSDI 2017
 *          (threshold); Wangni et al., NIPS 2018 (skip)
 */
#ifndef PS_CLIENT_SPARSIFY_H
#define PS_CLIENT_SPARSIFY_H

#include "wire/filters/filter.h"

#define PS_SPARSIFY_ROW_COST 64 /* bytes */

typedef struct ps_sparsify ps_sparsify_t;

/* The values to send. With one column, rows[i] has values[i] and there are no
 * counts; else row i has counts[i] values, of ascending columns. */
typedef struct ps_thinned {
    const uint64_t *rows;
    size_t n_rows;
    const uint32_t *counts; /* NULL: one column */
    const uint32_t *cols;   /* NULL: one column */
    const void *values;     /* of the type */
    size_t n_values;
} ps_thinned_t;

/* Rows of a push: rows[n_rows], or n_rows rows from first_row on. */
typedef struct ps_thin_rows {
    const uint64_t *rows; /* NULL: a range */
    uint64_t first_row;
    size_t n_rows;
} ps_thin_rows_t;

/* type is F32 or F64. seed: of skip's chances. NULL: no memory. */
PSD_MUST_CHECK ps_sparsify_t *ps_sparsify_new(ps_type_t type, uint32_t n_cols, uint64_t limit_bytes,
                                              uint64_t seed);
/* Takes NULL, nulls *self_p; what is held back is lost. */
void ps_sparsify_destroy(ps_sparsify_t **self_p);

/* Thins one push; filter->thin is not NONE and may be another one each time.
 * values: n_rows x n_cols of the type, any alignment. Errors: PSD_NOMEM,
 * nothing changed. */
PSD_MUST_CHECK psd_status_t ps_sparsify_push(ps_sparsify_t *self, const ps_filter_t *filter,
                                             const ps_thin_rows_t *rows, const void *values,
                                             ps_thinned_t *ret_thinned, psd_error_t *err);
/* Returns everything that is held back; afterwards nothing is. Errors:
 * PSD_NOMEM, nothing changed. */
PSD_MUST_CHECK psd_status_t ps_sparsify_rest(ps_sparsify_t *self, ps_thinned_t *ret_thinned,
                                             psd_error_t *err);
/* The result of the last push or rest will not be sent: the values that were
 * held back before it are held back again. Call it before the next push or
 * rest, if at all; do not use that result any more. */
void ps_sparsify_undo(ps_sparsify_t *self);
/* Rows that may have something held back. */
size_t ps_sparsify_n_held(const ps_sparsify_t *self);
#endif
