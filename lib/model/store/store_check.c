/* SPDX-License-Identifier: Apache-2.0 */
/* Checks everything that may be wrong with a push, a pull or an operation before any of it is
 * applied. Messages name row, column and value in the table's numbers. */
#include "model/store/store.h"

#include <inttypes.h>

#include "model/store/store_impl.h"
#include "model/store/store_ops.h"
#include "model/updaters/finite.h"

static psd_status_t row_outside(const ps_store_t *self, uint64_t row, psd_error_t *err)
{
    const ps_extent_t *extent = &self->extent;

    if (self->spec.keys == PS_KEYS_RANGE && row >= self->spec.n_rows) {
        return psd_error_set(err, PSD_RANGE, "row %" PRIu64 " is outside 0..%" PRIu64, row,
                             self->spec.n_rows - 1);
    }
    if (extent->n_slices > 1) {
        return psd_error_set(err, PSD_RANGE,
                             "row %" PRIu64 " is not in this partition, which "
                             "holds hash slice %" PRIu32 " of 0..%" PRIu32,
                             row, extent->slice, extent->n_slices - 1);
    }
    if (extent->first_row > extent->last_row) {
        return psd_error_set(err, PSD_RANGE,
                             "row %" PRIu64 " is not in this partition, which is empty", row);
    }
    return psd_error_set(err, PSD_RANGE,
                         "row %" PRIu64 " is not in this partition, which "
                         "holds rows %" PRIu64 "..%" PRIu64,
                         row, extent->first_row, extent->last_row);
}

/* Both ends of a range of rows; n_rows > 0. */
static psd_status_t check_row_range(const ps_store_t *self, const ps_slice_t *slice,
                                    psd_error_t *err)
{
    const ps_extent_t *extent = &self->extent;
    uint64_t first = slice->first_row;
    uint64_t last = 0;

    if (__builtin_add_overflow(first, slice->n_rows - 1, &last)) {
        return psd_error_set(err, PSD_RANGE,
                             "%" PRIu64 " rows from row %" PRIu64
                             " on run past the last one, %" PRIu64,
                             slice->n_rows, first, UINT64_MAX);
    }
    if (first < extent->first_row || first > extent->last_row) {
        return row_outside(self, first, err);
    }
    if (last > extent->last_row) {
        return row_outside(self, extent->last_row + 1, err);
    }
    return PSD_OK;
}

static psd_status_t check_each_row(const ps_store_t *self, const ps_slice_t *slice,
                                   const ps_payload_t *payload, psd_error_t *err)
{
    const ps_extent_t *extent = &self->extent;
    bool is_range = extent->n_slices == 1; /* two comparisons are enough */

    for (uint64_t i = 0; i < slice->n_rows; i++) {
        uint64_t row = ps_slice_row(slice, payload, i);
        bool is_here = is_range ? row >= extent->first_row && row <= extent->last_row
                                : ps_extent_has_row(extent, row);

        if (!is_here) {
            return row_outside(self, row, err);
        }
    }
    return PSD_OK;
}

static psd_status_t column_outside(const ps_store_t *self, uint64_t row, uint32_t col,
                                   psd_error_t *err)
{
    const ps_extent_t *extent = &self->extent;

    if (col >= self->spec.n_cols || self->spec.n_col_slices == 1) {
        return psd_error_set(err, PSD_RANGE,
                             "row %" PRIu64 " column %" PRIu32 " is outside 0..%" PRIu32, row, col,
                             self->spec.n_cols - 1);
    }
    return psd_error_set(err, PSD_RANGE,
                         "row %" PRIu64 " column %" PRIu32
                         " is not in this partition, which holds columns "
                         "%" PRIu32 "..%" PRIu32,
                         row, col, extent->first_col, extent->last_col);
}

static psd_status_t width_differs(const ps_store_t *self, uint64_t row, uint32_t n_cols,
                                  psd_error_t *err)
{
    return psd_error_set(err, PSD_SHAPE,
                         "row %" PRIu64 " has %" PRIu32 " value%s, the %s has "
                         "%" PRIu32 " column%s",
                         row, n_cols, n_cols == 1 ? "" : "s",
                         self->spec.n_col_slices == 1 ? "table" : "partition", self->shape.width,
                         self->shape.width == 1 ? "" : "s");
}

/* Columns of a DENSE slice: the same for all rows, `row` is the first. */
static psd_status_t check_dense_columns(const ps_store_t *self, const ps_slice_t *slice,
                                        const ps_payload_t *payload, psd_error_t *err)
{
    const ps_extent_t *extent = &self->extent;
    uint64_t row = ps_slice_row(slice, payload, 0);
    ps_columns_t columns = ps_slice_columns(slice, payload, self->shape.first_col);

    if (slice->n_cols == 0 || (slice->cols == PS_COLS_ALL && slice->n_cols != self->shape.width)) {
        return width_differs(self, row, slice->n_cols, err);
    }
    if (slice->cols == PS_COLS_RANGE) {
        uint32_t left = extent->last_col - slice->first_col;

        if (slice->first_col < extent->first_col || slice->first_col > extent->last_col) {
            return column_outside(self, row, slice->first_col, err);
        }
        return slice->n_cols - 1 <= left ? PSD_OK
                                         : column_outside(self, row, extent->last_col + 1, err);
    }
    for (uint32_t i = 0; columns.list != NULL && i < slice->n_cols; i++) {
        uint32_t col = ps_columns_at(columns, i);

        if (col < extent->first_col || col > extent->last_col) {
            return column_outside(self, row, col, err);
        }
    }
    return PSD_OK;
}

/* Columns of one row of a SPARSE slice. */
static psd_status_t check_sparse_columns(const ps_store_t *self, const ps_deltas_t *deltas,
                                         psd_error_t *err)
{
    const ps_extent_t *extent = &self->extent;
    size_t n = (size_t)deltas->n_left;

    for (size_t i = 0; i < n; i++) {
        uint32_t col = ps_columns_at(deltas->columns, i);
        uint32_t before = i > 0 ? ps_columns_at(deltas->columns, i - 1) : 0;

        if (col < extent->first_col || col > extent->last_col) {
            return column_outside(self, deltas->row, col, err);
        }
        if (i > 0 && col <= before) {
            return psd_error_set(err, PSD_SHAPE,
                                 "row %" PRIu64 " column %" PRIu32 " comes after column %" PRIu32
                                 "; columns of a sparse row must ascend",
                                 deltas->row, col, before);
        }
    }
    return PSD_OK;
}

static psd_status_t check_columns(const ps_store_t *self, const ps_slice_t *slice,
                                  const ps_payload_t *payload, psd_error_t *err)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, self->shape.first_col);
    psd_status_t rc = PSD_OK;

    if (slice->layout == PS_LAYOUT_DENSE) {
        return check_dense_columns(self, slice, payload, err);
    }
    while (rc == PSD_OK && ps_deltas_next(&deltas)) {
        rc = check_sparse_columns(self, &deltas, err);
    }
    return rc;
}

static psd_status_t not_finite(ps_type_t type, uint64_t row, uint32_t col, const uint8_t *value,
                               psd_error_t *err)
{
    double number = type == PS_TYPE_F32 ? (double)ps_load_f32(value) : ps_load_f64(value);
    const char *name = number > 0 ? "inf" : "-inf";

    return psd_error_set(err, PSD_NOT_FINITE,
                         "row %" PRIu64 " column %" PRIu32 " is %s; only finite deltas are allowed",
                         row, col, number != number ? "nan" : name);
}

/* The first value of the current row that is not finite, if any. */
static psd_status_t check_finite_row(ps_type_t type, ps_deltas_t *deltas, psd_error_t *err)
{
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        for (size_t i = 0; i < n; i++) {
            const uint8_t *at = values + i * deltas->value_size;

            if (!ps_finite_all(type, at, 1)) {
                return not_finite(type, deltas->row, ps_columns_at(columns, i), at, err);
            }
        }
    }
    return PSD_OK;
}

/* Row by row: only after a value that is not finite has been seen. */
static psd_status_t name_not_finite(const ps_store_t *self, const ps_slice_t *slice,
                                    const ps_payload_t *payload, psd_error_t *err)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, self->shape.first_col);
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && ps_deltas_next(&deltas)) {
        rc = check_finite_row(slice->type, &deltas, err);
    }
    return rc;
}

static psd_status_t check_finite(const ps_store_t *self, const ps_slice_t *slice,
                                 const ps_payload_t *payload, psd_error_t *err)
{
    for (size_t i = 0; i < payload->n_spans; i++) {
        const ps_bytes_t *span = &payload->spans[i];
        size_t n = span->size / self->shape.value_size;

        if (!ps_finite_all(slice->type, span->data, n)) {
            return name_not_finite(self, slice, payload, err);
        }
    }
    return PSD_OK;
}

psd_status_t ps_store_check_push(const ps_store_t *self, const ps_slice_t *slice,
                                 const ps_payload_t *payload, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (slice->type != self->spec.type) {
        return psd_error_set(err, PSD_TYPE, "values are %s, the table's are %s",
                             ps_type_name(slice->type), ps_type_name(self->spec.type));
    }
    if (slice->n_rows == 0) {
        return PSD_OK;
    }
    if (slice->rows == PS_ROWS_RANGE) {
        rc = check_row_range(self, slice, err);
    }
    /* Columns before rows: rows without columns would cost nothing to send, and
     * could be too many to check each. */
    if (rc == PSD_OK) {
        rc = check_columns(self, slice, payload, err);
    }
    if (rc == PSD_OK && (slice->rows == PS_ROWS_LIST || self->extent.n_slices > 1)) {
        rc = check_each_row(self, slice, payload, err);
    }
    if (rc == PSD_OK && !self->spec.allow_nonfinite && !payload->finite) {
        rc = check_finite(self, slice, payload, err);
    }
    return rc;
}

psd_status_t ps_store_check_pull(const ps_store_t *self, const ps_slice_t *slice,
                                 const ps_payload_t *payload, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (slice->n_rows == 0) {
        return PSD_OK;
    }
    rc = slice->rows == PS_ROWS_RANGE ? check_row_range(self, slice, err)
                                      : check_each_row(self, slice, payload, err);
    if (rc == PSD_OK && slice->layout == PS_LAYOUT_DENSE) {
        rc = check_dense_columns(self, slice, payload, err);
    }
    return rc;
}

static psd_status_t check_layouts(const ps_store_t *self, const ps_store_t *other, psd_error_t *err)
{
    if (self->spec.keys != other->spec.keys ||
        self->spec.partition_by != other->spec.partition_by) {
        return psd_error_set(err, PSD_SHAPE,
                             "the tables differ in keys (%s, %s) or in how "
                             "rows are cut into partitions",
                             ps_keys_name(self->spec.keys), ps_keys_name(other->spec.keys));
    }
    return PSD_OK;
}

psd_status_t ps_store_check_pair(const ps_store_t *self, const ps_store_t *other, psd_error_t *err)
{
    const ps_extent_t *a = &self->extent;
    const ps_extent_t *b = &other->extent;

    if (self->spec.type != other->spec.type) {
        return psd_error_set(err, PSD_TYPE,
                             "the tables' values are %s and %s; they must be of "
                             "one type",
                             ps_type_name(self->spec.type), ps_type_name(other->spec.type));
    }
    if (a->first_col != b->first_col || a->last_col != b->last_col) {
        return psd_error_set(err, PSD_SHAPE,
                             "the partitions hold columns %" PRIu32 "..%" PRIu32 " and %" PRIu32
                             "..%" PRIu32 "; they must be the same",
                             a->first_col, a->last_col, b->first_col, b->last_col);
    }
    if (a->first_row != b->first_row || a->last_row != b->last_row || a->slice != b->slice ||
        a->n_slices != b->n_slices) {
        return psd_error_set(err, PSD_SHAPE,
                             "the partitions hold rows %" PRIu64 "..%" PRIu64 " and %" PRIu64
                             "..%" PRIu64 "; they must be the same",
                             a->first_row, a->last_row, b->first_row, b->last_row);
    }
    return check_layouts(self, other, err);
}

/* Whole, and in the range of an integer type. */
static bool is_integer_of(ps_type_t type, double operand)
{
    double limit = type == PS_TYPE_I32 ? 0x1p31 : 0x1p63;

    return operand >= -limit && operand < limit && operand == (double)(int64_t)operand;
}

static psd_status_t check_operand(const ps_store_t *self, const ps_row_change_t *change,
                                  psd_error_t *err)
{
    ps_type_t type = self->spec.type;
    double operand = change->operand;
    bool is_integer = type == PS_TYPE_I32 || type == PS_TYPE_I64;
    double as_value = type == PS_TYPE_F32 ? (double)(float)operand : operand;

    if (!self->spec.allow_nonfinite && as_value - as_value != 0) {
        return psd_error_set(err, PSD_NOT_FINITE,
                             "the operand is %g; only finite ones of type %s "
                             "are allowed",
                             operand, ps_type_name(type));
    }
    if (is_integer && !is_integer_of(type, operand)) {
        return psd_error_set(err, PSD_INVALID,
                             "the operand is %.17g; allowed for %s values are "
                             "whole numbers of their range",
                             operand, ps_type_name(type));
    }
    if (change->kind == PS_CHANGE_FILL_ROWS && operand != 0 &&
        self->spec.row_format != PS_ROW_DENSE) {
        return psd_error_set(err, PSD_INVALID,
                             "rows of format %s can be filled with 0 only, not "
                             "with %.17g",
                             ps_row_format_name(self->spec.row_format), operand);
    }
    return PSD_OK;
}

psd_status_t ps_store_check_change(const ps_store_t *self, const ps_slice_t *slice,
                                   const ps_payload_t *rows, const ps_row_change_t *change,
                                   psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (change->kind < PS_CHANGE_SCALE_ROWS || change->kind > PS_CHANGE_AXPY_ROWS) {
        return psd_error_set(err, PSD_INVALID, "change %d is not known; allowed: %d..%d",
                             (int)change->kind, PS_CHANGE_SCALE_ROWS, PS_CHANGE_AXPY_ROWS);
    }
    if (slice->type != self->spec.type) {
        return psd_error_set(err, PSD_TYPE, "values are %s, the table's are %s",
                             ps_type_name(slice->type), ps_type_name(self->spec.type));
    }
    if (slice->layout != PS_LAYOUT_DENSE) {
        return psd_error_set(err, PSD_SHAPE, "an operation names columns as dense rows do");
    }
    rc = ps_store_check_pull(self, slice, rows, err);
    if (rc == PSD_OK) {
        rc = check_operand(self, change, err);
    }
    if (rc == PSD_OK && change->kind == PS_CHANGE_AXPY_ROWS) {
        rc = change->other == NULL
                 ? psd_error_set(err, PSD_INVALID, "axpy needs a table to add from")
                 : ps_store_check_pair(self, change->other, err);
    }
    return rc;
}
