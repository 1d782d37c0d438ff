/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metropolis and Hastings. Most of the time would go into waiting for rows,
 * which lie anywhere in memory. So a token passes through four stages, some
 * tokens apart, and each stage prefetches what the next one reads: while the
 * sampler decides on one token, the rows of the following ones are on their
 * way.
 */
#include "sampler.h"

#include <stdlib.h>
#include <string.h>

#include "../common/program/random.h"

#define APART 4 /* tokens from one stage to the next */
#define RING 16 /* tokens whose plans are kept: more than 2 * APART */

psd_status_t lda_sampler_init(lda_sampler_t *self, const lda_prior_t *prior, uint32_t n_steps,
                              psd_error_t *err)
{
    memset(self, 0, sizeof *self);
    self->prior = prior;
    self->n_steps = n_steps;
    self->topics = calloc(prior->n_topics, sizeof *self->topics);
    self->plans = calloc((size_t)RING * n_steps, sizeof *self->plans);
    return self->topics == NULL || self->plans == NULL
               ? psd_error_set(err, PSD_NOMEM, "counts of a document")
               : PSD_OK;
}

void lda_sampler_done(lda_sampler_t *self)
{
    free(self->topics);
    free(self->plans);
    memset(self, 0, sizeof *self);
}

void lda_sampler_begin(lda_sampler_t *self)
{
    for (uint32_t k = 0; k < self->prior->n_topics; k++) {
        self->topics[k] = (lda_topic_t){.stale = self->slice->stale[k]};
    }
}

void lda_sampler_end(lda_sampler_t *self)
{
    for (uint32_t k = 0; k < self->prior->n_topics; k++) {
        self->totals[k] += self->topics[k].moved;
        self->topics[k].moved = 0;
    }
}

static const lda_row_t *row_of(const lda_sampler_t *self, const lda_tokens_t *tokens, size_t i)
{
    return &self->slice->rows[tokens->words[i] - self->slice->first];
}

/* ---- stages before a token is decided on ----------------------------------
 */

/* gcc 12 drops calls of a function that only prefetches, so this must not be
 * a call. */
static inline __attribute__((always_inline)) void fetch(const lda_sampler_t *self,
                                                        const lda_row_t *row, uint32_t topic)
{
    __builtin_prefetch(&self->slice->cells[lda_row_place(row, topic)]);
    __builtin_prefetch(&self->topics[topic]);
}

static inline __attribute__((always_inline)) void look(const lda_sampler_t *self,
                                                       const lda_tokens_t *tokens, size_t i)
{
    __builtin_prefetch(row_of(self, tokens, i));
    __builtin_prefetch(&self->topics[tokens->topics[i]]);
}

/* From the term of the counts, whose mass is given, or that of beta. The
 * choice is unpredictable, so it is made without a branch, as below. */
static inline void plan_word(lda_sampler_t *self, const lda_row_t *row, double mass,
                             lda_plan_t *plan)
{
    const lda_slice_t *slice = self->slice;
    const lda_alias_t *either[2] = {lda_row_entries(slice, row), slice->smooth};
    double place = ex_random_real(&self->random) * (mass + slice->smooth_mass);

    plan->random = ex_random(&self->random);
    either[0] += lda_alias_place(row->n_entries, plan->random);
    either[1] += lda_alias_place(self->prior->n_topics, plan->random);
    plan->entry = either[place >= mass];
    __builtin_prefetch(plan->entry);
}

/* Another token of the document, whose topic then counts; or any topic. */
static inline void plan_document(lda_sampler_t *self, const lda_tokens_t *tokens, size_t at,
                                 lda_plan_t *plan)
{
    const lda_prior_t *prior = self->prior;
    double n_others = (double)(int64_t)(tokens->n - 1);
    double alphas = prior->alpha * (double)prior->n_topics;
    double place = ex_random_real(&self->random) * (n_others + alphas);
    int64_t any = (int64_t)((place - n_others) / prior->alpha);
    int64_t last = (int64_t)prior->n_topics - 1; /* beyond it by rounding */
    size_t is_any = place >= n_others ? 1 : 0;
    size_t other = (size_t)(int64_t)place;
    const uint32_t *either[2] = {NULL, &plan->any};

    other = (other + (other >= at ? 1 : 0)) & (is_any - 1); /* 0: not used */
    either[0] = tokens->topics + other;
    plan->any = (uint32_t)(any < last ? any : last);
    plan->document = either[is_any];
}

static void plan_token(lda_sampler_t *self, const lda_tokens_t *tokens, size_t i)
{
    const lda_row_t *row = row_of(self, tokens, i);
    lda_plan_t *plans = self->plans + (i % RING) * self->n_steps;
    double mass = row->mass;

    fetch(self, row, tokens->topics[i]);
    if (!self->fixed) { /* of the only token of a word nothing is left */
        mass = row->n_tokens == 1 ? 0 : mass - 1 / self->topics[tokens->topics[i]].stale;
    }
    for (uint32_t step = 0; step < self->n_steps; step++) {
        plan_word(self, row, mass, &plans[step]);
        plan_document(self, tokens, i, &plans[step]);
    }
}

static bool is_smooth(const lda_sampler_t *self, const lda_plan_t *plan)
{
    return plan->entry >= self->slice->smooth &&
           plan->entry < self->slice->smooth + self->prior->n_topics;
}

/* Whether the draw from the row's alias table hit the token itself, which is
 * part of its topic's base: then it draws again. */
static bool is_own(lda_sampler_t *self, const lda_row_t *row, uint32_t own, const lda_plan_t *plan)
{
    return plan->word == own && !self->fixed && !is_smooth(self, plan) &&
           ex_random_real(&self->random) *
                   (double)lda_row_cell(self->slice, row, row->shape, own).base <
               1;
}

static void draw(lda_sampler_t *self, const lda_tokens_t *tokens, size_t i)
{
    const lda_row_t *row = row_of(self, tokens, i);

    for (uint32_t step = 0; step < self->n_steps; step++) {
        lda_plan_t *plan = &self->plans[(i % RING) * self->n_steps + step];

        plan->word = lda_alias_topic(*plan->entry, plan->random);
        while (is_own(self, row, tokens->topics[i], plan)) {
            plan->word = lda_alias_draw(lda_row_entries(self->slice, row), row->n_entries,
                                        ex_random(&self->random));
        }
        fetch(self, row, plan->word);
        fetch(self, row, *plan->document);
    }
}

/* ---- the decision -------------------------------------------------------- */

/*
 * The values of one topic for one token, all without the token itself: a
 * proposal that still had it would be another one for each topic that the token
 * may have, and what is drawn then is not p. With d, w, b for the counts of the
 * document, of the word now and as its row came, each with its prior, and t, s
 * for the total now and then, p ~ d w / t, the word's proposal ~ b / s, the
 * document's ~ d.
 */
typedef struct weight {
    double target, word; /* p over the word's proposal is target / old: */
    double old, total;   /* d w s / (b t); over the document's word / total */
} weight_t;

static inline weight_t weigh(const lda_sampler_t *self, lda_cell_t cell, uint32_t topic,
                             int32_t less, int32_t less_word)
{
    const lda_prior_t *prior = self->prior;
    const lda_topic_t *about = &self->topics[topic];
    double word = (double)(cell.count - less_word) + prior->beta;
    double total = about->stale + (double)(about->moved - less_word);

    return (weight_t){
        .target = ((double)(about->in_document - less) + prior->alpha) * word * about->stale,
        .word = word,
        .old = ((double)(cell.base - less_word) + prior->beta) * total,
        .total = total,
    };
}

/* A topic, and what it weighs. Two of them take turns: an index selects the
 * remaining one, since a branch would be unpredictable. */
typedef struct choice {
    weight_t weights[2];
    uint32_t topics[2];
    uint32_t now; /* which one */
} choice_t;

static inline void offer(lda_sampler_t *self, choice_t *choice, lda_cell_t cell, uint32_t topic,
                         uint32_t own, bool by_word)
{
    int32_t less = topic == own ? 1 : 0;
    weight_t then = weigh(self, cell, topic, less, self->fixed ? 0 : less);
    const weight_t *now = &choice->weights[choice->now];
    double random = ex_random_real(&self->random);
    bool takes = by_word ? random * now->target * then.old < then.target * now->old
                         : random * now->word * then.total < then.word * now->total;

    choice->weights[choice->now ^ 1] = then;
    choice->topics[choice->now ^ 1] = topic;
    choice->now ^= takes ? 1 : 0;
}

static inline uint32_t decide_in(lda_sampler_t *self, const lda_tokens_t *tokens, size_t i,
                                 lda_shape_t shape)
{
    const lda_slice_t *slice = self->slice;
    const lda_row_t *row = row_of(self, tokens, i);
    const lda_plan_t *plans = self->plans + (i % RING) * self->n_steps;
    uint32_t own = tokens->topics[i];
    choice_t choice = {.topics = {own}};

    choice.weights[0] =
        weigh(self, lda_row_cell(slice, row, shape, own), own, 1, self->fixed ? 0 : 1);
    for (uint32_t step = 0; step < self->n_steps; step++) {
        const lda_plan_t *plan = &plans[step];
        uint32_t other = *plan->document;

        offer(self, &choice, lda_row_cell(slice, row, shape, plan->word), plan->word, own, true);
        offer(self, &choice, lda_row_cell(slice, row, shape, other), other, own, false);
    }
    return choice.topics[choice.now];
}

static uint32_t decide(lda_sampler_t *self, const lda_tokens_t *tokens, size_t i)
{
    switch ((lda_shape_t)row_of(self, tokens, i)->shape) {
    case LDA_NARROW:
        return decide_in(self, tokens, i, LDA_NARROW);
    case LDA_WIDE:
        return decide_in(self, tokens, i, LDA_WIDE);
    case LDA_HASHED:
        break;
    }
    return decide_in(self, tokens, i, LDA_HASHED);
}

static void move(lda_sampler_t *self, const lda_tokens_t *tokens, size_t i, uint32_t topic)
{
    uint32_t own = tokens->topics[i];

    if (topic == own) {
        return;
    }
    tokens->topics[i] = topic;
    self->topics[own].in_document--;
    self->topics[topic].in_document++;
    if (!self->fixed) {
        lda_slice_add(self->slice, tokens->words[i], own, -1);
        lda_slice_add(self->slice, tokens->words[i], topic, 1);
        self->topics[own].moved--;
        self->topics[topic].moved++;
    }
}

uint32_t lda_sampler_draw(lda_sampler_t *self, const lda_tokens_t *tokens, size_t i)
{
    plan_token(self, tokens, i);
    draw(self, tokens, i);
    return decide(self, tokens, i);
}

void lda_sampler_run(lda_sampler_t *self, const lda_tokens_t *tokens)
{
    size_t first = tokens->first;
    size_t n = tokens->end - first;

    if (n == 0) {
        return;
    }
    for (size_t i = 0; i < tokens->n; i++) {
        self->topics[tokens->topics[i]].in_document++;
    }
    for (size_t i = 0; i < n + 3 * APART; i++) {
        if (i < n) {
            look(self, tokens, first + i);
        }
        if (i - APART < n) { /* below 0 it is huge */
            plan_token(self, tokens, first + i - APART);
        }
        if (i - 2 * APART < n) {
            draw(self, tokens, first + i - 2 * APART);
        }
        if (i - 3 * APART < n) {
            size_t at = first + i - 3 * APART;

            move(self, tokens, at, decide(self, tokens, at));
        }
    }
    for (size_t i = 0; i < tokens->n; i++) {
        self->topics[tokens->topics[i]].in_document = 0;
    }
}
