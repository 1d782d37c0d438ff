/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of a bench command. */
#include "cli/bench/bench_session.h"

#include <string.h>

#include "cli/output/interrupt.h"

static const char *const TRANSPORTS[] = {"tcp", "ipc", "lane"};
#define N_TRANSPORTS (sizeof TRANSPORTS / sizeof TRANSPORTS[0])

psd_status_t ps_bench_session_init(ps_bench_session_t *self, const ps_cli_t *cli,
                                   uint64_t duration_ms, psd_error_t *err)
{
    self->doc = json_pack("{s:[]}", "figures");
    if (self->doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for figures");
    }
    self->run = (ps_bench_run_t){.cli = cli,
                                 .machine = &self->machine,
                                 .pools = &self->pools,
                                 .figures = json_object_get(self->doc, "figures"),
                                 .repeats = (uint32_t)ps_args_u64(&cli->args, "repeats"),
                                 .duration_ms = duration_ms};
    psd_status_t rc = ps_machine_start(&self->machine, err);

    ps_interrupt_hold();
    return rc;
}

void ps_bench_session_done(ps_bench_session_t *self)
{
    ps_bench_run_done(&self->run);
    ps_bench_pools_done(&self->pools);
    ps_machine_done(&self->machine);
    ps_json_unref(&self->doc);
}

psd_status_t ps_bench_session_team(ps_bench_session_t *self, size_t i, uint32_t n_workers,
                                   ps_bench_team_t *ret_team, bool *ret_more, psd_error_t *err)
{
    const ps_cli_t *cli = self->run.cli;
    const char *wanted = ps_args_text(&cli->args, "transport");
    bool all = strcmp(wanted, "all") == 0;
    psd_status_t rc = PSD_OK;

    *ret_team = (ps_bench_team_t){0};
    *ret_more = i < N_TRANSPORTS;
    if (!*ret_more || (!all && strcmp(wanted, TRANSPORTS[i]) != 0)) {
        return PSD_OK;
    }
    rc = ps_bench_team_open(cli, TRANSPORTS[i], n_workers, &self->pools, ret_team, err);
    if (all && (rc == PSD_INVALID || rc == PSD_UNSUPPORTED)) {
        ps_say(&cli->out, "without %s: %s", TRANSPORTS[i], psd_error_text(err));
        psd_error_clear(err);
        return PSD_OK;
    }
    return rc;
}
