/* SPDX-License-Identifier: Apache-2.0 */
/* examples/common/samples/batch.h: the rows of a minibatch. */
#include "common/samples/batch.h"

#include <criterion/criterion.h>

static void fill(ex_samples_t *samples)
{
    cr_assert_eq(ex_samples_add(samples, 1, 1, NULL), PSD_OK);
    cr_assert_eq(ex_samples_add_entry(samples, 0, 5, 1, NULL), PSD_OK);
    cr_assert_eq(ex_samples_add_entry(samples, 0, 4000000000U, 2, NULL), PSD_OK);
    cr_assert_eq(ex_samples_add(samples, -1, 1, NULL), PSD_OK);
    cr_assert_eq(ex_samples_add_entry(samples, 0, 0, 3, NULL), PSD_OK);
    cr_assert_eq(ex_samples_add_entry(samples, 0, 5, 4, NULL), PSD_OK);
    cr_assert_eq(ex_samples_add(samples, 1, 1, NULL), PSD_OK);
}

Test(batch, a_minibatch_lists_each_once_and_ascending)
{
    ex_samples_t samples = {0};
    ex_batch_t batch = {0};

    fill(&samples);
    cr_assert_eq(ex_samples_number(&samples, NULL), PSD_OK);
    cr_assert_eq(ex_batch_init(&batch, &samples, NULL), PSD_OK);
    ex_batch_take(&batch, &samples, (uint32_t[]){1, 0, 1}, 3);
    cr_assert_eq(batch.n, 3);
    ex_batch_take(&batch, &samples, (uint32_t[]){0}, 1);
    cr_assert_eq(batch.n, 2, "nothing is left of the one before");
    cr_assert_eq(batch.rows[0], 5);
    cr_assert_eq(batch.rows[1], 4000000000U);
    cr_assert_eq(batch.places[batch.features[0]], 0);
    cr_assert_eq(batch.places[batch.features[1]], 1);
    ex_batch_take(&batch, &samples, (uint32_t[]){2}, 1);
    cr_assert_eq(batch.n, 0);
    ex_batch_done(&batch);
    ex_samples_done(&samples);
}

Test(batch, a_minibatch_works_across_words_of_marks)
{
    enum { N = 1000 };
    ex_samples_t samples = {0};
    ex_batch_t batch = {0};

    cr_assert_eq(ex_samples_add(&samples, 1, 1, NULL), PSD_OK);
    for (uint32_t i = 0; i < N; i++) {
        cr_assert_eq(ex_samples_add_entry(&samples, 0, 3 * i, 1, NULL), PSD_OK);
    }
    cr_assert_eq(ex_samples_number(&samples, NULL), PSD_OK);
    cr_assert_eq(ex_batch_init(&batch, &samples, NULL), PSD_OK);
    ex_batch_take(&batch, &samples, (uint32_t[]){0}, 1);
    cr_assert_eq(batch.n, N);
    for (uint32_t i = 0; i < N; i++) {
        cr_assert_eq(batch.rows[i], 3 * (uint64_t)i);
        cr_assert_eq(batch.places[i], i);
    }
    ex_batch_done(&batch);
    ex_samples_done(&samples);
}

Test(batch, there_may_be_none)
{
    ex_samples_t samples = {0};
    ex_batch_t batch = {0};

    cr_assert_eq(ex_samples_number(&samples, NULL), PSD_OK);
    cr_assert_eq(ex_batch_init(&batch, &samples, NULL), PSD_OK);
    ex_batch_take(&batch, &samples, NULL, 0);
    cr_assert_eq(batch.n, 0);
    ex_batch_done(&batch);
    ex_samples_done(&samples);
}
