/* SPDX-License-Identifier: Apache-2.0 */
/* pscli bench suite: all measurements, with a psd of its own. */
#include "cli/bench/bench.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/bench/bench_figure.h"
#include "cli/bench/bench_picture.h"
#include "cli/bench/bench_plan.h"
#include "cli/bench/bench_session.h"
#include "cli/bench/bench_table.h"
#include "cli/run/private_psd.h"

#define TRANSPORTS_MAX 4
#define KINDS 3
#define CASES_MAX (TRANSPORTS_MAX * KINDS * PS_BENCH_WINDOWS_MAX)

typedef struct suite {
    ps_cli_t cli; /* a copy, with the private psd's endpoint; owns nothing */
    ps_bench_session_t session;
    ps_private_psd_t psd; /* owned */
    uint32_t n_shards;    /* of it; 0: none runs */
    uint64_t divide;
} suite_t;

/* What one line of the plan needs while it is measured. */
typedef struct attempt {
    const ps_cli_t *cli;
    const ps_bench_line_t *line;
    ps_bench_team_t teams[TRANSPORTS_MAX]; /* owned */
    size_t n_teams;
    ps_bench_case_t cases[CASES_MAX]; /* owned */
    size_t n_cases;
    char table[PS_BENCH_NAME_SIZE]; /* "": none */
} attempt_t;

static void suite_done(suite_t *self)
{
    ps_bench_session_done(&self->session);
    ps_private_psd_done(&self->psd);
}

static void attempt_done(attempt_t *self)
{
    for (size_t i = 0; i < self->n_cases; i++) {
        ps_bench_case_done(&self->cases[i]);
    }
    if (self->table[0] != '\0') {
        ps_bench_table_drop(self->cli, self->teams[0].members[0].client, self->table);
    }
    for (size_t i = 0; i < self->n_teams; i++) {
        ps_bench_team_close(&self->teams[i]);
    }
}

static psd_status_t start_psd(suite_t *self, uint32_t n_shards, psd_error_t *err)
{
    const ps_private_args_t args = {.program = ps_args_text(&self->cli.args, "psd"),
                                    .n_shards = n_shards,
                                    .timeout_ms = self->cli.timeout_ms};
    psd_status_t rc = PSD_OK;

    if (self->n_shards == n_shards) {
        return PSD_OK;
    }
    ps_private_psd_done(&self->psd);
    self->psd = (ps_private_psd_t){0};
    self->n_shards = 0;
    rc = ps_private_psd_start(&self->psd, &args, err);
    if (rc == PSD_OK) {
        self->cli.endpoint = self->psd.endpoint;
        self->n_shards = n_shards;
    }
    return rc;
}

/* A team for each requested transport that exists. */
static psd_status_t open_teams(suite_t *self, attempt_t *attempt, psd_error_t *err)
{
    bool more = true;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && more; i++) {
        ps_bench_team_t *team = &attempt->teams[attempt->n_teams];

        rc = ps_bench_session_team(&self->session, i, attempt->line->n_workers, team, &more, err);
        if (rc == PSD_OK && team->members != NULL) {
            attempt->n_teams++;
        }
    }
    return rc;
}

static psd_status_t make_table(suite_t *self, attempt_t *attempt, psd_error_t *err)
{
    ps_bench_shape_t shape = ps_bench_plan_shape(attempt->line, 0, PS_BENCH_PUSH, self->divide);
    char name[PS_BENCH_NAME_SIZE];
    psd_status_t rc =
        ps_bench_table_make(&self->cli, attempt->teams[0].members[0].client, &shape, name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(attempt->table, name, sizeof name);
    for (size_t i = 0; rc == PSD_OK && i < attempt->n_teams; i++) {
        rc = ps_bench_team_use(&attempt->teams[i], attempt->table, err);
    }
    return rc;
}

/* Large rows can also be written where the shard reads them. */
static bool is_asked(const ps_bench_line_t *line, size_t w, ps_bench_kind_t kind)
{
    return kind != PS_BENCH_IN_PLACE ||
           ((line->flags & PS_BENCH_LINE_WIDE) != 0 && line->in_flight[w] == 1);
}

static void add_cases(suite_t *self, attempt_t *attempt)
{
    static const ps_bench_kind_t KIND[KINDS] = {PS_BENCH_PUSH, PS_BENCH_IN_PLACE, PS_BENCH_PULL};
    const ps_bench_line_t *line = attempt->line;

    for (size_t w = 0; w < PS_BENCH_WINDOWS_MAX && line->in_flight[w] > 0; w++) {
        for (size_t k = 0; k < KINDS; k++) {
            for (size_t i = 0; is_asked(line, w, KIND[k]) && i < attempt->n_teams; i++) {
                ps_bench_case_t *one = &attempt->cases[attempt->n_cases++];

                *one =
                    (ps_bench_case_t){.section = line->section,
                                      .shape = ps_bench_plan_shape(line, w, KIND[k], self->divide),
                                      .team = &attempt->teams[i],
                                      .n_shards = line->n_shards};
                ps_bench_case_limit(one, one->team->transport);
            }
        }
    }
}

/* Memory of a row divided by its values, as psd reports it; 0: not reported. */
static double row_overhead(suite_t *self, const attempt_t *attempt)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc =
        ps_cli_request(&self->cli, "table_inspect", "name", attempt->table, &reply, NULL);
    double rows = (double)ps_json_u64(reply, "table.rows_present");
    double bytes = (double)ps_json_u64(reply, "table.bytes.values") +
                   (double)ps_json_u64(reply, "table.bytes.index") +
                   (double)ps_json_u64(reply, "table.bytes.state");
    double values = (double)attempt->line->n_cols * sizeof(float);

    psd_close(&self->cli.client);
    return rc == PSD_OK && rows > 0 ? bytes / rows - values : 0;
}

/* Measures how a table gets its rows, over the last transport. */
static psd_status_t measure_growth(suite_t *self, attempt_t *attempt, psd_error_t *err)
{
    ps_bench_case_t *one = &attempt->cases[0];
    ps_bench_sample_t sample = {0};
    char name[PS_BENCH_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    *one = (ps_bench_case_t){.section = attempt->line->section,
                             .shape =
                                 ps_bench_plan_shape(attempt->line, 0, PS_BENCH_PUSH, self->divide),
                             .team = &attempt->teams[attempt->n_teams - 1],
                             .n_shards = attempt->line->n_shards};
    attempt->n_cases = 1;
    one->n = (size_t)(one->shape.n_rows / one->shape.n_keys);
    rc = ps_bench_table_grow(&self->cli, one->team->members[0].client, &one->shape, name, &sample,
                             err);
    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(attempt->table, name, sizeof name);
    one->row_bytes = row_overhead(self, attempt);
    rc = ps_bench_case_add(one, &sample, 0, err);
    return rc != PSD_OK ? rc : ps_bench_figure_add(self->session.run.figures, one, err);
}

static psd_status_t measure_ways(suite_t *self, attempt_t *attempt, psd_error_t *err)
{
    psd_status_t rc = make_table(self, attempt, err);

    if (rc == PSD_OK) {
        add_cases(self, attempt);
        rc = ps_bench_run_cases(&self->session.run, attempt->cases, attempt->n_cases, err);
    }
    return rc;
}

static psd_status_t measure_line(suite_t *self, const ps_bench_line_t *line, psd_error_t *err)
{
    PSD_AUTO(attempt_done)
    attempt_t attempt = {.cli = &self->cli, .line = line};
    psd_status_t rc = start_psd(self, line->n_shards, err);

    ps_say(&self->cli.out,
           "%s: %zu keys x %" PRIu64 " floats of %" PRIu64 " rows, %u workers, %u shards ...",
           line->section, line->n_keys, line->n_cols, line->n_rows, line->n_workers,
           line->n_shards);
    if (rc == PSD_OK) {
        rc = open_teams(self, &attempt, err);
    }
    if (rc == PSD_OK && attempt.n_teams > 0) {
        rc = (line->flags & PS_BENCH_LINE_GROW) != 0 ? measure_growth(self, &attempt, err)
                                                     : measure_ways(self, &attempt, err);
    }
    return rc;
}

/* Notes in doc what ran. */
static psd_status_t describe(suite_t *self, psd_error_t *err)
{
    const ps_args_t *args = &self->cli.args;
    json_t *about = json_pack(
        "{s:s,s:I,s:f,s:I,s:I,s:s}", "kind", ps_args_on(args, "full") ? "full" : "quick", "repeats",
        (json_int_t)self->session.run.repeats, "duration_s",
        (double)self->session.run.duration_ms / 1000, "divide", (json_int_t)self->divide,
        "processors", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "version", psd_version());

    return json_object_set_new(self->session.doc, "suite", about) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for the suite");
}

static psd_status_t measure_all(suite_t *self, psd_error_t *err)
{
    const ps_args_t *args = &self->cli.args;
    const char *only = ps_args_text(args, "only");
    bool full = ps_args_on(args, "full");
    const ps_bench_line_t *line = NULL;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && (line = ps_bench_plan_at(i)) != NULL; i++) {
        /* A named section runs in any suite. */
        if (ps_bench_plan_names(only, line->section) &&
            (full || only != NULL || (line->flags & PS_BENCH_LINE_FULL) == 0)) {
            rc = measure_line(self, line, err);
        }
    }
    return rc;
}

static psd_status_t run_suite(suite_t *self, ps_cli_t *cli, psd_error_t *err)
{
    const char *picture = ps_args_text(&cli->args, "svg");
    psd_status_t rc =
        ps_bench_session_init(&self->session, &self->cli, ps_args_ms(&cli->args, "duration"), err);

    if (rc == PSD_OK) {
        rc = measure_all(self, err);
    }
    if (rc == PSD_OK) {
        rc = describe(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_bench_run_finish(&self->session.run, self->session.doc, err);
    }
    if (rc == PSD_OK && picture != NULL) {
        rc = ps_bench_picture_write(picture, self->session.doc, err);
    }
    if (rc == PSD_OK) {
        ps_bench_figure_show(cli, self->session.doc, ps_bench_columns_suite,
                             self->session.run.limits);
    }
    return rc;
}

psd_status_t ps_cmd_bench_suite(ps_cli_t *cli, psd_error_t *err)
{
    suite_t self = {.cli = *cli, .divide = ps_args_u64(&cli->args, "divide")};
    psd_status_t rc = ps_bench_plan_check(ps_args_text(&cli->args, "only"), err);

    if (rc == PSD_OK && ps_args_on(&cli->args, "full") && ps_args_on(&cli->args, "quick")) {
        rc = psd_error_set(err, PSD_USAGE,
                           "--quick and --full exclude each "
                           "other");
    }
    if (rc == PSD_OK) {
        rc = run_suite(&self, cli, err);
        suite_done(&self);
    }
    return rc;
}
