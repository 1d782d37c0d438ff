/* SPDX-License-Identifier: Apache-2.0 */
/* examples/common/samples/samples.h: keys are numbered in their order. */
#include "common/samples/samples.h"

#include <criterion/criterion.h>

static void add_entry(ex_samples_t *samples, int64_t group, uint64_t key, float value)
{
    cr_assert_eq(ex_samples_add_entry(samples, group, key, value, NULL), PSD_OK);
}

Test(samples, keys_are_numbered_in_their_order)
{
    ex_samples_t samples = {0};

    cr_assert_eq(ex_samples_add(&samples, 1, 1, NULL), PSD_OK);
    add_entry(&samples, 7, UINT64_MAX, 1);
    add_entry(&samples, 8, 5, 2);
    cr_assert_eq(ex_samples_add(&samples, -1, 0.5F, NULL), PSD_OK);
    add_entry(&samples, 9, 0, 3);
    add_entry(&samples, 9, 5, 4);
    cr_assert_eq(ex_samples_add(&samples, 1, 1, NULL), PSD_OK);
    cr_assert_eq(ex_samples_number(&samples, NULL), PSD_OK);
    cr_assert_eq(samples.n, 3);
    cr_assert_eq(samples.n_features, 3);
    cr_assert_arr_eq(samples.keys, ((uint64_t[]){0, 5, UINT64_MAX}), 3 * sizeof(uint64_t));
    cr_assert_arr_eq(samples.groups, ((int64_t[]){9, 8, 7}), 3 * sizeof(int64_t));
    cr_assert_arr_eq(samples.features, ((uint32_t[]){2, 1, 0, 1}), 4 * sizeof(uint32_t));
    cr_assert_arr_eq(samples.starts, ((size_t[]){0, 2, 4, 4}), 4 * sizeof(size_t));
    cr_assert_float_eq(ex_samples_dot(&samples, 1, (const float[]){10, 100, 1000}), 430, 0);
    ex_samples_done(&samples);
    cr_assert_null(samples.keys);
}

Test(samples, many_keys_keep_their_numbers_when_the_table_grows)
{
    enum { N = 100000 };
    ex_samples_t samples = {0};

    cr_assert_eq(ex_samples_add(&samples, 1, 1, NULL), PSD_OK);
    for (uint64_t i = 0; i < 2 * (uint64_t)N; i++) {
        add_entry(&samples, 0, (N - 1 - i % N) << 40, (float)(i % N));
    }
    cr_assert_eq(ex_samples_number(&samples, NULL), PSD_OK);
    cr_assert_eq(samples.n_features, N);
    for (size_t k = 0; k < samples.n_entries; k++) {
        cr_assert_eq(samples.keys[samples.features[k]] >> 40,
                     (uint64_t)N - 1 - (uint64_t)samples.values[k]);
    }
    ex_samples_done(&samples);
}

Test(samples, there_may_be_none)
{
    ex_samples_t samples = {0};

    cr_assert_eq(ex_samples_number(&samples, NULL), PSD_OK);
    cr_assert_eq(samples.n_features, 0);
    ex_samples_done(&samples);
}
