/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/core: shared by all pure state machines
 *
 * It is       The list of effects that a step of a machine leaves to its shell.
 * It uses     facts, lib/wire, lib/model, lib/base.
 * It ignores  Which machine adds an effect, and how a shell performs it.
 * Start at    ps_effect_kind_t: all that can be asked of a shell.
 */
/*
 * ps_outbox - the effects that a state machine of the core asks for
 *
 * What     A list of effects in the order in which they must happen. A shell
 *          performs them and empties the list; the core never does anything
 *          itself. Notes are facts as numbers; ps_note_print renders them once
 *          for the log and for trace tests.
 * Owner    The caller; ps_outbox_clear frees what the effects hold.
 */
#ifndef PS_PROTOCOL_OUTBOX_H
#define PS_PROTOCOL_OUTBOX_H

#include "model/rows/pages.h"
#include "protocol/facts/copies.h"
#include "wire/records/record.h"

typedef enum ps_effect_kind {
    PS_EFFECT_SEND = 1,   /* message and payload to connection `to` */
    PS_EFFECT_RECORD = 2, /* `record` was appended to the partition log */
    PS_EFFECT_NOTE = 3,   /* `note` happened */
    PS_EFFECT_OPEN = 4,   /* session: open connection `to` (ps_session_link); shard: open one to the
                             shard of `copy`; messages from it arrive with conn `to` */
    PS_EFFECT_DONE = 5,   /* session: operation `to` ended with `message` */
    PS_EFFECT_FILL = 6,   /* prefault `soon` in the background; optional */
    PS_EFFECT_CLOSE = 7,  /* shard: close the connection `to` that it opened */
    PS_EFFECT_REPORT = 8, /* shard: `report`, to the registry */
    PS_EFFECT_PIECE = 9   /* shard: append `piece` of a snapshot, whose bytes are the payload's
                             values, to the records for the disk */
} ps_effect_kind_t;

/* Kinds of events, and the meaning of ps_note_t's numbers for each; outbox.c
 * has the words. */
typedef enum ps_note_kind {
    PS_NOTE_REFUSED = 1,        /* a session, b seq, c status */
    PS_NOTE_DUPLICATE = 2,      /* a session, b seq */
    PS_NOTE_GAP = 3,            /* a session, b seq, c expected */
    PS_NOTE_APPLIED = 4,        /* a session, b seq, c lsn, d worker, e clock */
    PS_NOTE_LOGGED = 5,         /* as APPLIED, but waits for its clock to close */
    PS_NOTE_MARKED = 6,         /* a job, b worker, c member, d clock */
    PS_NOTE_CLOSED = 7,         /* a job, b clock, c pushes applied */
    PS_NOTE_HELD = 8,           /* a session, b worker, c clock, d waits for
                                   worker, e at clock */
    PS_NOTE_SERVED = 9,         /* a session, b worker, c clock, d rows */
    PS_NOTE_HELLO = 10,         /* a session, b connection */
    PS_NOTE_HELLO_REFUSED = 11, /* a session, b status */
    PS_NOTE_FORGOTTEN = 12,     /* a session */
    PS_NOTE_COPY_BEGUN = 13,    /* a transfer, b lsn: the copy here starts again from its primary's
                                   state */
    PS_NOTE_COPY_WHOLE = 14,    /* a transfer, b lsn: all rows have arrived */
    PS_NOTE_WRONG = 15          /* a job, b worker whose relay brought a bundle with a wrong sum, c
                                   clock */
} ps_note_kind_t;

typedef struct ps_note {
    ps_note_kind_t kind;
    uint32_t table;
    uint32_t partition;
    uint64_t a, b, c, d, e;
} ps_note_t;

typedef enum ps_report_kind {
    PS_REPORT_POSITION = 1,  /* answer to FENCE: this copy's last lsn */
    PS_REPORT_FENCED = 2,    /* a copy refuses records of this primary */
    PS_REPORT_SLOW = 3,      /* a copy in sync has been silent for too long, or has flushed nothing;
                                may also be the primary itself */
    PS_REPORT_DIVERGED = 4,  /* a copy must start again from rows */
    PS_REPORT_CAUGHT_UP = 5, /* a copy has all records */
    PS_REPORT_PARTIAL = 6    /* answer to FENCE: this copy lacks rows, or its rows differ from its
                                primary's */
} ps_report_kind_t;

/* A report about a copy for the registry. All kinds except POSITION, PARTIAL
 * and FENCED are repeated while they hold. */
typedef struct ps_report {
    ps_report_kind_t kind;
    uint32_t table;
    uint32_t partition;
    uint64_t epoch;       /* of the map here; POSITION, PARTIAL: of the FENCE */
    uint64_t incarnation; /* of the copy's node … */
    uint32_t shard;       /* … and its shard */
    uint64_t lsn;         /* the last lsn of the copy, as far as known */
    uint64_t lsn_epoch;   /* POSITION: the epoch of that record; 0: none */
} ps_report_t;

/* A part of a partition's snapshot: its state first, then rows. */
typedef struct ps_piece {
    uint32_t table;
    uint32_t partition;
    uint64_t first_lsn; /* the state's */
    uint64_t lsn;       /* at which this one was read */
    uint64_t life;      /* of the copy */
    bool is_first;
    bool is_last;
} ps_piece_t;

typedef struct ps_effect {
    ps_effect_kind_t kind;
    uint64_t to;           /* connection, or operation */
    void *owner;           /* session: of the operation (ps_op_start_t) */
    ps_payload_t *payload; /* held by the effect; may be NULL */
    union {
        ps_message_t message; /* SEND, DONE */
        ps_record_t record;
        ps_note_t note;
        ps_soon_t soon;     /* FILL */
        ps_copy_t copy;     /* OPEN of a shard */
        ps_report_t report; /* REPORT */
        ps_piece_t piece;   /* PIECE */
    };
} ps_effect_t;

typedef struct ps_outbox {
    ps_effect_t *effects; /* owned */
    size_t n_effects;
    size_t n_held; /* places reserved for effects that will follow */
    size_t capacity;
} ps_outbox_t;

/* Appends a zeroed effect; borrowed until the next call. NULL: no memory. */
PSD_MUST_CHECK ps_effect_t *ps_outbox_add(ps_outbox_t *self, ps_effect_kind_t kind);
/* The same, but message, record and note are uninitialized: the caller fills in
 * all fields that the kind needs. An effect is large, and every request makes
 * one. */
PSD_MUST_CHECK ps_effect_t *ps_outbox_add_raw(ps_outbox_t *self, ps_effect_kind_t kind);
/* Appends a report about a copy; drops it when there is no memory. */
void ps_outbox_report(ps_outbox_t *self, const ps_report_t *report);
/* Makes sure that the next n ps_outbox_add succeed. false: no memory. */
PSD_MUST_CHECK bool ps_outbox_reserve(ps_outbox_t *self, size_t n);
/* Reserves one place that no ps_outbox_add takes until the hold ends; the next
 * ps_outbox_add then succeeds. false: no memory. */
PSD_MUST_CHECK bool ps_outbox_hold(ps_outbox_t *self);
void ps_outbox_give_up(ps_outbox_t *self);
/* Drops all effects and what they hold; keeps the array for the next turn. */
void ps_outbox_clear(ps_outbox_t *self);
/* Clears and frees the array; fits PSD_AUTO. */
void ps_outbox_done(ps_outbox_t *self);

/* "push_applied table=1 partition=0 session=4 seq=2 …" for the log and the
 * trace; the first word is the event. ret_level as ps_log_level_t's numbers. */
void ps_note_print(const ps_note_t *note, char *ret_text, size_t size, int *ret_level);
#endif
