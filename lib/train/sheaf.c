/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a push of what was summed up. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "train/sums.h"

/* A slot and where it belongs. */
typedef struct place {
    uint64_t row;
    uint32_t chunk;
    uint32_t slot;
} place_t;

void
ps_sheaf_done(ps_sheaf_t *self)
{
    ps_free(self->rows);
    ps_free(self->counts);
    ps_free(self->cols);
    ps_free(self->values);
    *self = (ps_sheaf_t){.n_rows = 0};
}

static int
compare_places(const void *left, const void *right)
{
    const place_t *a = left;
    const place_t *b = right;

    if (a->row != b->row) {
        return a->row < b->row ? -1 : 1;
    }
    return a->chunk < b->chunk ? -1 : a->chunk > b->chunk;
}

/* The touched slots in the order of row and column; NULL: no memory. */
static place_t *
sort_slots(const ps_sums_t *self)
{
    place_t *places = ps_alloc_raw(self->n_touched, sizeof *places);

    if (places == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < self->n_touched; i++) {
        uint32_t slot = self->touched[i];

        places[i] = (place_t){
            .row = self->direct ? slot / self->n_chunks : self->rows[slot],
            .chunk = self->direct ? (uint32_t)(slot % self->n_chunks)
                                  : self->chunks[slot],
            .slot = slot};
    }
    qsort(places, self->n_touched, sizeof *places, compare_places);
    return places;
}

static psd_status_t
put_number(ps_type_t type,
           ps_number_t number,
           void *values,
           size_t at,
           psd_error_t *err)
{
    float narrow = 0;

    switch (type) {
    case PS_TYPE_I32:
        if (number.i64 < INT32_MIN || number.i64 > INT32_MAX) {
            return psd_error_set(err, PSD_RANGE,
                                 "the sum of deltas is %" PRId64
                                 "; allowed in i32: %" PRId32 "..%" PRId32,
                                 number.i64, INT32_MIN, INT32_MAX);
        }
        ((int32_t *)values)[at] = (int32_t)number.i64;
        return PSD_OK;
    case PS_TYPE_I64:
        ((int64_t *)values)[at] = number.i64;
        return PSD_OK;
    case PS_TYPE_F32:
        narrow = (float)number.f64;
        ((float *)values)[at] = narrow;
        break;
    case PS_TYPE_F64:
    default:
        ((double *)values)[at] = number.f64;
        break;
    }
    if (!isfinite(number.f64) || (type == PS_TYPE_F32 && !isfinite(narrow))) {
        return psd_error_set(err, PSD_NOT_FINITE,
                             "the sum of deltas is %g, which is no finite "
                             "number of the table's type",
                             number.f64);
    }
    return PSD_OK;
}

static psd_status_t
put_slot(const ps_sums_t *self,
         const place_t *place,
         ps_sheaf_t *sheaf,
         psd_error_t *err)
{
    uint64_t mask = self->masks[place->slot];
    psd_status_t rc = PSD_OK;

    if (sheaf->n_rows == 0 || sheaf->rows[sheaf->n_rows - 1] != place->row) {
        sheaf->rows[sheaf->n_rows] = place->row;
        sheaf->counts[sheaf->n_rows] = 0;
        sheaf->n_rows++;
    }
    for (; rc == PSD_OK && mask != 0; mask &= mask - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(mask);
        size_t cell = (size_t)place->slot * self->width + i;

        sheaf->cols[sheaf->n_values] = place->chunk * self->width + i;
        rc = put_number(self->shape.type, self->cells[cell], sheaf->values,
                        sheaf->n_values, err);
        sheaf->n_values++;
        sheaf->counts[sheaf->n_rows - 1]++;
    }
    return rc == PSD_OK ? rc
                        : psd_error_wrap(err, rc, "row %" PRIu64, place->row);
}

psd_status_t
ps_sums_bind(const ps_sums_t *self, ps_sheaf_t *ret_sheaf, psd_error_t *err)
{
    PSD_AUTO(ps_sheaf_done) ps_sheaf_t sheaf = {.n_rows = 0};
    PSD_AUTO(ps_free_at) place_t *places = sort_slots(self);
    psd_status_t rc = PSD_OK;
    size_t n_values = 0;

    for (size_t i = 0; i < self->n_touched; i++) {
        n_values += (size_t)__builtin_popcountll(self->masks[self->touched[i]]);
    }
    sheaf.rows = ps_alloc_raw(self->n_touched, sizeof *sheaf.rows);
    sheaf.counts = ps_alloc_raw(self->n_touched, sizeof *sheaf.counts);
    sheaf.cols = ps_alloc_raw(n_values, sizeof *sheaf.cols);
    sheaf.values = ps_alloc_raw(n_values, self->shape.value_size);
    if (places == NULL || sheaf.rows == NULL || sheaf.counts == NULL ||
        sheaf.cols == NULL || sheaf.values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a push");
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n_touched; i++) {
        rc = put_slot(self, &places[i], &sheaf, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    sheaf.whole = sheaf.n_values == sheaf.n_rows * self->shape.n_cols;
    *ret_sheaf = sheaf;
    sheaf = (ps_sheaf_t){.n_rows = 0};
    return PSD_OK;
}
