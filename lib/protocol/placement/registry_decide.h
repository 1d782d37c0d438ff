/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/placement: which copies should be where
 *
 * It is       One look at nodes and copies, and the next decision: fence, promote,
 *             repair, move, balance.
 * It uses     registry, facts, core, lib/wire, lib/model, lib/base.
 * It ignores  How a command is stored and told to the nodes.
 * Start at    the array of steps in registry_decide.c.
 */
/*
 * ps_registry_decide - the registry looks after the copies
 *
 * What     Hears signs of life of nodes, reports of primaries and answers to
 *          fences, and says the next thing to do. What it hears is volatile: a
 *          registry that is loaded again hears it again and goes on from the
 *          stored copies. Every change is a command, stored before it is told,
 *          and a new epoch for the partitions in it.
 * Order    At every sign or report, and at the latest at
 *          ps_registry_decide_at (no later than suspect_after / 4 behind the
 *          last one: time in which nobody asks counts for silent nodes only
 *          when it is shorter than twice that), the shell calls decide until it
 *          says NOTHING. COMMIT: it stores the command, applies it, and tells
 *          the nodes the new copies (again and again, until they are known
 *          there). When it cannot be stored, the shell stops and begins again
 *          later. FENCE: it tells the nodes; their answers come by
 *          ps_registry_fenced.
 *
 * A primary is lost:  suspect -> COMMIT (fenced) -> FENCE to every copy in sync
 *          on a live node -> all have answered, or have become suspect ->
 *          COMMIT: the one with the greatest lsn is the primary; those in sync
 *          on suspect nodes catch up from now on.
 * A primary moves: as above, but it is told of the fence first: it takes no
 *          more requests, sends what it has to the copies in sync, ends its
 *          leases (release) and answers behind that. Then the others are told.
 *          The wanted one is promoted if it has as much as any.
 * A primary is heard, but cannot serve: another copy in sync, if there is one,
 *          takes over, and it catches up. One whose disk takes nothing is
 *          treated as lost, one that clients do not reach moves.
 * Copies:  a suspect node's, and those that the primary reports, are out of
 *          sync. One that has caught up is in sync. Where copies that stay are
 *          fewer than wanted, a new one catches up (where one whole copy is
 *          left and acks wait for a second, those on suspect nodes do not
 *          count); where as many as wanted are in sync, those that leave (on a
 *          draining node, on one that is silent for repair_after, or replaced
 *          to even the nodes out) go.
 *
 * What nodes must keep to:
 *          A fenced copy takes no record of an older epoch, for good. A primary
 *          that reports CAUGHT_UP waits for that copy from then on as for one
 *          in sync, and what was acknowledged at `disk` is flushed there.
 * Reports are for one epoch; what still holds is reported again in the next. A
 * node that has started again joins (plan_node) before its next beat.
 */
#ifndef PS_PROTOCOL_REGISTRY_DECIDE_H
#define PS_PROTOCOL_REGISTRY_DECIDE_H

#include "protocol/core/outbox.h"
#include "protocol/registry/registry.h"

#define PS_CHANGES_MAX 256 /* partitions in one command of decide */

/* A sign of life. max_epoch is the greatest epoch that the node knows: the next
 * one is above it. Errors: PSD_NO_NODE no such node, it must join;
 * PSD_INCARNATION it has started again since, or not joined yet; PSD_INVALID
 * max_epoch is so far above the map's that no change can have made it. */
PSD_MUST_CHECK psd_status_t ps_registry_node_beat(ps_registry_t *self, const char *name,
                                                  uint64_t incarnation, uint64_t max_epoch,
                                                  uint64_t now_ms, psd_error_t *err);
/* The node says that it ends: it is suspect at once. false: not that one. */
bool ps_registry_node_ends(ps_registry_t *self, const char *name, uint64_t incarnation,
                           uint64_t now_ms);

/* What a node says of a copy of a partition whose primary it has (SLOW,
 * DIVERGED, CAUGHT_UP). from: the incarnation of that node. false: it is of
 * another epoch, of another kind, or not about another copy of that primary. */
bool ps_registry_report(ps_registry_t *self, uint64_t from, const ps_report_t *report);

/* A client's word that it does not reach a node holds until it would have said
 * it again, which it does after a part of the silence: from the one to the
 * other. A node that stood still for a moment is not blamed for longer. */
#define PS_UNREACHED_MIN_MS 3000
#define PS_UNREACHED_MS 8000
/* A client has heard nothing of that shard for silent_ms, though it asks. Where
 * the registry hears the node, and another copy can serve, that one is to, as
 * the way from clients to the node may be cut. false: no primary is there, or
 * it was not silent for unreached_after. */
bool ps_registry_unreached(ps_registry_t *self, uint64_t incarnation, uint32_t shard,
                           uint64_t silent_ms, uint64_t now_ms);

/* The answer to a fence (POSITION, PARTIAL) of node `from`: the last record
 * that its own copy has, by epoch and lsn, or that it is not whole. false:
 * nobody asked it, or not in this epoch. */
bool ps_registry_fenced(ps_registry_t *self, uint64_t from, const ps_report_t *report);

typedef enum ps_decision_kind {
    PS_DECIDE_NOTHING = 0,
    PS_DECIDE_COMMIT = 1, /* command */
    PS_DECIDE_FENCE = 2   /* fences */
} ps_decision_kind_t;

/* The copies of one partition on these nodes shall take no record of an epoch
 * below, and say what they have. */
typedef struct ps_fence {
    uint32_t table;
    uint32_t partition;
    uint64_t epoch;
    uint32_t n;
    uint64_t to[PS_COPIES_MAX]; /* incarnations of the nodes to be told */
} ps_fence_t;

typedef struct ps_decision {
    ps_decision_kind_t kind;
    ps_command_t command; /* owned */
    ps_fence_t *fences;   /* owned */
    size_t n_fences;      /* up to PS_CHANGES_MAX */
} ps_decision_t;
/* Fits PSD_AUTO. */
void ps_decision_done(ps_decision_t *self);

/* Errors: PSD_NOMEM; nothing is decided then. */
PSD_MUST_CHECK psd_status_t ps_registry_decide(ps_registry_t *self, uint64_t now_ms,
                                               uint64_t unix_ms, ps_decision_t *ret_decision,
                                               psd_error_t *err);
/* When time alone may make something to decide; 0: there may be now. */
uint64_t ps_registry_decide_at(const ps_registry_t *self);

/* What a partition's rows take, as its primary's node says: what moves is
 * chosen by it, and how long that takes. Not stored. false: there is no such
 * partition, or that is not its primary. */
bool ps_registry_set_bytes(ps_registry_t *self, uint64_t from, uint32_t table, uint32_t partition,
                           uint64_t bytes);
/* A move as it would be made. */
typedef struct ps_move {
    uint32_t table;
    uint32_t partition;
    bool primary;               /* the primary moves */
    bool role;                  /* nothing is copied: `to` is in sync */
    bool under_way;             /* the copy is there, and catches up */
    uint64_t bytes;             /* to be copied, as far as told */
    char from[PS_NAME_MAX + 1]; /* nodes */
    char to[PS_NAME_MAX + 1];   /* "": there is no node for it */
} ps_move_t;
/* What draining the node, or evening out the nodes as they are, would move:
 * a fresh array (ps_free). Errors: PSD_NO_NODE, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_drain(const ps_registry_t *self, const char *name,
                                                   ps_move_t **ret_moves, size_t *ret_n,
                                                   psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_registry_plan_rebalance(const ps_registry_t *self,
                                                       ps_move_t **ret_moves, size_t *ret_n,
                                                       psd_error_t *err);
/* What is copied until every partition has as many copies as are wanted: those
 * that catch up, and those that are missing (from: the primary's node; "": it
 * has none). A fresh array (ps_free). Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_repair(const ps_registry_t *self,
                                                    ps_move_t **ret_moves, size_t *ret_n,
                                                    psd_error_t *err);
/* The speed at which the last copies were made, each; 0: none was yet. */
uint64_t ps_registry_copy_rate(const ps_registry_t *self);
/* Partitions of which a copy or the primary is on its way. */
uint32_t ps_registry_n_moving(const ps_registry_t *self);
/* Evens the nodes out as the plan of that says, if it does not do so by itself.
 * Not stored: a registry that is loaded again is asked again. */
void ps_registry_even_out(ps_registry_t *self);
/* While it is still, no move begins that only evens out; those that are under
 * way go on, and lost primaries are replaced. Not stored either. */
void ps_registry_keep_still(ps_registry_t *self, bool still);
#endif
