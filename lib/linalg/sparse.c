/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse matrices as their arrays: made, checked, cut along their layout. What
 * computes is in sparse_graph.c. */
#include "linalg/linalg.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

psd_status_t ps_sparse_new(psd_layout_t layout, size_t rows, size_t cols, psd_sparse_t **ret_sparse,
                           psd_error_t *err)
{
    psd_sparse_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        (void)psd_error_set(err, PSD_NOMEM, "no memory for a sparse matrix");
        return PSD_NOMEM;
    }
    *self = (psd_sparse_t){.layout = layout, .rows = rows, .cols = cols};
    *ret_sparse = self;
    return PSD_OK;
}

void psd_sparse_destroy(psd_sparse_t **self_p)
{
    psd_sparse_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_free(self->own_starts);
    ps_free(self->own_indices);
    ps_free(self->own_values);
    ps_free(self);
    *self_p = NULL;
}

/* Row or column `major` of the three arrays. */
static psd_status_t check_major(const psd_sparse_t *self, size_t major, psd_error_t *err)
{
    const char *what = self->layout == PSD_CSR ? "row" : "column";
    uint64_t start = self->starts[major];
    uint64_t end = self->starts[major + 1];

    if (end < start) {
        return psd_error_set(err, PSD_INVALID,
                             "%s %zu ends at %" PRIu64 ", before it starts at "
                             "%" PRIu64,
                             what, major, end, start);
    }
    for (uint64_t i = start; i < end; i++) {
        if (self->indices[i] >= ps_sparse_minor(self)) {
            return psd_error_set(err, PSD_RANGE, "%s %zu has index %" PRIu64 " of %zu", what, major,
                                 self->indices[i], ps_sparse_minor(self));
        }
        if (i > start && self->indices[i] <= self->indices[i - 1]) {
            return psd_error_set(err, PSD_INVALID, "%s %zu has index %" PRIu64 " after %" PRIu64,
                                 what, major, self->indices[i], self->indices[i - 1]);
        }
    }
    return PSD_OK;
}

psd_status_t psd_sparse_view(psd_layout_t layout, size_t rows, size_t cols, const uint64_t *starts,
                             const uint64_t *indices, const float *values,
                             psd_sparse_t **ret_sparse, psd_error_t *err)
{
    psd_error_clear(err);

    PSD_AUTO(psd_sparse_destroy) psd_sparse_t *self = NULL;
    psd_status_t rc = PSD_OK;

    if ((unsigned)layout > PSD_CSC) {
        return psd_error_set(err, PSD_INVALID, "%u is not a layout; 0 and 1 are", (unsigned)layout);
    }
    rc = ps_sparse_new(layout, rows, cols, &self, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (starts[0] != 0) {
        return psd_error_set(err, PSD_INVALID, "the first start is %" PRIu64 ", not 0", starts[0]);
    }
    self->starts = starts;
    self->indices = indices;
    self->values = values;
    for (size_t i = 0; i < ps_sparse_major(self); i++) {
        rc = check_major(self, i, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    *ret_sparse = self;
    self = NULL;
    return PSD_OK;
}

/* ---- slices along the layout ---- */

static psd_status_t slice_major(const psd_sparse_t *self, size_t first, size_t n,
                                psd_sparse_t **ret_sparse, psd_error_t *err)
{
    PSD_AUTO(psd_sparse_destroy) psd_sparse_t *part = NULL;
    bool by_rows = self->layout == PSD_CSR;
    uint64_t start = self->starts[first];
    psd_status_t rc =
        ps_sparse_new(self->layout, by_rows ? n : self->rows, by_rows ? self->cols : n, &part, err);

    if (rc != PSD_OK) {
        return rc;
    }
    part->own_starts = ps_alloc_raw(n + 1, sizeof *part->own_starts);
    if (part->own_starts == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu starts", n);
    }
    for (size_t i = 0; i <= n; i++) {
        part->own_starts[i] = self->starts[first + i] - start;
    }
    part->starts = part->own_starts;
    part->indices = start == 0 ? self->indices : self->indices + start;
    part->values = start == 0 ? self->values : self->values + start;
    *ret_sparse = part;
    part = NULL;
    return PSD_OK;
}

/* Across the layout: turned into the other one, which is then cut along it. The
 * part would be a view of what is let go, so it takes its own copies. */
static psd_status_t slice_minor(const psd_sparse_t *self, size_t first, size_t n,
                                psd_sparse_t **ret_sparse, psd_error_t *err)
{
    PSD_AUTO(psd_sparse_destroy) psd_sparse_t *turned = NULL;
    PSD_AUTO(psd_sparse_destroy) psd_sparse_t *part = NULL;
    psd_layout_t other = self->layout == PSD_CSR ? PSD_CSC : PSD_CSR;
    psd_status_t rc = psd_sparse_convert(self, other, &turned, err);

    if (rc == PSD_OK) {
        rc = slice_major(turned, first, n, &part, err);
    }
    if (rc == PSD_OK) {
        rc = psd_sparse_convert(part, self->layout, ret_sparse, err);
    }
    return rc;
}

psd_status_t psd_sparse_slice_rows(const psd_sparse_t *self, size_t first, size_t n,
                                   psd_sparse_t **ret_sparse, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = ps_linalg_check_range("rows", first, n, self->rows, err);

    return rc != PSD_OK              ? rc
           : self->layout == PSD_CSR ? slice_major(self, first, n, ret_sparse, err)
                                     : slice_minor(self, first, n, ret_sparse, err);
}

psd_status_t psd_sparse_slice_cols(const psd_sparse_t *self, size_t first, size_t n,
                                   psd_sparse_t **ret_sparse, psd_error_t *err)
{
    psd_error_clear(err);

    psd_status_t rc = ps_linalg_check_range("columns", first, n, self->cols, err);

    return rc != PSD_OK              ? rc
           : self->layout == PSD_CSC ? slice_major(self, first, n, ret_sparse, err)
                                     : slice_minor(self, first, n, ret_sparse, err);
}

/* ---- what it is ---- */

size_t psd_sparse_rows(const psd_sparse_t *self)
{
    return self->rows;
}

size_t psd_sparse_cols(const psd_sparse_t *self)
{
    return self->cols;
}

size_t psd_sparse_entries(const psd_sparse_t *self)
{
    return self->starts[ps_sparse_major(self)];
}

psd_layout_t psd_sparse_layout(const psd_sparse_t *self)
{
    return self->layout;
}

bool psd_sparse_is_view(const psd_sparse_t *self)
{
    return self->own_values == NULL;
}

const uint64_t *psd_sparse_starts(const psd_sparse_t *self)
{
    return self->starts;
}

const uint64_t *psd_sparse_indices(const psd_sparse_t *self)
{
    return self->indices;
}

const float *psd_sparse_values(const psd_sparse_t *self)
{
    return self->values;
}

double psd_sparse_norm(const psd_sparse_t *self, psd_norm_t norm)
{
    return ps_linalg_norm(self->values, psd_sparse_entries(self), 1, norm);
}
