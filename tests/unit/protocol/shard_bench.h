/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_bench - one shard, one client, one table of two partitions
 *
 * What     Steps a shard with messages of one client and looks at the answers.
 *          Partition 0 is here, partition 1 is on another shard.
 * Owner    A test embeds a bench_t: open_bench, close_bench.
 */
#ifndef PS_TESTS_SHARD_BENCH_H
#define PS_TESTS_SHARD_BENCH_H

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/shard/shard.h"

#define CONN 77
#define SESSION 5
#define INCARNATION 1001
#define N_ROWS 8

typedef struct bench {
    ps_shard_t *shard;
    ps_outbox_t outbox;
    ps_table_spec_t spec;
    ps_route_t routes[2];
    uint64_t now_ms;
    uint32_t told_job;
    uint32_t told_table;
} bench_t;

static inline psd_status_t step(bench_t *self, ps_event_t *event)
{
    ps_outbox_clear(&self->outbox);
    event->now_ms = self->now_ms;
    return ps_shard_step(self->shard, event, &self->outbox, NULL);
}

static inline psd_status_t say(bench_t *self, const ps_message_t *message, ps_payload_t *payload)
{
    return step(self, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                    .conn = CONN,
                                    .message = message,
                                    .payload = payload,
                                    .told_job = self->told_job,
                                    .told_table = self->told_table});
}

/* The only message that was sent; NULL when none was. */
static inline const ps_message_t *answer(const bench_t *self)
{
    const ps_message_t *found = NULL;

    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        if (self->outbox.effects[i].kind == PS_EFFECT_SEND) {
            cr_assert_null(found, "one answer to one request");
            found = &self->outbox.effects[i].message;
        }
    }
    return found;
}

/* The same for looking into: an empty message when none was sent. */
static inline const ps_message_t *said(const bench_t *self)
{
    static const ps_message_t nothing;
    const ps_message_t *message = answer(self);

    return message == NULL ? &nothing : message;
}

static inline void expect_refused(const bench_t *self, psd_status_t status, const char *text)
{
    const ps_message_t *message = answer(self);

    cr_assert_not_null(message);
    cr_assert_eq(message->kind, PS_KIND_REFUSED);
    cr_expect_eq(message->refused.status, status);
    cr_expect_str_eq(message->refused.text, text);
}

static inline psd_status_t set_table(bench_t *self)
{
    return step(self, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                    .table = 1,
                                    .spec = &self->spec,
                                    .routes = self->routes,
                                    .n_routes = 2});
}

static inline psd_status_t hello(bench_t *self, const ps_msg_hello_t *change)
{
    ps_message_t message = {.kind = PS_KIND_HELLO, .hello = *change};

    return say(self, &message, NULL);
}

static const ps_msg_hello_t good_hello = {
    .version_min = 1, .version_max = 1, .incarnation = INCARNATION, .session = SESSION};

/* Of the table that is made next. */
static ps_type_t bench_type = PS_TYPE_F32;

/* A shard that holds partition 0 of a table of two; partition 1 is on shard 1.
 * updater: NULL: the one that adds. */
static inline psd_status_t open_bench_of(bench_t *self, uint64_t memory_bytes, const char *updater)
{
    const ps_shard_args_t args = {.incarnation = INCARNATION,
                                  .memory_bytes = memory_bytes,
                                  .credit_requests = 2,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = 2,
                                  .trace = true,
                                  .log = true};
    psd_status_t rc;

    *self = (bench_t){.now_ms = 100};
    ps_table_spec_init(&self->spec);
    if (updater != NULL) {
        cr_assert_eq(ps_updater_spec_parse(updater, &self->spec.updater, NULL), PSD_OK);
    }
    (void)snprintf(self->spec.name, sizeof self->spec.name, "w");
    self->spec.n_rows = N_ROWS;
    self->spec.type = bench_type;
    self->spec.n_partitions = 2;
    self->spec.n_col_slices = 1;
    for (uint32_t i = 0; i < 2; i++) {
        self->routes[i] =
            (ps_route_t){.partition = i, .shard = i, .epoch = 4, .incarnation = INCARNATION};
    }
    rc = ps_shard_new(&args, &self->shard, NULL);
    if (rc == PSD_OK) {
        rc = set_table(self);
    }
    return rc == PSD_OK ? hello(self, &good_hello) : rc;
}

static inline psd_status_t open_bench_within(bench_t *self, uint64_t memory_bytes)
{
    return open_bench_of(self, memory_bytes, NULL);
}

static inline psd_status_t open_bench(bench_t *self)
{
    return open_bench_within(self, 0);
}

static inline void close_bench(bench_t *self)
{
    ps_shard_destroy(&self->shard);
    ps_outbox_done(&self->outbox);
    ps_table_spec_done(&self->spec);
}

static inline ps_message_t push_message(uint64_t seq)
{
    return (ps_message_t){.kind = PS_KIND_PUSH,
                          .push = {.request = seq,
                                   .table = 1,
                                   .epoch = 4,
                                   .seq = seq,
                                   .type = PS_TYPE_F32,
                                   .n_rows = 1,
                                   .n_cols = 1,
                                   .n_values = 1}};
}

static inline psd_status_t push_as(bench_t *self, const ps_message_t *message, uint64_t row,
                                   float value)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                        (ps_bytes_t){(const uint8_t *)&value, sizeof value});

    return payload == NULL ? PSD_NOMEM : say(self, message, payload);
}

static inline psd_status_t push(bench_t *self, uint64_t seq, uint64_t row, float value)
{
    ps_message_t message = push_message(seq);

    return push_as(self, &message, row, value);
}

static inline float pull(bench_t *self, uint64_t row)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.request = 1000,
                                     .table = 1,
                                     .epoch = 4,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 1,
                                     .n_cols = 1}};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row},
                                            (ps_bytes_t){0}, (ps_bytes_t){0});
    float value = -1;

    cr_assert_eq(say(self, &message, payload), PSD_OK);
    cr_assert_not_null(answer(self));
    cr_assert_eq(said(self)->kind, PS_KIND_VALUES);
    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        if (self->outbox.effects[i].kind == PS_EFFECT_SEND) {
            memcpy(&value, self->outbox.effects[i].payload->spans[0].data, sizeof value);
        }
    }
    return value;
}
#endif
