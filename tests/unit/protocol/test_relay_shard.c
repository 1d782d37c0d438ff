/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays of all workers of a job, a shard, and the messages between them as bytes: the model has
 * the bits that it has without relays, also when one of them dies in the middle.
 */
#include "protocol/overlay/overlay_fixed.h"
#include "protocol/relay/relay_message.h"
#include "protocol/shard/shard_state.h"
#include "shard_bench.h"

#include "base/rng.h"

#define JOB 3
#define WORKERS 8
#define CONNS 100 /* worker i has connection CONNS + i and session SESSION + 1 + i */
#define QUEUE 1024
#define CLOCKS 6
#define STEP_MS 20
#define NODES PS_OVERLAY_NODES

/* A message in its bytes. */
typedef struct letter {
    uint32_t from;
    uint32_t to;
    uint8_t header[PS_HEADER_MAX];
    size_t size;
    ps_payload_t *body; /* owned; NULL: none */
} letter_t;

typedef struct world {
    bench_t bench;
    ps_relay_t *relays[WORKERS]; /* NULL: it is dead */
    letter_t queue[QUEUE];
    size_t first;
    size_t last;
    uint64_t now_ms;
    uint64_t clock;
    float values[WORKERS]; /* of this clock */
    bool is_in[WORKERS];   /* acknowledged in this clock */
    uint32_t dies;         /* this relay, at … */
    uint64_t at_letter;    /* … the so manieth letter; 0: none */
    uint64_t n_letters;
    size_t n_bundles; /* that came to the shard */
    size_t n_direct;  /* pushes */
} world_t;

static void tell_shard(world_t *self, uint32_t worker, const ps_message_t *message,
                       ps_payload_t *payload);

static void open_shard(bench_t *bench)
{
    ps_worker_t workers[WORKERS];
    const ps_job_t job = {
        .id = JOB, .name = "lr", .version = 1, .workers = workers, .n_workers = WORKERS};

    cr_assert_eq(open_bench(bench), PSD_OK);
    bench->shard->step.args.sessions_max = 64;
    bench->spec.combine = PS_COMBINE_CLOCK_SUM;
    cr_assert_eq(set_table(bench), PSD_OK);
    for (uint32_t i = 0; i < WORKERS; i++) {
        ps_message_t message = {.kind = PS_KIND_HELLO, .hello = good_hello};

        workers[i] =
            (ps_worker_t){.worker = i, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
        message.hello.session = SESSION + 1 + i;
        cr_assert_eq(
            step(bench,
                 &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = CONNS + i, .message = &message}),
            PSD_OK);
    }
    cr_assert_eq(step(bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
    for (uint32_t i = 0; i < WORKERS; i++) {
        const ps_message_t look = {.kind = PS_KIND_PULL,
                                   .pull = {.request = 1000,
                                            .table = 1,
                                            .epoch = 4,
                                            .job = JOB,
                                            .worker = i,
                                            .joins = 1,
                                            .rows = PS_ROWS_RANGE,
                                            .type = PS_TYPE_F32,
                                            .n_rows = 1,
                                            .n_cols = 1}};

        cr_assert_eq(
            step(bench,
                 &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = CONNS + i, .message = &look}),
            PSD_OK);
    }
}

static void world_open(world_t *self, uint32_t colour)
{
    static const uint32_t positions[WORKERS] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const uint32_t members[WORKERS] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const uint64_t rates[1] = {0};
    uint32_t parents[WORKERS];
    const ps_relay_plan_t plan = {.version = 1,
                                  .n_workers = WORKERS,
                                  .n_colours = 1,
                                  .positions = positions,
                                  .members = members,
                                  .parents = parents,
                                  .rates = rates};

    *self = (world_t){.now_ms = 1000, .dies = WORKERS};
    open_shard(&self->bench);
    ps_overlay_fixed(positions, WORKERS, colour, parents);
    for (uint32_t i = 0; i < WORKERS; i++) {
        const ps_relay_settings_t settings = {
            .worker = i, .hold_ms = 200, .patience_ms = 2000, .limit_bytes = 1 << 20};

        cr_assert_eq(ps_relay_new(&settings, &self->relays[i], NULL), PSD_OK);
        cr_assert_eq(ps_relay_take_plan(self->relays[i], &plan, NULL), PSD_OK);
    }
}

static void world_close(world_t *self)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        ps_relay_destroy(&self->relays[i]);
    }
    for (size_t i = self->first; i < self->last; i++) {
        ps_payload_destroy(&self->queue[i % QUEUE].body);
    }
    close_bench(&self->bench);
}

/* ---- direct ---- */

static ps_slice_t a_slice(void)
{
    return (ps_slice_t){
        .rows = PS_ROWS_RANGE, .type = PS_TYPE_F32, .n_rows = 1, .n_cols = 1, .n_values = 1};
}

static ps_payload_t *payload_of(float value)
{
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0},
                                            (ps_bytes_t){(const uint8_t *)&value, sizeof value});

    cr_assert_not_null(payload);
    return payload;
}

static void push_directly(world_t *self, uint32_t worker)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = payload_of(self->values[worker]);
    ps_message_t message = push_message(self->clock + 1);
    const ps_slice_t slice = a_slice();

    ps_message_set_slice(&message, &slice);
    message.flags = PS_FLAG_MARK;
    message.push.job = JOB;
    message.push.worker = worker;
    message.push.joins = 1;
    message.push.clock = self->clock;
    self->n_direct++;
    tell_shard(self, worker, &message, payload);
}

/* ---- messages ---- */

static void kill(world_t *self, uint32_t worker)
{
    ps_relay_destroy(&self->relays[worker]);
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (self->relays[i] != NULL) {
            ps_relay_lost(self->relays[i], self->now_ms, worker);
        }
    }
    if (!self->is_in[worker]) {
        push_directly(self, worker); /* what it lent to its own relay */
    }
}

static void post(world_t *self, uint32_t from, uint32_t to, const ps_message_t *message,
                 ps_payload_t *body)
{
    letter_t *letter = &self->queue[self->last++ % QUEUE];

    cr_assert_leq(self->last - self->first, QUEUE);
    *letter = (letter_t){.from = from, .to = to};
    letter->size = ps_message_encode(message, letter->header);
    letter->body = body == NULL ? NULL : ps_payload_keep(body);
}

/* Own clients of a worker hear what became of their push. */
static void origin_hears(world_t *self, uint32_t worker, ps_relay_news_t news)
{
    if (news == PS_RELAY_RETURNED && !self->is_in[worker]) {
        push_directly(self, worker);
    }
}

static void bring(world_t *self, uint32_t worker, const ps_relay_deed_t *deed)
{
    const ps_relay_speaker_t speaker = {.job = JOB, .worker = worker, .joins = 1};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *body = NULL;
    ps_message_t message;

    ps_relay_bundle(deed, &speaker, 4, &message);
    cr_assert_eq(ps_relay_lot_write(deed->lot, &body, NULL), PSD_OK);
    if (deed->to == NODES) {
        self->n_bundles++;
        tell_shard(self, worker, &message, body);
    } else {
        post(self, worker, deed->to, &message, body);
    }
}

static void do_deeds(world_t *self, uint32_t worker)
{
    ps_relay_deed_t deed;

    while (self->relays[worker] != NULL && ps_relay_next(self->relays[worker], &deed)) {
        ps_message_t message;

        if (deed.kind == PS_RELAY_SEND) {
            bring(self, worker, &deed);
        } else if (deed.to == worker) {
            origin_hears(self, worker, deed.news);
        } else {
            ps_relay_relayed(&deed, &message);
            post(self, worker, deed.to, &message, NULL);
        }
    }
}

/* Answers of the shard: ACKs of origins, and news for the relay that sent. */
static void tell_shard(world_t *self, uint32_t worker, const ps_message_t *message,
                       ps_payload_t *payload)
{
    bool is_bundle = message->kind == PS_KIND_BUNDLE;

    self->bench.now_ms = self->now_ms;
    cr_assert_eq(step(&self->bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                                  .conn = CONNS + worker,
                                                  .message = message,
                                                  .payload = payload}),
                 PSD_OK);
    for (size_t i = 0; i < self->bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &self->bench.outbox.effects[i];
        ps_relay_news_t news = PS_RELAY_TAKEN;
        uint64_t number = 0;

        if (effect->kind != PS_EFFECT_SEND) {
            continue;
        }
        if (effect->message.kind == PS_KIND_ACK && effect->message.ack.seq == self->clock + 1) {
            self->is_in[effect->to - CONNS] = true;
        } else if (is_bundle && self->relays[worker] != NULL &&
                   ps_relay_news(&effect->message, &number, &news)) {
            ps_relay_heard(self->relays[worker], self->now_ms, NODES, number, news);
        }
    }
}

/* A relay gets a bundle of another one. */
static void take(world_t *self, const letter_t *letter, const ps_message_t *message)
{
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t lot = {.from = NULL};
    const ps_msg_bundle_t *bundle = &message->bundle;
    const ps_relay_giver_t giver = {
        .worker = letter->from, .request = bundle->request, .plan = bundle->plan};
    const ps_relay_key_t key = {.table = bundle->table,
                                .partition = bundle->partition,
                                .clock = bundle->clock,
                                .type = PS_TYPE_F32,
                                .width = 1};

    const ps_relay_deed_t refusal = {
        .key = key, .number = bundle->request, .news = PS_RELAY_RETURNED, .reason = "not here"};
    ps_message_t answer;

    cr_assert_eq(ps_relay_lot_read(bundle, letter->body, &lot, NULL), PSD_OK);
    if (ps_relay_give(self->relays[letter->to], self->now_ms, &giver, &key, &lot, NULL) != PSD_OK) {
        ps_relay_relayed(&refusal, &answer);
        post(self, letter->to, letter->from, &answer, NULL);
    }
}

static void deliver(world_t *self, letter_t *letter)
{
    const ps_bytes_t frames[2] = {{letter->header, letter->size},
                                  letter->body == NULL ? (ps_bytes_t){NULL, 0}
                                                       : letter->body->span};
    ps_relay_t *relay = self->relays[letter->to];
    ps_relay_news_t news = PS_RELAY_TAKEN;
    ps_message_t message;
    ps_body_t body;
    uint64_t number = 0;

    cr_assert_eq(ps_message_decode(frames, letter->body == NULL ? 1 : 2, &message, &body, NULL),
                 PSD_OK);
    if (relay != NULL && message.kind == PS_KIND_BUNDLE) {
        take(self, letter, &message);
    } else if (relay != NULL && ps_relay_news(&message, &number, &news)) {
        ps_relay_heard(relay, self->now_ms, letter->from, number, news);
    }
    ps_payload_destroy(&letter->body);
}

/* ---- clocks ---- */

static void lend(world_t *self, uint32_t worker)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = payload_of(self->values[worker]);
    ps_bundle_from_t from = {.session = SESSION + 1 + worker,
                             .first_seq = self->clock + 1,
                             .last_seq = self->clock + 1,
                             .worker = worker,
                             .joins = 1,
                             .marks = true};
    ps_relay_span_t span = {.first = worker, .n = 1, .slice = a_slice(), .payload = payload};
    const ps_relay_lot_t lot = {.from = &from, .spans = &span, .n_from = 1, .n_spans = 1};
    const ps_relay_giver_t giver = {.worker = worker, .request = self->clock + 1, .plan = 1};
    const ps_relay_key_t key = {.table = 1, .clock = self->clock, .type = PS_TYPE_F32, .width = 1};

    if (self->relays[worker] == NULL ||
        ps_relay_give(self->relays[worker], self->now_ms, &giver, &key, &lot, NULL) != PSD_OK) {
        push_directly(self, worker);
    }
}

static bool all_are_in(const world_t *self)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (!self->is_in[i]) {
            return false;
        }
    }
    return true;
}

/* All workers push, in an order of the seed's; ends when the shard has everything. */
static void do_clock(world_t *self, ps_rng_t *rng)
{
    uint32_t first = (uint32_t)ps_rng_below(rng, WORKERS);

    memset(self->is_in, 0, sizeof self->is_in);
    for (uint32_t i = 0; i < WORKERS; i++) {
        lend(self, (first + 3 * i) % WORKERS);
    }
    for (uint32_t turn = 0; !all_are_in(self) || self->first < self->last; turn++) {
        cr_assert_lt(turn, 10000);
        for (uint32_t i = 0; i < WORKERS; i++) {
            do_deeds(self, i);
        }
        if (self->first < self->last) {
            deliver(self, &self->queue[self->first++ % QUEUE]);
            if (++self->n_letters == self->at_letter) {
                kill(self, self->dies);
            }
            continue;
        }
        self->now_ms += STEP_MS;
        for (uint32_t i = 0; i < WORKERS; i++) {
            if (self->relays[i] != NULL) {
                ps_relay_tick(self->relays[i], self->now_ms);
            }
        }
    }
    self->clock++;
}

/* The same pushes, each sent by its worker. */
static float without_relays(uint64_t seed)
{
    ps_rng_t rng = {.state = seed};
    world_t *self = ps_alloc(1, sizeof *self);
    float end = 0;

    world_open(self, 0);
    for (uint32_t i = 0; i < CLOCKS; i++) {
        for (uint32_t w = 0; w < WORKERS; w++) {
            self->values[w] = (float)(ps_rng_f64(&rng) * 1000 - 500);
        }
        for (uint32_t w = 0; w < WORKERS; w++) {
            push_directly(self, w);
        }
        self->clock++;
    }
    end = pull(&self->bench, 0);
    world_close(self);
    ps_free(self);
    return end;
}

static world_t *with_relays(uint64_t seed, uint32_t colour, uint32_t dies, uint64_t at_letter)
{
    ps_rng_t rng = {.state = seed};
    ps_rng_t order = {.state = seed + 1};
    world_t *self = ps_alloc(1, sizeof *self);

    world_open(self, colour);
    self->dies = dies;
    self->at_letter = at_letter;
    for (uint32_t i = 0; i < CLOCKS; i++) {
        for (uint32_t w = 0; w < WORKERS; w++) {
            self->values[w] = (float)(ps_rng_f64(&rng) * 1000 - 500);
        }
        do_clock(self, &order);
    }
    return self;
}

Test(relay_shard, one_bundle_a_clock_and_the_same_bits)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        float wanted = without_relays(seed);
        world_t *world = with_relays(seed, (uint32_t)seed, WORKERS, 0);

        cr_assert_eq(pull(&world->bench, 0), wanted, "seed %d", (int)seed);
        cr_assert_eq(world->n_bundles, CLOCKS);
        cr_assert_eq(world->n_direct, 0);
        world_close(world);
        ps_free(world);
    }
}

/* At each letter of the first clocks, each relay in turn: whatever it held. */
Test(relay_shard, a_relay_dies_and_the_bits_stay)
{
    size_t n_direct = 0;
    float wanted = without_relays(7);

    for (uint32_t dies = 0; dies < WORKERS; dies++) {
        for (uint64_t at = 1; at <= 40; at++) {
            world_t *world = with_relays(7, 5, dies, at);

            cr_assert_eq(pull(&world->bench, 0), wanted, "relay %u at letter %d", dies, (int)at);
            n_direct += world->n_direct;
            world_close(world);
            ps_free(world);
        }
    }
    cr_assert_gt(n_direct, 0);
}
