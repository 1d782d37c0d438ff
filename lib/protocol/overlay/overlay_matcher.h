/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_matcher - pairs and queue: plans for a job by what its workers measure
 *
 * What     The matcher keeps how fast links between workers were, and when each worker has its
 *          delta ready. From that it plays a clock (overlay_turns.h) every few turns, and what is
 *          played is the plan from then on. While workers use a plan, they measure its links.
 * Unknown  A link that was not used for more than `expiry` turns, or never, is taken to be as fast
 *          as known ones are on average.
 * Stable   The ways of the present plan count PS_OVERLAY_REPLAN times: changing them costs time.
 * Colours  Each tree is played with the links that those before it have left: a worker that c
 *          others send to already is taken to be c + 1 times slower to send to.
 * Late     How much later than the first a worker finishes a clock, of the last clocks.
 * Shape    Workers are numbered by their places, in the order of their positions; the number
 *          after the last is that of all nodes together.
 * Units    Bytes, microseconds of the registry's clock, seconds. A turn is a report of the first
 *          worker that brings a new clock.
 * Owner    ps_overlay_matcher_done; zero it first.
 * Threads  One at a time.
 */
#ifndef PS_PROTOCOL_OVERLAY_MATCHER_H
#define PS_PROTOCOL_OVERLAY_MATCHER_H

#include "protocol/overlay/overlay_pilot.h"
#include "protocol/overlay/overlay_rules.h"
#include "protocol/overlay/overlay_turns.h"

#define PS_OVERLAY_FIRSTS 16      /* clocks of which it is known who was first */
#define PS_OVERLAY_REPLAY_TURNS 5 /* until the next plan; fewer where links are known for fewer */
/* A plan of more workers costs the registry too much, as one of the pilot does. */
#define PS_OVERLAY_MATCHER_WORKERS PS_OVERLAY_PILOT_WORKERS

/* When a worker, or the first one, finished a clock. */
typedef struct ps_overlay_end {
    uint64_t clock; /* 0: none */
    uint64_t at_us;
} ps_overlay_end_t;

typedef struct ps_overlay_matcher {
    ps_overlay_rules_t rules;
    uint32_t n_workers;
    ps_rates_t *rates;      /* owned; NULL: it has not begun */
    double *late_s;         /* owned, of each worker */
    ps_overlay_end_t *ends; /* owned, of each worker: the last one that it has said */
    ps_overlay_end_t firsts[PS_OVERLAY_FIRSTS];
    ps_rng_t rng;
    uint64_t turn;
    uint64_t planned_turn;
    uint64_t planned_us; /* 0: never */
    uint64_t stride; /* clocks of the last turn; a plan begins that many later: all have it then */
    uint64_t clock;  /* that the first worker has finished … */
    uint64_t pushed; /* … and what it had pushed by then */
    double bytes;    /* that it pushed in each of the last clocks; 0: not known */
} ps_overlay_matcher_t;

/* What a plan is made of. */
typedef struct ps_overlay_ways {
    const uint32_t *positions; /* of the workers */
    const bool *may;           /* [from][to]: who may send to whom */
    const uint32_t *parents;   /* [n_colours][n_workers]: the present plan; NULL: there is none */
    uint32_t n_colours;        /* 1 .. PS_OVERLAY_COLOURS_MAX */
} ps_overlay_ways_t;

void ps_overlay_matcher_done(ps_overlay_matcher_t *self);
/* There are that many workers now, 1 .. PS_OVERLAY_MATCHER_WORKERS: knows no link. seed: of greed.
 * Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_overlay_matcher_begin(ps_overlay_matcher_t *self,
                                                     const ps_overlay_rules_t *rules,
                                                     uint32_t n_workers, uint64_t seed,
                                                     psd_error_t *err);
/* Transfers from a worker to another one, or to the nodes (n_workers). Others are ignored. */
void ps_overlay_matcher_link(ps_overlay_matcher_t *self, uint32_t from, uint32_t to, uint64_t bytes,
                             uint64_t us);
/* A worker has said how far it is. True: it is time for a plan. */
bool ps_overlay_matcher_heard(ps_overlay_matcher_t *self, uint32_t worker,
                              const ps_overlay_said_t *said);
/* A plan by what is known now. ret_parents: [n_colours][n_workers]; ways->parents may be the
 * same. now_us: the registry's clock. Errors: PSD_NOMEM; *ret_parents is not touched then. */
PSD_MUST_CHECK psd_status_t ps_overlay_matcher_plan(ps_overlay_matcher_t *self,
                                                    const ps_overlay_ways_t *ways, uint64_t now_us,
                                                    uint32_t *ret_parents, psd_error_t *err);
/* Bytes per second that were measured on that link; 0: not, or too long ago. */
double ps_overlay_matcher_rate(const ps_overlay_matcher_t *self, uint32_t from, uint32_t to);
#endif
