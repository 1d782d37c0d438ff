/* SPDX-License-Identifier: Apache-2.0 */
/* data/text/number.h: what is a number, and which; equal to strtod's. */
#include "data/text/number.h"

#include <criterion/criterion.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define N_OF(array) (sizeof(array) / sizeof(array)[0])

Test(number, u64_takes_digits_up_to_its_greatest)
{
    static const struct {
        const char *text;
        uint64_t value;
        size_t size; /* 0: refused */
    } cases[] = {{"0\n", 0, 1},
                 {"007:1\n", 7, 3},
                 {"18446744073709551615 \n", UINT64_MAX, 20},
                 {"18446744073709551616\n", 0, 0},
                 {"99999999999999999999\n", 0, 0},
                 {"000000000000000000000000001\n", 1, 27},
                 {"-1\n", 0, 0},
                 {"+1\n", 0, 0},
                 {"\n", 0, 0},
                 {"x\n", 0, 0}};

    for (size_t i = 0; i < N_OF(cases); i++) {
        uint64_t value = 42;
        const char *end = ps_number_u64(cases[i].text, &value);

        if (cases[i].size == 0) {
            cr_expect_null(end, "%s", cases[i].text);
            continue;
        }
        cr_expect_eq(end, cases[i].text + cases[i].size, "%s", cases[i].text);
        cr_expect_eq(value, cases[i].value, "%s", cases[i].text);
    }
}

Test(number, i64_takes_a_sign)
{
    int64_t value = 0;

    cr_expect_not_null(ps_number_i64("-9223372036854775808\n", &value));
    cr_expect_eq(value, INT64_MIN);
    cr_expect_not_null(ps_number_i64("+9223372036854775807\n", &value));
    cr_expect_eq(value, INT64_MAX);
    cr_expect_null(ps_number_i64("9223372036854775808\n", &value));
    cr_expect_null(ps_number_i64("-9223372036854775809\n", &value));
    cr_expect_null(ps_number_i64("--1\n", &value));
}

/* The whole text is read, and is what strtod makes of it. */
static void expect_same(const char *text)
{
    float value = 42;
    const char *end = ps_number_f32(text, &value);

    cr_assert_not_null(end, "%s", text);
    cr_expect_eq(*end, '\n', "%s", text);
    cr_expect_eq(value, (float)strtod(text, NULL), "%s: %.9g", text, (double)value);
}

Test(number, f32_is_the_nearest_double_as_a_float)
{
    static const char *const texts[] = {
        "0\n",
        "-0\n",
        "1\n",
        "+1\n",
        "1.\n",
        ".5\n",
        "-.5e1\n",
        "1e22\n",
        "1e-22\n",
        "1E+3\n",
        "1e23\n",
        "123456789012345678901234567890\n",
        "0.1\n",
        "0.30000001192092896\n",
        "16777217\n",
        "9007199254740993\n",
        "1e-45\n",
        "1.17549435e-38\n",
        "3.4028234e38\n",
        "3.4028235677e38\n",
        "0.000000000000000000000000000000000000000000000000001e51\n",
        "1000000000000000000000000000000000000000000000000000e-51\n",
        "1e-400\n",
        "00000000000000000000000000000000000000000001\n"};

    for (size_t i = 0; i < N_OF(texts); i++) {
        expect_same(texts[i]);
    }
}

Test(number, f32_agrees_with_strtod_on_random_decimals)
{
    ps_rng_t rng = {7};
    char text[400];

    for (int i = 0; i < 20000; i++) {
        uint32_t bits = (uint32_t)ps_rng_u64(&rng);
        float value = 0;

        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) {
            continue;
        }
        (void)snprintf(text, sizeof text, "%.*e\n", 2 + i % 24, (double)value);
        expect_same(text);
        (void)snprintf(text, sizeof text, "%.*f\n", i % 24, (double)value);
        expect_same(text);
    }
}

Test(number, what_is_no_finite_float_is_refused)
{
    static const char *const texts[] = {"\n",    "-\n",    ".\n",    "+.\n", "e5\n",    "nan\n",
                                        "inf\n", "-inf\n", "1e39\n", "x\n",  "1e400\n", ":1\n"};
    float value = 42;

    for (size_t i = 0; i < N_OF(texts); i++) {
        cr_expect_null(ps_number_f32(texts[i], &value), "%s", texts[i]);
    }
    cr_expect_eq(value, 42);
}

Test(number, an_exponent_without_digits_is_not_of_the_number)
{
    float value = 0;
    const char *text = "1e+\n";

    cr_expect_eq(ps_number_f32(text, &value), text + 1);
    cr_expect_eq(value, 1);
    cr_expect_eq(*ps_number_f32("0x10\n", &value), 'x');
}
