/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_bench_session - what every bench command needs, from first to last
 *
 * What     The machine's process, pools, the growing document, the transports
 *          that were asked for.
 * Owner    The caller (ps_bench_session_done).
 */
#ifndef PS_CLI_BENCH_SESSION_H
#define PS_CLI_BENCH_SESSION_H

#include "cli/bench/bench_run.h"

typedef struct ps_bench_session {
    ps_machine_t machine;
    ps_bench_pools_t pools;
    ps_bench_run_t run;
    json_t *doc; /* owned; {"figures":[…]} */
} ps_bench_session_t;

/* Reads --repeats and --duration (when the command has it), starts the
 * machine's process and holds interrupts. Before any connection. Errors:
 * PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_bench_session_init(ps_bench_session_t *self, const ps_cli_t *cli,
                                                  uint64_t duration_ms, psd_error_t *err);
void ps_bench_session_done(ps_bench_session_t *self);

/*
 * Connects a team over the i-th transport, when --transport asks for it.
 *
 * ret_team  out  NULL members when that transport was not asked for, or when
 *                all were and this psd or library has none of that name
 * ret_more  out  false after the last transport; the team is empty then
 *
 * Errors: as ps_bench_team_open.
 */
PSD_MUST_CHECK psd_status_t ps_bench_session_team(ps_bench_session_t *self, size_t i,
                                                  uint32_t n_workers, ps_bench_team_t *ret_team,
                                                  bool *ret_more, psd_error_t *err);
#endif
