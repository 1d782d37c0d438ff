/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_follower - one other copy of a partition, as its primary sees it
 *
 * What     Decides what to send next, and interprets the answers: which records
 *          the copy has, and how long its lease lets the primary answer. Pure:
 *          the caller reports what it sent, and passes the time in.
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
    bool offered;            /* reported to the registry as caught up: it may be in sync there
                                before the map here says so */
    bool flushes;            /* the table has a log: the copy must flush all records */
    bool needs_rows;         /* the records that it needs are gone, or its records differ, or it has
                                not taken the sent state yet */
    uint64_t mark_lsn;       /* it is offered after it has flushed this */
    uint64_t acked_lsn;      /* it has all records up to here */
    uint64_t flushed_lsn;    /* it has flushed up to here; <= acked_lsn */
    uint64_t sent_lsn;       /* >= acked_lsn; the next to send is sent_lsn + 1 */
    uint64_t acked_end;      /* as ps_tail_record_t's, of these two */
    uint64_t sent_end;       /* … */
    uint32_t n_flight;       /* APPENDs with records in flight, approximately */
    uint64_t sent_ms;        /* the last APPEND */
    uint64_t rewound_ms;     /* answers to older APPENDs no longer rewind */
    uint64_t proved_ms;      /* send time of the APPEND of its newest OK */
    uint64_t pause_until_ms; /* it was out of memory */
    uint64_t lease_until_ms; /* 0: none */
    uint64_t heard_ms;       /* its last answer */
    uint64_t moved_ms;       /* it had all records, or more than before */
    uint64_t level_ms;       /* it had all records of that time */
    uint64_t look_ms;        /* level_ms becomes this when it has … */
    uint64_t look_lsn;       /* … this, the last record of that time */
    uint64_t told_ms;        /* last report of it to the registry; 0: never */
    bool is_outrun;          /* it catches up, but records come faster than it takes them: pushes
                                wait for it */
} ps_follower_t;

typedef struct ps_follower_limits {
    uint32_t lease_ms;
    uint32_t slow_after_ms;
    uint64_t flight_bytes; /* of records in flight */
} ps_follower_limits_t;

/* Begins with nothing known: the copy is asked for its position. */
void ps_follower_init(ps_follower_t *self, uint64_t incarnation, uint32_t shard,
                      const ps_tail_t *tail, uint64_t now_ms);

typedef enum ps_follower_want {
    PS_FOLLOWER_NOTHING = 0,
    PS_FOLLOWER_ASK = 1,    /* an APPEND without records */
    PS_FOLLOWER_RECORDS = 2 /* one with records from sent_lsn + 1 on */
} ps_follower_want_t;

/* What to send now. */
ps_follower_want_t ps_follower_next(const ps_follower_t *self, const ps_tail_t *tail,
                                    const ps_follower_limits_t *limits, uint64_t now_ms);
/* Notes that an APPEND with n records was sent. */
void ps_follower_sent(ps_follower_t *self, const ps_tail_t *tail, uint32_t n_records,
                      uint64_t now_ms);
/* Starts it again from a state that contains all current records. It needs rows
 * until it has taken that state. */
void ps_follower_restart(ps_follower_t *self, const ps_tail_t *tail, uint64_t now_ms);
/* It has records up to lsn only: later records are sent again, or it needs
 * rows. */
void ps_follower_go_back(ps_follower_t *self, const ps_tail_t *tail, uint64_t lsn, uint64_t now_ms);
/* Its connection is new: everything in flight is lost. If records after its
 * known position are gone, it is asked for its position. */
void ps_follower_rewind(ps_follower_t *self, const ps_tail_t *tail, uint64_t now_ms);
/* Handles an answer of the current epoch, checked by its codec. Ignores an
 * answer to an APPEND from the future. A position below the known one means
 * that the copy started again: nothing is known of it any more. */
void ps_follower_heard(ps_follower_t *self, const ps_tail_t *tail,
                       const ps_follower_limits_t *limits, const ps_msg_appended_t *appended,
                       uint64_t now_ms);
/* True when for slow_after_ms it neither had all records nor made progress, and
 * was not reported since. */
bool ps_follower_lags(const ps_follower_t *self, const ps_follower_limits_t *limits,
                      uint64_t now_ms);
/* True when a copy that catches up makes progress: it took records or rows
 * within the last slow_after_ms. */
static inline bool ps_follower_moves(const ps_follower_t *self, const ps_follower_limits_t *limits,
                                     uint64_t now_ms)
{
    return now_ms < self->moved_ms + limits->slow_after_ms;
}
/* When ps_follower_next, called just before, may give a new result without an
 * answer. */
uint64_t ps_follower_deadline(const ps_follower_t *self, const ps_follower_limits_t *limits,
                              uint64_t now_ms);
/* True when answers wait for it: it is in sync, or may be by now. */
static inline bool ps_follower_counts(const ps_follower_t *self)
{
    return self->in_sync || self->offered;
}
static inline bool ps_follower_lends(const ps_follower_t *self, uint64_t now_ms)
{
    return now_ms < self->lease_until_ms;
}
#endif
