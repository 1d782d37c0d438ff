/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers rows into a reply: one block of keys, index and values, written
 * once. */
#include "model/store/store.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "model/rows/present_rows.h"
#include "model/store/reply.h"

/* Bytes that each row adds to a dense reply, and bytes that all rows share. */
static void dense_costs(const ps_store_t *self, const ps_slice_t *want, bool with_keys,
                        size_t *ret_row, size_t *ret_shared)
{
    size_t key = with_keys ? PS_KEY_BYTES : 0;

    *ret_row = key + (size_t)want->n_cols * self->shape.value_size;
    *ret_shared = want->cols == PS_COLS_LIST ? PS_COLUMN_BYTES * (size_t)want->n_cols : 0;
}

/* At least one row, if there is any. */
static uint64_t rows_that_fit(size_t max_bytes, size_t shared, size_t row, uint64_t n_rows)
{
    uint64_t n = 0;

    if (n_rows == 0) {
        return 0;
    }
    n = max_bytes > shared ? (max_bytes - shared) / row : 0;
    n = n > 0 ? n : 1;
    return n < n_rows ? n : n_rows;
}

static psd_status_t gather_dense(ps_store_t *self, const ps_gather_t *gather, ps_slice_t *ret_slice,
                                 ps_payload_t **ret_payload, psd_error_t *err)
{
    PSD_AUTO(ps_reply_done) ps_reply_t reply = {0};
    const ps_slice_t *want = &gather->want;
    size_t row_bytes = 0;
    uint64_t n = 0;

    dense_costs(self, want, gather->with_keys, &row_bytes, &reply.index_size);
    n = rows_that_fit(gather->max_bytes, reply.index_size, row_bytes, want->n_rows);
    reply.keys_size = gather->with_keys ? n * PS_KEY_BYTES : 0;
    if (__builtin_mul_overflow(n, (size_t)want->n_cols * self->shape.value_size,
                               &reply.values_size) ||
        !ps_reply_init(&reply, gather->room)) {
        return ps_reply_no_memory(n, err);
    }
    if (reply.keys_size > 0) {
        memcpy(reply.keys, gather->rows->keys.data, reply.keys_size);
    }
    if (reply.index_size > 0) {
        /* `wire` has checked its size */
        assert(gather->rows->index.data != NULL);
        memcpy(reply.index, gather->rows->index.data, reply.index_size);
    }
    ps_store_read_rows(self, want, gather->rows, n, reply.values);
    *ret_slice = *want;
    ret_slice->n_rows = n;
    ret_slice->n_values = n * want->n_cols;
    *ret_payload = reply.payload;
    reply.payload = NULL;
    return PSD_OK;
}

static psd_status_t gather_named(ps_store_t *self, const ps_gather_t *gather, ps_slice_t *ret_slice,
                                 ps_payload_t **ret_payload, psd_error_t *err)
{
    ps_gather_t named = *gather;
    psd_status_t rc = PSD_OK;

    named.want.type = self->spec.type;
    if (named.want.layout == PS_LAYOUT_SPARSE) {
        named.want.cols = PS_COLS_ALL;
        named.want.first_col = 0;
        named.want.n_cols = 0;
        rc = ps_store_gather_sparse(self, &named, ret_slice, ret_payload, err);
    } else {
        rc = gather_dense(self, &named, ret_slice, ret_payload, err);
    }
    if (rc == PSD_OK && ret_slice->rows == PS_ROWS_LIST && !gather->with_keys) {
        ret_slice->rows = PS_ROWS_ASKED;
    }
    return rc;
}

size_t ps_store_gather_limit(const ps_store_t *self, const ps_gather_t *gather)
{
    size_t row = PS_KEY_BYTES + PS_COUNT_BYTES;
    size_t shared = 0;

    if (gather->want.layout == PS_LAYOUT_DENSE) {
        dense_costs(self, &gather->want, true, &row, &shared);
    }
    return rows_that_fit(gather->max_bytes, shared, row, SIZE_MAX);
}

psd_status_t ps_store_gather_keys(ps_store_t *self, const ps_gather_t *gather, const uint64_t *keys,
                                  size_t n, ps_slice_t *ret_slice, ps_payload_t **ret_payload,
                                  psd_error_t *err)
{
    ps_gather_t named = *gather;
    ps_payload_t names = {.keys = {(const uint8_t *)keys, n * PS_KEY_BYTES}};

    named.want.rows = PS_ROWS_LIST;
    named.want.first_row = 0;
    named.want.n_rows = n;
    named.rows = &names;
    named.with_keys = true;
    if (gather->rows != NULL) {
        names.index = gather->rows->index; /* only with a column list */
    }
    return gather_named(self, &named, ret_slice, ret_payload, err);
}

/* Finds the keys, then gathers them as a list. */
psd_status_t ps_store_gather_range(ps_store_t *self, const ps_gather_t *gather,
                                   ps_slice_t *ret_slice, ps_payload_t **ret_payload,
                                   uint64_t *ret_done, psd_error_t *err)
{
    PSD_AUTO(ps_present_rows_done) ps_present_rows_t present = {0};
    const ps_slice_t *want = &gather->want;
    psd_status_t rc = PSD_OK;

    /* sorts no more keys than can fit */
    if (!ps_present_rows_find(self, want->first_row, want->n_rows, gather->since,
                              ps_store_gather_limit(self, gather), &present)) {
        return ps_reply_no_memory(want->n_rows, err);
    }
    rc = ps_store_gather_keys(self, gather, present.keys, present.n, ret_slice, ret_payload, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_done = want->n_rows;
    if (present.is_cut || ret_slice->n_rows < present.n) {
        *ret_done = present.keys[ret_slice->n_rows - 1] - want->first_row + 1;
    }
    return PSD_OK;
}

psd_status_t ps_store_gather(ps_store_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                             size_t max_bytes, ps_room_t room, ps_slice_t *ret_slice,
                             ps_payload_t **ret_payload, uint64_t *ret_done, psd_error_t *err)
{
    ps_gather_t gather = {.want = *want, .rows = rows, .max_bytes = max_bytes, .room = room};
    psd_status_t rc = PSD_OK;

    if (want->rows == PS_ROWS_RANGE && want->n_rows > 0 && ps_store_is_scattered(self)) {
        return ps_store_gather_range(self, &gather, ret_slice, ret_payload, ret_done, err);
    }
    rc = gather_named(self, &gather, ret_slice, ret_payload, err);
    if (rc == PSD_OK) {
        *ret_done = ret_slice->n_rows;
    }
    return rc;
}
