/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/facts: plain values that several rooms share
 *
 * It is       Plain values: a job's workers, a partition's copies, lost rows, a
 *             table's definition, the epochs of records; and their forms in
 *             JSON and in bytes.
 * It uses     lib/wire, lib/model, lib/base.
 * It ignores  Time, messages in flight, and every machine that reads these values.
 * Start at    job.h, copies.h, table_doc.h.
 */
/*
 * ps_copies - a partition's copies, as the registry knows them
 *
 * What     One line of the map with everything that nodes need. Clients only
 *          get the primary, as a ps_route_t.
 * Shape    The primary first, then copies in sync, then kept ones, then copies
 *          that catch up; all on different nodes. A fenced partition has no
 *          primary: the registry will promote one of its heirs, which come
 *          first.
 */
#ifndef PS_PROTOCOL_COPIES_H
#define PS_PROTOCOL_COPIES_H

#include "wire/messages/doc.h"
#include "wire/messages/route.h"

#define PS_COPIES_MAX 8   /* of one partition, including copies that are joining or leaving */
#define PS_REPLICAS_MAX 5 /* copies that a table may want */

typedef enum ps_copy_state {
    PS_COPY_PRIMARY = 1,    /* serves */
    PS_COPY_IN_SYNC = 2,    /* has every write acknowledged at `replica` */
    PS_COPY_KEPT = 3,       /* was primary or in sync when its node restarted with its log: has
                               every write acknowledged at `disk`. Acknowledgements wait for it as
                               for a copy in sync, but it is promoted only if no copy is whole.
                               Without a log: a dropped copy, or an empty one if no other is left */
    PS_COPY_CATCHING_UP = 4 /* receives rows and records; may lack any of them */
} ps_copy_state_t;

typedef struct ps_copy {
    uint64_t incarnation; /* of the node */
    uint32_t shard;       /* number within the node */
    ps_copy_state_t state;
    bool leaving;                  /* is removed when the wanted number of copies is in sync
                                      elsewhere */
    bool dropped;                  /* left the in-sync set as the primary's last follower, and
                                      catches up or, when the primary is lost, is kept. Unless it
                                      started again from rows, it has every write acknowledged at
                                      `replica` until another copy is in sync: the primary waits for
                                      it until the new map arrives, and for a second copy then */
    char tcp[PS_ENDPOINT_MAX + 1]; /* of its shard */
} ps_copy_t;

typedef struct ps_copies {
    uint64_t epoch; /* of the map at the last change of these copies */
    bool fenced;    /* no primary yet: copies refuse records of an older epoch */
    uint32_t n;     /* 1 .. PS_COPIES_MAX */
    ps_copy_t at[PS_COPIES_MAX];
} ps_copies_t;

/* "primary", "in_sync", "kept", "catching_up"; "?" when it is not a state. */
const char *ps_copy_state_name(ps_copy_state_t state);
/* 0, which is not a state, for an unknown word. */
ps_copy_state_t ps_copy_state_parse(const char *word);

/* Has every write acknowledged at `replica`: the primary, or in sync. */
bool ps_copy_is_whole(const ps_copy_t *self);
/* Whole or kept: it may become the primary. A primary acknowledges nothing at
 * `replica` or `disk` that an heir lacks. */
bool ps_copy_is_heir(const ps_copy_t *self);
/* The copy on a node; NULL when there is none. */
const ps_copy_t *ps_copies_on(const ps_copies_t *self, uint64_t incarnation);
/* NULL when fenced. */
const ps_copy_t *ps_copies_primary(const ps_copies_t *self);
/* Copies that are whole. */
uint32_t ps_copies_n_whole(const ps_copies_t *self);
/* Copies that are heirs, a primary included. */
uint32_t ps_copies_n_heirs(const ps_copies_t *self);

/* True when a copy is marked as dropped. */
bool ps_copies_has_dropped(const ps_copies_t *self);

/* Edits of a value before it becomes the map. Each keeps the order. */
void ps_copies_remove(ps_copies_t *self, uint32_t at);
/* Not with PS_COPIES_MAX copies already; state is not PRIMARY. */
void ps_copies_add(ps_copies_t *self, const ps_copy_t *copy);
/* Not PRIMARY; at is not the primary. */
void ps_copies_set_state(ps_copies_t *self, uint32_t at, ps_copy_state_t state);
/* Ends the fence: `at`, an heir, becomes the primary. No copy stays marked as
 * dropped. */
void ps_copies_promote(ps_copies_t *self, uint32_t at);
/* Begins a fence: no copy is primary any more. */
void ps_copies_fence(ps_copies_t *self);
/* The primary is the only heir left: marks as dropped the copies that catch up
 * and were in sync in `before`. */
void ps_copies_drop(ps_copies_t *self, const ps_copies_t *before);
/* Fenced, with no heir left: turns dropped copies into kept ones. */
void ps_copies_recall(ps_copies_t *self);
/* Another copy is in sync: clears the dropped marks, because dropped copies
 * lack later writes. */
void ps_copies_forget_dropped(ps_copies_t *self);

/* Checks the shape above. Errors: PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_copies_check(const ps_copies_t *self, psd_error_t *err);
#endif
