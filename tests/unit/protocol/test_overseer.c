/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/overseer/overseer.h: what nodes are told, and asked. */
#include "protocol/overseer/overseer.h"

#include <stdio.h>
#include <string.h>

#include "support/fail_alloc.h"
#include "support/registry_copies_test.h"

#define SENT_MAX 256

typedef struct sent {
    uint64_t incarnation;
    ps_tell_kind_t kind;
    uint32_t id;
    uint64_t question;
    uint64_t serial;
} sent_t;

static ps_overseer_t *overseer;
static sent_t sent[SENT_MAX];
static size_t n_sent;

/* Node n0 has the registry; all three have come, with incarnations 1, 2 and 3,
 * and have all that there is. */
static void send_all(void);
static void tell_back(uint64_t incarnation);

static void give_answer(uint64_t incarnation, uint64_t question)
{
    ps_answers_t none = {0};

    ps_overseer_answered(overseer, incarnation, question, PSD_OK, &none);
}

static void come(const char *name, uint64_t conn)
{
    cr_assert_eq(ps_overseer_add(overseer, ps_registry_node(registry, name), conn, err), PSD_OK);
}

static void setup(void)
{
    ps_overseer_args_t args = {.incarnation = 1, .suspect_after_ms = 400};

    make_three();
    args.registry = registry;
    cr_assert_eq(ps_overseer_new(&args, now_ms, &overseer, err), PSD_OK);
    come("n0", 10);
    come("n1", 11);
    come("n2", 12);
    send_all();
    tell_back(1);
    tell_back(2);
    tell_back(3);
}

static void teardown(void)
{
    ps_question_t *question = NULL;

    while ((question = ps_overseer_take_question(overseer)) != NULL) {
        ps_question_destroy(&question);
    }
    ps_overseer_destroy(&overseer);
    drop_registry();
}

TestSuite(overseer, .init = setup, .fini = teardown);

/* One round in which everything goes; what went is in `sent`. */
static void send_all(void)
{
    ps_sending_round_t round = {0};

    n_sent = 0;
    while (ps_overseer_next(overseer, now_ms, &round)) {
        cr_assert_lt(n_sent, SENT_MAX);
        sent[n_sent++] = (sent_t){.incarnation = round.incarnation,
                                  .kind = round.kind,
                                  .id = round.id,
                                  .question = round.question,
                                  .serial = round.serial};
        cr_assert_eq(round.conn, round.incarnation + 9);
        ps_overseer_sent(overseer, &round, PS_SENT);
    }
}

static size_t count_to(uint64_t incarnation)
{
    size_t n = 0;

    for (size_t i = 0; i < n_sent; i++) {
        n += sent[i].incarnation == incarnation ? 1 : 0;
    }
    return n;
}

static const sent_t *first_to(uint64_t incarnation)
{
    for (size_t i = 0; i < n_sent; i++) {
        if (sent[i].incarnation == incarnation) {
            return &sent[i];
        }
    }
    return NULL;
}

/* The node has all that went to it in the last round. */
static void tell_back(uint64_t incarnation)
{
    for (size_t i = 0; i < n_sent; i++) {
        if (sent[i].incarnation != incarnation) {
            continue;
        }
        if (sent[i].kind == PS_TELL_ASK) {
            give_answer(incarnation, sent[i].question);
        } else {
            cr_assert_not(ps_overseer_told(overseer, incarnation, sent[i].serial, PSD_OK, ""));
        }
    }
}

static void ask(uint32_t job, void *context)
{
    cr_assert_eq(ps_overseer_ask(overseer, 7, job, "", context, now_ms, err), PSD_OK);
}

/* The question is done, and that is missing. */
static void assert_done(const char *missing)
{
    ps_question_t *question = ps_overseer_next_done(overseer);

    cr_assert_not_null(question);
    cr_expect_str_eq(question->missing, missing);
    ps_question_destroy(&question);
}

/* Time in which all nodes are heard. */
static void pass(uint64_t ms)
{
    now_ms += ms;
    beat(2, 0);
    beat(3, 0);
    ps_overseer_tick(overseer, now_ms, false);
}

static void assert_open(void)
{
    cr_assert_null(ps_overseer_next_done(overseer));
}

Test(overseer, a_node_that_comes_is_told_everything_in_order)
{
    const ps_table_t *table = make_copied("t", 1, 1);
    const sent_t *to = NULL;

    run_worker("j", 0, 1, 0);
    come("n2", 12); /* again: it may have missed anything */
    send_all();
    to = first_to(3);
    cr_assert_eq(count_to(3), 4);
    cr_assert_eq(count_to(2), 0);
    cr_expect_eq(to[0].kind, PS_TELL_KNOWN);
    cr_expect_eq(to[1].kind, PS_TELL_SESSIONS);
    cr_expect_eq(to[2].kind, PS_TELL_TABLE);
    cr_expect_eq(to[2].id, table->id);
    cr_expect_eq(to[3].kind, PS_TELL_JOB);
    cr_expect_lt(to[0].serial, to[1].serial);
    cr_expect_lt(to[2].serial, to[3].serial);
}

Test(overseer, a_window_bounds_what_is_in_flight)
{
    for (uint32_t i = 0; i < 70; i++) {
        ps_overseer_tell_table(overseer, 100 + i);
    }
    send_all();
    cr_assert_eq(count_to(2), PS_OVERSEER_WINDOW);
    tell_back(2);
    send_all();
    cr_assert_eq(count_to(2), 70 - PS_OVERSEER_WINDOW);
    cr_expect_eq(first_to(2)->id, 100 + PS_OVERSEER_WINDOW);
}

Test(overseer, what_is_not_answered_is_sent_again_under_its_number_later_each_time)
{
    uint64_t serial = 0;

    ps_overseer_tell_table(overseer, 100);
    send_all();
    serial = first_to(2)->serial;
    tell_back(1);
    for (uint64_t after_ms = 1000; after_ms <= 16000; after_ms *= 2) {
        now_ms += after_ms - 1;
        send_all();
        cr_assert_eq(count_to(2), 0, "not after %d ms", (int)after_ms - 1);
        now_ms += 1;
        send_all();
        cr_assert_eq(count_to(2), 1);
        cr_assert_eq(first_to(2)->serial, serial);
    }
    now_ms += 16000; /* no later than that */
    send_all();
    cr_assert_eq(count_to(2), 1);
    cr_assert_eq(count_to(1), 0, "it has answered");
}

Test(overseer, news_of_what_is_not_sent_yet_goes_with_it)
{
    ps_overseer_tell_table(overseer, 100);
    ps_overseer_tell_table(overseer, 100);
    cr_assert_not(ps_overseer_is_settled(overseer));
    send_all();
    cr_assert_eq(count_to(2), 1);
    ps_overseer_tell_table(overseer, 100); /* in flight: once more */
    send_all();
    cr_assert_eq(count_to(2), 1);
}

Test(overseer, what_cannot_be_sent_keeps_what_comes_after_it)
{
    ps_overseer_tell_table(overseer, 100);
    ps_overseer_tell_table(overseer, 101);
    for (int i = 0; i < 3; i++) {
        ps_sending_round_t round = {0};
        size_t n_tried = 0;

        while (ps_overseer_next(overseer, now_ms, &round)) {
            cr_expect_eq(round.id, 100);
            n_tried++;
            ps_overseer_sent(overseer, &round, PS_SENT_NOT);
        }
        cr_expect_eq(n_tried, 3, "one for each node");
    }
    send_all();
    cr_assert_eq(count_to(2), 2);
    cr_expect_eq(first_to(2)->id, 100);
}

Test(overseer, a_refusal_is_new_once_and_is_tried_again)
{
    uint64_t serial = 0;

    ps_overseer_tell_table(overseer, 100);
    send_all();
    tell_back(1);
    serial = first_to(2)->serial;
    cr_assert(ps_overseer_told(overseer, 2, serial, PSD_LIMIT, "no room"));
    cr_assert_not(ps_overseer_told(overseer, 2, serial, PSD_LIMIT, "no room"));
    cr_assert_eq(ps_overseer_refusal(overseer, 100, err), PSD_LIMIT);
    cr_expect_str_eq(psd_error_text(err), "node n1: no room");
    now_ms += 1000;
    send_all();
    cr_assert_eq(count_to(2), 1);
    tell_back(2);
    cr_assert_eq(ps_overseer_refusal(overseer, 100, err), PSD_OK);
}

Test(overseer, an_old_refusal_does_not_outlive_news)
{
    uint64_t serial = 0;

    ps_overseer_tell_table(overseer, 100);
    send_all();
    serial = first_to(2)->serial;
    ps_overseer_tell_table(overseer, 100);
    cr_assert_not(ps_overseer_told(overseer, 2, serial, PSD_LIMIT, "no room"));
    cr_assert_eq(ps_overseer_refusal(overseer, 100, err), PSD_OK);
}

Test(overseer, a_question_is_done_when_all_have_answered)
{
    int asker = 0;
    ps_question_t *question = NULL;

    cr_assert(ps_overseer_is_settled(overseer));
    ask(0, &asker);
    cr_assert(ps_overseer_is_settled(overseer), "questions are no news");
    send_all();
    cr_assert_eq(n_sent, 3);
    tell_back(1);
    tell_back(2);
    assert_open();
    tell_back(3);
    question = ps_overseer_next_done(overseer);
    cr_assert_not_null(question);
    cr_expect_eq(question->context, &asker);
    cr_expect_eq(question->kind, 7);
    cr_expect_str_eq(question->missing, "");
    ps_question_destroy(&question);
    assert_open();
}

Test(overseer, an_answer_without_a_job_told_before_does_not_count)
{
    uint64_t job = 0;

    ps_overseer_tell_job(overseer, 9);
    ask(0, NULL);
    send_all();
    for (size_t i = 0; i < n_sent; i++) {
        if (sent[i].kind == PS_TELL_ASK) {
            give_answer(sent[i].incarnation, sent[i].question);
        } else if (sent[i].incarnation == 2) {
            job = sent[i].serial; /* stays in flight */
        } else {
            (void)ps_overseer_told(overseer, sent[i].incarnation, sent[i].serial, PSD_OK, "");
        }
    }
    assert_done("node n1 has not applied a job's state");
    cr_assert_not(ps_overseer_told(overseer, 2, job, PSD_OK, ""));
}

/* What is sent to n1 about the table: its kind and how many places. */
static ps_node_message_kind_t encoded(const ps_table_t *table, size_t *ret_n_places)
{
    ps_sending_round_t round = {0};
    ps_node_message_kind_t kind = 0;

    while (ps_overseer_next(overseer, now_ms, &round)) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};
        ps_sent_t went = ps_overseer_encode(overseer, &round, &bytes);

        if (went == PS_SENT && round.incarnation == 2 && round.id == table->id) {
            cr_assert_eq(
                ps_node_message_decode((ps_bytes_t){bytes.data, bytes.size}, &message, err), PSD_OK,
                "%s", psd_error_text(err));
            kind = message.kind;
            *ret_n_places = message.n_places;
        }
        ps_overseer_sent(overseer, &round, went);
    }
    return kind;
}

/* Answers the last message about a table. */
static void answer_table(psd_status_t status)
{
    uint64_t last = 0;

    for (size_t serial = 1; serial < 1000; serial++) {
        ps_tell_view_t tell;

        last = ps_overseer_find_tell(overseer, 2, serial, &tell) && tell.kind == PS_TELL_TABLE
                   ? serial
                   : last;
    }
    cr_assert_neq(last, 0);
    (void)ps_overseer_told(overseer, 2, last, status, "");
}

/* The change is tried, and undone unless it is kept. */
static void try_to_move(const ps_table_t *table, uint32_t partition, bool keep)
{
    ps_change_t change = {
        .table = table->id, .partition = partition, .copies = table->copies[partition]};
    ps_command_t moved = {.kind = PS_COMMAND_COPIES, .changes = &change, .n_changes = 1};

    moved.epoch = ps_registry_epoch(registry) + 1;
    change.copies.epoch = moved.epoch;
    cr_assert_eq(ps_registry_try(registry, &moved, now_ms, err), PSD_OK, "%s", psd_error_text(err));
    if (keep) {
        ps_registry_keep(registry);
        ps_overseer_tell_table(overseer, table->id);
    } else {
        ps_registry_undo(registry);
    }
}

static void move_partition(const ps_table_t *table, uint32_t partition)
{
    try_to_move(table, partition, true);
}

/* Found by the simulator: a leader lost its term with a change in flight, told the table in its
 * next term, and then nobody of the change, which had the revision of the one that was undone. */
Test(overseer, what_was_told_after_a_change_was_undone_is_older_than_the_change)
{
    const ps_table_t *table = make_copied("t", 8, 1);
    size_t n = 0;

    try_to_move(table, 3, false);
    ps_overseer_tell_table(overseer, table->id);
    cr_assert_eq(encoded(table, &n), PS_NODE_TABLE);
    answer_table(PSD_OK);
    try_to_move(table, 3, true);
    cr_assert_eq(encoded(table, &n), PS_NODE_PLACES);
    cr_assert_eq(n, 1);
}

/* A node's answer to one may be read by the next. */
Test(overseer, leaders_number_what_they_tell_apart)
{
    ps_overseer_args_t args = {
        .registry = registry, .incarnation = 1, .suspect_after_ms = 400, .term = 2};
    uint64_t serial = 0;

    ps_overseer_tell_table(overseer, 100);
    send_all();
    serial = first_to(2)->serial;
    ps_overseer_destroy(&overseer);
    cr_assert_eq(ps_overseer_new(&args, now_ms, &overseer, err), PSD_OK);
    come("n0", 10);
    come("n1", 11);
    for (int i = 0; i < 10; i++) {
        ps_overseer_tell_table(overseer, 100 + (uint32_t)i);
    }
    send_all();
    for (size_t i = 0; i < n_sent; i++) {
        cr_assert_gt(sent[i].serial, serial);
    }
}

Test(overseer, sends_what_changed_since_the_node_acknowledged)
{
    const ps_table_t *table = make_copied("t", 8, 1);
    size_t n = 0;

    ps_overseer_tell_table(overseer, table->id);
    cr_assert_eq(encoded(table, &n), PS_NODE_TABLE);
    cr_assert_eq(n, 8);
    /* It changes while that is in flight: the node may have either. */
    move_partition(table, 3);
    cr_assert_eq(encoded(table, &n), PS_NODE_TABLE);
    answer_table(PSD_OK);
    move_partition(table, 5);
    cr_assert_eq(encoded(table, &n), PS_NODE_PLACES);
    cr_assert_eq(n, 1);
    /* Lost: what comes after it has all since the last answer. */
    move_partition(table, 6);
    cr_assert_eq(encoded(table, &n), PS_NODE_PLACES);
    cr_assert_eq(n, 2);
    answer_table(PSD_OK);
    ps_overseer_tell_table(overseer, table->id);
    cr_assert_eq(encoded(table, &n), 0, "nothing has changed");
    /* It could not apply it: nobody knows what it has. */
    move_partition(table, 6);
    cr_assert_eq(encoded(table, &n), PS_NODE_PLACES);
    answer_table(PSD_NO_TABLE);
    pass(20000);
    cr_assert_eq(encoded(table, &n), PS_NODE_TABLE);
    answer_table(PSD_OK);
    /* It announces itself again. */
    come("n1", 11);
    cr_assert_eq(encoded(table, &n), PS_NODE_TABLE);
}

/* What goes to n1 about job 1: its kind, and the ranks that it names. Each other node gets
 * the same; n1 answers nothing yet. */
static ps_node_message_kind_t encoded_job(uint64_t *ret_serial, char ranks[32])
{
    ps_sending_round_t round = {0};
    ps_node_message_kind_t kind = 0;

    ranks[0] = '\0';
    while (ps_overseer_next(overseer, now_ms, &round)) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};
        ps_sent_t went = ps_overseer_encode(overseer, &round, &bytes);

        if (went == PS_SENT && round.incarnation == 2 && round.kind == PS_TELL_JOB) {
            cr_assert_eq(
                ps_node_message_decode((ps_bytes_t){bytes.data, bytes.size}, &message, err), PSD_OK,
                "%s", psd_error_text(err));
            kind = message.kind;
            *ret_serial = message.serial;
            ranks[0] = '\0'; /* the last one */
            for (size_t i = 0; i < message.job.n_workers; i++) {
                size_t length = strlen(ranks);

                (void)snprintf(ranks + length, 32 - length, "%u ", message.job.workers[i].worker);
            }
            cr_assert_eq(message.job.version, ps_registry_job_by_id(registry, 1)->version);
        }
        ps_overseer_sent(overseer, &round, went);
    }
    return kind;
}

static void change_job(psd_status_t rc)
{
    do_planned(rc);
    ps_overseer_tell_job(overseer, 1);
}

Test(overseer, sends_the_workers_of_a_job_that_changed_since_the_node_acknowledged)
{
    char ranks[32];
    uint64_t serial = 0;
    uint64_t earlier = 0;

    change_job(plan_join("j", 0, 4, 0));
    cr_assert_eq(encoded_job(&serial, ranks), PS_NODE_JOB);
    cr_expect_str_eq(ranks, "0 1 2 3 ");
    (void)ps_overseer_told(overseer, 2, serial, PSD_OK, "");
    change_job(plan_start(1, 0));
    cr_assert_eq(encoded_job(&serial, ranks), PS_NODE_RANKS);
    cr_expect_str_eq(ranks, "0 ");
    /* What it has not acknowledged goes with the next ones. */
    change_job(plan_join("j", 2, 4, 0));
    cr_assert_eq(encoded_job(&earlier, ranks), PS_NODE_RANKS);
    cr_expect_str_eq(ranks, "0 2 ");
    change_job(plan_join("j", 9, 4, 0));
    cr_assert_eq(encoded_job(&serial, ranks), PS_NODE_RANKS);
    cr_expect_str_eq(ranks, "0 2 9 ");
    (void)ps_overseer_told(overseer, 2, serial, PSD_OK, "");
    (void)ps_overseer_told(overseer, 2, earlier, PSD_OK, "");
    ps_overseer_tell_job(overseer, 1);
    cr_expect_eq(encoded_job(&serial, ranks), 0, "nothing has changed");
    /* It does not know that job. */
    change_job(plan_start(1, 2));
    cr_assert_eq(encoded_job(&serial, ranks), PS_NODE_RANKS);
    cr_expect_str_eq(ranks, "2 ");
    cr_assert(ps_overseer_told(overseer, 2, serial, PSD_NO_JOB, "it does not know job 1"));
    pass(20000);
    cr_assert_eq(encoded_job(&serial, ranks), PS_NODE_JOB);
    cr_expect_str_eq(ranks, "0 1 2 3 9 ");
    (void)ps_overseer_told(overseer, 2, serial, PSD_OK, "");
    /* It announces itself again. */
    come("n1", 11);
    cr_assert_eq(encoded_job(&serial, ranks), PS_NODE_JOB);
}

static psd_status_t take(uint64_t conn, ps_node_message_t *message, ps_tell_view_t *refused)
{
    message->incarnation = 2;
    return ps_overseer_take(overseer, conn, message, now_ms, refused, err);
}

Test(overseer, takes_what_an_announced_node_says_by_its_connection)
{
    ps_size_info_t size = {.table = 1, .partition = 0, .bytes = 77};
    ps_node_message_t beats = {
        .kind = PS_NODE_BEAT, .files_out = true, .sizes = &size, .n_sizes = 1};
    ps_node_message_t done = {.kind = PS_NODE_ANSWER, .status = PSD_LIMIT, .text = "too many"};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_node_message_done) ps_node_message_t heard = {0};
    const ps_table_t *table = make_copied("t", 1, 1);
    ps_tell_view_t refused;
    size_t n = 0;

    cr_assert_eq(take(12, &beats, &refused), PSD_NO_NODE, "that is the connection of another");
    cr_assert(ps_overseer_encode_heard(overseer, &beats, PSD_NO_NODE, "again", &bytes));
    cr_assert_eq(ps_node_message_decode((ps_bytes_t){bytes.data, bytes.size}, &heard, err), PSD_OK);
    cr_assert_eq(heard.status, PSD_NO_NODE);
    cr_assert_str_eq(heard.text, "again");
    cr_assert_eq(take(11, &beats, &refused), PSD_OK);
    cr_assert_eq(refused.kind, PS_TELL_COUNT);
    cr_assert(ps_overseer_look(overseer, ps_registry_node(registry, "n1"), now_ms).files_out);
    /* An answer without a number, to nothing, and to a tell that is not sent. */
    ps_overseer_tell_table(overseer, table->id);
    cr_assert_eq(take(11, &done, &refused), PSD_OK);
    cr_assert_eq(refused.kind, PS_TELL_COUNT);
    cr_assert_eq(encoded(table, &n), PS_NODE_TABLE);
    for (done.serial = 1; refused.kind == PS_TELL_COUNT && done.serial < 1000; done.serial++) {
        cr_assert_eq(take(11, &done, &refused), PSD_OK);
    }
    cr_assert_eq(refused.kind, PS_TELL_TABLE);
    cr_assert_eq(refused.id, table->id);
    cr_assert_str_eq(refused.node, "n1");
    psd_error_clear(err);
    cr_assert_eq(ps_overseer_refusal(overseer, table->id, err), PSD_LIMIT);
    cr_assert_str_eq(psd_error_text(err), "node n1: too many");
}

Test(overseer, a_question_waits_no_longer_for_who_falls_silent)
{
    ask(0, NULL);
    send_all();
    tell_back(1);
    tell_back(2);
    now_ms += 401;
    beat(2, 0);
    assert_rests(); /* the registry suspects n2 now */
    ps_overseer_tick(overseer, now_ms, false);
    assert_done("node n2 is silent");
    ps_overseer_tell_table(overseer, 100);
    send_all();
    cr_expect_eq(count_to(3), 0, "it is told nothing");
}

Test(overseer, who_is_heard_again_is_told_everything_under_new_numbers)
{
    ps_sight_news_t news;
    uint64_t serial = 0;

    while (ps_overseer_next_news(overseer, &news)) {
        cr_expect_eq(news.before, 0);
    }
    ps_overseer_tell_table(overseer, 100);
    send_all();
    serial = first_to(3)->serial;
    now_ms += 401;
    beat(2, 0);
    assert_rests();
    ps_overseer_tick(overseer, now_ms, false);
    cr_assert(ps_overseer_next_news(overseer, &news));
    cr_expect_str_eq(news.name, "n2");
    cr_expect_eq(news.state, PS_HEALTH_SUSPECT);
    cr_expect_eq(news.before, PS_HEALTH_UP);
    cr_assert_eq(ps_overseer_beat(overseer, 3, 0, now_ms, err), PSD_OK);
    cr_assert(ps_overseer_next_news(overseer, &news));
    cr_expect_eq(news.state, PS_HEALTH_UP);
    send_all();
    cr_assert_eq(first_to(3)->kind, PS_TELL_KNOWN);
    cr_assert_gt(first_to(3)->serial, serial);
}

Test(overseer, a_question_has_a_deadline)
{
    ask(0, NULL);
    send_all();
    tell_back(1);
    tell_back(3);
    pass(4999);
    assert_open();
    pass(1);
    assert_done("node n1 has not answered in time");
}

Test(overseer, a_brief_question_waits_for_nobody_who_hangs)
{
    int asker = 0;

    ask(0, &asker);
    ps_overseer_be_brief(overseer, &asker);
    cr_assert(ps_overseer_is_in_haste(overseer));
    send_all();
    tell_back(2);
    tell_back(3);
    now_ms += 200;
    ps_overseer_tick(overseer, now_ms, false);
    assert_open();
    ps_overseer_tick(overseer, now_ms, true);
    assert_done("node n0 has not answered in time");
    ask(0, &asker);
    ps_overseer_be_brief(overseer, &asker);
    send_all();
    tell_back(1);
    tell_back(2);
    now_ms += PS_BRIEF_MS;
    ps_overseer_tick(overseer, now_ms, false);
    assert_done("node n2 has not answered in time");
}

Test(overseer, a_late_answer_finds_nobody)
{
    ps_tell_view_t tell;
    uint64_t serial = 0;

    ask(0, NULL);
    send_all();
    serial = first_to(2)->serial;
    pass(5000);
    assert_done("node n2 has not answered in time");
    cr_assert_not(ps_overseer_find_tell(overseer, 2, serial, &tell));
}

Test(overseer, another_life_or_connection_has_to_announce_itself)
{
    cr_expect_eq(ps_overseer_hear(overseer, 2, 11, err), PSD_OK);
    cr_expect_eq(ps_overseer_hear(overseer, 2, 99, err), PSD_NO_NODE);
    cr_expect_eq(ps_overseer_hear(overseer, 77, 11, err), PSD_NO_NODE);
    cr_expect_eq(ps_overseer_hear(overseer, 1, 0, err), PSD_NO_NODE, "this node has no line");
    cr_expect_eq(ps_overseer_beat(overseer, 77, 0, now_ms, err), PSD_NO_NODE);
}

Test(overseer, what_no_memory_was_left_to_note_is_told_with_everything)
{
    size_t n_known = 0;

    (void)make_copied("t", 1, 1);
    fail_alloc_at(0);
    for (uint32_t i = 0; i < 40; i++) { /* until the room that there is has gone */
        ps_overseer_tell_table(overseer, 100 + i);
    }
    cr_assert(fail_alloc_happened());
    fail_alloc_off();
    send_all();
    for (size_t i = 0; i < n_sent; i++) {
        n_known += sent[i].kind == PS_TELL_KNOWN ? 1 : 0;
    }
    cr_assert_eq(n_known, 1);
}
