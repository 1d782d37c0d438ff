/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_giving, ps_taking - a partition on its way to a new copy
 *
 * What     A *transfer*: the primary gives the state, then all rows in pieces,
 *          and between the pieces every record that it makes
 *          (protocol/partition/partition_copy.h). A piece was read behind one record and
 *          is taken behind the same one, and where the rows before it end; what
 *          does not fit is not taken, and read anew by the primary. So nothing
 *          has to come once only, or in order, and the primary keeps no piece.
 *          The state is kept until the copy has it.
 *
 *              state --all of it was taken--> rows --the last piece--> (whole)
 *                ^                              |
 *                +--- ANEW, diverged, records --+
 *                     that are gone
 *
 *          A large state, or piece, goes in parts. The copy's partition is a
 *          new one from the state on; the one that was there is gone.
 * Units    bytes; place: of a row, as ps_store_cursor_t's
 * Owner    The partition's ps_replicas.
 * Threads  Confined to the shard's one.
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
    uint64_t number;  /* of the transfer; 0: none has begun */
    bool state_taken; /* rows are under way */
    uint64_t state_taken_ms;
    /* What goes now: the state, or a piece not all parts of which have gone. */
    ps_payload_t *item; /* owned; NULL: nothing */
    uint64_t lsn;       /* behind this record it was read */
    uint64_t lsn_epoch; /* of that record */
    uint64_t place;     /* of a piece */
    bool is_last;
    uint64_t sent_offset;  /* bytes of it that have gone */
    uint64_t acked_offset; /* of the state, that the copy has */
    ps_store_cursor_t sent;
    ps_store_cursor_t acked; /* <= sent; the copy has the rows before it */
    uint64_t most;           /* the greatest place that was ever sent */
    bool all_sent;
    uint64_t request;  /* of the last ROWS */
    uint64_t answered; /* the last one that needs no answer any more */
    uint64_t rewound;  /* answers up to this one send nothing again */
    uint64_t resend_ms;
    uint32_t n_resent; /* without an answer in between */
    uint32_t n_short;  /* answers in a row that memory was short */
    uint64_t pause_until_ms;
    uint64_t slot_us;      /* when its next part may go, by the limit of bandwidth;
                              0: it has not asked */
    uint64_t copy_busy_ms; /* its shard has said then that clients ask it; 0: it
                              has not, or that none do */
} ps_giving_t;

/* Takes NULL, nulls what it points at. */
void ps_giving_destroy(ps_giving_t **self_p);

typedef enum ps_taking_stage {
    PS_TAKING_NOTHING = 0, /* no transfer was ever begun here */
    PS_TAKING_STATE = 1,
    PS_TAKING_ROWS = 2,
    PS_TAKING_WHOLE = 3,
    PS_TAKING_BROKEN = 4 /* what came was no state or piece: begin anew */
} ps_taking_stage_t;

/* The new copy's side. */
typedef struct ps_taking {
    ps_taking_stage_t stage;
    ps_shard_name_t from;
    uint64_t transfer;
    ps_buffer_t item; /* owned; the parts that have come */
    uint64_t place;   /* of the piece whose parts they are … */
    uint64_t lsn;     /* … and behind which record it was read */
} ps_taking_t;
#endif
