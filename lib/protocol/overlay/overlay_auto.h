/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_auto - whether a tree pays
 *
 * What     Takes the tree where it promises enough, and leaves it when clocks take
 *          longer than the star is predicted to take.
 * Turns    Whatever the caller counts; a tree that fails must do so within
 *          PS_OVERLAY_WAIT_TURNS of them.
 * Units    Turns, seconds.
 * Owner    A plain value; zero it first.
 * Threads  One at a time.
 */
#ifndef PS_PROTOCOL_OVERLAY_AUTO_H
#define PS_PROTOCOL_OVERLAY_AUTO_H

#include "protocol/overlay/overlay_plan.h"

typedef struct ps_overlay_auto {
    bool uses_tree;
    uint32_t n_slow;     /* in a row, slower than the star's prediction */
    uint64_t since;      /* the turn in which this tree was taken */
    uint64_t wait_until; /* the turn from which a tree may be tried again */
    uint64_t wait;       /* turns; doubles with each tree that did not keep its promise, and is
                            forgotten when one has lasted for as long */
} ps_overlay_auto_t;

#define PS_OVERLAY_GAIN 1.2      /* a tree must promise to be so much faster */
#define PS_OVERLAY_SLOW_CLOCKS 3 /* slower ones, after which it is left */
#define PS_OVERLAY_WAIT_TURNS 16 /* until the next try, at first */
#define PS_OVERLAY_WAIT_MAX 4096

/* The plan from turn `turn` on: true for the tree. gain: PS_OVERLAY_GAIN or a setting. */
bool ps_overlay_auto_choose(ps_overlay_auto_t *self, const ps_overlay_plan_t *plan, double gain,
                            uint64_t turn);
/* A clock took so long with the plan in use. */
void ps_overlay_auto_took(ps_overlay_auto_t *self, const ps_overlay_plan_t *plan, double seconds,
                          uint64_t turn);
#endif
