/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_workers_job - what the registry knows of the workers that pscli runs
 *
 * What     pscli sees at once that a process has ended; the registry would see
 *          it by its silence, or wait for a worker that never comes.
 * Owner    The caller.
 * Threads  one; processes are forked behind ps_workers_job_open, and none
 *          behind the first ps_workers_job_end, which connects
 */
#ifndef PS_CLI_WORKERS_JOB_H
#define PS_CLI_WORKERS_JOB_H

#include "cli/cli.h"

typedef enum ps_worker_fate {
    PS_FATE_UNKNOWN, /* nobody has joined yet, or there is no answer */
    PS_FATE_ABSENT,  /* it never joined the job that others have joined */
    PS_FATE_WORKER,  /* it did, or it is not known which workers are ours */
} ps_worker_fate_t;

/* One that may be there when the workers start. */
typedef struct ps_known_job {
    char name[PS_CLI_JOB_SIZE];
    uint64_t old_id; /* of an ended one of that name; 0: there is none */
    bool is_shared;  /* it ran before: others may have workers in it */
} ps_known_job_t;

typedef struct ps_workers_job {
    ps_cli_t *cli; /* borrowed */
    ps_known_job_t job;
    ps_known_job_t meeting; /* of trainings of psd_train.h, before they join */
} ps_workers_job_t;

/* Before the workers start; leaves no connection behind. Errors: as
 * ps_cli_request. */
PSD_MUST_CHECK psd_status_t ps_workers_job_open(ps_workers_job_t *ret_self,
                                                ps_cli_t *cli,
                                                const char *job,
                                                uint32_t n_workers,
                                                psd_error_t *err);
/* A process that was to be the worker of that rank has failed: nobody waits for
 * it any more, and `pscli why` says the reason. Waits some seconds at most for
 * a psd that does not answer. */
ps_worker_fate_t ps_workers_job_end(const ps_workers_job_t *self,
                                    uint32_t rank,
                                    const char *reason);
#endif
