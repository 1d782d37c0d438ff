/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of answers: values to their places, numbers to their aggregate, rows
 * to the result, and what was not asked for is refused. */
#include "base/cursor.h"
#include "client/requests/result.h"
#include "client_kit.h"

static const uint64_t KEYS[] = {7, 5, 9};

static ps_slice_request_t *ask(fixture_t *f, const ps_row_op_args_t *row_op,
                               ps_aggregate_t *aggregate)
{
    ps_cut_t cut = {.slice = {.rows = PS_ROWS_LIST, .type = PS_TYPE_F32, .n_rows = 3, .n_cols = 2},
                    .places = {.row_width = 2}};
    ps_slice_request_t *request = NULL;

    cut.payload = ps_payload_copy((ps_bytes_t){(const uint8_t *)KEYS, sizeof KEYS},
                                  (ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0});
    cr_assert_not_null(cut.payload);
    request = ps_slice_request_new(&f->client, PS_REQUEST_PULL, &cut);
    cr_assert_not_null(request);
    request->queue = &f->table->queues[0];
    request->row_op = *row_op;
    request->aggregate = aggregate;
    ps_ticket_add(f->ticket, request);
    ps_queue_add(&f->client, request);
    ps_queue_run(&f->client, request->queue);
    cr_assert_neq(request->op, 0);
    ps_outbox_clear(&f->client.outbox);
    return request;
}

/* Answers n_done rows with a slice and its parts. */
static void answer(fixture_t *f, ps_slice_request_t *request, uint64_t n_done,
                   const ps_slice_t *slice, ps_payload_t *payload)
{
    ps_message_t message = {.kind = PS_KIND_VALUES};

    message.values.n_done = n_done;
    message.values.version = 40 + n_done;
    ps_message_set_slice(&message, slice);
    ps_slice_request_answered(&f->client, request, &message, payload);
    ps_payload_destroy(&payload);
}

static ps_payload_t *parts(const void *keys, size_t keys_size, const void *index, size_t index_size,
                           const void *values, size_t values_size)
{
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){keys, keys_size}, (ps_bytes_t){index, index_size},
                        (ps_bytes_t){values, values_size});

    cr_assert_not_null(payload);
    return payload;
}

static const ps_row_op_args_t PLAIN = {.op = PS_READ_VALUES};

Test(reply, rows_without_keys_are_those_asked_for)
{
    fixture_t f;
    const float answers[] = {1, 2, 3, 4, 5, 6};
    float values[6] = {0};
    ps_slice_t slice = {
        .rows = PS_ROWS_ASKED, .type = PS_TYPE_F32, .n_rows = 2, .n_cols = 2, .n_values = 4};
    ps_slice_request_t *request = NULL;

    set_up(&f);
    f.ticket->values = values;
    request = ask(&f, &PLAIN, NULL);
    answer(&f, request, 2, &slice, parts(NULL, 0, NULL, 0, answers, 16));
    cr_assert_neq(request->op, 0); /* the rest is asked for */
    cr_assert_eq(request->slice.n_rows, 1);
    slice.n_rows = 1;
    slice.n_values = 2;
    answer(&f, request, 1, &slice, parts(NULL, 0, NULL, 0, answers + 4, 8));
    cr_assert_eq(f.ticket->status, PSD_OK);
    cr_assert_arr_eq(values, answers, sizeof answers);
    tear_down(&f);
}

Test(reply, a_result_names_asked_rows_by_the_request)
{
    fixture_t f;
    const float answers[] = {1, 2, 3, 4, 5, 6};
    const ps_slice_t slice = {
        .rows = PS_ROWS_ASKED, .type = PS_TYPE_F32, .n_rows = 3, .n_cols = 2, .n_values = 6};
    psd_result_t *result = NULL;
    ps_slice_request_t *request = NULL;

    set_up(&f);
    cr_assert_eq(ps_result_new(PS_TYPE_F32, false, SIZE_MAX, &result, NULL), PSD_OK);
    f.ticket->result = result;
    request = ask(&f, &PLAIN, NULL);
    answer(&f, request, 3, &slice, parts(NULL, 0, NULL, 0, answers, 24));
    cr_assert_eq(f.ticket->status, PSD_OK);
    cr_assert_eq(psd_result_count(result), 3);
    for (size_t i = 0; i < 3; i++) {
        uint64_t row = 0;

        psd_result_row(result, i, &row, NULL, NULL, NULL);
        cr_assert_eq(row, KEYS[i]);
    }
    psd_result_destroy(&result);
    tear_down(&f);
}

Test(reply, fewer_rows_than_were_dealt_with_are_refused)
{
    fixture_t f;
    const float answers[] = {1, 2};
    const ps_slice_t slice = {
        .rows = PS_ROWS_ASKED, .type = PS_TYPE_F32, .n_rows = 1, .n_cols = 2, .n_values = 2};
    ps_slice_request_t *request = NULL;

    set_up(&f);
    request = ask(&f, &PLAIN, NULL);
    answer(&f, request, 2, &slice, parts(NULL, 0, NULL, 0, answers, 8));
    cr_assert_eq(f.ticket->status, PSD_PROTO);
    tear_down(&f);
}

Test(reply, numbers_of_pieces_are_added_up)
{
    fixture_t f;
    const ps_row_op_args_t row_op = {.op = PS_READ_SUM};
    const double numbers[] = {1.5, 2.25};
    const ps_slice_t slice = {
        .rows = PS_ROWS_RANGE, .type = PS_TYPE_F64, .n_rows = 1, .n_cols = 1, .n_values = 1};
    ps_aggregate_t aggregate = {.number = 0};
    ps_slice_request_t *request = NULL;

    set_up(&f);
    request = ask(&f, &row_op, &aggregate);
    answer(&f, request, 2, &slice, parts(NULL, 0, NULL, 0, &numbers[0], 8));
    cr_assert_neq(request->op, 0);
    cr_assert_eq(request->row_op.op, PS_READ_SUM); /* of the rest too */
    answer(&f, request, 1, &slice, parts(NULL, 0, NULL, 0, &numbers[1], 8));
    cr_assert_eq(f.ticket->status, PSD_OK);
    cr_assert_eq(aggregate.number, 3.75);
    cr_assert_eq(aggregate.version, 42);
    tear_down(&f);
}

Test(reply, a_count_is_whole_and_a_number_is_not)
{
    const ps_row_op_args_t row_op = {.op = PS_READ_NONZEROS};
    const uint64_t count = UINT64_C(1) << 60;
    ps_slice_t slice = {
        .rows = PS_ROWS_RANGE, .type = PS_TYPE_I64, .n_rows = 1, .n_cols = 1, .n_values = 1};

    for (int good = 0; good < 2; good++) {
        fixture_t f;
        ps_aggregate_t aggregate = {.number = 0};
        ps_slice_request_t *request = NULL;

        set_up(&f);
        slice.type = good ? PS_TYPE_I64 : PS_TYPE_F64;
        request = ask(&f, &row_op, &aggregate);
        answer(&f, request, 3, &slice, parts(NULL, 0, NULL, 0, &count, 8));
        cr_assert_eq(f.ticket->status, good ? PSD_OK : PSD_PROTO);
        cr_assert_eq(aggregate.count, good ? count : 0);
        tear_down(&f);
    }
}

Test(reply, the_largest_of_all_are_ranked)
{
    fixture_t f;
    const ps_row_op_args_t row_op = {.op = PS_READ_TOP, .operand = 2};
    const uint64_t keys[] = {9, 5, 7};
    const uint32_t index[] = {1, 1, 1, 4, 3, 2};
    const float values[] = {2, 8, 2};
    const ps_slice_t slice = {.rows = PS_ROWS_LIST,
                              .layout = PS_LAYOUT_SPARSE,
                              .type = PS_TYPE_F32,
                              .n_rows = 3,
                              .n_values = 3};
    psd_result_t *result = NULL;
    ps_slice_request_t *request = NULL;
    uint64_t row = 0;
    const void *value = NULL;
    const uint32_t *col = NULL;

    set_up(&f);
    cr_assert_eq(ps_result_new(PS_TYPE_F32, true, SIZE_MAX, &result, NULL), PSD_OK);
    f.ticket->result = result;
    request = ask(&f, &row_op, NULL);
    answer(&f, request, 3, &slice,
           parts(keys, sizeof keys, index, sizeof index, values, sizeof values));
    cr_assert_eq(f.ticket->status, PSD_OK);
    cr_assert_eq(ps_result_rank(result, PS_TYPE_F32, 2, NULL), PSD_OK);
    cr_assert_eq(psd_result_count(result), 2);
    psd_result_row(result, 0, &row, NULL, &value, &col);
    cr_assert(row == 5 && *(const float *)value == 8 && *col == 3);
    psd_result_row(result, 1, &row, NULL, &value, &col);
    cr_assert(row == 7 && *(const float *)value == 2 && *col == 2);
    psd_result_destroy(&result);
    tear_down(&f);
}

Test(reply, changed_rows_name_themselves)
{
    fixture_t f;
    const ps_row_op_args_t row_op = {.since = 3};
    const float values[] = {1, 2};
    ps_slice_t slice = {
        .rows = PS_ROWS_LIST, .type = PS_TYPE_F32, .n_rows = 1, .n_cols = 2, .n_values = 2};
    ps_aggregate_t aggregate = {.number = 0};
    psd_result_t *result = NULL;
    ps_slice_request_t *request = NULL;
    uint64_t row = 0;

    set_up(&f);
    cr_assert_eq(ps_result_new(PS_TYPE_F32, false, SIZE_MAX, &result, NULL), PSD_OK);
    f.ticket->result = result;
    request = ask(&f, &row_op, &aggregate);
    answer(&f, request, 3, &slice, parts(&KEYS[2], 8, NULL, 0, values, 8));
    cr_assert_eq(f.ticket->status, PSD_OK);
    cr_assert_eq(aggregate.version, 43);
    cr_assert_eq(psd_result_count(result), 1);
    psd_result_row(result, 0, &row, NULL, NULL, NULL);
    cr_assert_eq(row, KEYS[2]);
    psd_result_destroy(&result);
    tear_down(&f);
}
