/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_kept - a cache of fetched rows that blocks may read again
 *
 * What     A kept row may be read until it is too old: by n_blocks blocks, or
 *          for `staleness` clocks, counted from the block and clock in which
 *          its pull was handed over. It shows at least as many of this worker's
 *          own pushes as a new pull would: a push changes it when it is handed
 *          over; under BSP, where pushes count from the end of a clock on, with
 *          the mark. A row is not kept when a push may have changed it while
 *          its pull was in flight: the values may or may not have that push.
 *          Rows of a table whose updater is not `add` are not kept either: only
 *          the server knows the result of a push.
 *          A whole table that was asked for is kept as one row.
 *          In parts (n_parts > 0) a clock's pushes to a table change nothing
 *          before it ends, whatever the updater, and then one part: rows with
 *          row % n_parts of that clock's turn. So each row is kept until its
 *          part has been pushed, and `overlap` inner clocks longer.
 * Shape    entries, found by number of row. Entries without an intent are in
 *          LRU order; the least recently used are evicted when there is no
 *          room. max_bytes is never exceeded.
 * Owner    ps_kept_init, ps_kept_done.
 * Threads  ps_kept_lock. A pull, push or mark is handed over under this lock,
 *          together with the calls here that record it. The training's mutex
 *          is taken inside of it, never the other way round.
 */
#ifndef PS_TRAIN_KEPT_H
#define PS_TRAIN_KEPT_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/map.h"
#include "train/values/cache.h"
#include "train/values/sums.h"

#define PS_KEPT_NEVER (-1)

/* What is allowed. */
typedef struct ps_kept_rule {
    uint64_t n_blocks;  /* that may read a fetched row, the first included; >= 1 */
    int64_t staleness;  /* clocks; PS_KEPT_NEVER: clocks allow nothing */
    uint64_t max_bytes; /* of all that is kept */
    bool bsp;           /* own pushes count from the end of a clock on */
    uint64_t n_parts;   /* 0: not in parts; else neither n_blocks nor staleness counts */
    uint64_t turn;      /* the part of the first clock */
    uint32_t overlap;   /* inner clocks that may read a part after its push */
} ps_kept_rule_t;

/* A clock, and a block, from 1; 0: before all. */
typedef struct ps_kept_time {
    uint64_t clock;
    uint64_t block;
    uint32_t inner; /* inner clocks that ended in this clock */
} ps_kept_time_t;

/* A row, or all rows of a table. */
typedef struct ps_kept_key {
    uint32_t table;
    bool whole;
    uint64_t row; /* not whole */
} ps_kept_key_t;

static inline ps_kept_key_t ps_kept_row_key(size_t table, uint64_t row)
{
    return (ps_kept_key_t){.table = (uint32_t)table, .row = row};
}

static inline ps_kept_key_t ps_kept_whole_key(size_t table)
{
    return (ps_kept_key_t){.table = (uint32_t)table, .whole = true};
}

typedef struct ps_kept_row {
    TAILQ_ENTRY(ps_kept_row) in_list; /* unused, or intended */
    ps_kept_key_t key;
    ps_kept_time_t fetched; /* of what is here */
    ps_kept_time_t asked;   /* of what is coming */
    uint64_t pull;          /* that brings it */
    uint64_t until;         /* the last clock that intends to read it; or 0 */
    bool here;
    bool coming;
    bool spoiled; /* a push came between: the values that come are not kept */
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

/* Errors: PSD_NOMEM; PSD_FAILED no lock. Call ps_kept_done after it in any
 * case. */
PSD_MUST_CHECK psd_status_t ps_kept_init(ps_kept_t *self, const ps_kept_rule_t *rule,
                                         const ps_shape_t *shapes, size_t n_tables,
                                         psd_error_t *err);
/* Takes a zeroed one. */
void ps_kept_done(ps_kept_t *self);
void ps_kept_lock(ps_kept_t *self);
void ps_kept_unlock(ps_kept_t *self);
/* Takes the lock, and keeps the rows that were pulled into the cache. */
void ps_kept_take_cache(ps_kept_t *self, const ps_cache_t *cache);

/* The bytes of a row that count towards max_bytes. */
uint64_t ps_kept_row_bytes(const ps_shape_t *shape);

/* ---- with the lock held ---- */

/* The values, if they may be read at that time; NULL: they must be fetched.
 * Borrowed until the lock is released. */
const void *ps_kept_read(ps_kept_t *self, ps_kept_key_t key, ps_kept_time_t now);
/* Whether a pull of it is in flight; ps_kept_take ends it. */
bool ps_kept_is_coming(const ps_kept_t *self, ps_kept_key_t key);
/* A new number, for pulls that are handed over together. */
uint64_t ps_kept_pull(ps_kept_t *self);
/* The key is in that pull, which is handed over now. until: the last clock that
 * intends to read it; 0: a block needs it. false: no room or no memory, and
 * ps_kept_take will not keep it. */
bool ps_kept_ask(ps_kept_t *self, ps_kept_key_t key, uint64_t pull, ps_kept_time_t now,
                 uint64_t until);
/* The values have come with that pull. They are not kept if the key was not
 * asked for by it, or was changed since. */
void ps_kept_take(ps_kept_t *self, ps_kept_key_t key, uint64_t pull, const void *values);
/* Clocks up to that one intend to read it. */
void ps_kept_intend(ps_kept_t *self, ps_kept_key_t key, uint64_t until);
/* Reserves n_bytes for intents, until ps_kept_release; false: all reservations
 * together would exceed the limit. */
bool ps_kept_reserve(ps_kept_t *self, uint64_t n_bytes);
void ps_kept_release(ps_kept_t *self, uint64_t n_bytes);
/* A push of the sheaf is handed over now. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_kept_push(ps_kept_t *self, uint32_t table, const ps_sheaf_t *sheaf,
                                         psd_error_t *err);
/* The turn of the clock that is running. In parts. */
uint64_t ps_kept_turn(const ps_kept_t *self);
/* Adds the sheaf to what is here of the table, which blocks go on reading. In
 * parts. */
void ps_kept_move(ps_kept_t *self, uint32_t table, const ps_sheaf_t *sheaf);
/* The end of a clock is handed over now. If the sum of a table's pushes exceeds
 * the range of its type, none of its rows is kept. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_kept_mark(ps_kept_t *self, psd_error_t *err);
/* Clocks have ended without ps_kept_mark: drops all kept rows, and rows in
 * flight will not be kept. */
void ps_kept_forget(ps_kept_t *self);
#endif
