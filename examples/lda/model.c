/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of all words. */
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../common/program/number.h"
#include "psd_data.h"

#define WORDS_MOST (1U << 27)
#define TOPICS_MOST 1048576

psd_status_t lda_model_init(lda_model_t *self, const lda_prior_t *prior, uint64_t first_id,
                            psd_error_t *err)
{
    memset(self, 0, sizeof *self);
    self->prior = *prior;
    self->first_id = first_id;
    self->starts = calloc((size_t)prior->n_words + 1, sizeof *self->starts);
    self->frequencies = calloc(prior->n_words, sizeof *self->frequencies);
    self->totals = calloc(prior->n_topics, sizeof *self->totals);
    if (self->starts == NULL || self->frequencies == NULL || self->totals == NULL) {
        lda_model_done(self);
        return psd_error_set(err, PSD_NOMEM, "a model of %" PRIu32 " words", prior->n_words);
    }
    return PSD_OK;
}

void lda_model_done(lda_model_t *self)
{
    free(self->starts);
    free(self->topics);
    free(self->counts);
    free(self->frequencies);
    free(self->totals);
    memset(self, 0, sizeof *self);
}

static bool grow(lda_model_t *self, size_t n)
{
    size_t room = self->room + self->room / 2;
    uint32_t *topics = NULL;
    int32_t *counts = NULL;

    if (n <= self->room) {
        return true;
    }
    room = room < n ? n + 1024 : room;
    topics = realloc(self->topics, room * sizeof *topics);
    if (topics != NULL) {
        self->topics = topics;
        counts = realloc(self->counts, room * sizeof *counts);
    }
    if (counts == NULL) {
        return false;
    }
    self->counts = counts;
    self->room = room;
    return true;
}

psd_status_t lda_model_add(lda_model_t *self, const uint32_t *topics, const int32_t *counts,
                           size_t n, psd_error_t *err)
{
    size_t at = self->starts[self->n];
    int64_t sum = 0;

    if (!grow(self, at + n)) {
        return psd_error_set(err, PSD_NOMEM, "%zu counts", at + n);
    }
    for (size_t i = 0; i < n; i++) {
        if (topics[i] >= self->prior.n_topics || counts[i] < 1 ||
            (i > 0 && topics[i] <= topics[i - 1])) {
            return psd_error_set(err, PSD_DAMAGED, "%" PRId32 " tokens of topic %" PRIu32,
                                 counts[i], topics[i]);
        }
        self->topics[at + i] = topics[i];
        self->counts[at + i] = counts[i];
        self->totals[topics[i]] += counts[i];
        sum += counts[i];
    }
    if (sum > INT32_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "%" PRId64 " tokens", sum);
    }
    self->frequencies[self->n++] = (uint32_t)sum;
    self->starts[self->n] = at + n;
    return PSD_OK;
}

psd_status_t lda_model_slice(const lda_model_t *self, lda_slice_t *ret_slice, psd_error_t *err)
{
    psd_status_t rc = lda_slice_init(ret_slice, &self->prior, err);

    if (rc == PSD_OK) {
        rc = lda_slice_begin(ret_slice, 0, self->n, self->frequencies, self->totals, err);
    }
    for (uint32_t word = 0; rc == PSD_OK && word < self->n; word++) {
        size_t first = self->starts[word];

        rc = lda_slice_set(ret_slice, word, self->frequencies[word], self->topics + first,
                           self->counts + first, self->starts[word + 1] - first, err);
    }
    if (rc != PSD_OK) {
        lda_slice_done(ret_slice);
    }
    return rc;
}

bool lda_model_write_head(FILE *file, const lda_prior_t *prior, uint64_t id)
{
    return fprintf(file, "psd-lda 1 %" PRIu32 " %" PRIu32 " %" PRIu64 " %.17g %.17g\n",
                   prior->n_topics, prior->n_words, id, prior->alpha, prior->beta) > 0;
}

bool lda_model_write_word(FILE *file, uint64_t id, const uint32_t *topics, const int32_t *counts,
                          size_t n)
{
    bool good = fprintf(file, "%" PRIu64, id) > 0;

    for (size_t i = 0; good && i < n; i++) {
        good = fprintf(file, " %" PRIu32 ":%" PRId32, topics[i], counts[i]) > 0;
    }
    return good && fputc('\n', file) != EOF;
}

/* ---- reading ------------------------------------------------------------- */

typedef struct lines {
    FILE *file;
    const char *path;
    char *text; /* owned */
    size_t room;
    uint64_t number;
    uint32_t *topics; /* of a line; owned, n_topics of them, as counts */
    int32_t *counts;
} lines_t;

static psd_status_t io_failed(const char *path, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "%s: %s", path, strerror_r(errno, reason, sizeof reason));
}

static psd_status_t bad_line(const lines_t *lines, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "%s:%" PRIu64 ": not what psd-lda writes", lines->path,
                         lines->number);
}

static bool next_line(lines_t *lines)
{
    lines->number++;
    return getline(&lines->text, &lines->room, lines->file) > 0;
}

static bool read_head(lines_t *lines, lda_prior_t *prior, uint64_t *ret_id)
{
    uint64_t numbers[4] = {0};
    double reals[2] = {0};
    char *rest = NULL;
    const char *word = NULL;

    if (!next_line(lines)) {
        return false;
    }
    word = strtok_r(lines->text, " \n", &rest);
    if (word == NULL || strcmp(word, "psd-lda") != 0) {
        return false;
    }
    for (size_t i = 0; i < 4; i++) {
        word = strtok_r(NULL, " \n", &rest);
        if (word == NULL || !ex_number_u64(word, &numbers[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < 2; i++) {
        word = strtok_r(NULL, " \n", &rest);
        if (word == NULL || !ex_number_f64(word, &reals[i]) ||
            !(reals[i] >= 1e-6 && reals[i] <= 1e3)) {
            return false;
        }
    }
    if (numbers[0] != 1 || numbers[1] < 1 || numbers[1] > TOPICS_MOST || numbers[2] < 1 ||
        numbers[2] > WORDS_MOST + 1 || numbers[3] > WORDS_MOST ||
        strtok_r(NULL, " \n", &rest) != NULL) {
        return false;
    }
    *prior = (lda_prior_t){(uint32_t)numbers[1], (uint32_t)numbers[2], reals[0], reals[1]};
    *ret_id = numbers[3];
    return true;
}

/* "TOPIC:COUNT" */
static bool read_pair(char *word, uint32_t *ret_topic, int32_t *ret_count)
{
    char *colon = strchr(word, ':');
    uint64_t topic = 0;
    uint64_t count = 0;

    if (colon == NULL) {
        return false;
    }
    *colon = '\0';
    if (!ex_number_u64(word, &topic) || !ex_number_u64(colon + 1, &count) || topic >= TOPICS_MOST ||
        count < 1 || count > INT32_MAX) {
        return false;
    }
    *ret_topic = (uint32_t)topic;
    *ret_count = (int32_t)count;
    return true;
}

static psd_status_t read_word(lines_t *lines, lda_model_t *model, psd_error_t *err)
{
    char *rest = NULL;
    char *word = NULL;
    uint64_t id = 0;
    size_t n = 0;

    if (!next_line(lines)) {
        return bad_line(lines, err);
    }
    word = strtok_r(lines->text, " \n", &rest);
    if (word == NULL || !ex_number_u64(word, &id) || id != model->first_id + model->n) {
        return bad_line(lines, err);
    }
    while ((word = strtok_r(NULL, " \n", &rest)) != NULL) {
        if (n == model->prior.n_topics || !read_pair(word, &lines->topics[n], &lines->counts[n])) {
            return bad_line(lines, err);
        }
        n++;
    }
    if (lda_model_add(model, lines->topics, lines->counts, n, err) != PSD_OK) {
        psd_error_clear(err);
        return bad_line(lines, err);
    }
    return PSD_OK;
}

/* A word takes two bytes at least: it checks the head's sizes before it
 * allocates. */
static bool has_room(FILE *file, uint32_t n_words)
{
    struct stat about;

    return fstat(fileno(file), &about) == 0 &&
           (!S_ISREG(about.st_mode) || about.st_size / 2 >= (off_t)n_words);
}

static psd_status_t read_all(lines_t *lines, lda_model_t *model, psd_error_t *err)
{
    lda_prior_t prior = {0};
    uint64_t first_id = 0;
    psd_status_t rc = PSD_OK;

    if (!read_head(lines, &prior, &first_id) || !has_room(lines->file, prior.n_words)) {
        return bad_line(lines, err);
    }
    lines->topics = calloc(prior.n_topics, sizeof *lines->topics);
    lines->counts = calloc(prior.n_topics, sizeof *lines->counts);
    if (lines->topics == NULL || lines->counts == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%s", lines->path);
    }
    rc = lda_model_init(model, &prior, first_id, err);
    while (rc == PSD_OK && model->n < prior.n_words) {
        rc = read_word(lines, model, err);
    }
    if (rc == PSD_OK && next_line(lines)) {
        rc = bad_line(lines, err);
    }
    return rc;
}

psd_status_t lda_model_load(lda_model_t *ret_model, const char *path, psd_error_t *err)
{
    lines_t lines = {.file = fopen(path, "re"), .path = path};
    psd_status_t rc = PSD_OK;

    memset(ret_model, 0, sizeof *ret_model);
    if (lines.file == NULL) {
        return io_failed(path, err);
    }
    rc = read_all(&lines, ret_model, err);
    free(lines.text);
    free(lines.topics);
    free(lines.counts);
    (void)fclose(lines.file);
    if (rc != PSD_OK) {
        lda_model_done(ret_model);
    }
    return rc;
}

/* ---- top words ----------------------------------------------------------- */

typedef struct ranked {
    uint32_t word;
    int32_t count;
} ranked_t;

static int compare(const void *a, const void *b)
{
    const ranked_t *x = a;
    const ranked_t *y = b;

    if (x->count != y->count) {
        return x->count < y->count ? 1 : -1;
    }
    return (x->word > y->word) - (x->word < y->word);
}

static void print_topic(const lda_model_t *self, uint32_t topic, const ranked_t *ranked, size_t n,
                        const psd_vocabulary_t *names)
{
    printf("topic %" PRIu32 " (%" PRId64 " tokens):", topic, self->totals[topic]);
    for (size_t i = 0; i < n; i++) {
        const char *name = names == NULL ? NULL : psd_vocabulary_word(names, ranked[i].word);

        if (name != NULL) {
            printf(" %s", name);
        } else {
            printf(" %" PRIu64, self->first_id + ranked[i].word);
        }
    }
    puts("");
}

/* The words of each topic are adjacent in `ranked`, from starts[topic] on. */
static void rank(const lda_model_t *self, ranked_t *ranked, size_t *starts)
{
    for (size_t i = 0; i < self->starts[self->n]; i++) {
        starts[self->topics[i] + 1]++;
    }
    for (uint32_t k = 0; k < self->prior.n_topics; k++) {
        starts[k + 1] += starts[k];
    }
    for (uint32_t word = self->n; word-- > 0;) {
        for (size_t i = self->starts[word]; i < self->starts[word + 1]; i++) {
            ranked[--starts[self->topics[i] + 1]] = (ranked_t){word, self->counts[i]};
        }
    }
}

psd_status_t lda_model_top(const lda_model_t *self, uint32_t n, const char *names, psd_error_t *err)
{
    uint32_t n_topics = self->prior.n_topics;
    size_t n_counts = self->starts[self->n];
    ranked_t *ranked = calloc(n_counts + 1, sizeof *ranked);
    size_t *starts = calloc((size_t)n_topics + 2, sizeof *starts);
    psd_vocabulary_t *words = NULL;
    psd_status_t rc = PSD_OK;

    if (ranked == NULL || starts == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "%zu counts", n_counts);
    }
    if (rc == PSD_OK && names != NULL) {
        rc = psd_vocabulary_read(names, &words, err);
    }
    if (rc == PSD_OK && words != NULL && psd_vocabulary_count(words) < self->n) {
        rc = psd_error_set(err, PSD_INVALID, "%s has %zu words; the model has %zu", names,
                           psd_vocabulary_count(words), (size_t)self->n);
    }
    if (rc == PSD_OK) {
        rank(self, ranked, starts);
        starts[n_topics + 1] = n_counts; /* the others are where they begin */
        for (uint32_t k = 0; k < n_topics; k++) {
            size_t first = starts[k + 1];
            size_t own = starts[k + 2] - first;

            qsort(ranked + first, own, sizeof *ranked, compare);
            print_topic(self, k, ranked + first, own < n ? own : n, words);
        }
    }
    psd_vocabulary_destroy(&words);
    free(ranked);
    free(starts);
    return rc;
}
