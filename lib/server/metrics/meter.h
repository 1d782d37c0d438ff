/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server/metrics: what a node counts, and how that reads
 *
 * It is       The places in which the threads count, the text of /metrics, and the
 *             words of /healthz and /readyz.
 * It uses     lib/protocol (facts, shard), lib/transport/threads, lib/base.
 * It ignores  Sockets and HTTP; what the numbers are for.
 * Start at    metrics.h; lib/protocol/facts/families.def has the list of all metrics.
 */
/*
 * ps_meter - where the threads of one shard count
 *
 * What     The counts of the shard and of its log, and a box for the newest look at
 *          its tables and workers, which the shard leaves there every second.
 * Units    ns and ms of the monotonic clock
 * Owner    ps_metrics_t.
 * Threads  Each part has one writer: the shard's thread, but for `journal`, which is
 *          the log's.
 */
#ifndef PS_SERVER_METER_H
#define PS_SERVER_METER_H

#include <time.h>

#include "protocol/shard/shard.h"

#define PS_METER_LOOK_MS 1000     /* between two looks … */
#define PS_METER_LOOK_SOON_MS 100 /* … while some partition is not served */
#define PS_METER_APART 128        /* bytes, so that two threads share no cache line */

typedef struct ps_meter {
    ps_shard_counts_t counts;
    ps_box_t look; /* a ps_shard_look_t */
    /* the shard's own */
    ps_shard_look_t *spare; /* owned; NULL: none */
    uint64_t look_ms;       /* when the next look is due; 0: now */
    uint64_t mark_ns;       /* when the message at hand was begun */
    uint8_t apart[PS_METER_APART];
    ps_journal_counts_t journal;
    uint8_t apart_too[PS_METER_APART];
} ps_meter_t;

static inline uint64_t ps_meter_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Messages are taken from now on. All of these take NULL: nothing is counted. */
static inline void ps_meter_begin(ps_meter_t *self)
{
    if (self != NULL) {
        self->mark_ns = ps_meter_now_ns();
    }
}

/* One was taken, and the next one begins. Returns the ns that it took. */
uint64_t ps_meter_taken(ps_meter_t *self, ps_kind_t kind, const ps_payload_t *payload);

/* One was given to a socket, or could not be. */
static inline void ps_meter_sent(ps_meter_t *self, const ps_payload_t *payload, bool is_sent)
{
    if (self == NULL) {
        return;
    }
    if (is_sent) {
        ps_count_add(self->counts.bytes_out, ps_payload_size(payload));
    } else {
        ps_count_add(self->counts.dropped, 1);
    }
}

/* Something has changed what is served: looks soon. */
static inline void ps_meter_hasten(ps_meter_t *self)
{
    if (self != NULL) {
        self->look_ms = 0;
    }
}

/* Looks at the shard, when that is due. */
void ps_meter_look(ps_meter_t *self, ps_shard_t *core, uint64_t now_ms);
#endif
