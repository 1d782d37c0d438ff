/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/replica/replicas.h: a copy that is not the primary, and what maps do. */
#include "replica_kit.h"

static kit_t kit;

static void setup(void)
{
    kit_open(&kit);
}

static void teardown(void)
{
    kit_close(&kit);
}

TestSuite(replicas_take, .init = setup, .fini = teardown);

static const ps_msg_appended_t *appended(void)
{
    return &kit_said(&kit, PS_KIND_APPENDED)->appended;
}

/* Node 2 is the primary, and this copy has its first record. */
static void follow(const char *map)
{
    kit_map(&kit, map);
    kit_peer(&kit, 2);
    kit_append_push(&kit, 2, 5, 1, 0);
    cr_assert_eq(appended()->status, PS_APPENDED_OK);
    cr_assert_eq(appended()->lsn, 1);
}

Test(replicas_take, fenced_copy_takes_no_record_of_an_older_epoch)
{
    follow("5: 2P 1S");
    kit_fence(&kit, 6);
    cr_assert_eq(kit_report(&kit, PS_REPORT_POSITION)->lsn, 1);
    kit_append_push(&kit, 2, 5, 2, 5);
    cr_assert_eq(appended()->status, PS_APPENDED_EPOCH);
    cr_assert_eq(appended()->detail, 6);
}

/* The old primary of a move sends what it has before the copy is asked. */
Test(replicas_take, map_of_a_fence_alone_refuses_nothing)
{
    follow("5: 2P 1S");
    kit_map(&kit, "6F: 2S 1S");
    kit_append_push(&kit, 2, 5, 2, 5);
    cr_assert_eq(appended()->status, PS_APPENDED_OK);
    kit_fence(&kit, 6);
    kit_append_push(&kit, 2, 5, 3, 5);
    cr_assert_eq(appended()->status, PS_APPENDED_EPOCH);
}

/* A move ended as soon as the copy was in sync, before anything was sent in
 * that epoch: the lease of the epoch before was waited for, with every request.
 */
Test(replicas_take, who_ends_its_lease_ends_those_of_earlier_epochs)
{
    const ps_msg_append_t end = {.first_lsn = 2, .release = 1};

    follow("5: 2P 1S");
    kit_map(&kit, "6: 2P 1S");
    kit_map(&kit, "7F: 2S 1S");
    kit_fence(&kit, 7);
    kit_append(&kit, 2, 6, &end, NULL, NULL);
    kit_map(&kit, "8: 1P");
    cr_assert(kit_recorded(&kit, PS_RECORD_EPOCH));
}

Test(replicas_take, late_end_of_an_earlier_lease_ends_no_later_one)
{
    const ps_msg_append_t end = {.first_lsn = 2, .release = 1};

    follow("5: 2P 1S");
    kit_map(&kit, "6: 2P 1S");
    kit_append_push(&kit, 2, 6, 2, 5);
    kit_append(&kit, 2, 5, &end, NULL, NULL);
    kit_map(&kit, "7F: 2S 1S");
    kit_fence(&kit, 7);
    kit_map(&kit, "8: 1P");
    cr_assert_not(kit_recorded(&kit, PS_RECORD_EPOCH));
    kit_tick(&kit, 299);
    cr_assert_not(kit_recorded(&kit, PS_RECORD_EPOCH));
    kit_tick(&kit, 1);
    cr_assert(kit_recorded(&kit, PS_RECORD_EPOCH));
}

/* A late map threw away the copy that a newer one had put here. */
Test(replicas_take, older_map_takes_nothing_away)
{
    follow("5: 2P 1S");
    kit_map(&kit, "4: 2P");
    kit_append_push(&kit, 2, 5, 2, 5);
    cr_assert_eq(appended()->status, PS_APPENDED_OK);
    kit_fence(&kit, 7);
    kit_map(&kit, "6: 2P");
    kit_fence(&kit, 7);
    cr_assert_eq(kit_report(&kit, PS_REPORT_POSITION)->lsn, 2);
    kit_map(&kit, "8: 2P");
    kit_fence(&kit, 9);
    cr_assert_not(kit_reported(&kit, PS_REPORT_POSITION), "it is gone");
    kit_map(&kit, "5: 2P 1S");
    kit_fence(&kit, 9);
    cr_assert_not(kit_reported(&kit, PS_REPORT_POSITION), "and stays so");
}

/* The others of the table waited for one that could not be held. */
Test(replicas_take, partition_that_cannot_be_held_keeps_no_other_from_its_map)
{
    ps_shard_args_t args = kit_args();

    kit_close(&kit);
    args.memory_bytes = 4000;
    kit_open_with(&kit, &args);
    kit.spec.n_rows = 600;
    follow("5: 2P 1S");
    cr_assert_eq(kit_maps(&kit, "6: 1P", "7: 1P"), PSD_LIMIT);
    kit_tick(&kit, 300);
    kit_hello(&kit);
    kit_pull(&kit, 6);
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 1);
    kit_maps(&kit, "8: 1P", "7: 1P");
    kit_pull(&kit, 8);
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 1);
}

/* ---- copies that begin anew ---- */

Test(replicas_take, diverged_copy_that_is_in_sync_says_so)
{
    follow("5: 2P 1S");
    kit_map(&kit, "6: 2P 1S");
    kit_append_push(&kit, 2, 6, 2, 4);
    cr_assert_eq(appended()->status, PS_APPENDED_DIVERGED);
    kit_map(&kit, "7: 2P 1C");
    kit_append_push(&kit, 2, 7, 2, 4);
    cr_assert_eq(appended()->status, PS_APPENDED_GAP);
    cr_assert_eq(appended()->lsn, 0, "it has begun anew");
}

/* It waited for a map that nobody was going to make. */
Test(replicas_take, diverged_copy_that_catches_up_begins_anew_at_once)
{
    follow("5: 2P 1C");
    kit_append_push(&kit, 2, 5, 2, 4);
    cr_assert_eq(appended()->status, PS_APPENDED_GAP);
    cr_assert_eq(appended()->lsn, 0);
    kit_append_push(&kit, 2, 5, 1, 0);
    cr_assert_eq(appended()->status, PS_APPENDED_OK);
    cr_assert_eq(appended()->lsn, 1);
}

/* ---- what a record may be ---- */

Test(replicas_take, table_may_be_added_to_itself)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *row = NULL;
    const double twice = 2;
    ps_record_t record = kit_push_record(2, 5);
    uint8_t key[8] = {0};

    follow("5: 2P 1S");
    row = ps_payload_copy((ps_bytes_t){key, 8}, (ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0});
    cr_assert_not_null(row);
    record.op = (ps_row_op_t){.op = PS_CHANGE_AXPY, .other = KIT_TABLE};
    memcpy(&record.op.operand, &twice, sizeof twice);
    record.slice.n_values = 0;
    kit_append(&kit, 2, 5, &(ps_msg_append_t){.first_lsn = 2, .prev_epoch = 5}, &record, row);
    cr_assert_eq(appended()->status, PS_APPENDED_OK);
}

/* It counted as want of memory, and was sent for ever. */
Test(replicas_take, job_that_cannot_be_read_is_another_history)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *bytes = NULL;
    const ps_record_t record = {
        .kind = PS_RECORD_JOB, .table = KIT_TABLE, .lsn = 2, .epoch = 5, .job = 3, .seq = 1};

    follow("5: 2P 1S");
    bytes = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                            (ps_bytes_t){(const uint8_t *)"not a job", 9});
    cr_assert_not_null(bytes);
    kit_append(&kit, 2, 5, &(ps_msg_append_t){.first_lsn = 2, .prev_epoch = 5}, &record, bytes);
    cr_assert_eq(appended()->status, PS_APPENDED_DIVERGED);
}

/* The same of rows of a checkpoint. */
Test(replicas_take, rows_that_cannot_be_read_are_another_history)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *bytes = NULL;
    const ps_record_t record = {
        .kind = PS_RECORD_ROWS, .table = KIT_TABLE, .lsn = 2, .epoch = 5, .seq = 1};
    const uint8_t piece[32] = {1, 0, 0, 0, 0, 0, 0, 0, 1,
                               0, 0, 0, 0, 0, 0, 0, 1}; /* a row whose value is not there */

    follow("5: 2P 1S");
    bytes = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                            (ps_bytes_t){piece, sizeof piece});
    cr_assert_not_null(bytes);
    kit_append(&kit, 2, 5, &(ps_msg_append_t){.first_lsn = 2, .prev_epoch = 5}, &record, bytes);
    cr_assert_eq(appended()->status, PS_APPENDED_DIVERGED);
}

/* The last one that was waited for had all; what it has now is nothing, which
 * as a position would be that of a copy with all rows of an empty partition. */
Test(replicas_take, what_was_thrown_away_is_no_position)
{
    follow("5: 2P 1S");
    kit_map(&kit, "6: 2P 1S");
    kit_append_push(&kit, 2, 6, 2, 4);
    cr_assert_eq(appended()->status, PS_APPENDED_DIVERGED);
    kit_map(&kit, "7: 2P 1C");
    kit_fence(&kit, 8);
    cr_assert_not(kit_reported(&kit, PS_REPORT_POSITION));
    cr_assert(kit_reported(&kit, PS_REPORT_PARTIAL));
}

/* Records from the first on bring it all back; the map may say so late. */
Test(replicas_take, what_came_again_is_a_position)
{
    follow("5: 2P 1S");
    kit_map(&kit, "6: 2P 1S");
    kit_append_push(&kit, 2, 6, 2, 4);
    cr_assert_eq(appended()->status, PS_APPENDED_DIVERGED);
    kit_map(&kit, "7: 2P 1C");
    kit_append_push(&kit, 2, 7, 1, 0);
    cr_assert_eq(appended()->status, PS_APPENDED_OK);
    kit_fence(&kit, 8);
    cr_assert_eq(kit_report(&kit, PS_REPORT_POSITION)->lsn, 1);
}

/* Nobody else has anything: it serves, but not the half of it that it has. */
static void begin_empty(void)
{
    follow("5: 2P 1S");
    kit_map(&kit, "6: 2P 1S");
    kit_append_push(&kit, 2, 6, 2, 4);
    cr_assert_eq(appended()->status, PS_APPENDED_DIVERGED);
    kit_fence(&kit, 7);
    cr_assert(kit_reported(&kit, PS_REPORT_PARTIAL));
    kit.rows_lost = true;
    kit_map(&kit, "8: 1P 2C");
    kit_tick(&kit, 300);
    cr_assert(kit_recorded(&kit, PS_RECORD_EPOCH));
    kit_fence(&kit, 9);
    cr_assert_eq(kit_report(&kit, PS_REPORT_POSITION)->lsn, 1);
}

Test(replicas_take, half_a_copy_begins_empty_where_rows_are_lost)
{
    begin_empty();
}

/* Its node is what a forced removal left. */
Test(replicas_take, half_a_copy_begins_empty_where_the_operator_gave_rows_up)
{
    kit.spec.ack = PS_ACK_DISK;
    begin_empty();
}

Test(replicas_take, whole_copy_keeps_its_rows_where_others_are_lost)
{
    follow("5: 2P 1S");
    kit_fence(&kit, 6);
    kit.rows_lost = true;
    kit_map(&kit, "7: 1P 2C");
    kit_tick(&kit, 300);
    cr_assert(kit_recorded(&kit, PS_RECORD_EPOCH));
    kit_fence(&kit, 8);
    cr_assert_eq(kit_report(&kit, PS_REPORT_POSITION)->lsn, 2);
}
