/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_workers_job - whether the registry knows the workers that pscli runs
 *
 * What     pscli sees at once that a process has ended; only the registry knows
 *          whether others wait for it. When a process ends without leaving its
 *          job, pscli reports that to the registry, so that the others need not
 *          wait for a timeout. It does not when the job ran already before the
 *          workers started, since a rank does not tell to which launch it
 *          belongs.
 * Owner    The caller.
 * Threads  one; fork processes after ps_workers_job_open, and none after the
 *          first ps_workers_job_fate, which connects
 */
#ifndef PS_CLI_WORKERS_JOB_H
#define PS_CLI_WORKERS_JOB_H

#include "cli/run/cli.h"

#define PS_JOB_WHY_SIZE 256

typedef enum ps_worker_fate {
    PS_FATE_UNKNOWN, /* no worker has joined yet, or there is no answer */
    PS_FATE_MISSED,  /* it never joined the job, which waits for it */
    PS_FATE_KNOWN,   /* it joined, or the job does not wait for it, or it is
                      * unknown which workers are ours */
} ps_worker_fate_t;

/* A job that may exist when the workers start. */
typedef struct ps_known_job {
    char name[PS_CLI_JOB_SIZE];
    uint64_t old_id;      /* of another job with that name; 0: none */
    uint64_t old_unix_ms; /* when it began: after a restart of psd ids start again at 1 */
    bool runs;            /* it had workers then */
} ps_known_job_t;

typedef struct ps_workers_job {
    ps_cli_t *cli;        /* borrowed */
    bool is_out_of_reach; /* the registry is in a rank of mpirun: nothing is known of the job */
    ps_known_job_t job;
    ps_known_job_t meeting; /* of trainings of psd_train.h, before they join */
    ps_known_job_t nodes;   /* of workers that are nodes themselves; "": they are not */
} ps_workers_job_t;

/* Before the workers start; keeps no connection open. Errors: as
 * ps_cli_request. */
PSD_MUST_CHECK psd_status_t ps_workers_job_open(ps_workers_job_t *ret_self, ps_cli_t *cli,
                                                const char *job, uint32_t n_workers,
                                                psd_error_t *err);
/* The state of the worker of that rank, whose process has failed. If the
 * registry still counts on it, reports the failure with the reason; NULL:
 * does not. Waits at most two seconds for a psd that does not answer. */
ps_worker_fate_t ps_workers_job_fate(const ps_workers_job_t *self, uint32_t rank,
                                     const char *reason);
/* Whether the job has work queues, and all of their slices are done. Else
 * why it may not have finished all work. */
bool ps_workers_job_is_whole(const ps_workers_job_t *self, char ret_why[PS_JOB_WHY_SIZE]);
#endif
