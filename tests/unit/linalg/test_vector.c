/* SPDX-License-Identifier: Apache-2.0 */
/* psd_vector: what plain loops give, also where items lie apart. */
#include "close.h"
#include "support/fail_alloc.h"

enum { N = 1003 };

/* Every third item of a longer array, by way of a matrix's column. */
static psd_vector_t *column_of(float *values)
{
    psd_matrix_t *matrix = NULL;
    psd_vector_t *vector = NULL;

    cr_assert_eq(psd_matrix_view(values, N, 3, 3, &matrix, NULL), PSD_OK);
    cr_assert_eq(psd_matrix_col(matrix, 1, &vector, NULL), PSD_OK);
    cr_assert_eq(psd_vector_step(vector), 3);
    psd_matrix_destroy(&matrix);
    return vector;
}

static float at(const psd_vector_t *v, size_t i)
{
    return psd_vector_values(v)[i * psd_vector_step(v)];
}

static void check_all(psd_vector_t *x, psd_vector_t *y)
{
    double dot = 0, dot_got = 0, sizes = 0, norms[3] = {0};
    psd_vector_t *before = NULL;
    psd_vector_t *out = NULL;

    for (size_t i = 0; i < N; i++) {
        double a = at(x, i);

        dot += a * at(y, i);
        sizes += fabs(a * at(y, i));
        norms[0] += fabs(a);
        norms[1] += a * a;
        norms[2] = fmax(norms[2], fabs(a));
    }
    cr_assert_eq(psd_vector_dot(x, y, &dot_got, NULL), PSD_OK);
    check_close(dot_got, dot, sizes);
    check_close(psd_vector_norm(x, PSD_NORM_1), norms[0], 0);
    check_close(psd_vector_norm(x, PSD_NORM_2), sqrt(norms[1]), 0);
    check_close(psd_vector_norm(x, PSD_NORM_MAX), norms[2], 0);

    cr_assert_eq(psd_vector_new(N, &before, NULL), PSD_OK);
    cr_assert_eq(psd_vector_new(N, &out, NULL), PSD_OK);
    cr_assert_eq(psd_vector_copy(y, before, NULL), PSD_OK);
    cr_assert_eq(psd_vector_axpy(0.3f, x, y, NULL), PSD_OK);
    for (size_t i = 0; i < N; i++) {
        check_close(at(y, i), at(before, i) + 0.3 * at(x, i), 1);
    }
    psd_vector_scale(-2, y);
    cr_assert_eq(psd_vector_apply(PSD_OP_MULTIPLY, x, y, out, NULL), PSD_OK);
    for (size_t i = 0; i < N; i++) {
        check_close(at(y, i), -2 * (at(before, i) + 0.3 * at(x, i)), 1);
        cr_assert_eq(at(out, i), at(x, i) * at(y, i));
    }
    psd_vector_destroy(&before);
    psd_vector_destroy(&out);
}

Test(vector, computes_what_plain_loops_compute)
{
    static float values[2][3 * N];

    for (int way = 0; way < 4; way++) {
        psd_vector_t *x = NULL;
        psd_vector_t *y = NULL;

        fill_random(values[0], 3 * N, 1);
        fill_random(values[1], 3 * N, 2);
        if (way % 2 == 0) {
            cr_assert_eq(psd_vector_view(values[0], N, &x, NULL), PSD_OK);
        } else {
            x = column_of(values[0]);
        }
        if (way / 2 == 0) {
            cr_assert_eq(psd_vector_view(values[1], N, &y, NULL), PSD_OK);
        } else {
            y = column_of(values[1]);
        }
        check_all(x, y);
        psd_vector_destroy(&x);
        psd_vector_destroy(&y);
    }
}

Test(vector, each_operation_goes_item_by_item)
{
    float a[] = {6, -2, 3}, b[] = {2, 4, 3}, c[3];
    static const float WANT[][3] = {
        {8, 2, 6}, {4, -6, 0}, {12, -8, 9}, {3, -0.5f, 1}, {2, -2, 3}, {6, 4, 3},
    };
    psd_vector_t *x = NULL, *y = NULL, *out = NULL;

    cr_assert_eq(psd_vector_view(a, 3, &x, NULL), PSD_OK);
    cr_assert_eq(psd_vector_view(b, 3, &y, NULL), PSD_OK);
    cr_assert_eq(psd_vector_view(c, 3, &out, NULL), PSD_OK);
    for (int op = PSD_OP_ADD; op <= PSD_OP_MAX; op++) {
        cr_assert_eq(psd_vector_apply((psd_op_t)op, x, y, out, NULL), PSD_OK);
        cr_assert_arr_eq(c, WANT[op], sizeof c, "operation %d", op);
    }
    cr_assert_eq(psd_vector_apply(PSD_OP_ADD, x, y, x, NULL), PSD_OK);
    cr_assert_arr_eq(a, WANT[0], sizeof a, "in place");
    psd_vector_destroy(&x);
    psd_vector_destroy(&y);
    psd_vector_destroy(&out);
}

Test(vector, a_slice_is_a_view)
{
    psd_vector_t *x = NULL, *part = NULL, *none = NULL;
    psd_error_t *err = psd_error_new();

    cr_assert_eq(psd_vector_new(10, &x, NULL), PSD_OK);
    cr_assert_eq(psd_vector_slice(x, 3, 4, &part, NULL), PSD_OK);
    psd_vector_fill(part, 5);
    cr_assert_eq(psd_vector_norm(x, PSD_NORM_1), 20);
    cr_assert_eq(at(x, 2), 0);
    cr_assert_eq(at(x, 3), 5);
    cr_assert_eq(at(x, 7), 0);
    check_error(psd_vector_slice(x, 7, 4, &none, err), PSD_RANGE, err, "4 items from 7 on, of 10");
    check_error(psd_vector_axpy(1, x, part, err), PSD_SHAPE, err, "a vector of 10 and one of 4");
    check_error(psd_vector_apply((psd_op_t)9, x, x, x, err), PSD_INVALID, err,
                "9 is not an operation; 0 .. 5 are");
    check_error(psd_vector_new(SIZE_MAX / 2, &none, err), PSD_NOMEM, err,
                "no memory for a vector of 9223372036854775807");
    cr_assert_null(none);
    psd_vector_destroy(&part);
    psd_vector_destroy(&x);
    psd_error_destroy(&err);
}

Test(vector, nan_is_the_greatest_item)
{
    float values[] = {1, NAN, 3};
    psd_vector_t *x = NULL;

    cr_assert_eq(psd_vector_view(values, 3, &x, NULL), PSD_OK);
    cr_assert(isnan(psd_vector_norm(x, PSD_NORM_MAX)));
    psd_vector_destroy(&x);
}

Test(vector, threads_are_set_in_one_place)
{
    psd_error_t *err = psd_error_new();

    cr_assert_eq(psd_linalg_threads(), 1);
    cr_assert_eq(psd_linalg_set_threads(2, NULL), PSD_OK);
    cr_assert_eq(psd_linalg_threads(), 2);
    check_error(psd_linalg_set_threads(0, err), PSD_INVALID, err,
                "0 threads for linear algebra; 1 .. 1024 are allowed");
    cr_assert_eq(psd_linalg_threads(), 2);
    psd_error_destroy(&err);
}

static psd_status_t make(void *fixture)
{
    psd_vector_t *x = NULL, *part = NULL;
    psd_status_t rc = psd_vector_new(5, &x, NULL);

    (void)fixture;
    if (rc == PSD_OK) {
        rc = psd_vector_slice(x, 1, 2, &part, NULL);
    }
    psd_vector_destroy(&part);
    psd_vector_destroy(&x);
    return rc;
}

Test(vector, survives_each_failed_allocation)
{
    cr_assert_null(fail_alloc_sweep(make, NULL));
}
