/* SPDX-License-Identifier: Apache-2.0 */
/* A push into a store that has only some of its rows: extracts the part of the
 * push for those rows, then pushes it normally. */
#include <inttypes.h>

#include "base/alloc.h"
#include "model/store/store_impl.h"

/* The part of a push, built row by row. */
typedef struct part {
    ps_buffer_t keys;
    ps_buffer_t counts; /* SPARSE */
    ps_buffer_t columns;
    ps_buffer_t values;
} part_t;

static void part_done(part_t *self)
{
    ps_buffer_done(&self->keys);
    ps_buffer_done(&self->counts);
    ps_buffer_done(&self->columns);
    ps_buffer_done(&self->values);
}

/* Adds the current row with all its values. */
static bool add_row(part_t *self, ps_deltas_t *deltas)
{
    bool is_sparse = deltas->slice->layout == PS_LAYOUT_SPARSE;
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    if (!ps_buffer_u64(&self->keys, deltas->row) ||
        (is_sparse && !ps_buffer_u32(&self->counts, (uint32_t)deltas->n_left))) {
        return false;
    }
    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        if (!ps_buffer_append(&self->values, values, n * deltas->value_size) ||
            (is_sparse && !ps_buffer_append(&self->columns, columns.list, n * sizeof(uint32_t)))) {
            return false;
        }
    }
    return true;
}

/* here: for each row of the slice, whether the store has it. */
static bool add_rows(part_t *self, const ps_store_t *store, const ps_slice_t *slice,
                     const ps_payload_t *payload, const bool *here)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, store->shape.first_col);

    for (uint64_t i = 0; ps_deltas_next(&deltas); i++) {
        if (here[i] && !add_row(self, &deltas)) {
            return false;
        }
    }
    return slice->layout != PS_LAYOUT_SPARSE || self->columns.size == 0 ||
           ps_buffer_append(&self->counts, self->columns.data, self->columns.size);
}

static psd_status_t no_memory(const ps_slice_t *slice, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a part of a push of %" PRIu64 " rows",
                         slice->n_rows);
}

static ps_bytes_t bytes_of(const ps_buffer_t *buffer)
{
    return (ps_bytes_t){buffer->data, buffer->size};
}

/* Pushes when all rows of the push are here. */
static psd_status_t push_here(ps_store_t *self, const ps_slice_t *slice,
                              const ps_payload_t *payload, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->is_partial = false;
    rc = ps_store_push(self, slice, payload, err);
    self->is_partial = true;
    return rc;
}

static psd_status_t push_some(ps_store_t *self, const ps_slice_t *slice,
                              const ps_payload_t *payload, const bool *here, psd_error_t *err)
{
    PSD_AUTO(part_done) part_t part = {.keys = {0}};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = NULL;
    bool is_sparse = slice->layout == PS_LAYOUT_SPARSE;
    bool fits = add_rows(&part, self, slice, payload, here);
    ps_slice_t some = *slice;

    if (fits) {
        rows = ps_payload_new(bytes_of(&part.keys),
                              is_sparse ? bytes_of(&part.counts) : payload->index,
                              bytes_of(&part.values), NULL, NULL);
    }
    if (rows == NULL) {
        return no_memory(slice, err);
    }
    some.rows = PS_ROWS_LIST;
    some.first_row = 0;
    some.n_rows = part.keys.size / sizeof(uint64_t);
    some.n_values = part.values.size / self->shape.value_size;
    return push_here(self, &some, rows, err);
}

/* Finds which rows of the slice are here, and their number. */
static uint64_t find_rows(const ps_store_t *self, const ps_slice_t *slice,
                          const ps_payload_t *payload, bool *ret_here)
{
    ps_row_walk_t walk;
    uint64_t n = 0;

    if (self->is_array) {
        for (uint64_t i = 0; i < slice->n_rows; i++) {
            ret_here[i] = ps_store_takes_row(self, ps_slice_row(slice, payload, i));
            n += ret_here[i] ? 1 : 0;
        }
        return n;
    }
    ps_row_walk_begin(&walk, &self->indexed, slice, payload, slice->n_rows, PS_NEED_HEAD);
    while (ps_row_walk_next(&walk)) {
        for (size_t i = 0; i < walk.n; i++) {
            ret_here[walk.first + i] = walk.found[i] != NULL;
            n += walk.found[i] != NULL ? 1 : 0;
        }
    }
    return n;
}

/* Neighbouring rows of an array: the rows that are here come first. */
static psd_status_t push_front(ps_store_t *self, const ps_slice_t *slice,
                               const ps_payload_t *payload, psd_error_t *err)
{
    uint64_t first = slice->first_row - self->array.first_row;
    uint64_t here = first < self->n_taken ? self->n_taken - first : 0;
    ps_slice_t front = *slice;

    front.n_rows = here < slice->n_rows ? here : slice->n_rows;
    front.n_values = front.n_rows * slice->n_cols;
    return push_here(self, &front, payload, err);
}

psd_status_t ps_store_push_part(ps_store_t *self, const ps_slice_t *slice,
                                const ps_payload_t *payload, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) bool *here = NULL;
    uint64_t n = 0;

    if (self->is_array && slice->rows == PS_ROWS_RANGE && slice->layout == PS_LAYOUT_DENSE) {
        return push_front(self, slice, payload, err);
    }
    here = ps_alloc_raw(slice->n_rows, sizeof *here);
    if (here == NULL) {
        return no_memory(slice, err);
    }
    n = find_rows(self, slice, payload, here);
    if (n == 0) {
        return PSD_OK;
    }
    return n == slice->n_rows ? push_here(self, slice, payload, err)
                              : push_some(self, slice, payload, here, err);
}
