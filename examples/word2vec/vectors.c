/* SPDX-License-Identifier: Apache-2.0 */
/* Files of vectors. */
#include "vectors.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

#define SIZE_MAX_ALLOWED 100000
#define COUNT_MAX 100000000
#define NUMBER_MAX 40 /* characters of a number */

static psd_status_t damaged(const char *path, uint64_t word, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "%s: word %" PRIu64 ": %s", path, word + 1, what);
}

/* ---- reading ---- */

/* Up to a blank or the end of a line, which is taken too. */
static size_t take_text(FILE *file, char *text, size_t size)
{
    size_t n = 0;
    int byte = 0;

    do {
        byte = getc_unlocked(file);
    } while (byte == '\n' || byte == ' ');
    while (byte != EOF && byte != ' ' && byte != '\n' && n + 1 < size) {
        text[n++] = (char)byte;
        byte = getc_unlocked(file);
    }
    text[n] = '\0';
    return byte == EOF || byte == ' ' || byte == '\n' ? n : 0;
}

static bool take_numbers(FILE *file, float *values, uint32_t size)
{
    char text[NUMBER_MAX];

    for (uint32_t i = 0; i < size; i++) {
        char *end = NULL;

        if (take_text(file, text, sizeof text) == 0) {
            return false;
        }
        values[i] = strtof(text, &end);
        if (*end != '\0' || !isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

static bool take_floats(FILE *file, float *values, uint32_t size)
{
    if (fread(values, sizeof *values, size, file) != size) {
        return false;
    }
    for (uint32_t i = 0; i < size; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

/* The first word's numbers can be read as text, and a line ends after them. */
static bool is_text(FILE *file, uint32_t size)
{
    off_t at = ftello(file);
    char word[WV_WORD_MAX + 1];
    char text[NUMBER_MAX];
    char *end = NULL;
    bool fits = take_text(file, word, sizeof word) > 0;

    for (uint32_t i = 0; fits && i < size; i++) {
        fits = take_text(file, text, sizeof text) > 0;
        if (fits) {
            (void)strtof(text, &end);
            fits = *end == '\0';
        }
    }
    return fseeko(file, at, SEEK_SET) == 0 && fits;
}

static psd_status_t read_all(wv_vectors_t *self, const char *path, FILE *file, psd_error_t *err)
{
    uint64_t n = 0;
    bool text = false;

    if (fscanf(file, "%" SCNu64 " %" SCNu32, &n, &self->size) != 2 || n == 0 || n > COUNT_MAX ||
        self->size == 0 || self->size > SIZE_MAX_ALLOWED || getc_unlocked(file) != '\n') {
        return psd_error_set(
            err, PSD_INVALID,
            "%s: the first line is not COUNT SIZE; allowed: 1 .. %d words of 1 .. %d numbers", path,
            COUNT_MAX, SIZE_MAX_ALLOWED);
    }
    self->values = calloc((size_t)n * self->size, sizeof *self->values);
    if (self->values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", path);
    }
    text = is_text(file, self->size);
    for (uint64_t i = 0; i < n; i++) {
        float *values = self->values + i * self->size;
        char word[WV_WORD_MAX + 1];

        if (take_text(file, word, sizeof word) == 0) {
            return damaged(path, i, "the file ends, or it is too long", err);
        }
        if (!(text ? take_numbers(file, values, self->size)
                   : take_floats(file, values, self->size))) {
            return damaged(path, i, "the number of finite values does not match SIZE", err);
        }
        switch (wv_vocabulary_add(&self->words, word)) {
        case WV_UNKNOWN:
            return psd_error_set(err, PSD_NOMEM, "no memory for %s", path);
        default:
            if (self->words.n != i + 1) {
                return damaged(path, i, "it occurs twice", err);
            }
        }
    }
    return PSD_OK;
}

psd_status_t wv_vectors_read(wv_vectors_t *self, const char *path, psd_error_t *err)
{
    FILE *file = fopen(path, "rb");
    psd_status_t rc = PSD_OK;

    *self = (wv_vectors_t){.size = 0};
    if (file == NULL) {
        return psd_error_set(err, PSD_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    rc = read_all(self, path, file, err);
    if (ferror(file)) {
        rc = psd_error_set(err, PSD_IO, "%s: cannot be read", path);
    }
    (void)fclose(file);
    if (rc != PSD_OK) {
        wv_vectors_done(self);
    }
    return rc;
}

void wv_vectors_done(wv_vectors_t *self)
{
    wv_vocabulary_done(&self->words);
    free(self->values);
    self->values = NULL;
}

/* ---- writing ---- */

static void put_word(FILE *file, const char *word, const float *values, uint32_t size, bool binary)
{
    (void)fprintf(file, "%s ", word);
    if (binary) {
        (void)fwrite(values, sizeof *values, size, file);
    }
    for (uint32_t i = 0; !binary && i < size; i++) {
        (void)fprintf(file, i + 1 < size ? "%.9g " : "%.9g", (double)values[i]);
    }
    (void)fputc('\n', file);
}

psd_status_t wv_vectors_write(const wv_vocabulary_t *words, const float *values, uint32_t size,
                              bool binary, const char *path, psd_error_t *err)
{
    char beside[4096];
    FILE *file = NULL;
    bool written = false;

    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside ||
        (file = fopen(beside, "wb")) == NULL) {
        return psd_error_set(err, PSD_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    (void)fprintf(file, "%" PRIu32 " %" PRIu32 "\n", words->n, size);
    for (uint32_t i = 0; i < words->n; i++) {
        put_word(file, words->words[i].text, values + (size_t)i * size, size, binary);
    }
    written = fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
    written = fclose(file) == 0 && written;
    if (!written || rename(beside, path) != 0) {
        (void)unlink(beside);
        return psd_error_set(err, PSD_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    return PSD_OK;
}
