/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_text - the words of a part of a text file
 *
 * What     Words are what stands between blanks, tabs and ends of lines; of a
 *          longer one the first WV_WORD_MAX bytes. A part begins with the first
 *          line that begins in it and ends with the last one that does: every
 *          line is in one part.
 * Owner    the caller; wv_text_close
 * Threads  one
 */
#ifndef WV_TEXT_H
#define WV_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "psd.h"

#define WV_WORD_MAX 100

typedef struct wv_text {
    const char *path; /* borrowed */
    FILE *file;
    uint64_t at;      /* of the next byte */
    uint64_t end;     /* lines that begin here or later belong to another part */
    bool is_line_end; /* the last byte read was one */
    char word[WV_WORD_MAX + 1];
} wv_text_t;

typedef enum wv_token { WV_WORD, WV_LINE_END, WV_TEXT_END } wv_token_t;

/* Opens part i of n. Errors: PSD_IO naming the file. */
PSD_MUST_CHECK psd_status_t wv_text_open(wv_text_t *self, const char *path, uint32_t part,
                                         uint32_t n_parts, psd_error_t *err);
void wv_text_close(wv_text_t *self);
/* The next token; a word is in self->word until the next call. A read error
 * looks like the end: call wv_text_check. */
wv_token_t wv_text_next(wv_text_t *self);
/* Errors: PSD_IO reading has failed. */
PSD_MUST_CHECK psd_status_t wv_text_check(const wv_text_t *self, psd_error_t *err);
#endif
