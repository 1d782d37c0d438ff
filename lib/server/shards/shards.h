/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server/shards: the shell of each shard
 *
 * It is       The thread of a shard with its port, its journal and its links to
 *             other shards; its part of a checkpoint or a restore; questions of the
 *             control part to the shards, and their reports.
 * It uses     threads, metrics, config; lib/protocol (shard, core, agent),
 *             lib/storage/log, lib/transport, lib/wire/messages, lib/base.
 * It ignores  What an event does (lib/protocol/shard), and who asks.
 * Start at    shard_actor.c for one shard, shards.h for all, checkpoint_write.c and
 *             checkpoint_read.c for a checkpoint.
 */
/*
 * ps_shards - all shards of this node, as the control part sees them
 *
 * What     Starts and stops the threads, and asks them: a question goes to
 *          every shard (or to one) without waiting. When a pipe has something,
 *          ps_shards_take gathers it. The caller then takes finished questions
 *          and reports one by one.
 *
 *              ps_shards_send_x -> serial
 *              a handle is readable, or a tick: ps_shards_take
 *              while (ps_shards_next_done) …; while (ps_shards_next_report) …
 *
 * Order    A shard answers its questions in the order of sending.
 * Owner    The caller; ps_shards_stop ends the threads.
 * Threads  Confined to one thread (the control part's).
 */
#ifndef PS_SERVER_SHARDS_H
#define PS_SERVER_SHARDS_H

#include "server/metrics/metrics.h"
#include "server/shards/shard_actor.h"
#include "server/shards/shard_call.h"
#include "protocol/agent/agent.h"

typedef struct ps_shards ps_shards_t;

typedef struct ps_shards_args {
    uint32_t n_shards;
    ps_shard_args_t core;            /* of each; `shard` is set for each */
    ps_socket_args_t socket;         /* of each port; with a context, also for the pipes */
    char host[PS_ENDPOINT_MAX];      /* that the ports are bound on; "" for ipc
                                        alone */
    uint16_t first_port;             /* shard 0's, and so on; 0: the kernel chooses
                                        them */
    char advertise[PS_ENDPOINT_MAX]; /* host that clients get; "" for the
                                      * address that is bound */
    char dir[PS_ENDPOINT_MAX + 1];   /* of the ipc sockets; "" for none */
    const char *log_dir;             /* of the journals, log-0, log-1, …; NULL:
                                        nothing is kept on disk */
    const char *node;                /* its name; with log_dir */
    uint64_t segment_bytes;          /* with log_dir */
    int log_level;
    const char *public_key; /* that clients find the tcp ports by; NULL: none */
    ps_rights_t *rights;    /* borrowed until ps_shards_stop; NULL: everybody may everything */
    ps_audit_log_t *audit;  /* borrowed until ps_shards_stop; NULL: there is none */
    ps_turns_t *turns;      /* of the threads; borrowed until ps_shards_stop; may be
                               NULL */
    ps_metrics_t *metrics;  /* where they count; likewise */
} ps_shards_args_t;

/* Errors: PSD_NOMEM, PSD_IO naming the endpoint. */
PSD_MUST_CHECK psd_status_t ps_shards_start(const ps_shards_args_t *args, ps_shards_t **ret_shards,
                                            psd_error_t *err);
/* Ends every thread and waits for it. Removes what this start made on disk
 * when the registry does not know of this start. Takes NULL, nulls *self_p. */
void ps_shards_stop(ps_shards_t **self_p);
uint32_t ps_shards_n(const ps_shards_t *self);
/* One of the threads has ended, because it could not wait for messages any more. */
bool ps_shards_are_deaf(const ps_shards_t *self);
/* Every shard has read what an earlier life of the node wrote, and the
 * registry knew of that life. */
bool ps_shards_kept(const ps_shards_t *self);
/* The registry knows of this start; no table was sent before. When this
 * cannot be written to disk (it logs that), the next start does not count as
 * kept. */
void ps_shards_joined(ps_shards_t *self);
/* Tables that shard i has read from its disk at the start. Borrowed. */
const uint32_t *ps_shards_recovered(const ps_shards_t *self, uint32_t i, size_t *ret_n);
/* The damaged files of shard i. Borrowed. */
const ps_damage_t *ps_shards_damage(const ps_shards_t *self, uint32_t i);
/* Where clients find shard i: tcp and ipc. Borrowed. */
const ps_route_t *ps_shards_route(const ps_shards_t *self, uint32_t i);
/* Bytes that all shards keep now: rows, held requests, pieces of others,
 * records for copies, and roughly what is on its way to new copies. */
uint64_t ps_shards_bytes(const ps_shards_t *self);
/* Lines of this level and above are made from now on. */
void ps_shards_set_log_level(ps_shards_t *self, int level);
/* The highest session number; call it before giving that number out. */
void ps_shards_set_last_session(ps_shards_t *self, uint64_t session);
/* What the cluster has set counts, in place of what the node's file says; without a setting that
 * counts again. */
void ps_shards_set_settings(ps_shards_t *self, const ps_setting_t *settings, size_t n);
/* Jobs and tables up to these numbers that the shards do not know are gone. */
void ps_shards_set_told(ps_shards_t *self, uint32_t job, uint32_t table);

/* ---- asking ---- */

#define PS_SHARDS_ASKED_MAX 65536   /* questions that are not done */
#define PS_SHARDS_REPORTS_MAX 65536 /* that were not taken yet */

/*
 * Each sends one question and returns at once; what does not fit into the
 * pipes yet goes in order when answers come.
 *
 * ret_serial  out  names the question in ps_shards_done_t; > 0
 *
 * Errors: PSD_NOMEM, and PSD_BUSY for PS_SHARDS_ASKED_MAX; nothing was sent.
 */
PSD_MUST_CHECK psd_status_t ps_shards_send_ask(ps_shards_t *self, ps_call_kind_t kind,
                                               uint32_t job_id, uint64_t *ret_serial,
                                               psd_error_t *err);
/* The same, about no job, with words for every shard (PS_CALL_CHECKPOINT). */
PSD_MUST_CHECK psd_status_t ps_shards_send_words(ps_shards_t *self, ps_bytes_t words,
                                                 uint64_t *ret_serial, psd_error_t *err);
/* With the copies of all partitions when the table has them; all is copied. */
PSD_MUST_CHECK psd_status_t ps_shards_send_table(ps_shards_t *self, const ps_table_t *table,
                                                 uint64_t *ret_serial, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_shards_send_drop(ps_shards_t *self, uint32_t table,
                                                uint64_t *ret_serial, psd_error_t *err);
/* The registry does not know the table: its rows stay, nobody gets them. */
PSD_MUST_CHECK psd_status_t ps_shards_send_aside(ps_shards_t *self, uint32_t table,
                                                 uint64_t *ret_serial, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_shards_send_job(ps_shards_t *self, const ps_job_t *job,
                                               uint64_t *ret_serial, psd_error_t *err);
/* What the copy has comes as a report (PS_REPORT_POSITION), about when the
 * question is done; never, when there is no copy here. Also PSD_INVALID: no
 * such shard. */
PSD_MUST_CHECK psd_status_t ps_shards_send_fence(ps_shards_t *self, const ps_copy_fence_t *fence,
                                                 uint64_t *ret_serial, psd_error_t *err);

/* A question that all shards have answered, or that timed out. */
typedef struct ps_shards_done {
    uint64_t serial;
    ps_call_kind_t kind;
    psd_status_t status;               /* the first failure; PSD_BUSY: a shard does not
                                          answer (it will do what was asked) */
    char text[PS_CALL_TEXT_SIZE + 32]; /* why, when status is not OK */
    ps_answers_t answers;              /* owned; of the shards that have answered */
} ps_shards_done_t;
/* Frees and zeroes; fits PSD_AUTO. */
void ps_shards_done_done(ps_shards_done_t *self);

/* The ZeroMQ socket of shard i's pipe, for zloop_poller and zmq_poll: readable
 * when there is something to take. Borrowed; never read by others. */
void *ps_shards_handle(const ps_shards_t *self, uint32_t i);
/* Takes in everything that the shards have sent, and ends questions that
 * timed out (20 s; so call it now and then even when nothing is readable).
 * Never blocks. */
void ps_shards_take(ps_shards_t *self, uint64_t now_ms);
/* The next question that is done, in the order in which they ended. The caller
 * owns *ret_done. false: there is none. */
PSD_MUST_CHECK bool ps_shards_next_done(ps_shards_t *self, ps_shards_done_t *ret_done);
/* The next report of a shard, to the registry. false: there is none. Drops
 * more than PS_SHARDS_REPORTS_MAX: shards repeat a report while it holds. */
PSD_MUST_CHECK bool ps_shards_next_report(ps_shards_t *self, ps_report_t *ret_report);
#endif
