/* SPDX-License-Identifier: Apache-2.0 */
/* pscli bench push, pull, pushpull: goodput by size, transport and keys. */
#include "cli/bench/bench.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/bench/bench_figure.h"
#include "cli/bench/bench_list.h"
#include "cli/bench/bench_session.h"
#include "cli/bench/bench_table.h"

#define TABLE_BYTES (UINT64_C(32) << 20) /* of rows that requests go round */
#define ROWS_MAX 64
#define SIZE_MAX_BYTES (UINT64_C(1) << 33)
#define FLOATS_MAX (1 << 20)
/* Rows of a range table for each key of a request. */
#define ROWS_PER_KEY 2

typedef struct bench {
    ps_bench_session_t session;
    ps_bench_shape_t shape;
    ps_bench_team_t team; /* of the transport */
    ps_bench_list_t sizes, floats;
    uint64_t n_keys;
    uint64_t n_random; /* rows of a hash table to draw keys from; 0: range */
} bench_t;

static void bench_done(bench_t *self)
{
    ps_bench_team_close(&self->team);
    ps_bench_session_done(&self->session);
}

/* One line of the result: table, measurement, table gone. */
static psd_status_t measure(bench_t *self, psd_error_t *err)
{
    const ps_cli_t *cli = self->session.run.cli;
    psd_client_t *client = self->team.members[0].client;
    ps_bench_case_t one = {.section = "bench", .shape = self->shape, .team = &self->team};
    char name[PS_BENCH_NAME_SIZE];
    psd_status_t rc = ps_bench_table_make(cli, client, &self->shape, name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_say(&cli->out, "%s over %s: %zu keys of %" PRIu64 " floats ...", cli->args.cmd->verb,
           self->team.transport, self->shape.n_keys, self->shape.n_cols);
    ps_bench_case_limit(&one, self->team.transport);
    rc = ps_bench_team_use(&self->team, name, err);
    if (rc == PSD_OK) {
        rc = ps_bench_run_cases(&self->session.run, &one, 1, err);
    }
    ps_bench_case_done(&one);
    ps_bench_table_drop(cli, client, name);
    return rc;
}

static psd_status_t measure_sizes(bench_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < self->sizes.n; i++) {
        uint64_t bytes = self->sizes.numbers[i];
        uint64_t rows = TABLE_BYTES / bytes;

        self->shape.n_cols = bytes < 4 ? 1 : bytes / 4;
        self->shape.n_rows = rows == 0 ? 1 : rows < ROWS_MAX ? rows : ROWS_MAX;
        self->shape.hash = false;
        self->shape.n_keys = 1;
        rc = measure(self, err);
    }
    return rc;
}

static psd_status_t measure_keys(bench_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->shape.hash = self->n_random > 0;
    self->shape.n_keys = (size_t)self->n_keys;
    self->shape.n_rows = self->n_random > 0 ? self->n_random : self->n_keys * ROWS_PER_KEY;
    for (size_t i = 0; rc == PSD_OK && self->n_keys > 0 && i < self->floats.n; i++) {
        self->shape.n_cols = self->floats.numbers[i];
        rc = measure(self, err);
    }
    return rc;
}

static psd_status_t measure_transports(bench_t *self, psd_error_t *err)
{
    const ps_args_t *args = &self->session.run.cli->args;
    uint32_t n_workers = (uint32_t)ps_args_u64(args, "workers");
    psd_status_t rc = PSD_OK;
    bool more = true;

    for (size_t i = 0; rc == PSD_OK && more; i++) {
        rc = ps_bench_session_team(&self->session, i, n_workers, &self->team, &more, err);
        if (rc == PSD_OK && self->team.members != NULL) {
            rc = measure_sizes(self, err);
        }
        if (rc == PSD_OK && self->team.members != NULL) {
            rc = measure_keys(self, err);
        }
        ps_bench_team_close(&self->team);
    }
    return rc;
}

static ps_bench_kind_t kind_of(const char *verb)
{
    return strcmp(verb, "push") == 0   ? PS_BENCH_PUSH
           : strcmp(verb, "pull") == 0 ? PS_BENCH_PULL
                                       : PS_BENCH_PUSHPULL;
}

static psd_status_t read_args(bench_t *self, const ps_args_t *args, psd_error_t *err)
{
    psd_status_t rc = ps_bench_list_read(ps_args_text(args, "floats"), "--floats", FLOATS_MAX,
                                         &self->floats, err);

    if (rc == PSD_OK) {
        rc = ps_bench_list_read(ps_args_text(args, "sizes"), "--sizes", SIZE_MAX_BYTES,
                                &self->sizes, err);
    }
    self->n_keys = ps_args_u64(args, "keys");
    self->n_random = ps_args_u64(args, "random");
    if (rc == PSD_OK && self->n_random > 0 && self->n_random < self->n_keys) {
        rc = psd_error_set(err, PSD_USAGE,
                           "--random %" PRIu64 " rows cannot give --keys "
                           "%" PRIu64 " different ones",
                           self->n_random, self->n_keys);
    }
    self->shape.kind = kind_of(args->cmd->verb);
    if (self->shape.kind == PS_BENCH_PUSH && ps_args_on(args, "in-place")) {
        self->shape.kind = PS_BENCH_IN_PLACE;
    }
    self->shape.n_partitions = (uint32_t)ps_args_u64(args, "partitions");
    self->shape.in_flight = (uint32_t)ps_args_u64(args, "in-flight");
    return rc;
}

psd_status_t ps_cmd_bench(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(bench_done) bench_t self = {.n_keys = 0};
    psd_status_t rc = read_args(&self, &cli->args, err);

    if (rc == PSD_OK) {
        rc = ps_bench_session_init(&self.session, cli, ps_args_ms(&cli->args, "duration"), err);
    }
    if (rc == PSD_OK) {
        rc = measure_transports(&self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_bench_run_finish(&self.session.run, self.session.doc, err);
    }
    if (rc == PSD_OK) {
        ps_bench_figure_show(cli, self.session.doc, ps_bench_columns_rate, self.session.run.limits);
    }
    return rc;
}
