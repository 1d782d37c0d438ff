/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which requests go to a partition. The session gives credits in
 * the order in which it gets operations. So the queue hands it only as much as
 * keeps a connection busy, and a request of higher priority can still overtake:
 * a large push is many slices, and only a few of them are ahead of a pull. */
#include "base/alloc.h"
#include "client/requests/ticket.h"

/* Before the first WELCOME. */
#define FIRST_REQUESTS 16
#define FIRST_BYTES (UINT64_C(16) << 20)
/* Bodies handed over at a time, whatever the credits are: some milliseconds of
 * a fast network. */
#define WINDOW_BYTES (UINT64_C(16) << 20)

void ps_queue_init(ps_request_queue_t *self, const ps_known_table_t *table, uint32_t partition)
{
    *self = (ps_request_queue_t){.table = table, .partition = partition};
    TAILQ_INIT(&self->waiting);
}

static bool goes_before(const ps_slice_request_t *a, const ps_slice_request_t *b)
{
    if (a->round != b->round) {
        return a->round < b->round;
    }
    if (a->marks != b->marks) { /* no request overtakes the end of a clock */
        return b->marks;
    }
    return a->priority > b->priority;
}

void ps_queue_add(psd_client_t *client, ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;
    ps_slice_request_t *at = TAILQ_LAST(&queue->waiting, ps_slice_requests);

    if (at == NULL) {
        TAILQ_INSERT_TAIL(&client->busy, queue, in_busy);
    }
    while (at != NULL && goes_before(request, at)) {
        at = TAILQ_PREV(at, ps_slice_requests, in_list);
    }
    if (at == NULL) {
        TAILQ_INSERT_HEAD(&queue->waiting, request, in_list);
    } else {
        TAILQ_INSERT_AFTER(&queue->waiting, at, request, in_list);
    }
    client->n_after += request->after != 0 ? 1 : 0;
    client->n_waiting += request->kind != PS_REQUEST_PULL ? 1 : 0;
}

void ps_queue_remove(psd_client_t *client, ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;

    TAILQ_REMOVE(&queue->waiting, request, in_list);
    if (TAILQ_EMPTY(&queue->waiting)) {
        TAILQ_REMOVE(&client->busy, queue, in_busy);
    }
    client->n_after -= request->after != 0 ? 1 : 0;
    client->n_waiting -= request->kind != PS_REQUEST_PULL ? 1 : 0;
}

/* The ticket that it names has not ended. */
static bool waits_for_ticket(const psd_client_t *client, const ps_slice_request_t *request)
{
    const ps_ticket_t *ticket = request->after == 0 ? NULL : ps_ticket_find(client, request->after);

    return ticket != NULL && !ticket->has_ended;
}

static bool has_room(const psd_client_t *client, const ps_request_queue_t *queue,
                     const ps_slice_request_t *request)
{
    uint32_t requests = client->credit_requests > 0 ? client->credit_requests : FIRST_REQUESTS;
    uint64_t bytes = client->credit_bytes > 0 ? client->credit_bytes : FIRST_BYTES;
    uint64_t size = ps_payload_size(request->payload);

    if (bytes > WINDOW_BYTES) {
        bytes = WINDOW_BYTES;
    }
    return queue->n_sent == 0 || (queue->n_sent < requests && queue->sent_bytes <= bytes &&
                                  size <= bytes - queue->sent_bytes);
}

/* Other requests may overtake one that waits for a ticket; a mark may not. */
void ps_queue_run(psd_client_t *client, ps_request_queue_t *queue)
{
    ps_slice_request_t *request = TAILQ_FIRST(&queue->waiting);
    bool passed = false; /* one was left waiting */

    while (request != NULL && has_room(client, queue, request)) {
        ps_slice_request_t *next = TAILQ_NEXT(request, in_list);

        bool waits = waits_for_ticket(client, request);

        if ((passed || waits) && request->marks) {
            return;
        }
        if (waits) {
            passed = true;
        } else {
            ps_queue_remove(client, request);
            ps_slice_request_send(client, request);
        }
        request = next;
    }
}

void ps_queues_run(psd_client_t *client)
{
    ps_request_queue_t *next = NULL;

    for (ps_request_queue_t *queue = TAILQ_FIRST(&client->busy); queue != NULL; queue = next) {
        next = TAILQ_NEXT(queue, in_busy);
        ps_queue_run(client, queue);
    }
}

void ps_slice_request_finish(psd_client_t *client, ps_slice_request_t **request_p)
{
    ps_slice_request_t *self = *request_p;
    ps_request_queue_t *queue = self->queue;
    ps_ticket_t *ticket = self->ticket;

    ps_loan_end(client, self);
    if (self->is_sent) {
        queue->n_sent--;
        client->n_under_way--;
        queue->sent_bytes -= self->sent_bytes;
    }
    if (ticket != NULL) {
        TAILQ_REMOVE(&ticket->requests, self, in_ticket);
        ps_ticket_end_if_done(client, ticket);
    }
    ps_slice_request_destroy(client, request_p);
    if (!TAILQ_EMPTY(&queue->waiting)) {
        ps_queue_run(client, queue);
    }
}

void ps_slice_requests_done(psd_client_t *client)
{
    while (!TAILQ_EMPTY(&client->busy)) {
        ps_slice_request_t *request = TAILQ_FIRST(&TAILQ_FIRST(&client->busy)->waiting);

        ps_queue_remove(client, request);
        ps_slice_request_destroy(client, &request);
    }
    ps_slice_requests_drop(client, &client->sent);
    ps_slice_requests_drop(client, &client->ended);
    while (!TAILQ_EMPTY(&client->spare)) {
        ps_slice_request_t *request = TAILQ_FIRST(&client->spare);

        TAILQ_REMOVE(&client->spare, request, in_list);
        ps_free(request);
    }
    client->n_spare = 0;
}
