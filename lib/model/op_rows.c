/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows a change is about. */
#include "model/op_rows.h"

#include "model/init.h"

/* Rows that are not stored are nothing but zeros, and stay so. */
static bool
skips_absent(const ps_store_t *self, const ps_change_t *change)
{
    const ps_store_t *from =
        change->kind == PS_CHANGE_AXPY_ROWS ? change->other : self;

    if (from->is_array) {
        return false;
    }
    return from->spec.keys == PS_KEYS_HASH ||
           (ps_init_is_zero(&from->spec.init) &&
            (change->kind != PS_CHANGE_FILL_ROWS || change->operand == 0));
}

ps_op_rows_t
ps_op_rows_of(const ps_store_t *self,
              const ps_slice_t *slice,
              const ps_payload_t *payload,
              const ps_change_t *change)
{
    const ps_store_t *from =
        change->kind == PS_CHANGE_AXPY_ROWS ? change->other : self;
    bool is_range = slice->rows == PS_ROWS_RANGE;

    return (ps_op_rows_t){
        .slice = slice,
        .payload = payload,
        .extent = is_range ? &self->extent : NULL,
        .stored =
            is_range && skips_absent(self, change) ? &from->indexed : NULL,
    };
}

static bool
next_stored(ps_op_rows_t *self, uint64_t *ret_key)
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

bool
ps_op_rows_next(ps_op_rows_t *self, uint64_t *ret_key)
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

uint64_t
ps_op_rows_left(const ps_op_rows_t *self)
{
    return self->stored != NULL ? self->stored->rows.n - self->i
                                : self->slice->n_rows - self->i;
}
