/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One slice on its way to a partition: made, in the partition's queue, sent,
 * ended. What comes back is in reply.c.
 *
 * The session gives credits in the order in which it gets operations. So the
 * queue hands it only as much as keeps a connection busy, and a request of
 * higher priority can still overtake: a large push is many slices, and only a
 * few of them are ahead of a pull.
 */
#include "base/alloc.h"
#include "client/requests/by_peer.h"
#include "client/requests/lend.h"
#include "client/requests/ticket.h"
#include "client/requests/trace.h"

/* The server gets a slightly shorter timeout than the caller's. So its
 * DEADLINE, which names what it waits for, arrives before the caller's
 * deadline. */
#define MARGIN_MAX_MS 250 /* for its answer to come over, also under load */

#define SPARE_MAX 1024 /* requests kept to be used again */

/* Before the first WELCOME. */
#define FIRST_REQUESTS 16
#define FIRST_BYTES (UINT64_C(16) << 20)
/* Bodies handed over at a time, whatever the credits are: some milliseconds of
 * a fast network. */
#define WINDOW_BYTES (UINT64_C(16) << 20)

ps_slice_request_t *ps_slice_request_new(psd_client_t *client, ps_request_kind_t kind,
                                         ps_cut_t *cut)
{
    ps_slice_request_t *self = TAILQ_FIRST(&client->spare);

    if (self == NULL) {
        self = ps_alloc_raw(1, sizeof *self);
        if (self == NULL) {
            return NULL;
        }
    } else {
        TAILQ_REMOVE(&client->spare, self, in_list);
        client->n_spare--;
    }
    *self = (ps_slice_request_t){.kind = kind,
                                 .slice = cut->slice,
                                 .payload = cut->payload,
                                 .borrows = cut->borrows,
                                 .places = cut->places,
                                 .marks = kind == PS_REQUEST_MARK};
    cut->payload = NULL;
    cut->places = (ps_places_t){.first = 0};
    return self;
}

void ps_slice_request_destroy(psd_client_t *client, ps_slice_request_t **request_p)
{
    ps_slice_request_t *self = *request_p;

    if (self == NULL) {
        return;
    }
    *request_p = NULL;
    ps_by_peer_drop(client, self);
    ps_payload_destroy(&self->payload);
    ps_places_done(&self->places);
    if (client->n_spare >= SPARE_MAX) {
        ps_free(self);
        return;
    }
    TAILQ_INSERT_HEAD(&client->spare, self, in_list);
    client->n_spare++;
}

void ps_slice_requests_drop(psd_client_t *client, struct ps_slice_requests *requests)
{
    while (!TAILQ_EMPTY(requests)) {
        ps_slice_request_t *request = TAILQ_FIRST(requests);

        TAILQ_REMOVE(requests, request, in_list);
        ps_slice_request_destroy(client, &request);
    }
}

/* The server's timeout, from the time left for the ticket; 0: forever. */
static uint32_t server_timeout(const ps_slice_request_t *self, uint64_t now_ms)
{
    uint64_t left = 0;
    uint64_t margin = 0;

    if (self->ticket == NULL) {
        return 0;
    }
    if (self->ticket->deadline_ms > now_ms) {
        left = self->ticket->deadline_ms - now_ms;
    }
    margin = left / 10 < MARGIN_MAX_MS ? left / 10 : MARGIN_MAX_MS;
    left -= margin;
    return left == 0 ? 1 : left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

static ps_kind_t kind_of(const ps_slice_request_t *self)
{
    switch (self->kind) {
    case PS_REQUEST_PUSH:
    case PS_REQUEST_PUSHPULL:
        return PS_KIND_PUSH;
    case PS_REQUEST_PULL:
        return PS_KIND_PULL;
    case PS_REQUEST_MARK:
    default:
        return PS_KIND_MARK;
    }
}

static psd_status_t start(psd_client_t *client, ps_slice_request_t *self, psd_error_t *err)
{
    bool by_peer = ps_by_peer_begin(client, self);
    const ps_op_start_t wanted = {
        .kind = kind_of(self),
        .table = self->queue->table->id,
        .partition = self->queue->partition,
        .worker = self->worker,
        .slice = self->slice,
        .payload = self->payload,
        .timeout_ms = server_timeout(self, client->now_ms),
        .ack = (uint8_t)self->ack,
        .pull = self->kind == PS_REQUEST_PUSHPULL,
        .marks = self->marks && self->kind == PS_REQUEST_PUSH,
        .wants_times = self->trace != NULL,
        .op = by_peer ? PS_READ_DIGEST : self->row_op.op,
        .other = self->row_op.other,
        .operand = self->row_op.operand,
        .since = self->row_op.since,
        .owner = self,
    };

    return ps_session_start(client->session, client->now_ms, &wanted, &client->outbox, &self->op,
                            err);
}

void ps_slice_request_send(psd_client_t *client, ps_slice_request_t *self)
{
    psd_status_t rc = PSD_OK;

    if (client->broken != PSD_OK) {
        ps_slice_request_end(client, self, client->broken, client->broken_text);
        return;
    }
    psd_error_clear(client->scratch);
    rc = start(client, self, client->scratch);
    if (rc != PSD_OK) {
        ps_slice_request_end(client, self, rc, psd_error_text(client->scratch));
        return;
    }
    TAILQ_INSERT_TAIL(&client->sent, self, in_list);
    if (!self->is_sent) {
        self->is_sent = true;
        self->sent_bytes = ps_payload_size(self->payload);
        self->queue->n_sent++;
        client->n_under_way++;
        self->queue->sent_bytes += self->sent_bytes;
    }
}

void ps_slice_request_end(psd_client_t *client, ps_slice_request_t *self, psd_status_t status,
                          const char *text)
{
    if (self->ticket != NULL && status != PSD_OK) {
        ps_ticket_note_failure(self->ticket, self->queue->partition, status, text);
    }
    if (self->marks) {
        ps_client_mark_ended(client, self->queue->table->id, status);
    }
    TAILQ_INSERT_TAIL(&client->ended, self, in_list);
}

/* ---- queues ---- */

void ps_queue_init(ps_request_queue_t *self, const ps_known_table_t *table, uint32_t partition)
{
    *self = (ps_request_queue_t){.table = table, .partition = partition};
    TAILQ_INIT(&self->waiting);
}

void ps_queue_forget_peers(ps_request_queue_t *self)
{
    self->n_refused = self->n_late = 0;
    self->refused_at = self->direct_until = 0;
    self->has_ended = self->is_unfit = false;
    self->finished = 0;
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

/* Other requests may overtake one that waits for a ticket; a mark may not, nor a pull whose rows
 * come from another worker. */
void ps_queue_run(psd_client_t *client, ps_request_queue_t *queue)
{
    ps_slice_request_t *request = TAILQ_FIRST(&queue->waiting);
    bool passed = false; /* one was left waiting */

    while (request != NULL && has_room(client, queue, request)) {
        ps_slice_request_t *next = TAILQ_NEXT(request, in_list);

        bool waits = waits_for_ticket(client, request);

        if ((passed || waits || queue->n_by_peer > 0) && request->marks) {
            return;
        }
        if (waits) {
            passed = true;
        } else if (!ps_lend_choose(client, request)) {
            return;
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

/* ---- ends ---- */

void ps_slice_request_finish(psd_client_t *client, ps_slice_request_t **request_p)
{
    ps_slice_request_t *self = *request_p;
    ps_request_queue_t *queue = self->queue;
    ps_ticket_t *ticket = self->ticket;

    if (self->borrows) {
        ps_loan_end(client, self);
    }
    if (self->is_sent) {
        queue->n_sent--;
        client->n_under_way--;
        queue->sent_bytes -= self->sent_bytes;
    }
    ps_trace_ended(self);
    ps_lend_ended(self);
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
    ps_slice_requests_drop(client, &client->held);
    ps_slice_requests_drop(client, &client->sent);
    ps_slice_requests_drop(client, &client->ended);
    while (!TAILQ_EMPTY(&client->spare)) {
        ps_slice_request_t *request = TAILQ_FIRST(&client->spare);

        TAILQ_REMOVE(&client->spare, request, in_list);
        ps_free(request);
    }
    client->n_spare = 0;
}
