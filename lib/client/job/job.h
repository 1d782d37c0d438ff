/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/client/job: a client as a worker of a job
 *
 * It is       Joining and leaving, clocks and barriers, work queues,
 *             checkpoints, and going back to one.
 * It uses     requests, connection, and with them the session.
 * It ignores  How rows become slices, and how a request travels: a mark is one
 *             more request.
 * Start at    job.c for the calls and a worker's rank (PSD_WORKER, or the lowest
 *             free one of gather.c), membership.c for news of the job, work.c
 *             and idle.c for work queues.
 */
/*
 * ps_membership - the state of a worker, beside its ps_client_worker_t
 *
 * What     Follows the tables that the job has opened, which the heartbeat's
 *          thread learns of, and finishes clocks while it waits for work.
 * Owner    The client; NULL there: it is no worker.
 */
#ifndef PS_CLIENT_JOB_H
#define PS_CLIENT_JOB_H

#include "client/connection/client_state.h"
#include "client/relay/relay_thread.h"
#include "protocol/facts/work.h"

/* A work queue that was opened. */
typedef struct ps_known_work {
    char name[PS_NAME_MAX + 1];
    uint64_t number; /* of the next question for a slice: it stays the same
                        until there is a slice, so that the node repeats an
                        answer that was lost */
    struct {
        uint64_t epoch;
        uint32_t slice;
    } held[PS_WORK_HOLDS_MAX]; /* assigned to this client, not done */
    size_t n_held;
} ps_known_work_t;

struct ps_membership {
    uint32_t n_workers;
    int32_t max_delay;
    uint64_t version;       /* of the job whose tables are known */
    uint64_t asked_ms;      /* when job_tables was asked last */
    uint64_t n_barriers;    /* passed */
    ps_known_work_t *works; /* owned */
    size_t n_works;
    size_t works_capacity;
    bool idle;                /* waits for a slice and has none: it finishes clocks … */
    uint64_t idle_to;         /* … up to this one */
    uint64_t idle_ms;         /* when the node was asked how far, or may be asked again */
    ps_relay_thread_t *relay; /* owned; NULL: none */
};

/* The arguments of psd_join, completed from the environment. */
typedef struct ps_wish {
    const char *job; /* borrowed */
    uint32_t worker;
    uint32_t n_workers;
    int32_t max_delay;
    bool attach;
    bool any_rank;    /* psd_join takes a free one; worker is 0 */
    bool has_overlay; /* deltas may go from worker to worker, by what its environment says */
} ps_wish_t;

/* Takes what psd_join's arguments leave open from the environment. Errors:
 * PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_wish_resolve(const char *job, int64_t worker, uint32_t n_workers,
                                            int32_t max_delay, ps_wish_t *ret_wish,
                                            psd_error_t *err);

/* What psd_join does, without an overlay: for a client that trains nothing. It waits for
 * PSD_SERVERS, too. Errors: those of psd_join. */
PSD_MUST_CHECK psd_status_t ps_join_bare(psd_client_t *client, ps_wish_t *wish, psd_error_t *err);

/* The call-backs of a client that is a worker; the second, of one that has a relay. */
extern const ps_job_hooks_t ps_membership_hooks;
extern const ps_job_hooks_t ps_membership_relay_hooks;
/* overlay.c: the relay of a client that joins, as its environment asks for it; sets has_overlay of
 * the wish. ret_relay: NULL: it asks for none, or goes on without. Errors: PSD_INVALID a setting
 * that this build, or this job, cannot follow; those of ps_relay_thread_open. */
PSD_MUST_CHECK psd_status_t ps_overlay_open(const psd_client_t *client, ps_wish_t *wish,
                                            ps_relay_thread_t **ret_relay, psd_error_t *err);
/* Ends the relay, which passes on what it has. Takes a client that has none. */
void ps_overlay_end(psd_client_t *client);
/* Looks at what the heartbeat has received. Stops the heartbeat when the client
 * is broken: so the registry declares the worker lost, and others do not wait
 * for it forever. */
void ps_membership_look(psd_client_t *client);
/* idle.c: the worker waits for a slice and has none. */
void ps_idle_begin(psd_client_t *client);
void ps_idle_end(psd_client_t *client);
/* Finishes a clock, or asks how far. */
void ps_idle_look(psd_client_t *client);
/* The answer to work_idle. */
void ps_idle_learn(psd_client_t *client, const ps_doc_t *reply);
/* Takes "tables" from a reply: learns their routes and sends marks to those
 * that are new. Errors: PSD_PROTO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_membership_learn(psd_client_t *client, const ps_doc_t *reply,
                                                psd_error_t *err);
/* As psd_fail; the job ends if no other worker is in it, and a worker that
 * joins later starts a new one. */
PSD_MUST_CHECK psd_status_t ps_membership_give_up(psd_client_t *client, const char *reason,
                                                  uint32_t timeout_ms, psd_error_t *err);
/* The client is no worker any more. Takes clients that are none. */
void ps_membership_end(psd_client_t *client);
#endif
