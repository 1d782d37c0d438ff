/* SPDX-License-Identifier: Apache-2.0 */
/* Dense matrices by rows. OpenBLAS counts in int: what is larger is refused by
 * the calls that go there. */
#include "linalg/linalg.h"

#include <limits.h>
#include <math.h>

#include "base/alloc.h"
#include "linalg/blas.h"

psd_status_t psd_matrix_new(size_t rows, size_t cols, psd_matrix_t **ret_matrix, psd_error_t *err)
{
    psd_error_clear(err);

    float *values = NULL;
    psd_status_t rc = PSD_OK;

    if (cols == 0 || rows <= SIZE_MAX / cols) {
        values = ps_alloc(rows * cols, sizeof *values);
    }
    if (values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a matrix of %zu x %zu", rows, cols);
    }
    rc = psd_matrix_view(values, rows, cols, cols, ret_matrix, err);
    if (rc == PSD_OK) {
        (*ret_matrix)->owned = values;
    } else {
        ps_free(values);
    }
    return rc;
}

psd_status_t psd_matrix_view(float *values, size_t rows, size_t cols, size_t stride,
                             psd_matrix_t **ret_matrix, psd_error_t *err)
{
    psd_error_clear(err);

    psd_matrix_t *self = NULL;
    psd_status_t rc = PSD_OK;

    if (stride < cols) {
        return psd_error_set(err, PSD_INVALID, "rows of %zu floats, %zu floats apart", cols,
                             stride);
    }
    rc = ps_linalg_begin_dense(err);
    if (rc != PSD_OK) {
        return rc;
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a matrix");
    }
    *self = (psd_matrix_t){.values = values, .rows = rows, .cols = cols, .stride = stride};
    *ret_matrix = self;
    return PSD_OK;
}

psd_status_t psd_matrix_of_samples(const psd_samples_t *samples, size_t cols,
                                   psd_matrix_t **ret_matrix, psd_error_t *err)
{
    psd_error_clear(err);

    const size_t *groups = psd_samples_groups(samples);
    const size_t *starts = psd_samples_starts(samples);
    size_t rows = psd_samples_count(samples);

    if (psd_samples_entries(samples) != PSD_ENTRIES_DENSE) {
        return psd_error_set(err, PSD_SHAPE, "a dense matrix of samples that are sparse");
    }
    for (size_t i = 0; i < rows; i++) {
        size_t n = starts[groups[i + 1]] - starts[groups[i]];

        if (n != cols) {
            return psd_error_set(err, PSD_SHAPE, "sample %zu has %zu values, not %zu", i, n, cols);
        }
    }
    /* The owner of a view's memory may change it; samples may not change. */
    return psd_matrix_view((float *)psd_samples_values(samples), rows, cols, cols, ret_matrix, err);
}

psd_status_t psd_matrix_slice_rows(const psd_matrix_t *self, size_t first, size_t n,
                                   psd_matrix_t **ret_matrix, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = ps_linalg_check_range("rows", first, n, self->rows, err);

    return rc != PSD_OK
               ? rc
               : psd_matrix_view(n == 0 ? self->values : self->values + first * self->stride, n,
                                 self->cols, self->stride, ret_matrix, err);
}

psd_status_t psd_matrix_slice_cols(const psd_matrix_t *self, size_t first, size_t n,
                                   psd_matrix_t **ret_matrix, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = ps_linalg_check_range("columns", first, n, self->cols, err);

    return rc != PSD_OK ? rc
                        : psd_matrix_view(n == 0 ? self->values : self->values + first, self->rows,
                                          n, self->stride, ret_matrix, err);
}

psd_status_t psd_matrix_row(const psd_matrix_t *self, size_t row, psd_vector_t **ret_vector,
                            psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = ps_linalg_check_range("rows", row, 1, self->rows, err);

    return rc != PSD_OK
               ? rc
               : psd_vector_view(self->values + row * self->stride, self->cols, ret_vector, err);
}

psd_status_t psd_matrix_col(const psd_matrix_t *self, size_t col, psd_vector_t **ret_vector,
                            psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = ps_linalg_check_range("columns", col, 1, self->cols, err);

    if (rc == PSD_OK) {
        rc = psd_vector_view(self->rows == 0 ? self->values : self->values + col, self->rows,
                             ret_vector, err);
    }
    if (rc == PSD_OK) {
        (*ret_vector)->step = self->stride;
    }
    return rc;
}

void psd_matrix_destroy(psd_matrix_t **self_p)
{
    if (*self_p != NULL) {
        ps_free((*self_p)->owned);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

size_t psd_matrix_rows(const psd_matrix_t *self)
{
    return self->rows;
}

size_t psd_matrix_cols(const psd_matrix_t *self)
{
    return self->cols;
}

size_t psd_matrix_stride(const psd_matrix_t *self)
{
    return self->stride;
}

float *psd_matrix_values(const psd_matrix_t *self)
{
    return self->values;
}

/* ---- item by item: as vectors, of all of it or of a row ---- */

static bool is_whole(const psd_matrix_t *self)
{
    return self->stride == self->cols;
}

static psd_vector_t vector_of(const psd_matrix_t *self, size_t row, bool whole)
{
    return (psd_vector_t){
        .values = self->rows == 0 ? self->values : self->values + row * self->stride,
        .n = whole ? self->rows * self->cols : self->cols,
        .step = 1,
    };
}

static psd_status_t check_same(const psd_matrix_t *x, const psd_matrix_t *y, psd_error_t *err)
{
    return x->rows == y->rows && x->cols == y->cols
               ? PSD_OK
               : psd_error_set(err, PSD_SHAPE, "a matrix of %zu x %zu and one of %zu x %zu",
                               x->rows, x->cols, y->rows, y->cols);
}

void psd_matrix_fill(psd_matrix_t *self, float value)
{
    for (size_t r = 0; r < self->rows; r++) {
        psd_vector_t row = vector_of(self, r, false);

        psd_vector_fill(&row, value);
    }
}

void psd_matrix_scale(float alpha, psd_matrix_t *self)
{
    bool whole = is_whole(self);

    for (size_t r = 0; r < (whole ? 1 : self->rows); r++) {
        psd_vector_t row = vector_of(self, r, whole);

        psd_vector_scale(alpha, &row);
    }
}

double psd_matrix_norm(const psd_matrix_t *self, psd_norm_t norm)
{
    double sum = 0;

    for (size_t r = 0; r < self->rows; r++) {
        double size = ps_linalg_norm(self->values + r * self->stride, self->cols, 1, norm);

        if (norm == PSD_NORM_2) {
            sum += size * size;
        } else if (norm == PSD_NORM_1) {
            sum += size;
        } else if (size > sum || isnan(size)) {
            sum = size;
        }
    }
    return norm == PSD_NORM_2 ? sqrt(sum) : sum;
}

psd_status_t psd_matrix_axpy(float alpha, const psd_matrix_t *x, psd_matrix_t *y, psd_error_t *err)
{
    psd_error_clear(err);

    bool whole = is_whole(x) && is_whole(y);
    psd_status_t rc = check_same(x, y, err);

    for (size_t r = 0; rc == PSD_OK && r < (whole ? 1 : x->rows); r++) {
        psd_vector_t from = vector_of(x, r, whole);
        psd_vector_t to = vector_of(y, r, whole);

        rc = psd_vector_axpy(alpha, &from, &to, err);
    }
    return rc;
}

psd_status_t psd_matrix_apply(psd_op_t op, const psd_matrix_t *x, const psd_matrix_t *y,
                              psd_matrix_t *out, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = check_same(x, y, err);

    if (rc == PSD_OK) {
        rc = check_same(x, out, err);
    }
    if (rc == PSD_OK) {
        rc = ps_linalg_check_op(op, err);
    }
    for (size_t r = 0; rc == PSD_OK && r < x->rows; r++) {
        psd_vector_t left = vector_of(x, r, false);
        psd_vector_t right = vector_of(y, r, false);
        psd_vector_t to = vector_of(out, r, false);

        ps_linalg_apply(op, &left, &right, &to);
    }
    return rc;
}

/* ---- OpenBLAS ---- */

static psd_status_t check_int(const psd_matrix_t *self, psd_error_t *err)
{
    return self->rows <= INT_MAX && self->stride <= INT_MAX
               ? PSD_OK
               : psd_error_set(err, PSD_LIMIT,
                               "a matrix of %zu rows, %zu floats apart; "
                               "OpenBLAS counts to %d",
                               self->rows, self->stride, INT_MAX);
}

/* At least 1, as OpenBLAS wants it also of an empty matrix. */
static int stride_of(const psd_matrix_t *self)
{
    return self->stride == 0 ? 1 : (int)self->stride;
}

psd_status_t psd_matrix_transpose(const psd_matrix_t *from, psd_matrix_t *to, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = PSD_OK;

    if (from->rows != to->cols || from->cols != to->rows) {
        return psd_error_set(err, PSD_SHAPE, "%zu x %zu, turned over, into %zu x %zu", from->rows,
                             from->cols, to->rows, to->cols);
    }
    rc = check_int(from, err);
    if (rc == PSD_OK) {
        rc = check_int(to, err);
    }
    if (rc == PSD_OK && from->rows > 0 && from->cols > 0) {
        ps_blas()->cblas_somatcopy(CblasRowMajor, CblasTrans, (int)from->rows, (int)from->cols, 1,
                                   from->values, stride_of(from), to->values, stride_of(to));
    }
    return rc;
}

psd_status_t psd_matrix_times(float alpha, const psd_matrix_t *a, bool transposed,
                              const psd_vector_t *x, float beta, psd_vector_t *y, psd_error_t *err)
{
    psd_error_clear(err);

    size_t inner = transposed ? a->rows : a->cols;
    size_t outer = transposed ? a->cols : a->rows;
    ps_blas_turn_t turn = {.is_first = false};
    psd_status_t rc = check_int(a, err);

    if (rc == PSD_OK && (x->n != inner || y->n != outer)) {
        rc = psd_error_set(err, PSD_SHAPE, "%zu x %zu%s times %zu items into %zu", a->rows, a->cols,
                           transposed ? ", transposed," : "", x->n, y->n);
    }
    if (rc == PSD_OK && (x->step > INT_MAX || y->step > INT_MAX)) {
        rc = psd_error_set(err, PSD_LIMIT, "items %zu floats apart; OpenBLAS counts to %d",
                           x->step > y->step ? x->step : y->step, INT_MAX);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (beta == 0) { /* whatever was there */
        psd_vector_fill(y, 0);
    }
    if (inner == 0) { /* OpenBLAS then leaves y as it is */
        psd_vector_scale(beta, y);
    } else if (outer > 0) {
        rc = ps_blas_take_buffer(&turn, err);
        if (rc != PSD_OK) {
            return rc;
        }
        ps_blas()->cblas_sgemv(CblasRowMajor, transposed ? CblasTrans : CblasNoTrans, (int)a->rows,
                               (int)a->cols, alpha, a->values, stride_of(a), x->values,
                               (int)x->step, beta, y->values, (int)y->step);
        ps_blas_give_buffer(&turn);
    }
    return PSD_OK;
}

psd_status_t psd_matrix_multiply(float alpha, const psd_matrix_t *a, bool a_transposed,
                                 const psd_matrix_t *b, bool b_transposed, float beta,
                                 psd_matrix_t *c, psd_error_t *err)
{
    psd_error_clear(err);

    size_t a_rows = a_transposed ? a->cols : a->rows;
    size_t a_cols = a_transposed ? a->rows : a->cols;
    size_t b_rows = b_transposed ? b->cols : b->rows;
    size_t b_cols = b_transposed ? b->rows : b->cols;
    ps_blas_turn_t turn = {.is_first = false};
    psd_status_t rc = check_int(a, err);

    if (rc == PSD_OK) {
        rc = check_int(b, err);
    }
    if (rc == PSD_OK) {
        rc = check_int(c, err);
    }
    if (rc == PSD_OK && (a_cols != b_rows || c->rows != a_rows || c->cols != b_cols)) {
        rc = psd_error_set(err, PSD_SHAPE, "%zu x %zu times %zu x %zu into %zu x %zu", a_rows,
                           a_cols, b_rows, b_cols, c->rows, c->cols);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (a_rows > 0 && b_cols > 0 && a_cols > 0) {
        rc = ps_blas_take_buffer(&turn, err);
        if (rc != PSD_OK) {
            return rc;
        }
        ps_blas()->cblas_sgemm(CblasRowMajor, a_transposed ? CblasTrans : CblasNoTrans,
                               b_transposed ? CblasTrans : CblasNoTrans, (int)a_rows, (int)b_cols,
                               (int)a_cols, alpha, a->values, stride_of(a), b->values, stride_of(b),
                               beta, c->values, stride_of(c));
        ps_blas_give_buffer(&turn);
    } else if (beta == 0) {
        psd_matrix_fill(c, 0);
    } else {
        psd_matrix_scale(beta, c);
    }
    return PSD_OK;
}
