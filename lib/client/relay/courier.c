/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles to the nodes. The courier is a client that pushes and pulls nothing: its session sends
 * bundles, follows the map and greets, and this file gives it its turns. */
#include "base/alloc.h"
#include "client/relay/relay_inner.h"
#include "client/requests/table.h"

/* ---- sending ---- */

void ps_courier_learn(ps_relay_thread_t *self, const ps_desk_table_t *table)
{
    ps_known_table_t *known = NULL;
    psd_status_t rc =
        ps_known_table_add(self->courier, table->id, table->name, table->n_routes, &known, NULL);

    if (rc == PSD_OK) {
        rc = ps_session_routes(self->courier->session, table->id, table->routes, table->n_routes,
                               NULL);
    }
    (void)rc; /* its bundles go back then */
}

bool ps_courier_send(ps_relay_thread_t *self, const ps_relay_deed_t *deed)
{
    psd_client_t *courier = self->courier;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_op_start_t start = {.kind = PS_KIND_BUNDLE,
                           .table = deed->key.table,
                           .partition = deed->key.partition,
                           .worker = {.job = self->speaker.job,
                                      .worker = self->speaker.worker,
                                      .member = self->speaker.member,
                                      .joins = self->speaker.joins,
                                      .clock = deed->key.clock},
                           .timeout_ms = PS_RELAY_SAY_MS,
                           .plan = deed->plan,
                           .n_from = deed->lot->n_from,
                           .n_spans = deed->lot->n_spans};
    ps_under_way_t sent = {
        .number = deed->number, .heard_ms = self->now_ms, .sent_us = ps_now_us()};

    if (courier->broken != PSD_OK || self->n_under_way >= PS_RELAY_UNDER_WAY_MAX ||
        !ps_grow(&self->under_way, &self->under_way_capacity, self->n_under_way + 1,
                 sizeof *self->under_way) ||
        ps_relay_lot_write(deed->lot, &payload, NULL) != PSD_OK) {
        return false;
    }
    start.payload = payload;
    sent.bytes = ps_payload_size(payload);
    if (ps_session_start(courier->session, self->now_ms, &start, &courier->outbox, &sent.op,
                         NULL) != PSD_OK) {
        return false;
    }
    self->under_way[self->n_under_way++] = sent;
    ps_relay_trace_sent(&self->trace, deed, sent.bytes);
    return true;
}

/* ---- a turn ---- */

static void learn(psd_client_t *courier, uint64_t id, const ps_doc_t *reply)
{
    if (!ps_identity_learn(courier, id, reply) && !ps_guest_learn(courier, id, reply)) {
        ps_reroute_learn(courier, id, reply);
    }
}

static void end(ps_relay_thread_t *self, uint64_t op, const ps_message_t *answer)
{
    bool is_taken = answer->kind == PS_KIND_ACK;

    for (size_t i = 0; i < self->n_under_way; i++) {
        const ps_under_way_t sent = self->under_way[i];

        if (sent.op == op) {
            self->under_way[i] = self->under_way[--self->n_under_way];
            if (self->desk != NULL) {
                ps_desk_bundle_ended(self->desk, is_taken);
            }
            if (is_taken && self->desk != NULL) {
                ps_desk_moved(self->desk, PS_OVERLAY_NODES, sent.bytes, sent.sent_us, ps_now_us());
            }
            ps_relay_trace_news(&self->trace, PS_OVERLAY_NODES, sent.number,
                                is_taken ? PS_RELAY_DONE : PS_RELAY_RETURNED);
            ps_relay_heard(self->relay, self->now_ms, PS_OVERLAY_NODES, sent.number,
                           is_taken ? PS_RELAY_DONE : PS_RELAY_RETURNED);
            return;
        }
    }
}

static void perform(ps_relay_thread_t *self, const ps_effect_t *effect)
{
    psd_client_t *courier = self->courier;
    psd_status_t rc = PSD_OK;

    if (effect->kind == PS_EFFECT_DONE) {
        end(self, effect->to, &effect->message);
    } else if (effect->kind == PS_EFFECT_OPEN) {
        ps_links_open(courier, effect->to);
    } else if (effect->kind == PS_EFFECT_SEND && courier->broken == PSD_OK &&
               effect->to < courier->n_links) {
        rc = ps_socket_send(courier->links[effect->to].socket, 0, &effect->message, effect->payload,
                            NULL);
        (void)rc; /* as good as lost: the session sends it again, or the relay gives it back */
    }
}

static void perform_all(ps_relay_thread_t *self)
{
    psd_client_t *courier = self->courier;

    while (courier->outbox.n_effects > 0) {
        ps_outbox_t batch = courier->outbox;

        courier->outbox = courier->batch;
        courier->batch = batch;
        for (size_t i = 0; i < courier->batch.n_effects; i++) {
            perform(self, &courier->batch.effects[i]);
        }
        ps_outbox_clear(&courier->batch);
    }
    for (size_t i = 0; i < courier->n_links; i++) {
        if (courier->links[i].socket != NULL) {
            ps_socket_flush(courier->links[i].socket);
        }
    }
}

/* What waits at a clock's gate, or comes through in pieces, is not lost. */
static void hear_signs(ps_relay_thread_t *self)
{
    for (size_t i = 0; i < self->n_under_way; i++) {
        ps_under_way_t *sent = &self->under_way[i];
        uint64_t heard_ms = ps_session_heard_ms(self->courier->session, sent->op);

        if (heard_ms > sent->heard_ms) {
            sent->heard_ms = heard_ms;
            ps_relay_heard(self->relay, self->now_ms, PS_OVERLAY_NODES, sent->number,
                           PS_RELAY_WAITS);
        }
    }
}

/* A courier that cannot go on brings nothing. */
static void give_all_back(ps_relay_thread_t *self)
{
    while (self->n_under_way > 0) {
        uint64_t number = self->under_way[--self->n_under_way].number;

        ps_relay_trace_news(&self->trace, PS_OVERLAY_NODES, number, PS_RELAY_RETURNED);
        ps_relay_heard(self->relay, self->now_ms, PS_OVERLAY_NODES, number, PS_RELAY_RETURNED);
        if (self->desk != NULL) {
            ps_desk_bundle_ended(self->desk, false);
        }
    }
}

/* All nodes take bundles of that size. */
static void look_at_sizes(const ps_relay_thread_t *self)
{
    const psd_client_t *courier = self->courier;
    uint64_t least = 0;

    for (size_t i = 0; i < courier->n_links; i++) {
        uint64_t bytes = ps_session_bundle_bytes(courier->session, i);

        least = bytes > 0 && (least == 0 || bytes < least) ? bytes : least;
    }
    ps_relay_set_most(self->relay, least);
}

void ps_courier_turn(ps_relay_thread_t *self)
{
    psd_client_t *courier = self->courier;

    courier->now_ms = self->now_ms;
    ps_registry_look_at_keys(courier);
    ps_questions_receive(courier, learn);
    for (size_t i = 0; courier->broken == PSD_OK && i < courier->n_links; i++) {
        (void)ps_links_receive(courier, i);
    }
    if (courier->broken != PSD_OK || ps_session_broken(courier->session, NULL) != PSD_OK) {
        give_all_back(self);
        ps_desk_set_plan(self->desk, 0); /* nothing more is lent */
        return;
    }
    ps_reroute_look(courier);
    ps_identity_look(courier);
    ps_registry_look(courier);
    ps_session_tick(courier->session, self->now_ms, &courier->outbox);
    perform_all(self);
    hear_signs(self);
    look_at_sizes(self);
}

uint64_t ps_courier_due(const ps_relay_thread_t *self)
{
    const psd_client_t *courier = self->courier;
    uint64_t due_ms = ps_session_deadline(courier->session);
    uint64_t other_ms = ps_registry_due_ms(courier);

    due_ms = other_ms < due_ms ? other_ms : due_ms;
    due_ms = courier->routes_due_ms < due_ms ? courier->routes_due_ms : due_ms;
    if (courier->identity_asked != 0 && courier->identity_due_ms < due_ms) {
        due_ms = courier->identity_due_ms;
    }
    return due_ms;
}
