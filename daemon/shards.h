/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shards - all shards of this node, as the control part sees them
 *
 * What     Starts and stops the threads, and asks all of them one thing at a
 *          time: the call goes to every shard, the answers are gathered.
 * Owner    The caller; ps_shards_stop ends the threads.
 * Threads  Confined to one thread (the control part's).
 */
#ifndef PS_DAEMON_SHARDS_H
#define PS_DAEMON_SHARDS_H

#include "daemon/shard_actor.h"
#include "daemon/shard_call.h"

typedef struct ps_shards ps_shards_t;

typedef struct ps_shards_args {
    uint32_t n_shards;
    ps_shard_args_t core;            /* of each; `shard` is set for each */
    ps_socket_args_t socket;         /* of each port */
    char host[PS_ENDPOINT_MAX];      /* that the ports are bound on */
    char advertise[PS_ENDPOINT_MAX]; /* host that clients are told; "" for the
                                        address that is bound */
    char dir[PS_ENDPOINT_MAX + 1];   /* of the ipc sockets; "" for none */
    int log_level;
} ps_shards_args_t;

/* Errors: PSD_NOMEM, PSD_IO naming the endpoint. */
PSD_MUST_CHECK psd_status_t ps_shards_start(const ps_shards_args_t *args,
                                            ps_shards_t **ret_shards,
                                            psd_error_t *err);
/* Ends every thread and waits for it. Takes NULL, nulls *self_p. */
void ps_shards_stop(ps_shards_t **self_p);
uint32_t ps_shards_n(const ps_shards_t *self);
/* Where clients find shard i: tcp and ipc. Borrowed. */
const ps_route_t *ps_shards_route(const ps_shards_t *self, uint32_t i);
/* Lines of this level and above are made from now on. */
void ps_shards_set_log_level(ps_shards_t *self, int level);
/* The highest session number that was given out, before it is. */
void ps_shards_set_last_session(ps_shards_t *self, uint64_t session);

/* The answers of all shards, in their order. */
typedef struct ps_answers {
    ps_shard_call_t **calls; /* owned, each too */
    uint32_t n_calls;
} ps_answers_t;
/* Frees them and zeroes the struct; fits PSD_AUTO. */
void ps_answers_done(ps_answers_t *self);

/*
 * Asks every shard and waits for all answers.
 *
 * ret_answers  out  set on PSD_OK only
 *
 * Errors: PSD_NOMEM before anything was sent; the first shard's failure
 * otherwise; PSD_BUSY a shard does not answer (it will do what was asked).
 */
PSD_MUST_CHECK psd_status_t ps_shards_ask(ps_shards_t *self,
                                          ps_call_kind_t kind,
                                          uint32_t job_id,
                                          ps_answers_t *ret_answers,
                                          psd_error_t *err);
/* Tells every shard, and waits until all have taken it in. Errors as above. */
PSD_MUST_CHECK psd_status_t ps_shards_tell_table(ps_shards_t *self,
                                                 const ps_table_t *table,
                                                 psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_shards_tell_drop(ps_shards_t *self,
                                                uint32_t table,
                                                psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_shards_tell_job(ps_shards_t *self,
                                               const ps_job_t *job,
                                               psd_error_t *err);
#endif
