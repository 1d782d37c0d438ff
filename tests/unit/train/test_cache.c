/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "support/fail_alloc.h"
#include "train/values/cache.h"

enum { NARROW = 0, WIDE = 1, HASHED = 2, N_TABLES = 3 };

static const ps_shape_t shapes[N_TABLES] = {
    {.n_rows = 100, .n_cols = 2, .type = PS_TYPE_F32, .value_size = 4},
    {.n_rows = 1, .n_cols = 1000, .type = PS_TYPE_F64, .value_size = 8},
    {.n_rows = 0, .n_cols = 10, .type = PS_TYPE_I64, .value_size = 8},
};

Test(cache, a_row_that_is_asked_for_often_is_there_once)
{
    ps_cache_t cache = {.n_tables = 0};
    const uint64_t rows[] = {7, 3, 7, 99};

    cr_assert_eq(ps_cache_init(&cache, shapes, N_TABLES, NULL), PSD_OK);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(ps_cache_want_rows(&cache, NARROW, rows, 4, NULL), PSD_OK);
    }
    cr_assert_eq(ps_cache_seal(&cache, NULL), PSD_OK);
    cr_assert_eq(cache.n_rows_asked, 4000);
    cr_assert_eq(cache.tables[NARROW].rows.n, 3);
    cr_assert_not_null(ps_cache_row(&cache.tables[NARROW], 99));
    cr_assert_null(ps_cache_row(&cache.tables[NARROW], 98));
    cr_assert_eq((char *)ps_cache_value(&cache.tables[NARROW], 3, 1),
                 (char *)cache.tables[NARROW].values + 12);
    cr_assert_null(ps_cache_value(&cache.tables[NARROW], 3, 2));
    ps_cache_done(&cache);
}

Test(cache, a_table_takes_in_its_rows_and_a_row_its_elements)
{
    ps_cache_t cache = {.n_tables = 0};
    const uint64_t row = 5;

    cr_assert_eq(ps_cache_init(&cache, shapes, N_TABLES, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_rows(&cache, NARROW, &row, 1, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_element(&cache, NARROW, 6, 1, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_all(&cache, NARROW, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_rows(&cache, NARROW, &row, 1, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_element(&cache, HASHED, 5, 1, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_element(&cache, HASHED, 8, 1, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_rows(&cache, HASHED, &row, 1, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_element(&cache, HASHED, 5, 2, NULL), PSD_OK);
    cr_assert_eq(ps_cache_seal(&cache, NULL), PSD_OK);
    cr_assert_eq(cache.tables[NARROW].rows.n, 0);
    cr_assert_eq(cache.tables[NARROW].n_elements, 0);
    cr_assert_not_null(ps_cache_row(&cache.tables[NARROW], 99));
    cr_assert_null(ps_cache_row(&cache.tables[NARROW], 100));
    cr_assert_eq(cache.tables[HASHED].rows.n, 1);
    cr_assert_eq(cache.tables[HASHED].n_elements, 1);
    cr_assert_null(ps_cache_row(&cache.tables[HASHED], 8));
    cr_assert_not_null(ps_cache_value(&cache.tables[HASHED], 8, 1));
    cr_assert_null(ps_cache_value(&cache.tables[HASHED], 8, 2));
    ps_cache_done(&cache);
}

/* Rows of which the same columns are wanted are one pull. */
Test(cache, elements_come_in_groups_of_rows_with_the_same_columns)
{
    ps_cache_t cache = {.n_tables = 0};
    const ps_cache_table_t *table = NULL;

    cr_assert_eq(ps_cache_init(&cache, shapes, N_TABLES, NULL), PSD_OK);
    for (uint64_t row = 0; row < 20; row++) {
        for (int again = 0; again < 3; again++) {
            cr_assert_eq(ps_cache_want_element(&cache, HASHED, row, 4, NULL), PSD_OK);
            if (row % 2 == 1) {
                cr_assert_eq(ps_cache_want_element(&cache, HASHED, row, 2, NULL), PSD_OK);
            }
        }
    }
    cr_assert_eq(ps_cache_seal(&cache, NULL), PSD_OK);
    table = &cache.tables[HASHED];
    cr_assert_eq(table->n_elements, 30);
    cr_assert_eq(table->n_groups, 2);
    cr_assert_eq(table->groups[0].n_rows, 10);
    cr_assert_eq(table->groups[0].n_cols, 1);
    cr_assert_eq(table->groups[1].n_rows, 10);
    cr_assert_eq(table->groups[1].n_cols, 2);
    for (size_t i = 0; i < table->n_elements; i++) {
        cr_assert_eq(ps_cache_value(table, table->elements[i].row, table->elements[i].col),
                     (char *)table->element_values + i * 8);
    }
    ps_cache_done(&cache);
}

Test(cache, wants_nothing_when_cleared)
{
    ps_cache_t cache = {.n_tables = 0};
    const uint64_t row = 5;

    cr_assert_eq(ps_cache_init(&cache, shapes, N_TABLES, NULL), PSD_OK);
    for (int again = 0; again < 2; again++) {
        cr_assert_eq(ps_cache_want_rows(&cache, HASHED, &row, 1, NULL), PSD_OK);
        cr_assert_eq(ps_cache_want_element(&cache, WIDE, 0, 7, NULL), PSD_OK);
        cr_assert_eq(ps_cache_seal(&cache, NULL), PSD_OK);
        cr_assert_eq(cache.tables[WIDE].n_groups, 1);
        cr_assert_not_null(ps_cache_value(&cache.tables[WIDE], 0, 7));
        ps_cache_clear(&cache);
        cr_assert_null(ps_cache_row(&cache.tables[HASHED], 5));
        cr_assert_null(ps_cache_value(&cache.tables[WIDE], 0, 7));
    }
    ps_cache_done(&cache);
}

Test(cache, refuses_what_the_table_does_not_have)
{
    psd_error_t *err = psd_error_new();
    ps_cache_t cache = {.n_tables = 0};
    const uint64_t row = 100;

    cr_assert_eq(ps_cache_init(&cache, shapes, N_TABLES, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_rows(&cache, NARROW, &row, 1, err), PSD_RANGE);
    cr_assert_str_eq(psd_error_text(err), "row 100; the table has 100");
    psd_error_clear(err);
    cr_assert_eq(ps_cache_want_element(&cache, WIDE, 0, 1000, err), PSD_RANGE);
    cr_assert_str_eq(psd_error_text(err), "column 1000; the table has 1000");
    psd_error_clear(err);
    cr_assert_eq(ps_cache_want_all(&cache, HASHED, err), PSD_INVALID);
    cr_assert_not_null(strstr(psd_error_text(err), "hash keys"));
    psd_error_clear(err);
    cr_assert_eq(ps_cache_want_all(&cache, N_TABLES, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "table is 3; there are 3");
    ps_cache_done(&cache);
    psd_error_destroy(&err);
}

static psd_status_t fill(void *unused)
{
    ps_cache_t cache = {.n_tables = 0};
    psd_status_t rc = ps_cache_init(&cache, shapes, N_TABLES, NULL);

    (void)unused;
    for (uint64_t i = 0; rc == PSD_OK && i < 80; i++) {
        rc = ps_cache_want_rows(&cache, NARROW, &i, 1, NULL);
        if (rc == PSD_OK) {
            rc = ps_cache_want_element(&cache, HASHED, i, (uint32_t)(i % 10), NULL);
        }
    }
    if (rc == PSD_OK) {
        rc = ps_cache_seal(&cache, NULL);
    }
    ps_cache_done(&cache);
    return rc;
}

static void put(ps_sums_t *sums, uint64_t row, uint32_t col, ps_number_t number)
{
    ps_number_t *cell = ps_sums_at(sums, row, col);

    if (cell == NULL) {
        cr_assert_fail("no memory");
    } else {
        *cell = number;
    }
}

/* Each cell that is here and was added to, and no other; sums of what is not
 * here are left alone. */
Test(cache, takes_sums_of_deltas)
{
    const uint64_t rows[] = {9, 4};
    ps_cache_t cache = {.n_tables = 0};
    ps_sums_t sums[N_TABLES];

    cr_assert_eq(ps_cache_init(&cache, shapes, N_TABLES, NULL), PSD_OK);
    for (size_t i = 0; i < N_TABLES; i++) {
        cr_assert_eq(ps_sums_init(&sums[i], &shapes[i], NULL), PSD_OK);
    }
    cr_assert_eq(ps_cache_want_rows(&cache, NARROW, rows, 2, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_element(&cache, NARROW, 6, 1, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_element(&cache, NARROW, 7, 1, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_all(&cache, WIDE, NULL), PSD_OK);
    cr_assert_eq(ps_cache_want_rows(&cache, HASHED, rows, 2, NULL), PSD_OK);
    cr_assert_eq(ps_cache_seal(&cache, NULL), PSD_OK);
    for (size_t i = 0; i < 2; i++) {
        for (uint32_t col = 0; col < 2; col++) {
            *(float *)ps_cache_value(&cache.tables[NARROW], rows[i], col) = 10;
        }
        *(int64_t *)ps_cache_value(&cache.tables[HASHED], rows[i], 9) = 10;
    }
    for (uint32_t col = 0; col < 1000; col++) {
        *(double *)ps_cache_value(&cache.tables[WIDE], 0, col) = 10;
    }
    *(float *)ps_cache_value(&cache.tables[NARROW], 6, 1) = 10;
    *(float *)ps_cache_value(&cache.tables[NARROW], 7, 1) = 10;
    put(&sums[NARROW], 4, 1, (ps_number_t){.f64 = 0.5});
    put(&sums[NARROW], 6, 1, (ps_number_t){.f64 = 0.25});
    put(&sums[NARROW], 50, 0, (ps_number_t){.f64 = 1});
    put(&sums[WIDE], 0, 999, (ps_number_t){.f64 = -1});
    put(&sums[HASHED], 9, 9, (ps_number_t){.i64 = -3});
    put(&sums[HASHED], 8, 9, (ps_number_t){.i64 = 3});
    for (size_t i = 0; i < N_TABLES; i++) {
        ps_cache_add(&cache.tables[i], &sums[i]);
        ps_sums_done(&sums[i]);
    }
    cr_assert_eq(*(float *)ps_cache_value(&cache.tables[NARROW], 4, 1), 10.5F);
    cr_assert_eq(*(float *)ps_cache_value(&cache.tables[NARROW], 4, 0), 10);
    cr_assert_eq(*(float *)ps_cache_value(&cache.tables[NARROW], 9, 1), 10);
    cr_assert_eq(*(float *)ps_cache_value(&cache.tables[NARROW], 6, 1), 10.25F);
    cr_assert_eq(*(float *)ps_cache_value(&cache.tables[NARROW], 7, 1), 10);
    cr_assert_eq(*(double *)ps_cache_value(&cache.tables[WIDE], 0, 999), 9);
    cr_assert_eq(*(double *)ps_cache_value(&cache.tables[WIDE], 0, 998), 10);
    cr_assert_eq(*(int64_t *)ps_cache_value(&cache.tables[HASHED], 9, 9), 7);
    cr_assert_eq(*(int64_t *)ps_cache_value(&cache.tables[HASHED], 4, 9), 10);
    ps_cache_done(&cache);
}

Test(cache, ends_well_without_memory)
{
    cr_assert_null(fail_alloc_sweep(fill, NULL));
}
