/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the rows of a store to a callback. */
#include "base/alloc.h"
#include "model/store/present_rows.h"
#include "model/updaters/init.h"

bool ps_store_row(ps_store_t *self, uint64_t key, uint8_t *first, ps_row_t *ret_row)
{
    const ps_row_shape_t *shape = &self->shape;
    uint32_t number = PS_ROW_NONE;

    if (self->is_array) {
        *ret_row = (ps_row_t){.dense = ps_array_rows_at(&self->array, key, 0, shape->width)};
        return true;
    }
    number = ps_row_index_find(&self->indexed.index, key);
    if (number != PS_ROW_NONE) {
        *ret_row = ps_indexed_row_at(&self->indexed, ps_slab_at(&self->indexed.rows, number));
        return true;
    }
    if (ps_init_is_zero(&self->spec.init)) {
        return false;
    }
    ps_init_fill(&self->spec, key, shape->first_col, shape->width, first);
    *ret_row = (ps_row_t){.dense = {.values = first}};
    return true;
}

bool ps_store_row_is_present(const ps_store_t *self, uint64_t key)
{
    uint32_t number = ps_row_index_find(&self->indexed.index, key);

    return number != PS_ROW_NONE &&
           ps_indexed_row_is_present(&self->indexed, ps_slab_at(&self->indexed.rows, number));
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to look at rows");
}

/* Rows by number or by list: n of them. */
static void visit_rows(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *rows,
                       uint64_t n, uint8_t *first, ps_row_fn_t *visit, void *context)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = ps_slice_row(slice, rows, i);
        ps_row_t row = {0};

        if (ps_store_row(self, key, first, &row)) {
            visit(context, key, &row);
        }
    }
}

psd_status_t ps_store_visit(ps_store_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                            uint64_t max_values, ps_row_fn_t *visit, void *context,
                            uint64_t *ret_done, psd_error_t *err)
{
    PSD_AUTO(ps_present_rows_done) ps_present_rows_t present = {0};
    PSD_AUTO(ps_free_at)
    uint8_t *first = ps_alloc_raw(self->shape.width, self->shape.value_size);
    uint64_t limit = want->n_cols == 0 ? 1 : max_values / want->n_cols;
    ps_slice_t named = {.rows = PS_ROWS_LIST};
    ps_payload_t names = {.n_spans = 0};

    limit = limit > 0 ? limit : 1;
    if (first == NULL) {
        return no_memory(err);
    }
    if (want->rows != PS_ROWS_RANGE || !ps_store_is_scattered(self)) {
        *ret_done = want->n_rows < limit ? want->n_rows : limit;
        visit_rows(self, want, rows, *ret_done, first, visit, context);
        return PSD_OK;
    }
    *ret_done = want->n_rows;
    if (want->n_rows == 0) {
        return PSD_OK;
    }
    if (!ps_present_rows_find(self, want->first_row, want->n_rows, NULL, (size_t)limit, &present)) {
        return no_memory(err);
    }
    named.n_rows = present.n;
    names.keys = (ps_bytes_t){(const uint8_t *)present.keys, present.n * sizeof *present.keys};
    visit_rows(self, &named, &names, present.n, first, visit, context);
    if (present.is_cut) {
        *ret_done = present.keys[present.n - 1] - want->first_row + 1;
    }
    return PSD_OK;
}
