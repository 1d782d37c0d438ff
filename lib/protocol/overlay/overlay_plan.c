/* SPDX-License-Identifier: Apache-2.0 */
/* The best tournament of each colour, beside the others' load. */
#include "protocol/overlay/overlay_plan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define LEVELS 32
#define ROUNDS 4
#define EPSILON 1e-9 /* of rounding */
/* How much slower the slowest part may be for a shallower tree. */
static const double SLACKS[] = {1.0, 1.05, 1.1, 1.25, 1.5, 2, 4};
#define N_SLACKS (sizeof SLACKS / sizeof SLACKS[0])

/* One colour's tournament while it is worked out. */
typedef struct solve {
    const ps_network_t *network;
    const ps_load_t *load;
    const ps_traffic_t *others; /* of all other colours */
    uint32_t colour;
    uint32_t n_ends;
    double bytes;      /* a worker's delta of this colour */
    double limit;      /* seconds that no part may exceed; INFINITY: find the least */
    double *cost;      /* [worker]: of its interval, if it holds the sum of it */
    double *next;      /* … of the interval above */
    uint32_t *n_in;    /* [worker]: spans that it has received as holder */
    uint32_t *losers;  /* [LEVELS][worker]: who sends to it there */
    uint32_t *parents; /* [worker], out */
} solve_t;

/* ---- costs ---- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Seconds of the slowest part when `from` sends a sum to `to`, its n-th. */
static double edge_s(const solve_t *self, uint32_t from, uint32_t to, uint32_t nth)
{
    const ps_traffic_t *others = self->others;
    double rate = ps_network_rate(self->network, from, to);

    if (rate <= 0) {
        return INFINITY;
    }
    double out = (others->out[from] + self->bytes) / self->network->out[from];
    double in = (others->in[to] + self->bytes * nth) / self->network->in[to];
    double link = (others->links[(size_t)from * self->n_ends + to] + self->bytes) / rate;

    return larger(link, larger(out, in));
}

/* The slowest part when `from` sends a sum to the nodes. */
static double direct_s(const solve_t *self, uint32_t from)
{
    const uint64_t *bytes = &self->load->bytes[(size_t)self->colour * self->network->n_nodes];
    double slowest = (self->others->out[from] + self->bytes) / self->network->out[from];

    for (uint32_t i = 0; i < self->network->n_nodes; i++) {
        uint32_t node = self->network->n_workers + i;
        double rate = ps_network_rate(self->network, from, node);

        if (bytes[i] == 0) {
            continue;
        }
        if (rate <= 0) {
            return INFINITY;
        }
        double link = self->others->links[(size_t)from * self->n_ends + node] + (double)bytes[i];

        slowest = larger(slowest, link / rate);
    }
    return slowest;
}

/* What is minimized: the slowest part; or, where that is limited, the way of the first
 * chunk. */
static double step_cost(const solve_t *self, uint32_t from, uint32_t to, uint32_t nth)
{
    double part = edge_s(self, from, to, nth);

    if (isinf(self->limit)) {
        return part;
    }
    return part > self->limit ? INFINITY
                              : ps_network_hop_s(self->network, self->load,
                                                 ps_network_rate(self->network, from, to));
}

static double end_cost(const solve_t *self, uint32_t from)
{
    double part = direct_s(self, from);

    if (isinf(self->limit)) {
        return part;
    }
    return part > self->limit
               ? INFINITY
               : ps_network_direct_hop_s(self->network, self->load, self->colour, from);
}

/* The cost of a sum that has come one step further. */
static double with_step(const solve_t *self, double so_far, double step)
{
    return isinf(self->limit) ? larger(so_far, step) : so_far + step;
}

/* ---- one tournament ---- */

/* Workers [first, end) have their positions in an aligned interval of 2^level. */
typedef struct range {
    uint32_t first;
    uint32_t end;
    uint32_t level;
} range_t;

static uint32_t middle_of(const solve_t *self, range_t range)
{
    const uint32_t *positions = self->network->positions;
    uint32_t half = 1u << (range.level - 1);
    uint32_t middle = range.first;

    while (middle < range.end && (positions[middle] & half) == 0) {
        middle++;
    }
    return middle;
}

/* For each worker of one half the best of the other half to send to it. */
static bool merge_half(solve_t *self, range_t winners, range_t losers, uint32_t level)
{
    uint32_t *chosen = &self->losers[(size_t)(level - 1) * self->network->n_workers];
    bool any = false;

    for (uint32_t to = winners.first; to < winners.end; to++) {
        double best = INFINITY;

        for (uint32_t from = losers.first; from < losers.end; from++) {
            double step = step_cost(self, from, to, self->n_in[to] + 1);
            double cost = larger(self->cost[to], with_step(self, self->cost[from], step));

            if (cost < best) {
                best = cost;
                chosen[to] = from;
            }
        }
        self->next[to] = best;
        any = any || best < INFINITY;
    }
    return any;
}

static void take_next(solve_t *self, range_t range)
{
    for (uint32_t i = range.first; i < range.end; i++) {
        self->cost[i] = self->next[i];
        self->n_in[i]++;
    }
}

/* The tournament below a holder, as it was chosen. */
static void write_parents(solve_t *self, range_t range, uint32_t holder)
{
    while (range.level > 0) {
        uint32_t middle = middle_of(self, range);
        range_t left = {range.first, middle, range.level - 1};
        range_t right = {middle, range.end, range.level - 1};

        range = holder < middle ? left : right;
        if (middle != left.first && middle != right.end) {
            uint32_t loser = self->losers[(size_t)left.level * self->network->n_workers + holder];

            self->parents[loser] = holder;
            write_parents(self, loser < middle ? left : right, loser);
        }
    }
}

/* The sum of this interval goes to the nodes, from its best holder. Its cost. */
static double end_range(solve_t *self, range_t range)
{
    uint32_t holder = range.first;
    double best = INFINITY;

    for (uint32_t i = range.first; i < range.end; i++) {
        double cost = with_step(self, self->cost[i], end_cost(self, i));

        if (cost < best) {
            best = cost;
            holder = i;
        }
    }
    self->parents[holder] = PS_OVERLAY_NODES;
    write_parents(self, range, holder);
    return best;
}

/* Works an interval out, cost of each holder in self->cost. false: it is split, and all
 * of it has its way to the nodes; *worst is the greatest cost of that. */
static bool solve_range(solve_t *self, range_t range, double *worst)
{
    if (range.level == 0) {
        self->cost[range.first] = 0;
        self->n_in[range.first] = 0;
        return true;
    }
    uint32_t middle = middle_of(self, range);
    range_t left = {range.first, middle, range.level - 1};
    range_t right = {middle, range.end, range.level - 1};

    if (left.first == left.end || right.first == right.end) {
        return solve_range(self, left.first == left.end ? right : left, worst);
    }
    bool left_whole = solve_range(self, left, worst);
    bool right_whole = solve_range(self, right, worst);

    if (left_whole && right_whole) {
        bool to_left = merge_half(self, left, right, range.level);
        bool to_right = merge_half(self, right, left, range.level);

        if (to_left || to_right) {
            take_next(self, range);
            return true;
        }
    }
    if (left_whole) {
        *worst = larger(*worst, end_range(self, left));
    }
    if (right_whole) {
        *worst = larger(*worst, end_range(self, right));
    }
    return false;
}

static range_t whole_range(const ps_network_t *network)
{
    uint32_t last = network->positions[network->n_workers - 1];
    uint32_t level = 0;

    while (level < LEVELS - 1 && last >> level != 0) {
        level++;
    }
    return (range_t){0, network->n_workers, level};
}

/* The best tournament below the limit; returns what was minimized. */
static double solve_colour(solve_t *self, double limit)
{
    range_t whole = whole_range(self->network);
    double worst = 0;

    self->limit = limit;
    if (solve_range(self, whole, &worst)) {
        return larger(worst, end_range(self, whole));
    }
    return worst;
}

/* ---- all colours ---- */

double ps_overlay_plan_seconds(const ps_network_t *network, const ps_load_t *load,
                               const uint32_t *parents)
{
    PSD_AUTO(ps_traffic_done) ps_traffic_t traffic = {.out = NULL};

    if (!ps_traffic_init(&traffic, network)) {
        return INFINITY;
    }
    for (uint32_t colour = 0; colour < load->n_colours; colour++) {
        ps_traffic_add(&traffic, network, load, colour,
                       &parents[(size_t)colour * network->n_workers], 1);
    }
    return ps_traffic_seconds(&traffic, network, load, parents);
}

static void solve_done(solve_t *self)
{
    ps_free(self->cost);
    ps_free(self->next);
    ps_free(self->n_in);
    ps_free(self->losers);
    ps_free(self->parents);
}

static bool solve_init(solve_t *self, const ps_network_t *network, const ps_load_t *load,
                       const ps_traffic_t *traffic)
{
    size_t n = network->n_workers;

    *self = (solve_t){.network = network,
                      .load = load,
                      .others = traffic,
                      .n_ends = network->n_workers + network->n_nodes,
                      .cost = ps_alloc(n, sizeof *self->cost),
                      .next = ps_alloc(n, sizeof *self->next),
                      .n_in = ps_alloc(n, sizeof *self->n_in),
                      .losers = ps_alloc(n * LEVELS, sizeof *self->losers),
                      .parents = ps_alloc(n, sizeof *self->parents)};
    return self->cost != NULL && self->next != NULL && self->n_in != NULL && self->losers != NULL &&
           self->parents != NULL;
}

/* What the colour's tournament would make of the whole plan. */
static double try_parents(const solve_t *self, ps_traffic_t *traffic, uint32_t *now,
                          const uint32_t *parents, const ps_overlay_plan_t *plan)
{
    memcpy(now, parents, plan->n_workers * sizeof *now);
    ps_traffic_add(traffic, self->network, self->load, self->colour, now, 1);

    double seconds = ps_traffic_seconds(traffic, self->network, self->load, plan->parents);

    ps_traffic_add(traffic, self->network, self->load, self->colour, now, -1);
    return seconds;
}

/* The best tournament of one colour beside the others takes the place of what it has; of
 * equal ones, what it has. true: the plan is faster. */
static bool improve(solve_t *self, ps_traffic_t *traffic, uint32_t colour, ps_overlay_plan_t *plan)
{
    uint32_t *now = &plan->parents[(size_t)colour * plan->n_workers];
    uint32_t best[PS_OVERLAY_WORKERS_MAX];
    double before = plan->seconds;

    self->colour = colour;
    self->bytes = (double)ps_load_bytes(self->load, self->network->n_nodes, colour);
    ps_traffic_add(traffic, self->network, self->load, colour, now, -1);
    memcpy(best, now, plan->n_workers * sizeof *now);

    double least = solve_colour(self, INFINITY);

    for (size_t i = 0; i < N_SLACKS && least < INFINITY; i++) {
        if (solve_colour(self, least * SLACKS[i] * (1 + EPSILON)) < INFINITY) {
            double seconds = try_parents(self, traffic, now, self->parents, plan);

            if (seconds < plan->seconds * (1 - EPSILON)) {
                plan->seconds = seconds;
                memcpy(best, now, plan->n_workers * sizeof *now);
            }
        }
    }
    memcpy(now, best, plan->n_workers * sizeof *now);
    ps_traffic_add(traffic, self->network, self->load, colour, now, 1);
    return plan->seconds < before;
}

static psd_status_t check(const ps_network_t *network, const ps_load_t *load, psd_error_t *err)
{
    if (network->n_workers == 0 || network->n_workers > PS_OVERLAY_WORKERS_MAX ||
        network->n_nodes == 0 || network->n_nodes > PS_OVERLAY_WORKERS_MAX ||
        load->n_colours == 0 || load->n_colours > PS_OVERLAY_COLOURS_MAX ||
        load->chunk_bytes == 0) {
        return psd_error_set(err, PSD_INVALID,
                             "a plan for %" PRIu32 " workers, %" PRIu32 " nodes, %" PRIu32
                             " colours; 1 to %u, 1 to %u and 1 to %u are allowed",
                             network->n_workers, network->n_nodes, load->n_colours,
                             PS_OVERLAY_WORKERS_MAX, PS_OVERLAY_WORKERS_MAX,
                             PS_OVERLAY_COLOURS_MAX);
    }
    for (uint32_t i = 0; i < network->n_workers; i++) {
        if (network->positions[i] >> (LEVELS - 1) != 0 ||
            (i > 0 && network->positions[i] <= network->positions[i - 1])) {
            return psd_error_set(err, PSD_INVALID,
                                 "position %" PRIu32 " of worker %" PRIu32
                                 " of a plan does not ascend below 2^31",
                                 network->positions[i], i);
        }
    }
    return PSD_OK;
}

psd_status_t ps_overlay_plan_star(const ps_network_t *network, const ps_load_t *load,
                                  ps_overlay_plan_t *ret_plan, psd_error_t *err)
{
    PSD_AUTO(ps_overlay_plan_done) ps_overlay_plan_t plan = {.n_workers = network->n_workers};
    psd_status_t rc = check(network, load, err);

    if (rc != PSD_OK) {
        return rc;
    }
    plan.n_colours = load->n_colours;
    plan.parents = ps_alloc((size_t)plan.n_colours * plan.n_workers, sizeof *plan.parents);
    if (plan.parents == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan of %" PRIu32 " workers",
                             plan.n_workers);
    }
    memset(plan.parents, 0xff, (size_t)plan.n_colours * plan.n_workers * sizeof *plan.parents);
    plan.seconds = ps_overlay_plan_seconds(network, load, plan.parents);
    plan.star_s = plan.seconds;
    *ret_plan = plan;
    plan.parents = NULL;
    return PSD_OK;
}

psd_status_t ps_overlay_plan_make(const ps_network_t *network, const ps_load_t *load,
                                  ps_overlay_plan_t *ret_plan, psd_error_t *err)
{
    PSD_AUTO(ps_overlay_plan_done) ps_overlay_plan_t plan = {.parents = NULL};
    PSD_AUTO(ps_traffic_done) ps_traffic_t traffic = {.out = NULL};
    PSD_AUTO(solve_done) solve_t solve = {.network = NULL};
    psd_status_t rc = ps_overlay_plan_star(network, load, &plan, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_traffic_init(&traffic, network) || !solve_init(&solve, network, load, &traffic)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan of %" PRIu32 " workers",
                             plan.n_workers);
    }
    for (uint32_t colour = 0; colour < load->n_colours; colour++) {
        ps_traffic_add(&traffic, network, load, colour,
                       &plan.parents[(size_t)colour * plan.n_workers], 1);
    }
    bool better = true;

    for (uint32_t round = 0; round < ROUNDS && better; round++) {
        better = false;
        for (uint32_t colour = 0; colour < load->n_colours; colour++) {
            if (round == 0) {
                plan.seconds = INFINITY; /* a tree, whatever the star of the others costs */
            }
            better = improve(&solve, &traffic, colour, &plan) || better;
        }
    }
    *ret_plan = plan;
    plan.parents = NULL;
    return PSD_OK;
}

void ps_overlay_plan_done(ps_overlay_plan_t *plan)
{
    ps_free(plan->parents);
    plan->parents = NULL;
}
