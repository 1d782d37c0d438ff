/* SPDX-License-Identifier: Apache-2.0 */
/* Rows into a reply: one block of keys, index and values, written once. */
#include "model/store.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "model/present_rows.h"
#include "model/reply.h"

/* Bytes that each row adds to a dense reply, and those that all share. */
static void
dense_costs(const ps_store_t *self,
            const ps_slice_t *want,
            size_t *ret_row,
            size_t *ret_shared)
{
    size_t key = want->rows == PS_ROWS_LIST ? PS_KEY_BYTES : 0;

    *ret_row = key + (size_t)want->n_cols * self->shape.value_size;
    *ret_shared =
        want->cols == PS_COLS_LIST ? PS_COLUMN_BYTES * (size_t)want->n_cols : 0;
}

/* At least one row, if there is any. */
static uint64_t
rows_that_fit(size_t max_bytes, size_t shared, size_t row, uint64_t n_rows)
{
    uint64_t n = 0;

    if (n_rows == 0) {
        return 0;
    }
    n = max_bytes > shared ? (max_bytes - shared) / row : 0;
    n = n > 0 ? n : 1;
    return n < n_rows ? n : n_rows;
}

/* Whole neighbouring rows: one copy. */
static bool
is_one_copy(const ps_store_t *self, const ps_slice_t *want)
{
    return self->is_array && want->rows == PS_ROWS_RANGE &&
           want->cols != PS_COLS_LIST && want->n_cols == self->shape.width;
}

static void
read_dense(ps_store_t *self,
           const ps_slice_t *want,
           const ps_payload_t *rows,
           uint64_t n_rows,
           uint8_t *ret_values)
{
    ps_columns_t columns = ps_slice_columns(want, rows, self->shape.first_col);
    size_t row_bytes = (size_t)want->n_cols * self->shape.value_size;

    if (is_one_copy(self, want)) {
        ps_dense_row_t row = ps_array_rows_at(&self->array, want->first_row, 0,
                                              n_rows * want->n_cols);

        memcpy(ret_values, row.values, n_rows * row_bytes);
        return;
    }
    for (uint64_t i = 0; i < n_rows; i++) {
        ps_store_prefetch(self, want, rows, i, n_rows);
        ps_store_read(self, ps_slice_row(want, rows, i), columns, want->n_cols,
                      ret_values + i * row_bytes);
    }
}

static psd_status_t
gather_dense(ps_store_t *self,
             const ps_slice_t *want,
             const ps_payload_t *rows,
             size_t max_bytes,
             ps_slice_t *ret_slice,
             ps_payload_t **ret_payload,
             psd_error_t *err)
{
    PSD_AUTO(ps_reply_done) ps_reply_t reply = {0};
    size_t row_bytes = 0;
    uint64_t n = 0;
    ps_payload_t *payload = NULL;

    dense_costs(self, want, &row_bytes, &reply.index_size);
    n = rows_that_fit(max_bytes, reply.index_size, row_bytes, want->n_rows);
    reply.keys_size = want->rows == PS_ROWS_LIST ? n * PS_KEY_BYTES : 0;
    if (__builtin_mul_overflow(n, (size_t)want->n_cols * self->shape.value_size,
                               &reply.values_size) ||
        !ps_reply_init(&reply)) {
        return ps_reply_no_memory(n, err);
    }
    if (reply.keys_size > 0) {
        memcpy(reply.keys, rows->keys.data, reply.keys_size);
    }
    if (reply.index_size > 0) {
        assert(rows->index.data != NULL); /* `wire` has checked its size */
        memcpy(reply.index, rows->index.data, reply.index_size);
    }
    read_dense(self, want, rows, n, reply.values);
    payload = ps_reply_finish(&reply);
    if (payload == NULL) {
        return ps_reply_no_memory(n, err);
    }
    *ret_slice = *want;
    ret_slice->n_rows = n;
    ret_slice->n_values = n * want->n_cols;
    *ret_payload = payload;
    return PSD_OK;
}

static psd_status_t
gather_named(ps_store_t *self,
             const ps_slice_t *want,
             const ps_payload_t *rows,
             size_t max_bytes,
             ps_slice_t *ret_slice,
             ps_payload_t **ret_payload,
             psd_error_t *err)
{
    ps_slice_t named = *want;

    named.type = self->spec.type;
    if (want->layout == PS_LAYOUT_SPARSE) {
        named.cols = PS_COLS_ALL;
        named.first_col = 0;
        named.n_cols = 0;
        return ps_store_gather_sparse(self, &named, rows, max_bytes, ret_slice,
                                      ret_payload, err);
    }
    return gather_dense(self, &named, rows, max_bytes, ret_slice, ret_payload,
                        err);
}

/* The most rows that can fit, so that no more keys than that are sorted. */
static size_t
present_limit(const ps_store_t *self, const ps_slice_t *want, size_t max_bytes)
{
    size_t row = PS_KEY_BYTES + PS_COUNT_BYTES;
    size_t shared = 0;

    if (want->layout == PS_LAYOUT_DENSE) {
        dense_costs(self, want, &row, &shared);
    }
    return rows_that_fit(max_bytes, shared, row, SIZE_MAX);
}

/* A range of a scattered store: first the keys, then as if they were named. */
static psd_status_t
gather_present(ps_store_t *self,
               const ps_slice_t *want,
               const ps_payload_t *rows,
               size_t max_bytes,
               ps_slice_t *ret_slice,
               ps_payload_t **ret_payload,
               uint64_t *ret_done,
               psd_error_t *err)
{
    PSD_AUTO(ps_present_rows_done) ps_present_rows_t present = {0};
    ps_slice_t named = *want;
    ps_payload_t names = {.keys = {NULL, 0}};
    ps_slice_t got = {0};
    psd_status_t rc = PSD_OK;

    named.rows = PS_ROWS_LIST;
    named.first_row = 0;
    if (rows != NULL) {
        names.index = rows->index; /* a range without a column list has none */
    }
    if (!ps_present_rows_find(self, want->first_row, want->n_rows,
                              present_limit(self, &named, max_bytes),
                              &present)) {
        return ps_reply_no_memory(want->n_rows, err);
    }
    named.n_rows = present.n;
    names.keys =
        (ps_bytes_t){(const uint8_t *)present.keys, present.n * PS_KEY_BYTES};
    rc = gather_named(self, &named, &names, max_bytes, &got, ret_payload, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_slice = got;
    *ret_done = want->n_rows;
    if (present.is_cut || got.n_rows < present.n) {
        *ret_done = present.keys[got.n_rows - 1] - want->first_row + 1;
    }
    return PSD_OK;
}

psd_status_t
ps_store_gather(ps_store_t *self,
                const ps_slice_t *want,
                const ps_payload_t *rows,
                size_t max_bytes,
                ps_slice_t *ret_slice,
                ps_payload_t **ret_payload,
                uint64_t *ret_done,
                psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (want->rows == PS_ROWS_RANGE && want->n_rows > 0 &&
        ps_store_is_scattered(self)) {
        return gather_present(self, want, rows, max_bytes, ret_slice,
                              ret_payload, ret_done, err);
    }
    rc = gather_named(self, want, rows, max_bytes, ret_slice, ret_payload, err);
    if (rc == PSD_OK) {
        *ret_done = ret_slice->n_rows;
    }
    return rc;
}
