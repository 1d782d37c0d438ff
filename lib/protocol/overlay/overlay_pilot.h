/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_pilot - star or tree: decides for a job by what its workers measure
 *
 * What     A job begins with the star: each worker sends to the nodes itself. The pilot measures
 *          how long a clock takes, and how fast each worker sends. Where a tree promises clocks
 *          that are PS_OVERLAY_GAIN times faster, it makes one. It goes back to the star when
 *          clocks take longer than they took there, and tries again later (overlay_auto.h). While
 *          there is a tree, links between workers are measured too, and a tree that they make
 *          much better takes its place: each time it waits twice as long for that. Clocks of such
 *          a change are judged as others are.
 * Star     What the star takes is measured again now and then: after PS_OVERLAY_CHECK turns with a
 *          tree, then after twice as many, and so on.
 * Pause    A plan is work for the registry, so after each the next one waits longer, by the
 *          registry's clock: up to PS_OVERLAY_PAUSE_US.
 * Small    A worker that pushes less than PS_RATES_MEASURE_BYTES in a clock has nothing to gain.
 * Large    A job of more than PS_OVERLAY_PILOT_WORKERS workers stays with the star: a plan of more
 *          takes the registry too long.
 * Unknown  A link between two workers that nobody has used is taken to be as fast as the slower
 *          of the two sends to the nodes, and no faster than it was found to be, until a tree
 *          fails.
 * Shape    Workers are numbered by their places, in the order of their positions; the number
 *          after the last is that of all nodes together.
 * Units    Bytes, microseconds of the registry's clock, seconds. A turn is a report of the first
 *          worker that brings a new clock.
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
#define PS_OVERLAY_LONG_US 2000000    /* … or one that took so long. No two plans are closer */
#define PS_OVERLAY_PAUSE_US 256000000 /* between two plans, at most */
#define PS_OVERLAY_CHECK 256          /* turns with a tree until the star is measured again */
#define PS_OVERLAY_CHECK_MAX 16384

/* How far the first worker is. */
typedef struct ps_overlay_said {
    uint64_t clock;
    uint64_t at_us;  /* when it finished that */
    uint64_t now_us; /* the registry's clock */
    uint64_t bytes;  /* that it had pushed by then */
    bool has_plan;   /* it goes by the newest one */
} ps_overlay_said_t;

typedef struct ps_overlay_pilot {
    ps_overlay_auto_t choice;
    ps_overlay_plan_t plan; /* owned; in use. Its seconds are those of a clock: what it promises,
                               and what the star took */
    ps_rates_t *rates;      /* owned */
    double *own;            /* owned, [worker]: bytes/s to the nodes in the star; 0: not known */
    double *seen;           /* owned, [from][to]: bytes/s between workers when they were last
                               measured; 0: not since a tree failed */
    uint32_t n_workers;
    uint32_t n_skip;
    uint64_t turn;        /* reports of the first worker that brought a new clock */
    uint64_t planned_us;  /* when the last plan was made; 0: never */
    uint64_t pause_us;    /* until the next one */
    uint64_t better_from; /* the turn from which another tree may take the place of this one */
    uint64_t better_wait; /* turns; doubles with each that did */
    uint64_t check_at;    /* the turn in which the star is measured again */
    uint64_t check;       /* turns; doubles with each time */
    ps_overlay_said_t last;
    ps_overlay_said_t from; /* where the measurement that goes on began */
    bool is_measuring;
    double star_s;  /* of a clock in the star; 0: not measured yet */
    double tree_s;  /* of a clock, as the last tree promised that was made; 0: none was, since the
                       star began */
    double clock_s; /* of the last clocks that were measured; 0: none */
    double bytes;   /* that a worker pushed in each of them */
} ps_overlay_pilot_t;

/* Why there is no tree. */
typedef enum ps_overlay_why {
    PS_WHY_NONE = 0, /* there is one */
    PS_WHY_ALONE,    /* one worker, or nobody */
    PS_WHY_LARGE,    /* more than PS_OVERLAY_PILOT_WORKERS */
    PS_WHY_NEW,      /* no clock was measured in this star */
    PS_WHY_WAIT,     /* until choice.wait_until: the last tree was slower */
    PS_WHY_SMALL,    /* a clock's bytes */
    PS_WHY_UNKNOWN,  /* nobody knows how fast some worker sends to the nodes */
    PS_WHY_GAIN,     /* tree_s is not enough */
    PS_WHY_PAUSE     /* the next plan may not be made yet */
} ps_overlay_why_t;

void ps_overlay_pilot_done(ps_overlay_pilot_t *self);
/* There are that many workers now: begins with the star, and knows no link. Trees that did not
 * keep their promise are remembered. Errors: PSD_NOMEM; PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_overlay_pilot_begin(ps_overlay_pilot_t *self, uint32_t n_workers,
                                                   psd_error_t *err);
/* Transfers from a worker to another one, or to the nodes (n_workers). Others are ignored. */
void ps_overlay_pilot_link(ps_overlay_pilot_t *self, uint32_t from, uint32_t to, uint64_t bytes,
                           uint64_t us);
/* The first worker has said how far it is. positions: of each worker. *ret_changed: self->plan is
 * another one, and self->choice.uses_tree says whether it is a tree. Errors: PSD_NOMEM;
 * PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_overlay_pilot_heard(ps_overlay_pilot_t *self,
                                                   const uint32_t *positions,
                                                   const ps_overlay_said_t *said, bool *ret_changed,
                                                   psd_error_t *err);
/* ret_worker: of PS_WHY_UNKNOWN, the first one. */
ps_overlay_why_t ps_overlay_pilot_why(const ps_overlay_pilot_t *self, uint32_t *ret_worker);
/* Bytes per second that were measured on that link; 0: not, or too long ago. */
double ps_overlay_pilot_rate(const ps_overlay_pilot_t *self, uint32_t from, uint32_t to);
#endif
