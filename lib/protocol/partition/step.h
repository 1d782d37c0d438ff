/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_step - what the partitions of a shard share, and the step under way
 *
 * What     The shard hands it to its partitions and their copies: limits, the
 *          clients, the jobs, what all keep together, and for each step the
 *          time and the outbox. They never see the shard itself.
 * Owner    The shard. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_STEP_H
#define PS_PROTOCOL_STEP_H

#include "base/map.h"
#include "protocol/core/outbox.h"
#include "protocol/facts/shard_args.h"
#include "protocol/partition/peer.h"
#include "wire/filters/filter_code.h"

struct ps_shard_links;

typedef struct ps_step {
    ps_shard_args_t args;
    ps_peers_t peers;
    ps_map_t tables;              /* id -> ps_local_table_t, owned */
    ps_map_t jobs;                /* id -> ps_job_t, owned */
    struct ps_shard_links *links; /* to and from shards with copies; borrowed */
    ps_coder_t *coder;            /* owned; NULL until a filter is used */
    /* the step under way */
    uint64_t now_ms;
    ps_outbox_t *outbox;
    uint64_t other_bytes;  /* of the node's other shards */
    uint32_t other_giving; /* of them, those that give rows to new copies */
    uint64_t given_bytes;  /* of state and rows, to new copies */
    bool wants_bases;      /* all rows of a copy have come: its snapshot begins
                              when it can */
    /* what all partitions keep */
    uint64_t row_bytes;       /* values, states and index */
    uint64_t held_bytes;      /* bodies of held requests */
    uint64_t logged_bytes;    /* kept for open clocks */
    uint64_t unflushed_bytes; /* given to the disk: records and pieces */
    uint64_t tail_bytes;      /* records kept for copies */
    uint64_t n_held;
    uint64_t n_paired;    /* of them, those that wait for two partitions */
    bool has_ended;       /* a client that has said BYE may have nothing held any more */
    uint64_t n_lives;     /* number of the last life of a copy that began here */
    uint64_t refused;     /* requests, since start */
    uint64_t deadline_ms; /* no partition's is earlier */
    char disk_trouble[PS_TEXT_MAX / 2]; /* "": there is none */
    /* rows to new copies */
    uint64_t n_transfers;  /* ever */
    uint64_t give_free_us; /* their limits are used up until then */
    uint64_t gave_ms;      /* the last ones went; 0: never */
    uint64_t asked_ms;     /* a client has asked for something; 0: never */
} ps_step_t;

/* What it keeps, of what memory_bytes bounds. */
static inline uint64_t ps_step_bytes(const ps_step_t *self)
{
    return self->row_bytes + self->held_bytes + self->logged_bytes;
}
#endif
