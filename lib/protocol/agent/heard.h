/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_heard - what a node remembers of its registry, over restarts
 *
 * What     A node drops a table that the registry does not name only when the
 *          registry has given out that table's number, in the history that the node
 *          follows. A registry that was restored from a backup, forced to go on from
 *          an old log, or rebuilt is of another history: what it does not know is
 *          kept aside until an operator decides. What an older state of the registry
 *          says is not heard at all.
 * Shape    A history is a lineage; in it (term, index) only grows. The node
 *          follows a lineage when it gets the list of that one's tables, and never
 *          goes back to one that it has left.
 * Owner    ps_heard_done frees what it owns. Threads: plain values.
 */
#ifndef PS_PROTOCOL_HEARD_H
#define PS_PROTOCOL_HEARD_H

#include "base/bytes.h"

#define PS_PAST_MAX 16 /* lineages that a node remembers to have left */

/* A state of a registry. */
typedef struct ps_moment {
    ps_id_t lineage; /* zero: of no registry */
    uint64_t term;
    uint64_t index;
} ps_moment_t;

/* Of the same lineage. */
bool ps_moment_is_before(const ps_moment_t *self, const ps_moment_t *other);

typedef struct ps_heard {
    ps_moment_t at;            /* the newest */
    uint64_t session;          /* the greatest numbers that were given out, as far as known */
    uint32_t last_table;       /* … */
    uint32_t last_job;         /* … */
    ps_id_t past[PS_PAST_MAX]; /* lineages left, the oldest first */
    size_t n_past;
    uint32_t *aside; /* owned; ids of the tables that are kept aside */
    size_t n_aside;
    size_t aside_capacity;
} ps_heard_t;

/* Frees and zeroes; fits PSD_AUTO. */
void ps_heard_done(ps_heard_t *self);
/* Copies into a zeroed value. false: no memory. */
PSD_MUST_CHECK bool ps_heard_copy(const ps_heard_t *self, ps_heard_t *ret);

typedef enum ps_heard_word {
    PS_HEARD_NEWEST = 1, /* of the lineage that it follows, and not older */
    PS_HEARD_OLDER,      /* of that lineage */
    PS_HEARD_PAST,       /* of one that it has left */
    PS_HEARD_OTHER       /* of one that it does not follow yet */
} ps_heard_word_t;

/* What a word of that moment is to the node. */
ps_heard_word_t ps_heard_judge(const ps_heard_t *self, const ps_moment_t *moment);
/* Remembers the moment, which is the newest or of another lineage. */
void ps_heard_follow(ps_heard_t *self, const ps_moment_t *moment);

typedef enum ps_table_fate {
    PS_FATE_DROPPED = 1, /* this history has dropped it */
    PS_FATE_ASIDE        /* it is of another history: its rows stay */
} ps_table_fate_t;

/* What becomes of a table here that a list of the newest tables does not name. word: of
 * the list, judged before the node follows it; last_table: the greatest number that
 * its registry has given out. */
ps_table_fate_t ps_heard_fate(const ps_heard_t *self, ps_heard_word_t word, uint32_t last_table,
                              uint32_t table);

bool ps_heard_is_aside(const ps_heard_t *self, uint32_t table);
/* false: no memory. */
PSD_MUST_CHECK bool ps_heard_put_aside(ps_heard_t *self, uint32_t table);
/* It is taken back, or gone. true: it was aside. */
bool ps_heard_take_back(ps_heard_t *self, uint32_t table);
#endif
