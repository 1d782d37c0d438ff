/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by key: finding them and applying pushes to them. */
#include "model/rows/indexed_rows.h"

#include <assert.h>

#include "base/alloc.h"
#include "model/rows/push.h"
#include "model/rows/row_head.h"
#include "model/rows/row_walk.h"
#include "model/updaters/init.h"

static ps_row_t dense_row_at(const ps_indexed_rows_t *self, uint8_t *values)
{
    const ps_row_shape_t *shape = &self->shape;
    size_t size = (size_t)shape->width * shape->value_size;

    return (ps_row_t){
        .dense = {.values = values,
                  .state = shape->n_states == 0 ? NULL : values + size,
                  .state_stride = shape->width},
    };
}

ps_row_t ps_indexed_row_at(const ps_indexed_rows_t *self, uint8_t *at)
{
    ps_row_head_t head = NULL;

    if (!ps_rows_are_mixed(self)) {
        return dense_row_at(self, at + self->values_at);
    }
    head = *ps_row_head_at(self, at);
    if (ps_row_head_is_dense(head)) {
        return dense_row_at(self, ps_row_head_target(head));
    }
    return (ps_row_t){.sparse = ps_row_head_sparse(head)};
}

bool ps_indexed_row_is_present(const ps_indexed_rows_t *self, const uint8_t *at)
{
    ps_row_head_t head = NULL;

    if (!ps_rows_are_mixed(self)) {
        return true;
    }
    memcpy(&head, at + self->values_at, sizeof head);
    return (ps_row_head_flags(head) & PS_HEAD_ABSENT) == 0;
}

uint64_t ps_indexed_row_version(const ps_indexed_rows_t *self, const uint8_t *at)
{
    return self->shape.version == NULL ? 0 : ps_load_u64(at + PS_ROW_VERSION_AT);
}

void ps_indexed_rows_init(ps_indexed_rows_t *self, const ps_row_shape_t *shape)
{
    bool is_dense = shape->spec->row_format == PS_ROW_DENSE;

    *self = (ps_indexed_rows_t){.shape = *shape, .values_at = PS_ROW_VERSION_AT};
    if (shape->version != NULL) {
        self->values_at += (uint32_t)sizeof(uint64_t);
    }
    ps_slab_init(&self->rows,
                 self->values_at + (is_dense ? ps_row_shape_bytes(shape) : sizeof(ps_row_head_t)));
    ps_slab_init(&self->dense, ps_row_shape_bytes(shape));
    ps_row_index_init(&self->index, &self->rows);
}

void ps_indexed_rows_done(ps_indexed_rows_t *self)
{
    if (self->shape.spec == NULL) {
        return; /* never begun */
    }
    for (uint32_t i = 0; ps_rows_are_mixed(self) && i < self->rows.n; i++) {
        ps_row_head_t head = *ps_row_head_at(self, ps_slab_at(&self->rows, i));

        if (!ps_row_head_is_dense(head)) {
            ps_free(ps_row_head_target(head));
        }
    }
    ps_slab_done(&self->rows);
    ps_slab_done(&self->dense);
    ps_row_index_done(&self->index);
}

uint8_t *ps_indexed_rows_make(ps_indexed_rows_t *self, uint64_t key)
{
    const ps_row_shape_t *shape = &self->shape;
    size_t size = (size_t)shape->width * shape->value_size;
    uint32_t number = ps_row_index_find(&self->index, key);
    uint8_t *at = NULL;
    bool is_made = false;

    if (number != PS_ROW_NONE) {
        return ps_slab_at(&self->rows, number);
    }
    is_made = ps_slab_add(&self->rows, &number);
    assert(is_made);
    (void)is_made;
    at = ps_slab_at(&self->rows, number);
    ps_store_u64(at, key);
    at += self->values_at;
    if (!ps_init_is_zero(&shape->spec->init)) { /* else they are zero */
        ps_init_fill(shape->spec, key, shape->first_col, shape->width, at);
        ps_updater_begin(shape->updater, at, shape->n_states == 0 ? NULL : at + size, shape->width,
                         shape->width);
    }
    ps_row_index_add(&self->index, key, number);
    return at - self->values_at;
}

/* Every value of every row of a DENSE table. */
static void push_whole_rows(ps_indexed_rows_t *self, const ps_slice_t *slice,
                            const ps_payload_t *payload)
{
    ps_row_walk_t walk;
    ps_push_t push;

    ps_row_walk_begin(&walk, self, slice, payload, slice->n_rows, PS_NEED_ALL);
    ps_push_begin(&push, &self->shape, payload, NULL, NULL, self->shape.width);
    while (ps_row_walk_next(&walk)) {
        for (size_t i = 0; i < walk.n; i++) {
            if (walk.found[i] == NULL) {
                walk.found[i] =
                    ps_indexed_rows_make(self, ps_slice_row(slice, payload, walk.first + i));
            }
            ps_indexed_row_stamp(self, walk.found[i]);
            walk.found[i] += self->values_at;
        }
        ps_push_rows(&push, walk.found, walk.n);
    }
}

/* Some columns of the rows of a DENSE table. */
static void push_columns(ps_indexed_rows_t *self, const ps_slice_t *slice,
                         const ps_payload_t *payload)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, self->shape.first_col);
    ps_row_walk_t walk;
    ps_push_t push;

    ps_row_walk_begin(&walk, self, slice, payload, slice->n_rows, PS_NEED_ALL);
    ps_push_begin(&push, &self->shape, payload, NULL, NULL, self->shape.width);
    while (ps_row_walk_next(&walk)) {
        for (size_t i = 0; i < walk.n && ps_deltas_next(&deltas); i++) {
            uint8_t *at = walk.found[i];

            at = at == NULL ? ps_indexed_rows_make(self, deltas.row) : at;
            ps_indexed_row_stamp(self, at);
            ps_push_columns(&push, at + self->values_at, &deltas);
        }
    }
}

static void push_sparse_row(ps_indexed_rows_t *self, ps_row_head_t *head, ps_deltas_t *deltas)
{
    ps_sparse_row_t *row = ps_row_head_sparse(*head);
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        ps_sparse_row_apply(row, &self->shape, columns, values, n);
    }
    assert(row->n_pending > 0);
    row->n_pending--;
    ps_row_head_settle(self, head);
}

/* Rows of a SPARSE or AUTO table, already reserved. */
static void push_mixed(ps_indexed_rows_t *self, const ps_slice_t *slice,
                       const ps_payload_t *payload)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, self->shape.first_col);
    ps_row_walk_t walk;
    ps_push_t push;

    ps_row_walk_begin(&walk, self, slice, payload, slice->n_rows, PS_NEED_ALL);
    ps_push_begin(&push, &self->shape, payload, NULL, NULL, self->shape.width);
    while (ps_row_walk_next(&walk)) {
        for (size_t i = 0; i < walk.n && ps_deltas_next(&deltas); i++) {
            ps_row_head_t *head = ps_row_head_at(self, walk.found[i]);

            ps_indexed_row_stamp(self, walk.found[i]);
            if ((ps_row_head_flags(*head) & PS_HEAD_ABSENT) != 0) {
                *head -= PS_HEAD_ABSENT;
                self->n_absent--;
            }
            if (ps_row_head_is_dense(*head)) {
                ps_push_columns(&push, ps_row_head_target(*head), &deltas);
            } else {
                push_sparse_row(self, head, &deltas);
            }
        }
    }
}

bool ps_indexed_rows_push(ps_indexed_rows_t *self, const ps_slice_t *slice,
                          const ps_payload_t *payload)
{
    if (ps_rows_are_mixed(self)) {
        if (!ps_row_heads_reserve(self, slice, payload)) {
            return false;
        }
        push_mixed(self, slice, payload);
        return true;
    }
    if (!ps_slab_reserve(&self->rows, slice->n_rows) ||
        !ps_row_index_reserve(&self->index, slice->n_rows)) {
        return false;
    }
    if (ps_slice_is_whole(slice, self->shape.width)) {
        push_whole_rows(self, slice, payload);
    } else {
        push_columns(self, slice, payload);
    }
    return true;
}

uint64_t ps_indexed_rows_present(const ps_indexed_rows_t *self)
{
    return self->rows.n - self->n_absent;
}

uint64_t ps_indexed_rows_value_bytes(const ps_indexed_rows_t *self)
{
    uint64_t dense = ps_rows_are_mixed(self) ? self->dense.n : self->rows.n;

    return (dense * self->shape.width + self->sparse_entries) * self->shape.value_size;
}

uint64_t ps_indexed_rows_bytes(const ps_indexed_rows_t *self)
{
    return ps_row_index_bytes(&self->index) + ps_slab_bytes(&self->rows) +
           ps_slab_bytes(&self->dense) + self->sparse_bytes;
}
