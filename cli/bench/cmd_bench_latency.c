/* SPDX-License-Identifier: Apache-2.0 */
/* pscli bench latency: one small request at a time. */
#include "cli/bench/bench.h"

#include "base/alloc.h"
#include "cli/bench/bench_figure.h"
#include "cli/bench/bench_session.h"
#include "cli/bench/bench_table.h"

#define TABLE_ROWS 1024
#define WARM_MS 200

/* Push and pull over one transport. */
static psd_status_t measure(ps_bench_session_t *session, ps_bench_team_t *team, psd_error_t *err)
{
    const ps_cli_t *cli = session->run.cli;
    psd_client_t *client = team->members[0].client;
    ps_bench_case_t cases[2];
    char name[PS_BENCH_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < 2; i++) {
        cases[i] = (ps_bench_case_t){.section = "latency",
                                     .shape = {.kind = i == 0 ? PS_BENCH_PUSH : PS_BENCH_PULL,
                                               .n_rows = TABLE_ROWS,
                                               .n_cols = ps_args_u64(&cli->args, "floats"),
                                               .n_keys = 1,
                                               .in_flight = 1},
                                     .team = team,
                                     .n = (size_t)ps_args_u64(&cli->args, "requests")};
        ps_bench_case_limit(&cases[i], team->transport);
    }
    rc = ps_bench_table_make(cli, client, &cases[0].shape, name, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_say(&cli->out, "latency over %s ...", team->transport);
    rc = ps_bench_team_use(team, name, err);
    if (rc == PSD_OK) {
        rc = ps_bench_run_cases(&session->run, cases, 2, err);
    }
    for (size_t i = 0; i < 2; i++) {
        ps_bench_case_done(&cases[i]);
    }
    ps_bench_table_drop(cli, client, name);
    return rc;
}

psd_status_t ps_cmd_bench_latency(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_bench_session_done) ps_bench_session_t session = {.doc = NULL};
    psd_status_t rc = ps_bench_session_init(&session, cli, WARM_MS, err);
    bool more = true;

    for (size_t i = 0; rc == PSD_OK && more; i++) {
        PSD_AUTO(ps_bench_team_close) ps_bench_team_t team = {.n = 0};

        rc = ps_bench_session_team(&session, i, 1, &team, &more, err);
        if (rc == PSD_OK && team.members != NULL) {
            rc = measure(&session, &team, err);
        }
    }
    if (rc == PSD_OK) {
        rc = ps_bench_run_finish(&session.run, session.doc, err);
    }
    if (rc == PSD_OK) {
        ps_bench_figure_show(cli, session.doc, ps_bench_columns_time, session.run.limits);
    }
    return rc;
}
