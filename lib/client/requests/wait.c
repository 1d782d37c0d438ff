/* SPDX-License-Identifier: Apache-2.0 */
/* A waiting call lets the client take turns: it waits for a ticket, for the
 * answer to a question, for the shards' WELCOME, or for time to pass. */
#include "client/requests/wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/requests/hold.h"
#include "client/requests/pump.h"
#include "psd/client.h"

#define BUSY_MS 100 /* between two tries of what could not be done */
#define GREET_MS 250

psd_status_t ps_client_want_session(psd_client_t *self, uint32_t timeout_ms, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + timeout_ms;
    char why[PS_FINDER_TEXT];

    while (ps_client_is_guest(self) && self->broken == PSD_OK && ps_now_ms() < until_ms) {
        ps_pump(self, until_ms);
    }
    if (self->broken != PSD_OK || !ps_client_is_guest(self)) {
        return PSD_OK; /* whoever goes on says the former */
    }
    ps_registry_reason(self, why);
    return psd_error_set(err, PSD_NOT_LEADER,
                         "this client connected while the registry had no leader, and got no "
                         "session within %" PRIu32 " ms%s%s",
                         timeout_ms, why[0] == '\0' ? "" : "; ", why);
}

psd_status_t ps_question_ask(psd_client_t *self, ps_doc_t *question, uint32_t timeout_ms,
                             uint32_t grace_ms, ps_doc_t **ret_reply, psd_error_t *err)
{
    ps_client_question_t asked = {.id = 0};
    bool over = false;
    uint64_t begun_ms = ps_now_ms();
    uint64_t took_ms = 0;
    psd_status_t rc = PSD_OK;

    if (ps_client_is_guest(self) && question != NULL && !ps_request_is_of_map(question)) {
        rc = ps_client_want_session(self, timeout_ms, err);
        took_ms = ps_now_ms() - begun_ms;
        took_ms = took_ms < timeout_ms ? took_ms : timeout_ms;
    }
    if (rc == PSD_OK) {
        rc = ps_question_begin(self, question, timeout_ms - (uint32_t)took_ms, grace_ms, &asked,
                               err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_pump(self, 0); /* an answer may be there with no time to wait */
    rc = ps_question_look(self, &asked, &over, err);
    while (rc == PSD_OK && !over) {
        ps_pump(self, ps_question_wake_ms(&asked));
        rc = ps_question_look(self, &asked, &over, err);
    }
    return rc == PSD_OK ? ps_question_end(self, &asked, ret_reply, err) : rc;
}

void ps_wait_ms(psd_client_t *client, uint64_t wait_ms)
{
    uint64_t until_ms = ps_now_ms() + wait_ms;

    while (ps_now_ms() < until_ms && ps_client_check(client, NULL) == PSD_OK) {
        ps_pump(client, until_ms);
    }
}

psd_status_t ps_control_insist(psd_client_t *self, ps_doc_t *question, ps_doc_t **ret_reply,
                               psd_error_t *err)
{
    uint64_t deadline_ms = ps_now_ms() + self->options.timeout_ms;
    psd_status_t rc = PSD_BUSY;

    for (;;) {
        uint64_t now_ms = ps_now_ms();
        uint32_t left_ms = now_ms < deadline_ms ? (uint32_t)(deadline_ms - now_ms) : 0;

        rc = ps_question_ask(self, question, left_ms, 0, ret_reply, err);
        if (rc != PSD_BUSY || ps_now_ms() + BUSY_MS >= deadline_ms) {
            return rc;
        }
        ps_doc_destroy(ret_reply);
        psd_error_clear(err);
        ps_wait_ms(self, BUSY_MS);
    }
}

void ps_wait_for_welcome(psd_client_t *client)
{
    uint64_t until_ms = ps_now_ms() + GREET_MS;

    while (!ps_links_are_welcome(client) && ps_now_ms() < until_ms &&
           ps_client_check(client, NULL) == PSD_OK) {
        ps_pump(client, until_ms);
    }
}

psd_status_t ps_ticket_wait(psd_client_t *client, ps_ticket_t *self, uint64_t wait_ms,
                            psd_error_t *err)
{
    uint64_t until_ms = UINT64_MAX;

    if (self->held_ms != 0) {
        ps_hold_end(client);
    }
    if (!self->has_ended && wait_ms < UINT64_MAX) {
        client->now_ms = ps_now_ms();
        until_ms = client->now_ms + wait_ms;
    }
    while (!self->has_ended) {
        ps_pump(client, until_ms); /* once, however little time there is */
        if (client->now_ms >= until_ms) {
            break;
        }
    }
    return self->has_ended ? ps_ticket_use_up(client, self, err)
                           : ps_ticket_overdue(client, self, wait_ms, err);
}

static psd_status_t no_ticket(psd_ticket_t ticket, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "ticket %" PRIu64 " is not a pending ticket of this client", ticket);
}

psd_status_t psd_wait(psd_client_t *client, psd_ticket_t ticket, uint32_t timeout_ms,
                      psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_ticket_t *found = ps_ticket_find(client, ticket);

    if (found == NULL) {
        return no_ticket(ticket, err);
    }
    return ps_ticket_wait(client, found, timeout_ms, err);
}

/* Every ticket has ended, or time is over. */
static void wait_for_open_tickets(psd_client_t *client, uint32_t timeout_ms)
{
    uint64_t until_ms = 0;

    ps_hold_end(client);
    ps_pump(client, 0);
    until_ms = client->now_ms + timeout_ms;
    while (!TAILQ_EMPTY(&client->open_tickets) && client->now_ms < until_ms) {
        ps_pump(client, until_ms);
    }
}

psd_status_t psd_wait_all(psd_client_t *client, uint32_t timeout_ms, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t first = PSD_OK;

    wait_for_open_tickets(client, timeout_ms);
    if (!TAILQ_EMPTY(&client->open_tickets)) {
        return ps_ticket_overdue(client, TAILQ_FIRST(&client->open_tickets), timeout_ms, err);
    }
    while (!TAILQ_EMPTY(&client->done_tickets)) {
        psd_status_t rc = ps_ticket_use_up(client, TAILQ_FIRST(&client->done_tickets),
                                           first == PSD_OK ? err : NULL);

        first = first == PSD_OK ? rc : first;
    }
    return first;
}

psd_status_t psd_poll(psd_client_t *client, psd_ticket_t ticket, bool *ret_done, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    const ps_ticket_t *found = ps_ticket_find(client, ticket);

    if (found == NULL) {
        return no_ticket(ticket, err);
    }
    ps_hold_look(client, UINT64_MAX);
    ps_pump(client, 0);
    *ret_done = found->has_ended;
    return PSD_OK;
}

/* Why one of the requests has not ended. */
static const char *any_reason(const psd_client_t *client, char ret_text[PS_TEXT_MAX + 1])
{
    const ps_slice_request_t *request = NULL;

    TAILQ_FOREACH(request, &client->sent, in_list)
    {
        if (request->kind != PS_REQUEST_PULL) {
            return ps_slice_request_reason(client, request, ret_text);
        }
    }
    return "they are queued";
}

psd_status_t psd_flush(psd_client_t *client, uint32_t timeout_ms, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    uint64_t until_ms = 0;
    char why[PS_TEXT_MAX + 1] = "";
    psd_status_t rc = ps_client_check(client, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_hold_end(client);
    ps_pump(client, 0);
    until_ms = client->now_ms + timeout_ms;
    while (ps_client_n_unknown(client) > 0 && client->now_ms < until_ms) {
        ps_pump(client, until_ms);
        rc = ps_client_check(client, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    if (ps_client_n_unknown(client) == 0) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_DEADLINE,
                         "flush: %" PRIu32 " ms passed; %zu pushes and marks "
                         "are not acknowledged: %s",
                         timeout_ms, ps_client_n_unknown(client), any_reason(client, why));
}

psd_status_t psd_request(psd_client_t *client, const char *request, uint32_t timeout_ms,
                         char **ret_reply, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = NULL;
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};
    ps_bytes_t bytes = {.data = (const uint8_t *)request, .size = strlen(request)};
    psd_status_t rc = ps_doc_parse(bytes, &question, err);

    if (rc != PSD_OK) {
        return rc == PSD_PROTO ? psd_error_wrap(err, PSD_INVALID, "request") : rc;
    }
    rc = ps_question_ask(client, question, timeout_ms, 0, &reply, err);
    if (reply != NULL) {
        if (!ps_doc_print(reply, &text) || !ps_buffer_append(&text, "", 1)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a reply");
        }
        *ret_reply = (char *)text.data;
        text = (ps_buffer_t){.size = 0};
    }
    return rc;
}
