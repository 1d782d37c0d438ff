/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"
#include "train/values/sums.h"

static ps_shape_t shape_of(uint64_t n_rows, uint32_t n_cols, ps_type_t type, bool sparse)
{
    return (ps_shape_t){.n_rows = n_rows,
                        .n_cols = n_cols,
                        .type = type,
                        .value_size = ps_type_size(type),
                        .sparse = sparse};
}

/* Adds 1, 2, 3 … to n scattered cells, each twice. */
static psd_status_t scatter(ps_sums_t *sums, size_t n)
{
    const ps_shape_t *shape = &sums->shape;

    for (size_t i = 0; i < 2 * n; i++) {
        uint64_t k = i % n;
        uint64_t row = k * 7919;
        uint32_t col = (uint32_t)(k * 131 % shape->n_cols);
        ps_number_t *cell = NULL;

        row = shape->n_rows == 0 ? row : row % shape->n_rows;
        cell = ps_sums_at(sums, row, col);
        if (cell == NULL) {
            return PSD_NOMEM;
        }
        if (ps_type_is_float(shape->type)) {
            cell->f64 += (double)k + 1;
        } else {
            cell->i64 += (int64_t)k + 1;
        }
    }
    return PSD_OK;
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

static double value_at(const ps_sums_t *sums, const ps_sheaf_t *sheaf, size_t i)
{
    switch (sums->shape.type) {
    case PS_TYPE_I32:
        return ((int32_t *)sheaf->values)[i];
    case PS_TYPE_I64:
        return (double)((int64_t *)sheaf->values)[i];
    case PS_TYPE_F32:
        return (double)((float *)sheaf->values)[i];
    case PS_TYPE_F64:
    default:
        return ((double *)sheaf->values)[i];
    }
}

/* Rows ascend, columns ascend in a row, and the values sum up to `total`. */
static void expect_sheaf(const ps_sums_t *sums, const ps_sheaf_t *sheaf, double total)
{
    double sum = 0;
    size_t at = 0;

    for (size_t i = 0; i < sheaf->n_rows; i++) {
        cr_assert(i == 0 || sheaf->rows[i] > sheaf->rows[i - 1]);
        cr_assert_gt(sheaf->counts[i], 0);
        for (uint32_t k = 0; k < sheaf->counts[i]; k++, at++) {
            cr_assert(k == 0 || sheaf->cols[at] > sheaf->cols[at - 1]);
            cr_assert_lt(sheaf->cols[at], sums->shape.n_cols);
            sum += value_at(sums, sheaf, at);
        }
    }
    cr_assert_eq(at, sheaf->n_values);
    cr_assert_eq(sum, total);
}

/* Small and large tables, range and hash keys, narrow and wide rows. */
Test(sums, adds_up_by_cell_and_over_trainers)
{
    const ps_shape_t shapes[] = {
        shape_of(1000, 1, PS_TYPE_F32, false), shape_of(0, 1, PS_TYPE_I64, false),
        shape_of(1, 1000, PS_TYPE_F64, false), shape_of(UINT64_C(1) << 40, 3, PS_TYPE_I32, false),
        shape_of(0, 100, PS_TYPE_F32, false),  shape_of(50, UINT32_C(1) << 31, PS_TYPE_I64, true),
        shape_of(0, 64, PS_TYPE_F64, false),   shape_of(1, 65, PS_TYPE_F64, false),
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        ps_sums_t one = {.width = 0};
        ps_sums_t two = {.width = 0};
        ps_sums_t all = {.width = 0};
        ps_sheaf_t sheaf = {.n_rows = 0};

        cr_assert_eq(ps_sums_init(&one, &shapes[i], NULL), PSD_OK);
        cr_assert_eq(ps_sums_init(&two, &shapes[i], NULL), PSD_OK);
        cr_assert_eq(ps_sums_init(&all, &shapes[i], NULL), PSD_OK);
        for (int again = 0; again < 2; again++) { /* clearing leaves nothing */
            cr_assert_eq(scatter(&one, 500), PSD_OK);
            cr_assert_eq(scatter(&two, 300), PSD_OK);
            cr_assert_eq(ps_sums_merge(&all, &one, NULL), PSD_OK);
            cr_assert_eq(ps_sums_merge(&all, &two, NULL), PSD_OK);
            cr_assert_eq(ps_sums_bind(&all, &sheaf, NULL), PSD_OK);
            expect_sheaf(&all, &sheaf, 500 * 501 + 300 * 301);
            ps_sheaf_done(&sheaf);
            ps_sums_clear(&one);
            ps_sums_clear(&two);
            ps_sums_clear(&all);
            cr_assert_eq(all.n_touched, 0);
        }
        ps_sums_done(&one);
        ps_sums_done(&two);
        ps_sums_done(&all);
    }
}

static double number_of(uint64_t row, uint32_t col)
{
    return (double)((row * 31 + col * 7) % 1000) - 499.0;
}

#define RUNS 19      /* rows that get a run of columns */
#define RUN_COLS 130 /* at most */

typedef union values {
    int32_t i32[RUN_COLS];
    int64_t i64[RUN_COLS];
    float f32[RUN_COLS];
    double f64[RUN_COLS];
} values_t;

static void make_values(ps_type_t type, uint64_t row, uint32_t first, uint32_t n, values_t *ret)
{
    for (uint32_t i = 0; i < n; i++) {
        double number = number_of(row, first + i);

        switch (type) {
        case PS_TYPE_I32:
            ret->i32[i] = (int32_t)number;
            break;
        case PS_TYPE_I64:
            ret->i64[i] = (int64_t)number;
            break;
        case PS_TYPE_F32:
            ret->f32[i] = (float)number;
            break;
        case PS_TYPE_F64:
        default:
            ret->f64[i] = number;
            break;
        }
    }
}

/* Which columns of a row get values. */
static uint32_t run_of(const ps_shape_t *shape, uint64_t row, uint32_t *ret_first)
{
    *ret_first = (uint32_t)(row * 13 % shape->n_cols);
    return shape->n_cols - *ret_first - (uint32_t)(row % (shape->n_cols - *ret_first));
}

/* Runs of columns that begin and end anywhere, each twice. */
static psd_status_t add_runs(ps_sums_t *sums)
{
    for (uint64_t i = 0; i < (uint64_t)2 * RUNS; i++) {
        uint64_t row = i / 2;
        uint32_t first = 0;
        uint32_t n = run_of(&sums->shape, row, &first);
        values_t values;

        make_values(sums->shape.type, row, first, n, &values);
        if (!ps_sums_add(sums, row, first, &values, n)) {
            return PSD_NOMEM;
        }
    }
    return PSD_OK;
}

static void expect_runs(const ps_sums_t *sums, const ps_sheaf_t *sheaf)
{
    size_t at = 0;

    cr_assert_eq(sheaf->n_rows, RUNS);
    for (uint64_t row = 0; row < RUNS; row++) {
        uint32_t first = 0;

        cr_assert_eq(sheaf->counts[row], run_of(&sums->shape, row, &first));
        for (uint32_t k = 0; k < sheaf->counts[row]; k++, at++) {
            cr_assert_eq(sheaf->cols[at], first + k);
            cr_assert_eq(value_at(sums, sheaf, at), 2 * number_of(row, first + k));
        }
    }
    cr_assert_eq(at, sheaf->n_values);
}

/* Of each type; wide, narrow and sparse rows; direct and by hash. */
Test(sums, takes_values_side_by_side)
{
    const ps_type_t types[] = {PS_TYPE_I32, PS_TYPE_I64, PS_TYPE_F32, PS_TYPE_F64};
    const uint32_t widths[] = {RUN_COLS, 64, 3, 1};

    for (size_t i = 0; i < 48; i++) {
        const ps_shape_t shape =
            shape_of(i % 3 == 0 ? RUNS : 0, widths[i / 3 % 4], types[i / 12], i % 3 == 2);
        ps_sums_t sums = {.width = 0};
        ps_sheaf_t sheaf = {.n_rows = 0};

        cr_assert_eq(ps_sums_init(&sums, &shape, NULL), PSD_OK);
        cr_assert_eq(add_runs(&sums), PSD_OK);
        cr_assert_eq(ps_sums_bind(&sums, &sheaf, NULL), PSD_OK);
        expect_runs(&sums, &sheaf);
        ps_sheaf_done(&sheaf);
        ps_sums_done(&sums);
    }
}

/* Rows by their remainder, each sum in one of the two; then the negative. */
static void expect_split(const ps_shape_t *shape)
{
    PSD_AUTO(ps_sums_done) ps_sums_t all = {.width = 0};
    PSD_AUTO(ps_sums_done) ps_sums_t part = {.width = 0};
    PSD_AUTO(ps_sums_done) ps_sums_t others = {.width = 0};
    PSD_AUTO(ps_sheaf_done) ps_sheaf_t sheaf = {.n_rows = 0};
    size_t slot = 0;

    cr_assert_eq(ps_sums_init(&all, shape, NULL), PSD_OK);
    cr_assert_eq(ps_sums_init(&part, shape, NULL), PSD_OK);
    cr_assert_eq(ps_sums_init(&others, shape, NULL), PSD_OK);
    for (uint64_t row = 0; row < 9; row++) {
        put(&all, row, 1,
            ps_type_is_float(shape->type) ? (ps_number_t){.f64 = (double)row + 1}
                                          : (ps_number_t){.i64 = (int64_t)row + 1});
    }
    cr_assert_eq(ps_sums_split(&all, 4, 1, &part, &others, NULL), PSD_OK);
    for (uint64_t row = 0; row < 9; row++) {
        cr_assert_eq(ps_sums_look(&part, row, 0, &slot), row % 4 == 1);
        cr_assert_eq(ps_sums_look(&others, row, 0, &slot), row % 4 != 1);
    }
    cr_assert_not(ps_sums_look(&all, 10, 0, &slot));
    cr_assert_eq(ps_sums_bind(&part, &sheaf, NULL), PSD_OK);
    ps_sheaf_negate(&sheaf, shape->type);
    cr_assert(sheaf.n_rows == 2 && sheaf.rows[0] == 1 && sheaf.rows[1] == 5);
    cr_assert(sheaf.n_values == 2 && sheaf.cols[0] == 1);
    cr_assert(value_at(&part, &sheaf, 0) == -2 && value_at(&part, &sheaf, 1) == -6);
}

Test(sums, are_split_by_row)
{
    const ps_type_t types[] = {PS_TYPE_I32, PS_TYPE_I64, PS_TYPE_F32, PS_TYPE_F64};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const ps_shape_t dense = shape_of(11, 3, types[i], false);
        const ps_shape_t hashed = shape_of(0, 3, types[i], true);

        expect_split(&dense);
        expect_split(&hashed);
    }
}

Test(sums, says_that_all_columns_were_touched)
{
    const ps_shape_t shape = shape_of(10, 130, PS_TYPE_F32, false);
    ps_sums_t sums = {.width = 0};
    ps_sheaf_t sheaf = {.n_rows = 0};

    cr_assert_eq(ps_sums_init(&sums, &shape, NULL), PSD_OK);
    for (uint32_t col = 0; col < 130; col++) {
        put(&sums, 3, col, (ps_number_t){.f64 = 1});
    }
    cr_assert_eq(ps_sums_bind(&sums, &sheaf, NULL), PSD_OK);
    cr_assert(sheaf.whole);
    cr_assert_eq(sheaf.n_values, 130);
    ps_sheaf_done(&sheaf);
    put(&sums, 4, 129, (ps_number_t){.f64 = 1});
    cr_assert_eq(ps_sums_bind(&sums, &sheaf, NULL), PSD_OK);
    cr_assert_not(sheaf.whole);
    cr_assert_eq(sheaf.counts[1], 1);
    cr_assert_eq(sheaf.cols[130], 129);
    ps_sheaf_done(&sheaf);
    ps_sums_done(&sums);
}

static void expect_refusal(ps_type_t type, ps_number_t sum, psd_status_t rc, const char *part)
{
    const ps_shape_t shape = shape_of(10, 1, type, false);
    psd_error_t *err = psd_error_new();
    ps_sums_t sums = {.width = 0};
    ps_sheaf_t sheaf = {.n_rows = 77};

    cr_assert_eq(ps_sums_init(&sums, &shape, NULL), PSD_OK);
    put(&sums, 3, 0, sum);
    cr_assert_eq(ps_sums_bind(&sums, &sheaf, err), rc);
    cr_assert_not_null(strstr(psd_error_text(err), "row 3"));
    cr_assert_not_null(strstr(psd_error_text(err), part), "%s", psd_error_text(err));
    cr_assert_eq(sheaf.n_rows, 77);
    ps_sums_done(&sums);
    psd_error_destroy(&err);
}

Test(sums, names_what_the_type_does_not_hold)
{
    expect_refusal(PS_TYPE_I32, (ps_number_t){.i64 = INT64_C(1) << 31}, PSD_RANGE, "2147483648");
    expect_refusal(PS_TYPE_F32, (ps_number_t){.f64 = 1e39}, PSD_NOT_FINITE, "1e+39");
    expect_refusal(PS_TYPE_F64, (ps_number_t){.f64 = INFINITY}, PSD_NOT_FINITE, "inf");
}

static psd_status_t run(const ps_shape_t *shape)
{
    ps_sums_t one = {.width = 0};
    ps_sums_t all = {.width = 0};
    ps_sheaf_t sheaf = {.n_rows = 0};
    psd_status_t rc = ps_sums_init(&one, shape, NULL);

    if (rc == PSD_OK) {
        rc = ps_sums_init(&all, shape, NULL);
    }
    if (rc == PSD_OK) {
        rc = scatter(&one, 150);
    }
    if (rc == PSD_OK) {
        rc = ps_sums_merge(&all, &one, NULL);
    }
    if (rc == PSD_OK) {
        rc = ps_sums_bind(&all, &sheaf, NULL);
    }
    if (rc == PSD_OK) {
        expect_sheaf(&all, &sheaf, 150 * 151);
    }
    ps_sheaf_done(&sheaf);
    ps_sums_done(&one);
    ps_sums_done(&all);
    return rc;
}

static psd_status_t run_direct(void *unused)
{
    const ps_shape_t shape = shape_of(1000, 1, PS_TYPE_F32, false);

    (void)unused;
    return run(&shape);
}

static psd_status_t run_hashed(void *unused)
{
    const ps_shape_t shape = shape_of(0, 100, PS_TYPE_I64, false);

    (void)unused;
    return run(&shape);
}

static psd_status_t run_runs(void *unused)
{
    const ps_shape_t shape = shape_of(0, RUN_COLS, PS_TYPE_F32, false);
    ps_sums_t sums = {.width = 0};
    psd_status_t rc = ps_sums_init(&sums, &shape, NULL);

    (void)unused;
    if (rc == PSD_OK) {
        rc = add_runs(&sums);
    }
    ps_sums_done(&sums);
    return rc;
}

static psd_status_t run_split(void *unused)
{
    const ps_shape_t shape = shape_of(0, 70, PS_TYPE_F32, true);
    PSD_AUTO(ps_sums_done) ps_sums_t all = {.width = 0};
    PSD_AUTO(ps_sums_done) ps_sums_t part = {.width = 0};
    PSD_AUTO(ps_sums_done) ps_sums_t others = {.width = 0};
    psd_status_t rc = ps_sums_init(&all, &shape, NULL);

    (void)unused;
    if (rc == PSD_OK) {
        rc = ps_sums_init(&part, &shape, NULL);
    }
    if (rc == PSD_OK) {
        rc = ps_sums_init(&others, &shape, NULL);
    }
    if (rc == PSD_OK) {
        rc = scatter(&all, 300);
    }
    return rc == PSD_OK ? ps_sums_split(&all, 2, 1, &part, &others, NULL) : rc;
}

Test(sums, end_well_without_memory)
{
    cr_assert_null(fail_alloc_sweep(run_split, NULL));
    cr_assert_null(fail_alloc_sweep(run_runs, NULL));
    cr_assert_null(fail_alloc_sweep(run_direct, NULL));
    cr_assert_null(fail_alloc_sweep(run_hashed, NULL));
}
