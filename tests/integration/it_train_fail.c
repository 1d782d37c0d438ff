/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings that fail: the reason reaches the caller, the history and `pscli
 * why`; the other worker goes on; each block is freed once; every wait ends and
 * says what it waited for. */
#include <psd_train.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"

#define CALL_MS 60000
#define LOOKS 12000 /* of 5 ms */
#define CLOCKS 6
#define BLOCKS 12 /* two a clock */

static const char *endpoint;

/* What goes wrong in one worker; every word may be NULL. */
typedef struct fault {
    const char *where; /* "load", "step", "begin", "end", "clock" */
    uint64_t block;    /* from 1; of a clock's end: any */
    psd_status_t status;
    const char *part; /* of the text */
} fault_t;

typedef struct job {
    const fault_t *fault; /* NULL: none */
    const char *name;
    const char *rank;
    const char *workers;
    pthread_t thread;
    bool good;
    atomic_int n_freed;
    atomic_int n_pushed;
    atomic_bool held; /* steps wait for its end */
} job_t;

typedef struct block {
    job_t *job;
    uint64_t number;
} block_t;

static void free_block(void *block_p)
{
    block_t *block = block_p;

    atomic_fetch_add(&block->job->n_freed, 1);
    free(block);
}

static bool is_here(const job_t *job, const char *where, const block_t *block)
{
    return job->fault != NULL && strcmp(job->fault->where, where) == 0 &&
           (block == NULL || block->number == job->fault->block);
}

static psd_status_t load(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    const uint64_t rows[] = {0, 1, 2};
    const uint64_t far = 100;

    if (is_here(user, "load", block)) {
        return psd_error_set(err, PSD_IO, "line 7: no number");
    }
    if (is_here(user, "rows", block)) {
        return psd_loader_rows(loader, 0, &far, 1, err);
    }
    return psd_loader_rows(loader, 0, rows, 3, err);
}

/* What a trainer may do wrong in its step. */
static void do_wrong(const job_t *job, psd_trainer_t *trainer, const block_t *block)
{
    if (is_here(job, "unasked", block)) {
        (void)psd_trainer_get_f64(trainer, 0, 5, 0);
        (void)psd_trainer_get_f64(trainer, 0, 6, 0); /* the first one counts */
    } else if (is_here(job, "nan", block)) {
        psd_trainer_add_f64(trainer, 0, 1, 0, NAN);
    } else if (is_here(job, "nan-row", block)) {
        psd_trainer_add_row(trainer, 0, 1, (const float[]){1, NAN}, 2);
    } else if (is_here(job, "place", block)) {
        psd_trainer_add_f64(trainer, 0, 1, 2, 1);
    } else if (is_here(job, "type", block)) {
        psd_trainer_add_i64(trainer, 0, 1, 0, 1);
    } else if (is_here(job, "table", block)) {
        psd_trainer_add_f64(trainer, 1, 1, 0, 1);
    } else if (is_here(job, "width", block)) {
        psd_trainer_add_row(trainer, 0, 1, "", 1);
    } else if (is_here(job, "sum", block)) {
        psd_trainer_add_f64(trainer, 0, 2, 1, 3e38);
        psd_trainer_add_f64(trainer, 0, 2, 1, 3e38);
    }
}

static psd_status_t step(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    job_t *job = user;

    while (atomic_load(&job->held)) {
        (void)sched_yield();
    }
    if (is_here(job, "step", block) && psd_trainer_id(trainer) == 1) {
        return psd_error_set(err, PSD_FAILED, "weights explode");
    }
    if (is_here(job, "silent", block)) {
        return PSD_NOMEM; /* and no text */
    }
    do_wrong(job, trainer, block);
    psd_trainer_add_f64(trainer, 0, 0, 0, 1);
    return PSD_OK;
}

static psd_status_t clock_end(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    (void)trainer;
    return is_here(user, "clock", block) ? psd_error_set(err, PSD_FAILED, "the clock strikes")
                                         : PSD_OK;
}

static bool begin(job_t *job, psd_train_t *train, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 0;

    CHECK_OK(psd_train_set(train, "endpoint", endpoint, err), err);
    CHECK_OK(psd_train_set(train, "job", job->name, err), err);
    CHECK_OK(psd_train_set(train, "worker", job->rank, err), err);
    CHECK_OK(psd_train_set(train, "workers", job->workers, err), err);
    CHECK_OK(psd_train_set(train, "max-delay", "0", err), err);
    CHECK_OK(psd_train_set(train, "trainers", "3", err), err);
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "10", err), err);
    CHECK_OK(psd_spec_set(spec, "cols", "2", err), err);
    CHECK_OK(psd_train_table(train, job->name, spec, &table, err), err);
    CHECK_OK(psd_train_config_end(train, err), err);
    psd_spec_destroy(&spec);
    psd_train_on_load(train, load);
    psd_train_on(train, PSD_TRAIN_STEP, step);
    psd_train_on(train, PSD_TRAIN_CLOCK_END, clock_end);
    CHECK_OK(psd_train_begin(train, err), err);
    return true;
}

/* Pushes the next block; on an error it is still ours. */
static psd_status_t push(job_t *job, psd_train_t *train, uint32_t timeout_ms, psd_error_t *err)
{
    block_t *block = malloc(sizeof *block);
    psd_status_t rc = PSD_OK;

    *block = (block_t){.job = job, .number = (uint64_t)job->n_pushed + 1};
    rc = psd_train_push_block(train, block, free_block, timeout_ms, err);
    if (rc == PSD_OK) {
        job->n_pushed++;
    } else {
        free(block);
    }
    return rc;
}

/* Feeds until the end, or until something fails. */
static psd_status_t feed(job_t *job, psd_train_t *train, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (int i = 0; rc == PSD_OK && i < CLOCKS; i++) {
        rc = psd_train_clock_begin(train, err);
        for (int k = 0; rc == PSD_OK && k < BLOCKS / CLOCKS; k++) {
            rc = push(job, train, CALL_MS, err);
        }
        if (rc == PSD_OK) {
            rc = psd_train_clock_end(train, err);
        }
    }
    return rc == PSD_OK ? psd_train_end(train, CALL_MS, err) : rc;
}

static bool run(job_t *job, psd_train_t *train, psd_error_t *err)
{
    const fault_t *fault = job->fault;

    CHECK(begin(job, train, err));
    if (fault == NULL) {
        CHECK_OK(feed(job, train, err), err);
        return true;
    }
    CHECK_ERROR(feed(job, train, err), fault->status, fault->part, err);
    /* And every later call says it again. */
    CHECK_ERROR(psd_train_wait(train, CALL_MS, err), fault->status, fault->part, err);
    CHECK_ERROR(push(job, train, CALL_MS, err), fault->status, fault->part, err);
    return true;
}

static void *run_worker(void *arg)
{
    job_t *job = arg;
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(job);

    job->good = run(job, train, err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    if (job->n_freed != job->n_pushed) {
        (void)fprintf(stderr, "%d blocks pushed, %d freed\n", job->n_pushed, job->n_freed);
        job->good = false;
    }
    return NULL;
}

/* The answer to a question holds the part. */
static bool is_told(const char *question, const char *part, psd_error_t *err)
{
    psd_client_t *client = NULL;
    char *reply = NULL;
    bool found = false;

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_request(client, question, CALL_MS, &reply, err), err);
    found = strstr(reply, part) != NULL;
    if (!found) {
        (void)fprintf(stderr, "no \"%s\" in %s\n", part, reply);
    }
    psd_free(reply);
    psd_close(&client);
    return found;
}

/* One of two workers fails; the other one ends all of its clocks. */
static bool other_goes_on(const fault_t *fault, psd_error_t *err)
{
    char name[40];
    char question[100];
    job_t jobs[] = {{.fault = fault, .name = name, .rank = "0", .workers = "2"},
                    {.name = name, .rank = "1", .workers = "2"}};

    (void)snprintf(name, sizeof name, "fails.%s", fault->where);
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&jobs[i].thread, NULL, run_worker, &jobs[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(jobs[i].thread, NULL);
    }
    CHECK(jobs[0].good && jobs[1].good);
    CHECK(jobs[1].n_pushed == BLOCKS);
    (void)snprintf(question, sizeof question, "{\"op\":\"why\",\"job\":\"%s\"}", name);
    CHECK(is_told(question, "worker 0 failed", err));
    CHECK(is_told(question, fault->part, err));
    CHECK(is_told("{\"op\":\"cluster_events\"}", fault->part, err));
    return true;
}

static bool reasons_are_told(psd_error_t *err)
{
    static const fault_t faults[] = {
        {"load", 3, PSD_IO, "block 3: load: line 7: no number"},
        {"rows", 1, PSD_RANGE, "block 1: load: table 0: row 100; the table has 10"},
        {"step", 5, PSD_FAILED, "block 5: trainer 1: STEP: weights explode"},
        {"silent", 2, PSD_NOMEM, "STEP: memory could not be allocated"},
        {"unasked", 4, PSD_INVALID, "STEP: row 5 of table"},
        {"nan", 4, PSD_NOT_FINITE, "the delta is nan"},
        {"nan-row", 4, PSD_NOT_FINITE, "row 1, column 1 of table"},
        {"place", 4, PSD_RANGE, "row 1, column 2 of table"},
        {"type", 4, PSD_TYPE, "is of f32; allowed: _f64"},
        {"table", 4, PSD_INVALID, "table is 1; there are 1"},
        {"width", 4, PSD_SHAPE, "1 values; it has 2 columns"},
        {"sum", 4, PSD_NOT_FINITE, "sums: row 2: the sum of deltas"},
        {"clock", 0, PSD_FAILED, "CLOCK_END: the clock strikes"},
    };

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        CHECK(other_goes_on(&faults[i], err));
    }
    return true;
}

/* ---- waits --------------------------------------------------------------- */

static bool waits_end(psd_error_t *err)
{
    job_t job = {.name = "held", .rank = "0", .workers = "1", .held = true};
    psd_train_t *train = psd_train_new(&job);

    CHECK(begin(&job, train, err));
    CHECK_OK(psd_train_clock_begin(train, err), err);
    CHECK_ERROR(psd_train_clock_begin(train, err), PSD_INVALID, "a clock has begun", err);
    CHECK_ERROR(psd_train_end(train, 0, err), PSD_INVALID, "a clock has begun", err);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(push(&job, train, CALL_MS, err), err);
    }
    /* Until the trainers are where they stay. */
    while (psd_train_wait(train, 1, err) == PSD_DEADLINE &&
           strstr(psd_error_text(err), "is in STEP, block 1") == NULL) {
        psd_error_clear(err);
    }
    psd_error_clear(err);
    CHECK_ERROR(push(&job, train, 10, err), PSD_DEADLINE,
                "push a block: 10 ms passed; 4 blocks are not done: trainer 0 "
                "is in STEP, block 1",
                err);
    atomic_store(&job.held, false);
    CHECK_OK(push(&job, train, CALL_MS, err), err);
    CHECK_OK(psd_train_clock_end(train, err), err);
    CHECK_ERROR(psd_train_clock_end(train, err), PSD_INVALID, "no clock has begun", err);
    CHECK_ERROR(push(&job, train, 0, err), PSD_INVALID, "no clock has begun", err);
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    CHECK(job.n_freed == 5);
    psd_train_destroy(&train);
    return true;
}

/* What failed is said also of a call that comes at a wrong time. */
static bool says_the_failure_first(psd_error_t *err)
{
    static const fault_t fault = {"step", 1, PSD_FAILED, "weights explode"};
    job_t job = {.fault = &fault, .name = "late", .rank = "0", .workers = "1", .held = true};
    psd_train_t *train = psd_train_new(&job);

    CHECK(begin(&job, train, err));
    CHECK_OK(psd_train_clock_begin(train, err), err);
    CHECK_OK(push(&job, train, CALL_MS, err), err);
    CHECK_OK(psd_train_clock_end(train, err), err);
    atomic_store(&job.held, false);
    CHECK_ERROR(psd_train_wait(train, CALL_MS, err), fault.status, fault.part, err);
    CHECK_ERROR(push(&job, train, CALL_MS, err), fault.status, fault.part, err);
    CHECK_ERROR(psd_train_clock_end(train, err), fault.status, fault.part, err);
    psd_train_destroy(&train);
    CHECK(job.n_freed == 1);
    return true;
}

/* Destroyed in the middle of its work: all blocks are freed, and why it ended
 * is known. */
static bool can_be_destroyed(psd_error_t *err)
{
    job_t job = {.name = "dropped", .rank = "0", .workers = "1"};
    psd_train_t *train = psd_train_new(&job);

    CHECK(begin(&job, train, err));
    CHECK_OK(psd_train_clock_begin(train, err), err);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(push(&job, train, CALL_MS, err), err);
    }
    psd_train_destroy(&train);
    CHECK(job.n_freed == 4);
    CHECK(is_told("{\"op\":\"why\",\"job\":\"dropped\"}",
                  "the training was destroyed before it ended", err));
    return true;
}

/* ---- the meeting --------------------------------------------------------- */

typedef struct guest {
    const char *job;
    const char *rank;
    const char *max_delay;
    pthread_t thread;
    int32_t agreed;
    bool good;
} guest_t;

static bool come(guest_t *guest, psd_train_t *train, psd_error_t *err)
{
    CHECK_OK(psd_train_set(train, "endpoint", endpoint, err), err);
    CHECK_OK(psd_train_set(train, "job", guest->job, err), err);
    CHECK_OK(psd_train_set(train, "worker", guest->rank, err), err);
    CHECK_OK(psd_train_set(train, "workers", "2", err), err);
    CHECK_OK(psd_train_set(train, "max-delay", guest->max_delay, err), err);
    CHECK_OK(psd_train_config_begin(train, err), err);
    guest->agreed = psd_train_max_delay(train);
    CHECK_OK(psd_train_config_end(train, err), err);
    return true;
}

static void *run_guest(void *arg)
{
    guest_t *guest = arg;
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(NULL);

    guest->good = come(guest, train, err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return NULL;
}

/* On a slow machine nobody may answer within the second: then once more. */
static bool comes_alone(const char *job, const char *workers, psd_error_t *err)
{
    bool is_told = false;

    for (int i = 0; i < 10 && !is_told; i++) {
        psd_train_t *train = psd_train_new(NULL);

        psd_error_clear(err);
        CHECK_OK(psd_train_set(train, "endpoint", endpoint, err), err);
        CHECK_OK(psd_train_set(train, "job", job, err), err);
        CHECK_OK(psd_train_set(train, "workers", workers, err), err);
        CHECK_OK(psd_train_set(train, "timeout-ms", "1000", err), err);
        CHECK(psd_train_config_begin(train, err) != PSD_OK);
        is_told = psd_error_status(err) == PSD_DEADLINE &&
                  strstr(psd_error_text(err), "worker 1") != NULL;
        psd_train_destroy(&train);
    }
    if (!is_told) {
        (void)fprintf(stderr, "%s\n", psd_error_text(err));
    }
    psd_error_clear(err);
    return is_told;
}

/* Waits until worker 1 is in the meeting of a job's two workers, or has been.
 */
static bool is_met(const char *job, psd_error_t *err)
{
    static const char part[] = "\"worker\":1,\"state\":\"";
    const struct timespec pause = {.tv_nsec = 5000000};
    char question[100];
    psd_client_t *client = NULL;
    bool found = false;

    (void)snprintf(question, sizeof question, "{\"op\":\"job_inspect\",\"job\":\"%s.agree2.2\"}",
                   job);
    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    for (int i = 0; i < LOOKS && !found; i++) {
        char *reply = NULL;
        const char *state = NULL;

        CHECK_OK(psd_request(client, question, CALL_MS, &reply, err), err);
        state = strstr(reply, part);
        state = state == NULL ? "lost" : state + strlen(part);
        found = strncmp(state, "lost", 4) != 0 && strncmp(state, "expected", 8) != 0;
        psd_free(reply);
        (void)nanosleep(&pause, NULL);
    }
    psd_close(&client);
    return found;
}

/* Of three, then of two, one comes. At once two come that count on two, first
 * the one that was in no meeting yet: without a bound is more than any bound.
 */
static bool can_meet_again(const char *job, psd_error_t *err)
{
    guest_t guests[] = {{.job = job, .rank = "0", .max_delay = "-1"},
                        {.job = job, .rank = "1", .max_delay = "3"}};
    bool met = false;

    CHECK(comes_alone(job, "3", err) && comes_alone(job, "2", err));
    CHECK(pthread_create(&guests[1].thread, NULL, run_guest, &guests[1]) == 0);
    met = is_met(job, err);
    CHECK(pthread_create(&guests[0].thread, NULL, run_guest, &guests[0]) == 0);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(guests[i].thread, NULL);
    }
    CHECK(met && guests[0].good && guests[1].good);
    CHECK(guests[0].agreed == -1 && guests[1].agreed == -1);
    return true;
}

/* An operator stops the job. */
static bool hears_of_a_stop(psd_error_t *err)
{
    job_t job = {.name = "stopped", .rank = "0", .workers = "1"};
    psd_train_t *train = psd_train_new(&job);
    psd_status_t rc = PSD_OK;

    CHECK(begin(&job, train, err));
    CHECK(is_told("{\"op\":\"job_stop\",\"job\":\"stopped\"}", "stopped", err));
    while (rc == PSD_OK) {
        rc = psd_train_clock_begin(train, err);
        if (rc == PSD_OK) {
            rc = push(&job, train, CALL_MS, err);
        }
        if (rc == PSD_OK) {
            rc = psd_train_clock_end(train, err);
        }
        if (rc == PSD_OK) {
            rc = psd_train_wait(train, CALL_MS, err);
        }
    }
    CHECK(rc == PSD_JOB_STOPPED);
    psd_error_clear(err);
    psd_train_destroy(&train);
    CHECK(job.n_freed == job.n_pushed);
    return true;
}

/* The node stands still: pulls end at their deadline. */
static bool pulls_have_deadlines(daemon_t *daemon, psd_error_t *err)
{
    job_t job = {.name = "frozen", .rank = "0", .workers = "1"};
    psd_train_t *train = psd_train_new(&job);
    psd_status_t rc = PSD_OK;

    CHECK_OK(psd_train_set(train, "timeout-ms", "10000", err), err);
    CHECK(begin(&job, train, err));
    CHECK(daemon_freeze(daemon));
    CHECK_OK(psd_train_clock_begin(train, err), err);
    CHECK_OK(push(&job, train, 0, err), err);
    rc = psd_train_wait(train, CALL_MS, err);
    CHECK(kill(daemon->pid, SIGCONT) == 0);
    CHECK(rc == PSD_DEADLINE);
    CHECK(strstr(psd_error_text(err), "block 1: pull") != NULL);
    psd_error_clear(err);
    psd_train_destroy(&train);
    CHECK(job.n_freed == 1);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    psd_error_t *err = psd_error_new();
    bool ok = daemon_start(&daemon, NULL);

    endpoint = daemon.control;
    ok = ok && reasons_are_told(err);
    ok = ok && waits_end(err) && says_the_failure_first(err);
    ok = ok && can_be_destroyed(err);
    ok = ok && can_meet_again("alone", err) && can_meet_again("again", err);
    ok = ok && hears_of_a_stop(err);
    ok = ok && pulls_have_deadlines(&daemon, err);
    daemon_drop(&daemon, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
