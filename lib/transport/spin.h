/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_spin - looking again for a short while before going to sleep
 *
 * What     Waking a sleeping thread takes 50 to 100 microseconds, and most
 *          answers come sooner. So a waiter looks again and again, but only as
 *          long as it pays: a spin in vain halves the next one, one that found
 *          something gives all of it back. Who knows that the other side has
 *          much to do looks for longer: that work, and then the wake-up, would
 *          cost more. A spin that was interrupted for longer than any look
 *          takes had its processor taken away: others need it, and there is no
 *          spinning for a while.
 * Units    microseconds, where the name says nothing else
 * Owner    The caller; embedded.
 * Threads  Confined to one thread.
 */
#ifndef PS_TRANSPORT_SPIN_H
#define PS_TRANSPORT_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define PS_SPIN_MAX_US 10000

typedef struct ps_spin {
    uint32_t most_us;      /* 0: never */
    uint32_t budget_us;    /* of the next one */
    uint32_t limit_us;     /* of the one under way */
    uint32_t pause_ms;     /* how long none is tried after an interruption */
    uint64_t off_until_ns; /* none is tried before that */
    uint64_t begun_ns;     /* the one under way */
    uint64_t looked_ns;
    uint64_t asked_ns;
    uint32_t rounds;
} ps_spin_t;

/* Spins for at most most_us, and the other side's work; on a machine with one
 * processor never. */
void ps_spin_init(ps_spin_t *self, uint32_t most_us);
/* work_us: how long the other side may be busy with what it was asked; the spin
 * is so much longer, or the same part of it as there is of the budget. False:
 * sleep at once. */
bool ps_spin_begin(ps_spin_t *self, uint32_t work_us);
/* A short pause. False: the time is over, sleep. */
bool ps_spin_go_on(ps_spin_t *self);
/* True every few microseconds of a spin: look at what costs more to look at. */
bool ps_spin_asks(ps_spin_t *self);
/* Something was found. */
void ps_spin_paid(ps_spin_t *self);
#endif
