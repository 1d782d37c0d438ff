/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_job - which workers of a job pass deltas on, and the plan that they go by
 *
 * What     Workers say with their heartbeats where their relays listen. Whenever one comes or
 *          goes, there is a new plan, with a greater version: a fixed tree; or, where all say
 *          PSD_OVERLAY=auto, what the pilot makes of their reports; or what the matcher plays,
 *          with pairs and queue. Where workers name sites, one of each sends out of its site, and
 *          auto is the fixed tree. Who comes with other rules than those of the plan is in
 *          none. Nor is a worker with further clients: only its first client lends. None of it is
 *          stored: another registry member makes a plan of its own, from the next heartbeats, and
 *          its version is greater, because it begins with the wall clock.
 * Owner    The job's watch; zeroed at first. Threads: confined to one.
 */
#ifndef PS_SERVER_OVERLAY_JOB_H
#define PS_SERVER_OVERLAY_JOB_H

#include "protocol/facts/job.h"
#include "protocol/overlay/overlay_matcher.h"
#include "protocol/overlay/overlay_pilot.h"
#include "protocol/relay/relay_doc.h"
#include "protocol/relay/report.h"
#include "protocol/relay/tally.h"

typedef struct ps_overlay_job {
    ps_relay_facts_t facts;   /* owned; its members are all who said where they listen */
    size_t capacity;          /* of members */
    ps_overlay_rules_t rules; /* of all members; of tree and auto, of the first one */
    bool is_auto; /* all of them leave it to psd (PSD_OVERLAY=auto): the pilot decides */
    ps_overlay_pilot_t pilot;     /* owned */
    ps_overlay_matcher_t matcher; /* owned; of pairs and queue */
    ps_relay_tally_t tally;       /* owned; what people see of their reports */
} ps_overlay_job_t;

/* What a heartbeat says. */
typedef struct ps_overlay_beat {
    const char *relay; /* where it listens */
    uint64_t clock;    /* that it has finished */
    uint64_t known;    /* the newest version that the worker has; one from before this registry
                          member began, by a clock that is ahead, makes the next one greater.
                          Beyond an hour it is none */
    const ps_overlay_report_t *report; /* NULL: it is of an older build, measures nothing, and
                                          wants a tree */
    uint64_t unix_ms;                  /* the wall clock */
    uint64_t now_us;                   /* any clock */
    const ps_id_t *key;                /* random, for the job's first plan */
} ps_overlay_beat_t;

/* Do the members take turns: pairs, or queue? */
static inline bool ps_overlay_job_has_turns(const ps_overlay_job_t *self)
{
    return self->facts.n_members > 0 && ps_policy_has_turns(self->rules.policy);
}

void ps_overlay_job_done(ps_overlay_job_t *self);
/*
 * A worker's heartbeat. Beyond PS_OVERLAY_WORKERS_MAX workers are not in the plan.
 *
 * Errors: PSD_INVALID an address that none can be; PSD_JOB_MISMATCH rules that are not those of
 * the plan's workers, which go on; PSD_NOMEM: nobody is in the plan until the next heartbeat.
 */
PSD_MUST_CHECK psd_status_t ps_overlay_job_beat(ps_overlay_job_t *self, const ps_job_t *job,
                                                const ps_worker_t *worker,
                                                const ps_overlay_beat_t *beat, psd_error_t *err);
/* The plan as workers get it: in a star nobody is in it. false: no memory. */
PSD_MUST_CHECK bool ps_overlay_job_to_doc(const ps_overlay_job_t *self, ps_doc_t *doc);
/* Where a delta is, by the plan. */
typedef struct ps_overlay_stay {
    uint32_t relay;     /* of that worker */
    uint32_t waits_for; /* a worker that sends through it and is not ready; PS_OVERLAY_NODES: none,
                           it goes on to them */
} ps_overlay_stay_t;

/* Which relay has the delta of a worker for the clock before `clock`, in that colour: the first
 * one on its way that waits for somebody. is_ready: whether a worker has finished that clock.
 * false: it goes to the nodes without a relay. */
bool ps_overlay_job_stay(const ps_overlay_job_t *self, uint32_t worker, uint32_t colour,
                         uint64_t clock, bool (*is_ready)(const void *context, uint32_t worker),
                         const void *context, ps_overlay_stay_t *ret_stay);
/* overlay_view.c: "overlay" for people: the plan without its key, and what workers have reported.
 * now_us: of the clock that heartbeats came by. false: no memory. */
PSD_MUST_CHECK bool ps_overlay_job_view(const ps_overlay_job_t *self, uint64_t now_us,
                                        ps_doc_t *doc);
#endif
