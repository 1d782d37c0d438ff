/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints - rows in files, and a job's place in its work
 *
 * What     A checkpoint has the rows of tables; one of a job has them exactly
 *          as they are after one of its clocks, with that clock and its work
 *          queues, and the job can go on from there. The nodes write it while
 *          jobs go on, one at a time, into checkpoint.dir. A series is the
 *          checkpoints NAME-1, NAME-2, … of one NAME.
 * Units    clocks: finished periods; unix_ms: milliseconds since 1970
 */
#ifndef PSD_CHECKPOINT_H
#define PSD_CHECKPOINT_H

#include "psd/client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A checkpoint that is whole, as it was found. */
typedef struct psd_checkpoint psd_checkpoint_t;

/*
 * Begins a checkpoint and does not wait for it. It is given up when nobody
 * calls psd_checkpoint_wait for 15 s.
 *
 * name        in   1 .. 100 letters, digits, "-", "_", ".", the first one a
 *                  letter or digit; that is not there yet
 * job         in   whose tables, clock and queues it has, exactly; NULL: all
 *                  tables, each partition as it is when it is written
 * ret_number  out  for psd_checkpoint_wait
 *
 * Errors: PSD_BUSY another one is under way; PSD_INVALID name, or the job does
 * not run; PSD_CHECKPOINT_EXISTS; PSD_NO_JOB; PSD_NO_TABLE there is none.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_checkpoint_start(psd_client_t *client, const char *name,
                                                            const char *job, uint64_t *ret_number,
                                                            psd_error_t *err);
/*
 * Waits until that checkpoint is whole; at 0 ms it looks once. One of a job is
 * written when all of its workers have finished a certain clock: a worker of
 * that job does not wait here, but looks after each clock.
 * Errors: PSD_DEADLINE it is under way, and can be waited for again; why it has
 * failed, and nothing of it is left: PSD_BUSY partitions have moved or the job
 * has ended, PSD_IO; PSD_INVALID no such one: given up, or psd was started
 * again.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_checkpoint_wait(psd_client_t *client, uint64_t number,
                                                           uint32_t timeout_ms, psd_error_t *err);
/* The whole checkpoint of that name, else the newest whole one of that series;
 * NULL: of all the one that was begun last. Errors: PSD_NO_CHECKPOINT;
 * PSD_DAMAGED. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_checkpoint_newest(psd_client_t *client, const char *name,
                                                             psd_checkpoint_t **ret_checkpoint,
                                                             psd_error_t *err);
PSD_EXPORT void psd_checkpoint_destroy(psd_checkpoint_t **self_p);
/* Its own name; its job's, "" when it is of none. Both live as long as it. */
PSD_EXPORT const char *psd_checkpoint_name(const psd_checkpoint_t *self);
PSD_EXPORT const char *psd_checkpoint_job(const psd_checkpoint_t *self);
/* The clock of its job that it was made after; 0 when it is of none. */
PSD_EXPORT uint64_t psd_checkpoint_clock(const psd_checkpoint_t *self);
PSD_EXPORT uint64_t psd_checkpoint_unix_ms(const psd_checkpoint_t *self);
/* Removes it and its files. Errors: PSD_NO_CHECKPOINT; PSD_BUSY it is being
 * worked on; PSD_DENIED another one was made since it and needs its rows. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_checkpoint_drop(psd_client_t *client, const char *name,
                                                           psd_error_t *err);
/*
 * Takes a job back to a checkpoint of it: reads every byte of the checkpoint,
 * stops the job if it runs, waits until all of its workers have ended or were
 * declared lost, drops the tables that the checkpoint has, and restores them
 * and the job. Workers that join then go on after its clock, with the slices
 * that were not done. Tables are to be opened again. After any error it can be
 * called again; until the tables are dropped nothing has changed but that the
 * job was stopped.
 *
 * client     in  is no worker
 * name       in  as psd_checkpoint_newest, not NULL
 * n_workers  in  how many the job counts on; 0: as many as before
 * n_epochs   in  of its work queues; 0: as before
 *
 * Errors: PSD_NO_CHECKPOINT; PSD_NO_JOB the checkpoint has not that job;
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
