/* SPDX-License-Identifier: Apache-2.0 */
/* A training of a table of ROWS numbers, each of which is the sum of one slice
 * and epoch, for the tests of trainings with a work queue. False, and a text to
 * stderr: something is not as it should be. */
#ifndef PS_TESTS_QUEUE_RUN_H
#define PS_TESTS_QUEUE_RUN_H

#include <psd_train.h>
#include <stdatomic.h>
#include <sys/types.h>

#define SLICES 24
#define EPOCHS 2
#define ROWS (SLICES * EPOCHS)
#define CALL_MS 60000

extern const char *queue_endpoint; /* of all that follow */

/* A worker, and where it reports slices that were counted. */
typedef struct queue_run {
    const char *job;
    const char *rank;
    const char *workers;
    const char *max_delay;
    const char *queue; /* NULL: none */
    const char *slices;
    const char *epochs;
    bool in_clock;         /* the next slice is asked for in a slice's clock */
    unsigned dies_at;      /* with its n-th slice, from 1; 0: it does not */
    bool dies_behind_push; /* else in a step, with nothing of it pushed */
    int reports;           /* rows, as uint32_t */
    int ready;             /* its first clock, as uint64_t */
    int go;                /* it reads a byte before it ends */
    atomic_bool dies;      /* in the next step */
    atomic_bool fails;     /* the next step does */
} queue_run_t;

/* Dies, fails, or adds 1, in each of 2 trainers, to the row that the block is.
 */
psd_status_t queue_step(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err);
bool queue_set_options(const queue_run_t *run, psd_train_t *train, psd_error_t *err);
/* Has begun its configuration; waits until its rank is free. NULL: it cannot.
 */
psd_train_t *queue_join(queue_run_t *run, psd_error_t *err);
bool queue_configure(psd_train_t *train, const char *table, psd_error_t *err);
/* The same, and begins with pulls. */
bool queue_begin(psd_train_t *train, const char *table, psd_error_t *err);
bool queue_push(psd_train_t *train, uint64_t row, psd_error_t *err);
/* The row of the next slice; ROWS: there is none. */
bool queue_next(psd_train_t *train, uint32_t *ret_row, psd_error_t *err);
/* The answer to job_inspect holds the part. */
bool queue_is_told(psd_client_t *client, const char *job, const char *part, psd_error_t *err);
bool queue_pull_all(psd_client_t *client, const char *table_name, int64_t ret_values[ROWS],
                    psd_error_t *err);
bool queue_ended_with(pid_t pid, int exit_code, int signal_number);
#endif
