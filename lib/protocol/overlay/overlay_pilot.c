/* SPDX-License-Identifier: Apache-2.0 */
/* Measures clocks, makes plans of what was measured, and keeps the better one. */
#include "protocol/overlay/overlay_pilot.h"

#include <math.h>

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

/* What nobody has measured between two workers, or has forgotten. */
static void guess_links(const ps_overlay_pilot_t *self, double *rates)
{
    uint32_t n = self->n_workers;

    for (uint32_t i = 0; i < n; i++) {
        rates[(size_t)i * (n + 1) + n] = rate_to_nodes(self, i);
        for (uint32_t j = 0; j < n; j++) {
            double rate = ps_rates_of(self->rates, i, j, self->turn);

            rate = rate > 0 ? rate : fmin(self->own[i], self->own[j]);
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
    guess_links(self, world->rates);
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
    self->own = NULL;
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
static psd_status_t take_star(ps_overlay_pilot_t *self, const uint32_t *positions, psd_error_t *err)
{
    PSD_AUTO(world_done) world_t world = {.rates = NULL};
    ps_overlay_plan_t star = {.parents = NULL};
    psd_status_t rc = make_world(self, positions, &world, err);

    if (rc == PSD_OK) {
        rc = ps_overlay_plan_star(&world.network, &world.load, &star, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_overlay_plan_done(&self->plan);
    self->plan = star;
    self->choice.uses_tree = false;
    self->star_s = 0;
    ps_rates_forget(self->rates, self->n_workers);
    for (uint32_t i = 0; i < self->n_workers; i++) {
        self->own[i] = 0;
    }
    begin_again(self);
    return PSD_OK;
}

psd_status_t ps_overlay_pilot_begin(ps_overlay_pilot_t *self, const uint32_t *positions,
                                    uint32_t n_workers, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    clear(self);
    self->clock_s = 0;
    if (n_workers == 0) {
        self->choice.uses_tree = false;
        return PSD_OK;
    }
    self->own = ps_alloc(n_workers, sizeof *self->own);
    if (self->own == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for measured links");
    }
    rc = ps_rates_new(n_workers + 1, PS_OVERLAY_EXPIRY, &self->rates, err);
    if (rc == PSD_OK) {
        self->n_workers = n_workers;
        rc = take_star(self, positions, err);
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
    }
}

double ps_overlay_pilot_rate(const ps_overlay_pilot_t *self, uint32_t from, uint32_t to)
{
    return self->rates == NULL || from > self->n_workers || to > self->n_workers
               ? 0
               : ps_rates_of(self->rates, from, to, self->turn);
}

/* ---- decisions ---- */

/* Is it known how fast each worker sends, and is there enough to send? */
static bool is_known(const ps_overlay_pilot_t *self)
{
    bool known = self->n_workers > 1 && self->n_workers <= PS_OVERLAY_PILOT_WORKERS &&
                 self->bytes >= PS_RATES_MEASURE_BYTES;

    for (uint32_t i = 0; known && i < self->n_workers; i++) {
        known = self->own[i] > 0;
    }
    return known;
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
    begin_again(self);
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
    if (self->last.clock < self->choice.wait_until || !is_known(self)) {
        return PSD_OK;
    }
    rc = make_world(self, positions, &world, err);
    if (rc == PSD_OK) {
        rc = ps_overlay_plan_make(&world.network, &world.load, &tree, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    promised = tree;
    promise_clocks(self, &promised);
    if (ps_overlay_auto_choose(&self->choice, &promised, PS_OVERLAY_GAIN, self->last.clock)) {
        take_tree(self, &tree);
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
        rc = ps_overlay_plan_make(&world.network, &world.load, &tree, err);
    }
    if (rc == PSD_OK &&
        tree.seconds * PS_OVERLAY_REPLAN <
            ps_overlay_plan_seconds(&world.network, &world.load, self->plan.parents)) {
        take_tree(self, &tree);
        *ret_changed = true;
    }
    return rc;
}

/* In a tree: does it keep its promise? */
static psd_status_t judge_tree(ps_overlay_pilot_t *self, const uint32_t *positions,
                               bool *ret_changed, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_overlay_auto_took(&self->choice, &self->plan, self->clock_s, self->last.clock);
    if (self->choice.uses_tree) {
        return is_known(self) ? look_for_better(self, positions, ret_changed, err) : PSD_OK;
    }
    rc = take_star(self, positions, err);
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
        begin_again(self);
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
