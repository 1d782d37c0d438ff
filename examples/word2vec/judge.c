/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs, analogies, neighbours. */
#include "judge.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "text.h"

#define FREQUENT 30000
#define NEAR 10
#define LINE_MAX_BYTES 1024

void wv_judge_prepare(wv_vectors_t *vectors)
{
    for (uint32_t i = 0; i < vectors->words.n; i++) {
        float *v = vectors->values + (size_t)i * vectors->size;
        double sum = 0;

        for (uint32_t k = 0; k < vectors->size; k++) {
            sum += (double)v[k] * (double)v[k];
        }
        for (uint32_t k = 0; sum > 0 && k < vectors->size; k++) {
            v[k] = (float)((double)v[k] / sqrt(sum));
        }
    }
}

static const float *vector_of(const wv_vectors_t *vectors, uint32_t word)
{
    return vectors->values + (size_t)word * vectors->size;
}

static double cosine(const wv_vectors_t *vectors, const float *a, const float *b)
{
    double sum = 0;

    for (uint32_t k = 0; k < vectors->size; k++) {
        sum += (double)a[k] * (double)b[k];
    }
    return sum;
}

/* ---- rank correlation ---- */

typedef struct ranked {
    double value;
    size_t place;
} ranked_t;

static int by_value(const void *a, const void *b)
{
    const ranked_t *one = a;
    const ranked_t *other = b;

    return (one->value > other->value) - (one->value < other->value);
}

/* ranks[i] of values[i], from 1; of equal ones the mean. */
static void rank_all(const double *values, size_t n, ranked_t *order, double *ranks)
{
    for (size_t i = 0; i < n; i++) {
        order[i] = (ranked_t){values[i], i};
    }
    qsort(order, n, sizeof *order, by_value);
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;

        while (end < n && order[end].value <= order[i].value) {
            end++;
        }
        for (size_t k = i; k < end; k++) {
            ranks[order[k].place] = (double)(i + 1 + end) / 2;
        }
        i = end;
    }
}

static double correlation(const double *a, const double *b, size_t n)
{
    double mean = (double)(n + 1) / 2; /* of ranks */
    double ab = 0;
    double aa = 0;
    double bb = 0;

    for (size_t i = 0; i < n; i++) {
        ab += (a[i] - mean) * (b[i] - mean);
        aa += (a[i] - mean) * (a[i] - mean);
        bb += (b[i] - mean) * (b[i] - mean);
    }
    return ab / sqrt(aa * bb);
}

psd_status_t wv_spearman(const double *a, const double *b, size_t n, double *ret, psd_error_t *err)
{
    ranked_t *order = calloc(n + 1, sizeof *order);
    double *ranks = calloc(2 * n + 1, sizeof *ranks);
    bool fits = order != NULL && ranks != NULL;

    if (fits) {
        rank_all(a, n, order, ranks);
        rank_all(b, n, order, ranks + n);
        *ret = correlation(ranks, ranks + n, n);
    }
    free(order);
    free(ranks);
    return fits ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory to rank pairs");
}

/* ---- files ---- */

typedef struct lines {
    const char *path;
    FILE *file;
    uint64_t number;
    char text[LINE_MAX_BYTES];
} lines_t;

static psd_status_t open_lines(lines_t *self, const char *path, psd_error_t *err)
{
    *self = (lines_t){.path = path, .file = fopen(path, "r")};
    return self->file != NULL
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "%s: cannot be opened: %s", path, strerror(errno));
}

/* In lower case. */
static bool next_line(lines_t *self)
{
    if (fgets(self->text, sizeof self->text, self->file) == NULL) {
        return false;
    }
    self->number++;
    for (char *c = self->text; *c != '\0'; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    return true;
}

static psd_status_t refuse_line(const lines_t *self, const char *allowed, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "%s:%" PRIu64 ": allowed: %s", self->path, self->number,
                         allowed);
}

typedef struct pairs {
    double *cosines;
    double *scores;
    size_t n;
    size_t room;
} pairs_t;

static bool add_pair(pairs_t *self, double value, double score)
{
    if (self->n == self->room) {
        size_t room = self->room == 0 ? 512 : 2 * self->room;
        double *cosines = realloc(self->cosines, room * sizeof *cosines);
        double *scores = NULL;

        if (cosines == NULL) {
            return false;
        }
        self->cosines = cosines;
        scores = realloc(self->scores, room * sizeof *scores);
        if (scores == NULL) {
            return false;
        }
        self->scores = scores;
        self->room = room;
    }
    self->cosines[self->n] = value;
    self->scores[self->n++] = score;
    return true;
}

psd_status_t wv_judge_pairs(const wv_vectors_t *vectors, const char *path, wv_judgement_t *ret,
                            psd_error_t *err)
{
    pairs_t pairs = {.n = 0};
    lines_t lines;
    psd_status_t rc = open_lines(&lines, path, err);

    *ret = (wv_judgement_t){.n = 0};
    if (rc != PSD_OK) {
        return rc;
    }
    while (rc == PSD_OK && next_line(&lines)) {
        char one[WV_WORD_MAX + 1];
        char other[WV_WORD_MAX + 1];
        double score = 0;
        uint32_t a = 0;
        uint32_t b = 0;

        if (sscanf(lines.text, "%100s %100s %lf", one, other, &score) != 3) {
            rc = refuse_line(&lines, "word, word, score", err);
            break;
        }
        ret->n_all++;
        a = wv_vocabulary_find(&vectors->words, one);
        b = wv_vocabulary_find(&vectors->words, other);
        if (a != WV_UNKNOWN && b != WV_UNKNOWN &&
            !add_pair(&pairs, cosine(vectors, vector_of(vectors, a), vector_of(vectors, b)),
                      score)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for pairs");
        }
    }
    (void)fclose(lines.file);
    ret->n = pairs.n;
    if (rc == PSD_OK) {
        rc = wv_spearman(pairs.cosines, pairs.scores, pairs.n, &ret->value, err);
    }
    free(pairs.cosines);
    free(pairs.scores);
    return rc;
}

/* ---- analogies ---- */

/* Of vectors of any size. */
static inline __attribute__((always_inline)) float dot(const float *a, const float *b, size_t n)
{
    size_t in_lanes = n - n % WV_LANES;
    float sum = wv_dot(a, b, in_lanes);

    for (size_t i = in_lanes; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* The word nearest to `to`, but those. */
WV_WIDE static uint32_t nearest(const wv_vectors_t *vectors, const float *to, const uint32_t *but,
                                size_t n_but)
{
    uint32_t found = WV_UNKNOWN;
    float most = -INFINITY;

    for (uint32_t i = 0; i < FREQUENT && i < vectors->words.n; i++) {
        float sum = dot(vector_of(vectors, i), to, vectors->size);
        bool counts = true;

        for (size_t k = 0; k < n_but; k++) {
            counts = counts && but[k] != i;
        }
        if (counts && sum > most) {
            most = sum;
            found = i;
        }
    }
    return found;
}

static bool is_right(const wv_vectors_t *vectors, const uint32_t words[4], float *to)
{
    const float *a = vector_of(vectors, words[0]);
    const float *b = vector_of(vectors, words[1]);
    const float *c = vector_of(vectors, words[2]);

    for (uint32_t k = 0; k < vectors->size; k++) {
        to[k] = b[k] - a[k] + c[k];
    }
    return nearest(vectors, to, words, 3) == words[3];
}

/* All four are among the frequent ones. */
static bool find_words(const wv_vectors_t *vectors, char texts[4][WV_WORD_MAX + 1],
                       uint32_t words[4])
{
    for (int i = 0; i < 4; i++) {
        words[i] = wv_vocabulary_find(&vectors->words, texts[i]);
        if (words[i] >= FREQUENT) {
            return false;
        }
    }
    return true;
}

psd_status_t wv_judge_questions(const wv_vectors_t *vectors, const char *path, wv_judgement_t *ret,
                                psd_error_t *err)
{
    float *to = calloc(vectors->size, sizeof *to);
    uint64_t n_right = 0;
    lines_t lines;
    psd_status_t rc = open_lines(&lines, path, err);

    *ret = (wv_judgement_t){.n = 0};
    if (to == NULL && rc == PSD_OK) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a vector");
    }
    while (rc == PSD_OK && next_line(&lines)) {
        char texts[4][WV_WORD_MAX + 1];
        uint32_t words[4];

        if (lines.text[0] == ':') {
            continue;
        }
        if (sscanf(lines.text, "%100s %100s %100s %100s", texts[0], texts[1], texts[2], texts[3]) !=
            4) {
            rc = refuse_line(&lines, "four words, or : and a name", err);
            break;
        }
        ret->n_all++;
        if (find_words(vectors, texts, words)) {
            ret->n++;
            n_right += is_right(vectors, words, to) ? 1 : 0;
        }
    }
    ret->value = ret->n == 0 ? NAN : (double)n_right / (double)ret->n;
    if (lines.file != NULL) {
        (void)fclose(lines.file);
    }
    free(to);
    return rc;
}

/* ---- neighbours ---- */

psd_status_t wv_judge_near(const wv_vectors_t *vectors, const char *word, psd_error_t *err)
{
    uint32_t but[NEAR + 1] = {wv_vocabulary_find(&vectors->words, word)};
    const float *to = NULL;

    if (but[0] == WV_UNKNOWN) {
        return psd_error_set(err, PSD_INVALID,
                             "\"%s\" is not known; allowed: a word of the "
                             "vectors",
                             word);
    }
    to = vector_of(vectors, but[0]);
    for (size_t i = 1; i <= NEAR; i++) {
        but[i] = nearest(vectors, to, but, i);
        if (but[i] == WV_UNKNOWN) {
            break;
        }
        (void)printf("%-24s %.4f\n", vectors->words.words[but[i]].text,
                     cosine(vectors, to, vector_of(vectors, but[i])));
    }
    return PSD_OK;
}
