/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_beat - a thread that sends a worker's heartbeats to the registry
 *
 * What     Sends `heartbeat` every heartbeat_ms over its own connection, or as
 *          seldom as the last answer says, whatever the worker is busy with, and
 *          learns from the answers whether the job has changed. Goes to another
 *          node when the registry is there.
 * Shape    One for each worker, shared by its members' clients.
 * Owner    Counted; the last ps_beat_release stops the thread and waits for
 *          its end.
 * Threads  any; clock, version and state are atomics, and no call waits. News of
 *          version or state make the descriptor of each member readable.
 */
#ifndef PS_CLIENT_HEARTBEAT_H
#define PS_CLIENT_HEARTBEAT_H

#include "client/connection/desk.h"
#include "protocol/facts/job.h"
#include "protocol/session/finder.h"
#include "transport/keys/key_watch.h"

typedef struct ps_beat ps_beat_t;

typedef struct ps_beat_args {
    const ps_finder_t *finder;       /* of the registry; copied */
    const ps_key_pair_t *keys;       /* copied; NULL: none */
    bool over_tcp;                   /* also where psd has a unix socket for this user */
    const ps_key_watch_t *key_watch; /* of their file; copied */
    uint64_t session;
    const char *job;
    uint32_t job_id;
    uint32_t worker;
    uint32_t joins;
    uint64_t heartbeat_ms;
    ps_desk_t *desk; /* of the worker's relay, kept: heartbeats say where it is and bring plans;
                        NULL: there is none */
} ps_beat_args_t;

/* Starts the thread; the caller is the first holder. Errors: PSD_NOMEM,
 * PSD_IO, PSD_INVALID endpoint. */
PSD_MUST_CHECK psd_status_t ps_beat_start(const ps_beat_args_t *args, ps_beat_t **ret_beat,
                                          psd_error_t *err);
ps_beat_t *ps_beat_keep(ps_beat_t *self);
/* Takes NULL, nulls *self_p. */
void ps_beat_release(ps_beat_t **self_p);

/* Stops the heartbeats, because a member of the worker cannot go on. From any
 * thread, any number of times. */
void ps_beat_stop(ps_beat_t *self);
/* Stops those of all workers of this process, which is about to exit: nobody waits
 * for workers that have not left. */
void ps_beat_stop_all(void);

/* A member has finished `clock` clocks; member < PS_MEMBERS_MAX. The heartbeat
 * reports the worker's clock: the least of its members' clocks. */
void ps_beat_set_clock(ps_beat_t *self, uint32_t member, uint64_t clock);
/* A descriptor that is readable when there is news (ps_beat_take_news), the beat's
 * own; one for each member. -1: there is none to be had. */
int ps_beat_watch(ps_beat_t *self, uint32_t member);
/* Call before looking at version and state: the member's descriptor waits for the
 * next news then. *seen: of the news before; begins at 0. */
void ps_beat_take_news(const ps_beat_t *self, uint32_t member, unsigned *seen);
/* The job's version as last received; 0: none yet. */
uint64_t ps_beat_version(const ps_beat_t *self);
/* PSD_OK while the worker runs; PSD_JOB_STOPPED, PSD_WORKER_LOST;
 * PSD_ROWS_LOST with its text, for as long as the beat is held. */
psd_status_t ps_beat_state(const ps_beat_t *self, const char **ret_text);
#endif
