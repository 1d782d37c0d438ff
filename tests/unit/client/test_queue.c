/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which calls go to a partition. The client here has a session
 * but no sockets: what is sent is read from the session's pending operations,
 * one at a time, because the credits are one request. */
#include "client_kit.h"

static ps_slice_request_t *add(fixture_t *f, ps_request_kind_t kind, int32_t priority,
                               psd_ticket_t after)
{
    ps_cut_t cut = {
        .slice = {.rows = PS_ROWS_RANGE, .type = PS_TYPE_F32, .n_rows = 1, .n_cols = 1}};
    ps_slice_request_t *request = ps_slice_request_new(&f->client, kind, &cut);

    cr_assert_not_null(request);
    request->queue = &f->table->queues[0];
    request->priority = priority;
    request->after = after;
    request->round = f->client.round;
    ps_ticket_add(f->ticket, request);
    ps_queue_add(&f->client, request);
    ps_queue_run(&f->client, request->queue);
    return request;
}

/* The request that is under way now ends; the next one goes. */
static void answer(fixture_t *f, ps_slice_request_t *request)
{
    ps_message_t ack = {.kind = PS_KIND_ACK};

    cr_assert_neq(request->op, 0);
    ps_slice_request_answered(&f->client, request, &ack, NULL);
    TAILQ_REMOVE(&f->client.ended, request, in_list);
    ps_slice_request_finish(&f->client, &request);
    ps_outbox_clear(&f->client.outbox);
}

Test(queue, first_come_first_served)
{
    fixture_t f;
    ps_slice_request_t *a = NULL;
    ps_slice_request_t *b = NULL;
    ps_slice_request_t *c = NULL;

    set_up(&f);
    a = add(&f, PS_REQUEST_PUSH, 0, 0);
    b = add(&f, PS_REQUEST_PUSH, 0, 0);
    c = add(&f, PS_REQUEST_PUSH, 0, 0);
    cr_assert(a->op != 0 && b->op == 0 && c->op == 0);
    answer(&f, a);
    cr_assert(b->op != 0 && c->op == 0);
    answer(&f, b);
    answer(&f, c);
    cr_assert(f.ticket->has_ended && f.ticket->status == PSD_OK);
    tear_down(&f);
}

Test(queue, greater_priority_overtakes)
{
    fixture_t f;
    ps_slice_request_t *a = NULL;
    ps_slice_request_t *low = NULL;
    ps_slice_request_t *high = NULL;

    set_up(&f);
    a = add(&f, PS_REQUEST_PUSH, -5, 0);
    low = add(&f, PS_REQUEST_PUSH, 0, 0);
    high = add(&f, PS_REQUEST_PUSH, 1, 0);
    answer(&f, a);
    cr_assert(high->op != 0 && low->op == 0);
    answer(&f, high);
    answer(&f, low);
    tear_down(&f);
}

Test(queue, a_mark_is_behind_what_was_before_it_and_in_front_of_the_rest)
{
    fixture_t f;
    ps_slice_request_t *a = NULL;
    ps_slice_request_t *before = NULL;
    ps_slice_request_t *mark = NULL;
    ps_slice_request_t *behind = NULL;

    set_up(&f);
    a = add(&f, PS_REQUEST_PUSH, 0, 0);
    before = add(&f, PS_REQUEST_PUSH, -100, 0);
    mark = add(&f, PS_REQUEST_MARK, 0, 0);
    f.client.round++;
    behind = add(&f, PS_REQUEST_PUSH, 100, 0);
    answer(&f, a);
    cr_assert(before->op != 0 && mark->op == 0 && behind->op == 0);
    answer(&f, before);
    cr_assert(mark->op != 0 && behind->op == 0);
    answer(&f, mark);
    cr_assert(behind->op != 0);
    answer(&f, behind);
    tear_down(&f);
}

Test(queue, a_push_that_marks_is_as_a_mark)
{
    fixture_t f;
    ps_slice_request_t *a = NULL;
    ps_slice_request_t *last = NULL;
    ps_slice_request_t *before = NULL;
    ps_slice_request_t *behind = NULL;

    set_up(&f);
    a = add(&f, PS_REQUEST_PUSH, 0, 0);
    last = add(&f, PS_REQUEST_PUSH, 0, 0);
    last->marks = true;
    before = add(&f, PS_REQUEST_PUSH, -100, 0);
    f.client.round++;
    behind = add(&f, PS_REQUEST_PUSH, 100, 0);
    answer(&f, a);
    cr_assert(before->op != 0 && last->op == 0 && behind->op == 0);
    answer(&f, before);
    cr_assert(last->op != 0 && behind->op == 0);
    answer(&f, last);
    cr_assert(behind->op != 0);
    answer(&f, behind);
    tear_down(&f);
}

/* What comes behind its clock must not pass it. */
Test(queue, a_push_that_marks_and_waits_for_a_ticket_is_not_passed)
{
    fixture_t f;
    ps_ticket_t *other = NULL;
    ps_slice_request_t *a = NULL;
    ps_slice_request_t *waits = NULL;
    ps_slice_request_t *behind = NULL;

    set_up(&f);
    cr_assert_eq(ps_ticket_new(&f.client, 1000, &other, NULL), PSD_OK);
    a = add(&f, PS_REQUEST_PUSH, 0, 0);
    waits = add(&f, PS_REQUEST_PUSH, 0, other->number);
    waits->marks = true;
    f.client.round++;
    behind = add(&f, PS_REQUEST_PUSH, 0, 0);
    answer(&f, a);
    cr_assert(waits->op == 0 && behind->op == 0);
    ps_ticket_end_if_done(&f.client, other);
    ps_queue_run(&f.client, waits->queue);
    cr_assert(waits->op != 0 && behind->op == 0);
    answer(&f, waits);
    answer(&f, behind);
    tear_down(&f);
}

Test(queue, who_waits_for_a_ticket_is_passed_but_not_by_a_mark)
{
    fixture_t f;
    ps_ticket_t *other = NULL;
    ps_slice_request_t *waits = NULL;
    ps_slice_request_t *passes = NULL;
    ps_slice_request_t *mark = NULL;

    set_up(&f);
    cr_assert_eq(ps_ticket_new(&f.client, 60000, &other, NULL), PSD_OK);
    waits = add(&f, PS_REQUEST_PUSH, 0, other->number);
    passes = add(&f, PS_REQUEST_PUSH, 0, 0);
    mark = add(&f, PS_REQUEST_MARK, 0, 0);
    f.client.round++;
    cr_assert(waits->op == 0 && passes->op != 0);
    answer(&f, passes);
    cr_assert(waits->op == 0 && mark->op == 0);
    cr_assert_eq(f.client.n_after, 1);

    ps_ticket_end_if_done(&f.client, other);
    cr_assert(f.client.after_ended);
    ps_queues_run(&f.client);
    cr_assert(waits->op != 0 && mark->op == 0);
    cr_assert_eq(f.client.n_after, 0);
    answer(&f, waits);
    answer(&f, mark);
    tear_down(&f);
}

/* A push of 100 MB is 25 slices; a pull that is in more of a hurry goes behind
 * the first few of them. */
Test(queue, a_greater_priority_overtakes_a_large_push)
{
    enum { SLICES = 25, SIZE = 4 << 20 };
    fixture_t f;
    uint8_t *zeros = ps_alloc(SIZE, 1);
    ps_slice_request_t *pushes[SLICES];
    ps_slice_request_t *hurry = NULL;
    size_t n_sent = 0;

    set_up(&f);
    f.client.credit_requests = 256;
    f.client.credit_bytes = UINT64_C(256) << 20;
    for (size_t i = 0; i < SLICES; i++) {
        ps_cut_t cut = {.slice = {.rows = PS_ROWS_RANGE,
                                  .type = PS_TYPE_F32,
                                  .n_rows = 1,
                                  .n_cols = SIZE / 4,
                                  .n_values = SIZE / 4}};

        cut.payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                     (ps_bytes_t){zeros, SIZE}, NULL, NULL);
        pushes[i] = ps_slice_request_new(&f.client, PS_REQUEST_PUSH, &cut);
        cr_assert_not_null(pushes[i]);
        pushes[i]->queue = &f.table->queues[0];
        ps_ticket_add(f.ticket, pushes[i]);
        ps_queue_add(&f.client, pushes[i]);
    }
    ps_queue_run(&f.client, &f.table->queues[0]);
    while (n_sent < SLICES && pushes[n_sent]->op != 0) {
        n_sent++;
    }
    cr_assert_eq(n_sent, 4);
    hurry = add(&f, PS_REQUEST_PULL, 1, 0);
    cr_assert(hurry->op != 0 && pushes[4]->op == 0);
    answer(&f, pushes[0]);
    cr_assert(pushes[4]->op != 0 && pushes[5]->op == 0);
    tear_down(&f);
    ps_free(zeros);
}

Test(ticket, first_failure_is_the_tickets)
{
    fixture_t f;
    psd_error_t *err = psd_error_new();
    ps_slice_request_t *a = NULL;
    ps_slice_request_t *b = NULL;

    set_up(&f);
    a = add(&f, PS_REQUEST_PUSH, 0, 0);
    b = add(&f, PS_REQUEST_PUSH, 0, 0);
    TAILQ_REMOVE(&f.client.sent, a, in_list);
    ps_slice_request_end(&f.client, a, PSD_RANGE, "row 9");
    TAILQ_REMOVE(&f.client.ended, a, in_list);
    ps_slice_request_finish(&f.client, &a);
    cr_assert_not(f.ticket->has_ended);
    TAILQ_REMOVE(&f.client.sent, b, in_list);
    ps_slice_request_end(&f.client, b, PSD_SHAPE, "row 8");
    TAILQ_REMOVE(&f.client.ended, b, in_list);
    ps_slice_request_finish(&f.client, &b);
    cr_assert(f.ticket->has_ended);
    cr_assert_eq(ps_ticket_use_up(&f.client, f.ticket, err), PSD_RANGE);
    cr_assert_str_eq(psd_error_text(err), "push to table \"w\", partition 0: row 9");
    psd_error_destroy(&err);
    tear_down(&f);
}

/* The caller may free its memory when its ticket ends at the deadline; the
 * push goes on with a copy. */
Test(ticket, deadline_calls_the_callers_memory_in)
{
    fixture_t f;
    float values[] = {1.0F, 2.0F};
    ps_bytes_t none = {NULL, 0};
    ps_cut_t cut = {.slice = {.rows = PS_ROWS_RANGE,
                              .type = PS_TYPE_F32,
                              .n_rows = 2,
                              .n_cols = 1,
                              .n_values = 2},
                    .borrows = true};
    ps_slice_request_t *request = NULL;
    psd_error_t *err = psd_error_new();

    set_up(&f);
    cut.payload =
        ps_payload_new(none, none, (ps_bytes_t){(uint8_t *)values, sizeof values}, NULL, NULL);
    request = ps_slice_request_new(&f.client, PS_REQUEST_PUSH, &cut);
    request->queue = &f.table->queues[0];
    ps_ticket_add(f.ticket, request);
    ps_queue_add(&f.client, request);
    ps_queue_run(&f.client, request->queue);
    ps_outbox_clear(&f.client.outbox);
    cr_assert_neq(request->op, 0);
    cr_assert_eq((void *)request->payload->spans[0].data, values);

    f.client.now_ms += 100000;
    ps_tickets_expire(&f.client);
    cr_assert(f.ticket->has_ended);
    cr_assert_null(request->ticket);
    cr_assert_not(request->borrows);
    cr_assert_neq((void *)request->payload->spans[0].data, values);
    cr_assert_eq(memcmp(request->payload->spans[0].data, values, sizeof values), 0);
    cr_assert_eq(ps_session_pending(f.client.session, false), 1);
    cr_assert_eq(ps_ticket_use_up(&f.client, f.ticket, err), PSD_DEADLINE);
    psd_error_destroy(&err);
    tear_down(&f);
}

/* A number is good until its ticket is used up, also when its place is used
 * again. */
Test(ticket, numbers_are_never_given_twice)
{
    fixture_t f;
    ps_ticket_t *second = NULL;
    psd_ticket_t first = 0;
    psd_ticket_t last = 0;

    set_up(&f);
    first = f.ticket->number;
    cr_assert_neq(first, 0);
    cr_assert_eq(ps_ticket_find(&f.client, first), f.ticket);
    cr_assert_eq(ps_ticket_new(&f.client, 1, &second, NULL), PSD_OK);
    cr_assert_neq(second->number, first);
    for (int i = 0; i < 100; i++) {
        psd_ticket_t number = second->number;

        cr_assert_gt(number, last);
        cr_assert_eq(ps_ticket_find(&f.client, number), second);
        ps_ticket_end_if_done(&f.client, second);
        cr_assert_eq(ps_ticket_use_up(&f.client, second, NULL), PSD_OK);
        cr_assert_null(ps_ticket_find(&f.client, number));
        cr_assert_eq(ps_ticket_new(&f.client, 1, &second, NULL), PSD_OK);
        last = number;
    }
    cr_assert_eq(ps_ticket_find(&f.client, first), f.ticket);
    cr_assert_null(ps_ticket_find(&f.client, 0));
    cr_assert_null(ps_ticket_find(&f.client, 77));
    cr_assert_null(ps_ticket_find(&f.client, UINT64_MAX));
    tear_down(&f);
}
