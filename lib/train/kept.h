/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_kept - rows that were fetched and may be read again
 *
 * What     A row that is kept may be read until it is too old: by so many
 *          blocks, or for so many clocks, from the one on in which its pull was
 *          handed over. It shows at least what a pull would show of this
 *          worker's own pushes: these change it as they are handed over; under
 *          BSP, where they count from the end of a clock on, with the mark. A
 *          row that a push may have changed while its pull was under way is not
 *          kept: what came may have the push in it or not. Nor is one of a
 *          table whose updater is not `add`: what a push makes of it is known
 *          to the server only.
 *          A whole table that was asked for is kept as one row.
 * Shape    entries, found by number of row; those that nobody intends to read
 *          are in the order of their last use, and the oldest go when there is
 *          no room. max_bytes is never passed.
 * Owner    ps_kept_init, ps_kept_done.
 * Threads  ps_kept_lock. Pulls, pushes and marks are handed over within it, in
 *          one piece with what is said of them here; the training's mutex is
 *          taken inside of it, never the other way.
 */
#ifndef PS_TRAIN_KEPT_H
#define PS_TRAIN_KEPT_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/map.h"
#include "train/sums.h"

#define PS_KEPT_NEVER (-1)

/* What is allowed. */
typedef struct ps_kept_rule {
    uint64_t n_blocks;  /* that read what was fetched for the first; >= 1 */
    int64_t staleness;  /* clocks; PS_KEPT_NEVER: clocks allow nothing */
    uint64_t max_bytes; /* of all that is kept */
    bool bsp;           /* own pushes count from the end of a clock on */
} ps_kept_rule_t;

/* A clock, and a block, from 1; 0: before all. */
typedef struct ps_kept_time {
    uint64_t clock;
    uint64_t block;
} ps_kept_time_t;

/* A row, or all rows of a table. */
typedef struct ps_kept_key {
    uint32_t table;
    bool whole;
    uint64_t row; /* not whole */
} ps_kept_key_t;

typedef struct ps_kept_row {
    TAILQ_ENTRY(ps_kept_row) in_list; /* unused, or intended */
    ps_kept_key_t key;
    ps_kept_time_t fetched; /* of what is here */
    ps_kept_time_t asked;   /* of what is coming */
    uint64_t pull;          /* that brings it */
    uint64_t until;         /* the last clock that intends to read it; or 0 */
    bool here;
    bool coming;
    bool spoiled; /* a push came between: what is coming is not kept */
    size_t n_bytes;
    _Alignas(8) char values[];
} ps_kept_row_t;
TAILQ_HEAD(ps_kept_rows, ps_kept_row);

typedef struct ps_kept_table {
    ps_shape_t shape;     /* rows are kept if it adds */
    ps_map_t rows;        /* of ps_kept_row_t, owned */
    ps_kept_row_t *whole; /* owned; all rows at once */
    ps_sums_t open;       /* bsp: pushed since the last mark */
} ps_kept_table_t;

typedef struct ps_kept {
    ps_kept_rule_t rule;
    ps_kept_table_t *tables; /* owned */
    size_t n_tables;
    struct ps_kept_rows unused;   /* nobody intends; used last is last */
    struct ps_kept_rows intended; /* until a clock that has not ended */
    uint64_t n_bytes;             /* of all entries */
    uint64_t n_unused;            /* the same of unused ones */
    uint64_t n_reserved;          /* what intended ones may need */
    uint64_t clock;               /* that is running: marks + 1 */
    uint64_t n_pulls;             /* so far */
    pthread_mutex_t mutex;
    bool has_mutex;
} ps_kept_t;

/* Errors: PSD_NOMEM; PSD_FAILED no lock. ps_kept_done is needed behind it. */
PSD_MUST_CHECK psd_status_t ps_kept_init(ps_kept_t *self, const ps_kept_rule_t *rule,
                                         const ps_shape_t *shapes, size_t n_tables,
                                         psd_error_t *err);
/* Takes a zeroed one. */
void ps_kept_done(ps_kept_t *self);
void ps_kept_lock(ps_kept_t *self);
void ps_kept_unlock(ps_kept_t *self);

/* What a row takes of the limit. */
uint64_t ps_kept_row_bytes(const ps_shape_t *shape);

/* ---- for who has the lock ---- */

/* The values that may be read then; NULL: they have to be asked for. Borrowed
 * until the lock is given back. */
const void *ps_kept_read(ps_kept_t *self, ps_kept_key_t key, ps_kept_time_t now);
/* A pull of it is under way, and will say so (ps_kept_take). */
bool ps_kept_is_coming(const ps_kept_t *self, ps_kept_key_t key);
/* A number for what is handed over as one. */
uint64_t ps_kept_pull(ps_kept_t *self);
/* It is in that pull, which is handed over now. until: the last clock that
 * intends to read it; 0: a block needs it. false: there is no room, or no
 * memory: ps_kept_take will not keep it. */
bool ps_kept_ask(ps_kept_t *self, ps_kept_key_t key, uint64_t pull, ps_kept_time_t now,
                 uint64_t until);
/* It has come by that pull. What was not asked for by it, or changed since, is
 * not kept. */
void ps_kept_take(ps_kept_t *self, ps_kept_key_t key, uint64_t pull, const void *values);
/* Clocks up to that one intend to read it. */
void ps_kept_intend(ps_kept_t *self, ps_kept_key_t key, uint64_t until);
/* So many bytes may be needed by what is intended, until they are released;
 * false: with those that were reserved before it is more than the limit. */
bool ps_kept_reserve(ps_kept_t *self, uint64_t n_bytes);
void ps_kept_release(ps_kept_t *self, uint64_t n_bytes);
/* A push of that is handed over now. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_kept_push(ps_kept_t *self, uint32_t table, const ps_sheaf_t *sheaf,
                                         psd_error_t *err);
/* The end of a clock is handed over now. Of a table whose pushes are more than
 * one value of it holds nothing is kept. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_kept_mark(ps_kept_t *self, psd_error_t *err);
/* Clocks have ended of which nothing was said: nothing of before is kept, and
 * what is on its way is not. */
void ps_kept_forget(ps_kept_t *self);
#endif
