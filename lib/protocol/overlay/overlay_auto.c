/* SPDX-License-Identifier: Apache-2.0 */
/* A tree must promise enough, and keep it. */
#include "protocol/overlay/overlay_auto.h"

bool ps_overlay_auto_choose(ps_overlay_auto_t *self, const ps_overlay_plan_t *plan, double gain,
                            uint64_t turn)
{
    bool had_tree = self->uses_tree;

    self->uses_tree = turn >= self->wait_until && plan->seconds * gain < plan->star_s;
    if (!self->uses_tree) {
        self->n_slow = 0;
    } else if (!had_tree) {
        self->since = turn;
    }
    return self->uses_tree;
}

void ps_overlay_auto_took(ps_overlay_auto_t *self, const ps_overlay_plan_t *plan, double seconds,
                          uint64_t turn)
{
    if (!self->uses_tree) {
        return;
    }
    self->n_slow = seconds > plan->star_s ? self->n_slow + 1 : 0;
    if (self->n_slow == 0 && turn - self->since >= self->wait) {
        self->wait = 0;
    }
    if (self->n_slow < PS_OVERLAY_SLOW_CLOCKS) {
        return;
    }
    self->wait = self->wait == 0 ? PS_OVERLAY_WAIT_TURNS : self->wait * 2;
    self->wait = self->wait > PS_OVERLAY_WAIT_MAX ? PS_OVERLAY_WAIT_MAX : self->wait;
    self->wait_until = turn + self->wait;
    self->uses_tree = false;
    self->n_slow = 0;
}
