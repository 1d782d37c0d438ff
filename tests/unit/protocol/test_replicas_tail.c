/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/replica/replicas.h: how much a primary keeps for copies that are away. */
#include "replica_kit.h"

#define LEAST ((uint64_t)1 << 20) /* of a partition with fewer bytes */
#define RECORD_MOST 256           /* bytes of one push's record, at most */

static kit_t kit;

/* Partitions of so many rows of 8 bytes, where copies lag by no more. */
static void open_rows(uint64_t n_rows, uint64_t tail_bytes)
{
    ps_shard_args_t args = kit_args();

    args.tail_bytes = tail_bytes;
    kit_open_with(&kit, &args);
    kit.spec.n_rows = n_rows * KIT_PARTITIONS;
}

static void teardown(void)
{
    kit_close(&kit);
}

TestSuite(replicas_tail, .fini = teardown);

/* Pushes at level memory from seq on, of so many bytes of records about. */
static uint64_t push_bytes(uint64_t epoch, uint64_t seq, uint64_t bytes)
{
    const uint64_t n = bytes / 64; /* a record has more */

    for (uint64_t i = 0; i < n; i++) {
        kit_push(&kit, epoch, seq + i, PS_ACK_MEMORY);
        cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 1);
    }
    return seq + n;
}

/* The most that the shard has kept after each of some pushes; node 3 catches
 * up and says nothing. */
static uint64_t most_for_one_away(uint64_t n_bytes)
{
    uint64_t most = 0;
    uint64_t seq = 1;

    kit_map(&kit, "5: 1P 3C");
    kit_hello(&kit);
    kit_tick(&kit, 100);
    kit_welcome(&kit, 3);
    for (int i = 0; i < 64; i++) {
        seq = push_bytes(5, seq, n_bytes / 64);
        most = ps_shard_tail_bytes(kit.shard) > most ? ps_shard_tail_bytes(kit.shard) : most;
    }
    return most;
}

Test(replicas_tail, no_more_is_kept_than_the_partition_has)
{
    uint64_t most = 0;

    open_rows(3 * LEAST / 16, 0); /* 1.5 MiB each */
    most = most_for_one_away(3 * LEAST);
    cr_assert_gt(most, LEAST);
    cr_assert_leq(most, 3 * LEAST / 2 + RECORD_MOST);
}

Test(replicas_tail, of_a_small_partition_a_mebibyte_is_kept)
{
    uint64_t most = 0;

    open_rows(8, 0);
    most = most_for_one_away(2 * LEAST);
    cr_assert_gt(most, LEAST / 2);
    cr_assert_leq(most, LEAST + RECORD_MOST);
}

Test(replicas_tail, tail_bytes_is_less)
{
    open_rows(LEAST / 8, 5000);
    cr_assert_leq(most_for_one_away(LEAST / 4), 5000 + RECORD_MOST);
}

/* It lacks what is gone, so it is given everything. */
Test(replicas_tail, copy_that_was_away_too_long_gets_rows)
{
    open_rows(8, 0);
    (void)most_for_one_away(2 * LEAST);
    kit_tick(&kit, 100);
    cr_assert_eq(kit_count(&kit, PS_KIND_ROWS), 1);
}

/* What it lacks is kept, so pushes wait, and say what for. */
Test(replicas_tail, pushes_wait_for_a_copy_in_sync)
{
    uint64_t seq = 1;
    char reason[PS_WAIT_REASON_SIZE] = "";
    const ps_local_table_t *table = NULL;

    open_rows(8, 0);
    kit_serve(&kit);
    do {
        kit_push(&kit, 5, seq, PS_ACK_MEMORY);
        seq++;
    } while (kit_count(&kit, PS_KIND_ACK) == 1 && seq < LEAST);
    cr_assert_geq(ps_shard_tail_bytes(kit.shard), LEAST);
    cr_assert_leq(ps_shard_tail_bytes(kit.shard), LEAST + RECORD_MOST);
    table = ps_map_get(&kit.shard->step.tables, KIT_TABLE);
    ps_replicas_reason(&kit.shard->step, table->partitions[0], reason, sizeof reason);
    cr_assert_not_null(strstr(reason, "allowed: 1048576"), "%s", reason);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, seq - 2);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 1, "the one that waited");
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, seq - 1);
    cr_assert_eq(ps_shard_tail_bytes(kit.shard), 0);
}

Test(replicas_tail, nothing_is_kept_of_a_table_that_was_dropped)
{
    ps_shard_info_t info;

    open_rows(8, 0);
    (void)most_for_one_away(LEAST / 4);
    ps_shard_info(kit.shard, &info);
    cr_assert_gt(info.tail_bytes, 0);
    cr_assert_eq(info.tail_bytes, ps_shard_tail_bytes(kit.shard));
    cr_assert_eq(kit_step(&kit, &(ps_event_t){.kind = PS_EVENT_DROP, .table = KIT_TABLE}), PSD_OK);
    ps_shard_info(kit.shard, &info);
    cr_assert_eq(info.tail_bytes, 0);
}
