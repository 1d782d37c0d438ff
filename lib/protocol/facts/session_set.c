/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of sessions: found, joined, written and read. */
#include "protocol/facts/session_set.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

void ps_session_set_done(ps_session_set_t *self)
{
    ps_free(self->runs);
    *self = (ps_session_set_t){0};
}

/* The first run that ends at `session` or above; n: none does. */
static size_t find(const ps_session_set_t *self, uint64_t session)
{
    size_t low = 0;
    size_t high = self->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->runs[middle].last < session) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool ps_session_set_has(const ps_session_set_t *self, uint64_t session)
{
    size_t at = find(self, session);

    return at < self->n && self->runs[at].first <= session;
}

bool ps_session_set_equal(const ps_session_set_t *a, const ps_session_set_t *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->runs, b->runs, a->n * sizeof *a->runs) == 0);
}

/* Removes n runs. */
static void remove_runs(ps_session_set_t *self, size_t at, size_t n)
{
    self->n -= n;
    memmove(self->runs + at, self->runs + at + n, (self->n - at) * sizeof *self->runs);
}

/* Merges the two neighbouring runs that are nearest to each other. */
static void join_nearest(ps_session_set_t *self)
{
    size_t best = 0;

    for (size_t i = 0; i + 1 < self->n; i++) {
        if (self->runs[i + 1].first - self->runs[i].last <
            self->runs[best + 1].first - self->runs[best].last) {
            best = i;
        }
    }
    self->runs[best].last = self->runs[best + 1].last;
    remove_runs(self, best + 1, 1);
}

bool ps_session_set_add(ps_session_set_t *self, uint64_t first, uint64_t last)
{
    size_t at = find(self, first == 0 ? 0 : first - 1);
    size_t end = at;

    assert(first <= last);
    if (!ps_grow(&self->runs, &self->capacity, self->n + 1, sizeof *self->runs)) {
        return false;
    }
    /* Merges all runs that overlap or touch it. */
    while (end < self->n && (self->runs[end].first <= last || self->runs[end].first - last == 1)) {
        first = self->runs[end].first < first ? self->runs[end].first : first;
        last = self->runs[end].last > last ? self->runs[end].last : last;
        end++;
    }
    if (end > at) {
        self->runs[at] = (ps_session_run_t){first, last};
        remove_runs(self, at + 1, end - at - 1);
        return true;
    }
    memmove(self->runs + at + 1, self->runs + at, (self->n - at) * sizeof *self->runs);
    self->runs[at] = (ps_session_run_t){first, last};
    self->n++;
    if (self->n > PS_SESSION_RUNS_MAX) {
        join_nearest(self);
    }
    return true;
}

void ps_session_set_drop_lowest(ps_session_set_t *self)
{
    if (self->n > 0) {
        remove_runs(self, 0, 1);
    }
}

bool ps_session_set_put(const ps_session_set_t *self, ps_buffer_t *to)
{
    bool fits = ps_buffer_u32(to, (uint32_t)self->n);

    for (size_t i = 0; fits && i < self->n; i++) {
        fits = ps_buffer_u64(to, self->runs[i].first) && ps_buffer_u64(to, self->runs[i].last);
    }
    return fits;
}

psd_status_t ps_session_set_take(ps_cursor_t *cursor, ps_session_set_t *self, psd_error_t *err)
{
    uint32_t n = ps_cursor_u32(cursor);

    if (n > PS_SESSION_RUNS_MAX) {
        return psd_error_set(err, PSD_PROTO,
                             "a state has %" PRIu32 " runs of forgotten sessions; allowed: %d", n,
                             PS_SESSION_RUNS_MAX);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t first = ps_cursor_u64(cursor);
        uint64_t last = ps_cursor_u64(cursor);

        if (cursor->failed || first > last ||
            (i > 0 && (first <= self->runs[i - 1].last || first - self->runs[i - 1].last == 1))) {
            return psd_error_set(
                err, PSD_PROTO,
                "run %" PRIu32
                " of a state's forgotten sessions is truncated, or not above the one before",
                i);
        }
        if (!ps_session_set_add(self, first, last)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a partition's state");
        }
    }
    return PSD_OK;
}
