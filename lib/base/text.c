/* SPDX-License-Identifier: Apache-2.0 */
/* Strict parsers of what people type. None of them depends on the locale. */
#include "base/text.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 63
#define SUGGEST_MAX_LENGTH 63 /* longer words have no suggestion */
#define SUGGEST_SHORT 5       /* letters of a word in which one edit is near */
#define COUNT_SIZE 40         /* bytes of a count's text */
#define COUNT_MAX 0x1p53      /* the largest such that a double holds every whole number up to it */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads the digits at *at (at least one) and moves *at past them. */
static bool read_digits(const char **at, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (!is_digit(**at)) {
        return false;
    }
    for (; is_digit(**at); (*at)++) {
        uint64_t digit = (uint64_t)(**at - '0');

        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

bool ps_text_u64(const char *text, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (!read_digits(&text, &value) || *text != '\0') {
        return false;
    }
    *ret_value = value;
    return true;
}

bool ps_text_i64(const char *text, int64_t *ret_value)
{
    bool negative = text[0] == '-';
    uint64_t size = 0;

    if (text[0] == '-' || text[0] == '+') {
        text++;
    }
    if (!ps_text_u64(text, &size) || size > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return false;
    }
    /* Negated as unsigned: INT64_MIN has no positive counterpart. */
    *ret_value = (int64_t)(negative ? 0 - size : size);
    return true;
}

/* Rejects what strtod takes but a person does not mean: leading space, hex
 * digits, "nan(...)". */
static bool is_plain_float(const char *text)
{
    /* strchr also finds the '\0' of an empty text. */
    return strchr(" \t\n\v\f\r", text[0]) == NULL && strpbrk(text, "xX(") == NULL;
}

bool ps_text_f64(const char *text, double *ret_value)
{
    locale_t plain = (locale_t)0;
    char *end = NULL;
    double value = 0;
    int error = 0;

    if (!is_plain_float(text)) {
        return false;
    }
    /* The C library keeps this locale ready: nothing is allocated. */
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0) {
        return false;
    }
    errno = 0;
    value = strtod_l(text, &end, plain);
    error = errno;
    freelocale(plain);
    if (end == text || *end != '\0' || (error == ERANGE && isinf(value))) {
        return false;
    }
    *ret_value = value;
    return true;
}

/* Milliseconds of one unit; 0: not a unit. */
static uint64_t duration_unit(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60000}, {"h", 3600000}};

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].name) == 0) {
            return units[i].ms;
        }
    }
    return 0;
}

/* Adds the decimals at *at, each a tenth of the digit left of it; false when
 * they are finer than a millisecond. */
static bool read_decimals(const char **at, uint64_t unit_ms, uint64_t *ret_ms)
{
    uint64_t ms = 0;

    if (!is_digit(**at)) {
        return false;
    }
    for (; is_digit(**at); (*at)++) {
        uint64_t digit = (uint64_t)(**at - '0');

        if (digit * unit_ms % 10 != 0 || (unit_ms == 0 && digit != 0)) {
            return false;
        }
        ms += digit * unit_ms / 10;
        /* A tenth of 36 ms is not whole: only zeros may follow. */
        unit_ms = unit_ms % 10 == 0 ? unit_ms / 10 : 0;
    }
    *ret_ms = ms;
    return true;
}

bool ps_text_duration(const char *text, uint64_t *ret_ms)
{
    const char *decimals = NULL;
    uint64_t whole = 0;
    uint64_t ms = 0;
    uint64_t unit_ms = 0;

    if (!read_digits(&text, &whole)) {
        return false;
    }
    if (*text == '.') {
        decimals = ++text;
        text += strspn(text, "0123456789");
    }
    unit_ms = duration_unit(text);
    if (unit_ms == 0) {
        return false;
    }
    if (decimals != NULL && !read_decimals(&decimals, unit_ms, &ms)) {
        return false;
    }
    if (__builtin_mul_overflow(whole, unit_ms, &whole) ||
        __builtin_add_overflow(whole, ms, &whole)) {
        return false;
    }
    *ret_ms = whole;
    return true;
}

/* The power of two that a size's unit stands for; -1: not a unit. */
static int size_unit(const char *unit)
{
    static const char letters[] = "KMGT";
    const char *letter = NULL;

    if (unit[0] == '\0' || strcmp(unit, "B") == 0) {
        return 0;
    }
    letter = strchr(letters, unit[0] == 'k' ? 'K' : unit[0]);
    if (letter == NULL) {
        return -1;
    }
    unit++;
    if (strcmp(unit, "") != 0 && strcmp(unit, "i") != 0 && strcmp(unit, "B") != 0 &&
        strcmp(unit, "iB") != 0) {
        return -1;
    }
    return (int)(letter - letters + 1) * 10;
}

bool ps_text_size(const char *text, uint64_t *ret_bytes)
{
    uint64_t value = 0;
    int shift = 0;

    if (!read_digits(&text, &value)) {
        return false;
    }
    shift = size_unit(text);
    if (shift < 0 || value > UINT64_MAX >> shift) {
        return false;
    }
    *ret_bytes = value << shift;
    return true;
}

/* The factor of a count's unit; 0: not a unit. */
static double count_unit(char unit)
{
    switch (unit) {
    case 'k':
    case 'K':
        return 1e3;
    case 'M':
        return 1e6;
    case 'G':
        return 1e9;
    case 'T':
        return 1e12;
    default:
        return 0;
    }
}

bool ps_text_count(const char *text, uint64_t *ret_count)
{
    char number[COUNT_SIZE];
    size_t length = strlen(text);
    double unit = 1;
    double value = 0;

    if (ps_text_u64(text, ret_count)) {
        return true;
    }
    if (length == 0 || length >= sizeof number || strspn(text, "0123456789") == 0) {
        return false;
    }
    memcpy(number, text, length + 1);
    if (count_unit(text[length - 1]) > 0) {
        unit = count_unit(text[length - 1]);
        number[length - 1] = '\0';
    }
    if (!ps_text_f64(number, &value)) {
        return false;
    }
    value *= unit;
    if (value > COUNT_MAX || value != floor(value)) {
        return false;
    }
    *ret_count = (uint64_t)value;
    return true;
}

bool ps_text_is_name(const char *text)
{
    size_t length = strlen(text);

    if (length == 0 || length > NAME_MAX_LENGTH || text[0] == '.' || text[0] == '-') {
        return false;
    }
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                        "0123456789_.-") == length;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits (insert, drop, change, swap of neighbours) from a to b, both at most
 * SUGGEST_MAX_LENGTH long. Three rows of the usual table are kept. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][SUGGEST_MAX_LENGTH + 1];
    size_t length_b = strlen(b);
    size_t i = 0;

    for (size_t j = 0; j <= length_b; j++) {
        rows[0][j] = j;
    }
    for (i = 1; a[i - 1] != '\0'; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *two_above = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);

            row[j] = least(change, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], two_above[j - 2] + 1);
            }
        }
    }
    return rows[(i - 1) % 3][length_b];
}

const char *ps_text_suggest(const char *word, const char *const *words)
{
    const char *nearest = NULL;
    size_t length = strlen(word);
    size_t fewest = length <= SUGGEST_SHORT ? 2 : 3; /* edits; one too many */

    if (length < 2 || length > SUGGEST_MAX_LENGTH) {
        return NULL;
    }
    for (; *words != NULL; words++) {
        size_t edits = 0;

        if (strlen(*words) > SUGGEST_MAX_LENGTH) {
            continue;
        }
        edits = edit_distance(word, *words);
        if (edits < fewest) {
            fewest = edits;
            nearest = *words;
        }
    }
    return nearest;
}
