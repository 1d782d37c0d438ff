/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in a window, timed. */
#include "cli/bench/bench_load.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/machine/bench_keys.h"
#include "cli/machine/bench_limit.h"
#include "cli/output/interrupt.h"

#define POOL_BYTES ((uint64_t)64 << 20)
#define SMALL_POOL_BYTES ((uint64_t)1 << 20)
#define SMALL_REQUEST_BYTES 65536 /* its values are in the cache in any program */
#define KEYS_MOST ((size_t)8 << 20)
#define REQUESTS_MOST ((size_t)4 << 20)
#define LOOK_EVERY 64 /* requests between two checks for an interrupt */

const char *ps_bench_kind_name(ps_bench_kind_t kind)
{
    static const char *const NAMES[] = {[PS_BENCH_PUSH] = "push",
                                        [PS_BENCH_PULL] = "pull",
                                        [PS_BENCH_PUSHPULL] = "pushpull",
                                        [PS_BENCH_IN_PLACE] = "push in place"};

    return NAMES[kind];
}

uint64_t ps_bench_bytes(const ps_bench_shape_t *shape)
{
    return (uint64_t)shape->n_keys * shape->n_cols * sizeof(float);
}

psd_status_t ps_bench_pool_fit(ps_bench_pool_t *self, const ps_bench_shape_t *shape,
                               psd_error_t *err)
{
    uint64_t request = ps_bench_bytes(shape);
    uint64_t need = request > SMALL_REQUEST_BYTES ? POOL_BYTES : SMALL_POOL_BYTES;
    ps_rng_t rng = {.state = 1};
    float *values = NULL;
    size_t n = 0;

    /* Requests in flight never share values. */
    if (need < request * (shape->in_flight + UINT64_C(1))) {
        need = request * (shape->in_flight + UINT64_C(1));
    }
    n = (size_t)(need / sizeof *values);
    if (n <= self->n) {
        return PSD_OK;
    }
    values = ps_alloc_raw(n, sizeof *values);
    if (values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu values", n);
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = (float)ps_rng_f64(&rng) / 1024 - 1.0F / 2048;
    }
    ps_free(self->values);
    self->values = values;
    self->n = n;
    return PSD_OK;
}

void ps_bench_pool_done(ps_bench_pool_t *self)
{
    ps_free(self->values);
    *self = (ps_bench_pool_t){0};
}

/* The lists of many requests would fill the memory. */
size_t ps_bench_load_most(const ps_bench_shape_t *shape)
{
    size_t most = KEYS_MOST / shape->n_keys;

    if (most > REQUESTS_MOST) {
        return REQUESTS_MOST;
    }
    return most + (size_t)shape->in_flight * 2 + 2;
}

/* One row of a range table needs no list: a selection holds the row itself. */
static bool has_lists(const ps_bench_shape_t *shape)
{
    return shape->hash || shape->n_keys > 1;
}

static psd_status_t make_lists(ps_bench_load_t *self, size_t n, psd_error_t *err)
{
    const ps_bench_shape_t *shape = self->shape;
    PSD_AUTO(ps_free_at)
    uint64_t *spare = ps_alloc_raw(shape->n_keys, sizeof *spare);
    uint64_t *keys = ps_alloc_resize(self->keys, n * shape->n_keys, sizeof *keys);

    if (spare == NULL || keys == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu lists of keys", n);
    }
    self->keys = keys;
    for (size_t i = 0; i < n; i++) {
        ps_bench_sample_keys(&self->rng, shape->hash, shape->n_rows, keys + i * shape->n_keys,
                             spare, shape->n_keys);
    }
    return PSD_OK;
}

psd_status_t ps_bench_load_prepare(ps_bench_load_t *self, size_t n, psd_error_t *err)
{
    psd_ticket_t *tickets = ps_alloc_resize(self->tickets, self->shape->in_flight, sizeof *tickets);
    double *times = NULL;

    self->tickets = tickets == NULL ? self->tickets : tickets;
    times = ps_alloc_resize(self->times, n, sizeof *times);
    self->times = times == NULL ? self->times : times;
    self->select = self->select == NULL ? psd_select_new() : self->select;
    self->call = self->call == NULL ? psd_call_new() : self->call;
    self->n = n;
    if (tickets == NULL || times == NULL || self->select == NULL || self->call == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu requests", n);
    }
    psd_call_set_timeout_ms(self->call, self->timeout_ms);
    psd_call_set_borrow(self->call, true);
    return has_lists(self->shape) ? make_lists(self, n, err) : PSD_OK;
}

/* Requests of n values after which the pools begin again. */
static size_t count_turns(const ps_bench_load_t *self, size_t n)
{
    size_t from = self->from->n / n;
    size_t to = self->to->n / n;

    switch (self->shape->kind) {
    case PS_BENCH_PUSH:
    case PS_BENCH_IN_PLACE:
        return from;
    case PS_BENCH_PULL:
        return to;
    case PS_BENCH_PUSHPULL:
    default:
        return from < to ? from : to;
    }
}

/* The library provides the memory, and the caller writes it. */
static psd_status_t start_in_place(ps_bench_load_t *self, const float *values, psd_ticket_t *ticket,
                                   psd_error_t *err)
{
    psd_draft_t *draft = NULL;
    void *place = NULL;
    size_t n = 0;
    uint64_t start = 0;
    psd_status_t rc = psd_push_begin(self->table, self->select, &draft, &place, &n, err);

    if (rc != PSD_OK) {
        return rc;
    }
    start = ps_bench_now_ns();
    memcpy(place, values, n * sizeof *values);
    self->idle_ns += ps_bench_now_ns() - start;
    rc = psd_push_commit(&draft, self->call, ticket, err);
    psd_push_abandon(&draft);
    return rc;
}

static psd_status_t start_one(ps_bench_load_t *self, size_t i, psd_error_t *err)
{
    const ps_bench_shape_t *shape = self->shape;
    size_t n = shape->n_keys * (size_t)shape->n_cols;
    size_t at = self->turn++ % count_turns(self, n) * n;
    psd_ticket_t *ticket = &self->tickets[i % shape->in_flight];

    if (has_lists(shape)) {
        psd_select_rows(self->select, self->keys + i * shape->n_keys, shape->n_keys);
    } else {
        psd_select_row_range(self->select, self->turn % shape->n_rows, 1);
    }
    switch (shape->kind) {
    case PS_BENCH_PUSH:
        return psd_push_start(self->table, self->select, self->from->values + at, n, self->call,
                              ticket, err);
    case PS_BENCH_PULL:
        return psd_pull_start(self->table, self->select, self->to->values + at, n, self->call,
                              ticket, err);
    case PS_BENCH_IN_PLACE:
        return start_in_place(self, self->from->values + at, ticket, err);
    case PS_BENCH_PUSHPULL:
    default:
        return psd_pushpull_start(self->table, self->select, self->from->values + at,
                                  self->to->values + at, n, self->call, ticket, err);
    }
}

static psd_status_t wait_one(ps_bench_load_t *self, size_t slot, psd_error_t *err)
{
    psd_ticket_t ticket = self->tickets[slot];

    self->tickets[slot] = 0;
    return ticket == 0 ? PSD_OK : psd_wait(self->client, ticket, self->timeout_ms, err);
}

/* One request at a time, each with its own time. */
static psd_status_t run_waiting(ps_bench_load_t *self, psd_error_t *err)
{
    uint64_t before = self->start_ns;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < self->n; i++) {
        uint64_t idle = self->idle_ns;
        uint64_t now = 0;

        rc = start_one(self, i, err);
        if (rc == PSD_OK) {
            rc = wait_one(self, 0, err);
        }
        now = ps_bench_now_ns();
        self->times[i] = (double)(now - before - (self->idle_ns - idle)) / 1e9;
        before = now;
        if (rc == PSD_OK && i % LOOK_EVERY == 0 && ps_interrupt_came()) {
            rc = psd_error_set(err, PSD_INTERRUPTED, "interrupted");
        }
    }
    return rc;
}

static psd_status_t run_window(ps_bench_load_t *self, psd_error_t *err)
{
    uint32_t in_flight = self->shape->in_flight;
    size_t started = 0;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && started < self->n) {
        rc = wait_one(self, started % in_flight, err);
        if (rc == PSD_OK) {
            rc = start_one(self, started, err);
        }
        if (rc == PSD_OK && started % LOOK_EVERY == 0 && ps_interrupt_came()) {
            rc = psd_error_set(err, PSD_INTERRUPTED, "interrupted");
        }
        started++;
    }
    for (size_t i = 0; i < in_flight; i++) {
        /* Values in flight must stay valid, so it waits for all of them even after a failure. */
        psd_status_t late = wait_one(self, (started + i) % in_flight, err);

        rc = rc == PSD_OK ? late : rc;
    }
    return rc;
}

psd_status_t ps_bench_load_run(ps_bench_load_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < self->shape->in_flight; i++) {
        self->tickets[i] = 0;
    }
    self->idle_ns = 0;
    self->start_ns = ps_bench_now_ns();
    rc = self->shape->in_flight == 1 ? run_waiting(self, err) : run_window(self, err);
    self->end_ns = ps_bench_now_ns();
    return rc;
}

void ps_bench_load_done(ps_bench_load_t *self)
{
    psd_select_destroy(&self->select);
    psd_call_destroy(&self->call);
    ps_free(self->tickets);
    ps_free(self->keys);
    ps_free(self->times);
    *self = (ps_bench_load_t){0};
}
