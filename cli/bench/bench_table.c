/* SPDX-License-Identifier: Apache-2.0 */
/* Tables to measure with. */
#include "cli/bench/bench_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/machine/bench_keys.h"
#include "cli/machine/bench_limit.h"
#include "cli/machine/bench_stats.h"
#include "cli/output/interrupt.h"

#define FILL_KEYS ((size_t)100000) /* of one push that makes rows */
#define FILL_FLOATS ((size_t)1 << 20)

static psd_status_t set_number(psd_spec_t *spec, const char *key, uint64_t value, psd_error_t *err)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return psd_spec_set(spec, key, text, err);
}

static psd_status_t create(psd_client_t *client, const ps_bench_shape_t *shape, const char *name,
                           psd_table_t **ret_table, psd_error_t *err)
{
    PSD_AUTO(psd_spec_destroy) psd_spec_t *spec = psd_spec_new();
    psd_status_t rc = PSD_OK;

    if (spec == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a spec");
    }
    rc = set_number(spec, "cols", shape->n_cols, err);
    if (rc == PSD_OK) {
        rc = shape->hash ? psd_spec_set(spec, "keys", "hash", err)
                         : set_number(spec, "rows", shape->n_rows, err);
    }
    if (rc == PSD_OK && shape->n_partitions > 0) {
        rc = set_number(spec, "partitions", shape->n_partitions, err);
    }
    return rc != PSD_OK ? rc : psd_table_create(client, name, spec, ret_table, err);
}

/* What makes rows: keys and zeros of one push. */
typedef struct filler {
    uint64_t *keys;  /* owned */
    uint64_t *spare; /* owned */
    float *zeros;    /* owned */
    size_t step;     /* rows of one push */
    double *times;   /* owned; seconds of each push */
    size_t n_pushes;
    double seconds; /* of all */
} filler_t;

static void filler_done(filler_t *self)
{
    ps_free(self->keys);
    ps_free(self->spare);
    ps_free(self->zeros);
    ps_free(self->times);
}

static psd_status_t filler_init(filler_t *self, const ps_bench_shape_t *shape, psd_error_t *err)
{
    size_t n_cols = (size_t)shape->n_cols;

    if (self->step == 0) {
        self->step = FILL_FLOATS / n_cols + 1;
        self->step = self->step > FILL_KEYS ? FILL_KEYS : self->step;
    }
    self->keys = ps_alloc(self->step, sizeof *self->keys);
    self->spare = ps_alloc(self->step, sizeof *self->spare);
    self->zeros = ps_alloc(self->step * n_cols, sizeof *self->zeros);
    self->times = ps_alloc((size_t)(shape->n_rows / self->step) + 1, sizeof *self->times);
    if (self->keys == NULL || self->spare == NULL || self->zeros == NULL || self->times == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu rows", self->step);
    }
    return PSD_OK;
}

/* Pushes zeros to all rows, by sorted keys. */
static psd_status_t fill(filler_t *self, psd_table_t *table, const ps_bench_shape_t *shape,
                         psd_error_t *err)
{
    psd_status_t rc = filler_init(self, shape, err);

    for (uint64_t at = 0; rc == PSD_OK && at < shape->n_rows;) {
        size_t n = self->step;
        uint64_t start = 0;
        double spent = 0;

        n = shape->n_rows - at < n ? (size_t)(shape->n_rows - at) : n;
        for (size_t i = 0; i < n; i++) {
            self->keys[i] = ps_bench_key(at + i);
        }
        ps_bench_sort_keys(self->keys, self->spare, n);
        start = ps_bench_now_ns();
        rc = ps_interrupt_came()
                 ? psd_error_set(err, PSD_INTERRUPTED, "interrupted")
                 : psd_push(table, self->keys, n, self->zeros, n * (size_t)shape->n_cols, err);
        spent = (double)(ps_bench_now_ns() - start) / 1e9;
        self->times[self->n_pushes++] = spent;
        self->seconds += spent;
        at += n;
    }
    return rc;
}

static psd_status_t make(filler_t *filler, const ps_cli_t *cli, psd_client_t *client,
                         const ps_bench_shape_t *shape, char ret_name[PS_BENCH_NAME_SIZE],
                         psd_error_t *err)
{
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    (void)snprintf(ret_name, PS_BENCH_NAME_SIZE, "bench-%d-%" PRIu64, (int)getpid(),
                   ps_bench_now_ns() / 1000);
    rc = create(client, shape, ret_name, &table, err);
    if (rc == PSD_OK && shape->hash) {
        rc = fill(filler, table, shape, err);
    }
    if (rc == PSD_OK) {
        rc = psd_flush(client, cli->timeout_ms, err);
    }
    if (rc != PSD_OK && table != NULL) {
        ps_bench_table_drop(cli, client, ret_name);
    }
    psd_table_close(&table);
    return rc;
}

psd_status_t ps_bench_table_make(const ps_cli_t *cli, psd_client_t *client,
                                 const ps_bench_shape_t *shape, char ret_name[PS_BENCH_NAME_SIZE],
                                 psd_error_t *err)
{
    PSD_AUTO(filler_done) filler_t filler = {.step = 0};

    return make(&filler, cli, client, shape, ret_name, err);
}

psd_status_t ps_bench_table_grow(const ps_cli_t *cli, psd_client_t *client,
                                 const ps_bench_shape_t *shape, char ret_name[PS_BENCH_NAME_SIZE],
                                 ps_bench_sample_t *ret_sample, psd_error_t *err)
{
    PSD_AUTO(filler_done) filler_t filler = {.step = shape->n_keys};
    psd_status_t rc = make(&filler, cli, client, shape, ret_name, err);
    size_t n = filler.n_pushes;

    if (rc != PSD_OK || n == 0) {
        return rc;
    }
    ps_bench_sort(filler.times, n);
    *ret_sample = (ps_bench_sample_t){.requests_s = (double)n / filler.seconds,
                                      .seconds = filler.seconds,
                                      .p50_s = ps_bench_quantile(filler.times, n, 0.5),
                                      .p99_s = ps_bench_quantile(filler.times, n, 0.99),
                                      .p999_s = ps_bench_quantile(filler.times, n, 0.999),
                                      .max_s = filler.times[n - 1]};
    return PSD_OK;
}

void ps_bench_table_drop(const ps_cli_t *cli, psd_client_t *client, const char *name)
{
    PSD_AUTO(psd_close) psd_client_t *another = NULL;
    psd_status_t rc = psd_table_drop(client, name, NULL);

    /* A client that a shard has refused sends no more requests. */
    if (rc == PSD_CLOSED) {
        rc = ps_cli_connect_by(cli, NULL, cli->timeout_ms, &another, NULL);
    }
    if (another != NULL) {
        rc = psd_table_drop(another, name, NULL);
    }
    (void)rc; /* Nothing more can be done about it. */
}
