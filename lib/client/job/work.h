/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices without waiting, for threads that do other work meanwhile
 *
 * What     A step asks for a slice, or says that a slice is done: begin it,
 *          look in each turn of the client (ps_pump) until it is over, end it.
 *          psd_work_next and psd_work_done do these steps and wait.
 *          While a question for a slice is under way, ps_pump finishes clocks
 *          as psd/job.h says.
 * Owner    One step at a time. A step that has begun ends with …_end,
 *          ps_work_cancel, or an error of begin or look, before the client is
 *          closed.
 * Threads  As psd_work_t.
 */
#ifndef PS_CLIENT_WORK_H
#define PS_CLIENT_WORK_H

#include "psd/job.h"

/* Asks for a slice. waits: the step before has just ended with PSD_DEADLINE, so
 * the worker finishes clocks at once; otherwise it first checks whether there
 * is a slice. Until there is one all questions have the same number: after
 * PSD_DEADLINE of the end the next step gets the slice that was assigned
 * meanwhile. Errors: PSD_NOT_JOINED, PSD_JOB_STOPPED, PSD_WORKER_LOST;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_work_next_begin(psd_work_t *self, uint32_t timeout_ms, bool waits,
                                               psd_error_t *err);
/* Errors: those of psd_work_next. */
PSD_MUST_CHECK psd_status_t ps_work_next_end(psd_work_t *self, uint64_t *ret_epoch,
                                             uint32_t *ret_slice, psd_error_t *err);
/* Says that a slice is done. The caller has waited until all of its pushes are
 * acknowledged. Errors: as ps_work_next_begin. */
PSD_MUST_CHECK psd_status_t ps_work_done_begin(psd_work_t *self, uint64_t epoch, uint32_t slice,
                                               uint32_t timeout_ms, psd_error_t *err);
/* Errors: those of psd_work_done. */
PSD_MUST_CHECK psd_status_t ps_work_done_end(psd_work_t *self, psd_error_t *err);
/* Errors: the client is broken. */
PSD_MUST_CHECK psd_status_t ps_work_look(psd_work_t *self, bool *ret_over, psd_error_t *err);
/* The latest time of the next look. */
uint64_t ps_work_wake_ms(const psd_work_t *self);
/* Cancels the step: the answer is not wanted any more. Takes one without a
 * step. */
void ps_work_cancel(psd_work_t *self);
#endif
