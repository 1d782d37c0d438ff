/* SPDX-License-Identifier: Apache-2.0 */
/* ps_word - parsing a spec's text: keywords, numbers, and parts */
#ifndef PS_MODEL_WORDS_H
#define PS_MODEL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "psd/status.h"

typedef struct ps_word {
    const char *text;
    int value; /* not 0 */
} ps_word_t;

#define PS_WORDS(list) (list), sizeof(list) / sizeof *(list)

/* The value of the word in the first `length` bytes of text; 0: none. */
int ps_word_find(const ps_word_t *list, size_t n, const char *text, size_t length);
/* The word of a value; "?" when there is none. */
const char *ps_word_of(const ps_word_t *list, size_t n, int value);
/* PSD_INVALID, naming the text and what is allowed. */
psd_status_t ps_word_unknown(const char *what, const char *text, const char *allowed,
                             psd_error_t *err);

#define PS_NUMBER_SIZE 32 /* "-1.2345678901234567e-308" and '\0' */

/* Copies the part of *at before `stop` or the end and moves *at past it (and
 * past the stop). false: it is too long for a number. */
PSD_MUST_CHECK bool ps_word_take(const char **at, char stop, char ret_part[PS_NUMBER_SIZE]);

/* A finite decimal number; a whole one that a double would round is refused
 * rather than changed. Errors: PSD_INVALID naming `what` and the text. */
PSD_MUST_CHECK psd_status_t ps_word_number(const char *what, const char *text, double *ret_value,
                                           psd_error_t *err);
/* PSD_INVALID: text is not a number. */
psd_status_t ps_word_no_number(const char *what, const char *text, psd_error_t *err);
/* The shortest text that ps_word_number reads back to the same bits. */
void ps_word_format_number(double value, char ret[PS_NUMBER_SIZE]);
#endif
