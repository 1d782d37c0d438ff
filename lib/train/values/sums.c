/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of deltas: the place of each, and adding others to them. */
#include "train/values/sums.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

#define SPARSE_WIDTH 4      /* cells next to an entry are seldom touched */
#define DIRECT_CELLS 262144 /* 2 MiB for each trainer */
#define SLOTS_MIN 64

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for sums of deltas");
}

static bool make_room(ps_sums_t *self, size_t n_slots)
{
    size_t capacity = self->capacity < SLOTS_MIN ? SLOTS_MIN : self->capacity;
    ps_number_t *cells = NULL;
    void *grown = NULL;

    while (capacity < n_slots) {
        capacity *= 2;
    }
    cells = ps_alloc_resize(self->cells, capacity, self->width * sizeof *self->cells);
    if (cells == NULL) {
        return false;
    }
    self->cells = cells;
    grown = ps_alloc_resize(self->masks, capacity, sizeof *self->masks);
    if (grown == NULL) {
        return false;
    }
    self->masks = grown;
    grown = ps_alloc_resize(self->touched, capacity, sizeof *self->touched);
    if (grown == NULL) {
        return false;
    }
    self->touched = grown;
    if (!self->direct) {
        grown = ps_alloc_resize(self->rows, capacity, sizeof *self->rows);
        if (grown == NULL) {
            return false;
        }
        self->rows = grown;
        grown = ps_alloc_resize(self->chunks, capacity, sizeof *self->chunks);
        if (grown == NULL) {
            return false;
        }
        self->chunks = grown;
    }
    memset(cells + self->capacity * self->width, 0,
           (capacity - self->capacity) * self->width * sizeof *cells);
    memset(self->masks + self->capacity, 0, (capacity - self->capacity) * sizeof *self->masks);
    self->capacity = capacity;
    return true;
}

psd_status_t ps_sums_init(ps_sums_t *self, const ps_shape_t *shape, psd_error_t *err)
{
    uint32_t width = shape->sparse ? SPARSE_WIDTH : PS_SUMS_WIDTH_MAX;

    *self = (ps_sums_t){.shape = *shape};
    self->width = shape->n_cols < width ? shape->n_cols : width;
    self->n_chunks = (shape->n_cols + self->width - 1) / self->width;
    self->direct = shape->n_rows > 0 && !shape->sparse &&
                   shape->n_rows <= DIRECT_CELLS / (self->n_chunks * self->width);
    if (!self->direct) {
        return PSD_OK; /* room is made as it is needed */
    }
    if (!make_room(self, (size_t)(shape->n_rows * self->n_chunks))) {
        ps_sums_done(self);
        return no_memory(err);
    }
    return PSD_OK;
}

void ps_sums_done(ps_sums_t *self)
{
    ps_free(self->cells);
    ps_free(self->masks);
    ps_free(self->rows);
    ps_free(self->chunks);
    ps_free(self->touched);
    ps_free(self->table);
    *self = (ps_sums_t){.width = 0};
}

void ps_sums_clear(ps_sums_t *self)
{
    if (!self->direct && self->n_touched > 0) {
        memset(self->cells, 0, self->n_touched * self->width * sizeof *self->cells);
        memset(self->masks, 0, self->n_touched * sizeof *self->masks);
    }
    for (size_t i = 0; self->direct && i < self->n_touched; i++) {
        size_t slot = self->touched[i];

        memset(self->cells + slot * self->width, 0, self->width * sizeof *self->cells);
        self->masks[slot] = 0;
    }
    if (self->n_table > 0 && self->n_touched > 0) {
        memset(self->table, 0, self->n_table * sizeof *self->table);
    }
    self->n_touched = 0;
}

/* ---- slots that are found by hash ---------------------------------------- */

static size_t place_of(const ps_sums_t *self, uint64_t row, uint32_t chunk)
{
    uint64_t hash = ps_hash_u64(row + UINT64_C(0x9e3779b97f4a7c15) * chunk);
    size_t at = (size_t)hash & (self->n_table - 1);

    for (; self->table[at] != 0; at = (at + 1) & (self->n_table - 1)) {
        size_t slot = self->table[at] - 1;

        if (self->rows[slot] == row && self->chunks[slot] == chunk) {
            break;
        }
    }
    return at;
}

static bool grow_table(ps_sums_t *self)
{
    size_t n_table = self->n_table == 0 ? (size_t)SLOTS_MIN * 2 : self->n_table * 2;
    uint32_t *old = self->table;
    uint32_t *table = ps_alloc(n_table, sizeof *table);

    if (table == NULL) {
        return false;
    }
    self->table = table;
    self->n_table = n_table;
    for (size_t slot = 0; slot < self->n_touched; slot++) {
        table[place_of(self, self->rows[slot], self->chunks[slot])] = (uint32_t)slot + 1;
    }
    ps_free(old);
    return true;
}

bool ps_sums_find_slot(ps_sums_t *self, uint64_t row, uint32_t chunk, size_t *ret_slot)
{
    size_t at = 0;

    if (self->n_table > 0) {
        at = place_of(self, row, chunk);
        if (self->table[at] != 0) {
            *ret_slot = self->table[at] - 1;
            return true;
        }
    }
    if (self->n_touched >= UINT32_MAX - 1 ||
        (self->n_touched == self->capacity && !make_room(self, self->capacity + 1))) {
        return false;
    }
    if ((self->n_touched + 1) * 2 > self->n_table) {
        if (!grow_table(self)) {
            return false;
        }
        at = place_of(self, row, chunk);
    }
    self->rows[self->n_touched] = row;
    self->chunks[self->n_touched] = chunk;
    self->table[at] = (uint32_t)self->n_touched + 1;
    *ret_slot = self->n_touched;
    return true;
}

bool ps_sums_look(const ps_sums_t *self, uint64_t row, uint32_t chunk, size_t *ret_slot)
{
    if (self->direct) {
        *ret_slot = (size_t)(row * self->n_chunks + chunk);
        return self->masks[*ret_slot] != 0;
    }
    if (self->n_table > 0) {
        size_t at = place_of(self, row, chunk);

        *ret_slot = self->table[at] == 0 ? 0 : self->table[at] - 1;
        return self->table[at] != 0;
    }
    return false;
}

/* ---- adding -------------------------------------------------------------- */

static inline void add_value(ps_type_t type, ps_number_t *to, const char *value)
{
    int32_t i32 = 0;
    int64_t i64 = 0;
    float f32 = 0;
    double f64 = 0;

    switch (type) {
    case PS_TYPE_I32:
        memcpy(&i32, value, sizeof i32);
        to->i64 = (int64_t)((uint64_t)to->i64 + (uint64_t)(int64_t)i32);
        break;
    case PS_TYPE_I64:
        memcpy(&i64, value, sizeof i64);
        to->i64 = (int64_t)((uint64_t)to->i64 + (uint64_t)i64);
        break;
    case PS_TYPE_F32:
        memcpy(&f32, value, sizeof f32);
        to->f64 += (double)f32;
        break;
    case PS_TYPE_F64:
    default:
        memcpy(&f64, value, sizeof f64);
        to->f64 += f64;
        break;
    }
}

/* Made for each type by itself: the switch stands outside of the loop then. */
static inline void add_values(ps_type_t type, ps_number_t *to, const char *values, uint32_t n)
{
    size_t size = ps_type_size(type);

    for (uint32_t i = 0; i < n; i++) {
        add_value(type, &to[i], values + i * size);
    }
}

static void add_run(ps_type_t type, ps_number_t *to, const char *values, uint32_t n)
{
    switch (type) {
    case PS_TYPE_I32:
        add_values(PS_TYPE_I32, to, values, n);
        break;
    case PS_TYPE_I64:
        add_values(PS_TYPE_I64, to, values, n);
        break;
    case PS_TYPE_F32:
        add_values(PS_TYPE_F32, to, values, n);
        break;
    case PS_TYPE_F64:
    default:
        add_values(PS_TYPE_F64, to, values, n);
        break;
    }
}

bool ps_sums_add(ps_sums_t *self, uint64_t row, uint32_t col, const void *values, uint32_t n)
{
    const char *at = values;

    while (n > 0) {
        uint32_t n_run = n;
        ps_number_t *to = ps_sums_run(self, row, col, &n_run);

        if (to == NULL) {
            return false;
        }
        add_run(self->shape.type, to, at, n_run);
        at += n_run * self->shape.value_size;
        col += n_run;
        n -= n_run;
    }
    return true;
}

void ps_sums_add_slot(const ps_sums_t *self, size_t slot, bool is_float, ps_number_t *to)
{
    const ps_number_t *from = self->cells + slot * self->width;

    for (uint32_t i = 0; i < self->width; i++) {
        if (is_float) {
            to[i].f64 += from[i].f64;
        } else {
            to[i].i64 = (int64_t)((uint64_t)to[i].i64 + (uint64_t)from[i].i64);
        }
    }
}

static uint64_t row_of(const ps_sums_t *self, size_t slot)
{
    return self->direct ? slot / self->n_chunks : self->rows[slot];
}

/* Adds a touched slot of another one. */
static bool merge_slot(ps_sums_t *self, const ps_sums_t *other, size_t slot)
{
    uint64_t row = row_of(other, slot);
    uint64_t chunk = other->direct ? slot % other->n_chunks : other->chunks[slot];
    uint32_t first = (uint32_t)__builtin_ctzll(other->masks[slot]);
    uint32_t col = (uint32_t)chunk * other->width;
    ps_number_t *to = ps_sums_at(self, row, col + first);

    if (to == NULL) {
        return false;
    }
    to -= first;
    self->masks[(size_t)(to - self->cells) / self->width] |= other->masks[slot];
    ps_sums_add_slot(other, slot, ps_type_is_float(self->shape.type), to);
    return true;
}

psd_status_t ps_sums_merge(ps_sums_t *self, const ps_sums_t *other, psd_error_t *err)
{
    for (size_t i = 0; i < other->n_touched; i++) {
        if (!merge_slot(self, other, other->touched[i])) {
            return no_memory(err);
        }
    }
    return PSD_OK;
}

psd_status_t ps_sums_split(const ps_sums_t *self, uint64_t n_parts, uint64_t part, ps_sums_t *to,
                           ps_sums_t *others, psd_error_t *err)
{
    for (size_t i = 0; i < self->n_touched; i++) {
        size_t slot = self->touched[i];

        if (!merge_slot(row_of(self, slot) % n_parts == part ? to : others, self, slot)) {
            return no_memory(err);
        }
    }
    return PSD_OK;
}
