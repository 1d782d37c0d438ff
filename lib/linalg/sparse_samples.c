/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of samples as a sparse matrix: where keys ascend, without a copy. */
#include "linalg/linalg.h"

#include <inttypes.h>

#include "base/alloc.h"

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "starts are not copied");

/* Where the entries of each sample begin: the groups' own starts where each
 * sample has one group, else an array of its own. */
static psd_status_t find_starts(const psd_samples_t *samples, psd_sparse_t *self, psd_error_t *err)
{
    const size_t *groups = psd_samples_groups(samples);
    const size_t *starts = psd_samples_starts(samples);
    size_t i = 0;

    while (i <= self->rows && groups[i] == i) {
        i++;
    }
    if (i > self->rows) {
        self->starts = (const void *)starts;
        return PSD_OK;
    }
    self->own_starts = ps_alloc_raw(self->rows + 1, sizeof *self->own_starts);
    if (self->own_starts == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu starts", self->rows);
    }
    for (i = 0; i <= self->rows; i++) {
        self->own_starts[i] = starts[groups[i]];
    }
    self->starts = self->own_starts;
    return PSD_OK;
}

/* Do the keys of each sample ascend? PSD_RANGE: one is outside. */
static psd_status_t look_at_keys(const psd_sparse_t *self, bool *ret_ascend, psd_error_t *err)
{
    bool ascend = true;

    for (size_t row = 0; row < self->rows; row++) {
        for (uint64_t i = self->starts[row]; i < self->starts[row + 1]; i++) {
            if (self->indices[i] >= self->cols) {
                return psd_error_set(err, PSD_RANGE,
                                     "sample %zu has key %" PRIu64 " of %zu columns", row,
                                     self->indices[i], self->cols);
            }
            ascend = ascend && (i == self->starts[row] || self->indices[i] > self->indices[i - 1]);
        }
    }
    *ret_ascend = ascend;
    return PSD_OK;
}

/* The entries one by one, to be put in order. */
typedef struct entries {
    uint64_t *rows; /* owned, as the others */
    uint64_t *cols;
    float *values;
    size_t n;
} entries_t;

static void entries_done(entries_t *self)
{
    ps_free(self->rows);
    ps_free(self->cols);
    ps_free(self->values);
}

static bool entries_init(entries_t *self, size_t n)
{
    self->rows = ps_alloc_raw(n, sizeof *self->rows);
    self->cols = ps_alloc_raw(n, sizeof *self->cols);
    self->values = ps_alloc_raw(n, sizeof *self->values);
    return self->rows != NULL && self->cols != NULL && self->values != NULL;
}

static psd_status_t list_entries(const psd_sparse_t *self, const psd_samples_t *samples,
                                 const uint32_t *ids, entries_t *entries, psd_error_t *err)
{
    const float *values = psd_samples_values(samples);
    const uint64_t *keys = psd_samples_keys(samples);

    for (size_t row = 0; row < self->rows; row++) {
        for (uint64_t i = self->starts[row]; i < self->starts[row + 1]; i++) {
            uint64_t col = ids == NULL ? keys[i] : ids[i];

            if (ids != NULL && ids[i] == PSD_ID_NONE) {
                continue;
            }
            if (col >= self->cols) {
                return psd_error_set(err, PSD_RANGE, "sample %zu has id %" PRIu64 " of %zu columns",
                                     row, col, self->cols);
            }
            entries->rows[entries->n] = row;
            entries->cols[entries->n] = col;
            entries->values[entries->n++] = values[i];
        }
    }
    return PSD_OK;
}

static psd_status_t copy_entries(psd_sparse_t *self, const psd_samples_t *samples,
                                 const uint32_t *ids, psd_error_t *err)
{
    PSD_AUTO(entries_done) entries_t entries = {0};
    size_t n = psd_samples_entry_count(samples);
    psd_status_t rc = PSD_OK;

    if (!entries_init(&entries, n)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu entries", n);
    }
    rc = list_entries(self, samples, ids, &entries, err);
    ps_free(self->own_starts);
    self->own_starts = NULL;
    return rc != PSD_OK
               ? rc
               : ps_sparse_build(self, entries.rows, entries.cols, entries.values, entries.n, err);
}

psd_status_t psd_sparse_of_samples(const psd_samples_t *samples, const uint32_t *ids, size_t cols,
                                   psd_sparse_t **ret_sparse, psd_error_t *err)
{
    psd_error_clear(err);

    PSD_AUTO(psd_sparse_destroy) psd_sparse_t *self = NULL;
    bool ascend = false;
    psd_status_t rc = ps_sparse_new(PSD_CSR, psd_samples_count(samples), cols, &self, err);

    if (rc == PSD_OK) {
        rc = find_starts(samples, self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->indices = psd_samples_keys(samples);
    self->values = psd_samples_values(samples);
    if (ids == NULL) {
        rc = look_at_keys(self, &ascend, err);
    }
    if (rc == PSD_OK && !ascend) {
        rc = copy_entries(self, samples, ids, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_sparse = self;
    self = NULL;
    return PSD_OK;
}
