/* SPDX-License-Identifier: Apache-2.0 */
/* examples/lda: what needs no server: alias tables, what is drawn against
 * what should be, blocks and models in files. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/program/random.h"
#include "lda/corpus.h"
#include "lda/likelihood.h"
#include "lda/model.h"
#include "lda/sampler.h"
#include "support/temp_dir.h"

static temp_dir_t dir;
static char path[PATH_MAX + 16];

static void setup(void)
{
    cr_assert(temp_dir_make(&dir));
    (void)snprintf(path, sizeof path, "%s/file", dir.path);
}

static void teardown(void)
{
    temp_dir_drop(&dir);
}

TestSuite(lda, .init = setup, .fini = teardown);

/* The sum of (seen - expected)^2 / expected. */
static double chi_square(const double *seen, const double *parts, size_t n, double n_draws)
{
    double all = 0;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        all += parts[i];
    }
    for (size_t i = 0; i < n; i++) {
        double expected = parts[i] / all * n_draws;

        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
    }
    return sum;
}

Test(lda, alias_table_draws_by_weight)
{
    enum { N = 7, DRAWS = 700000 };
    static const double weights[N] = {1, 0.001, 20, 3, 3, 0.5, 9};
    lda_alias_t entries[N];
    double spoilt[N];
    double seen[N] = {0};
    uint32_t scratch[N];
    uint64_t random = 1;
    double sum = 0;

    for (uint32_t i = 0; i < N; i++) {
        entries[i] = lda_alias_entry(i);
        spoilt[i] = weights[i];
    }
    sum = lda_alias_build(entries, spoilt, scratch, N);
    cr_assert_float_eq(sum, 36.501, 1e-9);
    for (int i = 0; i < DRAWS; i++) {
        seen[lda_alias_draw(entries, N, ex_random(&random))]++;
    }
    /* 6 degrees of freedom: above 30 in 4 of 100,000 seeds. */
    cr_assert_lt(chi_square(seen, weights, N, DRAWS), 30);
}

Test(lda, alias_table_of_one_or_of_equals_has_no_others)
{
    lda_alias_t entries[4];
    double weights[4] = {0.3, 0.3, 0.3, 0.3};
    uint32_t scratch[4];

    for (uint32_t i = 0; i < 4; i++) {
        entries[i] = lda_alias_entry(i + 10);
    }
    (void)lda_alias_build(entries, weights, scratch, 4);
    for (uint64_t i = 0; i < 4; i++) {
        cr_assert_eq(lda_alias_draw(entries, 4, i << 62), i + 10);
        cr_assert_eq(lda_alias_draw(entries, 4, (i << 62) | UINT32_MAX), i + 10);
    }
}

/* ---- the sampler against the conditional that it is for -------------------
 */

/* Of so many topics that a rare word has a hash table; few of them are likely.
 */
enum { K = 80, LIKELY = 9, V = 4, N_TOKENS = 6, DRAWS = 200000 };

typedef struct fixture {
    lda_prior_t prior;
    int32_t rows[V][K]; /* tokens of all documents */
    int64_t totals[K];
    uint32_t words[N_TOKENS];
    uint32_t topics[N_TOKENS];
    lda_slice_t slice;
    lda_sampler_t sampler;
    lda_tokens_t tokens;
} fixture_t;

/* Counts of a large collection, in which word 2 is rare, and a document. Each
 * shape of a row is there. */
static void begin(fixture_t *self)
{
    static const int32_t others[V][K] = {{40000, 100, 30000, 0, 900},
                                         {500, 3000, 5, 2500, 0},
                                         {0, 1, 0, 0, 1},
                                         {900, 900, 3000, 1000, 2000, 300, 800, 500, 700}};
    static const uint32_t words[N_TOKENS] = {0, 0, 1, 2, 3, 3};
    static const uint32_t topics[N_TOKENS] = {0, 2, 3, 4, 2, 2};

    memset(self, 0, sizeof *self);
    self->prior = (lda_prior_t){K, V, 0.1, 0.01};
    memcpy(self->rows, others, sizeof others);
    memcpy(self->words, words, sizeof words);
    memcpy(self->topics, topics, sizeof topics);
    for (size_t i = 0; i < N_TOKENS; i++) {
        self->rows[words[i]][topics[i]]++;
    }
    for (size_t k = LIKELY; k < K; k++) {
        self->rows[3][k] = 1;
    }
    for (size_t k = 0; k < K; k++) {
        for (size_t w = 0; w < V; w++) {
            self->totals[k] += self->rows[w][k];
        }
    }
    cr_assert_eq(lda_slice_init(&self->slice, &self->prior, NULL), PSD_OK);
    cr_assert_eq(lda_sampler_init(&self->sampler, &self->prior, 40, NULL), PSD_OK);
    self->sampler.slice = &self->slice;
    self->sampler.totals = self->totals;
    self->sampler.n_steps = 1;
    self->tokens = (lda_tokens_t){.words = self->words, .topics = self->topics, .n = N_TOKENS};
}

static void end(fixture_t *self)
{
    lda_slice_done(&self->slice);
    lda_sampler_done(&self->sampler);
}

/* As a worker does when rows have come. */
static void pull(fixture_t *self)
{
    uint32_t frequencies[V] = {0};

    for (size_t w = 0; w < V; w++) {
        for (size_t k = 0; k < K; k++) {
            frequencies[w] += (uint32_t)self->rows[w][k];
        }
    }
    cr_assert_eq(lda_slice_begin(&self->slice, 0, V, frequencies, self->totals, NULL), PSD_OK);
    for (uint32_t w = 0; w < V; w++) {
        uint32_t topics[K];
        int32_t counts[K];
        size_t n = 0;

        for (uint32_t k = 0; k < K; k++) {
            if (self->rows[w][k] > 0) {
                topics[n] = k;
                counts[n++] = self->rows[w][k];
            }
        }
        cr_assert_eq(lda_slice_set(&self->slice, w, frequencies[w], topics, counts, n, NULL),
                     PSD_OK);
    }
    cr_assert_eq((lda_shape_t)self->slice.rows[0].shape, LDA_WIDE);
    cr_assert_eq((lda_shape_t)self->slice.rows[1].shape, LDA_NARROW);
    cr_assert_eq((lda_shape_t)self->slice.rows[2].shape, LDA_HASHED);
    lda_sampler_begin(&self->sampler);
}

/* p(k) of a token by its definition. */
static void conditional(const fixture_t *self, size_t i, double ret_parts[K])
{
    for (uint32_t k = 0; k < K; k++) {
        double less = self->topics[i] == k ? 1 : 0;
        double n_dk = -less;

        for (size_t j = 0; j < N_TOKENS; j++) {
            n_dk += self->topics[j] == k ? 1 : 0;
        }
        ret_parts[k] = (n_dk + self->prior.alpha) *
                       ((double)self->rows[self->words[i]][k] - less + self->prior.beta) /
                       ((double)self->totals[k] - less + V * self->prior.beta);
    }
}

/* Samples one token of the document over and over, rows coming anew each time:
 * its topic is then distributed as p, which does not hang on its own topic. */
static void check_token(size_t i)
{
    fixture_t self;
    double parts[K];
    double seen[K] = {0};
    double all = 0;

    begin(&self);
    conditional(&self, i, parts);
    self.sampler.random = 11 + i;
    self.tokens.first = i;
    self.tokens.end = i + 1;
    for (int draw = 0; draw < DRAWS; draw++) {
        uint32_t own = self.topics[i];

        pull(&self);
        lda_sampler_run(&self.sampler, &self.tokens);
        lda_sampler_end(&self.sampler);
        self.rows[self.words[i]][own]--;
        self.rows[self.words[i]][self.topics[i]]++;
        seen[self.topics[i]]++;
    }
    for (size_t k = 0; k < K; k++) {
        all += parts[k];
    }
    for (size_t k = 0; k < K; k++) { /* draws in a row are alike */
        double share = parts[k] / all;

        cr_assert_float_eq(seen[k] / DRAWS, share, 0.01 + 0.03 * share,
                           "token %zu topic %zu: %g of %g", i, k, seen[k] / DRAWS, share);
    }
    end(&self);
}

Test(lda, topics_of_a_frequent_word_are_drawn_as_they_should)
{
    check_token(0);
}

Test(lda, topics_of_a_rare_word_are_drawn_as_they_should)
{
    check_token(3);
}

/* With many steps each draw stands for itself, so that they can be tested. */
static void check_draws(size_t i, bool fixed)
{
    fixture_t self;
    double parts[K];
    double seen[K] = {0};
    double square = 0;

    begin(&self);
    if (fixed) { /* the document does not count in the rows */
        for (size_t j = 0; j < N_TOKENS; j++) {
            self.rows[self.words[j]][self.topics[j]]--;
            self.totals[self.topics[j]]--;
        }
        conditional(&self, i, parts);
        parts[self.topics[i]] *= ((double)self.rows[self.words[i]][self.topics[i]] + 0.01) /
                                 ((double)self.rows[self.words[i]][self.topics[i]] - 1 + 0.01) *
                                 ((double)self.totals[self.topics[i]] - 1 + V * 0.01) /
                                 ((double)self.totals[self.topics[i]] + V * 0.01);
    } else {
        conditional(&self, i, parts);
    }
    pull(&self);
    self.sampler.fixed = fixed;
    self.sampler.n_steps = 40;
    self.sampler.random = 5;
    for (size_t j = 0; j < N_TOKENS; j++) {
        self.sampler.topics[self.topics[j]].in_document++;
    }
    for (int draw = 0; draw < DRAWS / 4; draw++) {
        seen[lda_sampler_draw(&self.sampler, &self.tokens, i)]++;
    }
    for (size_t k = LIKELY + 1; k < K; k++) { /* those that are not, as one */
        seen[LIKELY] += seen[k];
        parts[LIKELY] += parts[k];
    }
    square = chi_square(seen, parts, LIKELY + 1, DRAWS / 4);
    /* 9 degrees of freedom: above 37 in 3 of 100,000 seeds. */
    cr_assert_lt(square, 37, "token %zu: %g", i, square);
    end(&self);
}

Test(lda, many_steps_give_the_exact_conditional)
{
    check_draws(1, false);
    check_draws(2, false);
    check_draws(5, false);
}

Test(lda, a_fixed_model_gives_the_exact_conditional)
{
    check_draws(1, true);
    check_draws(2, true);
}

Test(lda, the_same_seed_gives_the_same_topics_and_counts_stay_whole)
{
    fixture_t first;
    fixture_t second;

    begin(&first);
    begin(&second);
    first.tokens.end = N_TOKENS;
    second.tokens.end = N_TOKENS;
    pull(&first);
    pull(&second);
    for (int sweep = 0; sweep < 100; sweep++) {
        lda_sampler_run(&first.sampler, &first.tokens);
        lda_sampler_run(&second.sampler, &second.tokens);
    }
    lda_sampler_end(&first.sampler);
    cr_assert_arr_eq(first.topics, second.topics, sizeof first.topics);
    for (uint32_t w = 0; w < V; w++) {
        lda_change_t changes[K];
        size_t n = lda_slice_changes(&first.slice, w, changes);
        int32_t sum = 0;

        for (size_t i = 0; i < n; i++) {
            cr_assert(i == 0 || changes[i].topic > changes[i - 1].topic);
            sum += changes[i].delta;
            first.rows[w][changes[i].topic] += changes[i].delta;
            cr_assert_geq(first.rows[w][changes[i].topic], 0);
        }
        cr_assert_eq(sum, 0);
    }
    for (size_t k = 0; k < K; k++) {
        int64_t total = 0;

        for (size_t w = 0; w < V; w++) {
            total += first.rows[w][k];
        }
        cr_assert_eq(total, first.totals[k]);
        cr_assert_eq(first.sampler.topics[k].in_document, 0);
        cr_assert_eq(first.sampler.topics[k].moved, 0);
    }
    end(&first);
    end(&second);
}

/* ---- likelihood ---------------------------------------------------------- */

/* Values by Python's math.lgamma. */
Test(lda, likelihood_is_that_of_the_definition)
{
    lda_prior_t prior = {2, 3, 0.1, 0.01};
    size_t starts[3] = {0, 3, 5};
    uint32_t words[5] = {0, 1, 1, 0, 2};
    uint32_t topics[5] = {0, 1, 1, 0, 0};
    lda_block_t block = {
        .n_documents = 2, .n_tokens = 5, .starts = starts, .words = words, .topics = topics};
    const int64_t totals[2] = {3, 2};
    const int32_t two = 2;
    const int32_t one = 1;
    int32_t counts[2] = {0};

    cr_assert_float_eq(lda_likelihood_documents(&block, &prior, counts), -4.651359568457466, 1e-9);
    cr_assert_float_eq(lda_likelihood_topics(totals, &prior) +
                           2 * lda_likelihood_word(&two, 1, prior.beta) +
                           lda_likelihood_word(&one, 1, prior.beta),
                       -7.549647499154757, 1e-9);
    cr_assert_eq(counts[0], 0);
    cr_assert_eq(counts[1], 0);
}

/* ---- files --------------------------------------------------------------- */

static const lda_block_key_t key = {
    .block = 1, .n_blocks = 2, .n_topics = 4, .n_words = 10, .test_every = 5, .first_id = 1};

static void make_block(lda_block_t *ret_block)
{
    memset(ret_block, 0, sizeof *ret_block);
    cr_assert_eq(lda_block_add_document(ret_block, NULL), PSD_OK);
    cr_assert_eq(lda_block_add_word(ret_block, 7, 2, NULL), PSD_OK);
    cr_assert_eq(lda_block_add_word(ret_block, 3, 1, NULL), PSD_OK);
    lda_block_sort_last(ret_block);
    cr_assert_eq(lda_block_add_document(ret_block, NULL), PSD_OK);
    ret_block->topics[1] = 3;
    ret_block->sweeps = 12;
}

Test(lda, a_block_is_read_back_and_a_damaged_one_refused)
{
    lda_block_t block;
    lda_block_t back;
    char text[4096];
    char name[PATH_MAX + 32];
    size_t size = 0;
    FILE *file = NULL;

    make_block(&block);
    cr_assert_eq(lda_block_load(&back, dir.path, &key, NULL), PSD_RANGE);
    cr_assert_eq(lda_block_save(&block, dir.path, &key, NULL), PSD_OK);
    cr_assert_eq(lda_block_load(&back, dir.path, &key, NULL), PSD_OK);
    cr_assert_eq(back.n_documents, 2);
    cr_assert_eq(back.n_tokens, 3);
    cr_assert_eq(back.sweeps, 12);
    cr_assert_eq(back.words[0], 3);
    cr_assert_eq(back.topics[1], 3);
    cr_assert_eq(back.starts[2], 3);
    lda_block_done(&back);

    (void)snprintf(name, sizeof name, "%s/block-1-of-2", dir.path);
    file = fopen(name, "rbe");
    cr_assert_not_null(file);
    size = fread(text, 1, sizeof text, file);
    cr_assert_eq(fclose(file), 0);
    for (size_t i = 0; i < 2 * size; i++) { /* each byte changed, cut there */
        bool cut = i >= size;

        if (!cut && i >= 72 && i < 80) {
            continue; /* the number of sweeps, which nothing is compared with */
        }
        file = fopen(name, "wbe");
        cr_assert_not_null(file);
        text[i % size] ^= cut ? 0 : 1;
        cr_assert_eq(fwrite(text, 1, cut ? i - size : size, file), cut ? i - size : size);
        text[i % size] ^= cut ? 0 : 1;
        cr_assert_eq(fclose(file), 0);
        cr_assert_neq(lda_block_load(&back, dir.path, &key, NULL), PSD_OK, "byte %zu", i);
    }
    lda_block_done(&block);
}

Test(lda, documents_come_to_blocks_and_each_fifth_is_held_out)
{
    lda_options_t options = {.train = path, .test_every = 5, .n_topics = 4};
    lda_held_t held = {.path = path, .test_every = 5, .n_parts = 1, .first_id = 3, .n_words = 8};
    lda_corpus_t corpus;
    lda_block_t block;
    lda_block_key_t own = key;
    FILE *file = fopen(path, "we");

    cr_assert_not_null(file);
    for (int i = 0; i < 10; i++) {
        cr_assert_gt(fprintf(file, "1 3:%d 10:1\n", i + 1), 0);
    }
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(lda_corpus_scan(&corpus, &options, NULL), PSD_OK);
    cr_assert_eq(corpus.first_id, 3);
    cr_assert_eq(corpus.n_words, 8);
    cr_assert_eq(corpus.n_documents, 8);
    cr_assert_eq(corpus.n_tokens, 8 + 55 - 5 - 10);
    cr_assert_eq(corpus.frequencies[7], 8);
    own.n_words = 8;
    own.first_id = 3;
    cr_assert_eq(lda_corpus_block(&options, &own, NULL, &block, NULL), PSD_OK);
    cr_assert_eq(block.n_documents, 4); /* 1, 3, 6, 8 of the file */
    cr_assert_eq(block.n_tokens, 4 + 2 + 4 + 7 + 9);
    cr_assert_eq(block.words[0], 0);
    cr_assert_eq(block.words[2], 7);
    lda_block_done(&block);
    cr_assert_eq(lda_corpus_held(&options, &held, &block, NULL), PSD_OK);
    cr_assert_eq(block.n_documents, 2);
    cr_assert_eq(block.n_tokens, 2 + 5 + 10);
    cr_assert_eq(block.words[4], 0);
    cr_assert_eq(block.words[5], 7);
    lda_block_done(&block);
    lda_corpus_done(&corpus);
}

/* Of word 0. */
static int32_t count_of(const lda_slice_t *slice, uint32_t topic)
{
    const lda_row_t *row = &slice->rows[0];

    return lda_row_cell(slice, row, row->shape, topic).count;
}

Test(lda, a_model_is_read_back)
{
    lda_prior_t prior = {3, 2, 0.1, 0.01};
    const uint32_t topics[2] = {0, 2};
    const int32_t counts[2] = {5, 1};
    lda_model_t model;
    lda_slice_t slice;
    FILE *file = fopen(path, "we");

    cr_assert_not_null(file);
    cr_assert(lda_model_write_head(file, &prior, 9));
    cr_assert(lda_model_write_word(file, 9, topics, counts, 2));
    cr_assert(lda_model_write_word(file, 10, topics, counts, 0));
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(lda_model_load(&model, path, NULL), PSD_OK);
    cr_assert_eq(model.first_id, 9);
    cr_assert_eq(model.totals[0], 5);
    cr_assert_eq(model.totals[2], 1);
    cr_assert_eq(model.frequencies[0], 6);
    cr_assert_eq(model.frequencies[1], 0);
    cr_assert_eq(lda_model_slice(&model, &slice, NULL), PSD_OK);
    cr_assert_eq(count_of(&slice, 2), 1);
    lda_slice_done(&slice);
    lda_model_done(&model);
}
