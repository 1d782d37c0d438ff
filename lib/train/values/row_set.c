/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows, and which number each has. */
#include "train/values/row_set.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

#define SLOTS_MIN 64

void ps_row_set_done(ps_row_set_t *self)
{
    ps_free(self->rows);
    ps_free(self->slots);
    *self = (ps_row_set_t){.n = 0};
}

void ps_row_set_clear(ps_row_set_t *self)
{
    if (self->n > 0) {
        memset(self->slots, 0, self->n_slots * sizeof *self->slots);
    }
    self->n = 0;
}

/* Where the row is, or where it would be put. */
static size_t place_of(const ps_row_set_t *self, uint64_t row)
{
    size_t at = (size_t)ps_hash_u64(row) & (self->n_slots - 1);

    while (self->slots[at] != 0 && self->rows[self->slots[at] - 1] != row) {
        at = (at + 1) & (self->n_slots - 1);
    }
    return at;
}

static bool grow(ps_row_set_t *self)
{
    size_t n_slots = self->n_slots == 0 ? SLOTS_MIN : self->n_slots * 2;
    uint32_t *old = self->slots;
    uint32_t *slots = ps_alloc(n_slots, sizeof *slots);

    if (slots == NULL) {
        return false;
    }
    self->slots = slots;
    self->n_slots = n_slots;
    for (size_t i = 0; i < self->n; i++) {
        slots[place_of(self, self->rows[i])] = (uint32_t)i + 1;
    }
    ps_free(old);
    return true;
}

bool ps_row_set_add(ps_row_set_t *self, uint64_t row, size_t *ret_number)
{
    size_t at = 0;

    if (self->n_slots > 0) {
        at = place_of(self, row);
        if (self->slots[at] != 0) {
            *ret_number = self->slots[at] - 1;
            return true;
        }
    }
    if (self->n >= UINT32_MAX - 1 ||
        !ps_grow(&self->rows, &self->capacity, self->n + 1, sizeof row)) {
        return false;
    }
    if ((self->n + 1) * 2 > self->n_slots) {
        if (!grow(self)) {
            return false;
        }
        at = place_of(self, row);
    }
    self->rows[self->n] = row;
    *ret_number = self->n++;
    self->slots[at] = (uint32_t)self->n;
    return true;
}

size_t ps_row_set_find(const ps_row_set_t *self, uint64_t row)
{
    size_t at = 0;

    if (self->n == 0) {
        return PS_ROW_NONE;
    }
    at = place_of(self, row);
    return self->slots[at] == 0 ? PS_ROW_NONE : self->slots[at] - 1;
}
