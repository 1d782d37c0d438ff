/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cli/jobs: commands about training
 *
 * It is       Jobs, workers, clocks and why one waits; checkpoints; processes
 *             as the workers of a job, here or by a launcher.
 * It uses     launch, run, output, the public client, lib/transport for time and
 *             reasons, lib/base.
 * It ignores  Values of tables, and what a worker computes.
 * Start at    cmd_job.c; workers.h for processes.
 */
#ifndef PS_CLI_JOBS_H
#define PS_CLI_JOBS_H

#include "cli/run/cli.h"

psd_status_t ps_cmd_checkpoint_create(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_checkpoint_list(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_checkpoint_inspect(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_checkpoint_verify(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_checkpoint_restore(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_checkpoint_resume(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_checkpoint_drop(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_env(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_job_list(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_job_inspect(ps_cli_t *cli, psd_error_t *err);
/* cmd_job_overlay.c: --overlay, --matrix and --dot of "job inspect". */
bool ps_job_wants_overlay(const ps_cli_t *cli);
/* Errors: PSD_USAGE options that do not go together; PSD_INVALID the job has no overlay;
 * PSD_UNSUPPORTED a matrix of too many workers; as ps_cli_request. */
PSD_MUST_CHECK psd_status_t ps_job_show_overlay(ps_cli_t *cli, const char *name, psd_error_t *err);
psd_status_t ps_cmd_job_stop(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_job_check_overlay(ps_cli_t *cli, psd_error_t *err);
/* Is it a right settings file of an overlay? Errors: PSD_IO, PSD_INVALID naming the line. */
PSD_MUST_CHECK psd_status_t ps_overlay_file_check(const char *path, psd_error_t *err);
psd_status_t ps_cmd_worker_list(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_worker_exec(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_clock_list(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_clock_inspect(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_why(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_run(ps_cli_t *cli, psd_error_t *err);
#endif
