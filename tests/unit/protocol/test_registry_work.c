/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry/registry_work.h: slices of the input go round, each counted once. */
#include "protocol/registry/registry_work.h"

#include "base/rng.h"
#include "support/fail_alloc.h"
#include "support/registry_test.h"

static uint32_t job;

/* Job lr with two workers that run, and a queue of 4 slices and 2 epochs. */
static void make_queue(void)
{
    make_registry_with_node();
    run_worker("lr", 0, 2, 0);
    run_worker("lr", 1, 2, 0);
    job = ps_registry_job(registry, "lr")->id;
    do_planned(ps_registry_plan_queue(registry, job, "input", 4, 2, 5, &command, err));
}

TestSuite(registry_work, .init = make_queue, .fini = drop_registry);

static ps_work_ask_t ask_of(uint32_t worker, uint64_t number)
{
    return (ps_work_ask_t){
        .job = job, .queue = "input", .worker = worker, .session = 100 + worker, .number = number};
}

static psd_status_t plan_next(uint32_t worker, uint64_t number, ps_work_answer_t *ret_answer)
{
    ps_work_ask_t ask = ask_of(worker, number);

    return ps_registry_plan_work_next(registry, &ask, 6, &command, ret_answer, err);
}

static psd_status_t plan_done(uint32_t worker, uint64_t epoch, uint32_t slice)
{
    ps_work_ask_t ask = ask_of(worker, 0);

    ask.epoch = epoch;
    ask.slice = slice;
    return ps_registry_plan_work_done(registry, &ask, 6, &command, err);
}

static void assert_gets(uint32_t worker, uint64_t number, uint64_t epoch, uint32_t slice)
{
    ps_work_answer_t answer;

    do_planned(plan_next(worker, number, &answer));
    cr_assert_eq(answer.found, PS_WORK_SLICE);
    cr_assert_eq(answer.epoch, epoch);
    cr_assert_eq(answer.slice, slice);
}

static void assert_found(uint32_t worker, uint64_t number, ps_work_found_t found)
{
    ps_work_answer_t answer;

    assert_nothing_to_do(plan_next(worker, number, &answer));
    cr_assert_eq(answer.found, found);
}

static ps_queue_info_t queue(void)
{
    ps_queue_info_t info;

    cr_assert(ps_registry_queue_at(registry, job, 0, &info));
    return info;
}

Test(registry_work, a_queue_is_made_once)
{
    assert_nothing_to_do(ps_registry_plan_queue(registry, job, "input", 4, 2, 5, &command, err));
    assert_refused(ps_registry_plan_queue(registry, job, "input", 5, 2, 5, &command, err),
                   PSD_JOB_MISMATCH, "queue input of job lr has 4 slices and 2 epochs");
    assert_refused(ps_registry_plan_queue(registry, job, "b", 0, 2, 5, &command, err), PSD_INVALID,
                   "queue b has 0 slices; allowed: 1..1048576");
    assert_refused(ps_registry_plan_queue(registry, job, "-", 1, 2, 5, &command, err), PSD_INVALID,
                   "queue name is \"-\"; allowed: 1..63 of letters, digits, \"_\", \".\", "
                   "\"-\"");
    assert_refused(ps_registry_plan_queue(registry, 9, "b", 1, 2, 5, &command, err), PSD_NO_JOB,
                   "job number 9 does not exist");
    for (char name[2] = "a"; name[0] < 'a' + PS_QUEUES_MAX - 1; name[0]++) {
        do_planned(ps_registry_plan_queue(registry, job, name, 1, 0, 5, &command, err));
    }
    assert_refused(ps_registry_plan_queue(registry, job, "z", 1, 2, 5, &command, err), PSD_LIMIT,
                   "job lr has 16 queues already");
}

Test(registry_work, each_slice_is_counted_once_in_each_epoch)
{
    for (uint64_t epoch = 1; epoch <= 2; epoch++) {
        for (uint32_t i = 0; i < 4; i++) {
            assert_gets(i % 2, 10 * epoch + i, epoch, i);
        }
        assert_found(0, 10 * epoch + 9, PS_WORK_WAIT);
        cr_assert_eq(queue().n_given, 4);
        for (uint32_t i = 0; i < 4; i++) {
            do_planned(plan_done(i % 2, epoch, i));
            assert_nothing_to_do(plan_done(i % 2, epoch, i));
            cr_assert_eq(queue().n_done, (i + 1) % 4);
        }
    }
    cr_assert_eq(queue().epoch, 3);
    assert_found(0, 99, PS_WORK_END);
    assert_nothing_to_do(plan_done(1, 1, 1));
}

Test(registry_work, the_same_question_gets_the_same_answer)
{
    ps_work_answer_t answer;

    assert_gets(0, 1, 1, 0);
    assert_nothing_to_do(plan_next(0, 1, &answer));
    cr_assert_eq(answer.slice, 0);
    do_planned(plan_done(0, 1, 0));
    assert_nothing_to_do(plan_next(0, 1, &answer));
    cr_assert_eq(answer.slice, 0, "also when it is done");
    assert_gets(0, 2, 1, 1);
    assert_found(0, 1, PS_WORK_WAIT); /* a question that came late */
    cr_assert_eq(queue().n_given, 1);
}

Test(registry_work, slices_of_a_lost_worker_go_to_another)
{
    uint32_t slice = 99;

    assert_gets(0, 1, 1, 0);
    assert_gets(1, 1, 1, 1);
    assert_gets(0, 2, 1, 2);
    do_planned(plan_done(0, 1, 2));
    end_worker("lr", 0, PS_WORKER_LOST);
    cr_assert_eq(queue().n_given, 1);
    cr_assert_eq(queue().n_done, 1);
    cr_assert_eq(ps_registry_queue_given(registry, job, "input", 0, &slice), 0);
    cr_assert_eq(ps_registry_queue_given(registry, job, "input", 1, &slice), 1);
    cr_assert_eq(slice, 1);
    cr_assert_eq(ps_registry_queue_given(registry, job, "none", 1, &slice), 0);
    cr_assert_eq(ps_registry_queue_given(registry, 9, "input", 1, &slice), 0);
    assert_refused(plan_done(0, 1, 0), PSD_WORKER_LOST, "worker 0 of job lr was declared lost");
    assert_gets(1, 2, 1, 0);
    assert_gets(1, 3, 1, 3);
    run_worker("lr", 0, 2, 0);
    assert_refused(plan_done(0, 1, 0), PSD_INVALID,
                   "slice 0 of queue input was not given to worker 0");
    do_planned(plan_done(1, 1, 0));
}

Test(registry_work, a_worker_that_finishes_gives_back_what_it_has)
{
    assert_gets(0, 1, 1, 0);
    end_worker("lr", 0, PS_WORKER_FINISHED);
    cr_assert_eq(queue().n_given, 0);
    assert_gets(1, 1, 1, 0);
}

Test(registry_work, what_cannot_be_is_refused)
{
    ps_work_ask_t ask = ask_of(0, 1);
    ps_work_answer_t answer;

    assert_refused(plan_done(0, 1, 0), PSD_INVALID,
                   "slice 0 of queue input was not given to worker 0");
    assert_refused(plan_done(0, 2, 0), PSD_INVALID, "queue input has no slice 0 in epoch 2");
    assert_refused(plan_done(0, 1, 4), PSD_INVALID, "queue input has no slice 4 in epoch 1");
    assert_refused(plan_next(7, 1, &answer), PSD_NO_WORKER, "job lr has no worker 7");
    ask.queue = "output";
    assert_refused(ps_registry_plan_work_next(registry, &ask, 6, &command, &answer, err),
                   PSD_NO_JOB, "job lr has no queue \"output\"");
    ask = ask_of(0, 0);
    assert_refused(ps_registry_plan_work_next(registry, &ask, 6, &command, &answer, err),
                   PSD_INVALID, "session or number of a question is out of range");
    do_planned(ps_registry_plan_stop(registry, "lr", 6, &command, err));
    assert_refused(plan_next(0, 1, &answer), PSD_JOB_STOPPED, "job \"lr\" was stopped");
}

Test(registry_work, a_client_has_no_more_slices_than_it_may)
{
    ps_work_ask_t ask = ask_of(0, 0);
    ps_work_answer_t answer;

    do_planned(ps_registry_plan_queue(registry, job, "big", 99, 0, 5, &command, err));
    ask.queue = "big";
    for (; ask.number < PS_WORK_HOLDS_MAX;) {
        ask.number++;
        do_planned(ps_registry_plan_work_next(registry, &ask, 6, &command, &answer, err));
    }
    ask.number++;
    assert_refused(ps_registry_plan_work_next(registry, &ask, 6, &command, &answer, err), PSD_LIMIT,
                   "a client of worker 0 has 64 slices already");
}

/* One flush for many answers. */
Test(registry_work, many_questions_are_one_command)
{
    ps_work_answer_t answer;
    ps_work_ask_t ask = ask_of(0, 9);

    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(plan_next(0, i + 1, &answer), PSD_OK);
        cr_assert_eq(answer.slice, i);
    }
    cr_assert_eq(plan_next(0, 3, &answer), PSD_OK, "the same again");
    cr_assert_eq(answer.slice, 2);
    cr_assert_eq(command.work.n_holds, 3);
    cr_assert_eq(queue().n_given, 0, "a plan changes nothing");
    do_planned(PSD_OK);
    do_planned(ps_registry_plan_queue(registry, job, "b", 4, 0, 5, &command, err));
    cr_assert_eq(plan_next(1, 1, &answer), PSD_OK);
    ask.queue = "b";
    cr_assert_eq(ps_registry_plan_work_next(registry, &ask, 6, &command, &answer, err), PSD_BUSY);
    psd_error_clear(err);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(plan_done(0, 1, i), PSD_OK);
        cr_assert_eq(plan_done(0, 1, i), PSD_OK, "twice in one command");
    }
    cr_assert_eq(command.work.n_holds, 4);
    do_planned(PSD_OK);
    cr_assert_eq(queue().n_done, 3);
    do_planned(plan_done(1, 1, 3));
    cr_assert_eq(queue().epoch, 2);
}

Test(registry_work, what_was_stored_wrong_is_damaged)
{
    ps_work_hold_t holds[2] = {
        {.kind = PS_WORK_GIVEN, .session = 1, .ask = 1, .epoch = 1, .joins = 1}};
    ps_command_t stored = {.kind = PS_COMMAND_WORK,
                           .epoch = ps_registry_epoch(registry),
                           .work = {.queue = 1, .epoch = 1, .holds = holds, .n_holds = 2}};

    stored.job.id = job;
    holds[1] = holds[0];
    cr_assert_eq(ps_registry_apply(registry, &stored, 1, err), PSD_DAMAGED);
    stored.work.n_holds = 1;
    holds[0].joins = 2;
    cr_assert_eq(ps_registry_apply(registry, &stored, 1, NULL), PSD_DAMAGED);
    holds[0].joins = 1;
    holds[0].slice = 4;
    cr_assert_eq(ps_registry_apply(registry, &stored, 1, NULL), PSD_DAMAGED);
    holds[0].slice = 3;
    stored.work.turns = true;
    cr_assert_eq(ps_registry_apply(registry, &stored, 1, NULL), PSD_DAMAGED);
    stored.work.turns = false;
    stored.work.queue = 2;
    cr_assert_eq(ps_registry_apply(registry, &stored, 1, NULL), PSD_DAMAGED);
    stored.work.queue = 1;
    cr_assert_eq(ps_registry_apply(registry, &stored, 1, NULL), PSD_OK);
    cr_assert_eq(queue().n_given, 1);
}

static psd_status_t plan_and_apply(void *fixture)
{
    PSD_AUTO(ps_command_done) ps_command_t step = {0};
    ps_work_ask_t ask = ask_of(0, 7);
    ps_work_answer_t answer;
    psd_status_t rc = ps_registry_plan_work_next(registry, &ask, 6, &step, &answer, NULL);

    (void)fixture;
    if (rc == PSD_OK && step.kind != 0) {
        rc = ps_registry_apply(registry, &step, 1, NULL);
    }
    return rc;
}

Test(registry_work, no_memory_is_said_and_gives_nothing)
{
    cr_assert_null(fail_alloc_sweep(plan_and_apply, NULL));
    cr_assert_eq(queue().n_given, 1);
}

/* Random lives: workers ask and are done, answers are lost, workers are lost
 * and join again, the registry crashes before or behind storing a batch. */

#define LIFE_WORKERS 3
#define LIFE_SLICES 5
#define LIFE_EPOCHS 3
#define LIFE_LOG 4000

typedef struct life {
    ps_rng_t rng;
    ps_command_t log[LIFE_LOG];
    size_t n_log;
    uint32_t counted[LIFE_EPOCHS + 2][LIFE_SLICES];
    struct {
        uint64_t asked; /* number of its last question */
        bool has;
        uint64_t epoch;
        uint32_t slice;
    } workers[LIFE_WORKERS];
} life_t;

/* Stored and applied. */
static void keep(life_t *self)
{
    if (command.kind == 0) {
        return;
    }
    cr_assert_lt(self->n_log, LIFE_LOG);
    for (size_t i = 0; i < command.work.n_holds; i++) {
        const ps_work_hold_t *hold = &command.work.holds[i];

        if (hold->kind == PS_WORK_DONE) {
            cr_assert_eq(++self->counted[hold->epoch][hold->slice], 1, "counted once");
        }
    }
    cr_assert_eq(ps_registry_apply(registry, &command, 1, err), PSD_OK, "%s", psd_error_text(err));
    self->log[self->n_log++] = command;
    command = (ps_command_t){0};
}

static void crash(life_t *self)
{
    ps_registry_args_t args = fixture_args();

    ps_command_done(&command); /* nobody has heard of it */
    ps_registry_destroy(&registry);
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
    for (size_t i = 0; i < self->n_log; i++) {
        cr_assert_eq(ps_registry_apply(registry, &self->log[i], 1, err), PSD_OK);
    }
}

static void work(life_t *self)
{
    uint32_t at = (uint32_t)ps_rng_below(&self->rng, LIFE_WORKERS);
    ps_work_answer_t answer = {0};
    bool answered = false;

    if (self->workers[at].has) {
        answered = plan_done(at, self->workers[at].epoch, self->workers[at].slice) == PSD_OK;
    } else {
        answered = plan_next(at, self->workers[at].asked + 1, &answer) == PSD_OK;
    }
    if (ps_rng_below(&self->rng, 8) == 0) {
        crash(self);
        return;
    }
    keep(self);
    if (!answered || ps_rng_below(&self->rng, 4) == 0) {
        return; /* the answer is lost, and it asks again */
    }
    if (answer.found != PS_WORK_SLICE) {
        self->workers[at].has = false;
        return;
    }
    self->workers[at].asked++;
    self->workers[at].has = true;
    self->workers[at].epoch = answer.epoch;
    self->workers[at].slice = answer.slice;
}

/* A worker is lost and comes again; it has forgotten all. */
static void lose(life_t *self)
{
    uint32_t at = (uint32_t)ps_rng_below(&self->rng, LIFE_WORKERS);

    cr_assert_eq(plan_end(job, at, PS_WORKER_LOST), PSD_OK);
    keep(self);
    cr_assert_eq(plan_join("lr", at, LIFE_WORKERS, 0), PSD_OK);
    keep(self);
    cr_assert_eq(plan_start(job, at), PSD_OK);
    keep(self);
    self->workers[at].asked += 10; /* another session would do the same */
    self->workers[at].has = false;
}

static void begin(life_t *self)
{
    ps_id_t uuid = fixture_uuid();
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 7, 2, shards);

    ps_registry_destroy(&registry);
    crash(self);
    cr_assert_eq(ps_registry_plan_cluster(registry, "psd", &uuid, 1, &command, err), PSD_OK);
    keep(self);
    cr_assert_eq(ps_registry_plan_node(registry, &node, 1, &command, err), PSD_OK);
    keep(self);
    for (uint32_t i = 0; i < LIFE_WORKERS; i++) {
        cr_assert_eq(plan_join("lr", i, LIFE_WORKERS, 0), PSD_OK);
        keep(self);
        job = ps_registry_job(registry, "lr")->id;
        cr_assert_eq(plan_start(job, i), PSD_OK);
        keep(self);
    }
    cr_assert_eq(
        ps_registry_plan_queue(registry, job, "input", LIFE_SLICES, LIFE_EPOCHS, 1, &command, err),
        PSD_OK);
    keep(self);
}

Test(registry_work, nothing_is_lost_or_counted_twice_by_crashes)
{
    static life_t life;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        life = (life_t){.rng = {seed}};
        begin(&life);
        for (int i = 0; i < 2000 && queue().epoch <= LIFE_EPOCHS; i++) {
            psd_error_clear(err);
            if (ps_rng_below(&life.rng, 20) == 0) {
                lose(&life);
            } else {
                work(&life);
            }
        }
        cr_assert_eq(queue().epoch, LIFE_EPOCHS + 1, "it comes to its end");
        for (int i = 0; i < LIFE_EPOCHS * LIFE_SLICES; i++) {
            cr_assert_eq(life.counted[1 + i / LIFE_SLICES][i % LIFE_SLICES], 1);
        }
        while (life.n_log > 0) {
            ps_command_done(&life.log[--life.n_log]);
        }
    }
}
