/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of snapshots have a share of the disk's queue, whatever waits there.
 */
#include "shard_bench.h"

#define COLS (UINT32_C(1) << 18) /* a row is a piece */
#define ROW_BYTES (UINT64_C(1) << 20)
#define QUEUE_BYTES (ROW_BYTES * 5 / 2)
#define STATE_MAX 1000

static bench_t bench;
static uint64_t waiting; /* bytes that the shard has given and nobody flushed */

static void count_given(uint64_t *ret_n_pieces)
{
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        if (effect->kind == PS_EFFECT_PIECE) {
            waiting += ps_payload_size(effect->payload);
            *ret_n_pieces += 1;
        } else if (effect->kind == PS_EFFECT_RECORD) {
            waiting += ps_record_size(&effect->record, effect->payload);
        }
    }
}

/* So many bytes of what waits are flushed; the pieces that the shard gives
 * then. */
static uint64_t flushed(uint64_t bytes)
{
    uint64_t n_pieces = 0;

    cr_assert_leq(bytes, waiting);
    waiting -= bytes;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_FLUSHED,
                                            .flushed_bytes = bytes,
                                            .log_bytes = 100 * ROW_BYTES}),
                 PSD_OK);
    count_given(&n_pieces);
    return n_pieces;
}

static void push_row(uint64_t seq)
{
    static float values[COLS];
    const ps_message_t message = {.kind = PS_KIND_PUSH,
                                  .push = {.request = seq,
                                           .table = 1,
                                           .epoch = 4,
                                           .seq = seq,
                                           .type = PS_TYPE_F32,
                                           .n_rows = 1,
                                           .n_cols = COLS,
                                           .n_values = COLS}};
    const uint64_t row = seq % 3;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    uint64_t n_pieces = 0;

    for (uint32_t i = 0; i < COLS; i++) {
        values[i] = 1.0F; /* zeros would be left out of pieces */
    }
    payload = ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                              (ps_bytes_t){(const uint8_t *)values, sizeof values});
    cr_assert_eq(say(&bench, &message, payload), PSD_OK);
    count_given(&n_pieces);
    cr_assert_eq(n_pieces, 0);
}

static void begin(void)
{
    const ps_shard_args_t args = {.incarnation = INCARNATION,
                                  .credit_requests = 8,
                                  .credit_bytes = 8 << 20,
                                  .chunk_bytes = 2 << 20,
                                  .slice_bytes = 2 << 20,
                                  .held_bytes = 8 << 20,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = 8,
                                  .disk = true,
                                  .snapshot_after_bytes = 1,
                                  .log_queue_bytes = QUEUE_BYTES};
    uint64_t n_pieces = 0;

    waiting = 0;
    bench = (bench_t){.now_ms = 100};
    ps_table_spec_init(&bench.spec);
    (void)snprintf(bench.spec.name, sizeof bench.spec.name, "w");
    bench.spec.n_rows = 4;
    bench.spec.n_cols = COLS;
    bench.spec.n_partitions = 1;
    bench.spec.n_col_slices = 1;
    bench.spec.ack = PS_ACK_DISK;
    bench.routes[0] = (ps_route_t){.epoch = 4, .incarnation = INCARNATION};
    cr_assert_eq(ps_shard_new(&args, &bench.shard, NULL), PSD_OK);
    cr_assert_eq(set_table(&bench), PSD_OK);
    count_given(&n_pieces);
    cr_assert_eq(hello(&bench, &good_hello), PSD_OK);
    /* What waits is more than may, and never less than a quarter of it. */
    for (uint64_t seq = 1; seq <= 3; seq++) {
        push_row(seq);
    }
    cr_assert_geq(waiting, QUEUE_BYTES);
}

static void finish(void)
{
    close_bench(&bench);
}

TestSuite(shard_snapshot, .init = begin, .fini = finish);

Test(shard_snapshot, goes_on_while_records_fill_the_queue)
{
    cr_expect_eq(flushed(0), 2, "the state, and a piece of rows");
}

Test(shard_snapshot, takes_no_more_than_its_share)
{
    uint64_t records = waiting;

    cr_assert_eq(flushed(0), 2);
    cr_expect_eq(flushed(0), 0, "nothing of them is flushed");
    cr_expect_eq(flushed(records - 1), 0, "records were");
    cr_expect_gt(flushed(1 + STATE_MAX), 0, "the state is");
    cr_expect_leq(waiting, 2 * ROW_BYTES + STATE_MAX);
}

Test(shard_snapshot, ends_though_the_disk_is_always_behind)
{
    uint64_t n_pieces = flushed(0);

    for (uint64_t seq = 4; seq < 16; seq++) {
        n_pieces += flushed(waiting - QUEUE_BYTES / 2);
        push_row(seq);
        cr_assert_gt(waiting, QUEUE_BYTES / 4);
    }
    cr_expect_geq(n_pieces, 4, "the rows, and the state");
    cr_expect_eq(flushed(waiting), 0, "the round is over");
}
