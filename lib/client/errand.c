/* SPDX-License-Identifier: Apache-2.0 */
/* One slice on its way to a partition and back. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/job.h"
#include "client/result.h"
#include "client/ticket.h"

/* What the server is told is a little less than the caller's time, so that its
 * DEADLINE, which names who is waited for, comes before the caller's end. */
#define MARGIN_MAX_MS 50

static uint64_t
key_of(const ps_payload_t *payload)
{
    return (uint64_t)(uintptr_t)payload;
}

ps_errand_t *
ps_errand_new(psd_client_t *client, ps_errand_kind_t kind, ps_cut_t *cut)
{
    ps_errand_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return NULL;
    }
    self->kind = kind;
    self->slice = cut->slice;
    if (cut->borrows) {
        if (!ps_map_put(&client->borrower, key_of(cut->payload), self)) {
            ps_free(self);
            return NULL;
        }
        self->borrows = true;
    }
    self->payload = cut->payload;
    cut->payload = NULL;
    self->places = cut->places;
    cut->places = (ps_places_t){.first = 0};
    return self;
}

void
ps_errand_destroy(psd_client_t *client, ps_errand_t **errand_p)
{
    ps_errand_t *self = *errand_p;

    if (self == NULL) {
        return;
    }
    *errand_p = NULL;
    if (self->borrows) {
        (void)ps_map_remove(&client->borrower, key_of(self->payload));
    }
    ps_payload_destroy(&self->payload);
    ps_places_done(&self->places);
    ps_free(self->text);
    ps_free(self);
}

/* Time for the server, from what is left of the ticket's; 0: for ever. */
static uint32_t
server_timeout(const ps_errand_t *self, uint64_t now_ms)
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

static psd_status_t
start(psd_client_t *client, ps_errand_t *self, psd_error_t *err)
{
    uint64_t now_ms = ps_now_ms();
    ps_op_start_t wanted = {
        .table = self->lane->table,
        .partition = self->lane->partition,
        .worker = self->worker,
        .slice = self->slice,
        .payload = self->payload,
        .timeout_ms = server_timeout(self, now_ms),
        .ack = (uint8_t)self->ack,
        .pull = self->kind == PS_ERRAND_PUSHPULL,
        .owner = self,
    };

    switch (self->kind) {
    case PS_ERRAND_PUSH:
    case PS_ERRAND_PUSHPULL:
        wanted.kind = PS_KIND_PUSH;
        break;
    case PS_ERRAND_PULL:
        wanted.kind = PS_KIND_PULL;
        break;
    case PS_ERRAND_MARK:
    default:
        wanted.kind = PS_KIND_MARK;
        break;
    }
    return ps_session_start(client->session, now_ms, &wanted, &client->outbox,
                            &self->op, err);
}

void
ps_errand_send(psd_client_t *client, ps_errand_t *self)
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
    if (!ps_map_put(&client->errand_of, self->op, self)) {
        /* The session goes on, but nobody would hear of its end. */
        ps_client_break(client, PSD_NOMEM, "no memory to follow a request");
        self->op = 0;
        ps_errand_end(client, self, PSD_NOMEM, "no memory to follow it");
        return;
    }
    if (!self->is_sent) {
        self->is_sent = true;
        self->sent_bytes = ps_payload_size(self->payload);
        self->lane->n_sent++;
        self->lane->sent_bytes += self->sent_bytes;
    }
}

void
ps_errand_end(psd_client_t *client,
              ps_errand_t *self,
              psd_status_t status,
              const char *text)
{
    self->status = status;
    if (status != PSD_OK && text != NULL && text[0] != '\0') {
        self->text = ps_strdup(text);
    }
    TAILQ_INSERT_TAIL(&client->ended, self, in_lane);
}

void
ps_errand_finish(psd_client_t *client, ps_errand_t **errand_p)
{
    ps_errand_t *self = *errand_p;
    ps_lane_t *lane = self->lane;

    ps_loan_end(client, self);
    if (self->is_sent) {
        lane->n_sent--;
        lane->sent_bytes -= self->sent_bytes;
    }
    if (self->ticket != NULL) {
        ps_ticket_errand_ended(client, self);
    } else if (self->kind == PS_ERRAND_MARK) {
        ps_membership_marked(client, self->status);
    }
    ps_errand_destroy(client, errand_p);
    ps_lane_run(client, lane);
}

/* ---- answers ------------------------------------------------------------- */

static void
release_payload(void *owner)
{
    ps_payload_t *payload = owner;

    ps_payload_destroy(&payload);
}

/* The rows behind the first n_done, as keys and columns; borrowed from the
 * payload, which lives as long. */
static ps_payload_t *
payload_of_rest(ps_payload_t *payload, bool lists_keys, uint64_t n_done)
{
    ps_bytes_t keys = payload->keys;
    ps_bytes_t none = {NULL, 0};
    ps_payload_t *rest = NULL;

    if (lists_keys) {
        keys.data += n_done * sizeof(uint64_t);
        keys.size -= n_done * sizeof(uint64_t);
    }
    rest = ps_payload_new(keys, payload->index, none, payload, release_payload);
    if (rest != NULL) {
        (void)ps_payload_keep(payload);
    }
    return rest;
}

/* Asks for the rows behind the first n_done. */
static psd_status_t
ask_for_rest(psd_client_t *client, ps_errand_t *self, uint64_t n_done)
{
    bool lists_keys = self->slice.rows == PS_ROWS_LIST;
    ps_payload_t *rest = NULL;

    if (self->payload != NULL) {
        rest = payload_of_rest(self->payload, lists_keys, n_done);
        if (rest == NULL ||
            (self->borrows &&
             !ps_map_put(&client->borrower, key_of(rest), self))) {
            ps_payload_destroy(&rest);
            return PSD_NOMEM;
        }
        if (self->borrows) {
            (void)ps_map_remove(&client->borrower, key_of(self->payload));
        }
        ps_payload_destroy(&self->payload);
        self->payload = rest;
    }
    self->kind = PS_ERRAND_PULL;
    self->n_sends = 0;
    self->slice.n_values = 0;
    self->slice.n_rows -= n_done;
    self->slice.first_row += lists_keys ? 0 : n_done;
    ps_errand_send(client, self);
    return PSD_OK;
}

/* The answer is about what was asked. */
static bool
values_fit(const ps_errand_t *self,
           const ps_slice_t *got,
           uint64_t n_done,
           const ps_ticket_t *ticket)
{
    const ps_slice_t *want = &self->slice;

    if (n_done == 0 || n_done > want->n_rows || got->n_rows > n_done ||
        got->type != want->type || got->layout != want->layout) {
        return false;
    }
    if (ticket->result == NULL && got->n_rows != n_done) {
        return false;
    }
    if (want->rows == PS_ROWS_LIST && got->n_rows != n_done) {
        return false;
    }
    return got->n_rows == 0 || got->layout == PS_LAYOUT_SPARSE ||
           (got->n_cols == want->n_cols &&
            got->n_values == got->n_rows * got->n_cols);
}

static void
take_values(psd_client_t *client,
            ps_errand_t *self,
            const ps_message_t *message,
            ps_payload_t *payload)
{
    ps_ticket_t *ticket = self->ticket;
    uint64_t n_done = message->values.n_done;
    ps_slice_t got = {0};
    bool is_done = false;
    psd_status_t rc = PSD_OK;

    ps_message_slice(message, &got);
    if (ticket == NULL) {
        ps_errand_end(client, self, PSD_OK, NULL);
        return;
    }
    if (!values_fit(self, &got, n_done, ticket)) {
        ps_errand_end(client, self, PSD_PROTO,
                      "the values sent are not those asked for");
        return;
    }
    if (ticket->result != NULL) {
        rc = ps_result_add(ticket->result, &got, payload, NULL);
    } else {
        ps_places_scatter(&self->places, payload, (size_t)n_done, got.n_cols,
                          ps_type_size(got.type), ticket->values);
        ps_places_skip(&self->places, (size_t)n_done);
    }
    is_done = n_done == self->slice.n_rows ||
              (ticket->result != NULL && ps_result_is_full(ticket->result));
    if (rc == PSD_OK && !is_done) {
        rc = ask_for_rest(client, self, n_done);
    }
    if (rc != PSD_OK || is_done) {
        ps_errand_end(client, self, rc, psd_status_text(rc));
    }
}

static void
take_refusal(psd_client_t *client,
             ps_errand_t *self,
             const ps_msg_refused_t *refused)
{
    psd_status_t status = (psd_status_t)refused->status;

    if (status == PSD_OK || psd_status_name(status)[0] == '?') {
        status = PSD_PROTO;
    }
    ps_errand_end(client, self, status,
                  client->broken == PSD_OK ? refused->text
                                           : client->broken_text);
}

void
ps_errand_answered(psd_client_t *client,
                   ps_errand_t *self,
                   const ps_message_t *message,
                   ps_payload_t *payload)
{
    bool wants_values =
        self->kind == PS_ERRAND_PULL || self->kind == PS_ERRAND_PUSHPULL;

    self->op = 0;
    if (message->kind == PS_KIND_REFUSED) {
        take_refusal(client, self, &message->refused);
        return;
    }
    self->was_answered = true;
    if (message->kind == PS_KIND_VALUES && wants_values) {
        take_values(client, self, message, payload);
    } else if (message->kind == PS_KIND_ACK && !wants_values) {
        ps_errand_end(client, self, PSD_OK, NULL);
    } else {
        ps_errand_end(client, self, PSD_PROTO, "the answer is of another kind");
    }
}

/* Why it has not ended, without what else is amiss. */
static void
print_reason(const psd_client_t *client,
             const ps_errand_t *self,
             char ret_text[PS_TEXT_MAX + 1])
{
    const ps_ticket_t *after =
        self->after == 0 ? NULL : ps_map_get(&client->ticket_of, self->after);
    const char *reason = "";

    if (self->op != 0) {
        reason = ps_session_reason(client->session, ps_now_ms(), self->op);
    }
    if (reason[0] != '\0') {
        (void)snprintf(ret_text, PS_TEXT_MAX + 1, "%.*s", PS_TEXT_MAX, reason);
    } else if (after != NULL && !after->has_ended) {
        (void)snprintf(ret_text, PS_TEXT_MAX + 1,
                       "waits for ticket %" PRIu64 ", a %s", self->after,
                       after->what);
    } else if (!self->is_sent) {
        (void)snprintf(ret_text, PS_TEXT_MAX + 1,
                       "waits for %" PRIu32 " earlier calls to this partition",
                       self->lane->n_sent);
    } else {
        (void)snprintf(ret_text, PS_TEXT_MAX + 1, "no answer yet");
    }
}

const char *
ps_errand_reason(const psd_client_t *client,
                 const ps_errand_t *self,
                 char ret_text[PS_TEXT_MAX + 1])
{
    size_t size = 0;

    print_reason(client, self, ret_text);
    size = strlen(ret_text);
    if (client->trouble[0] != '\0') {
        (void)snprintf(ret_text + size, PS_TEXT_MAX + 1 - size,
                       "; a message could not be read: %s", client->trouble);
    }
    return ret_text;
}
