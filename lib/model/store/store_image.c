/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of an image, and the rows that are handed out before it passes. */
#include "model/store/store_image.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "model/rows/row_head.h"
#include "model/store/image.h"
#include "model/store/op_rows.h"

#define UNIT_BYTES 2048                 /* rows that are copied together, in bytes */
#define PIECE_BYTES ((size_t)256 << 10) /* of early rows */
#define SKIP_BYTES 64                   /* the cost that a unit without rows counts as */

/* ---- beginning and ending ---- */

/* Approximate bytes of a unit in memory. */
static size_t unit_bytes(const ps_store_t *self)
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

/* Appends the rows of places [from, end) that belong to the image. false: no
 * memory. */
static bool add_rows(ps_store_t *self, uint64_t from, uint64_t end, ps_buffer_t *to)
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

/* ---- the walk ---- */

void ps_store_image_end(ps_store_t *self)
{
    ps_image_t *image = self->image;

    if (image == NULL) {
        return;
    }
    for (size_t i = 0; i < image->n_ready; i++) {
        ps_buffer_done(&image->ready[i]);
    }
    ps_free(image->ready);
    ps_buffer_done(&image->walked);
    ps_buffer_done(&image->open);
    ps_free(image->early);
    ps_free(image);
    self->image = NULL;
}

bool ps_store_has_image(const ps_store_t *self)
{
    return self->image != NULL;
}

uint64_t ps_store_image_rows(const ps_store_t *self)
{
    return self->image == NULL ? 0 : self->image->rows;
}

psd_status_t ps_store_image_begin(ps_store_t *self, const ps_image_args_t *args, psd_error_t *err)
{
    ps_image_t *image = NULL;
    size_t row_bytes = unit_bytes(self);

    ps_store_image_end(self);
    image = ps_alloc(1, sizeof *image);
    self->image = image;
    if (image != NULL) {
        image->args = *args;
        image->n = self->is_array ? self->array.n_rows : self->indexed.rows.n;
        image->unit = row_bytes < UNIT_BYTES ? UNIT_BYTES / row_bytes : 1;
        image->early = ps_alloc(image->n / image->unit / 8 + 1, 1);
    }
    if (image == NULL || image->early == NULL) {
        ps_store_image_end(self);
        return psd_error_set(err, PSD_NOMEM, "no memory for an image");
    }
    return PSD_OK;
}

/* ---- early rows ---- */

/* Allocates a whole piece at once, because growing it would copy it. false: no
 * memory. */
static bool has_room(const ps_store_t *self, size_t max_bytes, ps_buffer_t *piece)
{
    bool is_short = self->image->n <= max_bytes / unit_bytes(self);

    return piece->capacity > 0 || is_short || ps_buffer_reserve(piece, max_bytes + max_bytes / 4);
}

static bool is_early(const ps_image_t *self, uint64_t place)
{
    uint64_t unit = place / self->unit;

    return (self->early[unit / 8] >> (unit % 8) & 1) != 0;
}

/* Makes a piece of the open early rows. */
static bool seal(ps_image_t *self)
{
    if (!ps_grow(&self->ready, &self->ready_capacity, self->n_ready + 1, sizeof *self->ready)) {
        return false;
    }
    self->ready[self->n_ready++] = self->open;
    self->open = (ps_buffer_t){0};
    return true;
}

static void save(ps_store_t *self, uint64_t place)
{
    ps_image_t *image = self->image;
    size_t before = image->open.size;
    uint64_t unit = place / image->unit;
    uint64_t end = (unit + 1) * image->unit;

    if (place >= image->n || place < image->next || image->status != PSD_OK ||
        is_early(image, place)) {
        return;
    }
    if (!has_room(self, PIECE_BYTES, &image->open) ||
        !add_rows(self, unit * image->unit, end < image->n ? end : image->n, &image->open)) {
        image->status = PSD_NOMEM;
        return;
    }
    image->early[unit / 8] |= (uint8_t)(1U << (unit % 8));
    image->waiting += image->open.size - before;
    if (image->open.size >= PIECE_BYTES && !seal(image)) {
        image->status = PSD_NOMEM;
    } else if (image->waiting > image->args.early_bytes) {
        image->status = PSD_LIMIT;
    }
}

static void save_row(ps_store_t *self, uint64_t row)
{
    if (self->is_array) {
        save(self, row - self->array.first_row);
    } else {
        uint32_t number = ps_row_index_find(&self->indexed.index, row);

        if (number != PS_ROW_NONE) {
            save(self, number);
        }
    }
}

static bool is_over(const ps_image_t *self)
{
    return self->next >= self->n || self->status != PSD_OK;
}

void ps_image_before_push(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload)
{
    if (is_over(self->image)) {
        return;
    }
    for (uint64_t i = 0; i < slice->n_rows; i++) {
        save_row(self, ps_slice_row(slice, payload, i));
    }
}

void ps_image_before_change(ps_store_t *self, const ps_slice_t *slice, const ps_payload_t *payload,
                            const ps_row_change_t *change)
{
    ps_op_rows_t rows = ps_op_rows_of(self, slice, payload, change);
    uint64_t key = 0;

    while (!is_over(self->image) && ps_op_rows_next(&rows, &key)) {
        save_row(self, key);
    }
}

/* ---- the walk ---- */

/* Places from the walk on that are handed out together. */
static uint64_t run_end(const ps_store_t *self, size_t max_bytes)
{
    const ps_image_t *image = self->image;
    uint64_t most = max_bytes / unit_bytes(self) + 1;
    uint64_t end = image->next;

    do {
        end += image->unit;
    } while (end < image->n && end - image->next < most && !is_early(image, end));
    return end < image->n ? end : image->n;
}

/* Continues a piece. false: no memory. */
static bool walk(ps_store_t *self, size_t max_bytes, ps_buffer_t *piece)
{
    ps_image_t *image = self->image;
    size_t step = image->args.step_bytes;
    size_t most = step > 0 && step < max_bytes ? step : max_bytes;
    size_t cost = 0;

    if (!has_room(self, max_bytes, piece)) {
        return false;
    }
    while (image->next < image->n && cost < most && piece->size < max_bytes) {
        size_t before = piece->size;
        uint64_t end = image->next + image->unit;

        if (is_early(image, image->next)) {
            cost++;
        } else {
            end = run_end(self, most - cost);
            if (!add_rows(self, image->next, end, piece)) {
                return false;
            }
            cost += piece->size - before + (end - image->next) / image->unit * SKIP_BYTES + 1;
        }
        image->next = end < image->n ? end : image->n;
    }
    return true;
}

static ps_payload_t *payload_of(ps_buffer_t *piece)
{
    const ps_bytes_t none = {NULL, 0};
    ps_payload_t *payload =
        ps_payload_new(none, none, (ps_bytes_t){piece->data, piece->size}, piece->data, ps_free);

    if (payload != NULL) {
        *piece = (ps_buffer_t){0}; /* the payload owns it now */
    }
    return payload;
}

/* Takes early rows first, so that they occupy little memory; at the end also
 * those that do not fill a piece. */
static bool take_early(ps_image_t *self, ps_buffer_t *ret_piece)
{
    if (self->n_ready == 0 && (self->next < self->n || self->open.size == 0 || !seal(self))) {
        return false;
    }
    *ret_piece = self->ready[0];
    self->waiting -= ret_piece->size < self->waiting ? ret_piece->size : self->waiting;
    self->n_ready--;
    memmove(&self->ready[0], &self->ready[1], self->n_ready * sizeof *self->ready);
    return true;
}

static psd_status_t failure(const ps_image_t *self, psd_error_t *err)
{
    return self->status == PSD_LIMIT
               ? psd_error_set(err, PSD_LIMIT,
                               "pushes change rows faster than they can be written: %" PRIu64
                               " bytes are pending; allowed: %" PRIu64,
                               self->waiting, self->args.early_bytes)
               : psd_error_set(err, PSD_NOMEM, "no memory for an image");
}

/* Takes the walked rows as a piece: it is full, or the walk is done. */
static bool take_walked(ps_image_t *self, size_t max_bytes, ps_buffer_t *ret_piece)
{
    bool is_full =
        self->walked.size >= max_bytes || self->args.step_bytes == 0 || self->next == self->n;

    if (!is_full || self->walked.size == 0) {
        return false;
    }
    *ret_piece = self->walked;
    self->walked = (ps_buffer_t){0};
    return true;
}

psd_status_t ps_store_image_next(ps_store_t *self, size_t max_bytes, ps_payload_t **ret_piece,
                                 bool *ret_done, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t piece = {0};
    ps_image_t *image = self->image;
    ps_payload_t *payload = NULL;

    if (image->status == PSD_OK && !take_early(image, &piece)) {
        if (walk(self, max_bytes, &image->walked)) {
            (void)take_walked(image, max_bytes, &piece);
        } else {
            image->status = PSD_NOMEM;
        }
    }
    if (image->status == PSD_OK && piece.size > 0) {
        payload = payload_of(&piece);
        image->status = payload == NULL ? PSD_NOMEM : PSD_OK;
    }
    if (image->status != PSD_OK) {
        return failure(image, err);
    }
    *ret_piece = payload;
    *ret_done = image->next == image->n && image->walked.size == 0 && image->n_ready == 0 &&
                image->open.size == 0;
    return PSD_OK;
}
