/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random networks of relays between origins and a server, with faults: each delta is taken once,
 * and the sum has the same bits as if every origin had sent its own to the server.
 *
 * Messages come late, in any order, twice, or never; relays die and begin again with nothing.
 */
#include "relay_kit.h"

#include "base/rng.h"
#include "protocol/relay/lent.h"

#define MOST 8     /* workers */
#define PUSHES 3   /* of a client, at most */
#define CLIENTS 16 /* two a worker, at most */
#define MESSAGES 4096
#define PARTS 256
#define NODES PS_OVERLAY_NODES

typedef struct client {
    uint32_t worker;
    uint32_t member;
    uint64_t session;
    uint64_t n_seqs;
    uint64_t given;           /* seqs that it has made */
    float values[PUSHES + 1]; /* by seq */
    bool has_rows[PUSHES + 1];
    ps_lent_t *lent;
    uint64_t next; /* the server's window */
} client_t;

/* A bundle, or news of one. */
typedef struct message {
    bool is_news;
    uint32_t from;
    uint32_t to;
    uint64_t number;
    uint64_t plan;
    ps_relay_lot_t lot; /* owned */
    ps_relay_news_t news;
    uint64_t life; /* of the relay that it is to */
} message_t;

typedef struct part {
    uint32_t first;
    uint32_t n;
    uint32_t member;
    uint64_t seq;
    ps_slice_t slice;
    ps_payload_t *payload;
} part_t;

typedef struct world {
    ps_rng_t rng;
    uint64_t now_ms;
    uint32_t n_workers;
    uint32_t positions[MOST];
    uint32_t members[MOST];
    uint32_t parents[MOST];
    ps_relay_plan_t plan;
    ps_relay_t *relays[MOST];
    uint64_t lives[MOST];
    client_t clients[CLIENTS];
    size_t n_clients;
    message_t messages[MESSAGES];
    size_t n_messages;
    part_t parts[PARTS]; /* that the server has */
    size_t n_parts;
    size_t n_sums; /* of them, of several positions */
    bool faults;
    uint64_t n_requests;
} world_t;

static bool chance(world_t *world, uint64_t one_in)
{
    return ps_rng_below(&world->rng, one_in) == 0;
}

/* ---- making one ---- */

static void open_relay(world_t *world, uint32_t i)
{
    const ps_relay_settings_t settings = {.worker = world->positions[i],
                                          .hold_ms = 200,
                                          .patience_ms = 2000,
                                          .limit_bytes = chance(world, 4) ? 4000 : 1 << 20};

    cr_assert_eq(ps_relay_new(&settings, &world->relays[i], NULL), PSD_OK);
    cr_assert_eq(ps_relay_take_plan(world->relays[i], &world->plan, NULL), PSD_OK);
    world->lives[i]++;
}

static void make_workers(world_t *world)
{
    uint32_t order[MOST];
    uint32_t position = (uint32_t)ps_rng_below(&world->rng, 3);

    for (uint32_t i = 0; i < world->n_workers; i++) {
        uint32_t k = (uint32_t)ps_rng_below(&world->rng, i + 1);

        world->positions[i] = position;
        position += chance(world, 4) ? 3 : 1;
        world->members[i] = chance(world, 3) ? 2 : 1;
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < world->n_workers; i++) {
        uint64_t k = ps_rng_below(&world->rng, i + 1);

        world->parents[order[i]] = k == i ? NODES : order[k];
    }
    world->plan = (ps_relay_plan_t){.version = 1,
                                    .n_workers = world->n_workers,
                                    .n_colours = 1,
                                    .positions = world->positions,
                                    .members = world->members,
                                    .parents = world->parents};
}

static void make_clients(world_t *world)
{
    for (uint32_t i = 0; i < world->n_workers; i++) {
        for (uint32_t member = 0; member < world->members[i]; member++) {
            client_t *client = &world->clients[world->n_clients++];

            client->worker = i;
            client->member = member;
            client->session = world->n_clients;
            client->next = 1;
            client->n_seqs = 1 + ps_rng_below(&world->rng, PUSHES);
            for (uint64_t seq = 1; seq <= client->n_seqs; seq++) {
                client->values[seq] = (float)(ps_rng_f64(&world->rng) * 1000 - 500);
                client->has_rows[seq] = !chance(world, 5);
            }
            cr_assert_eq(ps_lent_new(2500, 100, &client->lent, NULL), PSD_OK);
        }
    }
}

static void make_world(world_t *world, uint64_t seed, bool faults)
{
    memset(world, 0, sizeof *world);
    world->rng.state = seed;
    world->faults = faults;
    world->n_workers = 1 + (uint32_t)ps_rng_below(&world->rng, MOST);
    make_workers(world);
    make_clients(world);
    for (uint32_t i = 0; i < world->n_workers; i++) {
        open_relay(world, i);
    }
}

static void end_world(world_t *world)
{
    for (uint32_t i = 0; i < world->n_workers; i++) {
        ps_relay_destroy(&world->relays[i]);
    }
    for (size_t i = 0; i < world->n_clients; i++) {
        ps_lent_destroy(&world->clients[i].lent);
    }
    for (size_t i = 0; i < world->n_messages; i++) {
        ps_relay_lot_done(&world->messages[i].lot);
    }
    for (size_t i = 0; i < world->n_parts; i++) {
        ps_payload_destroy(&world->parts[i].payload);
    }
}

static uint32_t number_at(const world_t *world, uint32_t position)
{
    uint32_t i = 0;

    while (i < world->n_workers && world->positions[i] != position) {
        i++;
    }
    cr_assert_lt(i, world->n_workers);
    return i;
}

/* A client's push as a lot. */
static void make_lot(const world_t *world, const client_t *client, uint64_t seq, kit_lot_t *lot)
{
    uint32_t position = world->positions[client->worker];

    kit_lot(lot, position, seq, seq == client->n_seqs, client->values[seq]);
    lot->from.session = client->session;
    lot->from.member = client->member;
    lot->lot.n_spans = client->has_rows[seq] ? 1 : 0;
}

/* ---- the server ---- */

static client_t *client_of(world_t *world, uint64_t session)
{
    return &world->clients[session - 1];
}

static bool has_part(const world_t *world, uint32_t position)
{
    for (size_t i = 0; i < world->n_parts; i++) {
        if (position >= world->parts[i].first &&
            position - world->parts[i].first < world->parts[i].n) {
            return true;
        }
    }
    return false;
}

/* A sum of several positions or pushes has all of each of its workers, and none of it lies here. */
static bool is_whole(const world_t *world, const ps_relay_lot_t *lot, const ps_relay_span_t *span)
{
    for (uint16_t i = 0, end = 0; i < lot->n_from; i = end) {
        uint32_t worker = lot->from[i].worker;
        bool marks = true;

        for (end = i; end < lot->n_from && lot->from[end].worker == worker; end++) {
            marks = marks && lot->from[end].marks;
        }
        if (worker < span->first || worker - span->first >= span->n) {
            continue;
        }
        if (span->n == 1 && end - i == 1 && lot->from[i].first_seq == lot->from[i].last_seq) {
            continue;
        }
        if (!marks || (uint32_t)(end - i) != world->members[number_at(world, worker)] ||
            has_part(world, worker)) {
            return false;
        }
    }
    return true;
}

static void take_spans(world_t *world, const ps_relay_lot_t *lot)
{
    for (uint16_t i = 0; i < lot->n_spans; i++) {
        const ps_relay_span_t *span = &lot->spans[i];
        const ps_bundle_from_t *from = lot->from;

        while (from->worker < span->first) {
            from++;
        }
        cr_assert_lt(world->n_parts, PARTS);
        world->n_sums += span->n > 1 ? 1 : 0;
        world->parts[world->n_parts++] = (part_t){.first = span->first,
                                                  .n = span->n,
                                                  .member = from->member,
                                                  .seq = from->first_seq,
                                                  .slice = span->slice,
                                                  .payload = ps_payload_keep(span->payload)};
    }
}

/* The server tells each contributor; that may be lost. */
static void acknowledge(world_t *world, const ps_bundle_from_t *from)
{
    for (uint64_t seq = from->first_seq; seq <= from->last_seq; seq++) {
        if (!world->faults || !chance(world, 10)) {
            ps_lent_end(client_of(world, from->session)->lent, (ps_lent_place_t){.table = 1}, seq);
        }
    }
}

/* All or nothing. */
static ps_relay_news_t serve(world_t *world, const ps_relay_lot_t *lot)
{
    size_t n_next = 0;
    size_t n_before = 0;

    for (uint16_t i = 0; i < lot->n_from; i++) {
        uint64_t next = client_of(world, lot->from[i].session)->next;

        n_next += lot->from[i].first_seq == next ? 1 : 0;
        n_before += lot->from[i].last_seq < next ? 1 : 0;
    }
    if (n_before != lot->n_from) {
        if (n_next != lot->n_from) {
            return PS_RELAY_RETURNED;
        }
        for (uint16_t i = 0; i < lot->n_spans; i++) {
            if (!is_whole(world, lot, &lot->spans[i])) {
                return PS_RELAY_RETURNED;
            }
        }
        take_spans(world, lot);
        for (uint16_t i = 0; i < lot->n_from; i++) {
            client_of(world, lot->from[i].session)->next = lot->from[i].last_seq + 1;
        }
    }
    for (uint16_t i = 0; i < lot->n_from; i++) {
        acknowledge(world, &lot->from[i]);
    }
    return PS_RELAY_DONE;
}

/* A client's push that goes directly; the client repeats it until it is answered. */
static bool go_directly(world_t *world, client_t *client, uint64_t seq)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    make_lot(world, client, seq, &lot);
    if (seq > client->next) {
        return false; /* GAP */
    }
    cr_assert_eq(serve(world, &lot.lot), PS_RELAY_DONE);
    ps_lent_end(client->lent, (ps_lent_place_t){.table = 1}, seq);
    return true;
}

/* ---- messages ---- */

static void post(world_t *world, message_t message)
{
    unsigned copies = world->faults && chance(world, 10) ? 2 : 1;

    copies = world->faults && chance(world, 10) ? 0 : copies;
    for (unsigned i = 0; i < copies; i++) {
        message_t *to = &world->messages[world->n_messages++];

        cr_assert_lt(world->n_messages, MESSAGES);
        *to = message;
        to->lot = (ps_relay_lot_t){.from = NULL};
        to->life = message.to == NODES ? 0 : world->lives[number_at(world, message.to)];
        if (!message.is_news) {
            cr_assert_eq(ps_relay_lot_copy(&message.lot, &to->lot, NULL), PSD_OK);
        }
    }
}

/* News of a client's lot, whose request is session and seq. */
static void hear(world_t *world, const ps_relay_deed_t *deed)
{
    client_t *client = client_of(world, deed->number >> 32);
    uint64_t seq = (uint32_t)deed->number;

    if (deed->news == PS_RELAY_RETURNED) {
        ps_lent_back(client->lent, (ps_lent_place_t){.table = 1}, seq);
    } else {
        ps_lent_heard(client->lent, world->now_ms, (ps_lent_place_t){.table = 1}, seq);
    }
}

static void drain(world_t *world, uint32_t i)
{
    ps_relay_deed_t deed;

    while (ps_relay_next(world->relays[i], &deed)) {
        if (deed.kind == PS_RELAY_TELL && deed.to == world->positions[i]) {
            hear(world, &deed);
            continue;
        }
        post(world, (message_t){.is_news = deed.kind == PS_RELAY_TELL,
                                .from = world->positions[i],
                                .to = deed.to,
                                .number = deed.number,
                                .plan = deed.plan,
                                .lot = deed.kind == PS_RELAY_SEND ? *deed.lot
                                                                  : (ps_relay_lot_t){.from = NULL},
                                .news = deed.news});
    }
}

static void deliver_bundle(world_t *world, const message_t *message)
{
    ps_relay_news_t news = PS_RELAY_TAKEN;

    if (message->to == NODES) {
        news = serve(world, &message->lot);
    } else {
        uint32_t to = number_at(world, message->to);
        /* A later life of the sender counts its bundles from 1 again: names are of a life. */
        const ps_relay_giver_t giver = {
            .worker = message->from,
            .request = world->lives[number_at(world, message->from)] << 32 | message->number,
            .plan = message->plan};

        if (ps_relay_give(world->relays[to], world->now_ms, &giver, &KIT_KEY, &message->lot,
                          NULL) != PSD_OK) {
            news = PS_RELAY_RETURNED;
        }
        drain(world, to);
    }
    post(world, (message_t){.is_news = true,
                            .from = message->to,
                            .to = message->from,
                            .number = message->number,
                            .news = news});
}

static void deliver(world_t *world)
{
    size_t i = ps_rng_below(&world->rng, world->n_messages);
    message_t message = world->messages[i];

    world->messages[i] = world->messages[--world->n_messages];
    if (message.to != NODES && world->lives[number_at(world, message.to)] != message.life) {
        ps_relay_lot_done(&message.lot);
        return; /* to one that is dead */
    }
    if (message.is_news) {
        uint32_t to = number_at(world, message.to);

        ps_relay_heard(world->relays[to], world->now_ms, message.from, (uint32_t)message.number,
                       message.news);
        drain(world, to);
    } else {
        deliver_bundle(world, &message);
    }
    ps_relay_lot_done(&message.lot);
}

/* ---- clients ---- */

static void make_push(world_t *world, client_t *client)
{
    const ps_lent_place_t place = {.table = 1};
    uint64_t seq = client->given + 1;
    PSD_AUTO(kit_lot_done) kit_lot_t lot = {.from = {.session = 0}};
    ps_relay_giver_t giver = {.worker = world->positions[client->worker],
                              .request = client->session << 32 | seq,
                              .plan = 1,
                              .is_urgent = chance(world, 5)};
    ps_lent_way_t way = ps_lent_way(client->lent, place);

    if (seq > client->n_seqs || way == PS_LENT_WAIT) {
        return;
    }
    make_lot(world, client, seq, &lot);
    if (way != PS_LENT_DIRECT && !(world->faults && way == PS_LENT_FREE && chance(world, 10)) &&
        ps_relay_give(world->relays[client->worker], world->now_ms, &giver, &KIT_KEY, &lot.lot,
                      NULL) == PSD_OK) {
        client->given++;
        cr_assert_eq(ps_lent_add(client->lent, world->now_ms, place, seq,
                                 client->has_rows[seq] ? lot.span.payload : NULL, NULL),
                     PSD_OK);
        drain(world, client->worker);
    } else if (way != PS_LENT_LEND && go_directly(world, client, seq)) {
        client->given++;
    }
}

static void be_a_client(world_t *world, client_t *client)
{
    const ps_lent_place_t place = {.table = 1};
    ps_lent_deed_t deed;

    while (ps_lent_next(client->lent, &deed)) {
        if (deed.kind == PS_LENT_ASK && deed.seq >= client->next) {
            ps_lent_back(client->lent, place, deed.seq);
        } else if (deed.kind == PS_LENT_ASK) {
            ps_lent_end(client->lent, place, deed.seq);
        } else {
            cr_assert(go_directly(world, client, deed.seq), "those before it went");
        }
    }
}

static void die(world_t *world, uint32_t i)
{
    ps_relay_destroy(&world->relays[i]);
    open_relay(world, i);
    for (uint32_t k = 0; k < world->n_workers; k++) {
        if (k != i) {
            ps_relay_lost(world->relays[k], world->now_ms, world->positions[i]);
            drain(world, k);
        }
    }
    for (size_t k = 0; k < world->n_clients; k++) {
        if (world->clients[k].worker == i) {
            ps_lent_gone(world->clients[k].lent, world->now_ms);
        }
    }
}

static void pass_time(world_t *world, uint64_t ms)
{
    world->now_ms += ms;
    for (uint32_t i = 0; i < world->n_workers; i++) {
        ps_relay_tick(world->relays[i], world->now_ms);
        drain(world, i);
    }
    for (size_t i = 0; i < world->n_clients; i++) {
        ps_lent_tick(world->clients[i].lent, world->now_ms);
        be_a_client(world, &world->clients[i]);
    }
}

static bool is_over(const world_t *world)
{
    for (size_t i = 0; i < world->n_clients; i++) {
        if (world->clients[i].given < world->clients[i].n_seqs ||
            ps_lent_count(world->clients[i].lent) > 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < world->n_workers; i++) {
        if (!ps_relay_is_empty(world->relays[i])) {
            return false;
        }
    }
    return world->n_messages == 0;
}

static void step(world_t *world)
{
    uint64_t what = ps_rng_below(&world->rng, 100);

    if (what < 30) {
        make_push(world, &world->clients[ps_rng_below(&world->rng, world->n_clients)]);
    } else if (what < 90 && world->n_messages > 0) {
        deliver(world);
    } else if (what == 99 && world->faults) {
        die(world, (uint32_t)ps_rng_below(&world->rng, world->n_workers));
    } else if (what >= 90 || world->faults) {
        pass_time(world, 1 + ps_rng_below(&world->rng, 40));
    }
}

/* ---- the sums ---- */

static int by_place(const void *left, const void *right)
{
    const part_t *a = left;
    const part_t *b = right;

    if (a->first != b->first) {
        return a->first < b->first ? -1 : 1;
    }
    if (a->member != b->member) {
        return a->member < b->member ? -1 : 1;
    }
    return (a->seq > b->seq) - (a->seq < b->seq);
}

/* The bits of the sum, all columns being alike; 0: there are no rows. */
static uint32_t add_parts(part_t *parts, size_t n)
{
    static const ps_combine_args_t args = {.type = PS_TYPE_F32, .width = KIT_COLS, .divisor = 1};
    ps_combine_part_t list[PARTS];
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_slice_t slice;

    if (n == 0) {
        return 0;
    }
    qsort(parts, n, sizeof *parts, by_place);
    for (size_t i = 0; i < n; i++) {
        list[i] = (ps_combine_part_t){.first = parts[i].first,
                                      .n = parts[i].n,
                                      .slice = &parts[i].slice,
                                      .payload = parts[i].payload};
    }
    cr_assert(ps_combine_fits(list, n));
    cr_assert_eq(ps_combine(&args, list, n, &slice, &payload, NULL), PSD_OK);
    return ps_load_u32(payload->spans[0].data);
}

/* As if every client had sent its own. */
static uint32_t add_directly(world_t *world)
{
    part_t parts[PARTS];
    size_t n = 0;
    uint32_t sum = 0;

    for (size_t i = 0; i < world->n_clients; i++) {
        const client_t *client = &world->clients[i];

        for (uint64_t seq = 1; seq <= client->n_seqs; seq++) {
            kit_lot_t lot;

            make_lot(world, client, seq, &lot);
            if (!client->has_rows[seq]) {
                kit_lot_done(&lot);
                continue;
            }
            parts[n++] = (part_t){.first = lot.span.first,
                                  .n = 1,
                                  .member = client->member,
                                  .seq = seq,
                                  .slice = lot.span.slice,
                                  .payload = lot.span.payload};
        }
    }
    sum = add_parts(parts, n);
    for (size_t i = 0; i < n; i++) {
        ps_payload_destroy(&parts[i].payload);
    }
    return sum;
}

/* Returns how many sums of several positions came. */
static size_t run(uint64_t seed, bool faults)
{
    static world_t world;
    size_t n_sums = 0;
    unsigned steps = 0;

    make_world(&world, seed, faults);
    while (!is_over(&world)) {
        cr_assert_lt(++steps, 100000, "seed %lu does not end", (unsigned long)seed);
        step(&world);
    }
    for (size_t i = 0; i < world.n_clients; i++) {
        cr_assert_eq(world.clients[i].next, world.clients[i].n_seqs + 1);
    }
    cr_assert_eq(add_parts(world.parts, world.n_parts), add_directly(&world), "seed %lu",
                 (unsigned long)seed);
    n_sums = world.n_sums;
    end_world(&world);
    return n_sums;
}

Test(relay_bits, whoever_adds_the_bits_are_the_same)
{
    size_t n_sums = 0;

    for (uint64_t seed = 0; seed < 400; seed++) {
        n_sums += run(seed, false);
    }
    cr_assert_gt(n_sums, 200, "%zu sums", n_sums);
}

Test(relay_bits, each_delta_is_taken_once_whatever_fails)
{
    size_t n_sums = 0;

    for (uint64_t seed = 1000; seed < 2000; seed++) {
        n_sums += run(seed, true);
    }
    cr_assert_gt(n_sums, 50, "%zu sums", n_sums);
}
