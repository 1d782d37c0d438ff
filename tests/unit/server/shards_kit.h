/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shards_kit - shards of one node or more in one process, and a table
 *
 * Owner    A test embeds a node_t for each node: open_node, close_node. The
 *          context is its own and outlives them.
 */
#ifndef PS_TESTS_SHARDS_KIT_H
#define PS_TESTS_SHARDS_KIT_H

#include <string.h>
#include <zmq.h>

#include "base/log.h"
#include "server/shards/shards.h"
#include "base/alloc.h"
#include "support/check.h"

#define PATIENCE_MS 60000
#define LEASE_MS 200
#define SLOW_AFTER_MS 500
#define TABLE 3

typedef struct node {
    ps_context_t *context; /* borrowed */
    uint64_t incarnation;
    ps_shards_t *shards;
    psd_error_t *err;
} node_t;

static inline ps_socket_args_t socket_args(ps_context_t *context)
{
    return (ps_socket_args_t){.context = context,
                              .high_water = 1000,
                              .frame_bytes = 64 << 20,
                              .assembly_bytes = 256 << 20,
                              .chunk_bytes = 1 << 20};
}

static inline bool open_node(node_t *self, uint32_t n_shards)
{
    const ps_shards_args_t args = {.n_shards = n_shards,
                                   .core = {.incarnation = self->incarnation,
                                            .credit_requests = 64,
                                            .credit_bytes = 256 << 20,
                                            .chunk_bytes = 1 << 20,
                                            .slice_bytes = 64 << 20,
                                            .held_bytes = 256 << 20,
                                            .memory_bytes = 1 << 30,
                                            .sessions_max = 16,
                                            .lease_ms = LEASE_MS,
                                            .slow_after_ms = SLOW_AFTER_MS},
                                   .socket = socket_args(self->context),
                                   .host = "127.0.0.1",
                                   .log_level = PS_LOG_ERROR};

    self->err = psd_error_new();
    CHECK_OK(ps_shards_start(&args, &self->shards, self->err), self->err);
    return true;
}

static inline void close_node(node_t *self)
{
    ps_shards_stop(&self->shards);
    psd_error_destroy(&self->err);
}

static inline void spec_init(ps_table_spec_t *spec, uint64_t n_rows, ps_ack_t ack)
{
    ps_table_spec_init(spec);
    (void)snprintf(spec->name, sizeof spec->name, "t");
    spec->n_rows = n_rows;
    spec->type = PS_TYPE_I64;
    spec->n_partitions = 1;
    spec->n_col_slices = 1;
    spec->replicas = ack == PS_ACK_MEMORY ? 1 : 2;
    spec->ack = ack;
}

static inline ps_copy_t copy_at(const node_t *node, uint32_t shard, ps_copy_state_t state)
{
    ps_copy_t copy = {.incarnation = node->incarnation, .shard = shard, .state = state};

    memcpy(copy.tcp, ps_shards_route(node->shards, shard)->tcp, sizeof copy.tcp);
    return copy;
}

static inline ps_route_t route_to(const ps_copies_t *copies)
{
    ps_route_t route = {.epoch = copies->epoch,
                        .incarnation = copies->at[0].incarnation,
                        .shard = copies->at[0].shard};

    memcpy(route.tcp, copies->at[0].tcp, sizeof route.tcp);
    return route;
}

/* Waits for the next question that is done. */
static inline bool wait_done(node_t *self, ps_shards_done_t *ret_done)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    while (!ps_shards_next_done(self->shards, ret_done)) {
        zmq_pollitem_t items[4];
        uint32_t n = ps_shards_n(self->shards);

        CHECK(ps_now_ms() < until_ms && n <= 4);
        for (uint32_t i = 0; i < n; i++) {
            items[i] =
                (zmq_pollitem_t){.socket = ps_shards_handle(self->shards, i), .events = ZMQ_POLLIN};
        }
        (void)zmq_poll(items, (int)n, 100);
        ps_shards_take(self->shards, ps_now_ms());
    }
    return true;
}

/* Waits for the end of a question, the only one that is open. */
static inline bool wait_ok(node_t *self, uint64_t serial, ps_answers_t *ret_answers)
{
    ps_shards_done_t done = {0};

    CHECK(wait_done(self, &done));
    CHECK(done.serial == serial && done.status == PSD_OK);
    if (ret_answers != NULL) {
        *ret_answers = done.answers;
        done.answers = (ps_answers_t){0};
    }
    ps_shards_done_done(&done);
    return true;
}

/* Tells the node's shards and waits until they know. */
static inline bool tell_table(node_t *self, const ps_table_t *table)
{
    uint64_t serial = 0;

    CHECK_OK(ps_shards_send_table(self->shards, table, &serial, self->err), self->err);
    return wait_ok(self, serial, NULL);
}

/* Waits for the next report of that kind. */
static inline bool wait_report(node_t *self, ps_report_kind_t kind, ps_report_t *ret_report)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    do {
        while (ps_shards_next_report(self->shards, ret_report)) {
            if (ret_report->kind == kind) {
                return true;
            }
        }
        CHECK(ps_now_ms() < until_ms);
        (void)zmq_poll(
            &(zmq_pollitem_t){.socket = ps_shards_handle(self->shards, 0), .events = ZMQ_POLLIN}, 1,
            100);
        ps_shards_take(self->shards, ps_now_ms());
    } while (true);
}

/* ---- a client of one shard, without the library ---- */

typedef struct client {
    ps_socket_t *link;
    uint64_t epoch; /* of the map that it has */
    uint64_t n_pushes;
    uint64_t n_acks; /* they come in order */
    psd_error_t *err;
} client_t;

static inline bool client_say(client_t *self, const ps_message_t *message, ps_payload_t *payload)
{
    CHECK_OK(ps_socket_send(self->link, 0, message, payload, self->err), self->err);
    ps_socket_flush(self->link);
    return true;
}

/* The next message, whatever it is; without its body. */
static inline bool client_hear(client_t *self, ps_message_t *ret_message)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    bool got = false;

    while (!got) {
        ps_room_t room = {NULL, 0};
        uint64_t conn = 0;
        bool ready = false;

        CHECK_OK(
            ps_socket_receive(self->link, &got, &conn, ret_message, &payload, &room, self->err),
            self->err);
        if (!got) {
            CHECK(ps_now_ms() < until_ms);
            CHECK_OK(ps_socket_wait(&self->link, 1, 100, &ready, self->err), self->err);
        }
    }
    return true;
}

static inline bool open_client(client_t *self, const node_t *node, uint64_t session)
{
    const ps_socket_args_t args = socket_args(node->context);
    ps_message_t message = {.kind = PS_KIND_HELLO};

    *self = (client_t){.epoch = 1, .err = psd_error_new()};
    CHECK_OK(
        ps_socket_connect(ps_shards_route(node->shards, 0)->tcp, &args, &self->link, self->err),
        self->err);
    message.hello = (ps_msg_hello_t){.version_min = PS_VERSION_MIN,
                                     .version_max = PS_VERSION,
                                     .client = {{(uint8_t)session}},
                                     .incarnation = node->incarnation,
                                     .session = session};
    CHECK(client_say(self, &message, NULL));
    CHECK(client_hear(self, &message));
    CHECK(message.kind == PS_KIND_WELCOME);
    return true;
}

static inline void close_client(client_t *self)
{
    ps_socket_drop(&self->link);
    psd_error_destroy(&self->err);
}

/* Adds 1 to the first n rows of a table. */
static inline bool client_push(client_t *self, uint32_t table, uint64_t n)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    uint8_t *to = NULL;
    int64_t *ones = NULL;
    ps_message_t message = {.kind = PS_KIND_PUSH};

    payload = ps_payload_room(0, 0, n * sizeof *ones, &to);
    CHECK(payload != NULL);
    ones = (int64_t *)(void *)to;
    for (uint64_t i = 0; i < n; i++) {
        ones[i] = 1;
    }
    self->n_pushes++;
    message.push = (ps_msg_push_t){.request = self->n_pushes,
                                   .table = table,
                                   .epoch = self->epoch,
                                   .seq = self->n_pushes,
                                   .rows = PS_ROWS_RANGE,
                                   .type = PS_TYPE_I64,
                                   .n_rows = n,
                                   .n_cols = 1,
                                   .n_values = n};
    return client_say(self, &message, payload);
}

/* Waits until all pushes were acknowledged at that level. */
static inline bool client_wait_acks(client_t *self, ps_ack_t level)
{
    while (self->n_acks < self->n_pushes) {
        ps_message_t message;

        CHECK(client_hear(self, &message));
        CHECK(message.kind == PS_KIND_ACK);
        CHECK(message.ack.seq == self->n_acks + 1);
        CHECK(message.ack.level == (uint8_t)level);
        self->n_acks++;
    }
    return true;
}
#endif
