/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits, who can receive, and the matching between them. */
#include "protocol/overlay/match.h"

#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"
#include "protocol/overlay/max_min.h"

#define NONE UINT32_MAX

/* ---- workers of a clock ---- */

typedef enum state {
    STATE_WORKS = 0, /* it has not asked */
    STATE_ASKS,      /* its sum is ready */
    STATE_SENDS,     /* it was answered; the receiver has not taken the sum */
    STATE_SENT,
} state_t;

typedef struct worker {
    state_t state;
    bool is_lost;
    bool receives;   /* somebody sends to it, and it has not taken that */
    bool is_served;  /* down: it has the rows, or will have them */
    uint32_t to;     /* in STATE_SENDS: a worker */
    uint32_t holder; /* whose sum has its delta; NONE: it has gone to the nodes */
} worker_t;

struct ps_match {
    ps_match_settings_t settings;
    worker_t *workers;
    ps_rng_t rng;
};

psd_status_t ps_match_new(const ps_match_settings_t *settings, ps_match_t **ret_match,
                          psd_error_t *err)
{
    PSD_AUTO(ps_match_destroy) ps_match_t *self = NULL;

    if (settings->n_workers == 0 || settings->n_workers > PS_MATCH_WORKERS_MAX ||
        settings->num == 0 || !(settings->greed >= 0 && settings->greed <= 1)) {
        return psd_error_set(err, PSD_INVALID,
                             "a match of %" PRIu32 " workers, %" PRIu32
                             " at once, greed %g; 1 to %u, from 1, and 0 to 1 are allowed",
                             settings->n_workers, settings->num, settings->greed,
                             PS_MATCH_WORKERS_MAX);
    }
    self = ps_alloc(1, sizeof *self);
    if (self != NULL) {
        self->settings = *settings;
        self->rng.state = settings->seed;
        self->workers = ps_alloc(settings->n_workers, sizeof *self->workers);
    }
    if (self == NULL || self->workers == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to match %" PRIu32 " workers",
                             settings->n_workers);
    }
    ps_match_begin(self);
    *ret_match = self;
    self = NULL;
    return PSD_OK;
}

void ps_match_destroy(ps_match_t **self_p)
{
    if (*self_p != NULL) {
        ps_free((*self_p)->workers);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

void ps_match_begin(ps_match_t *self)
{
    for (uint32_t i = 0; i < self->settings.n_workers; i++) {
        bool is_lost = self->workers[i].is_lost;

        self->workers[i] = (worker_t){.is_lost = is_lost, .holder = is_lost ? NONE : i};
    }
}

/* What a worker held goes to the nodes, from whoever can send it. */
static void give_up(ps_match_t *self, uint32_t holder)
{
    for (uint32_t i = 0; i < self->settings.n_workers; i++) {
        if (self->workers[i].holder == holder) {
            self->workers[i].holder = NONE;
        }
    }
}

void ps_match_lost(ps_match_t *self, uint32_t worker)
{
    if (worker >= self->settings.n_workers || self->workers[worker].is_lost) {
        return;
    }
    worker_t *lost = &self->workers[worker];

    if (lost->state == STATE_SENDS) {
        self->workers[lost->to].receives = false;
    }
    for (uint32_t i = 0; i < self->settings.n_workers; i++) {
        if (self->workers[i].state == STATE_SENDS && self->workers[i].to == worker) {
            self->workers[i].state = STATE_ASKS;
        }
    }
    *lost = (worker_t){.is_lost = true, .is_served = lost->is_served, .holder = lost->holder};
    give_up(self, worker);
}

void ps_match_returned(ps_match_t *self, uint32_t worker)
{
    if (worker < self->settings.n_workers) {
        self->workers[worker].is_lost = false;
    }
}

/* ---- up ---- */

void ps_match_ask(ps_match_t *self, uint32_t worker)
{
    if (worker < self->settings.n_workers && !self->workers[worker].is_lost &&
        self->workers[worker].state == STATE_WORKS) {
        self->workers[worker].state = STATE_ASKS;
    }
}

/* Does `from` send to `to` now? */
static bool is_sending(const ps_match_t *self, uint32_t from, uint32_t to)
{
    uint32_t n = self->settings.n_workers;

    return from < n && to < n && self->workers[from].state == STATE_SENDS &&
           self->workers[from].to == to;
}

void ps_match_taken(ps_match_t *self, uint32_t from, uint32_t to)
{
    if (!is_sending(self, from, to)) {
        return;
    }
    self->workers[from].state = STATE_SENT;
    self->workers[to].receives = false;
    for (uint32_t i = 0; i < self->settings.n_workers; i++) {
        if (self->workers[i].holder == from) {
            self->workers[i].holder = to;
        }
    }
}

void ps_match_refused(ps_match_t *self, uint32_t from, uint32_t to)
{
    if (is_sending(self, from, to)) {
        self->workers[from].state = STATE_SENT;
        self->workers[to].receives = false;
        give_up(self, from);
    }
}

/* Answers of one decision. */
typedef struct answers {
    ps_match_answer_t *list;
    uint32_t n;
} answers_t;

static void answer(ps_match_t *self, answers_t *answers, uint32_t from, uint32_t to)
{
    worker_t *sender = &self->workers[from];

    answers->list[answers->n++] = (ps_match_answer_t){from, to};
    if (to == PS_OVERLAY_NODES) {
        sender->state = STATE_SENT;
        give_up(self, from);
        return;
    }
    sender->state = STATE_SENDS;
    sender->to = to;
    self->workers[to].receives = true;
}

static bool waits(const ps_match_t *self, uint32_t worker)
{
    return self->workers[worker].state == STATE_ASKS && !self->workers[worker].receives;
}

/* Enough wait, or nobody else can come. */
static bool is_batch(const ps_match_t *self)
{
    uint32_t n_waits = 0;
    uint32_t n_to_come = 0;

    for (uint32_t i = 0; i < self->settings.n_workers; i++) {
        const worker_t *worker = &self->workers[i];

        n_waits += waits(self, i) ? 1 : 0;
        n_to_come += worker->receives || (!worker->is_lost && worker->state == STATE_WORKS) ? 1 : 0;
    }
    return n_waits >= self->settings.num || (n_waits > 0 && n_to_come == 0);
}

/* ---- in the fixed order ---- */

/* Workers whose positions agree above `level` bits with this one's: [first, end). */
static void find_interval(const ps_match_t *self, uint32_t worker, uint32_t level,
                          uint32_t *ret_first, uint32_t *ret_end)
{
    const uint32_t *positions = self->settings.positions;
    uint32_t first = worker;
    uint32_t end = worker + 1;

    while (first > 0 && (uint64_t)(positions[first - 1] ^ positions[worker]) >> level == 0) {
        first--;
    }
    while (end < self->settings.n_workers &&
           (uint64_t)(positions[end] ^ positions[worker]) >> level == 0) {
        end++;
    }
    *ret_first = first;
    *ret_end = end;
}

/* Who has the other half of the interval that this worker holds. PS_OVERLAY_NODES: it holds
 * all there is, or part of the other half has gone to the nodes. PS_MATCH_NOBODY: several
 * have parts of it. */
static uint32_t find_sibling(const ps_match_t *self, uint32_t worker)
{
    for (uint32_t level = 1; level <= 32; level++) {
        uint32_t first = 0;
        uint32_t end = 0;
        uint32_t sibling = worker;

        find_interval(self, worker, level, &first, &end);
        for (uint32_t i = first; i < end; i++) {
            uint32_t holder = self->workers[i].holder;

            if (holder == NONE) {
                return PS_OVERLAY_NODES;
            }
            if (holder == worker) {
                continue;
            }
            if (sibling != worker && sibling != holder) {
                return PS_MATCH_NOBODY;
            }
            sibling = holder;
        }
        if (sibling != worker) {
            return sibling;
        }
    }
    return PS_OVERLAY_NODES;
}

static void decide_in_order(ps_match_t *self, const ps_network_t *network, answers_t *answers)
{
    for (uint32_t i = 0; i < self->settings.n_workers; i++) {
        if (!waits(self, i)) {
            continue;
        }
        uint32_t to = find_sibling(self, i);

        if (to == PS_OVERLAY_NODES) {
            answer(self, answers, i, PS_OVERLAY_NODES);
            continue;
        }
        if (to == PS_MATCH_NOBODY || self->workers[to].receives) {
            continue;
        }
        double there = ps_network_rate(network, i, to);
        double back = waits(self, to) ? ps_network_rate(network, to, i) : 0;

        if (there <= 0 && back <= 0) {
            if (waits(self, to)) { /* neither can reach the other */
                answer(self, answers, i, PS_OVERLAY_NODES);
            }
        } else if (there >= back) {
            answer(self, answers, i, to);
        } else {
            answer(self, answers, to, i);
        }
    }
}

/* ---- in any order ---- */

/* The slowest link to this asker from another one; INFINITY when there is none. */
static double worst_inbound(const ps_network_t *network, const uint32_t *askers, uint32_t n,
                            uint32_t to)
{
    double worst = INFINITY;

    for (uint32_t i = 0; i < n; i++) {
        if (askers[i] != to) {
            worst = fmin(worst, ps_network_rate(network, askers[i], to));
        }
    }
    return worst;
}

/* Askers become receivers, those that are reached best, until the sides are equal. */
static void even_sides(const ps_network_t *network, uint32_t *askers, uint32_t *n_askers,
                       uint32_t *receivers, uint32_t *n_receivers)
{
    while (*n_askers > *n_receivers + 1) {
        uint32_t best = 0;

        for (uint32_t i = 1; i < *n_askers; i++) {
            if (worst_inbound(network, askers, *n_askers, askers[i]) >
                worst_inbound(network, askers, *n_askers, askers[best])) {
                best = i;
            }
        }
        receivers[(*n_receivers)++] = askers[best];
        askers[best] = askers[--*n_askers];
    }
}

/* The rate to the nodes: that of the slowest of them. */
static double rate_to(const ps_network_t *network, uint32_t from, uint32_t to)
{
    double slowest = INFINITY;

    if (to != PS_OVERLAY_NODES) {
        return ps_network_rate(network, from, to);
    }
    for (uint32_t i = 0; i < network->n_nodes; i++) {
        slowest = fmin(slowest, ps_network_rate(network, from, network->n_workers + i));
    }
    return slowest;
}

static psd_status_t decide_in_any_order(ps_match_t *self, const ps_network_t *network,
                                        answers_t *answers, psd_error_t *err)
{
    uint32_t askers[PS_MATCH_WORKERS_MAX];
    uint32_t receivers[PS_MATCH_WORKERS_MAX + 1] = {PS_OVERLAY_NODES};
    uint32_t matched[PS_MATCH_WORKERS_MAX];
    uint32_t n_askers = 0;
    uint32_t n_receivers = 1;

    for (uint32_t i = 0; i < self->settings.n_workers; i++) {
        const worker_t *worker = &self->workers[i];

        if (waits(self, i)) {
            askers[n_askers++] = i;
        } else if (worker->state == STATE_WORKS && !worker->is_lost && !worker->receives) {
            receivers[n_receivers++] = i;
        }
    }
    even_sides(network, askers, &n_askers, receivers, &n_receivers);

    PSD_AUTO(ps_free_at)
    double *weights = ps_alloc((size_t)n_askers * n_receivers, sizeof *weights);

    if (weights == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to match %" PRIu32 " workers", n_askers);
    }
    for (uint32_t i = 0; i < n_askers; i++) {
        for (uint32_t j = 0; j < n_receivers; j++) {
            weights[(size_t)i * n_receivers + j] = rate_to(network, askers[i], receivers[j]);
        }
    }
    psd_status_t rc = ps_max_min(weights, n_askers, n_receivers, matched, err);

    for (uint32_t i = 0; i < n_askers && rc == PSD_OK; i++) {
        if (matched[i] != NONE) {
            answer(self, answers, askers[i], receivers[matched[i]]);
        }
    }
    return rc;
}

psd_status_t ps_match_decide(ps_match_t *self, const ps_network_t *network, bool late,
                             ps_match_answer_t *ret_answers, uint32_t *ret_n, psd_error_t *err)
{
    answers_t answers = {.list = ret_answers};
    psd_status_t rc = PSD_OK;

    if (late) {
        for (uint32_t i = 0; i < self->settings.n_workers; i++) {
            if (waits(self, i)) {
                answer(self, &answers, i, PS_OVERLAY_NODES);
            }
        }
    } else if (is_batch(self) && self->settings.any_order) {
        rc = decide_in_any_order(self, network, &answers, err);
    } else if (is_batch(self)) {
        decide_in_order(self, network, &answers);
    }
    *ret_n = answers.n;
    return rc;
}

/* ---- down ---- */

/* The end that stands for a holder in the network. */
static uint32_t end_of(const ps_match_t *self, uint32_t holder)
{
    return holder == PS_OVERLAY_NODES ? self->settings.n_workers : holder;
}

static bool may_serve(const ps_match_t *self, const ps_network_t *network, uint32_t holder,
                      uint32_t worker)
{
    const worker_t *to = &self->workers[worker];

    return worker != holder && !to->is_lost && !to->is_served &&
           ps_network_rate(network, end_of(self, holder), worker) > 0;
}

/* A random worker to serve beside the best one; of unmeasured links, if there are any. */
static uint32_t draw_receiver(ps_match_t *self, const ps_network_t *network, const bool *measured,
                              uint32_t holder, uint32_t best)
{
    uint32_t n_ends = network->n_workers + network->n_nodes;
    const bool *known = &measured[(size_t)end_of(self, holder) * n_ends];
    uint32_t drawn[2] = {best, best}; /* with unmeasured links, and any */
    uint32_t n[2] = {0, 0};

    for (uint32_t i = 0; i < self->settings.n_workers; i++) {
        if (i == best || !may_serve(self, network, holder, i)) {
            continue;
        }
        for (uint32_t kind = known[i] ? 1 : 0; kind < 2; kind++) {
            n[kind]++;
            if (ps_rng_below(&self->rng, n[kind]) == 0) {
                drawn[kind] = i;
            }
        }
    }
    return n[0] > 0 ? drawn[0] : drawn[1];
}

uint32_t ps_match_receiver(ps_match_t *self, const ps_network_t *network, const bool *measured,
                           uint32_t holder)
{
    uint32_t n_ends = network->n_workers + network->n_nodes;
    uint32_t from = end_of(self, holder);
    uint32_t best = PS_MATCH_NOBODY;

    if (holder < self->settings.n_workers) {
        self->workers[holder].is_served = true;
    }
    for (uint32_t i = 0; i < self->settings.n_workers; i++) {
        if (may_serve(self, network, holder, i) &&
            (best == PS_MATCH_NOBODY ||
             ps_network_rate(network, from, i) > ps_network_rate(network, from, best))) {
            best = i;
        }
    }
    if (best != PS_MATCH_NOBODY && measured[(size_t)from * n_ends + best] &&
        ps_rng_f64(&self->rng) >= self->settings.greed) {
        best = draw_receiver(self, network, measured, holder, best);
    }
    if (best != PS_MATCH_NOBODY) {
        self->workers[best].is_served = true;
    }
    return best;
}

void ps_match_unserved(ps_match_t *self, uint32_t worker)
{
    if (worker < self->settings.n_workers) {
        self->workers[worker].is_served = false;
    }
}
