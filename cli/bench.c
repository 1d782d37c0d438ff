/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in a window, timed. */
#include "cli/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/interrupt.h"

typedef struct window {
    const ps_cli_t *cli;
    psd_client_t *client;
    psd_table_t *table;
    const ps_bench_shape_t *shape;
    psd_select_t *select;  /* owned */
    psd_call_t *call;      /* owned */
    float *deltas;         /* owned; read only, shared by all in flight */
    float **values;        /* owned; where the i-th in flight puts values */
    psd_ticket_t *tickets; /* owned; ring of in_flight */
    uint64_t next_row;
} window_t;

static int
compare_doubles(const void *a_p, const void *b_p)
{
    const double *a = a_p;
    const double *b = b_p;

    return *a < *b ? -1 : *a > *b ? 1 : 0;
}

double
ps_bench_median(double *numbers, size_t n)
{
    qsort(numbers, n, sizeof *numbers, compare_doubles);
    return n % 2 == 1 ? numbers[n / 2]
                      : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}

double
ps_bench_quantile(const double *sorted, size_t n, double p)
{
    size_t at = (size_t)(p * (double)n);

    return sorted[at < n ? at : n - 1];
}

static void
window_done(window_t *self)
{
    psd_select_destroy(&self->select);
    psd_call_destroy(&self->call);
    ps_free(self->deltas);
    for (uint32_t i = 0; self->values != NULL && i < self->shape->in_flight;
         i++) {
        ps_free(self->values[i]);
    }
    ps_free(self->values);
    ps_free(self->tickets);
}

static size_t
n_values_of(const ps_bench_shape_t *shape)
{
    return shape->n_keys * (size_t)shape->n_cols;
}

static psd_status_t
window_init(window_t *self, psd_error_t *err)
{
    const ps_bench_shape_t *shape = self->shape;
    size_t n_values = n_values_of(shape);
    bool ok = true;

    self->select = psd_select_new();
    self->call = psd_call_new();
    self->deltas = ps_alloc(n_values, sizeof *self->deltas);
    self->values = ps_alloc(shape->in_flight, sizeof *self->values);
    self->tickets = ps_alloc(shape->in_flight, sizeof *self->tickets);
    ok = self->select != NULL && self->call != NULL && self->deltas != NULL &&
         self->values != NULL && self->tickets != NULL;
    for (uint32_t i = 0; ok && i < shape->in_flight; i++) {
        self->values[i] = ps_alloc(n_values, sizeof **self->values);
        ok = self->values[i] != NULL;
    }
    if (!ok) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu values",
                             n_values);
    }
    for (size_t i = 0; i < n_values; i++) {
        self->deltas[i] = 1.0F;
    }
    psd_call_set_timeout_ms(self->call, self->cli->timeout_ms);
    psd_call_set_borrow(self->call, true);
    return PSD_OK;
}

static psd_status_t
start_one(window_t *self, uint32_t slot, psd_error_t *err)
{
    const ps_bench_shape_t *shape = self->shape;
    size_t n = n_values_of(shape);
    psd_ticket_t *ticket = &self->tickets[slot];

    if (shape->keys != NULL) {
        psd_select_rows(self->select, shape->keys, shape->n_keys);
    } else {
        psd_select_row_range(self->select, self->next_row, 1);
        self->next_row = (self->next_row + 1) % shape->n_rows;
    }
    switch (shape->kind) {
    case PS_BENCH_PUSH:
        return psd_push_start(self->table, self->select, self->deltas, n,
                              self->call, ticket, err);
    case PS_BENCH_PULL:
        return psd_pull_start(self->table, self->select, self->values[slot], n,
                              self->call, ticket, err);
    case PS_BENCH_PUSHPULL:
    default:
        return psd_pushpull_start(self->table, self->select, self->deltas,
                                  self->values[slot], n, self->call, ticket,
                                  err);
    }
}

static psd_status_t
wait_one(window_t *self, uint32_t slot, psd_error_t *err)
{
    psd_ticket_t ticket = self->tickets[slot];

    self->tickets[slot] = 0;
    return ticket == 0
               ? PSD_OK
               : psd_wait(self->client, ticket, self->cli->timeout_ms, err);
}

/* Requests until the time is over, all of them waited for. */
static psd_status_t
run_once(window_t *self, double *ret_seconds, uint64_t *ret_n, psd_error_t *err)
{
    uint32_t in_flight = self->shape->in_flight;
    double start = ps_cli_now_s();
    double end = start + (double)self->shape->duration_ms / 1000;
    uint64_t n = 0;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && (n <= in_flight || ps_cli_now_s() < end)) {
        uint32_t slot = (uint32_t)(n % in_flight);

        rc = wait_one(self, slot, err);
        if (rc == PSD_OK) {
            rc = start_one(self, slot, err);
        }
        if (rc == PSD_OK && ps_interrupt_came()) {
            rc = psd_error_set(err, PSD_INTERRUPTED, "interrupted");
        }
        n++;
    }
    for (uint64_t i = 0; i < in_flight; i++) {
        /* Buffers in flight must stay: even after a failure all are awaited. */
        psd_status_t late =
            wait_one(self, (uint32_t)((n + i) % in_flight), err);

        rc = rc == PSD_OK ? late : rc;
    }
    *ret_seconds = ps_cli_now_s() - start;
    *ret_n = n;
    return rc;
}

psd_status_t
ps_bench_throughput(const ps_cli_t *cli,
                    psd_client_t *client,
                    psd_table_t *table,
                    const ps_bench_shape_t *shape,
                    ps_bench_result_t *ret_result,
                    psd_error_t *err)
{
    PSD_AUTO(window_done)
    window_t self = {
        .cli = cli, .client = client, .table = table, .shape = shape};
    double rates[PS_BENCH_REPEATS_MAX];
    double seconds = 0;
    uint64_t n = 0;
    psd_status_t rc = window_init(&self, err);

    if (rc == PSD_OK) {
        rc = run_once(&self, &seconds, &n, err); /* warm-up */
    }
    *ret_result = (ps_bench_result_t){0};
    for (uint32_t i = 0; rc == PSD_OK && i < shape->repeats; i++) {
        rc = run_once(&self, &seconds, &n, err);
        rates[i] = (double)n / seconds;
        ret_result->seconds += seconds;
        ret_result->requests += (double)n;
    }
    if (rc == PSD_OK) {
        ret_result->requests_s = ps_bench_median(rates, shape->repeats);
        ret_result->min_requests_s = rates[0];
        ret_result->max_requests_s = rates[shape->repeats - 1];
    }
    return rc;
}

static psd_status_t
set_number(psd_spec_t *spec, const char *key, uint64_t value, psd_error_t *err)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return psd_spec_set(spec, key, text, err);
}

psd_status_t
ps_bench_table(psd_client_t *client,
               uint64_t n_rows,
               uint64_t n_cols,
               psd_table_t **ret_table,
               psd_error_t *err)
{
    PSD_AUTO(psd_spec_destroy) psd_spec_t *spec = psd_spec_new();
    char name[64];
    psd_status_t rc = PSD_OK;

    if (spec == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a spec");
    }
    (void)snprintf(name, sizeof name, "bench-%d-%.0f", (int)getpid(),
                   ps_cli_now_s() * 1e6);
    rc = set_number(spec, "rows", n_rows, err);
    if (rc == PSD_OK) {
        rc = set_number(spec, "cols", n_cols, err);
    }
    return rc != PSD_OK ? rc
                        : psd_table_create(client, name, spec, ret_table, err);
}

void
ps_bench_drop(psd_client_t *client, psd_table_t **table_p)
{
    if (*table_p != NULL) {
        psd_status_t rc =
            psd_table_drop(client, psd_table_name(*table_p), NULL);

        (void)rc; /* Nothing is left to be done about it. */
        psd_table_close(table_p);
    }
}
