/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_request - a push, pull, mark, probe or bundle as the shard handles it
 *
 * What     The five kinds share most of their fields; this struct has all of
 *          them, and the sender. A request that must wait becomes a ps_held in
 *          its partition's list, in order of arrival, and in its session's list
 *          in the same order.
 */
#ifndef PS_PROTOCOL_REQUEST_H
#define PS_PROTOCOL_REQUEST_H

#include "base/map.h"
#include "wire/messages/row_op.h"
#include "protocol/partition/peer.h"
#include "protocol/facts/counts.h"
#include "protocol/facts/sending.h"
#include "protocol/facts/slow_log.h"
#include "wire/messages/message.h"

typedef struct ps_request {
    ps_kind_t kind; /* PUSH, PULL, MARK, PROBE or BUNDLE */
    uint64_t request;
    uint32_t table;
    uint32_t partition;
    uint64_t epoch;
    uint64_t seq;   /* 0 for a PULL or BUNDLE */
    uint64_t after; /* PULL only */
    uint32_t job;   /* 0: not from a worker */
    uint32_t worker;
    uint32_t member;
    uint32_t joins; /* the life of the rank */
    uint64_t clock;
    uint32_t timeout_ms;
    uint8_t ack;
    bool of_mark;  /* a PROBE: of a MARK, not of a PUSH */
    bool pull;     /* a PUSH that wants values back */
    bool marks;    /* a PUSH that also finishes its worker's clock; any BUNDLE, which may */
    bool filtered; /* it was encoded with a filter; its answer may use: */
    bool answer_delta;
    uint8_t answer_pack;      /* ps_pack_t */
    uint8_t answer_values_as; /* ps_values_as_t */
    uint16_t n_from;          /* BUNDLE: contributors … */
    uint16_t n_spans;         /* … and spans of its payload */
    uint64_t beside;          /* one span as a PUSH: bytes that those before it take */
    ps_row_op_t op;
    uint64_t since; /* PULL: only rows changed after this version */
    ps_slice_t slice;
    ps_payload_t *payload; /* borrowed; held when in a ps_held */
    uint64_t session;      /* of the client */
    ps_peer_t *peer;       /* the client; borrowed: it stays while it has held requests */
    uint64_t conn;         /* the connection that the request came on */
    ps_room_t room;        /* of the answer's values; borrowed until conn is gone */
    ps_sending_t sending;  /* of an answer with values to it, if one is in flight */
    bool wants_times;      /* its answer says where its time went: */
    ps_times_t times;      /* so far */
} ps_request_t;

/* Reads message, which is of one of the five kinds; zeroes the other fields of
 * the request. */
void ps_request_read(const ps_message_t *message, ps_request_t *ret_request);

/* What the log of slow requests knows of it, without a part. */
ps_slow_t ps_request_slow(const ps_request_t *self, uint64_t now_ms);

/* Reads the rows of another table, too. */
static inline bool ps_request_is_paired(const ps_request_t *self)
{
    return self->kind == PS_KIND_PULL && self->op.op == PS_READ_DOT;
}

/* The same, or changes its own rows by those. */
static inline bool ps_request_names_other(const ps_request_t *self)
{
    return ps_request_is_paired(self) ||
           (self->kind == PS_KIND_PUSH && self->op.op == PS_CHANGE_AXPY);
}

/* It brings rows: a PUSH, or a BUNDLE that is not of marks alone. */
static inline bool ps_request_has_rows(const ps_request_t *self)
{
    return self->kind == PS_KIND_PUSH || (self->kind == PS_KIND_BUNDLE && self->n_spans > 0);
}

/* True when it finishes a clock … */
static inline bool ps_request_marks(const ps_request_t *self)
{
    return self->kind == PS_KIND_MARK || self->marks;
}

/* … and the number of clocks finished after it. */
static inline uint64_t ps_request_finishes(const ps_request_t *self)
{
    return self->kind == PS_KIND_MARK ? self->clock : self->clock + 1;
}

typedef struct ps_held {
    ps_request_t is; /* holds the payload */
    uint64_t since_ms;
    uint64_t since_us;
    ps_held_for_t why; /* it was held first */
    uint64_t tell_ms;  /* when to answer that it waits; UINT64_MAX never */
    struct ps_held *previous;
    struct ps_held *next;
    struct ps_held *previous_own; /* of the session; the first one's is the
                                     last */
    struct ps_held *next_own;     /* of the session; NULL: none */
} ps_held_t;

typedef struct ps_held_list {
    ps_held_t *first; /* owned, in order of arrival */
    ps_held_t *last;
    ps_map_t own; /* session -> its first ps_held_t, borrowed */
} ps_held_list_t;

/* NULL when there is no memory. */
ps_held_t *ps_held_append(ps_held_list_t *self, const ps_request_t *request, uint64_t now_ms);
/* The first of a session, in order of arrival; NULL: none. */
ps_held_t *ps_held_of(const ps_held_list_t *self, uint64_t session);
/* Takes it out and frees it. */
void ps_held_remove(ps_held_list_t *self, ps_held_t **held_p);
/* Frees all, and the list's own memory. */
void ps_held_clear(ps_held_list_t *self);
#endif
