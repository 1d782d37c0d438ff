/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/quorum: the order of the commands of a replicated registry
 *
 * It is       One member of the registry: elections, the log, members that come
 *             and go, around libraft's raft_step. And the messages between members.
 * It uses     registry (fields of values), lib/model, lib/base, <raft.h>.
 * It ignores  What a command says, how a log or a database is stored, how a
 *             message or a database travels, clocks and threads.
 * Start at    ps_quorum_receive in quorum.c, then ps_quorum_next.
 */
/*
 * ps_quorum - one member of the registry: events in, effects out
 *
 * What     Members agree on one list of entries. Each applies them in order, up
 *          to the index of COMMITTED. A leader proposes entries; the others
 *          follow it.
 * Shape    After each event the caller takes all effects with ps_quorum_next and
 *          carries them out in order. Effects of the log (BEGIN, CUT, APPEND) have
 *          a number, op; ps_quorum_flushed says up to which op they are on disk.
 *          The cache has all entries since BEGIN; ps_quorum_snapshot_taken
 *          shortens it.
 * Units    ms of a clock that never goes back, the same in all calls; election_ms
 *          is how long a member follows a silent leader at least. It may be longer
 *          (patience.h), which no safety and no lease builds on
 * Owner    The caller. ps_quorum_destroy frees it and nulls the pointer.
 * Threads  Confined to one.
 * Errors   Of all events: PSD_NOMEM, after which only ps_quorum_destroy is allowed
 *          (ps_quorum_is_broken): start again from what is on disk.
 * Source   Ongaro, "Consensus: Bridging Theory and Practice", 2014; ADR 21.
 */
#ifndef PS_PROTOCOL_QUORUM_H
#define PS_PROTOCOL_QUORUM_H

#include "protocol/quorum/quorum_message.h"

typedef struct ps_quorum ps_quorum_t;

typedef struct ps_quorum_args {
    uint64_t member;  /* its own id */
    const char *node; /* borrowed, as all pointers, until ps_quorum_new returns */
    ps_id_t cluster;  /* messages of others are refused … */
    ps_id_t lineage;  /* … and of other lineages */
    uint64_t life;    /* counts its starts from 1: on disk before it starts, or others drop what
                       * it says */
    uint64_t seed;    /* of the election timer */
    uint64_t now_ms;
    uint32_t election_ms;  /* 200: how long it follows a silent leader at least … */
    uint32_t patience_ms;  /* … and, where members are heard late, at most; 800. 0: as
                            * election_ms */
    uint32_t heartbeat_ms; /* 40 */
    size_t message_bytes;  /* of the entries in a message, but one at least */
    /* From disk: the last term and vote that TERM named; 0, 0 at first. */
    uint64_t term;
    uint64_t vote;
    /* What registry.db holds; NULL: nothing, of a member that was never told
     * anything. The first member of all begins with a snapshot of index 2 or more
     * that names it as the only voter, and term 1 or more. */
    const ps_quorum_snapshot_t *snapshot;
    uint64_t first; /* the index of entries[0]; snapshot's index + 1 when there are none */
    const ps_quorum_entry_t *entries; /* the log; must follow on the snapshot or reach over it */
    size_t n_entries;
} ps_quorum_args_t;

typedef enum ps_quorum_state {
    PS_QUORUM_FOLLOWER = 1,
    PS_QUORUM_CANDIDATE = 2,
    PS_QUORUM_LEADER = 3
} ps_quorum_state_t;

typedef enum ps_quorum_effect_kind {
    PS_QUORUM_TERM = 1,      /* term, vote: on disk before any later effect begins */
    PS_QUORUM_BEGIN,         /* op, index: all of the log goes; the next entry is index + 1 */
    PS_QUORUM_CUT,           /* op, index: the entries from there on go */
    PS_QUORUM_EXTEND,        /* op, index of the first, entries, n_entries */
    PS_QUORUM_SEND,          /* to, bytes; may be lost */
    PS_QUORUM_COMMITTED,     /* index: may be applied; it is on this disk as well */
    PS_QUORUM_ROLE,          /* state, term, leader (0: unknown) */
    PS_QUORUM_SEND_SNAPSHOT, /* to, index (at least): send it the database, then call
                              * ps_quorum_snapshot_sent */
    PS_QUORUM_INSTALL        /* snapshot: the database that was received is to be the
                              * own one. Make it so on disk, carry out the BEGIN that
                              * follows, call ps_quorum_installed. A flush of the old
                              * database that is under way must not end after it. */
} ps_quorum_effect_kind_t;

typedef struct ps_quorum_effect {
    ps_quorum_effect_kind_t kind;
    uint64_t op;
    uint64_t index;
    uint64_t term;
    uint64_t vote;    /* 0: none */
    uint64_t to;      /* a member's id */
    ps_bytes_t bytes; /* borrowed, as all pointers, until the next call */
    const ps_quorum_entry_t *entries;
    size_t n_entries;
    ps_quorum_state_t state;
    uint64_t leader;
    const ps_quorum_snapshot_t *snapshot;
} ps_quorum_effect_t;

/* Whether a member can be made at all; false: this psd was built without libraft. */
PSD_MUST_CHECK bool ps_quorum_is_possible(void);

/* Starts a member from what is on its disk. A member that alone votes leads at
 * once. Errors: PSD_UNSUPPORTED this psd was built without libraft; PSD_INVALID
 * an argument; PSD_DAMAGED the log does not fit the snapshot, or an entry is not
 * one; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_quorum_new(const ps_quorum_args_t *args, ps_quorum_t **ret_quorum,
                                          psd_error_t *err);
void ps_quorum_destroy(ps_quorum_t **self_p);
bool ps_quorum_is_broken(const ps_quorum_t *self);

/* The next effect; false: there is none. All are to be taken before the next
 * event. */
PSD_MUST_CHECK bool ps_quorum_next(ps_quorum_t *self, ps_quorum_effect_t *ret_effect);

/* ---- events ---- */

/* A message came. One of kind SNAPSHOT (ps_quorum_message_kind) may be given only
 * when the database that it describes lies complete and flushed beside the own
 * one: if no INSTALL follows, it is not wanted and may be dropped.
 * PSD_OK also when the message is old or of no use. Errors, of a message that
 * changed nothing: those of ps_quorum_message_decode; PSD_CLUSTER of another
 * cluster or lineage; PSD_INCARNATION for another member, or its sender is not of
 * the node that it names; PSD_DAMAGED it contradicts what is committed. */
PSD_MUST_CHECK psd_status_t ps_quorum_receive(ps_quorum_t *self, uint64_t now_ms, ps_bytes_t bytes,
                                              psd_error_t *err);
/* All effects of the log up to op are on disk. */
PSD_MUST_CHECK psd_status_t ps_quorum_flushed(ps_quorum_t *self, uint64_t now_ms, uint64_t op,
                                              psd_error_t *err);
/* Time passed; due at ps_quorum_deadline. */
PSD_MUST_CHECK psd_status_t ps_quorum_tick(ps_quorum_t *self, uint64_t now_ms, psd_error_t *err);
uint64_t ps_quorum_deadline(const ps_quorum_t *self);
#define PS_QUORUM_COMMANDS_MAX 128 /* in one proposal */
/* Appends n commands at the leader, one after the other from *ret_first on: one EXTEND, and
 * one round of messages. One is committed when COMMITTED reaches its index while the entry
 * there has this term; the outcome is unknown when the role changes before. Errors:
 * PSD_DENIED it does not lead; PSD_BUSY it hands its lead over; PSD_INVALID no commands, too
 * many, or one without bytes: none is appended. */
PSD_MUST_CHECK psd_status_t ps_quorum_propose(ps_quorum_t *self, uint64_t now_ms,
                                              const ps_bytes_t *commands, size_t n,
                                              uint64_t *ret_first, psd_error_t *err);

typedef enum ps_quorum_change {
    PS_QUORUM_ADD = 1, /* as a stand-by */
    PS_QUORUM_PROMOTE, /* to a voter; it must have caught up */
    PS_QUORUM_DEMOTE,  /* to a stand-by */
    PS_QUORUM_REMOVE
} ps_quorum_change_t;

/* Appends a change of members at the leader, which counts from now on. node: of
 * ADD. Errors: as ps_quorum_propose; PSD_BUSY another change is not committed yet,
 * or nothing of this term, or the member has not caught up; PSD_INVALID no such
 * member, there already, too many, no voter would be left, or the leader would
 * demote or remove itself: it must hand its lead over first. */
PSD_MUST_CHECK psd_status_t ps_quorum_propose_members(ps_quorum_t *self, uint64_t now_ms,
                                                      ps_quorum_change_t change, uint64_t member,
                                                      const char *node, uint64_t *ret_index,
                                                      psd_error_t *err);
/* Asks another voter to lead; 0: the one that is furthest. No command is taken
 * until it does, for election_ms at most. Errors: as ps_quorum_propose;
 * PSD_INVALID it does not vote, or nobody else does. */
PSD_MUST_CHECK psd_status_t ps_quorum_transfer(ps_quorum_t *self, uint64_t now_ms, uint64_t member,
                                               psd_error_t *err);
/* registry.db is flushed up to an index that COMMITTED named; entries up to
 * index - trailing may go. They leave the cache; the caller may drop them from
 * disk as well. Below the last such index it is ignored. */
PSD_MUST_CHECK psd_status_t ps_quorum_snapshot_taken(ps_quorum_t *self, uint64_t now_ms,
                                                     uint64_t index, uint32_t trailing,
                                                     psd_error_t *err);
/* The database of SEND_SNAPSHOT arrived at `to`, and this is what it holds: a
 * message SNAPSHOT follows. NULL: it could not be sent. Of no effect when this
 * member leads no more. */
PSD_MUST_CHECK psd_status_t ps_quorum_snapshot_sent(ps_quorum_t *self, uint64_t now_ms, uint64_t to,
                                                    const ps_quorum_snapshot_t *snapshot,
                                                    psd_error_t *err);
/* INSTALL and its BEGIN are carried out and on disk. */
PSD_MUST_CHECK psd_status_t ps_quorum_installed(ps_quorum_t *self, uint64_t now_ms,
                                                psd_error_t *err);

/* ---- queries ---- */

ps_quorum_state_t ps_quorum_state(const ps_quorum_t *self);
uint64_t ps_quorum_term(const ps_quorum_t *self);
/* The leader's id, its own included; 0: unknown. */
uint64_t ps_quorum_leader(const ps_quorum_t *self);
uint64_t ps_quorum_commit_index(const ps_quorum_t *self);
uint64_t ps_quorum_last_index(const ps_quorum_t *self);
uint64_t ps_quorum_flushed_index(const ps_quorum_t *self);
/* What may be applied: min(committed, flushed here). */
uint64_t ps_quorum_applicable(const ps_quorum_t *self);
/* Borrowed until the next event; NULL: the cache does not have it. */
const ps_quorum_entry_t *ps_quorum_entry(const ps_quorum_t *self, uint64_t index);
/* The newest members, which count; 0 as index: it knows none. */
uint64_t ps_quorum_members(const ps_quorum_t *self, ps_quorum_members_t *ret_members);
/* The newest members that are committed. */
uint64_t ps_quorum_members_committed(const ps_quorum_t *self, ps_quorum_members_t *ret_members);
/* The newest members as others may be told of them: one whose promotion is not committed
 * is a stand-by, for its vote is lost if the leader is. */
void ps_quorum_members_sure(const ps_quorum_t *self, ps_quorum_members_t *ret_members);
/* A change of members is not committed yet. */
bool ps_quorum_is_changing(const ps_quorum_t *self);

typedef struct ps_quorum_peer_info {
    uint64_t match;    /* it has flushed the log up to here; 0 unless this member leads */
    uint64_t heard_ms; /* when its last message came; 0: never */
    bool is_sent_snapshot;
} ps_quorum_peer_info_t;

/* false: it is no member, or this one. */
PSD_MUST_CHECK bool ps_quorum_peer_info(const ps_quorum_t *self, uint64_t member,
                                        ps_quorum_peer_info_t *ret_info);
/* How long it follows a silent leader now, at least. */
uint32_t ps_quorum_patience_ms(const ps_quorum_t *self);
/* At the leader: it has all that is committed, and spoke within election_ms. */
bool ps_quorum_has_caught_up(const ps_quorum_t *self, uint64_t now_ms, uint64_t member);
/* The greatest time T such that a majority has answered, in this term, something
 * that this leader sent at T or later. Until T + election_ms there is no other
 * leader. 0: not the leader, or it cannot be said; also while the lead is handed
 * over, and afterwards until that voter has answered. A leader may serve a read
 * from its own state when it has applied an entry of its term, and T is at most
 * half of election_ms ago by a clock that was read after the state. */
uint64_t ps_quorum_heard_majority_ms(const ps_quorum_t *self, uint64_t now_ms);
#endif
