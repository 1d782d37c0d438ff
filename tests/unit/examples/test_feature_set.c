/* SPDX-License-Identifier: Apache-2.0 */
/* examples/lr/feature_set.h: numbering, and the rows of a minibatch. */
#include "feature_set.h"

#include <criterion/criterion.h>

static void
fill(lr_samples_t *samples)
{
    cr_assert(lr_samples_add(samples, 1));
    cr_assert(lr_samples_add_entry(samples, 5, 1));
    cr_assert(lr_samples_add_entry(samples, 4000000000U, 2));
    cr_assert(lr_samples_add(samples, -1));
    cr_assert(lr_samples_add_entry(samples, 0, 3));
    cr_assert(lr_samples_add_entry(samples, 5, 4));
    cr_assert(lr_samples_add(samples, 1));
}

Test(features, are_numbered_in_the_order_of_the_rows)
{
    lr_samples_t samples = {0};
    lr_features_t features = {0};

    fill(&samples);
    cr_assert_eq(lr_features_init(&features, &samples, NULL), PSD_OK);
    cr_assert_eq(features.n, 3);
    cr_assert_arr_eq(features.rows, ((uint64_t[]){0, 5, 4000000000U}),
                     3 * sizeof(uint64_t));
    cr_assert_arr_eq(samples.features, ((uint32_t[]){1, 2, 0, 1}),
                     4 * sizeof(uint32_t));
    cr_assert_float_eq(
        lr_samples_dot(&samples, 1, (const float[]){10, 100, 1000}), 430, 0);
    lr_features_done(&features);
    lr_samples_done(&samples);
}

Test(features, a_minibatch_lists_each_once_and_ascending)
{
    lr_samples_t samples = {0};
    lr_features_t features = {0};
    lr_batch_t batch = {0};

    fill(&samples);
    cr_assert_eq(lr_features_init(&features, &samples, NULL), PSD_OK);
    cr_assert_eq(lr_batch_init(&batch, &features, NULL), PSD_OK);
    lr_batch_take(&batch, &features, &samples, (uint32_t[]){1, 0, 1}, 3);
    cr_assert_eq(batch.n, 3);
    lr_batch_take(&batch, &features, &samples, (uint32_t[]){0}, 1);
    cr_assert_eq(batch.n, 2, "nothing is left of the one before");
    cr_assert_eq(batch.rows[0], 5);
    cr_assert_eq(batch.rows[1], 4000000000U);
    cr_assert_eq(batch.places[batch.features[0]], 0);
    cr_assert_eq(batch.places[batch.features[1]], 1);
    lr_batch_take(&batch, &features, &samples, (uint32_t[]){2}, 1);
    cr_assert_eq(batch.n, 0);
    lr_batch_done(&batch);
    lr_features_done(&features);
    lr_samples_done(&samples);
}

Test(features, a_minibatch_works_across_words_of_marks)
{
    enum { N = 1000 };
    lr_samples_t samples = {0};
    lr_features_t features = {0};
    lr_batch_t batch = {0};

    cr_assert(lr_samples_add(&samples, 1));
    for (uint32_t i = 0; i < N; i++) {
        cr_assert(lr_samples_add_entry(&samples, 3 * i, 1));
    }
    cr_assert_eq(lr_features_init(&features, &samples, NULL), PSD_OK);
    cr_assert_eq(lr_batch_init(&batch, &features, NULL), PSD_OK);
    lr_batch_take(&batch, &features, &samples, (uint32_t[]){0}, 1);
    cr_assert_eq(batch.n, N);
    for (uint32_t i = 0; i < N; i++) {
        cr_assert_eq(batch.rows[i], 3 * (uint64_t)i);
        cr_assert_eq(batch.places[i], i);
    }
    lr_batch_done(&batch);
    lr_features_done(&features);
    lr_samples_done(&samples);
}

Test(features, there_may_be_none)
{
    lr_samples_t samples = {0};
    lr_features_t features = {0};
    lr_batch_t batch = {0};

    cr_assert_eq(lr_features_init(&features, &samples, NULL), PSD_OK);
    cr_assert_eq(features.n, 0);
    cr_assert_eq(lr_batch_init(&batch, &features, NULL), PSD_OK);
    lr_batch_take(&batch, &features, &samples, NULL, 0);
    cr_assert_eq(batch.n, 0);
    lr_batch_done(&batch);
    lr_features_done(&features);
}
