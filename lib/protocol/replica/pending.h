/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_pending - answers that wait for their ack level
 *
 * What     An answer is made when its request is taken, by the same functions
 *          as any other, and kept here until enough copies have its record.
 *          Values of a pushpull are those of that moment; the answer owns them.
 * Shape    one list for each level, in order of lsn
 * Owner    The partition's ps_replicas. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_PENDING_H
#define PS_PROTOCOL_PENDING_H

#include "model/tables/table.h"
#include "protocol/core/outbox.h"

typedef struct ps_waiting_answer {
    uint64_t lsn;      /* the last record that the copies must have */
    uint64_t session;  /* the receiver */
    uint64_t request;  /* the request that it answers */
    bool bulk;         /* on the client's bulk connection */
    uint64_t tell_ms;  /* when to answer PARKED; UINT64_MAX: never */
    uint64_t since_ms; /* it waits since then … */
    uint64_t since_us; /* … or, when the answer has times, since the work on its request ended */
    ps_kind_t kind;    /* of the request */
    uint64_t rows;
    uint64_t bytes;
    uint32_t job; /* of the request; 0: not from a worker */
    uint32_t worker;
    uint64_t clock;
    ps_effect_t answer; /* SEND; holds its payload */
} ps_waiting_answer_t;

typedef struct ps_pending_list {
    ps_waiting_answer_t *items; /* owned */
    size_t first;
    size_t n;
    size_t capacity;
} ps_pending_list_t;

typedef struct ps_pending {
    ps_pending_list_t of[PS_ACK_DISK + 1]; /* by level; MEMORY's stays empty */
    uint64_t bytes;                        /* of all answers, including their values */
} ps_pending_t;

void ps_pending_done(ps_pending_t *self);
/* Makes sure that the next ps_pending_add of that level succeeds. false: no
 * memory. */
PSD_MUST_CHECK bool ps_pending_reserve(ps_pending_t *self, ps_ack_t level);
/* Takes the answer and its payload; room was reserved. lsn never decreases from
 * call to call. */
void ps_pending_add(ps_pending_t *self, ps_ack_t level, const ps_waiting_answer_t *answer);
/* The answer that waits for that request of that session; NULL: none. */
ps_waiting_answer_t *ps_pending_find(ps_pending_t *self, uint64_t session, uint64_t request);
/* Removes the oldest answer of the level that waits for at most lsn; the caller
 * then owns its payload. false: none. */
PSD_MUST_CHECK bool ps_pending_take(ps_pending_t *self, ps_ack_t level, uint64_t lsn,
                                    ps_waiting_answer_t *ret_answer);
static inline size_t ps_pending_count(const ps_pending_t *self)
{
    return self->of[PS_ACK_REPLICA].n + self->of[PS_ACK_DISK].n;
}
#endif
