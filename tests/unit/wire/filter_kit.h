/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_kit - messages of all shapes with bodies, for the tests of filters
 *
 * What     A shape is a kind, how rows, columns and values lie, and a type; a
 *          parcel is a message of that shape with n rows, as it comes out of
 *          ps_message_decode.
 */
#ifndef PS_TESTS_FILTER_KIT_H
#define PS_TESTS_FILTER_KIT_H

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/rng.h"
#include "wire/filters/filter_code.h"

#define KIT_COLS 6 /* of a dense row */

typedef struct kit_shape {
    ps_kind_t kind;
    ps_rows_kind_t rows;
    ps_layout_t layout;
    ps_cols_kind_t cols;
    ps_type_t type;
    bool ascending; /* the list of keys */
} kit_shape_t;

#define KIT_N_NUMBERS 576 /* of shapes; some are none */

/* false: the protocol has no such shape. */
static inline bool kit_shape_at(size_t number, kit_shape_t *ret)
{
    static const ps_kind_t kinds[] = {PS_KIND_PUSH, PS_KIND_PULL, PS_KIND_VALUES};
    kit_shape_t shape = {
        .kind = kinds[number % 3],
        .rows = (ps_rows_kind_t)(number / 3 % 4),
        .layout = (ps_layout_t)(number / 12 % 2),
        .cols = (ps_cols_kind_t)(number / 24 % 3),
        .type = (ps_type_t)(PS_TYPE_I32 + number / 72 % 4),
        .ascending = number / 288 % 2 == 0,
    };

    if (shape.layout == PS_LAYOUT_SPARSE && shape.cols != PS_COLS_ALL) {
        return false;
    }
    if (shape.rows == PS_ROWS_ASKED && shape.kind != PS_KIND_VALUES) {
        return false;
    }
    if (shape.rows == PS_ROWS_CACHED && shape.kind == PS_KIND_VALUES) {
        return false;
    }
    *ret = shape;
    return true;
}

#define KIT_FOR_EACH_SHAPE(shape)                                                  \
    for (size_t shape_number_ = 0; shape_number_ < KIT_N_NUMBERS; shape_number_++) \
        if (kit_shape_at(shape_number_, &(shape)))

typedef struct kit_parcel {
    ps_message_t message;
    ps_payload_t *payload; /* NULL: no body */
} kit_parcel_t;

static inline void kit_parcel_done(kit_parcel_t *self)
{
    ps_payload_destroy(&self->payload);
}

static inline void kit_put_keys(const kit_shape_t *shape, uint64_t n, ps_buffer_t *to)
{
    ps_rng_t rng = {.state = n};
    uint64_t key = 0;

    if (shape->rows == PS_ROWS_CACHED) {
        cr_assert(ps_buffer_append(to, "0123456789abcdef", 16));
    }
    for (uint64_t i = 0; shape->rows == PS_ROWS_LIST && i < n; i++) {
        key += ps_rng_below(&rng, 300);
        cr_assert(ps_buffer_u64(to, shape->ascending ? key : ~key));
    }
}

/* Values that differ, and that integers and floats can have. */
static inline void kit_put_values(ps_type_t type, uint64_t n, ps_buffer_t *to)
{
    for (uint64_t i = 0; i < n; i++) {
        int32_t value = (int32_t)(i * 37 % 101) - 50;

        if (type == PS_TYPE_F32) {
            cr_assert(ps_buffer_f32(to, (float)value / 7));
        } else if (type == PS_TYPE_F64) {
            cr_assert(ps_buffer_f64(to, (double)value / 7));
        } else if (type == PS_TYPE_I32) {
            cr_assert(ps_buffer_i32(to, value));
        } else {
            cr_assert(ps_buffer_i64(to, value));
        }
    }
}

/* Counts of sparse rows, or a list of columns; returns the sparse values. */
static inline uint64_t kit_put_index(const kit_shape_t *shape, uint64_t n, ps_buffer_t *to)
{
    uint64_t n_values = 0;

    if (shape->layout == PS_LAYOUT_SPARSE && shape->kind != PS_KIND_PULL) {
        for (uint64_t i = 0; i < n; i++) {
            cr_assert(ps_buffer_u32(to, (uint32_t)(i % 3)));
            n_values += i % 3;
        }
        for (uint64_t i = 0; i < n_values; i++) {
            cr_assert(ps_buffer_u32(to, (uint32_t)(i % 11)));
        }
    }
    for (uint32_t i = 0; shape->cols == PS_COLS_LIST && i < KIT_COLS; i++) {
        cr_assert(ps_buffer_u32(to, i * 5));
    }
    return n_values;
}

static inline kit_parcel_t kit_parcel_new(const kit_shape_t *shape, uint64_t n)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t keys = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t index = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t values = {0};
    bool sparse = shape->layout == PS_LAYOUT_SPARSE;
    kit_parcel_t self = {.message = {.kind = shape->kind}};
    ps_slice_t slice = {
        .rows = shape->rows,
        .layout = shape->layout,
        .cols = shape->cols,
        .type = shape->type,
        .n_rows = n,
        .first_row = shape->rows == PS_ROWS_RANGE ? 70 : 0,
        .first_col = shape->cols == PS_COLS_RANGE ? 7 : 0,
        .n_cols = sparse ? 0 : KIT_COLS,
    };

    kit_put_keys(shape, n, &keys);
    slice.n_values = kit_put_index(shape, n, &index);
    if (!sparse && shape->kind != PS_KIND_PULL) {
        slice.n_values = n * KIT_COLS;
    }
    kit_put_values(shape->type, slice.n_values, &values);
    ps_message_set_slice(&self.message, &slice);
    if (keys.size + index.size + values.size > 0) {
        self.payload = ps_payload_copy((ps_bytes_t){keys.data, keys.size},
                                       (ps_bytes_t){index.data, index.size},
                                       (ps_bytes_t){values.data, values.size});
        cr_assert_not_null(self.payload);
    }
    return self;
}

static inline ps_bytes_t kit_values(const ps_payload_t *payload)
{
    return payload == NULL || payload->n_spans == 0 ? (ps_bytes_t){NULL, 0} : payload->spans[0];
}
#endif
