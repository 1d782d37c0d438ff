/* SPDX-License-Identifier: Apache-2.0 */
/* psd_sparse: what plain loops over a dense copy give, in both layouts, and no
 * copy where none is needed. */
#include "close.h"
#include "data/streams/samples.h"
#include "support/fail_alloc.h"

enum { ROWS = 57, COLS = 43 };

typedef float dense_t[ROWS][COLS];

typedef struct arrays {
    uint64_t starts[ROWS + 1];
    uint64_t indices[ROWS * COLS];
    float values[ROWS * COLS];
    dense_t dense;
} arrays_t;

/* About one entry of five; some rows have none. */
static psd_sparse_t *sparse_random(arrays_t *arrays, uint64_t seed)
{
    psd_sparse_t *sparse = NULL;
    ps_rng_t rng = {.state = seed};
    uint64_t n = 0;

    for (size_t i = 0; i < ROWS; i++) {
        arrays->starts[i] = n;
        for (size_t j = 0; j < COLS; j++) {
            bool is_in = i % 7 != 3 && ps_rng_below(&rng, 5) == 0;

            arrays->dense[i][j] = 0;
            if (is_in) {
                arrays->dense[i][j] = (float)(2 * ps_rng_f64(&rng) - 1);
                arrays->values[n] = arrays->dense[i][j];
                arrays->indices[n++] = j;
            }
        }
    }
    arrays->starts[ROWS] = n;
    cr_assert_eq(psd_sparse_view(PSD_CSR, ROWS, COLS, arrays->starts, arrays->indices,
                                 arrays->values, &sparse, NULL),
                 PSD_OK);
    return sparse;
}

/* Fills in the zeroes. */
static void spread_out(const psd_sparse_t *sparse, float *dense)
{
    bool by_rows = psd_sparse_layout(sparse) == PSD_CSR;
    size_t cols = psd_sparse_cols(sparse);
    size_t n = by_rows ? psd_sparse_rows(sparse) : cols;

    memset(dense, 0, psd_sparse_rows(sparse) * cols * sizeof *dense);
    for (size_t major = 0; major < n; major++) {
        for (uint64_t i = psd_sparse_starts(sparse)[major];
             i < psd_sparse_starts(sparse)[major + 1]; i++) {
            uint64_t minor = psd_sparse_indices(sparse)[i];

            dense[by_rows ? major * cols + minor : minor * cols + major] =
                psd_sparse_values(sparse)[i];
        }
    }
}

static void check_times(const psd_sparse_t *a, dense_t dense, bool transposed)
{
    size_t inner = transposed ? ROWS : COLS, outer = transposed ? COLS : ROWS;
    static float in[2 * ROWS], out[ROWS];
    psd_vector_t *x = NULL, *y = NULL;
    psd_matrix_t *apart = NULL;

    fill_random(in, 2 * ROWS, 9);
    cr_assert_eq(psd_matrix_view(in, inner, 1, 2, &apart, NULL), PSD_OK);
    cr_assert_eq(psd_matrix_col(apart, 0, &x, NULL), PSD_OK);
    cr_assert_eq(psd_vector_view(out, outer, &y, NULL), PSD_OK);
    for (int way = 0; way < 2; way++) {
        float beta = way == 0 ? 0 : 0.5f;

        psd_vector_fill(y, way == 0 ? NAN : 4);
        cr_assert_eq(psd_sparse_times(-2, a, transposed, x, beta, y, NULL), PSD_OK);
        for (size_t i = 0; i < outer; i++) {
            double want = way == 0 ? 0 : 2;

            for (size_t j = 0; j < inner; j++) {
                want += -2.0 * (transposed ? dense[j][i] : dense[i][j]) * in[2 * j];
            }
            check_close(out[i], want, 10);
        }
    }
    psd_vector_destroy(&x);
    psd_vector_destroy(&y);
    psd_matrix_destroy(&apart);
}

Test(sparse, times_a_vector_as_plain_loops_have_it)
{
    static arrays_t arrays;
    psd_sparse_t *csr = sparse_random(&arrays, 1);
    psd_sparse_t *csc = NULL;

    cr_assert_eq(psd_sparse_convert(csr, PSD_CSC, &csc, NULL), PSD_OK);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        cr_assert_eq(psd_linalg_set_threads(threads, NULL), PSD_OK);
        for (int turned = 0; turned < 2; turned++) {
            check_times(csr, arrays.dense, turned);
            check_times(csc, arrays.dense, turned);
        }
    }
    /* The arrays were lent, and are as they were. */
    cr_assert_eq(psd_sparse_values(csr), arrays.values);
    cr_assert_eq(psd_sparse_indices(csr), arrays.indices);
    cr_assert(psd_sparse_is_view(csr));
    cr_assert_not(psd_sparse_is_view(csc));
    psd_sparse_destroy(&csr);
    psd_sparse_destroy(&csc);
}

Test(sparse, converts_turns_cuts_and_scales)
{
    static arrays_t arrays;
    static float dense[ROWS * COLS];
    psd_sparse_t *csr = sparse_random(&arrays, 2), *other = NULL;

    for (int layout = PSD_CSR; layout <= PSD_CSC; layout++) {
        psd_sparse_t *self = NULL;

        cr_assert_eq(psd_sparse_convert(csr, (psd_layout_t)layout, &self, NULL), PSD_OK);
        spread_out(self, dense);
        cr_assert_arr_eq(dense, arrays.dense, sizeof dense);

        cr_assert_eq(psd_sparse_transpose(self, &other, NULL), PSD_OK);
        cr_assert_eq((int)psd_sparse_layout(other), layout);
        spread_out(other, dense);
        for (size_t i = 0; i < ROWS * COLS; i++) {
            cr_assert_eq(dense[i], arrays.dense[i % ROWS][i / ROWS]);
        }
        psd_sparse_destroy(&other);

        cr_assert_eq(psd_sparse_slice_rows(self, 11, 20, &other, NULL), PSD_OK);
        cr_assert_eq(psd_sparse_is_view(other), layout == PSD_CSR);
        cr_assert_eq((int)psd_sparse_layout(other), layout);
        spread_out(other, dense);
        cr_assert_arr_eq(dense, arrays.dense[11], 20 * COLS * sizeof *dense);
        psd_sparse_destroy(&other);

        cr_assert_eq(psd_sparse_slice_cols(self, 40, 3, &other, NULL), PSD_OK);
        cr_assert_eq(psd_sparse_is_view(other), layout == PSD_CSC);
        spread_out(other, dense);
        for (size_t i = 0; i < ROWS * 3; i++) {
            cr_assert_eq(dense[i], arrays.dense[i / 3][40 + i % 3]);
        }
        psd_sparse_destroy(&other);

        cr_assert_eq(psd_sparse_scale(4, self, &other, NULL), PSD_OK);
        cr_assert_eq(psd_sparse_norm(other, PSD_NORM_MAX), 4 * psd_sparse_norm(csr, PSD_NORM_MAX));
        psd_sparse_destroy(&other);
        psd_sparse_destroy(&self);
    }
    psd_sparse_destroy(&csr);
}

Test(sparse, an_entry_that_is_not_there_counts_as_zero)
{
    static arrays_t left, right;
    static float dense[ROWS * COLS];
    psd_sparse_t *x = sparse_random(&left, 3), *y = sparse_random(&right, 4);
    psd_sparse_t *by_cols = NULL, *out = NULL;

    cr_assert_eq(psd_sparse_convert(y, PSD_CSC, &by_cols, NULL), PSD_OK);
    for (int op = PSD_OP_ADD; op <= PSD_OP_MAX; op++) {
        if (op == PSD_OP_DIVIDE) {
            continue;
        }
        cr_assert_eq(psd_sparse_apply((psd_op_t)op, x, by_cols, &out, NULL), PSD_OK);
        spread_out(out, dense);
        for (size_t i = 0; i < ROWS * COLS; i++) {
            float a = left.dense[i / COLS][i % COLS];
            float b = right.dense[i / COLS][i % COLS];
            float want = op == PSD_OP_ADD        ? a + b
                         : op == PSD_OP_SUBTRACT ? a - b
                         : op == PSD_OP_MULTIPLY ? a * b
                         : op == PSD_OP_MIN      ? fminf(a, b)
                                                 : fmaxf(a, b);

            cr_assert_eq(dense[i], want, "operation %d: %g and %g: %g", op, a, b, dense[i]);
        }
        psd_sparse_destroy(&out);
    }
    psd_sparse_destroy(&by_cols);
    psd_sparse_destroy(&x);
    psd_sparse_destroy(&y);
}

/* All values the same: GraphBLAS may keep one of them. */
Test(sparse, equal_values_come_back_one_by_one)
{
    static const uint64_t STARTS[] = {0, 2, 3}, INDICES[] = {0, 2, 1};
    static const float ONES[] = {1, 1, 1};
    psd_sparse_t *x = NULL, *out = NULL;

    cr_assert_eq(psd_sparse_view(PSD_CSR, 2, 3, STARTS, INDICES, ONES, &x, NULL), PSD_OK);
    cr_assert_eq(psd_sparse_apply(PSD_OP_ADD, x, x, &out, NULL), PSD_OK);
    cr_assert_eq(psd_sparse_norm(out, PSD_NORM_1), 6);
    psd_sparse_destroy(&out);
    cr_assert_eq(psd_sparse_apply(PSD_OP_MULTIPLY, x, x, &out, NULL), PSD_OK);
    cr_assert_eq(psd_sparse_norm(out, PSD_NORM_1), 3);
    psd_sparse_destroy(&out);
    psd_sparse_destroy(&x);
}

Test(sparse, an_empty_one_computes_too)
{
    static const uint64_t STARTS[4] = {0};
    float values[3] = {1, 2, 3};
    psd_sparse_t *x = NULL, *out = NULL;
    psd_vector_t *y = NULL;

    cr_assert_eq(psd_vector_view(values, 3, &y, NULL), PSD_OK);
    cr_assert_eq(psd_sparse_view(PSD_CSR, 3, 3, STARTS, NULL, NULL, &x, NULL), PSD_OK);
    cr_assert_eq(psd_sparse_apply(PSD_OP_ADD, x, x, &out, NULL), PSD_OK);
    cr_assert_eq(psd_sparse_entries(out), 0);
    psd_sparse_destroy(&out);
    cr_assert_eq(psd_sparse_slice_cols(x, 1, 2, &out, NULL), PSD_OK);
    cr_assert_eq(psd_sparse_cols(out), 2);
    cr_assert_eq(psd_sparse_norm(out, PSD_NORM_2), 0);
    psd_sparse_destroy(&out);
    cr_assert_eq(psd_sparse_times(1, x, false, y, 2, y, NULL), PSD_OK);
    cr_assert_eq(values[2], 6);
    psd_vector_destroy(&y);
    psd_sparse_destroy(&x);
}

/* Samples of one group each, or of two; keys as they are given, -1 ends. */
static psd_samples_t *batch_of(const int (*keys)[4], size_t n, bool two_groups)
{
    psd_samples_t *batch = psd_samples_new();

    for (size_t i = 0; i < n; i++) {
        cr_assert(ps_samples_reserve(batch, 2, 4));
        ps_samples_begin(batch, 1);
        for (size_t j = 0; j < 4 && keys[i][j] >= 0; j++) {
            ps_samples_add(batch, (uint64_t)keys[i][j], (float)(j + 1));
            if (two_groups && j == 0) {
                ps_samples_end_group(batch, 3);
            }
        }
        ps_samples_end_group(batch, 4);
        ps_samples_end(batch);
    }
    return batch;
}

Test(sparse, a_batch_whose_keys_ascend_is_not_copied)
{
    static const int KEYS[][4] = {{0, 3, -1}, {1, 2, 3, 4}};
    static const float WANT[] = {1, 0, 0, 2, 0, 0, 1, 2, 3, 4};
    float dense[10];

    for (int groups = 0; groups < 2; groups++) {
        psd_samples_t *batch = batch_of(KEYS, 2, groups);
        psd_sparse_t *x = NULL;

        cr_assert_eq(psd_sparse_of_samples(batch, NULL, 5, &x, NULL), PSD_OK);
        cr_assert(psd_sparse_is_view(x));
        cr_assert_eq(psd_sparse_values(x), psd_samples_values(batch));
        cr_assert_eq(psd_sparse_indices(x), psd_samples_keys(batch));
        spread_out(x, dense);
        cr_assert_arr_eq(dense, WANT, sizeof dense);
        psd_sparse_destroy(&x);
        psd_samples_destroy(&batch);
    }
}

Test(sparse, keys_that_do_not_ascend_are_put_in_order_and_added_up)
{
    static const int KEYS[][4] = {{4, 1, 4, -1}, {-1}, {2, 0, -1}};
    static const float WANT[] = {0, 2, 0, 0, 4, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0};
    float dense[15];
    psd_samples_t *batch = batch_of(KEYS, 3, false);
    psd_sparse_t *x = NULL;
    psd_error_t *err = psd_error_new();

    cr_assert_eq(psd_sparse_of_samples(batch, NULL, 5, &x, NULL), PSD_OK);
    cr_assert_not(psd_sparse_is_view(x));
    spread_out(x, dense);
    cr_assert_arr_eq(dense, WANT, sizeof dense);
    psd_sparse_destroy(&x);
    check_error(psd_sparse_of_samples(batch, NULL, 4, &x, err), PSD_RANGE, err,
                "sample 0 has key 4 of 4 columns");
    psd_samples_destroy(&batch);
    psd_error_destroy(&err);
}

Test(sparse, ids_are_columns_and_those_left_out_are_not_there)
{
    static const int KEYS[][4] = {{9, 1, 70, -1}, {70, 9, -1}};
    static const float WANT[] = {1, 3, 2, 1};
    float dense[4];
    psd_samples_t *batch = batch_of(KEYS, 2, false);
    psd_localizer_t *localizer = NULL;
    psd_sparse_t *x = NULL;
    psd_error_t *err = psd_error_new();

    cr_assert_eq(psd_localizer_new(1, &localizer, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_set_min_count(localizer, 2, 1 << 12, NULL), PSD_OK);
    cr_assert_eq(
        psd_localizer_run(localizer, psd_samples_keys(batch), psd_samples_entry_count(batch), NULL),
        PSD_OK);
    cr_assert_eq(psd_sparse_of_samples(batch, psd_localizer_ids(localizer),
                                       psd_localizer_count(localizer), &x, NULL),
                 PSD_OK);
    cr_assert_eq(psd_sparse_cols(x), 2);
    spread_out(x, dense);
    cr_assert_arr_eq(dense, WANT, sizeof dense);
    psd_sparse_destroy(&x);
    check_error(psd_sparse_of_samples(batch, psd_localizer_ids(localizer), 1, &x, err), PSD_RANGE,
                err, "sample 0 has id 1 of 1 columns");
    psd_localizer_destroy(&localizer);
    psd_samples_destroy(&batch);
    psd_error_destroy(&err);
}

Test(sparse, arrays_that_are_none_are_refused)
{
    static const uint64_t DESCENDS[] = {0, 2, 1}, LATE[] = {1, 2, 2};
    static const uint64_t STARTS[] = {0, 2, 2}, TWICE[] = {1, 1}, OUT[] = {0, 3};
    static const float VALUES[] = {1, 2};
    static const uint64_t INDICES[] = {0, 1};
    psd_sparse_t *x = NULL, *y = NULL;
    psd_vector_t *v = NULL;
    psd_error_t *err = psd_error_new();

    check_error(psd_sparse_view(PSD_CSR, 2, 3, DESCENDS, INDICES, VALUES, &x, err), PSD_INVALID,
                err, "row 1 ends at 1, before it starts at 2");
    check_error(psd_sparse_view(PSD_CSR, 2, 3, LATE, INDICES, VALUES, &x, err), PSD_INVALID, err,
                "the first start is 1, not 0");
    check_error(psd_sparse_view(PSD_CSC, 3, 2, STARTS, TWICE, VALUES, &x, err), PSD_INVALID, err,
                "column 0 has index 1 after 1");
    check_error(psd_sparse_view(PSD_CSR, 2, 3, STARTS, OUT, VALUES, &x, err), PSD_RANGE, err,
                "row 0 has index 3 of 3");
    check_error(psd_sparse_view((psd_layout_t)2, 2, 3, STARTS, INDICES, VALUES, &x, err),
                PSD_INVALID, err, "2 is not a layout; 0 and 1 are");
    cr_assert_null(x);
    cr_assert_eq(psd_sparse_view(PSD_CSR, 2, 3, STARTS, INDICES, VALUES, &x, NULL), PSD_OK);
    cr_assert_eq(psd_sparse_view(PSD_CSC, 3, 2, STARTS, INDICES, VALUES, &y, NULL), PSD_OK);
    cr_assert_eq(psd_vector_new(3, &v, NULL), PSD_OK);
    check_error(psd_sparse_times(1, x, false, v, 0, v, err), PSD_SHAPE, err,
                "a sparse matrix of 2 x 3 times 3 items into 3");
    check_error(psd_sparse_apply(PSD_OP_ADD, x, y, &x, err), PSD_SHAPE, err,
                "a sparse matrix of 2 x 3 and one of 3 x 2");
    check_error(psd_sparse_apply(PSD_OP_DIVIDE, x, x, &x, err), PSD_INVALID, err,
                "sparse matrices are not divided: most of it is 0 / 0");
    check_error(psd_sparse_slice_cols(x, 2, 2, &x, err), PSD_RANGE, err,
                "2 columns from 2 on, of 3");
    psd_vector_destroy(&v);
    psd_sparse_destroy(&x);
    psd_sparse_destroy(&y);
    psd_error_destroy(&err);
}

/* Every call that goes to GraphBLAS, whose memory comes through our door. */
static psd_status_t compute(void *fixture)
{
    psd_samples_t *batch = fixture;
    psd_sparse_t *x = NULL, *cut = NULL, *sum = NULL;
    psd_vector_t *v = NULL, *y = NULL;
    float values[6] = {1, 1, 1, 1, 1, 1};
    psd_status_t rc = psd_sparse_of_samples(batch, NULL, 6, &x, NULL);

    if (rc == PSD_OK) {
        rc = psd_sparse_slice_cols(x, 1, 3, &cut, NULL);
    }
    if (rc == PSD_OK) {
        rc = psd_sparse_apply(PSD_OP_SUBTRACT, cut, cut, &sum, NULL);
    }
    if (rc == PSD_OK) {
        rc = psd_vector_view(values, 3, &v, NULL);
    }
    if (rc == PSD_OK) {
        rc = psd_vector_view(values + 3, 3, &y, NULL);
    }
    if (rc == PSD_OK) {
        rc = psd_sparse_times(1, cut, false, v, 1, y, NULL);
        /* The keys 1, 3 and 2, 2 that the cut has, and 1. */
        cr_assert_eq(values[3], rc == PSD_OK ? 3 : 1);
        cr_assert_eq(values[4], rc == PSD_OK ? 4 : 1);
    }
    psd_vector_destroy(&y);
    psd_vector_destroy(&v);
    psd_sparse_destroy(&sum);
    psd_sparse_destroy(&cut);
    psd_sparse_destroy(&x);
    return rc;
}

/* GraphBLAS does without some allocations, so that a run in which one failed
 * may end well. */
Test(sparse, survives_each_failed_allocation)
{
    static const int KEYS[][4] = {{4, 1, 4, -1}, {3, 2, -1}, {2, 0, -1}};
    psd_samples_t *batch = batch_of(KEYS, 3, false);
    psd_sparse_t *first = NULL;
    size_t failed = 0;

    /* It is started before, as it keeps what it takes for that. */
    cr_assert_eq(psd_sparse_of_samples(batch, NULL, 6, &first, NULL), PSD_OK);
    for (size_t at = 0;; at++) {
        psd_status_t rc = PSD_OK;
        bool happened = false;

        fail_alloc_at(at);
        rc = compute(batch);
        happened = fail_alloc_happened();
        fail_alloc_off();
        cr_assert(rc == PSD_OK || (happened && rc == PSD_NOMEM), "allocation %zu: %s", at,
                  psd_status_name(rc));
        failed += rc == PSD_NOMEM;
        if (!happened) {
            break;
        }
    }
    cr_assert_gt(failed, 30);
    psd_sparse_destroy(&first);
    psd_samples_destroy(&batch);
}
