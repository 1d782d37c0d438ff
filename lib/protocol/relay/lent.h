/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_lent - what a client has lent to a relay, until the server has acknowledged it
 *
 * What     The other half of a relay: the origin. It keeps each delta that it lent until the
 *          server's own answer, and sends it directly, under the same seq, when the relay gives
 *          it back, or is silent for longer than patience allows and the server has not got it.
 * States   lent      a relay has it
 *          doubtful  the relay was silent; the server was asked
 *          back      the relay gave it back, or the server has not got it: it goes directly when
 *                    nothing before it is lent or doubtful, since the server takes seqs in order
 *          direct    it went
 * Order    Of one partition seqs ascend. While something is lent or doubtful, nothing goes
 *          directly past it; while something is back or direct, nothing is lent past it.
 * Doubt    What was lent may have been taken until the server has said so, also when the relay gave
 *          it back. A session that begins again under another identity must count it as an unsure
 *          send that no refusal takes back (protocol/session/session_forgotten.c).
 * Time     now_ms of any clock that does not go back.
 * Owner    The caller; ps_lent_destroy. Payloads are held.
 * Threads  One at a time.
 */
#ifndef PS_PROTOCOL_LENT_H
#define PS_PROTOCOL_LENT_H

#include "base/slice.h"

typedef struct ps_lent_place {
    uint32_t table;
    uint32_t partition;
} ps_lent_place_t;

typedef enum ps_lent_way {
    PS_LENT_FREE = 1, /* nothing is in the way: it may be lent, or go directly */
    PS_LENT_LEND = 2, /* only by the relay */
    PS_LENT_DIRECT = 3,
    PS_LENT_WAIT = 4 /* neither now */
} ps_lent_way_t;

typedef enum ps_lent_deed_kind {
    PS_LENT_ASK = 1, /* the server, whether it has the seq (PROBE) */
    PS_LENT_SEND = 2 /* directly */
} ps_lent_deed_kind_t;

typedef struct ps_lent_deed {
    ps_lent_deed_kind_t kind;
    ps_lent_place_t place;
    uint64_t seq;
    const ps_payload_t *payload; /* borrowed until the seq ends; NULL: it has none */
} ps_lent_deed_t;

typedef struct ps_lent ps_lent_t;

/* patience_ms: from 1; limit: seqs that may be here at a time, from 1. Errors: PSD_INVALID;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_lent_new(uint64_t patience_ms, size_t limit, ps_lent_t **ret_lent,
                                        psd_error_t *err);
void ps_lent_destroy(ps_lent_t **self_p);

/* Which way the next seq of that partition may go. */
ps_lent_way_t ps_lent_way(const ps_lent_t *self, ps_lent_place_t place);
/* A relay has taken that seq. payload may be NULL. Errors: PSD_INVALID a seq that is not above
 * those that are here, or a way that is not LEND or FREE; PSD_LIMIT; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_lent_add(ps_lent_t *self, uint64_t now_ms, ps_lent_place_t place,
                                        uint64_t seq, ps_payload_t *payload, psd_error_t *err);
/* A sign of life of the relay that has it. */
void ps_lent_heard(ps_lent_t *self, uint64_t now_ms, ps_lent_place_t place, uint64_t seq);
/* The relay gave it back, or the server said that it has not got it. */
void ps_lent_back(ps_lent_t *self, ps_lent_place_t place, uint64_t seq);
/* The relay is gone: all that is lent is doubtful at once. */
void ps_lent_gone(ps_lent_t *self, uint64_t now_ms);
/* The server's answer: acknowledged, or refused for good. */
void ps_lent_end(ps_lent_t *self, ps_lent_place_t place, uint64_t seq);
/* Time has passed: what was not heard of for too long is doubtful, and is asked for again. */
void ps_lent_tick(ps_lent_t *self, uint64_t now_ms);
uint64_t ps_lent_due(const ps_lent_t *self);
/* The next deed; false: there is none. */
bool ps_lent_next(ps_lent_t *self, ps_lent_deed_t *ret_deed);
/* Seqs that are here. */
size_t ps_lent_count(const ps_lent_t *self);
#endif
