/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that take long: what they wait for, the report to on_wait, and their
 * end at the deadline. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/requests/by_peer.h"
#include "client/requests/trace.h"

#define QUIET_MS 30000 /* no report for this time after the last one */

/* Why it has not ended, without other trouble. */
static void print_reason(const psd_client_t *client, const ps_slice_request_t *self,
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
    } else if (ps_by_peer_waits(self)) {
        (void)snprintf(ret_text, PS_TEXT_MAX + 1, "waits for the rows from another worker");
    } else if (!self->is_sent) {
        (void)snprintf(ret_text, PS_TEXT_MAX + 1,
                       "waits for %" PRIu32 " earlier calls to this partition",
                       self->queue->n_sent);
    } else {
        (void)snprintf(ret_text, PS_TEXT_MAX + 1, "no answer yet");
    }
}

/* Adds what else is in the way. */
static void add(char ret_text[PS_TEXT_MAX + 1], const char *what, const char *text)
{
    size_t size = strlen(ret_text);

    (void)snprintf(ret_text + size, PS_TEXT_MAX + 1 - size, "; %s%s", what, text);
}

const char *ps_slice_request_reason(const psd_client_t *client, const ps_slice_request_t *self,
                                    char ret_text[PS_TEXT_MAX + 1])
{
    char registry[PS_FINDER_TEXT];

    print_reason(client, self, ret_text);
    if (client->routes_asked != 0 && client->finder.n > 1 && ps_finder_is_lost(&client->finder)) {
        ps_registry_reason(client, registry);
        add(ret_text, "its new place: ", registry);
    }
    if (client->trouble[0] != '\0') {
        add(ret_text, "a message could not be read: ", client->trouble);
    }
    return ret_text;
}

/* A request whose caller does not wait any more: a push goes on with its own
 * memory, a pull is dropped. */
static void let_go(psd_client_t *client, ps_slice_request_t *request)
{
    TAILQ_REMOVE(&request->ticket->requests, request, in_ticket);
    ps_trace_cut_off(request);
    request->ticket = NULL;
    if (request->kind == PS_REQUEST_PULL && request->op == 0) {
        if (ps_by_peer_waits(request)) {
            TAILQ_REMOVE(&client->sent, request, in_list);
            ps_by_peer_drop(client, request);
        } else {
            ps_queue_remove(client, request);
        }
        ps_slice_request_end(client, request, PSD_DEADLINE, NULL);
        return;
    }
    ps_loan_call_in(client, request);
}

/* Before its requests have ended: nothing is written to its values any more. */
static void cut_off(psd_client_t *client, ps_ticket_t *self, psd_status_t status, const char *text)
{
    ps_ticket_note_failure(self, TAILQ_FIRST(&self->requests)->queue->partition, status, text);
    while (!TAILQ_EMPTY(&self->requests)) {
        let_go(client, TAILQ_FIRST(&self->requests));
    }
    ps_ticket_end_if_done(client, self);
}

static void expire(psd_client_t *client, ps_ticket_t *self)
{
    char why[PS_TEXT_MAX + 1] = "";
    char text[PS_TEXT_MAX + 64] = "";

    (void)ps_slice_request_reason(client, TAILQ_FIRST(&self->requests), why);
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
        if (ticket->held_ms != 0) {
            continue; /* its time begins when it goes */
        }
        if (ticket->deadline_ms <= now_ms) {
            expire(client, ticket);
        } else if (ticket->deadline_ms < client->expire_ms) {
            client->expire_ms = ticket->deadline_ms;
        }
    }
}

static void tell(const psd_client_t *client, const ps_ticket_t *self, uint64_t passed_ms)
{
    const ps_slice_request_t *first = TAILQ_FIRST(&self->requests);
    char why[PS_TEXT_MAX + 1] = "";
    char name[PS_TICKET_NAME_SIZE] = "";
    char what[sizeof why + sizeof name + 100];

    ps_ticket_name(self, name);
    (void)snprintf(
        what, sizeof what,
        "%s, partition %" PRIu32 ": %" PRIu64 " s passed: %s; waiting %" PRIu64 " s more", name,
        first->queue->partition, passed_ms / 1000, ps_slice_request_reason(client, first, why),
        (self->timeout_ms - passed_ms) / 1000);
    client->options.on_wait(client->options.on_wait_user, what);
}

void ps_tickets_were_away(psd_client_t *client)
{
    if (client->quiet_ms < client->now_ms + PS_TOLD_MS) {
        client->quiet_ms = client->now_ms + PS_TOLD_MS;
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
    due_ms = begun_ms + PS_TOLD_MS;
    due_ms = due_ms < client->quiet_ms ? client->quiet_ms : due_ms;
    if (due_ms > now_ms) {
        client->tell_ms = due_ms;
        return;
    }
    client->quiet_ms = now_ms + QUIET_MS;
    client->tell_ms = client->quiet_ms;
    tell(client, oldest, now_ms - begun_ms);
}

psd_status_t ps_ticket_overdue(const psd_client_t *client, const ps_ticket_t *self,
                               uint64_t waited_ms, psd_error_t *err)
{
    const ps_slice_request_t *first = TAILQ_FIRST(&self->requests);
    char why[PS_TEXT_MAX + 1] = "";
    char name[PS_TICKET_NAME_SIZE] = "";

    ps_ticket_name(self, name);
    return psd_error_set(err, PSD_DEADLINE, "%s, partition %" PRIu32 ": %" PRIu64 " ms passed: %s",
                         name, first->queue->partition, waited_ms,
                         ps_slice_request_reason(client, first, why));
}
