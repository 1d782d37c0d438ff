/* SPDX-License-Identifier: Apache-2.0 */
/* Whole texts read as numbers. */
#include "number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool ex_number_u64(const char *text, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        uint64_t digit = 0;

        if (*text < '0' || *text > '9') {
            return false;
        }
        digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

bool ex_number_i64(const char *text, int64_t *ret_value)
{
    uint64_t magnitude = 0;
    bool negative = *text == '-';

    text += *text == '-' || *text == '+' ? 1 : 0;
    if (!ex_number_u64(text, &magnitude) || magnitude > INT64_MAX) {
        return false;
    }
    *ret_value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

/* A small whole number, as most values are, without strtod. */
static bool read_small(const char *text, double *ret_value)
{
    unsigned value = 0;
    size_t n = 0;

    for (; n < 6 && text[n] >= '0' && text[n] <= '9'; n++) {
        value = value * 10 + (unsigned)(text[n] - '0');
    }
    if (n == 0 || text[n] != '\0') {
        return false;
    }
    *ret_value = value;
    return true;
}

bool ex_number_f64(const char *text, double *ret_value)
{
    char *end = NULL;
    double value = 0;

    if (read_small(text, ret_value)) {
        return true;
    }
    /* Checks only the characters of decimal numbers; strtod checks their
     * order. */
    if (*text == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0') {
        return false;
    }
    value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value)) {
        return false;
    }
    *ret_value = value;
    return true;
}
