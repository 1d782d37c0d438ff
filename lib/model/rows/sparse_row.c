/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted arrays with a merge for insertion and a sweep for zeros. */
#include "model/rows/sparse_row.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

/* The offset of array k in the row's data: 0 the values, then the states, then
 * the columns. */
static size_t offset_of(const ps_sparse_row_t *self, const ps_row_shape_t *shape, uint32_t k)
{
    return (size_t)k * self->capacity * shape->value_size;
}

static const uint32_t *columns_of(const ps_sparse_row_t *self, const ps_row_shape_t *shape)
{
    const void *columns = self->data + offset_of(self, shape, 1 + shape->n_states);

    return columns;
}

/* The columns, writable. */
static uint32_t *own_columns(ps_sparse_row_t *self, const ps_row_shape_t *shape)
{
    void *columns = self->data + offset_of(self, shape, 1 + shape->n_states);

    return columns;
}

/* First entry in [from, n) whose column is >= col; an exponential search,
 * because the next column of a sorted list is usually near. */
static uint32_t seek(const uint32_t *columns, uint32_t from, uint32_t n, uint32_t col)
{
    uint32_t step = 1;
    uint32_t low = from;
    uint32_t high = n;

    while (step < n - low && columns[low + step - 1] < col) {
        low += step;
        step = step < UINT32_C(1) << 30 ? 2 * step : step;
    }
    if (step < n - low) {
        high = low + step;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (columns[middle] < col) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool entry_is_zero(const ps_sparse_row_t *self, const ps_row_shape_t *shape, uint32_t at)
{
    for (uint32_t k = 0; k <= shape->n_states; k++) {
        const uint8_t *array = self->data + offset_of(self, shape, k);

        if (!ps_value_is_zero(shape->type, array + (size_t)at * shape->value_size)) {
            return false;
        }
    }
    return true;
}

static void move_entries(ps_sparse_row_t *self, const ps_row_shape_t *shape, uint32_t to,
                         uint32_t from, uint32_t n)
{
    size_t size = shape->value_size;
    uint32_t *columns = own_columns(self, shape);

    for (uint32_t k = 0; k <= shape->n_states; k++) {
        uint8_t *array = self->data + offset_of(self, shape, k);

        memmove(array + to * size, array + from * size, n * size);
    }
    memmove(columns + to, columns + from, n * sizeof *columns);
}

static void zero_entry(ps_sparse_row_t *self, const ps_row_shape_t *shape, uint32_t at,
                       uint32_t col)
{
    size_t size = shape->value_size;

    for (uint32_t k = 0; k <= shape->n_states; k++) {
        memset(self->data + offset_of(self, shape, k) + at * size, 0, size);
    }
    own_columns(self, shape)[at] = col;
}

size_t ps_sparse_row_bytes(const ps_row_shape_t *shape, uint32_t capacity)
{
    size_t entry = (size_t)shape->value_size * (1 + shape->n_states) + sizeof(uint32_t);

    return sizeof(ps_sparse_row_t) + capacity * entry;
}

ps_sparse_row_t *ps_sparse_row_new(const ps_row_shape_t *shape, const ps_sparse_row_t *old,
                                   uint32_t capacity)
{
    ps_sparse_row_t *self = ps_alloc_raw(1, ps_sparse_row_bytes(shape, capacity));
    size_t size = shape->value_size;

    if (self == NULL) {
        return NULL;
    }
    *self = (ps_sparse_row_t){.capacity = capacity};
    if (old == NULL) {
        return self;
    }
    assert(old->n <= capacity);
    self->n = old->n;
    self->n_pending = old->n_pending;
    self->n_zeros = old->n_zeros;
    for (uint32_t k = 0; k <= shape->n_states; k++) {
        memcpy(self->data + offset_of(self, shape, k), old->data + offset_of(old, shape, k),
               old->n * size);
    }
    memcpy(own_columns(self, shape), columns_of(old, shape), old->n * sizeof(uint32_t));
    return self;
}

void ps_sparse_row_shrink(ps_sparse_row_t **self_p, const ps_row_shape_t *shape, uint32_t capacity)
{
    ps_sparse_row_t *self = *self_p;
    const ps_sparse_row_t wide = *self;
    size_t size = shape->value_size;
    void *smaller = NULL;

    assert(self->n <= capacity && capacity <= self->capacity);
    self->capacity = capacity;
    for (uint32_t k = 1; k <= shape->n_states; k++) {
        memmove(self->data + offset_of(self, shape, k), self->data + offset_of(&wide, shape, k),
                self->n * size);
    }
    memmove(own_columns(self, shape), self->data + offset_of(&wide, shape, 1 + shape->n_states),
            self->n * sizeof(uint32_t));
    smaller = ps_alloc_resize(self, 1, ps_sparse_row_bytes(shape, capacity));
    if (smaller != NULL) { /* else the block stays larger than needed */
        *self_p = smaller;
    }
}

uint32_t ps_sparse_row_missing(const ps_sparse_row_t *self, const ps_row_shape_t *shape,
                               ps_columns_t columns, const uint8_t *deltas, size_t n)
{
    const uint32_t *own = columns_of(self, shape);
    uint32_t missing = 0;
    uint32_t at = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t col = ps_columns_at(columns, i);

        if (ps_value_is_zero(shape->type, deltas + i * shape->value_size)) {
            continue;
        }
        at = seek(own, at, self->n, col);
        missing += at == self->n || own[at] != col ? 1 : 0;
    }
    return missing;
}

/* From the back: each entry moves once, by the number of new columns before
 * it. */
void ps_sparse_row_add(ps_sparse_row_t *self, const ps_row_shape_t *shape, ps_columns_t columns,
                       const uint8_t *deltas, size_t n, uint32_t missing)
{
    const uint32_t *own = columns_of(self, shape);
    uint32_t end = self->n; /* entries before it have not moved */

    assert(missing <= self->capacity - self->n);
    self->n += missing;
    self->n_zeros += missing;
    for (size_t i = n; i > 0 && missing > 0; i--) {
        uint32_t col = ps_columns_at(columns, i - 1);
        uint32_t at = 0;

        if (ps_value_is_zero(shape->type, deltas + (i - 1) * shape->value_size)) {
            continue;
        }
        at = seek(own, 0, end, col);
        if (at < end && own[at] == col) {
            continue;
        }
        move_entries(self, shape, at + missing, at, end - at);
        missing--;
        zero_entry(self, shape, at + missing, col);
        end = at;
    }
}

static uint32_t count_zeros(const ps_sparse_row_t *self, const ps_row_shape_t *shape, uint32_t at,
                            uint32_t n)
{
    uint32_t zeros = 0;

    for (uint32_t i = 0; i < n; i++) {
        zeros += entry_is_zero(self, shape, at + i) ? 1 : 0;
    }
    return zeros;
}

/* Runs the updater over neighbouring entries, whose deltas are neighbours. */
static void apply_run(ps_sparse_row_t *self, const ps_row_shape_t *shape, uint32_t at,
                      const uint8_t *deltas, uint32_t n)
{
    size_t offset = (size_t)at * shape->value_size;

    if (self->n_zeros > 0) {
        self->n_zeros -= count_zeros(self, shape, at, n);
    }
    ps_updater_apply(shape->updater, *shape->worker,
                     self->data + offset_of(self, shape, 0) + offset,
                     self->data + offset_of(self, shape, 1) + offset, self->capacity, deltas, n);
    self->n_zeros += count_zeros(self, shape, at, n);
}

/* The number of leading columns, of n, that match the entries from `at` on. */
static uint32_t matching(const ps_sparse_row_t *self, const uint32_t *own, uint32_t at,
                         ps_columns_t columns, size_t n)
{
    uint32_t run = 0;

    while (run < n && at + run < self->n && own[at + run] == ps_columns_at(columns, run)) {
        run++;
    }
    return run;
}

void ps_sparse_row_apply(ps_sparse_row_t *self, const ps_row_shape_t *shape, ps_columns_t columns,
                         const uint8_t *deltas, size_t n)
{
    const uint32_t *own = columns_of(self, shape);
    size_t size = shape->value_size;
    uint32_t at = 0;
    size_t i = 0;

    while (i < n) {
        uint32_t col = ps_columns_at(columns, i);
        uint32_t run = 0;

        if (at > 0 && own[at - 1] >= col) {
            at = 0; /* the list does not ascend */
        }
        at = seek(own, at, self->n, col);
        run = matching(self, own, at, ps_columns_from(columns, i), n - i);
        if (run == 0) {
            assert(ps_value_is_zero(shape->type, deltas + i * size));
            i++;
            continue;
        }
        apply_run(self, shape, at, deltas + i * size, run);
        at += run;
        i += run;
    }
}

void ps_sparse_row_drop_zeros(ps_sparse_row_t *self, const ps_row_shape_t *shape)
{
    uint32_t kept = 0;
    uint32_t at = 0;

    while (at < self->n) {
        uint32_t end = at;

        while (end < self->n && !entry_is_zero(self, shape, end)) {
            end++;
        }
        if (kept != at && end > at) {
            move_entries(self, shape, kept, at, end - at);
        }
        kept += end - at;
        at = end + 1;
    }
    self->n = kept;
    self->n_zeros = 0;
}

ps_sparse_view_t ps_sparse_row_view(ps_sparse_row_t *self, const ps_row_shape_t *shape)
{
    return (ps_sparse_view_t){
        .columns = columns_of(self, shape), .values = self->data, .n = self->n};
}

uint32_t ps_sparse_view_seek(const ps_sparse_view_t *self, uint32_t col)
{
    return seek(self->columns, 0, self->n, col);
}

void ps_sparse_row_recount(ps_sparse_row_t *self, const ps_row_shape_t *shape)
{
    self->n_zeros = count_zeros(self, shape, 0, self->n);
}

void ps_sparse_row_read(const ps_sparse_row_t *self, const ps_row_shape_t *shape,
                        ps_columns_t columns, size_t n, uint8_t *ret_values)
{
    const uint32_t *own = columns_of(self, shape);
    const uint8_t *values = self->data + offset_of(self, shape, 0);
    size_t size = shape->value_size;

    memset(ret_values, 0, n * size);
    if (columns.list == NULL) {
        uint32_t at = seek(own, 0, self->n, columns.first);

        for (; at < self->n && own[at] - columns.first < n; at++) {
            ps_values_copy(ret_values + (own[at] - columns.first) * size, values + at * size, 1,
                           size);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t col = ps_columns_at(columns, i);
        uint32_t at = seek(own, 0, self->n, col);

        if (at < self->n && own[at] == col) {
            ps_values_copy(ret_values + i * size, values + at * size, 1, size);
        }
    }
}

void ps_sparse_row_spread(const ps_sparse_row_t *self, const ps_row_shape_t *shape,
                          const ps_dense_row_t *row)
{
    const uint32_t *own = columns_of(self, shape);
    size_t size = shape->value_size;

    for (uint32_t k = 0; k <= shape->n_states; k++) {
        const uint8_t *from = self->data + offset_of(self, shape, k);
        uint8_t *to = k == 0 ? row->values : row->state + (k - 1) * row->state_stride * size;

        for (uint32_t i = 0; i < self->n; i++) {
            ps_values_copy(to + (own[i] - shape->first_col) * size, from + i * size, 1, size);
        }
    }
}

uint32_t ps_sparse_row_entries(const ps_sparse_row_t *self, const ps_row_shape_t *shape,
                               uint8_t *ret_columns, uint8_t *ret_values)
{
    const uint32_t *own = columns_of(self, shape);
    const uint8_t *values = self->data + offset_of(self, shape, 0);
    size_t size = shape->value_size;
    uint32_t n = 0;

    for (uint32_t i = 0; i < self->n; i++) {
        if (ps_value_is_zero(shape->type, values + i * size)) {
            continue;
        }
        if (ret_columns != NULL) {
            ps_store_u32(ret_columns + 4 * (size_t)n, own[i]);
            ps_values_copy(ret_values + n * size, values + i * size, 1, size);
        }
        n++;
    }
    return n;
}

size_t ps_sparse_row_packed(const ps_row_shape_t *shape, uint32_t n)
{
    return ps_sparse_row_bytes(shape, n) - sizeof(ps_sparse_row_t);
}

uint8_t *ps_sparse_row_pack(const ps_sparse_row_t *self, const ps_row_shape_t *shape, uint8_t *to)
{
    size_t size = (size_t)self->n * shape->value_size;

    for (uint32_t k = 0; k <= shape->n_states; k++) {
        memcpy(to, self->data + offset_of(self, shape, k), size);
        to += size;
    }
    size = (size_t)self->n * sizeof(uint32_t);
    memcpy(to, columns_of(self, shape), size);
    return to + size;
}

bool ps_sparse_row_unpack(ps_sparse_row_t *self, const ps_row_shape_t *shape, const uint8_t *from,
                          uint32_t n)
{
    size_t size = (size_t)n * shape->value_size;
    uint32_t *columns = own_columns(self, shape);

    assert(n <= self->capacity);
    for (uint32_t k = 0; k <= shape->n_states; k++) {
        memcpy(self->data + offset_of(self, shape, k), from, size);
        from += size;
    }
    memcpy(columns, from, (size_t)n * sizeof *columns);
    for (uint32_t i = 0; i < n; i++) {
        if (columns[i] - shape->first_col >= shape->width ||
            (i > 0 && columns[i] <= columns[i - 1])) {
            return false;
        }
    }
    self->n = n;
    return count_zeros(self, shape, 0, n) == 0;
}
