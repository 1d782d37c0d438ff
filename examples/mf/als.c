/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least squares of one row: rating - mean - other's bias = bias + p . q.
 *
 * With x = (1, q) of each rating, the row w minimises the sum of (w . x - y)^2
 * and lambda n |w|^2 (Zhou et al., AAIM 2008), so (sum x x' + lambda n I) w =
 * sum x y, which is solved by Cholesky's factors.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

struct mf_solver {
    size_t width;
    double *squares; /* width x width; the lower half */
    double *sums;
    size_t n;
};

psd_status_t mf_solver_new(size_t width, mf_solver_t **ret_solver, psd_error_t *err)
{
    mf_solver_t *self = calloc(1, sizeof *self);

    if (self != NULL) {
        self->width = width;
        self->squares = calloc(width * width, sizeof *self->squares);
        self->sums = calloc(width, sizeof *self->sums);
    }
    if (self == NULL || self->squares == NULL || self->sums == NULL) {
        mf_solver_destroy(&self);
        return psd_error_set(err, PSD_NOMEM, "least squares of %zu", width);
    }
    *ret_solver = self;
    return PSD_OK;
}

void mf_solver_destroy(mf_solver_t **self_p)
{
    if (*self_p != NULL) {
        free((*self_p)->squares);
        free((*self_p)->sums);
        free(*self_p);
        *self_p = NULL;
    }
}

void mf_solver_clear(mf_solver_t *self)
{
    memset(self->squares, 0, self->width * self->width * sizeof(double));
    memset(self->sums, 0, self->width * sizeof(double));
    self->n = 0;
}

void mf_solver_add(mf_solver_t *self, const float *other, double rating)
{
    double y = rating - (double)other[0];

    for (size_t i = 0; i < self->width; i++) {
        double x = i == 0 ? 1 : (double)other[i];
        double *row = self->squares + i * self->width;

        self->sums[i] += x * y;
        row[0] += x;
        for (size_t j = 1; j <= i; j++) {
            row[j] += x * (double)other[j];
        }
    }
    self->n++;
}

/* Makes the lower half L with L L' = itself; it is positive definite. */
static void factorise(mf_solver_t *self)
{
    double *a = self->squares;
    size_t n = self->width;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];

            for (size_t k = 0; k < j; k++) {
                sum -= a[i * n + k] * a[j * n + k];
            }
            a[i * n + j] = i == j ? sqrt(fmax(sum, 1e-12)) : sum / a[j * n + j];
        }
    }
}

void mf_solver_solve(mf_solver_t *self, double lambda, float *ret_row)
{
    const double *a = self->squares;
    double *x = self->sums;
    size_t n = self->width;

    for (size_t i = 0; i < n; i++) {
        self->squares[i * n + i] += fmax(lambda, 1e-9) * (double)self->n;
    }
    if (self->n == 0) {
        memset(ret_row, 0, n * sizeof *ret_row);
        return;
    }
    factorise(self);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            x[i] -= a[i * n + k] * x[k];
        }
        x[i] /= a[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++) {
            x[i] -= a[k * n + i] * x[k];
        }
        x[i] /= a[i * n + i];
        ret_row[i] = (float)x[i];
    }
}
