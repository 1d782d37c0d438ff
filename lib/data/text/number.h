/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_number - numbers at the front of a text, as data files have them
 *
 * What     Readers for the hot loops of parsers: no locale, no allocation.
 * Shape    A text ends with a byte that belongs to no number, such as the '\n'
 *          of a line. Each function returns the place after the number, or NULL
 *          if there is none, or none that fits.
 * Threads  any
 * Source   Clinger, "How to read floating point numbers accurately", PLDI
 *          1990: a decimal of up to 15 digits (here: below 2^53) times or
 *          divided by a power of ten up to 10^22 is rounded once.
 */
#ifndef PS_DATA_NUMBER_H
#define PS_DATA_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Blank between words of a line. */
static inline bool ps_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static inline const char *ps_skip_blanks(const char *at)
{
    while (ps_is_blank(*at)) {
        at++;
    }
    return at;
}

static inline bool ps_is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Has a word of a line ended here? NULL has not. */
static inline bool ps_is_behind_word(const char *at)
{
    return at != NULL && (ps_is_blank(*at) || *at == '\n');
}

/* Digits only, up to 2^64 - 1. */
static inline const char *ps_number_u64(const char *at, uint64_t *ret_value)
{
    const char *start = at;
    uint64_t value = 0;

    while (ps_is_digit(*at)) {
        uint64_t digit = (uint64_t)(*at - '0');

        if (at - start >= 19 && value > (UINT64_MAX - digit) / 10) {
            return NULL;
        }
        value = value * 10 + digit;
        at++;
    }
    *ret_value = value;
    return at == start ? NULL : at;
}

/* After the digits of a whole number: skips a point and zeros, which programs
 * add that write all numbers as fractions. */
static inline const char *ps_skip_point_zeros(const char *at)
{
    const char *zeros = at;

    if (at == NULL || at[0] != '.' || at[1] != '0') {
        return at;
    }
    for (zeros++; *zeros == '0'; zeros++) {
    }
    return zeros;
}

/* Digits after an optional sign. */
const char *ps_number_i64(const char *at, int64_t *ret_value);
/* A finite decimal number, with sign, point and exponent as usual; the nearest
 * double of it as a float. */
const char *ps_number_f32(const char *at, float *ret_value);
/* Passes over such a number of any size, also one that no float holds. */
const char *ps_number_pass(const char *at);
#endif
