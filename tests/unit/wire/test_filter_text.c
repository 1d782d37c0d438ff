/* SPDX-License-Identifier: Apache-2.0 */
/* wire/filters/filter.h: filters as text, and what peers offer. */
#include "wire/filters/filter.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/alloc.h"

#define ALLOWED                                                            \
    "cache, delta, lz4 or zstd, f16, bf16 or fixed1..fixed4, topk=SHARE, " \
    "threshold=SIZE or skip=SHARE, joined by +; or none"

static ps_filter_t parse(const char *text)
{
    ps_filter_t filter = {0};

    cr_assert_eq(ps_filter_parse(text, &filter, NULL), PSD_OK, "%s", text);
    return filter;
}

static void assert_refused(const char *text, const char *why)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_filter_t filter = {.delta = true};

    cr_assert_eq(ps_filter_parse(text, &filter, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), why);
    cr_assert(filter.delta);
}

Test(filter_text, words_come_in_any_order)
{
    ps_filter_t filter = parse("bf16,cache+zstd,topk=0.25+delta");

    cr_assert(filter.cache && filter.delta);
    cr_assert_eq(filter.pack, PS_PACK_ZSTD);
    cr_assert_eq(filter.values_as, PS_VALUES_BF16);
    cr_assert_eq(filter.thin, PS_THIN_TOPK);
    cr_assert_eq(filter.thin_amount, 0.25);
}

Test(filter_text, format_has_one_order_and_parses_again)
{
    static const struct {
        const char *in;
        const char *out;
    } known[] = {
        {"none", "none"},
        {"f16", "f16"},
        {"fixed3,lz4", "lz4+fixed3"},
        {"delta+cache", "cache+delta"},
        {"skip=0.1", "skip=0.10000000000000001"},
        {"threshold=1e-300+fixed1+zstd+delta+cache", "cache+delta+zstd+fixed1+threshold=1e-300"},
        {"threshold=1.2345678901234568e-300+fixed1+zstd+delta+cache",
         "cache+delta+zstd+fixed1+threshold=1.2345678901234568e-300"},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        ps_filter_t filter = parse(known[i].in);
        char text[PS_FILTER_TEXT_MAX] = "";
        ps_filter_t again = {0};

        ps_filter_format(&filter, text);
        cr_assert_str_eq(text, known[i].out);
        again = parse(text);
        cr_assert_eq(again.cache, filter.cache);
        cr_assert_eq(again.delta, filter.delta);
        cr_assert_eq(again.pack, filter.pack);
        cr_assert_eq(again.values_as, filter.values_as);
        cr_assert_eq(again.thin, filter.thin);
        cr_assert_eq(again.thin_amount, filter.thin_amount);
        cr_assert_eq(ps_filter_is_none(&filter), i == 0);
    }
}

Test(filter_text, wrong_words_are_named)
{
    assert_refused("lz5", "filter is \"lz5\"; allowed: " ALLOWED);
    assert_refused("", "filter is \"\"; allowed: " ALLOWED);
    assert_refused("f16+", "filter is \"\"; allowed: " ALLOWED);
    assert_refused("none+f16", "filter is \"none\"; allowed: " ALLOWED);
    assert_refused("topk", "filter is \"topk\"; allowed: " ALLOWED);
    assert_refused("top=1", "filter is \"top=1\"; allowed: " ALLOWED);
    assert_refused("=1", "filter is \"=1\"; allowed: " ALLOWED);
    assert_refused("f16=1", "filter is \"f16=1\"; allowed: " ALLOWED);
    assert_refused("aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee",
                   "filter is \"aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd\"; "
                   "allowed: " ALLOWED);
}

Test(filter_text, one_of_each_kind)
{
    static const char *const second[][2] = {
        {"lz4+zstd", "zstd"},     {"f16+bf16", "bf16"},     {"fixed1,fixed1", "fixed1"},
        {"cache+cache", "cache"}, {"delta+delta", "delta"}, {"topk=0.1+skip=0.1", "skip=0.1"},
    };

    for (size_t i = 0; i < sizeof second / sizeof second[0]; i++) {
        char why[400] = "";

        (void)snprintf(why, sizeof why,
                       "filter names \"%s\" and another of its kind; allowed: one of each of %s",
                       second[i][1], ALLOWED);
        assert_refused(second[i][0], why);
    }
}

Test(filter_text, amounts_are_shares_or_sizes)
{
    static const char *const wrong[] = {
        "topk=0", "topk=1",      "topk=-0.5",     "skip=1",    "skip=nan",
        "skip=",  "threshold=0", "threshold=inf", "topk=0.5x", "threshold=-1",
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char why[200] = "";

        (void)snprintf(why, sizeof why,
                       "filter is \"%s\"; allowed: a share above 0 and below "
                       "1, or a size above 0",
                       wrong[i]);
        assert_refused(wrong[i], why);
    }
    cr_assert_eq(parse("threshold=20").thin_amount, 20);
}

Test(filter_text, integers_are_not_rounded_or_thinned)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(psd_error_destroy) psd_error_t *other = psd_error_new();
    ps_filter_t rounds = parse("cache+fixed2");
    ps_filter_t thins = parse("topk=0.5");
    ps_filter_t exact = parse("cache+delta+lz4");

    cr_assert_eq(ps_filter_check(&rounds, PS_TYPE_I64, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "filter fixed2 rounds values; allowed for f32 and f64, "
                                          "and these are i64");
    cr_assert_eq(ps_filter_check(&thins, PS_TYPE_I32, other), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(other),
                     "filter topk thins values; allowed for f32 and f64, and "
                     "these are i32");
    cr_assert_eq(ps_filter_check(&exact, PS_TYPE_I32, NULL), PSD_OK);
    cr_assert_eq(ps_filter_check(&rounds, PS_TYPE_F64, NULL), PSD_OK);
    cr_assert_eq(ps_filter_check(&thins, PS_TYPE_F32, NULL), PSD_OK);
}

Test(filter_text, bits_say_what_is_needed_and_offered)
{
    static const struct {
        const char *text;
        uint32_t bits;
    } known[] = {
        {"none", 0},
        {"cache", PS_FILTER_BIT_CACHE},
        {"delta+lz4", PS_FILTER_BIT_DELTA | PS_FILTER_BIT_LZ4},
        {"zstd+f16", PS_FILTER_BIT_ZSTD | PS_FILTER_BIT_F16},
        {"bf16+skip=0.5", PS_FILTER_BIT_BF16},
        {"fixed1", PS_FILTER_BIT_FIXED},
        {"fixed4", PS_FILTER_BIT_FIXED},
    };
    ps_filter_t most = parse("cache+delta+zstd+fixed2+topk=0.5");

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        ps_filter_t filter = parse(known[i].text);
        ps_filter_t within = ps_filter_within(&most, known[i].bits);

        cr_assert_eq(ps_filter_bits(&filter), known[i].bits);
        cr_assert_eq(ps_filter_bits(&within), known[i].bits & ps_filter_bits(&most));
        cr_assert_eq(within.thin, PS_THIN_TOPK);
    }
}
