/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers at the front of a text. */
#include "data/text/number.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#define DIGITS_MAX 19   /* of a decimal that a u64 holds whatever they are */
#define TOKEN_SIZE 1024 /* of a number that takes the long way */
#define EXACT_POWER 22  /* 10^22 is the last one that a double holds */
#define EXPONENT_MAX 100000

static const double POWERS[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A decimal as it was read: digits x 10^power. */
typedef struct decimal {
    uint64_t digits;
    int power;
    bool negative;
    bool exact; /* all its digits are in `digits` */
} decimal_t;

const char *ps_number_i64(const char *at, int64_t *ret_value)
{
    bool negative = *at == '-';
    uint64_t size = 0;

    if (*at == '-' || *at == '+') {
        at++;
    }
    at = ps_number_u64(at, &size);
    if (at == NULL || size > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return NULL;
    }
    /* Negated as unsigned: INT64_MIN has no positive counterpart. */
    *ret_value = (int64_t)(negative ? 0 - size : size);
    return at;
}

/* Adds the digits at `at`; after the point each one lowers the power. */
static const char *take_digits(const char *at, bool behind_point, int *n_digits, decimal_t *out)
{
    for (; ps_is_digit(*at); at++) {
        if (*n_digits >= DIGITS_MAX) {
            out->exact = false;
            continue;
        }
        out->digits = out->digits * 10 + (uint64_t)(*at - '0');
        *n_digits += out->digits != 0 ? 1 : 0;
        out->power -= behind_point ? 1 : 0;
    }
    return at;
}

/* The exponent after the e, if that is one. */
static const char *take_exponent(const char *at, decimal_t *out)
{
    const char *digits = at + 1;
    int value = 0;
    bool negative = *digits == '-';

    if (*digits == '-' || *digits == '+') {
        digits++;
    }
    if (!ps_is_digit(*digits)) {
        return at; /* "1e" is 1 and a rest */
    }
    for (; ps_is_digit(*digits); digits++) {
        value = value < EXPONENT_MAX ? value * 10 + (*digits - '0') : value;
    }
    out->power += negative ? -value : value;
    return digits;
}

static const char *take_decimal(const char *at, decimal_t *out)
{
    int n_digits = 0;
    const char *start = NULL;
    const char *point = NULL;

    *out = (decimal_t){.exact = true, .negative = *at == '-'};
    if (*at == '-' || *at == '+') {
        at++;
    }
    start = at;
    at = take_digits(at, false, &n_digits, out);
    if (*at == '.') {
        point = at;
        at = take_digits(at + 1, true, &n_digits, out);
    }
    if (at - start == (point != NULL ? 1 : 0)) {
        return NULL; /* no digit */
    }
    return *at == 'e' || *at == 'E' ? take_exponent(at, out) : at;
}

/* What is too long for a u64, or needs more than one rounding. */
static bool read_slowly(const char *at, size_t size, double *ret_value)
{
    char token[TOKEN_SIZE];

    if (size >= sizeof token) {
        return false;
    }
    memcpy(token, at, size);
    token[size] = '\0';
    return ps_text_f64(token, ret_value);
}

const char *ps_number_f32(const char *at, float *ret_value)
{
    decimal_t decimal;
    const char *end = take_decimal(at, &decimal);
    double value = 0;
    float narrow = 0;

    if (end == NULL) {
        return NULL;
    }
    if (decimal.exact && decimal.digits < UINT64_C(1) << 53 && decimal.power >= -EXACT_POWER &&
        decimal.power <= EXACT_POWER) {
        value = (double)decimal.digits;
        value = decimal.power < 0 ? value / POWERS[-decimal.power] : value * POWERS[decimal.power];
        value = decimal.negative ? -value : value;
    } else if (!read_slowly(at, (size_t)(end - at), &value)) {
        return NULL;
    }
    narrow = (float)value;
    if (!isfinite(narrow)) {
        return NULL;
    }
    *ret_value = narrow;
    return end;
}

const char *ps_number_pass(const char *at)
{
    decimal_t decimal;

    return take_decimal(at, &decimal);
}
