/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on connections, which may lose, duplicate and reorder them;
 * letters of the registry, which arrive in order or, during a cut, not at
 * all. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sim_cluster_lead.h"
#include "wire/messages/message.h"

#define PIECES_MS 60    /* most until a member has a database */
#define NOTICED_MS 2000 /* until a transport notices that a peer is cut off */

void cluster_event_done(cluster_event_t *event)
{
    ps_buffer_done(&event->bytes);
    if (event->letter != NULL) {
        ps_free(event->letter->routes);
        ps_buffer_done(&event->letter->bytes);
        ps_free(event->letter);
        event->letter = NULL;
    }
}

static bool is_calm(const cluster_t *self)
{
    return self->now_ms >= CLUSTER_CALM_MS || self->begins;
}

static uint64_t travel_ms(cluster_t *self)
{
    return 1 + cluster_below(self, self->begins ? 1 : self->plan.delay_ms);
}

/* ---- messages ---- */

size_t cluster_connect(cluster_t *self, cluster_conn_t conn, const char *tcp)
{
    cluster_need(sscanf(tcp, "tcp://n%u:%u", &conn.node, &conn.shard) == 2 &&
                     conn.node < CLUSTER_NODES_MAX && conn.shard < CLUSTER_SHARDS_MAX,
                 "an endpoint of a node");
    if (self->n_conns == 0) { /* the first number names no connection */
        cluster_need(ps_grow(&self->conns, &self->conns_capacity, 1, sizeof *self->conns),
                     "memory for a connection");
        self->conns[self->n_conns++] = (cluster_conn_t){0};
    }
    cluster_need(
        ps_grow(&self->conns, &self->conns_capacity, self->n_conns + 1, sizeof *self->conns),
        "memory for a connection");
    self->conns[self->n_conns] = conn;
    return self->n_conns++;
}

static void put(ps_buffer_t *bytes, ps_bytes_t part)
{
    cluster_need(part.size == 0 || ps_buffer_append(bytes, part.data, part.size),
                 "memory for a message");
}

static void put_message(ps_buffer_t *bytes, const ps_message_t *message,
                        const ps_payload_t *payload)
{
    uint8_t header[PS_HEADER_MAX];

    put(bytes, (ps_bytes_t){header, ps_message_encode(message, header)});
    if (payload != NULL) {
        put(bytes, payload->keys);
        put(bytes, payload->index);
        for (size_t i = 0; i < payload->n_spans; i++) {
            put(bytes, payload->spans[i]);
        }
    }
}

/* Some of a client's messages come again after it has ended: the first
 * HELLO, and what follows it on that connection. */
static void keep_late(cluster_t *self, size_t number, const ps_message_t *message,
                      const ps_payload_t *payload)
{
    cluster_client_t *client = &self->clients[self->conns[number].client];
    cluster_late_t *late = &client->late[client->n_late];

    if (client->n_late == CLUSTER_LATE_MAX ||
        (client->n_late == 0 ? message->kind != PS_KIND_HELLO
                             : client->late[0].conn != number || message->kind != PS_KIND_PUSH)) {
        return;
    }
    late->conn = number;
    put_message(&late->bytes, message, payload);
    client->n_late++;
}

void cluster_send_late(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    uint64_t at_ms = self->now_ms + 1;

    for (size_t i = 0; i < client->n_late; i++) {
        cluster_event_t *event = NULL;

        at_ms += cluster_below(self, 100);
        event = cluster_at(self, at_ms, CLUSTER_MESSAGE, client->late[i].conn);
        event->bytes = client->late[i].bytes;
        client->late[i].bytes = (ps_buffer_t){0};
    }
    client->n_late = 0;
}

static uint32_t opener_of(const cluster_conn_t *conn)
{
    return conn->client != CLUSTER_NOBODY ? CLUSTER_CLIENTS : conn->from_node;
}

/* Notes which request the values answer. */
static void note_values(cluster_event_t *event, const cluster_t *self, uint32_t from,
                        const ps_message_t *message)
{
    event->incarnation = from < CLUSTER_REGISTRY ? self->nodes[from].incarnation : 0;
    if (message->kind == PS_KIND_VALUES) {
        event->values_of = message->values.request;
        event->epoch = message->values.epoch;
    }
}

void cluster_send(cluster_t *self, size_t number, bool to_opener, const ps_message_t *message,
                  const ps_payload_t *payload)
{
    const cluster_conn_t *conn = &self->conns[number];
    uint32_t from = to_opener ? conn->node : opener_of(conn);
    uint32_t to = to_opener ? opener_of(conn) : conn->node;
    bool calm = is_calm(self);
    uint32_t n = !calm && cluster_below(self, 1000) < self->plan.repeat ? 2 : 1;

    if (!to_opener && conn->client != CLUSTER_NOBODY) {
        keep_late(self, number, message, payload);
    }
    if ((!calm && cluster_below(self, 1000) < self->plan.loss) || cluster_is_cut(self, from, to)) {
        if (message->kind == PS_KIND_VALUES) {
            /* Nothing happens then; until then it seems to be on its way. */
            note_values(cluster_at(self, self->now_ms + 1 + cluster_below(self, NOTICED_MS),
                                   CLUSTER_FAULTS, number),
                        self, from, message);
        }
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        cluster_event_t *event =
            cluster_at(self, self->now_ms + travel_ms(self), CLUSTER_MESSAGE, number);

        event->b = to_opener ? 1 : 0;
        note_values(event, self, from, message);
        put_message(&event->bytes, message, payload);
    }
}

/* The transport's knowledge: values that this life of the node has sent. It
 * learns later of those that are lost. */
static void find_answer(cluster_t *self, const cluster_conn_t *conn, ps_event_t *asks)
{
    const cluster_node_t *node = &self->nodes[conn->node];
    uint64_t epoch = 0;
    uint64_t request = ps_request_for_values(asks->message, &epoch);
    uint64_t conns[PS_SENDING_CONNS];
    ps_shard_t *shard = node->alive ? node->shards[conn->shard].machine : NULL;
    size_t n = request == 0 || shard == NULL ? 0 : ps_shard_conns(shard, asks->conn, conns);

    for (size_t i = 0; n > 0 && i < self->n_events; i++) {
        const cluster_event_t *event = &self->events[i];

        if ((event->kind != CLUSTER_MESSAGE && event->kind != CLUSTER_FAULTS) ||
            event->incarnation != node->incarnation || event->values_of != request ||
            event->epoch < epoch) {
            continue;
        }
        for (size_t j = 0; j < n; j++) {
            if (conns[j] == event->a) {
                asks->sending = (ps_sending_t){.bytes = 1};
                self->n_under_way++;
            }
        }
    }
}

static void arrive_at_opener(cluster_t *self, const cluster_conn_t *conn,
                             const ps_message_t *message, ps_payload_t *payload)
{
    if (conn->client != CLUSTER_NOBODY) {
        cluster_client_received(self, conn->client, conn->link, message, payload);
    } else if (self->nodes[conn->from_node].incarnation == conn->from_incarnation) {
        cluster_node_step(self, conn->from_node, conn->from_shard,
                          &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                        .conn = conn->link,
                                        .message = message,
                                        .payload = payload});
    }
}

void cluster_arrive(cluster_t *self, const cluster_event_t *event)
{
    const cluster_conn_t conn = self->conns[event->a];
    ps_bytes_t frame = {event->bytes.data, event->bytes.size};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_message_t message;
    ps_body_t body = {0};

    if (ps_message_decode(&frame, 1, &message, &body, err) != PSD_OK) {
        cluster_fail(self, "a message cannot be read: %s", psd_error_text(err));
        return;
    }
    if (body.keys.size + body.index.size + body.values.size > 0) {
        payload = ps_payload_copy(body.keys, body.index, body.values);
        cluster_need(payload != NULL, "memory for a body");
    }
    if (event->b != 0) {
        arrive_at_opener(self, &conn, &message, payload);
    } else {
        ps_event_t step = {
            .kind = PS_EVENT_MESSAGE, .conn = event->a, .message = &message, .payload = payload};

        find_answer(self, &conn, &step);
        cluster_node_step(self, conn.node, conn.shard, &step);
    }
}

/* A lost event still happens, but does nothing. */
static void lose(cluster_event_t *event)
{
    cluster_event_done(event);
    event->kind = CLUSTER_FAULTS;
}

void cluster_disconnect(cluster_t *self, uint32_t node)
{
    bool lost = cluster_below(self, 2) == 0;

    for (size_t i = 0; lost && i < self->n_events; i++) {
        cluster_event_t *event = &self->events[i];

        if (event->kind == CLUSTER_MESSAGE && event->incarnation != 0 &&
            event->incarnation == self->nodes[node].incarnation) {
            lose(event);
        }
    }
    for (size_t i = 1; i < self->n_conns; i++) {
        const cluster_conn_t *conn = &self->conns[i];
        bool opened = conn->client == CLUSTER_NOBODY && conn->from_node == node;

        if ((conn->node == node || opened) && cluster_below(self, 2) == 0) {
            cluster_at(self, self->now_ms + 1 + cluster_below(self, 200), CLUSTER_GONE, i)->b =
                opened ? 0 : 1;
        }
    }
}

/* ---- members of the registry ---- */

void cluster_send_member(cluster_t *self, uint32_t from, uint32_t to, ps_bytes_t bytes)
{
    bool calm = is_calm(self);
    uint32_t n = !calm && cluster_below(self, 1000) < self->plan.repeat ? 2 : 1;

    if ((!calm && cluster_below(self, 1000) < self->plan.loss) || cluster_is_cut(self, from, to)) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        put(&cluster_at(self, self->now_ms + travel_ms(self), CLUSTER_QUORUM, to)->bytes, bytes);
    }
}

void cluster_send_database(cluster_t *self, uint32_t from, uint32_t to, const cluster_db_t *db)
{
    cluster_event_t *event =
        cluster_at(self, self->now_ms + 1 + cluster_below(self, PIECES_MS), CLUSTER_DATABASE, to);

    event->b = from;
    event->epoch = self->members[from].life;
    put(&event->bytes, (ps_bytes_t){(const uint8_t *)db, sizeof *db});
}

/* Pieces that are lost are sent again, until the sender gives up. */
void cluster_take_database(cluster_t *self, const cluster_event_t *event)
{
    uint32_t to = (uint32_t)event->a;
    uint32_t from = (uint32_t)event->b;
    bool came = !cluster_is_cut(self, from, to) && !cluster_is_cut(self, to, from) &&
                self->members[from].life == event->epoch;
    cluster_event_t *sent = NULL;

    if (came) {
        cluster_db_t db;

        memcpy(&db, event->bytes.data, sizeof db);
        came = cluster_member_database(self, to, &db);
    }
    sent = cluster_at(self, self->now_ms + travel_ms(self), CLUSTER_DATABASE_SENT, from);
    sent->b = to;
    sent->incarnation = event->epoch;
    if (came) {
        put(&sent->bytes, (ps_bytes_t){event->bytes.data, event->bytes.size});
    }
}

/* ---- letters ---- */

static uint32_t place_of(const cluster_t *self, const cluster_letter_t *letter, uint32_t name,
                         bool is_from)
{
    bool of_client =
        is_from ? cluster_is_of_client(letter->kind) : cluster_is_to_client(letter->kind);

    if (name == CLUSTER_REGISTRY && !of_client && cluster_is_replicated(self)) {
        return letter->member;
    }
    return of_client ? CLUSTER_CLIENTS : name;
}

/* Which member it comes from, or is for. */
static void address(cluster_t *self, cluster_letter_t *letter)
{
    if (letter->to == CLUSTER_REGISTRY) {
        uint32_t from = cluster_is_of_client(letter->kind) ? CLUSTER_CLIENTS : letter->from;

        letter->member = cluster_lead_belief(self, from);
        if (letter->kind == CLUSTER_AGENT) {
            letter->joins = self->registries[letter->member].life;
        }
    } else {
        letter->member = self->registry->at;
        letter->term = self->registry->term;
    }
}

void cluster_post(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_letter_t *own = ps_alloc(1, sizeof *own);
    uint64_t at_ms = self->now_ms + travel_ms(self);
    cluster_event_t *event = NULL;
    uint64_t *last_ms = NULL;
    uint32_t from = 0;
    uint32_t to = 0;

    cluster_need(own != NULL, "memory for a letter");
    *own = *letter;
    if (cluster_is_replicated(self)) {
        address(self, own);
    }
    from = place_of(self, own, own->from, true);
    to = place_of(self, own, own->to, false);
    last_ms = &self->last_ms[from][to];
    if (own->to != CLUSTER_REGISTRY) { /* the registry's */
        at_ms += cluster_lateness(self, to);
    }
    at_ms = at_ms > *last_ms ? at_ms : *last_ms;
    event = cluster_at(self, at_ms, CLUSTER_LETTER, 0);
    event->letter = own;
    if (from != to && cluster_is_cut(self, from, to)) {
        lose(event);
        return;
    }
    *last_ms = at_ms;
}

void cluster_lose_letters(cluster_t *self, uint32_t place)
{
    for (size_t i = 0; i < self->n_events; i++) {
        cluster_event_t *event = &self->events[i];

        if (event->kind == CLUSTER_LETTER &&
            (place_of(self, event->letter, event->letter->from, true) == place ||
             place_of(self, event->letter, event->letter->to, false) == place)) {
            lose(event);
        }
    }
}
