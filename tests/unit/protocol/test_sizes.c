/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/agent/sizes.h"
#include "support/fail_alloc.h"

static ps_sizes_t sizes;

static void drop_sizes(void)
{
    ps_sizes_done(&sizes);
}

TestSuite(sizes, .fini = drop_sizes);

/* One shard that has partitions 0 .. n-1 of table 7. */
static void learn(uint32_t n, uint64_t bytes)
{
    ps_size_info_t *infos = ps_alloc(n + 1, sizeof *infos);
    ps_shard_answer_t answer = {.sizes = infos, .n_sizes = n};
    const ps_answers_t answers = {.at = &answer, .n = 1};

    for (uint32_t i = 0; i < n; i++) {
        infos[i] = (ps_size_info_t){.table = 7, .partition = i, .bytes = bytes};
    }
    ps_sizes_learn(&sizes, &answers);
    ps_free(infos);
}

/* How many a beat at that time tells; one of them into *ret_partition. */
static size_t tell(uint64_t now_ms, uint64_t bytes, bool seen[])
{
    ps_size_info_t due[PS_SIZES_MAX];
    size_t n = ps_sizes_take_due(&sizes, now_ms, due);

    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(due[i].table, 7);
        cr_assert_eq(due[i].bytes, bytes);
        if (seen != NULL) {
            seen[due[i].partition] = true;
        }
    }
    return n;
}

Test(sizes, are_told_once)
{
    learn(3, 1000);
    cr_assert_eq(tell(1, 1000, NULL), 3);
    cr_assert_eq(tell(2, 1000, NULL), 0, "nothing has changed");
    learn(3, 2000);
    cr_assert_eq(tell(3, 2000, NULL), 3);
    cr_assert_eq(tell(3 + 2 * PS_SIZES_SETTLE_MS, 2000, NULL), 0);
}

Test(sizes, that_differ_by_little_are_told_later)
{
    learn(1, 1000);
    cr_assert_eq(tell(1, 1000, NULL), 1);
    learn(1, 1001);
    cr_assert_eq(tell(2, 1001, NULL), 0);
    cr_assert_eq(tell(1 + PS_SIZES_SETTLE_MS, 1001, NULL), 1);
}

/* A beat with all of them would have been 300 kB. */
Test(sizes, of_ten_thousand_partitions_go_with_many_beats)
{
    static bool seen[10000];
    size_t n_beats = 0;
    size_t n = 0;

    learn(10000, 50);
    for (uint64_t now_ms = 1; n < 10000; now_ms++, n_beats++) {
        size_t told = tell(now_ms, 50, seen);

        cr_assert(told > 0 && told <= PS_SIZES_MAX);
        n += told;
    }
    cr_assert_eq(n_beats, (10000 + PS_SIZES_MAX - 1) / PS_SIZES_MAX);
    for (size_t i = 0; i < 10000; i++) {
        cr_assert(seen[i], "%zu had no turn", i);
    }
    cr_assert_eq(tell(99, 50, NULL), 0);
}

Test(sizes, that_grow_all_the_time_keep_nobody_from_its_turn)
{
    static bool seen[2 * PS_SIZES_MAX];
    size_t n = 0;

    for (uint64_t i = 1; i <= 2; i++) {
        learn(2 * PS_SIZES_MAX, 1000 * i);
        cr_assert_eq(tell(i, 1000 * i, seen), PS_SIZES_MAX);
    }
    for (size_t i = 0; i < 2 * PS_SIZES_MAX; i++) {
        n += seen[i] ? 1 : 0;
    }
    cr_assert_eq(n, 2 * PS_SIZES_MAX);
}

Test(sizes, of_partitions_that_left_are_forgotten)
{
    learn(700, 10);
    learn(1, 10);
    for (int i = 0; i < 3; i++) { /* a part of them at a time */
        learn(1, 10);
    }
    cr_assert_eq(sizes.by_partition.count, 1);
}

Test(sizes, are_told_anew_to_a_registry_that_begins_again)
{
    learn(2, 10);
    cr_assert_eq(tell(1, 10, NULL), 2);
    ps_sizes_forget(&sizes);
    cr_assert_eq(tell(2, 10, NULL), 2);
}

static psd_status_t learn_and_tell(void *fixture)
{
    ps_sizes_t own = {0};
    ps_size_info_t infos[2] = {{.table = 1}, {.table = 2}};
    ps_shard_answer_t answer = {.sizes = infos, .n_sizes = 2};
    const ps_answers_t answers = {.at = &answer, .n = 1};
    ps_size_info_t due[PS_SIZES_MAX];
    bool done = false;

    (void)fixture;
    ps_sizes_learn(&own, &answers);
    done = own.by_partition.count == 2 && ps_sizes_take_due(&own, 1, due) == 2;
    ps_sizes_done(&own);
    return done ? PSD_OK : PSD_NOMEM;
}

Test(sizes, that_find_no_memory_are_told_later)
{
    cr_assert_null(fail_alloc_sweep(learn_and_tell, NULL));
}
