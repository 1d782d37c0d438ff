/* SPDX-License-Identifier: Apache-2.0 */
/* ps_value_text - a table's values as text: the fewest digits that parse back
 * to the same bits, and the parser */
#ifndef PS_BASE_VALUE_TEXT_H
#define PS_BASE_VALUE_TEXT_H

#include <stdbool.h>

#include "base/slice.h"

/* The shortest digits that parse back to the same bits; "nan", "inf",
 * "-inf". */
#define PS_NUMBER_SIZE 32
void ps_f64_format(double value, char ret_text[PS_NUMBER_SIZE]);
void ps_f32_format(float value, char ret_text[PS_NUMBER_SIZE]);
/* A value of a table's type, at any alignment. */
void ps_value_format(ps_type_t type, const void *value, char ret_text[PS_NUMBER_SIZE]);
/* Text to a value of the type. false: not a number of it. Writes
 * ps_type_size(type) bytes. */
PSD_MUST_CHECK bool ps_value_parse(ps_type_t type, const char *text, void *ret_value);
/* Finite, or an integer. */
bool ps_value_is_finite(ps_type_t type, const void *value);
#endif
