/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices without waiting, for who has other things to do meanwhile
 *
 * What     A step is a question for a slice, or that one is done: begin it,
 *          look in each turn of the client (ps_pump) until it is over, end it.
 *          psd_work_next and psd_work_done are these steps, waited for.
 *          While a question for a slice is under way clocks go on as psd/job.h
 *          says; they do so in ps_pump.
 * Owner    One step at a time. Which begins ends, by …_end, by ps_work_cancel,
 *          or with an error of begin or look, before the client is closed.
 * Threads  As psd_work_t.
 */
#ifndef PS_CLIENT_WORK_H
#define PS_CLIENT_WORK_H

#include "psd/job.h"

/* Asks for a slice. waits: the step before ended with PSD_DEADLINE just now,
 * and so clocks go on at once; else it is seen first whether there is a slice.
 * Until there is one each question has the same number, so that after
 * PSD_DEADLINE of the end the next step gets what was given meanwhile. Errors:
 * PSD_NOT_JOINED, PSD_JOB_STOPPED, PSD_WORKER_LOST; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_work_next_begin(psd_work_t *self, uint32_t timeout_ms, bool waits,
                                               psd_error_t *err);
/* Errors: those of psd_work_next. */
PSD_MUST_CHECK psd_status_t ps_work_next_end(psd_work_t *self, uint64_t *ret_epoch,
                                             uint32_t *ret_slice, psd_error_t *err);
/* Says that a slice is done, of which all pushes are acknowledged: the caller
 * has seen to that. Errors: as ps_work_next_begin. */
PSD_MUST_CHECK psd_status_t ps_work_done_begin(psd_work_t *self, uint64_t epoch, uint32_t slice,
                                               uint32_t timeout_ms, psd_error_t *err);
/* Errors: those of psd_work_done. */
PSD_MUST_CHECK psd_status_t ps_work_done_end(psd_work_t *self, psd_error_t *err);
/* Errors: the client is broken. */
PSD_MUST_CHECK psd_status_t ps_work_look(psd_work_t *self, bool *ret_over, psd_error_t *err);
/* When to look again at the latest. */
uint64_t ps_work_wake_ms(const psd_work_t *self);
/* Nobody wants the answer any more. Takes one without a step. */
void ps_work_cancel(psd_work_t *self);
#endif
