/* SPDX-License-Identifier: Apache-2.0 */
/* Time and the network: a heap of events, packets in flight, connections. Messages are not bytes
 * here; sim.h has the codec in its loop. Bodies are, as relays write and read them. */
#include <string.h>

#include "sim_overlay.h"

#define LATE_MS 4000

static bool is_before(const overlay_event_t *a, const overlay_event_t *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void swap(overlay_event_t *a, overlay_event_t *b)
{
    overlay_event_t kept = *a;

    *a = *b;
    *b = kept;
}

static overlay_event_t *put(overlay_t *self, const overlay_event_t *event)
{
    size_t i = self->n_events;

    overlay_need(ps_grow(&self->events, &self->events_capacity, i + 1, sizeof *self->events),
                 "memory for an event");
    self->events[i] = *event;
    self->events[i].order = self->order++;
    self->n_events++;
    while (i > 0 && is_before(&self->events[i], &self->events[(i - 1) / 2])) {
        swap(&self->events[i], &self->events[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    return &self->events[i];
}

overlay_event_t *overlay_at(overlay_t *self, uint64_t at_ms, overlay_event_kind_t kind, uint64_t a)
{
    const overlay_event_t event = {
        .at_ms = at_ms > self->now_ms ? at_ms : self->now_ms, .kind = kind, .a = a};

    return put(self, &event);
}

void overlay_later(overlay_t *self, uint64_t at_ms, overlay_event_t *event)
{
    event->at_ms = at_ms;
    (void)put(self, event);
    event->packet = NULL;
    event->job = NULL;
    event->tree = NULL;
    event->desk = NULL;
}

bool overlay_next(overlay_t *self, overlay_event_t *ret_event)
{
    size_t i = 0;

    if (self->n_events == 0) {
        return false;
    }
    *ret_event = self->events[0];
    self->events[0] = self->events[--self->n_events];
    for (;;) {
        size_t least = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++) {
            if (child < self->n_events && is_before(&self->events[child], &self->events[least])) {
                least = child;
            }
        }
        if (least == i) {
            return true;
        }
        swap(&self->events[i], &self->events[least]);
        i = least;
    }
}

static void packet_drop(overlay_packet_t *packet)
{
    if (packet != NULL && --packet->n_holders == 0) {
        ps_payload_destroy(&packet->payload);
        ps_free(packet);
    }
}

void overlay_event_drop(overlay_event_t *event)
{
    packet_drop(event->packet);
    if (event->job != NULL) {
        ps_job_done(event->job);
        ps_free(event->job);
    }
    if (event->desk != NULL) {
        ps_payload_destroy(&event->desk->payload);
        ps_free(event->desk);
    }
    ps_free(event->tree);
}

/* ---- connections ---- */

overlay_conn_t *overlay_conn(overlay_t *self, uint64_t number)
{
    overlay_need(number >= 1 && number <= self->n_conns, "a connection that exists");
    return &self->conns[number - 1];
}

uint64_t overlay_conn_new(overlay_t *self, const overlay_conn_t *conn)
{
    overlay_need(
        ps_grow(&self->conns, &self->conns_capacity, self->n_conns + 1, sizeof *self->conns),
        "memory for a connection");
    self->conns[self->n_conns++] = *conn;
    return self->n_conns;
}

/* ---- packets ---- */

ps_payload_t *overlay_flat(const ps_payload_t *payload)
{
    ps_payload_t *flat = payload == NULL ? NULL : ps_payload_clone(payload);

    overlay_need(payload == NULL || flat != NULL, "memory for a payload");
    return flat;
}

static void dispatch(overlay_t *self, overlay_packet_t *packet)
{
    uint64_t delay_ms = 1;

    if (overlay_chance(self, self->weather.loss)) {
        overlay_trace(self, "  lost: %s on %" PRIu64, ps_kind_name(packet->message.kind),
                      packet->conn);
        return;
    }
    if (!overlay_is_calm(self)) {
        delay_ms += overlay_below(self, self->weather.delay_ms);
    }
    if (packet->message.kind == PS_KIND_BUNDLE && overlay_chance(self, self->weather.late)) {
        delay_ms += overlay_below(self, LATE_MS);
    }
    packet->n_holders++;
    overlay_at(self, self->now_ms + delay_ms, OVERLAY_EVENT_PACKET, 0)->packet = packet;
}

/* The same rows with one bit turned, now and then, on their way from worker to worker. */
static ps_payload_t *rows_on_their_way(overlay_t *self, uint64_t conn, const ps_payload_t *payload)
{
    size_t size = ps_payload_size(payload);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *flat = overlay_flat(payload);
    ps_payload_t *turned = NULL;
    uint8_t *bytes = NULL;
    uint64_t bit = 0;

    if (size == 0 || !overlay_chance(self, self->weather.turned)) {
        return flat == NULL ? NULL : ps_payload_keep(flat);
    }
    turned = ps_payload_room(0, 0, size, &bytes);
    overlay_need(turned != NULL, "memory for rows");
    memcpy(bytes, flat->spans[0].data, size);
    bit = overlay_below(self, size * 8);
    bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
    self->n_turned++;
    overlay_trace(self, "  a bit of rows on %" PRIu64 " is turned", conn);
    return turned;
}

void overlay_send(overlay_t *self, uint64_t conn, bool goes_back, const ps_message_t *message,
                  const ps_payload_t *payload)
{
    overlay_packet_t *packet = ps_alloc(1, sizeof *packet);

    overlay_need(packet != NULL, "memory for a packet");
    *packet = (overlay_packet_t){.n_holders = 1,
                                 .conn = conn,
                                 .goes_back = goes_back,
                                 .message = *message,
                                 .payload = message->kind == PS_KIND_ROWS_ON
                                                ? rows_on_their_way(self, conn, payload)
                                                : overlay_flat(payload)};
    dispatch(self, packet);
    if (overlay_chance(self, self->weather.repeat)) {
        dispatch(self, packet);
    }
    packet_drop(packet);
}

/* ---- arriving ---- */

/* Who is to get it has ended, or has forgotten that connection. */
static bool is_gone(overlay_t *self, const overlay_conn_t *conn, bool goes_back)
{
    const overlay_life_t *to = NULL;

    if (!goes_back && conn->to == OVERLAY_SHARD) {
        return conn->shard_life != self->shard_lives[conn->number];
    }
    to = overlay_life(self, goes_back ? conn->life : conn->number);
    if (goes_back && conn->from == OVERLAY_CLIENT) {
        return to->client.session == NULL;
    }
    return to->relay.machine == NULL ||
           to->relay.life != (goes_back ? conn->relay_life : conn->to_relay_life);
}

/* Until when who is to get it stands still; 0: it does not. */
static uint64_t still_ms(overlay_t *self, const overlay_conn_t *conn, bool goes_back)
{
    const overlay_life_t *to = NULL;

    if (!goes_back && conn->to == OVERLAY_SHARD) {
        return 0;
    }
    to = overlay_life(self, goes_back ? conn->life : conn->number);
    if (goes_back && conn->from == OVERLAY_CLIENT) {
        return to->still_ms;
    }
    return to->still_ms > to->relay.still_ms ? to->still_ms : to->relay.still_ms;
}

static void deliver(overlay_t *self, const overlay_packet_t *packet)
{
    const overlay_conn_t conn = *overlay_conn(self, packet->conn);
    overlay_life_t *from = overlay_life(self, conn.life);

    if (!packet->goes_back && conn.to == OVERLAY_SHARD) {
        ps_event_t event = {.kind = PS_EVENT_MESSAGE,
                            .conn = packet->conn,
                            .message = &packet->message,
                            .payload = packet->payload};

        overlay_node_event(self, conn.number, &event);
    } else if (conn.to == OVERLAY_PEER) {
        overlay_relay_received(self, packet->goes_back ? from : overlay_life(self, conn.number),
                               packet->conn, packet->goes_back, &packet->message, packet->payload);
    } else if (conn.from == OVERLAY_COURIER) {
        overlay_courier_received(self, from, conn.link, &packet->message, packet->payload);
    } else {
        overlay_worker_received(self, from, conn.link, &packet->message, packet->payload);
    }
}

void overlay_arrive(overlay_t *self, overlay_event_t *event)
{
    const overlay_packet_t *packet = event->packet;
    const overlay_conn_t *conn = overlay_conn(self, packet->conn);
    uint64_t until_ms = still_ms(self, conn, packet->goes_back);

    if (self->now_ms < conn->mute_ms[packet->goes_back ? 0 : 1] ||
        is_gone(self, conn, packet->goes_back)) {
        return;
    }
    if (conn->is_cut &&
        (packet->goes_back || conn->to != OVERLAY_SHARD || overlay_below(self, 2) == 0)) {
        return; /* some of what was sent before the cut arrives */
    }
    if (until_ms > self->now_ms) {
        overlay_later(self, until_ms, event);
        return;
    }
    deliver(self, packet);
}
