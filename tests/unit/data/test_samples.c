/* SPDX-License-Identifier: Apache-2.0 */
/* data/streams/samples.h: a batch grows, goes back, merges. */
#include "data/streams/samples.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

/* A sample of n_groups groups of two entries each. */
static bool add(psd_samples_t *samples, float label, size_t n_groups)
{
    if (!ps_samples_reserve(samples, n_groups + 1, 2 * n_groups)) {
        return false;
    }
    ps_samples_begin(samples, label);
    for (size_t g = 0; g < n_groups; g++) {
        ps_samples_add(samples, 10 * g, 1);
        ps_samples_add(samples, 10 * g + 1, label);
        ps_samples_end_group(samples, (int64_t)g);
    }
    if (!ps_samples_tag(samples, "tag", 3)) {
        return false;
    }
    ps_samples_end(samples);
    return true;
}

Test(samples, shape_holds_while_it_grows)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    size_t n_groups = 0;

    cr_assert_not_null(samples);
    for (size_t i = 0; i < 5000; i++) {
        cr_assert(add(samples, (float)i, i % 5));
    }
    cr_expect_eq(psd_samples_count(samples), 5000);
    for (size_t i = 0; i < 5000; i++) {
        size_t size = 0;

        cr_assert_eq(psd_samples_groups(samples)[i], n_groups);
        n_groups += i % 5;
        cr_assert_eq(psd_samples_labels(samples)[i], (float)i);
        cr_assert_eq(psd_samples_weights(samples)[i], 1);
        cr_assert_eq(psd_samples_initials(samples)[i], 0);
        cr_assert_eq(memcmp(psd_samples_tag(samples, i, &size), "tag", 3), 0);
        cr_assert_eq(size, 3);
    }
    cr_expect_eq(psd_samples_group_count(samples), n_groups);
    cr_expect_eq(psd_samples_groups(samples)[5000], n_groups);
    cr_expect_eq(psd_samples_entry_count(samples), 2 * n_groups);
    cr_expect_eq(psd_samples_starts(samples)[n_groups], 2 * n_groups);
}

Test(samples, going_back_takes_away_what_came_since)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    ps_samples_mark_t mark;

    cr_assert(add(samples, 1, 2));
    mark = ps_samples_mark(samples);
    cr_assert(add(samples, 2, 3));
    ps_samples_add(samples, 5, 5); /* half a group, half a sample */
    ps_samples_go_back(samples, mark);
    cr_expect_eq(psd_samples_count(samples), 1);
    cr_expect_eq(psd_samples_group_count(samples), 2);
    cr_expect_eq(psd_samples_entry_count(samples), 4);
    cr_expect_eq(psd_samples_starts(samples)[2], 4);
    cr_expect_eq(psd_samples_groups(samples)[1], 2);
}

Test(samples, merging_makes_one_group_of_the_last_sample)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();

    cr_assert(add(samples, 1, 2));
    cr_assert(add(samples, 2, 3));
    cr_assert(ps_samples_merge(samples));
    cr_expect_eq(psd_samples_group_count(samples), 3);
    cr_expect_eq(psd_samples_group_ids(samples)[2], 0);
    cr_expect_eq(psd_samples_starts(samples)[3], 10);
    cr_assert(add(samples, 3, 0));
    cr_assert(ps_samples_merge(samples));
    cr_expect_eq(psd_samples_group_count(samples), 4, "also of none");
    cr_expect_eq(psd_samples_starts(samples)[4], 10);
}

/* As many groups as fit, then a sample of none. */
Test(samples, merging_makes_room_for_the_group_of_none)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();

    while (samples->n_groups < samples->groups_capacity) {
        cr_assert(ps_samples_reserve(samples, 1, 0));
        ps_samples_begin(samples, 1);
        ps_samples_end_group(samples, 0);
        ps_samples_end(samples);
    }
    cr_assert(ps_samples_reserve(samples, 0, 0));
    ps_samples_begin(samples, 1);
    ps_samples_end(samples);
    cr_assert(ps_samples_merge(samples));
    cr_expect_leq(samples->n_groups, samples->groups_capacity);
    cr_expect_eq(samples->starts[samples->n_groups], 0);
}

/* Two groups of keys that do not ascend. */
static void add_keys(psd_samples_t *samples)
{
    cr_assert(ps_samples_reserve(samples, 2, 4));
    ps_samples_begin(samples, 1);
    ps_samples_add(samples, 9, 1);
    ps_samples_add(samples, 2, 2);
    ps_samples_end_group(samples, 7);
    ps_samples_add(samples, 9, 3);
    ps_samples_add(samples, 5, 4);
    ps_samples_end_group(samples, 8);
    ps_samples_end(samples);
}

Test(samples, merged_keys_ascend_and_equal_ones_keep_their_order)
{
    static const uint64_t keys[] = {2, 5, 9, 9};
    static const float values[] = {2, 4, 1, 3};
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();

    add_keys(samples);
    cr_assert(ps_samples_merge(samples));
    cr_expect_arr_eq(psd_samples_keys(samples), keys, sizeof keys);
    cr_expect_arr_eq(psd_samples_values(samples), values, sizeof values);
}

Test(samples, merged_dense_groups_count_on)
{
    static const uint64_t keys[] = {0, 1, 2, 3};
    static const float values[] = {1, 2, 3, 4};
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();

    samples->entries = PSD_ENTRIES_DENSE;
    add_keys(samples);
    cr_assert(ps_samples_merge(samples));
    cr_expect_arr_eq(psd_samples_keys(samples), keys, sizeof keys);
    cr_expect_arr_eq(psd_samples_values(samples), values, sizeof values);
}

static psd_status_t fill(void *fixture)
{
    psd_samples_t *samples = psd_samples_new();
    psd_status_t rc = samples == NULL ? PSD_NOMEM : PSD_OK;

    (void)fixture;
    for (size_t i = 0; rc == PSD_OK && i < 2000; i++) {
        rc = add(samples, 1, 2) ? PSD_OK : PSD_NOMEM;
    }
    if (samples != NULL) {
        cr_expect_eq(samples->starts[samples->n_groups] <= samples->n_entries, 1);
    }
    psd_samples_destroy(&samples);
    cr_expect_null(samples);
    return rc;
}

Test(samples, no_memory_leaves_it_whole)
{
    cr_assert_null(fail_alloc_sweep(fill, NULL));
}
