/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_pilot - star or tree: decides for a job by what its workers measure
 *
 * What     A job begins with the star: each worker sends to the nodes itself. The pilot measures
 *          how long a clock takes, and how fast each worker sends. Where a tree promises clocks
 *          that are PS_OVERLAY_GAIN times faster, it makes one. It goes back to the star when
 *          clocks take longer than they took there, and tries again later (overlay_auto.h). While
 *          there is a tree, links between workers are measured too, and a tree that they make
 *          much better takes its place.
 * Small    A worker that pushes less than PS_RATES_MEASURE_BYTES in a clock has nothing to gain.
 * Large    A job of more than PS_OVERLAY_PILOT_WORKERS workers stays with the star: a plan of more
 *          takes the registry too long.
 * Unknown  A link between two workers that nobody has used is taken to be as fast as the slower
 *          of the two sends to the nodes.
 * Shape    Workers are numbered by their places, in the order of their positions; the number
 *          after the last is that of all nodes together.
 * Units    Bytes, microseconds of the registry's clock, seconds.
 * Owner    ps_overlay_pilot_done; zero it first.
 * Threads  One at a time.
 */
#ifndef PS_PROTOCOL_OVERLAY_PILOT_H
#define PS_PROTOCOL_OVERLAY_PILOT_H

#include "protocol/overlay/overlay_auto.h"
#include "protocol/overlay/rates.h"

#define PS_OVERLAY_PILOT_WORKERS 128u
#define PS_OVERLAY_EXPIRY 5    /* turns that a measured link is known: overlay_conf.h's default */
#define PS_OVERLAY_COLOURS 4u  /* trees at most: each has a last worker of its own */
#define PS_OVERLAY_REPLAN 1.25 /* so much faster must a tree be that takes another one's place */
#define PS_OVERLAY_SKIP 2      /* turns after a change that say nothing of what follows it */
#define PS_OVERLAY_CLOCKS 3    /* of a measurement … */
#define PS_OVERLAY_LONG_US 2000000 /* … or one that took so long */

/* How far the first worker is. */
typedef struct ps_overlay_said {
    uint64_t clock;
    uint64_t at_us; /* when it finished that */
    uint64_t bytes; /* that it had pushed by then */
    bool has_plan;  /* it goes by the newest one */
} ps_overlay_said_t;

typedef struct ps_overlay_pilot {
    ps_overlay_auto_t choice;
    ps_overlay_plan_t plan; /* owned; in use. Its seconds are those of a clock: what it promises,
                               and what the star took */
    ps_rates_t *rates;      /* owned */
    double *own;            /* owned, [worker]: bytes/s to the nodes in the star; 0: not known */
    uint32_t n_workers;
    uint32_t n_skip;
    uint64_t turn; /* reports of the first worker that brought a new clock */
    ps_overlay_said_t last;
    ps_overlay_said_t from; /* where the measurement that goes on began */
    bool is_measuring;
    double star_s;  /* of a clock in the star; 0: not measured yet */
    double clock_s; /* of the last clocks that were measured; 0: none */
    double bytes;   /* that a worker pushed in each of them */
} ps_overlay_pilot_t;

void ps_overlay_pilot_done(ps_overlay_pilot_t *self);
/* There are that many workers now: begins with the star, and knows no link. Trees that did not
 * keep their promise are remembered. positions: of each. Errors: PSD_NOMEM; PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_overlay_pilot_begin(ps_overlay_pilot_t *self,
                                                   const uint32_t *positions, uint32_t n_workers,
                                                   psd_error_t *err);
/* Transfers from a worker to another one, or to the nodes (n_workers). Others are ignored. */
void ps_overlay_pilot_link(ps_overlay_pilot_t *self, uint32_t from, uint32_t to, uint64_t bytes,
                           uint64_t us);
/* The first worker has said how far it is. *ret_changed: self->plan is another one, and
 * self->choice.uses_tree says whether it is a tree. Errors: PSD_NOMEM; PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_overlay_pilot_heard(ps_overlay_pilot_t *self,
                                                   const uint32_t *positions,
                                                   const ps_overlay_said_t *said, bool *ret_changed,
                                                   psd_error_t *err);
/* Bytes per second that were measured on that link; 0: not, or too long ago. */
double ps_overlay_pilot_rate(const ps_overlay_pilot_t *self, uint32_t from, uint32_t to);
#endif
