/* SPDX-License-Identifier: Apache-2.0 */
/* Calls under way, from their start to the one who waits. */
#include "client/ticket.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"

psd_status_t
ps_ticket_new(psd_client_t *client,
              uint32_t timeout_ms,
              ps_ticket_t **ret_ticket,
              psd_error_t *err)
{
    ps_ticket_t *self = ps_alloc(1, sizeof *self);
    psd_ticket_t number = client->last_ticket + 1;

    if (self == NULL || !ps_map_put(&client->ticket_of, number, self)) {
        ps_free(self);
        return psd_error_set(err, PSD_NOMEM, "no memory for a ticket");
    }
    client->last_ticket = number;
    self->number = number;
    self->timeout_ms = timeout_ms;
    self->deadline_ms = ps_now_ms() + timeout_ms;
    TAILQ_INIT(&self->errands);
    TAILQ_INSERT_TAIL(&client->open_tickets, self, in_list);
    if (self->deadline_ms < client->expire_ms) {
        client->expire_ms = self->deadline_ms;
    }
    *ret_ticket = self;
    return PSD_OK;
}

void
ps_ticket_add(ps_ticket_t *self, ps_errand_t *errand)
{
    errand->ticket = self;
    TAILQ_INSERT_TAIL(&self->errands, errand, in_ticket);
}

static void
forget(psd_client_t *client, ps_ticket_t **self_p)
{
    ps_ticket_t *self = *self_p;

    *self_p = NULL;
    TAILQ_REMOVE(self->has_ended ? &client->done_tickets
                                 : &client->open_tickets,
                 self, in_list);
    (void)ps_map_remove(&client->ticket_of, self->number);
    psd_error_destroy(&self->error);
    ps_free(self);
}

void
ps_ticket_abandon(psd_client_t *client, ps_ticket_t **self_p)
{
    while (!TAILQ_EMPTY(&(*self_p)->errands)) {
        ps_errand_t *errand = TAILQ_FIRST(&(*self_p)->errands);

        TAILQ_REMOVE(&(*self_p)->errands, errand, in_ticket);
        ps_errand_destroy(client, &errand);
    }
    forget(client, self_p);
}

/* The first failure is the ticket's. */
static void
note_failure(ps_ticket_t *self,
             const ps_errand_t *errand,
             psd_status_t status,
             const char *text)
{
    if (self->status != PSD_OK) {
        return;
    }
    self->status = status;
    self->error = psd_error_new();
    (void)psd_error_set(self->error, status, "%s, partition %" PRIu32 ": %s",
                        self->what, errand->lane->partition, text);
}

static void
end(psd_client_t *client, ps_ticket_t *self)
{
    self->has_ended = true;
    TAILQ_REMOVE(&client->open_tickets, self, in_list);
    TAILQ_INSERT_TAIL(&client->done_tickets, self, in_list);
    client->after_ended = true;
}

void
ps_ticket_end_if_done(psd_client_t *client, ps_ticket_t *self)
{
    if (!self->has_ended && TAILQ_EMPTY(&self->errands)) {
        end(client, self);
    }
}

void
ps_ticket_errand_ended(psd_client_t *client, ps_errand_t *errand)
{
    ps_ticket_t *self = errand->ticket;

    if (errand->status != PSD_OK) {
        note_failure(self, errand, errand->status,
                     errand->text == NULL ? psd_status_text(errand->status)
                                          : errand->text);
    }
    TAILQ_REMOVE(&self->errands, errand, in_ticket);
    errand->ticket = NULL;
    ps_ticket_end_if_done(client, self);
}

/* An errand whose caller has gone: a push goes on with memory of its own, a
 * pull is of no use any more. */
static void
let_go(psd_client_t *client, ps_errand_t *errand)
{
    TAILQ_REMOVE(&errand->ticket->errands, errand, in_ticket);
    errand->ticket = NULL;
    if (errand->kind == PS_ERRAND_PULL && errand->op == 0) {
        ps_lane_remove(client, errand);
        ps_errand_end(client, errand, PSD_DEADLINE, NULL);
        return;
    }
    ps_loan_call_in(client, errand);
}

static void
expire(psd_client_t *client, ps_ticket_t *self)
{
    const ps_errand_t *first = TAILQ_FIRST(&self->errands);
    char why[PS_TEXT_MAX + 1] = "";
    char text[PS_TEXT_MAX + 64] = "";

    (void)ps_errand_reason(client, first, why);
    (void)snprintf(text, sizeof text, "%" PRIu32 " ms passed: %s",
                   self->timeout_ms, why);
    note_failure(self, first, PSD_DEADLINE, text);
    while (!TAILQ_EMPTY(&self->errands)) {
        let_go(client, TAILQ_FIRST(&self->errands));
    }
    end(client, self);
}

void
ps_tickets_expire(psd_client_t *client, uint64_t now_ms)
{
    ps_ticket_t *next = NULL;

    if (now_ms < client->expire_ms) {
        return;
    }
    client->expire_ms = UINT64_MAX;
    for (ps_ticket_t *ticket = TAILQ_FIRST(&client->open_tickets);
         ticket != NULL; ticket = next) {
        next = TAILQ_NEXT(ticket, in_list);
        if (ticket->deadline_ms <= now_ms) {
            expire(client, ticket);
        } else if (ticket->deadline_ms < client->expire_ms) {
            client->expire_ms = ticket->deadline_ms;
        }
    }
}

psd_status_t
ps_ticket_use_up(psd_client_t *client, ps_ticket_t *self, psd_error_t *err)
{
    psd_status_t status = self->status;

    if (status != PSD_OK) {
        const char *text = psd_error_text(self->error);

        (void)psd_error_set(err, status, "%s",
                            text[0] == '\0' ? psd_status_text(status) : text);
    }
    forget(client, &self);
    return status;
}

psd_status_t
ps_ticket_wait(psd_client_t *client,
               ps_ticket_t *self,
               uint64_t until_ms,
               uint64_t waited_ms,
               psd_error_t *err)
{
    char why[PS_TEXT_MAX + 1] = "";

    ps_pump(client, 0);
    while (!self->has_ended && ps_now_ms() < until_ms) {
        ps_pump(client, until_ms);
    }
    if (self->has_ended) {
        return ps_ticket_use_up(client, self, err);
    }
    return psd_error_set(
        err, PSD_DEADLINE,
        "%s, partition %" PRIu32 ": %" PRIu64 " ms passed: %s", self->what,
        TAILQ_FIRST(&self->errands)->lane->partition, waited_ms,
        ps_errand_reason(client, TAILQ_FIRST(&self->errands), why));
}

void
ps_tickets_done(psd_client_t *client)
{
    size_t at = 0;
    uint64_t number = 0;
    void *value = NULL;

    while (ps_map_next(&client->ticket_of, &at, &number, &value)) {
        ps_ticket_t *ticket = value;

        psd_error_destroy(&ticket->error);
        ps_free(ticket);
    }
    ps_map_done(&client->ticket_of);
    TAILQ_INIT(&client->open_tickets);
    TAILQ_INIT(&client->done_tickets);
}
