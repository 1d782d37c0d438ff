/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cli/bench: pscli bench
 *
 * It is       Clients that keep requests in flight, cases and limits in turns,
 *             suites and their pictures.
 * It uses     machine, run, output, the public client, lib/transport/threads,
 *             lib/base.
 * It ignores  Other commands.
 * Start at    cmd_bench.c, bench_run.h, bench_load.h.
 */
#ifndef PS_CLI_BENCH_H
#define PS_CLI_BENCH_H

#include "cli/run/cli.h"

psd_status_t ps_cmd_bench(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_bench_latency(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_bench_suite(ps_cli_t *cli, psd_error_t *err);
#endif
