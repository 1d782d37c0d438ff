/* SPDX-License-Identifier: Apache-2.0 */
/* A count-min sketch of cells of one byte. */
#include "data/feed/count_sketch.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/hash.h"

#define FEWEST_ROW_CELLS ((size_t)64)
#define ROW_SEED UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / golden ratio */

psd_status_t ps_count_sketch_init(ps_count_sketch_t *self, size_t cells, psd_error_t *err)
{
    size_t row_cells = FEWEST_ROW_CELLS;

    while (row_cells < cells / PS_COUNT_SKETCH_ROWS && row_cells <= SIZE_MAX / 4) {
        row_cells *= 2;
    }
    self->cells = ps_alloc(row_cells, PS_COUNT_SKETCH_ROWS);
    if (self->cells == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a sketch of %zu cells", cells);
    }
    self->row_cells = row_cells;
    return PSD_OK;
}

void ps_count_sketch_done(ps_count_sketch_t *self)
{
    ps_free((void *)self->cells);
    *self = (ps_count_sketch_t){0};
}

static _Atomic uint8_t *cell_of(const ps_count_sketch_t *self, uint64_t key, uint32_t row)
{
    uint64_t mixed = ps_hash_u64(key + (row + 1) * ROW_SEED);

    return self->cells + row * self->row_cells + (mixed & (self->row_cells - 1));
}

void ps_count_sketch_add(ps_count_sketch_t *self, uint64_t key, uint32_t count)
{
    for (uint32_t row = 0; row < PS_COUNT_SKETCH_ROWS; row++) {
        _Atomic uint8_t *cell = cell_of(self, key, row);
        uint8_t old = atomic_load_explicit(cell, memory_order_relaxed);
        uint8_t sum = 0;

        do {
            sum =
                (uint8_t)(count > PS_COUNT_SKETCH_MOST - old ? PS_COUNT_SKETCH_MOST : old + count);
        } while (old != sum && !atomic_compare_exchange_weak_explicit(
                                   cell, &old, sum, memory_order_relaxed, memory_order_relaxed));
    }
}

uint32_t ps_count_sketch_look(const ps_count_sketch_t *self, uint64_t key)
{
    uint32_t least = PS_COUNT_SKETCH_MOST;

    for (uint32_t row = 0; row < PS_COUNT_SKETCH_ROWS; row++) {
        uint32_t count = atomic_load_explicit(cell_of(self, key, row), memory_order_relaxed);

        least = count < least ? count : least;
    }
    return least;
}
