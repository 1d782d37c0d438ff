/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes into a store, whatever its layout. */
#include "model/store/store.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "model/rows/push.h"
#include "model/store/image.h"
#include "model/store/store_impl.h"
#include "model/updaters/finite.h"

#define GROUP 32 /* rows found, then worked on */

static void begin(ps_store_t *self, const ps_payload_t *payload, ps_push_t *push)
{
    ps_array_rows_t *array = &self->array;

    ps_push_begin(push, &self->shape, payload, array->values.data, array->state.data,
                  array->state_stride);
}

/* Whole neighbouring rows have the same layout in the array as in the slice. */
static void push_run(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload)
{
    uint64_t n_values = slice->n_rows * self->shape.width;
    ps_dense_row_t row = ps_array_rows_at(&self->array, slice->first_row, 0, n_values);
    ps_push_t push;

    begin(self, payload, &push);
    ps_push_run(&push, row.values, n_values);
    ps_array_rows_stamp(&self->array, slice->first_row, slice->n_rows);
}

/* Whole rows that are not contiguous. */
static void push_rows(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload)
{
    uint8_t *rows[2][GROUP];
    size_t n[2] = {0};
    ps_push_t push;

    begin(self, payload, &push);
    n[0] = ps_array_rows_find(&self->array, slice, payload, 0, PS_NEED_ALL, rows[0], GROUP);
    for (uint64_t i = 0, g = 0; i < slice->n_rows; g = 1 - g) {
        n[1 - g] = ps_array_rows_find(&self->array, slice, payload, i + n[g], PS_NEED_ALL,
                                      rows[1 - g], GROUP);
        ps_push_rows(&push, rows[g], n[g]);
        i += n[g];
    }
    for (uint64_t i = 0; self->spec.versions && i < slice->n_rows; i++) {
        ps_array_rows_stamp(&self->array, ps_slice_row(slice, payload, i), 1);
    }
}

/* Some columns of rows. */
static void push_columns(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, self->shape.first_col);
    ps_push_t push;

    begin(self, payload, &push);
    while (ps_deltas_next(&deltas)) {
        ps_dense_row_t row = ps_array_rows_at(&self->array, deltas.row, 0, self->shape.width);

        ps_push_columns(&push, row.values, &deltas);
        ps_array_rows_stamp(&self->array, deltas.row, 1);
    }
}

static void push_array(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload)
{
    if (!ps_slice_is_whole(slice, self->shape.width)) {
        push_columns(self, slice, payload);
    } else if (slice->rows == PS_ROWS_RANGE) {
        push_run(self, slice, payload);
    } else {
        push_rows(self, slice, payload);
    }
}

static bool is_finite(const ps_store_t *self, const ps_payload_t *payload)
{
    for (size_t i = 0; i < payload->n_spans; i++) {
        const ps_bytes_t *span = &payload->spans[i];

        if (!ps_finite_all(self->spec.type, span->data, span->size / self->shape.value_size)) {
            return false;
        }
    }
    return true;
}

/* Sparse rows read their deltas more than once, so the deltas must not
 * change. */
static bool push_own(ps_store_t *self, const ps_slice_t *slice, ps_payload_t *own)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = own;

    if (payload == NULL) {
        return false;
    }
    return (!self->spec.allow_nonfinite && !is_finite(self, payload)) ||
           ps_indexed_rows_push(&self->indexed, slice, payload);
}

psd_status_t ps_store_push(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload,
                           psd_error_t *err)
{
    bool is_done = true;

    if (slice->n_rows == 0) {
        return PSD_OK;
    }
    if (self->is_partial) {
        return ps_store_push_part(self, slice, payload, err);
    }
    if (self->image != NULL) {
        ps_image_before_push(self, slice, payload);
    }
    if (self->is_array) {
        push_array(self, slice, payload);
    } else if (payload->shared && ps_rows_are_mixed(&self->indexed)) {
        is_done = push_own(self, slice, ps_payload_clone(payload));
    } else {
        is_done = ps_indexed_rows_push(&self->indexed, slice, payload);
    }
    if (!is_done) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the rows of a push of %" PRIu64 " rows",
                             slice->n_rows);
    }
    return PSD_OK;
}
