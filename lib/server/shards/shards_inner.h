/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the shards' interface: the threads, and their questions. */
#ifndef PS_SERVER_SHARDS_INNER_H
#define PS_SERVER_SHARDS_INNER_H

#include "server/shards/shards.h"
#include "storage/log/fresh_note.h"

typedef struct ps_shard_thread {
    void *pipe; /* the control part's end; owned */
    pthread_t thread;
    bool runs; /* the thread, until it is joined */
    ps_shard_actor_args_t args;
    ps_route_t route;
    char *log_dir; /* owned; NULL: there is none */
} ps_shard_thread_t;

/* A question. It stays until every call has come back, for the calls borrow
 * from it. */
typedef struct ps_asked {
    uint64_t serial;
    ps_call_kind_t kind;
    uint32_t first;             /* shard that is asked, */
    uint32_t n;                 /* and n in all, ascending */
    ps_shard_call_t **calls;    /* n; owned while they are here, and also while
                                 * they are at their shards, which never free
                                 * them */
    bool *is_back;              /* n; owned */
    ps_shard_answer_t *answers; /* owned; n, empty: for its end */
    uint32_t n_back;            /* of the calls */
    uint64_t sent_ms;           /* when it was sent; UINT64_MAX: it waits for room */
    bool is_ended;              /* it timed out */
    ps_copies_t *copies;        /* owned; of TABLE; NULL: none */
} ps_asked_t;

struct ps_shards {
    ps_shard_thread_t *threads; /* owned */
    uint32_t n_shards;
    char *log_dir;         /* owned; NULL: there are no logs */
    ps_fresh_note_t fresh; /* one of them was new at this start, or since a
                            * start that the registry does not know of */
    ps_shard_common_t common;
    uint64_t last_serial;
    ps_asked_t **asked; /* owned, each too; in the order of asking */
    size_t n_asked;
    size_t asked_capacity;
    size_t n_under_way;      /* of them, sent and not back; they come first */
    ps_shards_done_t *ended; /* owned; not taken yet */
    size_t n_ended;
    size_t ended_capacity;
    ps_report_t *reports; /* owned; that nobody has taken */
    size_t n_reports;
    size_t reports_capacity;
};

/* shards_ask.c: frees the questions; the threads have ended. */
void ps_shards_forget_asked(ps_shards_t *self);
#endif
