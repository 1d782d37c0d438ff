/* SPDX-License-Identifier: Apache-2.0 */
/* What a node may keep: arrays are counted when they are made, rows when they
 * appear, and what is there goes on when nothing new fits. */
#include "shard_bench.h"

#define LIMIT ((uint64_t)4 << 20)
#define HASHED 2
#define WIDE 256 /* columns of its rows */

static bench_t bench;

static psd_status_t
add_table(uint32_t table)
{
    return step(&bench, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                      .table = table,
                                      .spec = &bench.spec,
                                      .routes = bench.routes,
                                      .n_routes = 2});
}

static void
setup(void)
{
    cr_assert_eq(open_bench_within(&bench, LIMIT), PSD_OK);
    bench.spec.keys = PS_KEYS_HASH;
    bench.spec.n_rows = 0;
    bench.spec.n_cols = WIDE;
    cr_assert_eq(add_table(HASHED), PSD_OK);
}

static void
teardown(void)
{
    close_bench(&bench);
}

TestSuite(shard_memory, .init = setup, .fini = teardown);

static psd_status_t
push_row(uint64_t seq, uint64_t row)
{
    static const float values[WIDE] = {1.0F};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy(
        (ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
        (ps_bytes_t){(const uint8_t *)values, sizeof values});
    ps_message_t message = push_message(seq);

    message.push.table = HASHED;
    message.push.n_cols = WIDE;
    message.push.n_values = WIDE;
    return payload == NULL ? PSD_NOMEM : say(&bench, &message, payload);
}

/* While the other shards keep as much as the node may. */
static psd_status_t
push_beside_others(const ps_message_t *message)
{
    static const uint64_t row = 2;
    static const float value = 1;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy(
        (ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
        (ps_bytes_t){(const uint8_t *)&value, sizeof value});

    return step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                      .conn = CONN,
                                      .message = message,
                                      .payload = payload,
                                      .other_bytes = LIMIT});
}

/* Pushes new rows until one is refused: its seq. */
static uint64_t
fill(void)
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

Test(shard_memory,
     refuses_new_rows_above_the_limit_and_takes_pushes_to_old_ones)
{
    uint64_t seq = fill();

    cr_assert_gt(seq, LIMIT / (WIDE * 4) / 2, "half of it are rows, at least");
    cr_assert_lt(seq, LIMIT / (WIDE * 4) + 1);
    cr_assert_eq(said(&bench)->refused.status, PSD_LIMIT);
    cr_expect_not_null(
        strstr(said(&bench)->refused.text, "limits.memory_bytes is 4194304"));
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
    cr_assert_eq(ps_shard_step(bench.shard, &event, &bench.outbox, err),
                 PSD_LIMIT);
    cr_expect_not_null(strstr(psd_error_text(err),
                              "its rows take 8388608 bytes here and the node "
                              "keeps "),
                       "%s", psd_error_text(err));
    cr_expect_eq(ps_shard_bytes(bench.shard), before);
}

Test(shard_memory, a_dropped_table_makes_room)
{
    uint64_t seq = fill();
    uint64_t before = ps_shard_bytes(bench.shard);

    cr_assert_gt(seq, 1);
    cr_assert_eq(
        step(&bench, &(ps_event_t){.kind = PS_EVENT_DROP, .table = HASHED}),
        PSD_OK);
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
    expect_refused(&bench, PSD_BUSY,
                   "the node keeps as much as memory_bytes allows");
}
