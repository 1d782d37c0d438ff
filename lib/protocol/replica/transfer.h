/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_giving, ps_taking - the transfer of a partition to a new copy
 *
 * What     A *transfer*: the primary sends the state, then all rows in pieces,
 *          and between the pieces every record that it makes
 *          (protocol/partition/partition_copy.h). The copy takes a piece only
 *          after the record after which the primary read it, and only where its
 *          rows end; otherwise it refuses the piece, and the primary reads it
 *          again. So parts may be lost, repeated or reordered, and the primary
 *          keeps no piece. It keeps the state until the copy has it.
 *
 *              state --all of it was taken--> rows --the last piece--> (whole)
 *                ^                              |
 *                +--- ANEW, diverged, records --+
 *                     that are gone
 *
 *          A large state, or piece, is sent in parts. The state replaces the
 *          copy's partition with a new one.
 * Units    bytes; place: of a row, as ps_store_cursor_t's
 * Owner    The partition's ps_replicas.
 * Threads  Confined to the shard's thread.
 */
#ifndef PS_PROTOCOL_TRANSFER_H
#define PS_PROTOCOL_TRANSFER_H

#include "base/cursor.h"
#include "model/store/store_copy.h"
#include "protocol/replica/follower.h"
#include "protocol/replica/shard_links.h"

/* The primary's side, for one other copy. */
typedef struct ps_giving {
    ps_shard_name_t to;
    uint64_t number;  /* of the transfer; 0: none */
    bool state_taken; /* rows are being sent */
    uint64_t state_taken_ms;
    /* The item being sent: the state, or a piece with parts left to send. */
    ps_payload_t *item; /* owned; NULL: nothing */
    uint64_t lsn;       /* it was read after this record */
    uint64_t lsn_epoch; /* of that record */
    uint64_t place;     /* of a piece */
    bool is_last;
    uint64_t sent_offset;  /* bytes of it that were sent */
    uint64_t acked_offset; /* bytes of the state that the copy has */
    ps_store_cursor_t sent;
    ps_store_cursor_t acked; /* <= sent; the copy has the rows before it */
    uint64_t most;           /* the greatest place ever sent */
    bool all_sent;
    uint64_t request;  /* of the last ROWS */
    uint64_t answered; /* the last one that no longer needs an answer */
    uint64_t rewound;  /* answers up to this one cause no resend */
    uint64_t resend_ms;
    uint32_t n_resent; /* resends without an answer in between */
    uint32_t n_short;  /* consecutive out-of-memory answers */
    uint64_t pause_until_ms;
    uint64_t slot_us;      /* when its next part may be sent, by the rate limit; 0: it has not
                              asked */
    uint64_t copy_busy_ms; /* when its shard last reported that clients use it; 0: never, or they no
                              longer do */
} ps_giving_t;

/* Takes NULL, nulls the pointer. */
void ps_giving_destroy(ps_giving_t **self_p);

typedef enum ps_taking_stage {
    PS_TAKING_NOTHING = 0, /* no transfer ever began here */
    PS_TAKING_STATE = 1,
    PS_TAKING_ROWS = 2,
    PS_TAKING_WHOLE = 3,
    PS_TAKING_BROKEN = 4 /* the received bytes were not a state or piece: start again */
} ps_taking_stage_t;

/* The new copy's side. */
typedef struct ps_taking {
    ps_taking_stage_t stage;
    ps_shard_name_t from;
    uint64_t transfer;
    ps_buffer_t item; /* owned; the parts that have arrived */
    uint64_t place;   /* of the piece that the parts belong to … */
    uint64_t lsn;     /* … and the record after which it was read */
} ps_taking_t;
#endif
