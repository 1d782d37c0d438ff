/* SPDX-License-Identifier: Apache-2.0 */
/* A work queue in the registry's memory; for the registry only. */
#ifndef PS_PROTOCOL_REGISTRY_QUEUE_H
#define PS_PROTOCOL_REGISTRY_QUEUE_H

#include "protocol/registry/registry_state.h"

typedef enum ps_slice_state {
    PS_SLICE_FREE = 0,
    PS_SLICE_GIVEN = 1,
    PS_SLICE_DONE = 2
} ps_slice_state_t;

typedef struct ps_queue {
    char name[PS_NAME_MAX + 1];
    uint32_t n_slices;
    uint64_t n_epochs;
    uint64_t epoch;
    uint32_t n_done;
    uint32_t first_free;   /* no slice before it is free */
    uint8_t *slices;       /* owned; ps_slice_state_t of each */
    ps_work_hold_t *holds; /* owned; slices that clients hold, and done slices of clients that have
                              not asked since */
    size_t n_holds;
    size_t max_holds;
} ps_queue_t;

void ps_queue_done(ps_queue_t *self);
/* The queue of a job by its number, from 1; NULL: there is none. */
ps_queue_t *ps_job_queue(const ps_job_entry_t *entry, uint32_t number);
bool ps_queue_is_over(const ps_queue_t *self);
/* The slice that answered a question; NULL: none remembered. */
ps_work_hold_t *ps_queue_hold(const ps_queue_t *self, uint64_t session, uint64_t ask);

/* Returns the slices of workers that no longer run or have joined again. */
PSD_MUST_CHECK psd_status_t ps_job_return_work(ps_registry_t *self, const ps_job_entry_t *entry,
                                               psd_error_t *err);
#endif
