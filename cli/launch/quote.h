/* SPDX-License-Identifier: Apache-2.0 */
/* ps_quote - words as a shell reads them, and lists of words */
#ifndef PS_CLI_QUOTE_H
#define PS_CLI_QUOTE_H

#include "base/bytes.h"

/* Words of a command. Zeroed: empty. */
typedef struct ps_words {
    char **items; /* owned, each of them too; NULL-terminated once it has one */
    size_t n, capacity;
} ps_words_t;

/* Frees and zeroes; fits PSD_AUTO. */
void ps_words_done(ps_words_t *self);
/* Appends a formatted word. false: no memory. */
PSD_MUST_CHECK bool ps_words_add(ps_words_t *self, const char *format, ...) PSD_PRINTF(2, 3);
/* Appends each of the words that blanks separate. false: no memory. */
PSD_MUST_CHECK bool ps_words_split(ps_words_t *self, const char *text);

/* Appends the word, in single quotes unless it has only harmless characters: any POSIX
 * shell reads it back as it was, newlines too. false: no memory. */
PSD_MUST_CHECK bool ps_quote(ps_buffer_t *to, const char *word);
/* The same for words, with a blank between two. */
PSD_MUST_CHECK bool ps_quote_all(ps_buffer_t *to, const char *const *words);
#endif
