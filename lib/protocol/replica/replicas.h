/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/replica: the copies of one partition
 *
 * It is       Records and rows sent to other copies and received from them,
 *             leases, acknowledgement levels.
 * It uses     partition, facts, core, lib/wire, lib/model, lib/base.
 * It ignores  Which copies there should be: the registry decides. Files.
 * Start at    replicas.c for roles, replicas_send.c and replicas_take.c for
 *             records, rows_give.c and rows_take.c for a new copy.
 */
/*
 * ps_replicas - the copies of one partition, as one of them sees them
 *
 * What     The primary sends its records to the followers, tracks their
 *          positions and leases, and withholds answers whose level is not
 *          reached. A follower takes records from its primary only, grants it a
 *          lease, and can take over.
 *
 *              IN_SYNC --TABLE: this one--> waits for its lease to end
 *                 ^                           ^        | EPOCH record
 *                 |         TABLE: this one --+        v
 *                 +-- TABLE: another one -- fenced <-- serves
 *
 * Owner    The shard, which destroys it before its partition; NULL for one that
 *          has never had another copy.
 * Threads: confined to one.
 */
#ifndef PS_PROTOCOL_REPLICAS_H
#define PS_PROTOCOL_REPLICAS_H

#include "protocol/facts/copies.h"
#include "protocol/replica/follower.h"
#include "protocol/replica/shard_links.h"
#include "protocol/replica/pending.h"
#include "protocol/partition/local_table.h"
#include "protocol/replica/transfer.h"

typedef struct ps_replicas {
    bool settled;            /* the map has assigned roles once, or an earlier life of the partition
                                may have existed */
    bool primary;            /* by the map */
    bool serving;            /* as primary, after its own EPOCH record */
    bool stopping;           /* fenced while it served: its last records are being sent */
    bool catching_up;        /* by the map: it receives state and rows */
    bool diverged;           /* it has records that its primary lacks */
    bool has_begun_anew;     /* it discarded its content, which its log may still have: it takes a
                                state before records, whatever the map says meanwhile */
    uint64_t fence;          /* refuses every APPEND of a lower epoch */
    ps_shard_name_t from;    /* the primary by the map */
    uint64_t in_sync_lsn;    /* every in-sync copy has this record, as far as known */
    uint64_t flushed_lsn;    /* this copy has flushed up to here */
    uint64_t flush_moved_ms; /* when flushed_lsn grew, or was the last record */
    uint64_t promised_lsn;   /* the limit of records that may have been acknowledged above level
                                memory, and of marks at any level */
    uint64_t stop_ms;        /* stopping ends by then … */
    uint64_t asked_epoch;    /* … and answers this FENCE; 0: none */
    /* The lease that this copy has granted. */
    uint64_t granted_until_ms;
    uint64_t granted_epoch;
    ps_shard_name_t granted_to;
    ps_msg_append_t last; /* the last APPEND of that grant … */
    uint64_t last_conn;   /* … on this connection; 0: none */
    uint64_t matched_lsn; /* … up to which the log matched the primary's */
    ps_tail_t tail;
    ps_pending_t pending;
    ps_follower_t followers[PS_COPIES_MAX - 1]; /* of the primary */
    uint32_t n_followers;
    uint32_t n_in_sync;                     /* of them */
    ps_giving_t *giving[PS_COPIES_MAX - 1]; /* owned; for some followers, in any order */
    ps_taking_t taking;
} ps_replicas_t;

/* Makes the replicas of a partition whose last record is lsn. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_replicas_new(ps_step_t *step, uint64_t lsn, uint64_t epoch,
                                            ps_replicas_t **ret_replicas, psd_error_t *err);
void ps_replicas_destroy(ps_replicas_t **self_p);

/* ---- what the map says: replicas.c ---- */

/* Applies the partition's current copies; `own` is the index of this copy. */
void ps_replicas_settle(ps_step_t *step, ps_partition_t *partition, const ps_copies_t *copies,
                        uint32_t own);
/* The map has another primary. A serving primary tells its copies, so that none
 * waits for the lease to expire, and stops being primary. The caller first
 * handles waiting answers. */
void ps_replicas_resign(ps_step_t *step, ps_partition_t *partition);
/* Refuses lower epochs from now on. A primary of such an epoch answers and
 * records nothing more. A serving one sends its remaining records before it
 * ends its lease, within the time of the lease. */
void ps_replicas_stop(ps_step_t *step, ps_partition_t *partition, uint64_t epoch);
/* The same, then reports the position of this copy. */
void ps_replicas_fence(ps_step_t *step, ps_partition_t *partition, uint64_t epoch);
/* Ends stopping when there is nothing left to wait for. */
void ps_replicas_end_stop(ps_step_t *step, ps_partition_t *partition);
/* Discards this copy's content, to get it again from the primary. Without
 * memory nothing changes. */
void ps_replicas_begin_anew(ps_step_t *step, ps_partition_t *partition);
/* The copy's last lsn says what it has: its rows are whole, and it has again
 * all the records that it discarded when it started over. */
bool ps_replicas_has_position(const ps_partition_t *partition);
/* The map of a table that lost rows makes this copy the primary: if it has
 * reported that it is not whole, it starts empty. (Of a table that acknowledges at
 * `disk` the registry promotes such a copy only after a forced removal.) false: no
 * memory; the map is applied again later. */
PSD_MUST_CHECK bool ps_replicas_begin_empty(ps_step_t *step, ps_partition_t *partition);
/* The report to the registry about a copy that counts and makes no progress. A
 * copy that is not in sync starts again only in an epoch in which it does not
 * count. */
ps_report_kind_t ps_replicas_trouble(const ps_follower_t *follower);
/* Time has passed. */
void ps_replicas_tick(ps_step_t *step, ps_partition_t *partition);

/* ---- what a primary may say: replicas_answer.c ---- */

/* Updates partition->lead; call after each change here. */
void ps_replicas_set_lead(ps_partition_t *partition);
/* True for a serving primary of the newest known epoch: only it makes
 * records. */
bool ps_replicas_makes_records(const ps_partition_t *partition);
/* The last record that every copy that counts has. */
uint64_t ps_replicas_in_sync_lsn(const ps_partition_t *partition);
/* The limit of records kept for other copies: at most the size of a full
 * transfer, because more is useless, and at most tail_bytes. */
uint64_t ps_replicas_tail_most(const ps_step_t *step, const ps_partition_t *partition);
/* Whether there is room for one more record that copies lack, and for its
 * answer. */
bool ps_replicas_has_room(const ps_step_t *step, const ps_partition_t *partition);
/* The level that the answer to a request must reach. */
ps_ack_t ps_replicas_level(const ps_partition_t *partition, const ps_request_t *request);
/* True when records up to lsn have reached the level and the primary may say
 * so, which counts as an answer. ret_reached: the last record that has. */
PSD_MUST_CHECK bool ps_replicas_promise(const ps_step_t *step, const ps_partition_t *partition,
                                        ps_ack_t level, uint64_t lsn, uint64_t *ret_reached);
/* What an answer of that level waits for. */
void ps_replicas_answer_reason(const ps_step_t *step, const ps_partition_t *partition,
                               ps_ack_t level, char *ret_text, size_t size);
/* Why nothing is answered or taken now; "" when nothing blocks. */
void ps_replicas_reason(const ps_step_t *step, const ps_partition_t *partition, char *ret_text,
                        size_t size);
/* If the outbox has more than n_before effects, the last one is an answer:
 * withholds it until its level is reached. Room was reserved; otherwise the
 * answer is dropped and the client retries. */
void ps_replicas_withhold(ps_step_t *step, ps_partition_t *partition, const ps_request_t *request,
                          size_t n_before);
/* True when an answer to that request waits: a probe gets the reason, other
 * requests nothing. Also true when nothing may be answered now and there is no
 * room to keep the answer. If there is room, the sender gets PARKED, and the
 * caller withholds the answer. */
PSD_MUST_CHECK bool ps_replicas_answer_waits(ps_step_t *step, ps_partition_t *partition,
                                             const ps_request_t *request);
/* Sends answers whose level is reached. */
void ps_replicas_release(ps_step_t *step, ps_partition_t *partition);
/* Answers PARKED to requests that are due; returns when the next one is. */
uint64_t ps_replicas_tell(ps_step_t *step, ps_partition_t *partition);
/* Answers waiting requests: the partition is elsewhere; NULL: it was
 * dropped. */
void ps_replicas_turn_away(ps_step_t *step, ps_partition_t *partition,
                           const ps_local_table_t *moved);

/* ---- records: replicas_send.c at the primary, replicas_take.c elsewhere ----
 */

/* Most bytes of a record in addition to its keys, index and values. */
#define PS_RECORD_BESIDE (PS_RECORD_HEAD + 3 * PS_RECORD_ALIGN)

/* For the primary: fills in lsn and epoch of a new record, replays it, adds the
 * record effect for the log, and sends it to the other copies. false: no
 * memory; nothing changed. */
PSD_MUST_CHECK bool ps_replicas_record(ps_step_t *step, ps_partition_t *self, ps_record_t *record,
                                       ps_payload_t *payload);
/* Records the job's current state; forgets the job when that is NULL. Errors:
 * PSD_NOMEM; nothing changed. */
PSD_MUST_CHECK psd_status_t ps_replicas_record_job(ps_step_t *step, ps_partition_t *self,
                                                   uint32_t id, const ps_job_t *job,
                                                   psd_error_t *err);
/* Whether it can be sent to another copy: it fits into one frame, and its
 * effect depends only on the partition. */
bool ps_replicas_can_send(const ps_step_t *step, const ps_partition_t *partition,
                          const ps_row_op_t *op, const ps_payload_t *payload);
/* True when a copy is in sync, or may be by now: it must have every record. */
bool ps_replicas_any_counts(const ps_replicas_t *self);
/* The record's bytes, and room for them. NULL: no memory. */
PSD_MUST_CHECK ps_payload_t *ps_replicas_prepare(ps_replicas_t *self, const ps_record_t *record,
                                                 const ps_payload_t *payload);
/* Sends a replayed record to the other copies. */
void ps_replicas_send(ps_step_t *step, ps_partition_t *partition, const ps_record_t *record,
                      ps_payload_t *bytes);
/* Drops records that no copy needs any more. Keeps those that an in-sync copy
 * lacks and, while there is room or pushes wait for it, those that a copy that
 * catches up lacks. */
void ps_replicas_cut(ps_step_t *step, ps_partition_t *partition);
ps_follower_limits_t ps_replicas_limits(const ps_step_t *step);
/* Sends everything due now, and asks for the next tick. */
void ps_replicas_pump(ps_step_t *step, ps_partition_t *partition);
/* Handles another copy's answer. */
void ps_replicas_heard(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                       const ps_msg_appended_t *appended);
/* Handles a new copy's answer to state or rows. */
void ps_replicas_heard_taken(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                             const ps_msg_taken_t *taken);
/* The link to that shard is a new one. */
void ps_replicas_relinked(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t to);
/* An APPEND of a shard that said PEER on conn. */
void ps_replicas_append(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                        uint64_t conn, const ps_msg_append_t *append, ps_payload_t *payload);

/* More is flushed than the primary knows: answers its last APPEND again. */
void ps_replicas_say_flushed(ps_step_t *step, ps_partition_t *partition);

/* ---- state and rows: rows_give.c at the primary, rows_take.c at a new copy */

/* Sends everything due now of a transfer, or begins one if the copy needs rows.
 * Call after the records were sent. */
void ps_rows_pump(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower,
                  uint64_t conn);
/* The new copy has answered. */
void ps_rows_heard(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower,
                   const ps_msg_taken_t *taken);
/* The set of followers changed. */
void ps_rows_settled(ps_replicas_t *self);
/* The link or the epoch is new: parts in flight may be lost. */
void ps_rows_resend(ps_replicas_t *self, const ps_follower_t *follower);
/* True when a transfer to it has begun, or will begin, and it is not whole
 * yet. */
bool ps_rows_are_given(ps_replicas_t *self, const ps_follower_t *follower);
/* The limits have changed: turns that were booked by the old ones do not count. */
void ps_rows_book_again(ps_replicas_t *self);
/* True when the records after acked_lsn are those that the state in flight
 * lacks. */
bool ps_rows_state_is_given(ps_replicas_t *self, const ps_follower_t *follower);
/* True when the answer refers to the copy before that state. */
bool ps_rows_is_old(ps_replicas_t *self, const ps_follower_t *follower,
                    const ps_msg_appended_t *appended);
/* True when there are other copies and each is receiving rows and has none from
 * that place on: its transfer never sent a piece with them. */
bool ps_rows_all_lack(const ps_replicas_t *self, uint64_t *ret_place);
/* True while parts of a piece remain to be sent, with no record between
 * them. */
bool ps_rows_hold_records(ps_replicas_t *self, const ps_follower_t *follower);
/* A ROWS of a shard that said PEER on conn. */
void ps_rows_take(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from, uint64_t conn,
                  const ps_msg_rows_t *rows, const ps_payload_t *payload);
/* The partition started again: the transfer is useless. */
void ps_taking_break(ps_taking_t *self);
void ps_taking_done(ps_taking_t *self);
/* True when the copy has all rows, and they match its primary's. */
bool ps_rows_are_whole(const ps_partition_t *partition);

/* Whether a push that will not be refused touches only rows that no other copy
 * has yet, while some are receiving rows: they need only an AHEAD record of it.
 * *ret_row: the lowest row. */
bool ps_rows_lie_ahead(const ps_partition_t *self, uint32_t job, const ps_row_op_t *op,
                       const ps_slice_t *slice, const ps_payload_t *payload, uint64_t *ret_row);
#endif
