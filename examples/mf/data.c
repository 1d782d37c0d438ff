/* SPDX-License-Identifier: Apache-2.0 */
/* Ratings with rows in place of ids, split into training and test. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

/* Rows of a side, numbered by a localizer: the same in all workers. */
static psd_status_t number(const uint64_t *ids, size_t n, size_t width, psd_localizer_t *localizer,
                           mf_side_t *side, psd_error_t *err)
{
    psd_status_t rc = psd_localizer_run(localizer, ids, n, err);

    return rc == PSD_OK ? mf_side_init(side, psd_localizer_keys(localizer),
                                       psd_localizer_count(localizer), width, err)
                        : rc;
}

static bool is_test(size_t i, uint32_t every)
{
    return every > 0 && i % every == every - 1;
}

static psd_status_t cut(mf_data_t *self, mf_model_t *model, const mf_ratings_t *ratings,
                        psd_localizer_t *users, psd_localizer_t *items, uint32_t every,
                        psd_error_t *err)
{
    double sum = 0;

    self->train = calloc(ratings->n, sizeof *self->train);
    self->test = calloc(ratings->n, sizeof *self->test);
    if (self->train == NULL || self->test == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu ratings", ratings->n);
    }
    for (size_t i = 0; i < ratings->n; i++) {
        mf_rating_t rating = {psd_localizer_ids(users)[i], psd_localizer_ids(items)[i],
                              ratings->ratings[i]};

        if (is_test(i, every)) {
            self->test[self->n_test++] = rating;
        } else {
            self->train[self->n_train++] = rating;
            sum += (double)rating.rating;
        }
    }
    model->mean = self->n_train > 0 ? sum / (double)self->n_train : 0;
    return PSD_OK;
}

psd_status_t mf_data_init(mf_data_t *ret_data, mf_model_t *ret_model, const mf_ratings_t *ratings,
                          const mf_options_t *options, psd_error_t *err)
{
    psd_localizer_t *users = NULL;
    psd_localizer_t *items = NULL;
    psd_status_t rc = psd_localizer_new(1, &users, err);

    memset(ret_data, 0, sizeof *ret_data);
    memset(ret_model, 0, sizeof *ret_model);
    ret_model->width = 1 + (size_t)options->factors;
    if (rc == PSD_OK) {
        rc = psd_localizer_new(1, &items, err);
    }
    if (rc == PSD_OK) {
        rc = number(ratings->users, ratings->n, ret_model->width, users, &ret_model->users, err);
    }
    if (rc == PSD_OK) {
        rc = number(ratings->items, ratings->n, ret_model->width, items, &ret_model->items, err);
    }
    if (rc == PSD_OK) {
        rc = cut(ret_data, ret_model, ratings, users, items, options->test_every, err);
    }
    psd_localizer_destroy(&users);
    psd_localizer_destroy(&items);
    return rc;
}

void mf_data_done(mf_data_t *self)
{
    free(self->train);
    free(self->test);
    memset(self, 0, sizeof *self);
}

double mf_rmse(const mf_model_t *model, const mf_rating_t *ratings, size_t n)
{
    size_t width = model->width;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double off = (double)ratings[i].rating -
                     mf_model_predict(model, model->users.rows + ratings[i].user * width,
                                      model->items.rows + ratings[i].item * width);

        sum += off * off;
    }
    return n > 0 ? sqrt(sum / (double)n) : NAN;
}
