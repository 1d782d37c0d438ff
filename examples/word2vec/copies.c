/* SPDX-License-Identifier: Apache-2.0 */
/* Copies rows in, and pushes their changes. */
#include "copies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a trainer's vectors");
}

psd_status_t wv_copies_init(wv_copies_t *self, const wv_task_t *task, const wv_others_t *others,
                            wv_table_t kind, uint32_t table, psd_error_t *err)
{
    size_t size = task->options->size;
    size_t n_rows = wv_tables_rows(task, kind);

    *self = (wv_copies_t){.table = table,
                          .kind = kind,
                          .others = others,
                          .size = size,
                          .stride = wv_stride(size),
                          .part = calloc(wv_stride(size), sizeof *self->part),
                          .carries = !task->options->no_pipeline};
    if (self->carries) {
        self->carried_slot = malloc(n_rows * sizeof *self->carried_slot);
    }
    if (self->part == NULL || (self->carries && self->carried_slot == NULL)) {
        wv_copies_done(self);
        return no_memory(err);
    }
    if (self->carries) {
        memset(self->carried_slot, 0xFF, n_rows * sizeof *self->carried_slot);
    }
    return PSD_OK;
}

void wv_copies_done(wv_copies_t *self)
{
    free(self->values);
    free(self->cached);
    free(self->times);
    free(self->part);
    free(self->carried);
    free(self->carried_rows);
    free(self->carried_slot);
    *self = (wv_copies_t){.room = 0};
}

static void forget_carried(wv_copies_t *self)
{
    for (size_t i = 0; i < self->n_carried; i++) {
        self->carried_slot[self->carried_rows[i]] = WV_UNKNOWN;
    }
    self->n_carried = 0;
}

/* The old content need not be kept. */
static bool make_room(wv_copies_t *self, size_t n)
{
    if (self->room < n) {
        free(self->values);
        self->room = n + n / 4;
        self->values = calloc(self->room * self->stride, sizeof(float));
    }
    if (self->here_room < n) {
        free(self->cached);
        free(self->times);
        self->here_room = n + n / 4;
        self->cached = calloc(self->here_room, sizeof *self->cached);
        self->times = calloc(self->here_room, sizeof *self->times);
    }
    if (self->values == NULL) {
        self->room = 0;
    }
    if (self->cached == NULL || self->times == NULL) {
        self->here_room = 0;
    }
    return self->room >= n && self->here_room >= n;
}

static float times_of(const wv_copies_t *self, size_t slot)
{
    return wv_others_times(self->others, self->kind, self->rows->rows[slot], self->rows->met[slot]);
}

psd_status_t wv_copies_begin(wv_copies_t *self, const wv_rows_t *rows, bool lacks, psd_error_t *err)
{
    self->rows = rows;
    self->failed = false;
    if (!lacks) {
        forget_carried(self);
    }
    if (!make_room(self, rows->n)) {
        return no_memory(err);
    }
    for (size_t i = 0; i < rows->n; i++) {
        self->cached[i] = NULL;
        self->times[i] = fminf(times_of(self, i), self->others->times_most);
    }
    return PSD_OK;
}

/* This trainer's changes of its copy in the block before; NULL: none. */
static const float *carried_of(const wv_copies_t *self, uint64_t row)
{
    uint32_t slot = self->carries ? self->carried_slot[row] : WV_UNKNOWN;

    return slot == WV_UNKNOWN ? NULL : self->carried + slot * self->stride;
}

void wv_copies_fetch(wv_copies_t *self, psd_trainer_t *trainer, uint32_t slot)
{
    uint64_t row = self->rows->rows[slot];
    float *values = self->values + slot * self->stride;
    const float *carried = carried_of(self, row);

    self->cached[slot] = psd_trainer_row(trainer, self->table, row);
    if (self->cached[slot] == NULL) {
        self->failed = true;
        return;
    }
    memcpy(values, self->cached[slot], self->size * sizeof *values);
    if (carried != NULL) {
        wv_add(1, carried, values, self->stride);
    }
}

/* y -= x, then x = y / by. */
WV_WIDE static void take_part(float *restrict y, float *restrict x, float by, size_t n)
{
    for (size_t i = 0; i < n; i += WV_LANES) {
        for (size_t k = 0; k < WV_LANES; k++) {
            y[i + k] -= x[i + k];
            x[i + k] = y[i + k] / by;
        }
    }
}

/* Replaces the row by its change since the fetch, and adds this trainer's
 * part of it. */
static void add_change(wv_copies_t *self, psd_trainer_t *trainer, size_t slot)
{
    uint64_t row = self->rows->rows[slot];
    float *values = self->values + slot * self->stride;
    const float *carried = carried_of(self, row);
    float times = times_of(self, slot);

    if (carried != NULL) {
        wv_add(-1, carried, values, self->stride);
    }
    memcpy(self->part, self->cached[slot], self->size * sizeof *values);
    take_part(values, self->part, times, self->stride);
    psd_trainer_add_row(trainer, self->table, row, self->part, self->size);
}

/* The changes become those of the block before. */
static void carry(wv_copies_t *self)
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
        if (self->cached[i] != NULL) {
            rows[self->n_carried++] = self->rows->rows[i];
            self->carried_slot[self->rows->rows[i]] = (uint32_t)i;
        }
    }
}

void wv_copies_end(wv_copies_t *self, psd_trainer_t *trainer)
{
    for (size_t i = 0; i < self->rows->n && !self->failed; i++) {
        if (self->cached[i] != NULL) {
            add_change(self, trainer, i);
        }
    }
    if (self->carries && !self->failed) {
        carry(self);
    }
}
