/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_work - the state of a job's work queues that the registry stores
 *
 * What     A work queue hands out the slices of a job's input. In each epoch it
 *          gives every slice to a worker, and counts it once, when the worker
 *          reports it done. When a worker ends, its unfinished slices return to
 *          the queue.
 * Shape    epochs 1, 2, 3 …; the next one begins when all slices are done
 */
#ifndef PS_PROTOCOL_WORK_H
#define PS_PROTOCOL_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/tables/table.h"

#define PS_QUEUES_MAX 16           /* of a job */
#define PS_WORK_SLICES_MAX 1048576 /* of a queue */
#define PS_WORK_EPOCHS_MAX 1000000000
#define PS_WORK_HOLDS_MAX 64  /* slices that a client may hold at a time */
#define PS_WORK_BATCH_MAX 256 /* changes in one command */

/* GIVEN -> DONE -> forgotten when the client asks for more. The last two kinds
 * only restore stored state. */
typedef enum ps_work_kind {
    PS_WORK_GIVEN = 1,    /* the client has the slice */
    PS_WORK_DONE = 2,     /* the client has done the slice */
    PS_WORK_WAS_DONE = 3, /* slice, in this epoch */
    PS_WORK_WAS_LAST = 4  /* a done slice that is still remembered, so that a repeated question gets
                             the same answer */
} ps_work_kind_t;

/* A slice that a client holds. */
typedef struct ps_work_hold {
    ps_work_kind_t kind;
    uint64_t session; /* the client's … */
    uint64_t ask;     /* … and its number of the question for the slice */
    uint64_t epoch;   /* of the queue, when the slice was given */
    uint32_t slice;
    uint32_t worker;
    uint32_t joins; /* identifies the worker's life */
} ps_work_hold_t;

/* A queue of a job that resumes from a checkpoint. */
typedef struct ps_work_resumed {
    char name[PS_NAME_MAX + 1];
    uint32_t n_slices;
    uint64_t n_epochs; /* 0: without end */
    uint64_t epoch;    /* n_epochs + 1: it is over */
    uint32_t *done;    /* owned; slices done in that epoch, ascending; never all of them */
    uint32_t n_done;
} ps_work_resumed_t;

/* Frees an array of them and each element. Takes NULL. */
void ps_work_resumed_free(ps_work_resumed_t *queues, size_t n);

/* What a command does to a queue. */
typedef struct ps_work {
    uint32_t queue;        /* number within the job, from 1 */
    uint32_t n_slices;     /* QUEUE */
    uint64_t n_epochs;     /* QUEUE; 0: without end */
    uint64_t epoch;        /* the current one; QUEUE: the first one */
    ps_work_hold_t *holds; /* owned; WORK */
    size_t n_holds;
    bool turns; /* WORK: after it all slices are done, and the next epoch begins */
} ps_work_t;
#endif
