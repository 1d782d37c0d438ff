/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adders - the job that runs while things fail: workers that push integer adds
 *
 * What     Processes of their own. Each pushes deltas of its own seed to rows
 *          that all share, several calls under way, pulls, and finishes clocks;
 *          what it is told goes to the ledger. A call whose deadline passes is
 *          no failure: the worker flushes until it knows, and goes on.
 * Owner    The caller; adders_drop ends what is left.
 * Threads  Confined to one. A program that uses it gives main's arguments to
 *          adder_main first.
 */
#ifndef PS_TESTS_ADDERS_H
#define PS_TESTS_ADDERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/ledger.h"
#include "waits.h"

#define ADDERS_MAX WAITS_MAX
#define ADDERS_TEXT 64

typedef struct adders_args {
    const char *endpoint;
    const char *job; /* and the table's name; shorter than ADDERS_TEXT */
    unsigned n_workers;
    int max_delay;
    uint64_t seed;
    uint64_t n_rows;
    unsigned replicas;
    ledger_level_t ack;
    uint32_t timeout_ms; /* of a call */
} adders_args_t;

/* How a worker ended. */
typedef enum adder_end {
    ADDER_DONE = 0,
    ADDER_FAILED = 1,
    ADDER_ROWS_LOST = 2 /* it was told that its rows are gone */
} adder_end_t;

typedef struct adder { /* one worker, as it is seen from here */
    pid_t pid;         /* 0: it has ended */
    int exit_code;
    bool has_joined;
    bool has_left;
    uint64_t last_seq;    /* started */
    uint64_t since_seq;   /* … when adders_mark was called */
    uint64_t n_acked;     /* pushes begun and acknowledged since then */
    uint64_t n_deadlines; /* since then */
} adder_t;

typedef struct adders {
    adders_args_t args;
    ledger_t *ledger;
    adder_t each[ADDERS_MAX];
    int reports;         /* what they write */
    int stop;            /* they end when this is closed */
    waits_t *waits;      /* what each waits for now */
    uint64_t longest_ms; /* of all calls, by those that have left */
} adders_t;

/* Runs a worker and returns true when this process was started as one. */
bool adder_main(int argc, char **argv, int *ret_exit_code);

/* Starts them and waits until all have joined. */
bool adders_start(adders_t *self, const adders_args_t *args);
/* What happens from now on is counted anew. */
void adders_mark(adders_t *self);
/* Waits until every worker has begun n pushes after the mark and was told that
 * they are applied; until every one has seen n deadlines pass. false: who has
 * not is on stderr; that is a worker that hangs, or one that has ended. */
bool adders_wait_acks(adders_t *self, uint64_t n);
bool adders_wait_deadlines(adders_t *self, uint64_t n);
/* … until each has either. */
bool adders_wait_either(adders_t *self, uint64_t n);
/* Tells them to finish and waits until all have ended that way. */
bool adders_finish(adders_t *self, adder_end_t end);
/* Waits until all have ended that way by themselves. */
bool adders_wait_end(adders_t *self, adder_end_t end);
/* Reads all rows, and holds them against the ledger; prints the sums. */
bool adders_check(adders_t *self, ledger_level_t least);
/* The same for another table, which has the rows as they were at some time
 * behind `then` (ledger_now, behind adders_mark); what was told since may be in
 * it or not. */
bool adders_check_copy(adders_t *self, const char *table, ledger_level_t least, uint64_t then);
void adders_drop(adders_t *self);
#endif
