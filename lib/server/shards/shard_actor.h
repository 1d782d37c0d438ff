/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_actor - the thread of one shard
 *
 * What     Bytes on the shard's own port become events of ps_shard_step, and
 *          its effects become bytes and log lines. It takes everything that
 *          waits before it sleeps.
 * Shape    Letters on the pipe: shard_pipe.h.
 */
#ifndef PS_SERVER_SHARD_ACTOR_H
#define PS_SERVER_SHARD_ACTOR_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/metrics/meter.h"
#include "server/threads/filler.h"
#include "server/shards/shard_news.h"
#include "server/shards/shard_journal.h"
#include "server/shards/rights.h"
#include "storage/audit/audit_log.h"
#include "server/shards/shard_pipe.h"
#include "protocol/shard/shard.h"
#include "transport/sockets/socket.h"

#define PS_ACTOR_TEXT_SIZE 512

/* State that every thread of the node may read at any time. */
typedef struct ps_shard_common {
    atomic_int log_level;               /* ps_log_level_t */
    atomic_uint_fast64_t last_session;  /* the highest that was given out */
    atomic_uint_fast32_t told_job;      /* jobs up to this one are known here, or gone */
    atomic_uint_fast32_t told_table;    /* … and tables */
    atomic_uint_fast64_t slow_after_ms; /* ps_shard_limits_t, of which this is stored last; 0: none
                                           are told yet … */
    atomic_uint_fast64_t copy_bytes_per_s;
    atomic_uint_fast64_t busy_copy_bytes_per_s;
    atomic_uint_fast64_t bytes;      /* that all shards keep */
    atomic_uint_fast64_t pieces;     /* of unfinished messages, beside them */
    atomic_uint_fast64_t tail_bytes; /* beside them, for other copies */
    atomic_uint n_giving;            /* shards that give rows to new copies */
    atomic_bool is_deaf;             /* a shard has ended: it could not wait for messages */
    ps_filler_t *filler;             /* owned by the owner of this */
    ps_turns_t *turns;               /* borrowed; of all threads; may be NULL */
} ps_shard_common_t;

/* What the thread starts with, and what it reports when it is ready. The
 * starter owns it until the thread has ended. */
typedef struct ps_shard_actor_args {
    void *pipe; /* the thread's end; the starter closes it afterwards: what is sent to a
                   thread that has ended waits there */
    ps_shard_args_t core;
    ps_socket_args_t socket;
    ps_journal_args_t journal;     /* dir NULL: there is none */
    ps_shard_found_t found;        /* out: on the disk; the starter frees it */
    char tcp[PS_ENDPOINT_MAX + 1]; /* in: to bind; out: as bound; "" none */
    char ipc[PS_ENDPOINT_MAX + 1]; /* the same; one of the two is set */
    bool with_lane;                /* beside ipc: at its path and ".lane" */
    ps_shard_common_t *common;     /* borrowed for good */
    ps_rights_t *rights;           /* borrowed for good; NULL: everybody may everything */
    ps_audit_log_t *audit;         /* borrowed for good; NULL: there is none */
    ps_meter_t *meter;             /* borrowed for good; NULL: nothing is counted */
    ps_shard_news_t news;          /* reports to the registry */
    psd_status_t ready;            /* out: PSD_OK, or why it stopped at once */
    char text[PS_ACTOR_TEXT_SIZE]; /* out: the reason */
} ps_shard_actor_args_t;

/* The thread: args is a ps_shard_actor_args_t. Sends READY once, when its port is
 * open or when it could not be opened. Returns NULL. */
void *ps_shard_actor(void *args);
#endif
