/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to other relays. One that is not ready sends nothing: bundles go to the nodes. */
#include <string.h>

#include "base/alloc.h"
#include "client/relay/relay_inner.h"

#define HIGH_WATER 1024                 /* of messages: each partition may have one each clock */
#define FRAME_BYTES (UINT64_C(1) << 16) /* of what another relay answers, without rows */
#define OPEN_MS 100                     /* until it is ready, or is opened again; doubles … */
#define OPEN_DOUBLINGS 5                /* … so often */
#define SILENCE_MS 1500                 /* a relay that lives answers a bundle at once */

static void close_way(ps_relay_thread_t *self, ps_relay_way_t *way)
{
    bool was_open = way->socket != NULL;

    ps_socket_drop(&way->socket);
    way->is_ready = false;
    way->owes_ms = 0;
    way->owes_bytes = 0;
    way->n_sent = 0;
    way->due_ms = self->now_ms + ((uint64_t)OPEN_MS << way->tries);
    if (was_open) {
        ps_relay_lost(self->relay, self->now_ms, way->to.worker);
    }
    if (was_open && self->down != NULL) {
        ps_relay_down_lost(self->down, way->to.worker);
    }
}

static void open_way(ps_relay_thread_t *self, ps_relay_way_t *way)
{
    const uint64_t frame_bytes = self->down != NULL ? PS_RELAY_FRAME_BYTES : FRAME_BYTES;
    const ps_socket_args_t args = {.context = self->context,
                                   .high_water = HIGH_WATER,
                                   .frame_bytes = frame_bytes,
                                   .assembly_bytes = frame_bytes,
                                   .chunk_bytes = (uint32_t)frame_bytes,
                                   .patience_ms = PS_PATIENCE_BODIES_MS,
                                   .is_watched = true,
                                   .keys = self->has_keys ? &self->keys : NULL};
    ps_message_t ask;

    close_way(self, way);
    way->tries += way->tries < OPEN_DOUBLINGS ? 1 : 0;
    if (ps_random(&way->nonce, sizeof way->nonce, NULL) != PSD_OK ||
        ps_socket_connect(way->to.relay, &args, &way->socket, NULL) != PSD_OK) {
        return; /* again when it is due */
    }
    ps_meet_ask(&self->self, &way->nonce, &ask);
    if (ps_socket_send(way->socket, 0, &ask, NULL, NULL) != PSD_OK) {
        ps_socket_drop(&way->socket);
    }
}

/* This relay sends there, by some colour. */
static bool is_parent(const ps_relay_facts_t *facts, uint32_t own, uint32_t worker)
{
    size_t me = ps_relay_facts_find(facts, own);
    size_t other = ps_relay_facts_find(facts, worker);

    for (uint32_t i = 0; me != SIZE_MAX && other != SIZE_MAX && i < facts->n_colours; i++) {
        if (facts->parents[i * facts->n_members + me] == other) {
            return true;
        }
    }
    return false;
}

static bool is_same(const ps_relay_member_t *a, const ps_relay_member_t *b)
{
    return a->worker == b->worker && a->joins == b->joins && strcmp(a->relay, b->relay) == 0;
}

static void add_way(ps_relay_thread_t *self, const ps_relay_member_t *to)
{
    for (size_t i = 0; i < self->n_ways; i++) {
        if (self->ways[i].to.worker == to->worker) {
            return;
        }
    }
    if (ps_grow(&self->ways, &self->ways_capacity, self->n_ways + 1, sizeof *self->ways)) {
        self->ways[self->n_ways] = (ps_relay_way_t){.to = *to};
        open_way(self, &self->ways[self->n_ways++]);
    }
}

void ps_ways_plan(ps_relay_thread_t *self)
{
    const ps_relay_facts_t *facts = &self->facts;
    uint32_t own = self->speaker.worker;

    for (size_t i = self->n_ways; i > 0; i--) {
        ps_relay_way_t *way = &self->ways[i - 1];
        size_t place = ps_relay_facts_find(facts, way->to.worker);

        if (place == SIZE_MAX || !is_same(&facts->members[place], &way->to) ||
            (!is_parent(facts, own, way->to.worker) &&
             !is_parent(&self->before, own, way->to.worker))) {
            close_way(self, way);
            *way = self->ways[--self->n_ways];
        }
    }
    for (size_t i = 0; i < facts->n_members; i++) {
        if (is_parent(facts, own, facts->members[i].worker)) {
            add_way(self, &facts->members[i]);
        }
    }
}

static void on_answer(ps_relay_thread_t *self, ps_relay_way_t *way, const ps_msg_meet_t *answer)
{
    ps_message_t proof;

    if (!way->is_ready &&
        ps_meet_prove(&self->self, &way->nonce, way->to.worker, way->to.joins, answer, &proof,
                      NULL) == PSD_OK &&
        ps_socket_send(way->socket, 0, &proof, NULL, NULL) == PSD_OK) {
        way->is_ready = true;
        way->tries = 0;
    }
}

static void on_rows(ps_relay_thread_t *self, const ps_relay_way_t *way,
                    const ps_msg_rows_on_t *rows, ps_payload_t *payload)
{
    const ps_down_key_t key = {
        .table = rows->table, .partition = rows->partition, .clock = rows->clock};

    if (self->down != NULL) {
        ps_relay_down_heard(self->down, way->to.worker, rows->request, &key, payload);
    }
}

/* All that went there has arrived. One that is refused says nothing of the link. */
static void measure(const ps_relay_thread_t *self, ps_relay_way_t *way, uint64_t number,
                    ps_relay_news_t news)
{
    if (self->desk != NULL && (news == PS_RELAY_TAKEN || news == PS_RELAY_RETURNED)) {
        ps_desk_bundle_ended(self->desk, news == PS_RELAY_TAKEN);
    }
    if (news == PS_RELAY_RETURNED) {
        way->n_sent = 0;
        way->skip_to = way->newest;
    } else if (news == PS_RELAY_TAKEN && way->n_sent > 0 && number > way->skip_to) {
        way->n_sent--;
        if (way->n_sent == 0 && self->desk != NULL) {
            ps_desk_moved(self->desk, way->to.worker, way->sent_bytes, way->sent_us, ps_now_us());
        }
    }
}

static void hear(ps_relay_thread_t *self, ps_relay_way_t *way, const ps_message_t *message,
                 ps_payload_t *payload)
{
    ps_relay_news_t news = PS_RELAY_TAKEN;
    uint64_t number = 0;

    if (message->kind == PS_KIND_MEET) {
        on_answer(self, way, &message->meet);
    } else if (way->is_ready && message->kind == PS_KIND_RELAYED &&
               ps_relay_news(message, &number, &news)) {
        way->owes_ms = 0;
        way->owes_bytes = 0;
        measure(self, way, number, news);
        ps_relay_trace_news(&self->trace, way->to.worker, number, news);
        ps_relay_heard(self->relay, self->now_ms, way->to.worker, number, news);
    } else if (way->is_ready && message->kind == PS_KIND_ROWS_ON) {
        way->owes_ms = way->owes_ms != 0 ? self->now_ms : 0; /* its answer comes after these */
        on_rows(self, way, &message->rows_on, payload);
    }
}

static void receive(ps_relay_thread_t *self, ps_relay_way_t *way)
{
    bool got = true;

    for (int n = 0; got && way->socket != NULL && n < PS_RELAY_TURN_MAX; n++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        ps_message_t message;
        ps_room_t room = {NULL, 0};
        uint64_t conn = 0;
        psd_status_t rc =
            ps_socket_receive(way->socket, &got, &conn, &message, &payload, &room, NULL);

        if (rc != PSD_OK) {
            close_way(self, way); /* it speaks another language, or there is no memory */
        } else if (got) {
            hear(self, way, &message, payload);
        }
    }
    if (way->socket != NULL && ps_socket_is_gone(way->socket)) {
        close_way(self, way);
    }
}

void ps_ways_receive(ps_relay_thread_t *self)
{
    for (size_t i = 0; i < self->n_ways; i++) {
        receive(self, &self->ways[i]);
    }
}

/* What it was sent since then may still be on its way. */
static uint64_t silent_ms(const ps_relay_way_t *way)
{
    return way->owes_ms + SILENCE_MS + way->owes_bytes * 1000 / PS_RELAY_SLOWEST;
}

void ps_ways_tick(ps_relay_thread_t *self)
{
    for (size_t i = 0; i < self->n_ways; i++) {
        ps_relay_way_t *way = &self->ways[i];

        if (way->owes_ms != 0 && self->now_ms >= silent_ms(way)) {
            close_way(self, way);
        }
        if (!way->is_ready && way->due_ms <= self->now_ms) {
            open_way(self, way);
        }
    }
}

uint64_t ps_ways_due(const ps_relay_thread_t *self)
{
    uint64_t due_ms = UINT64_MAX;

    for (size_t i = 0; i < self->n_ways; i++) {
        const ps_relay_way_t *way = &self->ways[i];
        uint64_t own_ms = !way->is_ready      ? way->due_ms
                          : way->owes_ms == 0 ? UINT64_MAX
                                              : silent_ms(way);

        due_ms = own_ms < due_ms ? own_ms : due_ms;
    }
    return due_ms;
}

bool ps_ways_send(ps_relay_thread_t *self, const ps_relay_deed_t *deed)
{
    for (size_t i = 0; i < self->n_ways; i++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        ps_relay_way_t *way = &self->ways[i];
        ps_message_t message;

        if (way->to.worker != deed->to || !way->is_ready) {
            continue;
        }
        ps_relay_bundle(deed, &self->speaker, 1, &message);
        if (ps_relay_lot_write(deed->lot, &payload, NULL) != PSD_OK ||
            ps_payload_size(payload) > PS_RELAY_FRAME_BYTES ||
            ps_socket_send(way->socket, 0, &message, payload, NULL) != PSD_OK) {
            return false;
        }
        way->owes_ms = way->owes_ms == 0 ? self->now_ms : way->owes_ms;
        way->owes_bytes += ps_payload_size(payload);
        way->sent_us = way->n_sent == 0 ? ps_now_us() : way->sent_us;
        way->sent_bytes = (way->n_sent == 0 ? 0 : way->sent_bytes) + ps_payload_size(payload);
        way->n_sent++;
        way->newest = deed->number;
        ps_relay_trace_sent(&self->trace, deed, ps_payload_size(payload));
        return true;
    }
    return false;
}

bool ps_ways_want(ps_relay_thread_t *self, uint32_t worker, const ps_message_t *want)
{
    for (size_t i = 0; i < self->n_ways; i++) {
        ps_relay_way_t *way = &self->ways[i];

        if (way->to.worker == worker) {
            return way->is_ready && ps_socket_send(way->socket, 0, want, NULL, NULL) == PSD_OK;
        }
    }
    return false;
}

void ps_ways_done(ps_relay_thread_t *self)
{
    for (size_t i = 0; i < self->n_ways; i++) {
        ps_socket_drop(&self->ways[i].socket);
    }
    ps_free(self->ways);
}
