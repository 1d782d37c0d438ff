/* SPDX-License-Identifier: Apache-2.0 */
/* When to go on looking. */
#include "transport/spin.h"

#include <sched.h>
#include <time.h>

#define NS_OF_US UINT64_C(1000)
#define NS_OF_MS UINT64_C(1000000)
#define ROUNDS_A_CLOCK 16 /* looks between two readings of the clock */
#define LEAST_US 4        /* shorter ones are not worth their start */
#define TAKEN_AWAY_NS (30 * NS_OF_US) /* between two looks: it was not ours */
#define ASK_EVERY_NS (5 * NS_OF_US)
#define PAUSE_MS 2
#define PAUSE_MAX_MS 64
#define TRY_AGAIN_NS (5 * NS_OF_MS) /* a budget that is used up */

static uint64_t
now_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_OF_MS * 1000 + (uint64_t)now.tv_nsec;
}

static inline void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void
ps_spin_init(ps_spin_t *self, uint32_t most_us)
{
    cpu_set_t set;

    *self = (ps_spin_t){.most_us = most_us, .budget_us = most_us};
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < 2) {
        self->most_us = 0;
    }
}

bool
ps_spin_begin(ps_spin_t *self, uint32_t work_us)
{
    if (self->most_us == 0) {
        return false;
    }
    self->begun_ns = now_ns();
    if (self->begun_ns < self->off_until_ns) {
        return false;
    }
    if (self->budget_us < LEAST_US) {
        self->budget_us = LEAST_US < self->most_us ? LEAST_US : self->most_us;
    }
    self->limit_us =
        self->budget_us +
        (uint32_t)((uint64_t)work_us * self->budget_us / self->most_us);
    self->looked_ns = self->begun_ns;
    self->asked_ns = self->begun_ns;
    self->rounds = 0;
    return true;
}

bool
ps_spin_go_on(ps_spin_t *self)
{
    uint64_t now = 0;

    relax();
    if (++self->rounds % ROUNDS_A_CLOCK != 0) {
        return true;
    }
    now = now_ns();
    if (now - self->looked_ns > TAKEN_AWAY_NS) {
        self->pause_ms = self->pause_ms == 0 ? PAUSE_MS : 2 * self->pause_ms;
        if (self->pause_ms > PAUSE_MAX_MS) {
            self->pause_ms = PAUSE_MAX_MS;
        }
        self->off_until_ns = now + self->pause_ms * NS_OF_MS;
        return false;
    }
    self->looked_ns = now;
    if (now - self->begun_ns < self->limit_us * NS_OF_US) {
        return true;
    }
    self->budget_us /= 2;
    if (self->budget_us < LEAST_US) {
        self->off_until_ns = now + TRY_AGAIN_NS;
        self->budget_us = self->most_us;
    }
    return false;
}

bool
ps_spin_asks(ps_spin_t *self)
{
    if (self->looked_ns - self->asked_ns < ASK_EVERY_NS) {
        return false;
    }
    self->asked_ns = self->looked_ns;
    return true;
}

void
ps_spin_paid(ps_spin_t *self)
{
    self->budget_us = self->most_us;
    self->pause_ms = 0;
}
