/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_watch - volatile state of a job, beside the registry
 *
 * What     The clients of a worker that have left, the barriers that opened for
 *          it, when it was lost, the clocks of its questions, and the plan of its
 *          overlay. None of it survives a restart.
 * Owner    The caller; embedded, zeroed at first. Threads: confined to one.
 */
#ifndef PS_SERVER_WATCH_H
#define PS_SERVER_WATCH_H

#include "base/map.h"
#include "protocol/facts/job.h"
#include "server/nodes/overlay_job.h"

#define PS_REASON_MAX 160 /* bytes of the reason why a worker failed */

typedef struct ps_watched {
    uint32_t worker;
    uint32_t joins;                     /* the life that this is about */
    uint64_t session;                   /* that may say where its relay is; 0: not known */
    uint64_t refused_plan;              /* version of the empty plan sent with a refusal; 0: none */
    uint64_t released;                  /* highest barrier that opened for it … */
    uint32_t first;                     /* … and the lowest rank that was there */
    uint64_t left[PS_MEMBERS_MAX / 64]; /* a bit a member */
    uint64_t clock;                     /* that a worker with a relay finished last … */
    uint64_t clock_ms;                  /* … and when, by its heartbeats; boot clock */
    uint64_t lost_ms;                   /* boot clock; 0: not seen lost */
    uint64_t silent_ms;                 /* how long it had been silent then */
    char reason[PS_REASON_MAX + 1];     /* why it failed; "": it did not */
} ps_watched_t;

typedef struct ps_watch {
    uint32_t job;
    uint64_t ended_ms;     /* boot clock; 0: it runs, or its end was not seen */
    ps_watched_t *workers; /* owned */
    size_t n_workers;
    size_t workers_capacity;
    uint64_t clock;           /* greatest of all questions for slices so far */
    ps_overlay_job_t overlay; /* owned */
} ps_watch_t;

typedef struct ps_watches {
    ps_map_t by_job;
} ps_watches_t;

void ps_watches_done(ps_watches_t *self);
/* The job's watch, or NULL when there is none. */
ps_watch_t *ps_watches_find(const ps_watches_t *self, uint32_t job);
/* The same, created when missing. NULL: no memory. */
ps_watch_t *ps_watches_get(ps_watches_t *self, uint32_t job);
/* Forgets jobs for which `keeps` returns false. */
void ps_watches_sweep(ps_watches_t *self, bool (*keeps)(const void *context, uint32_t job),
                      const void *context);

/* A worker's state; NULL for none. */
ps_watched_t *ps_watch_find(const ps_watch_t *self, uint32_t worker);
/* The same for the life `joins`: created when missing, emptied when it
 * belongs to an older life. NULL: no memory. */
ps_watched_t *ps_watch_worker(ps_watch_t *self, uint32_t worker, uint32_t joins);
/* Sets a member's bit; true when all n_members have left. */
bool ps_watched_leave(ps_watched_t *self, uint32_t member, uint32_t n_members);
#endif
