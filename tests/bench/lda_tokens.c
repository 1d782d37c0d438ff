/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What examples/lda takes for a token with few topics and with many, in turns.
 *
 *     lda_tokens FILE [FEW MANY [SWEEPS [MH-STEPS]]]
 *
 * FILE is a bag of words. Topics are random ones at first. Times are those of
 * this thread on the processor, of sampling alone, as psd-lda prints them: rows
 * come anew before each sweep, and that is not counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lda/corpus.h"
#include "lda/sampler.h"

#define SWEEPS_MOST 1000

typedef struct side {
    lda_options_t options;
    lda_prior_t prior;
    lda_block_t block;
    lda_slice_t slice;
    lda_sampler_t sampler;
    int64_t *totals;
    lda_change_t *changes; /* scratch, as what follows */
    uint32_t *topics;
    int32_t *counts;
    size_t *starts;
    double ns[SWEEPS_MOST];
} side_t;

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void expect(psd_status_t rc, const psd_error_t *err)
{
    if (rc != PSD_OK) {
        fprintf(stderr, "lda_tokens: %s\n",
                err == NULL ? psd_status_text(rc) : psd_error_text(err));
        exit(1);
    }
}

static void *room(size_t n, size_t size)
{
    void *things = calloc(n, size);

    expect(things == NULL ? PSD_NOMEM : PSD_OK, NULL);
    return things;
}

static void begin(side_t *self, const lda_corpus_t *corpus, psd_error_t *err)
{
    lda_block_key_t key = {.n_blocks = 1,
                           .n_topics = self->options.n_topics,
                           .n_words = corpus->n_words,
                           .first_id = corpus->first_id};

    self->prior = (lda_prior_t){key.n_topics, key.n_words, 0.1, 0.01};
    expect(lda_corpus_block(&self->options, &key, NULL, &self->block, err), err);
    expect(lda_slice_init(&self->slice, &self->prior, err), err);
    expect(lda_sampler_init(&self->sampler, &self->prior, self->options.n_steps, err), err);
    self->totals = room(key.n_topics, sizeof *self->totals);
    self->changes = room(key.n_topics, sizeof *self->changes);
    self->topics = room(self->block.n_tokens, sizeof *self->topics);
    self->counts = room(self->block.n_tokens, sizeof *self->counts);
    self->starts = room((size_t)key.n_words + 1, sizeof *self->starts);
    self->sampler.slice = &self->slice;
    self->sampler.totals = self->totals;
}

/* The counts of all words, as they come from a table. */
static void pull(side_t *self, const lda_corpus_t *corpus, psd_error_t *err)
{
    memset(self->totals, 0, self->prior.n_topics * sizeof *self->totals);
    expect(
        lda_slice_begin(&self->slice, 0, corpus->n_words, corpus->frequencies, self->totals, err),
        err);
    for (size_t i = 0; i < self->block.n_tokens; i++) {
        lda_slice_add(&self->slice, self->block.words[i], self->block.topics[i], 1);
        self->totals[self->block.topics[i]]++;
    }
    for (uint32_t word = 0; word < corpus->n_words; word++) {
        size_t at = self->starts[word];
        size_t n = lda_slice_changes(&self->slice, word, self->changes);

        for (size_t i = 0; i < n; i++) {
            self->topics[at + i] = self->changes[i].topic;
            self->counts[at + i] = self->changes[i].delta;
        }
        self->starts[word + 1] = at + n;
    }
    expect(
        lda_slice_begin(&self->slice, 0, corpus->n_words, corpus->frequencies, self->totals, err),
        err);
    for (uint32_t word = 0; word < corpus->n_words; word++) {
        size_t at = self->starts[word];

        expect(lda_slice_set(&self->slice, word, corpus->frequencies[word], self->topics + at,
                             self->counts + at, self->starts[word + 1] - at, err),
               err);
    }
}

static double sweep(side_t *self)
{
    const lda_block_t *block = &self->block;
    double start_s = cpu_s();

    lda_sampler_begin(&self->sampler);
    for (size_t d = 0; d < block->n_documents; d++) {
        size_t start = block->starts[d];
        size_t n = block->starts[d + 1] - start;
        lda_tokens_t tokens = {
            .words = block->words + start, .topics = block->topics + start, .n = n, .end = n};

        lda_sampler_run(&self->sampler, &tokens);
    }
    lda_sampler_end(&self->sampler);
    return (cpu_s() - start_s) / (double)block->n_tokens * 1e9;
}

static void end(side_t *self)
{
    lda_block_done(&self->block);
    lda_slice_done(&self->slice);
    lda_sampler_done(&self->sampler);
    free(self->totals);
    free(self->changes);
    free(self->topics);
    free(self->counts);
    free(self->starts);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

static uint32_t argument(int argc, char **argv, int at, uint32_t least, uint32_t otherwise)
{
    unsigned long value = argc > at ? strtoul(argv[at], NULL, 10) : (unsigned long)otherwise;

    expect(value < least || value > LDA_TOPICS_MOST ? PSD_RANGE : PSD_OK, NULL);
    return (uint32_t)value;
}

int main(int argc, char **argv)
{
    static side_t sides[2];
    uint32_t n_sweeps = argument(argc, argv, 4, 1, 5);
    psd_error_t *err = psd_error_new();
    lda_corpus_t corpus;

    if (argc < 2 || n_sweeps > SWEEPS_MOST) {
        fputs("usage: lda_tokens FILE [FEW MANY [SWEEPS [MH-STEPS]]]\n", stderr);
        return 2;
    }
    for (int at = 0; at < 2; at++) {
        sides[at].options =
            (lda_options_t){.train = argv[1],
                            .n_topics = argument(argc, argv, 2 + at, 2, at == 0 ? 100 : 10000),
                            .n_steps = argument(argc, argv, 5, 1, 2)};
    }
    expect(lda_corpus_scan(&corpus, &sides[0].options, err), err);
    begin(&sides[0], &corpus, err);
    begin(&sides[1], &corpus, err);
    for (uint32_t i = 0; i < n_sweeps; i++) {
        for (int at = 0; at < 2; at++) {
            pull(&sides[at], &corpus, err);
            sides[at].ns[i] = sweep(&sides[at]);
        }
        printf("sweep %u  %.0f ns a token with %u topics, %.0f with %u: "
               "%.2f times\n",
               (unsigned)i + 1, sides[0].ns[i], (unsigned)sides[0].prior.n_topics, sides[1].ns[i],
               (unsigned)sides[1].prior.n_topics, sides[1].ns[i] / sides[0].ns[i]);
        (void)fflush(stdout);
    }
    printf("medians  %.1f and %.1f ns\n", median(sides[0].ns, n_sweeps),
           median(sides[1].ns, n_sweeps));
    end(&sides[0]);
    end(&sides[1]);
    lda_corpus_done(&corpus);
    psd_error_destroy(&err);
    return 0;
}
