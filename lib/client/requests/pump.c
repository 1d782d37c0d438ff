/* SPDX-License-Identifier: Apache-2.0 */
/* One turn of the client: wait, receive, tick, perform, expire. It handles
 * messages before it looks at the time, so that a caller that comes late gets
 * no timeout for a request that was answered long ago. */
#include "client/requests/pump.h"

#include "client/requests/by_peer.h"
#include "client/requests/hold.h"
#include "client/requests/lend.h"
#include "client/requests/ticket.h"
#include "client/requests/trace.h"

#define LEAST_UNDER_WAY 4 /* so that a few requests go at once */
#define AWAY_MS 1000      /* between two turns: the program does other things */
#define WORTH_SENDING 32  /* messages: from then on sending costs little for each */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t wake_ms(const psd_client_t *self, uint64_t until_ms)
{
    uint64_t at = earlier(until_ms, earlier(self->expire_ms, self->tell_ms));

    at = earlier(at, earlier(ps_hold_due(self), ps_by_peer_due(self)));
    if (self->session != NULL) {
        at = earlier(at, ps_session_deadline(self->session));
    }
    if (self->identity_asked != 0) {
        at = earlier(at, self->identity_due_ms);
    }
    if (self->guest_asked != 0) {
        at = earlier(at, self->guest_due_ms);
    }
    if (self->job_hooks != NULL) {
        at = earlier(at, self->job_due_ms);
    }
    return earlier(at, earlier(self->routes_due_ms, ps_registry_due_ms(self)));
}

/* What has arrived on the links; false: nothing. */
static bool receive(psd_client_t *self)
{
    bool got = false;

    for (size_t i = 0; i < self->n_links; i++) {
        got = ps_links_receive(self, i) || got;
    }
    return got;
}

/* An answer that no call waits for. */
static void learn(psd_client_t *self, uint64_t id, const ps_doc_t *reply)
{
    if ((self->job_hooks == NULL || !self->job_hooks->learn(self, id, reply)) &&
        !ps_identity_learn(self, id, reply) && !ps_guest_learn(self, id, reply)) {
        ps_reroute_learn(self, id, reply);
    }
}

static void look_at_job(psd_client_t *self)
{
    if (self->job_hooks != NULL) {
        self->job_hooks->look(self);
    }
    if (self->desk != NULL || !TAILQ_EMPTY(&self->by_peer)) {
        ps_by_peer_look(self);
    }
}

/* Waits until messages arrive, and handles them. */
static void wait_and_receive(psd_client_t *self, uint64_t until_ms)
{
    uint64_t at_ms = wake_ms(self, until_ms);
    uint64_t wait_ms = at_ms > self->now_ms ? at_ms - self->now_ms : 0;
    size_t n = 1 + self->n_links;

    self->polled[0] = self->control;
    for (size_t i = 0; i < self->n_links; i++) {
        self->polled[1 + i] = self->links[i].socket;
    }
    ps_socket_wake_by(self->control, self->worker.beat != NULL ? self->worker.wake_fd : -1);
    psd_error_clear(self->scratch);
    if (ps_socket_wait(self->polled, n, wait_ms, self->ready, self->scratch) != PSD_OK) {
        ps_client_break(self, psd_error_status(self->scratch), psd_error_text(self->scratch));
        return;
    }
    self->now_ms = ps_now_ms();
    if (self->ready[0]) {
        ps_questions_receive(self, learn);
    }
    for (size_t i = 1; i < n; i++) {
        if (self->ready[i]) {
            (void)ps_links_receive(self, i - 1);
        }
    }
}

/* A client that broke by itself: everything under way ends with the reason. */
static void end_everything(psd_client_t *self)
{
    for (size_t i = 0; self->session != NULL && i < self->n_tables; i++) {
        ps_session_forget(self->session, self->tables[i]->id, self->broken, &self->outbox);
    }
    ps_perform(self);
    ps_queues_run(self);
    ps_perform(self);
}

void ps_pump(psd_client_t *self, uint64_t until_ms)
{
    ps_registry_look_at_keys(self);
    ps_hold_look(self, until_ms);
    ps_perform(self);
    self->now_ms = ps_now_ms();
    if (self->now_ms - self->turned_ms > AWAY_MS) {
        ps_tickets_were_away(self);
    }
    if (self->broken != PSD_OK) {
        look_at_job(self);
        end_everything(self);
        return;
    }
    if (!TAILQ_EMPTY(&self->questions) || self->tables_asked != 0 || self->idle_asked != 0 ||
        self->routes_asked != 0 || self->identity_asked != 0 || self->guest_asked != 0) {
        ps_questions_receive(self, learn); /* a stream of data must not starve it */
    }
    if (!receive(self) && self->broken == PSD_OK && until_ms > self->now_ms) {
        ps_perform(self);
        wait_and_receive(self, until_ms);
    }
    look_at_job(self);
    ps_reroute_look(self);
    ps_identity_look(self);
    ps_guest_look(self);
    ps_registry_look(self);
    if (self->session != NULL) {
        ps_session_tick(self->session, self->now_ms, &self->outbox);
    }
    ps_perform(self);
    ps_tickets_expire(self);
    ps_tickets_tell(self);
    ps_perform(self);
    self->turned_ms = self->now_ms;
}

/* These keep the address that the payload has now: ZeroMQ, and a lane that
 * defers a second payload over the same values. */
static bool is_fixed(const ps_slice_request_t *request, const ps_socket_t *socket)
{
    return !ps_socket_is_lane(socket) ||
           ((request->detour & PS_DETOUR_FILTER) != 0 && request->filter.cache);
}

/* Through the filter, or to the relay. */
static psd_status_t send_by_detour(psd_client_t *self, const ps_effect_t *effect,
                                   ps_slice_request_t *request, bool *ret_lent)
{
    ps_socket_t *socket = self->links[effect->to].socket;

    if ((request->detour & PS_DETOUR_FILTER) != 0) {
        return ps_link_send_filtered(self, effect->to, &request->filter, &effect->message,
                                     effect->payload, request->n_sends > 1);
    }
    *ret_lent = ps_lend(self, effect, request);
    if (*ret_lent) {
        request->n_fixed_sends -= is_fixed(request, socket) ? 1 : 0; /* no socket got it */
        return PSD_OK;
    }
    return request->n_sends > 1
               ? ps_socket_send_again(socket, &effect->message, effect->payload, NULL)
               : ps_socket_send(socket, 0, &effect->message, effect->payload, NULL);
}

static void send_message(psd_client_t *self, const ps_effect_t *effect)
{
    ps_slice_request_t *request = effect->owner;
    ps_socket_t *socket = NULL;
    bool is_lent = false;
    psd_status_t rc = PSD_OK;

    if (self->broken != PSD_OK || effect->to >= self->n_links) {
        return;
    }
    socket = self->links[effect->to].socket;
    if (request != NULL) {
        request->n_sends++;
        request->n_fixed_sends += is_fixed(request, socket) ? 1 : 0;
        ps_trace_sent(request, self->links[effect->to].endpoint);
    }
    /* A message that is not sent is as good as lost: the session retries. */
    if (request != NULL && request->detour != 0) {
        rc = send_by_detour(self, effect, request, &is_lent);
    } else if (request != NULL && request->n_sends > 1) {
        rc = ps_socket_send_again(socket, &effect->message, effect->payload, NULL);
    } else {
        rc = ps_socket_send(socket, 0, &effect->message, effect->payload, NULL);
    }
    if (rc == PSD_NOMEM) {
        ps_client_break(self, PSD_NOMEM, "no memory to send");
    }
    if (self->desk != NULL && request != NULL) {
        ps_lend_meter(self, request, rc == PSD_OK && !is_lent);
    }
}

static void perform_effect(psd_client_t *self, const ps_effect_t *effect)
{
    switch (effect->kind) {
    case PS_EFFECT_SEND:
        send_message(self, effect);
        break;
    case PS_EFFECT_OPEN:
        ps_links_open(self, effect->to);
        break;
    case PS_EFFECT_DONE:
        ps_slice_request_answered(self, effect->owner, &effect->message, effect->payload);
        break;
    case PS_EFFECT_RECORD:
    case PS_EFFECT_NOTE:
    case PS_EFFECT_FILL:
    case PS_EFFECT_CLOSE:
    case PS_EFFECT_REPORT:
    case PS_EFFECT_PIECE:
    default:
        break; /* not of a session */
    }
}

static void perform_outbox(psd_client_t *self)
{
    while (self->outbox.n_effects > 0) {
        ps_outbox_t batch = self->outbox;

        self->outbox = self->batch;
        self->batch = batch;
        for (size_t i = 0; i < self->batch.n_effects; i++) {
            perform_effect(self, &self->batch.effects[i]);
        }
        ps_outbox_clear(&self->batch);
    }
}

/* Flushes the messages of this turn together. */
static void flush_links(const psd_client_t *self)
{
    for (size_t i = 0; i < self->n_links; i++) {
        if (self->links[i].socket != NULL) {
            ps_socket_flush(self->links[i].socket);
        }
    }
}

/* The sender's work. Lanes have no deferred messages, because their memory may
 * be taken meanwhile. */
static void send_all(void *owner)
{
    const psd_client_t *self = owner;

    for (size_t i = 0; i < self->n_links; i++) {
        ps_socket_t *socket = self->links[i].socket;

        if (socket != NULL && !ps_socket_is_lane(socket)) {
            ps_socket_flush(socket);
        }
    }
}

/* False: what is sent goes at once. */
static bool may_leave(psd_client_t *self)
{
    if (self->n_under_way < LEAST_UNDER_WAY || self->no_sender) {
        return false;
    }
    if (self->sender == NULL && ps_sender_start(send_all, self, &self->sender, NULL) != PSD_OK) {
        self->no_sender = true;
    }
    return self->sender != NULL;
}

/* Sends when it pays, and leaves the rest to the next call or the sender,
 * whichever comes first. */
static void flush_or_lend(psd_client_t *self)
{
    bool is_left = false;

    for (size_t i = 0; i < self->n_links; i++) {
        ps_socket_t *socket = self->links[i].socket;
        uint32_t n = socket == NULL ? 0 : ps_socket_n_collected(socket);

        if (n == 0 || n >= WORTH_SENDING || !may_leave(self)) {
            if (socket != NULL) {
                ps_socket_flush(socket);
            }
        } else {
            is_left = true;
        }
    }
    if (is_left) {
        ps_sender_lend(self->sender);
    }
}

/* All that follows from what the session wants. */
static void perform_all(psd_client_t *self)
{
    ps_sender_take_back(self->sender);
    perform_outbox(self);
    while (!TAILQ_EMPTY(&self->ended) || self->after_ended) {
        while (!TAILQ_EMPTY(&self->ended)) {
            ps_slice_request_t *request = TAILQ_FIRST(&self->ended);

            TAILQ_REMOVE(&self->ended, request, in_list);
            ps_slice_request_finish(self, &request);
        }
        if (self->after_ended && self->n_after > 0) {
            ps_queues_run(self);
        }
        self->after_ended = false;
        perform_outbox(self);
    }
}

void ps_perform(psd_client_t *self)
{
    perform_all(self);
    flush_links(self);
}

void ps_perform_start(psd_client_t *self)
{
    perform_all(self);
    flush_or_lend(self);
}
