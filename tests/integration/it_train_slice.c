/* SPDX-License-Identifier: Apache-2.0 */
/* When a training counts a slice: when its pushes are acknowledged and not
 * before, and never when its training failed. A job that is taken back to a
 * checkpoint begins at that clock, with exactly the slices that were left. */
#include <psd_train.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "queue_run.h"
#include "support/check.h"
#include "support/cluster.h"

#define PARTS 3

static const char config[] = "workers:\n"
                             "  heartbeat_ms: 100\n"
                             "  lost_after_ms: 8000\n";

/* ---- when it is counted -------------------------------------------------- */

/* The second worker of a job, which does nothing but its clocks. */
typedef struct other {
    queue_run_t run;
    psd_train_t *train;
    pthread_t thread;
    bool good;
} other_t;

static void *run_other(void *arg)
{
    other_t *self = arg;
    psd_error_t *err = psd_error_new();

    self->train = queue_join(&self->run, err);
    self->good = self->train != NULL && queue_configure(self->train, self->run.job, err);
    psd_error_destroy(&err);
    return NULL;
}

/* Pushes of its second clock wait for the first one of the other worker, and so
 * does the slice. */
static bool waits_for_pushes(psd_train_t *train, psd_client_t *other, psd_error_t *err)
{
    uint64_t epoch = 0;
    uint32_t slice = 0;

    CHECK_OK(psd_train_next_slice(train, CALL_MS, &epoch, &slice, err), err);
    CHECK(epoch == 1 && slice == 0);
    CHECK_OK(psd_train_clock_begin(train, err), err);
    CHECK_OK(psd_train_clock_end(train, err), err);
    CHECK_OK(psd_train_clock_begin(train, err), err);
    CHECK(queue_push(train, 0, err));
    while (psd_train_next_slice(train, 50, &epoch, &slice, err) == PSD_DEADLINE &&
           strstr(psd_error_text(err), "1 pushes, or a clock's marks, are not "
                                       "acknowledged") == NULL) {
        psd_error_clear(err);
    }
    for (int i = 0; i < 10; i++) {
        psd_error_clear(err);
        CHECK_ERROR(psd_train_next_slice(train, 50, &epoch, &slice, err), PSD_DEADLINE,
                    "not acknowledged", err);
        CHECK(queue_is_told(other, "held", "\"done\":0,\"given\":1,", err));
    }
    CHECK_ERROR(psd_train_push_block(train, NULL, NULL, 0, err), PSD_INVALID,
                "psd_train_next_slice has not ended", err);
    CHECK_OK(psd_clock(other, err), err);
    CHECK_OK(psd_train_next_slice(train, CALL_MS, &epoch, &slice, err), err);
    CHECK(epoch == 1 && slice == 1);
    CHECK(queue_is_told(other, "held", "\"done\":1,\"given\":1,", err));
    return true;
}

/* Somebody else gets a slice whose training failed. */
static bool is_not_counted(queue_run_t *run, psd_train_t *train, psd_client_t *other,
                           psd_error_t *err)
{
    psd_work_t *queue = NULL;
    uint64_t epoch = 0;
    uint32_t slice = 0;

    atomic_store(&run->fails, true);
    CHECK(queue_push(train, 1, err));
    CHECK_ERROR(psd_train_next_slice(train, CALL_MS, &epoch, &slice, err), PSD_FAILED,
                "weights explode", err);
    CHECK_ERROR(psd_train_next_slice(train, 0, &epoch, &slice, err), PSD_FAILED, "weights explode",
                err);
    CHECK_OK(psd_work_open(other, "in", 2, 1, &queue, err), err);
    CHECK_OK(psd_work_next(queue, CALL_MS, &epoch, &slice, err), err);
    CHECK(epoch == 1 && slice == 1);
    CHECK(queue_is_told(other, "held", "\"done\":1,\"given\":1,", err));
    CHECK_OK(psd_work_done(queue, epoch, slice, CALL_MS, err), err);
    psd_work_close(&queue);
    return true;
}

static bool is_counted_in_time(void)
{
    psd_error_t *err = psd_error_new();
    queue_run_t run = {.job = "held",
                       .rank = "0",
                       .workers = "2",
                       .max_delay = "0",
                       .queue = "in",
                       .slices = "2",
                       .epochs = "1"};
    other_t other = {.run = {.job = "held", .rank = "1", .workers = "2", .max_delay = "0"}};
    psd_train_t *train = NULL;
    uint64_t epoch = 0;
    uint32_t slice = 0;

    CHECK(pthread_create(&other.thread, NULL, run_other, &other) == 0);
    train = queue_join(&run, err);
    CHECK(train != NULL && queue_configure(train, "held", err));
    CHECK(pthread_join(other.thread, NULL) == 0 && other.good);
    psd_train_on(train, PSD_TRAIN_STEP, queue_step); /* without pulls */
    CHECK_ERROR(psd_train_next_slice(train, 0, &epoch, &slice, err), PSD_INVALID,
                "psd_train_begin must be called first", err);
    CHECK_OK(psd_train_begin(train, err), err);
    CHECK(waits_for_pushes(train, psd_train_client(other.train), err));
    CHECK(is_not_counted(&run, train, psd_train_client(other.train), err));
    psd_train_destroy(&train);
    psd_train_destroy(&other.train);
    psd_error_destroy(&err);
    return true;
}

/* ---- options ------------------------------------------------------------- */

static bool bad_queues_are_named(void)
{
    psd_error_t *err = psd_error_new();
    queue_run_t run = {.job = "bad", .rank = "0", .workers = "1", .max_delay = "2"};
    psd_train_t *train = psd_train_new(&run);
    uint64_t epoch = 0;
    uint32_t slice = 0;

    CHECK(queue_set_options(&run, train, err));
    CHECK_OK(psd_train_set(train, "queue", "in", err), err);
    CHECK_ERROR(psd_train_config_begin(train, err), PSD_INVALID,
                "queue is \"in\", and slices is not set", err);
    psd_train_destroy(&train);

    train = psd_train_new(&run);
    CHECK(queue_set_options(&run, train, err));
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK(queue_begin(train, "bad", err));
    CHECK_ERROR(psd_train_next_slice(train, 0, &epoch, &slice, err), PSD_INVALID,
                "the training has no queue", err);
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return true;
}

/* ---- taken back ---------------------------------------------------------- */

/* Who makes the checkpoint, while the worker works. */
typedef struct boss {
    psd_client_t *client;
    pthread_t thread;
    uint64_t number;
    psd_status_t rc;
    atomic_bool over;
} boss_t;

static void *run_boss(void *arg)
{
    boss_t *self = arg;
    psd_error_t *err = psd_error_new();

    self->rc = psd_checkpoint_wait(self->client, self->number, CALL_MS, err);
    if (self->rc != PSD_OK) {
        (void)fprintf(stderr, "%s\n", psd_error_text(err));
    }
    psd_error_destroy(&err);
    atomic_store(&self->over, true);
    return NULL;
}

/* Trains on a slice in a clock, and gets the next one in it; without one the
 * clock is empty. */
static bool do_clock(psd_train_t *train, uint32_t *row, psd_error_t *err)
{
    CHECK_OK(psd_train_clock_begin(train, err), err);
    if (*row != ROWS) {
        CHECK(queue_push(train, *row, err) && queue_next(train, row, err));
    }
    CHECK_OK(psd_train_clock_end(train, err), err);
    return true;
}

/* Until a checkpoint is whole that is begun behind the third clock. */
static bool work_until_checkpoint(queue_run_t *run, boss_t *boss, psd_error_t *err)
{
    psd_train_t *train = queue_join(run, err);
    uint32_t row = 0;

    CHECK(train != NULL && psd_train_first_clock(train) == 0);
    CHECK(queue_begin(train, run->job, err));
    CHECK(queue_next(train, &row, err));
    for (int n = 0; n < 3; n++) {
        CHECK(do_clock(train, &row, err));
    }
    CHECK_OK(psd_checkpoint_start(boss->client, "q-1", run->job, &boss->number, err), err);
    CHECK(pthread_create(&boss->thread, NULL, run_boss, boss) == 0);
    while (!atomic_load(&boss->over)) {
        CHECK(do_clock(train, &row, err));
        CHECK_OK(psd_train_wait(train, CALL_MS, err), err);
    }
    CHECK(pthread_join(boss->thread, NULL) == 0 && boss->rc == PSD_OK);
    psd_train_destroy(&train); /* and so the slice that it has is lost */
    return true;
}

static bool work_to_the_end(queue_run_t *run, uint64_t first, psd_error_t *err)
{
    psd_train_t *train = queue_join(run, err);
    uint32_t row = 0;

    CHECK(train != NULL && psd_train_first_clock(train) == first);
    CHECK(queue_begin(train, run->job, err));
    CHECK(queue_next(train, &row, err));
    while (row != ROWS) {
        CHECK(do_clock(train, &row, err));
    }
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    psd_train_destroy(&train);
    return true;
}

static bool goes_on_from_its_clock(void)
{
    psd_error_t *err = psd_error_new();
    queue_run_t run = {.job = "back",
                       .rank = "0",
                       .workers = "1",
                       .max_delay = "0",
                       .queue = "in",
                       .slices = "24",
                       .epochs = "2"};
    boss_t boss = {.rc = PSD_OK};
    psd_checkpoint_t *found = NULL;
    int64_t values[ROWS];

    CHECK_OK(psd_connect(queue_endpoint, NULL, &boss.client, err), err);
    CHECK(work_until_checkpoint(&run, &boss, err));
    CHECK_OK(psd_checkpoint_resume(boss.client, "q", "back", 0, 0, CALL_MS, err), err);
    CHECK_OK(psd_checkpoint_newest(boss.client, "q", &found, err), err);
    CHECK(psd_checkpoint_clock(found) > 3);
    CHECK(work_to_the_end(&run, psd_checkpoint_clock(found) - 1, err));
    CHECK(queue_pull_all(boss.client, "back", values, err));
    for (unsigned i = 0; i < ROWS; i++) {
        CHECK(values[i] == 2); /* of two trainers */
    }
    psd_checkpoint_destroy(&found);
    psd_close(&boss.client);
    psd_error_destroy(&err);
    return true;
}

static bool part(int number)
{
    switch (number) {
    case 0:
        return is_counted_in_time();
    case 1:
        return bad_queues_are_named();
    default:
        return goes_on_from_its_clock();
    }
}

int main(void)
{
    const cluster_args_t args = {.n_nodes = 1, .config = config};
    cluster_t cluster;
    pid_t pids[PARTS];
    bool good = cluster_start(&cluster, &args);

    queue_endpoint = cluster.nodes[0].control;
    for (int i = 0; good && i < PARTS; i++) { /* none has threads yet */
        (void)fflush(NULL);
        pids[i] = fork();
        if (pids[i] == 0) {
            _exit(part(i) ? 0 : 1);
        }
    }
    for (int i = 0; good && i < PARTS; i++) {
        good = queue_ended_with(pids[i], 0, 0);
    }
    cluster_drop(&cluster, !good);
    return good ? 0 : 1;
}
