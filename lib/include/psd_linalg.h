/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_linalg - vectors and matrices of floats, for trainers
 *
 *     psd_sparse_t *x = NULL;
 *     psd_vector_t *w = NULL, *margins = NULL;
 *     psd_sparse_of_samples(batch, NULL, n_features, &x, err);
 *     psd_vector_view(pulled, n_features, &w, err);
 *     psd_vector_new(psd_sparse_rows(x), &margins, err);
 *     psd_sparse_times(1, x, false, w, 0, margins, err);
 *
 * What     Dense vectors and matrices on OpenBLAS, sparse matrices on
 *          SuiteSparse:GraphBLAS. This is a library of its own (pkg-config
 *          libpsd_linalg): a job that only pushes and pulls loads neither of
 *          them.
 * Shape    A vector has n items, `step` floats apart. A matrix has rows of
 *          cols floats, `stride` floats apart. A sparse matrix is CSR (starts
 *          of rows, columns) or CSC (starts of columns, rows); its indices
 *          ascend in each row or column.
 * Owner    What a call returns through `ret_x` belongs to the caller; a
 *          destructor takes the pointer's address, accepts NULL, and nulls it.
 *          A view borrows its memory, which must live longer than the view,
 *          and reads and writes it in place. Pulled rows are float arrays, so
 *          a view of them needs no copy.
 * Threads  Objects that nobody changes may be read by several threads at once.
 *          psd_linalg_set_threads says how many threads one call uses: 1 at
 *          first, because the trainers are threads already.
 * Errors   PSD_NOMEM, also when OpenBLAS's buffer for a product does not fit;
 *          PSD_IO OpenBLAS cannot be loaded; PSD_SHAPE objects that do not
 *          fit together, naming both; PSD_RANGE a part that does not exist.
 *          An error leaves outputs unchanged. An output must not overlap an
 *          input, except in psd_vector_apply and psd_matrix_apply, where it
 *          may be one of the inputs.
 */
#ifndef PSD_LINALG_H
#define PSD_LINALG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"
#include "psd_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- threads ---- */

/*
 * Sets the number of threads that each call may use from now on, in the whole
 * process. It applies to OpenBLAS and GraphBLAS, and overrides
 * OPENBLAS_NUM_THREADS and OMP_NUM_THREADS. Use 1 when several trainers compute
 * at the same time, and the number of cores when there is a single trainer.
 * Call it while no other call is under way.
 *
 * With 1 thread every run gives the same bits. With more threads, products with
 * a transposed sparse matrix add in an order that depends on timing.
 *
 * OpenBLAS is loaded with the first vector or matrix. It takes 128 MiB for each
 * of its own threads, and for each thread of the program that multiplies at the
 * same time. When a limit of the process (RLIMIT_DATA, RLIMIT_AS) leaves no
 * room for that, the program's threads take turns.
 *
 * Errors: PSD_INVALID n_threads is not 1 .. 1024; PSD_NOMEM there is no memory
 * for n_threads threads.
 */
PSD_EXPORT psd_status_t psd_linalg_set_threads(uint32_t n_threads, psd_error_t *err);
PSD_EXPORT uint32_t psd_linalg_threads(void);

/* The operation on each pair of items. */
typedef enum psd_op {
    PSD_OP_ADD = 0,
    PSD_OP_SUBTRACT = 1,
    PSD_OP_MULTIPLY = 2,
    PSD_OP_DIVIDE = 3, /* not for sparse matrices */
    PSD_OP_MIN = 4,
    PSD_OP_MAX = 5
} psd_op_t;

typedef enum psd_norm {
    PSD_NORM_1 = 0,  /* sum of |item| */
    PSD_NORM_2 = 1,  /* root of the sum of squares; Frobenius' of a matrix */
    PSD_NORM_MAX = 2 /* greatest |item| */
} psd_norm_t;

/* ---- vectors ---- */

typedef struct psd_vector psd_vector_t;

/* n items of 0. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_vector_new(size_t n, psd_vector_t **ret_vector,
                                                      psd_error_t *err);
/* A view of n floats. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_vector_view(float *values, size_t n,
                                                       psd_vector_t **ret_vector, psd_error_t *err);
/* A view of n items of it, from `first` on. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_vector_slice(const psd_vector_t *self, size_t first,
                                                        size_t n, psd_vector_t **ret_vector,
                                                        psd_error_t *err);
PSD_EXPORT void psd_vector_destroy(psd_vector_t **self_p);
PSD_EXPORT size_t psd_vector_count(const psd_vector_t *self);
/* Its first item; the next ones are `step` floats apart. */
PSD_EXPORT float *psd_vector_values(const psd_vector_t *self);
PSD_EXPORT size_t psd_vector_step(const psd_vector_t *self);

PSD_EXPORT void psd_vector_fill(psd_vector_t *self, float value);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_vector_copy(const psd_vector_t *from, psd_vector_t *to,
                                                       psd_error_t *err);
/* Sum of x[i] y[i], added up in double precision. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_vector_dot(const psd_vector_t *x, const psd_vector_t *y,
                                                      double *ret_dot, psd_error_t *err);
/* y += alpha x */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_vector_axpy(float alpha, const psd_vector_t *x,
                                                       psd_vector_t *y, psd_error_t *err);
PSD_EXPORT void psd_vector_scale(float alpha, psd_vector_t *x);
/* 0 for an unknown norm. */
PSD_EXPORT double psd_vector_norm(const psd_vector_t *x, psd_norm_t norm);
/* out[i] = x[i] op y[i]; PSD_INVALID: no such op. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_vector_apply(psd_op_t op, const psd_vector_t *x,
                                                        const psd_vector_t *y, psd_vector_t *out,
                                                        psd_error_t *err);

/* ---- dense matrices ---- */

typedef struct psd_matrix psd_matrix_t;

/* rows x cols items of 0. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_new(size_t rows, size_t cols,
                                                      psd_matrix_t **ret_matrix, psd_error_t *err);
/* A view; PSD_INVALID: stride < cols. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_view(float *values, size_t rows, size_t cols,
                                                       size_t stride, psd_matrix_t **ret_matrix,
                                                       psd_error_t *err);
/* A view of a batch of dense samples: one row of cols values for each sample.
 * PSD_SHAPE: a sample has another number of values. The batch must not
 * change. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_of_samples(const psd_samples_t *samples,
                                                             size_t cols, psd_matrix_t **ret_matrix,
                                                             psd_error_t *err);
/* Views of rows and columns, of one row, of one column. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_slice_rows(const psd_matrix_t *self, size_t first,
                                                             size_t n, psd_matrix_t **ret_matrix,
                                                             psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_slice_cols(const psd_matrix_t *self, size_t first,
                                                             size_t n, psd_matrix_t **ret_matrix,
                                                             psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_row(const psd_matrix_t *self, size_t row,
                                                      psd_vector_t **ret_vector, psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_col(const psd_matrix_t *self, size_t col,
                                                      psd_vector_t **ret_vector, psd_error_t *err);
PSD_EXPORT void psd_matrix_destroy(psd_matrix_t **self_p);
PSD_EXPORT size_t psd_matrix_rows(const psd_matrix_t *self);
PSD_EXPORT size_t psd_matrix_cols(const psd_matrix_t *self);
PSD_EXPORT size_t psd_matrix_stride(const psd_matrix_t *self);
PSD_EXPORT float *psd_matrix_values(const psd_matrix_t *self);

PSD_EXPORT void psd_matrix_fill(psd_matrix_t *self, float value);
PSD_EXPORT void psd_matrix_scale(float alpha, psd_matrix_t *self);
PSD_EXPORT double psd_matrix_norm(const psd_matrix_t *self, psd_norm_t norm);
/* to = from, transposed. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_transpose(const psd_matrix_t *from,
                                                            psd_matrix_t *to, psd_error_t *err);
/* y += alpha x */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_axpy(float alpha, const psd_matrix_t *x,
                                                       psd_matrix_t *y, psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_apply(psd_op_t op, const psd_matrix_t *x,
                                                        const psd_matrix_t *y, psd_matrix_t *out,
                                                        psd_error_t *err);
/* y = alpha A x + beta y, or with A transposed. With beta 0 the old content of
 * y is ignored, NaN too. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_times(float alpha, const psd_matrix_t *a,
                                                        bool transposed, const psd_vector_t *x,
                                                        float beta, psd_vector_t *y,
                                                        psd_error_t *err);
/* C = alpha A B + beta C, each of A and B as it is or transposed. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_matrix_multiply(float alpha, const psd_matrix_t *a,
                                                           bool a_transposed, const psd_matrix_t *b,
                                                           bool b_transposed, float beta,
                                                           psd_matrix_t *c, psd_error_t *err);

/* ---- sparse matrices ---- */

typedef struct psd_sparse psd_sparse_t;

typedef enum psd_layout {
    PSD_CSR = 0, /* by rows */
    PSD_CSC = 1  /* by columns */
} psd_layout_t;

/*
 * A view of the three arrays, which must not change.
 *
 * starts   in  of each row (CSR) or column (CSC), and the end of the last one:
 *              n + 1 items for n rows or columns; the first is 0
 * indices  in  columns (CSR) or rows (CSC), ascending in each
 *
 * Errors: PSD_INVALID unknown layout; starts that descend or do not begin at 0;
 * indices that do not ascend; PSD_RANGE an index out of range.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_sparse_view(psd_layout_t layout, size_t rows,
                                                       size_t cols, const uint64_t *starts,
                                                       const uint64_t *indices, const float *values,
                                                       psd_sparse_t **ret_sparse, psd_error_t *err);
/*
 * A batch, a row for each sample; its groups count as one.
 *
 * ids   in  NULL: the keys are the columns; else psd_localizer_ids of the
 *           batch: the ids are the columns, and entries that the localizer
 *           left out are not in the matrix
 *
 * Without ids, and when the keys of each sample ascend, the matrix is a view:
 * the batch must not change. Otherwise entries are copied (16 bytes each), and
 * entries of the same row and column are added up.
 *
 * Errors: PSD_RANGE a key or an id >= cols.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_sparse_of_samples(const psd_samples_t *samples,
                                                             const uint32_t *ids, size_t cols,
                                                             psd_sparse_t **ret_sparse,
                                                             psd_error_t *err);
PSD_EXPORT void psd_sparse_destroy(psd_sparse_t **self_p);
PSD_EXPORT size_t psd_sparse_rows(const psd_sparse_t *self);
PSD_EXPORT size_t psd_sparse_cols(const psd_sparse_t *self);
PSD_EXPORT size_t psd_sparse_entries(const psd_sparse_t *self);
PSD_EXPORT psd_layout_t psd_sparse_layout(const psd_sparse_t *self);
/* Does it borrow the memory of its entries? */
PSD_EXPORT bool psd_sparse_is_view(const psd_sparse_t *self);
/* Borrowed; as psd_sparse_view takes them. */
PSD_EXPORT const uint64_t *psd_sparse_starts(const psd_sparse_t *self);
PSD_EXPORT const uint64_t *psd_sparse_indices(const psd_sparse_t *self);
PSD_EXPORT const float *psd_sparse_values(const psd_sparse_t *self);
PSD_EXPORT double psd_sparse_norm(const psd_sparse_t *self, psd_norm_t norm);

/* y = alpha A x + beta y, or with A transposed. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_sparse_times(float alpha, const psd_sparse_t *a,
                                                        bool transposed, const psd_vector_t *x,
                                                        float beta, psd_vector_t *y,
                                                        psd_error_t *err);
/* The same matrix in this layout, copied. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_sparse_convert(const psd_sparse_t *self,
                                                          psd_layout_t layout,
                                                          psd_sparse_t **ret_sparse,
                                                          psd_error_t *err);
/* Transposed, in the same layout, copied. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_sparse_transpose(const psd_sparse_t *self,
                                                            psd_sparse_t **ret_sparse,
                                                            psd_error_t *err);
/* n rows, or columns, from `first` on. Along the layout (rows of CSR) it is a
 * view, except for the starts; across it a copy. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_sparse_slice_rows(const psd_sparse_t *self, size_t first,
                                                             size_t n, psd_sparse_t **ret_sparse,
                                                             psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_sparse_slice_cols(const psd_sparse_t *self, size_t first,
                                                             size_t n, psd_sparse_t **ret_sparse,
                                                             psd_error_t *err);
/* alpha times it, copied. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_sparse_scale(float alpha, const psd_sparse_t *self,
                                                        psd_sparse_t **ret_sparse,
                                                        psd_error_t *err);
/* x op y, in the layout of x; an entry that is missing in one of them counts as
 * 0. The result has no entry where both x and y have none, or with
 * PSD_OP_MULTIPLY where one of them has none. PSD_INVALID: PSD_OP_DIVIDE, no
 * such op. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_sparse_apply(psd_op_t op, const psd_sparse_t *x,
                                                        const psd_sparse_t *y,
                                                        psd_sparse_t **ret_sparse,
                                                        psd_error_t *err);

#ifdef __cplusplus
}
#endif

#endif
