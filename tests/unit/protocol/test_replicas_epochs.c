/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/replica/replicas.h: a copy whose tail does not know its own records' epochs
 * any more tells another history from its primary's all the same. */
#include "protocol/facts/job_bytes.h"
#include "protocol/partition/partition_copy.h"
#include "protocol/shard/shard_recover.h"
#include "replica_kit.h"

static kit_t kit;
static kit_t source;

static const ps_msg_appended_t *appended(void)
{
    return &kit_said(&kit, PS_KIND_APPENDED)->appended;
}

static void recover_push(const ps_record_t *record)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *one = kit_one_value(0, 1);
    const ps_body_t body = {one->spans[0], {NULL, 0}, one->spans[one->n_spans - 1]};

    cr_assert_eq(ps_shard_recover_record(kit.shard, record, &body, NULL), PSD_OK);
}

static void open_with_disk(void)
{
    ps_shard_args_t args = kit_args();

    args.disk = true;
    kit_open_with(&kit, &args);
    kit.spec.ack = PS_ACK_DISK;
    cr_assert_eq(ps_shard_recover_table(kit.shard, KIT_TABLE, &kit.spec, NULL), PSD_OK);
}

/* It has 105 records of epoch 5 from its disk; the primary has 95 of them, and
 * made others under epoch 6. */
static void recover_105(void)
{
    open_with_disk();
    for (uint64_t lsn = 1; lsn <= 105; lsn++) {
        const ps_record_t record = kit_push_record(lsn, 5);

        recover_push(&record);
    }
    cr_assert_eq(ps_shard_recover_end(kit.shard, NULL), PSD_OK);
    kit_map(&kit, "6: 2P 1S");
    kit_peer(&kit, 2);
}

Test(replicas_epochs, a_log_from_disk_is_not_the_primarys_behind_a_later_epoch)
{
    recover_105();
    kit_append(&kit, 2, 6, &(ps_msg_append_t){.first_lsn = 97, .prev_epoch = 6}, NULL, NULL);
    cr_assert_eq(appended()->status, PS_APPENDED_DIVERGED);
    kit_close(&kit);
}

Test(replicas_epochs, a_record_from_disk_is_not_one_of_a_later_epoch)
{
    recover_105();
    kit_append_push(&kit, 2, 6, 96, 5);
    cr_assert_eq(appended()->status, PS_APPENDED_DIVERGED);
    kit_close(&kit);
}

static ps_partition_t *partition_of(const kit_t *self)
{
    ps_local_table_t *table = ps_map_get(&self->shard->step.tables, KIT_TABLE);

    return table->partitions[0];
}

/* Node 1 takes state and rows behind record 105 of node 3. */
static void take_rows_of_105(void)
{
    ps_outbox_t outbox = {0};
    ps_store_cursor_t cursor = {0};
    ps_payload_t *state = NULL;
    ps_payload_t *piece = NULL;
    bool done = false;
    ps_message_t message = {.kind = PS_KIND_ROWS};

    kit_open(&source);
    kit_map(&source, "5: 3P 1S");
    kit_peer(&source, 3);
    for (uint64_t lsn = 1; lsn <= 105; lsn++) {
        kit_append_push(&source, 3, 5, lsn, lsn == 1 ? 0 : 5);
    }
    source.shard->step.outbox = &outbox;
    state = ps_partition_give_state(partition_of(&source));
    cr_assert_eq(ps_partition_give_rows(&source.shard->step, partition_of(&source), &cursor,
                                        1 << 20, &piece, &done, NULL),
                 PSD_OK);
    cr_assert(done);
    kit_open(&kit);
    kit_map(&kit, "5: 3P 2S 1C");
    kit_peer(&kit, 3);
    kit_peer(&kit, 2);
    message.rows = (ps_msg_rows_t){.request = 1,
                                   .table = KIT_TABLE,
                                   .epoch = 5,
                                   .transfer = 1,
                                   .lsn = 105,
                                   .lsn_epoch = 5,
                                   .kind = PS_GIVEN_STATE,
                                   .size = state->spans[0].size};
    kit_say(&kit, KIT_CONN + 3, &message, state);
    message.rows.request = 2;
    message.rows.kind = PS_GIVEN_PIECE;
    message.rows.last = 1;
    message.rows.size = piece->spans[0].size;
    kit_say(&kit, KIT_CONN + 3, &message, piece);
    ps_payload_destroy(&state);
    ps_payload_destroy(&piece);
    ps_outbox_done(&outbox);
    kit_close(&source);
}

Test(replicas_epochs, a_state_ahead_of_the_next_primary_is_another_history)
{
    take_rows_of_105();
    kit_map(&kit, "6: 2P 1C"); /* which has 95 of those records */
    kit_append(&kit, 2, 6, &(ps_msg_append_t){.first_lsn = 96, .prev_epoch = 5}, NULL, NULL);
    cr_assert_eq(appended()->lsn, 95);
    kit_append_push(&kit, 2, 6, 96, 5);
    cr_assert_eq(appended()->status, PS_APPENDED_GAP);
    cr_assert_eq(appended()->lsn, 0, "it has begun anew");
    kit_close(&kit);
}

/* What was never compared with the primary's log is not said to be flushed. */
Test(replicas_epochs, a_flush_says_no_more_than_what_was_compared)
{
    const ps_position_t position = {.table = KIT_TABLE, .partition = 0, .lsn = 5};

    open_with_disk();
    kit_map(&kit, "5: 3P 2S 1S");
    kit_peer(&kit, 3);
    kit_peer(&kit, 2);
    for (uint64_t lsn = 1; lsn <= 5; lsn++) {
        kit_append_push(&kit, 3, 5, lsn, lsn == 1 ? 0 : 5);
    }
    cr_assert_eq(appended()->lsn, 5);
    kit_map(&kit, "6: 2P 1C"); /* node 2 asks behind 2 of them */
    kit_append(&kit, 2, 6, &(ps_msg_append_t){.first_lsn = 3, .prev_epoch = 5}, NULL, NULL);
    cr_assert_eq(appended()->lsn, 2);
    kit_step(&kit, &(ps_event_t){.kind = PS_EVENT_FLUSHED, .flushed = &position, .n_flushed = 1});
    cr_assert_leq(appended()->lsn, 2);
    cr_assert_leq(appended()->flushed_lsn, 2);
    kit_close(&kit);
}

/* Pushes of open clocks of a life that has ended are not counted any more. */
Test(replicas_epochs, a_life_that_began_anew_leaves_no_bytes)
{
    ps_worker_t workers[2] = {
        {.worker = 0, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1},
        {.worker = 1, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1}};
    const ps_job_t job = {.id = 3, .version = 1, .workers = workers, .n_workers = 2};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *bytes = ps_job_encode(&job);
    const ps_record_t first = {
        .kind = PS_RECORD_JOB, .table = KIT_TABLE, .lsn = 1, .epoch = 5, .job = 3, .seq = 1};
    const ps_body_t body = {{NULL, 0}, {NULL, 0}, bytes->spans[0]};

    open_with_disk();
    cr_assert_eq(ps_shard_recover_record(kit.shard, &first, &body, NULL), PSD_OK);
    for (uint64_t lsn = 2; lsn <= 20; lsn++) {
        ps_record_t record = kit_push_record(lsn, 5);

        record.job = 3;
        record.joins = 1;
        recover_push(&record);
    }
    cr_assert_gt(kit.shard->step.logged_bytes, 0);
    ps_shard_recover_drop(kit.shard, KIT_TABLE, 0);
    cr_assert_eq(ps_shard_recover_lsn(kit.shard, KIT_TABLE, 0), 0);
    cr_assert_eq(kit.shard->step.logged_bytes, 0);
    kit_close(&kit);
}

/* What it has is its own, or half of its primary's: a position would be taken
 * for one that it can go on from. */
Test(replicas_epochs, a_copy_that_is_not_whole_says_so_and_no_position)
{
    recover_105();
    kit_append(&kit, 2, 6, &(ps_msg_append_t){.first_lsn = 97, .prev_epoch = 6}, NULL, NULL);
    cr_assert_eq(appended()->status, PS_APPENDED_DIVERGED);
    kit_fence(&kit, 7);
    cr_assert(kit_reported(&kit, PS_REPORT_PARTIAL));
    cr_assert_not(kit_reported(&kit, PS_REPORT_POSITION));
    kit_close(&kit);
}

/* A table of one copy, whose primary is node 1, and no push fits a frame. */
static void open_moving(const char *map)
{
    ps_shard_args_t args = kit_args();

    args.record_bytes = PS_RECORD_BESIDE;
    kit_open_with(&kit, &args);
    kit.spec.replicas = 1;
    kit.spec.ack = PS_ACK_MEMORY;
    kit_map(&kit, map);
    kit_hello(&kit);
    kit_tick(&kit, 100);
    kit_welcome(&kit, 2);
}

/* Nobody's request fails because something moves: what cannot be sent as a
 * record goes with the rows, which begin anew. */
Test(replicas_epochs, a_push_that_no_frame_carries_lets_a_move_begin_anew)
{
    open_moving("5: 1P 2C");
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 1);
    cr_assert_eq(kit_count(&kit, PS_KIND_APPEND), 0);
    cr_assert_eq(kit_said(&kit, PS_KIND_ROWS)->rows.kind, PS_GIVEN_STATE);
    cr_assert_eq(kit_said(&kit, PS_KIND_ROWS)->rows.lsn, 1);
    kit_close(&kit);
}

/* The new place may take over at any moment, and would not have it. */
Test(replicas_epochs, a_push_that_no_frame_carries_waits_for_a_move_to_end)
{
    open_moving("5: 1P 2S");
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 0);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 0);
    cr_assert_eq(kit_count(&kit, PS_KIND_REFUSED), 0);
    kit_tick(&kit, 250);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 0);
    kit_tick(&kit, 250);
    cr_assert_str_eq(kit_said(&kit, PS_KIND_PARKED)->parked.text,
                     "waiting until partition 0 has moved: this push cannot be redirected");
    kit_map(&kit, "6: 1P 2C");
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 1);
    kit_close(&kit);
}

/* It had caught up by the empty log of its primary, and was told that it is in
 * sync when it had begun anew: it took records then, behind those of its old
 * life in its log, and a start did not find them. */
Test(replicas_epochs, a_copy_that_has_begun_anew_takes_a_state_first)
{
    open_with_disk();
    for (uint64_t lsn = 1; lsn <= 5; lsn++) {
        const ps_record_t record = kit_push_record(lsn, 5);

        recover_push(&record);
    }
    cr_assert_eq(ps_shard_recover_end(kit.shard, NULL), PSD_OK);
    kit_map(&kit, "6: 2P 1C");
    kit_peer(&kit, 2);
    kit_append_push(&kit, 2, 6, 1, 0);
    kit_map(&kit, "7: 2P 1S");
    kit_append_push(&kit, 2, 7, 1, 0);
    cr_expect_eq(appended()->status, PS_APPENDED_PARTIAL);
    cr_expect_not(kit_recorded(&kit, PS_RECORD_PUSH));
    kit_close(&kit);
}
