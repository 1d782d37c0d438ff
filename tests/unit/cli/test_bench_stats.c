/* SPDX-License-Identifier: Apache-2.0 */
/* cli/machine/bench_stats.h, bench_list.h, bench_keys.h: numbers of a bench. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "cli/machine/bench_keys.h"
#include "cli/bench/bench_list.h"
#include "cli/machine/bench_stats.h"

#define N_KEYS 1000

Test(bench_stats, medians_and_quantiles)
{
    double odd[] = {3, 1, 2};
    double even[] = {4, 1, 3, 2};
    double sorted[100];

    cr_assert_eq(ps_bench_median(odd, 3), 2);
    cr_assert_eq(ps_bench_median(even, 4), 2.5);
    cr_assert_eq(even[3], 4);
    for (int i = 0; i < 100; i++) {
        sorted[i] = i;
    }
    cr_assert_eq(ps_bench_quantile(sorted, 100, 0.99), 99);
    cr_assert_eq(ps_bench_quantile(sorted, 100, 0.5), 50);
    cr_assert_eq(ps_bench_quantile(sorted, 100, 1.0), 99);
    cr_assert_eq(ps_bench_quantile(sorted, 1, 0.999), 0);
}

Test(bench_stats, a_stat_has_both_ends)
{
    double numbers[] = {5, -1, 9, 2};
    ps_bench_stat_t stat = ps_bench_stat_of(numbers, 4);

    cr_assert_eq(stat.median, 3.5);
    cr_assert_eq(stat.min, -1);
    cr_assert_eq(stat.max, 9);
    stat = ps_bench_stat_of(numbers, 0);
    cr_assert_eq(stat.median, 0);
    cr_assert_eq(stat.max, 0);
}

Test(bench_list, sizes_with_commas)
{
    ps_bench_list_t list = {.n = 7};

    cr_assert_eq(ps_bench_list_read("4k,1,2M", "--sizes", 1 << 22, &list, NULL), PSD_OK);
    cr_assert_eq(list.n, 3);
    cr_assert_eq(list.numbers[0], 4096);
    cr_assert_eq(list.numbers[1], 1);
    cr_assert_eq(list.numbers[2], 2 << 20);
    cr_assert_eq(ps_bench_list_read("none", "--sizes", 9, &list, NULL), PSD_OK);
    cr_assert_eq(list.n, 0);
}

Test(bench_list, what_is_no_size_is_named)
{
    static const char *const WRONG[] = {"", "0", "4k,", ",1", "x", "1,-1", "8M", "1;2"};

    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        ps_bench_list_t list = {.n = 0};
        psd_error_t *err = psd_error_new();

        cr_assert_eq(ps_bench_list_read(WRONG[i], "--sizes", 4 << 20, &list, err), PSD_USAGE, "%s",
                     WRONG[i]);
        cr_assert_not_null(strstr(psd_error_text(err), "--sizes has"));
        psd_error_destroy(&err);
    }
}

Test(bench_list, no_more_than_fit)
{
    char text[2 * PS_BENCH_LIST_MAX + 2] = "1";
    ps_bench_list_t list = {.n = 0};

    for (size_t i = 1; i < PS_BENCH_LIST_MAX; i++) {
        (void)snprintf(text + strlen(text), 3, ",1");
    }
    cr_assert_eq(ps_bench_list_read(text, "--sizes", 1, &list, NULL), PSD_OK);
    (void)snprintf(text + strlen(text), 3, ",1");
    cr_assert_eq(ps_bench_list_read(text, "--sizes", 1, &list, NULL), PSD_USAGE);
}

/* Every list is ascending, without duplicates, and of the table's keys. */
static void check_list(bool hash, uint64_t n_rows, size_t n)
{
    static uint64_t keys[N_KEYS];
    static uint64_t spare[N_KEYS];
    static uint64_t all[N_KEYS * 4];
    static uint64_t spare_all[N_KEYS * 4];
    ps_rng_t rng = {.state = n_rows};
    size_t at = 0;

    for (size_t i = 0; i < n_rows; i++) {
        all[i] = hash ? ps_bench_key(i) : i;
    }
    ps_bench_sort_keys(all, spare_all, (size_t)n_rows);
    ps_bench_sample_keys(&rng, hash, n_rows, keys, spare, n);
    for (size_t i = 0; i < n; i++) {
        cr_assert(i == 0 || keys[i - 1] < keys[i]);
        while (at < n_rows && all[at] < keys[i]) {
            at++;
        }
        cr_assert(at < n_rows && all[at] == keys[i]);
    }
}

Test(bench_keys, a_list_is_a_sample_of_the_table)
{
    check_list(true, N_KEYS * 4, N_KEYS);
    check_list(true, N_KEYS + 1, N_KEYS);
    check_list(true, N_KEYS, N_KEYS);
    check_list(true, 1, 1);
    check_list(false, N_KEYS * 4, N_KEYS);
    check_list(false, N_KEYS, N_KEYS);
    check_list(false, 3 * N_KEYS + 1, 7);
}

Test(bench_keys, each_list_is_another_one)
{
    uint64_t one[100];
    uint64_t two[100];
    uint64_t spare[100];
    ps_rng_t rng = {.state = 5};

    ps_bench_sample_keys(&rng, true, 100000, one, spare, 100);
    ps_bench_sample_keys(&rng, true, 100000, two, spare, 100);
    cr_assert_neq(memcmp(one, two, sizeof one), 0);
}

Test(bench_keys, sorts_many_as_it_sorts_few)
{
    static uint64_t keys[N_KEYS];
    static uint64_t spare[N_KEYS];
    ps_rng_t rng = {.state = 8};

    for (size_t n = 0; n < 100; n++) {
        for (size_t i = 0; i < n; i++) {
            keys[i] = ps_rng_u64(&rng) >> (i % 60);
        }
        ps_bench_sort_keys(keys, spare, n);
        for (size_t i = 1; i < n; i++) {
            cr_assert_leq(keys[i - 1], keys[i]);
        }
    }
}

Test(bench_keys, sorts_by_every_byte)
{
    uint64_t keys[] = {UINT64_MAX, 0, UINT64_C(1) << 63, 256, 255, 1, 256};
    uint64_t spare[7];

    ps_bench_sort_keys(keys, spare, 7);
    cr_assert_eq(keys[0], 0);
    cr_assert_eq(keys[1], 1);
    cr_assert_eq(keys[2], 255);
    cr_assert_eq(keys[3], 256);
    cr_assert_eq(keys[4], 256);
    cr_assert_eq(keys[5], UINT64_C(1) << 63);
    cr_assert_eq(keys[6], UINT64_MAX);
}
