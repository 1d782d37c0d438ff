/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/placement: decides which copies should be where
 *
 * It is       One look at nodes and copies, and the next decision: fence, promote,
 *             repair, move, balance.
 * It uses     registry, facts, core, lib/wire, lib/model, lib/base.
 * It ignores  How a command is stored and sent to the nodes.
 * Start at    the array of steps in registry_decide.c. registry_promote.c: which
 *             copy takes over from a dead node.
 */
/*
 * ps_registry_decide - the registry manages the copies
 *
 * What     Takes heartbeats of nodes, reports of primaries and answers to
 *          fences, and returns the next decision. This input is volatile: a
 *          restarted registry receives it again and continues from the stored
 *          copies. Every change is a command, stored before nodes learn of it,
 *          and a new epoch for the partitions in it.
 * Order    The shell calls decide until it returns NOTHING, after every
 *          heartbeat or report, and at the latest at ps_registry_decide_at.
 *          That is at most suspect_after / 4 after the last call: a gap between
 *          calls counts as silence of nodes only if it is shorter than twice
 *          that. COMMIT: the shell stores the command, applies it, and sends
 *          the nodes the new copies, with retries until they have them. If it
 *          cannot store the command, it stops and retries later. FENCE: it
 *          sends the fence to the nodes; their answers arrive by
 *          ps_registry_fenced.
 *
 * A primary is lost:  suspect -> COMMIT (fenced) -> FENCE to every copy in sync
 *          on a live node -> all have answered, or have become suspect ->
 *          COMMIT: the one with the greatest lsn is the primary; those in sync
 *          on suspect nodes catch up from now on.
 * A primary moves: as above, but it gets the fence first: it takes no more
 * requests, sends its remaining records to the copies in sync, ends its leases
 * (release) and then answers. Then the others get the fence. The wanted copy is
 * promoted if no other copy has more.
 * A primary is heard, but cannot serve: another copy in sync, if there is one,
 * takes over, and the old primary catches up. A primary whose disk fails is
 * treated as lost; one that clients do not reach moves.
 * Copies:  those of a suspect node, and those that the primary reports, leave
 *          the in-sync set. A copy that has caught up joins it. If fewer copies
 *          stay than wanted, a new one catches up (if one whole copy is left
 *          and acks wait for a second, copies on suspect nodes do not count).
 *          If the wanted number is in sync, copies that leave (on a draining
 *          node, on a node silent for repair_after, or replaced to rebalance)
 *          are removed.
 *
 * What nodes must guarantee: A fenced copy refuses records of older epochs
 * permanently. A primary that reports CAUGHT_UP waits for that copy from then
 * on as for one in sync, and every write acknowledged at `disk` is flushed
 * there.
 * Reports are valid for one epoch; nodes repeat them in the next epoch if they
 * still hold. A restarted node joins (plan_node) before its next heartbeat.
 */
#ifndef PS_PROTOCOL_REGISTRY_DECIDE_H
#define PS_PROTOCOL_REGISTRY_DECIDE_H

#include "protocol/core/outbox.h"
#include "protocol/registry/registry.h"

#define PS_CHANGES_MAX 1024 /* partitions in one command of decide */

/* A heartbeat. max_epoch is the greatest epoch that the node knows: the next
 * epoch is above it. Errors: PSD_NO_NODE no such node, it must join;
 * PSD_INCARNATION the node has restarted since, or not joined yet; PSD_INVALID
 * max_epoch is implausibly far above the map's. */
PSD_MUST_CHECK psd_status_t ps_registry_node_beat(ps_registry_t *self, const char *name,
                                                  uint64_t incarnation, uint64_t max_epoch,
                                                  uint64_t now_ms, psd_error_t *err);
/* A member of the registry that does not lead hears the nodes itself (node_beat).
 * To be called several times in suspect_after: what was said while this process was
 * paused counts as heard. From the first call on, a term that this member begins
 * starts from what it has heard (ps_registry_plan_term). */
void ps_registry_listen(ps_registry_t *self, uint64_t now_ms);
/* Each node was heard, or has been silent for suspect_after. */
bool ps_registry_knows_nodes(const ps_registry_t *self, uint64_t now_ms);
/* The node reports that it is shutting down: it is suspect at once. false: it
 * is not that incarnation. */
bool ps_registry_node_ends(ps_registry_t *self, const char *name, uint64_t incarnation,
                           uint64_t now_ms);

/* A report of the primary's node about another copy of the partition (SLOW,
 * DIVERGED, CAUGHT_UP). from: the incarnation of that node. false: the report
 * has another epoch or kind, or is not about another copy of that primary. */
bool ps_registry_report(ps_registry_t *self, uint64_t from, const ps_report_t *report);

/* A client's report that it cannot reach a node is valid until the client would
 * have repeated it, which it does after a fraction of the silence. This is the
 * minimum and the maximum validity. So a node that paused for a moment is not
 * penalized for longer. */
#define PS_UNREACHED_MIN_MS 3000
#define PS_UNREACHED_MS 8000
/* A client got no answer from that shard for silent_ms. If the registry hears
 * the node and another copy can serve, that copy takes over, because the
 * network between clients and the node may be cut. false: no primary is there,
 * or the silence is shorter than unreached_after. */
bool ps_registry_unreached(ps_registry_t *self, uint64_t incarnation, uint32_t shard,
                           uint64_t silent_ms, uint64_t now_ms);

/* The answer to a fence (POSITION, PARTIAL) from node `from`: the last record
 * of its copy, by epoch and lsn, or that the copy is not whole. false: it was
 * not asked, or not in this epoch. */
bool ps_registry_fenced(ps_registry_t *self, uint64_t from, const ps_report_t *report);

typedef enum ps_decision_kind {
    PS_DECIDE_NOTHING = 0,
    PS_DECIDE_COMMIT = 1, /* command */
    PS_DECIDE_FENCE = 2   /* fences */
} ps_decision_kind_t;

/* The copies of one partition on these nodes must refuse records of lower
 * epochs, and report their position. */
typedef struct ps_fence {
    uint32_t table;
    uint32_t partition;
    uint64_t epoch;
    uint32_t n;
    uint64_t to[PS_COPIES_MAX]; /* incarnations of the receiving nodes */
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
/* When time alone may require a decision; 0: now. */
uint64_t ps_registry_decide_at(const ps_registry_t *self);

/* The size of a partition's rows, reported by its primary's node. It decides
 * what moves, and how long a move may take. Not stored. false: no such
 * partition, or not its primary. */
bool ps_registry_set_bytes(ps_registry_t *self, uint64_t from, uint32_t table, uint32_t partition,
                           uint64_t bytes);
/* A planned move. */
typedef struct ps_move {
    uint32_t table;
    uint32_t partition;
    bool primary;               /* the primary moves */
    bool role;                  /* nothing is copied: `to` is in sync */
    bool under_way;             /* the copy exists, and catches up */
    uint64_t bytes;             /* to be copied, as far as known */
    char from[PS_NAME_MAX + 1]; /* nodes */
    char to[PS_NAME_MAX + 1];   /* "": no node can take it */
} ps_move_t;
/* The moves that draining the node, or rebalancing, would make: a fresh array
 * (ps_free). Errors: PSD_NO_NODE, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_drain(const ps_registry_t *self, const char *name,
                                                   ps_move_t **ret_moves, size_t *ret_n,
                                                   psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_registry_plan_rebalance(const ps_registry_t *self,
                                                       ps_move_t **ret_moves, size_t *ret_n,
                                                       psd_error_t *err);
/* The copies needed until every partition has the wanted number: those that
 * catch up, and the missing ones (from: the primary's node; "": no primary). A
 * fresh array (ps_free). Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_repair(const ps_registry_t *self,
                                                    ps_move_t **ret_moves, size_t *ret_n,
                                                    psd_error_t *err);
/* The rate at which each of the last copies was made; 0: none yet. */
uint64_t ps_registry_copy_rate(const ps_registry_t *self);
/* The number of partitions with a moving copy or primary. */
uint32_t ps_registry_n_moving(const ps_registry_t *self);
/* Rebalances the nodes as planned, if the registry does not do so by itself.
 * Not stored: ask again after a restart of the registry. */
void ps_registry_even_out(ps_registry_t *self);
/* While `still`, no rebalancing move begins; current moves continue, and lost
 * primaries are replaced. Not stored either. */
void ps_registry_keep_still(ps_registry_t *self, bool still);
#endif
