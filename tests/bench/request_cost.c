/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a small request costs a shard, in instructions: from the bytes of a push
 * or pull of 1 key and 16 floats, as they come in a batch, to the bytes of its
 * answer in a batch. No sockets, so that two runs of one build count the same.
 * request_cost.sh counts what happens inside measured_requests.
 *
 *   request_cost push|pull range|hash     5,000 requests
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/shard/shard.h"
#include "wire/messages/batch.h"

#define NEED(condition) need((condition), #condition, __LINE__)

#define TABLE 1
#define CONN 5
#define N_COLS 16
#define N_PARTITIONS 4
#define N_KEYS 20000 /* that lie in the first partition */
#define N_REQUESTS 5000
#define BATCH 32 /* requests that are answered in one frame */

typedef struct world {
    ps_shard_t *shard;
    ps_outbox_t outbox;
    ps_batch_t answers;
    ps_table_spec_t spec;
    uint64_t n_answers;
    uint64_t seq;
    bool pushes;
} world_t;

static void need(bool holds, const char *what, int line)
{
    if (!holds) {
        (void)fprintf(stderr, "request_cost.c:%d: not true: %s\n", line, what);
        exit(EXIT_FAILURE);
    }
}

static void step(world_t *self, ps_event_t *event)
{
    NEED(ps_shard_step(self->shard, event, &self->outbox, NULL) == PSD_OK);
    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        const ps_effect_t *effect = &self->outbox.effects[i];

        NEED(effect->kind == PS_EFFECT_SEND && effect->message.kind != PS_KIND_REFUSED);
        NEED(ps_batch_add(&self->answers, &effect->message, effect->payload));
        self->n_answers++;
    }
    ps_outbox_clear(&self->outbox);
    if (self->answers.n >= BATCH) {
        (void)ps_batch_frame(&self->answers);
        ps_batch_clear(&self->answers);
    }
}

static void make_world(world_t *self, bool pushes, bool hash)
{
    const ps_shard_args_t args = {.incarnation = 1,
                                  .credit_requests = 256,
                                  .credit_bytes = 1 << 26,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 26,
                                  .held_bytes = 1 << 26,
                                  .sessions_max = 16};
    ps_message_t hello = {
        .kind = PS_KIND_HELLO,
        .hello = {.version_min = 1, .version_max = 1, .incarnation = 1, .session = 9}};
    ps_route_t routes[N_PARTITIONS];

    *self = (world_t){.pushes = pushes};
    ps_table_spec_init(&self->spec);
    (void)snprintf(self->spec.name, sizeof self->spec.name, "w");
    self->spec.keys = hash ? PS_KEYS_HASH : PS_KEYS_RANGE;
    self->spec.n_rows = hash ? 0 : (uint64_t)N_KEYS * N_PARTITIONS;
    self->spec.n_cols = N_COLS;
    self->spec.n_partitions = N_PARTITIONS;
    self->spec.n_col_slices = 1;
    for (uint32_t i = 0; i < N_PARTITIONS; i++) {
        routes[i] = (ps_route_t){.partition = i, .epoch = 1, .incarnation = 1};
    }
    NEED(ps_shard_new(&args, &self->shard, NULL) == PSD_OK);
    step(self, &(ps_event_t){.kind = PS_EVENT_TABLE,
                             .table = TABLE,
                             .spec = &self->spec,
                             .routes = routes,
                             .n_routes = N_PARTITIONS});
    step(self, &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = CONN, .message = &hello});
    NEED(self->n_answers == 1);
}

/* A frame of BATCH requests, as a client would send it. */
static void fill_batch(world_t *self, ps_batch_t *batch)
{
    static const float values[N_COLS] = {1};

    ps_batch_clear(batch);
    for (int i = 0; i < BATCH; i++) {
        uint64_t key = ++self->seq * 7 % N_KEYS;
        const ps_slice_t slice = {.type = PS_TYPE_F32,
                                  .n_rows = 1,
                                  .n_cols = N_COLS,
                                  .n_values = self->pushes ? N_COLS : 0};
        ps_message_t message = {.kind = PS_KIND_PULL};
        PSD_AUTO(ps_payload_destroy)
        ps_payload_t *payload = ps_payload_copy(
            (ps_bytes_t){(const uint8_t *)&key, sizeof key}, (ps_bytes_t){NULL, 0},
            (ps_bytes_t){(const uint8_t *)values, self->pushes ? sizeof values : 0});

        if (self->pushes) {
            message.kind = PS_KIND_PUSH;
            message.push =
                (ps_msg_push_t){.request = self->seq, .table = TABLE, .epoch = 1, .seq = self->seq};
        } else {
            message.pull = (ps_msg_pull_t){.request = self->seq, .table = TABLE, .epoch = 1};
        }
        ps_message_set_slice(&message, &slice);
        NEED(payload != NULL && ps_batch_add(batch, &message, payload));
    }
}

/* callgrind counts in here. */
void measured_requests(world_t *self, ps_bytes_t frame);

__attribute__((noinline)) void measured_requests(world_t *self, ps_bytes_t frame)
{
    ps_batch_rest_t rest;

    NEED(ps_batch_open(frame, &rest, NULL) == PSD_OK);
    while (rest.n > 0) {
        ps_bytes_t bytes;
        ps_message_t message;
        ps_body_t body;
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;

        NEED(ps_batch_next(&rest, &bytes, NULL) == PSD_OK);
        NEED(ps_message_decode(&bytes, 1, &message, &body, NULL) == PSD_OK);
        payload = ps_payload_copy(body.keys, body.index, body.values);
        NEED(payload != NULL);
        step(self, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                 .now_ms = 1,
                                 .conn = CONN,
                                 .message = &message,
                                 .payload = payload});
    }
}

int main(int argc, char **argv)
{
    PSD_AUTO(ps_batch_done) ps_batch_t batch = {.n = 0};
    world_t world;
    uint64_t n_before = 0;

    if (argc != 3) {
        (void)fputs("usage: request_cost push|pull range|hash\n", stderr);
        return 2;
    }
    make_world(&world, strcmp(argv[1], "push") == 0, strcmp(argv[2], "hash") == 0);
    n_before = world.n_answers;
    for (int i = 0; i < N_REQUESTS; i += BATCH) {
        fill_batch(&world, &batch);
        measured_requests(&world, ps_batch_frame(&batch));
    }
    NEED(world.n_answers - n_before >= N_REQUESTS);
    (void)printf("%llu\n", (unsigned long long)(world.n_answers - n_before));
    ps_batch_done(&world.answers);
    ps_outbox_done(&world.outbox);
    ps_shard_destroy(&world.shard);
    return 0;
}
