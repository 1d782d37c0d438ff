/* SPDX-License-Identifier: Apache-2.0 */
/* Push, pull and pushpull: a call becomes a ticket with a request for each
 * slice. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "client/requests/call.h"
#include "client/requests/hold.h"
#include "client/requests/marks.h"
#include "client/requests/pump.h"
#include "client/requests/thin.h"
#include "client/requests/trace.h"
#include "client/requests/wait.h"

/* Everyday pushes up to this size are copied: that costs less than to get the
 * caller's memory back from sockets when a deadline passes. */
#define COPY_MAX_BYTES (UINT64_C(16) << 10)
/* The size of slices before a WELCOME gives the limit, and the maximum: slices
 * smaller than the limit are sent, applied and resent with less waiting. */
#define SLICE_BYTES (UINT64_C(4) << 20)

static const char *kind_name(ps_request_kind_t kind)
{
    switch (kind) {
    case PS_REQUEST_PUSH:
        return "push to";
    case PS_REQUEST_PUSHPULL:
        return "pushpull of";
    case PS_REQUEST_PULL:
    case PS_REQUEST_MARK:
    default:
        return "pull of";
    }
}

uint64_t ps_call_slice_bytes(const psd_client_t *client)
{
    uint64_t limit = ps_session_slice_bytes(client->session);

    return limit < SLICE_BYTES ? limit : SLICE_BYTES;
}

/* The call's own filter, or the table's. */
static ps_filter_t filter_of(const ps_call_t *call)
{
    return call->options != NULL && call->options->has_filter ? call->options->filter
                                                              : call->table->filter;
}

/* Makes the request of one cut, in no queue yet. */
static psd_status_t make_request(const ps_call_t *call, ps_cut_t *cut, ps_aggregate_t *aggregate,
                                 ps_ticket_t *ticket, psd_error_t *err)
{
    psd_client_t *client = call->table->client;
    ps_slice_request_t *request = ps_slice_request_new(client, call->kind, cut);

    if (request == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a request");
    }
    request->queue = &call->table->known->queues[cut->partition];
    request->row_op = call->row_op;
    if (call->since != NULL) {
        request->row_op.since = call->since[cut->partition];
    }
    request->aggregate = aggregate;
    if (aggregate != NULL) {
        aggregate->partition = cut->partition;
    }
    request->worker = client->worker.stamp;
    request->round = client->round;
    if (call->options != NULL) {
        request->ack = call->options->ack;
        request->priority = call->options->priority;
        request->after = call->options->after;
    }
    request->filter = filter_of(call);
    request->detour = ps_filter_bits(&request->filter) != 0 ? PS_DETOUR_FILTER : 0;
    ps_ticket_add(ticket, request);
    return call->options != NULL && call->options->trace != NULL
               ? ps_trace_begin(call->options->trace, request, err)
               : PSD_OK;
}

static uint32_t timeout_of(const ps_call_t *call)
{
    return call->options != NULL && call->options->has_timeout
               ? call->options->timeout_ms
               : call->table->client->options.timeout_ms;
}

static bool ends_clock(const ps_call_t *call)
{
    return call->options != NULL && call->options->ends_clock;
}

/* Puts the requests of a ticket into their queues, then sends what can go. */
static void set_out(const ps_call_t *call, ps_ticket_t *ticket, struct ps_slice_requests *marks)
{
    psd_client_t *client = call->table->client;
    ps_slice_request_t *request = NULL;

    if (!ps_hold(client, ticket)) {
        TAILQ_FOREACH(request, &ticket->requests, in_ticket)
        {
            ps_queue_add(client, request);
        }
        TAILQ_FOREACH(request, &ticket->requests, in_ticket)
        {
            ps_queue_run(client, request->queue);
        }
    }
    ps_ticket_end_if_done(client, ticket);
    if (ends_clock(call)) {
        ps_marks_send(client, marks);
        ps_perform(client);
    } else {
        ps_perform_start(client);
    }
}

/* A mark waits for the pulls before it. */
static bool awaits_values(const psd_client_t *client)
{
    return client->session != NULL &&
           ps_session_pending(client->session, true) > ps_session_pending(client->session, false);
}

static psd_status_t check_clock(const ps_call_t *call, psd_error_t *err)
{
    psd_client_t *client = call->table->client;

    if (!ends_clock(call)) {
        return PSD_OK;
    }
    if (call->kind != PS_REQUEST_PUSH) {
        return psd_error_set(err, PSD_INVALID, "a %s cannot end a clock; allowed: pushes",
                             call->kind == PS_REQUEST_PULL ? "pull" : "pushpull");
    }
    if (awaits_values(client)) {
        ps_pump(client, 0);
    }
    return ps_worker_check(client, err);
}

/* A ticket none of whose requests was put into a queue. */
static void abandon(psd_client_t *client, ps_ticket_t **self_p)
{
    while (!TAILQ_EMPTY(&(*self_p)->requests)) {
        ps_slice_request_t *request = TAILQ_FIRST(&(*self_p)->requests);

        TAILQ_REMOVE(&(*self_p)->requests, request, in_ticket);
        ps_slice_request_destroy(client, &request);
    }
    ps_ticket_forget(client, self_p);
}

psd_status_t ps_call_start_cuts(const ps_call_t *call, ps_cuts_t *cuts, ps_ticket_t **ret_ticket,
                                psd_error_t *err)
{
    psd_client_t *client = call->table->client;
    struct ps_slice_requests marks = TAILQ_HEAD_INITIALIZER(marks);
    ps_ticket_t *ticket = NULL;
    psd_status_t rc = ps_client_check(client, err);

    if (rc == PSD_OK && ps_client_is_guest(client) && call->kind != PS_REQUEST_PULL) {
        rc = ps_client_want_session(client, timeout_of(call), err);
    }
    client->now_ms = ps_now_ms();
    if (rc == PSD_OK) {
        rc = check_clock(call, err);
    }
    if (rc == PSD_OK) {
        rc = ps_ticket_new(client, timeout_of(call), &ticket, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < cuts->n; i++) {
        rc = make_request(call, &cuts->items[i],
                          call->aggregates == NULL ? NULL : &call->aggregates[i], ticket, err);
    }
    if (rc == PSD_OK && ends_clock(call)) {
        ps_hold_end(client); /* else psd_clock would be the mark of what is held */
        rc = ps_marks_make(client, ticket, &marks, err);
    }
    if (rc != PSD_OK) {
        if (ticket != NULL) {
            abandon(client, &ticket);
        }
        return rc;
    }
    ticket->values = call->ret_values;
    ticket->result = call->result;
    ticket->verb = call->verb != NULL ? call->verb : kind_name(call->kind);
    ticket->table = call->table->known;
    ticket->command = call->options == NULL ? 0 : call->options->command;
    set_out(call, ticket, &marks);
    *ret_ticket = ticket;
    return PSD_OK;
}

static psd_status_t check_arrays(const ps_call_t *call, const psd_select_t *plain, psd_error_t *err)
{
    bool pushes = call->kind != PS_REQUEST_PULL;
    bool pulls = call->kind != PS_REQUEST_PUSH;

    if (pulls && plain->counts != NULL) {
        return psd_error_set(err, PSD_INVALID, "sparse rows can be pushed; psd_fetch pulls them");
    }
    if (pushes && call->values == NULL && call->n_values > 0) {
        return psd_error_set(err, PSD_INVALID, "values is NULL, n_values %zu", call->n_values);
    }
    if (pulls && call->ret_values == NULL && call->n_values > 0) {
        return psd_error_set(err, PSD_INVALID, "ret_values is NULL, n_values %zu", call->n_values);
    }
    return PSD_OK;
}

/* Runs on the thread that releases it last. */
static void let_go_of_draft(void *owner)
{
    psd_draft_t *self = owner;

    (void)atomic_fetch_sub_explicit(&self->n_holders, 1, memory_order_release);
}

/* Makes slices that point at a draft hold it; they borrow nothing then. */
static void adopt(psd_draft_t *self, ps_cuts_t *cuts)
{
    for (size_t i = 0; i < cuts->n; i++) {
        ps_cut_t *cut = &cuts->items[i];

        if (!cut->borrows) {
            continue;
        }
        assert(cut->payload->release == NULL);
        (void)atomic_fetch_add_explicit(&self->n_holders, 1, memory_order_relaxed);
        cut->payload->owner = self;
        cut->payload->release = let_go_of_draft;
        cut->borrows = false;
    }
}

static psd_status_t start(const ps_call_t *call, ps_ticket_t **ret_ticket, psd_error_t *err)
{
    static const uint8_t no_values[1];
    PSD_AUTO(ps_cuts_done) ps_cuts_t cuts = {.n = 0};
    const ps_table_spec_t *spec = &call->table->spec;
    const ps_filter_t filter = filter_of(call);
    PSD_AUTO(ps_free_at) uint32_t *cols = NULL;
    psd_select_t spelled = *call->select;
    psd_select_t plain = {.all_rows = false};
    bool thinned = false;
    ps_cut_args_t args = {.spec = spec,
                          .select = &plain,
                          .places = call->kind != PS_REQUEST_PUSH,
                          .borrow_lists = call->borrow && call->draft == NULL,
                          .borrow = call->borrow,
                          .limit_bytes = ps_call_slice_bytes(call->table->client)};
    psd_status_t rc = ps_select_spell(&spelled, spec, call->n_values, &cols, err);

    if (rc == PSD_OK) {
        rc = ps_select_check(&spelled, spec, call->n_values, &plain, err);
    }
    if (rc == PSD_OK) {
        rc = check_arrays(call, &plain, err);
    }
    if (rc == PSD_OK && call->options != NULL && call->options->has_filter) {
        rc = ps_filter_check(&call->options->filter, spec->type, err);
    }
    if (call->kind != PS_REQUEST_PULL) {
        args.values = call->values != NULL ? call->values : no_values;
    }
    if (rc == PSD_OK && filter.thin != PS_THIN_NONE) {
        rc = ps_thin_call(call, &filter, &plain, &args.values, &thinned, err);
    }
    if (thinned) { /* what is sent lies in memory that the next push uses */
        args.borrow = false;
        args.borrow_lists = false;
    }
    if (rc == PSD_OK) {
        rc = ps_cut(&args, &cuts, err);
    }
    if (rc == PSD_OK && call->draft != NULL) {
        adopt(call->draft, &cuts);
    }
    if (rc == PSD_OK) {
        rc = ps_call_start_cuts(call, &cuts, ret_ticket, err);
    }
    if (rc != PSD_OK && thinned) {
        ps_thin_undo(call->table);
    }
    return rc == PSD_OK
               ? rc
               : psd_error_wrap(err, rc, "%s table \"%s\"", kind_name(call->kind), spec->name);
}

/* ---- everyday calls ------------------------------------------------------ */

static psd_status_t do_now(const ps_call_t *like, const uint64_t *rows, size_t n_rows,
                           psd_error_t *err)
{
    const psd_select_t select = {.rows_are = PS_SELECT_LIST, .rows = rows, .n_rows = n_rows};
    ps_call_t call = *like;
    uint64_t bytes = (uint64_t)n_rows * sizeof *rows;
    ps_ticket_t *ticket = NULL;
    psd_status_t rc = PSD_OK;

    if (call.kind != PS_REQUEST_PULL) {
        bytes += (uint64_t)call.n_values * ps_type_size(call.table->spec.type);
    }
    call.select = &select;
    call.borrow = bytes > COPY_MAX_BYTES;
    rc = start(&call, &ticket, err);
    if (rc == PSD_OK) {
        rc = ps_ticket_wait(call.table->client, ticket, UINT64_MAX, err);
    }
    return rc;
}

psd_status_t psd_push(psd_table_t *table, const uint64_t *rows, size_t n_rows, const void *values,
                      size_t n_values, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_call_t call = {
        .table = table, .kind = PS_REQUEST_PUSH, .values = values, .n_values = n_values};

    return do_now(&call, rows, n_rows, err);
}

psd_status_t psd_pull(psd_table_t *table, const uint64_t *rows, size_t n_rows, void *ret_values,
                      size_t n_values, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_call_t call = {
        .table = table, .kind = PS_REQUEST_PULL, .ret_values = ret_values, .n_values = n_values};

    return do_now(&call, rows, n_rows, err);
}

psd_status_t psd_pushpull(psd_table_t *table, const uint64_t *rows, size_t n_rows,
                          const void *deltas, void *ret_values, size_t n_values, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_call_t call = {.table = table,
                      .kind = PS_REQUEST_PUSHPULL,
                      .values = deltas,
                      .ret_values = ret_values,
                      .n_values = n_values};

    return do_now(&call, rows, n_rows, err);
}

psd_status_t psd_push_rest(psd_table_t *table, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_select_t select = {.n_rows = 0};
    ps_call_t call = {.table = table, .kind = PS_REQUEST_PUSH, .select = &select, .whole = true};
    ps_ticket_t *ticket = NULL;
    psd_status_t rc = ps_thin_rest(table, &select, &call.values, &call.n_values, err);

    if (rc == PSD_OK && call.n_values > 0) {
        rc = start(&call, &ticket, err);
        if (rc != PSD_OK) {
            ps_thin_undo(table);
        }
    }
    if (rc == PSD_OK && call.n_values > 0) {
        rc = ps_ticket_wait(table->client, ticket, UINT64_MAX, err);
    }
    return rc;
}

/* ---- calls that are only started ----------------------------------------- */

psd_status_t ps_call_start(const ps_call_t *call, psd_ticket_t *ret_ticket, psd_error_t *err)
{
    ps_ticket_t *ticket = NULL;
    psd_status_t rc = start(call, &ticket, err);

    if (rc == PSD_OK) {
        assert(ticket != NULL);
        *ret_ticket = ticket->number;
        if (ends_clock(call)) {
            ps_wait_for_welcome(call->table->client);
        }
    }
    return rc;
}

static psd_status_t start_only(ps_call_t *call, psd_ticket_t *ret_ticket, psd_error_t *err)
{
    if (call->select == NULL) {
        return psd_error_set(err, PSD_INVALID, "select is NULL");
    }
    call->borrow = call->options != NULL && call->options->borrow;
    return ps_call_start(call, ret_ticket, err);
}

psd_status_t psd_push_start(psd_table_t *table, const psd_select_t *select, const void *values,
                            size_t n_values, const psd_call_t *call, psd_ticket_t *ret_ticket,
                            psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_call_t started = {.table = table,
                         .kind = PS_REQUEST_PUSH,
                         .select = select,
                         .values = values,
                         .n_values = n_values,
                         .options = call};

    return start_only(&started, ret_ticket, err);
}

psd_status_t psd_pull_start(psd_table_t *table, const psd_select_t *select, void *ret_values,
                            size_t n_values, const psd_call_t *call, psd_ticket_t *ret_ticket,
                            psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_call_t started = {.table = table,
                         .kind = PS_REQUEST_PULL,
                         .select = select,
                         .ret_values = ret_values,
                         .n_values = n_values,
                         .options = call};

    return start_only(&started, ret_ticket, err);
}

psd_status_t psd_pushpull_start(psd_table_t *table, const psd_select_t *select, const void *deltas,
                                void *ret_values, size_t n_values, const psd_call_t *call,
                                psd_ticket_t *ret_ticket, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_call_t started = {.table = table,
                         .kind = PS_REQUEST_PUSHPULL,
                         .select = select,
                         .values = deltas,
                         .ret_values = ret_values,
                         .n_values = n_values,
                         .options = call};

    return start_only(&started, ret_ticket, err);
}
