/* SPDX-License-Identifier: Apache-2.0 */
/* Calls under way, from their start until a caller takes the result. */
#include "client/requests/ticket.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"

/* When a call that begins now will have been open for PS_TOLD_MS. */
static void note_start(psd_client_t *client)
{
    uint64_t told_ms = client->now_ms + PS_TOLD_MS;

    if (told_ms < client->quiet_ms) {
        told_ms = client->quiet_ms;
    }
    if (told_ms < client->tell_ms && client->options.on_wait != NULL) {
        client->tell_ms = told_ms;
    }
}

/* One at a new place. NULL: no memory, or no place left. */
static ps_ticket_t *add_place(psd_client_t *client)
{
    ps_ticket_t *self = NULL;

    if (client->n_tickets >= PS_TICKET_PLACE_MASK ||
        !ps_grow(&client->tickets, &client->tickets_capacity, client->n_tickets + 1,
                 sizeof(ps_ticket_t *))) {
        return NULL;
    }
    self = ps_alloc(1, sizeof *self);
    if (self != NULL) {
        client->tickets[client->n_tickets++] = self;
        self->number = client->n_tickets;
        self->is_idle = true;
        TAILQ_INSERT_HEAD(&client->idle_tickets, self, in_list);
    }
    return self;
}

psd_status_t ps_ticket_new(psd_client_t *client, uint32_t timeout_ms, ps_ticket_t **ret_ticket,
                           psd_error_t *err)
{
    ps_ticket_t *self = TAILQ_FIRST(&client->idle_tickets);

    if (self == NULL) {
        self = add_place(client);
    }
    if (self == NULL && client->n_tickets >= PS_TICKET_PLACE_MASK) {
        return psd_error_set(err, PSD_LIMIT, "%zu tickets are pending; wait for some first",
                             client->n_tickets);
    }
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a ticket");
    }
    TAILQ_REMOVE(&client->idle_tickets, self, in_list);
    *self = (ps_ticket_t){.number = self->number,
                          .timeout_ms = timeout_ms,
                          .deadline_ms = client->now_ms + timeout_ms,
                          .verb = "call"};
    TAILQ_INIT(&self->requests);
    TAILQ_INSERT_TAIL(&client->open_tickets, self, in_list);
    if (self->deadline_ms < client->expire_ms) {
        client->expire_ms = self->deadline_ms;
    }
    note_start(client);
    *ret_ticket = self;
    return PSD_OK;
}

void ps_ticket_name(const ps_ticket_t *self, char ret_text[PS_TICKET_NAME_SIZE])
{
    int n = snprintf(ret_text, PS_TICKET_NAME_SIZE, "%s table \"%s\"", self->verb,
                     self->table == NULL ? "" : self->table->name);

    if (self->command != 0 && n > 0) {
        (void)snprintf(ret_text + n, PS_TICKET_NAME_SIZE - (size_t)n, ", command %" PRIu32,
                       self->command);
    }
}

void ps_ticket_add(ps_ticket_t *self, ps_slice_request_t *request)
{
    request->ticket = self;
    TAILQ_INSERT_TAIL(&self->requests, request, in_ticket);
}

void ps_ticket_forget(psd_client_t *client, ps_ticket_t **self_p)
{
    ps_ticket_t *self = *self_p;

    *self_p = NULL;
    TAILQ_REMOVE(self->has_ended ? &client->done_tickets : &client->open_tickets, self, in_list);
    psd_error_destroy(&self->error);
    self->number += PS_TICKET_PLACE_MASK + 1;
    self->is_idle = true;
    TAILQ_INSERT_HEAD(&client->idle_tickets, self, in_list);
}

void ps_ticket_note_failure(ps_ticket_t *self, uint32_t partition, psd_status_t status,
                            const char *text)
{
    char name[PS_TICKET_NAME_SIZE] = "";

    if (self->status != PSD_OK) {
        return;
    }
    if (text == NULL || text[0] == '\0') {
        text = psd_status_text(status);
    }
    ps_ticket_name(self, name);
    self->status = status;
    self->error = psd_error_new();
    (void)psd_error_set(self->error, status, "%s, partition %" PRIu32 ": %s", name, partition,
                        text);
}

void ps_ticket_end_if_done(psd_client_t *client, ps_ticket_t *self)
{
    if (!self->has_ended && TAILQ_EMPTY(&self->requests)) {
        self->has_ended = true;
        TAILQ_REMOVE(&client->open_tickets, self, in_list);
        TAILQ_INSERT_TAIL(&client->done_tickets, self, in_list);
        client->after_ended = true;
    }
}

psd_status_t ps_ticket_use_up(psd_client_t *client, ps_ticket_t *self, psd_error_t *err)
{
    psd_status_t status = self->status;

    if (status != PSD_OK) {
        const char *text = psd_error_text(self->error);

        (void)psd_error_set(err, status, "%s", text[0] == '\0' ? psd_status_text(status) : text);
    }
    ps_ticket_forget(client, &self);
    return status;
}

void ps_tickets_done(psd_client_t *client)
{
    for (size_t i = 0; i < client->n_tickets; i++) {
        psd_error_destroy(&client->tickets[i]->error);
        ps_free(client->tickets[i]);
    }
    ps_free(client->tickets);
    client->tickets = NULL;
    client->n_tickets = client->tickets_capacity = 0;
    TAILQ_INIT(&client->open_tickets);
    TAILQ_INIT(&client->done_tickets);
    TAILQ_INIT(&client->idle_tickets);
}
