/* SPDX-License-Identifier: Apache-2.0 */
/* cli/output/json_text.h, cli/run/progress.h: numbers and values as text, JSON, bars. */
#include "cli/output/json_text.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cli/run/progress.h"

static const char *f32(float value)
{
    static char text[PS_NUMBER_SIZE];

    ps_f32_format(value, text);
    return text;
}

static const char *f64(double value)
{
    static char text[PS_NUMBER_SIZE];

    ps_f64_format(value, text);
    return text;
}

Test(number, floats_have_the_shortest_digits)
{
    cr_assert_str_eq(f32(0.1F), "0.1");
    cr_assert_str_eq(f32(0.5F), "0.5");
    cr_assert_str_eq(f32(-0.0F), "-0");
    cr_assert_str_eq(f32(16777216.0F), "16777216");
    cr_assert_str_eq(f32(1e-45F), "1e-45");
    cr_assert_str_eq(f32(3.4028235e38F), "3.4028235e+38");
    cr_assert_str_eq(f32(NAN), "nan");
    cr_assert_str_eq(f32(-INFINITY), "-inf");
    cr_assert_str_eq(f64(0.1), "0.1");
    cr_assert_str_eq(f64(1.0 / 3), "0.3333333333333333");
    cr_assert_str_eq(f64(5e-324), "5e-324");
    cr_assert_str_eq(f64(1e22), "1e+22");
}

Test(number, every_float_reads_back)
{
    ps_rng_t rng = {.state = 7};

    for (int i = 0; i < 20000; i++) {
        uint64_t bits = ps_rng_u64(&rng);
        uint32_t low = (uint32_t)bits;
        double wide = 0;
        float narrow = 0;
        char back[8];

        memcpy(&wide, &bits, sizeof wide);
        memcpy(&narrow, &low, sizeof narrow);
        if (isfinite(wide)) {
            cr_assert(ps_value_parse(PS_TYPE_F64, f64(wide), back));
            cr_assert_eq(memcmp(back, &wide, 8), 0, "%s", f64(wide));
        }
        if (isfinite(narrow)) {
            cr_assert(ps_value_parse(PS_TYPE_F32, f32(narrow), back));
            cr_assert_eq(memcmp(back, &narrow, 4), 0, "%s", f32(narrow));
        }
    }
}

Test(number, values_are_of_their_type)
{
    char value[8] = "";
    char text[PS_NUMBER_SIZE];

    cr_assert(ps_value_parse(PS_TYPE_I64, "-9223372036854775808", value));
    ps_value_format(PS_TYPE_I64, value, text);
    cr_assert_str_eq(text, "-9223372036854775808");
    cr_assert(ps_value_parse(PS_TYPE_I32, "2147483647", value));
    ps_value_format(PS_TYPE_I32, value, text);
    cr_assert_str_eq(text, "2147483647");
    cr_assert_not(ps_value_parse(PS_TYPE_I32, "2147483648", value));
    cr_assert_not(ps_value_parse(PS_TYPE_I32, "1.5", value));
    cr_assert_not(ps_value_parse(PS_TYPE_I64, "9223372036854775808", value));
    cr_assert_not(ps_value_parse(PS_TYPE_F32, "1e39", value));
    cr_assert_not(ps_value_parse(PS_TYPE_F32, "", value));
    cr_assert_not(ps_value_parse(PS_TYPE_F64, "1,5", value));
    cr_assert(ps_value_parse(PS_TYPE_F32, "inf", value));
    cr_assert_not(ps_value_is_finite(PS_TYPE_F32, value));
    cr_assert(ps_value_is_finite(PS_TYPE_I32, value));
    /* Rounded once: by way of a double it would be 16777216. */
    cr_assert(ps_value_parse(PS_TYPE_F32, "16777217.0000000001", value));
    ps_value_format(PS_TYPE_F32, value, text);
    cr_assert_str_eq(text, "16777218");
}

Test(number, sizes_and_times_are_for_people)
{
    char text[PS_NUMBER_SIZE];

    ps_bytes_format(0, text);
    cr_assert_str_eq(text, "0 B");
    ps_bytes_format(1536, text);
    cr_assert_str_eq(text, "1.5 KiB");
    ps_bytes_format(64.0 * 1024 * 1024, text);
    cr_assert_str_eq(text, "64 MiB");
    ps_rate_format(1234567890, text);
    cr_assert_str_eq(text, "1.2 GB/s");
    ps_seconds_format(0, text);
    cr_assert_str_eq(text, "0 s");
    ps_seconds_format(0.0000329, text);
    cr_assert_str_eq(text, "32.9 us");
    ps_seconds_format(1.5, text);
    cr_assert_str_eq(text, "1.5 s");
    ps_seconds_format(600, text);
    cr_assert_str_eq(text, "10 min");
    ps_seconds_format(9000, text);
    cr_assert_str_eq(text, "2.5 h");
}

/* The text that ps_json_write_doc gives for a JSON text. */
static char *doc_of(const char *json)
{
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    cr_assert_not_null(value);
    ps_json_write_doc(file, value, false);
    (void)fclose(file);
    json_decref(value);
    return text;
}

Test(json_text, documents_begin_with_their_version)
{
    char *text = doc_of("{\"b\":[1,-2.5,true,false,null,\"x\"],\"a\":{}}");

    cr_assert_str_eq(text, "{\"schema_version\":1,\"b\":[1,-2.5,true,false,"
                           "null,\"x\"],\"a\":{}}");
    free(text);
    text = doc_of("{}");
    cr_assert_str_eq(text, "{\"schema_version\":1}");
    free(text);
}

Test(json_text, great_keys_are_integers_again)
{
    char *text = doc_of("{\"last_row\":\"18446744073709551615\",\"name\":"
                        "\"18446744073709551615\",\"seed\":\"x\"}");

    cr_assert_str_eq(text, "{\"schema_version\":1,\"last_row\":"
                           "18446744073709551615,\"name\":"
                           "\"18446744073709551615\",\"seed\":\"x\"}");
    free(text);
}

static char *quoted(const char *bytes)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    ps_json_write_text(file, bytes);
    (void)fclose(file);
    return text;
}

Test(json_text, text_is_escaped_and_always_utf8)
{
    static const char *const PAIRS[][2] = {
        {"a\"b\\c\n\t\r\x01", "\"a\\\"b\\\\c\\n\\t\\r\\u0001\""},
        {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {"\xFFx\xC3", "\"\\ufffdx\\ufffd\""},
        {"\xC0\x80", "\"\\ufffd\\ufffd\""},            /* overlong */
        {"\xED\xA0\x80", "\"\\ufffd\\ufffd\\ufffd\""}, /* surrogate */
        {"", "\"\""}};

    for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++) {
        char *text = quoted(PAIRS[i][0]);

        cr_assert_str_eq(text, PAIRS[i][1]);
        free(text);
    }
}

Test(json_text, values_that_are_not_finite_are_text)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    float values[] = {1.0F, NAN, -INFINITY, 1e10F};
    int64_t big = INT64_MIN;

    for (size_t i = 0; i < 4; i++) {
        ps_value_write_json(file, PS_TYPE_F32, &values[i]);
        (void)putc(' ', file);
    }
    ps_value_write_json(file, PS_TYPE_I64, &big);
    (void)fclose(file);
    cr_assert_str_eq(text, "1.0 \"nan\" \"-inf\" 1e+10 -9223372036854775808");
    free(text);
}

Test(number, a_bar_is_as_full_as_what_is_done)
{
    char text[PS_BAR_SIZE];

    ps_bar_format(0, 8, text);
    cr_assert_str_eq(text, "[....................]");
    ps_bar_format(2, 8, text);
    cr_assert_str_eq(text, "[#####...............]");
    ps_bar_format(7, 8, text);
    cr_assert_str_eq(text, "[#################...]");
    ps_bar_format(8, 8, text);
    cr_assert_str_eq(text, "[####################]");
    ps_bar_format(0, 0, text);
    cr_assert_str_eq(text, "[####################]");
    ps_bar_format(UINT64_MAX - 1, UINT64_MAX, text);
    cr_assert_eq(text[PS_BAR_SIZE - 2], ']');
}
