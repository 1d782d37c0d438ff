/* SPDX-License-Identifier: Apache-2.0 */
/* The face over the two layouts: making a store, pushing into it, its size. */
#include "model/store.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "model/dense_row.h"
#include "model/init.h"
#include "model/store_impl.h"

#define AHEAD 8 /* rows whose memory is asked for before it is used */
#define COUNT_MAX (UINT64_C(1) << 24) /* rows worth counting one by one */

static psd_status_t
set_layout(ps_store_t *self, psd_error_t *err)
{
    const ps_extent_t *extent = &self->extent;

    self->is_array =
        self->spec.row_format == PS_ROW_DENSE && !ps_store_is_scattered(self);
    if (!self->is_array) {
        ps_indexed_rows_init(&self->indexed, &self->shape);
        return PSD_OK;
    }
    return ps_array_rows_init(&self->array, &self->shape, extent->first_row,
                              ps_extent_rows(&self->spec, extent), err);
}

psd_status_t
ps_store_new(const ps_table_spec_t *spec,
             uint32_t partition,
             ps_store_t **ret_store,
             psd_error_t *err)
{
    PSD_AUTO(ps_store_destroy) ps_store_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a partition");
    }
    rc = ps_table_spec_copy(spec, &self->spec, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_updater_new(&spec->updater, spec->type, &self->updater, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->worker = PS_UPDATER_NO_WORKER;
    self->extent = ps_extent_of(&self->spec, partition);
    self->shape = (ps_row_shape_t){
        .spec = &self->spec,
        .updater = self->updater,
        .worker = &self->worker,
        .type = spec->type,
        .value_size = (uint32_t)ps_type_size(spec->type),
        .n_states = ps_updater_n_states(self->updater),
        .first_col = self->extent.first_col,
        .width = self->extent.last_col - self->extent.first_col + 1,
    };
    rc = set_layout(self, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_store = self;
    self = NULL;
    return PSD_OK;
}

void
ps_store_destroy(ps_store_t **self_p)
{
    ps_store_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_array_rows_done(&self->array);
    ps_indexed_rows_done(&self->indexed);
    ps_updater_destroy(&self->updater);
    ps_table_spec_done(&self->spec);
    ps_free(self);
    *self_p = NULL;
}

psd_status_t
ps_store_reserve(ps_store_t *self,
                 const ps_slice_t *slice,
                 const ps_payload_t *payload,
                 psd_error_t *err)
{
    if (self->is_array) {
        return PSD_OK; /* every row has been there from the beginning */
    }
    if (!ps_indexed_rows_reserve(&self->indexed, slice, payload)) {
        return psd_error_set(err, PSD_NOMEM,
                             "no memory for the rows of a push of %" PRIu64
                             " rows",
                             slice->n_rows);
    }
    return PSD_OK;
}

void
ps_store_unreserve(ps_store_t *self,
                   const ps_slice_t *slice,
                   const ps_payload_t *payload)
{
    if (!self->is_array) {
        ps_indexed_rows_unreserve(&self->indexed, slice, payload,
                                  slice->n_rows);
    }
}

/* Whole neighbouring rows lie in the array as they lie in the slice. */
static bool
is_one_run(const ps_store_t *self, const ps_slice_t *slice)
{
    return slice->rows == PS_ROWS_RANGE && slice->layout == PS_LAYOUT_DENSE &&
           slice->cols != PS_COLS_LIST && slice->n_rows > 0 &&
           slice->n_cols == self->shape.width;
}

static void
apply_one_run(ps_store_t *self,
              const ps_slice_t *slice,
              const ps_payload_t *payload)
{
    uint64_t n_values = slice->n_rows * self->shape.width;
    ps_dense_row_t row =
        ps_array_rows_at(&self->array, slice->first_row, 0, n_values);

    for (size_t i = 0; i < payload->n_spans; i++) {
        const ps_bytes_t *span = &payload->spans[i];
        size_t n = span->size / self->shape.value_size;

        ps_dense_row_apply(&row, &self->shape, self->shape.first_col,
                           span->data, n);
        row.values += span->size;
        row.state = row.state == NULL ? NULL : row.state + span->size;
    }
}

static void
apply_array_row(ps_store_t *self, ps_deltas_t *deltas)
{
    const ps_row_shape_t *shape = &self->shape;
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        for (size_t i = 0; i < n;) {
            ps_columns_t rest = ps_columns_from(columns, i);
            size_t run = ps_columns_neighbours(rest, n - i);
            uint32_t col = ps_columns_at(rest, 0);
            ps_dense_row_t row = ps_array_rows_at(&self->array, deltas->row,
                                                  col - shape->first_col, run);

            ps_dense_row_apply(&row, shape, col, values + i * shape->value_size,
                               run);
            i += run;
        }
    }
}

static void
apply_array(ps_store_t *self,
            const ps_slice_t *slice,
            const ps_payload_t *payload)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, self->shape.first_col);

    if (is_one_run(self, slice)) {
        apply_one_run(self, slice, payload);
        return;
    }
    while (ps_deltas_next(&deltas)) {
        if (deltas.n_rows + AHEAD <= slice->n_rows) {
            ps_array_rows_prefetch(
                &self->array,
                ps_slice_row(slice, payload, deltas.n_rows + AHEAD - 1), true);
        }
        apply_array_row(self, &deltas);
    }
}

void
ps_store_set_worker(ps_store_t *self, uint32_t worker)
{
    self->worker = worker;
}

psd_status_t
ps_store_check_worker(const ps_store_t *self, uint32_t worker, psd_error_t *err)
{
    return ps_updater_check_worker(self->updater, worker, err);
}

void
ps_store_apply(ps_store_t *self,
               const ps_slice_t *slice,
               const ps_payload_t *payload)
{
    if (self->is_array) {
        apply_array(self, slice, payload);
    } else {
        ps_indexed_rows_apply(&self->indexed, slice, payload);
    }
}

void
ps_store_read(ps_store_t *self,
              uint64_t row,
              ps_columns_t columns,
              size_t n,
              uint8_t *ret_values)
{
    const ps_row_shape_t *shape = &self->shape;
    ps_row_t found = {0};

    if (self->is_array) {
        ps_array_rows_read(&self->array, row, columns, n, ret_values);
    } else if (!ps_indexed_rows_find(&self->indexed, row, &found)) {
        for (size_t i = 0; i < n;) {
            ps_columns_t rest = ps_columns_from(columns, i);
            size_t run = ps_columns_neighbours(rest, n - i);

            ps_init_fill(shape->spec, row, ps_columns_at(rest, 0),
                         (uint32_t)run, ret_values + i * shape->value_size);
            i += run;
        }
    } else if (found.sparse != NULL) {
        ps_sparse_row_read(found.sparse, shape, columns, n, ret_values);
    } else {
        ps_dense_row_read(&found.dense, shape, columns, n, ret_values);
    }
}

/* Every row of a RANGE-keys table is present. In a hash partition they would
 * have to be counted one by one; beyond COUNT_MAX the partition's even share
 * must do, and the shares of all partitions still add up to the table. */
static uint64_t
rows_present(const ps_store_t *self)
{
    const ps_extent_t *extent = &self->extent;
    uint64_t n = self->spec.n_rows;

    if (self->spec.keys == PS_KEYS_HASH) {
        return self->indexed.n_present;
    }
    if (extent->n_slices > 1 && n > COUNT_MAX) {
        return n / extent->n_slices +
               (extent->slice < n % extent->n_slices ? 1 : 0);
    }
    return ps_extent_rows(&self->spec, extent);
}

ps_store_bytes_t
ps_store_bytes(const ps_store_t *self)
{
    uint64_t row_bytes = (uint64_t)self->shape.width * self->shape.value_size;
    ps_store_bytes_t bytes = {.rows_present = rows_present(self)};

    if (self->is_array) {
        bytes.values = self->array.n_rows * row_bytes;
        bytes.index = self->array.filled.size;
    } else {
        bytes.values = ps_indexed_rows_value_bytes(&self->indexed);
        bytes.index = ps_indexed_rows_bytes(&self->indexed) -
                      bytes.values * (1 + self->shape.n_states);
    }
    bytes.state = bytes.values * self->shape.n_states;
    return bytes;
}

const ps_extent_t *
ps_store_extent(const ps_store_t *self)
{
    return &self->extent;
}
