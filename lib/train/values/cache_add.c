/* SPDX-License-Identifier: Apache-2.0 */
/* Adds sums of deltas to the values of a block. */
#include "train/values/cache.h"

static void add_number(ps_type_t type, void *values, size_t at, ps_number_t delta)
{
    switch (type) {
    case PS_TYPE_I32:
        ((uint32_t *)values)[at] += (uint32_t)delta.i64;
        break;
    case PS_TYPE_I64:
        ((uint64_t *)values)[at] += (uint64_t)delta.i64;
        break;
    case PS_TYPE_F32:
        ((float *)values)[at] = (float)((double)((float *)values)[at] + delta.f64);
        break;
    case PS_TYPE_F64:
    default:
        ((double *)values)[at] += delta.f64;
        break;
    }
}

/* All columns of a row, whose values begin at `first`. */
static void add_row(const ps_cache_table_t *self, const ps_sums_t *sums, uint64_t row, size_t first)
{
    for (uint32_t chunk = 0; chunk < sums->n_chunks; chunk++) {
        size_t slot = 0;
        uint64_t mask = ps_sums_look(sums, row, chunk, &slot) ? sums->masks[slot] : 0;

        for (; mask != 0; mask &= mask - 1) {
            uint32_t i = (uint32_t)__builtin_ctzll(mask);

            add_number(self->shape.type, self->values, first + (size_t)chunk * sums->width + i,
                       sums->cells[slot * sums->width + i]);
        }
    }
}

static void add_elements(const ps_cache_table_t *self, const ps_sums_t *sums)
{
    for (size_t i = 0; i < self->n_elements; i++) {
        uint32_t chunk = self->elements[i].col / sums->width;
        uint32_t in_slot = self->elements[i].col % sums->width;
        size_t slot = 0;

        if (ps_sums_look(sums, self->elements[i].row, chunk, &slot)) {
            add_number(self->shape.type, self->element_values, i,
                       sums->cells[slot * sums->width + in_slot]);
        }
    }
}

void ps_cache_add(const ps_cache_table_t *self, const ps_sums_t *sums)
{
    size_t n = self->whole ? (size_t)self->shape.n_rows : self->rows.n;

    if (sums->n_touched == 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        add_row(self, sums, self->whole ? i : self->rows.rows[i], i * self->shape.n_cols);
    }
    add_elements(self, sums);
}
