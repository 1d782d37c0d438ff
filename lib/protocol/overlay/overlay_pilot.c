/* SPDX-License-Identifier: Apache-2.0 */
/* Measures clocks, makes plans of what was measured, and keeps the better one. */
#include "protocol/overlay/overlay_pilot.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define LATENCY_S 0.001
#define CHUNK_BYTES (UINT64_C(256) << 10)

/* The network and the load as the planner wants them. */
typedef struct world {
    double *rates; /* owned */
    double *out;   /* owned; then `in` */
    uint64_t bytes[PS_OVERLAY_COLOURS];
    ps_network_t network;
    ps_load_t load;
} world_t;

static void world_done(world_t *self)
{
    ps_free(self->rates);
    ps_free(self->out);
}

static double rate_to_nodes(const ps_overlay_pilot_t *self, uint32_t worker)
{
    double rate = ps_rates_of(self->rates, worker, self->n_workers, self->turn);

    return rate > self->own[worker] ? rate : self->own[worker];
}

/* What nobody has measured between two workers, or what is forgotten. */
static double guess_link(const ps_overlay_pilot_t *self, uint32_t from, uint32_t to)
{
    double seen = self->seen[(size_t)from * self->n_workers + to];
    double rate = fmin(self->own[from], self->own[to]);

    return seen > 0 ? fmin(seen, rate) : rate;
}

static void fill_links(const ps_overlay_pilot_t *self, double *rates)
{
    uint32_t n = self->n_workers;

    for (uint32_t i = 0; i < n; i++) {
        rates[(size_t)i * (n + 1) + n] = rate_to_nodes(self, i);
        for (uint32_t j = 0; j < n; j++) {
            double rate = ps_rates_of(self->rates, i, j, self->turn);

            rate = rate > 0 ? rate : guess_link(self, i, j);
            rates[(size_t)i * (n + 1) + j] = i == j ? 0 : rate;
        }
    }
}

static psd_status_t make_world(const ps_overlay_pilot_t *self, const uint32_t *positions,
                               world_t *world, psd_error_t *err)
{
    size_t n_ends = (size_t)self->n_workers + 1;
    double all = 0;

    world->rates = ps_alloc(n_ends * n_ends, sizeof *world->rates);
    world->out = ps_alloc(2 * n_ends, sizeof *world->out);
    if (world->rates == NULL || world->out == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    fill_links(self, world->rates);
    for (size_t i = 0; i < 2 * n_ends; i++) {
        world->out[i] = INFINITY;
    }
    for (uint32_t i = 0; i < self->n_workers; i++) {
        all += self->own[i];
    }
    world->out[2 * n_ends - 1] = all; /* into the nodes: what came there in the star */
    world->network = (ps_network_t){.n_workers = self->n_workers,
                                    .n_nodes = 1,
                                    .positions = positions,
                                    .rates = world->rates,
                                    .out = world->out,
                                    .in = world->out + n_ends,
                                    .latency_s = LATENCY_S};
    world->load.n_colours =
        self->n_workers < PS_OVERLAY_COLOURS ? self->n_workers : PS_OVERLAY_COLOURS;
    for (uint32_t i = 0; i < world->load.n_colours; i++) {
        world->bytes[i] = (uint64_t)(self->bytes / world->load.n_colours);
    }
    world->load.bytes = world->bytes;
    world->load.chunk_bytes = world->bytes[0] < CHUNK_BYTES ? world->bytes[0] + 1 : CHUNK_BYTES;
    return PSD_OK;
}

/* ---- life ---- */

static void clear(ps_overlay_pilot_t *self)
{
    ps_overlay_plan_done(&self->plan);
    ps_rates_destroy(&self->rates);
    ps_free(self->own);
    ps_free(self->seen);
    self->own = NULL;
    self->seen = NULL;
    self->n_workers = 0;
}

void ps_overlay_pilot_done(ps_overlay_pilot_t *self)
{
    clear(self);
    *self = (ps_overlay_pilot_t){.n_workers = 0};
}

static void begin_again(ps_overlay_pilot_t *self)
{
    self->n_skip = PS_OVERLAY_SKIP;
    self->is_measuring = false;
}

/* Each worker sends to the nodes itself; how fast it does is measured from now on. */
static psd_status_t take_star(ps_overlay_pilot_t *self, psd_error_t *err)
{
    uint32_t *parents = ps_alloc(self->n_workers, sizeof *parents);

    if (parents == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    for (uint32_t i = 0; i < self->n_workers; i++) {
        parents[i] = PS_OVERLAY_NODES;
    }
    ps_overlay_plan_done(&self->plan);
    self->plan =
        (ps_overlay_plan_t){.n_workers = self->n_workers, .n_colours = 1, .parents = parents};
    self->choice.uses_tree = false;
    self->choice.n_slow = 0;
    self->star_s = 0;
    self->tree_s = 0;
    self->pause_us = PS_OVERLAY_LONG_US;
    if (self->rates != NULL) {
        ps_rates_forget(self->rates, self->n_workers);
        memset(self->own, 0, self->n_workers * sizeof *self->own);
    }
    begin_again(self);
    return PSD_OK;
}

/* Room for what is measured. */
static psd_status_t make_rates(ps_overlay_pilot_t *self, uint32_t n_workers, psd_error_t *err)
{
    self->own = ps_alloc(n_workers, sizeof *self->own);
    self->seen = ps_alloc((size_t)n_workers * n_workers, sizeof *self->seen);
    if (self->own == NULL || self->seen == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for measured links");
    }
    return ps_rates_new(n_workers + 1, PS_OVERLAY_EXPIRY, &self->rates, err);
}

psd_status_t ps_overlay_pilot_begin(ps_overlay_pilot_t *self, uint32_t n_workers, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    clear(self);
    self->clock_s = 0;
    self->better_from = 0;
    self->better_wait = 0;
    self->check = PS_OVERLAY_CHECK;
    if (n_workers == 0) {
        self->choice.uses_tree = false;
        return PSD_OK;
    }
    if (n_workers > 1 && n_workers <= PS_OVERLAY_PILOT_WORKERS) {
        rc = make_rates(self, n_workers, err);
    }
    if (rc == PSD_OK) {
        self->n_workers = n_workers;
        rc = take_star(self, err);
    }
    if (rc != PSD_OK) {
        clear(self);
    }
    return rc;
}

void ps_overlay_pilot_link(ps_overlay_pilot_t *self, uint32_t from, uint32_t to, uint64_t bytes,
                           uint64_t us)
{
    if (self->rates == NULL || from >= self->n_workers) {
        return;
    }
    ps_rates_measured(self->rates, from, to, bytes, us, self->turn);
    if (to == self->n_workers && !self->choice.uses_tree) {
        self->own[from] = ps_rates_of(self->rates, from, to, self->turn);
    } else if (to < self->n_workers) {
        double rate = ps_rates_of(self->rates, from, to, self->turn);
        double *seen = &self->seen[(size_t)from * self->n_workers + to];

        *seen = rate > 0 ? rate : *seen;
    }
}

double ps_overlay_pilot_rate(const ps_overlay_pilot_t *self, uint32_t from, uint32_t to)
{
    return self->rates == NULL || from > self->n_workers || to > self->n_workers
               ? 0
               : ps_rates_of(self->rates, from, to, self->turn);
}

/* ---- decisions ---- */

/* The first worker of which it is not known how fast it sends; n_workers: there is none. */
static uint32_t find_unknown(const ps_overlay_pilot_t *self)
{
    uint32_t i = 0;

    while (i < self->n_workers && self->own[i] > 0) {
        i++;
    }
    return i;
}

/* Is there enough to send, and is it known how fast each worker does? */
static bool is_known(const ps_overlay_pilot_t *self)
{
    return self->bytes >= PS_RATES_MEASURE_BYTES && find_unknown(self) == self->n_workers;
}

/* A plan's seconds are those of transfers; the rest of a clock is as long as in the star. */
static void promise_clocks(const ps_overlay_pilot_t *self, ps_overlay_plan_t *plan)
{
    double star_s = fmin(plan->star_s, self->star_s);

    plan->seconds = self->star_s - star_s + fmin(plan->seconds, star_s);
    plan->star_s = self->star_s;
}

static void take_tree(ps_overlay_pilot_t *self, ps_overlay_plan_t *plan)
{
    promise_clocks(self, plan);
    ps_overlay_plan_done(&self->plan);
    self->plan = *plan;
    *plan = (ps_overlay_plan_t){.parents = NULL};
}

/* By the registry's clock: workers may report as often as they like. */
static bool may_plan(const ps_overlay_pilot_t *self)
{
    return self->planned_us == 0 || self->last.now_us >= self->planned_us + self->pause_us;
}

/* A tree by what is known now. */
static psd_status_t make_tree(ps_overlay_pilot_t *self, const world_t *world,
                              ps_overlay_plan_t *ret_tree, psd_error_t *err)
{
    psd_status_t rc = ps_overlay_plan_make(&world->network, &world->load, ret_tree, err);

    if (rc == PSD_OK) {
        self->planned_us = self->last.now_us;
        self->pause_us =
            self->pause_us * 2 < PS_OVERLAY_PAUSE_US ? self->pause_us * 2 : PS_OVERLAY_PAUSE_US;
    }
    return rc;
}

/* In the star: does a tree promise enough? */
static psd_status_t look_for_tree(ps_overlay_pilot_t *self, const uint32_t *positions,
                                  bool *ret_changed, psd_error_t *err)
{
    PSD_AUTO(world_done) world_t world = {.rates = NULL};
    PSD_AUTO(ps_overlay_plan_done) ps_overlay_plan_t tree = {.parents = NULL};
    ps_overlay_plan_t promised;
    psd_status_t rc = PSD_OK;

    self->star_s = self->star_s == 0 ? self->clock_s : (self->star_s + self->clock_s) / 2;
    if (self->turn < self->choice.wait_until || !is_known(self) || !may_plan(self)) {
        return PSD_OK;
    }
    rc = make_world(self, positions, &world, err);
    if (rc == PSD_OK) {
        rc = make_tree(self, &world, &tree, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    promised = tree;
    promise_clocks(self, &promised);
    self->tree_s = promised.seconds;
    if (ps_overlay_auto_choose(&self->choice, &promised, PS_OVERLAY_GAIN, self->turn)) {
        take_tree(self, &tree);
        begin_again(self);
        self->pause_us = PS_OVERLAY_LONG_US;
        self->check_at = self->turn + self->check;
        *ret_changed = true;
    }
    return PSD_OK;
}

/* In a tree that keeps its promise: is there a much better one by now? */
static psd_status_t look_for_better(ps_overlay_pilot_t *self, const uint32_t *positions,
                                    bool *ret_changed, psd_error_t *err)
{
    PSD_AUTO(world_done) world_t world = {.rates = NULL};
    PSD_AUTO(ps_overlay_plan_done) ps_overlay_plan_t tree = {.parents = NULL};
    psd_status_t rc = make_world(self, positions, &world, err);

    if (rc == PSD_OK) {
        rc = make_tree(self, &world, &tree, err);
    }
    if (rc == PSD_OK &&
        tree.seconds * PS_OVERLAY_REPLAN <
            ps_overlay_plan_seconds(&world.network, &world.load, self->plan.parents)) {
        take_tree(self, &tree);
        self->better_wait = self->better_wait == 0 ? PS_OVERLAY_WAIT_TURNS : self->better_wait * 2;
        self->better_wait =
            self->better_wait > PS_OVERLAY_WAIT_MAX ? PS_OVERLAY_WAIT_MAX : self->better_wait;
        self->better_from = self->turn + self->better_wait;
        *ret_changed = true;
    }
    return rc;
}

/* In a tree: does it keep its promise? */
static psd_status_t judge_tree(ps_overlay_pilot_t *self, const uint32_t *positions,
                               bool *ret_changed, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_overlay_auto_took(&self->choice, &self->plan, self->clock_s, self->turn);
    if (!self->choice.uses_tree) {
        memset(self->seen, 0, (size_t)self->n_workers * self->n_workers * sizeof *self->seen);
        self->check = PS_OVERLAY_CHECK;
    } else if (self->turn >= self->check_at) {
        self->check = self->check < PS_OVERLAY_CHECK_MAX ? self->check * 2 : self->check;
    } else {
        return is_known(self) && self->turn >= self->better_from && may_plan(self)
                   ? look_for_better(self, positions, ret_changed, err)
                   : PSD_OK;
    }
    rc = take_star(self, err);
    *ret_changed = rc == PSD_OK;
    return rc;
}

/* True when clocks were measured. */
static bool measure(ps_overlay_pilot_t *self, const ps_overlay_said_t *said)
{
    uint64_t clocks = said->clock - self->from.clock;
    uint64_t us = said->at_us - self->from.at_us;

    if (!self->is_measuring || said->at_us <= self->from.at_us || said->bytes < self->from.bytes) {
        self->from = *said;
        self->is_measuring = true;
        return false;
    }
    if (clocks < PS_OVERLAY_CLOCKS && us < PS_OVERLAY_LONG_US) {
        return false;
    }
    self->clock_s = (double)us / 1e6 / (double)clocks;
    self->bytes = (double)(said->bytes - self->from.bytes) / (double)clocks;
    self->from = *said;
    return true;
}

psd_status_t ps_overlay_pilot_heard(ps_overlay_pilot_t *self, const uint32_t *positions,
                                    const ps_overlay_said_t *said, bool *ret_changed,
                                    psd_error_t *err)
{
    *ret_changed = false;
    if (self->rates == NULL || said->clock <= self->last.clock) {
        /* Another worker may be the first now, and not as far. */
        self->is_measuring = self->is_measuring && said->clock == self->last.clock;
        self->last.clock = said->clock;
        return PSD_OK;
    }
    self->last = *said;
    self->turn++;
    if (!said->has_plan) {
        if (!self->choice.uses_tree || !self->is_measuring) {
            begin_again(self); /* else one tree follows another, and is judged all the time */
        }
        return PSD_OK;
    }
    if (self->n_skip > 0) {
        self->n_skip--;
        return PSD_OK;
    }
    if (!measure(self, said)) {
        return PSD_OK;
    }
    return self->choice.uses_tree ? judge_tree(self, positions, ret_changed, err)
                                  : look_for_tree(self, positions, ret_changed, err);
}

ps_overlay_why_t ps_overlay_pilot_why(const ps_overlay_pilot_t *self, uint32_t *ret_worker)
{
    if (self->choice.uses_tree) {
        return PS_WHY_NONE;
    }
    if (self->rates == NULL) {
        return self->n_workers > PS_OVERLAY_PILOT_WORKERS ? PS_WHY_LARGE : PS_WHY_ALONE;
    }
    if (self->turn < self->choice.wait_until) {
        return PS_WHY_WAIT;
    }
    if (self->star_s == 0) {
        return PS_WHY_NEW;
    }
    if (self->bytes < PS_RATES_MEASURE_BYTES) {
        return PS_WHY_SMALL;
    }
    *ret_worker = find_unknown(self);
    if (*ret_worker < self->n_workers) {
        return PS_WHY_UNKNOWN;
    }
    return self->tree_s > 0 ? PS_WHY_GAIN : PS_WHY_PAUSE;
}
