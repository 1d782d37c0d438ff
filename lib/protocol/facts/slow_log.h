/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_slow_log - the slowest requests of a shard
 *
 * What     A request is slow when one part of its time is at least a limit: it was
 *          held, its answer waited for copies or the disk, or the shard worked on
 *          it. Each part is added when it ends; parts of one request become one
 *          entry, also those of a request that was sent again. When there is no
 *          place, an entry that is older than a minute makes room, else the fastest,
 *          if the new one is slower; time at a gate counts last.
 * Units    ms of a monotonic clock; us for work
 * Owner    The shard. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_SLOW_LOG_H
#define PS_PROTOCOL_SLOW_LOG_H

#include "protocol/facts/counts.h"
#include "wire/messages/doc.h"
#include "wire/messages/message.h"

#define PS_SLOW_MAX 128
#define PS_SLOW_KEPT_MS 60000

typedef struct ps_slow {
    uint64_t session; /* with request, table and partition: which one it is */
    uint64_t request;
    uint32_t table;
    uint32_t partition;
    ps_kind_t kind;
    uint32_t job; /* 0: not from a worker */
    uint32_t worker;
    uint64_t clock;
    uint64_t rows;
    uint64_t bytes; /* of its body */
    uint64_t at_ms; /* its last part ended */
    uint64_t held_ms;
    ps_held_for_t held_for; /* at first, and counted for all of held_ms; NOT: it was not held, as
                               far as is known */
    uint64_t copies_ms;     /* its answer waited for copies … */
    uint64_t flush_ms;      /* … or for the disk */
    uint64_t work_us;       /* the shard took, applied and answered it */
} ps_slow_t;

typedef struct ps_slow_log {
    ps_slow_t at[PS_SLOW_MAX];
    size_t n;
} ps_slow_log_t;

/* Of all parts. */
uint64_t ps_slow_us(const ps_slow_t *self);
/* Adds a part that has just ended; at_ms is now. true: it is of a request that the log
 * did not have. */
bool ps_slow_log_add(ps_slow_log_t *self, const ps_slow_t *slow);
/* Appends an object for each entry, with its age: {"ago_ms":1200,"kind":"PULL","table":7,…}.
 * false: no memory. */
PSD_MUST_CHECK bool ps_slow_log_print(const ps_slow_log_t *self, uint64_t now_ms, ps_doc_t *array);
#endif
