/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/replica: the copies of one partition
 *
 * It is       Records and rows on their way to other copies and from them, leases,
 *             acknowledgement levels.
 * It uses     partition, facts, core, lib/wire, lib/model, lib/base.
 * It ignores  Which copies there should be: the registry tells. Files.
 * Start at    replicas.c for roles, replicas_send.c and replicas_take.c for
 *             records, rows_give.c and rows_take.c for a new copy.
 */
/*
 * ps_replicas - the copies of one partition, as one of them sees them
 *
 * What     The primary sends its records to the others, knows what they have
 *          and how long it may answer, and keeps back answers whose level is
 *          not reached. Another copy takes records of its primary only, lends
 *          it the right to answer, and can take its place.
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
    bool settled;            /* the map has said once who is what, or another
                                life of the partition may have been before */
    bool primary;            /* by the map */
    bool serving;            /* as primary, behind its own EPOCH record */
    bool stopping;           /* fenced while it served: its last records go */
    bool catching_up;        /* by the map: it takes state and rows */
    bool diverged;           /* it has what its primary has not */
    bool has_begun_anew;     /* it threw away what it had, which its log may
                                have still: it takes a state before records,
                                whatever the map says meanwhile */
    uint64_t fence;          /* no APPEND of an epoch below is taken */
    ps_shard_name_t from;    /* the primary by the map */
    uint64_t in_sync_lsn;    /* every in-sync copy has it, as far as known */
    uint64_t flushed_lsn;    /* this one has it on its disk */
    uint64_t flush_moved_ms; /* that grew, or was all there is */
    uint64_t promised_lsn;   /* what may have been acknowledged above memory, and
                                marks at any level, lie no further */
    uint64_t stop_ms;        /* stopping ends by then … */
    uint64_t asked_epoch;    /* … and answers this FENCE; 0: none */
    /* The lease that this copy has granted. */
    uint64_t granted_until_ms;
    uint64_t granted_epoch;
    ps_shard_name_t granted_to;
    ps_msg_append_t last; /* taken in that grant … */
    uint64_t last_conn;   /* … from there; 0: none */
    uint64_t matched_lsn; /* … up to where it was the primary's log */
    ps_tail_t tail;
    ps_pending_t pending;
    ps_follower_t followers[PS_COPIES_MAX - 1]; /* of the primary */
    uint32_t n_followers;
    uint32_t n_in_sync;                     /* of them */
    ps_giving_t *giving[PS_COPIES_MAX - 1]; /* owned; of some, in any order */
    ps_taking_t taking;
} ps_replicas_t;

/* Copies of a partition of the shard that are behind record lsn. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_replicas_new(ps_step_t *step, uint64_t lsn, uint64_t epoch,
                                            ps_replicas_t **ret_replicas, psd_error_t *err);
void ps_replicas_destroy(ps_replicas_t **self_p);

/* ---- what the map says: replicas.c ---- */

/* The partition's copies as they are now; `own` is this one's place among
 * them. */
void ps_replicas_settle(ps_step_t *step, ps_partition_t *partition, const ps_copies_t *copies,
                        uint32_t own);
/* The map has another primary: one that serves says so to its copies, so that
 * nobody waits for the lease, and forgets that it was one. Answers that wait
 * are the caller's business, before. */
void ps_replicas_resign(ps_step_t *step, ps_partition_t *partition);
/* Refuses epochs below from now on. A primary of such an epoch answers and
 * records nothing more; one that serves sends what it has before it ends its
 * lease, for no longer than that lasts. */
void ps_replicas_stop(ps_step_t *step, ps_partition_t *partition, uint64_t epoch);
/* The same, and behind that reports where this copy is. */
void ps_replicas_fence(ps_step_t *step, ps_partition_t *partition, uint64_t epoch);
/* Ends stopping when there is nothing to wait for any more. */
void ps_replicas_end_stop(ps_step_t *step, ps_partition_t *partition);
/* Throws away what this copy has, to get it from the primary. Without memory it
 * stays as it is. */
void ps_replicas_begin_anew(ps_step_t *step, ps_partition_t *partition);
/* By a map of a table that has lost rows it is to be the primary: where it is
 * not whole, and has said so, it begins with nothing. false: no memory; asked
 * again with the map. */
PSD_MUST_CHECK bool ps_replicas_begin_empty(ps_step_t *step, ps_partition_t *partition);
/* What the registry is told of a copy that counts and does not get on. One that
 * is not in sync begins anew only in an epoch in which it does not count. */
ps_report_kind_t ps_replicas_trouble(const ps_follower_t *follower);
/* Time has passed. */
void ps_replicas_tick(ps_step_t *step, ps_partition_t *partition);

/* ---- what a primary may say: replicas_answer.c ---- */

/* What partition->lead says follows from what is here: after each change. */
void ps_replicas_set_lead(ps_partition_t *partition);
/* Only a primary that serves, by the newest epoch that is known here, makes
 * records. */
bool ps_replicas_makes_records(const ps_partition_t *partition);
/* Every copy that counts has the records up to here. */
uint64_t ps_replicas_in_sync_lsn(const ps_partition_t *partition);
/* Bytes of records that are kept for other copies: no more than a copy would be
 * given anew, for more is no use to it, and no more than tail_bytes. */
uint64_t ps_replicas_tail_most(const ps_step_t *step, const ps_partition_t *partition);
/* There is room for one more record that copies lack, and for its answer. */
bool ps_replicas_has_room(const ps_step_t *step, const ps_partition_t *partition);
/* The level that the answer to a request must have. */
ps_ack_t ps_replicas_level(const ps_partition_t *partition, const ps_request_t *request);
/* Records up to lsn have reached the level and that may be said, which counts
 * as an answer. ret_reached: up to where all have it. */
PSD_MUST_CHECK bool ps_replicas_promise(const ps_step_t *step, const ps_partition_t *partition,
                                        ps_ack_t level, uint64_t lsn, uint64_t *ret_reached);
/* What an answer of that level waits for. */
void ps_replicas_answer_reason(const ps_step_t *step, const ps_partition_t *partition,
                               ps_ack_t level, char *ret_text, size_t size);
/* Why nothing is answered or taken now; "" when nothing is against it. */
void ps_replicas_reason(const ps_step_t *step, const ps_partition_t *partition, char *ret_text,
                        size_t size);
/* The last effect of the outbox, when there are more than n_before, is an
 * answer: it waits until its level is reached, if it is not. Room was reserved,
 * else it is left out and the client asks again. */
void ps_replicas_withhold(ps_step_t *step, ps_partition_t *partition, const ps_request_t *request,
                          size_t n_before);
/* An answer to that request waits: a probe is told why, another one has none.
 * Also when nothing may be answered now and there is no room to keep it; where
 * there is, whoever asked is told, and the answer is to be withheld. */
PSD_MUST_CHECK bool ps_replicas_answer_waits(ps_step_t *step, ps_partition_t *partition,
                                             const ps_request_t *request);
/* Sends answers whose level is reached. */
void ps_replicas_release(ps_step_t *step, ps_partition_t *partition);
/* Tells those whose time has come that they wait; returns when the next one
 * wants to hear. */
uint64_t ps_replicas_tell(ps_step_t *step, ps_partition_t *partition);
/* Answers what waits: the partition is elsewhere; NULL: it was dropped. */
void ps_replicas_turn_away(ps_step_t *step, ps_partition_t *partition,
                           const ps_local_table_t *moved);

/* ---- records: replicas_send.c at the primary, replicas_take.c elsewhere ----
 */

/* Most bytes of a record beside its keys, index and values. */
#define PS_RECORD_BESIDE (PS_RECORD_HEAD + 3 * PS_RECORD_ALIGN)

/* For the primary: replays a record of its own, with the lsn and epoch that it
 * fills in, hands it on to who reads the log, and sends it to the other copies.
 * false: no memory; nothing changed. */
PSD_MUST_CHECK bool ps_replicas_record(ps_step_t *step, ps_partition_t *self, ps_record_t *record,
                                       ps_payload_t *payload);
/* A record of the job as it is now; forgets the job when that is NULL. Errors:
 * PSD_NOMEM; nothing changed. */
PSD_MUST_CHECK psd_status_t ps_replicas_record_job(ps_step_t *step, ps_partition_t *self,
                                                   uint32_t id, const ps_job_t *job,
                                                   psd_error_t *err);
/* Another copy can be sent it: it fits into one frame, and what it does depends
 * on nothing but the partition. */
bool ps_replicas_can_send(const ps_step_t *step, const ps_partition_t *partition,
                          const ps_row_op_t *op, const ps_payload_t *payload);
/* A copy is in sync, or may be by now: it must have every record. */
bool ps_replicas_any_counts(const ps_replicas_t *self);
/* The record's bytes, and room for them. NULL: no memory. */
PSD_MUST_CHECK ps_payload_t *ps_replicas_prepare(ps_replicas_t *self, const ps_record_t *record,
                                                 const ps_payload_t *payload);
/* The record was replayed: it goes to the other copies. */
void ps_replicas_send(ps_step_t *step, ps_partition_t *partition, const ps_record_t *record,
                      ps_payload_t *bytes);
/* Lets go of records that no copy needs any more: every in-sync one has them,
 * and one that catches up, while there is room for it or pushes wait for it. */
void ps_replicas_cut(ps_step_t *step, ps_partition_t *partition);
ps_follower_limits_t ps_replicas_limits(const ps_step_t *step);
/* Sends what is to be sent now, and asks for the next tick. */
void ps_replicas_pump(ps_step_t *step, ps_partition_t *partition);
/* Another copy has answered. */
void ps_replicas_heard(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                       const ps_msg_appended_t *appended);
/* A new copy has answered to state or rows. */
void ps_replicas_heard_taken(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                             const ps_msg_taken_t *taken);
/* The link to that shard is a new one. */
void ps_replicas_relinked(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t to);
/* An APPEND of a shard that said PEER on conn. */
void ps_replicas_append(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                        uint64_t conn, const ps_msg_append_t *append, ps_payload_t *payload);

/* More is on the disk than its primary knows: an answer to its last APPEND says
 * so. */
void ps_replicas_say_flushed(ps_step_t *step, ps_partition_t *partition);

/* ---- state and rows: rows_give.c at the primary, rows_take.c at a new copy */

/* Sends what is to be sent now of a transfer, or begins one: the copy needs
 * rows. Behind the records that are to go. */
void ps_rows_pump(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower,
                  uint64_t conn);
/* The new copy has answered. */
void ps_rows_heard(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower,
                   const ps_msg_taken_t *taken);
/* The followers are others now. */
void ps_rows_settled(ps_replicas_t *self);
/* The link is a new one, or the epoch: what was under way may be lost. */
void ps_rows_resend(ps_replicas_t *self, const ps_follower_t *follower);
/* A transfer to it has begun, or is to begin, and it is not whole yet. */
bool ps_rows_are_given(ps_replicas_t *self, const ps_follower_t *follower);
/* The records behind acked_lsn are what the state that is on its way lacks. */
bool ps_rows_state_is_given(ps_replicas_t *self, const ps_follower_t *follower);
/* The answer is about what the copy had before that state. */
bool ps_rows_is_old(ps_replicas_t *self, const ps_follower_t *follower,
                    const ps_msg_appended_t *appended);
/* There are other copies, and each is being given rows and has none from that
 * place on: no piece with them ever went in its transfer. */
bool ps_rows_all_lack(const ps_replicas_t *self, uint64_t *ret_place);
/* Parts of a piece are still to go, with no record between them. */
bool ps_rows_hold_records(ps_replicas_t *self, const ps_follower_t *follower);
/* A ROWS of a shard that said PEER on conn. */
void ps_rows_take(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from, uint64_t conn,
                  const ps_msg_rows_t *rows, const ps_payload_t *payload);
/* The partition has begun anew: a transfer leads to nothing. */
void ps_taking_break(ps_taking_t *self);
void ps_taking_done(ps_taking_t *self);
/* All rows of the copy are here, and its primary's. */
bool ps_rows_are_whole(const ps_partition_t *partition);

/* Whether a push, of such content that it will not be refused, is into rows
 * only that no other copy has yet, while there are some that are given rows:
 * they need no more than an AHEAD record of it. *ret_row: the lowest. */
bool ps_rows_lie_ahead(const ps_partition_t *self, uint32_t job, const ps_row_op_t *op,
                       const ps_slice_t *slice, const ps_payload_t *payload, uint64_t *ret_row);
#endif
