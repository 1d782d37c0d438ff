/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linalg - the structs of vectors and matrices, shared by their files
 *
 * What     Each object is a struct of sizes and one to three arrays, owned or
 *          borrowed. GraphBLAS sees a sparse matrix only while it works on it:
 *          sparse_graph.c wraps the arrays for the time of a call.
 */
#ifndef PS_LINALG_LINALG_H
#define PS_LINALG_LINALG_H

#include "psd_linalg.h"

struct psd_vector {
    float *values; /* NULL when n is 0, perhaps */
    size_t n;
    size_t step;  /* floats from one item to the next */
    float *owned; /* NULL: a view */
};

struct psd_matrix {
    float *values;
    size_t rows, cols;
    size_t stride; /* floats from one row to the next; >= cols */
    float *owned;  /* NULL: a view */
};

struct psd_sparse {
    psd_layout_t layout;
    size_t rows, cols;
    const uint64_t *starts;  /* n_major + 1; the first is 0 */
    const uint64_t *indices; /* of starts[n_major] entries */
    const float *values;
    uint64_t *own_starts; /* what it owns of them; NULL: borrowed */
    uint64_t *own_indices;
    float *own_values;
};

/* Rows of CSR, columns of CSC; and the others. */
static inline size_t ps_sparse_major(const psd_sparse_t *self)
{
    return self->layout == PSD_CSR ? self->rows : self->cols;
}

static inline size_t ps_sparse_minor(const psd_sparse_t *self)
{
    return self->layout == PSD_CSR ? self->cols : self->rows;
}

/* Before the first call of OpenBLAS: loads it, and gives it the number of
 * threads. Errors: PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_linalg_begin_dense(psd_error_t *err);
/* Before the first call of GraphBLAS: starts it. Errors: PSD_NOMEM,
 * PSD_FAILED. */
PSD_MUST_CHECK psd_status_t ps_linalg_begin_sparse(psd_error_t *err);

/* A struct of zeroes with these sizes, to be filled. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_sparse_new(psd_layout_t layout, size_t rows, size_t cols,
                                          psd_sparse_t **ret_sparse, psd_error_t *err);
/*
 * Entries in any order, those of one place added up, as CSR. What it takes is
 * only read.
 *
 * row_indices  in  of each of n entries; every index is inside
 */
PSD_MUST_CHECK psd_status_t ps_sparse_build(psd_sparse_t *shape, const uint64_t *row_indices,
                                            const uint64_t *col_indices, const float *values,
                                            size_t n, psd_error_t *err);
/* Norm of floats that lie `step` apart; 0 for an unknown one. */
double ps_linalg_norm(const float *values, size_t n, size_t step, psd_norm_t norm);
/* out[i] = x[i] op y[i], each its step apart; the op is one of the list. */
void ps_linalg_apply(psd_op_t op, const psd_vector_t *x, const psd_vector_t *y, psd_vector_t *out);
/* PSD_INVALID: no such op. */
PSD_MUST_CHECK psd_status_t ps_linalg_check_op(psd_op_t op, psd_error_t *err);
/* PSD_RANGE: `what` first .. first + n - 1 of count are not all there. */
PSD_MUST_CHECK psd_status_t ps_linalg_check_range(const char *what, size_t first, size_t n,
                                                  size_t count, psd_error_t *err);
#endif
