/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings that take their blocks from a work queue. Under BSP and under SSP
 * four workers share the slices while two of them are killed and one comes
 * again: each slice is counted once, and the sums say what was trained on. */
#include <psd_train.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "queue_run.h"
#include "support/check.h"
#include "support/cluster.h"

#define WORKERS 4
#define CLOCKS 2 /* of a slice, with a block each */
#define EACH 4   /* what they add to its row: 2 trainers 1 each */
#define PARTS 2

static const char config[] = "workers:\n"
                             "  heartbeat_ms: 100\n"
                             "  lost_after_ms: 8000\n";

/* Trains on a slice's row, and gets the next one. */
static bool do_slice(queue_run_t *run, psd_train_t *train, uint32_t row, bool dies,
                     uint32_t *ret_next, psd_error_t *err)
{
    for (int k = 0; k < CLOCKS; k++) {
        bool last = k == CLOCKS - 1;

        atomic_store(&run->dies, dies && !run->dies_behind_push);
        CHECK_OK(psd_train_clock_begin(train, err), err);
        CHECK(queue_push(train, row, err));
        if (dies && last) {
            CHECK_OK(psd_train_wait(train, CALL_MS, err), err);
            (void)raise(SIGKILL);
        }
        CHECK(!last || !run->in_clock || queue_next(train, ret_next, err));
        CHECK_OK(psd_train_clock_end(train, err), err);
    }
    CHECK(run->in_clock || queue_next(train, ret_next, err));
    return true;
}

static bool work(queue_run_t *run, psd_error_t *err)
{
    psd_train_t *train = queue_join(run, err);
    uint64_t first = 0;
    uint32_t row = 0;
    char byte = 0;

    CHECK(train != NULL);
    first = psd_train_first_clock(train);
    CHECK(queue_begin(train, run->job, err));
    CHECK(run->ready == 0 || write(run->ready, &first, sizeof first) == sizeof first);
    CHECK(queue_next(train, &row, err));
    for (unsigned n = 1; row != ROWS; n++) {
        uint32_t done = row;

        CHECK(do_slice(run, train, row, n == run->dies_at, &row, err));
        CHECK(write(run->reports, &done, sizeof done) == sizeof done);
    }
    CHECK(read(run->go, &byte, 1) == 1);
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    psd_train_destroy(&train);
    return true;
}

static pid_t start(queue_run_t *run)
{
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        psd_error_t *err = psd_error_new();
        bool ok = work(run, err);

        psd_error_destroy(&err);
        _exit(ok ? 0 : 1);
    }
    return pid;
}

/* Each row is reported once, but for what the dead would have reported. */
static bool take_reports(int fd)
{
    bool seen[ROWS] = {false};

    for (unsigned i = 0; i < ROWS; i++) {
        uint32_t row = 0;

        CHECK(read(fd, &row, sizeof row) == sizeof row);
        CHECK(row < ROWS && !seen[row]);
        seen[row] = true;
    }
    return true;
}

/* What the one that died behind its pushes had pushed is there, too. */
static bool sums_are_right(const char *job)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    int64_t values[ROWS];
    unsigned n_twice = 0;

    CHECK_OK(psd_connect(queue_endpoint, NULL, &client, err), err);
    CHECK(queue_pull_all(client, job, values, err));
    for (unsigned i = 0; i < ROWS; i++) {
        CHECK(values[i] == EACH || values[i] == 2 * EACH);
        n_twice += values[i] == 2 * EACH ? 1 : 0;
    }
    CHECK(n_twice == 1);
    CHECK(queue_is_told(client, job,
                        "\"queue\":\"in\",\"slices\":24,\"epochs\":2,\"epoch\":2,"
                        "\"done\":24,\"given\":0,\"waiting\":0,\"over\":true",
                        err));
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

static bool each_is_counted_once(const char *job, const char *max_delay, bool in_clock)
{
    static const char *const ranks[WORKERS] = {"0", "1", "2", "3"};
    queue_run_t run = {.job = job,
                       .workers = "4",
                       .max_delay = max_delay,
                       .queue = "in",
                       .slices = "24",
                       .epochs = "2",
                       .in_clock = in_clock};
    pid_t pids[WORKERS];
    int ends[3][2]; /* reports, ready, go */
    uint64_t first = 0;
    pid_t again = 0;
    pid_t reader = 0;

    for (int i = 0; i < 3; i++) {
        CHECK(pipe(ends[i]) == 0);
    }
    run.reports = ends[0][1];
    run.ready = ends[1][1];
    run.go = ends[2][0];
    for (uint32_t i = 0; i < WORKERS; i++) {
        run.rank = ranks[i];
        run.dies_at = i == 1 ? 2 : i == 2 ? 3 : 0;
        run.dies_behind_push = i == 2;
        pids[i] = start(&run);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        CHECK(read(ends[1][0], &first, sizeof first) == sizeof first);
        CHECK(first == 0);
    }
    CHECK(queue_ended_with(pids[1], 0, SIGKILL) && queue_ended_with(pids[2], 0, SIGKILL));
    run.rank = "1";
    run.dies_at = 0;
    again = start(&run);
    CHECK(read(ends[1][0], &first, sizeof first) == sizeof first);
    CHECK(first >= CLOCKS); /* of its first life's first slice */
    CHECK(take_reports(ends[0][0]));
    CHECK(write(ends[2][1], "goo", 3) == 3);
    CHECK(queue_ended_with(pids[0], 0, 0) && queue_ended_with(pids[3], 0, 0) &&
          queue_ended_with(again, 0, 0));
    for (int i = 0; i < 6; i++) {
        (void)close(ends[i / 2][i % 2]);
    }
    reader = fork();
    if (reader == 0) { /* this process must stay without threads */
        _exit(sums_are_right(job) ? 0 : 1);
    }
    return queue_ended_with(reader, 0, 0);
}

static bool part(int number)
{
    return number == 0 ? each_is_counted_once("bsp", "0", true)
                       : each_is_counted_once("ssp", "2", false);
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
