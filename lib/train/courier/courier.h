/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/train/courier: the thread that uses the client
 *
 * It is       Parcels of pulls, pushes and marks, in the order in which they are
 *             handed over, and slices of a work queue.
 * It uses     state, values, lib/client for calls and work queues, lib/base.
 * It ignores  Blocks, call-backs, and why a parcel is sent.
 * Start at    courier.c, parcel.c.
 */
#ifndef PS_TRAIN_COURIER_H
#define PS_TRAIN_COURIER_H

#include "train/state/train_state.h"

void *ps_courier_run(void *train);

/* ---- parcel.c ---- */

/* A pull with a cache of its own. NULL: no memory, which err says. */
ps_parcel_t *ps_parcel_new_ahead(const psd_train_t *self, psd_error_t *err);
void ps_parcel_destroy(ps_parcel_t **self_p);
/* Hands it to the courier, which owns it from then on. Locked. */
void ps_parcel_send(psd_train_t *self, ps_parcel_t **parcel_p);
/* Starts its pulls or pushes, ends the clock, or asks for a slice; on the
 * courier's thread. Errors: those of psd_pull_start, psd_push_start, psd_clock;
 * PSD_NOMEM. Some tickets may be started then. */
PSD_MUST_CHECK psd_status_t ps_parcel_start(psd_train_t *self, ps_parcel_t *parcel,
                                            psd_error_t *err);

/* ---- slice.c ---- */

/* Errors: PSD_INVALID an option is missing. */
PSD_MUST_CHECK psd_status_t ps_slice_check(const psd_train_t *self, psd_error_t *err);
/* Opens the queue that the options name, if any; the client has joined. Errors:
 * those of psd_work_open. */
PSD_MUST_CHECK psd_status_t ps_slice_open(psd_train_t *self, psd_error_t *err);
/* The caller's request for a slice has reached the courier. The courier also
 * makes the calls below. */
void ps_slice_start(psd_train_t *self);
/* Goes on by one step, if it can, without waiting. pushed: all pushes that were
 * handed over are acknowledged. Errors: those of psd_work_next and
 * psd_work_done, except PSD_DEADLINE, PSD_BUSY and PSD_STOPPING, after which it
 * retries. */
PSD_MUST_CHECK psd_status_t ps_slice_turn(psd_train_t *self, bool pushed, psd_error_t *err);
bool ps_slice_is_under_way(const psd_train_t *self);
/* The next slice is asked for: the worker finishes clocks meanwhile, and their
 * marks may wait long for other workers. */
bool ps_slice_is_awaited(const psd_train_t *self);
/* Lets the client work for timeout_ms, or until a message has arrived. */
void ps_slice_work(psd_train_t *self, uint32_t timeout_ms);
/* Cancels: no slice is wanted any more. */
void ps_slice_stop(psd_train_t *self);
#endif
