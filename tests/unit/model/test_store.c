/* SPDX-License-Identifier: Apache-2.0 */
/* model/store/store.h: making a store, pushing into it, and what it costs. */
#include "unit/model/store_kit.h"

#include <math.h>

#include "model/updaters/init.h"

static const double ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

Test(store, a_range_table_counts_every_row_and_byte)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, 1000, 3);
    ps_store_t *store = NULL;
    ps_store_bytes_t bytes;

    spec.updater = (ps_updater_spec_t){.kind = PS_UPDATER_FTRL, .alpha = 1};
    store = kit_store(&spec, 0);
    bytes = ps_store_bytes(store);
    cr_assert_eq(bytes.rows_present, 1000);
    cr_assert_eq(bytes.values, 12000);
    cr_assert_eq(bytes.state, 24000);
    cr_assert_eq(bytes.index, 0);
    cr_assert_eq(ps_store_extent(store)->last_row, 999);
    ps_store_destroy(&store);
    cr_assert_null(store);
    ps_store_destroy(&store);
}

Test(store, the_spec_is_copied)
{
    uint64_t boundaries[] = {5};
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_I32, 10, 1);
    ps_store_t *store = NULL;
    uint64_t key = 7;

    spec.partition_by = PS_PARTITION_BY_LIST;
    spec.boundaries = boundaries;
    spec.n_boundaries = 1;
    spec.n_partitions = 2;
    store = kit_store(&spec, 1);
    memset(&spec, 0, sizeof spec);
    boundaries[0] = 0;
    cr_assert_eq(ps_store_extent(store)->first_row, 5);
    kit_apply(store, kit_dense(PS_TYPE_I32, 1, &key, 1, ones));
    cr_assert_eq(kit_value(store, PS_TYPE_I32, 7, 0), 1);
    ps_store_destroy(&store);
}

/* 8 TiB: if making it or using two cells of it touched more, this would end. */
Test(store, untouched_memory_costs_nothing)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F64, UINT64_C(1) << 39, 1);
    ps_store_t *store = NULL;
    uint64_t keys[2] = {0, (UINT64_C(1) << 39) - 1};

    spec.updater = (ps_updater_spec_t){.kind = PS_UPDATER_ADAGRAD, .alpha = 1};
    spec.init = (ps_init_spec_t){.kind = PS_INIT_UNIFORM, .a = 1, .b = 2};
    store = kit_store(&spec, 0);
    kit_apply(store, kit_dense(PS_TYPE_F64, 2, keys, 1, ones));
    cr_assert_lt(kit_value(store, PS_TYPE_F64, keys[0], 0), 1);
    cr_assert_lt(kit_value(store, PS_TYPE_F64, keys[1], 0), 1);
    cr_assert_geq(kit_value(store, PS_TYPE_F64, 1234567890, 0), 1);
    ps_store_destroy(&store);
}

Test(store, what_cannot_be_addressed_is_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_table_spec_t spec =
        kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F64, PS_TABLE_ROWS_MAX, PS_TABLE_COLS_MAX);
    ps_store_t *store = NULL;

    cr_assert_eq(ps_store_new(&spec, 0, &store, err), PSD_LIMIT);
    cr_assert_str_eq(psd_error_text(err), "a partition of 1099511627776 rows with 2147483648 "
                                          "columns does not fit into memory addresses; make more "
                                          "partitions");
    cr_assert_null(store);
    spec.n_cols = 100;
    psd_error_clear(err);
    cr_assert_eq(ps_store_new(&spec, 0, &store, err), PSD_LIMIT);
    spec.n_cols = 16; /* addressable, but more than the kernel gives */
    psd_error_clear(err);
    cr_assert_eq(ps_store_new(&spec, 0, &store, err), PSD_NOMEM);
    cr_assert_str_eq(psd_error_text(err), "no memory for a partition of 140737488355328 bytes");
}

Test(store, an_empty_partition_is_legal)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_I64, 2, 2);
    ps_store_t *store = NULL;
    uint64_t key = 1;

    spec.n_partitions = 4;
    store = kit_store(&spec, 3);
    cr_assert_eq(ps_store_bytes(store).rows_present, 0);
    cr_assert_eq(ps_store_bytes(store).values, 0);
    kit_refused(store, kit_dense(PS_TYPE_I64, 1, &key, 2, ones), PSD_RANGE,
                "row 1 is not in this partition, which is empty");
    kit_apply(store, kit_dense(PS_TYPE_I64, 0, NULL, 2, ones));
    ps_store_destroy(&store);
}

Test(store, duplicates_are_applied_one_after_the_other)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_I64, 0, 1);
    ps_store_t *store = NULL;
    uint64_t keys[3] = {9, 9, 9};
    double values[3] = {1, 2, 3};

    store = kit_store(&spec, 0);
    kit_apply(store, kit_dense(PS_TYPE_I64, 3, keys, 1, values));
    cr_assert_eq(kit_value(store, PS_TYPE_I64, 9, 0), 6);
    ps_store_destroy(&store);
    spec.updater.kind = PS_UPDATER_ASSIGN;
    store = kit_store(&spec, 0);
    kit_apply(store, kit_dense(PS_TYPE_I64, 3, keys, 1, values));
    cr_assert_eq(kit_value(store, PS_TYPE_I64, 9, 0), 3);
    ps_store_destroy(&store);
}

Test(store, a_sparse_entry_that_returns_to_zero_is_dropped)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_SPARSE, PS_TYPE_F64, 10, 1000000);
    ps_store_t *store = kit_store(&spec, 0);
    uint32_t columns[3] = {0, 70, 999999};
    double values[3] = {1.5, -2, 4};
    double back[3] = {-1.5, 2, 0};

    kit_apply(store, kit_sparse(PS_TYPE_F64, 3, 3, columns, values));
    cr_assert_eq(ps_store_bytes(store).values, 3 * 8);
    kit_apply(store, kit_sparse(PS_TYPE_F64, 3, 3, columns, back));
    cr_assert_eq(ps_store_bytes(store).values, 1 * 8);
    cr_assert_eq(kit_value(store, PS_TYPE_F64, 3, 70), 0);
    cr_assert_eq(kit_value(store, PS_TYPE_F64, 3, 999999), 4);
    ps_store_destroy(&store);
}

Test(store, zero_deltas_make_no_entries)
{
    static const ps_updater_kind_t kinds[] = {PS_UPDATER_ADD, PS_UPDATER_ASSIGN, PS_UPDATER_SGD,
                                              PS_UPDATER_ADAGRAD, PS_UPDATER_FTRL};
    uint32_t columns[3] = {1, 2, 3};
    double zeros[100] = {0, -0.0};
    uint64_t key = 6;

    for (size_t k = 0; k < 5; k++) {
        ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_SPARSE, PS_TYPE_F32, 10, 100);
        ps_store_t *store = NULL;

        spec.updater = (ps_updater_spec_t){.kind = kinds[k], .alpha = 0.5};
        store = kit_store(&spec, 0);
        kit_apply(store, kit_sparse(PS_TYPE_F32, 5, 3, columns, zeros));
        kit_apply(store, kit_dense(PS_TYPE_F32, 1, &key, 100, zeros));
        cr_assert_eq(ps_store_bytes(store).values, 0);
        ps_store_destroy(&store);
    }
}

/* The value may be zero while the state is not: the entry must stay. */
Test(store, an_entry_with_state_is_kept)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_SPARSE, PS_TYPE_F64, 10, 100);
    ps_store_t *store = NULL;
    uint32_t col = 42;
    double g = 1;

    spec.updater = (ps_updater_spec_t){.kind = PS_UPDATER_FTRL, .alpha = 1, .beta = 1, .l1 = 1.5};
    store = kit_store(&spec, 0);
    kit_apply(store, kit_sparse(PS_TYPE_F64, 0, 1, &col, &g));
    cr_assert_eq(kit_value(store, PS_TYPE_F64, 0, 42), 0);
    cr_assert_eq(ps_store_bytes(store).values, 8);
    cr_assert_eq(ps_store_bytes(store).state, 16);
    kit_apply(store, kit_sparse(PS_TYPE_F64, 0, 1, &col, &g));
    cr_assert_lt(kit_value(store, PS_TYPE_F64, 0, 42), 0);
    ps_store_destroy(&store);
}

static double sgd_weight(ps_row_format_t format, bool is_sparse_push)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, format, PS_TYPE_F64, 0, 4);
    ps_store_t *store = NULL;
    uint64_t key = 5;
    uint32_t col = 0;
    double g[4] = {-1, -1, -1, -1};
    double value = 0;

    spec.updater = (ps_updater_spec_t){.kind = PS_UPDATER_SGD, .alpha = 1, .l1 = 0.25};
    store = kit_store(&spec, 0);
    kit_apply(store, kit_dense(PS_TYPE_F64, 1, &key, 4, g));
    memset(g, 0, sizeof g);
    if (is_sparse_push) {
        kit_apply(store, kit_sparse(PS_TYPE_F64, 5, 1, &col, g));
    } else {
        kit_apply(store, kit_dense(PS_TYPE_F64, 1, &key, 4, g));
    }
    value = kit_value(store, PS_TYPE_F64, 5, 3);
    ps_store_destroy(&store);
    return value;
}

Test(store, dense_deltas_run_the_updater_everywhere_sparse_ones_where_named)
{
    static const ps_row_format_t formats[] = {PS_ROW_DENSE, PS_ROW_SPARSE, PS_ROW_AUTO};

    for (size_t f = 0; f < 3; f++) {
        cr_assert_eq(sgd_weight(formats[f], false), 0.5);
        cr_assert_eq(sgd_weight(formats[f], true), 0.75);
    }
}

/* An AUTO row's kind shows in the bytes of its values. */
Test(store, an_auto_row_is_born_as_it_is_pushed)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_AUTO, PS_TYPE_F32, 0, 1000);
    ps_store_t *store = kit_store(&spec, 0);
    uint32_t columns[2] = {10, 20};
    kit_push_t push = {
        .slice = {.type = PS_TYPE_F32, .cols = PS_COLS_RANGE, .first_col = 5, .n_cols = 1}};

    kit_apply(store, kit_sparse(PS_TYPE_F32, 1, 2, columns, ones));
    cr_assert_eq(ps_store_bytes(store).values, 2 * 4);
    kit_push_key(&push, 2);
    kit_push_value(&push, 1);
    kit_push_close(&push, NULL);
    kit_apply(store, push);
    cr_assert_eq(ps_store_bytes(store).values, 2 * 4 + 1000 * 4);
    cr_assert_eq(ps_store_bytes(store).rows_present, 2);
    ps_store_destroy(&store);
}

Test(store, a_sparse_auto_row_turns_dense_when_that_is_smaller)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_AUTO, PS_TYPE_F32, 0, 100);
    ps_store_t *store = kit_store(&spec, 0);
    uint64_t sparse = 0;
    uint64_t largest = 0;

    for (uint32_t col = 0; col < 100; col++) {
        double value = col + 1;

        kit_apply(store, kit_sparse(PS_TYPE_F32, 8, 1, &col, &value));
        sparse = ps_store_bytes(store).values;
        largest = sparse > largest ? sparse : largest;
        cr_assert(sparse == 4 * (col + 1) || sparse == 400);
        if (sparse == 400) {
            cr_assert_geq(col, 24, "8 bytes an entry against 400");
        }
    }
    cr_assert_eq(largest, 400);
    for (uint32_t col = 0; col < 100; col++) {
        cr_assert_eq(kit_value(store, PS_TYPE_F32, 8, col), col + 1);
    }
    ps_store_destroy(&store);
}

Test(store, a_sparse_row_never_turns_dense_in_a_sparse_table)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_SPARSE, PS_TYPE_F32, 0, 100);
    ps_store_t *store = kit_store(&spec, 0);
    double values[100];
    uint64_t key = 4;

    for (size_t i = 0; i < 100; i++) {
        values[i] = i == 50 ? 0 : 1;
    }
    kit_apply(store, kit_dense(PS_TYPE_F32, 1, &key, 100, values));
    cr_assert_eq(ps_store_bytes(store).values, 99 * 4);
    ps_store_destroy(&store);
}

Test(store, a_sparse_row_gives_memory_back)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_SPARSE, PS_TYPE_I64, 1, 100000);
    ps_store_t *store = kit_store(&spec, 0);
    uint64_t full = 0;

    for (int sign = 1; sign >= -1; sign -= 2) {
        kit_push_t push = {.slice = {.type = PS_TYPE_I64, .layout = PS_LAYOUT_SPARSE}};

        kit_push_key(&push, 0);
        kit_push_u32(&push, 50000);
        for (uint32_t col = 0; col < 100000; col += 2) {
            kit_push_u32(&push, col);
            kit_push_value(&push, sign);
        }
        kit_push_close(&push, NULL);
        kit_apply(store, push);
        full = full == 0 ? ps_store_bytes(store).index : full;
    }
    cr_assert_eq(ps_store_bytes(store).values, 0);
    cr_assert_gt(full, 50000 * 4);
    cr_assert_lt(ps_store_bytes(store).index, 8192);
    ps_store_destroy(&store);
}

/* All rows of a hash partition of range keys are there, though none is stored.
 */
Test(store, a_hash_partition_of_range_keys_has_all_its_rows)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, 1000, 2);
    uint64_t n_rows = 0;

    spec.partition_by = PS_PARTITION_BY_HASH;
    spec.n_partitions = 4;
    spec.init = (ps_init_spec_t){.kind = PS_INIT_CONSTANT, .a = 3};
    for (uint32_t p = 0; p < 4; p++) {
        ps_store_t *store = kit_store(&spec, p);
        uint64_t key = 0;

        while (ps_row_slice_of(&spec, key) != p) {
            key++;
        }
        n_rows += ps_store_bytes(store).rows_present;
        cr_assert_eq(kit_value(store, PS_TYPE_F32, key, 1), 3);
        kit_apply(store, kit_dense(PS_TYPE_F32, 1, &key, 2, ones));
        cr_assert_eq(kit_value(store, PS_TYPE_F32, key, 1), 4);
        ps_store_destroy(&store);
    }
    cr_assert_eq(n_rows, 1000);
}

Test(store, too_many_rows_to_count_are_shared_out)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, PS_TABLE_ROWS_MAX, 1);
    uint64_t n_rows = 0;

    spec.partition_by = PS_PARTITION_BY_HASH;
    spec.n_partitions = 7;
    for (uint32_t p = 0; p < 7; p++) {
        ps_store_t *store = kit_store(&spec, p);

        n_rows += ps_store_bytes(store).rows_present;
        ps_store_destroy(&store);
    }
    cr_assert_eq(n_rows, PS_TABLE_ROWS_MAX);
}

Test(store, hash_keys_grow_to_a_million_rows)
{
    static const ps_row_format_t formats[] = {PS_ROW_DENSE, PS_ROW_SPARSE, PS_ROW_AUTO};

    for (size_t f = 0; f < 3; f++) {
        ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, formats[f], PS_TYPE_I64, 0, 1);
        ps_store_t *store = kit_store(&spec, 0);
        ps_rng_t rng = {1};

        for (int batch = 0; batch < 100; batch++) {
            kit_push_t push = {.slice = {.type = PS_TYPE_I64, .n_cols = 1}};

            for (int i = 0; i < 10000; i++) {
                uint64_t key = ps_rng_u64(&rng);

                kit_push_key(&push, key);
                kit_push_value(&push, (double)(key >> 40));
            }
            kit_push_close(&push, NULL);
            kit_apply(store, push);
        }
        cr_assert_eq(ps_store_bytes(store).rows_present, 1000000);
        rng.state = 1;
        for (int i = 0; i < 1000; i++) {
            uint64_t key = ps_rng_u64(&rng);

            cr_assert_eq(kit_value(store, PS_TYPE_I64, key, 0), (double)(key >> 40));
        }
        ps_store_destroy(&store);
    }
}

/* Whatever was pushed or read before, and in whatever order. */
Test(store, first_values_do_not_depend_on_what_came_before)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, 5000, 7);
    ps_store_t *store = NULL;
    uint64_t key = 2500;

    spec.init = (ps_init_spec_t){.kind = PS_INIT_NORMAL, .a = 0, .b = 1};
    spec.seed = 99;
    store = kit_store(&spec, 0);
    kit_apply(store, kit_dense(PS_TYPE_F32, 1, &key, 7, ones));
    for (uint64_t row = 4998; row > 0; row -= 7) {
        for (uint32_t col = 0; col < 7; col++) {
            uint8_t first[4];
            double want = 0;

            ps_init_fill(&spec, row, col, 1, first);
            want = (double)ps_load_f32(first);
            cr_assert_eq(kit_value(store, PS_TYPE_F32, row, col),
                         row == key ? (double)(float)(want + 1) : want);
        }
    }
    ps_store_destroy(&store);
}
