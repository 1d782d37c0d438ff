/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of each layout, as the parts of a piece of an image. */
#include "base/alloc.h"
#include "model/rows/image.h"
#include "model/rows/row_head.h"

size_t ps_image_row_bytes(const ps_store_t *self)
{
    size_t bytes = ps_row_shape_bytes(&self->shape);

    /* rows that may be sparse go one by one: their width varies */
    return !self->is_array && ps_rows_are_mixed(&self->indexed) ? (size_t)1 << 20 : bytes;
}

static bool put_part(const ps_store_t *self, uint32_t kind, uint64_t n_rows, uint64_t first_row,
                     ps_buffer_t *to)
{
    self->image->rows += n_rows;
    return ps_buffer_u32(to, kind) && ps_buffer_u32(to, self->shape.first_col) &&
           ps_buffer_u32(to, self->shape.width) && ps_buffer_u32(to, 0) &&
           ps_buffer_u64(to, n_rows) && ps_buffer_u64(to, first_row);
}

/* ---- an array ---- */

static bool is_zero(const uint8_t *data, size_t size)
{
    return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

/* The rows read as first values and never changed. */
static bool is_blank(const ps_store_t *self, uint64_t from, uint64_t end)
{
    const ps_array_rows_t *array = &self->array;
    size_t size = self->shape.value_size;
    uint64_t first = from * self->shape.width;
    uint64_t n = (end - from) * self->shape.width;

    if (array->filled.data != NULL) {
        for (uint64_t b = first >> PS_ARRAY_BLOCK_SHIFT;
             b <= (first + n - 1) >> PS_ARRAY_BLOCK_SHIFT; b++) {
            if (ps_array_rows_is_filled(array, b)) {
                return false;
            }
        }
        return true;
    }
    for (uint32_t k = 0; k < self->shape.n_states; k++) {
        if (!is_zero(array->state.data + (k * array->state_stride + first) * size, n * size)) {
            return false;
        }
    }
    return is_zero(array->values.data + first * size, n * size) &&
           (array->versions.data == NULL || is_zero(array->versions.data + from * sizeof(uint64_t),
                                                    (end - from) * sizeof(uint64_t)));
}

static bool put_run(ps_store_t *self, uint64_t from, uint64_t end, ps_buffer_t *to)
{
    ps_array_rows_t *array = &self->array;
    size_t size = self->shape.value_size;
    uint64_t first = from * self->shape.width;
    uint64_t n = (end - from) * self->shape.width;
    bool fits = put_part(self, PS_IMAGE_RUN, end - from, array->first_row + from, to);

    (void)ps_array_rows_at(array, array->first_row + from, 0, n);
    if (array->versions.data != NULL) {
        fits = fits && ps_buffer_append(to, array->versions.data + from * sizeof(uint64_t),
                                        (end - from) * sizeof(uint64_t));
    }
    fits = fits && ps_buffer_append(to, array->values.data + first * size, n * size);
    for (uint32_t k = 0; fits && k < self->shape.n_states; k++) {
        fits = ps_buffer_append(to, array->state.data + (k * array->state_stride + first) * size,
                                n * size);
    }
    return fits;
}

/* The row is part of the image. */
static bool wants_array_row(const ps_store_t *self, uint64_t place)
{
    return self->image->args.since == 0 ||
           ps_array_rows_version(&self->array, self->array.first_row + place) >
               self->image->args.since;
}

static bool add_array(ps_store_t *self, uint64_t from, uint64_t end, ps_buffer_t *to)
{
    uint64_t unit = self->image->unit;
    bool by_row = self->image->args.since > 0;
    bool fits = true;

    while (fits && from < end) {
        uint64_t at = from;

        while (at < end && (by_row ? wants_array_row(self, at)
                                   : !is_blank(self, at, end - at < unit ? end : at + unit))) {
            at = by_row ? at + 1 : end - at < unit ? end : at + unit;
        }
        fits = at == from || put_run(self, from, at, to);
        from = at + (by_row ? 1 : unit); /* the image does not want that one */
    }
    return fits;
}

/* ---- rows that are found by their key ---- */

static bool wants_row(const ps_store_t *self, const uint8_t *at)
{
    return ps_indexed_row_is_present(&self->indexed, at) &&
           (self->image->args.since == 0 ||
            ps_indexed_row_version(&self->indexed, at) > self->image->args.since);
}

static bool add_items(ps_store_t *self, uint64_t from, uint64_t end, ps_buffer_t *to)
{
    const ps_slab_t *rows = &self->indexed.rows;
    bool fits = true;

    while (fits && from < end) {
        uint64_t run = 0;
        const uint8_t *at = ps_slab_run(rows, (uint32_t)from, &run);
        uint64_t n = 0;

        run = run < end - from ? run : end - from;
        while (n < run && wants_row(self, at + n * rows->item_size)) {
            n++;
        }
        fits = n == 0 || (put_part(self, PS_IMAGE_ITEMS, n, 0, to) &&
                          ps_buffer_append(to, at, n * rows->item_size));
        from += n < run ? n + 1 : n;
    }
    return fits;
}

static bool put_sparse(const ps_store_t *self, uint8_t *at, const ps_sparse_row_t *row,
                       ps_buffer_t *to)
{
    size_t size = ps_sparse_row_packed(&self->shape, row->n);

    if (!put_part(self, PS_IMAGE_SPARSE, 1, 0, to) || !ps_buffer_u64(to, ps_load_u64(at)) ||
        !ps_buffer_u64(to, ps_indexed_row_version(&self->indexed, at)) ||
        !ps_buffer_u32(to, row->n) || !ps_buffer_reserve(to, size)) {
        return false;
    }
    (void)ps_sparse_row_pack(row, &self->shape, to->data + to->size);
    to->size += size;
    return true;
}

/* A row that may be sparse; a dense one becomes an item. */
static bool add_mixed(ps_store_t *self, uint64_t place, ps_buffer_t *to)
{
    const ps_indexed_rows_t *rows = &self->indexed;
    uint8_t *at = ps_slab_at(&rows->rows, (uint32_t)place);
    ps_row_head_t head = *ps_row_head_at(rows, at);

    if (!wants_row(self, at)) {
        return true;
    }
    if (!ps_row_head_is_dense(head)) {
        return put_sparse(self, at, ps_row_head_sparse(head), to);
    }
    return put_part(self, PS_IMAGE_ITEMS, 1, 0, to) && ps_buffer_append(to, at, rows->values_at) &&
           ps_buffer_append(to, ps_row_head_target(head), ps_row_shape_bytes(&self->shape));
}

bool ps_image_add_rows(ps_store_t *self, uint64_t from, uint64_t end, ps_buffer_t *to)
{
    bool fits = true;

    if (self->is_array) {
        return add_array(self, from, end, to);
    }
    if (!ps_rows_are_mixed(&self->indexed)) {
        return add_items(self, from, end, to);
    }
    for (uint64_t i = from; fits && i < end; i++) {
        fits = add_mixed(self, i, to);
    }
    return fits;
}
