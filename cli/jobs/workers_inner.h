/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ps_workers share. */
#ifndef PS_CLI_WORKERS_INNER_H
#define PS_CLI_WORKERS_INNER_H

#include "cli/jobs/workers.h"

/* ---- workers_lines.c ---- */

/* Blocks the signals that pscli passes on and opens a signalfd for them.
 * Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_workers_catch(ps_workers_t *self, psd_error_t *err);

/* ---- workers_ends.c ---- */

bool ps_workers_all_ended(const ps_workers_t *self);
/* Sends a signal to the groups of all running workers. */
void ps_workers_send(const ps_workers_t *self, int number);
/* Reports how workers ended that were not reported yet; after their last lines. */
void ps_workers_tell_ends(ps_workers_t *self);
/* When due: checks whether the job waits for a failed worker, then ends the
 * others, and kills those that do not end. */
void ps_workers_settle(ps_workers_t *self);
/* When all have ended: tells the registry which failed, if it does not know. */
void ps_workers_settle_last(ps_workers_t *self);
/* Milliseconds until the next of these is due; -1: never. */
int ps_workers_time_left(const ps_workers_t *self);
#endif
