/* SPDX-License-Identifier: Apache-2.0 */
/* The rows and columns of a partition, and the partition of a row or column. */
#include "model/tables/partition.h"

#include <assert.h>

#include "base/hash.h"

/* n things cut into `slices` runs, the first n % slices one longer. */
static uint64_t cut_first(uint64_t n, uint64_t slices, uint64_t slice)
{
    uint64_t longer = n % slices;

    return slice * (n / slices) + (slice < longer ? slice : longer);
}

static uint64_t cut_find(uint64_t n, uint64_t slices, uint64_t at)
{
    uint64_t length = n / slices;
    uint64_t in_longer = (n % slices) * (length + 1);

    if (at < in_longer) {
        return at / (length + 1);
    }
    if (length == 0) {
        return slices - 1; /* past the end, not a row */
    }
    return n % slices + (at - in_longer) / length;
}

/* The u64 space has 2^64 keys, one more than a u64 can count: slice i begins at
 * the least key that ps_fold puts into it, the ceiling of i 2^64 / slices. */
static uint64_t key_space_first(uint64_t slices, uint64_t slice)
{
    ps_u128_t space = (ps_u128_t)1 << 64;

    return (uint64_t)((space * slice + slices - 1) / slices);
}

static uint64_t range_first(const ps_table_spec_t *spec, uint64_t slices, uint64_t slice)
{
    return spec->keys == PS_KEYS_HASH ? key_space_first(slices, slice)
                                      : cut_first(spec->n_rows, slices, slice);
}

static uint64_t last_row(const ps_table_spec_t *spec)
{
    return spec->keys == PS_KEYS_HASH ? UINT64_MAX : spec->n_rows - 1;
}

static void set_rows(const ps_table_spec_t *spec, uint32_t slice, ps_extent_t *extent)
{
    uint32_t slices = spec->n_partitions / spec->n_col_slices;
    bool is_last = slice + 1 == slices;

    extent->first_row = 0;
    extent->last_row = last_row(spec);
    extent->slice = 0;
    extent->n_slices = 1;
    switch (spec->partition_by) {
    case PS_PARTITION_BY_HASH:
        extent->slice = slice;
        extent->n_slices = slices;
        break;
    case PS_PARTITION_BY_LIST:
        if (slice > 0) {
            extent->first_row = spec->boundaries[slice - 1];
        }
        if (!is_last) {
            extent->last_row = spec->boundaries[slice] - 1;
        }
        break;
    case PS_PARTITION_BY_RANGE:
    default:
        extent->first_row = range_first(spec, slices, slice);
        if (!is_last) {
            extent->last_row = range_first(spec, slices, slice + 1) - 1;
        }
        break;
    }
}

ps_extent_t ps_extent_of(const ps_table_spec_t *spec, uint32_t partition)
{
    uint32_t col_slices = spec->n_col_slices;
    uint32_t col_slice = partition % col_slices;
    ps_extent_t extent = {0};

    assert(partition < spec->n_partitions);
    set_rows(spec, partition / col_slices, &extent);
    extent.first_col = (uint32_t)cut_first(spec->n_cols, col_slices, col_slice);
    extent.last_col = (uint32_t)cut_first(spec->n_cols, col_slices, col_slice + 1) - 1;
    return extent;
}

static bool has_hash(const ps_extent_t *self, uint64_t row)
{
    return self->n_slices == 1 || ps_fold(ps_hash_u64(row), self->n_slices) == self->slice;
}

uint64_t ps_extent_rows(const ps_table_spec_t *spec, const ps_extent_t *extent)
{
    uint64_t n = 0;

    assert(spec->keys == PS_KEYS_RANGE);
    if (extent->first_row > extent->last_row) {
        return 0;
    }
    if (extent->n_slices == 1) {
        return extent->last_row - extent->first_row + 1;
    }
    for (uint64_t row = extent->first_row; row <= extent->last_row; row++) {
        n += has_hash(extent, row) ? 1 : 0;
    }
    return n;
}

bool ps_extent_has_row(const ps_extent_t *self, uint64_t row)
{
    return row >= self->first_row && row <= self->last_row && has_hash(self, row);
}

/* The number of boundaries at or below the row. */
static uint32_t list_slice_of(const ps_table_spec_t *spec, uint64_t row)
{
    uint32_t low = 0;
    uint32_t high = spec->n_boundaries;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (spec->boundaries[middle] <= row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t ps_row_slice_of(const ps_table_spec_t *spec, uint64_t row)
{
    uint32_t slices = spec->n_partitions / spec->n_col_slices;

    switch (spec->partition_by) {
    case PS_PARTITION_BY_HASH:
        return (uint32_t)ps_fold(ps_hash_u64(row), slices);
    case PS_PARTITION_BY_LIST:
        return list_slice_of(spec, row);
    case PS_PARTITION_BY_RANGE:
    default:
        break;
    }
    if (spec->keys == PS_KEYS_HASH) {
        return (uint32_t)ps_fold(row, slices);
    }
    if (row >= spec->n_rows) {
        return slices - 1; /* the shard there reports the bad row */
    }
    return (uint32_t)cut_find(spec->n_rows, slices, row);
}

uint32_t ps_col_slice_of(const ps_table_spec_t *spec, uint32_t col)
{
    if (col >= spec->n_cols) {
        return spec->n_col_slices - 1; /* as above */
    }
    return (uint32_t)cut_find(spec->n_cols, spec->n_col_slices, col);
}
