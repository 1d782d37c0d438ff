/* SPDX-License-Identifier: Apache-2.0 */
/* ps_run - the life of the daemon: signals, systemd, the loop */
#ifndef PS_DAEMON_RUN_H
#define PS_DAEMON_RUN_H

#include "daemon/options.h"

/*
 * Serves until SIGTERM or SIGINT. This function owns the signals: SIGHUP reads
 * the settings again as `options` says; a second SIGTERM ends the process at
 * once.
 *
 * config  in, out  borrowed; reloadable values change
 *
 * Errors: those of ps_server_open; PSD_IO it cannot take the signals;
 * PSD_FAILED the registry in memory and on disk differ.
 */
PSD_MUST_CHECK psd_status_t ps_run(const ps_opts_t *options, ps_config_t *config, psd_error_t *err);
/* stderr goes to the journal: lines begin with "<N>". */
bool ps_run_is_journal(void);
#endif
