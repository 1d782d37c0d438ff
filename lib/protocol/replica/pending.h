/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_pending - answers that wait for their ack level
 *
 * What     An answer is made when its request is taken, by the same functions
 *          as any other, and kept here until enough copies have the record
 *          that it speaks of. Values of a pushpull are those of that moment,
 *          and belong to nobody else.
 * Shape    one list for each level, in order of lsn
 * Owner    The partition's ps_replicas. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_PENDING_H
#define PS_PROTOCOL_PENDING_H

#include "model/tables/table.h"
#include "protocol/core/outbox.h"

typedef struct ps_waiting_answer {
    uint64_t lsn;      /* the last record that must be everywhere */
    uint64_t session;  /* whom to tell */
    uint64_t request;  /* what it answers */
    bool bulk;         /* by the client's bulk connection */
    uint64_t tell_ms;  /* when to say that it waits; UINT64_MAX: never */
    uint64_t since_ms; /* it waits since then */
    uint32_t job;      /* of the request; 0: of no worker */
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
    uint64_t bytes;                        /* that all of them take, their values too */
} ps_pending_t;

void ps_pending_done(ps_pending_t *self);
/* Makes sure that the next ps_pending_add of that level succeeds. false: no
 * memory. */
PSD_MUST_CHECK bool ps_pending_reserve(ps_pending_t *self, ps_ack_t level);
/* Takes the answer, its payload too; room was reserved. lsn is no less than
 * that of the one before. */
void ps_pending_add(ps_pending_t *self, ps_ack_t level, const ps_waiting_answer_t *answer);
/* The answer that waits for that request of that session; NULL: none. */
ps_waiting_answer_t *ps_pending_find(ps_pending_t *self, uint64_t session, uint64_t request);
/* The oldest answer of the level that waits for no more than lsn, and it is
 * out; the caller has its payload then. false: none. */
PSD_MUST_CHECK bool ps_pending_take(ps_pending_t *self, ps_ack_t level, uint64_t lsn,
                                    ps_waiting_answer_t *ret_answer);
static inline size_t ps_pending_count(const ps_pending_t *self)
{
    return self->of[PS_ACK_REPLICA].n + self->of[PS_ACK_DISK].n;
}
#endif
