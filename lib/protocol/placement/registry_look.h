/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_look - one look of the registry at all its copies; for the files behind
 * registry_decide.h only
 *
 * What     Each step is a visitor of partitions that looks for one kind of
 *          thing to do; the first that finds any makes the decision: a FENCE or
 *          a COMMIT of everything of its kind, PS_CHANGES_MAX at most.
 */
#ifndef PS_PROTOCOL_REGISTRY_LOOK_H
#define PS_PROTOCOL_REGISTRY_LOOK_H

#include "protocol/placement/registry_decide.h"
#include "protocol/registry/registry_place.h"

typedef struct ps_look {
    ps_registry_t *registry;
    uint64_t now_ms;
    uint64_t unix_ms;
    uint64_t due_ms;       /* the next time at which there may be more to do */
    ps_loads_t loads;      /* of the copies as they are */
    uint32_t *catching_up; /* owned; of each node, copies under way to it */
    uint32_t n_moving;     /* partitions of which a copy is leaving */
    uint32_t n_handing;    /* partitions whose primary is moving */
    bool is_uneven;        /* a primary shall move as soon as it may */
    ps_decision_t *decision;
    size_t max_fences; /* room in the decision's array */
} ps_look_t;

/* One partition. */
typedef struct ps_spot {
    ps_table_t *table;
    uint32_t partition;
    ps_copies_t *copies;
    ps_watch_t *watch;
} ps_spot_t;

/* registry_decide.c: begins at {0}; false at the end. Only for what is no step.
 */
bool ps_spot_next(ps_look_t *look, ps_spot_t *spot, size_t *table_at);
/* The next one's time is not later. */
void ps_look_due(ps_look_t *look, uint64_t at_ms);
/* One more primary may be moved now. */
bool ps_look_may_hand(ps_look_t *look);
/* A change of the partition's copies joins the decision's command (which it
 * makes if it is the first). `copies` are as they shall be; the text of the
 * first says what is done ("partition 3 of table w" stands before it). Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_look_change(ps_look_t *look, const ps_spot_t *spot,
                                           const ps_copies_t *copies, uint64_t prefer,
                                           const char *text, psd_error_t *err);

/* registry_alive.c */
const ps_node_t *ps_copy_node(const ps_registry_t *self, const ps_copy_t *copy);
/* Its node is up. */
bool ps_copy_lives(const ps_registry_t *self, const ps_copy_t *copy);
bool ps_copy_is_suspect(const ps_registry_t *self, const ps_copy_t *copy);
/* There is a primary, and its node is up. */
bool ps_spot_is_served(const ps_look_t *look, const ps_spot_t *spot);
/* Its node is silent for repair_after: it is not waited for. */
bool ps_copy_is_given_up(ps_look_t *look, const ps_copy_t *copy);
/* Neither leaving, nor given up, nor on a node that drains. */
bool ps_copy_stays(ps_look_t *look, const ps_copy_t *copy);
/* Its node has not just started: that one has forgotten which leases it
 * granted, and waits until they have ended. */
bool ps_copy_may_lead(ps_look_t *look, const ps_copy_t *copy);
/* registry_sync.c: `copies` are as they shall be: where the primary is the only
 * heir that is left, those that were in sync have been dropped, but for those
 * that are known to have nothing. */
void ps_look_drop(const ps_spot_t *spot, ps_copies_t *copies);

/* Who has become suspect by now. */
void ps_registry_watch_nodes(ps_registry_t *self, uint64_t now_ms);
/* The next time at which a node may become so. */
uint64_t ps_registry_silence_due(const ps_registry_t *self);

/* registry_relieve.c: a client has just said that it does not reach the node;
 * one did lately, and no primary moves there without need. */
bool ps_copy_is_unreached(const ps_look_t *look, const ps_copy_t *copy);
bool ps_copy_is_shunned(ps_look_t *look, const ps_copy_t *copy);

/* Steps: each is called for every partition until the decision is full, and
 * leaves it as it is where there is nothing to do. Errors: PSD_NOMEM. */
typedef psd_status_t ps_decide_step_t(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err);
ps_decide_step_t ps_step_fence;       /* registry_fence.c: primaries that are lost */
ps_decide_step_t ps_step_ask;         /*   who has how much */
ps_decide_step_t ps_step_promote;     /* registry_promote.c: the one with most */
ps_decide_step_t ps_step_shrink;      /* registry_sync.c: out of sync */
ps_decide_step_t ps_step_let_go;      /*   what was kept is not needed */
ps_decide_step_t ps_step_admit;       /*   in sync */
ps_decide_step_t ps_step_relieve;     /* registry_relieve.c: primaries that are heard,
                                  and cannot serve */
ps_decide_step_t ps_step_remove;      /* registry_repair.c: what leaves goes */
ps_decide_step_t ps_step_replace;     /*   what never catches up is given up */
ps_decide_step_t ps_step_hand;        /*   primaries that leave move */
ps_decide_step_t ps_step_add;         /*   what is missing comes */
ps_decide_step_t ps_step_even_copies; /* registry_balance.c */
ps_decide_step_t ps_step_even_primaries;

/* registry_balance.c: copies as they would be behind one move that evens the
 * nodes out; false: there is none. `at` is the copy that moves to node `to`;
 * role: `to` has a copy in sync, which becomes the primary. */
typedef struct ps_even {
    uint32_t at;
    size_t to;
    bool role;
} ps_even_t;
bool ps_even_copy(ps_look_t *look, const ps_spot_t *spot, ps_even_t *ret);
bool ps_even_primary(ps_look_t *look, const ps_spot_t *spot, ps_even_t *ret);
#endif
