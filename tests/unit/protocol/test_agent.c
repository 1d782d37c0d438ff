/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/agent/agent.h: a node's side of the conversation with the registry. */
#include "protocol/agent/agent.h"

#include "support/fail_alloc.h"
#include "support/node_message_sample.h"

#define ME UINT64_C(77)
#define BEAT_MS 100

static ps_agent_t *agent;
static psd_error_t *err;
static uint64_t now_ms;
static ps_node_message_t said; /* the last message taken from it */
static uint64_t n_locals;

static void new_agent(const char *damage)
{
    static ps_route_t shards[2];
    ps_agent_args_t args = {
        .node = {.incarnation = ME, .n_shards = 2, .shards = shards, .kept = true},
        .damage = damage,
        .cluster = sample_id(1),
        .heartbeat_ms = BEAT_MS};

    sample_text(args.node.name, sizeof args.node.name, "n2");
    sample_text(args.node.control, sizeof args.node.control, "tcp://h:1");
    ps_agent_destroy(&agent);
    cr_assert_eq(ps_agent_new(&args, now_ms, &agent, err), PSD_OK);
}

static void setup(void)
{
    now_ms = 1000;
    err = psd_error_new();
    new_agent("");
}

static void teardown(void)
{
    ps_node_message_done(&said);
    ps_agent_destroy(&agent);
    psd_error_destroy(&err);
}

TestSuite(agent, .init = setup, .fini = teardown);

/* The next message, in `said`; false: there is none. */
static bool says(void)
{
    ps_bytes_t bytes;

    ps_node_message_done(&said);
    if (!ps_agent_next_message(agent, &bytes)) {
        return false;
    }
    cr_assert_eq(ps_node_message_decode(bytes, &said, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(said.incarnation, ME);
    return true;
}

static void assert_says(ps_node_message_kind_t kind)
{
    cr_assert(says(), "it says nothing");
    cr_assert_eq(said.kind, kind, "it says %s", ps_node_message_name(said.kind));
}

static void assert_silent(void)
{
    cr_assert_not(says(), "it says %s", ps_node_message_name(said.kind));
}

/* Of the registry that it follows from the start. */
static ps_node_message_t sample_of(ps_node_message_kind_t kind)
{
    ps_node_message_t message = node_message_sample(kind);

    message.at = (ps_moment_t){.term = 107};
    return message;
}

static void hear(ps_node_message_t *message)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

    message->cluster = sample_id(1);
    if (message->incarnation == 0) {
        message->incarnation = ME;
    }
    cr_assert(ps_node_message_encode(message, &bytes));
    ps_agent_take(agent, (ps_bytes_t){bytes.data, bytes.size}, now_ms);
}

static void hear_status(uint64_t serial, psd_status_t status, const char *text)
{
    ps_node_message_t heard = {.kind = PS_NODE_HEARD, .serial = serial, .status = status};

    sample_text(heard.text, sizeof heard.text, text);
    hear(&heard);
}

static void tick(uint64_t ms)
{
    now_ms += ms;
    ps_agent_tick(agent, now_ms);
}

/* It has announced itself, and the registry has answered. */
static void join(void)
{
    tick(0);
    assert_says(PS_NODE_ANNOUNCE);
    cr_assert_not(ps_agent_take_joined(agent));
    hear_status(said.serial, PSD_OK, "");
    cr_assert(ps_agent_take_joined(agent));
    cr_assert_not(ps_agent_take_joined(agent), "once");
    cr_assert(ps_agent_is_announced(agent));
    assert_silent();
}

static ps_agent_task_t next_task(ps_agent_task_kind_t kind)
{
    ps_agent_task_t task = {.kind = 0};

    cr_assert(ps_agent_next_task(agent, &task));
    cr_assert_eq(task.kind, kind);
    return task;
}

/* The shards begin the next task; its number. */
static uint64_t begin(ps_agent_task_kind_t kind)
{
    (void)next_task(kind);
    ps_agent_began(agent, ++n_locals, PSD_OK, "");
    return n_locals;
}

static void assert_no_task(void)
{
    ps_agent_task_t task;

    cr_assert_not(ps_agent_next_task(agent, &task));
}

static void finish(uint64_t local, psd_status_t status, const char *text)
{
    ps_answers_t none = {0};

    ps_agent_finished(agent, local, status, text, &none, now_ms);
}

static void assert_answers(uint64_t serial, psd_status_t status, const char *text)
{
    assert_says(PS_NODE_ANSWER);
    cr_assert_eq(said.serial, serial);
    cr_assert_eq(said.status, status);
    cr_assert_str_eq(said.text, text);
}

/* The sample's table with two partitions, or what changed of it. */
static void hear_table(ps_node_message_kind_t kind, uint64_t serial, uint64_t epoch)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t table = sample_of(kind);

    table.serial = serial;
    table.incarnation = ME;
    table.places[1].copies.epoch = epoch;
    if (kind == PS_NODE_PLACES) { /* the second one alone */
        table.places[0] = table.places[1];
        table.n_places = 1;
    }
    hear(&table);
}

static void hear_drop(uint64_t serial, uint32_t table)
{
    hear(&(ps_node_message_t){.kind = PS_NODE_DROP, .serial = serial, .table = {.id = table}});
}

Test(agent, announces_itself_until_it_is_answered)
{
    tick(0);
    assert_says(PS_NODE_ANNOUNCE);
    cr_assert_str_eq(said.node.name, "n2");
    cr_assert_eq(said.node.n_shards, 2);
    cr_assert(said.node.kept);
    tick(BEAT_MS);
    assert_says(PS_NODE_ANNOUNCE);
    hear_status(said.serial - 1, PSD_OK, ""); /* of the one before: it comes too late */
    cr_assert_not(ps_agent_is_announced(agent));
    hear_status(said.serial, PSD_OK, "");
    cr_assert(ps_agent_is_announced(agent));
    tick(BEAT_MS - 1);
    assert_silent();
    tick(1);
    assert_says(PS_NODE_BEAT);
    cr_assert_not(said.files_out);
    ps_agent_set_files_out(agent, true);
    tick(BEAT_MS);
    assert_says(PS_NODE_BEAT);
    cr_assert(said.files_out);
}

Test(agent, announces_itself_again_to_a_registry_that_does_not_know_it)
{
    uint64_t old = 0;
    uint64_t local = 0;

    join();
    hear_drop(5, 3);
    local = begin(PS_TASK_DROP);
    tick(BEAT_MS);
    assert_says(PS_NODE_BEAT);
    old = said.serial;
    hear_status(old, PSD_NO_NODE, "");
    cr_assert_eq(ps_agent_deadline(agent), 0);
    tick(0);
    assert_says(PS_NODE_ANNOUNCE);
    /* Its number is another tell's by now. */
    finish(local, PSD_OK, "");
    assert_silent();
    hear_status(said.serial, PSD_OK, "");
    tick(BEAT_MS);
    assert_says(PS_NODE_ANNOUNCE);
    hear_status(said.serial, PSD_OK, "");
    hear_status(old, PSD_NO_NODE, ""); /* of before the announcement */
    cr_assert(ps_agent_is_announced(agent));
}

Test(agent, says_when_the_registry_is_gone_and_back)
{
    ps_agent_note_t note;

    join();
    for (int i = 0; i < 11; i++) {
        tick(BEAT_MS);
        while (says()) {
        }
    }
    cr_assert(ps_agent_next_note(agent, &note));
    cr_assert_eq(note.kind, PS_AGENT_GONE);
    cr_assert_eq(note.silent_ms, 1100);
    cr_assert_not(ps_agent_is_heard(agent));
    cr_assert_gt(ps_agent_deadline(agent), now_ms + BEAT_MS, "it asks less often");
    hear_status(1000, PSD_OK, "");
    cr_assert(ps_agent_is_heard(agent));
    cr_assert(ps_agent_next_note(agent, &note));
    cr_assert_eq(note.kind, PS_AGENT_BACK);
    cr_assert_eq(ps_agent_deadline(agent), now_ms);
    cr_assert_not(ps_agent_next_note(agent, &note));
}

Test(agent, notes_a_refusal_once_an_hour)
{
    ps_agent_note_t note;

    join();
    hear_status(9, PSD_CLUSTER, "another cluster");
    hear_status(10, PSD_CLUSTER, "another cluster");
    cr_assert(ps_agent_next_note(agent, &note));
    cr_assert_eq(note.kind, PS_AGENT_REFUSED);
    cr_assert_eq(note.status, PSD_CLUSTER);
    cr_assert_str_eq(note.text, "another cluster");
    cr_assert_not(ps_agent_next_note(agent, &note));
    now_ms += 3600000;
    hear_status(11, PSD_CLUSTER, "another cluster");
    cr_assert(ps_agent_next_note(agent, &note));
}

Test(agent, ends_when_what_it_lost_has_no_other_copy)
{
    new_agent("log-0: byte 7");
    tick(0);
    assert_says(PS_NODE_ANNOUNCE);
    cr_assert_str_eq(said.text, "log-0: byte 7");
    cr_assert_str_eq(ps_agent_refusal(agent), "");
    hear_status(said.serial, PSD_DAMAGED, "table w");
    cr_assert_str_eq(ps_agent_refusal(agent), "table w");
    cr_assert_not(ps_agent_is_announced(agent));
}

Test(agent, applies_a_table_and_what_changes_in_it)
{
    ps_agent_task_t task;
    uint64_t local = 0;

    join();
    hear_table(PS_NODE_PLACES, 4, 90);
    assert_no_task();
    assert_answers(4, PSD_NO_TABLE, "this node does not know table 3");
    hear_table(PS_NODE_TABLE, 5, 82);
    task = next_task(PS_TASK_TABLE);
    cr_assert_str_eq(task.table->spec.name, "w");
    cr_assert(task.table->rows_lost);
    cr_assert_eq(task.table->copies[0].epoch, 40);
    cr_assert_eq(task.table->routes[0].incarnation, UINT64_C(0x8000000000000007));
    cr_assert_str_eq(task.table->routes[0].tcp, "tcp://h:7171");
    cr_assert_str_eq(task.table->routes[0].ipc, "");
    cr_assert_eq(task.table->routes[1].partition, 1);
    cr_assert_eq(task.table->routes[1].epoch, 82);
    cr_assert_str_eq(task.table->routes[1].tcp, "", "it listens on ipc alone");
    cr_assert_str_eq(task.table->routes[1].ipc, "ipc:///run/psd/1");
    local = begin(PS_TASK_TABLE);
    assert_silent();
    hear_table(PS_NODE_PLACES, 6, 83);
    finish(local, PSD_OK, "");
    assert_answers(5, PSD_OK, "");
    task = next_task(PS_TASK_TABLE);
    cr_assert_eq(task.table->copies[0].epoch, 40);
    cr_assert_eq(task.table->copies[1].epoch, 83);
    cr_assert_eq(task.table->routes[1].epoch, 83);
    local = begin(PS_TASK_TABLE);
    finish(local, PSD_LIMIT, "too many rows");
    assert_answers(6, PSD_LIMIT, "too many rows");
    tick(BEAT_MS);
    assert_says(PS_NODE_BEAT);
    cr_assert_eq(said.epoch, 90, "the greatest, also of what it could not use");
}

Test(agent, runs_tasks_in_their_order_and_each_once)
{
    uint64_t first = 0;
    uint64_t second = 0;

    join();
    hear_drop(7, 3);
    hear_drop(8, 4);
    hear_drop(7, 3); /* sent again */
    cr_assert_eq(next_task(PS_TASK_DROP).id, 3);
    first = begin(PS_TASK_DROP);
    cr_assert_eq(next_task(PS_TASK_DROP).id, 4);
    second = begin(PS_TASK_DROP);
    assert_no_task();
    finish(second, PSD_OK, "");
    assert_answers(8, PSD_OK, "");
    finish(first, PSD_OK, "");
    assert_answers(7, PSD_OK, "");
    assert_silent();
    hear_drop(7, 3); /* the answer was lost */
    finish(begin(PS_TASK_DROP), PSD_OK, "");
    assert_answers(7, PSD_OK, "");
}

Test(agent, drops_tables_that_the_registry_does_not_know)
{
    uint32_t known[] = {3};
    ps_node_message_t message = {
        .kind = PS_NODE_KNOWN, .serial = 5, .tables = known, .n_tables = 1, .last_table = 4};
    uint64_t local = 0;

    for (uint32_t i = 2; i <= 4; i++) {
        cr_assert_eq(ps_agent_know(agent, i, err), PSD_OK);
        cr_assert_eq(ps_agent_know(agent, i, err), PSD_OK, "of another shard");
    }
    join();
    hear(&message);
    cr_assert_eq(next_task(PS_TASK_DROP).id, 2);
    local = begin(PS_TASK_DROP);
    cr_assert_eq(next_task(PS_TASK_DROP).id, 4);
    (void)begin(PS_TASK_DROP);
    finish(local, PSD_IO, "disk");
    assert_silent();
    finish(local + 1, PSD_OK, "");
    assert_answers(5, PSD_IO, "");
    message.serial = 6;
    hear(&message);
    cr_assert_eq(next_task(PS_TASK_DROP).id, 2, "which is still there");
    finish(begin(PS_TASK_DROP), PSD_OK, "");
    assert_answers(6, PSD_OK, "");
    message.serial = 7;
    hear(&message);
    assert_no_task();
    assert_answers(7, PSD_OK, "");
}

Test(agent, answers_a_question_with_what_the_shards_say)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t ask = sample_of(PS_NODE_ASK);
    ps_answers_t answers = {0};
    ps_agent_task_t task;

    join();
    ask.incarnation = ME;
    hear(&ask);
    task = next_task(PS_TASK_ASK);
    cr_assert_eq(task.question, 93);
    cr_assert_eq(task.id, 5);
    cr_assert_eq(task.words.size, 2);
    (void)begin(PS_TASK_ASK);
    sample_answers(&answers);
    answers.at[1].waiting[0].since_ms = now_ms - 30;
    ps_agent_finished(agent, n_locals, PSD_OK, "", &answers, now_ms);
    assert_answers(90, PSD_OK, "");
    cr_assert_eq(said.answers.n, 2);
    cr_assert_eq(said.answers.at[1].waiting[0].since_ms, 30, "an age");
    cr_assert_eq(said.answers.at[1].clocks[0].max, 81);
}

Test(agent, shows_the_map_that_it_was_told_and_knows_since_when_nobody_leads)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t known = sample_of(PS_NODE_KNOWN);
    PSD_AUTO(ps_node_message_done) ps_node_message_t table = sample_of(PS_NODE_TABLE);
    ps_node_message_t heard = {
        .kind = PS_NODE_HEARD, .serial = 1, .status = PSD_NOT_LEADER, .at = {.term = 107}};
    const ps_table_t *shown = NULL;

    join();
    known.incarnation = ME;
    table.incarnation = ME;
    cr_assert_not(ps_agent_has_map(agent));
    hear(&known);
    cr_assert(ps_agent_has_map(agent));
    cr_assert_null(ps_agent_table_named(agent, table.table.spec.name));
    table.table.restoring = false;
    hear(&table);
    shown = ps_agent_table_named(agent, table.table.spec.name);
    cr_assert_not_null(shown);
    cr_expect_eq(shown, ps_agent_table(agent, table.table.id));
    cr_expect_eq(shown->routes[1].epoch, 82);
    cr_expect_null(ps_agent_table(agent, 999));
    cr_expect_null(ps_agent_table_named(agent, "x"));
    cr_expect_eq(ps_agent_unled_ms(agent, now_ms), 0);
    now_ms += 700;
    hear(&heard);
    cr_expect_eq(ps_agent_unled_ms(agent, now_ms), 700);
    heard.status = PSD_OK;
    hear(&heard);
    cr_expect_eq(ps_agent_unled_ms(agent, now_ms), 0);
}

/* Workers of the next task, as "rank state" each; the task is done. */
static const char *job_of_task(void)
{
    static char text[128];
    const ps_job_t *job = next_task(PS_TASK_JOB).job;

    (void)snprintf(text, sizeof text, "%s %d:", job->name, (int)job->version);
    for (size_t i = 0; i < job->n_workers; i++) {
        size_t length = strlen(text);

        (void)snprintf(text + length, sizeof text - length, " %u %d", job->workers[i].worker,
                       (int)job->workers[i].state);
    }
    ps_agent_began(agent, 0, PSD_OK, "");
    return text;
}

/* The registry says what changed of job 5 since that version. */
static void hear_job(ps_node_message_kind_t kind, uint64_t serial, uint64_t since, uint64_t version,
                     const ps_worker_t *workers, size_t n)
{
    ps_node_message_t message = {.kind = kind,
                                 .serial = serial,
                                 .at = {.term = 107},
                                 .since = since,
                                 .job = {.id = 5,
                                         .name = "lr",
                                         .version = version,
                                         .workers = (ps_worker_t *)(uintptr_t)workers,
                                         .n_workers = n}};

    hear(&message);
}

Test(agent, completes_what_changed_of_a_job)
{
    ps_worker_t all[] = {{.worker = 1, .state = PS_WORKER_EXPECTED},
                         {.worker = 3, .state = PS_WORKER_EXPECTED}};
    ps_worker_t some[] = {{.worker = 0, .state = PS_WORKER_JOINING, .n_members = 1, .joins = 1},
                          {.worker = 3, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1}};

    join();
    hear_job(PS_NODE_RANKS, 1, 4, 5, some, 2);
    assert_no_task();
    assert_answers(1, PSD_NO_JOB, "this node does not know job 5 so far");
    hear_job(PS_NODE_JOB, 2, 0, 4, all, 2);
    cr_assert_str_eq(job_of_task(), "lr 4: 1 1 3 1");
    assert_answers(2, PSD_OK, "");
    hear_job(PS_NODE_RANKS, 3, 5, 6, some, 2); /* it lacks version 5 */
    assert_answers(3, PSD_NO_JOB, "this node does not know job 5 so far");
    hear_job(PS_NODE_RANKS, 4, 3, 6, some, 2);
    cr_assert_str_eq(job_of_task(), "lr 6: 0 2 1 1 3 3");
    assert_answers(4, PSD_OK, "");
    hear_job(PS_NODE_RANKS, 5, 4, 5, some, 1); /* a late one */
    cr_assert_str_eq(job_of_task(), "lr 6: 0 2 1 1 3 3");
    assert_answers(5, PSD_OK, "");
    all[0].state = PS_WORKER_LOST;
    some[0].state = PS_WORKER_LOST;
    some[1].state = PS_WORKER_FINISHED;
    hear_job(PS_NODE_RANKS, 6, 6, 7, all, 1);
    cr_assert_str_eq(job_of_task(), "lr 7: 0 2 1 5 3 3");
    assert_answers(6, PSD_OK, "");
    hear_job(PS_NODE_RANKS, 7, 7, 8, some, 2); /* the job has ended, and is forgotten */
    cr_assert_str_eq(job_of_task(), "lr 8: 0 5 1 5 3 4");
    assert_answers(7, PSD_OK, "");
    hear_job(PS_NODE_RANKS, 8, 8, 9, some, 1);
    assert_answers(8, PSD_NO_JOB, "this node does not know job 5 so far");
}

Test(agent, says_what_the_shards_cannot_do)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t job = sample_of(PS_NODE_JOB);
    PSD_AUTO(ps_node_message_done) ps_node_message_t fence = sample_of(PS_NODE_FENCE);
    ps_agent_note_t note;

    join();
    job.incarnation = ME;
    hear(&job);
    cr_assert_str_eq(next_task(PS_TASK_JOB).job->name, "lr");
    ps_agent_began(agent, 0, PSD_BUSY, "65536 questions wait");
    assert_answers(90, PSD_BUSY, "65536 questions wait");
    cr_assert(ps_agent_next_note(agent, &note));
    cr_assert_eq(note.kind, PS_AGENT_NOT_OBEYED);
    cr_assert_str_eq(note.what, "job");
    fence.incarnation = ME;
    hear(&fence);
    cr_assert_eq(next_task(PS_TASK_FENCE).fence.partition, 95);
    (void)begin(PS_TASK_FENCE);
    assert_no_task();
    assert_silent(); /* a report has the answer */
    hear(&(ps_node_message_t){.kind = PS_NODE_BEAT, .serial = 91, .at = job.at});
    assert_answers(91, PSD_UNSUPPORTED, "it is a message of nodes");
    hear(&(ps_node_message_t){.kind = PS_NODE_SESSIONS,
                              .serial = 92,
                              .session = 7,
                              .settings = &(ps_setting_t){.id = PS_SETTING_COPY_RATE, .value = 5},
                              .n_settings = 1,
                              .at = job.at});
    cr_assert_eq(next_task(PS_TASK_SESSIONS).session, 7);
    cr_assert_eq(next_task(PS_TASK_SESSIONS).message->n_settings, 1);
    cr_assert_eq(next_task(PS_TASK_SESSIONS).message->settings[0].value, 5);
    ps_agent_began(agent, 0, PSD_OK, "");
    assert_answers(92, PSD_OK, "");
}

Test(agent, does_not_obey_who_led_before)
{
    join();
    hear(&(ps_node_message_t){
        .kind = PS_NODE_SESSIONS, .serial = 5, .session = 7, .at = {.term = 3}});
    ps_agent_began(agent, 0, PSD_OK, next_task(PS_TASK_SESSIONS).session == 7 ? "" : "another");
    assert_answers(5, PSD_OK, "");
    cr_assert_eq(said.at.term, 3);
    hear(&(ps_node_message_t){.kind = PS_NODE_KNOWN, .serial = 6, .at = {.term = 2}});
    assert_no_task();
    assert_silent();
}

Test(agent, learns_who_has_the_registry)
{
    ps_seat_t at[] = {{.node = "a", .endpoint = "tcp://a:1"},
                      {.node = "b", .endpoint = "tcp://b:1"}};
    ps_node_message_t heard = {.kind = PS_NODE_HEARD, .serial = 1, .seats = at, .n_seats = 2};
    const ps_seat_t *seats = NULL;

    join();
    hear(&heard);
    cr_assert_eq(ps_agent_seats(agent, &seats), 2);
    cr_assert_str_eq(seats[1].endpoint, "tcp://b:1");
    cr_assert_null(ps_agent_elsewhere(agent));
    heard.status = PSD_NOT_LEADER;
    sample_text(heard.node.name, sizeof heard.node.name, "b");
    hear(&heard);
    cr_assert_str_eq(ps_agent_elsewhere(agent), "tcp://b:1");
    cr_assert_not(ps_agent_is_announced(agent));
    heard.node.name[0] = '\0'; /* it does not know either */
    hear(&heard);
    cr_assert_str_eq(ps_agent_elsewhere(agent), "");
    now_ms += 300;
    cr_assert_eq(ps_agent_silent_ms(agent, now_ms), 300);
    ps_agent_move(agent, BEAT_MS, now_ms);
    cr_assert_null(ps_agent_elsewhere(agent));
    cr_assert_eq(ps_agent_silent_ms(agent, now_ms), 0);
}

/* A node that stands by, and lost the leader before it had the registry, is one of those that
 * it would ask. It answers as one that knows no member. */
Test(agent, does_not_ask_itself_for_the_registry)
{
    ps_seat_t at[] = {{.node = "a", .endpoint = "tcp://a:1"},
                      {.node = "n2", .endpoint = "tcp://n2:1"},
                      {.node = "b", .endpoint = "tcp://b:1"}};
    ps_node_message_t heard = {.kind = PS_NODE_HEARD, .serial = 1, .seats = at, .n_seats = 3};
    const ps_seat_t *seats = NULL;

    cr_assert_null(ps_agent_next_seat(agent));
    join();
    hear(&heard);
    cr_assert_str_eq(ps_agent_next_seat(agent)->endpoint, "tcp://b:1");
    cr_assert_str_eq(ps_agent_next_seat(agent)->endpoint, "tcp://a:1");
    cr_assert_str_eq(ps_agent_next_seat(agent)->endpoint, "tcp://b:1");
    heard.status = PSD_NOT_LEADER;
    sample_text(heard.node.name, sizeof heard.node.name, "n2");
    hear(&heard);
    cr_assert_str_eq(ps_agent_elsewhere(agent), "", "it would not ask if it led");
    ps_agent_move(agent, BEAT_MS, now_ms);
    heard.node.name[0] = '\0';
    heard.n_seats = 0;
    hear(&heard);
    cr_assert_str_eq(ps_agent_elsewhere(agent), "", "it asks the next one at once");
    cr_assert_eq(ps_agent_seats(agent, &seats), 3);
    heard.seats = &at[1];
    heard.n_seats = 1;
    hear(&heard);
    cr_assert_null(ps_agent_next_seat(agent));
}

/* A member of the registry that does not lead hears the node too; when it leads by
 * now, it says so. */
Test(agent, signs_to_members_that_do_not_lead)
{
    ps_seat_t at[] = {{.node = "a", .endpoint = "tcp://a:1"},
                      {.node = "b", .endpoint = "tcp://b:1"}};
    ps_node_message_t heard = {.kind = PS_NODE_HEARD,
                               .cluster = sample_id(1),
                               .incarnation = ME,
                               .status = PSD_NO_NODE,
                               .at = {.term = 5},
                               .seats = at,
                               .n_seats = 2};
    PSD_AUTO(ps_buffer_done) ps_buffer_t sign = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t answer = {0};
    PSD_AUTO(ps_node_message_done) ps_node_message_t got = {0};

    cr_assert_not(ps_agent_sign(agent, &sign), "the registry does not know it yet");
    join();
    cr_assert(ps_agent_sign(agent, &sign));
    cr_assert_eq(ps_node_message_decode((ps_bytes_t){sign.data, sign.size}, &got, err), PSD_OK);
    cr_assert_eq(got.kind, PS_NODE_BEAT);
    cr_assert_eq(got.serial, 0);
    cr_assert_eq(got.incarnation, ME);
    sample_text(heard.node.name, sizeof heard.node.name, "b");
    cr_assert(ps_node_message_encode(&heard, &answer));
    ps_agent_take_of_member(agent, (ps_bytes_t){answer.data, answer.size});
    cr_assert_str_eq(ps_agent_elsewhere(agent), "tcp://b:1");
    cr_assert(ps_agent_is_announced(agent), "until it moves");
    ps_agent_move(agent, BEAT_MS, now_ms);
    assert_silent();
    heard.at.term = 6; /* of the leader that it follows by now */
    heard.status = PSD_OK;
    hear(&heard);
    ps_agent_take_of_member(agent, (ps_bytes_t){answer.data, answer.size});
    cr_assert_null(ps_agent_elsewhere(agent), "it has led before");
}

Test(agent, forwards_reports_while_it_is_announced)
{
    const ps_report_t report = {.kind = PS_REPORT_CAUGHT_UP, .table = 3, .lsn = 9};

    ps_agent_report(agent, &report);
    assert_silent();
    join();
    ps_agent_report(agent, &report);
    ps_agent_report(agent, &report);
    assert_says(PS_NODE_REPORT);
    cr_assert_eq(said.n_reports, 2);
    cr_assert_eq(said.reports[1].lsn, 9);
    assert_silent();
}

Test(agent, ignores_what_is_for_another_life_or_cluster)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    const ps_node_message_t other = {.kind = PS_NODE_DROP,
                                     .serial = 3,
                                     .cluster = sample_id(9),
                                     .incarnation = ME,
                                     .table = {.id = 3}};

    join();
    hear(&(ps_node_message_t){
        .kind = PS_NODE_DROP, .serial = 3, .incarnation = ME + 1, .table = {.id = 3}});
    cr_assert(ps_node_message_encode(&other, &bytes));
    ps_agent_take(agent, (ps_bytes_t){bytes.data, bytes.size}, now_ms);
    assert_no_task();
    assert_silent();
}

Test(agent, notes_what_it_cannot_read_once_an_hour)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    const ps_node_message_t heard = {.kind = PS_NODE_HEARD, .status = PSD_NOMEM, .text = "why"};
    ps_agent_note_t note;

    join();
    for (int i = 0; i < 3; i++) {
        ps_agent_take(agent, (ps_bytes_t){(const uint8_t *)"{}", 2}, now_ms);
    }
    cr_assert(ps_agent_next_note(agent, &note));
    cr_assert_eq(note.kind, PS_AGENT_REFUSED);
    cr_assert_eq(note.status, PSD_PROTO);
    cr_assert_not(ps_agent_next_note(agent, &note));
    now_ms += 2000;
    ps_agent_take(agent, (ps_bytes_t){(const uint8_t *)"{}", 2}, now_ms);
    ps_agent_tick(agent, now_ms);
    cr_assert(ps_agent_is_heard(agent), "somebody is there");
    /* Of a message that the registry could not read it knows no number. */
    cr_assert(ps_node_message_encode(&heard, &bytes));
    ps_agent_take(agent, (ps_bytes_t){bytes.data, bytes.size}, now_ms);
    cr_assert(ps_agent_next_note(agent, &note));
    cr_assert_eq(note.status, PSD_NOMEM);
    cr_assert_str_eq(note.text, "why");
}

/* Its notes are full: the start of which the registry knows is none of them. */
Test(agent, joins_though_nobody_reads_its_notes)
{
    tick(0);
    assert_says(PS_NODE_ANNOUNCE);
    for (uint64_t i = 1; i < 40; i++) {
        hear(&(ps_node_message_t){.kind = PS_NODE_BEAT, .serial = i});
    }
    while (says()) {
    }
    tick(BEAT_MS);
    assert_says(PS_NODE_ANNOUNCE);
    hear_status(said.serial, PSD_OK, "");
    cr_assert(ps_agent_take_joined(agent));
}

/* What a void task came to is no part of a later answer. */
Test(agent, forgets_what_void_tasks_came_to)
{
    uint64_t first = 0;

    join();
    hear_drop(5, 3);
    first = begin(PS_TASK_DROP);
    hear_drop(6, 4);
    (void)begin(PS_TASK_DROP);
    hear_status(1000, PSD_NO_NODE, "");
    tick(0);
    assert_says(PS_NODE_ANNOUNCE);
    hear_status(said.serial, PSD_OK, "");
    finish(first, PSD_IO, "disk");
    hear_drop(1, 7);
    finish(begin(PS_TASK_DROP), PSD_OK, "");
    assert_answers(1, PSD_OK, "");
    finish(first + 1, PSD_OK, "");
    assert_silent();
}

/* One of several tasks under one number cannot begin: one answer, when all are
 * done. */
Test(agent, answers_once_for_tasks_of_which_one_cannot_begin)
{
    ps_node_message_t known = {.kind = PS_NODE_KNOWN, .serial = 5, .last_table = 4};
    uint64_t local = 0;

    cr_assert_eq(ps_agent_know(agent, 2, err), PSD_OK);
    cr_assert_eq(ps_agent_know(agent, 4, err), PSD_OK);
    join();
    hear(&known);
    local = begin(PS_TASK_DROP);
    (void)next_task(PS_TASK_DROP);
    ps_agent_began(agent, 0, PSD_BUSY, "too many");
    assert_silent();
    finish(local, PSD_OK, "");
    assert_answers(5, PSD_BUSY, "");
    assert_silent();
}

/* What the agent wants to have stored. */
static const ps_heard_t *stored(void)
{
    const ps_heard_t *heard = NULL;

    cr_assert(ps_agent_take_heard(agent, &heard));
    return heard;
}

Test(agent, keeps_aside_what_another_history_does_not_know)
{
    uint32_t tables[] = {3};
    ps_node_message_t known = {.kind = PS_NODE_KNOWN,
                               .serial = 5,
                               .tables = tables,
                               .n_tables = 1,
                               .last_table = 9,
                               .at = {.lineage = sample_id(7), .index = 4}};
    ps_agent_note_t note;

    cr_assert_eq(ps_agent_know(agent, 2, err), PSD_OK);
    cr_assert_eq(ps_agent_know(agent, 3, err), PSD_OK);
    join();
    hear(&(ps_node_message_t){
        .kind = PS_NODE_DROP, .serial = 4, .table = {.id = 2}, .at = known.at});
    assert_no_task(); /* the list of its tables comes first */
    hear(&known);
    cr_assert_eq(next_task(PS_TASK_ASIDE).id, 2);
    finish(begin(PS_TASK_ASIDE), PSD_OK, "");
    assert_no_task();
    assert_answers(5, PSD_OK, "");
    cr_assert(ps_agent_next_note(agent, &note));
    cr_assert_eq(note.kind, PS_AGENT_ASIDE);
    cr_assert_eq(note.serial, 2);
    cr_assert(ps_heard_is_aside(stored(), 2));
    tick(0);
    assert_says(PS_NODE_BEAT);
    cr_assert_eq(said.n_aside, 1);
    known.serial = 6; /* which is of this history now: it stays aside */
    hear(&known);
    cr_assert_eq(next_task(PS_TASK_ASIDE).id, 2);
    finish(begin(PS_TASK_ASIDE), PSD_OK, "");
    assert_answers(6, PSD_OK, "");
    hear(&(ps_node_message_t){
        .kind = PS_NODE_DROP, .serial = 7, .table = {.id = 2}, .at = known.at});
    finish(begin(PS_TASK_DROP), PSD_OK, "");
    assert_answers(7, PSD_OK, "");
    cr_assert_eq(stored()->n_aside, 0);
}

Test(agent, does_not_listen_to_the_past)
{
    ps_node_message_t known = {
        .kind = PS_NODE_KNOWN, .serial = 5, .at = {.lineage = sample_id(7), .index = 4}};
    ps_agent_note_t note;

    join();
    hear(&known);
    assert_answers(5, PSD_OK, "");
    known.serial = 6;
    known.at = (ps_moment_t){.lineage = sample_id(8), .index = 1};
    hear(&known);
    assert_answers(6, PSD_OK, "");
    known.serial = 7;
    known.at = (ps_moment_t){.lineage = sample_id(7), .index = 9};
    hear(&known);
    assert_silent();
    cr_assert(ps_agent_next_note(agent, &note));
    cr_assert_eq(note.kind, PS_AGENT_PAST);
    hear(&known);
    cr_assert_not(ps_agent_next_note(agent, &note), "once");
    known.serial = 8;
    known.at = (ps_moment_t){.lineage = sample_id(8), .index = 0};
    hear(&known);
    assert_silent(); /* an older state of the registry */
}

/* Found by sim_cluster, seed 14677: the node had lost what it had not flushed. */
Test(agent, does_not_listen_to_an_earlier_leader_of_a_history_that_it_does_not_follow_yet)
{
    ps_node_message_t drop = {.kind = PS_NODE_DROP,
                              .serial = 4,
                              .table = {.id = 2},
                              .at = {.lineage = sample_id(7), .term = 4, .index = 9}};
    ps_node_message_t known = {
        .kind = PS_NODE_KNOWN, .serial = 5, .at = {.lineage = sample_id(7), .term = 3, .index = 9}};

    join();
    hear(&drop);
    assert_no_task();
    hear(&known);
    assert_silent();
    known.serial = 6;
    known.at.term = 4;
    hear(&known);
    assert_answers(6, PSD_OK, "");
}

Test(agent, moves_to_another_registry)
{
    uint64_t local = 0;

    join();
    hear_drop(5, 3);
    local = begin(PS_TASK_DROP);
    tick(BEAT_MS); /* a beat that nobody has taken */
    ps_agent_move(agent, BEAT_MS, now_ms);
    cr_assert_not(ps_agent_is_announced(agent));
    assert_silent();
    finish(local, PSD_OK, ""); /* the new registry has not asked */
    assert_silent();
    tick(0);
    assert_says(PS_NODE_ANNOUNCE);
    hear_status(said.serial, PSD_OK, "");
    cr_assert(ps_agent_is_announced(agent));
}

Test(agent, needs_no_beats_where_the_registry_is_in_its_process)
{
    join();
    ps_agent_move(agent, 0, now_ms);
    tick(0);
    assert_says(PS_NODE_ANNOUNCE);
    hear_status(said.serial, PSD_OK, "");
    tick(BEAT_MS * 10); /* the beat that was set for the announcement */
    while (says()) {
    }
    cr_assert_eq(ps_agent_deadline(agent), UINT64_MAX);
    tick(BEAT_MS * 1000);
    assert_silent();
    cr_assert(ps_agent_is_heard(agent));
    ps_agent_set_files_out(agent, true); /* news */
    tick(0);
    assert_says(PS_NODE_BEAT);
    cr_assert(said.files_out);
    cr_assert_eq(ps_agent_deadline(agent), UINT64_MAX);
}

Test(agent, says_that_it_ends)
{
    ps_agent_end(agent);
    assert_silent(); /* nobody knows it */
    join();
    ps_agent_end(agent);
    assert_says(PS_NODE_END);
    assert_silent();
}

Test(agent, sends_sizes_again_that_could_not_be_sent)
{
    ps_agent_args_t args = {.node = {.incarnation = ME},
                            .damage = "",
                            .cluster = sample_id(1),
                            .heartbeat_ms = BEAT_MS,
                            .looks_at_sizes = true};
    ps_answers_t answers = {.at = ps_alloc(1, sizeof *answers.at), .n = 1};

    answers.at[0] = (ps_shard_answer_t){.sizes = ps_alloc(1, sizeof(ps_size_info_t)), .n_sizes = 1};
    answers.at[0].sizes[0] = (ps_size_info_t){.table = 3, .partition = 1, .bytes = 500};
    ps_agent_destroy(&agent);
    cr_assert_eq(ps_agent_new(&args, now_ms, &agent, err), PSD_OK);
    join();
    (void)begin(PS_TASK_SIZES);
    ps_agent_finished(agent, n_locals, PSD_OK, "", &answers, now_ms);
    tick(BEAT_MS);
    assert_says(PS_NODE_BEAT);
    cr_assert_eq(said.n_sizes, 1);
    cr_assert_eq(said.sizes[0].bytes, 500);
    tick(BEAT_MS);
    assert_says(PS_NODE_BEAT);
    cr_assert_eq(said.n_sizes, 0);
    ps_agent_unsent(agent);
    tick(BEAT_MS);
    assert_says(PS_NODE_BEAT);
    cr_assert_eq(said.n_sizes, 1);
}

/* Jobs and tables that the registry still wants are told of within the time; then the others are
 * gone. */
Test(agent, knows_which_jobs_and_tables_are_gone_some_time_after_the_list)
{
    ps_node_message_t known = {.kind = PS_NODE_KNOWN, .serial = 5, .last_job = 7, .last_table = 9};

    join();
    cr_assert_eq(ps_agent_told_job(agent), 0);
    hear(&known);
    tick(1);
    tick(10000);
    cr_assert_eq(ps_agent_told_job(agent), 0);
    cr_assert_eq(ps_agent_told_table(agent), 0);
    tick(10000);
    cr_assert_eq(ps_agent_told_job(agent), 7);
    cr_assert_eq(ps_agent_told_table(agent), 9);
}

/* Everything again, where memory fails somewhere. */
static psd_status_t live(void *fixture)
{
    PSD_AUTO(ps_agent_destroy) ps_agent_t *own = NULL;
    const ps_buffer_t *messages = fixture;
    const ps_agent_args_t args = {
        .node = {.incarnation = 7}, .damage = "", .cluster = sample_id(1), .heartbeat_ms = BEAT_MS};
    ps_agent_task_t task;
    ps_bytes_t bytes;
    size_t n_fine = 0;
    psd_status_t rc = ps_agent_new(&args, 0, &own, NULL);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_agent_tick(own, 0);
    for (size_t i = 0; i < 3; i++) {
        ps_agent_take(own, (ps_bytes_t){messages[i].data, messages[i].size}, 0);
    }
    for (uint64_t local = 1; ps_agent_next_task(own, &task); local++) {
        ps_answers_t none = {0};

        ps_agent_began(own, local, PSD_OK, "");
        ps_agent_finished(own, local, PSD_OK, "", &none, 0);
    }
    while (ps_agent_next_message(own, &bytes)) {
        PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};

        n_fine +=
            ps_node_message_decode(bytes, &message, NULL) == PSD_OK && message.status == PSD_OK ? 1
                                                                                                : 0;
    }
    return rc == PSD_OK && n_fine == 4 ? PSD_OK : PSD_NOMEM;
}

Test(agent, survives_without_memory)
{
    static const ps_node_message_kind_t kinds[] = {PS_NODE_TABLE, PS_NODE_JOB, PS_NODE_ASK};
    ps_buffer_t messages[3] = {{0}};

    for (size_t i = 0; i < 3; i++) {
        PSD_AUTO(ps_node_message_done) ps_node_message_t message = sample_of(kinds[i]);

        message.serial = i + 1;
        cr_assert(ps_node_message_encode(&message, &messages[i]));
    }
    cr_assert_null(fail_alloc_sweep(live, messages));
    for (size_t i = 0; i < 3; i++) {
        ps_buffer_done(&messages[i]);
    }
}
