/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an operation before any of it is applied. */
#include <inttypes.h>

#include "model/store/store_impl.h"
#include "model/store/store_ops.h"

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
