/* SPDX-License-Identifier: Apache-2.0 */
/* One slice on its way to a partition. What comes back is in reply.c. */
#include "base/alloc.h"
#include "client/requests/ticket.h"

/* The server gets a slightly shorter timeout than the caller's. So its
 * DEADLINE, which names what it waits for, arrives before the caller's
 * deadline. */
#define MARGIN_MAX_MS 250 /* for its answer to come over, also under load */

#define SPARE_MAX 1024 /* requests kept to be used again */

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
        .op = self->row_op.op,
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
