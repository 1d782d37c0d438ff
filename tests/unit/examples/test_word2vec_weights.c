/* SPDX-License-Identifier: Apache-2.0 */
/* examples/word2vec: what several learners have changed of a row at once, added
 * up. Plain sums sent rows that all of them meet often further out with every
 * block, until they were no numbers. */
#include <criterion/criterion.h>
#include <math.h>

#include "word2vec/weights.h"

#define NEAR 1e-9
#define WORDS 64

/* ---- a weight ---- */

Test(weights, changes_together_go_as_far_as_one_after_the_other)
{
    for (double n = 1; n < 100; n *= 3) {
        for (double way = 1e-4; way < 1e3; way *= 10) {
            double weight = wv_weight_of(way, n);
            double together = n * weight * (1 - exp(-way));

            cr_expect_lt(fabs(together - (1 - exp(-n * way))), NEAR);
            cr_expect_geq(weight, 1 / n - NEAR);
            cr_expect_leq(weight, 1 + NEAR);
        }
    }
    cr_expect_eq(wv_weight_of(0, 7), 1, "nobody meets it");
    cr_expect_eq(wv_weight_of(1e300, 7), 1.0 / 7, "all meet it all the time");
}

/*
 * How far from its place, which is 0, a row is behind 200 rounds, from 1 on.
 * In a round each of n learners takes a block: it begins with what all rounds
 * but the last one have made of the row, and its own change of the last one,
 * and leaves exp(-way) of what it sees.
 */
static double
distance_of(double way, double weight, int n)
{
    double settled = 1; /* but for the last round */
    double own = 0;     /* each learner's change in that */

    for (int round = 0; round < 200; round++) {
        double change = -weight * (1 - exp(-way)) * (settled + own);

        settled += n * own;
        own = change;
    }
    return fabs(settled + n * own);
}

Test(weights, learners_that_know_nothing_of_each_other_settle)
{
    for (int n = 2; n <= 64; n *= 2) {
        for (double way = 0.25; way < 1000; way *= 2) {
            cr_expect_lt(distance_of(way, wv_weight_of(way, 2 * n - 1), n),
                         1e-3, "%d learners, way %g", n, way);
        }
    }
    cr_expect_gt(distance_of(10, 1, 4), 1e30, "plain sums do not");
}

/* ---- of a training ---- */

typedef struct training {
    wv_word_t words[WORDS];
    wv_options_t options;
    wv_task_t task;
} training_t;

/* Words that are met the half of the one before, down to 1. */
static void
training_init(training_t *self)
{
    *self = (training_t){.options = {.window = 5,
                                     .hs = true,
                                     .alpha = 0.025,
                                     .block = 1000,
                                     .trainers = 1}};
    self->words[0].count = 100;
    for (uint32_t i = 1; i < WORDS; i++) {
        self->words[i].count = i < 20 ? UINT64_C(1) << (20 - i) : 1;
        self->task.vocabulary.n_tokens += self->words[i].count;
    }
    self->task.options = &self->options;
    self->task.vocabulary.words = self->words;
    self->task.vocabulary.n = WORDS;
    cr_assert_eq(
        wv_draws_make(&self->task.draws, &self->task.vocabulary, 0, NULL),
        PSD_OK);
    cr_assert_eq(wv_tree_make(&self->task.tree, &self->task.vocabulary, NULL),
                 PSD_OK);
}

static void
training_done(training_t *self)
{
    wv_draws_done(&self->task.draws);
    wv_tree_done(&self->task.tree);
}

Test(weights, alone_all_counts)
{
    training_t training;
    wv_weights_t weights;

    training_init(&training);
    cr_assert_eq(wv_weights_make(&weights, &training.task, 1, NULL), PSD_OK);
    cr_expect_null(weights.nodes);
    wv_weights_done(&weights);
    training.options.hs = false;
    cr_assert_eq(wv_weights_make(&weights, &training.task, 4, NULL), PSD_OK);
    cr_expect_null(weights.nodes, "there is no tree");
    wv_weights_done(&weights);
    training_done(&training);
}

Test(weights, the_root_counts_by_its_mean_and_what_is_rare_in_full)
{
    training_t training;
    wv_weights_t weights;
    const wv_code_t *code = NULL;

    training_init(&training);
    cr_assert_eq(wv_weights_make(&weights, &training.task, 4, NULL), PSD_OK);
    code = &training.task.tree.codes[WORDS - 1];
    /* Seven: a learner's own block, and two of each of the three others. */
    cr_expect_float_eq(weights.nodes[code->nodes[0]], 1.0F / 7, 1e-3F,
                       "the root");
    for (uint8_t i = 1; i < code->n; i++) {
        cr_expect_geq(weights.nodes[code->nodes[i]],
                      weights.nodes[code->nodes[i - 1]]);
    }
    cr_expect_gt(weights.nodes[code->nodes[code->n - 1]], 0.99F);
    wv_weights_done(&weights);
    training_done(&training);
}

Test(weights, trainers_of_one_worker_are_several_learners)
{
    training_t training;
    wv_weights_t weights;

    training_init(&training);
    training.options.trainers = 3;
    training.options.no_pipeline = true;
    training.options.block = 3000;
    cr_assert_eq(wv_weights_make(&weights, &training.task, 1, NULL), PSD_OK);
    cr_expect_float_eq(weights.nodes[training.task.tree.codes[1].nodes[0]],
                       1.0F / 3, 1e-3F);
    wv_weights_done(&weights);
    training_done(&training);
}
