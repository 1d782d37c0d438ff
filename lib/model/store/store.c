/* SPDX-License-Identifier: Apache-2.0 */
/* The interface over the two layouts: making a store, reading a row, its
 * size. */
#include "model/store/store.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "model/store/store_copy.h"
#include "model/store/store_image.h"
#include "model/store/store_impl.h"

#define COUNT_MAX (UINT64_C(1) << 24) /* rows worth counting one by one */

static psd_status_t set_layout(ps_store_t *self, psd_error_t *err)
{
    const ps_extent_t *extent = &self->extent;

    self->is_array = self->spec.row_format == PS_ROW_DENSE && !ps_store_is_scattered(self);
    if (!self->is_array) {
        ps_indexed_rows_init(&self->indexed, &self->shape);
        return PSD_OK;
    }
    return ps_array_rows_init(&self->array, &self->shape, extent->first_row,
                              ps_extent_rows(&self->spec, extent), err);
}

psd_status_t ps_store_new(const ps_table_spec_t *spec, uint32_t partition, ps_store_t **ret_store,
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
        .version = self->spec.versions ? &self->version : NULL,
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

void ps_store_destroy(ps_store_t **self_p)
{
    ps_store_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_store_image_end(self);
    ps_array_rows_done(&self->array);
    ps_indexed_rows_done(&self->indexed);
    ps_updater_destroy(&self->updater);
    ps_table_spec_done(&self->spec);
    ps_free(self);
    *self_p = NULL;
}

void ps_store_set_worker(ps_store_t *self, uint32_t worker)
{
    self->worker = worker;
}

psd_status_t ps_store_check_worker(const ps_store_t *self, uint32_t worker, psd_error_t *err)
{
    return ps_updater_check_worker(self->updater, worker, err);
}

/* Every row of a RANGE-keys table is present. In a hash partition they must be
 * counted one by one. Beyond COUNT_MAX rows an even share is the estimate; the
 * shares of all partitions still add up to the table. */
static uint64_t rows_present(const ps_store_t *self)
{
    return self->spec.keys == PS_KEYS_HASH || self->spec.n_rows > COUNT_MAX
               ? ps_store_rows_about(self)
               : ps_extent_rows(&self->spec, &self->extent);
}

uint64_t ps_store_rows_about(const ps_store_t *self)
{
    const ps_extent_t *extent = &self->extent;
    uint64_t n = self->spec.n_rows;

    if (self->spec.keys == PS_KEYS_HASH) {
        return ps_indexed_rows_present(&self->indexed);
    }
    return extent->n_slices > 1
               ? n / extent->n_slices + (extent->slice < n % extent->n_slices ? 1 : 0)
               : ps_extent_rows(&self->spec, extent);
}

static ps_store_bytes_t memory_of(const ps_store_t *self)
{
    uint64_t row_bytes = (uint64_t)self->shape.width * self->shape.value_size;
    ps_store_bytes_t bytes = {0};

    if (self->is_array) {
        bytes.values = self->array.n_rows * row_bytes;
        bytes.index = self->array.filled.size + self->array.versions.size;
    } else {
        bytes.values = ps_indexed_rows_value_bytes(&self->indexed);
        bytes.index =
            ps_indexed_rows_bytes(&self->indexed) - bytes.values * (1 + self->shape.n_states);
    }
    bytes.state = bytes.values * self->shape.n_states;
    return bytes;
}

ps_store_bytes_t ps_store_bytes(const ps_store_t *self)
{
    ps_store_bytes_t bytes = memory_of(self);

    bytes.rows_present = rows_present(self);
    return bytes;
}

uint64_t ps_store_size(const ps_store_t *self)
{
    ps_store_bytes_t bytes = memory_of(self);

    return bytes.values + bytes.state + bytes.index;
}

uint64_t ps_store_size_come(const ps_store_t *self)
{
    uint64_t size = ps_store_size(self);
    uint64_t n_rows = self->is_array ? self->array.n_rows : 0;
    uint64_t n_taken = ps_store_n_taken(self);

    if (!ps_store_is_partial(self) || n_rows == 0 || n_taken >= n_rows) {
        return size;
    }
    return (uint64_t)((double)size * (double)n_taken / (double)n_rows);
}

const ps_extent_t *ps_store_extent(const ps_store_t *self)
{
    return &self->extent;
}

bool ps_store_soon(ps_store_t *self, ps_soon_t *ret_soon)
{
    ps_indexed_rows_t *rows = &self->indexed;

    return !self->is_array &&
           (ps_slab_soon(&rows->rows, ret_soon) || ps_row_index_soon(&rows->index, ret_soon) ||
            ps_slab_soon(&rows->dense, ret_soon));
}
