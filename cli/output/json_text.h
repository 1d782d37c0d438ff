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

#include "base/value_text.h"

/* Compact. big_as_text: integers beyond 2^53 are strings of their digits. */
void ps_json_write(FILE *file, const json_t *value, bool big_as_text);
/* The value of a member: digits in a text are an integer where the key says so. */
void ps_json_write_member(FILE *file, const char *key, const json_t *value, bool big_as_text);
bool ps_json_is_integer_text(const char *key, const json_t *value);
/* {"schema_version":1, and then doc's members (an object). */
void ps_json_write_doc(FILE *file, const json_t *doc, bool big_as_text);
/* Would a reader that knows only doubles round this row key or value? */
bool ps_json_is_big(uint64_t magnitude);
/* Quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
void ps_json_write_text(FILE *file, const char *text);

/* As JSON: floats keep a point or exponent, what is not finite is a string. */
void ps_value_write_json(FILE *file, ps_type_t type, const void *value);
/* For people: "1.5 KiB", "2.3 s", "1.2 GB/s". */
void ps_bytes_format(double bytes, char ret_text[PS_NUMBER_SIZE]);
void ps_seconds_format(double seconds, char ret_text[PS_NUMBER_SIZE]);
void ps_rate_format(double bytes_s, char ret_text[PS_NUMBER_SIZE]);
#endif
