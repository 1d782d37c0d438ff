/* SPDX-License-Identifier: Apache-2.0 */
/* A relay's connections to those that it sends to: the rules of client/relay/ways.c. */
#include "sim_overlay.h"

#define OPEN_MS 100
#define SILENCE_MS 1500

static uint64_t silent_ms(const overlay_way_to_t *way)
{
    return way->owes_ms + SILENCE_MS + way->owes_bytes * 1000 / PS_RELAY_SLOWEST;
}

uint64_t overlay_ways_due(const overlay_relay_t *relay)
{
    uint64_t due_ms = UINT64_MAX;

    for (size_t i = 0; i < relay->n_ways; i++) {
        const overlay_way_to_t *way = &relay->ways[i];
        uint64_t own_ms = way->conn == 0      ? way->due_ms
                          : way->owes_ms == 0 ? UINT64_MAX
                                              : silent_ms(way);

        due_ms = own_ms < due_ms ? own_ms : due_ms;
    }
    return due_ms;
}

void overlay_ways_close(overlay_t *self, overlay_life_t *life, overlay_way_to_t *way)
{
    bool was_open = way->conn != 0;

    if (was_open) {
        overlay_conn(self, way->conn)->is_cut = true;
        ps_relay_lost(life->relay.machine, self->now_ms, self->lives[way->life].rank);
        if (life->relay.down != NULL) {
            ps_relay_down_lost(life->relay.down, self->lives[way->life].rank);
        }
    }
    way->conn = 0;
    way->owes_ms = way->owes_bytes = 0;
    way->due_ms = self->now_ms + OPEN_MS;
    overlay_relay_plan_tick(self, life);
}

static void open_way(overlay_t *self, overlay_life_t *life, overlay_way_to_t *way)
{
    overlay_event_t *event = NULL;

    way->due_ms = self->now_ms + OPEN_MS * (1 + overlay_below(self, 4));
    if (overlay_chance(self, 2 * self->weather.loss)) {
        return;
    }
    event = overlay_at(self, self->now_ms + 1 + overlay_below(self, self->weather.delay_ms),
                       OVERLAY_EVENT_READY, life->number);
    event->b = way->life;
    event->c = life->relay.life;
}

void overlay_ways_ready(overlay_t *self, overlay_life_t *life, uint32_t to)
{
    overlay_life_t *other = overlay_life(self, to);
    uint32_t number = overlay_tree_find(&other->relay.tree, life->rank);
    overlay_conn_t conn = {.from = OVERLAY_PEER,
                           .life = life->number,
                           .relay_life = life->relay.life,
                           .to = OVERLAY_PEER,
                           .number = to,
                           .to_relay_life = other->relay.life};

    for (size_t i = 0; i < life->relay.n_ways; i++) {
        overlay_way_to_t *way = &life->relay.ways[i];

        if (way->life == to && way->conn == 0 && other->relay.machine != NULL &&
            other->still_ms <= self->now_ms && other->relay.still_ms <= self->now_ms &&
            number != UINT32_MAX && other->relay.tree.joins[number] == life->joins) {
            way->conn = overlay_conn_new(self, &conn);
            other->relay.callers[life->number] = way->conn;
            if (other->relay.down != NULL) {
                ps_relay_down_without(other->relay.down, life->rank);
            }
        }
    }
}

static bool way_is_wanted(const overlay_t *self, const overlay_life_t *life, uint32_t to)
{
    return overlay_tree_is_parent(self, &life->relay.tree, life->rank, to) ||
           overlay_tree_is_parent(self, &life->relay.before, life->rank, to);
}

static bool has_way(const overlay_relay_t *relay, uint32_t to)
{
    for (size_t i = 0; i < relay->n_ways; i++) {
        if (relay->ways[i].life == to) {
            return true;
        }
    }
    return false;
}

void overlay_ways_plan(overlay_t *self, overlay_life_t *life)
{
    overlay_relay_t *relay = &life->relay;

    for (size_t i = relay->n_ways; i > 0; i--) {
        if (!way_is_wanted(self, life, relay->ways[i - 1].life)) {
            overlay_ways_close(self, life, &relay->ways[i - 1]);
            relay->ways[i - 1] = relay->ways[--relay->n_ways];
        }
    }
    for (uint32_t to = 0; to < self->n_lives; to++) {
        if (overlay_tree_is_parent(self, &relay->tree, life->rank, to) && !has_way(relay, to)) {
            relay->ways[relay->n_ways] = (overlay_way_to_t){.life = to};
            open_way(self, life, &relay->ways[relay->n_ways++]);
        }
    }
}

void overlay_ways_tick(overlay_t *self, overlay_life_t *life)
{
    for (size_t i = 0; i < life->relay.n_ways; i++) {
        overlay_way_to_t *way = &life->relay.ways[i];

        if (way->owes_ms != 0 &&
            self->now_ms >= way->owes_ms + SILENCE_MS + way->owes_bytes * 1000 / PS_RELAY_SLOWEST) {
            overlay_ways_close(self, life, way);
        }
        if (way->conn == 0 && way->due_ms <= self->now_ms) {
            open_way(self, life, way);
        }
    }
}

/* ---- sending ---- */

overlay_way_to_t *overlay_ways_find(overlay_relay_t *relay, uint32_t life)
{
    for (size_t i = 0; i < relay->n_ways; i++) {
        if (relay->ways[i].life == life && relay->ways[i].conn != 0) {
            return &relay->ways[i];
        }
    }
    return NULL;
}

bool overlay_ways_send(overlay_t *self, overlay_life_t *life, const ps_relay_deed_t *deed)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    const ps_relay_speaker_t speaker = overlay_speaker_of(life);

    for (size_t i = 0; i < life->relay.n_ways; i++) {
        overlay_way_to_t *way = &life->relay.ways[i];
        ps_message_t message;

        if (self->lives[way->life].rank != deed->to || way->conn == 0) {
            continue;
        }
        ps_relay_bundle(deed, &speaker, 1, &message);
        overlay_need(ps_relay_lot_write(deed->lot, &payload, NULL) == PSD_OK, "a bundle's bytes");
        overlay_send(self, way->conn, false, &message, payload);
        way->owes_ms = way->owes_ms == 0 ? self->now_ms : way->owes_ms;
        way->owes_bytes += ps_payload_size(payload);
        return true;
    }
    return false;
}
