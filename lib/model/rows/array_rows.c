/* SPDX-License-Identifier: Apache-2.0 */
/* Contiguous rows and their lazy first values. */
#include "model/rows/array_rows.h"

#include <inttypes.h>

#include "base/prefetch.h"
#include "model/updaters/init.h"

#define BLOCK_SHIFT PS_ARRAY_BLOCK_SHIFT
#define BLOCK_VALUES (UINT64_C(1) << BLOCK_SHIFT)
#define STATES_AHEAD 3                /* with more (one for each worker) a push needs only one */
#define STRIDE_VALUES 16              /* keeps every state array on a cache line */
#define BYTES_MAX (UINT64_C(1) << 47) /* what a process can address */

/* Bytes of `arrays` arrays of values; false: too many to address. */
static bool array_bytes(uint64_t n_values, uint64_t unit, uint64_t *ret_bytes)
{
    uint64_t bytes = 0;

    if (__builtin_mul_overflow(n_values, unit, &bytes) || bytes > BYTES_MAX) {
        return false;
    }
    *ret_bytes = bytes;
    return true;
}

static bool take_pages(ps_array_rows_t *self, uint64_t value_bytes, uint64_t state_bytes)
{
    uint64_t n_blocks = self->state_stride / BLOCK_VALUES + 1;

    if (!ps_pages_init(&self->values, value_bytes)) {
        return false;
    }
    if (state_bytes > 0 && !ps_pages_init(&self->state, state_bytes)) {
        return false;
    }
    if (self->shape.version != NULL &&
        !ps_pages_init(&self->versions, self->n_rows * sizeof(uint64_t))) {
        return false;
    }
    return ps_init_is_zero(&self->shape.spec->init) ||
           ps_pages_init(&self->filled, n_blocks / 8 + 1);
}

psd_status_t ps_array_rows_init(ps_array_rows_t *self, const ps_row_shape_t *shape,
                                uint64_t first_row, uint64_t n_rows, psd_error_t *err)
{
    uint64_t n = 0;
    uint64_t values = 0;
    uint64_t state = 0;

    *self = (ps_array_rows_t){.shape = *shape, .first_row = first_row, .n_rows = n_rows};
    if (n_rows == 0) {
        return PSD_OK;
    }
    if (!array_bytes(n_rows, shape->width, &n)) {
        n = BYTES_MAX;
    }
    n = (n + STRIDE_VALUES - 1) / STRIDE_VALUES * STRIDE_VALUES;
    self->state_stride = n;
    if (!array_bytes(n, shape->value_size, &values) ||
        !array_bytes(values, shape->n_states, &state)) {
        return psd_error_set(err, PSD_LIMIT,
                             "a partition of %" PRIu64 " rows with %" PRIu32
                             " columns does not fit into memory addresses; "
                             "make more partitions",
                             n_rows, shape->width);
    }
    if (!take_pages(self, values, state)) {
        ps_array_rows_done(self);
        return psd_error_set(err, PSD_NOMEM, "no memory for a partition of %" PRIu64 " bytes",
                             values + state);
    }
    return PSD_OK;
}

void ps_array_rows_done(ps_array_rows_t *self)
{
    ps_pages_done(&self->values);
    ps_pages_done(&self->state);
    ps_pages_done(&self->filled);
    ps_pages_done(&self->versions);
}

/* Writes first values into a block: the pieces of all rows that it cuts. */
static void fill_block(ps_array_rows_t *self, uint64_t block)
{
    const ps_row_shape_t *shape = &self->shape;
    uint64_t at = block * BLOCK_VALUES;
    uint64_t end = self->n_rows * shape->width;

    end = end - at > BLOCK_VALUES ? at + BLOCK_VALUES : end;
    while (at < end) {
        uint64_t row = at / shape->width;
        uint32_t col = (uint32_t)(at % shape->width);
        uint64_t n = shape->width - col;
        uint8_t *values = self->values.data + at * shape->value_size;
        uint8_t *state =
            self->state.data == NULL ? NULL : self->state.data + at * shape->value_size;

        n = n < end - at ? n : end - at;
        ps_init_fill(shape->spec, self->first_row + row, shape->first_col + col, (uint32_t)n,
                     values);
        ps_updater_begin(shape->updater, values, state, self->state_stride, n);
        at += n;
    }
}

static void touch(ps_array_rows_t *self, uint64_t first, uint64_t n)
{
    uint64_t last_block = (first + n - 1) >> BLOCK_SHIFT;

    for (uint64_t b = first >> BLOCK_SHIFT; b <= last_block; b++) {
        uint8_t *bits = &self->filled.data[b / 8];
        uint8_t bit = (uint8_t)(1U << (b % 8));

        if ((*bits & bit) == 0) {
            fill_block(self, b);
            *bits |= bit;
        }
    }
}

ps_dense_row_t ps_array_rows_at(ps_array_rows_t *self, uint64_t row, uint32_t col, uint64_t n)
{
    uint64_t first = (row - self->first_row) * self->shape.width;
    size_t offset = first * self->shape.value_size;

    if (self->filled.data != NULL && n > 0) {
        touch(self, first + col, n);
    }
    return (ps_dense_row_t){
        .values = self->values.data + offset,
        .state = self->state.data == NULL ? NULL : self->state.data + offset,
        .state_stride = self->state_stride,
    };
}

bool ps_array_rows_is_filled(const ps_array_rows_t *self, uint64_t block)
{
    return (self->filled.data[block / 8] >> (block % 8) & 1) != 0;
}

void ps_array_rows_fill_around(ps_array_rows_t *self, uint64_t first, uint64_t n)
{
    uint64_t block = first >> BLOCK_SHIFT;
    uint64_t from = block << BLOCK_SHIFT;
    uint64_t all = self->n_rows * self->shape.width - from;

    all = all < BLOCK_VALUES ? all : BLOCK_VALUES;
    if (n < all) {
        touch(self, first, n);
    } else {
        self->filled.data[block / 8] |= (uint8_t)(1U << (block % 8));
    }
}

void ps_array_rows_stamp(ps_array_rows_t *self, uint64_t row, uint64_t n)
{
    uint8_t *at = self->versions.data;

    if (at == NULL) {
        return;
    }
    at += (row - self->first_row) * sizeof(uint64_t);
    for (uint64_t i = 0; i < n; i++) {
        ps_store_u64(at + i * sizeof(uint64_t), *self->shape.version);
    }
}

uint64_t ps_array_rows_version(const ps_array_rows_t *self, uint64_t row)
{
    if (self->versions.data == NULL) {
        return 0;
    }
    return ps_load_u64(self->versions.data + (row - self->first_row) * sizeof(uint64_t));
}

static void prefetch(const ps_array_rows_t *self, size_t offset, ps_row_need_t need)
{
    size_t size = (size_t)self->shape.width * self->shape.value_size;
    size_t stride = self->state_stride * self->shape.value_size;
    uint32_t n_states = need == PS_NEED_ALL ? self->shape.n_states : 0;

    ps_prefetch_row(self->values.data + offset, size);
    for (uint32_t k = 0; n_states <= STATES_AHEAD && k < n_states; k++) {
        ps_prefetch_row(self->state.data + k * stride + offset, size);
    }
}

size_t ps_array_rows_find(ps_array_rows_t *self, const ps_slice_t *slice,
                          const ps_payload_t *payload, uint64_t i, ps_row_need_t need,
                          uint8_t **ret_rows, size_t most)
{
    uint64_t left = i < slice->n_rows ? slice->n_rows - i : 0;
    size_t n = left < most ? (size_t)left : most;
    size_t row_bytes = (size_t)self->shape.width * self->shape.value_size;

    for (size_t j = 0; j < n; j++) {
        uint64_t row = ps_slice_row(slice, payload, i + j) - self->first_row;

        ret_rows[j] = self->values.data + row * row_bytes;
        if (row_bytes >= PS_LINE) { /* else the hardware prefetcher suffices */
            prefetch(self, row * row_bytes, need);
        }
        if (self->filled.data != NULL) {
            touch(self, row * self->shape.width, self->shape.width);
        }
    }
    return n;
}

void ps_array_rows_read(ps_array_rows_t *self, uint64_t row, ps_columns_t columns, size_t n,
                        uint8_t *ret_values)
{
    size_t size = self->shape.value_size;

    for (size_t i = 0; i < n;) {
        ps_columns_t rest = ps_columns_from(columns, i);
        size_t run = ps_columns_neighbours(rest, n - i);
        uint32_t col = ps_columns_at(rest, 0) - self->shape.first_col;
        ps_dense_row_t at = ps_array_rows_at(self, row, col, run);

        ps_values_copy(ret_values + i * size, at.values + col * size, run, size);
        i += run;
    }
}
