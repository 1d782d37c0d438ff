/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of SPARSE and AUTO tables: creating them and reserving room in them, the
 * only steps of a push that may fail. */
#include "model/rows/row_head.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "model/rows/row_walk.h"

#define FIRST_ENTRIES 4 /* room of a sparse row whose need is not known */
#define SHRINK_BELOW 4  /* a sparse row shrinks below 1/4 of its room */

uint32_t ps_row_head_room(uint32_t n)
{
    uint64_t most = n == 0 ? 0 : (uint64_t)SHRINK_BELOW * n - 1;

    return most < FIRST_ENTRIES ? FIRST_ENTRIES : most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

/* Replaces a sparse row's block, or sets the first one. */
static void set_sparse(ps_indexed_rows_t *self, ps_row_head_t *head, ps_sparse_row_t *old,
                       ps_sparse_row_t *row)
{
    uint32_t absent = ps_row_head_flags(*head) & PS_HEAD_ABSENT;

    if (old != NULL) {
        self->sparse_bytes -= ps_sparse_row_bytes(&self->shape, old->capacity);
        ps_free(old);
    }
    self->sparse_bytes += ps_sparse_row_bytes(&self->shape, row->capacity);
    *head = (uint8_t *)(void *)row + absent;
}

/* True when an AUTO table stores a row with this number of entries as dense. */
static bool dense_is_smaller(const ps_indexed_rows_t *self, uint32_t capacity)
{
    return self->shape.spec->row_format == PS_ROW_AUTO &&
           ps_sparse_row_bytes(&self->shape, capacity) >= ps_row_shape_bytes(&self->shape);
}

/* Writes a sparse row's entries as a dense row, which is all zero. */
static void spread(const ps_indexed_rows_t *self, const ps_sparse_row_t *sparse, uint8_t *values)
{
    const ps_row_shape_t *shape = &self->shape;
    ps_dense_row_t row = {
        .values = values,
        .state = values + (size_t)shape->width * shape->value_size,
        .state_stride = shape->width,
    };

    ps_sparse_row_spread(sparse, shape, &row);
}

static bool turn_dense(ps_indexed_rows_t *self, ps_row_head_t *head, ps_sparse_row_t *sparse)
{
    uint32_t absent = ps_row_head_flags(*head) & PS_HEAD_ABSENT;
    uint32_t number = 0;
    uint8_t *values = NULL;

    if (!ps_slab_add(&self->dense, &number)) {
        return false;
    }
    values = ps_slab_at(&self->dense, number);
    spread(self, sparse, values);
    self->sparse_entries -= sparse->n;
    self->sparse_bytes -= ps_sparse_row_bytes(&self->shape, sparse->capacity);
    ps_free(sparse);
    *head = values + PS_HEAD_DENSE + absent;
    return true;
}

/* Makes room for `more` entries; the row may turn dense instead. */
static bool make_room(ps_indexed_rows_t *self, ps_row_head_t *head, uint32_t more)
{
    ps_sparse_row_t *old = ps_row_head_sparse(*head);
    ps_sparse_row_t *row = NULL;
    uint32_t width = self->shape.width;
    uint32_t need = old->n + more; /* different columns: at most width */
    uint32_t capacity = old->capacity < width / 2 ? 2 * old->capacity : width;

    assert(more <= width - old->n);
    if (need <= old->capacity) {
        return true;
    }
    capacity = capacity < need ? need : capacity;
    if (dense_is_smaller(self, capacity)) {
        return turn_dense(self, head, old);
    }
    row = ps_sparse_row_new(&self->shape, old, capacity);
    if (row == NULL) {
        return false;
    }
    set_sparse(self, head, old, row);
    return true;
}

void ps_row_head_settle(ps_indexed_rows_t *self, ps_row_head_t *head)
{
    ps_sparse_row_t *row = ps_row_head_sparse(*head);

    if (row->n_pending > 0) {
        return;
    }
    if (row->n_zeros > 0) {
        self->sparse_entries -= row->n_zeros;
        ps_sparse_row_drop_zeros(row, &self->shape);
    }
    if (row->capacity <= ps_row_head_room(row->n)) {
        return;
    }
    self->sparse_bytes -= ps_sparse_row_bytes(&self->shape, row->capacity);
    ps_sparse_row_shrink(&row, &self->shape, row->n * 2 + FIRST_ENTRIES / 2);
    self->sparse_bytes += ps_sparse_row_bytes(&self->shape, row->capacity);
    *head = (uint8_t *)(void *)row + ps_row_head_flags(*head);
}

/* Reserves entries for one piece of a row's deltas whose columns ascend. */
static bool reserve_piece(ps_indexed_rows_t *self, ps_row_head_t *head, ps_columns_t columns,
                          const uint8_t *deltas, size_t n)
{
    ps_sparse_row_t *row = ps_row_head_sparse(*head);
    uint32_t missing = ps_sparse_row_missing(row, &self->shape, columns, deltas, n);

    if (missing == 0) {
        return true;
    }
    if (!make_room(self, head, missing)) {
        return false;
    }
    if (!ps_row_head_is_dense(*head)) {
        row = ps_row_head_sparse(*head);
        ps_sparse_row_add(row, &self->shape, columns, deltas, n, missing);
        self->sparse_entries += missing;
    }
    return true;
}

static bool reserve_entries(ps_indexed_rows_t *self, ps_row_head_t *head, ps_deltas_t *deltas)
{
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        for (size_t i = 0; i < n;) {
            ps_columns_t rest = ps_columns_from(columns, i);
            size_t run = ps_columns_ascending(rest, n - i);
            const uint8_t *at = values + i * self->shape.value_size;

            if (!reserve_piece(self, head, rest, at, run)) {
                ps_row_head_settle(self, head);
                return false;
            }
            if (ps_row_head_is_dense(*head)) {
                return true; /* a dense row has room for everything */
            }
            i += run;
        }
    }
    ps_row_head_sparse(*head)->n_pending++;
    return true;
}

/* Makes the head of a new row in the form of the push: with `entries` entries,
 * or dense. */
static bool make_head(ps_indexed_rows_t *self, bool born_dense, uint32_t entries,
                      ps_row_head_t *ret_head)
{
    ps_sparse_row_t *row = NULL;
    uint32_t number = 0;

    if (born_dense || dense_is_smaller(self, entries)) {
        if (!ps_slab_add(&self->dense, &number)) { /* all zero, as it begins */
            return false;
        }
        *ret_head = ps_slab_at(&self->dense, number) + PS_HEAD_DENSE + PS_HEAD_ABSENT;
        return true;
    }
    row = ps_sparse_row_new(&self->shape, NULL, entries);
    if (row == NULL) {
        return false;
    }
    set_sparse(self, ret_head, NULL, row);
    *ret_head += PS_HEAD_ABSENT;
    return true;
}

/* Creates the missing row for the key of `deltas`, in the form of the push.
 * Rows and index have room for it. */
static bool make_row(ps_indexed_rows_t *self, const ps_deltas_t *deltas, ps_row_head_t **ret_head)
{
    bool is_sparse = deltas->slice->layout == PS_LAYOUT_SPARSE;
    bool is_auto = self->shape.spec->row_format == PS_ROW_AUTO;
    uint64_t entries = is_sparse ? deltas->n_left : FIRST_ENTRIES;
    uint32_t width = self->shape.width;
    ps_row_head_t head = NULL;
    uint32_t number = 0;
    uint8_t *at = NULL;

    entries = entries < width ? entries : width;
    if (!make_head(self, is_auto && !is_sparse, (uint32_t)entries, &head)) {
        return false;
    }
    if (!ps_slab_add(&self->rows, &number)) {
        assert(false); /* there was room */
        return false;
    }
    at = ps_slab_at(&self->rows, number);
    ps_store_u64(at, deltas->row);
    *ps_row_head_at(self, at) = head;
    ps_row_index_add(&self->index, deltas->row, number);
    self->n_absent++;
    *ret_head = ps_row_head_at(self, at);
    return true;
}

static bool reserve_row(ps_indexed_rows_t *self, uint8_t *at, ps_deltas_t *deltas)
{
    ps_row_head_t *head = at == NULL ? NULL : ps_row_head_at(self, at);
    uint32_t number = PS_ROW_NONE;

    if (head == NULL) { /* it may have been created after the look-up of its group */
        number = ps_row_index_find(&self->index, deltas->row);
    }
    if (number != PS_ROW_NONE) {
        head = ps_row_head_at(self, ps_slab_at(&self->rows, number));
    }
    if (head == NULL && !make_row(self, deltas, &head)) {
        return false;
    }
    return ps_row_head_is_dense(*head) || reserve_entries(self, head, deltas);
}

/* Takes back the reservation of the first n_rows rows. */
static void unreserve(ps_indexed_rows_t *self, const ps_slice_t *slice, const ps_payload_t *payload,
                      uint64_t n_rows)
{
    for (uint64_t i = 0; i < n_rows; i++) {
        uint64_t key = ps_slice_row(slice, payload, i);
        uint32_t number = ps_row_index_find(&self->index, key);
        ps_row_head_t *head = NULL;

        assert(number != PS_ROW_NONE);
        head = ps_row_head_at(self, ps_slab_at(&self->rows, number));
        if (!ps_row_head_is_dense(*head)) {
            ps_row_head_sparse(*head)->n_pending--;
            ps_row_head_settle(self, head);
        }
    }
}

bool ps_row_heads_reserve(ps_indexed_rows_t *self, const ps_slice_t *slice,
                          const ps_payload_t *payload)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, self->shape.first_col);
    ps_row_walk_t walk;

    if (!ps_slab_reserve(&self->rows, slice->n_rows) ||
        !ps_row_index_reserve(&self->index, slice->n_rows)) {
        return false;
    }
    ps_row_walk_begin(&walk, self, slice, payload, slice->n_rows, PS_NEED_ALL);
    while (ps_row_walk_next(&walk)) {
        for (size_t i = 0; i < walk.n && ps_deltas_next(&deltas); i++) {
            if (!reserve_row(self, walk.found[i], &deltas)) {
                unreserve(self, slice, payload, walk.first + i);
                return false;
            }
        }
    }
    return true;
}
