/* SPDX-License-Identifier: Apache-2.0 */
/* model/tables/partition.h: every cell has exactly one partition, found both ways. */
#include "model/tables/partition.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"

static ps_table_spec_t spec_of(ps_keys_t keys, uint64_t n_rows, ps_partition_by_t by,
                               uint32_t row_slices, uint32_t col_slices)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    memcpy(spec.name, "t", 2);
    spec.keys = keys;
    spec.n_rows = n_rows;
    spec.n_cols = 10;
    spec.partition_by = by;
    spec.n_col_slices = col_slices;
    spec.n_partitions = row_slices * col_slices;
    return spec;
}

/* The row is in the partition that ps_row_slice_of names, and in no other. */
static void check_row(const ps_table_spec_t *spec, uint64_t row)
{
    uint32_t slice = ps_row_slice_of(spec, row);

    cr_assert_lt(slice, spec->n_partitions / spec->n_col_slices);
    for (uint32_t p = 0; p < spec->n_partitions; p++) {
        ps_extent_t extent = ps_extent_of(spec, p);

        cr_assert_eq(ps_extent_has_row(&extent, row), p / spec->n_col_slices == slice,
                     "row %zu partition %u", (size_t)row, p);
    }
}

/* Ids that count up, also in steps, as they mostly do. */
Test(partition, hashes_of_ids_that_count_up_are_spread_evenly)
{
    static const uint64_t steps[] = {1, 2, 8, 1000, UINT64_C(1) << 32};
    enum { N = 100000, PARTS = 8 };
    ps_table_spec_t spec = spec_of(PS_KEYS_HASH, 0, PS_PARTITION_BY_HASH, PARTS, 1);

    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        uint32_t counts[PARTS] = {0};

        for (uint64_t i = 0; i < N; i++) {
            counts[ps_row_slice_of(&spec, i * steps[s])]++;
        }
        for (int p = 0; p < PARTS; p++) {
            cr_expect(counts[p] >= N / PARTS * 95 / 100 && counts[p] <= N / PARTS * 105 / 100,
                      "step %zu: partition %d has %u", s, p, counts[p]);
        }
    }
}

static void check_columns(const ps_table_spec_t *spec)
{
    uint32_t next = 0;

    for (uint32_t p = 0; p < spec->n_col_slices; p++) {
        ps_extent_t extent = ps_extent_of(spec, p);

        cr_assert_eq(extent.first_col, next);
        cr_assert_geq(extent.last_col, extent.first_col);
        for (uint32_t col = extent.first_col; col <= extent.last_col; col++) {
            cr_assert_eq(ps_col_slice_of(spec, col), p);
        }
        next = extent.last_col + 1;
    }
    cr_assert_eq(next, spec->n_cols);
}

Test(partition, ranges_of_rows_tile_the_table)
{
    static const uint64_t sizes[] = {1, 2, 7, 24, 1000};

    for (size_t s = 0; s < 5; s++) {
        for (uint32_t slices = 1; slices <= 9; slices++) {
            ps_table_spec_t spec =
                spec_of(PS_KEYS_RANGE, sizes[s], PS_PARTITION_BY_RANGE, slices, 2);
            uint64_t n = 0;

            for (uint64_t row = 0; row < sizes[s]; row++) {
                check_row(&spec, row);
            }
            for (uint32_t p = 0; p < spec.n_partitions; p += 2) {
                ps_extent_t extent = ps_extent_of(&spec, p);
                uint64_t rows = ps_extent_rows(&spec, &extent);

                cr_assert_eq(rows, sizes[s] / slices + (p / 2 < sizes[s] % slices ? 1 : 0));
                n += rows;
            }
            cr_assert_eq(n, sizes[s]);
        }
    }
}

Test(partition, an_extent_without_rows_is_legal)
{
    ps_table_spec_t spec = spec_of(PS_KEYS_RANGE, 2, PS_PARTITION_BY_RANGE, 3, 1);
    ps_extent_t extent = ps_extent_of(&spec, 2);

    cr_assert_gt(extent.first_row, extent.last_row);
    cr_assert_eq(ps_extent_rows(&spec, &extent), 0);
    cr_assert_not(ps_extent_has_row(&extent, 1));
    cr_assert_not(ps_extent_has_row(&extent, 2));
}

Test(partition, ranges_of_keys_tile_the_u64_space)
{
    for (uint32_t slices = 1; slices <= 9; slices++) {
        ps_table_spec_t spec = spec_of(PS_KEYS_HASH, 0, PS_PARTITION_BY_RANGE, slices, 1);
        uint64_t next = 0;

        for (uint32_t p = 0; p < slices; p++) {
            ps_extent_t extent = ps_extent_of(&spec, p);

            cr_assert_eq(extent.first_row, next);
            cr_assert_eq(extent.n_slices, 1);
            check_row(&spec, extent.first_row);
            check_row(&spec, extent.last_row);
            next = extent.last_row + 1;
        }
        cr_assert_eq(next, 0, "the last key is UINT64_MAX");
    }
}

Test(partition, hash_slices_are_even)
{
    ps_table_spec_t spec = spec_of(PS_KEYS_RANGE, 10000, PS_PARTITION_BY_HASH, 8, 1);
    uint64_t n = 0;

    for (uint64_t row = 0; row < 200; row++) {
        check_row(&spec, row);
    }
    for (uint32_t p = 0; p < 8; p++) {
        ps_extent_t extent = ps_extent_of(&spec, p);
        uint64_t rows = ps_extent_rows(&spec, &extent);

        cr_assert_eq(extent.first_row, 0);
        cr_assert_eq(extent.last_row, 9999);
        cr_assert_eq(extent.slice, p);
        cr_assert_eq(extent.n_slices, 8);
        cr_assert(rows > 1100 && rows < 1400);
        n += rows;
    }
    cr_assert_eq(n, 10000);
}

Test(partition, hash_slices_of_any_key)
{
    ps_table_spec_t spec = spec_of(PS_KEYS_HASH, 0, PS_PARTITION_BY_HASH, 5, 3);
    ps_rng_t rng = {1};

    check_row(&spec, 0);
    check_row(&spec, UINT64_MAX);
    for (int i = 0; i < 100; i++) {
        check_row(&spec, ps_rng_u64(&rng));
    }
    cr_assert_eq(ps_extent_of(&spec, 4).last_row, UINT64_MAX);
}

Test(partition, list_cuts_where_it_says)
{
    uint64_t boundaries[] = {3, 4, 20};
    ps_table_spec_t spec = spec_of(PS_KEYS_RANGE, 24, PS_PARTITION_BY_LIST, 4, 2);

    spec.boundaries = boundaries;
    spec.n_boundaries = 3;
    for (uint64_t row = 0; row < 24; row++) {
        check_row(&spec, row);
    }
    cr_assert_eq(ps_extent_of(&spec, 0).last_row, 2);
    cr_assert_eq(ps_extent_of(&spec, 3).first_row, 3);
    cr_assert_eq(ps_extent_of(&spec, 3).last_row, 3);
    cr_assert_eq(ps_extent_of(&spec, 7).first_row, 20);
    cr_assert_eq(ps_extent_of(&spec, 7).last_row, 23);
}

Test(partition, columns_are_cut_evenly_the_first_ones_wider)
{
    for (uint32_t slices = 1; slices <= 10; slices++) {
        ps_table_spec_t spec = spec_of(PS_KEYS_RANGE, 5, PS_PARTITION_BY_RANGE, 1, slices);

        check_columns(&spec);
    }
    {
        ps_table_spec_t spec = spec_of(PS_KEYS_RANGE, 5, PS_PARTITION_BY_RANGE, 2, 4);

        cr_assert_eq(ps_extent_of(&spec, 5).first_col, 3);
        cr_assert_eq(ps_extent_of(&spec, 5).last_col, 5);
        cr_assert_eq(ps_extent_of(&spec, 5).first_row, 3);
        cr_assert_eq(ps_extent_of(&spec, 7).last_col, 9);
    }
}

/* The server that holds the end of the table is the one to name the error. */
Test(partition, what_is_outside_goes_to_the_last_slice)
{
    ps_table_spec_t spec = spec_of(PS_KEYS_RANGE, 10, PS_PARTITION_BY_RANGE, 4, 5);

    cr_assert_eq(ps_row_slice_of(&spec, 10), 3);
    cr_assert_eq(ps_row_slice_of(&spec, UINT64_MAX), 3);
    cr_assert_eq(ps_col_slice_of(&spec, 10), 4);
    cr_assert_eq(ps_col_slice_of(&spec, UINT32_MAX), 4);
}
