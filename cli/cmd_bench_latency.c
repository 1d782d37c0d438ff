/* SPDX-License-Identifier: Apache-2.0 */
/* pscli bench latency: one small request at a time. */
#include "cli/cli.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/bench.h"
#include "cli/interrupt.h"

#define TABLE_ROWS 1024

static const ps_column_t FIGURES[] = {
    {"WHAT", "what", PS_UNIT_NONE, false},
    {"TRANSPORT", "transport", PS_UNIT_NONE, false},
    {"P50", "p50_s", PS_UNIT_SECONDS, false},
    {"P99", "p99_s", PS_UNIT_SECONDS, false},
    {"MAX", "max_s", PS_UNIT_SECONDS, false},
    {"REQUESTS", "requests", PS_UNIT_NONE, true},
    {"REPEATS", "repeats", PS_UNIT_NONE, true},
    {NULL, NULL, PS_UNIT_NONE, false}};

typedef struct latency {
    ps_cli_t *cli;
    psd_table_t *table; /* owned */
    double *times;      /* owned; of the requests of one repeat */
    size_t n;           /* requests */
    uint32_t repeats;
} latency_t;

static psd_status_t
time_one(latency_t *self,
         bool is_push,
         uint64_t row,
         double *ret_s,
         psd_error_t *err)
{
    float value = 1.0F;
    double start = ps_cli_now_s();
    psd_status_t rc = is_push ? psd_push(self->table, &row, 1, &value, 1, err)
                              : psd_pull(self->table, &row, 1, &value, 1, err);

    *ret_s = ps_cli_now_s() - start;
    if (rc == PSD_OK && ps_interrupt_came()) {
        return psd_error_set(err, PSD_INTERRUPTED, "interrupted");
    }
    return rc;
}

/* Repeats of n requests; the first, which warms up, is not counted. */
static psd_status_t
time_all(latency_t *self,
         bool is_push,
         const char *transport,
         json_t *figures,
         psd_error_t *err)
{
    double p50[PS_BENCH_REPEATS_MAX];
    double p99[PS_BENCH_REPEATS_MAX];
    double max = 0;

    for (uint32_t repeat = 0; repeat <= self->repeats; repeat++) {
        for (size_t i = 0; i < self->n; i++) {
            psd_status_t rc =
                time_one(self, is_push, i % TABLE_ROWS, &self->times[i], err);

            if (rc != PSD_OK) {
                return rc;
            }
        }
        if (repeat > 0) {
            p50[repeat - 1] = ps_bench_median(self->times, self->n);
            p99[repeat - 1] = ps_bench_quantile(self->times, self->n, 0.99);
            max =
                self->times[self->n - 1] > max ? self->times[self->n - 1] : max;
        }
    }
    json_t *figure = json_pack(
        "{s:s,s:s,s:f,s:f,s:f,s:I,s:I}", "what", is_push ? "push" : "pull",
        "transport", transport, "p50_s", ps_bench_median(p50, self->repeats),
        "p99_s", ps_bench_median(p99, self->repeats), "max_s", max, "requests",
        (json_int_t)self->n, "repeats", (json_int_t)self->repeats);

    return json_array_append_new(figures, figure) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for a figure");
}

static psd_status_t
measure_transport(latency_t *self,
                  const char *transport,
                  json_t *figures,
                  psd_error_t *err)
{
    const char *wanted = ps_args_text(&self->cli->args, "transport");
    PSD_AUTO(psd_close) psd_client_t *client = NULL;
    psd_status_t rc = PSD_OK;

    if (strcmp(wanted, "all") != 0 && strcmp(wanted, transport) != 0) {
        return PSD_OK;
    }
    rc = ps_cli_connect_by(self->cli, transport, self->cli->timeout_ms, &client,
                           err);
    if (rc == PSD_OK) {
        rc = ps_bench_table(client, TABLE_ROWS, 1, &self->table, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_say(&self->cli->out, "latency over %s ...", transport);
    rc = time_all(self, true, transport, figures, err);
    if (rc == PSD_OK) {
        rc = time_all(self, false, transport, figures, err);
    }
    ps_bench_drop(client, &self->table);
    return rc;
}

psd_status_t
ps_cmd_bench_latency(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:[]}", "figures");
    json_t *figures = json_object_get(doc, "figures");
    latency_t self = {.cli = cli,
                      .n = (size_t)ps_args_u64(&cli->args, "requests"),
                      .repeats = (uint32_t)ps_args_u64(&cli->args, "repeats")};
    psd_status_t rc = PSD_OK;

    self.times = ps_alloc(self.n, sizeof *self.times);
    if (self.times == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the times");
    }
    ps_interrupt_hold();
    rc = measure_transport(&self, "tcp", figures, err);
    if (rc == PSD_OK) {
        rc = measure_transport(&self, "ipc", figures, err);
    }
    ps_free(self.times);
    if (rc == PSD_OK) {
        ps_out_list(&cli->out, doc, "figures", FIGURES);
    }
    return rc;
}
