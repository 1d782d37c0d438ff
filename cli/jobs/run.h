/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of pscli run share. */
#ifndef PS_CLI_RUN_H
#define PS_CLI_RUN_H

#include "cli/launch/address.h"
#include "cli/launch/launch.h"
#include "cli/run/cli.h"
#include "cli/run/private_psd.h"

/* ---- run_launch.c ---- */

/*
 * Reads the options of the launcher, places workers on hosts and checks that the engine is
 * there (not with --dry-run, --batch, or as text).
 *
 * Errors: PSD_USAGE options that do not go together, or hosts; as ps_launch_check and
 * ps_launch_read_slurm; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_run_launch_open(const ps_cli_t *cli, ps_launch_t *ret_launch,
                                               psd_error_t *err);
/* Sets what every worker gets. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_run_launch_set(const ps_cli_t *cli, ps_launch_t *launch,
                                              const char *endpoint, const char *job,
                                              psd_error_t *err);
/* Shows the commands, ready to paste; or the manifest. Errors: PSD_NOMEM, PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_run_launch_show(const ps_cli_t *cli, const ps_launch_t *launch,
                                               psd_error_t *err);
/* --batch: writes a script for sbatch. Errors: PSD_USAGE a working directory that no line of the
 * script can name; PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_run_batch_write(const ps_cli_t *cli, const ps_launch_t *launch,
                                               const char *job, psd_error_t *err);

/* ---- run_servers.c ---- */

/* Reads --servers: M, embed or embed:M. Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t ps_run_servers_read(const ps_cli_t *cli, ps_launch_t *launch,
                                                psd_error_t *err);
/* Makes a private psd the registry of the workers' nodes alone: it takes no tables. Errors:
 * those of the registry. */
PSD_MUST_CHECK psd_status_t ps_run_servers_found(ps_cli_t *cli, psd_error_t *err);

/* ---- run_psd.c ---- */

/*
 * Connects to the psd of the endpoint. With --servers, when none listens there, starts a
 * private one, at an address that the workers' hosts reach; for --servers embed always.
 *
 * Errors: as psd_connect; PSD_USAGE, when a private one would be open to the network without
 * security.allow_plaintext, or the endpoint is one that only this host reaches; PSD_FAILED a
 * host's name does not resolve, where its address is needed: for a private psd, or when the
 * endpoint is one that only this host reaches.
 */
PSD_MUST_CHECK psd_status_t ps_run_find_psd(ps_cli_t *cli, const ps_launch_t *launch,
                                            ps_private_nodes_t *own, psd_error_t *err);
#endif
