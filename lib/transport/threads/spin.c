/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when to go on spinning. */
#include "transport/threads/spin.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#define NS_OF_US UINT64_C(1000)
#define NS_OF_MS UINT64_C(1000000)
#define US_OF_MS 1000
#define ROUNDS_A_CLOCK 16             /* looks between two readings of the clock */
#define MOST_VAIN 4                   /* in a row; then there are none for a while */
#define LEARNS 4                      /* a gap counts for a 4th of what is known */
#define TAKEN_AWAY_NS (30 * NS_OF_US) /* between two looks */
#define LOST_AGAIN_NS NS_OF_MS
#define SHORT_YIELD_NS (3 * NS_OF_US) /* no other thread wanted to run */
#define TURN_NS (100 * NS_OF_US)      /* the thread that ran yields as we do */
#define EVERY_NS (5 * NS_OF_US)       /* a yield, and a look that costs more … */
#define CALLS_EVERY_NS NS_OF_US       /* … where nothing is looked at for free */
#define PAUSE_MS 2
#define PAUSE_MAX_MS 64
#define TRY_AGAIN_NS (5 * NS_OF_MS)

static uint64_t now_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_OF_MS * 1000 + (uint64_t)now.tv_nsec;
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void ps_spin_init(ps_spin_t *self, uint32_t most_us)
{
    cpu_set_t set;

    *self = (ps_spin_t){.most_us = most_us};
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < 2) {
        self->most_us = 0;
    }
}

/* The longest spin for what comes regularly. */
static uint32_t longest_us(const ps_spin_t *self)
{
    return PS_SPIN_LONGER * self->most_us;
}

/* Things come so often that looking for longer is likely to find them. */
static bool is_regular(const ps_spin_t *self)
{
    return self->gap_us > 0 && self->gap_us <= longest_us(self);
}

/* A single long gap must not hide that gaps are short: it counts for little. */
static void learn(ps_spin_t *self, uint64_t gap_ns)
{
    uint64_t most_us = 2 * (uint64_t)longest_us(self);
    uint64_t gap_us = gap_ns / NS_OF_US;

    gap_us = gap_us < most_us ? gap_us : most_us;
    self->gap_us = (uint32_t)((self->gap_us * (LEARNS - UINT64_C(1)) + gap_us) / LEARNS);
    if (is_regular(self)) {
        self->vain_until_ns = 0;
    }
}

static uint32_t twice_the_gap(const ps_spin_t *self)
{
    uint32_t us = 2 * self->gap_us;

    if (!is_regular(self) || us < self->most_us) {
        return self->most_us;
    }
    return us < longest_us(self) ? us : longest_us(self);
}

bool ps_spin_begin(ps_spin_t *self, ps_spin_looks_t looks, uint32_t work_us)
{
    if (self->most_us == 0) {
        return false;
    }
    self->begun_ns = now_ns();
    if (self->begun_ns < self->vain_until_ns || self->begun_ns < self->taken_until_ns) {
        return false;
    }
    self->limit_us = twice_the_gap(self) + (work_us >> self->n_vain);
    self->looked_ns = self->begun_ns;
    self->asked_ns = self->begun_ns;
    self->yielded_ns = self->begun_ns;
    self->rounds = 0;
    self->every_ns = looks == PS_SPIN_FREE ? EVERY_NS : CALLS_EVERY_NS;
    return true;
}

void ps_spin_bound(ps_spin_t *self, uint64_t most_ms)
{
    if (most_ms < self->limit_us / US_OF_MS) {
        self->limit_us = (uint32_t)(most_ms * US_OF_MS);
    }
}

uint64_t ps_spin_ms(const ps_spin_t *self)
{
    return (self->looked_ns - self->begun_ns) / NS_OF_MS;
}

/* The next one in vain, at the end of the pause, begins another. */
static void end_in_vain(ps_spin_t *self)
{
    if (self->n_vain < MOST_VAIN) {
        self->n_vain++;
    }
    if (self->n_vain == MOST_VAIN) {
        self->vain_until_ns = self->looked_ns + TRY_AGAIN_NS;
    }
}

/* Whether another thread ran on our processor. A virtual machine may pause for
 * as long as that without any thread here that needs the processor. */
static bool lost_processor(ps_spin_t *self)
{
    struct rusage usage;
    bool lost = true;

    if (getrusage(RUSAGE_THREAD, &usage) == 0) {
        lost = usage.ru_nivcsw != self->n_lost;
        self->n_lost = usage.ru_nivcsw;
    }
    return lost;
}

/* Something that ran in our place once may have been short. */
bool ps_spin_taken(ps_spin_t *self, uint64_t from_ns)
{
    uint64_t last_ns = self->lost_ns;

    self->lost_ns = self->looked_ns;
    if (from_ns - last_ns > LOST_AGAIN_NS) {
        return true;
    }
    self->pause_ms = self->pause_ms == 0 ? PAUSE_MS : 2 * self->pause_ms;
    if (self->pause_ms > PAUSE_MAX_MS) {
        self->pause_ms = PAUSE_MAX_MS;
    }
    self->taken_until_ns = self->looked_ns + self->pause_ms * NS_OF_MS;
    return false;
}

/* Where others wait as we do, more threads than processors take turns, and get
 * on best when each that finds nothing lets the next one look: then they yield
 * at the first look, and at every one that reads the clock. */
static bool yields(const ps_spin_t *self)
{
    return self->crowded || self->looked_ns - self->yielded_ns >= self->every_ns;
}

/* Gives our processor to a thread that waits for one, before the kernel
 * preempts us. */
static bool yield(ps_spin_t *self)
{
    uint64_t before_ns = self->looked_ns;
    uint64_t away_ns = 0;

    if (!yields(self)) {
        return true;
    }
    (void)sched_yield();
    self->looked_ns = now_ns();
    self->yielded_ns = self->looked_ns;
    away_ns = self->looked_ns - before_ns;
    self->crowded = away_ns > SHORT_YIELD_NS;
    if (self->crowded && away_ns <= TURN_NS) {
        (void)lost_processor(self); /* a turn is no loss, now or later */
        return true;
    }
    return !self->crowded || !lost_processor(self) || ps_spin_taken(self, before_ns);
}

bool ps_spin_go_on(ps_spin_t *self)
{
    uint64_t last_ns = self->looked_ns;

    relax();
    if (++self->rounds % ROUNDS_A_CLOCK != 0 && !(self->crowded && self->rounds == 1)) {
        return true;
    }
    self->looked_ns = now_ns();
    if (self->looked_ns - last_ns > TAKEN_AWAY_NS && lost_processor(self) &&
        !ps_spin_taken(self, last_ns)) {
        return false;
    }
    if (!yield(self)) {
        return false;
    }
    if (self->looked_ns - self->begun_ns < self->limit_us * NS_OF_US) {
        return true;
    }
    end_in_vain(self);
    return false;
}

bool ps_spin_asks(ps_spin_t *self)
{
    if (self->looked_ns - self->asked_ns < self->every_ns) {
        return false;
    }
    self->asked_ns = self->looked_ns;
    return true;
}

void ps_spin_paid(ps_spin_t *self)
{
    learn(self, self->looked_ns - self->begun_ns);
    self->n_vain = 0;
    self->pause_ms = 0;
}

void ps_spin_woken(ps_spin_t *self)
{
    if (self->most_us > 0) {
        learn(self, now_ns() - self->begun_ns);
    }
}
