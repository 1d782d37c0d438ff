/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what was measured, and plays clocks with it. */
#include "protocol/overlay/overlay_matcher.h"

#include <string.h>

#include "base/alloc.h"

#define ANY_RATE 12500000.0 /* of a link, while none is known */

void ps_overlay_matcher_done(ps_overlay_matcher_t *self)
{
    ps_rates_destroy(&self->rates);
    ps_free(self->late_s);
    ps_free(self->ends);
    *self = (ps_overlay_matcher_t){.n_workers = 0};
}

psd_status_t ps_overlay_matcher_begin(ps_overlay_matcher_t *self, const ps_overlay_rules_t *rules,
                                      uint32_t n_workers, uint64_t seed, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_overlay_matcher_done(self);
    self->late_s = ps_alloc(n_workers, sizeof *self->late_s);
    self->ends = ps_alloc(n_workers, sizeof *self->ends);
    if (self->late_s == NULL || self->ends == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for measured links");
    } else {
        rc = ps_rates_new(n_workers + 1, rules->expiry, &self->rates, err);
    }
    if (rc != PSD_OK) {
        ps_overlay_matcher_done(self);
        return rc;
    }
    self->rules = *rules;
    self->n_workers = n_workers;
    self->rng.state = seed;
    return PSD_OK;
}

/* ---- what workers say ---- */

void ps_overlay_matcher_link(ps_overlay_matcher_t *self, uint32_t from, uint32_t to, uint64_t bytes,
                             uint64_t us)
{
    if (self->rates == NULL || from >= self->n_workers || to > self->n_workers) {
        return;
    }
    ps_rates_measured(self->rates, from, to, bytes, us, self->turn);
}

/* How much later than the first one it finished a clock. That is known when it says the next one:
 * by then the others have said that one, too. */
static void note_end(ps_overlay_matcher_t *self, uint32_t worker, const ps_overlay_said_t *said)
{
    ps_overlay_end_t *end = &self->ends[worker];
    ps_overlay_end_t *first = &self->firsts[end->clock % PS_OVERLAY_FIRSTS];

    if (said->clock == end->clock) {
        return;
    }
    if (end->clock > 0 && first->clock == end->clock) {
        self->late_s[worker] =
            (self->late_s[worker] + (double)(end->at_us - first->at_us) / 1e6) / 2;
    }
    *end = (ps_overlay_end_t){said->clock, said->at_us};
    first = &self->firsts[said->clock % PS_OVERLAY_FIRSTS];
    if (said->clock > first->clock || (said->clock == first->clock && said->at_us < first->at_us)) {
        *first = *end;
    }
}

static uint64_t replay_turns(const ps_overlay_rules_t *rules)
{
    return rules->expiry < PS_OVERLAY_REPLAY_TURNS ? rules->expiry : PS_OVERLAY_REPLAY_TURNS;
}

bool ps_overlay_matcher_heard(ps_overlay_matcher_t *self, uint32_t worker,
                              const ps_overlay_said_t *said)
{
    if (self->rates == NULL || worker >= self->n_workers || said->clock == 0) {
        return false;
    }
    note_end(self, worker, said);
    if (worker != 0 || said->clock <= self->clock) {
        return false;
    }
    if (self->clock > 0 && said->bytes >= self->pushed) {
        self->bytes = (double)(said->bytes - self->pushed) / (double)(said->clock - self->clock);
    }
    self->stride = self->clock > 0 ? said->clock - self->clock : 1;
    self->clock = said->clock;
    self->pushed = said->bytes;
    self->turn++;
    return self->turn - self->planned_turn >= replay_turns(&self->rules) &&
           said->now_us >= self->planned_us + PS_OVERLAY_LONG_US;
}

double ps_overlay_matcher_rate(const ps_overlay_matcher_t *self, uint32_t from, uint32_t to)
{
    return self->rates == NULL || from > self->n_workers || to > self->n_workers
               ? 0
               : ps_rates_of(self->rates, from, to, self->turn);
}

/* ---- plans ---- */

typedef struct table {
    double *rates;     /* owned, [from][to] */
    double *left;      /* owned: what the trees before this one have left of them */
    bool *known;       /* owned */
    uint32_t *parents; /* owned, [n_colours][n_workers] */
    uint32_t *n_to;    /* owned, [n_workers]: that send to it */
} table_t;

static void table_done(table_t *self)
{
    ps_free(self->rates);
    ps_free(self->left);
    ps_free(self->known);
    ps_free(self->parents);
    ps_free(self->n_to);
}

static bool table_init(table_t *self, size_t n, uint32_t n_colours)
{
    *self = (table_t){.rates = ps_alloc(n * n, sizeof *self->rates),
                      .left = ps_alloc(n * n, sizeof *self->left),
                      .known = ps_alloc(n * n, sizeof *self->known),
                      .parents = ps_alloc(n * n_colours, sizeof *self->parents),
                      .n_to = ps_alloc(n, sizeof *self->n_to)};
    return self->rates != NULL && self->left != NULL && self->known != NULL &&
           self->parents != NULL && self->n_to != NULL;
}

/* What was measured; 0 where it was not. Returns the average. */
static double fill_known(const ps_overlay_matcher_t *self, table_t *table)
{
    uint32_t n = self->n_workers;
    double sum = 0;
    uint32_t n_known = 0;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            double rate = i == j ? 0 : ps_rates_of(self->rates, i, j, self->turn);

            table->rates[(size_t)i * n + j] = rate;
            table->known[(size_t)i * n + j] = rate > 0;
            sum += rate;
            n_known += rate > 0 ? 1 : 0;
        }
    }
    return n_known > 0 ? sum / n_known : ANY_RATE;
}

static void fill(const ps_overlay_matcher_t *self, const ps_overlay_ways_t *ways, table_t *table)
{
    uint32_t n = self->n_workers;
    double average = fill_known(self, table);

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            double *rate = &table->rates[(size_t)i * n + j];

            if (i == j || !ways->may[(size_t)i * n + j]) {
                *rate = 0;
            } else if (*rate <= 0) {
                *rate = average;
            }
        }
    }
}

/* What is left for that colour. */
static void leave(const ps_overlay_matcher_t *self, const ps_overlay_ways_t *ways, uint32_t colour,
                  table_t *table)
{
    uint32_t n = self->n_workers;
    const uint32_t *before =
        ways->parents == NULL ? NULL : ways->parents + (size_t)colour * self->n_workers;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            double rate = table->rates[(size_t)i * n + j] / (1.0 + table->n_to[j]);

            table->left[(size_t)i * n + j] =
                before != NULL && before[i] == j ? rate * PS_OVERLAY_REPLAN : rate;
        }
    }
}

psd_status_t ps_overlay_matcher_plan(ps_overlay_matcher_t *self, const ps_overlay_ways_t *ways,
                                     uint64_t now_us, uint32_t *ret_parents, psd_error_t *err)
{
    PSD_AUTO(table_done) table_t table = {.rates = NULL};
    uint32_t n = self->n_workers;
    ps_overlay_turns_t turns = {.n_workers = n,
                                .positions = ways->positions,
                                .late_s = self->late_s,
                                .bytes = self->bytes / ways->n_colours,
                                .num = ps_overlay_rules_batch(&self->rules, n),
                                .greed = self->rules.greed,
                                .rng = &self->rng};
    psd_status_t rc = PSD_OK;

    if (!table_init(&table, n, ways->n_colours)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    fill(self, ways, &table);
    turns.rates = table.left;
    turns.known = table.known;
    for (uint32_t c = 0; rc == PSD_OK && c < ways->n_colours; c++) {
        uint32_t *parents = table.parents + (size_t)c * n;

        leave(self, ways, c, &table);
        rc = ps_overlay_turns_play(&turns, parents, err);
        for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
            if (parents[i] != PS_OVERLAY_NODES) {
                table.n_to[parents[i]]++;
            }
        }
    }
    if (rc == PSD_OK) {
        memcpy(ret_parents, table.parents, (size_t)n * ways->n_colours * sizeof *ret_parents);
        self->planned_turn = self->turn;
        self->planned_us = now_us;
    }
    return rc;
}
