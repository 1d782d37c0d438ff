/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers and clocks - keeping in step
 *
 * What     A worker is a member of a job, with a rank. Its clock counts the
 *          periods that it has finished. max_delay bounds how far running
 *          workers are apart: 0 BSP, s > 0 SSP, < 0 ASP. psd_clock does not
 *          wait; the worker's next pull or push does, until the bound holds.
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
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_join(psd_client_t *client,
                                                const char *job,
                                                int64_t worker,
                                                uint32_t n_workers,
                                                int32_t max_delay,
                                                psd_error_t *err);
/* Makes this client a further member of the worker that `joined` already is
 * (a second thread of it). Members are numbered in the order of this call; a
 * worker has finished a clock when all of its members have. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_attach(psd_client_t *client,
                                                  const psd_client_t *joined,
                                                  psd_error_t *err);
/* Finishes one clock: the flush marker follows this client's pushes to every
 * partition of the job's tables. What it cannot send at once goes out with the
 * next calls. Errors: PSD_NOT_JOINED, PSD_JOB_STOPPED,
 * PSD_WORKER_LOST, PSD_CLOSED. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_clock(psd_client_t *client,
                                                 psd_error_t *err);
/* Clocks finished by this client. */
PSD_EXPORT uint64_t psd_clock_count(const psd_client_t *client);
/* Rank, 0 when not joined. */
PSD_EXPORT uint32_t psd_worker(const psd_client_t *client);
/* Waits until every live worker of the job is here. Errors: PSD_DEADLINE,
 * naming who is missing. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_barrier(psd_client_t *client,
                                                   uint32_t timeout_ms,
                                                   psd_error_t *err);
/* Finishes: waits for all acknowledgements, then stops holding others back.
 * The client stays open and is no worker any more. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_leave(psd_client_t *client,
                                                 uint32_t timeout_ms,
                                                 psd_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
