/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/replica/replicas.h: what a primary answers, records and reports. */
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

TestSuite(replicas, .init = setup, .fini = teardown);

/* Node 3 comes, and has all that node 1 has. */
static void catch_up(uint64_t lsn)
{
    kit_map(&kit, "6: 1P 2S 3C");
    kit_tick(&kit, 100);
    kit_welcome(&kit, 3);
    kit_answer(&kit, 2, 6, PS_APPENDED_OK, lsn);
    kit_answer(&kit, 3, 6, PS_APPENDED_OK, lsn);
}

Test(replicas, push_is_acknowledged_when_every_copy_in_sync_has_it)
{
    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    cr_assert_eq(kit_count(&kit, PS_KIND_APPEND), 1);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 0);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_said(&kit, PS_KIND_ACK)->ack.level, PS_ACK_REPLICA);
}

/* The work on the push was none of the wait. */
Test(replicas, answer_tells_how_long_it_waited_for_copies)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = kit_one_value(0, 1);
    ps_message_t push = kit_push_message(5, 1, PS_ACK_DEFAULT);
    const ps_message_t *ack = NULL;

    kit_serve(&kit);
    push.flags = PS_FLAG_TIMES;
    kit_say(&kit, KIT_CLIENT, &push, payload);
    ps_shard_worked(kit.shard,
                    &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                  .now_ms = kit.now_ms,
                                  .conn = KIT_CLIENT,
                                  .message = &push,
                                  .payload = payload},
                    2500);
    kit.now_ms += 40;
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 1);
    ack = kit_said(&kit, PS_KIND_ACK);
    cr_assert(ps_message_has_times(ack));
    cr_expect_eq(ack->times.work_us, 2500);
    cr_expect_eq(ack->times.copies_us, 40000 - 2500);
    cr_expect_eq(ack->times.queue_us + ack->times.gate_us + ack->times.flush_us, 0);
}

/* Its client knows the newer map, and takes no answer of an older one: it
 * waited until it asked again. */
Test(replicas, answer_that_waited_is_of_the_epoch_that_it_is_given_in)
{
    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    kit_map(&kit, "6: 1P 2S");
    kit_answer(&kit, 2, 6, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 1);
    cr_assert_eq(kit_said(&kit, PS_KIND_ACK)->ack.epoch, 6);
}

Test(replicas, request_that_waited_is_answered_in_the_epoch_of_then)
{
    kit_serve(&kit);
    kit_tick(&kit, 400);
    kit_pull(&kit, 5);
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 0, "there is no lease");
    kit_map(&kit, "6: 1P 2S");
    kit_answer(&kit, 2, 6, PS_APPENDED_OK, 0);
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 1);
    cr_assert_eq(kit_said(&kit, PS_KIND_VALUES)->values.epoch, 6);
}

/* What a client sends again to the next primary has often come to that as a
 * record, and is asked for before the lease is there. */
Test(replicas, repeated_push_is_answered_as_soon_as_there_is_a_lease)
{
    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    kit_tick(&kit, 400);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 0);
    cr_assert_eq(kit_count(&kit, PS_KIND_PARKED), 1, "who asks is told");
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    cr_assert_eq(kit_count(&kit, PS_KIND_PARKED), 0, "it waits already");
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 1);
    cr_assert_eq(kit_said(&kit, PS_KIND_ACK)->ack.level, PS_ACK_REPLICA);
}

/* The registry may have it in sync, and promote it, before that is heard here:
 * what was acknowledged without it was lost. */
Test(replicas, copy_that_was_reported_whole_counts_as_in_sync)
{
    kit_serve(&kit);
    catch_up(0);
    cr_assert(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
    kit_push(&kit, 6, 1, PS_ACK_DEFAULT);
    kit_answer(&kit, 2, 6, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 0, "node 3 lacks it");
    kit_answer(&kit, 3, 6, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_said(&kit, PS_KIND_ACK)->ack.level, PS_ACK_REPLICA);
    kit_tick(&kit, 250);
    kit_answer(&kit, 2, 6, PS_APPENDED_OK, 1);
    kit_tick(&kit, 100);
    kit_pull(&kit, 6);
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 0, "its lease has ended");
    kit_map(&kit, "7: 1P 2S 3C");
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 1, "not by a newer map");
}

/* Another partition's change, say: it answered alone from then on, beside a
 * copy that was promoted. */
Test(replicas, same_map_once_more_takes_no_copy_away_that_counts)
{
    kit_serve(&kit);
    catch_up(0);
    kit_map(&kit, "6: 1P 2S 3C");
    kit_push(&kit, 6, 1, PS_ACK_DEFAULT);
    kit_answer(&kit, 2, 6, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 0, "node 3 lacks it");
    kit_answer(&kit, 3, 6, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 1);
}

Test(replicas, copy_that_was_reported_whole_and_is_silent_is_reported_soon)
{
    kit_serve(&kit);
    catch_up(0);
    kit_tick(&kit, 599);
    cr_assert_not(kit_reported(&kit, PS_REPORT_SLOW));
    kit_answer(&kit, 2, 6, PS_APPENDED_OK, 0);
    kit_tick(&kit, 100);
    cr_assert(kit_reported(&kit, PS_REPORT_SLOW));
    cr_expect_eq(kit_report(&kit, PS_REPORT_SLOW)->incarnation, 73);
}

/* The registry let it begin anew, which it does not while it counts. */
Test(replicas, copy_that_was_reported_whole_and_diverges_is_reported_slow)
{
    kit_serve(&kit);
    catch_up(0);
    kit_answer(&kit, 3, 6, PS_APPENDED_DIVERGED, 0);
    kit_tick(&kit, 599);
    kit_answer(&kit, 2, 6, PS_APPENDED_OK, 0);
    kit_tick(&kit, 100);
    cr_assert(kit_reported(&kit, PS_REPORT_SLOW));
}

/* A GAP said the same when it was the answer to a later question. */
Test(replicas, only_an_ok_for_what_was_promised_reports_a_whole_copy)
{
    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    kit_map(&kit, "6: 1P 2S 3C");
    kit_tick(&kit, 100);
    kit_welcome(&kit, 3);
    kit_answer(&kit, 3, 6, PS_APPENDED_GAP, 1);
    cr_assert_not(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
    kit_answer(&kit, 3, 6, PS_APPENDED_OK, 0);
    cr_assert_not(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
    kit_answer(&kit, 3, 6, PS_APPENDED_OK, 1);
    cr_assert(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
}

/* The map that took it away never came here: what its shard had before counted
 * as what it has. */
Test(replicas, copy_that_was_put_back_is_not_whole_by_what_it_had)
{
    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    kit_map(&kit, "7: 1P 2C");
    kit_tick(&kit, 100);
    kit_answer(&kit, 2, 7, PS_APPENDED_GAP, 0);
    cr_assert_not(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
    kit_tick(&kit, 100);
    kit_answer(&kit, 2, 7, PS_APPENDED_GAP, 0);
    cr_assert_eq(kit_count(&kit, PS_KIND_ROWS), 1, "it needs rows");
}

/* It was never equal while pushes kept coming. */
Test(replicas, copy_is_whole_while_more_is_on_its_way)
{
    kit_serve(&kit);
    kit_map(&kit, "6: 1P 2S 3C");
    kit_tick(&kit, 100);
    kit_welcome(&kit, 3);
    kit_answer(&kit, 2, 6, PS_APPENDED_OK, 0);
    kit_push(&kit, 6, 1, PS_ACK_MEMORY);
    kit_answer(&kit, 3, 6, PS_APPENDED_OK, 0);
    cr_assert(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
}

/* Positions of copies could not be told apart by epoch. */
Test(replicas, no_copy_is_whole_before_the_primary_serves)
{
    kit_map(&kit, "5: 2P 1S 3S");
    kit_peer(&kit, 2);
    kit_append_push(&kit, 2, 5, 1, 0);
    kit_fence(&kit, 6);
    cr_assert_eq(kit_report(&kit, PS_REPORT_POSITION)->lsn, 1);
    cr_assert_eq(kit_report(&kit, PS_REPORT_POSITION)->lsn_epoch, 5);
    kit_map(&kit, "7: 1P 3C");
    kit_welcome(&kit, 3);
    kit_answer(&kit, 3, 7, PS_APPENDED_OK, 1);
    cr_assert_not(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
    kit_tick(&kit, 300);
    kit_answer(&kit, 3, 7, PS_APPENDED_OK, 1);
    cr_assert_not(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
    kit_answer(&kit, 3, 7, PS_APPENDED_OK, 2);
    cr_assert(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
}

Test(replicas, answer_of_a_newer_epoch_fences)
{
    kit_serve(&kit);
    kit_answer(&kit, 2, 5, PS_APPENDED_EPOCH, 0);
    cr_assert(kit_reported(&kit, PS_REPORT_FENCED));
    kit_pull(&kit, 5);
    kit_push(&kit, 5, 1, PS_ACK_MEMORY);
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 0);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 0);
    kit_tick(&kit, 100);
    cr_assert_eq(kit_count(&kit, PS_KIND_APPEND), 0);
    kit_map(&kit, "6: 1P");
    cr_assert(kit_recorded(&kit, PS_RECORD_EPOCH), "with what it has missed");
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 1, "by the next map");
}

/* ---- a fence ---- */

Test(replicas, fenced_primary_sends_what_it_has_and_ends_its_lease_and_answers)
{
    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    kit_fence(&kit, 6);
    cr_assert_not(kit_reported(&kit, PS_REPORT_POSITION), "node 2 lacks one");
    kit_push(&kit, 5, 2, PS_ACK_MEMORY);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 0);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 0, "another one may answer");
    cr_assert_eq(kit_said(&kit, PS_KIND_APPEND)->append.release, 1);
    cr_assert(kit_reported(&kit, PS_REPORT_POSITION));
    cr_expect_eq(kit_report(&kit, PS_REPORT_POSITION)->lsn, 1);
    cr_expect_eq(kit_report(&kit, PS_REPORT_POSITION)->epoch, 6);
    kit_fence(&kit, 6);
    cr_assert(kit_reported(&kit, PS_REPORT_POSITION), "asked again");
    cr_assert_eq(kit_count(&kit, PS_KIND_APPEND), 0);
}

Test(replicas, fenced_primary_does_not_wait_for_a_silent_copy_for_ever)
{
    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    kit_fence(&kit, 6);
    kit_tick(&kit, 299);
    cr_assert_not(kit_reported(&kit, PS_REPORT_POSITION));
    kit_tick(&kit, 1);
    cr_assert(kit_reported(&kit, PS_REPORT_POSITION));
    cr_assert_eq(kit_said(&kit, PS_KIND_APPEND)->append.release, 1);
}

Test(replicas, map_of_a_fence_stops_the_primary_and_is_not_the_question)
{
    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    kit_map(&kit, "6F: 1S 2S");
    cr_assert_eq(kit_count(&kit, PS_KIND_MOVED), 1, "of the push");
    kit_pull(&kit, 6);
    cr_assert_eq(kit_said(&kit, PS_KIND_REFUSED)->refused.status, PSD_BUSY);
    kit_pull(&kit, 5);
    cr_assert_eq(kit_count(&kit, PS_KIND_MOVED), 1);
    kit_fence(&kit, 6);
    cr_assert_not(kit_reported(&kit, PS_REPORT_POSITION), "node 2 lacks one");
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    cr_assert(kit_reported(&kit, PS_REPORT_POSITION));
}

Test(replicas, fenced_primary_that_is_promoted_again_begins_with_its_epoch)
{
    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    kit_fence(&kit, 6);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    kit_map(&kit, "7: 1P 2S");
    cr_assert_eq(kit_said(&kit, PS_KIND_APPEND)->append.epoch, 7);
    kit_answer(&kit, 2, 7, PS_APPENDED_OK, 2);
    kit_pull(&kit, 7);
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 1);
}

/* A window was forgotten by a record that nobody else got. */
Test(replicas, fenced_primary_forgets_no_client)
{
    ps_message_t message = {.kind = PS_KIND_MARK};

    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_MEMORY);
    kit_hello_as(&kit, KIT_CLIENT + 1, 2);
    kit_hello_as(&kit, KIT_CLIENT + 2, 3);
    message.mark =
        (ps_msg_mark_t){.request = 1, .table = KIT_TABLE, .epoch = 5, .seq = 1, .job = 3};
    kit_say(&kit, KIT_CLIENT + 1, &message, NULL);
    kit_fence(&kit, 6);
    kit_say(&kit, KIT_CLIENT + 2, &message, NULL);
    for (size_t i = 0; i < kit.outbox.n_effects; i++) {
        cr_assert_neq(kit.outbox.effects[i].kind, PS_EFFECT_RECORD);
    }
}

/* It ended the lease of the primary before it, which went on answering. */
Test(replicas, who_has_not_served_ends_no_lease)
{
    kit_map(&kit, "5: 2P 1S 3S");
    kit_peer(&kit, 2);
    kit_append_push(&kit, 2, 5, 1, 0);
    kit_map(&kit, "7: 1P 3S");
    kit_welcome(&kit, 3);
    kit_map(&kit, "8: 3P 1S");
    cr_assert_eq(kit_count(&kit, PS_KIND_APPEND), 0);
}

/* ---- slow copies ---- */

Test(replicas, copy_that_answers_and_never_gets_on_is_slow)
{
    kit_serve(&kit);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    for (int i = 0; i < 19; i++) {
        kit_tick(&kit, 100);
        kit_answer(&kit, 2, 5, PS_APPENDED_NOMEM, 0);
    }
    cr_assert_not(kit_reported(&kit, PS_REPORT_SLOW));
    kit_tick(&kit, 100);
    cr_assert(kit_reported(&kit, PS_REPORT_SLOW));
}

/* ---- room ---- */

/* A shard whose copies may lag by so little. */
static void open_narrow(uint64_t tail_bytes, uint64_t record_bytes)
{
    ps_shard_args_t args = kit_args();

    kit_close(&kit);
    args.tail_bytes = tail_bytes;
    args.record_bytes = record_bytes;
    kit_open_with(&kit, &args);
    kit_serve(&kit);
}

static void mark(uint64_t seq)
{
    ps_message_t message = {.kind = PS_KIND_MARK};

    message.mark = (ps_msg_mark_t){.request = seq,
                                   .table = KIT_TABLE,
                                   .epoch = 5,
                                   .seq = seq,
                                   .job = 3,
                                   .joins = 1,
                                   .clock = seq};
    kit_say(&kit, KIT_CLIENT, &message, NULL);
}

/* Its worker 0 marks. */
static void run_job(void)
{
    ps_worker_t worker = {.state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
    const ps_job_t job = {
        .id = 3, .name = "j", .max_delay = -1, .version = 1, .workers = &worker, .n_workers = 1};

    cr_assert_eq(kit_step(&kit, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
}

/* Only pushes did. */
Test(replicas, marks_wait_for_copies_that_lag)
{
    open_narrow(500, 0);
    run_job();
    for (uint64_t seq = 1; seq <= 4; seq++) {
        mark(seq);
    }
    cr_assert_not(kit_recorded(&kit, PS_RECORD_MARK));
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 3);
    cr_assert(kit_recorded(&kit, PS_RECORD_MARK));
}

/* ---- marks ---- */

/* A primary that is alone records a job, and that many marks; then node 3
 * comes. */
static void serve_alone(uint64_t n_marks)
{
    kit_map(&kit, "5: 1P 3C");
    kit_hello(&kit);
    run_job();
    for (uint64_t seq = 1; seq <= n_marks; seq++) {
        mark(seq);
        cr_assert_eq(kit_said(&kit, PS_KIND_ACK)->ack.level, PS_ACK_MEMORY);
    }
    kit_tick(&kit, 100);
    kit_welcome(&kit, 3);
}

/* No client says a mark again that was acknowledged. */
Test(replicas, copy_without_a_mark_that_was_acknowledged_is_not_whole)
{
    serve_alone(1);
    kit_answer(&kit, 3, 5, PS_APPENDED_OK, 1);
    cr_assert_not(kit_reported(&kit, PS_REPORT_CAUGHT_UP), "only the job");
    kit_answer(&kit, 3, 5, PS_APPENDED_OK, 2);
    cr_assert(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
}

/* The registry may have it in sync: what was acknowledged without it was lost
 * when it became the primary. */
Test(replicas, mark_waits_for_a_copy_that_was_reported_whole)
{
    serve_alone(0);
    kit_answer(&kit, 3, 5, PS_APPENDED_OK, 1);
    cr_assert(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
    mark(1);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 0);
    kit_map(&kit, "6: 1P 3S");
    kit_answer(&kit, 3, 6, PS_APPENDED_OK, 2);
    cr_assert_eq(kit_said(&kit, PS_KIND_ACK)->ack.level, PS_ACK_REPLICA);
}

/* Else one that is always a mark behind would never be whole. */
Test(replicas, copy_that_is_near_is_waited_for_until_it_is_whole)
{
    serve_alone(2);
    kit_answer(&kit, 3, 5, PS_APPENDED_OK, 2);
    cr_assert_not(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
    mark(3);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 0);
    kit_answer(&kit, 3, 5, PS_APPENDED_OK, 3);
    cr_assert(kit_reported(&kit, PS_REPORT_CAUGHT_UP), "of what was promised");
}

/* Nothing was sent to it any more: what it lacked from the first record on was
 * taken for a want of memory. */
Test(replicas, copy_that_paused_while_the_tail_was_cut_gets_rows)
{
    open_narrow(500, 0);
    kit_map(&kit, "6: 1P 2S 3C");
    kit_tick(&kit, 100);
    kit_welcome(&kit, 3);
    kit_tick(&kit, 1);
    kit_push(&kit, 6, 1, PS_ACK_MEMORY);
    kit_answer(&kit, 2, 6, PS_APPENDED_OK, 1);
    kit_answer(&kit, 3, 6, PS_APPENDED_NOMEM, 0);
    for (uint64_t seq = 2; seq <= 8; seq++) {
        kit_push(&kit, 6, seq, PS_ACK_MEMORY);
        kit_answer(&kit, 2, 6, PS_APPENDED_OK, seq);
    }
    kit_tick(&kit, 100);
    cr_assert_eq(kit_count(&kit, PS_KIND_ROWS), 1);
}

Test(replicas, push_that_no_frame_could_carry_is_refused)
{
    open_narrow(0, 175);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_said(&kit, PS_KIND_REFUSED)->refused.status, PSD_LIMIT);
    cr_assert_str_eq(kit_said(&kit, PS_KIND_REFUSED)->refused.text,
                     "a push of 16 bytes into a table with copies; allowed: 15, because one frame "
                     "of limits.frame_bytes replicates it");
    open_narrow(0, 176);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    cr_assert_eq(kit_count(&kit, PS_KIND_ACK), 1);
}

/* ---- links ---- */

static void lose_link(void)
{
    cr_assert_eq(kit_step(&kit, &(ps_event_t){.kind = PS_EVENT_GONE, .conn = kit.links[2]}),
                 PSD_OK);
}

/* It was opened again in the step that lost it, for ever. */
Test(replicas, refused_link_is_opened_later_each_time)
{
    uint64_t first = 0;

    kit_map(&kit, "5: 1P 2S");
    first = kit.links[2];
    lose_link();
    kit_tick(&kit, 19);
    cr_assert_eq(kit.links[2], first);
    kit_tick(&kit, 1);
    cr_assert_eq(kit.links[2], first + 1);
    lose_link();
    kit_tick(&kit, 39);
    cr_assert_eq(kit.links[2], first + 1);
    kit_tick(&kit, 1);
    cr_assert_eq(kit.links[2], first + 2);
    kit_welcome(&kit, 2);
    lose_link();
    cr_assert_eq(kit.links[2], first + 3, "at once, for it was answered");
}

/* ---- two tables ---- */

/* It was refused for good. */
Test(replicas, request_that_reads_a_table_without_its_lease_waits)
{
    const ps_route_t routes[KIT_PARTITIONS] = {{.epoch = 5, .incarnation = 71},
                                               {.partition = 1, .epoch = 5, .incarnation = 74}};
    ps_message_t message = {.kind = PS_KIND_PULL};

    kit_serve(&kit);
    cr_assert_eq(kit_step(&kit, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                              .table = KIT_TABLE + 1,
                                              .spec = &kit.spec,
                                              .routes = routes,
                                              .n_routes = KIT_PARTITIONS}),
                 PSD_OK);
    message.pull = (ps_msg_pull_t){.request = 1,
                                   .table = KIT_TABLE + 1,
                                   .epoch = 5,
                                   .op = PS_READ_DOT,
                                   .other = KIT_TABLE,
                                   .rows = PS_ROWS_RANGE,
                                   .type = PS_TYPE_I64,
                                   .n_rows = 1,
                                   .n_cols = 1};
    kit_say(&kit, KIT_CLIENT, &message, NULL);
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 1);
    kit_tick(&kit, 300);
    message.pull.request = 2;
    kit_say(&kit, KIT_CLIENT, &message, NULL);
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 0);
    cr_assert_eq(kit_count(&kit, PS_KIND_REFUSED), 0);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 0);
    kit_tick(&kit, 50);
    cr_assert_eq(kit_count(&kit, PS_KIND_VALUES), 1);
}

/* A primary says what each other copy is not known to have. */
Test(replicas, lag_of_a_copy_is_what_it_has_not_confirmed)
{
    ps_lag_info_t *lags = NULL;
    size_t n = 0;

    kit_serve(&kit);
    cr_assert_eq(ps_shard_lags(kit.shard, &lags, &n, NULL), PSD_OK);
    cr_assert_eq(n, 1);
    cr_assert_not(lags[0].behind);
    cr_assert_eq(lags[0].bytes, 0);
    ps_free(lags);
    kit_push(&kit, 5, 1, PS_ACK_DEFAULT);
    cr_assert_eq(ps_shard_lags(kit.shard, &lags, &n, NULL), PSD_OK);
    cr_assert_eq(n, 1);
    cr_assert(lags[0].behind);
    cr_assert_gt(lags[0].bytes, 0);
    ps_free(lags);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    cr_assert_eq(ps_shard_lags(kit.shard, &lags, &n, NULL), PSD_OK);
    cr_assert_not(lags[0].behind);
    cr_assert_eq(lags[0].bytes, 0);
    ps_free(lags);
}
