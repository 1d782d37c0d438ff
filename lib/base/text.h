/* SPDX-License-Identifier: Apache-2.0 */
/* ps_text - strict parsers of what people type, and suggestions for typos. Each
 * parser reads the whole string: no leading space, no rest. */
#ifndef PS_BASE_TEXT_H
#define PS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

/* Decimal digits only. */
PSD_MUST_CHECK bool ps_text_u64(const char *text, uint64_t *ret_value);
/* Decimal, with an optional sign. */
PSD_MUST_CHECK bool ps_text_i64(const char *text, int64_t *ret_value);
/* What strtod takes in the C locale: "1.5", "-2e-3", "inf", "nan" in any case;
 * but no hexadecimal, and no number too big for a double. */
PSD_MUST_CHECK bool ps_text_f64(const char *text, double *ret_value);
/* "250ms", "10s", "5m", "1h", "0"; a bare number is seconds ("1.5" too).
 * Every unit takes decimals ("1.5h") down to a whole millisecond. */
PSD_MUST_CHECK bool ps_text_duration(const char *text, uint64_t *ret_ms);
/* "4096", "64k", "16MiB", "2GB"; k/M/G/T with or without i and B are powers of
 * 1024. */
PSD_MUST_CHECK bool ps_text_size(const char *text, uint64_t *ret_bytes);
/* How many: "1000000", "1e9", "1.5G", "64k"; k, M, G, T are powers of 1000. The
 * result is a whole number, at most 2^53 when the text has an e, a point or a
 * unit. */
PSD_MUST_CHECK bool ps_text_count(const char *text, uint64_t *ret_count);
/* A name of a table, node, job: [A-Za-z0-9_.-]{1,63}, no leading dot or dash.
 */
bool ps_text_is_name(const char *text);
/* The word of the NULL-terminated list nearest to `word`, if it is near enough:
 * one edit in a word of up to 5 letters, two in a longer one. Swapping two
 * neighbours is one edit. Returns the first of several, NULL when no word is
 * near enough. Borrowed. */
const char *ps_text_suggest(const char *word, const char *const *words);
#endif
