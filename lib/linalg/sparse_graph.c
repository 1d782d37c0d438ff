/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse matrices in GraphBLAS.
 *
 * GraphBLAS has no borrowed memory: its pack takes ownership of arrays, its
 * export returns them, each in constant time. So an input is packed for the
 * time of one call and exported after it, which costs a few small allocations
 * and no copy. This works because GraphBLAS never frees or changes an input
 * that has nothing pending (in blocking mode none has). An assert checks it:
 * the arrays that come back must be those that were lent. Outputs are made in
 * GraphBLAS's own memory (which is ours: settings.c) and then taken from it.
 * (unpack leaves an empty matrix, which it allocates, and so may fail when it
 * has to return arrays; export frees the matrix and cannot fail.)
 */
#include "linalg/linalg.h"

#include <GraphBLAS.h>
#include <assert.h>
#include <string.h>

#include "base/alloc.h"

_Static_assert(sizeof(GrB_Index) == sizeof(uint64_t), "indices are not copied");

static psd_status_t status_of(GrB_Info info, const char *what, psd_error_t *err)
{
    switch ((int)info) {
    case GrB_SUCCESS:
        return PSD_OK;
    case GrB_OUT_OF_MEMORY:
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", what);
    default:
        return psd_error_set(err, PSD_FAILED, "%s: GraphBLAS failed: %d", what, (int)info);
    }
}

/* ---- inputs ---- */

static GrB_Info lend(const psd_sparse_t *self, GrB_Matrix *ret_matrix)
{
    /* GraphBLAS only reads them, whatever its types say. */
    GrB_Index *starts = (GrB_Index *)self->starts;
    GrB_Index *indices = (GrB_Index *)self->indices;
    void *values = (float *)self->values;
    size_t n = psd_sparse_entries(self);
    size_t starts_size = (ps_sparse_major(self) + 1) * sizeof *starts;
    GrB_Matrix matrix = NULL;
    GrB_Info info = GrB_Matrix_new(&matrix, GrB_FP32, self->rows, self->cols);

    if (info == GrB_SUCCESS && n > 0) {
        info =
            self->layout == PSD_CSR
                ? GxB_Matrix_pack_CSR(matrix, &starts, &indices, &values, starts_size,
                                      n * sizeof *indices, n * sizeof(float), false, false, NULL)
                : GxB_Matrix_pack_CSC(matrix, &starts, &indices, &values, starts_size,
                                      n * sizeof *indices, n * sizeof(float), false, false, NULL);
    }
    if (info != GrB_SUCCESS) {
        GrB_Matrix_free(&matrix);
        return info;
    }
    *ret_matrix = matrix;
    return GrB_SUCCESS;
}

/* Takes the arrays out of a matrix and frees it; its values one by one, also
 * where it keeps one for all. */
static GrB_Info export_arrays(GrB_Matrix *matrix, psd_layout_t layout, GrB_Index **ret_starts,
                              GrB_Index **ret_indices, void **ret_values)
{
    GrB_Type type = NULL;
    GrB_Index rows = 0;
    GrB_Index cols = 0;
    GrB_Index sizes[3] = {0};

    return layout == PSD_CSR ? GxB_Matrix_export_CSR(matrix, &type, &rows, &cols, ret_starts,
                                                     ret_indices, ret_values, &sizes[0], &sizes[1],
                                                     &sizes[2], NULL, NULL, NULL)
                             : GxB_Matrix_export_CSC(matrix, &type, &rows, &cols, ret_starts,
                                                     ret_indices, ret_values, &sizes[0], &sizes[1],
                                                     &sizes[2], NULL, NULL, NULL);
}

static void take_back(const psd_sparse_t *self, GrB_Matrix *matrix)
{
    GrB_Index *starts = NULL;
    GrB_Index *indices = NULL;
    void *values = NULL;
    GrB_Info info = GrB_SUCCESS;

    if (*matrix == NULL) {
        return;
    }
    if (psd_sparse_entries(self) == 0) { /* nothing was lent */
        GrB_Matrix_free(matrix);
        return;
    }
    info = export_arrays(matrix, self->layout, &starts, &indices, &values);
    assert(info == GrB_SUCCESS && starts == self->starts && indices == self->indices &&
           values == self->values);
    (void)info;
}

/* ---- outputs ---- */

/* Makes its arrays a sparse matrix of ours, and frees it. */
static psd_status_t take_result(GrB_Matrix *matrix, psd_layout_t layout, psd_sparse_t **ret_sparse,
                                psd_error_t *err)
{
    PSD_AUTO(psd_sparse_destroy) psd_sparse_t *self = NULL;
    GrB_Index rows = 0;
    GrB_Index cols = 0;
    void *values = NULL;
    psd_status_t rc = PSD_OK;

    (void)GrB_Matrix_nrows(&rows, *matrix);
    (void)GrB_Matrix_ncols(&cols, *matrix);
    rc = ps_sparse_new(layout, rows, cols, &self, err);
    if (rc == PSD_OK) {
        rc =
            status_of(export_arrays(matrix, layout, &self->own_starts, &self->own_indices, &values),
                      "a sparse result", err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->own_values = values;
    self->starts = self->own_starts;
    self->indices = self->own_indices;
    self->values = self->own_values;
    *ret_sparse = self;
    self = NULL;
    return PSD_OK;
}

/* ---- sparse to sparse ---- */

psd_status_t psd_sparse_convert(const psd_sparse_t *self, psd_layout_t layout,
                                psd_sparse_t **ret_sparse, psd_error_t *err)
{
    psd_error_clear(err);

    GrB_Matrix lent = NULL;
    GrB_Matrix copy = NULL;
    GrB_Info info = GrB_SUCCESS;
    psd_status_t rc = PSD_OK;

    if ((unsigned)layout > PSD_CSC) {
        return psd_error_set(err, PSD_INVALID, "%u is not a layout; 0 and 1 are", (unsigned)layout);
    }
    rc = ps_linalg_begin_sparse(err);
    if (rc != PSD_OK) {
        return rc;
    }
    info = lend(self, &lent);
    if (info == GrB_SUCCESS) {
        info = GrB_Matrix_dup(&copy, lent);
    }
    rc = status_of(info, "a copy of a sparse matrix", err);
    if (rc == PSD_OK) {
        rc = take_result(&copy, layout, ret_sparse, err);
    }
    GrB_Matrix_free(&copy);
    take_back(self, &lent);
    return rc;
}

psd_status_t psd_sparse_transpose(const psd_sparse_t *self, psd_sparse_t **ret_sparse,
                                  psd_error_t *err)
{
    psd_error_clear(err);
    /* The arrays of a matrix are those of the turned one in the other layout.
     */
    psd_sparse_t turned = {
        .layout = self->layout == PSD_CSR ? PSD_CSC : PSD_CSR,
        .rows = self->cols,
        .cols = self->rows,
        .starts = self->starts,
        .indices = self->indices,
        .values = self->values,
    };

    return psd_sparse_convert(&turned, self->layout, ret_sparse, err);
}

psd_status_t psd_sparse_scale(float alpha, const psd_sparse_t *self, psd_sparse_t **ret_sparse,
                              psd_error_t *err)
{
    psd_error_clear(err);

    psd_sparse_t *copy = NULL;
    psd_status_t rc = ps_linalg_begin_dense(err);

    if (rc == PSD_OK) {
        rc = psd_sparse_convert(self, self->layout, &copy, err);
    }
    if (rc == PSD_OK && copy != NULL) {
        psd_vector_t values = {
            .values = copy->own_values, .n = psd_sparse_entries(copy), .step = 1};

        psd_vector_scale(alpha, &values);
        *ret_sparse = copy;
    }
    return rc;
}

/* out = x op y, both lent. */
static GrB_Info apply(psd_op_t op, GrB_Matrix x, GrB_Matrix y, GrB_Matrix out)
{
    GrB_Scalar zero = NULL;
    GrB_BinaryOp add = op == PSD_OP_ADD        ? GrB_PLUS_FP32
                       : op == PSD_OP_SUBTRACT ? GrB_MINUS_FP32
                       : op == PSD_OP_MIN      ? GrB_MIN_FP32
                                               : GrB_MAX_FP32;
    GrB_Info info = GrB_SUCCESS;

    if (op == PSD_OP_MULTIPLY) {
        return GrB_Matrix_eWiseMult_BinaryOp(out, NULL, NULL, GrB_TIMES_FP32, x, y, NULL);
    }
    info = GrB_Scalar_new(&zero, GrB_FP32);
    if (info == GrB_SUCCESS) {
        info = GrB_Scalar_setElement_FP32(zero, 0);
    }
    if (info == GrB_SUCCESS) {
        info = GxB_Matrix_eWiseUnion(out, NULL, NULL, add, x, zero, y, zero, NULL);
    }
    GrB_Scalar_free(&zero);
    return info;
}

static psd_status_t check_apply(psd_op_t op, const psd_sparse_t *x, const psd_sparse_t *y,
                                psd_error_t *err)
{
    psd_status_t rc = ps_linalg_check_op(op, err);

    if (rc == PSD_OK && op == PSD_OP_DIVIDE) {
        rc = psd_error_set(err, PSD_INVALID,
                           "sparse matrices are not divided: most of it is "
                           "0 / 0");
    }
    if (rc == PSD_OK && (x->rows != y->rows || x->cols != y->cols)) {
        rc = psd_error_set(err, PSD_SHAPE, "a sparse matrix of %zu x %zu and one of %zu x %zu",
                           x->rows, x->cols, y->rows, y->cols);
    }
    return rc == PSD_OK ? ps_linalg_begin_sparse(err) : rc;
}

psd_status_t psd_sparse_apply(psd_op_t op, const psd_sparse_t *x, const psd_sparse_t *y,
                              psd_sparse_t **ret_sparse, psd_error_t *err)
{
    psd_error_clear(err);

    GrB_Matrix left = NULL;
    GrB_Matrix right = NULL;
    GrB_Matrix out = NULL;
    GrB_Info info = GrB_SUCCESS;
    psd_status_t rc = check_apply(op, x, y, err);

    if (rc != PSD_OK) {
        return rc;
    }
    info = lend(x, &left);
    if (info == GrB_SUCCESS) {
        info = lend(y, &right);
    }
    if (info == GrB_SUCCESS) {
        info = GrB_Matrix_new(&out, GrB_FP32, x->rows, x->cols);
    }
    if (info == GrB_SUCCESS) {
        info = apply(op, left, right, out);
    }
    rc = status_of(info, "two sparse matrices", err);
    if (rc == PSD_OK) {
        rc = take_result(&out, x->layout, ret_sparse, err);
    }
    GrB_Matrix_free(&out);
    take_back(y, &right);
    take_back(x, &left);
    return rc;
}

psd_status_t ps_sparse_build(psd_sparse_t *shape, const uint64_t *row_indices,
                             const uint64_t *col_indices, const float *values, size_t n,
                             psd_error_t *err)
{
    GrB_Matrix matrix = NULL;
    psd_sparse_t *built = NULL;
    psd_status_t rc = ps_linalg_begin_sparse(err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = status_of(GrB_Matrix_new(&matrix, GrB_FP32, shape->rows, shape->cols), "a sparse matrix",
                   err);
    if (rc == PSD_OK) {
        rc = status_of(
            GrB_Matrix_build_FP32(matrix, row_indices, col_indices, values, n, GrB_PLUS_FP32),
            "a sparse matrix", err);
    }
    if (rc == PSD_OK) {
        rc = take_result(&matrix, PSD_CSR, &built, err);
    }
    GrB_Matrix_free(&matrix);
    if (rc == PSD_OK) {
        *shape = *built;
        ps_free(built); /* its arrays are the shape's now */
    }
    return rc;
}

/* ---- products ---- */

/* A vector of these values, which are GraphBLAS's from then on. */
static GrB_Info give(float *values, size_t n, GrB_Vector *ret_vector)
{
    void *all = values;
    GrB_Vector vector = NULL;
    GrB_Info info = GrB_Vector_new(&vector, GrB_FP32, n);

    if (info == GrB_SUCCESS) {
        info = GxB_Vector_pack_Full(vector, &all, n * sizeof *values, false, NULL);
    }
    if (info != GrB_SUCCESS) {
        GrB_Vector_free(&vector);
        return info;
    }
    *ret_vector = vector;
    return GrB_SUCCESS;
}

/* Its values, and frees it. */
static GrB_Info export_values(GrB_Vector *vector, void **ret_values)
{
    GrB_Type type = NULL;
    GrB_Index n = 0;
    GrB_Index size = 0;

    return GxB_Vector_export_Full(vector, &type, &n, ret_values, &size, NULL, NULL);
}

/* sum += A x, or with A transposed; both as long as A wants them. x is lent,
 * sum's own values are given, and come back, perhaps at another place. */
static GrB_Info multiply(GrB_Matrix a, bool transposed, const psd_vector_t *x, psd_vector_t *sum)
{
    GrB_Vector in = NULL;
    GrB_Vector out = NULL;
    void *values = NULL;
    GrB_Info info = give(sum->owned, sum->n, &out);

    if (info != GrB_SUCCESS) {
        return info;
    }
    sum->owned = NULL;
    info = give(x->values, x->n, &in);
    if (info == GrB_SUCCESS) {
        GrB_Info back = GrB_SUCCESS;

        info = GrB_mxv(out, NULL, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, a, in,
                       transposed ? GrB_DESC_T0 : NULL);
        back = export_values(&in, &values);
        assert(back == GrB_SUCCESS && values == x->values);
        (void)back;
    }
    if (info == GrB_SUCCESS) {
        values = NULL;
        info = export_values(&out, &values);
        sum->owned = values;
    }
    GrB_Vector_free(&out);
    return info;
}

/* A vector with adjacent items: itself, or a copy. */
static bool gather(const psd_vector_t *x, psd_vector_t *ret_dense)
{
    *ret_dense = *x;
    ret_dense->owned = NULL;
    if (x->step == 1) {
        return true;
    }
    ret_dense->owned = ps_alloc_raw(x->n, sizeof *ret_dense->owned);
    if (ret_dense->owned == NULL) {
        return false;
    }
    for (size_t i = 0; i < x->n; i++) {
        ret_dense->owned[i] = x->values[i * x->step];
    }
    ret_dense->values = ret_dense->owned;
    ret_dense->step = 1;
    return true;
}

/* y = alpha A x + beta y; shapes fit and A has entries. */
static psd_status_t times(float alpha, const psd_sparse_t *a, bool transposed,
                          const psd_vector_t *x, float beta, psd_vector_t *y)
{
    psd_vector_t dense = {0};
    psd_vector_t sum = {.n = y->n, .step = 1};
    GrB_Matrix lent = NULL;
    GrB_Info info = GrB_OUT_OF_MEMORY;

    sum.owned = ps_alloc(y->n, sizeof *sum.owned);
    if (sum.owned != NULL && gather(x, &dense)) {
        info = lend(a, &lent);
    }
    if (info == GrB_SUCCESS) {
        info = multiply(lent, transposed, &dense, &sum);
    }
    take_back(a, &lent);
    for (size_t i = 0; info == GrB_SUCCESS && i < y->n; i++) {
        float *to = y->values + i * y->step;

        *to = alpha * sum.owned[i] + (beta == 0 ? 0 : beta * *to);
    }
    ps_free(dense.owned);
    ps_free(sum.owned);
    return info == GrB_SUCCESS ? PSD_OK : info == GrB_OUT_OF_MEMORY ? PSD_NOMEM : PSD_FAILED;
}

psd_status_t psd_sparse_times(float alpha, const psd_sparse_t *a, bool transposed,
                              const psd_vector_t *x, float beta, psd_vector_t *y, psd_error_t *err)
{
    psd_error_clear(err);

    size_t inner = transposed ? a->rows : a->cols;
    size_t outer = transposed ? a->cols : a->rows;
    psd_status_t rc = PSD_OK;

    if (x->n != inner || y->n != outer) {
        return psd_error_set(err, PSD_SHAPE,
                             "a sparse matrix of %zu x %zu%s times %zu items "
                             "into %zu",
                             a->rows, a->cols, transposed ? ", transposed," : "", x->n, y->n);
    }
    if (psd_sparse_entries(a) == 0) {
        if (beta == 0) {
            psd_vector_fill(y, 0);
        } else {
            psd_vector_scale(beta, y);
        }
        return PSD_OK;
    }
    rc = ps_linalg_begin_sparse(err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = times(alpha, a, transposed, x, beta, y);
    return rc == PSD_OK ? rc
                        : psd_error_set(err, rc,
                                        "a product with a sparse matrix of %zu "
                                        "x %zu, %zu entries",
                                        a->rows, a->cols, psd_sparse_entries(a));
}
