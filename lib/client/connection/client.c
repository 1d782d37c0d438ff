/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to a cluster and closing; waiting for what was started. */
#include "psd/client.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/connection/client_state.h"
#include "client/requests/draft.h"
#include "client/job/job.h"
#include "client/connection/nearest.h"
#include "client/requests/ticket.h"
#include "transport/threads/fork.h"
#include "transport/sockets/reach.h"

#define RESEND_MS 250
#define HIGH_WATER 1000
#define LINGER_MS 100
#define LOOK_MS 30   /* without a welcome, before it is looked who listens */
#define TOLD_MS 1000 /* of waiting for a welcome, before it is told of */
#define WHY_MS 200   /* to find out why there is none */

void ps_client_break(psd_client_t *self, psd_status_t status, const char *text)
{
    if (self->broken == PSD_OK) {
        self->broken = status == PSD_OK ? PSD_FAILED : status;
        (void)snprintf(self->broken_text, sizeof self->broken_text, "%s", text);
    }
}

bool ps_client_is_forked(const psd_client_t *self)
{
    return ps_fork_is_since(self->n_forks);
}

psd_status_t ps_client_enter(const psd_client_t *self, psd_error_t *err)
{
    psd_error_clear(err);
    return ps_client_is_forked(self) ? ps_fork_error("client", err) : PSD_OK;
}

psd_status_t ps_client_check(const psd_client_t *self, psd_error_t *err)
{
    const char *text = self->broken_text;
    psd_status_t broken = self->broken;

    if (broken == PSD_OK && self->session != NULL) {
        broken = ps_session_broken(self->session, &text);
    }
    if (broken == PSD_OK) {
        return PSD_OK;
    }
    return psd_error_set(err, broken == PSD_ROWS_LOST ? PSD_ROWS_LOST : PSD_CLOSED,
                         "client is broken: %s: %s", psd_status_text(broken), text);
}

void ps_client_init(psd_client_t *self)
{
    self->n_forks = ps_fork_count();
    TAILQ_INIT(&self->questions);
    TAILQ_INIT(&self->busy);
    TAILQ_INIT(&self->sent);
    TAILQ_INIT(&self->ended);
    TAILQ_INIT(&self->spare);
    TAILQ_INIT(&self->open_tickets);
    TAILQ_INIT(&self->done_tickets);
    TAILQ_INIT(&self->idle_tickets);
    TAILQ_INIT(&self->drafts);
    self->expire_ms = UINT64_MAX;
    self->tell_ms = UINT64_MAX;
    self->doubt_ms = UINT64_MAX;
    self->routes_due_ms = UINT64_MAX;
}

/* ---- connecting ---------------------------------------------------------- */

static psd_status_t open_control(psd_client_t *self, psd_error_t *err)
{
    const ps_socket_args_t args = {.context = self->context,
                                   .high_water = HIGH_WATER,
                                   .frame_bytes = PS_DOC_BYTES_MAX,
                                   .chunk_bytes = PS_DOC_BYTES_MAX,
                                   .linger_ms = LINGER_MS,
                                   .patience_ms = PS_PATIENCE_SMALL_MS};

    return ps_socket_connect(self->endpoint, &args, &self->control, err);
}

static psd_status_t make(const char *endpoint, const psd_options_t *options,
                         psd_client_t **ret_client, psd_error_t *err)
{
    PSD_AUTO(psd_close) psd_client_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    ps_client_init(self);
    if (options != NULL) {
        self->options = *options;
    }
    rc = ps_options_resolve(&self->options, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->endpoint = ps_strdup(endpoint);
    self->scratch = psd_error_new();
    if (self->endpoint == NULL || self->scratch == NULL ||
        !ps_grow(&self->polled, &self->polled_capacity, 1, sizeof(ps_socket_t *)) ||
        !ps_grow(&self->ready, &self->ready_capacity, 1, sizeof *self->ready)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    rc = ps_random(&self->id, sizeof self->id, err);
    if (rc == PSD_OK) {
        rc = ps_context_new(1, &self->context, err);
    }
    if (rc == PSD_OK) {
        rc = open_control(self, err);
    }
    if (rc == PSD_OK) {
        *ret_client = self;
        self = NULL;
    }
    return rc;
}

static psd_status_t read_welcome(psd_client_t *self, const ps_doc_t *reply, psd_error_t *err)
{
    const ps_doc_t *cluster = NULL;
    psd_status_t rc = ps_doc_get_object(reply, "cluster", &cluster, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_id(cluster, "uuid", &self->cluster, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(reply, "session", 1, UINT64_MAX, &self->number, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(reply, "heartbeat_ms", 1, 3600000, &self->heartbeat_ms, err);
    }
    return rc;
}

/* Says why nobody has answered, and for how long that is waited for. */
static void tell_wait(const psd_client_t *self, const char *why, uint32_t left_ms)
{
    char what[PS_REACH_TEXT + 400];

    (void)snprintf(what, sizeof what, "%.300s: no answer for %g s%s%s; waiting %g s more",
                   self->endpoint, TOLD_MS / 1000.0, why[0] == '\0' ? "" : ": ", why,
                   left_ms / 1000.0);
    self->options.on_wait(self->options.on_wait_user, what);
}

/* Nobody listens there, and that is not waited out. */
static bool is_final(const psd_client_t *self, ps_reach_t outcome)
{
    if (self->options.has_wait) {
        return !self->options.waits &&
               (outcome == PS_REACH_REFUSED || outcome == PS_REACH_REFUSED_HERE);
    }
    return outcome == PS_REACH_REFUSED_HERE;
}

static uint32_t left_until(uint64_t deadline_ms)
{
    uint64_t now_ms = ps_now_ms();

    return now_ms < deadline_ms ? (uint32_t)(deadline_ms - now_ms) : 0;
}

/* Asks for a welcome, in three steps: after a moment it is looked whether
 * anybody listens there, and after a while it is told of the wait. A hello that
 * is said twice is one. */
static psd_status_t say_hello(psd_client_t *self, ps_doc_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *hello = ps_control_hello(&self->id);
    const uint32_t steps_ms[] = {LOOK_MS, TOLD_MS, UINT32_MAX};
    const uint64_t start_ms = ps_now_ms();
    const uint64_t deadline_ms = start_ms + self->options.timeout_ms;
    psd_status_t rc = PSD_DEADLINE;

    for (size_t i = 0; i < 3 && rc == PSD_DEADLINE && *ret_reply == NULL; i++) {
        uint64_t until_ms = start_ms + steps_ms[i];
        char why[PS_REACH_TEXT];
        ps_reach_t outcome = PS_REACH_UNKNOWN;

        psd_error_clear(err);
        rc =
            ps_control_ask(self, hello, left_until(until_ms < deadline_ms ? until_ms : deadline_ms),
                           0, ret_reply, err);
        if (rc != PSD_DEADLINE || *ret_reply != NULL || until_ms >= deadline_ms) {
            return rc;
        }
        outcome = ps_reach_why(self->endpoint, WHY_MS, why);
        if (is_final(self, outcome)) {
            psd_error_clear(err);
            return psd_error_set(err, PSD_CONNECT, "%s", why);
        }
        if (steps_ms[i] == TOLD_MS && self->options.on_wait != NULL) {
            tell_wait(self, why, left_until(deadline_ms));
        }
    }
    return rc;
}

static psd_status_t greet(psd_client_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    char why[PS_REACH_TEXT];
    ps_reach_t outcome = PS_REACH_UNKNOWN;
    psd_status_t rc = say_hello(self, &reply, err);

    if (rc == PSD_DEADLINE && reply == NULL) {
        psd_error_clear(err);
        outcome = ps_reach_why(
            self->endpoint, self->options.timeout_ms < WHY_MS ? self->options.timeout_ms : WHY_MS,
            why);
        if (is_final(self, outcome)) {
            return psd_error_set(err, PSD_CONNECT, "%s", why);
        }
        return psd_error_set(err, PSD_CONNECT, "no answer from %s within %" PRIu32 " ms%s%s",
                             self->endpoint, self->options.timeout_ms, why[0] == '\0' ? "" : ": ",
                             why);
    }
    if (rc == PSD_OK) {
        rc = read_welcome(self, reply, err);
    }
    return rc;
}

psd_status_t psd_connect(const char *endpoint, const psd_options_t *options,
                         psd_client_t **ret_client, psd_error_t *err)
{
    psd_error_clear(err);

    PSD_AUTO(psd_close) psd_client_t *self = NULL;
    ps_session_args_t args = {.resend_ms = RESEND_MS};
    char nearest[PS_ENDPOINT_MAX + 1];
    psd_status_t rc = PSD_OK;

    if (endpoint == NULL) {
        endpoint = getenv("PSD_ENDPOINT");
    }
    if (endpoint == NULL || endpoint[0] == '\0') {
        ps_nearest_endpoint(nearest);
        endpoint = nearest;
    }
    rc = make(endpoint, options, &self, err);
    if (rc == PSD_OK) {
        rc = greet(self, err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "connect to %.300s", endpoint);
    }
    args.cluster = self->cluster;
    args.client = self->id;
    args.session = self->number;
    args.filters = PS_FILTER_BITS_ALL;
    rc = ps_session_new(&args, &self->session, err);
    if (rc == PSD_OK) {
        *ret_client = self;
        self = NULL;
    }
    return rc;
}

/* ---- closing ------------------------------------------------------------- */

static void free_tables(psd_client_t *self)
{
    for (size_t i = 0; i < self->n_tables; i++) {
        ps_free(self->tables[i]->queues);
        ps_free(self->tables[i]);
    }
    ps_free(self->tables);
}

void psd_close(psd_client_t **client_p)
{
    psd_client_t *self = client_p == NULL ? NULL : *client_p;

    if (self == NULL) {
        return;
    }
    *client_p = NULL;
    ps_membership_end(self);
    ps_links_close(self);
    ps_socket_close(&self->control);
    ps_context_destroy(&self->context); /* nobody looks at payloads now */
    ps_errands_done(self);
    ps_tickets_done(self);
    ps_outbox_done(&self->outbox);
    ps_outbox_done(&self->batch);
    ps_session_destroy(&self->session);
    ps_drafts_done(self); /* no payload is left */
    psd_error_destroy(&self->scratch);
    free_tables(self);
    ps_free(self->endpoint);
    ps_free(self);
}

/* ---- waiting ------------------------------------------------------------- */

static psd_status_t no_ticket(psd_ticket_t ticket, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "ticket %" PRIu64 " is not one of this client's that "
                         "is still to be waited for",
                         ticket);
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
    ps_pump(client, 0);
    *ret_done = found->has_ended;
    return PSD_OK;
}

size_t ps_client_n_unknown(const psd_client_t *client)
{
    return ps_session_pending(client->session, false) + client->n_waiting;
}

/* Why one of the errands has not ended. */
static const char *any_reason(const psd_client_t *client, char ret_text[PS_TEXT_MAX + 1])
{
    const ps_errand_t *errand = NULL;

    TAILQ_FOREACH(errand, &client->sent, in_list)
    {
        if (errand->kind != PS_ERRAND_PULL) {
            return ps_errand_reason(client, errand, ret_text);
        }
    }
    return "they wait for their turn";
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
    rc = ps_control_ask(client, question, timeout_ms, 0, &reply, err);
    if (reply != NULL) {
        if (!ps_doc_print(reply, &text) || !ps_buffer_append(&text, "", 1)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a reply");
        }
        *ret_reply = (char *)text.data;
        text = (ps_buffer_t){.size = 0};
    }
    return rc;
}
