/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a group of contributors may be taken as one. */
#include "protocol/partition/bundle_turn.h"

static ps_bundle_turn_t turn_of(const ps_partition_t *self, const ps_bundle_from_t *from)
{
    const ps_window_t *window = ps_map_get(&self->windows, from->session);
    uint64_t next = window == NULL ? 1 : window->next;

    if (ps_session_set_has(&self->retired, from->session)) {
        return PS_BUNDLE_SPLIT;
    }
    if (from->last_seq < next) {
        return PS_BUNDLE_AGAIN;
    }
    return from->first_seq == next && (window == NULL || window->arrived == next) ? PS_BUNDLE_TAKE
                                                                                  : PS_BUNDLE_SPLIT;
}

ps_bundle_turn_t ps_bundle_turn(const ps_partition_t *self, const ps_bundle_from_t *from, size_t n,
                                size_t *ret_in)
{
    size_t n_next = 0;

    *ret_in = 0;
    for (size_t i = 0; i < n; i++) {
        ps_bundle_turn_t turn = turn_of(self, &from[i]);

        n_next += turn == PS_BUNDLE_TAKE ? 1 : 0;
        *ret_in += turn == PS_BUNDLE_AGAIN ? 1 : 0;
    }
    if (n_next == n) {
        return PS_BUNDLE_TAKE;
    }
    return *ret_in == n ? PS_BUNDLE_AGAIN : PS_BUNDLE_SPLIT;
}

/* The number of members that the worker has; 0: the job has no such worker. */
static uint32_t members_of(const ps_gate_t *gate, uint32_t worker)
{
    for (size_t i = 0; i < ps_gate_n_workers(gate); i++) {
        uint32_t rank = 0;
        uint32_t n = 0;

        (void)ps_gate_finished(gate, i, &rank);
        (void)ps_gate_marks(gate, i, &n);
        if (rank == worker) {
            return n;
        }
    }
    return 0;
}

static bool has_push(const ps_open_clock_t *open, uint32_t worker, uint64_t clock)
{
    for (size_t i = 0; i < open->n_pushes; i++) {
        if (open->pushes[i].worker == worker && open->pushes[i].clock == clock) {
            return true;
        }
    }
    return false;
}

bool ps_bundle_is_whole(const ps_job_place_t *place, const ps_bundle_from_t *from, size_t n,
                        uint64_t clock)
{
    for (size_t i = 0, end = 0; i < n; i = end) {
        uint32_t worker = from[i].worker;

        while (end < n && from[end].worker == worker) {
            if (!from[end].marks || from[end].member != end - i) {
                return false;
            }
            end++;
        }
        if (end - i != members_of(place->gate, worker) || has_push(&place->open, worker, clock)) {
            return false;
        }
    }
    return true;
}
