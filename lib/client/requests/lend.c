/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a relay gets, and what is done when it says something of them. */
#include "client/requests/lend.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/connection/desk.h"

/* Without a word of the relay, which says every PS_RELAY_SAY_MS that it lives; then the shard is
 * asked, and what it has not got goes there. */
#define PATIENCE_MS 1500
#define BESIDE_BYTES 1024 /* of a bundle, beside one push */
#define NEWS 64
#define SPARED 8 /* pushes and marks of a partition, after one that was given back */

/* Partitions hold whole rows, and one clock's deltas are added up … */
static bool adds_up(const ps_table_spec_t *spec)
{
    return spec->combine != PS_COMBINE_EACH && spec->n_col_slices <= 1;
}

/* … or all that is pushed, where no clock holds it together. */
static bool adds_any(const ps_table_spec_t *spec)
{
    return spec->updater.kind == PS_UPDATER_ADD && spec->n_col_slices <= 1;
}

void ps_lend_learn(psd_client_t *client, uint32_t id, const ps_table_spec_t *spec,
                   const ps_route_t *routes, uint32_t n_routes)
{
    ps_known_table_t *known = ps_known_table(client, id);
    ps_desk_table_t *table = NULL;
    bool is_timed = client->worker.is_timed;

    if (client->desk == NULL || known == NULL) {
        return;
    }
    known->adds_up = known->adds_any = false; /* of a job before */
    if (!(is_timed ? adds_any(spec) : adds_up(spec))) {
        return;
    }
    table = ps_alloc(1, sizeof *table);
    if (table != NULL) {
        table->routes = ps_alloc_raw(n_routes, sizeof *routes);
    }
    if (table == NULL || table->routes == NULL) {
        ps_free(table);
        return; /* its pushes go to the nodes */
    }
    table->id = id;
    table->type = spec->type;
    table->width = spec->n_cols;
    table->is_timed = is_timed;
    (void)snprintf(table->name, sizeof table->name, "%s", spec->name);
    memcpy(table->routes, routes, n_routes * sizeof *routes);
    table->n_routes = n_routes;
    ps_desk_put_table(client->desk, table);
    known->adds_up = !is_timed;
    known->adds_any = is_timed;
}

/* ---- lending ---- */

static bool ends_clock(const ps_message_t *message)
{
    return message->kind == PS_KIND_MARK ||
           (message->kind == PS_KIND_PUSH && (message->flags & PS_FLAG_MARK) != 0);
}

static bool is_plain(const ps_message_t *message)
{
    return message->kind == PS_KIND_MARK ||
           (message->kind == PS_KIND_PUSH && message->push.op == PS_CHANGE_UPDATE &&
            message->push.pull == 0 && message->push.ack == PS_ACK_DEFAULT);
}

/* It follows the mark before at once: nothing else of its clock was pushed there. */
static bool is_all_of_its_clock(ps_request_queue_t *queue, uint64_t seq)
{
    bool follows = queue->marked_seq != 0 && seq == queue->marked_seq + 1;

    if (seq > queue->marked_seq) {
        queue->marked_seq = seq;
    }
    return follows;
}

bool ps_lend_fits(const psd_client_t *client, uint64_t link, uint64_t size)
{
    return size > 0 && size + BESIDE_BYTES <= ps_session_bundle_bytes(client->session, link);
}

static bool fits(const psd_client_t *client, const ps_effect_t *effect)
{
    return effect->message.kind == PS_KIND_MARK ||
           ps_lend_fits(client, effect->to, ps_payload_size(effect->payload));
}

static ps_desk_lot_t *make_lot(const psd_client_t *client, const ps_effect_t *effect,
                               const ps_slice_request_t *request)
{
    const ps_message_t *message = &effect->message;
    bool is_push = message->kind == PS_KIND_PUSH;
    uint64_t seq = is_push ? message->push.seq : message->mark.seq;
    ps_desk_lot_t *lot = ps_alloc(1, sizeof *lot);

    if (lot == NULL) {
        return NULL;
    }
    lot->request = is_push ? message->push.request : message->mark.request;
    lot->table = request->queue->table->id;
    lot->partition = request->queue->partition;
    lot->clock = request->queue->table->adds_any ? 0
                 : is_push                       ? message->push.clock
                                                 : message->mark.clock - 1;
    lot->from = (ps_bundle_from_t){.session = ps_session_number(client->session, effect->to),
                                   .first_seq = seq,
                                   .last_seq = seq,
                                   .worker = request->worker.worker,
                                   .member = request->worker.member,
                                   .joins = request->worker.joins,
                                   .marks = ends_clock(message) ? 1 : 0,
                                   .tail = !request->queue->table->adds_any ? 0
                                           : ends_clock(message)            ? PS_BUNDLE_TAIL_MARK
                                                                            : PS_BUNDLE_TAIL_PUSH};
    lot->has_rows = is_push;
    if (is_push) {
        ps_message_slice(message, &lot->slice);
        /* The memory may be the caller's, who uses it again when the call has ended. */
        lot->payload = ps_payload_clone(effect->payload);
        if (lot->payload == NULL) {
            ps_desk_lot_free(&lot);
        }
    }
    return lot;
}

/* ---- where no clock holds pushes together ---- */

/* Its form allows it. */
static bool has_form(const ps_slice_request_t *request)
{
    return request->kind == PS_REQUEST_MARK ||
           (request->kind == PS_REQUEST_PUSH && (request->detour & ~PS_DETOUR_LEND) == 0 &&
            request->ack == PS_ACK_DEFAULT && request->row_op.op == PS_CHANGE_UPDATE);
}

/* Clocks that are finished after it. */
static uint64_t finishes(const ps_slice_request_t *request)
{
    return request->kind == PS_REQUEST_MARK ? request->worker.clock : request->worker.clock + 1;
}

/* A bundle counts marks: none may leap. A mark goes where the last push went. */
static bool is_one_more(const ps_slice_request_t *request)
{
    const ps_request_queue_t *queue = request->queue;

    return !request->marks || (queue->finished > 0 && finishes(request) == queue->finished + 1);
}

static bool is_to_be_lent(const psd_client_t *client, const ps_slice_request_t *request)
{
    const ps_request_queue_t *queue = request->queue;
    uint64_t link = 0;

    return ps_desk_plan(client->desk) != 0 && queue->table->in_job && queue->has_ended &&
           is_one_more(request) && has_form(request) &&
           (request->kind == PS_REQUEST_MARK
                ? !queue->is_unfit
                : ps_session_link_of(client->session, queue->table->id, queue->partition, &link) &&
                      ps_lend_fits(client, link, ps_payload_size(request->payload)));
}

bool ps_lend_choose(const psd_client_t *client, ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;
    bool lends = false;

    if (request->kind == PS_REQUEST_PULL || request->way != PS_WAY_NONE ||
        !queue->table->adds_any || client->desk == NULL) {
        return true;
    }
    lends = queue->n_spared == 0 && is_to_be_lent(client, request);
    if (lends ? queue->n_direct > 0 : queue->n_lent > 0) {
        return false;
    }
    request->way = lends ? PS_WAY_LENT : PS_WAY_DIRECT;
    request->detour |= lends ? PS_DETOUR_LEND : 0;
    queue->n_lent += lends ? 1 : 0;
    queue->n_direct += lends ? 0 : 1;
    queue->n_spared -= queue->n_spared > 0 ? 1 : 0;
    if (request->kind != PS_REQUEST_MARK) {
        queue->is_unfit = !lends && queue->has_ended;
    }
    if (request->marks) {
        queue->finished = finishes(request);
    }
    return true;
}

/* The relay does not have it: it goes to the shard itself. Where it was given back the next ones
 * do so, too: they would be in one sum again with who the gate is closed to. */
static void go_direct(ps_slice_request_t *request)
{
    if (request->way == PS_WAY_LENT) {
        request->queue->n_spared = request->n_sends > 1 ? SPARED : request->queue->n_spared;
        request->way = PS_WAY_DIRECT;
        request->queue->n_lent--;
        request->queue->n_direct++;
    }
}

void ps_lend_ended(ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;

    queue->n_lent -= request->way == PS_WAY_LENT ? 1 : 0;
    queue->n_direct -= request->way == PS_WAY_DIRECT ? 1 : 0;
    if (request->way != PS_WAY_NONE && request->marks && !request->was_answered) {
        queue->finished = 0; /* it may not have gone: the next mark says how many there are */
    }
    queue->has_ended = queue->has_ended || (request->way == PS_WAY_DIRECT && request->was_answered);
    request->way = PS_WAY_NONE;
}

/* ---- both ---- */

static bool has_turn(const ps_effect_t *effect, const ps_slice_request_t *request)
{
    const ps_message_t *message = &effect->message;

    if (request->queue->table->adds_any) {
        return request->way == PS_WAY_LENT;
    }
    return ends_clock(message) &&
           is_all_of_its_clock(request->queue, message->kind == PS_KIND_PUSH ? message->push.seq
                                                                             : message->mark.seq) &&
           request->queue->table->adds_up;
}

static bool lend(psd_client_t *client, const ps_effect_t *effect, const ps_slice_request_t *request)
{
    const ps_message_t *message = &effect->message;
    ps_desk_lot_t *lot = NULL;
    uint64_t number = 0;

    if (!is_plain(message) || client->desk == NULL || request->n_sends > 1 ||
        !has_turn(effect, request) || ps_desk_plan(client->desk) == 0 || !fits(client, effect)) {
        return false;
    }
    lot = make_lot(client, effect, request);
    if (lot == NULL) {
        return false;
    }
    number = lot->request;
    ps_desk_put_lot(client->desk, lot);
    ps_session_lent(client->session, number, client->now_ms + PATIENCE_MS);
    return true;
}

bool ps_lend(psd_client_t *client, const ps_effect_t *effect, ps_slice_request_t *request)
{
    ps_kind_t kind = effect->message.kind;
    bool is_lent = lend(client, effect, request);

    if (!is_lent && (kind == PS_KIND_PUSH || kind == PS_KIND_MARK)) {
        go_direct(request);
    }
    return is_lent;
}

/* ---- measuring ---- */

void ps_lend_meter(psd_client_t *client, ps_slice_request_t *request, bool is_direct)
{
    bool is_push = request->kind == PS_REQUEST_PUSH;

    if (is_direct && request->n_sends == 1 && (is_push || request->kind == PS_REQUEST_MARK)) {
        ps_desk_went_directly(client->desk);
    }
    if (!is_push || !request->queue->table->adds_up) {
        return;
    }
    if (request->n_sends == 1) {
        ps_desk_pushed(client->desk, ps_payload_size(request->payload));
    }
    request->metered_us = is_direct && request->n_sends == 1 ? ps_now_us() : 0;
}

void ps_lend_metered(psd_client_t *client, ps_slice_request_t *request)
{
    if (client->desk != NULL) {
        ps_desk_moved(client->desk, PS_OVERLAY_NODES, ps_payload_size(request->payload),
                      request->metered_us, ps_now_us());
    }
    request->metered_us = 0;
}

/* ---- hearing ---- */

void ps_lend_hear(psd_client_t *client)
{
    ps_desk_news_t news[NEWS];
    size_t n = NEWS;

    if (client->n_links > 0 && client->links[0].socket != NULL) {
        ps_socket_wake_by(client->links[0].socket, ps_desk_client_fd(client->desk));
    }
    while (n == NEWS) {
        n = ps_desk_hear(client->desk, news, NEWS);
        for (size_t i = 0; i < n; i++) {
            if (news[i].news == PS_RELAY_RETURNED) {
                ps_session_given_back(client->session, client->now_ms, news[i].request,
                                      &client->outbox);
            } else {
                ps_session_lent(client->session, news[i].request, client->now_ms + PATIENCE_MS);
            }
        }
    }
}
