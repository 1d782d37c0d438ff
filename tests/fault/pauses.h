/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pauses - a client that pushes without pause, and what it notices of faults
 *
 * What     A thread with a client of its own keeps one push under way to each
 *          partition of a table of i64; the k-th push of a partition adds k to
 *          its first row, so that the row tells how many were applied, and a
 *          push lost is no push doubled. For each partition the longest time
 *          between two acknowledged pushes is noted. A client that is told that
 *          what was acknowledged at memory is lost gives way to a new one.
 * Shape    partitions by range, PAUSES_ROWS rows each; n_partitions up to
 *          PAUSES_MAX
 * Units    ms
 * Owner    The caller; pauses_stop ends the thread.
 * Threads  Everything here is for one thread, which is not the client's.
 */
#ifndef PS_TESTS_PAUSES_H
#define PS_TESTS_PAUSES_H

#include <psd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define PAUSES_MAX 64
#define PAUSES_ROWS 10
#define PAUSES_TABLE "failover"

typedef struct pauses_part {
    psd_ticket_t ticket; /* under way; 0: none. The client's own */
    uint64_t n_begun;    /* pushes */
    uint64_t n_ended;    /* the first ones, acknowledged or given up */
    uint64_t n_marked;   /* begun when pauses_mark was called; where one
                            waited then for more, when pushes were lost */
    uint64_t acked_ms;   /* when the last one was acknowledged */
    uint64_t longest_ms; /* between two acknowledged ones, since the mark */
} pauses_part_t;

typedef enum pauses_end {
    PAUSES_GO_ON = 0,
    PAUSES_SETTLE = 1, /* when all that is under way is acknowledged */
    PAUSES_DROP = 2    /* at once */
} pauses_end_t;

typedef struct pauses {
    pthread_t thread;
    pthread_mutex_t lock; /* over all below */
    pthread_cond_t news;
    pauses_part_t parts[PAUSES_MAX];
    unsigned n_partitions;
    const char *endpoint; /* borrowed */
    bool may_lose;
    psd_client_t *client; /* the thread's */
    psd_table_t *table;
    unsigned n_lost; /* clients that were told of a loss */
    bool runs;
    pauses_end_t end;
    bool failed; /* a push failed; why is on stderr */
} pauses_t;

/* The table is there. may_lose: a client may be told of a loss. false: why is
 * on stderr. */
bool pauses_start(pauses_t *self, const char *endpoint, unsigned n_partitions, bool may_lose);
/* What happens from now on is noted anew. */
void pauses_mark(pauses_t *self);
/* Waits until every partition has acknowledged a push begun behind the mark.
 * false: one has not within that time, or a push failed; which is on stderr. */
bool pauses_wait(pauses_t *self, uint64_t timeout_ms);
/* The longest pause of a partition since the mark. */
uint64_t pauses_of(pauses_t *self, unsigned partition);
/* Ends the thread. false: a push failed, or it had ended before. */
bool pauses_stop(pauses_t *self, pauses_end_t end);
/* Reads the rows: each must be the sum of its pushes, all acknowledged; where
 * some may be lost, that or less. Behind pauses_stop. */
bool pauses_check(const pauses_t *self, psd_client_t *client);
#endif
