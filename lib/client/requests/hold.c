/* SPDX-License-Identifier: Apache-2.0 */
/* Which pushes wait for the end of their clock, and when they go. */
#include "client/requests/hold.h"

#include "client/requests/lend.h"

static bool is_plain(const ps_slice_request_t *request)
{
    return request->kind == PS_REQUEST_PUSH && !request->marks && request->detour == 0 &&
           request->ack == PS_ACK_DEFAULT && request->after == 0 &&
           request->row_op.op == PS_CHANGE_UPDATE;
}

/* The relay takes it, as far as this is known now. */
static bool may_be_lent(const psd_client_t *client, const ps_slice_request_t *request)
{
    const ps_request_queue_t *queue = request->queue;
    uint64_t link = 0;

    return client->desk != NULL && ps_desk_plan(client->desk) != 0 && queue->table->adds_up &&
           queue->table->in_job && queue->marked_seq != 0 &&
           ps_session_link_of(client->session, queue->table->id, queue->partition, &link) &&
           ps_lend_fits(client, link, ps_payload_size(request->payload));
}

static bool may_be_held(const psd_client_t *client, const ps_slice_request_t *request)
{
    const ps_request_queue_t *queue = request->queue;

    return is_plain(request) && queue->held == NULL && TAILQ_EMPTY(&queue->waiting) &&
           queue->pushed_round != client->round + 1 && client->broken == PSD_OK &&
           client->worker.ended == PSD_OK && may_be_lent(client, request);
}

static void put(psd_client_t *client, ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;

    TAILQ_REMOVE(&client->held, request, in_list);
    client->held_bytes -= ps_payload_size(request->payload);
    client->n_waiting--;
    queue->held = NULL;
    queue->pushed_round = request->round + 1;
    ps_queue_add(client, request);
}

/* All of it goes, and its time begins now. */
static void put_ticket(psd_client_t *client, ps_ticket_t *ticket)
{
    ps_slice_request_t *request = NULL;

    client->now_ms = ps_now_ms();
    ticket->deadline_ms += client->now_ms - ticket->held_ms;
    ticket->held_ms = 0;
    if (ticket->deadline_ms < client->expire_ms) {
        client->expire_ms = ticket->deadline_ms;
    }
    TAILQ_FOREACH(request, &ticket->requests, in_ticket)
    {
        put(client, request);
    }
    TAILQ_FOREACH(request, &ticket->requests, in_ticket)
    {
        ps_queue_run(client, request->queue);
    }
}

/* Takes the places of all of its requests; false: one may not wait, or two would wait for one
 * partition, and none is taken. */
static bool take_places(psd_client_t *client, ps_ticket_t *ticket)
{
    ps_slice_request_t *request = NULL;
    uint64_t bytes = client->held_bytes;

    TAILQ_FOREACH(request, &ticket->requests, in_ticket)
    {
        bytes += ps_payload_size(request->payload);
        if (bytes > PS_HOLD_BYTES || !may_be_held(client, request)) {
            break;
        }
        request->queue->held = request;
    }
    if (request == NULL) {
        return !TAILQ_EMPTY(&ticket->requests);
    }
    while ((request = TAILQ_PREV(request, ps_slice_requests, in_ticket)) != NULL) {
        request->queue->held = NULL;
    }
    return false;
}

/* The first that is held, and what else is of its ticket. One that psd_fail or a broken client
 * has cut off has no ticket any more. */
static void put_first(psd_client_t *client)
{
    ps_slice_request_t *request = TAILQ_FIRST(&client->held);

    if (request->ticket != NULL) {
        put_ticket(client, request->ticket);
    } else {
        put(client, request);
        ps_queue_run(client, request->queue);
    }
}

/* What is held and comes before it goes. */
static void make_way(psd_client_t *client, const ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;
    ps_ticket_t *after = request->after == 0 ? NULL : ps_ticket_find(client, request->after);

    if (after != NULL && after->held_ms != 0) {
        put_ticket(client, after);
    }
    if (request->kind == PS_REQUEST_PULL) {
        return; /* it sees nothing of a clock that is open */
    }
    queue->pushed_round = client->round + 1;
    if (queue->held != NULL && queue->held->ticket != NULL) {
        put_ticket(client, queue->held->ticket);
    } else if (queue->held != NULL) {
        ps_hold_end(client);
    }
}

bool ps_hold(psd_client_t *client, ps_ticket_t *ticket)
{
    ps_slice_request_t *request = NULL;

    if (client->desk == NULL && TAILQ_EMPTY(&client->held)) {
        return false;
    }
    if (!take_places(client, ticket)) {
        TAILQ_FOREACH(request, &ticket->requests, in_ticket)
        {
            make_way(client, request);
        }
        return false;
    }
    if (TAILQ_EMPTY(&client->held)) {
        client->held_ms = client->now_ms;
    }
    ticket->held_ms = client->now_ms;
    TAILQ_FOREACH(request, &ticket->requests, in_ticket)
    {
        TAILQ_INSERT_TAIL(&client->held, request, in_list);
        client->held_bytes += ps_payload_size(request->payload);
        client->n_waiting++;
    }
    return true;
}

void ps_hold_mark(psd_client_t *client)
{
    ps_slice_request_t *request = NULL;

    TAILQ_FOREACH(request, &client->held, in_list)
    {
        if (request->queue->table->in_job) {
            request->marks = true;
            request->detour |= PS_DETOUR_LEND;
        }
    }
    ps_hold_end(client);
}

void ps_hold_end(psd_client_t *client)
{
    while (!TAILQ_EMPTY(&client->held)) {
        put_first(client);
    }
}

void ps_hold_look(psd_client_t *client, uint64_t until_ms)
{
    uint64_t now_ms = 0;

    if (TAILQ_EMPTY(&client->held)) {
        return;
    }
    now_ms = ps_now_ms();
    if (client->broken != PSD_OK || (until_ms > now_ms && now_ms >= ps_hold_due(client))) {
        ps_hold_end(client);
    }
}

uint64_t ps_hold_due(const psd_client_t *client)
{
    return TAILQ_EMPTY(&client->held) ? UINT64_MAX : client->held_ms + PS_HOLD_MS;
}
