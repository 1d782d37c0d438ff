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
        if (end - i != members_of(place->gate, worker) ||
            ps_open_clock_has(&place->open, worker, 1, clock)) {
            return false;
        }
    }
    return true;
}

/* A single push, as it would come directly. */
static bool is_plain(const ps_bundle_t *bundle, const ps_bundle_span_t *span)
{
    const ps_bundle_from_t *from = &bundle->from[span->from];

    return span->n == 1 && span->n_from == 1 && from->first_seq == from->last_seq;
}

static bool contributes(const ps_bundle_t *bundle, const ps_bundle_span_t *span, uint32_t worker)
{
    for (uint16_t i = 0; i < span->n_from; i++) {
        if (bundle->from[span->from + i].worker == worker) {
            return true;
        }
    }
    return false;
}

bool ps_bundle_fills(const ps_job_place_t *place, const ps_bundle_t *bundle,
                     const ps_bundle_span_t *span, uint64_t clock)
{
    if (is_plain(bundle, span)) {
        return true;
    }
    if (!ps_bundle_is_whole(place, &bundle->from[span->from], span->n_from, clock) ||
        ps_open_clock_has(&place->open, span->first, span->n, clock)) {
        return false;
    }
    for (size_t i = 0; i < ps_gate_n_workers(place->gate); i++) {
        uint32_t worker = 0;

        (void)ps_gate_finished(place->gate, i, &worker);
        if (worker >= span->first && worker - span->first < span->n &&
            ps_gate_expects_more(place->gate, i, clock) && !contributes(bundle, span, worker)) {
            return false;
        }
    }
    return true;
}

/* Marks of the worker in the bundle, whose contributors from *at on are those of it and of workers
 * that come later. Members that have finished fewer clocks do not count. */
static uint64_t marks_of(const ps_bundle_t *bundle, uint16_t *at, uint32_t worker, uint32_t members)
{
    while (*at < bundle->n_from && bundle->from[*at].worker < worker) {
        (*at)++;
    }
    return members == 1 && *at < bundle->n_from && bundle->from[*at].worker == worker
               ? bundle->from[*at].marks
               : 0;
}

/* Where its last push or mark belongs: the mark of a clock goes with the pushes of that clock. */
static uint64_t clock_of(const ps_gate_t *gate, const ps_bundle_from_t *from)
{
    uint64_t finished = ps_gate_mark_of(gate, from->worker, from->member);

    return finished + from->marks - (from->tail == PS_BUNDLE_TAIL_MARK ? 1 : 0);
}

bool ps_bundle_is_open(const ps_job_place_t *place, const ps_bundle_t *bundle)
{
    uint64_t needed = 0;
    uint16_t at = 0;

    for (uint16_t i = 0; i < bundle->n_from; i++) {
        uint64_t needs = ps_gate_needs(place->gate, clock_of(place->gate, &bundle->from[i]));

        needed = needs > needed ? needs : needed;
    }
    for (size_t i = 0; needed > 0 && i < ps_gate_n_workers(place->gate); i++) {
        uint32_t worker = 0;
        uint32_t members = 0;
        uint64_t finished = ps_gate_finished(place->gate, i, &worker);

        (void)ps_gate_marks(place->gate, i, &members);
        if (ps_gate_expects_more(place->gate, i, needed - 1) &&
            finished + marks_of(bundle, &at, worker, members) < needed) {
            return false;
        }
    }
    return true;
}
