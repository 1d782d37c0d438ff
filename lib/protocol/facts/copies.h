/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/facts: plain values that several rooms share
 *
 * It is       Values without behaviour: who works in a job, which copies a
 *             partition has, which rows were lost, what a table is, under which
 *             epochs records were made; and their forms in JSON and in bytes.
 * It uses     lib/wire, lib/model, lib/base.
 * It ignores  Time, messages in flight, and every machine that reads these values.
 * Start at    job.h, copies.h, table_doc.h.
 */
/*
 * ps_copies - who holds a partition: its copies, as the registry has them
 *
 * What     One line of the map with everything that nodes need. Clients are
 *          told the primary only, as a ps_route_t.
 * Shape    The primary first, then copies in sync, those that were kept, and
 *          those that catch up; all on different nodes. A fenced partition has
 *          no primary: one of its heirs, which come first, will be promoted.
 *          JSON: {"epoch":4,"fenced":true,"copies":[{"incarnation":7,
 *          "shard":0,"state":"in_sync","leaving":true,"tcp":"tcp://…"},…]};
 *          fenced, leaving and dropped are there when they are true
 */
#ifndef PS_PROTOCOL_COPIES_H
#define PS_PROTOCOL_COPIES_H

#include "wire/messages/doc.h"
#include "wire/messages/route.h"

#define PS_COPIES_MAX 8   /* of one partition, those included that come or go */
#define PS_REPLICAS_MAX 5 /* copies that a table may want */

typedef enum ps_copy_state {
    PS_COPY_PRIMARY = 1,    /* serves */
    PS_COPY_IN_SYNC = 2,    /* has all that was acknowledged at `replica` */
    PS_COPY_KEPT = 3,       /* was one of those two when its node started again
                               with its log: has all that was acknowledged at
                               `disk`; acknowledgements wait for it as for one
                               in sync, but it is promoted only where no copy is
                               whole. Without a log: one that was dropped, and
                               one that has nothing, where no other is left */
    PS_COPY_CATCHING_UP = 4 /* gets rows and records; may lack anything */
} ps_copy_state_t;

typedef struct ps_copy {
    uint64_t incarnation; /* of the node */
    uint32_t shard;       /* number within the node */
    ps_copy_state_t state;
    bool leaving;                  /* goes when as many as are wanted are in sync elsewhere */
    bool dropped;                  /* it was the last other copy in sync, and catches up, or is
                                      kept when the primary is lost: unless it has begun anew it
                                      has all that was acknowledged at `replica` until another
                                      one is in sync, as the primary waits for it until it hears
                                      and for a second one then */
    char tcp[PS_ENDPOINT_MAX + 1]; /* of its shard */
} ps_copy_t;

typedef struct ps_copies {
    uint64_t epoch; /* of the map at the last change of these copies */
    bool fenced;    /* no primary yet: no record of an older epoch is taken */
    uint32_t n;     /* 1 .. PS_COPIES_MAX */
    ps_copy_t at[PS_COPIES_MAX];
} ps_copies_t;

/* "primary", "in_sync", "kept", "catching_up"; "?" for no state. */
const char *ps_copy_state_name(ps_copy_state_t state);
/* 0, which is no state, for a word that names none. */
ps_copy_state_t ps_copy_state_parse(const char *word);

/* Has all that was acknowledged at `replica`: the primary, or in sync. */
bool ps_copy_is_whole(const ps_copy_t *self);
/* Whole or kept: it may become the primary, and a primary acknowledges nothing
 * at `replica` or `disk` that it has not. */
bool ps_copy_is_heir(const ps_copy_t *self);
/* The copy on a node; NULL when there is none. */
const ps_copy_t *ps_copies_on(const ps_copies_t *self, uint64_t incarnation);
/* NULL when fenced. */
const ps_copy_t *ps_copies_primary(const ps_copies_t *self);
/* Copies that are whole. */
uint32_t ps_copies_n_whole(const ps_copies_t *self);
/* Copies that are heirs, a primary included. */
uint32_t ps_copies_n_heirs(const ps_copies_t *self);

/* There is one that was dropped. */
bool ps_copies_has_dropped(const ps_copies_t *self);

/* Changes of a value, before it becomes the map. Each keeps the order. */
void ps_copies_remove(ps_copies_t *self, uint32_t at);
/* Not when there are PS_COPIES_MAX; state is not PRIMARY. */
void ps_copies_add(ps_copies_t *self, const ps_copy_t *copy);
/* Not PRIMARY; at is not the primary. */
void ps_copies_set_state(ps_copies_t *self, uint32_t at, ps_copy_state_t state);
/* Ends the fence: `at`, an heir, is the primary. None counts as dropped. */
void ps_copies_promote(ps_copies_t *self, uint32_t at);
/* Begins a fence: there is no primary any more. */
void ps_copies_fence(ps_copies_t *self);
/* The primary is the only heir that is left: those that catch up and were in
 * sync in `before` have been dropped. */
void ps_copies_drop(ps_copies_t *self, const ps_copies_t *before);
/* Fenced, with no heir left: what was dropped is kept. */
void ps_copies_recall(ps_copies_t *self);
/* Another copy is in sync: what was dropped lacks what comes. */
void ps_copies_forget_dropped(ps_copies_t *self);

/* Is it as the shape above says? Errors: PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_copies_check(const ps_copies_t *self, psd_error_t *err);

/* Sets the keys in doc. false: no memory; some may be set then. */
PSD_MUST_CHECK bool ps_copies_to_doc(const ps_copies_t *self, ps_doc_t *doc);
/* Errors: PSD_PROTO, PSD_INVALID; *ret_copies is then unchanged. */
PSD_MUST_CHECK psd_status_t ps_copies_from_doc(const ps_doc_t *doc, ps_copies_t *ret_copies,
                                               psd_error_t *err);
#endif
