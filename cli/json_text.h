/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON and numbers as text
 *
 * What     jansson's own printer gives 17 digits for every float and has no
 *          integers above 2^63 - 1; this one gives the shortest digits that
 *          read back, and prints row keys that came as strings as integers.
 */
#ifndef PS_CLI_JSON_TEXT_H
#define PS_CLI_JSON_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "base/slice.h"

/* Compact. */
void ps_json_write(FILE *file, const json_t *value);
/* {"schema_version":1, and then doc's members (an object). */
void ps_json_write_doc(FILE *file, const json_t *doc);
/* Quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
void ps_json_write_text(FILE *file, const char *text);

/* The shortest digits that read back to the same bits; "nan", "inf", "-inf". */
#define PS_NUMBER_SIZE 32
void ps_f64_format(double value, char ret_text[PS_NUMBER_SIZE]);
void ps_f32_format(float value, char ret_text[PS_NUMBER_SIZE]);
/* A value of a table's type, at any alignment. */
void ps_value_format(ps_type_t type,
                     const void *value,
                     char ret_text[PS_NUMBER_SIZE]);
/* As JSON: floats keep a point or exponent, what is not finite is a string. */
void ps_value_write_json(FILE *file, ps_type_t type, const void *value);
/* Text to a value of the type. false: not a number of it. Writes
 * ps_type_size(type) bytes. */
PSD_MUST_CHECK bool
ps_value_parse(ps_type_t type, const char *text, void *ret_value);
/* Finite, or an integer. */
bool ps_value_is_finite(ps_type_t type, const void *value);

/* For people: "1.5 KiB", "2.3 s", "1.2 GB/s". */
void ps_bytes_format(double bytes, char ret_text[PS_NUMBER_SIZE]);
void ps_seconds_format(double seconds, char ret_text[PS_NUMBER_SIZE]);
void ps_rate_format(double bytes_s, char ret_text[PS_NUMBER_SIZE]);
#endif
