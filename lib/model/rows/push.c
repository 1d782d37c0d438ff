/* SPDX-License-Identifier: Apache-2.0 */
/* Applies deltas in the order of their rows, as many at once as are
 * contiguous. */
#include "model/rows/push.h"

#include <assert.h>

#include "model/updaters/finite.h"
#include "model/updaters/row_loops.h"

#define WIDE 32 /* values of a row from which a call of the updater pays */
#define STATES_TOGETHER 3
#define BYTES_TOGETHER (PS_ROWS_GROUP * 8) /* of values, or of a state */

void ps_push_begin(ps_push_t *self, const ps_row_shape_t *shape, const ps_payload_t *payload,
                   uint8_t *values, uint8_t *state, size_t state_stride)
{
    self->shape = shape;
    self->payload = payload;
    self->values = values;
    self->state = state;
    self->state_stride = state_stride;
    self->row_bytes = (size_t)shape->width * shape->value_size;
    self->span = 0;
    self->at = 0;
    self->is_guarded = payload->shared && !shape->spec->allow_nonfinite &&
                       (shape->type == PS_TYPE_F32 || shape->type == PS_TYPE_F64);
    self->is_fused = self->is_guarded && ps_updater_is_guarded(shape->updater);
}

/* Deltas that cannot change any more; NULL when one has become non-finite.
 * n_bytes is at most a block's when the push is guarded. */
static const uint8_t *guard(ps_push_t *self, const uint8_t *deltas, size_t n_bytes)
{
    if (!self->is_guarded) {
        return deltas;
    }
    assert(n_bytes <= sizeof self->block);
    memcpy(self->block, deltas, n_bytes);
    return ps_finite_all(self->shape->type, self->block, n_bytes / self->shape->value_size)
               ? self->block
               : NULL;
}

/* Where the states of a row's first value are; there are some. */
static uint8_t *state_of(const ps_push_t *self, uint8_t *row)
{
    return self->state == NULL ? row + self->row_bytes : self->state + (row - self->values);
}

static void update(const ps_push_t *self, uint8_t *row, size_t offset, const uint8_t *deltas,
                   size_t n)
{
    const ps_row_shape_t *shape = self->shape;
    uint8_t *state = shape->n_states == 0 ? NULL : state_of(self, row) + offset;

    ps_updater_apply(shape->updater, *shape->worker, row + offset, state, self->state_stride,
                     deltas, n);
}

/* Applies contiguous deltas to neighbouring values. */
static void update_run(ps_push_t *self, uint8_t *row, size_t offset, const uint8_t *deltas,
                       size_t n_bytes)
{
    size_t most = self->is_guarded ? PS_PUSH_BLOCK : n_bytes;

    if (self->is_fused) {
        uint8_t *at = row + offset;

        ps_updater_apply_guarded(self->shape->updater, &at, 1, n_bytes / self->shape->value_size,
                                 deltas);
        return;
    }
    while (n_bytes > 0) {
        size_t size = n_bytes < most ? n_bytes : most;
        const uint8_t *safe = guard(self, deltas, size);

        if (safe != NULL) {
            update(self, row, offset, safe, size / self->shape->value_size);
        }
        offset += size;
        deltas += size;
        n_bytes -= size;
    }
}

/* Contiguous bytes from the next value on; there is one. */
static size_t bytes_ahead(ps_push_t *self, const uint8_t **ret_deltas)
{
    const ps_bytes_t *span = &self->payload->spans[self->span];

    while (self->at == span->size) {
        self->span++;
        self->at = 0;
        assert(self->span < self->payload->n_spans);
        span = &self->payload->spans[self->span];
    }
    *ret_deltas = span->data + self->at;
    return span->size - self->at;
}

void ps_push_run(ps_push_t *self, uint8_t *values, uint64_t n)
{
    size_t left = n * self->shape->value_size;
    size_t offset = 0;

    while (left > 0) {
        const uint8_t *deltas = NULL;
        size_t size = bytes_ahead(self, &deltas);

        size = size < left ? size : left;
        update_run(self, values, offset, deltas, size);
        self->at += size;
        offset += size;
        left -= size;
    }
}

/* Rows of one value. A plug-in gets each row in place, because it may look at a
 * whole row. With more values a row, gathering would cost more than it
 * gains. */
static bool go_together(const ps_row_shape_t *shape)
{
    return shape->width == 1 && shape->n_states <= STATES_TOGETHER &&
           shape->spec->updater.kind != PS_UPDATER_PLUGIN;
}

/* A rule does up to 16 values in the time of one. So values and states of n
 * rows are gathered for it and scattered back. Each value is independent, so
 * the bits are the same as row by row, as long as no row occurs twice.
 */
static void update_together(const ps_push_t *self, uint8_t *const *rows, size_t n,
                            const uint8_t *deltas)
{
    const ps_row_shape_t *shape = self->shape;
    size_t size = shape->value_size;
    size_t stride = self->state_stride * size;
    uintptr_t apart = 0; /* from a value to its first state */
    _Alignas(64) uint8_t values[BYTES_TOGETHER];
    _Alignas(64) uint8_t states[STATES_TOGETHER * BYTES_TOGETHER];

    if (shape->n_states > 0) {
        apart = (uintptr_t)state_of(self, rows[0]) - (uintptr_t)rows[0];
    }
    ps_values_gather(values, rows, 0, n, size);
    for (uint32_t k = 0; k < shape->n_states; k++) {
        ps_values_gather(states + k * n * size, rows, apart + k * stride, n, size);
    }
    ps_updater_apply(shape->updater, *shape->worker, values, states, n, deltas, n);
    ps_values_scatter(rows, 0, values, n, size);
    for (uint32_t k = 0; k < shape->n_states; k++) {
        ps_values_scatter(rows, apart + k * stride, states + k * n * size, n, size);
    }
}

/* Applies deltas to as many rows at once as possible. */
static void update_each(const ps_push_t *self, uint8_t *const *rows, size_t n,
                        const uint8_t *deltas)
{
    size_t most = go_together(self->shape) ? PS_ROWS_GROUP : 1;
    size_t part = 0;

    for (size_t i = 0; i < n; i += part) {
        part = n - i < most ? n - i : most;
        if (part > 1 && ps_rows_differ(rows + i, part)) {
            update_together(self, rows + i, part, deltas + i * self->row_bytes);
            continue;
        }
        for (size_t k = i; k < i + part; k++) {
            update(self, rows[k], 0, deltas + k * self->row_bytes, self->shape->width);
        }
    }
}

/* Whole rows whose deltas are contiguous. */
static void update_rows(ps_push_t *self, uint8_t *const *rows, size_t n, const uint8_t *deltas)
{
    const ps_row_shape_t *shape = self->shape;

    if (self->is_fused && shape->width >= WIDE) {
        ps_updater_apply_guarded(shape->updater, rows, n, shape->width, deltas);
        return;
    }
    deltas = guard(self, deltas, n * self->row_bytes);
    if (deltas == NULL) {
        return;
    }
    if (shape->spec->updater.kind == PS_UPDATER_ADD && shape->width < WIDE) {
        ps_rows_add(shape->type, rows, n, shape->width, deltas);
        return;
    }
    update_each(self, rows, n, deltas);
}

void ps_push_rows(ps_push_t *self, uint8_t *const *rows, size_t n)
{
    size_t most = self->is_guarded ? PS_PUSH_BLOCK / self->row_bytes : n;

    for (size_t i = 0; i < n;) {
        const uint8_t *deltas = NULL;
        size_t together = bytes_ahead(self, &deltas) / self->row_bytes;

        together = together < n - i ? together : n - i;
        together = together < most ? together : most;
        if (together == 0) { /* cut by a span's end, or larger than a block */
            ps_push_run(self, rows[i], self->shape->width);
            i++;
            continue;
        }
        update_rows(self, rows + i, together, deltas);
        self->at += together * self->row_bytes;
        i += together;
    }
}

void ps_push_columns(ps_push_t *self, uint8_t *row, ps_deltas_t *deltas)
{
    const ps_row_shape_t *shape = self->shape;
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        for (size_t i = 0; i < n;) {
            ps_columns_t rest = ps_columns_from(columns, i);
            size_t run = ps_columns_neighbours(rest, n - i);
            uint32_t col = ps_columns_at(rest, 0) - shape->first_col;

            update_run(self, row, (size_t)col * shape->value_size, values + i * shape->value_size,
                       run * shape->value_size);
            i += run;
        }
    }
}
