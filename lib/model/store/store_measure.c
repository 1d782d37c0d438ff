/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over rows in place. */
#include "base/alloc.h"
#include "model/rows/row_pieces.h"
#include "model/store/store_impl.h"
#include "model/store/store_ops.h"
#include "model/updaters/ops_loops.h"

/* The state of one measurement. */
typedef struct work {
    const ps_row_shape_t *shape;
    ps_columns_t columns;
    size_t n_cols;
    ps_measure_kind_t kind;
    ps_store_t *other; /* DOT: the other store … */
    bool is_in_both;   /* … whose rows count when they are present there … */
    uint8_t *first;    /* … room for a row's first values … */
    ps_row_t row;      /* … and its row of the current key */
    double number;
    uint64_t count;
} work_t;

static void measure_piece(void *context, uint64_t row, ps_columns_t columns, uint8_t *values,
                          size_t n)
{
    work_t *work = context;
    ps_type_t type = work->shape->type;

    (void)row;
    (void)columns;
    if (work->kind == PS_MEASURE_SUM) {
        work->number = ps_values_sum(type, values, n, work->number);
    } else if (work->kind == PS_MEASURE_SQUARES) {
        work->number = ps_values_squares(type, values, n, work->number);
    } else {
        work->count += ps_values_nonzeros(type, values, n);
    }
}

static void dot_piece(void *context, uint64_t row, ps_columns_t columns, uint8_t *values, size_t n)
{
    work_t *work = context;
    const ps_row_shape_t *shape = &work->other->shape;
    bool is_run = columns.list == NULL && work->row.sparse == NULL;

    (void)row;
    if (is_run) {
        work->number = ps_values_dot(
            shape->type, values, ps_row_value(shape, &work->row, columns.first), n, work->number);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint8_t *other = ps_row_value(shape, &work->row, ps_columns_at(columns, i));

        if (other != NULL) {
            work->number =
                ps_values_dot(shape->type, values + i * shape->value_size, other, 1, work->number);
        }
    }
}

static void measure_row(void *context, uint64_t key, const ps_row_t *row)
{
    work_t *work = context;
    ps_piece_fn_t *piece = measure_piece;

    if (work->kind == PS_MEASURE_DOT) {
        if ((work->is_in_both && !ps_store_row_is_present(work->other, key)) ||
            !ps_store_row(work->other, key, work->first, &work->row)) {
            return;
        }
        piece = dot_piece;
    }
    ps_row_pieces(work->shape, key, row, work->columns, work->n_cols, piece, work);
}

psd_status_t ps_store_measure(ps_store_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                              ps_measure_kind_t kind, ps_store_t *other, uint64_t max_values,
                              ps_measure_t *ret_measure, psd_error_t *err)
{
    PSD_AUTO(ps_free_at)
    uint8_t *first = ps_alloc_raw(self->shape.width, self->shape.value_size);
    work_t work = {
        .shape = &self->shape,
        .columns = ps_slice_columns(want, rows, self->shape.first_col),
        .n_cols = want->n_cols,
        .kind = kind,
        .other = other,
        .is_in_both = want->rows == PS_ROWS_RANGE && self->spec.keys == PS_KEYS_HASH,
        .first = first,
    };
    uint64_t n_done = 0;
    psd_status_t rc = PSD_OK;

    if (first == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to look at rows");
    }
    rc = ps_store_visit(self, want, rows, max_values, measure_row, &work, &n_done, err);
    if (rc == PSD_OK) {
        *ret_measure = (ps_measure_t){.number = work.number, .count = work.count, .done = n_done};
    }
    return rc;
}
