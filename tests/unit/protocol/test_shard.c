/* SPDX-License-Identifier: Apache-2.0 */
/* The shard's answers to one client, one line of the contract each; stories of
 * several clients are told by the trace tests. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/shard.h"
#include "support/fail_alloc.h"

#define CONN 77
#define SESSION 5
#define INCARNATION 1001
#define N_ROWS 8

typedef struct bench {
    ps_shard_t *shard;
    ps_outbox_t outbox;
    ps_table_spec_t spec;
    ps_route_t routes[2];
    uint64_t now_ms;
} bench_t;

static psd_status_t
step(bench_t *self, ps_event_t *event)
{
    ps_outbox_clear(&self->outbox);
    event->now_ms = self->now_ms;
    return ps_shard_step(self->shard, event, &self->outbox, NULL);
}

static psd_status_t
say(bench_t *self, const ps_message_t *message, ps_payload_t *payload)
{
    return step(self, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                    .conn = CONN,
                                    .message = message,
                                    .payload = payload});
}

/* The only message that was sent; NULL when none was. */
static const ps_message_t *
answer(const bench_t *self)
{
    const ps_message_t *found = NULL;

    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        if (self->outbox.effects[i].kind == PS_EFFECT_SEND) {
            cr_assert_null(found, "one answer to one request");
            found = &self->outbox.effects[i].message;
        }
    }
    return found;
}

static void
expect_refused(const bench_t *self, psd_status_t status, const char *text)
{
    const ps_message_t *message = answer(self);

    cr_assert_not_null(message);
    cr_assert_eq(message->kind, PS_KIND_REFUSED);
    cr_expect_eq(message->refused.status, status);
    cr_expect_str_eq(message->refused.text, text);
}

static psd_status_t
set_table(bench_t *self)
{
    return step(self, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                    .table = 1,
                                    .spec = &self->spec,
                                    .routes = self->routes,
                                    .n_routes = 2});
}

static psd_status_t
hello(bench_t *self, const ps_msg_hello_t *change)
{
    ps_message_t message = {.kind = PS_KIND_HELLO, .hello = *change};

    return say(self, &message, NULL);
}

static const ps_msg_hello_t good_hello = {.version_min = 1,
                                          .version_max = 1,
                                          .incarnation = INCARNATION,
                                          .session = SESSION};

/* A shard that holds partition 0 of a table of two; partition 1 is on shard 1.
 * lost_sessions is 3. */
static psd_status_t
open_bench(bench_t *self)
{
    const ps_shard_args_t args = {.incarnation = INCARNATION,
                                  .lost_sessions = 3,
                                  .credit_requests = 2,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .sessions_max = 2,
                                  .trace = true};
    psd_status_t rc;

    *self = (bench_t){.now_ms = 100};
    ps_table_spec_init(&self->spec);
    (void)snprintf(self->spec.name, sizeof self->spec.name, "w");
    self->spec.n_rows = N_ROWS;
    self->spec.n_partitions = 2;
    self->spec.n_col_slices = 1;
    for (uint32_t i = 0; i < 2; i++) {
        self->routes[i] = (ps_route_t){
            .partition = i, .shard = i, .epoch = 4, .incarnation = INCARNATION};
    }
    rc = ps_shard_new(&args, &self->shard, NULL);
    if (rc == PSD_OK) {
        rc = set_table(self);
    }
    return rc == PSD_OK ? hello(self, &good_hello) : rc;
}

static void
close_bench(bench_t *self)
{
    ps_shard_destroy(&self->shard);
    ps_outbox_done(&self->outbox);
    ps_table_spec_done(&self->spec);
}

static ps_message_t
push_message(uint64_t seq)
{
    return (ps_message_t){.kind = PS_KIND_PUSH,
                          .push = {.request = seq,
                                   .table = 1,
                                   .epoch = 4,
                                   .seq = seq,
                                   .type = PS_TYPE_F32,
                                   .n_rows = 1,
                                   .n_cols = 1,
                                   .n_values = 1}};
}

static psd_status_t
push_as(bench_t *self, const ps_message_t *message, uint64_t row, float value)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy(
        (ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
        (ps_bytes_t){(const uint8_t *)&value, sizeof value});

    return payload == NULL ? PSD_NOMEM : say(self, message, payload);
}

static psd_status_t
push(bench_t *self, uint64_t seq, uint64_t row, float value)
{
    ps_message_t message = push_message(seq);

    return push_as(self, &message, row, value);
}

static float
pull(bench_t *self, uint64_t row)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.request = 1000,
                                     .table = 1,
                                     .epoch = 4,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 1,
                                     .n_cols = 1}};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row},
                        (ps_bytes_t){0}, (ps_bytes_t){0});
    float value = -1;

    cr_assert_eq(say(self, &message, payload), PSD_OK);
    cr_assert_not_null(answer(self));
    cr_assert_eq(answer(self)->kind, PS_KIND_VALUES);
    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        if (self->outbox.effects[i].kind == PS_EFFECT_SEND) {
            memcpy(&value, self->outbox.effects[i].payload->spans[0].data,
                   sizeof value);
        }
    }
    return value;
}

static bench_t bench;

static void
setup(void)
{
    cr_assert_eq(open_bench(&bench), PSD_OK);
}

static void
teardown(void)
{
    close_bench(&bench);
}

TestSuite(shard, .init = setup, .fini = teardown);

Test(shard, grants_credits_in_its_welcome)
{
    const ps_message_t *message = answer(&bench);

    cr_assert_not_null(message);
    cr_assert_eq(message->kind, PS_KIND_WELCOME);
    cr_expect_eq(message->welcome.credit_requests, 2);
    cr_expect_eq(message->welcome.incarnation, INCARNATION);
}

Test(shard, refuses_a_hello_by_name)
{
    ps_msg_hello_t change = good_hello;

    change.version_min = change.version_max = 9;
    cr_assert_eq(hello(&bench, &change), PSD_OK);
    expect_refused(&bench, PSD_VERSION,
                   "protocol versions 9..9; spoken here: 1..1");
    change = good_hello;
    change.cluster.bytes[15] = 1;
    cr_assert_eq(hello(&bench, &change), PSD_OK);
    expect_refused(&bench, PSD_CLUSTER,
                   "cluster 00000000-0000-0000-0000-000000000001; this is "
                   "00000000-0000-0000-0000-000000000000");
    change = good_hello;
    change.incarnation = 7;
    cr_assert_eq(hello(&bench, &change), PSD_OK);
    expect_refused(&bench, PSD_INCARNATION, "incarnation 7; this is 1001");
    change.session = 3;
    cr_assert_eq(hello(&bench, &change), PSD_OK);
    expect_refused(&bench, PSD_ROWS_LOST,
                   "session 3 is from before a restart in which rows were "
                   "lost");
    change = good_hello;
    change.session = 0;
    cr_assert_eq(hello(&bench, &change), PSD_OK);
    expect_refused(&bench, PSD_DENIED, "session 0; allowed: 1 and up");
}

Test(shard, answers_a_stranger_with_no_session)
{
    ps_message_t message = push_message(1);

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                            .conn = CONN + 1,
                                            .message = &message}),
                 PSD_OK);
    expect_refused(&bench, PSD_NO_SESSION, "say HELLO first");
}

Test(shard, applies_a_push_once)
{
    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(answer(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(answer(&bench)->ack.level, PS_ACK_MEMORY);
    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_expect_eq(answer(&bench)->kind, PS_KIND_ACK, "the answer is repeated");
    cr_expect_eq(pull(&bench, 2), 0.5F);
}

Test(shard, answers_a_gap_with_the_expected_seq)
{
    cr_assert_eq(push(&bench, 3, 2, 0.5F), PSD_OK);
    expect_refused(&bench, PSD_GAP, "gap, expected 1");
    cr_expect_eq(answer(&bench)->refused.detail, 1);
    cr_expect_eq(pull(&bench, 2), 0.0F);
}

Test(shard, remembers_a_refusal_under_its_seq)
{
    cr_assert_eq(push(&bench, 1, 6, 0.5F), PSD_OK);
    cr_assert_eq(answer(&bench)->refused.status, PSD_RANGE);
    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_assert_eq(answer(&bench)->kind, PS_KIND_REFUSED);
    cr_expect_eq(answer(&bench)->refused.status, PSD_RANGE);
    cr_assert_eq(push(&bench, 2, 2, 0.5F), PSD_OK);
    cr_expect_eq(answer(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(pull(&bench, 2), 0.5F);
}

/* It was answered ACK: a push that was never applied counted as applied. */
Test(shard, does_not_call_a_forgotten_refusal_applied)
{
    ps_message_t probe = {.kind = PS_KIND_PROBE,
                          .probe = {.table = 1, .epoch = 4, .seq = 1}};

    cr_assert_eq(push(&bench, 1, 6, 0.5F), PSD_OK);
    cr_assert_eq(answer(&bench)->refused.status, PSD_RANGE);
    cr_assert_eq(push(&bench, 2, 2, 0.5F), PSD_OK);
    cr_assert_eq(push(&bench, 3, 2, 0.5F), PSD_OK);
    cr_assert_eq(push(&bench, 4, 6, 0.5F), PSD_OK);
    cr_assert_eq(answer(&bench)->refused.status, PSD_RANGE);
    cr_assert_eq(say(&bench, &probe, NULL), PSD_OK);
    expect_refused(&bench, PSD_CLOSED,
                   "asked too late; whether it was applied is not known any "
                   "more");
    probe.probe.seq = 2;
    cr_assert_eq(say(&bench, &probe, NULL), PSD_OK);
    cr_expect_eq(answer(&bench)->kind, PS_KIND_ACK);
    probe.probe.seq = 4;
    cr_assert_eq(say(&bench, &probe, NULL), PSD_OK);
    cr_expect_eq(answer(&bench)->refused.status, PSD_RANGE);
}

Test(shard, sends_the_map_for_a_partition_elsewhere)
{
    ps_message_t message = push_message(1);

    message.push.partition = 1;
    cr_assert_eq(push_as(&bench, &message, 6, 1.0F), PSD_OK);
    cr_assert_eq(answer(&bench)->kind, PS_KIND_MOVED);
    cr_expect_eq(answer(&bench)->moved.n_routes, 2);
    message.push.partition = 0;
    message.push.epoch = 3;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_eq(answer(&bench)->kind, PS_KIND_MOVED);
    message.push.epoch = 5;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_BUSY, "the map here is older than yours");
}

Test(shard, says_which_table_or_partition_is_missing)
{
    ps_message_t message = push_message(1);

    message.push.table = 9;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_TABLE, "the table does not exist");
    message.push.table = 1;
    message.push.partition = 2;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_TABLE, "the partition does not exist");
}

/* A level is never silently lowered: the push waits, and says for what. */
Test(shard, parks_a_push_whose_level_cannot_be_had)
{
    ps_message_t message = push_message(1);

    message.push.ack = PS_ACK_DISK;
    message.push.timeout_ms = 50;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_null(answer(&bench));
    cr_expect_eq(ps_shard_deadline(bench.shard), 150);
    bench.now_ms = 150;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_assert_eq(answer(&bench)->kind, PS_KIND_PARKED);
    cr_expect_str_eq(answer(&bench)->parked.text,
                     "ack level disk cannot be had: partition 0 has one copy, "
                     "in memory");
    cr_expect_eq(ps_shard_deadline(bench.shard), 1150,
                 "a short patience is no reason to say it all the time");
    cr_expect_eq(pull(&bench, 2), 0.0F);
}

Test(shard, holds_no_more_than_it_granted)
{
    ps_message_t message = push_message(1);

    for (uint64_t seq = 1; seq <= 3; seq++) {
        message.push.seq = message.push.request = seq;
        message.push.ack = PS_ACK_REPLICA;
        cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    }
    expect_refused(&bench, PSD_BUSY,
                   "more requests in flight than credit_requests grants");
}

Test(shard, says_what_a_held_push_waits_for_when_probed)
{
    ps_message_t message = push_message(1);
    ps_message_t probe = {.kind = PS_KIND_PROBE,
                          .probe = {.table = 1, .epoch = 4, .seq = 1}};

    cr_assert_eq(say(&bench, &probe, NULL), PSD_OK);
    expect_refused(&bench, PSD_GAP, "gap, expected 1");
    message.push.ack = PS_ACK_REPLICA;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_assert_eq(say(&bench, &probe, NULL), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(answer(&bench)->kind, PS_KIND_PARKED);
}

Test(shard, ends_a_pull_that_waits_too_long)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.table = 1,
                                     .epoch = 4,
                                     .after = 1,
                                     .timeout_ms = 20,
                                     .rows = PS_ROWS_RANGE,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 1,
                                     .n_cols = 1}};

    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_null(answer(&bench));
    bench.now_ms += 20;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    expect_refused(&bench, PSD_DEADLINE,
                   "waiting behind push 1 of the same client");
    cr_expect_eq(ps_shard_deadline(bench.shard), UINT64_MAX);
}

Test(shard, serves_a_pull_behind_the_push_that_it_names)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.table = 1,
                                     .epoch = 4,
                                     .after = 1,
                                     .rows = PS_ROWS_RANGE,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 1,
                                     .n_cols = 1}};
    size_t n_sent = 0;

    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_assert_eq(push(&bench, 1, 0, 2.0F), PSD_OK);
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        n_sent += bench.outbox.effects[i].kind == PS_EFFECT_SEND;
    }
    cr_expect_eq(n_sent, 2, "the acknowledgement and the values");
}

Test(shard, refuses_a_mark_of_no_worker_and_an_unknown_job)
{
    ps_message_t mark = {.kind = PS_KIND_MARK,
                         .mark = {.table = 1, .epoch = 4, .seq = 1}};
    ps_message_t message = push_message(2);

    cr_assert_eq(say(&bench, &mark, NULL), PSD_OK);
    expect_refused(&bench, PSD_NOT_JOINED,
                   "a mark of a client that is no worker");
    message.push.job = 8;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_JOB, "job 8 is not known here");
}

static psd_status_t
mark_clock(bench_t *self, uint64_t seq, uint32_t worker, uint64_t clock)
{
    ps_message_t mark = {.kind = PS_KIND_MARK,
                         .mark = {.table = 1,
                                  .epoch = 4,
                                  .seq = seq,
                                  .job = 3,
                                  .worker = worker,
                                  .joins = 1,
                                  .clock = clock}};

    return say(self, &mark, NULL);
}

/* A clock that never closed used to keep pushes without end. Waiting would not
 * help, so what is too much is refused; the clock closes with what it has. */
Test(shard, keeps_no_more_for_an_open_clock_than_it_may)
{
    ps_worker_t workers[1] = {
        {.state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1}};
    const ps_job_t job = {.id = 3,
                          .name = "lr",
                          .version = 1,
                          .workers = workers,
                          .n_workers = 1};
    ps_message_t message = push_message(1);
    uint64_t seq = 0;

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}),
                 PSD_OK);
    message.push.job = 3;
    message.push.joins = 1;
    do {
        message.push.seq = ++seq;
        cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
        cr_assert_not_null(answer(&bench));
    } while (answer(&bench)->kind == PS_KIND_ACK && seq < 100000);
    cr_assert_eq(answer(&bench)->kind, PS_KIND_REFUSED);
    cr_expect_eq(answer(&bench)->refused.status, PSD_LIMIT);
    cr_expect_not_null(strstr(answer(&bench)->refused.text,
                              "above limits.held_bytes 1048576; push less in "
                              "one clock"));
    cr_assert_eq(mark_clock(&bench, seq + 1, 0, 1), PSD_OK);
    cr_expect_eq(pull(&bench, 2), (float)(seq - 1));
    message.push.seq = seq + 2;
    message.push.clock = 1;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_eq(answer(&bench)->kind, PS_KIND_ACK);
}

/* Windows are bounded: the client idle longest is forgotten, and told so. */
Test(shard, forgets_the_client_that_was_idle_longest)
{
    ps_msg_hello_t other = good_hello;

    cr_assert_eq(push(&bench, 1, 0, 1.0F), PSD_OK);
    for (uint64_t session = 6; session <= 7; session++) {
        bench.now_ms++;
        other.session = session;
        cr_assert_eq(hello(&bench, &other), PSD_OK);
        cr_assert_eq(push(&bench, 1, 0, 1.0F), PSD_OK);
        cr_assert_eq(answer(&bench)->kind, PS_KIND_ACK);
    }
    cr_assert_eq(hello(&bench, &good_hello), PSD_OK);
    cr_assert_eq(push(&bench, 2, 0, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_CLOSED,
                   "this client was forgotten here after long silence");
}

/* Each partition kept a gate for every job that had ever used it. */
Test(shard, forgets_the_gates_of_jobs_that_ended_long_ago)
{
    ps_message_t message = push_message(1);
    ps_clock_info_t *clocks = NULL;
    size_t n = 0;

    message.push.joins = 1;
    for (uint32_t id = 1; id <= 300; id++) {
        ps_worker_t worker = {
            .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
        ps_job_t job = {
            .id = id, .version = 1, .workers = &worker, .n_workers = 1};

        cr_assert_eq(
            step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}),
            PSD_OK);
        message.push.seq = id;
        message.push.job = id;
        cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
        cr_assert_eq(answer(&bench)->kind, PS_KIND_ACK);
        worker.state = PS_WORKER_FINISHED;
        job.version = 2;
        cr_assert_eq(
            step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}),
            PSD_OK);
    }
    cr_assert_eq(ps_shard_clocks(bench.shard, 1, &clocks, &n, NULL), PSD_OK);
    cr_expect_eq(n, 0);
    ps_free(clocks);
    clocks = NULL;
    cr_assert_eq(ps_shard_clocks(bench.shard, 300, &clocks, &n, NULL), PSD_OK);
    cr_expect_eq(n, 1);
    ps_free(clocks);
    cr_expect_eq(pull(&bench, 2), 300.0F);
    message.push.job = 1;
    message.push.seq = 301;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_JOB, "job 1 is not known here");
}

Test(shard, a_dropped_table_answers_what_it_held)
{
    ps_message_t message = push_message(1);

    message.push.ack = PS_ACK_REPLICA;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_DROP, .table = 1}),
                 PSD_OK);
    expect_refused(&bench, PSD_NO_TABLE, "the table was dropped");
}

Test(shard, a_partition_that_moves_away_sends_the_new_map)
{
    ps_message_t message = push_message(1);

    message.push.ack = PS_ACK_REPLICA;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    bench.routes[0].shard = 1;
    bench.routes[0].epoch = 5;
    cr_assert_eq(set_table(&bench), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(answer(&bench)->kind, PS_KIND_MOVED);
}

Test(shard, refuses_what_is_for_clients)
{
    ps_message_t message = {.kind = PS_KIND_ACK};

    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    expect_refused(&bench, PSD_PROTO, "ACK is not for a shard");
}

/* Whatever is refused for lack of memory was not applied, and comes through
 * when it is sent again. */
static psd_status_t
push_twice(void *fixture)
{
    bench_t self;
    psd_status_t rc = open_bench(&self);
    float n_acked = 0;

    (void)fixture;
    for (uint64_t seq = 1; rc == PSD_OK && seq <= 2; seq++) {
        const ps_message_t *message = NULL;

        rc = push(&self, seq, 1, 1.0F);
        message = answer(&self);
        if (rc != PSD_OK || message == NULL || message->kind != PS_KIND_ACK) {
            rc = PSD_NOMEM;
        } else {
            n_acked += 1;
        }
    }
    if (rc == PSD_NOMEM && self.shard != NULL && fail_alloc_happened() &&
        set_table(&self) == PSD_OK && hello(&self, &good_hello) == PSD_OK) {
        cr_assert_eq(pull(&self, 1), n_acked);
        cr_assert_eq(push(&self, (uint64_t)n_acked + 1, 1, 1.0F), PSD_OK);
        cr_assert_eq(pull(&self, 1), n_acked + 1);
    }
    close_bench(&self);
    /* a note or a refusal's words may be missing: nothing else suffers */
    return fail_alloc_happened() ? PSD_NOMEM : rc;
}

Test(shard_memory, survives_every_failed_allocation)
{
    cr_assert_null(fail_alloc_sweep(push_twice, NULL));
}
