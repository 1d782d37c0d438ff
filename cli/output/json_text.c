/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON. */
#include "cli/output/json_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "cli/output/output.h"

/* Members that are integers even when they came as strings of digits. */
static const char *const INTEGERS[] = {"first_row", "last_row", "row",
                                       "seed",      "lsn",      "incarnation"};

/* Length of the UTF-8 character at text; 0 when it is not one. */
static size_t utf8_length(const unsigned char *text)
{
    unsigned char c = text[0];
    size_t n = c < 0x80                ? 1
               : c >= 0xC2 && c < 0xE0 ? 2
               : c >= 0xE0 && c < 0xF0 ? 3
               : c >= 0xF0 && c < 0xF5 ? 4
                                       : 0;

    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    /* Overlong forms, surrogates, and what is above U+10FFFF. */
    if ((c == 0xE0 && text[1] < 0xA0) || (c == 0xED && text[1] > 0x9F) ||
        (c == 0xF0 && text[1] < 0x90) || (c == 0xF4 && text[1] > 0x8F)) {
        return 0;
    }
    return n;
}

static void write_char(FILE *file, unsigned char c)
{
    switch (c) {
    case '"':
        ps_print(file, "\\\"");
        break;
    case '\\':
        ps_print(file, "\\\\");
        break;
    case '\n':
        ps_print(file, "\\n");
        break;
    case '\t':
        ps_print(file, "\\t");
        break;
    case '\r':
        ps_print(file, "\\r");
        break;
    default:
        if (c < 0x20) {
            ps_print(file, "\\u%04x", (unsigned)c);
        } else {
            (void)putc(c, file);
        }
    }
}

void ps_json_write_text(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    (void)putc('"', file);
    while (*at != '\0') {
        size_t n = utf8_length(at);

        if (n == 0) {
            ps_print(file, "\\ufffd");
            at++;
        } else if (n == 1) {
            write_char(file, *at);
            at++;
        } else {
            ps_print(file, "%.*s", (int)n, (const char *)at);
            at += n;
        }
    }
    (void)putc('"', file);
}

static void write_real(FILE *file, double value)
{
    ps_value_write_json(file, PS_TYPE_F64, &value);
}

bool ps_json_is_integer_text(const char *key, const json_t *value)
{
    uint64_t number = 0;

    if (!json_is_string(value) || !ps_text_u64(json_string_value(value), &number)) {
        return false;
    }
    for (size_t i = 0; i < sizeof INTEGERS / sizeof INTEGERS[0]; i++) {
        if (strcmp(INTEGERS[i], key) == 0) {
            return true;
        }
    }
    return false;
}

bool ps_json_is_big(uint64_t magnitude)
{
    return magnitude > UINT64_C(1) << 53;
}

/* Digits, in quotes when requested and needed. */
static void write_digits(FILE *file, const char *digits, bool is_big, bool big_as_text)
{
    const char *quote = is_big && big_as_text ? "\"" : "";

    ps_print(file, "%s%s%s", quote, digits, quote);
}

static void write_integer(FILE *file, json_int_t value, bool big_as_text)
{
    char digits[24];
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;

    (void)snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, value);
    write_digits(file, digits, ps_json_is_big(magnitude), big_as_text);
}

static void write_integer_text(FILE *file, const char *digits, bool big_as_text)
{
    uint64_t value = 0;
    bool is_u64 = ps_text_u64(digits, &value);

    write_digits(file, digits, !is_u64 || ps_json_is_big(value), big_as_text);
}

/* first_gap stands in front of the first member. Recursion ends: jansson's
 * parser bounds the depth. */
static void write_members(FILE *file, const json_t *object, const char *first_gap, bool big_as_text)
{
    const char *gap = first_gap;
    const char *key = NULL;
    json_t *value = NULL;

    /* jansson's iterator takes a non-const object, but does not change it. */
    json_object_foreach((json_t *)object, key, value)
    {
        (void)fputs(gap, file);
        gap = ",";
        ps_json_write_text(file, key);
        (void)putc(':', file);
        ps_json_write_member(file, key, value, big_as_text);
    }
}

void ps_json_write_member(FILE *file, const char *key, const json_t *value, bool big_as_text)
{
    if (ps_json_is_integer_text(key, value)) {
        write_integer_text(file, json_string_value(value), big_as_text);
    } else {
        ps_json_write(file, value, big_as_text);
    }
}

void ps_json_write(FILE *file, const json_t *value, bool big_as_text)
{
    if (json_is_object(value)) {
        (void)putc('{', file);
        write_members(file, value, "", big_as_text);
        (void)putc('}', file);
    } else if (json_is_array(value)) {
        (void)putc('[', file);
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i > 0) {
                (void)putc(',', file);
            }
            ps_json_write(file, json_array_get(value, i), big_as_text);
        }
        (void)putc(']', file);
    } else if (json_is_string(value)) {
        ps_json_write_text(file, json_string_value(value));
    } else if (json_is_integer(value)) {
        write_integer(file, json_integer_value(value), big_as_text);
    } else if (json_is_real(value)) {
        write_real(file, json_real_value(value));
    } else if (json_is_true(value)) {
        ps_print(file, "true");
    } else if (json_is_false(value)) {
        ps_print(file, "false");
    } else {
        ps_print(file, "null");
    }
}

void ps_json_write_doc(FILE *file, const json_t *doc, bool big_as_text)
{
    ps_print(file, "{\"schema_version\":1");
    write_members(file, doc, ",", big_as_text);
    (void)putc('}', file);
}
