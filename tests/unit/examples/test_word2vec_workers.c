/* SPDX-License-Identifier: Apache-2.0 */
/*
 * examples/word2vec: several workers learn as well as one. Workers, server and
 * what each sees of the others are played here, the same way every time: under
 * BSP with the pipeline on, a block sees all blocks of the clocks before but
 * those of the last one, of which a worker knows its own.
 * Plain sums of what the workers had changed went past the place of every
 * frequent word, and the vectors told little or nothing.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/temp_dir.h"
#include "word2vec/kernel.h"
#include "word2vec/learner.h"

#define PATH_SIZE (PATH_MAX + 16)
#define N_LINES 6000
#define LINE_WORDS 10
#define N_KINDS 16
#define KIND_WORDS 10 /* of each kind, which stand together */
#define N_COMMON 8    /* words of no kind, half of the text */
#define N_NEAR 5
#define SIZE 32
#define WORKERS_MOST 8
#define ADDS_MOST 4000 /* rows of a block, in all tables */

static temp_dir_t dir;
static char path[PATH_SIZE];

static void setup(void)
{
    FILE *file = NULL;
    uint64_t random = 1;

    cr_assert(temp_dir_make(&dir));
    (void)snprintf(path, sizeof path, "%s/text", dir.path);
    file = fopen(path, "we");
    cr_assert_not_null(file);
    for (int line = 0; line < N_LINES; line++) {
        uint32_t kind = wv_random_below(&random, N_KINDS);

        for (int i = 0; i < LINE_WORDS; i++) {
            if (wv_random_below(&random, 2) == 0) {
                (void)fprintf(file, "common%u ", wv_random_below(&random, N_COMMON));
            } else {
                (void)fprintf(file, "%u.%u ", kind, wv_random_below(&random, KIND_WORDS));
            }
        }
        (void)fputc('\n', file);
    }
    cr_assert_eq(fclose(file), 0);
}

static void teardown(void)
{
    temp_dir_drop(&dir);
}

TestSuite(workers, .init = setup, .fini = teardown);

/* ---- a server, and trainers as psd_train.h has them ---- */

typedef struct add {
    uint32_t table;
    uint64_t row;
    float values[SIZE];
} add_t;

struct psd_trainer {
    float *tables[WV_VECTORS];
    add_t *adds; /* of the block at hand */
    size_t n_adds;
};

uint32_t psd_trainer_id(const psd_trainer_t *self)
{
    (void)self;
    return 0;
}

void psd_trainer_share(const psd_trainer_t *self, size_t n, size_t *ret_first, size_t *ret_end)
{
    (void)self;
    *ret_first = 0;
    *ret_end = n;
}

const void *psd_trainer_row(psd_trainer_t *self, uint32_t table, uint64_t row)
{
    return self->tables[table] + row * SIZE;
}

bool psd_trainer_get_row(psd_trainer_t *self, uint32_t table, uint64_t row, void *ret_values,
                         size_t n_values)
{
    memcpy(ret_values, psd_trainer_row(self, table, row), n_values * sizeof(float));
    return true;
}

void psd_trainer_add_row(psd_trainer_t *self, uint32_t table, uint64_t row, const void *values,
                         size_t n_values)
{
    add_t *add = &self->adds[self->n_adds++];

    cr_assert_leq(self->n_adds, ADDS_MOST);
    add->table = table;
    add->row = row;
    memcpy(add->values, values, n_values * sizeof(float));
}

static void apply(psd_trainer_t *self)
{
    for (size_t i = 0; i < self->n_adds; i++) {
        float *row = self->tables[self->adds[i].table] + self->adds[i].row * SIZE;

        for (size_t k = 0; k < SIZE; k++) {
            row[k] += self->adds[i].values[k];
        }
    }
    self->n_adds = 0;
}

/* ---- a training ---- */

typedef struct worker {
    wv_feed_t feed;
    wv_learner_t learner;
    psd_trainer_t clocks[2]; /* the one at hand, and the one before */
    bool has_learnt;
} worker_t;

static void worker_init(worker_t *self, const wv_task_t *task, const wv_others_t *others,
                        float *const *tables, uint32_t number)
{
    const wv_tables_t numbers = {.vectors = {WV_IN, WV_OUT, WV_TREE}};

    cr_assert_eq(wv_learner_init(&self->learner, task, &numbers, others, NULL), PSD_OK);
    wv_feed_init(&self->feed, task, number, others->n_workers);
    for (int i = 0; i < 2; i++) {
        memcpy(self->clocks[i].tables, tables, sizeof self->clocks[i].tables);
        self->clocks[i].adds = calloc(ADDS_MOST, sizeof(add_t));
        cr_assert_not_null(self->clocks[i].adds);
    }
}

static void worker_done(worker_t *self)
{
    wv_learner_done(&self->learner);
    wv_feed_done(&self->feed);
    free(self->clocks[0].adds);
    free(self->clocks[1].adds);
}

/* A block; how many words of the text it was, 0 at the end. */
static uint64_t learn_block(worker_t *self, uint64_t clock, uint64_t n_before)
{
    wv_block_t *block = NULL;
    uint64_t n_read = 0;

    cr_assert_eq(wv_feed_next(&self->feed, &block, NULL), PSD_OK);
    if (block == NULL) {
        return 0;
    }
    cr_assert_eq(wv_block_prepare(block, NULL), PSD_OK);
    cr_assert_eq(wv_learner_step(&self->learner, &self->clocks[clock % 2], block, n_before,
                                 self->has_learnt, NULL),
                 PSD_OK);
    self->has_learnt = true;
    n_read = block->n_read;
    wv_block_free(block);
    return n_read;
}

static void learn(const wv_task_t *task, float *const *tables, uint32_t n_workers)
{
    static worker_t workers[WORKERS_MOST];
    wv_others_t others;
    uint64_t n_seen = 0;
    uint64_t n_last = 1;

    memset(workers, 0, sizeof workers);
    cr_assert_eq(wv_others_init(&others, task, n_workers, NULL), PSD_OK);
    for (uint32_t i = 0; i < n_workers; i++) {
        worker_init(&workers[i], task, &others, tables, i);
    }
    for (uint64_t clock = 0; n_last > 0; clock++) {
        uint64_t n_read = 0;

        for (uint32_t i = 0; i < n_workers; i++) {
            n_read += learn_block(&workers[i], clock, n_seen);
        }
        for (uint32_t i = 0; i < n_workers; i++) {
            apply(&workers[i].clocks[(clock + 1) % 2]);
        }
        n_seen += clock == 0 ? 0 : n_last;
        n_last = n_read;
    }
    for (uint32_t i = 0; i < n_workers; i++) {
        worker_done(&workers[i]);
    }
    wv_others_done(&others);
}

/* ---- what it has learnt ---- */

static float cosine(const float *a, const float *b)
{
    return wv_dot(a, b, SIZE) / sqrtf(wv_dot(a, a, SIZE) * wv_dot(b, b, SIZE));
}

/* -1: common. */
static long kind_of(const wv_vocabulary_t *words, uint32_t word)
{
    const char *text = words->words[word].text;

    return text[0] == 'c' ? -1 : strtol(text, NULL, 10);
}

/* How many of the words that are nearest to one are of its kind. */
static uint32_t count_alike(const wv_vocabulary_t *words, const float *vectors, uint32_t word)
{
    bool taken[N_KINDS * KIND_WORDS + N_COMMON + 1] = {[0] = true};
    long kind = kind_of(words, word);
    uint32_t n_alike = 0;

    taken[word] = true;
    for (int n = 0; n < N_NEAR; n++) {
        uint32_t best = 0;
        float most = -INFINITY;

        for (uint32_t i = 1; i < words->n; i++) {
            float near = taken[i] ? -INFINITY : cosine(vectors + word * SIZE, vectors + i * SIZE);

            if (near > most) {
                most = near;
                best = i;
            }
        }
        taken[best] = true;
        n_alike += kind_of(words, best) == kind ? 1 : 0;
    }
    return n_alike;
}

/* The share of the words near to one that are of its kind. */
static double score_of(wv_options_t options, uint32_t n_workers)
{
    wv_task_t task = {.options = &options, .senses = {.n = 1}};
    float *tables[WV_VECTORS] = {NULL};
    uint64_t random = options.seed;
    uint32_t n_words = 0;
    uint32_t n_alike = 0;

    cr_assert_eq(wv_vocabulary_count(&task.vocabulary, path, 1, NULL), PSD_OK);
    n_words = task.vocabulary.n;
    cr_assert_eq(n_words, N_KINDS * KIND_WORDS + N_COMMON + 1);
    task.senses.n_words = n_words;
    cr_assert_eq(wv_draws_make(&task.draws, &task.vocabulary, 0, NULL), PSD_OK);
    cr_assert_eq(wv_tree_make(&task.tree, &task.vocabulary, NULL), PSD_OK);
    task.block = wv_block_words(&task, n_workers);
    for (int i = 0; i < WV_VECTORS; i++) {
        tables[i] = calloc((size_t)n_words * SIZE, sizeof(float));
        cr_assert_not_null(tables[i]);
    }
    for (size_t i = 0; i < (size_t)n_words * SIZE; i++) {
        tables[WV_IN][i] = ((float)wv_random_below(&random, 1000) / 1000 - 0.5F) / SIZE;
    }
    learn(&task, tables, n_workers);
    for (uint32_t i = 1; i < n_words; i++) {
        if (kind_of(&task.vocabulary, i) >= 0) {
            n_alike += count_alike(&task.vocabulary, tables[WV_IN], i);
        }
    }
    for (int i = 0; i < WV_VECTORS; i++) {
        free(tables[i]);
    }
    wv_vocabulary_done(&task.vocabulary);
    wv_draws_done(&task.draws);
    wv_tree_done(&task.tree);
    return (double)n_alike / (N_KINDS * KIND_WORDS * N_NEAR);
}

static wv_options_t options_of(wv_model_t model)
{
    return (wv_options_t){.train = path,
                          .size = SIZE,
                          .window = 3,
                          .negative = 5,
                          .senses = 1,
                          .epochs = 4,
                          .model = model,
                          .alpha = model == WV_CBOW ? 0.05 : 0.025,
                          .block = 1000,
                          .trainers = 1,
                          .seed = 3};
}

/* With TRAIN_LESS many learn for an epoch, after which nobody is good yet. */
static void many_are_as_good_as_one(wv_options_t *options)
{
    bool is_short = getenv("TRAIN_LESS") != NULL;
    double one = 0;
    double many = 0;

    options->epochs = is_short ? 1 : options->epochs;
    many = score_of(*options, WORKERS_MOST);
    if (is_short) {
        return;
    }
    one = score_of(*options, 1);
    cr_expect_gt(one, 0.8, "one worker: %g", one);
    cr_expect_gt(many, one - 0.05, "one worker: %g, %d: %g", one, WORKERS_MOST, many);
}

Test(workers, skip_gram)
{
    wv_options_t options = options_of(WV_SKIP_GRAM);

    many_are_as_good_as_one(&options);
}

Test(workers, cbow)
{
    wv_options_t options = options_of(WV_CBOW);

    many_are_as_good_as_one(&options);
}

Test(workers, tree)
{
    wv_options_t options = options_of(WV_SKIP_GRAM);

    options.negative = 0;
    options.hs = true;
    many_are_as_good_as_one(&options);
}

Test(workers, blocks_are_cut_where_they_are_too_few)
{
    wv_options_t options = options_of(WV_SKIP_GRAM);
    wv_task_t task = {.options = &options};

    cr_assert_eq(wv_vocabulary_count(&task.vocabulary, path, 1, NULL), PSD_OK);
    cr_assert_eq(wv_draws_make(&task.draws, &task.vocabulary, 0, NULL), PSD_OK);
    options.block = 20000;
    cr_expect_eq(wv_block_words(&task, 1), 20000, "alone");
    cr_expect_eq(wv_block_words(&task, 2), N_LINES * LINE_WORDS / 2 / 40);
    for (uint32_t i = 0; i < task.vocabulary.n; i++) {
        task.vocabulary.words[i].count *= 20;
    }
    cr_expect_eq(wv_block_words(&task, 2), N_LINES * LINE_WORDS * 20 / 2 / 400);
    cr_expect_eq(wv_block_words(&task, 8), 1000);
    for (uint32_t i = 0; i < task.vocabulary.n; i++) {
        task.vocabulary.words[i].count /= 20;
    }
    cr_expect_eq(wv_block_words(&task, 1000), WV_BLOCK_LEAST);
    options.block = 200;
    cr_expect_eq(wv_block_words(&task, 2), 200);
    wv_vocabulary_done(&task.vocabulary);
    wv_draws_done(&task.draws);
}

/* ---- how often others meet a row ---- */

Test(workers, all_change_the_root_and_one_a_rare_word)
{
    wv_options_t options = options_of(WV_SKIP_GRAM);
    wv_task_t task = {.options = &options, .block = 100, .senses = {.n = 1}};
    const wv_code_t *code = NULL;
    wv_others_t others;

    options.hs = true;
    cr_assert_eq(wv_vocabulary_count(&task.vocabulary, path, 1, NULL), PSD_OK);
    task.senses.n_words = task.vocabulary.n;
    cr_assert_eq(wv_draws_make(&task.draws, &task.vocabulary, 0, NULL), PSD_OK);
    cr_assert_eq(wv_tree_make(&task.tree, &task.vocabulary, NULL), PSD_OK);
    cr_assert_eq(wv_others_init(&others, &task, 4, NULL), PSD_OK);
    code = &task.tree.codes[task.vocabulary.n - 1];
    cr_expect_float_eq(wv_others_times(&others, WV_TREE, code->nodes[0], 100), 4, 0.01);
    cr_expect_leq(wv_others_times(&others, WV_TREE, code->nodes[0], 1), 4,
                  "never more than there are");
    /* A word of a kind: 1 in 320, in a block of 100 words. */
    cr_expect_float_eq(wv_others_times(&others, WV_IN, task.vocabulary.n - 1, 1),
                       1 + 3 * 100 / 320.0, 0.3);
    cr_expect_float_eq(wv_others_times(&others, WV_IN, task.vocabulary.n - 1, 30),
                       1 + 3 * 100 / 320.0 / 30, 0.01, "of one worker's part of the text");
    wv_others_done(&others);
    options.trainers = 3;
    cr_assert_eq(wv_others_init(&others, &task, 1, NULL), PSD_OK);
    cr_expect_eq(wv_others_times(&others, WV_TREE, code->nodes[0], 100), 3);
    cr_expect_eq(wv_others_times(&others, WV_IN, 1, 1), 1, "one trainer's");
    wv_others_done(&others);
    options.trainers = 1;
    cr_assert_eq(wv_others_init(&others, &task, 1, NULL), PSD_OK);
    cr_expect_eq(wv_others_times(&others, WV_TREE, code->nodes[0], 100), 1);
    wv_others_done(&others);
    wv_vocabulary_done(&task.vocabulary);
    wv_draws_done(&task.draws);
    wv_tree_done(&task.tree);
}
