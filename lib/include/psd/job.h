/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers and clocks - keeping in step
 *
 * What     A worker is a member of a job, with a rank. Its clock counts the
 *          periods that it has finished. max_delay bounds how far running
 *          workers are apart: 0 BSP, s > 0 SSP, < 0 ASP. psd_clock does not
 *          wait; the worker's next pull or push does, until the bound holds.
 *          Work queues hand out the slices of a job's input, so that it need
 *          not be split by hand and no slice is left out when a worker dies.
 */
#ifndef PSD_JOB_H
#define PSD_JOB_H

#include "psd/client.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes the client a worker of a job; the job begins with its first worker. A
 * thread of the library then tells the registry that the worker lives, until
 * psd_leave or psd_close.
 *
 * job        in  NULL: $PSD_JOB, else "default"
 * worker     in  rank 0 .. 4095; -1: $PSD_WORKER, else 0
 * n_workers  in  how many the job counts on (they hold the others back from the
 *                start, until they come or are declared lost); 0: $PSD_WORKERS,
 *                else 1. A rank at or above it may join later.
 * max_delay  in  PSD_DELAY_ENV: $PSD_MAX_DELAY, else 0
 *
 * Errors: PSD_WORKER_EXISTS; PSD_JOB_MISMATCH other max_delay or n_workers;
 * PSD_JOB_STOPPED; PSD_INVALID; PSD_DEADLINE.
 */
#define PSD_DELAY_ENV INT32_MIN
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_join(psd_client_t *client, const char *job,
                                                int64_t worker, uint32_t n_workers,
                                                int32_t max_delay, psd_error_t *err);
/* Makes this client a further member of the worker that `joined` already is
 * (a second thread of it). Members are numbered in the order of this call; a
 * worker has finished a clock when all of its members have. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_attach(psd_client_t *client, const psd_client_t *joined,
                                                  psd_error_t *err);
/* Finishes one clock: the flush marker follows this client's pushes to every
 * partition of the job's tables. What it cannot send at once goes out with the
 * next calls. Errors: PSD_NOT_JOINED, PSD_JOB_STOPPED,
 * PSD_WORKER_LOST, PSD_CLOSED. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_clock(psd_client_t *client, psd_error_t *err);
/* Clocks finished by this client. */
PSD_EXPORT uint64_t psd_clock_count(const psd_client_t *client);
/* Rank, 0 when not joined. */
PSD_EXPORT uint32_t psd_worker(const psd_client_t *client);
/* Waits until every live worker of the job is here. Errors: PSD_DEADLINE,
 * naming who is missing. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_barrier(psd_client_t *client, uint32_t timeout_ms,
                                                   psd_error_t *err);
/* Finishes: waits for all acknowledgements, then stops holding others back.
 * The client stays open and is no worker any more. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_leave(psd_client_t *client, uint32_t timeout_ms,
                                                 psd_error_t *err);
/* Workers of the job that were known to be lost, to have failed or never to
 * have come when this client last left one (psd_leave): what was theirs to do
 * nobody has done, but for slices of work queues. One that was killed within
 * workers.lost_after_ms may not be known yet, unless all have met since
 * (psd_barrier). 0 before. */
PSD_EXPORT uint32_t psd_lost_workers(const psd_client_t *client);

/* Leaves because the program has failed: at once and with all members of the
 * worker, which others do not wait for any more. `pscli why` and the history
 * say the reason (its first 160 bytes; NULL and "": unknown). What was not
 * acknowledged may or may not be applied. Every ticket of this client's that
 * has not ended ends, PSD_FAILED, waited for or not, also when an error is
 * returned. No memory of theirs is read or written behind the call, which may
 * take a little longer than timeout_ms to get borrowed memory back. The client
 * stays open and is no worker any more. Errors: as psd_leave. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_fail(psd_client_t *client, const char *reason,
                                                uint32_t timeout_ms, psd_error_t *err);

/*
 * A work queue of the job. What a slice is (lines of a file, a file, a range of
 * samples) is the job's affair; the queue has their numbers.
 *
 * In each epoch every slice is counted once, whoever crashes: a worker that is
 * lost, leaves, or joins again has its slices no longer, and they are given to
 * others. The next epoch begins when all slices of this one are done.
 *
 * Clocks: a worker that waits in psd_work_next and has no slice finishes clocks
 * meanwhile, one after the other, as far as max_delay lets it: those that have
 * slices never wait for it. While all workers wait, for a checkpoint for
 * instance, none of them goes on. psd_clock_count says how many it has
 * finished. With max_delay < 0 nobody waits for it, and it finishes none. One
 * that has slices and asks for more finishes none: it is to finish its own work
 * first.
 *
 * The work itself is done at least once. What a worker had pushed of a slice
 * before it died stays pushed, and whoever gets the slice next pushes all of
 * it: a sum that must be exact needs rows of its own for each slice and epoch,
 * or a slice whose pushes may be made twice.
 *
 * Threads: as the client that opened it. Each client of a worker opens it for
 * itself.
 */
typedef struct psd_work psd_work_t;

/*
 * Opens the queue of that name, which the first to come makes.
 *
 * name      in   1 .. 63 letters, digits and _ . -
 * n_slices  in   1 .. 1048576
 * n_epochs  in   1 .. 1000000000; 0: without end
 *
 * Errors: PSD_JOB_MISMATCH it has other slices or epochs; PSD_LIMIT the job has
 * 16 queues; PSD_INVALID; PSD_NOT_JOINED, PSD_JOB_STOPPED, PSD_WORKER_LOST;
 * PSD_DEADLINE; PSD_NOMEM.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_work_open(psd_client_t *client, const char *name,
                                                     uint32_t n_slices, uint64_t n_epochs,
                                                     psd_work_t **ret_work, psd_error_t *err);
/*
 * A slice for this client; waits while others have all that are left, and
 * finishes clocks then (see above). It is the client's until psd_work_done, and
 * it may have 64 at a time.
 *
 * ret_epoch  out  1, 2, …; 0: all epochs are over, and there is no slice
 * ret_slice  out  0 .. n_slices - 1
 *
 * Errors: PSD_DEADLINE naming who has the slices, or without an answer: call
 * again, what was given meanwhile is not lost; PSD_LIMIT it has 64;
 * PSD_NOT_JOINED, PSD_JOB_STOPPED, PSD_WORKER_LOST.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_work_next(psd_work_t *self, uint32_t timeout_ms,
                                                     uint64_t *ret_epoch, uint32_t *ret_slice,
                                                     psd_error_t *err);
/*
 * Waits until the client's pushes are acknowledged or refused (psd_flush), then
 * counts the slice. Look at the pushes' own results before. May be called again
 * after PSD_DEADLINE: a slice is not counted twice.
 *
 * Errors: PSD_INVALID the slice is not this worker's; PSD_DEADLINE it may be
 * counted or not; PSD_NOT_JOINED, PSD_JOB_STOPPED, PSD_WORKER_LOST: somebody
 * else gets it.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_work_done(psd_work_t *self, uint64_t epoch,
                                                     uint32_t slice, uint32_t timeout_ms,
                                                     psd_error_t *err);
/* Closes the handle; slices stay the worker's. Takes NULL, nulls *self_p. */
PSD_EXPORT void psd_work_close(psd_work_t **self_p);

#ifdef __cplusplus
}
#endif
#endif
