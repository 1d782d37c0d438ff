/* SPDX-License-Identifier: Apache-2.0 */
/* Level disk: no answer before the flush, and what a start finds again. */
#include "protocol/shard/shard_recover.h"
#include "protocol/shard/shard_state.h"
#include "shard_bench.h"

#define QUEUE_BYTES 400 /* two records of one float, about */

static bench_t bench;
static uint64_t life;       /* of the partition, which the disk tells of */
static uint64_t tail_bytes; /* 0: the default */

/* A shard that has a disk, and partition 0 of a table with ack level disk. */
static void open_disk_bench(void)
{
    const ps_shard_args_t args = {.incarnation = INCARNATION,
                                  .credit_requests = 8,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = 8,
                                  .disk = true,
                                  .log_queue_bytes = QUEUE_BYTES,
                                  .tail_bytes = tail_bytes};

    bench = (bench_t){.now_ms = 100};
    ps_table_spec_init(&bench.spec);
    (void)snprintf(bench.spec.name, sizeof bench.spec.name, "w");
    bench.spec.n_rows = N_ROWS;
    bench.spec.n_partitions = 2;
    bench.spec.n_col_slices = 1;
    bench.spec.ack = PS_ACK_DISK;
    for (uint32_t i = 0; i < 2; i++) {
        bench.routes[i] =
            (ps_route_t){.partition = i, .shard = i, .epoch = 4, .incarnation = INCARNATION};
    }
    cr_assert_eq(ps_shard_new(&args, &bench.shard, NULL), PSD_OK);
}

static void finish(void)
{
    close_bench(&bench);
}

static void flushed(uint64_t lsn, uint64_t bytes, const char *trouble)
{
    const ps_position_t position = {.table = 1, .partition = 0, .lsn = lsn, .life = life};

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_FLUSHED,
                                            .flushed = &position,
                                            .n_flushed = lsn > 0 ? 1 : 0,
                                            .flushed_bytes = bytes,
                                            .disk_trouble = trouble}),
                 PSD_OK);
}

static const ps_effect_t *record(void)
{
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        if (bench.outbox.effects[i].kind == PS_EFFECT_RECORD) {
            return &bench.outbox.effects[i];
        }
    }
    return NULL;
}

/* The same for looking into. */
static const ps_effect_t *recorded(void)
{
    static const ps_effect_t nothing;
    const ps_effect_t *effect = record();

    cr_assert_not_null(effect);
    return effect == NULL ? &nothing : effect;
}

static uint64_t record_bytes(void)
{
    const ps_effect_t *effect = recorded();

    return ps_record_size(&effect->record, effect->payload);
}

static void begin(void)
{
    open_disk_bench();
    cr_assert_eq(set_table(&bench), PSD_OK);
    life = recorded()->record.seq;
    flushed(0, record_bytes(), NULL);
    cr_assert_eq(hello(&bench, &good_hello), PSD_OK);
}

TestSuite(shard_disk, .init = begin, .fini = finish);

Test(shard_disk, answers_behind_the_flush_only)
{
    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    cr_expect_null(answer(&bench));
    cr_expect_eq(recorded()->record.lsn, 1);
    cr_assert_eq(push(&bench, 2, 2, 1.0F), PSD_OK);
    cr_expect_null(answer(&bench));
    flushed(1, 0, NULL);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(said(&bench)->ack.seq, 1);
    cr_expect_eq(said(&bench)->ack.level, PS_ACK_DISK);
    flushed(1, 0, NULL);
    cr_expect_null(answer(&bench), "it is told once");
    flushed(2, 0, NULL);
    cr_expect_eq(said(&bench)->ack.seq, 2);
    cr_expect_eq(pull(&bench, 2), 2.0F);
}

Test(shard_disk, passes_over_what_it_has_not_written)
{
    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    flushed(9, 0, NULL); /* of another life of the partition */
    cr_expect_null(answer(&bench));
}

Test(shard_disk, answers_memory_at_once)
{
    ps_message_t message = push_message(1);

    message.push.ack = PS_ACK_MEMORY;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(said(&bench)->ack.level, PS_ACK_MEMORY);
    cr_expect_not_null(record());
}

Test(shard_disk, a_repetition_waits_for_the_same_flush)
{
    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    cr_expect_null(answer(&bench));
    cr_expect_null(record());
    flushed(1, 0, NULL);
    cr_expect_eq(said(&bench)->ack.level, PS_ACK_DISK);
    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(said(&bench)->ack.level, PS_ACK_DISK);
    cr_expect_eq(pull(&bench, 2), 1.0F);
}

Test(shard_disk, remembers_a_refusal_behind_the_flush)
{
    cr_assert_eq(push(&bench, 1, N_ROWS, 1.0F), PSD_OK);
    cr_expect_null(answer(&bench));
    cr_expect_eq(recorded()->record.kind, PS_RECORD_REFUSAL);
    flushed(1, 0, NULL);
    cr_expect_eq(said(&bench)->kind, PS_KIND_REFUSED);
}

Test(shard_disk, holds_pushes_while_the_disk_is_behind)
{
    ps_message_t message = push_message(4);
    uint64_t bytes = 0;

    for (uint64_t seq = 1; seq <= 3; seq++) {
        cr_assert_eq(push(&bench, seq, 2, 1.0F), PSD_OK);
        bytes += record_bytes();
    }
    cr_assert_geq(bytes, QUEUE_BYTES);
    message.push.timeout_ms = 50;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_null(record());
    cr_expect_eq(pull(&bench, 2), 3.0F, "what is in memory is served");
    flushed(0, 0, "there is no room");
    bench.now_ms = 150;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    cr_assert_eq(said(&bench)->kind, PS_KIND_PARKED);
    cr_expect_str_eq(said(&bench)->parked.text,
                     "waiting for the disk of node 1001 shard 0: 456 bytes are not "
                     "flushed; allowed: 400; there is no room");
    flushed(0, bytes, NULL);
    cr_expect_not_null(record(), "there is room again");
    cr_expect_eq(recorded()->record.seq, 4);
}

/* A shard that reads the one record again. */
static void start_again(const ps_effect_t *effect)
{
    const ps_body_t body = {.keys = effect->payload->keys, .values = effect->payload->span};

    close_bench(&bench);
    open_disk_bench();
    cr_assert_eq(ps_shard_recover_table(bench.shard, 1, &bench.spec, NULL), PSD_OK);
    cr_assert_eq(ps_shard_recover_record(bench.shard, &effect->record, &body, NULL), PSD_OK);
    cr_expect_eq(ps_shard_recover_lsn(bench.shard, 1, 0), 1);
    cr_assert_eq(ps_shard_recover_end(bench.shard, NULL), PSD_OK);
    cr_assert_eq(set_table(&bench), PSD_OK);
    life = 0; /* it goes on */
}

Test(shard_disk, applies_a_push_from_before_a_restart_once)
{
    ps_effect_t kept;
    const ps_msg_hello_t old = {
        .version_min = 1, .version_max = 1, .incarnation = INCARNATION, .session = 2};

    cr_assert_eq(hello(&bench, &good_hello), PSD_OK);
    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    kept = *recorded();
    kept.payload = ps_payload_keep(kept.payload);
    start_again(&kept);
    ps_payload_destroy(&kept.payload);
    cr_assert_eq(hello(&bench, &old), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_WELCOME,
                 "its rows are here: an old session may go on");
    cr_assert_eq(hello(&bench, &good_hello), PSD_OK);
    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    flushed(2, 0, NULL); /* the epoch's record, of which it is behind */
    cr_expect_eq(pull(&bench, 2), 1.0F);
}

static bool has_begun(void)
{
    const ps_effect_t *effect = record();

    return effect != NULL && effect->record.kind == PS_RECORD_ANEW;
}

/* Partition 0 goes to another shard, or comes here. */
static void move_to(uint32_t shard, uint64_t epoch)
{
    bench.routes[0].shard = shard;
    bench.routes[0].epoch = epoch;
    cr_assert_eq(set_table(&bench), PSD_OK);
}

/* What it had here before is still in the log. */
Test(shard_disk, tells_the_log_that_a_new_partition_begins)
{
    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    move_to(1, 5);
    cr_expect_eq(recorded()->record.kind, PS_RECORD_LEAVE);
    cr_expect_eq(recorded()->record.lsn, 1);
    cr_expect_eq(recorded()->record.seq, life);
    move_to(0, 6);
    cr_assert(has_begun());
    cr_expect_eq(recorded()->record.lsn, 0);
    cr_expect_eq(recorded()->record.epoch, 0);
    cr_expect_gt(recorded()->record.seq, life);
    move_to(0, 7);
    cr_expect_not(has_begun(), "it is here already");
}

Test(shard_disk, what_the_disk_has_of_an_earlier_life_answers_nothing)
{
    ps_message_t message = push_message(1);
    uint64_t lsn = 0;

    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    move_to(1, 5);
    flushed(0, record_bytes(), NULL);
    move_to(0, 6);
    message.push.epoch = 6;
    cr_assert_eq(push_as(&bench, &message, 2, 100.0F), PSD_OK);
    cr_expect_null(answer(&bench));
    lsn = recorded()->record.lsn;
    flushed(lsn, 0, NULL);
    cr_expect_null(answer(&bench));
    life++;
    flushed(lsn, 0, NULL);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK, "it needs no snapshot");
    cr_expect_eq(said(&bench)->ack.level, PS_ACK_DISK);
}

Test(shard_disk, goes_on_with_what_a_start_has_found)
{
    ps_effect_t kept;

    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    kept = *recorded();
    kept.payload = ps_payload_keep(kept.payload);
    start_again(&kept);
    ps_payload_destroy(&kept.payload);
    cr_expect_not(has_begun());
}

Test(shard_disk, what_a_start_has_found_and_is_elsewhere_leaves)
{
    ps_effect_t kept;

    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    kept = *recorded();
    kept.payload = ps_payload_keep(kept.payload);
    start_again(&kept);
    ps_payload_destroy(&kept.payload);
    ps_shard_recover_life(bench.shard, 1, 0, 5);
    ps_shard_recover_lives(bench.shard, 8);
    move_to(1, 9);
    cr_expect_eq(recorded()->record.kind, PS_RECORD_LEAVE);
    cr_expect_eq(recorded()->record.seq, 5);
    move_to(0, 10);
    cr_assert(has_begun());
    cr_expect_eq(recorded()->record.seq, 9, "no number comes twice");
}

/* With lsn 0: there is none. */
static ps_record_t epoch_record(void)
{
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        if (bench.outbox.effects[i].kind == PS_EFFECT_RECORD &&
            bench.outbox.effects[i].record.kind == PS_RECORD_EPOCH) {
            return bench.outbox.effects[i].record;
        }
    }
    return (ps_record_t){.lsn = 0};
}

/* Another copy's log may have what this one had not flushed. Without a record
 * of the new epoch such a copy counted as whole, though it had more. */
Test(shard_disk, a_primary_that_had_flushed_nothing_begins_with_its_epoch)
{
    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    close_bench(&bench);
    open_disk_bench();
    cr_assert_eq(ps_shard_recover_table(bench.shard, 1, &bench.spec, NULL), PSD_OK);
    ps_shard_recover_lives(bench.shard, life);
    cr_assert_eq(ps_shard_recover_end(bench.shard, NULL), PSD_OK);
    cr_assert_eq(set_table(&bench), PSD_OK);
    cr_assert(has_begun());
    cr_expect_eq(epoch_record().lsn, 1);
    cr_expect_eq(epoch_record().epoch, bench.routes[0].epoch);
    cr_assert_eq(hello(&bench, &good_hello), PSD_OK);
    cr_expect_eq(pull(&bench, 2), 0.0F, "it serves");
}

/* Nobody had any of it before. */
Test(shard_disk, a_new_table_begins_without_a_record_of_its_epoch)
{
    close_bench(&bench);
    open_disk_bench();
    cr_assert_eq(set_table(&bench), PSD_OK);
    cr_assert(has_begun());
    cr_expect_eq(epoch_record().lsn, 0);
}

/* A log elsewhere may have more of the rows that are lost. */
Test(shard_disk, what_is_made_anew_for_lost_rows_begins_with_its_epoch)
{
    close_bench(&bench);
    open_disk_bench();
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                            .table = 1,
                                            .spec = &bench.spec,
                                            .routes = bench.routes,
                                            .n_routes = 2,
                                            .rows_lost = true}),
                 PSD_OK);
    cr_expect_eq(epoch_record().lsn, 1);
}

Test(shard_disk, refuses_records_that_do_not_follow)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const ps_body_t nothing = {.keys = {NULL, 0}};
    const ps_record_t third = {.kind = PS_RECORD_EPOCH, .table = 1, .lsn = 3};
    const ps_record_t other = {.kind = PS_RECORD_EPOCH, .table = 7, .lsn = 1};

    close_bench(&bench);
    open_disk_bench();
    cr_assert_eq(ps_shard_recover_table(bench.shard, 1, &bench.spec, NULL), PSD_OK);
    cr_expect_eq(ps_shard_recover_record(bench.shard, &other, &nothing, err), PSD_OK,
                 "of a table that was dropped");
    cr_expect_eq(ps_shard_recover_record(bench.shard, &third, &nothing, err), PSD_DAMAGED);
    cr_expect_str_eq(psd_error_text(err), "records 1 .. 2 of partition 0 of table 1 are missing");
}

/* Answers that wait for the disk took all the room that they have. The push
 * that waited for it was forgotten when they went. */
Test(shard_disk, a_push_goes_on_when_answers_that_waited_have_gone)
{
    close_bench(&bench);
    tail_bytes = 1;
    begin();
    tail_bytes = 0;
    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    cr_expect_not_null(record());
    cr_assert_eq(push(&bench, 2, 2, 1.0F), PSD_OK);
    cr_expect_null(record(), "there is no room for its answer");
    flushed(1, 0, NULL);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(recorded()->record.seq, 2);
}

static const ps_effect_t *given(void)
{
    static const ps_effect_t nothing;

    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        if (bench.outbox.effects[i].kind == PS_EFFECT_PIECE) {
            return &bench.outbox.effects[i];
        }
    }
    return &nothing;
}

/* A copy waits for the first snapshot of its life, which has failed, and
 * nothing else goes to the disk: nobody tried again. */
Test(shard_disk, a_snapshot_that_failed_is_tried_again)
{
    ps_local_table_t *table = ps_map_get(&bench.shard->step.tables, 1);
    ps_event_t failed = {.kind = PS_EVENT_FLUSHED, .snapshot_failed = true};

    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    flushed(1, record_bytes(), NULL);
    table->partitions[0]->needs_base = true;
    bench.shard->snapshots.wants_bases = true;
    flushed(0, 0, NULL);
    cr_assert(given()->piece.is_first);
    failed.flushed_bytes = ps_payload_size(given()->payload);
    cr_assert_eq(step(&bench, &failed), PSD_OK);
    cr_expect_null(given()->payload, "the disk has a pause");
    bench.now_ms = ps_shard_deadline(bench.shard);
    cr_assert_leq(bench.now_ms, 100 + 1000);
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    cr_expect(given()->piece.is_first, "from its beginning");
}

/* The partition began another life in the midst of a round that had passed it:
 * the round's end was no beginning of one for it. */
Test(shard_disk, a_first_snapshot_follows_the_round_under_way)
{
    ps_local_table_t *table = ps_map_get(&bench.shard->step.tables, 1);

    cr_assert_eq(push(&bench, 1, 2, 1.0F), PSD_OK);
    flushed(1, record_bytes(), NULL);
    table->partitions[0]->needs_base = true;
    table->partitions[0]->snapshot_round = 1;
    bench.shard->snapshots.round = 1;
    bench.shard->snapshots.in_round = true;
    bench.shard->snapshots.wants_bases = true;
    flushed(0, 0, NULL);
    cr_expect(given()->piece.is_first);
}
