/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_sparsify - which values of a push are sent, and what becomes of the others
 *
 * What     topk=S       of the values that the push touches, what was held back
 *                       of them added, the share S that is largest is sent, at
 *                       least one; the others are held back
 *          threshold=T  those of at least the size T are sent; the others are
 *                       held back
 *          skip=S       each is left out with the chance S; the others are sent
 *                       1 / (1 - S) fold, so that the mean is right; nothing
 *                       is held back
 *          What was sent and what is held back add up to what was pushed, to
 *          the last bit of f64. Zeros are never sent. What is not a number, or
 *          infinite, counts as larger than anything: the server is to see it.
 *          This makes sense for updaters that add up what they get: add, sgd.
 * Shape    dense rows of n_cols f32 or f64; a row named twice is summed
 * Units    limit_bytes of what is held back: 8 for each value of its rows and
 *          PS_SPARSIFY_ROW_COST for each row. A row beyond it is sent whole.
 * Owner    The caller; what is to be sent is borrowed until the next call.
 * Threads  Confined to one thread.
 * Source   Aji and Heafield, EMNLP 2017 (topk); Hsieh et al., Gaia, NSDI 2017
 *          (threshold); Wangni et al., NIPS 2018 (skip)
 */
#ifndef PS_CLIENT_SPARSIFY_H
#define PS_CLIENT_SPARSIFY_H

#include "wire/filters/filter.h"

#define PS_SPARSIFY_ROW_COST 64 /* bytes */

typedef struct ps_sparsify ps_sparsify_t;

/* What to send. With one column rows[i] has values[i] and there are no counts;
 * else row i has counts[i] values, of ascending columns. */
typedef struct ps_thinned {
    const uint64_t *rows;
    size_t n_rows;
    const uint32_t *counts; /* NULL: one column */
    const uint32_t *cols;   /* NULL: one column */
    const void *values;     /* of the type */
    size_t n_values;
} ps_thinned_t;

/* Rows of a push: rows[n_rows], or first_row and those behind it. */
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
/* Everything that is held back, which is not any more. Errors: PSD_NOMEM,
 * nothing changed. */
PSD_MUST_CHECK psd_status_t ps_sparsify_rest(ps_sparsify_t *self, ps_thinned_t *ret_thinned,
                                             psd_error_t *err);
/* What the last push or rest gave is not going to be sent: the values are held
 * back that were held back before it. To be called before the next of them, if
 * at all; what it gave must not be looked at any more. */
void ps_sparsify_undo(ps_sparsify_t *self);
/* Rows that may have something held back. */
size_t ps_sparsify_n_held(const ps_sparsify_t *self);
#endif
