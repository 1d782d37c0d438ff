/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_checkpoint - shared by the commands about checkpoints
 *
 * Owner    The caller owns what is returned.
 */
#ifndef PS_CLI_CHECKPOINT_H
#define PS_CLI_CHECKPOINT_H

#include "cli/run/cli.h"

#define PS_CHECKPOINT_NAME_SIZE 128

/* Starts the work of that request, shows its progress, and waits for its
 * end. Errors: as the request; PSD_DEADLINE no progress for a minute. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_work(ps_cli_t *cli, const json_t *request,
                                               json_t **ret_reply, psd_error_t *err);
/* The same, after any other work under way has ended: a checkpoint of a dead
 * job waits for its clocks until its workers are lost. Errors: PSD_BUSY
 * other work still runs after 90 s. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_work_soon(ps_cli_t *cli, const json_t *request,
                                                    json_t **ret_reply, psd_error_t *err);
/* Makes checkpoints NAME-1, NAME-2, ... of that request, one every --every,
 * and keeps the newest --keep of them, until it is interrupted or the job
 * has ended. It reports one that fails and goes on with the next number.
 * Errors: as the request, for the first; PSD_CLOSED. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_series(ps_cli_t *cli, const char *name, json_t *request,
                                                 psd_error_t *err);
/* The newest whole one of a series; "" in ret_name: there is none. Errors: as
 * checkpoint_list. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_newest(ps_cli_t *cli, const char *name,
                                                 char ret_name[PS_CHECKPOINT_NAME_SIZE],
                                                 psd_error_t *err);
/* Errors: as checkpoint_inspect. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_manifest(ps_cli_t *cli, const char *name,
                                                   json_t **ret_manifest, psd_error_t *err);
/* Name of the manifest's i-th table, borrowed. */
const char *ps_checkpoint_table(const json_t *tables, size_t i);
/* Restores all tables of the checkpoint, then its jobs, and shows them; also
 * those restored before an error. shape: keys of checkpoint_restore for the
 * tables; NULL: none. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_restore(ps_cli_t *cli, const char *name,
                                                  const json_t *shape, psd_error_t *err);
#endif
