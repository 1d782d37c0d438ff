/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_answer - what a shard says about itself
 *
 * What     The answer of one shard to a question of the control plane: the
 *          lists that were asked for; the others are empty.
 * Units    bytes; ms of the clock of the host that has the value. A time
 *          travels as an age (ps_answers_turn), because clocks of hosts differ.
 * Owner    ps_answers_t owns the lists of its answers.
 * Threads  plain values
 */
#ifndef PS_PROTOCOL_SHARD_ANSWER_H
#define PS_PROTOCOL_SHARD_ANSWER_H

#include "base/bytes.h"
#include "model/store/store.h"
#include "wire/messages/message.h"

typedef struct ps_partition_info {
    uint32_t table;
    uint32_t partition;
    ps_extent_t extent;
    uint64_t epoch;
    uint64_t lsn;
    ps_store_bytes_t bytes;
    uint64_t come_bytes;  /* of its rows that have arrived */
    uint64_t held_bytes;  /* pushes logged for a clock that is still open */
    uint64_t queue_bytes; /* bodies of held requests */
    uint64_t pushes, pulls, rows_pushed, rows_pulled; /* since start */
} ps_partition_info_t;

typedef struct ps_size_info { /* what the rows of a partition take, of which
                                 the primary is here */
    uint32_t table;
    uint32_t partition;
    uint64_t bytes;
} ps_size_info_t;

typedef struct ps_lag_info { /* a copy, as its primary on this shard sees it */
    uint32_t table;
    uint32_t partition;
    uint64_t incarnation; /* of the copy's node */
    uint32_t shard;       /* … and its shard there */
    bool behind;          /* it has fallen behind: not known to have all records */
    uint64_t records;     /* records that it is not known to have … */
    uint64_t bytes;       /* … and their bytes */
    uint64_t level_ms;    /* it had all records of that time */
} ps_lag_info_t;

#define PS_WAIT_REASON_SIZE 240

typedef struct ps_waiting_info { /* a held request, or an answer that waits for
                                    its level */
    uint32_t job;
    uint32_t worker;
    uint64_t clock;     /* finished by the waiting worker */
    uint64_t since_ms;  /* when it was held */
    uint64_t for_clock; /* the clock that all others must have finished */
    uint32_t table;
    uint32_t partition;
    bool is_pull;
    char reason[PS_WAIT_REASON_SIZE]; /* why the partition blocks it; "": it only waits for
                                         clocks */
} ps_waiting_info_t;

typedef struct ps_clock_info { /* one worker's clock at the least and most
                                  advanced of this shard's partitions */
    uint32_t job;
    uint32_t worker;
    uint64_t min;
    uint64_t max;
} ps_clock_info_t;

typedef struct ps_shard_info {
    uint64_t sessions; /* connections with a WELCOME */
    uint64_t held_requests;
    uint64_t held_bytes;
    uint64_t refused;                   /* requests refused since start */
    uint64_t tail_bytes;                /* records kept for other copies */
    uint64_t memory_bytes;              /* the node's limit; 0: none */
    char disk_trouble[PS_TEXT_MAX / 2]; /* why its log fails; "": it works */
} ps_shard_info_t;

typedef struct ps_shard_answer {
    uint64_t incarnation;  /* of the node whose shard answered */
    uint32_t shard;        /* its number there */
    uint64_t memory_bytes; /* bytes that its node may use; 0: not known */
    ps_shard_info_t info;
    ps_partition_info_t *partitions; /* owned, as the other lists */
    size_t n_partitions;
    ps_size_info_t *sizes;
    size_t n_sizes;
    ps_lag_info_t *lags;
    size_t n_lags;
    ps_waiting_info_t *waiting;
    size_t n_waiting;
    ps_clock_info_t *clocks;
    size_t n_clocks;
    ps_buffer_t words; /* owned; of a checkpoint: JSON */
} ps_shard_answer_t;
void ps_shard_answer_done(ps_shard_answer_t *self);

/* Answers of shards, of one node after the other. */
typedef struct ps_answers {
    ps_shard_answer_t *at; /* owned */
    size_t n;
} ps_answers_t;
/* Frees them and zeroes the struct; fits PSD_AUTO. */
void ps_answers_done(ps_answers_t *self);
/* Moves the answers of `from` to the end. false: no memory; nothing moved. */
PSD_MUST_CHECK bool ps_answers_join(ps_answers_t *self, ps_answers_t *from);
/* Sorts partitions and lags of each, for the two below. */
void ps_answers_sort(ps_answers_t *self);
/* What that shard says of a partition, or of another copy of a partition of which
 * it has the primary, in sorted answers. NULL: nothing. */
const ps_partition_info_t *ps_answers_partition(const ps_answers_t *self, uint64_t incarnation,
                                                uint32_t shard, uint32_t table, uint32_t partition);
const ps_lag_info_t *ps_answers_lag(const ps_answers_t *self, const ps_lag_info_t *of);
/* Makes ages of times, or times of ages. */
void ps_answers_turn(ps_answers_t *self, uint64_t now_ms);
#endif
