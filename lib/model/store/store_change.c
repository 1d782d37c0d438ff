/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of rows that are not pushes: their values, not their states. */
#include <string.h>

#include "base/alloc.h"
#include "model/rows/row_head.h"
#include "model/rows/row_pieces.h"
#include "model/store/image.h"
#include "model/store/op_rows.h"
#include "model/updaters/ops_loops.h"

typedef struct work {
    ps_store_t *store;
    const ps_row_change_t *change;
    ps_columns_t columns;
    size_t n_cols;
    uint8_t *first; /* owned; room for a row's first values */
    ps_row_t other; /* AXPY: the other store's row of the current key */
} work_t;

static void work_done(work_t *self)
{
    ps_free(self->first);
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for the rows of a change");
}

static void axpy_piece(const work_t *work, ps_columns_t columns, uint8_t *values, size_t n)
{
    const ps_row_shape_t *shape = &work->change->other->shape;

    if (columns.list == NULL && work->other.sparse == NULL) {
        ps_values_axpy(shape->type, values, ps_row_value(shape, &work->other, columns.first), n,
                       work->change->operand);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const uint8_t *other = ps_row_value(shape, &work->other, ps_columns_at(columns, i));

        if (other != NULL) {
            ps_values_axpy(shape->type, values + i * shape->value_size, other, 1,
                           work->change->operand);
        }
    }
}

static void change_piece(void *context, uint64_t row, ps_columns_t columns, uint8_t *values,
                         size_t n)
{
    const work_t *work = context;
    ps_type_t type = work->store->shape.type;
    double operand = work->change->operand;

    (void)row;
    if (work->change->kind == PS_CHANGE_SCALE_ROWS) {
        ps_values_scale(type, values, n, operand);
    } else if (work->change->kind == PS_CHANGE_FILL_ROWS) {
        ps_values_fill(type, values, n, operand);
    } else {
        axpy_piece(work, columns, values, n);
    }
}

static void change_row(work_t *work, uint64_t key, const ps_row_t *row)
{
    const ps_row_shape_t *shape = &work->store->shape;

    if (work->change->kind == PS_CHANGE_AXPY_ROWS &&
        !ps_store_row(work->change->other, key, work->first, &work->other)) {
        return;
    }
    /* neighbouring columns are handled as a run, even if they were named one by
     * one */
    for (size_t i = 0; i < work->n_cols;) {
        ps_columns_t rest = ps_columns_from(work->columns, i);
        size_t run = ps_columns_neighbours(rest, work->n_cols - i);
        ps_columns_t columns = {.first = ps_columns_at(rest, 0)};

        ps_row_pieces(shape, key, row, columns, run, change_piece, work);
        i += run;
    }
}

/* ---- rows that are all dense --------------------------------------------- */

static psd_status_t change_dense(work_t *work, ps_op_rows_t *rows, psd_error_t *err)
{
    ps_store_t *self = work->store;
    uint64_t n_new = self->is_array ? 0 : ps_op_rows_new(rows, self);
    uint64_t key = 0;

    if (n_new > 0 && (!ps_slab_reserve(&self->indexed.rows, n_new) ||
                      !ps_row_index_reserve(&self->indexed.index, n_new))) {
        return no_memory(err);
    }
    while (ps_op_rows_next(rows, &key)) {
        ps_row_t row = {0};

        if (self->is_array) {
            row.dense = ps_array_rows_at(&self->array, key, 0, self->shape.width);
            ps_array_rows_stamp(&self->array, key, 1);
        } else {
            uint8_t *at = ps_indexed_rows_make(&self->indexed, key);

            row = ps_indexed_row_at(&self->indexed, at);
            ps_indexed_row_stamp(&self->indexed, at);
        }
        change_row(work, key, &row);
    }
    return PSD_OK;
}

/* ---- rows that may be sparse --------------------------------------------- */

/* Keys and entries of a push that is built here. */
typedef struct made {
    ps_buffer_t keys;
    ps_buffer_t counts;
    ps_buffer_t columns;
    ps_buffer_t values;
    uint64_t n_rows;
    bool has_failed; /* no memory */
    double operand;
    const ps_row_shape_t *shape;
} made_t;

static void made_done(made_t *self)
{
    ps_buffer_done(&self->keys);
    ps_buffer_done(&self->counts);
    ps_buffer_done(&self->columns);
    ps_buffer_done(&self->values);
}

/* The other row's entries, times the operand. */
static void make_entries(void *context, uint64_t row, ps_columns_t columns, uint8_t *values,
                         size_t n)
{
    made_t *self = context;
    size_t size = self->shape->value_size;

    (void)row;
    for (size_t i = 0; i < n; i++) {
        _Alignas(8) uint8_t value[8] = {0};

        if (ps_value_is_zero(self->shape->type, values + i * size)) {
            continue;
        }
        ps_values_axpy(self->shape->type, value, values + i * size, 1, self->operand);
        if (!ps_buffer_u32(&self->columns, ps_columns_at(columns, i)) ||
            !ps_buffer_append(&self->values, value, size)) {
            self->has_failed = true;
        }
    }
}

/* A row of the push: with entries for AXPY, else without. A key is repeated
 * wherever its columns do not ascend, because the columns of a sparse row
 * must. */
static void make_row(const work_t *work, uint64_t key, made_t *made)
{
    ps_row_t other = {0};
    bool has_entries = work->change->kind == PS_CHANGE_AXPY_ROWS &&
                       ps_store_row(work->change->other, key, work->first, &other);

    for (size_t i = 0; i < work->n_cols;) {
        ps_columns_t rest = ps_columns_from(work->columns, i);
        size_t run = ps_columns_ascending(rest, work->n_cols - i);
        size_t before = made->columns.size;

        if (has_entries) {
            ps_row_pieces(&work->change->other->shape, key, &other, rest, run, make_entries, made);
        }
        before = (made->columns.size - before) / sizeof(uint32_t);
        if (!ps_buffer_u64(&made->keys, key) || !ps_buffer_u32(&made->counts, (uint32_t)before)) {
            made->has_failed = true;
        }
        made->n_rows++;
        i += has_entries ? run : work->n_cols;
    }
}

/* Pushes the built push with the rule `add`, whatever the table's rule is. */
static bool push_made(ps_store_t *self, const made_t *made, const ps_updater_t *add)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t index = {0};
    ps_indexed_rows_t *rows = &self->indexed;
    const ps_updater_t *own = rows->shape.updater;
    ps_slice_t slice = {.layout = PS_LAYOUT_SPARSE,
                        .type = self->spec.type,
                        .n_rows = made->n_rows,
                        .n_values = made->columns.size / sizeof(uint32_t)};
    bool is_done = false;

    if (!ps_buffer_append(&index, made->counts.data, made->counts.size) ||
        (made->columns.size > 0 &&
         !ps_buffer_append(&index, made->columns.data, made->columns.size))) {
        return false;
    }
    payload = ps_payload_new((ps_bytes_t){made->keys.data, made->keys.size},
                             (ps_bytes_t){index.data, index.size},
                             (ps_bytes_t){made->values.data, made->values.size}, NULL, NULL);
    if (payload == NULL) {
        return false;
    }
    rows->shape.updater = add;
    is_done = ps_indexed_rows_push(rows, &slice, payload);
    rows->shape.updater = own;
    return is_done;
}

/* Creates rows and, for AXPY, changes them: all or nothing. */
static psd_status_t push_mixed(work_t *work, ps_op_rows_t *rows, psd_error_t *err)
{
    PSD_AUTO(made_done)
    made_t made = {.operand = work->change->operand, .shape = &work->store->shape};
    PSD_AUTO(ps_updater_destroy) ps_updater_t *add = NULL;
    ps_updater_spec_t spec = {.kind = PS_UPDATER_ADD};
    psd_status_t rc = ps_updater_new(&spec, work->store->spec.type, &add, err);
    uint64_t key = 0;

    if (rc != PSD_OK) {
        return rc;
    }
    while (!made.has_failed && ps_op_rows_next(rows, &key)) {
        make_row(work, key, &made);
    }
    if (made.has_failed || (made.n_rows > 0 && !push_made(work->store, &made, add))) {
        return no_memory(err);
    }
    return PSD_OK;
}

/* SCALE and FILL: change entries in place. */
static void change_mixed(work_t *work, ps_op_rows_t *rows)
{
    ps_indexed_rows_t *indexed = &work->store->indexed;
    uint64_t key = 0;

    while (ps_op_rows_next(rows, &key)) {
        uint32_t number = ps_row_index_find(&indexed->index, key);
        uint8_t *at = NULL;
        ps_row_t row = {0};

        if (number == PS_ROW_NONE) {
            continue;
        }
        at = ps_slab_at(&indexed->rows, number);
        row = ps_indexed_row_at(indexed, at);
        change_row(work, key, &row);
        ps_indexed_row_stamp(indexed, at);
        if (row.sparse != NULL) {
            ps_sparse_row_recount(row.sparse, &indexed->shape);
            ps_row_head_settle(indexed, ps_row_head_at(indexed, at));
        }
    }
}

psd_status_t ps_store_change(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *rows,
                             const ps_row_change_t *change, psd_error_t *err)
{
    PSD_AUTO(work_done)
    work_t work = {
        .store = self,
        .change = change,
        .columns = ps_slice_columns(slice, rows, self->shape.first_col),
        .n_cols = slice->n_cols,
        .first = ps_alloc_raw(self->shape.width, self->shape.value_size),
    };
    ps_op_rows_t named = ps_op_rows_of(self, slice, rows, change);
    ps_op_rows_t again = named;
    psd_status_t rc = PSD_OK;

    if (work.first == NULL) {
        return no_memory(err);
    }
    if (self->image != NULL) {
        ps_image_before_change(self, slice, rows, change);
    }
    if (self->is_array || !ps_rows_are_mixed(&self->indexed)) {
        return change_dense(&work, &named, err);
    }
    if (change->kind == PS_CHANGE_AXPY_ROWS || slice->rows == PS_ROWS_LIST) { /* creates rows */
        rc = push_mixed(&work, &named, err);
    }
    if (rc == PSD_OK && change->kind != PS_CHANGE_AXPY_ROWS) {
        change_mixed(&work, &again);
    }
    return rc;
}
