/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_checkpoint - what the commands about checkpoints share
 *
 * Owner    The caller owns what is returned.
 */
#ifndef PS_CLI_CHECKPOINT_H
#define PS_CLI_CHECKPOINT_H

#include "cli/cli.h"

#define PS_CHECKPOINT_NAME_SIZE 128

/* Begins the work of that request, shows how far it is, and waits for its end.
 * Errors: as the request; PSD_DEADLINE nothing went on for a minute. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_work(ps_cli_t *cli, const json_t *request,
                                               json_t **ret_reply, psd_error_t *err);
/* The same, after whatever else is worked on at the moment: a checkpoint of a
 * job that has died waits for its clocks until its workers are lost. Errors:
 * PSD_BUSY something still is after 90 s. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_work_soon(ps_cli_t *cli, const json_t *request,
                                                    json_t **ret_reply, psd_error_t *err);
/* Makes checkpoints NAME-1, NAME-2, ... of that request, one every --every, and
 * keeps the newest --keep of them, until it is interrupted or the job has
 * ended. One that fails is said, and the next one has the next number. Errors:
 * as the request, of the first; PSD_CLOSED. */
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
/* Makes all tables of the checkpoint, then its jobs, and shows them; also those
 * that came before an error. shape: keys of checkpoint_restore for the tables;
 * NULL: none. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_restore(ps_cli_t *cli, const char *name,
                                                  const json_t *shape, psd_error_t *err);
#endif
