/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_follower - one other copy of a partition, as its primary sees it
 *
 * What     Decides what to send it next, and what its answers mean: which
 *          records it has, and how long its lease lets the primary answer.
 *          Pure: who sends says so, time comes in.
 * Units    ms of the primary's clock; lsn
 * Owner    The partition's ps_replicas. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_FOLLOWER_H
#define PS_PROTOCOL_FOLLOWER_H

#include "protocol/replica/tail.h"

typedef struct ps_follower {
    uint64_t incarnation; /* of its node */
    uint32_t shard;
    bool in_sync;            /* by the map */
    bool offered;            /* the registry is told when it has caught up: it may be in
                                sync there before the map here says so */
    bool flushes;            /* the table has a log: it is to have all on its disk */
    bool needs_rows;         /* its records are gone, or not the primary's, or
                                it has not taken the state that it is given */
    uint64_t mark_lsn;       /* it is offered when it has flushed this */
    uint64_t acked_lsn;      /* it has all up to here */
    uint64_t flushed_lsn;    /* and on disk up to here; <= acked_lsn */
    uint64_t sent_lsn;       /* >= acked_lsn; the next to send is behind it */
    uint64_t acked_end;      /* as ps_tail_record_t's, of these two */
    uint64_t sent_end;       /* … */
    uint32_t n_flight;       /* APPENDs with records, about */
    uint64_t sent_ms;        /* the last APPEND */
    uint64_t rewound_ms;     /* answers to older APPENDs rewind no more */
    uint64_t proved_ms;      /* its newest OK was to an APPEND sent then */
    uint64_t pause_until_ms; /* it was short of memory */
    uint64_t lease_until_ms; /* 0: none */
    uint64_t heard_ms;       /* its last answer */
    uint64_t moved_ms;       /* it had all, or more than before */
    uint64_t level_ms;       /* it had all that there was then */
    uint64_t look_ms;        /* level_ms is set to that when it has … */
    uint64_t look_lsn;       /* … this, the last one of then */
    uint64_t told_ms;        /* the registry was told of it; 0: never */
    bool is_outrun;          /* it catches up, and records come faster than it
                                takes them: pushes wait for it */
} ps_follower_t;

typedef struct ps_follower_limits {
    uint32_t lease_ms;
    uint32_t slow_after_ms;
    uint64_t flight_bytes; /* records sent and not answered */
} ps_follower_limits_t;

/* Nothing is known of it: it is asked what it has. */
void ps_follower_init(ps_follower_t *self, uint64_t incarnation, uint32_t shard,
                      const ps_tail_t *tail, uint64_t now_ms);

typedef enum ps_follower_want {
    PS_FOLLOWER_NOTHING = 0,
    PS_FOLLOWER_ASK = 1,    /* an APPEND without records */
    PS_FOLLOWER_RECORDS = 2 /* one with records from sent_lsn + 1 on */
} ps_follower_want_t;

/* What is to be sent now. */
ps_follower_want_t ps_follower_next(const ps_follower_t *self, const ps_tail_t *tail,
                                    const ps_follower_limits_t *limits, uint64_t now_ms);
/* An APPEND with so many records went. */
void ps_follower_sent(ps_follower_t *self, const ps_tail_t *tail, uint32_t n_records,
                      uint64_t now_ms);
/* It is given everything anew, with a state that has all records that there are
 * now. It needs rows until it has taken that. */
void ps_follower_restart(ps_follower_t *self, const ps_tail_t *tail, uint64_t now_ms);
/* It has said to have records up to lsn, and no more: those behind it go again,
 * or it needs rows. */
void ps_follower_go_back(ps_follower_t *self, const ps_tail_t *tail, uint64_t lsn, uint64_t now_ms);
/* Its connection is a new one: what was under way is lost. It is asked what it
 * has if records behind those that it is known to have are gone. */
void ps_follower_rewind(ps_follower_t *self, const ps_tail_t *tail, uint64_t now_ms);
/* An answer of the present epoch, checked by its codec. An answer to an APPEND
 * from the future is none. One that lacks what it had is of a copy that has
 * begun anew: nothing is known of it any more. */
void ps_follower_heard(ps_follower_t *self, const ps_tail_t *tail,
                       const ps_follower_limits_t *limits, const ps_msg_appended_t *appended,
                       uint64_t now_ms);
/* It has had neither all there is nor more than before for so long, and was not
 * reported since. */
bool ps_follower_lags(const ps_follower_t *self, const ps_follower_limits_t *limits,
                      uint64_t now_ms);
/* A copy that catches up moves: it has taken something, records or rows, not
 * longer ago than slow_after_ms. */
static inline bool ps_follower_moves(const ps_follower_t *self, const ps_follower_limits_t *limits,
                                     uint64_t now_ms)
{
    return now_ms < self->moved_ms + limits->slow_after_ms;
}
/* When ps_follower_next says something new if nothing is heard, asked behind
 * it. */
uint64_t ps_follower_deadline(const ps_follower_t *self, const ps_follower_limits_t *limits,
                              uint64_t now_ms);
/* What is answered waits for it: it is in sync, or may be by now. */
static inline bool ps_follower_counts(const ps_follower_t *self)
{
    return self->in_sync || self->offered;
}
static inline bool ps_follower_lends(const ps_follower_t *self, uint64_t now_ms)
{
    return now_ms < self->lease_until_ms;
}
#endif
