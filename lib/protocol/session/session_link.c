/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of a session: opening, HELLO, moving; and timers. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/session/session_private.h"

static bool is_at(const ps_link_t *link, const ps_route_t *route, uint32_t identity)
{
    return link->identity == identity && link->route.incarnation == route->incarnation &&
           link->route.shard == route->shard && strcmp(link->route.tcp, route->tcp) == 0 &&
           strcmp(link->route.ipc, route->ipc) == 0;
}

psd_status_t ps_link_find(ps_session_t *self, const ps_route_t *route, uint32_t identity,
                          ps_link_t **ret_link, psd_error_t *err)
{
    ps_link_t *link = NULL;

    for (size_t i = self->n_places; i > 0; i--) {
        if (is_at(self->places[i - 1], route, identity)) {
            *ret_link = self->places[i - 1];
            return PSD_OK;
        }
    }
    if (self->n_places >= PS_LINKS_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "routes name more than %d endpoints; open a new client", PS_LINKS_MAX);
    }
    if (!ps_grow(&self->places, &self->places_capacity, self->n_places + 1, sizeof(ps_link_t *)) ||
        !ps_grow(&self->links, &self->links_capacity, 2 * (self->n_places + 1),
                 sizeof(ps_link_t *)) ||
        (link = ps_alloc(1, sizeof *link)) == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a link");
    }
    link->route = *route;
    link->identity = identity;
    TAILQ_INIT(&link->active);
    TAILQ_INIT(&link->ready);
    TAILQ_INIT(&link->waiting);
    self->places[self->n_places++] = link;
    *ret_link = link;
    return PSD_OK;
}

/* When to send HELLO again. */
static uint64_t hello_again_ms(const ps_session_t *self, uint64_t now_ms, const ps_link_t *link,
                               uint32_t *tries)
{
    uint64_t due_ms = now_ms + ps_link_wait_ms(self, link, *tries);

    (*tries)++;
    return due_ms;
}

void ps_link_say_hello(ps_session_t *self, uint64_t now_ms, ps_link_t *link, bool bulk,
                       ps_outbox_t *outbox)
{
    ps_effect_t *effect = ps_outbox_add(outbox, PS_EFFECT_SEND);
    uint64_t *due_ms = bulk ? &link->bulk.hello_due_ms : &link->hello_due_ms;

    if (!bulk && link->hello_tries == 0) {
        link->hello_ms = now_ms;
        link->sign_ms = 0;
    }
    *due_ms =
        hello_again_ms(self, now_ms, link, bulk ? &link->bulk.hello_tries : &link->hello_tries);
    ps_session_wake(self, *due_ms);
    if (link->doubted_ms == 0 && !bulk) {
        link->doubted_ms = now_ms;
    }
    if (effect == NULL) {
        return; /* as if it were lost */
    }
    effect->to = bulk ? link->bulk.number : link->number;
    effect->message.kind = PS_KIND_HELLO;
    effect->message.hello = (ps_msg_hello_t){
        .version_min = PS_VERSION_MIN,
        .version_max = PS_VERSION,
        .cluster = self->args.cluster,
        .client = self->identities[link->identity].client,
        .incarnation = link->route.incarnation,
        .session = self->identities[link->identity].session,
        .filters = self->args.filters,
        .bulk = bulk,
    };
}

void ps_link_open(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox)
{
    ps_effect_t *effect = NULL;

    if (link->state != PS_LINK_UNUSED) {
        return;
    }
    effect = ps_outbox_add(outbox, PS_EFFECT_OPEN);
    if (effect == NULL) {
        self->wake_ms = 0;
        return;
    }
    link->number = self->n_links;
    effect->to = link->number;
    assert(self->n_links < self->links_capacity);
    self->links[self->n_links++] = link;
    link->state = PS_LINK_GREETING;
    link->greeted_ms = now_ms;
    ps_link_say_hello(self, now_ms, link, false, outbox);
}

void ps_link_requeue(ps_link_t *link, uint64_t now_ms)
{
    ps_part_t *part = NULL;

    TAILQ_FOREACH(part, &link->active, in_active)
    {
        ps_part_requeue(part);
        ps_part_make_ready(part, now_ms);
    }
}

void ps_link_greet(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox)
{
    ps_link_requeue(link, now_ms);
    link->state = PS_LINK_GREETING;
    link->greeted_ms = now_ms;
    link->hello_tries = 0;
    link->pace_ms = 0; /* WELCOME shows that of the new connection */
    ps_link_say_hello(self, now_ms, link, false, outbox);
}

void ps_part_move(ps_session_t *self, uint64_t now_ms, ps_part_t *part, ps_outbox_t *outbox)
{
    ps_link_t *old = part->link;

    if (old == NULL) {
        return; /* nothing in flight */
    }
    ps_part_carry(part, now_ms);
    part->pause_ms = 0;
    part->pauses = 0;
    ps_link_open(self, now_ms, part->link, outbox);
    ps_link_flush(self, now_ms, part->link, outbox);
    ps_link_flush(self, now_ms, old, outbox);
}

psd_status_t ps_session_moved(ps_session_t *self, uint64_t now_ms, const ps_msg_moved_t *moved,
                              const ps_payload_t *payload, ps_outbox_t *outbox)
{
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;
    ps_session_table_t *table = ps_map_get(&self->table_of, moved->table);
    ps_bytes_t bytes = {0};
    psd_status_t rc;

    if (table == NULL || !table->known) {
        return PSD_OK;
    }
    if (payload != NULL) {
        bytes = payload->keys;
    }
    rc = ps_routes_decode(bytes, moved->n_routes, &routes, NULL);
    if (rc == PSD_OK) {
        rc = ps_session_learn(self, table, routes, moved->n_routes, NULL);
    }
    if (rc != PSD_OK) {
        /* Without memory the next answer tells it again. */
        return rc == PSD_NOMEM ? PSD_OK : rc;
    }
    for (uint32_t i = 0; i < table->n_parts; i++) {
        ps_part_t *part = &table->parts[i];

        if (part->link != NULL && part->link != part->place) {
            ps_part_move(self, now_ms, part, outbox);
        }
    }
    return PSD_OK;
}

/* When a pull ends here, if the server stays silent: it has the caller's time
 * to say DEADLINE itself, and one resend time for that to arrive. */
static uint64_t end_of(const ps_session_t *self, const ps_op_t *op)
{
    if (op->ask.kind != PS_KIND_PULL || op->ask.timeout_ms == 0) {
        return UINT64_MAX;
    }
    return op->start_ms + op->ask.timeout_ms + self->args.resend_ms;
}

static void tick_op(ps_session_t *self, uint64_t now_ms, ps_op_t *op, ps_outbox_t *outbox)
{
    uint64_t end_ms = end_of(self, op);

    if (end_ms <= now_ms) {
        ps_op_end_locally(self, op, PSD_DEADLINE, ps_op_reason(self, op, now_ms), outbox);
        return;
    }
    if (op->sent && op->due_ms <= now_ms) {
        if (op->again) {
            ps_op_requeue(op);
        } else {
            ps_op_ask(self, now_ms, op, outbox);
        }
    }
    ps_session_wake(self, end_ms);
    if (op->sent) {
        ps_session_wake(self, op->due_ms);
    }
}

static void tick_part(ps_session_t *self, uint64_t now_ms, ps_part_t *part, ps_outbox_t *outbox)
{
    ps_op_t *next = NULL;

    for (ps_op_t *op = TAILQ_FIRST(&part->ops); op != NULL; op = next) {
        next = TAILQ_NEXT(op, in_list);
        tick_op(self, now_ms, op, outbox);
    }
    if (part->link == NULL) {
        return; /* the last one ended */
    }
    if (part->is_forgotten) {
        ps_part_begin_anew(self, now_ms, part, outbox);
        return;
    }
    if (part->pause_ms > now_ms) {
        ps_session_wake(self, part->pause_ms);
    }
    ps_part_make_ready(part, now_ms);
}

static void tick_link(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox)
{
    ps_part_t *next = NULL;

    if (link->state == PS_LINK_UNUSED && !TAILQ_EMPTY(&link->active)) {
        ps_link_open(self, now_ms, link, outbox);
    }
    if (link->state == PS_LINK_GREETING) {
        if (link->hello_due_ms <= now_ms) {
            ps_link_say_hello(self, now_ms, link, false, outbox);
        }
        ps_session_wake(self, link->hello_due_ms);
    }
    ps_bulk_tick(self, now_ms, link, outbox);
    for (ps_part_t *part = TAILQ_FIRST(&link->active); part != NULL; part = next) {
        next = TAILQ_NEXT(part, in_active);
        if (part->link != part->place) {
            ps_part_move(self, now_ms, part, outbox);
        } else {
            tick_part(self, now_ms, part, outbox);
        }
    }
    ps_link_flush(self, now_ms, link, outbox);
}

void ps_session_tick(ps_session_t *self, uint64_t now_ms, ps_outbox_t *outbox)
{
    if (now_ms < self->wake_ms) {
        return;
    }
    self->wake_ms = UINT64_MAX;
    ps_session_report(self, outbox);
    if (self->broken != PSD_OK) {
        return;
    }
    for (size_t i = 0; i < self->n_places; i++) {
        tick_link(self, now_ms, self->places[i], outbox);
    }
}

void ps_session_relinked(ps_session_t *self, uint64_t now_ms, uint64_t link, ps_outbox_t *outbox)
{
    ps_link_t *of = NULL;

    assert(link < self->n_links);
    of = self->links[link];
    if (self->broken != PSD_OK) {
        return;
    }
    if (ps_link_bulk_is(of, link)) {
        ps_bulk_greet(self, now_ms, of, outbox);
    } else {
        ps_link_greet(self, now_ms, of, outbox);
    }
}

void ps_session_settle(ps_session_t *self, uint64_t now_ms, uint64_t session, ps_outbox_t *outbox)
{
    assert(self->n_numbered == 0);
    self->identities[0].session = session;
    for (size_t i = 0; self->broken == PSD_OK && i < self->n_places; i++) {
        ps_link_t *link = self->places[i];

        if (link->identity == 0 && link->state != PS_LINK_UNUSED) {
            ps_link_greet(self, now_ms, link, outbox);
        }
        if (link->identity == 0 && link->bulk.state != PS_LINK_UNUSED) {
            ps_bulk_greet(self, now_ms, link, outbox);
        }
    }
}

uint64_t ps_session_deadline(const ps_session_t *self)
{
    return self->wake_ms;
}
