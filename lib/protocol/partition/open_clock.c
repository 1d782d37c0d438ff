/* SPDX-License-Identifier: Apache-2.0 */
/* The pushes of a clock that is still open, in the order of their applying. */
#include "protocol/partition/open_clock.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/messages/message.h"

void ps_open_clock_done(ps_open_clock_t *self)
{
    ps_open_clock_drop(self, self->n_pushes);
    ps_free(self->pushes);
    *self = (ps_open_clock_t){0};
}

static int in_order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare(const void *left, const void *right)
{
    const ps_logged_t *a = left;
    const ps_logged_t *b = right;
    int order = in_order(a->worker, b->worker);

    if (order == 0) {
        order = in_order(a->member, b->member);
    }
    if (order == 0) {
        order = in_order(a->session, b->session);
    }
    return order != 0 ? order : in_order(a->seq, b->seq);
}

static int compare_by_clock(const void *left, const void *right)
{
    const ps_logged_t *a = left;
    const ps_logged_t *b = right;
    int order = in_order(a->clock, b->clock);

    if (order == 0) {
        order = in_order(a->op.op == PS_CHANGE_UPDATE, b->op.op == PS_CHANGE_UPDATE);
    }
    return order != 0 ? order : compare(left, right);
}

uint64_t ps_open_clock_cost(const ps_payload_t *payload, uint16_t n_from)
{
    return sizeof(ps_logged_t) + ps_payload_size(payload) + n_from * sizeof(ps_bundle_from_t);
}

bool ps_open_clock_reserve(ps_open_clock_t *self, size_t n)
{
    return ps_grow(&self->pushes, &self->capacity, self->n_pushes + n, sizeof *self->pushes);
}

bool ps_open_clock_has(const ps_open_clock_t *self, uint32_t first, uint32_t n, uint64_t clock)
{
    for (size_t i = 0; i < self->n_pushes; i++) {
        const ps_logged_t *push = &self->pushes[i];

        if (push->clock == clock && push->worker < first + n && first < push->worker + push->n) {
            return true;
        }
    }
    return false;
}

bool ps_open_clock_add(ps_open_clock_t *self, const ps_logged_t *push)
{
    if (!ps_open_clock_reserve(self, 1)) {
        return false;
    }
    self->pushes[self->n_pushes] = *push;
    if (push->payload != NULL) {
        self->pushes[self->n_pushes].payload = ps_payload_keep(push->payload);
    }
    self->n_pushes++;
    self->bytes += ps_open_clock_cost(push->payload, push->n_from);
    return true;
}

void ps_open_clock_sort(ps_open_clock_t *self)
{
    if (self->n_pushes > 1) {
        qsort(self->pushes, self->n_pushes, sizeof *self->pushes, compare);
    }
}

void ps_open_clock_sort_by_clock(ps_open_clock_t *self)
{
    if (self->n_pushes > 1) {
        qsort(self->pushes, self->n_pushes, sizeof *self->pushes, compare_by_clock);
    }
}

void ps_open_clock_drop(ps_open_clock_t *self, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        self->bytes -= ps_open_clock_cost(self->pushes[i].payload, self->pushes[i].n_from);
        ps_payload_destroy(&self->pushes[i].payload);
        ps_free(self->pushes[i].from);
    }
    if (n > 0) {
        self->n_pushes -= n;
        memmove(self->pushes, self->pushes + n, self->n_pushes * sizeof *self->pushes);
    }
}
