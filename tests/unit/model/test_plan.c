/* SPDX-License-Identifier: Apache-2.0 */
/* model/store/plan.h: what a plan says is what a real store then needs. */
#include "unit/model/store_kit.h"

#include <inttypes.h>
#include <math.h>

#include "model/store/plan.h"
#include "support/fail_alloc.h"

#define BATCH 500

/* n rows that lie in the store; `cells` values in each, spread over them. */
static void fill(ps_store_t *store, const ps_table_spec_t *spec, uint64_t n, uint32_t cells)
{
    const ps_extent_t *extent = ps_store_extent(store);
    uint32_t width = extent->last_col - extent->first_col + 1;
    bool is_sparse = spec->row_format != PS_ROW_DENSE;
    uint64_t row = extent->first_row;

    while (n > 0) {
        kit_push_t push = {.slice = {.type = spec->type, .n_cols = width}};
        uint64_t n_rows = n < BATCH ? n : BATCH;

        if (is_sparse) {
            push.slice.layout = PS_LAYOUT_SPARSE;
            push.slice.n_cols = 0;
        }
        for (; push.slice.n_rows < n_rows; row++) {
            if (ps_extent_has_row(extent, row)) {
                kit_push_key(&push, row);
            }
        }
        for (uint64_t i = 0; is_sparse && i < n_rows; i++) {
            kit_push_u32(&push, cells);
        }
        for (uint64_t i = 0; i < n_rows * (is_sparse ? cells : width); i++) {
            if (is_sparse) {
                kit_push_u32(&push, (uint32_t)(i % cells) * (width / cells));
            }
            kit_push_value(&push, 1);
        }
        kit_push_close(&push, NULL);
        kit_apply(store, push);
        n -= n_rows;
    }
}

/* Within 4 %, and a page for what the first rows need. An index grows by a
 * quarter at a time, so it is more or less full: within 12 %. */
static void agree(const char *what, uint64_t n, uint64_t planned, uint64_t real)
{
    double apart = fabs((double)planned - (double)real);
    double part = strncmp(what, "index", 5) == 0 ? 0.12 : 0.04;

    cr_assert_leq(apart, part * (double)real + 4096,
                  "%s of %" PRIu64 " rows: planned %" PRIu64 ", real %" PRIu64, what, n, planned,
                  real);
}

/* The largest partition is the first. */
static void compare(const ps_table_spec_t *spec, uint64_t n_rows, double part)
{
    PSD_AUTO(ps_store_destroy) ps_store_t *store = kit_store(spec, 0);
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const ps_extent_t *extent = ps_store_extent(store);
    uint32_t width = extent->last_col - extent->first_col + 1;
    ps_store_bytes_t real = {0};
    ps_plan_t plan = {0};

    cr_assert_eq(ps_plan_make(spec, n_rows, part, &plan, err), PSD_OK, "%s", psd_error_text(err));
    fill(store, spec, plan.partition_rows, (uint32_t)(part * width + 0.5));
    real = ps_store_bytes(store);
    agree("values", n_rows, plan.largest.values, real.values);
    agree("state", n_rows, plan.largest.state, real.state);
    agree("index", n_rows, plan.largest.index, real.index);
    agree("rows", n_rows, plan.largest.rows_present, plan.partition_rows);
    agree("rows in all", n_rows, plan.table.rows_present, n_rows);
    agree("values of all", n_rows, plan.table.values, plan.largest.values * spec->n_partitions);
    agree("index of all", n_rows, plan.table.index, plan.largest.index * spec->n_partitions);
}

/* Powers of two, and others. */
static const uint64_t SIZES[] = {1, 100, 65536, 70000, 100000};
#define N_SIZES (sizeof SIZES / sizeof SIZES[0])

Test(plan, hash_keys_need_what_a_store_of_them_needs)
{
    for (size_t i = 0; i < N_SIZES; i++) {
        ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, 1);

        compare(&spec, SIZES[i], 1);
    }
}

Test(plan, state_of_the_updater_counts)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F64, 0, 4);

    cr_assert_eq(ps_updater_spec_parse("ftrl", &spec.updater, NULL), PSD_OK);
    compare(&spec, 90000, 1);
}

Test(plan, a_range_of_dense_rows_needs_no_index)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, 300000, 3);
    ps_plan_t plan = {0};

    cr_assert_eq(ps_updater_spec_parse("adagrad", &spec.updater, NULL), PSD_OK);
    compare(&spec, 300000, 1);
    cr_assert_eq(ps_plan_make(&spec, 300000, 1, &plan, NULL), PSD_OK);
    cr_assert_eq(plan.table.values, 300000 * 3 * 4);
    cr_assert_eq(plan.table.state, 300000 * 3 * 4);
    cr_assert_lt(plan.table.index, 4096);
}

Test(plan, sparse_rows_need_what_their_entries_need)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_SPARSE, PS_TYPE_F32, 0, 1000);

    compare(&spec, 70000, 0.01);
    spec.row_format = PS_ROW_AUTO;
    compare(&spec, 30000, 0.02);
    spec.n_cols = 40;
    compare(&spec, 30000, 1);
}

Test(plan, long_rows_are_scaled_too)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, 5000);

    compare(&spec, 300, 1);
    spec.row_format = PS_ROW_SPARSE;
    compare(&spec, 300, 0.5);
}

Test(plan, partitions_share_rows_and_columns)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_I64, 400000, 4);

    spec.n_partitions = 8;
    spec.n_col_slices = 2;
    compare(&spec, 400000, 1);
    spec.partition_by = PS_PARTITION_BY_HASH;
    compare(&spec, 380000, 1);
}

Test(plan, sizes_beyond_any_memory_are_given)
{
    ps_table_spec_t spec =
        kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F64, PS_TABLE_ROWS_MAX, PS_TABLE_COLS_MAX);
    ps_plan_t plan = {0};

    cr_assert_eq(ps_plan_make(&spec, PS_TABLE_ROWS_MAX, 1, &plan, NULL), PSD_OK);
    cr_assert_eq(plan.table.values, UINT64_MAX);
    cr_assert_eq(plan.table.rows_present, PS_TABLE_ROWS_MAX);
}

static psd_status_t make(void *fixture)
{
    const ps_table_spec_t *spec = fixture;
    ps_plan_t plan = {0};

    return ps_plan_make(spec, 150, 0.01, &plan, NULL);
}

Test(plan, no_memory_for_the_sample)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_SPARSE, PS_TYPE_F32, 0, 1000);

    cr_assert_null(fail_alloc_sweep(make, &spec));
}
