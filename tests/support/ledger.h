/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger - the answers to workers' integer adds, kept outside psd
 *
 * What     One entry for each row of each push: started, and later acknowledged
 *          at a level, or refused; without either the outcome is unknown. At
 *          the end it is compared with the values found.
 * Shape    seqs are the worker's own count of its pushes, from 1. Deltas are
 *          greater than 0; when they differ much from each other, a wrong value
 *          identifies the missing or extra push.
 * Owner    The caller; ledger_destroy. Entries are never forgotten.
 * Threads  Confined to one; workers report to it through a pipe.
 */
#ifndef PS_TESTS_LEDGER_H
#define PS_TESTS_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum ledger_event {
    LEDGER_STARTED = 1,
    LEDGER_ACKED = 2,   /* every open entry of worker and seq; with level */
    LEDGER_REFUSED = 3, /* the same */
    LEDGER_UNKNOWN = 4, /* a deadline passed; reported for code that waits for it */
    LEDGER_FLUSHED = 5, /* every open entry of the worker up to seq is known to
                           be applied; with level */
    LEDGER_JOINED = 6,  /* the worker is ready; ledger ignores it */
    LEDGER_LEFT = 7     /* the worker is done; delta: its longest call in ms */
} ledger_event_t;

typedef enum ledger_level { /* each survives what the one before does */
                            LEDGER_NONE = 0,
                            LEDGER_MEMORY = 1,
                            LEDGER_REPLICA = 2,
                            LEDGER_DISK = 3
} ledger_level_t;

/* One report, as it goes through a pipe: less than PIPE_BUF, so written in one
 * piece. */
typedef struct ledger_line {
    uint32_t event;
    uint32_t worker;
    uint64_t seq;
    uint64_t row;
    int64_t delta;
    uint32_t level;
    uint32_t padding;
} ledger_line_t;

typedef struct ledger ledger_t;

typedef struct ledger_sums {
    uint64_t n_started; /* entries */
    uint64_t n_acked;
    uint64_t n_refused;
    uint64_t n_unknown; /* neither now */
    uint64_t n_deadlines;
} ledger_sums_t;

/* For rows 0 .. n_rows - 1. NULL when there is no memory. */
ledger_t *ledger_new(uint64_t n_rows);
void ledger_destroy(ledger_t **self_p);

/* false: the line makes no sense (a row outside, an end without a start, a
 * second start); the reason is on stderr. */
bool ledger_take(ledger_t *self, const ledger_line_t *line);
void ledger_sum(const ledger_t *self, ledger_sums_t *ret_sums);
/* How many lines it has taken: a time, for ledger_check_at. */
uint64_t ledger_now(const ledger_t *self);

/*
 * Compares it with the rows' values. A push acknowledged at a level below
 * `least` may be there or not, like one with an unknown outcome. Each row must
 * be the sum of the acknowledged pushes and of some of the others, none of them
 * twice.
 *
 * false: rows differ; prints the first ones on story, with the push that
 * explains the difference if there is one.
 */
bool ledger_check(const ledger_t *self, const int64_t *values, uint64_t n_rows,
                  ledger_level_t least, FILE *story);
/* The same for rows as they were at some time after `then`: a push not
 * acknowledged by then may be there or not. */
bool ledger_check_at(const ledger_t *self, const int64_t *values, uint64_t n_rows,
                     ledger_level_t least, uint64_t then, FILE *story);
#endif
