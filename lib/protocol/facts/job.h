/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_job - a job's workers, as the registry sends them to the shards
 *
 * What     A plain value. The registry owns the job and sends what changed of
 *          it, with a greater version; a shard gets all of it. A worker's life:
 *
 *              expected --> joining --> running --> finished
 *                  |           |           |
 *                  +-----------+-----------+-----> lost
 *
 *          expected: awaited, holds the others at clock 0; joining: holds every
 *          clock while its start is being decided; running: holds by its clock;
 *          finished and lost: hold nobody. A rank that is finished or lost may
 *          join again.
 */
#ifndef PS_PROTOCOL_JOB_H
#define PS_PROTOCOL_JOB_H

#include "model/tables/table.h"

#define PS_WORKERS_MAX 4096 /* ranks of a job: 0 .. PS_WORKERS_MAX - 1 */
#define PS_MEMBERS_MAX 256  /* clients of a worker */

/* The error text for clients that used lost rows of a table. */
#define PS_ROWS_LOST_TEXT                                                                 \
    "table \"%s\" lost rows with the last node that had them; this client opened before " \
    "that; open a new one"

typedef enum ps_worker_state {
    PS_WORKER_EXPECTED = 1,
    PS_WORKER_JOINING = 2,
    PS_WORKER_RUNNING = 3,
    PS_WORKER_FINISHED = 4,
    PS_WORKER_LOST = 5
} ps_worker_state_t;

typedef struct ps_worker {
    uint32_t worker; /* rank */
    ps_worker_state_t state;
    uint32_t n_members; /* clients of this worker, >= 1 once joined */
    uint32_t joins;     /* how often this rank joined; identifies the rank's current life */
    uint64_t start;     /* clocks that count as finished when it joins */
} ps_worker_t;

typedef struct ps_job {
    uint32_t id; /* > 0, from the registry */
    char name[PS_NAME_MAX + 1];
    int32_t max_delay;                /* 0 BSP, > 0 SSP, < 0 ASP */
    uint64_t version;                 /* grows with every change */
    bool stopped;                     /* by an operator */
    char lost_table[PS_NAME_MAX + 1]; /* its workers were lost with the rows of this table; "": not.
                                         Neither stored nor part of the bytes of a record */
    uint64_t lost_sessions;           /* … and sessions up to this one get that error */
    ps_worker_t *workers;             /* owned; ascending by rank */
    size_t n_workers;
} ps_job_t;

/* Frees workers and zeroes the struct; fits PSD_AUTO. */
void ps_job_done(ps_job_t *self);
/* Deep copy. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_job_copy(const ps_job_t *self, ps_job_t *ret_job, psd_error_t *err);
/* A deep copy of `changed`, with those workers of `known` that it does not name. Both
 * are ascending by rank. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_job_merge(const ps_job_t *known, const ps_job_t *changed,
                                         ps_job_t *ret_job, psd_error_t *err);
/* id, ranks in ascending order, states, members. Errors: PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_job_check(const ps_job_t *self, psd_error_t *err);
/* The worker of that rank, or NULL. Borrowed until the job changes. */
ps_worker_t *ps_job_worker(const ps_job_t *self, uint32_t worker);
/* "expected" …; "?" */
const char *ps_worker_state_name(ps_worker_state_t state);
/* True for expected, joining and running workers, which hold back clocks. */
bool ps_worker_is_live(const ps_worker_t *self);
/* True when none of its workers is live: it stays so. */
bool ps_job_has_ended(const ps_job_t *self);
/* True when no worker has ever joined. */
bool ps_job_is_untouched(const ps_job_t *self);
#endif
