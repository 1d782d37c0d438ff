/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cli/watch: commands for those who look after a cluster
 *
 * It is       Checks with thresholds for monitoring; the slowest requests; waiting until
 *             something is so;
 *             a bundle of files for support; a screen that shows the cluster at
 *             work; the link to psd's page.
 * It uses     run, output, lib/base; jansson; ncurses for the screen; psd's HTTP
 *             port, which answers while other threads hang.
 * It ignores  How anything is changed.
 * Start at    check.h, top.h.
 */
#ifndef PS_CLI_WATCH_H
#define PS_CLI_WATCH_H

#include "cli/run/cli.h"

psd_status_t ps_cmd_check(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_doctor(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_slow(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_wait(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_page(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_support_bundle(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_top(ps_cli_t *cli, psd_error_t *err);
#endif
