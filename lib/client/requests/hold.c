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
    uint64_t size = ps_payload_size(request->payload);

    return is_plain(request) && queue->held == NULL && TAILQ_EMPTY(&queue->waiting) &&
           queue->pushed_round != client->round + 1 && size <= PS_HOLD_BYTES &&
           client->held_bytes <= PS_HOLD_BYTES - size && client->broken == PSD_OK &&
           client->worker.ended == PSD_OK && may_be_lent(client, request);
}

/* Its time begins now. */
static void begin(psd_client_t *client, ps_ticket_t *ticket)
{
    if (ticket == NULL || ticket->held_ms == 0) {
        return;
    }
    ticket->deadline_ms += ps_now_ms() - ticket->held_ms;
    ticket->held_ms = 0;
    if (ticket->deadline_ms < client->expire_ms) {
        client->expire_ms = ticket->deadline_ms;
    }
}

static void put(psd_client_t *client, ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;

    TAILQ_REMOVE(&client->held, request, in_list);
    client->held_bytes -= ps_payload_size(request->payload);
    client->n_waiting--;
    queue->held = NULL;
    queue->pushed_round = request->round + 1;
    begin(client, request->ticket);
    ps_queue_add(client, request);
    ps_queue_run(client, queue);
}

bool ps_hold(psd_client_t *client, ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;

    if (request->kind == PS_REQUEST_PULL || (client->desk == NULL && queue->held == NULL)) {
        return false; /* a pull sees nothing of a clock that is open */
    }
    if (!may_be_held(client, request)) {
        queue->pushed_round = client->round + 1;
        if (queue->held != NULL) {
            put(client, queue->held);
        }
        return false;
    }
    if (TAILQ_EMPTY(&client->held)) {
        client->held_ms = client->now_ms;
    }
    TAILQ_INSERT_TAIL(&client->held, request, in_list);
    client->held_bytes += ps_payload_size(request->payload);
    client->n_waiting++;
    queue->held = request;
    request->ticket->held_ms = client->now_ms;
    return true;
}

void ps_hold_mark(psd_client_t *client)
{
    while (!TAILQ_EMPTY(&client->held)) {
        ps_slice_request_t *request = TAILQ_FIRST(&client->held);

        if (request->queue->table->in_job) {
            request->marks = true;
            request->detour |= PS_DETOUR_LEND;
        }
        put(client, request);
    }
}

void ps_hold_end(psd_client_t *client)
{
    while (!TAILQ_EMPTY(&client->held)) {
        put(client, TAILQ_FIRST(&client->held));
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
