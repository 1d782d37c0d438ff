/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers and clocks - keeping in step
 *
 * What     A worker is a member of a job, with a rank. Its clock counts the
 *          periods that it has finished. max_delay bounds how many clocks
 *          running workers are apart: 0 BSP, s > 0 SSP, < 0 ASP. psd_clock does
 *          not wait; the worker's next pull or push waits until the bound
 *          holds. A work queue hands out the slices of a job's input: nobody
 *          splits it by hand, and no slice is left out when a worker dies.
 */
#ifndef PSD_JOB_H
#define PSD_JOB_H

#include "psd/client.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes the client a worker of a job; the first worker starts the job. From
 * then on a thread of the library sends heartbeats to the registry, until
 * psd_leave or psd_close.
 *
 * job        in  NULL: $PSD_JOB, else "default"
 * worker     in  rank 0 .. 4095; -1: $PSD_WORKER, else 0, or where $PSD_ROLE is
 *                set, "auto": the lowest rank that no worker of the job had
 * n_workers  in  how many workers the job expects: from the start the others
 *                wait for them, until they join or are declared lost; 0:
 *                $PSD_WORKERS, else 1. A rank at or above it may join later.
 * max_delay  in  PSD_DELAY_ENV: $PSD_MAX_DELAY, else 0
 *
 * It waits first until $PSD_SERVERS nodes are up. docs/environment.md has other
 * systems' names for all of these.
 *
 * Errors: PSD_WORKER_EXISTS; PSD_JOB_MISMATCH other max_delay or n_workers;
 * PSD_JOB_STOPPED; PSD_INVALID; PSD_DEADLINE, naming how many servers are missing.
 */
#define PSD_DELAY_ENV INT32_MIN
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_join(psd_client_t *client, const char *job,
                                                int64_t worker, uint32_t n_workers,
                                                int32_t max_delay, psd_error_t *err);
/* Makes this client another member of the worker that `joined` is (for a second
 * thread of it). Members are numbered in the order of this call. A worker has
 * finished a clock when all of its members have. */
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
/* Waits until every live worker of the job has called it. Errors: PSD_DEADLINE,
 * naming the workers that are missing. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_barrier(psd_client_t *client, uint32_t timeout_ms,
                                                   psd_error_t *err);
/* The lowest rank of those that met in this client's last psd_barrier, the same for all of
 * them: who does what one of them must do, such as to save the model. It is 0 unless worker 0
 * has left or was lost; 0 before the first psd_barrier, and with a psd that does not say it.
 * Only when the node that leads the registry dies while it answers a barrier, two workers
 * may take themselves for the first. */
PSD_EXPORT uint32_t psd_first_worker(const psd_client_t *client);
/* Leaves the job: waits for all acknowledgements; then no other worker waits
 * for this one any more. The client stays open and is no worker any more. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_leave(psd_client_t *client, uint32_t timeout_ms,
                                                 psd_error_t *err);
/* The number of workers that were known to be lost, to have failed or never to
 * have joined when this client last left a job (psd_leave). Their work was not
 * done, except for slices of work queues. A worker that was killed less than
 * workers.lost_after_ms ago may not be counted yet, unless all workers have met
 * in psd_barrier since. 0 before psd_leave. */
PSD_EXPORT uint32_t psd_lost_workers(const psd_client_t *client);

/* Leaves because the program has failed: at once and with all members of the
 * worker. Others do not wait for the worker any more. `pscli why` and the
 * history show the reason (its first 160 bytes; NULL and "": unknown). Pushes
 * that are not acknowledged may or may not be applied. Every open ticket of
 * this client ends with PSD_FAILED, whether it is waited for or not, and also
 * when the call returns an error. After the call the library neither reads nor
 * writes memory of these tickets; to get borrowed memory back it may take a
 * little longer than timeout_ms. The client stays open and is no worker any
 * more. Errors: as psd_leave. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_fail(psd_client_t *client, const char *reason,
                                                uint32_t timeout_ms, psd_error_t *err);

/*
 * A work queue of the job. The queue knows slices only by number. The job
 * decides what a slice is: lines of a file, a file, a range of samples.
 *
 * In each epoch every slice is counted exactly once, even if workers crash:
 * when a worker is lost, leaves or joins again, its slices go to others. The
 * next epoch begins when all slices of this one are done.
 *
 * Clocks: a worker that waits in psd_work_next and has no slice finishes clocks
 * meanwhile, one after the other, as far as max_delay allows. So workers that
 * have slices never wait for it. While all workers wait, for a checkpoint for
 * instance, none of them finishes clocks. psd_clock_count says how many clocks
 * it has finished. With max_delay < 0 no worker waits for another, and it
 * finishes none. A worker that has slices and asks for more finishes none
 * either: it should finish its own work first.
 *
 * The work itself is done at least once. What a worker pushed for a slice
 * before it died stays pushed, and the worker that gets the slice next pushes
 * all of it again. A sum that must be exact needs its own rows for each slice
 * and epoch, or pushes that may be repeated.
 *
 * Threads: as the client that opened it. Each client of a worker opens the
 * queue for itself.
 */
typedef struct psd_work psd_work_t;

/*
 * Opens the queue of that name; the first worker that opens it creates it.
 *
 * name      in   1 .. 63 letters, digits and _ . -
 * n_slices  in   1 .. 1048576
 * n_epochs  in   1 .. 1000000000; 0: without end
 *
 * Errors: PSD_JOB_MISMATCH the queue has another number of slices or epochs;
 * PSD_LIMIT the job has 16 queues; PSD_INVALID; PSD_NOT_JOINED,
 * PSD_JOB_STOPPED, PSD_WORKER_LOST; PSD_DEADLINE; PSD_NOMEM.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_work_open(psd_client_t *client, const char *name,
                                                     uint32_t n_slices, uint64_t n_epochs,
                                                     psd_work_t **ret_work, psd_error_t *err);
/*
 * Gets a slice for this client. Waits while other workers hold all remaining
 * slices, and finishes clocks then (see above). The slice is the client's until
 * psd_work_done; a client may hold 64 at a time.
 *
 * ret_epoch  out  1, 2, …; 0: all epochs are over, and there is no slice
 * ret_slice  out  0 .. n_slices - 1
 *
 * Errors: PSD_DEADLINE naming the workers that hold the slices, or that no
 * answer came: call again, a slice that was assigned meanwhile is not lost;
 * PSD_LIMIT the client holds 64; PSD_NOT_JOINED, PSD_JOB_STOPPED,
 * PSD_WORKER_LOST.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_work_next(psd_work_t *self, uint32_t timeout_ms,
                                                     uint64_t *ret_epoch, uint32_t *ret_slice,
                                                     psd_error_t *err);
/*
 * Waits until the client's pushes are acknowledged or refused (psd_flush), then
 * counts the slice. Check the results of the pushes before. May be called again
 * after PSD_DEADLINE: a slice is not counted twice.
 *
 * Errors: PSD_INVALID the slice is not this worker's; PSD_DEADLINE the slice
 * may or may not be counted; PSD_NOT_JOINED, PSD_JOB_STOPPED, PSD_WORKER_LOST:
 * another worker gets the slice.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_work_done(psd_work_t *self, uint64_t epoch,
                                                     uint32_t slice, uint32_t timeout_ms,
                                                     psd_error_t *err);
/* Closes the handle; the worker keeps its slices. Takes NULL, nulls *self_p. */
PSD_EXPORT void psd_work_close(psd_work_t **self_p);

#ifdef __cplusplus
}
#endif
#endif
