/* SPDX-License-Identifier: Apache-2.0 */
/* What a node may keep: arrays are counted when they are made, rows when they
 * appear, and what is there goes on when nothing new fits. */
#include "shard_bench.h"

#define LIMIT ((uint64_t)4 << 20)
#define HASHED 2
#define OTHER 3
#define WIDE 256  /* columns of its rows */
#define MANY 1000 /* rows of one op */

static bench_t bench;

static psd_status_t add_table(uint32_t table)
{
    return step(&bench, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                      .table = table,
                                      .spec = &bench.spec,
                                      .routes = bench.routes,
                                      .n_routes = 2});
}

static void setup(void)
{
    cr_assert_eq(open_bench_within(&bench, LIMIT), PSD_OK);
    bench.spec.keys = PS_KEYS_HASH;
    bench.spec.n_rows = 0;
    bench.spec.n_cols = WIDE;
    cr_assert_eq(add_table(HASHED), PSD_OK);
}

static void teardown(void)
{
    close_bench(&bench);
}

TestSuite(shard_memory, .init = setup, .fini = teardown);

static psd_status_t push_row(uint64_t seq, uint64_t row)
{
    static const float values[WIDE] = {1.0F};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                        (ps_bytes_t){(const uint8_t *)values, sizeof values});
    ps_message_t message = push_message(seq);

    message.push.table = HASHED;
    message.push.n_cols = WIDE;
    message.push.n_values = WIDE;
    return payload == NULL ? PSD_NOMEM : say(&bench, &message, payload);
}

/* While the other shards keep as much as the node may. */
static psd_status_t push_beside_others(const ps_message_t *message)
{
    static const uint64_t row = 2;
    static const float value = 1;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                        (ps_bytes_t){(const uint8_t *)&value, sizeof value});

    return step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                      .conn = CONN,
                                      .message = message,
                                      .payload = payload,
                                      .other_bytes = LIMIT});
}

/* An op on rows from..from + MANY - 1 of a table; by name, or as a range. */
static psd_status_t change(uint64_t seq, uint8_t op, uint32_t table, uint64_t from, bool by_name)
{
    static const double operand = 2;
    uint64_t rows[MANY];
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_message_t message = push_message(seq);

    for (size_t i = 0; i < MANY; i++) {
        rows[i] = from + i;
    }
    if (by_name) {
        payload = ps_payload_copy((ps_bytes_t){(const uint8_t *)rows, sizeof rows}, (ps_bytes_t){0},
                                  (ps_bytes_t){0});
        cr_assert_not_null(payload);
    } else {
        message.push.rows = PS_ROWS_RANGE;
        message.push.first_row = from;
    }
    message.push.op = op;
    memcpy(&message.push.operand, &operand, sizeof operand);
    message.push.other = op == PS_CHANGE_AXPY ? OTHER : 0;
    message.push.table = table;
    message.push.n_rows = MANY;
    message.push.n_cols = WIDE;
    message.push.n_values = 0;
    return say(&bench, &message, payload);
}

/* Pushes new rows until one is refused: its seq. */
static uint64_t fill(void)
{
    for (uint64_t seq = 1; seq < 10000; seq++) {
        cr_assert_eq(push_row(seq, seq), PSD_OK);
        cr_assert_not_null(answer(&bench));
        if (said(&bench)->kind != PS_KIND_ACK) {
            return seq;
        }
    }
    return 0;
}

Test(shard_memory, refuses_new_rows_above_the_limit_and_takes_pushes_to_old_ones)
{
    uint64_t seq = fill();

    cr_assert_gt(seq, LIMIT / (WIDE * 4) / 2, "half of it are rows, at least");
    cr_assert_lt(seq, LIMIT / (WIDE * 4) + 1);
    cr_assert_eq(said(&bench)->refused.status, PSD_LIMIT);
    cr_expect_not_null(strstr(said(&bench)->refused.text, "limits.memory_bytes is 4194304"));
    cr_expect_leq(ps_shard_bytes(bench.shard), LIMIT);
    cr_assert_eq(push_row(seq + 1, 1), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK, "the row is there");
}

Test(shard_memory, counts_what_other_shards_keep)
{
    ps_message_t message = push_message(1);

    message.push.table = HASHED;
    message.push.cols = PS_COLS_RANGE;
    cr_assert_eq(push_beside_others(&message), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->refused.status, PSD_LIMIT);
    message.push.table = 1;
    message.push.cols = PS_COLS_ALL;
    cr_assert_eq(push_beside_others(&message), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK, "an array grows by nothing");
}

Test(shard_memory, a_table_that_cannot_fit_is_not_made)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t before = ps_shard_bytes(bench.shard);
    ps_event_t event = {.kind = PS_EVENT_TABLE,
                        .table = 9,
                        .spec = &bench.spec,
                        .routes = bench.routes,
                        .n_routes = 2};

    bench.spec.keys = PS_KEYS_RANGE;
    bench.spec.n_rows = 16384;
    ps_outbox_clear(&bench.outbox);
    cr_assert_eq(ps_shard_step(bench.shard, &event, &bench.outbox, err), PSD_LIMIT);
    cr_expect_not_null(strstr(psd_error_text(err), "its rows take 8388608 bytes here and the node "
                                                   "keeps "),
                       "%s", psd_error_text(err));
    cr_expect_eq(ps_shard_bytes(bench.shard), before);
}

Test(shard_memory, a_dropped_table_makes_room)
{
    uint64_t seq = fill();
    uint64_t before = ps_shard_bytes(bench.shard);

    cr_assert_gt(seq, 1);
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_DROP, .table = HASHED}), PSD_OK);
    cr_expect_lt(ps_shard_bytes(bench.shard), before / 2);
}

Test(shard_memory, requests_that_would_wait_are_put_off_first)
{
    ps_message_t message = push_message(1);
    ps_partition_info_t *infos = NULL;
    size_t n = 0;
    uint64_t queued = 0;

    message.push.ack = PS_ACK_DISK; /* which cannot be had */
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_null(answer(&bench), "one may always wait");
    cr_assert_eq(ps_shard_partitions(bench.shard, &infos, &n, NULL), PSD_OK);
    for (size_t i = 0; i < n; i++) {
        queued += infos[i].queue_bytes;
    }
    ps_free(infos);
    cr_expect_eq(queued, 12);
    message.push.seq = message.push.request = 2;
    cr_assert_eq(push_beside_others(&message), PSD_OK);
    expect_refused(&bench, PSD_BUSY, "the node keeps as much as memory_bytes allows");
}

/* Every op that names rows makes them: none goes beyond the limit, and one that
 * is refused has made no row. */
static void expect_ops_bounded(uint8_t op)
{
    uint64_t before = 0;

    for (uint64_t seq = 1; seq < 20; seq++) {
        before = ps_shard_bytes(bench.shard);
        cr_assert_eq(change(seq, op, HASHED, seq * MANY, true), PSD_OK);
        if (said(&bench)->kind != PS_KIND_ACK) {
            break;
        }
        cr_assert_gt(ps_shard_bytes(bench.shard), before, "they are counted");
    }
    cr_assert_gt(before, LIMIT / 2);
    cr_assert_eq(said(&bench)->kind, PS_KIND_REFUSED);
    cr_expect_eq(said(&bench)->refused.status, PSD_LIMIT);
    cr_expect_not_null(strstr(said(&bench)->refused.text, "limits.memory_bytes is 4194304"));
    cr_expect_eq(ps_shard_bytes(bench.shard), before, "nothing has changed");
}

Test(shard_memory, scale_makes_no_rows_beyond_the_limit)
{
    expect_ops_bounded(PS_CHANGE_SCALE);
}

Test(shard_memory, fill_makes_no_rows_beyond_the_limit)
{
    expect_ops_bounded(PS_CHANGE_FILL);
}

Test(shard_memory, axpy_makes_no_rows_beyond_the_limit)
{
    cr_assert_eq(add_table(OTHER), PSD_OK);
    expect_ops_bounded(PS_CHANGE_AXPY);
}

/* Rows of the other table's range: 3000 of them fit once, but not twice. */
Test(shard_memory, axpy_counts_the_rows_of_the_other_table)
{
    uint64_t before = 0;
    uint64_t seq = 1;

    cr_assert_eq(add_table(OTHER), PSD_OK);
    for (; seq <= 3; seq++) {
        cr_assert_eq(change(seq, PS_CHANGE_FILL, OTHER, seq * MANY, true), PSD_OK);
        cr_assert_eq(said(&bench)->kind, PS_KIND_ACK);
    }
    before = ps_shard_bytes(bench.shard);
    for (uint64_t from = 1; from <= 3; from++) {
        cr_assert_eq(change(from, PS_CHANGE_AXPY, HASHED, from * MANY, false), PSD_OK);
        if (said(&bench)->kind != PS_KIND_ACK) {
            break;
        }
        before = ps_shard_bytes(bench.shard);
    }
    cr_expect_eq(said(&bench)->refused.status, PSD_LIMIT);
    cr_expect_leq(ps_shard_bytes(bench.shard), LIMIT);
    cr_expect_eq(ps_shard_bytes(bench.shard), before);
}

Test(shard_memory, ops_on_rows_that_are_there_go_on)
{
    uint64_t seq = 1;

    for (; seq < 20; seq++) {
        cr_assert_eq(change(seq, PS_CHANGE_FILL, HASHED, seq * MANY, true), PSD_OK);
        if (said(&bench)->kind != PS_KIND_ACK) {
            break;
        }
    }
    cr_assert_eq(change(seq + 1, PS_CHANGE_SCALE, HASHED, MANY, true), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_assert_eq(change(seq + 2, PS_CHANGE_SCALE, HASHED, 0, false), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
}

/* What an op goes through is no more than a push could carry, so that it holds
 * its shard no longer than one. */
Test(shard_memory, an_op_goes_through_no_more_than_a_push_carries)
{
    ps_message_t message = push_message(1);
    static const double operand = 1;

    bench.spec.n_cols = 1;
    bench.spec.keys = PS_KEYS_RANGE;
    bench.spec.n_rows = UINT64_C(1) << 20;
    bench.spec.n_partitions = 2;
    cr_assert_eq(add_table(OTHER), PSD_OK);
    message.push.table = OTHER;
    message.push.op = PS_CHANGE_FILL;
    message.push.rows = PS_ROWS_RANGE;
    message.push.n_rows = (UINT64_C(1) << 18) + 1;
    message.push.n_values = 0;
    memcpy(&message.push.operand, &operand, sizeof operand);
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    expect_refused(&bench, PSD_LIMIT,
                   "FILL of 262145 rows x 1 columns goes through 1048580 bytes "
                   "of values; allowed: limits.slice_bytes, which is 1048576");
    message.push.seq = message.push.request = 2;
    message.push.n_rows--;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
}

/* ---- of each table ------------------------------------------------------- */

#define SHARE ((uint64_t)1 << 20) /* of one of two partitions */

static void setup_tables(void)
{
    const ps_shard_args_t args = {.incarnation = INCARNATION,
                                  .table_bytes = 2 * SHARE,
                                  .credit_requests = 256,
                                  .credit_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .sessions_max = 2};

    setup();
    ps_shard_destroy(&bench.shard);
    cr_assert_eq(ps_shard_new(&args, &bench.shard, NULL), PSD_OK);
    cr_assert_eq(add_table(HASHED), PSD_OK);
    cr_assert_eq(add_table(OTHER), PSD_OK);
    cr_assert_eq(hello(&bench, &good_hello), PSD_OK);
}

TestSuite(shard_table_memory, .init = setup_tables, .fini = teardown);

Test(shard_table_memory, a_full_table_takes_no_more_rows_and_others_do)
{
    uint64_t seq = fill();
    ps_message_t message = push_message(1);

    cr_assert_gt(seq, SHARE / (WIDE * 4) / 2);
    cr_assert_eq(said(&bench)->refused.status, PSD_LIMIT);
    cr_expect_not_null(strstr(said(&bench)->refused.text,
                              " of table w; allowed: 1048576 for 1 of 2 "
                              "partitions, as limits.table_bytes is 2097152"),
                       "%s", said(&bench)->refused.text);
    cr_expect_leq(ps_shard_bytes(bench.shard), SHARE + (SHARE >> 1),
                  "the other table has next to nothing");
    cr_assert_eq(push_row(seq + 1, 1), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK, "the row is there");
    message.push.table = OTHER;
    message.push.cols = PS_COLS_RANGE;
    cr_assert_eq(push_as(&bench, &message, 1, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK, "it has a share of its own");
}

Test(shard_table_memory, an_op_makes_no_rows_beyond_it)
{
    cr_assert_eq(change(1, PS_CHANGE_FILL, HASHED, 1, true), PSD_OK);
    if (said(&bench)->kind == PS_KIND_ACK) {
        cr_assert_eq(change(2, PS_CHANGE_FILL, HASHED, 1 + MANY, true), PSD_OK);
    }
    cr_expect_eq(said(&bench)->refused.status, PSD_LIMIT);
}

Test(shard_table_memory, an_array_that_cannot_fit_is_not_made)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_event_t event = {.kind = PS_EVENT_TABLE,
                        .table = 9,
                        .spec = &bench.spec,
                        .routes = bench.routes,
                        .n_routes = 2};

    bench.spec.keys = PS_KEYS_RANGE;
    bench.spec.n_rows = 4096;
    ps_outbox_clear(&bench.outbox);
    cr_assert_eq(ps_shard_step(bench.shard, &event, &bench.outbox, err), PSD_LIMIT);
    cr_expect_str_eq(psd_error_text(err), "table w: its rows take 2097152 bytes on shard 0; "
                                          "allowed: 1048576 for 1 of 2 partitions, as "
                                          "limits.table_bytes is 2097152");
    bench.spec.n_rows = 2048;
    cr_expect_eq(ps_shard_step(bench.shard, &event, &bench.outbox, err), PSD_OK, "%s",
                 psd_error_text(err));
}

Test(shard_table_memory, what_waits_counts_for_its_table)
{
    ps_message_t message = push_message(1);
    uint64_t seq = fill();

    cr_assert_gt(seq, 1);
    message.push.table = HASHED;
    message.push.cols = PS_COLS_RANGE;
    message.push.ack = PS_ACK_DISK; /* which cannot be had */
    message.push.seq = message.push.request = seq + 1;
    cr_assert_eq(push_as(&bench, &message, 1, 1.0F), PSD_OK);
    cr_expect_null(answer(&bench), "one may always wait");
    for (int i = 0; i < 200 && answer(&bench) == NULL; i++) {
        message.push.seq = ++message.push.request;
        cr_assert_eq(push_as(&bench, &message, 1, 1.0F), PSD_OK);
    }
    expect_refused(&bench, PSD_BUSY, "the shard keeps as much of the table as table_bytes allows");
}
