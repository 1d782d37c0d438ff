/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_request - a push, pull, mark or probe as the shard handles it
 *
 * What     The four kinds share most of their fields; this is all of them in
 *          one shape, with who asked. A request that must wait becomes a
 *          ps_held, which lives in its partition's list in order of arrival.
 */
#ifndef PS_PROTOCOL_REQUEST_H
#define PS_PROTOCOL_REQUEST_H

#include "wire/message.h"

typedef struct ps_request {
    ps_kind_t kind; /* PUSH, PULL, MARK or PROBE */
    uint64_t request;
    uint32_t table;
    uint32_t partition;
    uint64_t epoch;
    uint64_t seq;   /* 0 for a PULL */
    uint64_t after; /* PULL only */
    uint32_t job;   /* 0: no worker asks */
    uint32_t worker;
    uint32_t member;
    uint32_t joins; /* which life of the rank asks */
    uint64_t clock;
    uint32_t timeout_ms;
    uint8_t ack;
    bool pull; /* a PUSH that wants values back */
    ps_slice_t slice;
    ps_payload_t *payload; /* borrowed; held when in a ps_held */
    uint64_t session;      /* of the client */
} ps_request_t;

/* Reads message, which is of one of the four kinds. */
void ps_request_read(const ps_message_t *message,
                     ps_payload_t *payload,
                     uint64_t session,
                     ps_request_t *ret_request);

typedef struct ps_held {
    ps_request_t is; /* holds the payload */
    uint64_t since_ms;
    uint64_t tell_ms; /* when to say that it waits; UINT64_MAX never */
    struct ps_held *previous;
    struct ps_held *next;
} ps_held_t;

typedef struct ps_held_list {
    ps_held_t *first; /* owned, in order of arrival */
    ps_held_t *last;
} ps_held_list_t;

/* NULL when there is no memory. */
ps_held_t *ps_held_append(ps_held_list_t *self,
                          const ps_request_t *request,
                          uint64_t now_ms);
/* Takes it out and frees it. */
void ps_held_remove(ps_held_list_t *self, ps_held_t **held_p);
void ps_held_clear(ps_held_list_t *self);
#endif
