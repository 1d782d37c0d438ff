/* SPDX-License-Identifier: Apache-2.0 */
/* Time and the network: a heap of events, packets that are bytes in flight,
 * connections that break. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sim.h"

static bool is_before(const sim_event_t *a, const sim_event_t *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void swap(sim_event_t *a, sim_event_t *b)
{
    sim_event_t kept = *a;

    *a = *b;
    *b = kept;
}

sim_event_t *sim_at(sim_t *sim, uint64_t at_ms, sim_event_kind_t kind, uint64_t a)
{
    size_t i = sim->n_events;

    sim_need(ps_grow(&sim->events, &sim->events_capacity, i + 1, sizeof *sim->events),
             "memory for an event");
    sim->events[i] = (sim_event_t){.at_ms = at_ms, .order = sim->order++, .kind = kind, .a = a};
    sim->n_events++;
    while (i > 0 && is_before(&sim->events[i], &sim->events[(i - 1) / 2])) {
        swap(&sim->events[i], &sim->events[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    return &sim->events[i];
}

bool sim_next(sim_t *sim, sim_event_t *ret_event)
{
    size_t i = 0;

    if (sim->n_events == 0) {
        return false;
    }
    *ret_event = sim->events[0];
    sim->events[0] = sim->events[--sim->n_events];
    for (;;) {
        size_t least = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++) {
            if (child < sim->n_events && is_before(&sim->events[child], &sim->events[least])) {
                least = child;
            }
        }
        if (least == i) {
            return true;
        }
        swap(&sim->events[i], &sim->events[least]);
        i = least;
    }
}

uint64_t sim_conn_new(sim_t *sim, uint32_t client, uint64_t link)
{
    sim_client_t *of = &sim->clients[client];
    const ps_route_t *route = ps_session_link(of->session, link);

    sim_need(ps_grow(&sim->conns, &sim->conns_capacity, sim->n_conns + 1, sizeof *sim->conns),
             "memory for a connection");
    sim->conns[sim->n_conns++] =
        (sim_conn_t){.client = client,
                     .link = link,
                     .shard = route->shard,
                     .batches = ps_rng_below(&sim->net, 2) == 0,
                     .lane = ps_rng_below(&sim->net, 100) < sim->weather.lanes};
    of->conn_of[link] = sim->n_conns;
    return sim->n_conns;
}

sim_conn_t *sim_conn(sim_t *sim, uint64_t conn)
{
    sim_need(conn >= 1 && conn <= sim->n_conns, "a connection that exists");
    return &sim->conns[conn - 1];
}

void sim_packet_drop(sim_packet_t **packet_p)
{
    sim_packet_t *packet = *packet_p;

    *packet_p = NULL;
    if (packet == NULL || --packet->n_holders > 0) {
        return;
    }
    for (size_t i = 0; i < packet->n_frames; i++) {
        ps_buffer_done(&packet->frames[i].bytes);
    }
    ps_free(packet->frames);
    ps_free(packet);
}

static ps_buffer_t *add_frame(sim_packet_t *packet, bool first)
{
    sim_need(
        ps_grow(&packet->frames, &packet->capacity, packet->n_frames + 1, sizeof *packet->frames),
        "memory for a frame");
    packet->frames[packet->n_frames] = (sim_frame_t){.first = first};
    return &packet->frames[packet->n_frames++].bytes;
}

static void append(ps_buffer_t *frame, ps_bytes_t bytes)
{
    sim_need(bytes.size == 0 || ps_buffer_append(frame, bytes.data, bytes.size),
             "memory for bytes");
}

/* One message as it goes out: in one frame when it is small. */
static void add_message(sim_packet_t *packet, const ps_message_t *message, const ps_body_t *body)
{
    uint8_t header[PS_HEADER_MAX];
    size_t size = ps_message_encode(message, header);
    size_t body_size = body->keys.size + body->index.size + body->values.size;
    bool single = message->kind == PS_KIND_CHUNK || message->kind == PS_KIND_MOVED ||
                  message->kind == PS_KIND_BUNDLE;
    ps_buffer_t *frame = add_frame(packet, true);

    append(frame, (ps_bytes_t){header, size});
    if (body_size == 0) {
        return;
    }
    if (single) {
        frame = add_frame(packet, false);
        append(frame, message->kind == PS_KIND_MOVED ? body->keys : body->values);
    } else if (body_size <= PS_INLINE_MAX) {
        append(frame, body->keys);
        append(frame, body->index);
        append(frame, body->values);
    } else {
        append(add_frame(packet, false), body->keys);
        append(add_frame(packet, false), body->index);
        append(add_frame(packet, false), body->values);
    }
}

static size_t value_bytes(const ps_payload_t *payload)
{
    return payload == NULL ? 0
                           : ps_payload_size(payload) - payload->keys.size - payload->index.size;
}

static void add_pieces(sim_packet_t *packet, const ps_message_t *message,
                       const ps_payload_t *payload, uint32_t chunk_bytes)
{
    size_t total = value_bytes(payload);
    ps_message_t first = *message;
    ps_body_t body = {0};
    uint64_t offset = 0;

    if (message->kind == PS_KIND_PULL) {
        chunk_bytes = 0; /* what it asks for goes whole */
    }
    if (payload != NULL) {
        body.keys = payload->keys;
        body.index = payload->index;
        body.values = ps_piece_at(payload, 0, chunk_bytes == 0 ? UINT32_MAX : chunk_bytes);
    }
    offset = body.values.size;
    if (offset < total) {
        first.flags |= PS_FLAG_MORE;
    }
    add_message(packet, &first, &body);
    while (offset < total) {
        ps_message_t chunk = {.kind = PS_KIND_CHUNK};

        chunk.chunk.request =
            message->kind == PS_KIND_PUSH ? message->push.request : message->values.request;
        chunk.chunk.offset = offset;
        body = (ps_body_t){.values = ps_piece_at(payload, offset, chunk_bytes)};
        sim_need(body.values.size > 0, "pieces up to the end");
        offset += body.values.size;
        add_message(packet, &chunk, &body);
    }
}

/* The same in one piece: the sender writes values where the other side reads them. */
static void add_whole(sim_packet_t *packet, const ps_message_t *message,
                      const ps_payload_t *payload)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t values = {0};
    ps_body_t body = {0};

    if (payload != NULL) {
        body.keys = payload->keys;
        body.index = payload->index;
        for (size_t i = 0; i < payload->n_spans; i++) {
            append(&values, payload->spans[i]);
        }
        body.values = (ps_bytes_t){values.data, values.size};
    }
    add_message(packet, message, &body);
}

/* Sends a copy of the packet. */
static void dispatch(sim_t *sim, sim_packet_t *packet)
{
    uint64_t delay_ms = 1;
    bool calm = sim->now_ms >= sim->weather.calm_ms;

    if (!calm) {
        if (ps_rng_below(&sim->net, 1000) < sim->weather.loss) {
            sim_trace(sim, "  lost: %s on %llu", packet->kind, (unsigned long long)packet->conn);
            return;
        }
        delay_ms += ps_rng_below(&sim->net, sim->weather.delay_ms);
    }
    packet->n_holders++;
    sim_at(sim, sim->now_ms + delay_ms, SIM_EVENT_PACKET, 0)->packet = packet;
}

static sim_packet_t *packet_new(uint64_t conn, bool to_shard, const char *kind)
{
    sim_packet_t *packet = ps_alloc(1, sizeof *packet);

    sim_need(packet != NULL, "memory for a packet");
    packet->n_holders = 1;
    packet->to_shard = to_shard;
    packet->conn = conn;
    packet->kind = kind;
    return packet;
}

/* Some of a client's packets come again after it has ended: the first HELLO,
 * and what follows it on that connection. */
static void keep_late(sim_t *sim, sim_packet_t *packet)
{
    sim_client_t *client = &sim->clients[sim_conn(sim, packet->conn)->client];

    if (packet->to_shard && client->n_late < SIM_LATE_MAX &&
        (client->n_late == 0 || client->late[0]->conn == packet->conn)) {
        packet->n_holders++;
        client->late[client->n_late++] = packet;
    }
}

void sim_send_late(sim_t *sim, sim_client_t *client)
{
    uint64_t at_ms = sim->now_ms + 1;

    for (size_t i = 0; i < client->n_late; i++) {
        at_ms += ps_rng_below(&sim->net, 60);
        sim_at(sim, at_ms, SIM_EVENT_PACKET, 0)->packet = client->late[i];
    }
    client->n_late = 0;
}

static void dispatch_luckily(sim_t *sim, sim_packet_t *packet)
{
    keep_late(sim, packet);
    dispatch(sim, packet);
    if (sim->now_ms < sim->weather.calm_ms && ps_rng_below(&sim->net, 1000) < sim->weather.repeat) {
        dispatch(sim, packet);
    }
}

void sim_flush(sim_t *sim, uint64_t number, bool to_shard)
{
    ps_batch_t *batch = &sim_conn(sim, number)->batch[to_shard ? 1 : 0];
    sim_packet_t *packet = NULL;
    ps_bytes_t frame = {NULL, 0};

    if (batch->n == 0) {
        return;
    }
    sim->n_batches += batch->n > 1 ? 1 : 0;
    packet = packet_new(number, to_shard, batch->n > 1 ? "batch" : "small");
    packet->is_batch = batch->n > 1;
    frame = ps_batch_frame(batch);
    append(add_frame(packet, true), frame);
    ps_batch_clear(batch);
    dispatch_luckily(sim, packet);
    sim_packet_drop(&packet);
}

/* Puts a small message into its batch, as the transport does; a message that
 * goes alone goes after the waiting ones. */
static bool collect(sim_t *sim, uint64_t number, bool to_shard, const ps_message_t *message,
                    const ps_payload_t *payload)
{
    sim_conn_t *conn = sim_conn(sim, number);
    ps_batch_t *batch = &conn->batch[to_shard ? 1 : 0];

    if (!conn->batches) {
        return false;
    }
    if (message->kind == PS_KIND_MOVED || ps_payload_size(payload) > PS_INLINE_MAX) {
        sim_flush(sim, number, to_shard);
        return false;
    }
    if (batch->n == 0) {
        sim_at(sim, sim->now_ms + ps_rng_below(&sim->net, 3), SIM_EVENT_FLUSH, number)->b =
            to_shard;
    }
    sim_need(ps_batch_add(batch, message, payload), "memory for a batch");
    return true;
}

void sim_send(sim_t *sim, uint64_t conn, bool to_shard, const ps_message_t *message,
              const ps_payload_t *payload, uint32_t chunk_bytes)
{
    sim_packet_t *packet = NULL;
    bool lane = sim_conn(sim, conn)->lane;

    if (!lane && collect(sim, conn, to_shard, message, payload)) {
        return;
    }
    packet = packet_new(conn, to_shard, ps_kind_name(message->kind));
    if (message->kind == PS_KIND_VALUES) {
        packet->values_of = message->values.request;
        packet->epoch = message->values.epoch;
    }
    if (lane) {
        add_whole(packet, message, payload);
        sim_lane_dispatch(sim, packet);
        sim_packet_drop(&packet);
        return;
    }
    add_pieces(packet, message, payload, chunk_bytes);
    dispatch_luckily(sim, packet);
    sim_packet_drop(&packet);
}

/* The shard has returned: the client overwrites the memory that the shard
 * still holds or may still write to. */
static void deliver_shared(sim_t *sim, sim_conn_t *conn, ps_event_t *event)
{
    if (event->message->kind == PS_KIND_PULL || event->message->kind == PS_KIND_PUSH) {
        event->room = sim_lane_room(sim, conn);
    }
    sim_lane_scribble_rooms(sim, conn);
    sim_node_event(sim, conn->shard, event);
    sim_lane_scribble_rooms(sim, conn);
    if (event->payload != NULL) {
        sim_lane_scribble(sim, event->payload);
    }
}

/* The transport's knowledge: values that have left and not arrived. It
 * learns of values lost by a cut when they would have arrived. */
static void find_answer(sim_t *sim, uint32_t shard, ps_event_t *event)
{
    uint64_t epoch = 0;
    uint64_t request = ps_request_for_values(event->message, &epoch);
    uint64_t conns[PS_SENDING_CONNS];
    size_t n = request == 0 ? 0 : ps_shard_conns(sim->shards[shard], event->conn, conns);

    for (size_t i = 0; n > 0 && i < sim->n_events; i++) {
        const sim_packet_t *packet = sim->events[i].packet;

        if (sim->events[i].kind != SIM_EVENT_PACKET || packet->to_shard ||
            packet->values_of != request || packet->epoch < epoch) {
            continue;
        }
        for (size_t j = 0; j < n; j++) {
            if (conns[j] == packet->conn) {
                event->sending = (ps_sending_t){.bytes = 1};
                sim->n_under_way++;
            }
        }
    }
}

static void deliver(sim_t *sim, const sim_packet_t *packet, const ps_message_t *message,
                    ps_payload_t *payload)
{
    sim_conn_t *conn = sim_conn(sim, packet->conn);

    if (packet->to_shard) {
        ps_event_t event = {
            .kind = PS_EVENT_MESSAGE, .conn = packet->conn, .message = message, .payload = payload};

        if (conn->lane) {
            deliver_shared(sim, conn, &event);
        } else {
            find_answer(sim, conn->shard, &event);
            sim_node_event(sim, conn->shard, &event);
        }
    } else {
        sim_client_received(sim, conn->client, conn->link, message, payload);
    }
}

/* One message out of its frames, with the codec and the assembly in the loop.
 */
static void arrive_message(sim_t *sim, const sim_packet_t *packet, const ps_bytes_t *frames,
                           size_t n_frames)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    sim_conn_t *conn = sim_conn(sim, packet->conn);
    ps_message_t message;
    ps_body_t body;
    bool whole = false;

    if (ps_message_decode(frames, n_frames, &message, &body, err) != PSD_OK) {
        sim_fail(sim, "%s does not decode: %s", packet->kind, psd_error_text(err));
        return;
    }
    if (conn->lane && packet->to_shard) {
        if (body.keys.size + body.index.size + body.values.size > 0) {
            payload = sim_lane_payload(&body);
        }
        deliver(sim, packet, &message, payload);
        return;
    }
    if (body.keys.size + body.index.size + body.values.size > 0) {
        payload = ps_payload_copy(body.keys, body.index, body.values);
        sim_need(payload != NULL, "memory for a payload");
    }
    if (ps_assembly_add(packet->to_shard ? &conn->at_shard : &conn->at_client, &message, &payload,
                        1 << 20, &whole, err) != PSD_OK) {
        sim_fail(sim, "%s does not assemble: %s", packet->kind, psd_error_text(err));
        return;
    }
    if (whole) {
        deliver(sim, packet, &message, payload);
    }
}

/* The messages of a batch, one by one. */
static void arrive_batch(sim_t *sim, const sim_packet_t *packet)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const ps_buffer_t *bytes = &packet->frames[0].bytes;
    ps_batch_rest_t rest = {.n = 0};
    psd_status_t rc = ps_batch_open((ps_bytes_t){bytes->data, bytes->size}, &rest, err);

    while (rc == PSD_OK && rest.n > 0) {
        ps_bytes_t message = {NULL, 0};

        rc = ps_batch_next(&rest, &message, err);
        if (rc == PSD_OK) {
            arrive_message(sim, packet, &message, 1);
        }
    }
    if (rc != PSD_OK) {
        sim_fail(sim, "a batch does not open: %s", psd_error_text(err));
    }
}

void sim_arrive(sim_t *sim, const sim_packet_t *packet)
{
    const sim_conn_t *conn = sim_conn(sim, packet->conn);
    size_t i = 0;

    if (conn->lane && sim_lane_loses(conn, packet->to_shard)) {
        return;
    }
    if (!conn->lane && conn->cut && (!packet->to_shard || ps_rng_below(&sim->net, 2) == 0)) {
        return; /* some of what was sent before the cut arrives */
    }
    if (packet->is_batch) {
        arrive_batch(sim, packet);
        return;
    }
    while (i < packet->n_frames) {
        ps_bytes_t frames[PS_FRAMES_MAX];
        size_t n = 0;

        do {
            const ps_buffer_t *bytes = &packet->frames[i].bytes;

            sim_need(n < PS_FRAMES_MAX, "at most four frames");
            frames[n++] = (ps_bytes_t){bytes->data, bytes->size};
            i++;
        } while (i < packet->n_frames && !packet->frames[i].first);
        arrive_message(sim, packet, frames, n);
    }
}

void sim_cut(sim_t *sim)
{
    uint32_t number = (uint32_t)ps_rng_below(&sim->net, sim->n_clients);
    sim_client_t *client = &sim->clients[number];
    uint64_t link = 0;
    uint64_t old = 0;
    bool was_lane = false;

    if (client->session == NULL || client->n_links == 0) {
        return;
    }
    link = ps_rng_below(&sim->net, client->n_links);
    old = client->conn_of[link];
    was_lane = sim_conn(sim, old)->lane;
    sim_lane_break(sim, old);
    sim_conn(sim, old)->cut = true;
    (void)sim_conn_new(sim, number, link);
    sim_trace(sim, "cut: client %u link %llu, conn %llu is now %llu", number,
              (unsigned long long)link, (unsigned long long)old,
              (unsigned long long)client->conn_of[link]);
    if (was_lane || ps_rng_below(&sim->net, 2) == 0) {
        sim_at(sim, sim->now_ms + ps_rng_below(&sim->net, 50), SIM_EVENT_RELINKED, number)->b =
            link;
    }
    if (!was_lane && ps_rng_below(&sim->net, 2) == 0) {
        sim_at(sim, sim->now_ms + ps_rng_below(&sim->net, 200), SIM_EVENT_GONE,
               sim_conn(sim, old)->shard)
            ->b = old;
    }
}
