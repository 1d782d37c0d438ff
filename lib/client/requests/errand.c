/* SPDX-License-Identifier: Apache-2.0 */
/* One slice on its way to a partition. What comes back is in reply.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/job/job.h"
#include "client/requests/ticket.h"

/* What the server is told is a little less than the caller's time, so that its
 * DEADLINE, which names who is waited for, comes before the caller's end. */
#define MARGIN_MAX_MS 250 /* for its answer to come over, also under load */

#define SPARE_MAX 1024 /* errands kept to be used again */

ps_errand_t *ps_errand_new(psd_client_t *client, ps_errand_kind_t kind, ps_cut_t *cut)
{
    ps_errand_t *self = TAILQ_FIRST(&client->spare);

    if (self == NULL) {
        self = ps_alloc_raw(1, sizeof *self);
        if (self == NULL) {
            return NULL;
        }
    } else {
        TAILQ_REMOVE(&client->spare, self, in_list);
        client->n_spare--;
    }
    *self = (ps_errand_t){.kind = kind,
                          .slice = cut->slice,
                          .payload = cut->payload,
                          .borrows = cut->borrows,
                          .places = cut->places};
    cut->payload = NULL;
    cut->places = (ps_places_t){.first = 0};
    return self;
}

void ps_errand_destroy(psd_client_t *client, ps_errand_t **errand_p)
{
    ps_errand_t *self = *errand_p;

    if (self == NULL) {
        return;
    }
    *errand_p = NULL;
    ps_payload_destroy(&self->payload);
    ps_places_done(&self->places);
    ps_free(self->text);
    if (client->n_spare >= SPARE_MAX) {
        ps_free(self);
        return;
    }
    TAILQ_INSERT_HEAD(&client->spare, self, in_list);
    client->n_spare++;
}

static void destroy_all(psd_client_t *client, struct ps_errands *errands)
{
    while (!TAILQ_EMPTY(errands)) {
        ps_errand_t *errand = TAILQ_FIRST(errands);

        TAILQ_REMOVE(errands, errand, in_list);
        ps_errand_destroy(client, &errand);
    }
}

void ps_errands_done(psd_client_t *client)
{
    while (!TAILQ_EMPTY(&client->busy)) {
        ps_errand_t *errand = TAILQ_FIRST(&TAILQ_FIRST(&client->busy)->waiting);

        ps_queue_remove(client, errand);
        ps_errand_destroy(client, &errand);
    }
    destroy_all(client, &client->sent);
    destroy_all(client, &client->ended);
    while (!TAILQ_EMPTY(&client->spare)) {
        ps_errand_t *errand = TAILQ_FIRST(&client->spare);

        TAILQ_REMOVE(&client->spare, errand, in_list);
        ps_free(errand);
    }
    client->n_spare = 0;
}

/* Time for the server, from what is left of the ticket's; 0: for ever. */
static uint32_t server_timeout(const ps_errand_t *self, uint64_t now_ms)
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

static ps_kind_t kind_of(const ps_errand_t *self)
{
    switch (self->kind) {
    case PS_ERRAND_PUSH:
    case PS_ERRAND_PUSHPULL:
        return PS_KIND_PUSH;
    case PS_ERRAND_PULL:
        return PS_KIND_PULL;
    case PS_ERRAND_MARK:
    default:
        return PS_KIND_MARK;
    }
}

static psd_status_t start(psd_client_t *client, ps_errand_t *self, psd_error_t *err)
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
        .pull = self->kind == PS_ERRAND_PUSHPULL,
        .marks = self->marks,
        .op = self->deed.op,
        .other = self->deed.other,
        .operand = self->deed.operand,
        .since = self->deed.since,
        .owner = self,
    };

    return ps_session_start(client->session, client->now_ms, &wanted, &client->outbox, &self->op,
                            err);
}

void ps_errand_send(psd_client_t *client, ps_errand_t *self)
{
    psd_status_t rc = PSD_OK;

    if (client->broken != PSD_OK) {
        ps_errand_end(client, self, client->broken, client->broken_text);
        return;
    }
    psd_error_clear(client->scratch);
    rc = start(client, self, client->scratch);
    if (rc != PSD_OK) {
        ps_errand_end(client, self, rc, psd_error_text(client->scratch));
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

void ps_errand_end(psd_client_t *client, ps_errand_t *self, psd_status_t status, const char *text)
{
    self->status = status;
    if (status != PSD_OK && text != NULL && text[0] != '\0') {
        self->text = ps_strdup(text);
    }
    TAILQ_INSERT_TAIL(&client->ended, self, in_list);
}

void ps_errand_finish(psd_client_t *client, ps_errand_t **errand_p)
{
    ps_errand_t *self = *errand_p;
    ps_queue_t *queue = self->queue;

    ps_loan_end(client, self);
    if (self->is_sent) {
        queue->n_sent--;
        client->n_under_way--;
        queue->sent_bytes -= self->sent_bytes;
    }
    if (self->ticket != NULL) {
        ps_ticket_errand_ended(client, self);
    }
    if (self->kind == PS_ERRAND_MARK || self->marks) {
        ps_membership_marked(client, queue->table->id, self->status);
    }
    ps_errand_destroy(client, errand_p);
    if (!TAILQ_EMPTY(&queue->waiting)) {
        ps_queue_run(client, queue);
    }
}

/* Why it has not ended, without what else is amiss. */
static void print_reason(const psd_client_t *client, const ps_errand_t *self,
                         char ret_text[PS_TEXT_MAX + 1])
{
    const ps_ticket_t *after = self->after == 0 ? NULL : ps_ticket_find(client, self->after);
    char name[PS_TICKET_NAME_SIZE] = "";
    const char *reason = "";

    if (self->op != 0) {
        reason = ps_session_reason(client->session, client->now_ms, self->op);
    }
    if (reason[0] != '\0') {
        (void)snprintf(ret_text, PS_TEXT_MAX + 1, "%.*s", PS_TEXT_MAX, reason);
    } else if (after != NULL && !after->has_ended) {
        ps_ticket_name(after, name);
        (void)snprintf(ret_text, PS_TEXT_MAX + 1, "waits for ticket %" PRIu64 ", a %s", self->after,
                       name);
    } else if (!self->is_sent) {
        (void)snprintf(ret_text, PS_TEXT_MAX + 1,
                       "waits for %" PRIu32 " earlier calls to this partition",
                       self->queue->n_sent);
    } else {
        (void)snprintf(ret_text, PS_TEXT_MAX + 1, "no answer yet");
    }
}

const char *ps_errand_reason(const psd_client_t *client, const ps_errand_t *self,
                             char ret_text[PS_TEXT_MAX + 1])
{
    size_t size = 0;

    print_reason(client, self, ret_text);
    size = strlen(ret_text);
    if (client->trouble[0] != '\0') {
        (void)snprintf(ret_text + size, PS_TEXT_MAX + 1 - size, "; a message could not be read: %s",
                       client->trouble);
    }
    return ret_text;
}
