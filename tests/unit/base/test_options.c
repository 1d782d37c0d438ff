/* SPDX-License-Identifier: Apache-2.0 */
/* base/options.h: values, sources in their order, and the one text of each mistake. */
#include "base/options.h"

#include <criterion/criterion.h>
#include <string.h>

#include "support/fail_alloc.h"

typedef struct values {
    bool loud;
    const char *name;
    uint32_t small;
    uint64_t large;
    uint64_t count;
    int32_t delay;
    double rate;
    uint32_t wait_ms;
    uint32_t color;
} values_t;

#define AT(member) offsetof(values_t, member)
static const ps_opt_t OPTIONS[] = {
    {.kind = PS_OPT_HEADING, .help = "Everything:"},
    {.name = "loud", .letter = 'l', .offset = AT(loud)},
    {.name = "name", .value = "NAME", .kind = PS_OPT_TEXT, .offset = AT(name), .many = true},
    PS_OPT_NUMBER("small", "N", PS_OPT_U32, AT(small), 2, 9, "of nine"),
    PS_OPT_ROW("large", "N", PS_OPT_U64, AT(large), "any"),
    PS_OPT_NUMBER("count", "N", PS_OPT_COUNT, AT(count), 1, 1e9, "of many"),
    PS_OPT_NUMBER("delay", "N", PS_OPT_I32, AT(delay), -1, 5, "of few"),
    PS_OPT_NUMBER("rate", "F", PS_OPT_REAL, AT(rate), 1e-9, 1, "a part"),
    PS_OPT_NUMBER("wait", "TIME", PS_OPT_DURATION, AT(wait_ms), 10, 60000, "of a wait"),
    PS_OPT_ROW("color", "red|green", PS_OPT_CHOICE, AT(color), "of light"),
    PS_OPT_END,
};
#undef AT
static const ps_opt_t MORE[] = {
    {.name = "help", .letter = 'h'},
    {.name = "row-format", .value = "WORD", .kind = PS_OPT_TEXT, .fallback = "dense"},
    PS_OPT_END};

static values_t values;
static ps_opts_t opts;
static psd_error_t *err;

static void open_options(void)
{
    err = psd_error_new();
}

static void close_options(void)
{
    ps_opts_done(&opts);
    psd_error_destroy(&err);
}

TestSuite(options, .init = open_options, .fini = close_options);

static psd_status_t read_words(const char *const *words)
{
    int n = 0;

    while (words[n] != NULL) {
        n++;
    }
    ps_opts_done(&opts);
    psd_error_clear(err);
    values = (values_t){0};
    opts = (ps_opts_t){.lists = {OPTIONS, MORE}, .to = &values};
    return ps_opts_read(&opts, n, (char *const *)words, NULL, NULL, err);
}

#define READ(...) read_words((const char *const[]){"x", __VA_ARGS__, NULL})
#define REFUSED(text, ...)                                                      \
    do {                                                                        \
        cr_assert_eq(READ(__VA_ARGS__), PSD_USAGE);                             \
        cr_assert_str_eq(psd_error_text(err), text, "%s", psd_error_text(err)); \
    } while (0)

Test(options, each_kind_goes_to_its_place)
{
    cr_assert_eq(READ("-l", "--name=a", "--small", "9", "--large=18446744073709551615", "--count",
                      "1.5k", "--delay", "-1", "--rate", "0.5", "--wait", "1.5", "--color",
                      "green"),
                 PSD_OK, "%s", psd_error_text(err));
    cr_assert(values.loud);
    cr_assert_str_eq(values.name, "a");
    cr_assert_eq(values.small, 9);
    cr_assert_eq(values.large, UINT64_MAX);
    cr_assert_eq(values.count, 1500);
    cr_assert_eq(values.delay, -1);
    cr_assert_eq(values.rate, 0.5);
    cr_assert_eq(values.wait_ms, 1500);
    cr_assert_eq(values.color, 1);
    cr_assert_eq(ps_opts_u64(&opts, "count"), 1500);
    cr_assert_eq(ps_opts_i64(&opts, "delay"), -1);
    cr_assert_eq(ps_opts_ms(&opts, "wait"), 1500);
}

Test(options, the_last_value_wins_but_of_many_all_stay)
{
    cr_assert_eq(READ("--small", "3", "--small", "4", "--name", "a", "--name=b", "--name", "c"),
                 PSD_OK);
    cr_assert_eq(values.small, 4);
    cr_assert_str_eq(ps_opts_text(&opts, "name"), "a,b,c");
}

Test(options, a_mistake_has_one_text)
{
    REFUSED("unknown option \"--smal\"; did you mean --small?", "--smal=3");
    REFUSED("unknown option \"--frob\"", "--frob");
    REFUSED("unknown option \"-z\"", "-z");
    REFUSED("\"word\" is not an option; allowed: options only", "word");
    REFUSED("\"-l\" is not an option; allowed: options only", "--", "-l");
    REFUSED("--small needs a value: N", "--small");
    REFUSED("--loud takes no value", "--loud=1");
    REFUSED("--loud takes no value", "-l1");
    REFUSED("--name is empty", "--name=");
    REFUSED("--small is \"1\"; allowed: 2 to 9", "--small", "1");
    REFUSED("--large is \"-1\"; allowed: 0 to 18446744073709551615", "--large", "-1");
    REFUSED("--count is \"0\"; allowed: 1 to 1000000000, also like 1e9, 64M, 1.5G", "--count", "0");
    REFUSED("--delay is \"6\"; allowed: -1 to 5", "--delay", "6");
    REFUSED("--rate is \"nan\"; allowed: 1e-09 to 1", "--rate", "nan");
    REFUSED("--wait is \"1h\"; allowed: 10ms to 60s, like 250ms, 10s, 5m", "--wait", "1h");
    REFUSED("--color is \"gren\"; did you mean \"green\"? allowed: red, green", "--color", "gren");
    REFUSED("--color is \"blue\"; allowed: red, green", "--color", "blue");
}

Test(options, nothing_is_read_after_help)
{
    cr_assert_eq(READ("-l", "--help", "--frob"), PSD_OK);
    cr_assert(ps_opts_on(&opts, "help"));
}

static char *get(const char *name)
{
    static char sparse[] = "sparse", nine[] = "9", empty[] = "";

    return strcmp(name, "X_ROW_FORMAT") == 0 ? sparse
           : strcmp(name, "X_SMALL") == 0    ? nine
           : strcmp(name, "X_HELP") == 0     ? sparse
                                             : empty;
}

Test(options, a_later_source_fills_what_is_not_given)
{
    cr_assert_eq(READ("--small", "3"), PSD_OK);
    cr_assert_str_eq(ps_opts_text(&opts, "row-format"), "dense");
    cr_assert_not(ps_opts_given(&opts, "row-format"));
    cr_assert_eq(ps_opts_read_env(&opts, "X_", get, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_str_eq(ps_opts_text(&opts, "row-format"), "sparse");
    cr_assert_eq(values.small, 3);
    cr_assert_not(ps_opts_given(&opts, "help"));
    cr_assert_eq(ps_opts_offer(&opts, ps_opts_find(&opts, "small"), "4", "f:1: small", err),
                 PSD_OK);
    cr_assert_eq(values.small, 3);
    cr_assert_eq(ps_opts_offer(&opts, ps_opts_find(&opts, "small"), "x", "f:1: small", err),
                 PSD_USAGE);
    cr_assert_str_eq(psd_error_text(err), "f:1: small is \"x\"; allowed: 2 to 9");
}

static psd_status_t read_many(void *unused)
{
    char *const words[] = {(char *)"x", (char *)"--name=a", (char *)"--name=b"};
    ps_opts_t many = {.lists = {OPTIONS, MORE}};
    psd_status_t rc = ps_opts_read(&many, 3, words, NULL, NULL, NULL);

    (void)unused;
    ps_opts_done(&many);
    return rc;
}

Test(options, end_well_without_memory)
{
    cr_assert_null(fail_alloc_sweep(read_many, NULL));
}
