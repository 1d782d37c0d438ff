/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_workers - the local processes of a job
 *
 * What     Starts them with their environment, shows their lines with the rank
 *          in front, reports every failure at once, forwards signals, and waits
 *          for all. A worker that fails before it has joined the job ends the
 *          others if one of them has joined.
 * Owner    The caller (ps_workers_done kills what still runs).
 */
#ifndef PS_CLI_WORKERS_H
#define PS_CLI_WORKERS_H

#include <signal.h>
#include <sys/types.h>

#include "cli/jobs/workers_job.h"
#include "cli/run/cli.h"

#define PS_LINE_SIZE 8192 /* pscli shows a longer line in pieces */

typedef struct ps_worker_line {
    int fd; /* of the pipe; -1: closed */
    size_t n;
    char text[PS_LINE_SIZE]; /* of a line that is not whole yet */
} ps_worker_line_t;

typedef struct ps_local_worker {
    pid_t pid;                 /* also of its process group */
    bool ended;                /* and was waited for */
    bool told;                 /* … and reported … */
    bool settled;              /* … also to the registry, where it must know */
    int exit;                  /* 128 + N when signal N killed it */
    int signal;                /* 0: none */
    bool cut;                  /* had not ended when the failure of another ended all */
    ps_worker_line_t lines[2]; /* of stdout, stderr */
} ps_local_worker_t;

typedef struct ps_workers_args {
    uint32_t n;
    const char *endpoint;
    const char *job;
    int64_t max_delay;
    const char *const *argv; /* NULL-terminated */
    FILE *to[2];             /* where lines of stdout and stderr go */
    const ps_out_t *out;     /* for reports of how workers ended */
    bool color;
    const ps_workers_job_t *registered; /* which of them have joined */
} ps_workers_args_t;

typedef struct ps_workers {
    const ps_workers_args_t *args;
    ps_local_worker_t *items; /* owned; args->n */
    uint32_t n;               /* started */
    sigset_t old_mask;
    int signals;          /* a signalfd; -1: none */
    int n_asked;          /* signals to end that came */
    int asked;            /* the first of them; 0: none */
    int first_exit;       /* that was not 0; 0: none yet */
    uint64_t ask_ms;      /* when to ask the registry again … */
    uint64_t ask_wait_ms; /* … and the interval until then */
    uint64_t cut_ms;      /* when the failure of one ended all; 0: not yet */
} ps_workers_t;

/* Errors: PSD_IO, PSD_NOMEM; those started are killed by ps_workers_done. */
PSD_MUST_CHECK psd_status_t ps_workers_start(ps_workers_t *ret_workers,
                                             const ps_workers_args_t *args, psd_error_t *err);
/* Until all have ended. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_workers_wait(ps_workers_t *self, psd_error_t *err);
/* The exit code of the first worker that failed; when signal N ended the
 * run, the greatest one, and at least 128 + N. */
int ps_workers_exit(const ps_workers_t *self);
void ps_workers_done(ps_workers_t *self);
#endif
