/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints - rows of tables in files, and how far a job has come
 *
 * What     A checkpoint stores the rows of tables. A checkpoint of a job stores
 *          them exactly as they are after one clock of the job. It also stores
 *          that clock and the job's work queues, so that the job can resume
 *          from it. The nodes write checkpoints into checkpoint.dir, one at a
 *          time, while jobs go on. A series is the checkpoints NAME-1, NAME-2,
 *          … of one NAME.
 * Units    clocks: finished periods; unix_ms: milliseconds since 1970
 */
#ifndef PSD_CHECKPOINT_H
#define PSD_CHECKPOINT_H

#include "psd/client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A complete checkpoint, as psd_checkpoint_newest found it. */
typedef struct psd_checkpoint psd_checkpoint_t;

/*
 * Starts a checkpoint and does not wait for it. It is abandoned when no client
 * calls psd_checkpoint_wait for 15 s.
 *
 * name        in   1 .. 100 letters, digits, "-", "_", "."; the first one is a
 *                  letter or a digit; no checkpoint has that name yet
 * job         in   stores exactly this job's tables, clock and queues; NULL:
 *                  all tables, each partition as it is when it is written
 * ret_number  out  for psd_checkpoint_wait
 *
 * Errors: PSD_BUSY another checkpoint is under way; PSD_INVALID name, or the
 * job is not running; PSD_CHECKPOINT_EXISTS; PSD_NO_JOB; PSD_NO_TABLE there is
 * no table, or the job has opened none.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_checkpoint_start(psd_client_t *client, const char *name,
                                                            const char *job, uint64_t *ret_number,
                                                            psd_error_t *err);
/*
 * Waits until that checkpoint is complete; with 0 ms it looks once. The nodes
 * write a job's checkpoint when all workers of the job have finished a certain
 * clock. So a worker of that job must not wait here: it looks with 0 ms after
 * each clock.
 * Errors: PSD_DEADLINE the checkpoint is still under way; wait again. PSD_BUSY
 * partitions have moved or the job has ended, PSD_IO: it failed, and nothing of
 * it is left. PSD_INVALID no such checkpoint: it was abandoned, or psd was
 * restarted.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_checkpoint_wait(psd_client_t *client, uint64_t number,
                                                           uint32_t timeout_ms, psd_error_t *err);
/* The complete checkpoint of that name, else the newest complete one of that
 * series. NULL: of all complete checkpoints the one that was started last.
 * Errors: PSD_NO_CHECKPOINT; PSD_DAMAGED. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_checkpoint_newest(psd_client_t *client, const char *name,
                                                             psd_checkpoint_t **ret_checkpoint,
                                                             psd_error_t *err);
PSD_EXPORT void psd_checkpoint_destroy(psd_checkpoint_t **self_p);
/* The checkpoint's name; the name of its job, "" when it has no job. Both live
 * as long as the checkpoint. */
PSD_EXPORT const char *psd_checkpoint_name(const psd_checkpoint_t *self);
PSD_EXPORT const char *psd_checkpoint_job(const psd_checkpoint_t *self);
/* The clock of the job after which it was written; 0 when it has no job. */
PSD_EXPORT uint64_t psd_checkpoint_clock(const psd_checkpoint_t *self);
PSD_EXPORT uint64_t psd_checkpoint_unix_ms(const psd_checkpoint_t *self);
/* Removes the checkpoint and its files. Errors: PSD_NO_CHECKPOINT; PSD_BUSY it
 * is in use; PSD_DENIED a later checkpoint needs its rows. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_checkpoint_drop(psd_client_t *client, const char *name,
                                                           psd_error_t *err);
/*
 * Takes a job back to one of its checkpoints. The call reads every byte of the
 * checkpoint, stops the job if it runs, and waits until all of its workers have
 * ended or are declared lost. It then drops the tables that are in the
 * checkpoint, and restores them and the job. Workers that join afterwards
 * continue after the checkpoint's clock, with the slices that were not done.
 * Open the tables again. The call can be repeated after any error: until it
 * drops the tables, it has changed nothing except that the job is stopped.
 *
 * client     in  is no worker
 * name       in  as psd_checkpoint_newest, not NULL
 * n_workers  in  number of workers that the job expects; 0: as before
 * n_epochs   in  of its work queues; 0: as before
 *
 * Errors: PSD_NO_CHECKPOINT; PSD_NO_JOB the checkpoint is not of that job;
 * PSD_DAMAGED; PSD_DEADLINE, naming what it waits for; PSD_BUSY another
 * checkpoint or restore is under way; PSD_INVALID.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_checkpoint_resume(psd_client_t *client, const char *name,
                                                             const char *job, uint32_t n_workers,
                                                             uint64_t n_epochs, uint32_t timeout_ms,
                                                             psd_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
