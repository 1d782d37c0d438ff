/* SPDX-License-Identifier: Apache-2.0 */
/* A relay without a machine: it keeps pushes and marks of one clock and partition for a while, adds
 * up what seems to be whole, and sends it as one bundle, now and then twice. With a max_delay other
 * than 0 those of any clocks are one sum. It knows little: what of it may be taken is the shard's
 * business. Clients send again what it does not bring. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/combine/combine.h"
#include "sim.h"
#include "wire/records/bundle.h"

#define FIRST_REQUEST (UINT64_C(1) << 62) /* bundles are numbered from here on */
#define ITEMS_MAX 48                      /* of one lot */
#define KEPT_MS 200
#define PATIENCE_MS 400 /* most that clients wait for a relay, beside their own */
#define AGAIN_MS 500

typedef struct item {
    uint32_t client;
    uint64_t link;
    uint64_t session;
    uint64_t seq;
    bool marks;
    ps_slice_t slice;
    ps_payload_t *payload; /* held; NULL: a mark */
} item_t;

typedef struct lot {
    uint32_t partition;
    uint64_t clock;
    uint64_t epoch; /* the greatest */
    bool sent;
    item_t items[ITEMS_MAX];
    size_t n;
} lot_t;

struct sim_relay {
    bool is_timed; /* no clock holds a lot together */
    lot_t **lots;  /* owned */
    size_t n;
    size_t capacity;
    uint64_t taken[SIM_PARTITIONS_MAX][SIM_CLIENTS_MAX]; /* the last seq that came here */
};

/* What the deltas of some positions have become. */
typedef struct node {
    bool whole; /* nothing more of these positions is expected */
    bool has_rows;
    ps_slice_t slice;
    ps_payload_t *payload; /* owned */
} node_t;

void sim_relay_start(sim_t *sim)
{
    bool is_timed = sim->plan.max_delay != 0;

    if (sim->weather.relayed > 0 && (is_timed || sim->plan.spec.combine != PS_COMBINE_EACH)) {
        sim->relay = ps_alloc(1, sizeof *sim->relay);
        sim_need(sim->relay != NULL, "memory for a relay");
        sim->relay->is_timed = is_timed;
        sim->plan.resend_ms += ps_rng_below(&sim->net, PATIENCE_MS);
    }
}

void sim_relay_done(sim_t *sim)
{
    struct sim_relay *self = sim->relay;

    for (size_t i = 0; self != NULL && i < self->n; i++) {
        for (size_t k = 0; k < self->lots[i]->n; k++) {
            ps_payload_destroy(&self->lots[i]->items[k].payload);
        }
        ps_free(self->lots[i]);
    }
    if (self != NULL) {
        ps_free(self->lots);
    }
    ps_free(self);
    sim->relay = NULL;
}

/* ---- taking ---- */

static uint64_t find_lot(const struct sim_relay *self, const lot_t *lot)
{
    uint64_t i = 0;

    while (self->lots[i] != lot) {
        i++;
    }
    return i;
}

static lot_t *lot_of(sim_t *sim, uint32_t partition, uint64_t clock)
{
    struct sim_relay *self = sim->relay;

    for (size_t i = 0; i < self->n; i++) {
        lot_t *lot = self->lots[i];

        if (lot->partition == partition && lot->clock == clock && !lot->sent) {
            return lot;
        }
    }
    sim_need(ps_grow(&self->lots, &self->capacity, self->n + 1, sizeof *self->lots),
             "memory for a lot");
    self->lots[self->n] = ps_alloc(1, sizeof **self->lots);
    sim_need(self->lots[self->n] != NULL, "memory for a lot");
    *self->lots[self->n] = (lot_t){.partition = partition, .clock = clock};
    sim_at(sim, sim->now_ms + 1 + ps_rng_below(&sim->net, KEPT_MS), SIM_EVENT_RELAY, self->n);
    return self->lots[self->n++];
}

/* Its seqs follow each other. */
static bool fits(const lot_t *lot, const item_t *item)
{
    for (size_t i = lot->n; i > 0; i--) {
        if (lot->items[i - 1].client == item->client) {
            return lot->n < ITEMS_MAX && lot->items[i - 1].seq + 1 == item->seq;
        }
    }
    return lot->n < ITEMS_MAX;
}

/* What may go by a relay; clock: that the worker has finished. */
static bool read_item(const ps_message_t *message, item_t *item, uint32_t *ret_partition,
                      uint64_t *ret_clock, uint64_t *ret_epoch)
{
    if (message->kind == PS_KIND_PUSH && message->push.op == PS_CHANGE_UPDATE &&
        message->push.pull == 0 && message->push.job != 0) {
        item->seq = message->push.seq;
        item->marks = (message->flags & PS_FLAG_MARK) != 0;
        ps_message_slice(message, &item->slice);
        *ret_partition = message->push.partition;
        *ret_clock = message->push.clock;
        *ret_epoch = message->push.epoch;
        return true;
    }
    if (message->kind == PS_KIND_MARK && message->mark.clock > 0) {
        item->seq = message->mark.seq;
        item->marks = true;
        *ret_partition = message->mark.partition;
        *ret_clock = message->mark.clock - 1;
        *ret_epoch = message->mark.epoch;
        return true;
    }
    return false;
}

/* All clients of all workers have marked. */
static bool is_complete(const sim_t *sim, const lot_t *lot)
{
    uint32_t n_marks = 0;

    for (size_t i = 0; i < lot->n; i++) {
        n_marks += lot->items[i].marks ? 1 : 0;
    }
    return n_marks >= sim->plan.n_workers * sim->plan.n_members;
}

bool sim_relay_takes(sim_t *sim, sim_client_t *client, uint64_t link, const ps_message_t *message,
                     ps_payload_t *payload)
{
    struct sim_relay *self = sim->relay;
    item_t item = {.client = client->number, .link = link};
    uint32_t partition = 0;
    uint64_t clock = 0;
    uint64_t epoch = 0;
    uint64_t *taken = NULL;
    lot_t *lot = NULL;

    if (self == NULL || !read_item(message, &item, &partition, &clock, &epoch) ||
        ps_rng_below(&sim->net, 100) >= sim->weather.relayed) {
        return false;
    }
    taken = &self->taken[partition][client->number];
    lot = lot_of(sim, partition, self->is_timed ? 0 : clock);
    if (item.seq <= *taken || !fits(lot, &item)) {
        return false;
    }
    item.session = ps_session_number(client->session, link);
    if (message->kind == PS_KIND_PUSH) {
        item.payload = ps_payload_keep(payload);
    }
    *taken = item.seq;
    lot->items[lot->n++] = item;
    lot->epoch = epoch > lot->epoch ? epoch : lot->epoch;
    sim_trace(sim, "  relay gets seq %llu of client %u for partition %u",
              (unsigned long long)item.seq, client->number, partition);
    if (is_complete(sim, lot)) {
        sim_relay_send(sim, find_lot(self, lot), false);
    }
    return ps_rng_below(&sim->net, 12) > 0;
}

/* ---- adding ---- */

static const sim_client_t *client_of(const sim_t *sim, const item_t *item)
{
    return &sim->clients[item->client];
}

static int64_t order_of(const sim_t *sim, const item_t *item)
{
    const sim_client_t *client = client_of(sim, item);

    return (int64_t)client->worker * sim->plan.n_members + client->member;
}

/* By worker, member and seq; of two lives of a worker only that of the first item stays. */
static size_t sort_items(const sim_t *sim, const lot_t *lot, const item_t **ret)
{
    size_t n = 0;

    for (size_t i = 0; i < lot->n; i++) {
        const item_t *item = &lot->items[i];
        size_t at = n;
        bool is_other = false;

        for (size_t k = 0; k < n; k++) {
            is_other = is_other || (order_of(sim, ret[k]) == order_of(sim, item) &&
                                    ret[k]->session != item->session);
        }
        if (is_other) {
            continue;
        }
        while (at > 0 && order_of(sim, ret[at - 1]) > order_of(sim, item)) {
            ret[at] = ret[at - 1];
            at--;
        }
        ret[at] = item;
        n++;
    }
    return n;
}

static void list_from(const sim_t *sim, const item_t **items, size_t n, ps_bundle_t *bundle)
{
    for (size_t i = 0; i < n; i++) {
        const sim_client_t *client = client_of(sim, items[i]);
        ps_bundle_from_t *from = NULL;

        if (i == 0 || order_of(sim, items[i - 1]) != order_of(sim, items[i])) {
            bundle->from[bundle->n_from++] = (ps_bundle_from_t){.session = items[i]->session,
                                                                .first_seq = items[i]->seq,
                                                                .worker = client->worker,
                                                                .member = client->member,
                                                                .joins = client->life};
        }
        bundle->from[bundle->n_from - 1].last_seq = items[i]->seq;
        from = &bundle->from[bundle->n_from - 1];
        from->marks =
            (uint8_t)((sim->relay->is_timed ? from->marks : 0) + (items[i]->marks ? 1 : 0));
        from->tail = !sim->relay->is_timed ? 0
                     : items[i]->marks     ? PS_BUNDLE_TAIL_MARK
                                           : PS_BUNDLE_TAIL_PUSH;
    }
}

static void add_up(const sim_t *sim, const ps_combine_part_t *parts, size_t n, node_t *ret)
{
    const ps_combine_args_t args = {
        .type = sim->plan.spec.type, .width = sim->plan.spec.n_cols, .divisor = 1};

    sim_need(ps_combine(&args, parts, n, &ret->slice, &ret->payload, NULL) == PSD_OK &&
                 ret->payload != NULL,
             "memory for a sum");
    ret->has_rows = true;
}

/* What the items of one worker come to. */
static node_t leaf_of(const sim_t *sim, uint32_t worker, const item_t **items, size_t n)
{
    ps_combine_part_t parts[ITEMS_MAX];
    node_t leaf = {.whole = worker >= sim->plan.n_workers};
    uint32_t n_marks = 0;
    size_t n_parts = 0;

    for (size_t i = 0; i < n; i++) {
        if (client_of(sim, items[i])->worker != worker) {
            continue;
        }
        n_marks += items[i]->marks ? 1 : 0;
        if (items[i]->payload != NULL) {
            parts[n_parts++] = (ps_combine_part_t){
                .first = worker, .n = 1, .slice = &items[i]->slice, .payload = items[i]->payload};
        }
    }
    leaf.whole = leaf.whole || n_marks == sim->plan.n_members;
    if (n_parts == 1) {
        leaf.has_rows = true;
        leaf.slice = *parts[0].slice;
        leaf.payload = ps_payload_clone(parts[0].payload);
        sim_need(leaf.payload != NULL, "memory for a push");
    } else if (n_parts > 1) {
        add_up(sim, parts, n_parts, &leaf);
    }
    return leaf;
}

/* The node becomes a span, and is empty then. */
static void end_node(ps_bundle_t *bundle, node_t *node, uint32_t first, uint32_t n,
                     ps_payload_t **ret_payloads)
{
    ps_bundle_span_t *span = &bundle->spans[bundle->n_spans];

    if (!node->has_rows) {
        return;
    }
    *span = (ps_bundle_span_t){.first = first,
                               .n = n,
                               .slice = node->slice,
                               .body = {.keys = node->payload->keys,
                                        .index = node->payload->index,
                                        .values = node->payload->span}};
    ret_payloads[bundle->n_spans++] = node->payload;
    *node = (node_t){.whole = false};
}

/* Two halves become one, or two spans. */
static node_t join(sim_t *sim, ps_bundle_t *bundle, node_t *left, node_t *right, uint32_t first,
                   uint32_t n, ps_payload_t **ret_payloads)
{
    const ps_combine_part_t parts[2] = {
        {.first = first, .n = n, .slice = &left->slice, .payload = left->payload},
        {.first = first + n, .n = n, .slice = &right->slice, .payload = right->payload}};
    node_t both = {.whole = true};

    if (!left->whole || !right->whole || ps_rng_below(&sim->net, 10) == 0) {
        end_node(bundle, left, first, n, ret_payloads);
        end_node(bundle, right, first + n, n, ret_payloads);
        return (node_t){.whole = false};
    }
    if (left->has_rows && right->has_rows) {
        add_up(sim, parts, 2, &both);
        ps_payload_destroy(&left->payload);
        ps_payload_destroy(&right->payload);
        return both;
    }
    return left->has_rows ? *left : right->has_rows ? *right : both;
}

static int by_first(const void *left, const void *right)
{
    const ps_bundle_span_t *a = left;
    const ps_bundle_span_t *b = right;

    return (a->first > b->first) - (a->first < b->first);
}

/* All of it in one span, whatever is missing. */
static void add_at_once(sim_t *sim, const item_t **items, size_t n, ps_bundle_t *bundle,
                        ps_payload_t **ret_payloads)
{
    ps_combine_part_t parts[ITEMS_MAX];
    node_t sum = {.whole = true};
    size_t n_parts = 0;

    for (size_t i = 0; i < n; i++) {
        if (items[i]->payload != NULL) {
            parts[n_parts++] = (ps_combine_part_t){.first = client_of(sim, items[i])->worker,
                                                   .n = 1,
                                                   .slice = &items[i]->slice,
                                                   .payload = items[i]->payload};
        }
    }
    if (n_parts > 0) {
        add_up(sim, parts, n_parts, &sum);
    }
    end_node(bundle, &sum, 0, SIM_WORKERS_MAX, ret_payloads);
    for (uint16_t i = 0; i < bundle->n_spans; i++) {
        bundle->spans[i].n_from = bundle->n_from;
    }
}

static void add_all(sim_t *sim, const item_t **items, size_t n, ps_bundle_t *bundle,
                    ps_payload_t **ret_payloads)
{
    node_t nodes[SIM_WORKERS_MAX];
    uint32_t n_nodes = SIM_WORKERS_MAX;

    for (uint32_t i = 0; i < SIM_WORKERS_MAX; i++) {
        nodes[i] = leaf_of(sim, i, items, n);
    }
    for (uint32_t width = 1; n_nodes > 1; width *= 2, n_nodes /= 2) {
        for (uint32_t i = 0; i < n_nodes / 2; i++) {
            nodes[i] = join(sim, bundle, &nodes[2 * i], &nodes[2 * i + 1], 2 * i * width, width,
                            ret_payloads);
        }
    }
    end_node(bundle, &nodes[0], 0, SIM_WORKERS_MAX, ret_payloads);
    qsort(bundle->spans, bundle->n_spans, sizeof *bundle->spans, by_first);
    for (uint16_t i = 0; i < bundle->n_spans; i++) {
        ps_bundle_span_t *span = &bundle->spans[i];

        for (uint16_t k = 0; k < bundle->n_from; k++) {
            if (bundle->from[k].worker >= span->first &&
                bundle->from[k].worker < span->first + span->n) {
                span->from = span->n_from == 0 ? k : span->from;
                span->n_from++;
            }
        }
    }
}

/* ---- sending ---- */

static ps_payload_t *bytes_of(const ps_bundle_t *bundle)
{
    ps_payload_t *payload = NULL;
    uint8_t *bytes = NULL;
    size_t size = 0;

    sim_need(ps_bundle_size(bundle, &size), "a bundle that can be counted");
    payload = ps_payload_room(0, 0, size, &bytes);
    sim_need(payload != NULL, "memory for a bundle");
    ps_bundle_write(bundle, bytes);
    return payload;
}

void sim_relay_send(sim_t *sim, uint64_t number, bool again)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_bundle_from_t from[SIM_CLIENTS_MAX] = {{.session = 0}};
    ps_bundle_span_t spans[SIM_WORKERS_MAX] = {{.first = 0}};
    ps_payload_t *payloads[SIM_WORKERS_MAX] = {NULL};
    ps_bundle_t bundle = {.from = from, .spans = spans};
    const item_t *items[ITEMS_MAX];
    lot_t *lot = sim->relay->lots[number];
    const item_t *by = &lot->items[ps_rng_below(&sim->net, lot->n == 0 ? 1 : lot->n)];
    const sim_client_t *client = &sim->clients[by->client];
    size_t n = sort_items(sim, lot, items);
    ps_message_t message = {.kind = PS_KIND_BUNDLE};

    if (n == 0 || client->session == NULL || lot->sent != again) {
        lot->sent = true;
        return; /* the relay has ended, or had all before its time */
    }
    lot->sent = true;
    list_from(sim, items, n, &bundle);
    if (sim->relay->is_timed) {
        add_at_once(sim, items, n, &bundle, payloads);
    } else {
        add_all(sim, items, n, &bundle, payloads);
    }
    payload = bytes_of(&bundle);
    message.bundle = (ps_msg_bundle_t){.request = FIRST_REQUEST + number,
                                       .table = SIM_TABLE,
                                       .partition = lot->partition,
                                       .epoch = lot->epoch,
                                       .job = SIM_JOB,
                                       .worker = client->worker,
                                       .member = client->member,
                                       .joins = client->life,
                                       .clock = lot->clock,
                                       .n_from = bundle.n_from,
                                       .n_spans = bundle.n_spans};
    sim_trace(sim, "  relay sends lot %llu of clock %llu: %u contributors, %u spans",
              (unsigned long long)number, (unsigned long long)lot->clock, bundle.n_from,
              bundle.n_spans);
    sim_send(sim, client->conn_of[by->link], true, &message, payload, 0);
    for (size_t i = 0; i < SIM_WORKERS_MAX; i++) {
        ps_payload_destroy(&payloads[i]);
    }
    if (sim->now_ms < sim->weather.calm_ms && ps_rng_below(&sim->net, 5) == 0) {
        sim_at(sim, sim->now_ms + 1 + ps_rng_below(&sim->net, AGAIN_MS), SIM_EVENT_RELAY, number)
            ->b = 1;
    }
}

bool sim_relay_hears(const ps_message_t *message)
{
    switch ((int)message->kind) {
    case PS_KIND_ACK:
        return message->ack.request >= FIRST_REQUEST;
    case PS_KIND_REFUSED:
        return message->refused.request >= FIRST_REQUEST;
    case PS_KIND_PARKED:
        return message->parked.request >= FIRST_REQUEST;
    case PS_KIND_MOVED:
        return message->moved.request >= FIRST_REQUEST;
    default:
        return false;
    }
}
