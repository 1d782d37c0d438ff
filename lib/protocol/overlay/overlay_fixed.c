/* SPDX-License-Identifier: Apache-2.0 */
/* A tournament whose winners follow from the colour's bits. */
#include "protocol/overlay/overlay_fixed.h"

#include <assert.h>

/* Who holds what an interval of the current width has come to. */
typedef struct holder {
    uint32_t interval;
    uint32_t worker; /* its number */
} holder_t;

/* Pairs of halves become one; returns how many holders are left. */
static uint32_t play(holder_t *holders, uint32_t n, bool right_wins, uint32_t *parents)
{
    uint32_t n_left = 0;

    for (uint32_t i = 0; i < n; i++) {
        holder_t holder = {holders[i].interval / 2, holders[i].worker};

        if (i + 1 < n && holders[i + 1].interval / 2 == holder.interval) {
            uint32_t right = holders[i + 1].worker;
            uint32_t winner = right_wins ? right : holder.worker;

            parents[right_wins ? holder.worker : right] = winner;
            holder.worker = winner;
            i++;
        }
        holders[n_left++] = holder;
    }
    return n_left;
}

void ps_overlay_fixed(const uint32_t *positions, uint32_t n_workers, uint32_t colour,
                      uint32_t *ret_parents)
{
    holder_t holders[PS_OVERLAY_WORKERS_MAX];
    uint32_t n = n_workers;

    assert(n_workers >= 1 && n_workers <= PS_OVERLAY_WORKERS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        holders[i] = (holder_t){positions[i], i};
        ret_parents[i] = PS_OVERLAY_NODES;
    }
    for (uint32_t level = 0; n > 1; level++) {
        n = play(holders, n, (colour >> (level % 32) & 1) != 0, ret_parents);
    }
}
