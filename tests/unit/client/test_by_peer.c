/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls whose rows come from another worker: the shard's digest decides, and whatever goes wrong
 * ends in a plain pull. */
#include "client/requests/by_peer.h"

#include <string.h>

#include "base/hash.h"
#include "client/connection/desk.h"
#include "client_kit.h"

#define ROWS 1024
#define COLS 8 /* of f32: 32 KiB */
#define VALUES (ROWS * COLS)
#define BYTES (VALUES * sizeof(float))
#define CLOCK 5
#define CALL_MS 60000
#define PATIENCE_MS (1000 + BYTES * 1000 / PS_RELAY_SLOWEST)

typedef struct bench {
    fixture_t f;
    ps_desk_t *desk;
    float values[VALUES]; /* the caller's */
    float rows[VALUES];   /* that the shard has */
    uint64_t clock;       /* of the last pull */
    unsigned n_begun;     /* the relay was told that they are pulled from the shard */
} bench_t;

static bench_t bench;

/* Rows come from another worker, and go on to a third one. */
static void open_bench(void)
{
    memset(&bench, 0, sizeof bench);
    set_up(&bench.f);
    cr_assert_eq(ps_desk_new("tcp://127.0.0.1:1", &bench.desk, NULL), PSD_OK);
    ps_desk_set_rows(bench.desk, 1, 1, 1);
    bench.f.client.desk = bench.desk;
    bench.f.client.now_ms = 1000;
    bench.f.client.credit_requests = 64;
    bench.f.client.credit_bytes = UINT64_C(1) << 20;
    bench.f.table->in_job = true;
    bench.f.table->adds_up = true;
    bench.f.ticket->values = bench.values;
    bench.f.ticket->timeout_ms = CALL_MS;
    bench.f.ticket->deadline_ms = bench.f.client.now_ms + CALL_MS;
    for (size_t i = 0; i < VALUES; i++) {
        bench.rows[i] = (float)i;
    }
}

static void close_bench(void)
{
    bench.f.client.desk = NULL;
    ps_desk_release(&bench.desk);
    tear_down(&bench.f);
}

static ps_slice_request_t *pull_at(uint64_t clock, uint64_t n_rows)
{
    ps_cut_t cut = {
        .slice = {.rows = PS_ROWS_RANGE, .type = PS_TYPE_F32, .n_rows = n_rows, .n_cols = COLS},
        .places = {.row_width = COLS}};
    ps_slice_request_t *request = ps_slice_request_new(&bench.f.client, PS_REQUEST_PULL, &cut);

    cr_assert_not_null(request);
    bench.clock = clock;
    request->queue = &bench.f.table->queues[0];
    request->worker = (ps_op_worker_t){.job = 1, .joins = 1, .clock = clock};
    ps_ticket_add(bench.f.ticket, request);
    ps_queue_add(&bench.f.client, request);
    ps_queue_run(&bench.f.client, request->queue);
    cr_assert_neq(request->op, 0);
    ps_outbox_clear(&bench.f.client.outbox);
    return request;
}

/* The only thing on the desk; its payload. 0: nothing is there. */
static uint64_t take_question(ps_payload_t **ret_payload)
{
    struct ps_desk_rows_list list;
    uint64_t number = 0;

    *ret_payload = NULL;
    ps_desk_take_rows(bench.desk, &list);
    while (!STAILQ_EMPTY(&list) && STAILQ_FIRST(&list)->begins) { /* a plain pull */
        ps_desk_rows_t *begun = STAILQ_FIRST(&list);

        cr_expect_null(begun->payload);
        STAILQ_REMOVE_HEAD(&list, in_list);
        ps_desk_rows_free(&begun);
        bench.n_begun++;
    }
    if (!STAILQ_EMPTY(&list)) {
        ps_desk_rows_t *rows = STAILQ_FIRST(&list);

        cr_expect_null(STAILQ_NEXT(rows, in_list));
        cr_expect_eq(rows->key.clock, bench.clock);
        cr_expect_eq(rows->key.n_rows, ROWS);
        number = rows->payload != NULL ? UINT64_MAX : rows->request;
        *ret_payload = rows->payload;
        rows->payload = NULL;
        ps_desk_rows_free(&rows);
    }
    return number;
}

static uint64_t asked(void)
{
    ps_payload_t *payload = NULL;
    uint64_t number = take_question(&payload);

    cr_expect_null(payload);
    return number;
}

static void shard_answers(ps_slice_request_t *request, const ps_slice_t *slice, const void *data,
                          size_t size)
{
    const ps_bytes_t none = {NULL, 0};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy(none, none, (ps_bytes_t){data, size});
    ps_message_t message = {.kind = PS_KIND_VALUES};

    cr_assert_not_null(payload);
    message.values.n_done = request->slice.n_rows;
    ps_message_set_slice(&message, slice);
    ps_slice_request_answered(&bench.f.client, request, &message, payload);
    ps_outbox_clear(&bench.f.client.outbox);
}

static void shard_digests(ps_slice_request_t *request)
{
    const ps_slice_t slice = {
        .rows = PS_ROWS_RANGE, .type = PS_TYPE_I64, .n_rows = 1, .n_cols = 2, .n_values = 2};
    ps_id_t digest;

    ps_hash_id(bench.rows, BYTES, &digest);
    shard_answers(request, &slice, digest.bytes, sizeof digest.bytes);
}

static void shard_gives(ps_slice_request_t *request)
{
    const ps_slice_t slice = {.rows = PS_ROWS_ASKED,
                              .type = PS_TYPE_F32,
                              .n_rows = ROWS,
                              .n_cols = COLS,
                              .n_values = VALUES};

    shard_answers(request, &slice, bench.rows, BYTES);
}

/* The relay's answer; size 0: it has none. */
static void peer_gives(uint64_t number, const void *data, size_t size)
{
    const ps_bytes_t none = {NULL, 0};
    ps_desk_rows_t *rows = ps_alloc(1, sizeof *rows);

    cr_assert_not_null(rows);
    rows->request = number;
    if (size > 0) {
        rows->payload = ps_payload_copy(none, none, (ps_bytes_t){data, size});
        cr_assert_not_null(rows->payload);
    }
    ps_desk_give_rows(bench.desk, rows);
}

static void look_after(uint64_t ms)
{
    bench.f.client.now_ms += ms;
    ps_by_peer_look(&bench.f.client);
    ps_outbox_clear(&bench.f.client.outbox);
}

/* The pull has ended with the shard's rows, which this worker passes on. */
static void expect_rows(void)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;

    cr_expect_eq(bench.f.ticket->status, PSD_OK);
    cr_expect(!TAILQ_EMPTY(&bench.f.client.ended));
    cr_expect_arr_eq(bench.values, bench.rows, BYTES);
    cr_expect_eq(bench.f.table->queues[0].n_by_peer, 0);
    cr_expect_eq(take_question(&payload), UINT64_MAX);
    cr_assert_not_null(payload);
    cr_expect_eq(ps_payload_size(payload), BYTES);
    cr_expect_arr_eq(payload->spans[0].data, bench.rows, BYTES);
}

/* The pull was sent to the shard, as any other. */
static void expect_plain(ps_slice_request_t *request)
{
    cr_assert_null(request->by_peer);
    cr_assert_neq(request->op, 0);
    cr_expect(request->is_direct);
    cr_expect_eq(bench.f.table->queues[0].n_by_peer, 0);
    cr_expect_eq(asked(), 0);
    shard_gives(request);
    expect_rows();
}

Test(by_peer, rows_with_the_shards_digest_are_the_answer)
{
    ps_slice_request_t *request = NULL;
    uint64_t number = 0;

    open_bench();
    request = pull_at(CLOCK, ROWS);
    number = asked();
    cr_assert_neq(number, 0);
    shard_digests(request);
    cr_expect(ps_by_peer_waits(request));
    cr_expect(TAILQ_EMPTY(&bench.f.client.ended));
    cr_expect_eq(ps_by_peer_due(&bench.f.client), bench.f.client.now_ms + PATIENCE_MS);
    peer_gives(number, bench.rows, BYTES);
    look_after(1);
    expect_rows();
    close_bench();
}

Test(by_peer, rows_may_come_before_the_digest)
{
    ps_slice_request_t *request = NULL;

    open_bench();
    request = pull_at(CLOCK, ROWS);
    peer_gives(asked(), bench.rows, BYTES);
    look_after(1);
    cr_expect(TAILQ_EMPTY(&bench.f.client.ended)); /* nobody has said that they are right */
    shard_digests(request);
    expect_rows();
    close_bench();
}

Test(by_peer, rows_with_one_bit_turned_are_pulled_from_the_shard)
{
    for (int early = 0; early < 2; early++) {
        static float bent[VALUES];
        ps_slice_request_t *request = NULL;
        uint64_t number = 0;

        open_bench();
        memcpy(bent, bench.rows, BYTES);
        ((uint8_t *)bent)[BYTES - 1] ^= 0x10;
        request = pull_at(CLOCK, ROWS);
        number = asked();
        if (early) {
            peer_gives(number, bent, BYTES);
            look_after(1);
        }
        shard_digests(request);
        if (!early) {
            peer_gives(number, bent, BYTES);
            look_after(1);
        }
        expect_plain(request);
        cr_expect_gt(bench.f.table->queues[0].direct_until, CLOCK);
        close_bench();
    }
}

Test(by_peer, too_few_rows_are_pulled_from_the_shard)
{
    ps_slice_request_t *request = NULL;
    uint64_t number = 0;

    open_bench();
    request = pull_at(CLOCK, ROWS);
    number = asked();
    shard_digests(request);
    peer_gives(number, bench.rows, BYTES - sizeof(float));
    look_after(1);
    expect_plain(request);
    close_bench();
}

Test(by_peer, what_a_peer_refuses_is_pulled_at_once)
{
    for (int early = 0; early < 2; early++) {
        ps_slice_request_t *request = NULL;
        uint64_t number = 0;

        open_bench();
        request = pull_at(CLOCK, ROWS);
        number = asked();
        if (early) {
            peer_gives(number, NULL, 0);
            look_after(1);
        }
        shard_digests(request);
        if (!early) {
            peer_gives(number, NULL, 0);
            look_after(1);
        }
        expect_plain(request);
        cr_expect_eq(bench.f.table->queues[0].direct_until, 0);
        close_bench();
    }
}

/* Refused in three clocks in a row, it does not ask in the next nine; others may wait for it. */
Test(by_peer, a_peer_that_refuses_again_and_again_is_left_alone)
{
    ps_slice_request_t *request = NULL;

    open_bench();
    for (uint64_t i = 0; i < 5; i++) { /* two in a clock count once */
        cr_expect_eq(bench.f.table->queues[0].direct_until, 0);
        request = pull_at(CLOCK + i / 2, ROWS);
        peer_gives(asked(), NULL, 0);
        look_after(1);
        shard_digests(request);
        expect_plain(request);
    }
    cr_expect_eq(bench.f.table->queues[0].direct_until, CLOCK + 12);
    cr_expect_eq(bench.n_begun, 0);
    request = pull_at(CLOCK + 11, ROWS);
    cr_expect_null(request->by_peer);
    cr_expect_eq(asked(), 0);
    cr_expect_eq(bench.n_begun, 1);
    ps_queue_forget_peers(request->queue); /* another job */
    request = pull_at(CLOCK, ROWS);
    cr_expect_not_null(request->by_peer);
    close_bench();
}

Test(by_peer, what_does_not_come_in_time_is_pulled_and_so_are_the_next_clocks)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_slice_request_t *request = NULL;
    uint64_t number = 0;

    open_bench();
    request = pull_at(CLOCK, ROWS);
    number = asked();
    shard_digests(request);
    look_after(PATIENCE_MS - 1);
    cr_expect(ps_by_peer_waits(request));
    look_after(1);
    expect_plain(request);
    peer_gives(number, bench.rows, BYTES); /* nobody waits for it any more */
    look_after(1);
    request = pull_at(CLOCK + 1, ROWS);
    cr_expect_null(request->by_peer);
    cr_expect_eq(take_question(&payload), 0);
    cr_expect_eq(bench.f.table->queues[0].direct_until, CLOCK + 2);
    close_bench();
}

Test(by_peer, half_of_the_time_is_left_to_the_shard)
{
    ps_slice_request_t *request = NULL;

    open_bench();
    bench.f.ticket->deadline_ms = bench.f.client.now_ms + 100;
    request = pull_at(CLOCK, ROWS);
    cr_assert_neq(asked(), 0);
    shard_digests(request);
    cr_expect_eq(ps_by_peer_due(&bench.f.client), bench.f.client.now_ms + 50);
    look_after(50);
    expect_plain(request);
    close_bench();
}

Test(by_peer, a_relay_that_ends_leaves_plain_pulls)
{
    ps_slice_request_t *request = NULL;

    open_bench();
    request = pull_at(CLOCK, ROWS);
    cr_assert_neq(asked(), 0);
    shard_digests(request);
    bench.f.client.desk = NULL;
    look_after(1);
    bench.f.client.desk = bench.desk;
    expect_plain(request);
    close_bench();
}

Test(by_peer, small_pulls_and_those_without_a_plan_are_plain)
{
    open_bench();
    cr_expect_null(pull_at(CLOCK, 8)->by_peer);
    cr_expect_eq(asked(), 0);
    ps_desk_set_rows(bench.desk, 1, 0, 0); /* it is the first of its tree, and nobody is below */
    cr_expect_null(pull_at(CLOCK, ROWS)->by_peer);
    ps_desk_set_rows(bench.desk, 0, 0, 0);
    cr_expect_null(pull_at(CLOCK, ROWS)->by_peer);
    cr_expect_eq(asked(), 0);
    close_bench();
}

Test(by_peer, marks_wait_for_it)
{
    ps_cut_t nothing = {.partition = 0};
    ps_slice_request_t *request = NULL;
    ps_slice_request_t *mark = NULL;
    uint64_t number = 0;

    open_bench();
    request = pull_at(CLOCK, ROWS);
    number = asked();
    shard_digests(request);
    mark = ps_slice_request_new(&bench.f.client, PS_REQUEST_MARK, &nothing);
    cr_assert_not_null(mark);
    mark->queue = request->queue;
    mark->worker = (ps_op_worker_t){.job = 1, .joins = 1, .clock = CLOCK + 1};
    ps_queue_add(&bench.f.client, mark);
    ps_queue_run(&bench.f.client, mark->queue);
    cr_expect_eq(mark->op, 0, "it would open the next clock");
    peer_gives(number, bench.rows, BYTES);
    look_after(1);
    ps_queue_run(&bench.f.client, mark->queue);
    cr_expect_neq(mark->op, 0);
    expect_rows();
    close_bench();
}

Test(by_peer, a_call_that_ends_meanwhile_gets_nothing)
{
    ps_slice_request_t *request = NULL;
    uint64_t number = 0;

    open_bench();
    request = pull_at(CLOCK, ROWS);
    number = asked();
    shard_digests(request);
    bench.f.client.now_ms += CALL_MS;
    bench.f.client.expire_ms = 0;
    ps_tickets_expire(&bench.f.client);
    cr_expect_eq(bench.f.ticket->status, PSD_DEADLINE);
    cr_expect_eq(bench.f.table->queues[0].n_by_peer, 0);
    peer_gives(number, bench.rows, BYTES);
    look_after(1);
    cr_expect_eq(bench.values[1], 0.0F);
    close_bench();
}
