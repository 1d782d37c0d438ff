/* SPDX-License-Identifier: Apache-2.0 */
/* Rows there and back. */
#include "copies.h"

#include <stdlib.h>
#include <string.h>

#include "kernel.h"

static psd_status_t
no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a trainer's vectors");
}

psd_status_t
wv_copies_init(wv_copies_t *self,
               uint32_t table,
               size_t size,
               uint32_t n_rows,
               bool carries,
               psd_error_t *err)
{
    *self = (wv_copies_t){.table = table,
                          .size = size,
                          .stride = wv_stride(size),
                          .carries = carries};
    if (!carries) {
        return PSD_OK;
    }
    self->carried_slot = malloc(n_rows * sizeof *self->carried_slot);
    if (self->carried_slot == NULL) {
        return no_memory(err);
    }
    memset(self->carried_slot, 0xFF, n_rows * sizeof *self->carried_slot);
    return PSD_OK;
}

void
wv_copies_done(wv_copies_t *self)
{
    free(self->values);
    free(self->is_here);
    free(self->carried);
    free(self->carried_rows);
    free(self->carried_slot);
    *self = (wv_copies_t){.room = 0};
}

static void
forget_carried(wv_copies_t *self)
{
    for (size_t i = 0; i < self->n_carried; i++) {
        self->carried_slot[self->carried_rows[i]] = WV_UNKNOWN;
    }
    self->n_carried = 0;
}

/* What was there need not be kept. */
static bool
make_room(wv_copies_t *self, size_t n)
{
    if (self->room < n) {
        free(self->values);
        self->room = n + n / 4;
        self->values = calloc(self->room * self->stride, sizeof(float));
    }
    if (self->here_room < n) {
        free(self->is_here);
        self->here_room = n + n / 4;
        self->is_here = calloc(self->here_room, sizeof *self->is_here);
    }
    if (self->values == NULL) {
        self->room = 0;
    }
    if (self->is_here == NULL) {
        self->here_room = 0;
    }
    return self->room >= n && self->here_room >= n;
}

psd_status_t
wv_copies_begin(wv_copies_t *self,
                const wv_rows_t *rows,
                bool lacks,
                psd_error_t *err)
{
    self->rows = rows;
    self->failed = false;
    if (!lacks) {
        forget_carried(self);
    }
    if (!make_room(self, rows->n)) {
        return no_memory(err);
    }
    if (rows->n > 0) {
        memset(self->is_here, 0, rows->n * sizeof *self->is_here);
    }
    return PSD_OK;
}

/* What this trainer has changed of the row in the block before; NULL: nothing.
 */
static const float *
carried_of(const wv_copies_t *self, uint64_t row)
{
    uint32_t slot = self->carries ? self->carried_slot[row] : WV_UNKNOWN;

    return slot == WV_UNKNOWN ? NULL : self->carried + slot * self->stride;
}

void
wv_copies_fetch(wv_copies_t *self, psd_trainer_t *trainer, uint32_t slot)
{
    uint64_t row = self->rows->rows[slot];
    float *values = self->values + slot * self->stride;
    const float *carried = carried_of(self, row);

    self->is_here[slot] = true;
    if (!psd_trainer_get_row(trainer, self->table, row, values, self->size)) {
        self->failed = true;
        return;
    }
    if (carried != NULL) {
        wv_add(1, carried, values, self->stride);
    }
}

/* What has changed since it was fetched, as it counts, left in its place. */
static void
add_change(wv_copies_t *self, psd_trainer_t *trainer, size_t slot)
{
    uint64_t row = self->rows->rows[slot];
    float *values = self->values + slot * self->stride;
    const float *cached = psd_trainer_row(trainer, self->table, row);
    const float *carried = carried_of(self, row);
    float weight = self->weights == NULL ? 1 : self->weights[row];

    if (cached == NULL) {
        self->failed = true;
        return;
    }
    if (carried != NULL) {
        wv_add(-1, carried, values, self->stride);
    }
    for (size_t i = 0; i < self->size; i++) {
        values[i] = weight * (values[i] - cached[i]);
    }
    psd_trainer_add_row(trainer, self->table, row, values, self->size);
}

/* The changes become those of the block before. */
static void
carry(wv_copies_t *self)
{
    float *values = self->carried;
    size_t room = self->carried_room;
    uint64_t *rows = NULL;

    forget_carried(self);
    rows = realloc(self->carried_rows, (self->rows->n + 1) * sizeof *rows);
    if (rows == NULL) {
        return; /* nothing is carried then */
    }
    self->carried_rows = rows;
    self->carried = self->values;
    self->carried_room = self->room;
    self->values = values;
    self->room = values == NULL ? 0 : room;
    for (size_t i = 0; i < self->rows->n; i++) {
        if (self->is_here[i]) {
            rows[self->n_carried++] = self->rows->rows[i];
            self->carried_slot[self->rows->rows[i]] = (uint32_t)i;
        }
    }
}

void
wv_copies_end(wv_copies_t *self, psd_trainer_t *trainer)
{
    for (size_t i = 0; i < self->rows->n && !self->failed; i++) {
        if (self->is_here[i]) {
            add_change(self, trainer, i);
        }
    }
    if (self->carries && !self->failed) {
        carry(self);
    }
}
