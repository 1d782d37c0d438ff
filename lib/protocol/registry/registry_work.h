/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_registry_work - work queues of jobs
 *
 * What     Workers ask for slices of the input, and the queue counts done
 *          slices; psd_work_next and psd_work_done. Both are stored before they
 *          are answered, so a registry that restarts gives no slice twice,
 *          counts none twice and loses none.
 * Order    Many questions share one command, because storing one costs a flush:
 *          the shell passes the same command to one plan after the other,
 *          stores and applies it, and then answers all of them. A plan's answer
 *          is valid only after the command was stored.
 * Workers  A worker that is lost or finished, or has joined again, loses its
 *          slices: unfinished ones go to others. Its later reports about them
 *          are refused.
 */
#ifndef PS_PROTOCOL_REGISTRY_WORK_H
#define PS_PROTOCOL_REGISTRY_WORK_H

#include "protocol/registry/registry.h"

/* Makes a queue of a job. Kind 0: the same queue exists. Errors: PSD_NO_JOB,
 * PSD_JOB_STOPPED; PSD_JOB_MISMATCH a different one of that name exists;
 * PSD_INVALID; PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_queue(const ps_registry_t *self, uint32_t job,
                                                   const char *name, uint32_t n_slices,
                                                   uint64_t n_epochs, uint64_t unix_ms,
                                                   ps_command_t *ret_command, psd_error_t *err);

/* The client that asks. */
typedef struct ps_work_ask {
    uint32_t job;
    const char *queue;
    uint32_t worker;
    uint32_t joins;   /* its life; 0: the current one */
    uint64_t session; /* of the client; not 0 */
    uint64_t number;  /* next: from 1, grows with every question of the client; a repeated number
                         gets the same answer */
    uint64_t epoch;   /* done: of the slice */
    uint32_t slice;   /* done */
} ps_work_ask_t;

typedef enum ps_work_found {
    PS_WORK_SLICE = 1, /* epoch and slice */
    PS_WORK_WAIT = 2,  /* all are given, but not all done: ask again when the queue has changed */
    PS_WORK_END = 3    /* all epochs are over */
} ps_work_found_t;

typedef struct ps_work_answer {
    ps_work_found_t found;
    uint64_t epoch;
    uint32_t slice;
} ps_work_answer_t;

/*
 * The next slice for a client, and a slice that it has done. Their changes are
 * added to *command, of kind 0 or of the same queue. A repeated done is not
 * counted again, and changes nothing.
 *
 * Errors: PSD_BUSY the command is full or of another queue: store it first;
 * PSD_NO_JOB no such job or queue; PSD_NO_WORKER, PSD_WORKER_LOST,
 * PSD_JOB_STOPPED; PSD_LIMIT it has PS_WORK_HOLDS_MAX slices; PSD_INVALID the
 * slice is not this worker's; PSD_NOMEM. *command is then unchanged.
 */
PSD_MUST_CHECK psd_status_t ps_registry_plan_work_next(const ps_registry_t *self,
                                                       const ps_work_ask_t *ask, uint64_t unix_ms,
                                                       ps_command_t *command,
                                                       ps_work_answer_t *ret_answer,
                                                       psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_registry_plan_work_done(const ps_registry_t *self,
                                                       const ps_work_ask_t *ask, uint64_t unix_ms,
                                                       ps_command_t *command, psd_error_t *err);

typedef struct ps_queue_info {
    const char *name; /* borrowed until the next apply */
    uint32_t n_slices;
    uint64_t n_epochs; /* 0: without end */
    uint64_t epoch;    /* n_epochs + 1: it has ended */
    uint32_t n_done;   /* in this epoch */
    uint32_t n_given;  /* given and not done */
} ps_queue_info_t;
/* Queue i of a job, from 0; false: there is none. */
bool ps_registry_queue_at(const ps_registry_t *self, uint32_t job, size_t i,
                          ps_queue_info_t *ret_info);
/* Slice `slice` of queue i is done in its epoch. */
bool ps_registry_slice_is_done(const ps_registry_t *self, uint32_t job, size_t i, uint32_t slice);
/* The number of unfinished slices of a job's queue that a worker holds; sets
 * ret_slice to one of them if there are any. 0 also when there is no such
 * queue. */
uint32_t ps_registry_queue_given(const ps_registry_t *self, uint32_t job, const char *queue,
                                 uint32_t worker, uint32_t *ret_slice);
#endif
