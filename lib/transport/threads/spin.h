/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_spin - busy-waiting for a short while before a thread sleeps
 *
 * What     To wake a sleeping thread takes 50 to 100 microseconds, and most
 *          answers come sooner. So a waiter spins, but only as long as it pays.
 *          It learns how long recent waits took. If that is not much longer
 *          than it may spin, it spins for twice as long. After a few spins in
 *          vain it does not spin for a while. A waiter that knows that the
 *          other side has much work spins longer, because a wakeup after that
 *          work would cost more. A spin that was interrupted for longer than
 *          any look takes was preempted: others need the processor, and it does
 *          not spin for a while. A spin yields to other threads. Threads that
 *          give the processor back soon are waiting too, and it takes turns
 *          with them instead of sleeping.
 * Units    microseconds, where the name says nothing else
 * Owner    The caller; embedded.
 * Threads  Confined to one thread.
 */
#ifndef PS_TRANSPORT_SPIN_H
#define PS_TRANSPORT_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define PS_SPIN_MAX_US 10000
/* The factor by which a spin is longer for events that come that regularly. */
#define PS_SPIN_LONGER 4

/* What a spin looks at. */
typedef enum ps_spin_looks {
    PS_SPIN_FREE,  /* memory, all the time; what takes a call, now and then */
    PS_SPIN_CALLS, /* only what takes a call, and threads on this machine bring
                      it: they get the processor between any two looks */
} ps_spin_looks_t;

typedef struct ps_spin {
    uint32_t most_us;        /* 0: never */
    uint32_t gap_us;         /* length of recent waits */
    uint32_t limit_us;       /* of the one under way */
    uint32_t n_vain;         /* in a row */
    uint32_t pause_ms;       /* how long none is tried after an interruption */
    uint32_t rounds;         /* of the one under way */
    uint32_t every_ns;       /* a yield, and a look that costs more */
    bool crowded;            /* the last yield let another thread run */
    uint64_t vain_until_ns;  /* none is tried before that: they were in vain */
    uint64_t taken_until_ns; /* … and that: others need the processor */
    uint64_t begun_ns;       /* the wait under way */
    uint64_t looked_ns;
    uint64_t asked_ns;
    uint64_t yielded_ns;
    uint64_t lost_ns; /* the processor was last lost */
    long n_lost;      /* how often the thread has lost its processor */
} ps_spin_t;

/* Spins for at most most_us, or PS_SPIN_LONGER times that where it is known to
 * pay, and the other side's work; on a machine with one processor never. */
void ps_spin_init(ps_spin_t *self, uint32_t most_us);
/* A wait begins. work_us: how long the other side may be busy with the request;
 * the spin is longer by that, and by half of it after each spin in vain. False:
 * sleep at once. */
bool ps_spin_begin(ps_spin_t *self, ps_spin_looks_t looks, uint32_t work_us);
/* The spin under way, or the last one: its limit … */
void ps_spin_bound(ps_spin_t *self, uint64_t most_ms);
/* … and the milliseconds that it has taken so far. */
uint64_t ps_spin_ms(const ps_spin_t *self);
/* A short pause. False: the time is over, sleep. */
bool ps_spin_go_on(ps_spin_t *self);
/* Another thread ran on our processor, from from_ns until looked_ns. False:
 * that also happened a short while ago, so others need a processor, and there
 * is no spin for a while. For ps_spin_go_on. */
bool ps_spin_taken(ps_spin_t *self, uint64_t from_ns);
/* True every few microseconds of a spin: look at what costs more to look at. */
bool ps_spin_asks(ps_spin_t *self);
/* Something was found. */
void ps_spin_paid(ps_spin_t *self);
/* The wait slept, and then something came. */
void ps_spin_woken(ps_spin_t *self);
#endif
