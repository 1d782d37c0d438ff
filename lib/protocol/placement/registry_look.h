/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_look - one pass of the registry over all its copies; for the files that
 * implement registry_decide.h only
 *
 * What     Each step visits the partitions and looks for one kind of work. The
 *          first step that finds any makes the decision: a FENCE or a COMMIT of
 *          all work of its kind, at most PS_CHANGES_MAX.
 */
#ifndef PS_PROTOCOL_REGISTRY_LOOK_H
#define PS_PROTOCOL_REGISTRY_LOOK_H

#include "protocol/placement/registry_decide.h"
#include "protocol/registry/registry_place.h"

typedef struct ps_look {
    ps_registry_t *registry;
    uint64_t now_ms;
    uint64_t unix_ms;
    uint64_t due_ms;       /* the next time at which there may be work */
    ps_loads_t loads;      /* of the current copies */
    uint32_t *catching_up; /* owned; for each node, the number of copies being made there */
    uint32_t n_moving;     /* partitions with a leaving copy */
    uint32_t n_handing;    /* partitions whose primary is moving */
    bool is_uneven;        /* a primary should move as soon as possible */
    ps_decision_t *decision;
    size_t max_fences; /* room in the decision's array */
} ps_look_t;

/* One partition. */
typedef struct ps_spot {
    ps_table_t *table;
    uint32_t partition;
    ps_copies_t *copies;
    ps_copy_watch_t *watch;
} ps_spot_t;

/* registry_decide.c: begins at {0}; false at the end. Only for code that is not
 * a step.
 */
bool ps_spot_next(ps_look_t *look, ps_spot_t *spot, size_t *table_at);
/* The next pass is due at at_ms at the latest. */
void ps_look_due(ps_look_t *look, uint64_t at_ms);
/* True when one more primary may move now. */
bool ps_look_may_hand(ps_look_t *look);
/* Adds a change of the partition's copies to the decision's command (created by
 * the first change). `copies` is the new value; the text of the first change
 * says what is done, after "partition 3 of table w". Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_look_change(ps_look_t *look, const ps_spot_t *spot,
                                           const ps_copies_t *copies, uint64_t prefer,
                                           const char *text, psd_error_t *err);

/* registry_alive.c */
const ps_node_t *ps_copy_node(const ps_registry_t *self, const ps_copy_t *copy);
/* True when its node is up. */
bool ps_copy_lives(const ps_registry_t *self, const ps_copy_t *copy);
bool ps_copy_is_suspect(const ps_registry_t *self, const ps_copy_t *copy);
/* True when there is a primary and its node is up. */
bool ps_spot_is_served(const ps_look_t *look, const ps_spot_t *spot);
/* True when its node has been silent for repair_after: it is not waited for. */
bool ps_copy_is_given_up(ps_look_t *look, const ps_copy_t *copy);
/* True when it is neither leaving, nor given up, nor on a draining node. */
bool ps_copy_stays(ps_look_t *look, const ps_copy_t *copy);
/* False when its node has just started: that node has forgotten which leases it
 * granted, and waits until they have expired. */
bool ps_copy_may_lead(ps_look_t *look, const ps_copy_t *copy);
/* registry_sync.c: `copies` is the new value: if the primary is the only heir
 * left, marks the copies that were in sync as dropped, except those that are
 * known to have nothing. */
void ps_look_drop(const ps_spot_t *spot, ps_copies_t *copies);
/* The first of `copies` was heard lately. Else it may be lost as well, and a copy that was found
 * silent a moment sooner is the one that has what it had: nothing leaves the in-sync set then. */
bool ps_primary_is_there(ps_look_t *look, const ps_copies_t *copies);

/* Updates which nodes are suspect. */
void ps_registry_watch_nodes(ps_registry_t *self, uint64_t now_ms);
/* The next time at which a node may become suspect. */
uint64_t ps_registry_silence_due(const ps_registry_t *self);

/* registry_relieve.c: a client has just reported that it cannot reach the node;
 * a client did so lately, and no primary moves there without need. */
bool ps_copy_is_unreached(const ps_look_t *look, const ps_copy_t *copy);
bool ps_copy_is_shunned(ps_look_t *look, const ps_copy_t *copy);

/* Steps: each is called for every partition until the decision is full, and
 * does not change it if there is nothing to do. Errors: PSD_NOMEM. */
typedef psd_status_t ps_decide_step_t(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err);
ps_decide_step_t ps_step_fence;       /* registry_fence.c: fence lost primaries */
ps_decide_step_t ps_step_ask;         /*   ask copies for their positions */
ps_decide_step_t ps_step_promote;     /* registry_promote.c: promote the copy with most */
ps_decide_step_t ps_step_shrink;      /* registry_sync.c: remove from the in-sync set */
ps_decide_step_t ps_step_let_go;      /*   drop kept copies that are not needed */
ps_decide_step_t ps_step_admit;       /*   add to the in-sync set */
ps_decide_step_t ps_step_relieve;     /* registry_relieve.c: replace primaries that are heard, but
                                         cannot serve */
ps_decide_step_t ps_step_remove;      /* registry_repair.c: remove leaving copies */
ps_decide_step_t ps_step_replace;     /*   give up copies that never catch up */
ps_decide_step_t ps_step_hand;        /*   move leaving primaries */
ps_decide_step_t ps_step_add;         /*   add missing copies */
ps_decide_step_t ps_step_even_copies; /* registry_balance.c */
ps_decide_step_t ps_step_even_primaries;

/* registry_balance.c: the copies after one rebalancing move; false: no such
 * move. `at` is the copy that moves to node `to`; role: `to` has a copy in
 * sync, which becomes the primary. */
typedef struct ps_even {
    uint32_t at;
    size_t to;
    bool role;
} ps_even_t;
bool ps_even_copy(ps_look_t *look, const ps_spot_t *spot, ps_even_t *ret);
bool ps_even_primary(ps_look_t *look, const ps_spot_t *spot, ps_even_t *ret);
#endif
