/* SPDX-License-Identifier: Apache-2.0 */
/* Handles a partition's answer to one slice: copies values to their places,
 * ends the request, or asks for the rest after a partial answer. */
#include "base/alloc.h"
#include "base/cursor.h"
#include "client/requests/by_peer.h"
#include "client/requests/lend.h"
#include "client/requests/result.h"
#include "client/requests/trace.h"

static void release_payload(void *owner)
{
    ps_payload_t *payload = owner;

    ps_payload_destroy(&payload);
}

/* The rows after the first n_done, as keys and columns; borrowed from the
 * payload, which lives as long. */
static ps_payload_t *payload_of_rest(ps_payload_t *payload, bool lists_keys, uint64_t n_done)
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

/* Asks for the rows after the first n_done. */
static psd_status_t ask_for_rest(psd_client_t *client, ps_slice_request_t *self, uint64_t n_done)
{
    bool lists_keys = self->slice.rows == PS_ROWS_LIST;
    ps_payload_t *rest = NULL;

    if (self->payload != NULL) {
        rest = payload_of_rest(self->payload, lists_keys, n_done);
        if (rest == NULL) {
            return PSD_NOMEM;
        }
        ps_payload_destroy(&self->payload);
        self->payload = rest;
    }
    if (self->kind == PS_REQUEST_PUSHPULL) {
        self->kind = PS_REQUEST_PULL;
        self->row_op = (ps_row_op_args_t){.op = 0};
    }
    self->n_sends = self->n_fixed_sends = 0;
    self->slice.n_values = 0;
    self->slice.n_rows -= n_done;
    self->slice.first_row += lists_keys ? 0 : n_done;
    ps_slice_request_send(client, self);
    return PSD_OK;
}

/* It is a number, or rows, and not those that a plain pull names. */
static bool measures(const ps_slice_request_t *self)
{
    return self->kind == PS_REQUEST_PULL && self->row_op.op != PS_READ_VALUES &&
           self->row_op.op != PS_READ_TOP;
}

static bool finds(const ps_slice_request_t *self)
{
    return self->kind == PS_REQUEST_PULL &&
           (self->row_op.op == PS_READ_TOP || self->row_op.since > 0);
}

static bool number_fits(const ps_slice_request_t *self, const ps_slice_t *got,
                        const ps_payload_t *payload)
{
    ps_type_t type = self->row_op.op == PS_READ_NONZEROS ? PS_TYPE_I64 : PS_TYPE_F64;

    return got->type == type && got->n_values == 1 && payload != NULL && payload->n_spans == 1 &&
           payload->spans[0].size == sizeof(double);
}

/* Rows that the server chose name themselves. */
static bool found_fit(const ps_slice_request_t *self, const ps_slice_t *got)
{
    bool is_top = self->row_op.op == PS_READ_TOP;
    ps_layout_t layout = is_top ? PS_LAYOUT_SPARSE : self->slice.layout;

    return got->rows == PS_ROWS_LIST && got->layout == layout && got->type == self->slice.type &&
           (is_top || layout == PS_LAYOUT_SPARSE || got->n_rows == 0 ||
            got->n_cols == self->slice.n_cols);
}

/* The rows are those asked for, in that order. */
static bool rows_fit(const ps_slice_request_t *self, const ps_slice_t *got, uint64_t n_done,
                     const ps_ticket_t *ticket)
{
    const ps_slice_t *want = &self->slice;
    bool all = want->rows == PS_ROWS_LIST || got->rows == PS_ROWS_ASKED || ticket->result == NULL;

    return got->type == want->type && got->layout == want->layout &&
           (all ? got->n_rows == n_done : got->n_rows <= n_done) &&
           (got->n_rows == 0 || got->layout == PS_LAYOUT_SPARSE ||
            (got->n_cols == want->n_cols && got->n_values == got->n_rows * got->n_cols));
}

/* The answer is about what was asked. */
static bool values_fit(const ps_slice_request_t *self, const ps_slice_t *got, uint64_t n_done,
                       const ps_payload_t *payload)
{
    if (n_done == 0 || n_done > self->slice.n_rows) {
        return false;
    }
    if (measures(self)) {
        return number_fits(self, got, payload);
    }
    return finds(self) ? found_fit(self, got) : rows_fit(self, got, n_done, self->ticket);
}

static void add_up(const ps_slice_request_t *self, const ps_message_t *message,
                   const ps_payload_t *payload)
{
    ps_aggregate_t *aggregate = self->aggregate;

    if (aggregate->version == 0) {
        aggregate->version = message->values.version;
    }
    if (!measures(self)) {
        return;
    }
    if (self->row_op.op == PS_READ_NONZEROS) {
        aggregate->count += ps_load_u64(payload->spans[0].data);
    } else {
        aggregate->number += ps_load_f64(payload->spans[0].data);
    }
}

static psd_status_t keep_values(const psd_client_t *client, ps_slice_request_t *self,
                                const ps_message_t *message, const ps_slice_t *got,
                                ps_payload_t *payload)
{
    ps_ticket_t *ticket = self->ticket;
    size_t n_done = (size_t)message->values.n_done;

    if (self->aggregate != NULL) {
        add_up(self, message, payload);
    }
    if (measures(self)) {
        return PSD_OK;
    }
    if (ticket->result != NULL) {
        return ps_result_add(ticket->result, got, payload, &self->slice, self->payload);
    }
    ps_places_scatter(&self->places, payload, n_done, got->n_cols, ps_type_size(got->type),
                      ticket->values);
    ps_places_skip(&self->places, n_done);
    ps_by_peer_pass_on(client, self, payload, n_done);
    return PSD_OK;
}

static void take_values(psd_client_t *client, ps_slice_request_t *self, const ps_message_t *message,
                        ps_payload_t *payload)
{
    ps_ticket_t *ticket = self->ticket;
    uint64_t n_done = message->values.n_done;
    ps_slice_t got = {0};
    bool is_done = false;
    psd_status_t rc = PSD_OK;

    ps_message_slice(message, &got);
    if (ticket == NULL) {
        ps_slice_request_end(client, self, PSD_OK, NULL);
        return;
    }
    if (!values_fit(self, &got, n_done, payload)) {
        ps_slice_request_end(client, self, PSD_PROTO,
                             "the values received are not those asked for");
        return;
    }
    rc = keep_values(client, self, message, &got, payload);
    is_done = n_done == self->slice.n_rows ||
              (ticket->result != NULL && ps_result_is_full(ticket->result));
    if (rc == PSD_OK && !is_done) {
        rc = ask_for_rest(client, self, n_done);
    }
    if (rc != PSD_OK || is_done) {
        ps_slice_request_end(client, self, rc, psd_status_text(rc));
    }
}

static void take_refusal(psd_client_t *client, ps_slice_request_t *self,
                         const ps_msg_refused_t *refused)
{
    psd_status_t status = (psd_status_t)refused->status;

    if (status == PSD_OK || psd_status_name(status)[0] == '?') {
        status = PSD_PROTO;
    }
    ps_slice_request_end(client, self, status,
                         client->broken == PSD_OK ? refused->text : client->broken_text);
}

void ps_slice_request_answered(psd_client_t *client, ps_slice_request_t *self,
                               const ps_message_t *message, ps_payload_t *payload)
{
    bool wants_values = self->kind == PS_REQUEST_PULL || self->kind == PS_REQUEST_PUSHPULL;

    TAILQ_REMOVE(&client->sent, self, in_list);
    self->op = 0;
    ps_trace_answered(self, message);
    if (message->kind == PS_KIND_REFUSED) {
        take_refusal(client, self, &message->refused);
        return;
    }
    self->was_answered = true;
    if (self->metered_us != 0) {
        ps_lend_metered(client, self);
    }
    if (message->kind == PS_KIND_VALUES && self->by_peer != NULL) {
        ps_by_peer_digest(client, self, message, payload);
    } else if (message->kind == PS_KIND_VALUES && wants_values) {
        take_values(client, self, message, payload);
    } else if (message->kind == PS_KIND_ACK && !wants_values) {
        ps_slice_request_end(client, self, PSD_OK, NULL);
    } else {
        ps_slice_request_end(client, self, PSD_PROTO, "the answer is of another kind");
    }
}
