/* SPDX-License-Identifier: Apache-2.0 */
/* Dense vectors. OpenBLAS counts in int, so that long vectors go in pieces. */
#include "linalg/linalg.h"

#include <limits.h>
#include <math.h>

#include "base/alloc.h"
#include "linalg/blas.h"

#define PIECE ((size_t)1 << 30) /* items; fits an int */

psd_status_t psd_vector_new(size_t n, psd_vector_t **ret_vector, psd_error_t *err)
{
    psd_error_clear(err);

    float *values = ps_alloc(n, sizeof *values);
    psd_status_t rc = PSD_OK;

    if (values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a vector of %zu", n);
    }
    rc = psd_vector_view(values, n, ret_vector, err);
    if (rc == PSD_OK) {
        (*ret_vector)->owned = values;
    } else {
        ps_free(values);
    }
    return rc;
}

psd_status_t psd_vector_view(float *values, size_t n, psd_vector_t **ret_vector, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = ps_linalg_begin_dense(err);
    psd_vector_t *self = NULL;

    if (rc != PSD_OK) {
        return rc;
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a vector");
    }
    *self = (psd_vector_t){.values = values, .n = n, .step = 1};
    *ret_vector = self;
    return PSD_OK;
}

psd_status_t psd_vector_slice(const psd_vector_t *self, size_t first, size_t n,
                              psd_vector_t **ret_vector, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = ps_linalg_check_range("items", first, n, self->n, err);

    if (rc == PSD_OK) {
        rc = psd_vector_view(n == 0 ? self->values : self->values + first * self->step, n,
                             ret_vector, err);
    }
    if (rc == PSD_OK) {
        (*ret_vector)->step = self->step;
    }
    return rc;
}

void psd_vector_destroy(psd_vector_t **self_p)
{
    if (*self_p != NULL) {
        ps_free((*self_p)->owned);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

size_t psd_vector_count(const psd_vector_t *self)
{
    return self->n;
}

float *psd_vector_values(const psd_vector_t *self)
{
    return self->values;
}

size_t psd_vector_step(const psd_vector_t *self)
{
    return self->step;
}

void psd_vector_fill(psd_vector_t *self, float value)
{
    for (size_t i = 0; i < self->n; i++) {
        self->values[i * self->step] = value;
    }
}

static psd_status_t check_same(const psd_vector_t *x, const psd_vector_t *y, psd_error_t *err)
{
    return x->n == y->n
               ? PSD_OK
               : psd_error_set(err, PSD_SHAPE, "a vector of %zu and one of %zu", x->n, y->n);
}

/* A stretch of two vectors that OpenBLAS can count. */
typedef struct piece {
    int n;
    int x_step, y_step;
    const float *x;
    float *y;
} piece_t;

/* The next piece from *at on; false: there is none. A step beyond INT_MAX makes
 * pieces of one item. */
static bool next_piece(const psd_vector_t *x, const psd_vector_t *y, size_t *at, piece_t *ret_piece)
{
    size_t step = x->step > y->step ? x->step : y->step;
    size_t most = step > INT_MAX ? 1 : PIECE;
    size_t left = x->n - *at;

    if (left == 0) {
        return false;
    }
    *ret_piece = (piece_t){
        .n = (int)(left < most ? left : most),
        .x_step = most == 1 ? 1 : (int)x->step,
        .y_step = most == 1 ? 1 : (int)y->step,
        .x = x->values + *at * x->step,
        .y = y->values + *at * y->step,
    };
    *at += (size_t)ret_piece->n;
    return true;
}

psd_status_t psd_vector_copy(const psd_vector_t *from, psd_vector_t *to, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = check_same(from, to, err);
    size_t at = 0;
    piece_t p;

    while (rc == PSD_OK && next_piece(from, to, &at, &p)) {
        ps_blas()->cblas_scopy(p.n, p.x, p.x_step, p.y, p.y_step);
    }
    return rc;
}

psd_status_t psd_vector_dot(const psd_vector_t *x, const psd_vector_t *y, double *ret_dot,
                            psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = check_same(x, y, err);
    double dot = 0;
    size_t at = 0;
    piece_t p;

    if (rc != PSD_OK) {
        return rc;
    }
    while (next_piece(x, y, &at, &p)) {
        dot += ps_blas()->cblas_dsdot(p.n, p.x, p.x_step, p.y, p.y_step);
    }
    *ret_dot = dot;
    return PSD_OK;
}

psd_status_t psd_vector_axpy(float alpha, const psd_vector_t *x, psd_vector_t *y, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = check_same(x, y, err);
    size_t at = 0;
    piece_t p;

    while (rc == PSD_OK && next_piece(x, y, &at, &p)) {
        ps_blas()->cblas_saxpy(p.n, alpha, p.x, p.x_step, p.y, p.y_step);
    }
    return rc;
}

void psd_vector_scale(float alpha, psd_vector_t *x)
{
    size_t at = 0;
    piece_t p;

    while (next_piece(x, x, &at, &p)) {
        ps_blas()->cblas_sscal(p.n, alpha, p.y, p.y_step);
    }
}

double psd_vector_norm(const psd_vector_t *x, psd_norm_t norm)
{
    return ps_linalg_norm(x->values, x->n, x->step, norm);
}

psd_status_t psd_vector_apply(psd_op_t op, const psd_vector_t *x, const psd_vector_t *y,
                              psd_vector_t *out, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = check_same(x, y, err);

    if (rc == PSD_OK) {
        rc = check_same(x, out, err);
    }
    if (rc == PSD_OK) {
        rc = ps_linalg_check_op(op, err);
    }
    if (rc == PSD_OK) {
        ps_linalg_apply(op, x, y, out);
    }
    return rc;
}
