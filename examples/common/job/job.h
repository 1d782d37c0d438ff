/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room examples/common/job: a worker beside the others
 *
 * It is       Connection and rank, tables, sums over all workers, a model in a
 *             table, lines of progress.
 * It uses     samples, program, the public headers.
 * It ignores  What a program trains.
 * Start at    job.h.
 */
/*
 * ex_job - a worker's side of the server: connection, rank, tables, meeting
 *
 * What     Each process is one worker of the job: rank $PSD_WORKER of
 *          $PSD_WORKERS, as pscli run sets them (or as launch.h finds them), else
 *          0 of 1. Every clock of a
 *          worker sends a mark to every table that it has opened, so open a
 *          table that you need only at the end at the end. ex_job_prepare makes
 *          a table without opening it.
 * Owner    the caller; ex_job_close
 * Threads  one
 */
#ifndef EX_JOB_H
#define EX_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../program/options.h"
#include "psd.h"

typedef struct ex_job_options {
    int32_t max_delay;   /* PSD_DELAY_ENV: as the environment says */
    uint32_t replicas;   /* copies of each partition, 1 .. 5 */
    uint32_t ack;        /* of pushes: memory, replica, disk; or not chosen */
    uint32_t timeout_ms; /* of every wait */
} ex_job_options_t;

/* Room for a table's name. */
#define EX_NAME_SIZE 64

#define EX_JOB_DEFAULTS                                                                      \
    {                                                                                        \
        .max_delay = PSD_DELAY_ENV, .replicas = 1, .ack = EX_NOT_CHOSEN, .timeout_ms = 30000 \
    }
/* Rows in a table of options; they lie in `member` of `type`. Those without
 * the delay are for programs that need BSP. */
#define EX_BSP_OPTIONS(type, member)                                                              \
    PS_OPT_NUMBER("replicas", "N", PS_OPT_U32, offsetof(type, member.replicas), 1, 5,             \
                  "copies of the tables on N nodes, 1 .. 5 (default 1): the job continues, with " \
                  "the same bits under BSP, when one of the nodes is lost"),                      \
        PS_OPT_ROW("ack", "memory|replica|disk", PS_OPT_CHOICE, offsetof(type, member.ack),       \
                   "what a push waits for (default replica with copies, else memory)"),           \
        PS_OPT_NUMBER("timeout", "SECONDS", PS_OPT_DURATION, offsetof(type, member.timeout_ms),   \
                      1000, 86400000, "timeout of every wait (default 30)")
#define EX_JOB_OPTIONS(type, member)                                                           \
    {.kind = PS_OPT_HEADING, .help = "Job:"},                                                  \
        PS_OPT_NUMBER("max-delay", "N", PS_OPT_I32, offsetof(type, member.max_delay), -1, 1e6, \
                      "0 BSP, N SSP, -1 ASP (default $PSD_MAX_DELAY, else 0)"),                \
        EX_BSP_OPTIONS(type, member)

typedef struct ex_job {
    const ex_job_options_t *options; /* borrowed until the job is closed */
    psd_client_t *client;
    psd_error_t *err;             /* the reason, if it is closed before it has left */
    bool is_member;               /* it has joined, and not left */
    uint32_t worker;              /* rank */
    uint32_t n_workers;           /* of the job */
    int32_t max_delay;            /* of the job: 0 BSP, > 0 SSP, < 0 ASP */
    char name[EX_NAME_SIZE];      /* of the job */
    char old_table[EX_NAME_SIZE]; /* that worker 0 has found; "": none */
} ex_job_t;

/* Which worker of how many this process is. Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t ex_job_rank(uint32_t *ret_worker, uint32_t *ret_n_workers,
                                        psd_error_t *err);
/* Connects and joins. err is borrowed until the job is closed. Errors: those of
 * psd_connect and psd_join. */
PSD_MUST_CHECK psd_status_t ex_job_open(ex_job_t *self, const ex_job_options_t *options,
                                        psd_error_t *err);
/*
 * Opens a table, or creates it when it does not exist, with the options'
 * replicas and ack.
 *
 * pairs  in  key, value, key, value, …, NULL: as psd_spec_set takes them
 *
 * Errors: those of psd_spec_set and psd_table_ensure.
 */
PSD_MUST_CHECK psd_status_t ex_job_ensure(ex_job_t *self, const char *name,
                                          const char *const *pairs, psd_table_t **ret_table,
                                          psd_error_t *err);
/* Worker 0 checks whether a table exists, before a barrier after which all
 * may create it; the others do not check. */
PSD_MUST_CHECK psd_status_t ex_job_look_for(ex_job_t *self, const char *name, psd_error_t *err);
/* If it existed, says that the training continues from it, which may be unintended. */
void ex_job_tell_old(const ex_job_t *self);
/* The name of a table that belongs to the job, not to the model:
 * TABLE.JOB-WHAT, which no model's is. Each job that trains the same table at
 * the same time has its own, and a job that runs again finds what it left. When
 * TABLE has a dot, or the name is too long, it is cut and followed by a hash of
 * both names.
 *
 * what  in  20 characters at most */
void ex_job_name_scratch(const ex_job_t *self, const char *table, const char *what,
                         char ret_name[EX_NAME_SIZE]);
/* Creates an empty table for this run, replacing what an earlier run left,
 * without opening it. For one worker; the others wait at a barrier. */
PSD_MUST_CHECK psd_status_t ex_job_prepare(ex_job_t *self, const char *name,
                                           const char *const *pairs, psd_error_t *err);
/* Drops a table, if it exists. */
PSD_MUST_CHECK psd_status_t ex_job_drop(ex_job_t *self, const char *name, psd_error_t *err);
/* Whether this worker does what one of them must do, such as to save the model: worker 0, or the
 * next one that met the others last, where worker 0 was lost. The same for all after each meeting.
 */
bool ex_job_is_first(const ex_job_t *self);
/* Waits until all workers are here. */
PSD_MUST_CHECK psd_status_t ex_job_barrier(ex_job_t *self, psd_error_t *err);
/* Finishes a clock and waits until all workers are here: every later pull
 * sees what they have pushed before. */
PSD_MUST_CHECK psd_status_t ex_job_meet(ex_job_t *self, psd_error_t *err);
/*
 * All workers call it, each with its own numbers; all get the sum or the
 * maximum of each. Maxima are at least 0. The first worker creates a table for it, and
 * drops it again.
 *
 * name     in      of the table
 * updater  in      "add" or "max"
 * values   in/out  n of them
 */
PSD_MUST_CHECK psd_status_t ex_job_reduce(ex_job_t *self, const char *name, const char *updater,
                                          double *values, size_t n, psd_error_t *err);
/* Waits for a ticket, if it is not 0, and makes it 0. */
PSD_MUST_CHECK psd_status_t ex_job_wait(const ex_job_t *self, psd_ticket_t *ticket,
                                        psd_error_t *err);
/* For a worker that cannot start: leaves, so that its rank is free at once
 * for the next try. */
void ex_job_give_up(ex_job_t *self);
/* Leaves the job when all pushes are acknowledged; the first worker reports how many
 * others were lost. The client stays open. */
PSD_MUST_CHECK psd_status_t ex_job_leave(ex_job_t *self, psd_error_t *err);
/* Disconnects, whatever has happened. A worker that has not left counts as
 * failed: no worker waits for it, and `pscli why` shows its error. Close the
 * tables first. */
void ex_job_close(ex_job_t *self);
#endif
