/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_step - the state that the partitions of a shard share, and the current
 * step
 *
 * What     The shard passes it to its partitions and their copies: limits,
 *          clients, jobs, total sizes, and for each step the time and the
 *          outbox. They never see the shard itself.
 * Owner    The shard. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_STEP_H
#define PS_PROTOCOL_STEP_H

#include "base/map.h"
#include "protocol/core/outbox.h"
#include "protocol/facts/shard_args.h"
#include "protocol/facts/slow_log.h"
#include "protocol/partition/peer.h"
#include "wire/filters/filter_code.h"

struct ps_shard_links;

typedef struct ps_step {
    ps_shard_args_t args;
    ps_peers_t peers;
    ps_map_t tables;              /* id -> ps_local_table_t, owned */
    ps_map_t jobs;                /* id -> ps_job_t, owned */
    ps_map_t dropped;             /* ids of tables that were dropped while this shard runs */
    struct ps_shard_links *links; /* to and from shards with copies; borrowed */
    ps_coder_t *coder;            /* owned; NULL until a filter is used */
    ps_shard_counts_t *counts;    /* borrowed */
    /* the current step */
    uint64_t now_ms;
    uint64_t now_us; /* of a finer clock, with another start */
    ps_outbox_t *outbox;
    uint32_t told_job;     /* jobs up to this one are known here, or gone */
    uint32_t told_table;   /* … and tables */
    uint64_t other_bytes;  /* of the node's other shards */
    uint32_t other_giving; /* of these, the shards that send rows to new copies */
    uint64_t given_bytes;  /* of state and rows, to new copies */
    bool wants_bases;      /* all rows of a copy have arrived: its snapshot begins when possible */
    /* totals over all partitions */
    uint64_t row_bytes;       /* values, states and index */
    uint64_t held_bytes;      /* bodies of held requests */
    uint64_t logged_bytes;    /* kept for open clocks */
    uint64_t unflushed_bytes; /* given to the disk, not flushed: records and pieces */
    uint64_t tail_bytes;      /* records kept for copies */
    uint64_t n_held;
    uint64_t n_paired;    /* of these, requests that wait for two partitions */
    bool has_ended;       /* a client that has sent BYE may have no held requests left */
    uint64_t n_lives;     /* number of the newest life of a copy here */
    uint64_t refused;     /* requests, since start */
    uint64_t deadline_ms; /* no partition's deadline is earlier */
    char disk_trouble[PS_TEXT_MAX / 2]; /* "": none */
    /* rows to new copies */
    uint64_t n_transfers;  /* ever */
    uint64_t give_free_us; /* their bandwidth limits are used up until then */
    uint64_t gave_ms;      /* when the last rows were sent; 0: never */
    uint64_t asked_ms;     /* when a client last sent a request; 0: never */
    ps_slow_log_t slow;
} ps_step_t;

static inline uint64_t ps_step_us_since(const ps_step_t *self, uint64_t us)
{
    return self->now_us > us ? self->now_us - us : 0;
}

/* Whether that part of a request's time is slow. */
static inline bool ps_step_is_slow(const ps_step_t *self, uint64_t ms)
{
    return ms >= self->args.slow_ms && self->args.slow_ms > 0;
}

static inline void ps_step_note_slow(ps_step_t *self, const ps_slow_t *slow)
{
    if (ps_slow_log_add(&self->slow, slow)) {
        ps_count_add(self->counts->slow, 1);
    }
}

/* The memory in use that memory_bytes limits. */
static inline uint64_t ps_step_bytes(const ps_step_t *self)
{
    return self->row_bytes + self->held_bytes + self->logged_bytes;
}
#endif
