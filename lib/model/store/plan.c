/* SPDX-License-Identifier: Apache-2.0 */
/* A sample of a table, filled and scaled up. */
#include "model/store/plan.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"

#define SAMPLE_ROWS_MAX (UINT64_C(1) << 16)
#define SAMPLE_CELLS_MAX (UINT64_C(1) << 20) /* of all rows together */
#define ROW_CELLS_MAX 1024                   /* of one row of the sample */
#define BATCH_CELLS 65536                    /* of one push into it */

/* The sample made instead of a partition, and how much smaller it is. */
typedef struct sample {
    ps_table_spec_t spec;
    ps_store_t *store;
    uint64_t n_rows;
    uint64_t next_row;
    uint32_t n_cells; /* stored values of a row */
    uint32_t n_batch; /* rows in one push */
    uint64_t *keys;   /* n_batch */
    uint32_t *index;  /* sparse: n_batch counts, then all columns */
    uint8_t *values;  /* n_batch x n_cells */
} sample_t;

static void sample_done(sample_t *self)
{
    ps_store_destroy(&self->store);
    ps_free(self->keys);
    ps_free(self->index);
    ps_free(self->values);
}

static bool is_sparse(const sample_t *self)
{
    return self->spec.row_format != PS_ROW_DENSE;
}

/* Columns of the sample's rows, of `width` in the partition. A row that may be
 * sparse keeps the part of its columns that is filled. */
static void set_columns(sample_t *self, uint32_t width, double fill)
{
    double cells = is_sparse(self) ? fill * (double)width + 0.5 : (double)width;

    cells = cells < 1 ? 1 : cells;
    self->spec.n_cols = width;
    self->n_cells = (uint32_t)cells;
    if (self->n_cells > ROW_CELLS_MAX) {
        self->spec.n_cols = (uint32_t)((double)width * ROW_CELLS_MAX / self->n_cells + 0.5);
        self->n_cells = ROW_CELLS_MAX;
    }
}

/* Halved, so that an index that doubles has the same load as the real one. */
static void set_rows(sample_t *self, uint64_t n_rows)
{
    while (n_rows > SAMPLE_ROWS_MAX || n_rows * self->n_cells > SAMPLE_CELLS_MAX) {
        n_rows = (n_rows + 1) / 2;
    }
    self->n_rows = n_rows;
}

/* One partition; or one of two if rows are partitioned by hash, because a
 * single partition is laid out as by range. */
static void set_partitions(sample_t *self, bool is_by_hash)
{
    bool is_range = self->spec.keys == PS_KEYS_RANGE;

    self->spec.n_col_slices = 1;
    self->spec.boundaries = NULL;
    self->spec.n_boundaries = 0;
    self->spec.n_partitions = 1;
    self->spec.partition_by = PS_PARTITION_BY_RANGE;
    self->spec.n_rows = is_range ? self->n_rows : 0;
    if (is_by_hash && is_range) {
        self->spec.n_partitions = 2;
        self->spec.partition_by = PS_PARTITION_BY_HASH;
        /* About half of them belong to the other part. */
        self->spec.n_rows = 4 * self->n_rows + 64;
    }
}

static bool take_memory(sample_t *self)
{
    uint32_t n = BATCH_CELLS / self->n_cells;

    self->n_batch = n < self->n_rows ? n : (uint32_t)self->n_rows;
    self->keys = ps_alloc(self->n_batch, sizeof *self->keys);
    self->index = ps_alloc((size_t)self->n_batch * (1 + self->n_cells), sizeof *self->index);
    self->values = ps_alloc((size_t)self->n_batch * self->n_cells, ps_type_size(self->spec.type));
    return self->keys != NULL && self->index != NULL && self->values != NULL;
}

/* A sparse row leaves out only zeros, so ones are stored. */
static void fill_values(sample_t *self)
{
    size_t size = ps_type_size(self->spec.type);

    for (size_t i = 0; i < (size_t)self->n_batch * self->n_cells; i++) {
        uint8_t *at = self->values + i * size;

        switch (self->spec.type) {
        case PS_TYPE_I32:
            ps_store_u32(at, 1);
            break;
        case PS_TYPE_I64:
            ps_store_u64(at, 1);
            break;
        case PS_TYPE_F32:
            ps_store_f32(at, 1);
            break;
        case PS_TYPE_F64:
        default:
            ps_store_f64(at, 1);
            break;
        }
    }
}

/* Counts of n rows, and their columns, spread over the width. */
static void fill_index(sample_t *self, uint32_t n)
{
    uint32_t step = self->spec.n_cols / self->n_cells;

    for (uint32_t i = 0; i < n; i++) {
        self->index[i] = self->n_cells;
        for (uint32_t k = 0; k < self->n_cells; k++) {
            self->index[n + (size_t)i * self->n_cells + k] = k * step;
        }
    }
}

static psd_status_t push(sample_t *self, uint32_t n, psd_error_t *err)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    uint64_t n_values = (uint64_t)n * self->n_cells;
    ps_bytes_t keys = {(const uint8_t *)self->keys, n * sizeof *self->keys};
    ps_bytes_t values = {self->values, n_values * ps_type_size(self->spec.type)};
    ps_bytes_t index = {0};
    ps_slice_t slice = {
        .rows = PS_ROWS_LIST,
        .layout = is_sparse(self) ? PS_LAYOUT_SPARSE : PS_LAYOUT_DENSE,
        .type = self->spec.type,
        .n_rows = n,
        .n_cols = is_sparse(self) ? 0 : self->spec.n_cols,
        .n_values = n_values,
    };
    psd_status_t rc = PSD_OK;

    if (is_sparse(self)) {
        fill_index(self, n);
        index = (ps_bytes_t){(const uint8_t *)self->index, (n + n_values) * sizeof *self->index};
    }
    payload = ps_payload_new(keys, index, values, NULL, NULL);
    if (payload == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a sample");
    }
    rc = ps_store_check_push(self->store, &slice, payload, err);
    if (rc == PSD_OK) {
        rc = ps_store_push(self->store, &slice, payload, err);
    }
    return rc;
}

static psd_status_t fill_rows(sample_t *self, psd_error_t *err)
{
    const ps_extent_t *extent = ps_store_extent(self->store);
    psd_status_t rc = PSD_OK;

    for (uint64_t done = 0; rc == PSD_OK && done < self->n_rows;) {
        uint64_t left = self->n_rows - done;
        uint32_t n = left < self->n_batch ? (uint32_t)left : self->n_batch;

        for (uint32_t i = 0; i < n; self->next_row++) {
            if (self->next_row > extent->last_row) {
                return PSD_OK; /* the other part has more than half */
            }
            if (ps_extent_has_row(extent, self->next_row)) {
                self->keys[i++] = self->next_row;
            }
        }
        rc = push(self, n, err);
        done += n;
    }
    return rc;
}

static psd_status_t sample_make(sample_t *self, const ps_table_spec_t *spec, uint32_t width,
                                double fill, psd_error_t *err)
{
    bool is_by_hash =
        spec->partition_by == PS_PARTITION_BY_HASH && spec->n_partitions > spec->n_col_slices;
    psd_status_t rc = PSD_OK;

    self->spec = *spec;
    set_columns(self, width, fill);
    set_rows(self, self->n_rows);
    set_partitions(self, is_by_hash);
    if (!take_memory(self)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a sample");
    }
    rc = ps_store_new(&self->spec, 0, &self->store, err);
    if (rc != PSD_OK) {
        return rc;
    }
    fill_values(self);
    return fill_rows(self, err);
}

/* n times factor, rounded; at most what 64 bits hold. */
static uint64_t scale(uint64_t n, double factor)
{
    double scaled = (double)n * factor + 0.5;

    return scaled >= 0x1p64 ? UINT64_MAX : (uint64_t)scaled;
}

/* rows: how many times as many rows, cells: as many values in a row, parts:
 * partitions that hold a part of each row. */
static ps_store_bytes_t scale_bytes(const sample_t *sample, double rows, double cells, double parts)
{
    ps_store_bytes_t bytes = ps_store_bytes(sample->store);
    double per_index = is_sparse(sample) ? cells : parts;

    return (ps_store_bytes_t){
        .values = scale(bytes.values, rows * cells),
        .state = scale(bytes.state, rows * cells),
        .index = scale(bytes.index, rows * per_index),
        .rows_present = scale(sample->n_rows, rows),
    };
}

psd_status_t ps_plan_make(const ps_table_spec_t *spec, uint64_t n_rows, double fill,
                          ps_plan_t *ret_plan, psd_error_t *err)
{
    PSD_AUTO(sample_done) sample_t sample = {.store = NULL};
    uint32_t n_row_slices = spec->n_partitions / spec->n_col_slices;
    uint32_t width =
        (spec->n_cols + spec->n_col_slices - 1) / spec->n_col_slices; /* of the largest */
    double cells = 0;
    psd_status_t rc = PSD_OK;

    assert(n_rows > 0 && fill > 0 && fill <= 1);
    sample.n_rows = (n_rows + n_row_slices - 1) / n_row_slices;
    ret_plan->n_row_slices = n_row_slices;
    ret_plan->partition_rows = sample.n_rows;
    rc = sample_make(&sample, spec, width, fill, err);
    if (rc != PSD_OK) {
        return rc;
    }
    cells = (double)width / sample.spec.n_cols;
    ret_plan->largest =
        scale_bytes(&sample, (double)ret_plan->partition_rows / (double)sample.n_rows, cells, 1);
    ret_plan->table = scale_bytes(&sample, (double)n_rows / (double)sample.n_rows,
                                  (double)spec->n_cols / sample.spec.n_cols, spec->n_col_slices);
    return PSD_OK;
}
