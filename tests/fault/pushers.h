/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pushers - a job with an overlay, whose workers count in shared memory
 *
 * What     Processes of their own. In each clock a worker pushes one delta to
 *          its cells of every partition, finishes the clock, waits for the push
 *          and pulls the table. What is acknowledged, and what is under way, it
 *          writes to a page that outlives it. A worker that is declared lost
 *          joins again.
 * Shape    Rank r has the cells r, r + n_workers, … of each partition; all of
 *          them always have the same value.
 * Pause    All workers stop after one clock, with nothing under way.
 * Owner    The caller; pushers_drop ends what is left.
 * Threads  Confined to one. A program that uses it gives main's arguments to
 *          pusher_main first.
 */
#ifndef PS_TESTS_PUSHERS_H
#define PS_TESTS_PUSHERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PUSHERS_MAX 8
#define PUSHERS_PARTITIONS 8U
#define PUSHERS_UNKNOWN 4 /* pushes of one worker whose end nobody knows */
#define PUSHERS_JOB "pushers"
#define PUSHERS_CALL_MS 60000 /* who waits longer hangs */

typedef struct pushers_args {
    const char *endpoint;
    const char *transport; /* "auto", "tcp" */
    const char *policy;    /* PSD_OVERLAY */
    unsigned n_workers;    /* 2 .. PUSHERS_MAX */
    int32_t max_delay;
    uint64_t n_rows; /* of each partition */
    uint64_t seed;
    int netns[PUSHERS_MAX];         /* where each lives … */
    const char *hosts[PUSHERS_MAX]; /* … and listens; NULL: here */
} pushers_args_t;

typedef struct pusher_slot {
    _Atomic uint64_t n_clocks;   /* finished, in all lives */
    _Atomic uint64_t began_ms;   /* the clock that it does; 0: it does none */
    _Atomic uint64_t longest_ms; /* of a clock, since pushers_mark; … */
    _Atomic uint64_t pushed_ms;  /* … its push took that much of it, … */
    _Atomic uint64_t ended_ms;   /* … and it ended then */
    _Atomic unsigned n_lost;     /* how often it was declared lost, since then */
    _Atomic bool is_paused;
    int64_t base[PUSHERS_PARTITIONS]; /* of its cells, at the last check … */
    _Atomic int64_t acked;            /* … and what was acknowledged since */
    _Atomic int64_t flying;           /* under way; 0: nothing */
    _Atomic unsigned n_unknown;       /* under way when a life ended, since then */
    int64_t unknown[PUSHERS_UNKNOWN];
} pusher_slot_t;

typedef struct pusher_page {
    int32_t max_delay;
    _Atomic bool is_wanted;    /* a pause; its clock is … */
    _Atomic uint64_t pause_at; /* … this one; 0: nobody has named it yet */
    _Atomic bool is_over;      /* they leave when the pause ends */
    pusher_slot_t each[PUSHERS_MAX];
} pusher_page_t;

typedef struct pushers {
    pushers_args_t args;
    pid_t pids[PUSHERS_MAX]; /* 0: it does not run */
    unsigned lives[PUSHERS_MAX];
    uint64_t marked_ms;
    uint64_t since[PUSHERS_MAX]; /* n_clocks at pushers_count */
    int page_fd;
    pusher_page_t *page;
} pushers_t;

/* Runs a worker and returns true when this process was started as one. */
bool pusher_main(int argc, char **argv, int *ret_exit_code);

/* Starts all, and waits until each has finished a clock. The table PUSHERS_JOB
 * is there. */
bool pushers_start(pushers_t *self, const pushers_args_t *args);
/* Starts one that was killed: it joins when that one is lost. */
bool pushers_restart(pushers_t *self, unsigned worker);
bool pushers_kill(pushers_t *self, unsigned worker);
bool pushers_freeze(pushers_t *self, unsigned worker);
bool pushers_thaw(pushers_t *self, unsigned worker);

/* Times and losses count from now on, … */
void pushers_mark(pushers_t *self);
/* … and clocks. */
void pushers_count(pushers_t *self);
/* Waits until each has finished n clocks since then, but for one worker
 * (PUSHERS_MAX: all). false: who has not is on stderr; it hangs, or has ended. */
bool pushers_wait(pushers_t *self, unsigned but, uint64_t n);
/* Since the mark: the longest clock of the others; how often any was lost. */
uint64_t pushers_longest(const pushers_t *self, unsigned but);
unsigned pushers_lost(const pushers_t *self, unsigned but);

/* What each one's longest clock was like, to stderr. */
void pushers_tell(const pushers_t *self);

bool pushers_pause(pushers_t *self);
/* Holds the table's values against what was counted; only in a pause. They are
 * the base from then on. false: what differs is on stderr. */
bool pushers_check(pushers_t *self, const int64_t *values);
void pushers_go_on(pushers_t *self);
/* In a pause: all leave, and end. */
bool pushers_finish(pushers_t *self);
void pushers_drop(pushers_t *self);

/* The page that a process was started with. NULL: there is no memory. */
pusher_page_t *pusher_page_open(int fd);
#endif
