/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_work - what the registry stores of a job's work queues
 *
 * What     A work queue hands out the slices of a job's input: in each epoch
 *          every slice is given to a worker, and counted once, when it says
 *          that it is done. A worker that ends gives back what it has not done.
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
#define PS_WORK_HOLDS_MAX 64  /* slices that a client has at a time */
#define PS_WORK_BATCH_MAX 256 /* changes in one command */

/* GIVEN -> DONE -> forgotten when the client asks for more. The last two kinds
 * only bring back what was stored. */
typedef enum ps_work_kind {
    PS_WORK_GIVEN = 1,    /* the client has the slice */
    PS_WORK_DONE = 2,     /* it has done it */
    PS_WORK_WAS_DONE = 3, /* slice, in this epoch */
    PS_WORK_WAS_LAST = 4  /* a slice that is done, and still remembered so that
                             a question that comes again gets its answer */
} ps_work_kind_t;

/* One slice in the hands of a client. */
typedef struct ps_work_hold {
    ps_work_kind_t kind;
    uint64_t session; /* the client's … */
    uint64_t ask;     /* … and its number of the question for the slice */
    uint64_t epoch;   /* of the queue, when it was given */
    uint32_t slice;
    uint32_t worker;
    uint32_t joins; /* tells lives of the worker apart */
} ps_work_hold_t;

/* A queue of a job that goes on where a checkpoint left it. */
typedef struct ps_work_resumed {
    char name[PS_NAME_MAX + 1];
    uint32_t n_slices;
    uint64_t n_epochs; /* 0: without end */
    uint64_t epoch;    /* n_epochs + 1: it is over */
    uint32_t *done;    /* owned; slices that are done in it, ascending; not all
                          of them */
    uint32_t n_done;
} ps_work_resumed_t;

/* Frees an array of them, each too. Takes NULL. */
void ps_work_resumed_free(ps_work_resumed_t *queues, size_t n);

/* What a command does to a queue. */
typedef struct ps_work {
    uint32_t queue;        /* number within the job, from 1 */
    uint32_t n_slices;     /* QUEUE */
    uint64_t n_epochs;     /* QUEUE; 0: without end */
    uint64_t epoch;        /* at present; QUEUE: it begins with */
    ps_work_hold_t *holds; /* owned; WORK */
    size_t n_holds;
    bool turns; /* WORK: all are done behind it, and the next epoch begins */
} ps_work_t;
#endif
