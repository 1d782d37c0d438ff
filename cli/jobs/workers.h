/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_workers - the processes of a job
 *
 * What     Starts them, as children or by a launcher, with their environment, shows their lines with the rank
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
#include "cli/launch/launch.h"
#include "cli/run/cli.h"

#define PS_LINE_SIZE 8192 /* pscli shows a longer line in pieces */

typedef struct ps_worker_line {
    int fd; /* of the pipe; -1: closed */
    size_t n;
    char text[PS_LINE_SIZE]; /* of a line that is not whole yet */
} ps_worker_line_t;

typedef struct ps_local_worker {
    pid_t pid;                        /* also of its process group; 0: a launcher has it */
    bool started;                     /* its program runs, or has run */
    bool ended;                       /* and was waited for */
    bool told;                        /* … and reported … */
    bool settled;                     /* … also to the registry, where it must know */
    int exit;                         /* 128 + N when signal N killed it */
    int signal;                       /* 0: none */
    uint32_t restarts;                /* how often it was started again */
    bool cut;                         /* had not ended when the failure of another ended all */
    ps_worker_line_t lines[2];        /* of stdout, stderr */
    char record[PS_EXEC_RECORD_SIZE]; /* that is not whole yet … */
    size_t record_size;               /* … and its bytes */
} ps_local_worker_t;

/* A process of a launcher: an ssh with one worker, or mpirun or srun with all. */
typedef struct ps_engine {
    pid_t pid;                 /* 0: not started, or ended */
    int in;                    /* to its standard input; -1: closed */
    uint32_t first, n;         /* the ranks that it has */
    bool up;                   /* one of them runs, or has run */
    bool over;                 /* ended, for good */
    unsigned tries;            /* how often it was started without coming up */
    uint64_t first_ms;         /* the first of these times … */
    uint64_t next_ms;          /* … and when to start it next */
    ps_worker_line_t lines[2]; /* of its stdout: records; of its stderr */
    ps_buffer_t text;          /* owned; its stderr before it is up */
    char tag[40];              /* of mpirun: that is not whole yet … */
    size_t tag_size;           /* … and its bytes; 0: none */
    uint32_t tagged;           /* the rank that the last tag named */
} ps_engine_t;

typedef struct ps_workers_args {
    uint32_t n;
    const char *endpoint;
    const char *job;
    int64_t max_delay;
    const char *overlay;       /* borrowed; NULL: as the environment says */
    const char *site;          /* likewise */
    uint32_t n_serving;        /* the first workers, which are nodes themselves; 0: none */
    const char *const *argv;   /* NULL-terminated */
    const ps_launch_t *launch; /* NULL: workers are children of pscli */
    uint32_t restarts;         /* of each worker that fails */
    FILE *to[2];               /* where lines of stdout and stderr go */
    const ps_out_t *out;       /* for reports of how workers ended */
    bool color;
    const ps_workers_job_t *registered; /* which of them have joined */
} ps_workers_args_t;

typedef struct ps_workers {
    const ps_workers_args_t *args;
    ps_local_worker_t *items; /* owned; args->n */
    uint32_t n;               /* started, or a launcher's */
    ps_engine_t *engines;     /* owned; NULL: none */
    uint32_t n_engines;
    char why[PS_LAUNCH_WHY_SIZE]; /* why the launch failed; "": it did not */
    uint64_t over_ms;             /* since when no worker should run, but an engine does; 0: no */
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
/* Until all have ended. Errors: PSD_FAILED a host, or the launcher, does not start workers;
 * PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_workers_wait(ps_workers_t *self, psd_error_t *err);
/* The exit code of the first worker that failed; when signal N ended the
 * run, the greatest one, and at least 128 + N. */
int ps_workers_exit(const ps_workers_t *self);
void ps_workers_done(ps_workers_t *self);
#endif
