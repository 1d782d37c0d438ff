/* SPDX-License-Identifier: Apache-2.0 */
/* Calls under way, from their start to the one who waits. */
#include "client/requests/ticket.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/requests/marks.h"

#define TOLD_MS 3000   /* a call that is open for so long is told of */
#define QUIET_MS 30000 /* then of none for so long */

/* When a call that begins now will have been open for long. */
static void note_start(psd_client_t *client)
{
    uint64_t told_ms = client->now_ms + TOLD_MS;

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
        return psd_error_set(err, PSD_LIMIT, "%zu tickets are still to be waited for",
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
    TAILQ_INIT(&self->errands);
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

void ps_ticket_add(ps_ticket_t *self, ps_errand_t *errand)
{
    errand->ticket = self;
    TAILQ_INSERT_TAIL(&self->errands, errand, in_ticket);
}

static void forget(psd_client_t *client, ps_ticket_t **self_p)
{
    ps_ticket_t *self = *self_p;

    *self_p = NULL;
    TAILQ_REMOVE(self->has_ended ? &client->done_tickets : &client->open_tickets, self, in_list);
    psd_error_destroy(&self->error);
    self->number += PS_TICKET_PLACE_MASK + 1;
    self->is_idle = true;
    TAILQ_INSERT_HEAD(&client->idle_tickets, self, in_list);
}

void ps_ticket_abandon(psd_client_t *client, ps_ticket_t **self_p)
{
    while (!TAILQ_EMPTY(&(*self_p)->errands)) {
        ps_errand_t *errand = TAILQ_FIRST(&(*self_p)->errands);

        TAILQ_REMOVE(&(*self_p)->errands, errand, in_ticket);
        ps_errand_destroy(client, &errand);
    }
    forget(client, self_p);
}

/* The first failure is the ticket's. */
static void note_failure(ps_ticket_t *self, const ps_errand_t *errand, psd_status_t status,
                         const char *text)
{
    char name[PS_TICKET_NAME_SIZE] = "";

    if (self->status != PSD_OK) {
        return;
    }
    ps_ticket_name(self, name);
    self->status = status;
    self->error = psd_error_new();
    (void)psd_error_set(self->error, status, "%s, partition %" PRIu32 ": %s", name,
                        errand->queue->partition, text);
}

static void end(psd_client_t *client, ps_ticket_t *self)
{
    self->has_ended = true;
    TAILQ_REMOVE(&client->open_tickets, self, in_list);
    TAILQ_INSERT_TAIL(&client->done_tickets, self, in_list);
    client->after_ended = true;
}

void ps_ticket_end_if_done(psd_client_t *client, ps_ticket_t *self)
{
    if (!self->has_ended && TAILQ_EMPTY(&self->errands)) {
        end(client, self);
    }
}

static void errand_ended(psd_client_t *client, ps_errand_t *errand)
{
    ps_ticket_t *self = errand->ticket;

    if (errand->status != PSD_OK) {
        note_failure(self, errand, errand->status,
                     errand->text == NULL ? psd_status_text(errand->status) : errand->text);
    }
    TAILQ_REMOVE(&self->errands, errand, in_ticket);
    errand->ticket = NULL;
    ps_ticket_end_if_done(client, self);
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
        errand_ended(client, self);
    }
    if (self->kind == PS_ERRAND_MARK || self->marks) {
        ps_mark_ended(client, queue->table->id, self->status);
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

/* An errand whose caller has gone: a push goes on with memory of its own, a
 * pull is of no use any more. */
static void let_go(psd_client_t *client, ps_errand_t *errand)
{
    TAILQ_REMOVE(&errand->ticket->errands, errand, in_ticket);
    errand->ticket = NULL;
    if (errand->kind == PS_ERRAND_PULL && errand->op == 0) {
        ps_queue_remove(client, errand);
        ps_errand_end(client, errand, PSD_DEADLINE, NULL);
        return;
    }
    ps_loan_call_in(client, errand);
}

/* Before its errands have ended: nothing is written to its values any more. */
static void cut_off(psd_client_t *client, ps_ticket_t *self, psd_status_t status, const char *text)
{
    note_failure(self, TAILQ_FIRST(&self->errands), status, text);
    while (!TAILQ_EMPTY(&self->errands)) {
        let_go(client, TAILQ_FIRST(&self->errands));
    }
    end(client, self);
}

static void expire(psd_client_t *client, ps_ticket_t *self)
{
    char why[PS_TEXT_MAX + 1] = "";
    char text[PS_TEXT_MAX + 64] = "";

    (void)ps_errand_reason(client, TAILQ_FIRST(&self->errands), why);
    (void)snprintf(text, sizeof text, "%" PRIu32 " ms passed: %s", self->timeout_ms, why);
    cut_off(client, self, PSD_DEADLINE, text);
}

void ps_tickets_cut_off(psd_client_t *client, psd_status_t status, const char *text)
{
    while (!TAILQ_EMPTY(&client->open_tickets)) {
        cut_off(client, TAILQ_FIRST(&client->open_tickets), status, text);
    }
}

void ps_tickets_expire(psd_client_t *client)
{
    uint64_t now_ms = client->now_ms;
    ps_ticket_t *next = NULL;

    if (now_ms < client->expire_ms) {
        return;
    }
    client->expire_ms = UINT64_MAX;
    for (ps_ticket_t *ticket = TAILQ_FIRST(&client->open_tickets); ticket != NULL; ticket = next) {
        next = TAILQ_NEXT(ticket, in_list);
        if (ticket->deadline_ms <= now_ms) {
            expire(client, ticket);
        } else if (ticket->deadline_ms < client->expire_ms) {
            client->expire_ms = ticket->deadline_ms;
        }
    }
}

static void tell(const psd_client_t *client, const ps_ticket_t *self, uint64_t passed_ms)
{
    const ps_errand_t *first = TAILQ_FIRST(&self->errands);
    char why[PS_TEXT_MAX + 1] = "";
    char name[PS_TICKET_NAME_SIZE] = "";
    char what[sizeof why + sizeof name + 100];

    ps_ticket_name(self, name);
    (void)snprintf(what, sizeof what,
                   "%s, partition %" PRIu32 ": %" PRIu64 " s passed: %s; waiting %" PRIu64
                   " s more",
                   name, first->queue->partition, passed_ms / 1000,
                   ps_errand_reason(client, first, why), (self->timeout_ms - passed_ms) / 1000);
    client->options.on_wait(client->options.on_wait_user, what);
}

void ps_tickets_were_away(psd_client_t *client)
{
    if (client->quiet_ms < client->now_ms + TOLD_MS) {
        client->quiet_ms = client->now_ms + TOLD_MS;
    }
}

void ps_tickets_tell(psd_client_t *client)
{
    const ps_ticket_t *oldest = TAILQ_FIRST(&client->open_tickets);
    uint64_t now_ms = client->now_ms;
    uint64_t begun_ms = 0;
    uint64_t due_ms = 0;

    if (now_ms < client->tell_ms) {
        return;
    }
    client->tell_ms = UINT64_MAX;
    if (oldest == NULL) {
        return;
    }
    begun_ms = oldest->deadline_ms - oldest->timeout_ms;
    due_ms = begun_ms + TOLD_MS;
    due_ms = due_ms < client->quiet_ms ? client->quiet_ms : due_ms;
    if (due_ms > now_ms) {
        client->tell_ms = due_ms;
        return;
    }
    client->quiet_ms = now_ms + QUIET_MS;
    client->tell_ms = client->quiet_ms;
    tell(client, oldest, now_ms - begun_ms);
}

psd_status_t ps_ticket_use_up(psd_client_t *client, ps_ticket_t *self, psd_error_t *err)
{
    psd_status_t status = self->status;

    if (status != PSD_OK) {
        const char *text = psd_error_text(self->error);

        (void)psd_error_set(err, status, "%s", text[0] == '\0' ? psd_status_text(status) : text);
    }
    forget(client, &self);
    return status;
}

psd_status_t ps_ticket_overdue(const psd_client_t *client, const ps_ticket_t *self,
                               uint64_t waited_ms, psd_error_t *err)
{
    const ps_errand_t *first = TAILQ_FIRST(&self->errands);
    char why[PS_TEXT_MAX + 1] = "";
    char name[PS_TICKET_NAME_SIZE] = "";

    ps_ticket_name(self, name);
    return psd_error_set(err, PSD_DEADLINE, "%s, partition %" PRIu32 ": %" PRIu64 " ms passed: %s",
                         name, first->queue->partition, waited_ms,
                         ps_errand_reason(client, first, why));
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
