/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_result - fetched rows, in order of their keys
 *
 * Shape    rows point into values and, when sparse, cols
 * Owner    The caller; psd_result_destroy.
 */
#ifndef PS_CLIENT_RESULT_H
#define PS_CLIENT_RESULT_H

#include "base/bytes.h"
#include "model/tables/table.h"
#include "psd/rows.h"

typedef struct ps_result_row {
    uint64_t key;
    size_t at; /* its first value, and column */
    size_t n;
} ps_result_row_t;

struct psd_result {
    ps_result_row_t *rows; /* owned */
    size_t n_rows;
    size_t capacity;
    ps_buffer_t values;
    ps_buffer_t cols; /* u32; sparse only */
    size_t value_size;
    size_t max_rows; /* from which on it is full; SIZE_MAX: never */
    bool is_sparse;
};

PSD_MUST_CHECK psd_status_t ps_result_new(ps_type_t type, bool sparse, size_t max_rows,
                                          psd_result_t **ret_result, psd_error_t *err);
/* Adds the rows of an answer, in the answer's order. `asked` is the request: it
 * names the rows of an answer with ASKED rows. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_result_add(psd_result_t *self, const ps_slice_t *slice,
                                          const ps_payload_t *payload, const ps_slice_t *asked,
                                          const ps_payload_t *asked_payload);
/* Adds a row whose values are in place already. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_result_add_row(psd_result_t *self, uint64_t key, size_t at, size_t n,
                                              psd_error_t *err);
/* Sparse rows of one value each: keeps the n largest, from the largest down;
 * equal ones by row, then by column. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_result_rank(psd_result_t *self, ps_type_t type, size_t n,
                                           psd_error_t *err);
bool ps_result_is_full(const psd_result_t *self);
/* Sorts by key. merge: rows of one key are parts of it, in order of columns,
 * and become one. Then drops rows beyond max_rows. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_result_finish(psd_result_t *self, bool merge, size_t max_rows,
                                             psd_error_t *err);
#endif
