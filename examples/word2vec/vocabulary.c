/* SPDX-License-Identifier: Apache-2.0 */
/* Words, counted and numbered. */
#include "vocabulary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define CAPACITY_MIN 1024
#define WORDS_MAX (UINT32_MAX / 4)

static uint64_t hash(const char *text)
{
    uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a */

    for (; *text != '\0'; text++) {
        sum = (sum ^ (uint8_t)*text) * UINT64_C(1099511628211);
    }
    return sum ^ sum >> 32;
}

/* Its place in the index, or the free one where it would be. */
static uint32_t place_of(const wv_vocabulary_t *self, const char *text)
{
    uint32_t at = (uint32_t)hash(text) & (self->capacity - 1);

    while (self->index[at] != WV_UNKNOWN && strcmp(self->words[self->index[at]].text, text) != 0) {
        at = (at + 1) & (self->capacity - 1);
    }
    return at;
}

static void index_all(wv_vocabulary_t *self)
{
    memset(self->index, 0xFF, self->capacity * sizeof *self->index);
    for (uint32_t i = 0; i < self->n; i++) {
        self->index[place_of(self, self->words[i].text)] = i;
    }
}

/* Room for one more. false: there is no memory. */
static bool grow(wv_vocabulary_t *self)
{
    uint32_t capacity = self->capacity == 0 ? CAPACITY_MIN : 2 * self->capacity;
    wv_word_t *words = NULL;
    uint32_t *index = NULL;

    if (self->n < self->room) {
        return true;
    }
    if (self->n >= WORDS_MAX) {
        return false;
    }
    words = realloc(self->words, capacity / 2 * sizeof *words);
    if (words == NULL) {
        return false;
    }
    self->words = words;
    index = realloc(self->index, capacity * sizeof *index);
    if (index == NULL) {
        return false;
    }
    self->index = index;
    self->capacity = capacity;
    self->room = capacity / 2;
    index_all(self);
    return true;
}

uint32_t wv_vocabulary_add(wv_vocabulary_t *self, const char *text)
{
    uint32_t at = 0;
    char *own = NULL;

    if (!grow(self)) {
        return WV_UNKNOWN;
    }
    at = place_of(self, text);
    if (self->index[at] == WV_UNKNOWN) {
        own = strdup(text);
        if (own == NULL) {
            return WV_UNKNOWN;
        }
        self->words[self->n] = (wv_word_t){.text = own};
        self->index[at] = self->n++;
    }
    return self->index[at];
}

uint32_t wv_vocabulary_find(const wv_vocabulary_t *self, const char *text)
{
    return self->capacity == 0 ? WV_UNKNOWN : self->index[place_of(self, text)];
}

static int by_count(const void *a, const void *b)
{
    const wv_word_t *one = a;
    const wv_word_t *other = b;

    if (one->count != other->count) {
        return one->count > other->count ? -1 : 1;
    }
    return strcmp(one->text, other->text);
}

/* Removes words that are too rare and sorts the rest. */
static void settle(wv_vocabulary_t *self, uint64_t min_count)
{
    uint32_t n = 1;

    for (uint32_t i = 1; i < self->n; i++) {
        if (self->words[i].count < min_count) {
            free(self->words[i].text);
        } else {
            self->words[n++] = self->words[i];
        }
    }
    self->n = n;
    qsort(self->words + 1, n - 1, sizeof *self->words, by_count);
    index_all(self);
    self->n_tokens = 0;
    for (uint32_t i = 0; i < n; i++) {
        self->n_tokens += self->words[i].count;
    }
}

psd_status_t wv_vocabulary_count(wv_vocabulary_t *self, const char *path, uint64_t min_count,
                                 psd_error_t *err)
{
    wv_text_t text;
    wv_token_t token = WV_WORD;
    psd_status_t rc = wv_text_open(&text, path, 0, 1, err);
    bool fits = true;

    *self = (wv_vocabulary_t){.n = 0};
    if (rc != PSD_OK) {
        return rc;
    }
    fits = wv_vocabulary_add(self, "</s>") == WV_END;
    while (fits && (token = wv_text_next(&text)) != WV_TEXT_END) {
        uint32_t word = token == WV_LINE_END ? WV_END : wv_vocabulary_add(self, text.word);

        fits = word != WV_UNKNOWN;
        if (fits) {
            self->words[word].count++;
        }
    }
    rc = fits ? wv_text_check(&text, err)
              : psd_error_set(err, PSD_NOMEM, "no memory for the words of %s", path);
    wv_text_close(&text);
    if (rc == PSD_OK) {
        settle(self, min_count);
        if (self->n < 2) {
            rc = psd_error_set(err, PSD_INVALID,
                               "%s: no word occurs %" PRIu64
                               " times; allowed: a smaller --min-count",
                               path, min_count);
        }
    }
    if (rc != PSD_OK) {
        wv_vocabulary_done(self);
    }
    return rc;
}

void wv_vocabulary_done(wv_vocabulary_t *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        free(self->words[i].text);
    }
    free(self->words);
    free(self->index);
    *self = (wv_vocabulary_t){.n = 0};
}
