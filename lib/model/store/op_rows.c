/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a change. */
#include "model/store/op_rows.h"

#include "model/updaters/init.h"

/* Rows that are not stored are all zeros, and stay so. */
static bool skips_absent(const ps_store_t *self, const ps_row_change_t *change)
{
    const ps_store_t *from = change->kind == PS_CHANGE_AXPY_ROWS ? change->other : self;

    if (from->is_array) {
        return false;
    }
    return from->spec.keys == PS_KEYS_HASH ||
           (ps_init_is_zero(&from->spec.init) &&
            (change->kind != PS_CHANGE_FILL_ROWS || change->operand == 0));
}

ps_op_rows_t ps_op_rows_of(const ps_store_t *self, const ps_slice_t *slice,
                           const ps_payload_t *payload, const ps_row_change_t *change)
{
    const ps_store_t *from = change->kind == PS_CHANGE_AXPY_ROWS ? change->other : self;
    bool is_range = slice->rows == PS_ROWS_RANGE;

    return (ps_op_rows_t){
        .slice = slice,
        .payload = payload,
        .extent = is_range ? &self->extent : NULL,
        .stored = is_range && skips_absent(self, change) ? &from->indexed : NULL,
        .partial = self->is_partial ? self : NULL,
    };
}

static bool next_stored(ps_op_rows_t *self, uint64_t *ret_key)
{
    const ps_slab_t *rows = &self->stored->rows;

    while (self->i < rows->n) {
        const uint8_t *at = ps_slab_at(rows, (uint32_t)self->i++);
        uint64_t key = ps_load_u64(at);

        if (key - self->slice->first_row < self->slice->n_rows &&
            ps_indexed_row_is_present(self->stored, at)) {
            *ret_key = key;
            return true;
        }
    }
    return false;
}

static bool next_of_all(ps_op_rows_t *self, uint64_t *ret_key)
{
    if (self->stored != NULL) {
        return next_stored(self, ret_key);
    }
    while (self->i < self->slice->n_rows) {
        uint64_t key = ps_slice_row(self->slice, self->payload, self->i++);

        if (self->extent == NULL || ps_extent_has_row(self->extent, key)) {
            *ret_key = key;
            return true;
        }
    }
    return false;
}

bool ps_op_rows_next(ps_op_rows_t *self, uint64_t *ret_key)
{
    while (next_of_all(self, ret_key)) {
        if (self->partial == NULL || ps_store_takes_row(self->partial, *ret_key)) {
            return true;
        }
    }
    return false;
}

/* Named rows, looked up many at once. */
static uint64_t new_of_list(const ps_op_rows_t *self, const ps_store_t *store)
{
    ps_row_walk_t walk;
    uint64_t n_new = 0;

    ps_row_walk_begin(&walk, &store->indexed, self->slice, self->payload, self->slice->n_rows,
                      PS_NEED_HEAD);
    while (ps_row_walk_next(&walk)) {
        for (size_t i = 0; i < walk.n; i++) {
            n_new += walk.found[i] == NULL ? 1 : 0;
        }
    }
    return n_new;
}

uint64_t ps_op_rows_new(const ps_op_rows_t *self, const ps_store_t *store)
{
    ps_op_rows_t rows = *self;
    uint64_t n_new = 0;
    uint64_t key = 0;

    if (self->stored == &store->indexed || self->partial == store) {
        return 0;
    }
    if (self->slice->rows == PS_ROWS_LIST && self->i == 0) {
        return new_of_list(self, store);
    }
    while (ps_op_rows_next(&rows, &key)) {
        if (ps_row_index_find(&store->indexed.index, key) == PS_ROW_NONE) {
            n_new++;
        }
    }
    return n_new;
}
