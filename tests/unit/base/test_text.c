/* SPDX-License-Identifier: Apache-2.0 */
/* base/text.h: what people type. */
#include "base/text.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof(array)[0])

/* What no reader of numbers takes. */
static const char *const NO_NUMBERS[] = {"",    " ", " 1", "1 ",  "\t1",  "x",     "1x",  "--1",
                                         "+-1", "-", "+",  "1,5", "0x10", "1_000", "1\n", "١"};

Test(text, u64_takes_digits_only)
{
    uint64_t value = 0;

    cr_assert(ps_text_u64("0", &value));
    cr_assert_eq(value, 0);
    cr_assert(ps_text_u64("007", &value));
    cr_assert_eq(value, 7);
    cr_assert(ps_text_u64("18446744073709551615", &value));
    cr_assert_eq(value, UINT64_MAX);
    cr_assert_not(ps_text_u64("18446744073709551616", &value));
    cr_assert_not(ps_text_u64("99999999999999999999999", &value));
    cr_assert_not(ps_text_u64("-1", &value));
    cr_assert_not(ps_text_u64("+1", &value));
    cr_assert_not(ps_text_u64("1.0", &value));
    for (size_t i = 0; i < N_OF(NO_NUMBERS); i++) {
        cr_assert_not(ps_text_u64(NO_NUMBERS[i], &value), "%s", NO_NUMBERS[i]);
    }
    cr_assert_eq(value, UINT64_MAX);
}

Test(text, i64_takes_a_sign)
{
    int64_t value = 0;

    cr_assert(ps_text_i64("-5", &value));
    cr_assert_eq(value, -5);
    cr_assert(ps_text_i64("+5", &value));
    cr_assert_eq(value, 5);
    cr_assert(ps_text_i64("9223372036854775807", &value));
    cr_assert_eq(value, INT64_MAX);
    cr_assert(ps_text_i64("-9223372036854775808", &value));
    cr_assert_eq(value, INT64_MIN);
    cr_assert_not(ps_text_i64("9223372036854775808", &value));
    cr_assert_not(ps_text_i64("-9223372036854775809", &value));
    for (size_t i = 0; i < N_OF(NO_NUMBERS); i++) {
        cr_assert_not(ps_text_i64(NO_NUMBERS[i], &value), "%s", NO_NUMBERS[i]);
    }
    cr_assert_eq(value, INT64_MIN);
}

Test(text, f64_takes_decimal_numbers)
{
    static const struct {
        const char *text;
        double value;
    } right[] = {{"0", 0},          {"1.5", 1.5},      {"-2e-3", -0.002},
                 {"+.5", 0.5},      {"5.", 5},         {"1E3", 1000},
                 {"1e-400", 0},     {"inf", INFINITY}, {"-Infinity", -INFINITY},
                 {"+INF", INFINITY}};
    double value = 0;

    for (size_t i = 0; i < N_OF(right); i++) {
        cr_assert(ps_text_f64(right[i].text, &value), "%s", right[i].text);
        cr_assert(value == right[i].value, "%s", right[i].text);
    }
    cr_assert(ps_text_f64("NaN", &value));
    cr_assert(isnan(value));
}

Test(text, f64_refuses_hex_and_what_is_too_big)
{
    static const char *const wrong[] = {"0x1p3", "0X10", "nan(1)", "infi",  "1e999", "-1e999",
                                        "1e",    ".",    "e5",     "1.5.2", "1.5f"};
    double value = 42;

    for (size_t i = 0; i < N_OF(wrong); i++) {
        cr_assert_not(ps_text_f64(wrong[i], &value), "%s", wrong[i]);
    }
    for (size_t i = 0; i < N_OF(NO_NUMBERS); i++) {
        cr_assert_not(ps_text_f64(NO_NUMBERS[i], &value), "%s", NO_NUMBERS[i]);
    }
    cr_assert(value == 42);
}

Test(text, f64_does_not_look_at_the_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C"};
    double value = 0;

    /* Whichever of them with a decimal comma is installed; C always is. */
    for (size_t i = 0; i < N_OF(names); i++) {
        if (setlocale(LC_ALL, names[i]) != NULL) {
            break;
        }
    }
    cr_assert(ps_text_f64("1.5", &value));
    cr_assert(value == 1.5);
    cr_assert_not(ps_text_f64("1,5", &value));
}

Test(text, duration_has_units_down_to_a_millisecond)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } right[] = {{"250ms", 250},
                 {"10s", 10000},
                 {"5m", 300000},
                 {"1h", 3600000},
                 {"0", 0},
                 {"0h", 0},
                 {"3", 3000},
                 {"1.5", 1500},
                 {"1.5h", 5400000},
                 {"0.001", 1},
                 {"1.0ms", 1},
                 {"0.25m", 15000},
                 {"2.000", 2000},
                 {"0.00005h", 180},
                 {"0.1250000000s", 125},
                 {"18446744073709551615ms", UINT64_MAX}};
    uint64_t ms = 0;

    for (size_t i = 0; i < N_OF(right); i++) {
        cr_assert(ps_text_duration(right[i].text, &ms), "%s", right[i].text);
        cr_assert_eq(ms, right[i].ms, "%s", right[i].text);
    }
}

Test(text, duration_refuses_the_rest)
{
    static const char *const wrong[] = {"",
                                        "ms",
                                        "10 s",
                                        "10S",
                                        "10sec",
                                        "10d",
                                        "-1s",
                                        "+1s",
                                        ".5s",
                                        "1.s",
                                        "1.",
                                        "1.5.5s",
                                        "0.0001",
                                        "0.5ms",
                                        "0.00000001h",
                                        "1e3",
                                        "inf",
                                        "1s ",
                                        "1,5s",
                                        "18446744073709551616ms",
                                        "18446744073709551615s",
                                        "18446744073709551.616",
                                        "0.0000055h",
                                        "0.000005000000001h"};
    uint64_t ms = 42;

    for (size_t i = 0; i < N_OF(wrong); i++) {
        cr_assert_not(ps_text_duration(wrong[i], &ms), "%s", wrong[i]);
    }
    cr_assert_eq(ms, 42);
}

Test(text, size_has_powers_of_1024)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } right[] = {{"4096", 4096},
                 {"4096B", 4096},
                 {"64k", UINT64_C(64) << 10},
                 {"64K", UINT64_C(64) << 10},
                 {"64kB", UINT64_C(64) << 10},
                 {"16M", UINT64_C(16) << 20},
                 {"16Mi", UINT64_C(16) << 20},
                 {"16MiB", UINT64_C(16) << 20},
                 {"2GB", UINT64_C(2) << 30},
                 {"3T", UINT64_C(3) << 40},
                 {"0T", 0},
                 {"16777215TiB", UINT64_C(16777215) << 40},
                 {"18446744073709551615", UINT64_MAX}};
    uint64_t bytes = 0;

    for (size_t i = 0; i < N_OF(right); i++) {
        cr_assert(ps_text_size(right[i].text, &bytes), "%s", right[i].text);
        cr_assert_eq(bytes, right[i].bytes, "%s", right[i].text);
    }
}

Test(text, size_refuses_the_rest)
{
    static const char *const wrong[] = {"",
                                        "k",
                                        "1.5G",
                                        "-1",
                                        "+1",
                                        "1 k",
                                        "1kb",
                                        "1m",
                                        "1g",
                                        "1P",
                                        "1ki b",
                                        "1Bi",
                                        "1iB",
                                        "1MBB",
                                        "1MiBi",
                                        "16777216T",
                                        "18446744073709551616",
                                        " 1",
                                        "1 "};
    uint64_t bytes = 42;

    for (size_t i = 0; i < N_OF(wrong); i++) {
        cr_assert_not(ps_text_size(wrong[i], &bytes), "%s", wrong[i]);
    }
    cr_assert_eq(bytes, 42);
}

Test(text, count_has_powers_of_1000)
{
    static const struct {
        const char *text;
        uint64_t count;
    } right[] = {
        {"0", 0},
        {"7", 7},
        {"1000000", 1000000},
        {"18446744073709551615", UINT64_MAX},
        {"1e9", 1000000000},
        {"2.5e3", 2500},
        {"64k", 64000},
        {"64K", 64000},
        {"64M", 64000000},
        {"1.5G", 1500000000},
        {"1T", UINT64_C(1000000000000)},
        {"9007199254740992.0", UINT64_C(1) << 53},
    };

    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        uint64_t count = 1;

        cr_assert(ps_text_count(right[i].text, &count), "%s", right[i].text);
        cr_assert_eq(count, right[i].count, "%s", right[i].text);
    }
}

Test(text, count_refuses_the_rest)
{
    static const char *const wrong[] = {
        "",     " 1",    "1 ",
        "-1",   "+1",    "1.5",
        "1e-3", "0x10",  "k",
        "1kB",  "1Ki",   "1kk",
        "1m",   "inf",   "nan",
        "1e16", "1e300", "1.5e",
        ".5k",  "1,000", "11111111111111111111111111111111111111111111k",
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint64_t count = 77;

        cr_assert_not(ps_text_count(wrong[i], &count), "%s", wrong[i]);
        cr_assert_eq(count, 77);
    }
}

Test(text, name_is_short_and_plain)
{
    char name[65];

    cr_assert(ps_text_is_name("w"));
    cr_assert(ps_text_is_name("Weights_2.layer-1"));
    cr_assert(ps_text_is_name("0"));
    cr_assert(ps_text_is_name("_x"));
    cr_assert_not(ps_text_is_name(""));
    cr_assert_not(ps_text_is_name(".x"));
    cr_assert_not(ps_text_is_name("-x"));
    cr_assert_not(ps_text_is_name("a b"));
    cr_assert_not(ps_text_is_name("a/b"));
    cr_assert_not(ps_text_is_name("a:b"));
    cr_assert_not(ps_text_is_name("\xC3\xA4"));
    memset(name, 'x', sizeof name);
    name[63] = '\0';
    cr_assert(ps_text_is_name(name));
    name[63] = 'x';
    name[64] = '\0';
    cr_assert_not(ps_text_is_name(name));
}

Test(text, suggest_finds_the_nearest)
{
    static const char *const words[] = {"create", "list",   "inspect", "drop",
                                        "export", "import", "id",      NULL};

    cr_assert_str_eq(ps_text_suggest("crate", words), "create");
    cr_assert_str_eq(ps_text_suggest("lsit", words), "list");
    cr_assert_str_eq(ps_text_suggest("inspekt", words), "inspect");
    cr_assert_str_eq(ps_text_suggest("list", words), "list");
    cr_assert_str_eq(ps_text_suggest("exprot", words), "export");
    /* One edit beats two, the first beats the second. */
    cr_assert_str_eq(ps_text_suggest("iport", words), "import");
    cr_assert_str_eq(ps_text_suggest("xxport", words), "export");
}

Test(text, suggest_stays_silent_when_nothing_is_near)
{
    static const char *const words[] = {"list", "id", NULL};
    static const char *const pushes[] = {"push", NULL};
    static const char *const none[] = {NULL};
    char word[200];

    cr_assert_null(ps_text_suggest("checkpoint", words));
    cr_assert_null(ps_text_suggest("", words));
    /* Two edits make any word of two letters from any other. */
    cr_assert_null(ps_text_suggest("xx", words));
    /* Nor do they bring two short words near. */
    cr_assert_null(ps_text_suggest("auth", pushes));
    cr_assert_null(ps_text_suggest("list", none));
    memset(word, 'l', sizeof word);
    word[sizeof word - 1] = '\0';
    cr_assert_null(ps_text_suggest(word, words));
}

Test(text, suggest_takes_words_of_the_longest_length)
{
    char word[64];
    char wrong[64];
    const char *words[] = {word, NULL};

    memset(word, 'l', sizeof word);
    word[63] = '\0';
    memcpy(wrong, word, sizeof wrong);
    wrong[31] = 'x';
    cr_assert_eq(ps_text_suggest(wrong, words), word);
}
