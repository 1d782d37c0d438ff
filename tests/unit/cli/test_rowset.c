/* SPDX-License-Identifier: Apache-2.0 */
/* cli/tables/rowset.h: lists of rows and columns. */
#include "cli/tables/rowset.h"

#include <criterion/criterion.h>

#include "base/alloc.h"

static psd_status_t parse(ps_rowset_t *set, const char *text, uint64_t max, psd_error_t *err)
{
    ps_rowset_done(set);
    psd_error_clear(err);
    return ps_rowset_parse(set, text, "ROWS", max, err);
}

Test(rowset, numbers_ranges_and_all)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_rowset_done) ps_rowset_t set = {0};

    cr_assert_eq(parse(&set, "7", 99, err), PSD_OK);
    cr_assert_eq(set.n_spans, 1);
    cr_assert(set.spans[0].is_single);
    cr_assert_eq(set.spans[0].last, 7);
    cr_assert_eq(parse(&set, "5,1,10-19,7-7", 99, err), PSD_OK);
    cr_assert_eq(set.n_spans, 4);
    cr_assert_eq(set.spans[0].first, 5);
    cr_assert_eq(set.spans[2].first, 10);
    cr_assert_eq(set.spans[2].last, 19);
    cr_assert_not(set.spans[3].is_single);
    cr_assert_not(set.all);
    cr_assert_eq(parse(&set, "all", 0, err), PSD_OK);
    cr_assert(set.all);
    cr_assert_eq(parse(&set, "0-18446744073709551615", UINT64_MAX, err), PSD_OK);
    cr_assert_eq(set.spans[0].last, UINT64_MAX);
}

Test(rowset, what_is_wrong_is_quoted)
{
    static const char *const WRONG[] = {
        "",      ",", "1,",   "-",     "1-",  "-1",  "3-1",
        "1-2-3", "x", "1, 2", "all,1", "0x1", "1.5", "18446744073709551616"};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_rowset_done) ps_rowset_t set = {0};

    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        cr_assert_eq(parse(&set, WRONG[i], UINT64_MAX, err), PSD_USAGE, "%s", WRONG[i]);
    }
    cr_assert_eq(parse(&set, "1,x", 99, err), PSD_USAGE);
    cr_assert_str_eq(psd_error_text(err), "ROWS has \"x\"; allowed: 7, 1,3,5, 10-19, all");
    cr_assert_eq(parse(&set, "5,100", 99, err), PSD_RANGE);
    cr_assert_str_eq(psd_error_text(err), "ROWS has 100; the last one is 99");
}

Test(rowset, numbers_as_an_array_are_bounded)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_rowset_done) ps_rowset_t set = {0};
    uint32_t *numbers = NULL;
    size_t n = 0;

    cr_assert_eq(parse(&set, "4,1-3", 9, err), PSD_OK);
    cr_assert_eq(ps_rowset_u32(&set, "--cols", 4, &numbers, &n, err), PSD_OK);
    cr_assert_eq(n, 4);
    cr_assert_eq(numbers[0], 4);
    cr_assert_eq(numbers[1], 1);
    cr_assert_eq(numbers[3], 3);
    ps_free(numbers);
    cr_assert_eq(ps_rowset_u32(&set, "--cols", 3, &numbers, &n, err), PSD_LIMIT);
    cr_assert_eq(parse(&set, "0-4294967294", UINT32_MAX, err), PSD_OK);
    cr_assert_eq(ps_rowset_u32(&set, "--cols", 1000, &numbers, &n, err), PSD_LIMIT);
    cr_assert_eq(parse(&set, "all", 9, err), PSD_OK);
    cr_assert_eq(ps_rowset_u32(&set, "--cols", 3, &numbers, &n, err), PSD_OK);
    cr_assert_null(numbers);
}
