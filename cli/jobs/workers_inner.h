/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ps_workers share. */
#ifndef PS_CLI_WORKERS_INNER_H
#define PS_CLI_WORKERS_INNER_H

#include "cli/jobs/workers.h"

/* ---- workers_lines.c ---- */

/* Shows the text of a line and empties it. */
void ps_workers_show_line(const ps_workers_t *self, uint32_t rank, size_t stream);
/* Adds bytes to a line, which is shown in pieces when it grows too long. */
void ps_workers_add(ps_workers_t *self, uint32_t rank, size_t stream, const char *bytes, size_t n);
/* Blocks the signals that pscli passes on and opens a signalfd for them.
 * Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_workers_catch(ps_workers_t *self, psd_error_t *err);

/* ---- workers_ends.c ---- */

bool ps_workers_all_ended(const ps_workers_t *self);
/* A worker has ended, with a signal (0: none) or an exit code. */
void ps_workers_note_end(ps_workers_t *self, uint32_t rank, int exit_code, int number);
/* Starts again those that failed and may be. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_workers_start_again(ps_workers_t *self, psd_error_t *err);
/* The launch has failed: ends all that have started. */
void ps_workers_give_up(ps_workers_t *self);
/* Sends a signal to the groups of all running workers. */
void ps_workers_send(ps_workers_t *self, int number);
/* Reports how workers ended that were not reported yet; after their last lines. */
void ps_workers_tell_ends(ps_workers_t *self);
/* When due: checks whether the job waits for a failed worker, then ends the
 * others, and kills those that do not end. */
void ps_workers_settle(ps_workers_t *self);
/* When all have ended: tells the registry which failed, if it does not know. */
void ps_workers_settle_last(ps_workers_t *self);
/* Milliseconds until the next of these is due; -1: never. */
int ps_workers_time_left(const ps_workers_t *self);

/* ---- workers.c ---- */

/* Forks a worker. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_workers_fork(ps_workers_t *self, uint32_t rank, psd_error_t *err);

/* ---- workers_engine.c, workers_engine_read.c ---- */

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_engines_open(ps_workers_t *self, psd_error_t *err);
/* Starts engines that are due. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_engines_turn(ps_workers_t *self, psd_error_t *err);
/* What they have written. */
void ps_engines_read(ps_workers_t *self);
/* Has one of them ended? */
void ps_engines_reap(ps_workers_t *self);
void ps_engines_signal(ps_workers_t *self, int number);
/* Lets that worker's helper, or a new engine, start it again. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_engines_start_again(ps_workers_t *self, uint32_t rank,
                                                   psd_error_t *err);
bool ps_engines_all_over(const ps_workers_t *self);
/* The workers were told to end by SIGKILL. With ssh and srun that is an order to a helper, which
 * may hear nothing: engines have as long to end as without workers. */
void ps_engines_note_killed(ps_workers_t *self);
/* When no worker runs any more, or all were killed: lets engines end, and after a while makes
 * them. */
void ps_engines_finish(ps_workers_t *self);
/* The next time at which one is due, on the clock of ps_now_ms; UINT64_MAX: never. */
uint64_t ps_engines_due_ms(const ps_workers_t *self);
/* Kills those that run. */
void ps_engines_done(ps_workers_t *self);
#endif
