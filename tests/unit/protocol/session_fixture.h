/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session under test: table 1 with partitions 0 and 1 on shard 0 and
 * partition 2 on shard 1. What it wants done is compared as text, one line an
 * effect: "0 < PUSH 3 p1 seq 2 e5" is operation 3 going out on link 0.
 */
#ifndef PS_TESTS_SESSION_FIXTURE_H
#define PS_TESTS_SESSION_FIXTURE_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/session/session.h"

#define N_PARTITIONS 3
#define RESEND_MS 100
#define GAP_MS 50 /* least time between two sends of one thing */
#define EPOCH 5

typedef struct fixture {
    ps_session_t *session;
    ps_outbox_t outbox;
    uint64_t now_ms;
    char text[4096];
} fixture_t;

static inline void fill_routes(ps_route_t routes[N_PARTITIONS], uint64_t epoch)
{
    memset(routes, 0, N_PARTITIONS * sizeof *routes);
    for (uint32_t i = 0; i < N_PARTITIONS; i++) {
        routes[i].partition = i;
        routes[i].shard = i / 2;
        routes[i].epoch = epoch;
        routes[i].incarnation = 77;
        (void)snprintf(routes[i].tcp, sizeof routes[i].tcp, "tcp://node:%u", 7000 + i / 2);
    }
}

static inline void fixture_done(fixture_t *self)
{
    ps_outbox_done(&self->outbox);
    ps_session_destroy(&self->session);
}

static inline psd_status_t fixture_open(fixture_t *self)
{
    ps_session_args_t args = {.cluster = {{1}},
                              .client = {{2}},
                              .session = 9,
                              .filters = PS_SPEAKS_TIMES | PS_SPEAKS_BUNDLES,
                              .resend_ms = RESEND_MS};
    ps_route_t routes[N_PARTITIONS];
    psd_status_t rc = ps_session_new(&args, &self->session, NULL);

    if (rc != PSD_OK) {
        return rc;
    }
    fill_routes(routes, EPOCH);
    return ps_session_routes(self->session, 1, routes, N_PARTITIONS, NULL);
}

#define FIXTURE(name)                                              \
    PSD_AUTO(fixture_done) fixture_t name##_at = {.now_ms = 1000}; \
    fixture_t *name = &name##_at;                                  \
    cr_assert_eq(fixture_open(name), PSD_OK)

#define APPEND(self, ...)                                                                          \
    (void)snprintf((self)->text + strlen((self)->text), sizeof(self)->text - strlen((self)->text), \
                   __VA_ARGS__)

static inline void append_send(fixture_t *self, const ps_effect_t *effect)
{
    const ps_message_t *message = &effect->message;

    APPEND(self, "%" PRIu64 " < %s", effect->to, ps_kind_name(message->kind));
    switch ((int)message->kind) {
    case PS_KIND_PUSH:
        APPEND(self, " %" PRIu64 " p%" PRIu32 " seq %" PRIu64 " e%" PRIu64, message->push.request,
               message->push.partition, message->push.seq, message->push.epoch);
        break;
    case PS_KIND_PULL:
        APPEND(self, " %" PRIu64 " p%" PRIu32 " after %" PRIu64 " e%" PRIu64, message->pull.request,
               message->pull.partition, message->pull.after, message->pull.epoch);
        break;
    case PS_KIND_MARK:
        APPEND(self, " %" PRIu64 " p%" PRIu32 " seq %" PRIu64 " e%" PRIu64, message->mark.request,
               message->mark.partition, message->mark.seq, message->mark.epoch);
        break;
    case PS_KIND_PROBE:
        APPEND(self, " %" PRIu64 " p%" PRIu32 " seq %" PRIu64 " e%" PRIu64, message->probe.request,
               message->probe.partition, message->probe.seq, message->probe.epoch);
        break;
    default:
        break;
    }
    APPEND(self, "\n");
}

/* Renders what the session wants done, and empties the outbox. */
static inline const char *story(fixture_t *self)
{
    self->text[0] = '\0';
    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        const ps_effect_t *effect = &self->outbox.effects[i];

        if (effect->kind == PS_EFFECT_OPEN) {
            APPEND(self, "open %" PRIu64 "\n", effect->to);
        } else if (effect->kind == PS_EFFECT_SEND) {
            append_send(self, effect);
        } else if (effect->message.kind == PS_KIND_REFUSED) {
            APPEND(self, "end %" PRIu64 " %s: %s\n", effect->to,
                   psd_status_name((psd_status_t)effect->message.refused.status),
                   effect->message.refused.text);
        } else {
            APPEND(self, "end %" PRIu64 " %s\n", effect->to, ps_kind_name(effect->message.kind));
        }
    }
    ps_outbox_clear(&self->outbox);
    return self->text;
}

#define EXPECT(self, wanted) cr_assert_str_eq(story(self), wanted)

static inline ps_payload_t *bytes_of(size_t size)
{
    static const uint8_t zeros[4096];
    ps_payload_t *payload = NULL;

    cr_assert_leq(size, sizeof zeros);
    payload = ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0}, (ps_bytes_t){zeros, size});
    cr_assert_not_null(payload);
    return payload;
}

static inline ps_slice_t a_slice(void)
{
    return (ps_slice_t){.rows = PS_ROWS_RANGE, .type = PS_TYPE_F32, .n_rows = 1, .n_cols = 1};
}

static inline uint64_t start(fixture_t *self, const ps_op_start_t *wanted)
{
    uint64_t op = 0;

    cr_assert_eq(ps_session_start(self->session, self->now_ms, wanted, &self->outbox, &op, NULL),
                 PSD_OK);
    return op;
}

/* A mark, which is the least there is to start. */
static inline ps_op_start_t a_mark(uint32_t table, uint32_t partition)
{
    return (ps_op_start_t){.kind = PS_KIND_MARK, .table = table, .partition = partition};
}

static inline psd_status_t try_start(fixture_t *self, ps_op_start_t wanted, uint64_t *ret_op,
                                     psd_error_t *err)
{
    return ps_session_start(self->session, self->now_ms, &wanted, &self->outbox, ret_op, err);
}

static inline uint64_t push_bytes(fixture_t *self, uint32_t partition, size_t size, bool pull)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = bytes_of(size);
    ps_op_start_t wanted = {.kind = PS_KIND_PUSH,
                            .table = 1,
                            .partition = partition,
                            .slice = a_slice(),
                            .payload = payload,
                            .pull = pull};

    wanted.slice.n_values = 1;
    return start(self, &wanted);
}

static inline uint64_t push(fixture_t *self, uint32_t partition)
{
    return push_bytes(self, partition, 4, false);
}

static inline uint64_t pull(fixture_t *self, uint32_t partition, uint32_t timeout_ms)
{
    const ps_op_start_t wanted = {.kind = PS_KIND_PULL,
                                  .table = 1,
                                  .partition = partition,
                                  .slice = a_slice(),
                                  .timeout_ms = timeout_ms};

    return start(self, &wanted);
}

static inline uint64_t mark(fixture_t *self, uint32_t partition)
{
    const ps_op_start_t wanted = a_mark(1, partition);

    return start(self, &wanted);
}

static inline void receive(fixture_t *self, uint64_t link, const ps_message_t *message,
                           ps_payload_t *payload)
{
    ps_session_received(self->session, self->now_ms, link, message, payload, &self->outbox);
}

static inline ps_message_t a_welcome(uint32_t shard)
{
    return (ps_message_t){.kind = PS_KIND_WELCOME,
                          .welcome = {.version = 1,
                                      .cluster = {{1}},
                                      .incarnation = 77,
                                      .shard = shard,
                                      .credit_requests = 8,
                                      .credit_bytes = 100,
                                      .chunk_bytes = 64,
                                      .slice_bytes = 2048}};
}

static inline void welcome(fixture_t *self, uint64_t link)
{
    ps_message_t message = a_welcome(ps_session_link(self->session, link)->shard);

    receive(self, link, &message, NULL);
}

#define ADDRESS(op, in_partition, at_epoch, of_seq) \
    .request = (op), .table = 1, .partition = (in_partition), .epoch = (at_epoch), .seq = (of_seq)

static inline void ack(fixture_t *self, uint64_t link, uint64_t op, uint32_t p, uint64_t seq)
{
    ps_message_t message = {.kind = PS_KIND_ACK, .ack = {ADDRESS(op, p, EPOCH, seq), .level = 1}};

    receive(self, link, &message, NULL);
}

static inline void values(fixture_t *self, uint64_t link, uint64_t op, uint32_t p, uint64_t seq)
{
    ps_message_t message = {.kind = PS_KIND_VALUES,
                            .values = {ADDRESS(op, p, EPOCH, seq), .n_done = 1}};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = bytes_of(4);

    receive(self, link, &message, payload);
}

static inline void refused(fixture_t *self, uint64_t link, uint64_t op, uint32_t p,
                           psd_status_t status, uint64_t detail)
{
    ps_message_t message = {.kind = PS_KIND_REFUSED,
                            .refused = {ADDRESS(op, p, EPOCH, 0), .status = (uint16_t)status,
                                        .detail = detail, .text = "because"}};

    receive(self, link, &message, NULL);
}

static inline void parked_by(fixture_t *self, uint64_t link, uint64_t op, uint32_t p,
                             const char *reason)
{
    ps_message_t message = {.kind = PS_KIND_PARKED, .parked = {ADDRESS(op, p, EPOCH, 0)}};

    (void)snprintf(message.parked.text, sizeof message.parked.text, "%s", reason);
    receive(self, link, &message, NULL);
}

static inline void parked(fixture_t *self, uint64_t link, uint64_t op, uint32_t p)
{
    parked_by(self, link, op, p, "waiting for worker 3");
}

static inline void tick_at(fixture_t *self, uint64_t now_ms)
{
    self->now_ms = now_ms;
    ps_session_tick(self->session, now_ms, &self->outbox);
}

/* Opens link 0 with a push to partition 0, and answers it. */
static inline void get_ready(fixture_t *self)
{
    uint64_t op = push(self, 0);

    welcome(self, 0);
    ack(self, 0, op, 0, 1);
    EXPECT(self, "open 0\n"
                 "0 < HELLO\n"
                 "0 < PUSH 1 p0 seq 1 e5\n"
                 "end 1 ACK\n");
}
#endif
