/* SPDX-License-Identifier: Apache-2.0 */
/* Metropolis and Hastings. */
#include "sampler.h"

#include <stdlib.h>
#include <string.h>

#include "../common/random.h"

#define BATCH 16 /* tokens that are drawn for at once */

psd_status_t
lda_sampler_init(lda_sampler_t *self,
                 const lda_prior_t *prior,
                 uint32_t n_steps,
                 psd_error_t *err)
{
    memset(self, 0, sizeof *self);
    self->prior = prior;
    self->n_steps = n_steps;
    self->counts = calloc(prior->n_topics, sizeof *self->counts);
    self->plans = calloc((size_t)BATCH * n_steps, sizeof *self->plans);
    return self->counts == NULL || self->plans == NULL
               ? psd_error_set(err, PSD_NOMEM, "counts of a document")
               : PSD_OK;
}

void
lda_sampler_done(lda_sampler_t *self)
{
    free(self->counts);
    free(self->plans);
    memset(self, 0, sizeof *self);
}

/* A token, while its topic is drawn. All counts are without it: a proposal that
 * still had it would be another one for each topic that the token may have, and
 * what is drawn then is not p. */
typedef struct draw {
    const lda_row_t *row;
    const lda_tokens_t *tokens;
    size_t at;
    uint32_t own;     /* topic that it has */
    int32_t own_word; /* 1: it counts in the row; else 0 */
    int32_t own_base; /* the row's base of it, with the token */
} draw_t;

/* What is known of one topic for one token. */
typedef struct weight {
    double target; /* p, times a constant */
    double word;   /* the word's proposal, times a constant */
    double document;
} weight_t;

static weight_t
weigh(const lda_sampler_t *self, const draw_t *draw, uint32_t topic)
{
    const lda_prior_t *prior = self->prior;
    const lda_cell_t *cell = lda_row_cell(self->slice, draw->row, topic);
    int32_t less = topic == draw->own ? 1 : 0;
    int32_t less_word = topic == draw->own ? draw->own_word : 0;
    double n_dk = (double)(self->counts[topic] - less);
    double n_wk = cell == NULL ? 0 : (double)(cell->count - less_word);
    double base = cell == NULL ? 0 : (double)(cell->base - less_word);
    double n_k = (double)(self->totals[topic] - less_word);

    return (weight_t){
        .target = (n_dk + prior->alpha) * (n_wk + prior->beta) /
                  (n_k + prior->beta * (double)prior->n_words),
        .word = (base + prior->beta) / self->slice->stale[topic],
        .document = n_dk + prior->alpha,
    };
}

static draw_t
begin_draw(const lda_sampler_t *self, const lda_tokens_t *tokens, size_t i)
{
    draw_t draw = {
        .row = &self->slice->rows[tokens->words[i] - self->slice->first],
        .tokens = tokens,
        .at = i,
        .own = tokens->topics[i]};
    const lda_cell_t *own = lda_row_cell(self->slice, draw.row, draw.own);

    draw.own_word = self->fixed ? 0 : 1;
    draw.own_base = own == NULL ? 0 : own->base;
    return draw;
}

/* Whether the draw from a row's own alias table is to be made again: in it the
 * token is one of its topic's own_base. */
static bool
is_own(lda_sampler_t *self, const draw_t *draw, uint32_t topic)
{
    return topic == draw->own && draw->own_word == 1 &&
           ex_random_real(&self->random) * (double)draw->own_base < 1;
}

/* Below n < 2^32. */
static size_t
random_below(lda_sampler_t *self, size_t n)
{
    return (size_t)(((ex_random(&self->random) >> 32) * (uint64_t)n) >> 32);
}

/* From the term of the counts, or that of beta. */
static void
plan_word(lda_sampler_t *self, const draw_t *draw, lda_plan_t *plan)
{
    const lda_slice_t *slice = self->slice;
    const lda_row_t *row = draw->row;
    double mass = row->mass;

    if (draw->own_word == 1) {
        mass = row->n_entries == 1 && draw->own_base == 1
                   ? 0 /* it is the only one of its word */
                   : mass - 1 / slice->stale[draw->own];
    }
    plan->random = ex_random(&self->random);
    plan->smooth =
        ex_random_real(&self->random) * (mass + slice->smooth_mass) >= mass;
    if (!plan->smooth) {
        __builtin_prefetch(slice->entries + row->entries +
                           (((plan->random >> 32) * row->n_entries) >> 32));
    }
}

/* A token of the document, whose topic then counts; or any topic. */
static void
plan_document(lda_sampler_t *self, const draw_t *draw, lda_plan_t *plan)
{
    size_t n_others = draw->tokens->n - 1;
    double alphas = self->prior->alpha * (double)self->prior->n_topics;

    plan->any = ex_random_real(&self->random) * ((double)n_others + alphas) >=
                (double)n_others;
    if (plan->any) {
        plan->document = random_below(self, self->prior->n_topics);
    } else {
        size_t other = random_below(self, n_others);

        plan->document = other < draw->at ? other : other + 1;
    }
}

static uint32_t
document_topic(const lda_plan_t *plan, const lda_tokens_t *tokens)
{
    return plan->any ? (uint32_t)plan->document
                     : tokens->topics[plan->document];
}

static void
fetch_cell(const lda_sampler_t *self, const lda_row_t *row, uint32_t topic)
{
    __builtin_prefetch(&self->slice->cells[row->cells + (topic & row->mask)]);
}

static void
finish_plan(lda_sampler_t *self, const draw_t *draw, lda_plan_t *plan)
{
    const lda_slice_t *slice = self->slice;
    const lda_row_t *row = draw->row;

    if (plan->smooth) {
        plan->word =
            lda_alias_draw(slice->smooth, self->prior->n_topics, plan->random);
    } else {
        plan->word = lda_alias_draw(slice->entries + row->entries,
                                    row->n_entries, plan->random);
        while (is_own(self, draw, plan->word)) {
            plan->word =
                lda_alias_draw(slice->entries + row->entries, row->n_entries,
                               ex_random(&self->random));
        }
    }
    fetch_cell(self, row, plan->word);
    fetch_cell(self, row, document_topic(plan, draw->tokens));
}

/* All proposals of some tokens. None hangs on what becomes of another token,
 * but for the topic that a token of the document then has. Most of the time
 * goes into waiting for rows, which lie anywhere in memory: so each look at
 * them is made for all tokens before the next one. */
static void
plan_batch(lda_sampler_t *self,
           const lda_tokens_t *tokens,
           size_t first,
           size_t n)
{
    const lda_slice_t *slice = self->slice;
    draw_t draws[BATCH];

    for (size_t j = 0; j < n; j++) {
        __builtin_prefetch(
            &slice->rows[tokens->words[first + j] - slice->first]);
    }
    for (size_t j = 0; j < n; j++) {
        fetch_cell(self, &slice->rows[tokens->words[first + j] - slice->first],
                   tokens->topics[first + j]);
    }
    for (size_t j = 0; j < n; j++) {
        draws[j] = begin_draw(self, tokens, first + j);
        for (uint32_t step = 0; step < self->n_steps; step++) {
            lda_plan_t *plan = &self->plans[j * self->n_steps + step];

            plan_word(self, &draws[j], plan);
            plan_document(self, &draws[j], plan);
        }
    }
    for (size_t j = 0; j < n; j++) {
        for (uint32_t step = 0; step < self->n_steps; step++) {
            finish_plan(self, &draws[j],
                        &self->plans[j * self->n_steps + step]);
        }
    }
}

static uint32_t
draw_topic(lda_sampler_t *self,
           const lda_tokens_t *tokens,
           size_t i,
           const lda_plan_t *plans)
{
    draw_t draw = begin_draw(self, tokens, i);
    uint32_t topic = draw.own;
    weight_t now = weigh(self, &draw, topic);

    for (uint32_t step = 0; step < 2 * self->n_steps; step++) {
        const lda_plan_t *plan = &plans[step / 2];
        bool by_word = step % 2 == 0;
        uint32_t other = by_word ? plan->word : document_topic(plan, tokens);
        weight_t then;

        if (other == topic) {
            continue;
        }
        then = weigh(self, &draw, other);
        if (ex_random_real(&self->random) * now.target *
                (by_word ? then.word : then.document) <
            then.target * (by_word ? now.word : now.document)) {
            topic = other;
            now = then;
        }
    }
    return topic;
}

uint32_t
lda_sampler_draw(lda_sampler_t *self, const lda_tokens_t *tokens, size_t i)
{
    plan_batch(self, tokens, i, 1);
    return draw_topic(self, tokens, i, self->plans);
}

static void
move(lda_sampler_t *self, const lda_tokens_t *tokens, size_t i, uint32_t topic)
{
    uint32_t own = tokens->topics[i];

    if (topic == own) {
        return;
    }
    tokens->topics[i] = topic;
    self->counts[own]--;
    self->counts[topic]++;
    if (!self->fixed) {
        lda_slice_add(self->slice, tokens->words[i], own, -1);
        lda_slice_add(self->slice, tokens->words[i], topic, 1);
        self->totals[own]--;
        self->totals[topic]++;
    }
}

void
lda_sampler_run(lda_sampler_t *self, const lda_tokens_t *tokens)
{
    if (tokens->first == tokens->end) {
        return;
    }
    for (size_t i = 0; i < tokens->n; i++) {
        self->counts[tokens->topics[i]]++;
    }
    for (size_t first = tokens->first; first < tokens->end; first += BATCH) {
        size_t end = first + BATCH < tokens->end ? first + BATCH : tokens->end;

        plan_batch(self, tokens, first, end - first);
        for (size_t i = first; i < end; i++) {
            uint32_t topic = draw_topic(
                self, tokens, i, self->plans + (i - first) * self->n_steps);

            move(self, tokens, i, topic);
        }
    }
    for (size_t i = 0; i < tokens->n; i++) {
        self->counts[tokens->topics[i]] = 0;
    }
}
