/* SPDX-License-Identifier: Apache-2.0 */
/* Two windows of gaps. */
#include "protocol/quorum/patience.h"

#define WINDOW_MS 5000
#define FACTOR 4 /* a message in time, one that is lost, and one that is late */
#define STEP_MS 100

static void turn(ps_patience_t *self, uint64_t now_ms)
{
    if (now_ms < self->since_ms + WINDOW_MS) {
        return;
    }
    self->worst_ms[1] = now_ms < self->since_ms + 2 * (uint64_t)WINDOW_MS ? self->worst_ms[0] : 0;
    self->worst_ms[0] = 0;
    self->since_ms = now_ms;
}

void ps_patience_note(ps_patience_t *self, uint64_t gap_ms, uint64_t now_ms)
{
    turn(self, now_ms);
    if (gap_ms > self->worst_ms[0] && gap_ms <= (uint64_t)FACTOR * self->most_ms) {
        self->worst_ms[0] = gap_ms;
    }
}

uint32_t ps_patience_ms(ps_patience_t *self, uint64_t now_ms)
{
    uint64_t wanted_ms = 0;

    turn(self, now_ms);
    wanted_ms = self->worst_ms[0] > self->worst_ms[1] ? self->worst_ms[0] : self->worst_ms[1];
    wanted_ms = (FACTOR * wanted_ms + STEP_MS - 1) / STEP_MS * STEP_MS;
    if (wanted_ms < self->least_ms) {
        return self->least_ms;
    }
    return wanted_ms > self->most_ms ? self->most_ms : (uint32_t)wanted_ms;
}
