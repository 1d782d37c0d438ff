/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_kit - small specs, pushes and pulls for the tests of the store
 *
 * What     A push is put together entry by entry and then turned into a slice
 *          and a payload whose values lie at an odd address and in several
 *          spans, because a store must take them so.
 */
#ifndef PS_TESTS_STORE_KIT_H
#define PS_TESTS_STORE_KIT_H

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/rng.h"
#include "model/store/store.h"

/* A checked spec of the given kind in one partition; zero, add. */
static inline ps_table_spec_t kit_spec(ps_keys_t keys, ps_row_format_t format, ps_type_t type,
                                       uint64_t n_rows, uint32_t n_cols)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    memcpy(spec.name, "t", 2);
    spec.keys = keys;
    spec.row_format = format;
    spec.type = type;
    spec.n_rows = n_rows;
    spec.n_cols = n_cols;
    spec.n_col_slices = 1;
    spec.n_partitions = 1;
    cr_assert_eq(ps_table_spec_check(&spec, NULL), PSD_OK);
    return spec;
}

static inline ps_store_t *kit_store(const ps_table_spec_t *spec, uint32_t partition)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_store_t *store = NULL;

    cr_assert_eq(ps_table_spec_check(spec, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(ps_store_new(spec, partition, &store, NULL), PSD_OK);
    return store;
}

/* One number as a value of the type, and back. */
static inline void kit_write(ps_type_t type, uint8_t *at, double value)
{
    switch (type) {
    case PS_TYPE_I32:
        ps_store_i32(at, (int32_t)value);
        break;
    case PS_TYPE_I64:
        ps_store_i64(at, (int64_t)value);
        break;
    case PS_TYPE_F32:
        ps_store_f32(at, (float)value);
        break;
    case PS_TYPE_F64:
    default:
        ps_store_f64(at, value);
        break;
    }
}

static inline double kit_read(ps_type_t type, const uint8_t *at)
{
    switch (type) {
    case PS_TYPE_I32:
        return ps_load_i32(at);
    case PS_TYPE_I64:
        return (double)ps_load_i64(at);
    case PS_TYPE_F32:
        return (double)ps_load_f32(at);
    case PS_TYPE_F64:
    default:
        return ps_load_f64(at);
    }
}

/* A push or pull: slice and payload. */
typedef struct kit_push {
    ps_slice_t slice;
    ps_buffer_t keys;
    ps_buffer_t index;
    ps_buffer_t values;
    ps_payload_t *payload; /* after kit_push_close */
} kit_push_t;

static inline void kit_push_done(kit_push_t *self)
{
    ps_payload_destroy(&self->payload);
    ps_buffer_done(&self->keys);
    ps_buffer_done(&self->index);
    ps_buffer_done(&self->values);
}

static inline void kit_push_key(kit_push_t *self, uint64_t key)
{
    cr_assert(ps_buffer_u64(&self->keys, key));
    self->slice.n_rows++;
}

static inline void kit_push_u32(kit_push_t *self, uint32_t count_or_column)
{
    cr_assert(ps_buffer_u32(&self->index, count_or_column));
}

static inline void kit_push_value(kit_push_t *self, double value)
{
    uint8_t bytes[8];

    kit_write(self->slice.type, bytes, value);
    cr_assert(ps_buffer_append(&self->values, bytes, ps_type_size(self->slice.type)));
    self->slice.n_values++;
}

/* Cuts the values into up to five spans, some of them empty. */
static inline void kit_cut(ps_payload_t *payload, size_t value_size, ps_rng_t *rng)
{
    ps_bytes_t all = {0};
    size_t left = 0;
    size_t n_spans = 1 + ps_rng_below(rng, 5);

    if (payload->n_spans == 0) {
        return;
    }
    all = payload->spans[0];
    left = all.size / value_size;
    payload->spans = ps_alloc(n_spans, sizeof *payload->spans);
    cr_assert_not_null(payload->spans);
    for (size_t i = 0; i < n_spans; i++) {
        size_t n = i + 1 == n_spans ? left : ps_rng_below(rng, left + 1);

        payload->spans[i] = (ps_bytes_t){all.data, n * value_size};
        all.data += n * value_size;
        left -= n;
    }
    payload->n_spans = n_spans;
}

/* Makes the payload. rng NULL: one span, even addresses. */
static inline void kit_push_close(kit_push_t *self, ps_rng_t *rng)
{
    size_t pad = rng == NULL ? 0 : ps_rng_below(rng, 8);
    size_t keys = self->keys.size;
    size_t index = self->index.size;
    uint8_t *block = ps_alloc_raw(3 * pad + keys + index + self->values.size + 1, 1);
    uint8_t *at = block + pad;

    cr_assert_not_null(block);
    memcpy(at, keys > 0 ? self->keys.data : at, keys);
    memcpy(at + keys + pad, index > 0 ? self->index.data : at, index);
    memcpy(at + keys + index + 2 * pad, self->values.size > 0 ? self->values.data : at,
           self->values.size);
    self->payload = ps_payload_new((ps_bytes_t){at, keys}, (ps_bytes_t){at + keys + pad, index},
                                   (ps_bytes_t){at + keys + index + 2 * pad, self->values.size},
                                   block, ps_free);
    cr_assert_not_null(self->payload);
    if (rng != NULL) {
        kit_cut(self->payload, ps_type_size(self->slice.type), rng);
    }
}

/* n_rows keys; dense rows of all n_cols columns. values NULL: a pull. */
static inline kit_push_t kit_dense(ps_type_t type, size_t n_rows, const uint64_t *keys,
                                   uint32_t n_cols, const double *values)
{
    kit_push_t push = {.slice = {.type = type, .n_cols = n_cols}};

    for (size_t i = 0; i < n_rows; i++) {
        kit_push_key(&push, keys[i]);
    }
    for (size_t i = 0; values != NULL && i < n_rows * n_cols; i++) {
        kit_push_value(&push, values[i]);
    }
    kit_push_close(&push, NULL);
    return push;
}

/* One sparse row of n entries. values NULL: a pull of the row's entries. */
static inline kit_push_t kit_sparse(ps_type_t type, uint64_t key, size_t n, const uint32_t *columns,
                                    const double *values)
{
    kit_push_t push = {.slice = {.type = type, .layout = PS_LAYOUT_SPARSE}};

    kit_push_key(&push, key);
    if (values != NULL) {
        kit_push_u32(&push, (uint32_t)n);
    }
    for (size_t i = 0; values != NULL && i < n; i++) {
        kit_push_u32(&push, columns[i]);
        kit_push_value(&push, values[i]);
    }
    kit_push_close(&push, NULL);
    return push;
}

/* Checks and applies; frees the push. */
static inline void kit_apply(ps_store_t *store, kit_push_t push)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(ps_store_check_push(store, &push.slice, push.payload, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_eq(ps_store_push(store, &push.slice, push.payload, err), PSD_OK);
    kit_push_done(&push);
}

/* The status and text with which a push is refused; frees the push. */
static inline void kit_refused(const ps_store_t *store, kit_push_t push, psd_status_t status,
                               const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(ps_store_check_push(store, &push.slice, push.payload, err), status);
    cr_assert_str_eq(psd_error_text(err), text);
    cr_assert_eq(psd_error_status(err), status);
    kit_push_done(&push);
}

/* One value, by a dense pull of one column. */
static inline double kit_value(ps_store_t *store, ps_type_t type, uint64_t row, uint32_t col)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *reply = NULL;
    kit_push_t pull = {
        .slice = {.type = type, .cols = PS_COLS_RANGE, .first_col = col, .n_cols = 1}};
    ps_slice_t got;
    uint64_t n_done = 0;
    double value = 0;

    kit_push_key(&pull, row);
    kit_push_close(&pull, NULL);
    cr_assert_eq(ps_store_check_pull(store, &pull.slice, pull.payload, NULL), PSD_OK);
    cr_assert_eq(ps_store_gather(store, &pull.slice, pull.payload, 1024, (ps_room_t){0}, &got,
                                 &reply, &n_done, NULL),
                 PSD_OK);
    cr_assert_eq(n_done, 1);
    cr_assert_eq(got.n_values, 1);
    value = kit_read(type, reply->spans[0].data);
    kit_push_done(&pull);
    return value;
}
#endif
