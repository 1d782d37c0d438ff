/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: connections through memory that the client shares. Nothing is lost,
 * repeated or overtaken; a lane breaks as a whole, and the shard learns of
 * it. The client may write to shared memory at any moment: to values that it
 * has given the shard, and to room for answers. Here it writes whenever the
 * shard has returned, so that code that kept such bytes is caught. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim.h"

#define ROOM_BYTES_MAX 2048 /* of an offer; many are too small */
#define ROOMS_SCRIBBLED 8   /* the last ones offered */
#define SEALED 0xa5         /* in rooms that the shard may no longer write to */

/* Nothing random is drawn for links that lose packets, nor the other way. */
void sim_lane_dispatch(sim_t *sim, sim_packet_t *packet)
{
    sim_conn_t *conn = sim_conn(sim, packet->conn);
    uint64_t *last_ms = &conn->last_ms[packet->to_shard ? 1 : 0];
    uint64_t at_ms = sim->now_ms + 1;

    if (conn->cut) {
        return;
    }
    if (sim->now_ms < sim->weather.calm_ms) {
        at_ms += ps_rng_below(&sim->net, sim->weather.delay_ms);
    }
    *last_ms = at_ms > *last_ms ? at_ms : *last_ms;
    packet->n_holders++;
    sim_at(sim, *last_ms, SIM_EVENT_PACKET, 0)->packet = packet;
}

/* The shard may or may not read the rest of the ring after the lane broke. */
bool sim_lane_loses(const sim_conn_t *conn, bool to_shard)
{
    return conn->gone || (conn->cut && (!to_shard || !conn->read_on));
}

void sim_lane_break(sim_t *sim, uint64_t number)
{
    sim_conn_t *conn = sim_conn(sim, number);

    if (!conn->lane || conn->cut) {
        return;
    }
    conn->cut = true;
    conn->read_on = ps_rng_below(&sim->net, 2) == 0;
    sim_trace(sim, "lane %llu of client %u breaks", (unsigned long long)number, conn->client);
    sim_at(sim, sim->now_ms + 1 + ps_rng_below(&sim->net, 50), SIM_EVENT_GONE, conn->shard)->b =
        number;
}

/* Keys and index are the shard's own copies, values the client's memory. */
ps_payload_t *sim_lane_payload(const ps_body_t *body)
{
    ps_payload_t *payload = ps_payload_copy(body->keys, body->index, body->values);

    sim_need(payload != NULL, "memory for a payload");
    payload->shared = true;
    return payload;
}

static void scribble(sim_t *sim, uint8_t *data, size_t size)
{
    uint8_t mask = (uint8_t)(1 + ps_rng_below(&sim->net, 127));

    for (size_t i = 0; i < size; i++) {
        data[i] ^= mask;
    }
}

void sim_lane_scribble(sim_t *sim, ps_payload_t *payload)
{
    for (size_t i = 0; i < payload->n_spans; i++) {
        /* The bytes are this payload's own block: sim_lane_payload. */
        scribble(sim, (uint8_t *)(uintptr_t)payload->spans[i].data, payload->spans[i].size);
    }
}

void sim_lane_scribble_rooms(sim_t *sim, sim_conn_t *conn)
{
    size_t n = conn->n_rooms < ROOMS_SCRIBBLED ? conn->n_rooms : ROOMS_SCRIBBLED;

    for (size_t i = 0; i < n && !conn->gone; i++) {
        ps_room_t *room = &conn->rooms[conn->n_rooms - 1 - i];

        scribble(sim, room->data, room->size);
    }
}

ps_room_t sim_lane_room(sim_t *sim, sim_conn_t *conn)
{
    size_t size = 64 * ps_rng_below(&sim->net, ROOM_BYTES_MAX / 64 + 1);
    ps_room_t room = {.size = size};

    if (size == 0) {
        return room;
    }
    sim_need(ps_grow(&conn->rooms, &conn->rooms_capacity, conn->n_rooms + 1, sizeof *conn->rooms),
             "memory for a room");
    room.data = aligned_alloc(64, size);
    sim_need(room.data != NULL, "memory for a room");
    memset(room.data, 0x3c, size);
    conn->rooms[conn->n_rooms++] = room;
    return room;
}

void sim_lane_gone(sim_t *sim, uint64_t number)
{
    sim_conn_t *conn = sim_conn(sim, number);

    conn->gone = conn->lane;
    for (size_t i = 0; conn->gone && i < conn->n_rooms; i++) {
        memset(conn->rooms[i].data, SEALED, conn->rooms[i].size);
    }
}

static bool is_sealed(const ps_room_t *room)
{
    for (size_t i = 0; i < room->size; i++) {
        if (room->data[i] != SEALED) {
            return false;
        }
    }
    return true;
}

void sim_lanes_check(sim_t *sim)
{
    for (size_t i = 0; i < sim->n_conns; i++) {
        const sim_conn_t *conn = &sim->conns[i];

        for (size_t j = 0; conn->gone && j < conn->n_rooms; j++) {
            if (!is_sealed(&conn->rooms[j])) {
                sim_fail(sim, "shard %u wrote to a room of lane %zu, which is gone", conn->shard,
                         i + 1);
            }
        }
    }
}

void sim_lanes_done(sim_t *sim)
{
    for (size_t i = 0; i < sim->n_conns; i++) {
        for (size_t j = 0; j < sim->conns[i].n_rooms; j++) {
            free(sim->conns[i].rooms[j].data);
        }
        ps_free(sim->conns[i].rooms);
    }
}
