/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers - whole texts read as numbers, strictly
 *
 * What     The whole text must be one decimal number: no blanks, no
 *          hexadecimal, no "inf" or "nan", nothing after the number.
 */
#ifndef EX_NUMBER_H
#define EX_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Digits only, at most UINT64_MAX. */
bool ex_number_u64(const char *text, uint64_t *ret_value);
/* An optional sign and digits, in the range of int64_t. */
bool ex_number_i64(const char *text, int64_t *ret_value);
/* "-1.5e3" and the like; finite. A number too small for a double is zero. */
bool ex_number_f64(const char *text, double *ret_value);
#endif
