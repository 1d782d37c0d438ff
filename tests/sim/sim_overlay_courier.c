/* SPDX-License-Identifier: Apache-2.0 */
/* The session of a relay, by which bundles go to the nodes: the rules of client/relay/courier.c. */
#include "sim_overlay.h"

#define NUMBER 1000 /* of the first courier's session: of no client */

void overlay_speaker_open(overlay_t *self, overlay_life_t *life, bool is_courier, uint64_t link)
{
    overlay_speaker_t *speaker = is_courier ? &life->relay.courier : &life->client;
    const ps_route_t *route = ps_session_link(speaker->session, link);
    const overlay_conn_t conn = {.from = is_courier ? OVERLAY_COURIER : OVERLAY_CLIENT,
                                 .life = life->number,
                                 .relay_life = life->relay.life,
                                 .link = link,
                                 .to = OVERLAY_SHARD,
                                 .number = route->shard,
                                 .shard_life = self->shard_lives[route->shard]};

    overlay_need(link < OVERLAY_LINKS_MAX, "links for all");
    speaker->n_links = link + 1 > speaker->n_links ? link + 1 : speaker->n_links;
    speaker->links[link].conn = overlay_conn_new(self, &conn);
}

void overlay_courier_start(overlay_t *self, overlay_life_t *life)
{
    uint64_t number = NUMBER + life->number + 100 * life->relay.life;
    ps_session_args_t args = {
        .cluster = {.bytes = {1, 2, 3}}, .session = number, .resend_ms = self->weather.resend_ms};

    args.client.bytes[0] = (uint8_t)(number >> 8);
    args.client.bytes[1] = (uint8_t)number;
    life->relay.courier = (overlay_speaker_t){.wake_ms = UINT64_MAX};
    overlay_need(ps_session_new(&args, &life->relay.courier.session, NULL) == PSD_OK &&
                     ps_session_routes(life->relay.courier.session, OVERLAY_TABLE, self->routes,
                                       self->plan.spec.n_partitions, NULL) == PSD_OK,
                 "memory for a session");
}

static void end(overlay_t *self, overlay_relay_t *relay, uint64_t op, ps_kind_t kind)
{
    for (size_t i = 0; i < relay->n_under_way; i++) {
        uint64_t number = relay->under_way[i].number;

        if (relay->under_way[i].op == op) {
            relay->under_way[i] = relay->under_way[--relay->n_under_way];
            ps_relay_heard(relay->machine, self->now_ms, PS_OVERLAY_NODES, number,
                           kind == PS_KIND_ACK ? PS_RELAY_DONE : PS_RELAY_RETURNED);
            return;
        }
    }
}

static void perform(overlay_t *self, overlay_life_t *life, const ps_outbox_t *outbox)
{
    overlay_relay_t *relay = &life->relay;
    const char *why = "";

    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];

        if (effect->kind == PS_EFFECT_DONE) {
            overlay_trace(self, "  relay %u: bundle op %" PRIu64 " ends as %s%s%s", life->rank,
                          effect->to, ps_kind_name(effect->message.kind),
                          effect->message.kind == PS_KIND_REFUSED ? ": " : "",
                          effect->message.kind == PS_KIND_REFUSED ? effect->message.refused.text
                                                                  : "");
            end(self, relay, effect->to, effect->message.kind);
        } else if (effect->kind == PS_EFFECT_OPEN) {
            overlay_speaker_open(self, life, true, effect->to);
        } else if (effect->kind == PS_EFFECT_SEND) {
            overlay_send(self, relay->courier.links[effect->to].conn, false, &effect->message,
                         effect->payload);
        }
    }
    if (ps_session_broken(relay->courier.session, &why) != PSD_OK) {
        overlay_fail(self, "the courier of worker %u is broken: %s", life->rank, why);
    }
}

bool overlay_courier_send(overlay_t *self, overlay_life_t *life, const ps_relay_deed_t *deed)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    overlay_relay_t *relay = &life->relay;
    const ps_relay_speaker_t speaker = overlay_speaker_of(life);
    ps_op_start_t start = {.kind = PS_KIND_BUNDLE,
                           .table = deed->key.table,
                           .partition = deed->key.partition,
                           .worker = {.job = speaker.job,
                                      .worker = speaker.worker,
                                      .member = speaker.member,
                                      .joins = speaker.joins,
                                      .clock = deed->key.clock},
                           .timeout_ms = PS_RELAY_SAY_MS,
                           .plan = deed->plan,
                           .n_from = deed->lot->n_from,
                           .n_spans = deed->lot->n_spans};
    overlay_under_way_t sent = {.number = deed->number, .heard_ms = self->now_ms};

    if (relay->n_under_way >= OVERLAY_UNDER_WAY_MAX) {
        return false;
    }
    overlay_need(ps_relay_lot_write(deed->lot, &payload, NULL) == PSD_OK, "a bundle's bytes");
    start.payload = payload;
    overlay_need(ps_session_start(relay->courier.session, self->now_ms, &start, &outbox, &sent.op,
                                  NULL) == PSD_OK,
                 "a bundle that starts");
    relay->under_way[relay->n_under_way++] = sent;
    perform(self, life, &outbox);
    return true;
}

void overlay_courier_received(overlay_t *self, overlay_life_t *life, uint64_t link,
                              const ps_message_t *message, ps_payload_t *payload)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    ps_session_received(life->relay.courier.session, self->now_ms, link, message, payload, &outbox);
    perform(self, life, &outbox);
    overlay_relay_turn(self, life);
}

void overlay_courier_relinked(overlay_t *self, overlay_life_t *life, uint64_t link)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    if (life->relay.courier.session == NULL || link >= life->relay.courier.n_links) {
        return;
    }
    ps_session_relinked(life->relay.courier.session, self->now_ms, link, &outbox);
    perform(self, life, &outbox);
    overlay_relay_turn(self, life);
}

static void hear_signs(overlay_t *self, overlay_relay_t *relay)
{
    for (size_t i = 0; i < relay->n_under_way; i++) {
        overlay_under_way_t *sent = &relay->under_way[i];
        uint64_t heard_ms = ps_session_heard_ms(relay->courier.session, sent->op);

        if (heard_ms > sent->heard_ms) {
            sent->heard_ms = heard_ms;
            ps_relay_heard(relay->machine, self->now_ms, PS_OVERLAY_NODES, sent->number,
                           PS_RELAY_WAITS);
        }
    }
}

static void look_at_sizes(const overlay_relay_t *relay)
{
    uint64_t least = 0;

    for (size_t i = 0; i < relay->courier.n_links; i++) {
        uint64_t bytes = ps_session_bundle_bytes(relay->courier.session, i);

        least = bytes > 0 && (least == 0 || bytes < least) ? bytes : least;
    }
    ps_relay_set_most(relay->machine, least);
}

void overlay_courier_turn(overlay_t *self, overlay_life_t *life)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    ps_session_tick(life->relay.courier.session, self->now_ms, &outbox);
    perform(self, life, &outbox);
    hear_signs(self, &life->relay);
    look_at_sizes(&life->relay);
}
