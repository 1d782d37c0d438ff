/* SPDX-License-Identifier: Apache-2.0 */
/* A clock, event by event: who asks, who sends, what has come. */
#include "protocol/overlay/overlay_turns.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"

#define LEAF UINT32_MAX
#define NOBODY UINT32_MAX

/* ---- the workers and the intervals of their positions ---- */

typedef enum state {
    STATE_WORKS = 0, /* its delta is not ready */
    STATE_ASKS,
    STATE_SENDS,
    STATE_SENT,
} state_t;

typedef struct worker {
    state_t state;
    uint32_t n_coming; /* others that send to it */
    uint32_t within;   /* the smallest interval that it is in; LEAF: there is no other worker */
    uint32_t lowest;   /* of those with a way to or from it; NOBODY: none … */
    uint32_t highest;  /* … and the highest one; 0: it, or none */
    double event_s;    /* its delta is ready, or what it sends has come; INFINITY: nothing more */
} worker_t;

/* Workers first … end - 1, at least two; both halves have some. */
typedef struct interval {
    uint32_t first;
    uint32_t middle;
    uint32_t end;
    uint32_t halves[2]; /* the intervals that they are; LEAF: a worker */
    uint32_t above;     /* the interval of which it is a half; LEAF: none */
    uint32_t n_holders; /* workers in it that have not sent what they hold */
    uint32_t receiver;  /* which of its last two holders gets it; NOBODY: not decided */
    bool is_open;       /* nobody in it can have all of it: the intervals above decide */
} interval_t;

typedef struct game {
    const ps_overlay_turns_t *turns;
    worker_t *workers;     /* owned */
    interval_t *intervals; /* owned, [n_workers - 1]: halves come before their whole */
    uint32_t n_intervals;
    uint32_t *holders; /* owned, [n_workers]: of the interval that is looked at */
    uint32_t *parents;
    double now_s;
} game_t;

static void game_done(game_t *self)
{
    ps_free(self->workers);
    ps_free(self->intervals);
    ps_free(self->holders);
}

/* The first of these workers whose position has the highest bit in which theirs differ. */
static uint32_t find_middle(const uint32_t *positions, uint32_t first, uint32_t end)
{
    uint32_t bit = positions[first] ^ positions[end - 1];
    uint32_t middle = first + 1;

    while ((bit & (bit - 1)) != 0) {
        bit &= bit - 1;
    }
    while ((positions[middle] & bit) == 0) {
        middle++;
    }
    return middle;
}

/* Depth is at most the bits of a position. */
static uint32_t cut(game_t *self, uint32_t first, uint32_t end)
{
    interval_t interval = {
        .first = first, .end = end, .above = LEAF, .n_holders = end - first, .receiver = NOBODY};
    uint32_t number = LEAF;

    if (end - first < 2) {
        return LEAF;
    }
    interval.middle = find_middle(self->turns->positions, first, end);
    interval.halves[0] = cut(self, first, interval.middle);
    interval.halves[1] = cut(self, interval.middle, end);
    number = self->n_intervals++;
    self->intervals[number] = interval;
    for (uint32_t i = 0; i < 2; i++) {
        if (interval.halves[i] == LEAF) {
            self->workers[i == 0 ? first : interval.middle].within = number;
        } else {
            self->intervals[interval.halves[i]].above = number;
        }
    }
    return number;
}

static double rate_of(const game_t *self, uint32_t from, uint32_t to)
{
    if (self->turns->n_looks != NULL) {
        (*self->turns->n_looks)++;
    }
    return self->turns->rates[(size_t)from * self->turns->n_workers + to];
}

static bool is_known(const game_t *self, uint32_t from, uint32_t to)
{
    return self->turns->known[(size_t)from * self->turns->n_workers + to];
}

static void note_partner(worker_t *worker, uint32_t partner)
{
    worker->lowest = partner < worker->lowest ? partner : worker->lowest;
    worker->highest = partner > worker->highest ? partner : worker->highest;
}

static void find_partners(game_t *self)
{
    uint32_t n = self->turns->n_workers;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            if (i != j && rate_of(self, i, j) > 0) {
                note_partner(&self->workers[i], j);
                note_partner(&self->workers[j], i);
            }
        }
    }
}

static bool game_init(game_t *self, const ps_overlay_turns_t *turns, uint32_t *parents)
{
    uint32_t n = turns->n_workers;

    *self = (game_t){.turns = turns,
                     .workers = ps_alloc(n, sizeof *self->workers),
                     .intervals = ps_alloc(n, sizeof *self->intervals),
                     .holders = ps_alloc(n, sizeof *self->holders),
                     .parents = parents};
    if (self->workers == NULL || self->intervals == NULL || self->holders == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        self->workers[i] =
            (worker_t){.within = LEAF, .lowest = NOBODY, .event_s = turns->late_s[i]};
        parents[i] = PS_OVERLAY_NODES;
    }
    find_partners(self);
    (void)cut(self, 0, n);
    return true;
}

static bool waits(const game_t *self, uint32_t i)
{
    return self->workers[i].state == STATE_ASKS && self->workers[i].n_coming == 0;
}

/* Enough wait, or nobody else can come. */
static bool is_batch(const game_t *self)
{
    uint32_t n_waits = 0;
    uint32_t n_to_come = 0;

    for (uint32_t i = 0; i < self->turns->n_workers; i++) {
        n_waits += waits(self, i) ? 1 : 0;
        n_to_come += self->workers[i].state == STATE_WORKS || self->workers[i].n_coming > 0 ? 1 : 0;
    }
    return n_waits >= self->turns->num || n_to_come == 0;
}

static void send(game_t *self, uint32_t from, uint32_t to)
{
    self->parents[from] = to;
    self->workers[from].state = STATE_SENDS;
    self->workers[from].event_s = self->now_s + self->turns->bytes / rate_of(self, from, to);
    self->workers[to].n_coming++;
}

/* ---- who gets it ---- */

/* Those in the interval that hold a part of it. */
static uint32_t list_holders(game_t *self, uint32_t first, uint32_t end)
{
    uint32_t n = 0;

    for (uint32_t i = first; i < end; i++) {
        if (self->workers[i].state != STATE_SENT) {
            self->holders[n++] = i;
        }
    }
    return n;
}

/* Have all other holders a way to this one? */
static bool all_reach(const game_t *self, uint32_t n, uint32_t to)
{
    bool all = true;

    for (uint32_t i = 0; i < n; i++) {
        all = all && (self->holders[i] == to || rate_of(self, self->holders[i], to) > 0);
    }
    return all;
}

/* Is there a way between it and a worker outside of the interval, or none outside? */
static bool leads_on(const game_t *self, const interval_t *interval, uint32_t holder)
{
    const worker_t *worker = &self->workers[holder];

    return worker->lowest < interval->first ||
           (worker->lowest != NOBODY && worker->highest >= interval->end) ||
           interval->end - interval->first == self->turns->n_workers;
}

/* When it would have come, if it is sent as soon as it is ready. A delta of which nobody knows the
 * size is small. */
static double come_at(const game_t *self, uint32_t from, uint32_t to)
{
    const worker_t *worker = &self->workers[from];
    double ready_s = worker->state == STATE_WORKS ? worker->event_s : self->now_s;

    return ready_s + fmax(self->turns->bytes, 1) / rate_of(self, from, to);
}

/* Which of two holders gets what the other one has; NOBODY: they have no way to each other. Each
 * waits, or its delta is to be ready. */
static uint32_t choose(game_t *self, const interval_t *interval, uint32_t a, uint32_t b)
{
    bool has_to_a = rate_of(self, b, a) > 0;
    bool has_to_b = rate_of(self, a, b) > 0;

    if (!has_to_a || !has_to_b) {
        return has_to_a ? a : has_to_b ? b : NOBODY;
    }

    uint32_t best = come_at(self, b, a) < come_at(self, a, b) ? a : b;
    uint32_t other = best == a ? b : a;
    bool best_leads = leads_on(self, interval, best);

    if (best_leads != leads_on(self, interval, other)) {
        return best_leads ? best : other;
    }
    return is_known(self, other, best) && ps_rng_f64(self->turns->rng) >= self->turns->greed ? other
                                                                                             : best;
}

/* All holders wait: one of them gets what the others have. Of three and more only the holder of a
 * whole half can be that one: nobody in the other half has all of that. False: none can. */
static bool gather(game_t *self, const interval_t *interval, uint32_t n)
{
    uint32_t to = interval->receiver;

    if (n == 2 && to == NOBODY) {
        to = choose(self, interval, self->holders[0], self->holders[1]);
    }
    for (uint32_t i = 0; n > 2 && to == NOBODY && i < n; i++) {
        to = all_reach(self, n, self->holders[i]) ? self->holders[i] : NOBODY;
    }
    for (uint32_t i = 0; to != NOBODY && i < n; i++) {
        if (self->holders[i] != to) {
            send(self, self->holders[i], to);
        }
    }
    return to != NOBODY;
}

/* Two holders, of which one waits, and the other one has not asked so far: the first one sends now,
 * or waits until the other one can send to it. That is decided once. */
static void send_to_late(game_t *self, interval_t *interval)
{
    uint32_t a = self->holders[0];
    uint32_t b = self->holders[1];
    uint32_t from = waits(self, a) ? a : b;
    uint32_t to = from == a ? b : a;

    if (!waits(self, from) || self->workers[to].state != STATE_WORKS ||
        self->workers[to].n_coming > 0) {
        return;
    }
    if (interval->receiver == NOBODY) {
        interval->receiver = choose(self, interval, from, to);
    }
    if (interval->receiver == to) {
        send(self, from, to);
    }
}

static void decide_interval(game_t *self, interval_t *interval)
{
    uint32_t n = list_holders(self, interval->first, interval->end);
    bool all_wait = true;

    for (uint32_t i = 0; i < n; i++) {
        all_wait = all_wait && waits(self, self->holders[i]);
    }
    if (all_wait) {
        interval->is_open = !gather(self, interval, n);
    } else if (n == 2) {
        send_to_late(self, interval);
    }
}

/* One worker has all of it, or nobody can. */
static bool is_settled(const game_t *self, uint32_t k)
{
    return k == LEAF || self->intervals[k].is_open || self->intervals[k].n_holders < 2;
}

static void decide(game_t *self)
{
    for (uint32_t k = 0; k < self->n_intervals; k++) {
        interval_t *interval = &self->intervals[k];

        if (!is_settled(self, k) && is_settled(self, interval->halves[0]) &&
            is_settled(self, interval->halves[1])) {
            decide_interval(self, interval);
        }
    }
}

/* ---- time ---- */

/* The next event; false: there is none. */
static bool step(game_t *self)
{
    uint32_t next = 0;

    for (uint32_t i = 1; i < self->turns->n_workers; i++) {
        next = self->workers[i].event_s < self->workers[next].event_s ? i : next;
    }
    worker_t *worker = &self->workers[next];

    if (worker->event_s == INFINITY) {
        return false;
    }
    self->now_s = worker->event_s;
    worker->event_s = INFINITY;
    if (worker->state == STATE_SENDS) {
        worker->state = STATE_SENT;
        self->workers[self->parents[next]].n_coming--;
        for (uint32_t k = worker->within; k != LEAF; k = self->intervals[k].above) {
            self->intervals[k].n_holders--;
        }
    } else {
        worker->state = STATE_ASKS;
    }
    return true;
}

psd_status_t ps_overlay_turns_play(const ps_overlay_turns_t *turns, uint32_t *ret_parents,
                                   psd_error_t *err)
{
    PSD_AUTO(game_done) game_t game = {.n_intervals = 0};

    assert(turns->n_workers >= 1 && turns->n_workers <= PS_OVERLAY_WORKERS_MAX);
    if (!game_init(&game, turns, ret_parents)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    while (step(&game)) {
        if (is_batch(&game)) {
            decide(&game);
        }
    }
    return PSD_OK;
}
