/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replica_kit - one shard with a copy of a partition, all others played by hand
 *
 * What     The shard is on node 1. Maps are said as text, "5: 1P 2S 3C" being
 *          epoch 5 with the primary on node 1, node 2 in sync and node 3
 *          catching up; "6F: 1S 2K" is fenced, node 2 kept. What the shard does
 *          is left in the outbox of its last step.
 * Owner    A test embeds a kit_t: kit_open, kit_close.
 */
#ifndef PS_TESTS_REPLICA_KIT_H
#define PS_TESTS_REPLICA_KIT_H

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/shard/shard_state.h"

#define KIT_NODES 4
#define KIT_TABLE 7
#define KIT_CLIENT 100 /* conn of the client */
#define KIT_CONN 500   /* and the number of a node: its conn */
#define KIT_SESSION 1
#define KIT_PARTITIONS 2 /* the last one is elsewhere if nothing is said */

typedef struct kit {
    ps_shard_t *shard;
    ps_outbox_t outbox;
    ps_table_spec_t spec;
    uint64_t now_ms;
    bool rows_lost;                /* as maps say */
    bool restoring;                /* likewise */
    uint64_t links[KIT_NODES + 1]; /* conn that was opened to a node; 0: none */
} kit_t;

static inline uint64_t kit_incarnation(uint32_t node)
{
    return 70 + node;
}

static inline void kit_open_with(kit_t *self, const ps_shard_args_t *args)
{
    *self = (kit_t){.now_ms = 10000};
    ps_table_spec_init(&self->spec);
    (void)snprintf(self->spec.name, sizeof self->spec.name, "t");
    self->spec.n_rows = 16;
    self->spec.type = PS_TYPE_I64;
    self->spec.n_partitions = KIT_PARTITIONS;
    self->spec.n_col_slices = 1;
    self->spec.replicas = 3;
    self->spec.ack = PS_ACK_REPLICA;
    cr_assert_eq(ps_shard_new(args, &self->shard, NULL), PSD_OK);
}

static inline ps_shard_args_t kit_args(void)
{
    return (ps_shard_args_t){.incarnation = 71,
                             .credit_requests = 8,
                             .credit_bytes = 1 << 20,
                             .chunk_bytes = 1 << 20,
                             .slice_bytes = 1 << 20,
                             .held_bytes = 1 << 20,
                             .keys_bytes = 1 << 20,
                             .sessions_max = 2,
                             .lease_ms = 300,
                             .slow_after_ms = 2000,
                             .log = true};
}

static inline void kit_open(kit_t *self)
{
    const ps_shard_args_t args = kit_args();

    kit_open_with(self, &args);
}

static inline void kit_close(kit_t *self)
{
    ps_shard_destroy(&self->shard);
    ps_outbox_done(&self->outbox);
    ps_table_spec_done(&self->spec);
}

static inline psd_status_t kit_step(kit_t *self, ps_event_t *event)
{
    psd_status_t rc = PSD_OK;

    ps_outbox_clear(&self->outbox);
    event->now_ms = self->now_ms;
    rc = ps_shard_step(self->shard, event, &self->outbox, NULL);
    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        const ps_effect_t *effect = &self->outbox.effects[i];

        if (effect->kind == PS_EFFECT_OPEN) {
            self->links[effect->copy.incarnation - 70] = effect->to;
        }
    }
    return rc;
}

/* ---- what the registry says ---- */

static inline void kit_read_map(const char *text, ps_copies_t *ret)
{
    char *at = NULL;

    *ret = (ps_copies_t){.epoch = strtoull(text, &at, 10)};
    if (*at == 'F') {
        ret->fenced = true;
        at++;
    }
    while (*++at == ' ') {
        ps_copy_t *copy = &ret->at[ret->n++];

        copy->incarnation = kit_incarnation((uint32_t)strtoul(at, &at, 10));
        copy->state = *at == 'P'   ? PS_COPY_PRIMARY
                      : *at == 'S' ? PS_COPY_IN_SYNC
                      : *at == 'K' ? PS_COPY_KEPT
                                   : PS_COPY_CATCHING_UP;
    }
}

/* Maps of partition 0 and 1. */
static inline psd_status_t kit_maps(kit_t *self, const char *first, const char *second)
{
    ps_copies_t copies[KIT_PARTITIONS];
    ps_route_t routes[KIT_PARTITIONS];

    memset(routes, 0, sizeof routes);
    kit_read_map(first, &copies[0]);
    kit_read_map(second, &copies[1]);
    for (uint32_t i = 0; i < KIT_PARTITIONS; i++) {
        routes[i].partition = i;
        routes[i].epoch = copies[i].epoch;
        routes[i].incarnation = copies[i].at[0].incarnation;
    }
    return kit_step(self, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                        .table = KIT_TABLE,
                                        .spec = &self->spec,
                                        .routes = routes,
                                        .n_routes = KIT_PARTITIONS,
                                        .copies = copies,
                                        .rows_lost = self->rows_lost,
                                        .restoring = self->restoring});
}

static inline void kit_map(kit_t *self, const char *text)
{
    cr_assert_eq(kit_maps(self, text, "1: 4P"), PSD_OK);
}

static inline void kit_fence(kit_t *self, uint64_t epoch)
{
    cr_assert_eq(
        kit_step(self, &(ps_event_t){.kind = PS_EVENT_FENCE, .table = KIT_TABLE, .epoch = epoch}),
        PSD_OK);
}

static inline void kit_tick(kit_t *self, uint64_t more_ms)
{
    self->now_ms += more_ms;
    cr_assert_eq(kit_step(self, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
}

/* ---- messages ---- */

static inline void kit_say(kit_t *self, uint64_t conn, const ps_message_t *message,
                           ps_payload_t *payload)
{
    cr_assert_eq(kit_step(self, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                              .conn = conn,
                                              .message = message,
                                              .payload = payload}),
                 PSD_OK);
}

/* The link to the node was opened, and is answered. */
static inline void kit_welcome(kit_t *self, uint32_t node)
{
    const ps_message_t message = {.kind = PS_KIND_WELCOME};

    cr_assert_neq(self->links[node], 0, "no link to node %u", node);
    kit_say(self, self->links[node], &message, NULL);
}

/* Node's answer to an APPEND that was sent just now, under that epoch. */
static inline void kit_answer(kit_t *self, uint32_t node, uint64_t epoch,
                              ps_appended_status_t status, uint64_t lsn)
{
    ps_message_t message = {.kind = PS_KIND_APPENDED};

    message.appended = (ps_msg_appended_t){.table = KIT_TABLE,
                                           .epoch = epoch,
                                           .lsn = lsn,
                                           .sent_ms = self->now_ms,
                                           .status = (uint16_t)status};
    kit_say(self, self->links[node], &message, NULL);
}

static inline void kit_hello_as(kit_t *self, uint64_t conn, uint64_t session)
{
    ps_message_t message = {.kind = PS_KIND_HELLO};

    message.hello = (ps_msg_hello_t){.version_min = PS_VERSION_MIN,
                                     .version_max = PS_VERSION,
                                     .incarnation = 71,
                                     .client = {{(uint8_t)session}},
                                     .session = session};
    kit_say(self, conn, &message, NULL);
}

static inline void kit_hello(kit_t *self)
{
    kit_hello_as(self, KIT_CLIENT, KIT_SESSION);
}

static inline ps_payload_t *kit_one_value(uint64_t row, uint64_t value)
{
    uint8_t key[8];
    uint8_t bytes[8];
    ps_payload_t *payload = NULL;

    ps_store_u64(key, row);
    ps_store_u64(bytes, value);
    payload = ps_payload_copy((ps_bytes_t){key, 8}, (ps_bytes_t){NULL, 0}, (ps_bytes_t){bytes, 8});
    cr_assert_not_null(payload);
    return payload;
}

static inline ps_message_t kit_push_message(uint64_t epoch, uint64_t seq, ps_ack_t level)
{
    ps_message_t message = {.kind = PS_KIND_PUSH};

    message.push = (ps_msg_push_t){.request = seq,
                                   .table = KIT_TABLE,
                                   .epoch = epoch,
                                   .seq = seq,
                                   .timeout_ms = 500,
                                   .ack = (uint8_t)level,
                                   .type = PS_TYPE_I64,
                                   .n_rows = 1,
                                   .n_cols = 1,
                                   .n_values = 1};
    return message;
}

/* Adds 1 to row 0. */
static inline void kit_push(kit_t *self, uint64_t epoch, uint64_t seq, ps_ack_t level)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = kit_one_value(0, 1);
    const ps_message_t message = kit_push_message(epoch, seq, level);

    kit_say(self, KIT_CLIENT, &message, payload);
}

/* Asks for row 0. */
static inline void kit_pull(kit_t *self, uint64_t epoch)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_message_t message = {.kind = PS_KIND_PULL};
    uint8_t key[8] = {0};

    payload = ps_payload_copy((ps_bytes_t){key, 8}, (ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0});
    cr_assert_not_null(payload);
    message.pull = (ps_msg_pull_t){.request = 1000 + self->now_ms,
                                   .table = KIT_TABLE,
                                   .epoch = epoch,
                                   .type = PS_TYPE_I64,
                                   .n_rows = 1,
                                   .n_cols = 1};
    kit_say(self, KIT_CLIENT, &message, payload);
}

/* ---- the other copies send ---- */

static inline void kit_peer(kit_t *self, uint32_t node)
{
    ps_message_t message = {.kind = PS_KIND_PEER};

    message.peer = (ps_msg_peer_t){.version_min = PS_VERSION_MIN,
                                   .version_max = PS_VERSION,
                                   .incarnation = 71,
                                   .from_incarnation = kit_incarnation(node)};
    kit_say(self, KIT_CONN + node, &message, NULL);
}

/* Fills in what a record of this partition has. */
static inline ps_record_t kit_push_record(uint64_t lsn, uint64_t epoch)
{
    return (ps_record_t){.kind = PS_RECORD_PUSH,
                         .table = KIT_TABLE,
                         .lsn = lsn,
                         .epoch = epoch,
                         .session = KIT_SESSION,
                         .seq = lsn,
                         .slice = {.type = PS_TYPE_I64, .n_rows = 1, .n_cols = 1, .n_values = 1}};
}

/* An APPEND of the record (NULL: none) from node, under that epoch. */
static inline void kit_append(kit_t *self, uint32_t node, uint64_t epoch,
                              const ps_msg_append_t *append, const ps_record_t *record,
                              const ps_payload_t *carries)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_message_t message = {.kind = PS_KIND_APPEND, .append = *append};
    uint8_t *to = NULL;

    message.append.table = KIT_TABLE;
    message.append.epoch = epoch;
    message.append.sent_ms = self->now_ms;
    message.append.lease_ms = append->release != 0 ? 0 : 300;
    if (record != NULL) {
        message.append.n_records = 1;
        payload = ps_payload_room(0, 0, ps_record_size(record, carries), &to);
        cr_assert_not_null(payload);
        ps_record_write(record, carries, to);
    }
    kit_say(self, KIT_CONN + node, &message, payload);
}

/* An APPEND of one push, behind a record of prev_epoch. */
static inline void kit_append_push(kit_t *self, uint32_t node, uint64_t epoch, uint64_t lsn,
                                   uint64_t prev_epoch)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *one = kit_one_value(0, 1);
    const ps_record_t record = kit_push_record(lsn, epoch);

    kit_append(self, node, epoch, &(ps_msg_append_t){.first_lsn = lsn, .prev_epoch = prev_epoch},
               &record, one);
}

/* ---- what the shard did ---- */

static inline size_t kit_count(const kit_t *self, ps_kind_t kind)
{
    size_t n = 0;

    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        n += self->outbox.effects[i].kind == PS_EFFECT_SEND &&
             self->outbox.effects[i].message.kind == kind;
    }
    return n;
}

/* The last message of that kind; an empty one when there is none. */
static inline const ps_message_t *kit_said(const kit_t *self, ps_kind_t kind)
{
    static const ps_message_t nothing;

    for (size_t i = self->outbox.n_effects; i > 0; i--) {
        const ps_effect_t *effect = &self->outbox.effects[i - 1];

        if (effect->kind == PS_EFFECT_SEND && effect->message.kind == kind) {
            return &effect->message;
        }
    }
    return &nothing;
}

/* It made such a record. */
static inline bool kit_recorded(const kit_t *self, ps_record_kind_t kind)
{
    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        const ps_effect_t *effect = &self->outbox.effects[i];

        if (effect->kind == PS_EFFECT_RECORD && effect->record.kind == kind) {
            return true;
        }
    }
    return false;
}

/* The same of reports. */
static inline const ps_report_t *kit_report(const kit_t *self, ps_report_kind_t kind)
{
    static const ps_report_t nothing;

    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        const ps_effect_t *effect = &self->outbox.effects[i];

        if (effect->kind == PS_EFFECT_REPORT && effect->report.kind == kind) {
            return &effect->report;
        }
    }
    return &nothing;
}

static inline bool kit_reported(const kit_t *self, ps_report_kind_t kind)
{
    return kit_report(self, kind)->kind == kind;
}

/* A serving primary of "5: 1P 2S", whose lease from node 2 holds. */
static inline void kit_serve(kit_t *self)
{
    kit_map(self, "5: 1P 2S");
    kit_hello(self);
    kit_tick(self, 100);
    kit_welcome(self, 2);
    kit_answer(self, 2, 5, PS_APPENDED_OK, 0);
}
#endif
