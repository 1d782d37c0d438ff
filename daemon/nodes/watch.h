/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_watch - volatile state of a job, beside the registry
 *
 * What     The requests that wait at its barrier or for a slice of its input,
 *          the clients of a worker that have left, and when a worker was lost.
 *          None of it survives a restart: waiting clients ask again.
 * Shape    A barrier opens when every live worker is at it. A worker is at it
 *          when one of its clients waits there; numbers only tell a repeated
 *          request from a new one.
 * Owner    The caller; embedded, zeroed at first. Threads: confined to one.
 */
#ifndef PS_DAEMON_WATCH_H
#define PS_DAEMON_WATCH_H

#include "base/map.h"
#include "protocol/facts/job.h"
#include "protocol/registry/registry_work.h"
#include "wire/messages/doc.h"

/* One request that waits at a barrier. */
typedef struct ps_waiter {
    uint64_t conn;
    uint64_t session;
    uint64_t id; /* of the request */
    uint32_t worker;
    uint64_t number; /* of the barrier, as the worker counts */
    uint64_t since_ms;
    uint64_t deadline_ms;
} ps_waiter_t;

/* One question about slices of a work queue that has no answer yet. */
typedef struct ps_slice_ask {
    uint64_t conn;
    uint64_t session;
    uint64_t id;     /* of the request */
    ps_doc_t *reply; /* owned; what it is answered with when all goes well */
    char queue[PS_NAME_MAX + 1];
    ps_work_ask_t is; /* queue: NULL here */
    uint64_t clock;   /* clocks that the client has finished */
    bool done;        /* it says that a slice is done; else it wants one */
    uint64_t since_ms;
    uint64_t deadline_ms;
    bool planned; /* the answer once the command is stored */
    ps_work_answer_t answer;
} ps_slice_ask_t;

#define PS_REASON_MAX 160 /* bytes of the reason why a worker failed */

typedef struct ps_watched {
    uint32_t worker;
    uint32_t joins;                     /* the life that this is about */
    uint64_t released;                  /* highest barrier that opened for it */
    uint64_t left[PS_MEMBERS_MAX / 64]; /* a bit a member */
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
    ps_waiter_t *waiters; /* owned; in order of coming */
    size_t n_waiters;
    size_t waiters_capacity;
    uint64_t clock;       /* greatest of all questions so far */
    ps_slice_ask_t *asks; /* owned; in order of coming */
    size_t n_asks;
    size_t asks_capacity;
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

/* Adds a waiter. One that waits already under the same session, worker and
 * number gets the newest conn and id instead. false: no memory. */
PSD_MUST_CHECK bool ps_watch_wait(ps_watch_t *self, const ps_waiter_t *waiter);
void ps_watch_remove(ps_watch_t *self, size_t i);
bool ps_watch_is_waiting(const ps_watch_t *self, uint32_t worker);
/* Every live worker is at the barrier, and at least one is live. */
bool ps_watch_is_complete(const ps_watch_t *self, const ps_job_t *job);

/* The question of that session and id; NULL: it does not wait. */
ps_slice_ask_t *ps_watch_ask(const ps_watch_t *self, uint64_t session, uint64_t id);
/* Adds a question and takes its reply. false: no memory. */
PSD_MUST_CHECK bool ps_watch_add_ask(ps_watch_t *self, const ps_slice_ask_t *ask);
/* Forgets a question and frees its reply. */
void ps_watch_remove_ask(ps_watch_t *self, size_t i);
/* The earliest deadline of the waiters and questions of all jobs; UINT64_MAX
 * for none. */
uint64_t ps_watches_deadline(const ps_watches_t *self);
#endif
