/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a key costs, in instructions: the way of a push and a pull through the
 * client's cutting, the session, the wire's encoding and decoding, the shard
 * and its rows, and back. All in one thread and without sockets, so that two
 * runs of one build count the same. keys_cost.sh counts what happens inside
 * measured_push and measured_pull.
 *
 *   keys_cost push|pull FLOATS     one request of 100,000 of 1,000,000 keys
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/machine/bench_keys.h"
#include "client/slices/cut.h"
#include "protocol/session/session.h"
#include "protocol/shard/shard.h"

/* Anything that goes wrong would make the counts meaningless. */
#define NEED(condition) need((condition), #condition, __LINE__)

#define TABLE 1
#define INCARNATION 77
#define N_PARTITIONS 8 /* as many as a table gets by itself */
#define N_ROWS ((uint64_t)1000000)
#define N_KEYS ((size_t)100000)
#define LIMIT_BYTES ((uint64_t)1 << 30)
#define CHUNK_BYTES ((uint32_t)64 << 20) /* nothing is cut into chunks */

typedef struct world {
    ps_shard_t *shard;
    ps_session_t *session;
    ps_outbox_t from_session;
    ps_outbox_t from_shard;
    ps_table_spec_t spec;
    psd_select_t *select;
    uint64_t *keys;
    uint64_t *spare;
    float *values;
    size_t n_done; /* operations that ended well */
} world_t;

static void need(bool holds, const char *what, int line)
{
    if (!holds) {
        (void)fprintf(stderr, "keys_cost.c:%d: not true: %s\n", line, what);
        exit(EXIT_FAILURE);
    }
}

static void release(void *owner)
{
    ps_payload_t *payload = owner;

    ps_payload_destroy(&payload);
}

/* A message and its body as the other side reads them. */
static void pass(const ps_effect_t *effect, ps_message_t *ret_message, ps_payload_t **ret_payload)
{
    uint8_t header[PS_HEADER_MAX + PS_INLINE_MAX];
    size_t size = ps_message_encode(&effect->message, header);
    const ps_payload_t *payload = effect->payload;
    ps_bytes_t values = {0};
    ps_bytes_t frames[4] = {{header, size}};
    size_t n_frames = 1;
    ps_body_t body = {0};

    NEED(payload == NULL || payload->n_spans <= 1);
    if (payload != NULL && payload->n_spans == 1) {
        values = payload->spans[0];
    }
    if (payload != NULL) {
        frames[1] = payload->keys;
        frames[2] = payload->index;
        frames[3] = values;
        n_frames = 4;
    }
    NEED(ps_message_decode(frames, n_frames, ret_message, &body, NULL) == PSD_OK);
    *ret_payload = NULL;
    if (payload != NULL) {
        *ret_payload = ps_payload_new(body.keys, body.index, body.values,
                                      ps_payload_keep(effect->payload), release);
        NEED(*ret_payload != NULL);
    }
}

/* From the session to the shard, and what the shard answers back. */
static void deliver(world_t *world, const ps_effect_t *effect)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_message_t message;
    ps_event_t event = {.kind = PS_EVENT_MESSAGE, .now_ms = 1, .conn = 1, .message = &message};
    PSD_AUTO(ps_outbox_done) ps_outbox_t answers = {0};

    pass(effect, &message, &payload);
    event.payload = payload;
    NEED(ps_shard_step(world->shard, &event, &answers, NULL) == PSD_OK);
    for (size_t i = 0; i < answers.n_effects; i++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *values = NULL;
        ps_message_t answer;

        if (answers.effects[i].kind == PS_EFFECT_SEND) {
            pass(&answers.effects[i], &answer, &values);
            ps_session_received(world->session, 1, effect->to, &answer, values,
                                &world->from_session);
        }
    }
}

static void end(world_t *world, const ps_effect_t *effect)
{
    const ps_cut_t *cut = effect->owner;

    if (effect->message.kind == PS_KIND_VALUES) {
        ps_places_scatter(&cut->places, effect->payload, (size_t)cut->slice.n_rows,
                          cut->slice.n_cols, sizeof *world->values, world->values);
    } else {
        NEED(effect->message.kind == PS_KIND_ACK);
    }
    world->n_done++;
}

/* All that the session wants done, until it wants nothing more. */
static void perform(world_t *world)
{
    for (size_t i = 0; i < world->from_session.n_effects; i++) {
        /* A delivery may move the list. */
        ps_effect_t effect = world->from_session.effects[i];

        if (effect.kind == PS_EFFECT_SEND) {
            deliver(world, &effect);
        } else if (effect.kind == PS_EFFECT_DONE) {
            end(world, &effect);
        }
    }
    ps_outbox_clear(&world->from_session);
}

/* One push or pull of the first n keys in world->keys. */
static void request(world_t *world, bool push, size_t n)
{
    PSD_AUTO(ps_cuts_done) ps_cuts_t cuts = {0};
    ps_cut_args_t args = {.spec = &world->spec,
                          .select = world->select,
                          .values = push ? world->values : NULL,
                          .places = !push,
                          .borrow = true,
                          .limit_bytes = LIMIT_BYTES};

    psd_select_rows(world->select, world->keys, n);
    NEED(ps_cut(&args, &cuts, NULL) == PSD_OK);
    world->n_done = 0;
    for (size_t i = 0; i < cuts.n; i++) {
        ps_op_start_t start = {.kind = push ? PS_KIND_PUSH : PS_KIND_PULL,
                               .table = TABLE,
                               .partition = cuts.items[i].partition,
                               .slice = cuts.items[i].slice,
                               .payload = cuts.items[i].payload,
                               .timeout_ms = 1000,
                               .owner = &cuts.items[i]};
        uint64_t op = 0;

        NEED(ps_session_start(world->session, 1, &start, &world->from_session, &op, NULL) ==
             PSD_OK);
        perform(world);
    }
    NEED(world->n_done == cuts.n);
}

__attribute__((noinline)) void measured_push(world_t *world);
__attribute__((noinline)) void measured_pull(world_t *world);

void measured_push(world_t *world)
{
    request(world, true, N_KEYS);
}

void measured_pull(world_t *world)
{
    request(world, false, N_KEYS);
}

static void open_table(world_t *world, uint32_t n_cols)
{
    ps_route_t routes[N_PARTITIONS];

    ps_table_spec_init(&world->spec);
    (void)snprintf(world->spec.name, sizeof world->spec.name, "w");
    world->spec.n_cols = n_cols;
    world->spec.keys = PS_KEYS_HASH;
    ps_table_spec_settle(&world->spec, N_PARTITIONS);
    NEED(ps_table_spec_check(&world->spec, NULL) == PSD_OK);
    for (uint32_t i = 0; i < N_PARTITIONS; i++) {
        routes[i] = (ps_route_t){
            .partition = i, .epoch = 5, .incarnation = INCARNATION, .tcp = "tcp://127.0.0.1:1"};
    }
    ps_event_t event = {.kind = PS_EVENT_TABLE,
                        .now_ms = 1,
                        .table = TABLE,
                        .spec = &world->spec,
                        .routes = routes,
                        .n_routes = N_PARTITIONS};

    NEED(ps_shard_step(world->shard, &event, &world->from_shard, NULL) == PSD_OK);
    ps_outbox_clear(&world->from_shard);
    NEED(ps_session_routes(world->session, TABLE, routes, N_PARTITIONS, NULL) == PSD_OK);
}

static void open_world(world_t *world, uint32_t n_cols)
{
    ps_shard_args_t shard = {.incarnation = INCARNATION,
                             .credit_requests = 256,
                             .credit_bytes = LIMIT_BYTES,
                             .chunk_bytes = CHUNK_BYTES,
                             .slice_bytes = LIMIT_BYTES,
                             .held_bytes = LIMIT_BYTES,
                             .sessions_max = 16};
    ps_session_args_t session = {.session = 1, .resend_ms = 1000000};

    session.client.bytes[0] = 1;
    NEED(ps_shard_new(&shard, &world->shard, NULL) == PSD_OK);
    NEED(ps_session_new(&session, &world->session, NULL) == PSD_OK);
    world->select = psd_select_new();
    world->keys = ps_alloc(N_KEYS, sizeof *world->keys);
    world->spare = ps_alloc(N_KEYS, sizeof *world->spare);
    world->values = ps_alloc(N_KEYS * n_cols, sizeof *world->values);
    NEED(world->select != NULL && world->keys != NULL && world->spare != NULL &&
         world->values != NULL);
    open_table(world, n_cols);
}

static void done_world(world_t *world)
{
    ps_session_destroy(&world->session);
    ps_shard_destroy(&world->shard);
    ps_outbox_done(&world->from_session);
    ps_outbox_done(&world->from_shard);
    ps_table_spec_done(&world->spec);
    psd_select_destroy(&world->select);
    ps_free(world->keys);
    ps_free(world->spare);
    ps_free(world->values);
}

int main(int argc, char **argv)
{
    world_t world = {0};
    ps_rng_t rng = {.state = 1};
    uint32_t n_cols = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    bool push = argc > 1 && strcmp(argv[1], "push") == 0;

    open_world(&world, n_cols);
    for (uint64_t at = 0; at < N_ROWS; at += N_KEYS) {
        for (size_t i = 0; i < N_KEYS; i++) {
            world.keys[i] = ps_bench_key(at + i);
        }
        ps_bench_sort_keys(world.keys, world.spare, N_KEYS);
        request(&world, true, N_KEYS);
    }
    /* The first requests of a kind grow what the later ones use again. */
    for (int i = 0; i < 2; i++) {
        ps_bench_sample_keys(&rng, true, N_ROWS, world.keys, world.spare, N_KEYS);
        request(&world, push, N_KEYS);
    }
    for (size_t i = 0; i < N_KEYS * n_cols; i++) {
        world.values[i] = 0.5F;
    }
    ps_bench_sample_keys(&rng, true, N_ROWS, world.keys, world.spare, N_KEYS);
    if (push) {
        measured_push(&world);
    } else {
        measured_pull(&world);
    }
    done_world(&world);
    return EXIT_SUCCESS;
}
