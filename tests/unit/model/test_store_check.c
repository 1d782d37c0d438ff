/* SPDX-License-Identifier: Apache-2.0 */
/* model/store/store.h: every refusal, by status and by text, and that nothing of a
 * refused slice is done. */
#include "unit/model/store_kit.h"

#include <math.h>

static ps_store_t *three_columns(ps_keys_t keys)
{
    ps_table_spec_t spec =
        kit_spec(keys, PS_ROW_DENSE, PS_TYPE_F32, keys == PS_KEYS_RANGE ? 1000 : 0, 3);

    return kit_store(&spec, 0);
}

/* Rows first … first + n - 1, all columns. */
static kit_push_t row_range(uint64_t first, uint64_t n, size_t n_values)
{
    kit_push_t push = {
        .slice = {.rows = PS_ROWS_RANGE, .type = PS_TYPE_F32, .first_row = first, .n_cols = 3}};

    for (size_t i = 0; i < n_values; i++) {
        kit_push_value(&push, 1);
    }
    push.slice.n_rows = n;
    kit_push_close(&push, NULL);
    return push;
}

/* Columns of one dense row. */
static kit_push_t columns_of_row(ps_cols_kind_t cols, uint64_t row, uint32_t first, uint32_t n,
                                 const uint32_t *list)
{
    kit_push_t push = {
        .slice = {.type = PS_TYPE_F32, .cols = cols, .first_col = first, .n_cols = n}};

    kit_push_key(&push, row);
    for (uint32_t i = 0; i < n; i++) {
        kit_push_value(&push, 1);
        if (list != NULL) {
            kit_push_u32(&push, list[i]);
        }
    }
    kit_push_close(&push, NULL);
    return push;
}

Test(store_check, type)
{
    ps_store_t *store = three_columns(PS_KEYS_RANGE);
    uint64_t key = 1;
    double values[3] = {1, 1, 1};

    kit_refused(store, kit_dense(PS_TYPE_F64, 1, &key, 3, values), PSD_TYPE,
                "values are f64, the table's are f32");
    ps_store_destroy(&store);
}

Test(store_check, rows_outside_the_table)
{
    ps_store_t *store = three_columns(PS_KEYS_RANGE);
    uint64_t keys[3] = {1, 5000, 6000};
    double values[9] = {0};

    kit_refused(store, kit_dense(PS_TYPE_F32, 3, keys, 3, values), PSD_RANGE,
                "row 5000 is outside 0..999");
    kit_refused(store, row_range(1000, 1, 3), PSD_RANGE, "row 1000 is outside 0..999");
    kit_refused(store, row_range(998, 3, 9), PSD_RANGE, "row 1000 is outside 0..999");
    kit_refused(store, row_range(2, UINT64_MAX, 0), PSD_RANGE,
                "18446744073709551615 rows from row 2 on run past the last "
                "one, 18446744073709551615");
    ps_store_destroy(&store);
}

Test(store_check, rows_of_another_partition)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, 1000, 3);
    ps_store_t *store = NULL;
    uint64_t key = 499;
    double values[3] = {0};

    spec.n_partitions = 2;
    store = kit_store(&spec, 1);
    kit_refused(store, kit_dense(PS_TYPE_F32, 1, &key, 3, values), PSD_RANGE,
                "row 499 is not in this partition, which holds rows 500..999");
    ps_store_destroy(&store);
    spec.partition_by = PS_PARTITION_BY_HASH;
    store = kit_store(&spec, 1 - ps_row_slice_of(&spec, 499));
    {
        const char *text = ps_row_slice_of(&spec, 499) == 1
                               ? "row 499 is not in this partition, which "
                                 "holds hash slice 0 of 0..1"
                               : "row 499 is not in this partition, which "
                                 "holds hash slice 1 of 0..1";

        kit_refused(store, kit_dense(PS_TYPE_F32, 1, &key, 3, values), PSD_RANGE, text);
        kit_refused(store, row_range(499, 1, 3), PSD_RANGE, text);
    }
    ps_store_destroy(&store);
}

Test(store_check, width)
{
    ps_store_t *store = three_columns(PS_KEYS_RANGE);
    uint64_t key = 7;
    double values[4] = {0};

    kit_refused(store, kit_dense(PS_TYPE_F32, 1, &key, 4, values), PSD_SHAPE,
                "row 7 has 4 values, the table has 3 columns");
    kit_refused(store, kit_dense(PS_TYPE_F32, 1, &key, 1, values), PSD_SHAPE,
                "row 7 has 1 value, the table has 3 columns");
    kit_refused(store, columns_of_row(PS_COLS_RANGE, 7, 0, 0, NULL), PSD_SHAPE,
                "row 7 has 0 values, the table has 3 columns");
    ps_store_destroy(&store);
}

/* Rows without columns cost nothing to send: they must not be walked. */
Test(store_check, many_rows_of_no_columns_are_refused_at_once)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, 3);
    ps_store_t *store = NULL;
    kit_push_t push = row_range(0, UINT64_MAX, 0);

    spec.partition_by = PS_PARTITION_BY_HASH;
    spec.n_partitions = 2;
    store = kit_store(&spec, 0);
    push.slice.n_cols = 0;
    kit_refused(store, push, PSD_SHAPE, "row 0 has 0 values, the table has 3 columns");
    ps_store_destroy(&store);
}

Test(store_check, columns_outside_the_table)
{
    ps_store_t *store = three_columns(PS_KEYS_RANGE);
    uint32_t list[3] = {0, 2, 12};

    kit_refused(store, columns_of_row(PS_COLS_RANGE, 7, 1, 3, NULL), PSD_RANGE,
                "row 7 column 3 is outside 0..2");
    kit_refused(store, columns_of_row(PS_COLS_RANGE, 7, 9, 1, NULL), PSD_RANGE,
                "row 7 column 9 is outside 0..2");
    kit_refused(store, columns_of_row(PS_COLS_LIST, 7, 0, 3, list), PSD_RANGE,
                "row 7 column 12 is outside 0..2");
    ps_store_destroy(&store);
}

Test(store_check, columns_of_another_partition)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, 10, 10);
    ps_store_t *store = NULL;
    uint64_t key = 7;
    double values[10] = {0};

    spec.n_col_slices = 2;
    spec.n_partitions = 2;
    store = kit_store(&spec, 1);
    kit_refused(store, columns_of_row(PS_COLS_RANGE, 7, 4, 2, NULL), PSD_RANGE,
                "row 7 column 4 is not in this partition, which holds columns "
                "5..9");
    kit_refused(store, columns_of_row(PS_COLS_RANGE, 7, 9, 2, NULL), PSD_RANGE,
                "row 7 column 10 is outside 0..9");
    kit_refused(store, kit_dense(PS_TYPE_F32, 1, &key, 10, values), PSD_SHAPE,
                "row 7 has 10 values, the partition has 5 columns");
    ps_store_destroy(&store);
}

Test(store_check, sparse_columns)
{
    ps_store_t *store = three_columns(PS_KEYS_RANGE);
    uint32_t outside[2] = {1, 3};
    uint32_t twice[2] = {1, 1};
    uint32_t back[2] = {2, 0};
    double values[2] = {1, 1};

    kit_refused(store, kit_sparse(PS_TYPE_F32, 7, 2, outside, values), PSD_RANGE,
                "row 7 column 3 is outside 0..2");
    kit_refused(store, kit_sparse(PS_TYPE_F32, 7, 2, twice, values), PSD_SHAPE,
                "row 7 column 1 comes after column 1; columns of a sparse row "
                "must ascend");
    kit_refused(store, kit_sparse(PS_TYPE_F32, 7, 2, back, values), PSD_SHAPE,
                "row 7 column 0 comes after column 2; columns of a sparse row "
                "must ascend");
    ps_store_destroy(&store);
}

Test(store_check, values_that_are_not_finite)
{
    ps_store_t *store = three_columns(PS_KEYS_HASH);
    uint64_t keys[2] = {7, UINT64_MAX};
    uint32_t columns[2] = {0, 2};
    double values[6] = {1, 1, NAN, 1, 1, 1};

    kit_refused(store, kit_dense(PS_TYPE_F32, 2, keys, 3, values), PSD_NOT_FINITE,
                "row 7 column 2 is nan; only finite deltas are allowed");
    values[2] = 1;
    values[3] = INFINITY;
    kit_refused(store, kit_dense(PS_TYPE_F32, 2, keys, 3, values), PSD_NOT_FINITE,
                "row 18446744073709551615 column 0 is inf; only finite deltas "
                "are allowed");
    values[1] = -INFINITY;
    kit_refused(store, kit_sparse(PS_TYPE_F32, 9, 2, columns, values), PSD_NOT_FINITE,
                "row 9 column 2 is -inf; only finite deltas are allowed");
    cr_assert_eq(ps_store_bytes(store).rows_present, 0);
    ps_store_destroy(&store);
}

Test(store_check, values_that_are_not_finite_are_taken_where_allowed)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_SPARSE, PS_TYPE_F64, 10, 3);
    ps_store_t *store = NULL;
    uint32_t columns[2] = {0, 2};
    double values[2] = {NAN, -INFINITY};

    spec.allow_nonfinite = true;
    store = kit_store(&spec, 0);
    kit_apply(store, kit_sparse(PS_TYPE_F64, 7, 2, columns, values));
    cr_assert(isnan(kit_value(store, PS_TYPE_F64, 7, 0)));
    cr_assert_eq(kit_value(store, PS_TYPE_F64, 7, 2), -INFINITY);
    ps_store_destroy(&store);
}

Test(store_check, a_refused_slice_changes_nothing)
{
    ps_store_t *store = three_columns(PS_KEYS_HASH);
    ps_store_bytes_t before = ps_store_bytes(store);
    uint64_t keys[2] = {1, 2};
    double values[6] = {1, 1, 1, 1, 1, NAN};
    ps_store_bytes_t after;

    kit_refused(store, kit_dense(PS_TYPE_F32, 2, keys, 3, values), PSD_NOT_FINITE,
                "row 2 column 2 is nan; only finite deltas are allowed");
    after = ps_store_bytes(store);
    cr_assert_eq(memcmp(&before, &after, sizeof before), 0);
    cr_assert_eq(kit_value(store, PS_TYPE_F32, 1, 0), 0);
    ps_store_destroy(&store);
}

Test(store_check, err_is_optional)
{
    ps_store_t *store = three_columns(PS_KEYS_RANGE);
    kit_push_t push = row_range(5000, 1, 3);

    cr_assert_eq(ps_store_check_push(store, &push.slice, push.payload, NULL), PSD_RANGE);
    cr_assert_eq(ps_store_check_pull(store, &push.slice, push.payload, NULL), PSD_RANGE);
    kit_push_done(&push);
    ps_store_destroy(&store);
}

static void pull_refused(const ps_store_t *store, kit_push_t pull, psd_status_t status,
                         const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(ps_store_check_pull(store, &pull.slice, pull.payload, err), status);
    cr_assert_str_eq(psd_error_text(err), text);
    kit_push_done(&pull);
}

Test(store_check, pulls)
{
    ps_store_t *store = three_columns(PS_KEYS_RANGE);
    uint64_t keys[2] = {1, 1000};

    pull_refused(store, kit_dense(PS_TYPE_F32, 2, keys, 3, NULL), PSD_RANGE,
                 "row 1000 is outside 0..999");
    pull_refused(store, kit_dense(PS_TYPE_F32, 1, keys, 2, NULL), PSD_SHAPE,
                 "row 1 has 2 values, the table has 3 columns");
    pull_refused(store, row_range(999, 2, 0), PSD_RANGE, "row 1000 is outside 0..999");
    pull_refused(store, columns_of_row(PS_COLS_RANGE, 7, 1, 3, NULL), PSD_RANGE,
                 "row 7 column 3 is outside 0..2");
    pull_refused(store, kit_sparse(PS_TYPE_F32, 1000, 0, NULL, NULL), PSD_RANGE,
                 "row 1000 is outside 0..999");
    ps_store_destroy(&store);
}

Test(store_check, a_pull_of_all_keys_that_are_there_is_allowed)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, 3);
    ps_store_t *store = NULL;
    kit_push_t pull = row_range(0, UINT64_MAX, 0);

    spec.partition_by = PS_PARTITION_BY_HASH;
    spec.n_partitions = 2;
    store = kit_store(&spec, 0);
    cr_assert_eq(ps_store_check_pull(store, &pull.slice, pull.payload, NULL), PSD_OK);
    pull.slice.first_row = UINT64_MAX;
    pull.slice.n_rows = 1;
    cr_assert_eq(ps_store_check_pull(store, &pull.slice, pull.payload, NULL), PSD_OK);
    pull.slice.n_rows = 0;
    cr_assert_eq(ps_store_check_pull(store, &pull.slice, pull.payload, NULL), PSD_OK);
    kit_push_done(&pull);
    ps_store_destroy(&store);
}
