/* SPDX-License-Identifier: Apache-2.0 */
/* psd_matrix: what plain loops give, of whole matrices and of views. */
#include "close.h"
#include "data/streams/samples.h"
#include "support/fail_alloc.h"

static psd_matrix_t *matrix_random(size_t rows, size_t cols, uint64_t seed)
{
    psd_matrix_t *matrix = NULL;

    cr_assert_eq(psd_matrix_new(rows, cols, &matrix, NULL), PSD_OK);
    fill_random(psd_matrix_values(matrix), rows * cols, seed);
    return matrix;
}

static double at(const psd_matrix_t *m, bool turned, size_t i, size_t j)
{
    return psd_matrix_values(
        m)[turned ? j * psd_matrix_stride(m) + i : i * psd_matrix_stride(m) + j];
}

/* C = 0.5 A B + 2 C for each way to turn them. */
static void check_product(size_t rows, size_t inner, size_t cols, int way)
{
    bool ta = way & 1, tb = way & 2;
    psd_matrix_t *a = matrix_random(ta ? inner : rows, ta ? rows : inner, 1);
    psd_matrix_t *b = matrix_random(tb ? cols : inner, tb ? inner : cols, 2);
    psd_matrix_t *c = matrix_random(rows, cols, 3);
    psd_matrix_t *before = matrix_random(rows, cols, 3);

    cr_assert_eq(psd_matrix_multiply(0.5f, a, ta, b, tb, 2, c, NULL), PSD_OK);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            double want = 2 * at(before, false, i, j);

            for (size_t k = 0; k < inner; k++) {
                want += 0.5 * at(a, ta, i, k) * at(b, tb, k, j);
            }
            check_close(at(c, false, i, j), want, (double)inner);
        }
    }
    psd_matrix_destroy(&a);
    psd_matrix_destroy(&b);
    psd_matrix_destroy(&c);
    psd_matrix_destroy(&before);
}

Test(matrix, multiplies_as_plain_loops_do)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        cr_assert_eq(psd_linalg_set_threads(threads, NULL), PSD_OK);
        for (int way = 0; way < 4; way++) {
            check_product(7, 31, 5, way);
            check_product(1, 1, 1, way);
            check_product(64, 100, 33, way);
            check_product(3, 0, 2, way);
        }
    }
}

Test(matrix, multiplies_vectors_as_plain_loops_do)
{
    psd_matrix_t *all = matrix_random(40, 30, 4);
    psd_matrix_t *a = NULL;
    psd_vector_t *x = NULL, *y = NULL, *part = NULL;

    /* A part of a matrix times a column of it. */
    cr_assert_eq(psd_matrix_slice_cols(all, 3, 20, &a, NULL), PSD_OK);
    cr_assert_eq(psd_matrix_col(all, 1, &x, NULL), PSD_OK);
    cr_assert_eq(psd_vector_slice(x, 5, 20, &part, NULL), PSD_OK);
    cr_assert_eq(psd_vector_new(40, &y, NULL), PSD_OK);
    psd_vector_fill(y, NAN); /* beta 0 does not look at it */
    cr_assert_eq(psd_matrix_times(3, a, false, part, 0, y, NULL), PSD_OK);
    for (size_t i = 0; i < 40; i++) {
        double want = 0;

        for (size_t j = 0; j < 20; j++) {
            want += 3 * at(a, false, i, j) * at(all, false, 5 + j, 1);
        }
        check_close(psd_vector_values(y)[i], want, 20);
    }
    psd_vector_destroy(&y);
    cr_assert_eq(psd_vector_new(20, &y, NULL), PSD_OK);
    psd_vector_fill(y, 1);
    cr_assert_eq(psd_matrix_times(1, a, true, x, 4, y, NULL), PSD_OK);
    for (size_t j = 0; j < 20; j++) {
        double want = 4;

        for (size_t i = 0; i < 40; i++) {
            want += at(a, false, i, j) * at(all, false, i, 1);
        }
        check_close(psd_vector_values(y)[j], want, 40);
    }
    psd_vector_destroy(&part);
    psd_vector_destroy(&x);
    psd_vector_destroy(&y);
    psd_matrix_destroy(&a);
    psd_matrix_destroy(&all);
}

Test(matrix, parts_are_views_that_turn_add_and_scale)
{
    psd_matrix_t *all = matrix_random(6, 9, 5);
    psd_matrix_t *same = matrix_random(6, 9, 5);
    psd_matrix_t *rows = NULL, *part = NULL, *turned = NULL;
    psd_vector_t *row = NULL;
    double sum = 0, squares = 0;

    cr_assert_eq(psd_matrix_slice_rows(all, 2, 3, &rows, NULL), PSD_OK);
    cr_assert_eq(psd_matrix_slice_cols(rows, 4, 2, &part, NULL), PSD_OK);
    cr_assert_eq(psd_matrix_new(2, 3, &turned, NULL), PSD_OK);
    cr_assert_eq(psd_matrix_transpose(part, turned, NULL), PSD_OK);
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 2; j++) {
            double want = at(same, false, 2 + i, 4 + j);

            cr_assert_eq(at(part, false, i, j), want);
            cr_assert_eq(at(turned, false, j, i), want);
            sum += fabs(want);
            squares += want * want;
        }
    }
    check_close(psd_matrix_norm(part, PSD_NORM_1), sum, 0);
    check_close(psd_matrix_norm(part, PSD_NORM_2), sqrt(squares), 0);
    psd_matrix_scale(2, part);
    cr_assert_eq(psd_matrix_axpy(-1, part, part, NULL), PSD_OK);
    cr_assert_eq(psd_matrix_norm(part, PSD_NORM_MAX), 0);
    cr_assert_eq(at(all, false, 2, 3), at(same, false, 2, 3), "beside it");
    cr_assert_eq(psd_matrix_apply(PSD_OP_ADD, same, all, same, NULL), PSD_OK);
    cr_assert_eq(psd_matrix_row(all, 5, &row, NULL), PSD_OK);
    psd_vector_scale(2, row);
    for (size_t j = 0; j < 9; j++) {
        cr_assert_eq(at(all, false, 5, j), at(same, false, 5, j));
    }
    psd_vector_destroy(&row);
    psd_matrix_destroy(&turned);
    psd_matrix_destroy(&part);
    psd_matrix_destroy(&rows);
    psd_matrix_destroy(&same);
    psd_matrix_destroy(&all);
}

Test(matrix, dense_samples_are_its_rows)
{
    psd_samples_t *batch = psd_samples_new();
    psd_matrix_t *matrix = NULL;
    psd_error_t *err = psd_error_new();

    batch->entries = PSD_ENTRIES_DENSE;
    for (size_t i = 0; i < 3; i++) {
        cr_assert(ps_samples_reserve(batch, 1, 2));
        ps_samples_begin(batch, 1);
        ps_samples_add(batch, 0, (float)i);
        ps_samples_add(batch, 1, -1);
        ps_samples_end_group(batch, 0);
        ps_samples_end(batch);
    }
    cr_assert_eq(psd_matrix_of_samples(batch, 2, &matrix, NULL), PSD_OK);
    cr_assert_eq(psd_matrix_values(matrix), psd_samples_values(batch));
    cr_assert_eq(at(matrix, false, 2, 0), 2);
    psd_matrix_destroy(&matrix);
    check_error(psd_matrix_of_samples(batch, 3, &matrix, err), PSD_SHAPE, err,
                "sample 0 has 2 values, not 3");
    batch->entries = PSD_ENTRIES_SPARSE;
    check_error(psd_matrix_of_samples(batch, 2, &matrix, err), PSD_SHAPE, err,
                "a dense matrix of samples that are sparse");
    psd_samples_destroy(&batch);
    psd_error_destroy(&err);
}

Test(matrix, shapes_that_do_not_fit_are_named)
{
    psd_matrix_t *a = matrix_random(3, 4, 1), *b = matrix_random(3, 5, 1);
    psd_matrix_t *none = NULL;
    psd_vector_t *x = NULL;
    psd_error_t *err = psd_error_new();
    float values[4];

    cr_assert_eq(psd_vector_new(7, &x, NULL), PSD_OK);
    check_error(psd_matrix_multiply(1, a, false, b, false, 0, a, err), PSD_SHAPE, err,
                "3 x 4 times 3 x 5 into 3 x 4");
    check_error(psd_matrix_times(1, a, true, x, 0, x, err), PSD_SHAPE, err,
                "3 x 4, transposed, times 7 items into 7");
    check_error(psd_matrix_transpose(a, b, err), PSD_SHAPE, err, "3 x 4, turned over, into 3 x 5");
    check_error(psd_matrix_axpy(1, a, b, err), PSD_SHAPE, err,
                "a matrix of 3 x 4 and one of 3 x 5");
    check_error(psd_matrix_slice_rows(a, 1, 3, &none, err), PSD_RANGE, err,
                "3 rows from 1 on, of 3");
    check_error(psd_matrix_row(a, 3, &x, err), PSD_RANGE, err, "1 rows from 3 on, of 3");
    check_error(psd_matrix_view(values, 2, 2, 1, &none, err), PSD_INVALID, err,
                "rows of 2 floats, 1 floats apart");
    check_error(psd_matrix_new(SIZE_MAX, 2, &none, err), PSD_NOMEM, err,
                "no memory for a matrix of 18446744073709551615 x 2");
    psd_vector_destroy(&x);
    psd_matrix_destroy(&a);
    psd_matrix_destroy(&b);
    psd_error_destroy(&err);
}

static psd_status_t make(void *fixture)
{
    psd_matrix_t *matrix = NULL, *part = NULL;
    psd_vector_t *col = NULL;
    psd_status_t rc = psd_matrix_new(5, 2, &matrix, NULL);

    (void)fixture;
    if (rc == PSD_OK) {
        rc = psd_matrix_slice_cols(matrix, 1, 1, &part, NULL);
    }
    if (rc == PSD_OK) {
        rc = psd_matrix_col(part, 0, &col, NULL);
    }
    psd_vector_destroy(&col);
    psd_matrix_destroy(&part);
    psd_matrix_destroy(&matrix);
    return rc;
}

Test(matrix, survives_each_failed_allocation)
{
    cr_assert_null(fail_alloc_sweep(make, NULL));
}
