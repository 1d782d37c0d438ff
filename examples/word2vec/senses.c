/* SPDX-License-Identifier: Apache-2.0 */
/* Names of senses, and how often each was met. */
#include "senses.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

#define MARKS "################" /* at most, between a word and its sense */
#define NAME_SIZE (WV_WORD_MAX + 32)

static void swap_floats(float *a, float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float value = a[i];

        a[i] = b[i];
        b[i] = value;
    }
}

static void put_first(const wv_senses_t *self, uint32_t word, float *values, uint32_t size,
                      float *met)
{
    uint32_t most = 0;

    for (uint32_t i = 1; i < self->n; i++) {
        most = met[i] > met[most] ? i : most;
    }
    if (most != 0) {
        swap_floats(&met[0], &met[most], 1);
        swap_floats(values + (size_t)word * size,
                    values + (size_t)wv_senses_row(self, word, most) * size, size);
    }
}

/* The next name, which no word has. false: there is no memory. */
static bool add_name(wv_vocabulary_t *words, const char *word, uint32_t sense)
{
    char name[NAME_SIZE];
    uint32_t row = words->n;
    int n_marks = 0;

    do {
        n_marks++;
        (void)snprintf(name, sizeof name, "%s%.*s%" PRIu32, word, n_marks, MARKS, sense + 1);
    } while (wv_vocabulary_find(words, name) != WV_UNKNOWN && n_marks < (int)sizeof MARKS - 1);
    return wv_vocabulary_add(words, name) == row;
}

psd_status_t wv_senses_name(const wv_senses_t *self, wv_vocabulary_t *words, float *values,
                            uint32_t size, float *met, psd_error_t *err)
{
    bool named = true;

    for (uint32_t word = 1; named && word <= self->last; word++) {
        put_first(self, word, values, size, met + (size_t)word * self->n);
        for (uint32_t i = 1; named && i < self->n; i++) {
            named = add_name(words, words->words[word].text, i);
        }
    }
    return named ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for names");
}

psd_status_t wv_senses_write(const wv_senses_t *self, const wv_vocabulary_t *words,
                             const float *met, const char *path, psd_error_t *err)
{
    FILE *file = fopen(path, "w");
    bool written = file != NULL;

    for (uint32_t word = 1; file != NULL && word <= self->last; word++) {
        const float *of_word = met + (size_t)word * self->n;
        double all = 0;

        for (uint32_t i = 0; i < self->n; i++) {
            all += (double)of_word[i];
        }
        for (uint32_t i = 0; i < self->n; i++) {
            (void)fprintf(file, "%s\t%s\t%.6f\n", words->words[word].text,
                          words->words[wv_senses_row(self, word, i)].text,
                          all > 0 ? (double)of_word[i] / all : 0);
        }
    }
    if (file != NULL) {
        written = !ferror(file);
        written = fclose(file) == 0 && written;
    }
    return written ? PSD_OK
                   : psd_error_set(err, PSD_IO, "%s: cannot be written: %s", path, strerror(errno));
}
