/* SPDX-License-Identifier: Apache-2.0 */
/* Ratings from a CSV file: its first column is what the reader calls label. */
#include "ratings.h"

#include <stdlib.h>
#include <string.h>

#include "../common/samples/load.h"

#define BATCH 10000

static psd_status_t fit(mf_ratings_t *self, size_t n, psd_error_t *err)
{
    size_t room = n + n / 2;
    uint64_t *ids = NULL;
    float *ratings = NULL;

    if (n <= self->room) {
        return PSD_OK;
    }
    ids = realloc(self->users, room * sizeof *ids);
    if (ids == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu ratings", n);
    }
    self->users = ids;
    ids = realloc(self->items, room * sizeof *ids);
    if (ids == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu ratings", n);
    }
    self->items = ids;
    ratings = realloc(self->ratings, room * sizeof *ratings);
    if (ratings == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu ratings", n);
    }
    self->ratings = ratings;
    self->room = room;
    return PSD_OK;
}

static bool is_id(float value)
{
    return value >= 0 && value <= MF_ID_MAX && value == (float)(uint32_t)value;
}

static psd_status_t add(mf_ratings_t *self, const psd_samples_t *batch, size_t i, psd_error_t *err)
{
    const size_t *starts = psd_samples_starts(batch);
    const float *values = psd_samples_values(batch) + starts[i];
    float user = psd_samples_labels(batch)[i];

    if (starts[i + 1] - starts[i] < 2 || !is_id(user) || !is_id(values[0])) {
        return psd_error_set(err, PSD_INVALID,
                             "rating %zu is not user,item,rating, with whole "
                             "numbers up to %d for the first two",
                             self->n + 1, MF_ID_MAX);
    }
    self->users[self->n] = (uint64_t)user;
    self->items[self->n] = (uint64_t)values[0];
    self->ratings[self->n++] = values[1];
    return PSD_OK;
}

static psd_status_t take(void *user, const psd_samples_t *batch, psd_error_t *err)
{
    mf_ratings_t *self = user;
    psd_status_t rc = fit(self, self->n + psd_samples_count(batch), err);

    for (size_t i = 0; rc == PSD_OK && i < psd_samples_count(batch); i++) {
        rc = add(self, batch, i, err);
    }
    return rc;
}

psd_status_t mf_ratings_load(mf_ratings_t *ret_ratings, const char *path, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    memset(ret_ratings, 0, sizeof *ret_ratings);
    rc = ex_read(path, "csv", BATCH, take, ret_ratings, err);
    return rc == PSD_OK && ret_ratings->n == 0
               ? psd_error_set(err, PSD_INVALID, "%s: it has no ratings", path)
               : rc;
}

void mf_ratings_done(mf_ratings_t *self)
{
    free(self->users);
    free(self->items);
    free(self->ratings);
    memset(self, 0, sizeof *self);
}
