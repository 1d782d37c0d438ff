/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of the input: four workers take them while two of them are killed and
 * the node is killed and started again, twice; each slice is counted once in
 * each epoch. The others wait until both have died and one has come again: a
 * job whose last worker has left is over, and who joins it then begins it anew.
 * Then: who waits for a slice, and gets that of one that leaves; and those that
 * wait in a circle, which `why` names. */
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cluster.h"

#define WORKERS 4
#define SLICES 40
#define EPOCHS 3
#define ROWS (SLICES * EPOCHS)
#define ALONE 20     /* slices of one that does not die, before both have died */
#define PATIENCE 300 /* times that something is tried */

static const char config[] = "workers:\n"
                             "  heartbeat_ms: 100\n"
                             "  lost_after_ms: 8000\n";

/* A worker's process, and where it reports slices that it has done. */
typedef struct run {
    const char *endpoint;
    uint32_t worker;
    unsigned dies_at;      /* dies with its n-th slice, from 1; 0: it does not */
    bool dies_behind_push; /* else before */
    unsigned waits_at;     /* reads a byte of `go` before its n-th; 0: never */
    int go;
    int reports; /* rows, as uint32_t */
    int ready;   /* a byte when all is open; 0: nobody wants to know */
} run_t;

static void pause_ms(long ms)
{
    const struct timespec step = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&step, NULL);
}

/* A rank is free again when the one that died is declared lost. */
static bool join(psd_client_t *client, const run_t *run, psd_error_t *err)
{
    psd_status_t rc = PSD_WORKER_EXISTS;

    for (int i = 0; i < PATIENCE && rc == PSD_WORKER_EXISTS; i++) {
        psd_error_clear(err);
        rc = psd_join(client, "sums", run->worker, WORKERS, -1, err);
        if (rc == PSD_WORKER_EXISTS) {
            pause_ms(100);
        }
    }
    CHECK_OK(rc, err);
    return true;
}

static bool next(psd_work_t *work, uint64_t *epoch, uint32_t *slice, psd_error_t *err)
{
    psd_status_t rc = PSD_DEADLINE;

    for (int i = 0; i < PATIENCE && rc == PSD_DEADLINE; i++) {
        psd_error_clear(err);
        rc = psd_work_next(work, 500, epoch, slice, err);
    }
    CHECK_OK(rc, err);
    return true;
}

static bool done(psd_work_t *work, uint64_t epoch, uint32_t slice, psd_error_t *err)
{
    psd_status_t rc = PSD_DEADLINE;

    for (int i = 0; i < PATIENCE && rc == PSD_DEADLINE; i++) {
        psd_error_clear(err);
        rc = psd_work_done(work, epoch, slice, 500, err);
    }
    CHECK_OK(rc, err);
    return true;
}

static bool do_slices(const run_t *run, psd_table_t *table, psd_work_t *work, psd_error_t *err)
{
    const int64_t one = 1;
    uint64_t epoch = 0;
    uint32_t slice = 0;

    for (unsigned n = 1;; n++) {
        uint32_t row = 0;
        uint64_t row_id = 0;
        char byte = 0;

        CHECK(n != run->waits_at || read(run->go, &byte, 1) == 1);
        CHECK(next(work, &epoch, &slice, err));
        if (epoch == 0) {
            return true;
        }
        if (n == run->dies_at && !run->dies_behind_push) {
            (void)raise(SIGKILL);
        }
        row = (uint32_t)(epoch - 1) * SLICES + slice;
        row_id = row;
        CHECK_OK(psd_push(table, &row_id, 1, &one, 1, err), err);
        if (n == run->dies_at) {
            (void)raise(SIGKILL);
        }
        CHECK(done(work, epoch, slice, err));
        CHECK(write(run->reports, &row, sizeof row) == sizeof row);
    }
}

static bool work(const run_t *run, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    psd_work_t *work = NULL;

    CHECK_OK(psd_spec_set(spec, "rows", "120", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "ack", "disk", err), err);
    CHECK_OK(psd_connect(run->endpoint, NULL, &client, err), err);
    CHECK(join(client, run, err));
    CHECK_OK(psd_table_ensure(client, "sums", spec, &table, err), err);
    CHECK_OK(psd_work_open(client, "input", SLICES, EPOCHS, &work, err), err);
    CHECK(run->ready == 0 || write(run->ready, "r", 1) == 1);
    CHECK(do_slices(run, table, work, err));
    psd_work_close(&work);
    CHECK_OK(psd_leave(client, 60000, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

static pid_t start(const run_t *run)
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

static bool ended_with(pid_t pid, int exit_code, int signal_number)
{
    int status = 0;

    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(signal_number == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == signal_number));
    CHECK(signal_number != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == exit_code));
    return true;
}

/* Takes n reports; each row is reported once. */
static bool take_reports(int fd, bool seen[ROWS], unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint32_t row = 0;

        CHECK(read(fd, &row, sizeof row) == sizeof row);
        CHECK(row < ROWS && !seen[row]);
        seen[row] = true;
    }
    return true;
}

/* Every row has its 1, and the one that died behind its push left one more. */
static bool sums_are_right(const char *endpoint)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    uint64_t rows[ROWS];
    int64_t values[ROWS];
    char *reply = NULL;
    int64_t sum = 0;

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_table_open(client, "sums", &table, err), err);
    for (uint64_t i = 0; i < ROWS; i++) {
        rows[i] = i;
    }
    CHECK_OK(psd_pull(table, rows, ROWS, values, ROWS, err), err);
    for (unsigned i = 0; i < ROWS; i++) {
        CHECK(values[i] >= 1);
        sum += values[i];
    }
    CHECK(sum == ROWS + 1);
    CHECK_OK(psd_request(client, "{\"op\":\"job_inspect\",\"job\":\"sums\"}", 60000, &reply, err),
             err);
    CHECK(strstr(reply, "\"queue\":\"input\",\"slices\":40,\"epochs\":3,"
                        "\"epoch\":3,\"done\":40,\"given\":0,\"waiting\":0,"
                        "\"over\":true") != NULL);
    psd_free(reply);
    psd_table_close(&table);
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

static bool each_is_counted_once(cluster_t *cluster)
{
    run_t run = {.endpoint = cluster->nodes[0].control};
    bool seen[ROWS] = {false};
    pid_t pids[WORKERS];
    int reports[2];
    int ready[2];
    int go[2];
    char byte = 0;
    pid_t again = 0;
    pid_t reader = 0;

    CHECK(pipe(reports) == 0 && pipe(ready) == 0 && pipe(go) == 0);
    run.reports = reports[1];
    run.ready = ready[1];
    run.go = go[0];
    for (uint32_t i = 0; i < WORKERS; i++) {
        run.worker = i;
        run.dies_at = i == 1 ? 3 : i == 2 ? 5 : 0;
        run.dies_behind_push = i == 1;
        run.waits_at = run.dies_at == 0 ? ALONE + 1 : 0;
        pids[i] = start(&run);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        CHECK(read(ready[0], &byte, 1) == 1); /* nobody is to join a dead node */
    }
    CHECK(take_reports(reports[0], seen, 10));
    CHECK(cluster_kill(cluster, 0, SIGKILL) && cluster_restart(cluster, 0));
    CHECK(ended_with(pids[1], 0, SIGKILL) && ended_with(pids[2], 0, SIGKILL));
    run = (run_t){.endpoint = run.endpoint, .worker = 1, .reports = run.reports};
    again = start(&run);
    /* What the four may report before go, and one that only it can. */
    CHECK(take_reports(reports[0], seen, 2 * ALONE + 2 + 4 + 1 - 10));
    CHECK(write(go[1], "go", 2) == 2);
    CHECK(cluster_kill(cluster, 0, SIGKILL) && cluster_restart(cluster, 0));
    CHECK(take_reports(reports[0], seen, ROWS - (2 * ALONE + 2 + 4 + 1)));
    CHECK(ended_with(pids[0], 0, 0) && ended_with(pids[3], 0, 0) && ended_with(again, 0, 0));
    reader = fork();
    if (reader == 0) { /* this process must stay without threads */
        _exit(sums_are_right(run.endpoint) ? 0 : 1);
    }
    for (int i = 0; i < 2; i++) {
        (void)close(reports[i]);
        (void)close(ready[i]);
        (void)close(go[i]);
    }
    return ended_with(reader, 0, 0);
}

/* ---- one waits ---- */

/* Worker 1: waits until worker 0 has both slices, then for one of them. */
static bool wait_for_one(const char *endpoint, int other)
{
    const char wanted[] = "for a slice: worker 0 at clock 0";
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_work_t *work = NULL;
    uint64_t epoch = 0;
    uint32_t slice = 0;
    char byte = 0;

    CHECK(read(other, &byte, 1) == 1);
    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_ERROR(psd_work_open(client, "in", 2, 1, &work, err), PSD_NOT_JOINED, "not a worker", err);
    CHECK_OK(psd_join(client, "two", 1, 2, -1, err), err);
    CHECK_ERROR(psd_work_open(client, "in", 3, 1, &work, err), PSD_JOB_MISMATCH,
                "queue in of job two has 2 slices", err);
    CHECK_ERROR(psd_work_open(client, "in", 0, 1, &work, err), PSD_INVALID,
                "n_slices is 0; allowed: 1..1048576", err);
    CHECK_OK(psd_work_open(client, "in", 2, 1, &work, err), err);
    for (uint32_t ms = 50; ms < 60000 && strstr(psd_error_text(err), wanted) == NULL; ms *= 4) {
        CHECK(psd_work_next(work, ms, &epoch, &slice, err) == PSD_DEADLINE);
    }
    CHECK(strstr(psd_error_text(err), wanted) != NULL);
    psd_error_clear(err);
    CHECK_ERROR(psd_work_done(work, 1, 0, 60000, err), PSD_INVALID,
                "slice 0 of queue in was not given to worker 1", err);
    CHECK(write(other, "r", 1) == 1);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(psd_work_next(work, 20000, &epoch, &slice, err), err);
        CHECK(epoch == 1 && slice == i);
        CHECK_OK(psd_work_done(work, epoch, slice, 60000, err), err);
        CHECK_OK(psd_work_done(work, epoch, slice, 60000, err), err);
    }
    CHECK_OK(psd_work_next(work, 20000, &epoch, &slice, err), err);
    CHECK(epoch == 0);
    psd_work_close(&work);
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

/* Asks until the answer holds `part`. */
static bool ask_until(psd_client_t *client, const char *question, const char *part,
                      psd_error_t *err)
{
    for (int i = 0; i < 4000; i++) {
        char *reply = NULL;
        bool found = psd_request(client, question, 60000, &reply, err) == PSD_OK &&
                     strstr(reply, part) != NULL;

        psd_free(reply);
        psd_error_clear(err);
        if (found) {
            return true;
        }
        pause_ms(5);
    }
    (void)fprintf(stderr, "%s never said %s\n", question, part);
    return false;
}

/* What no library of ours would ask. */
static bool bad_questions_are_refused(psd_client_t *client, psd_error_t *err)
{
    static const struct {
        const char *rest; /* behind op and job */
        const char *part; /* of the refusal */
    } cases[] = {
        {"work_open\"", "queue is missing"},
        {"work_open\",\"queue\":\"a b\"", "queue name is \"a b\""},
        {"work_open\",\"queue\":\"q\",\"slices\":0", "slices is 0"},
        {"work_open\",\"queue\":\"q\",\"slices\":1048577,\"epochs\":1", "slices is 1048577"},
        {"work_open\",\"queue\":\"q\",\"slices\":1,\"epochs\":-1", "epochs"},
        {"work_next\",\"queue\":\"in\",\"worker\":4096", "worker is 4096"},
        {"work_next\",\"queue\":\"in\",\"worker\":0,\"joins\":0", "joins is 0"},
        {"work_next\",\"queue\":\"in\",\"worker\":0,\"joins\":1,"
         "\"number\":0",
         "number is 0"},
        {"work_next\",\"queue\":\"in\",\"worker\":0,\"joins\":9,"
         "\"number\":1",
         "worker 0 of job two was declared lost"},
        {"work_next\",\"queue\":\"none\",\"worker\":0,\"joins\":1,"
         "\"number\":1",
         "job two has no queue \"none\""},
        {"work_next\",\"queue\":\"in\",\"worker\":7,\"joins\":1,"
         "\"number\":1",
         "job two has no worker 7"},
        {"work_done\",\"queue\":\"in\",\"worker\":0,\"joins\":1,"
         "\"epoch\":0",
         "epoch is 0"},
        {"work_done\",\"queue\":\"in\",\"worker\":0,\"joins\":1,"
         "\"epoch\":1,\"slice\":1048576",
         "slice is 1048576"},
        {"work_done\",\"queue\":\"in\",\"worker\":0,\"joins\":1,"
         "\"epoch\":2,\"slice\":0",
         "queue in has no slice 0 in epoch 2"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char question[300];
        char *reply = NULL;

        (void)snprintf(question, sizeof question, "{\"job\":\"two\",\"op\":\"%s}", cases[i].rest);
        CHECK(psd_request(client, question, 60000, &reply, err) != PSD_OK);
        psd_free(reply);
        if (strstr(psd_error_text(err), cases[i].part) == NULL) {
            (void)fprintf(stderr, "%s: %s\n", question, psd_error_text(err));
            return false;
        }
        psd_error_clear(err);
    }
    return true;
}

/* Worker 0: takes both, is named as the one that has them, and leaves. */
static bool hold_both(const char *endpoint, int other)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_work_t *work = NULL;
    uint64_t epoch = 0;
    uint32_t slice = 0;
    char byte = 0;

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_join(client, "two", 0, 2, -1, err), err);
    CHECK_OK(psd_work_open(client, "in", 2, 1, &work, err), err);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(psd_work_next(work, 60000, &epoch, &slice, err), err);
        CHECK(epoch == 1 && slice == i);
    }
    CHECK(bad_questions_are_refused(client, err));
    CHECK(write(other, "g", 1) == 1);
    CHECK(read(other, &byte, 1) == 1);
    CHECK(ask_until(client, "{\"op\":\"why\",\"job\":\"two\"}",
                    "(slice of queue in) for worker 0 at clock 0", err));
    CHECK(ask_until(client, "{\"op\":\"job_inspect\",\"job\":\"two\"}",
                    "\"given\":2,\"waiting\":1,\"over\":false,\"holders\":[{"
                    "\"worker\":0,\"given\":2,\"slice\":",
                    err));
    psd_work_close(&work);
    CHECK_OK(psd_leave(client, 60000, err), err);
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

static bool one_waits(const cluster_t *cluster)
{
    const char *endpoint = cluster->nodes[0].control;
    pid_t pids[2];
    int ends[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            bool good = i == 0 ? hold_both(endpoint, ends[1]) : wait_for_one(endpoint, ends[0]);

            _exit(good ? 0 : 1);
        }
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    CHECK(ended_with(pids[0], 0, 0));
    CHECK(ended_with(pids[1], 0, 0));
    return true;
}

/* ---- circles ---- */

/* Has both slices and wants a third one. */
static bool want_more(const char *endpoint)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_work_t *work = NULL;
    uint64_t epoch = 0;
    uint32_t slice = 0;

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_join(client, "self", 0, 1, 0, err), err);
    CHECK_OK(psd_work_open(client, "in", 2, 1, &work, err), err);
    CHECK_OK(psd_work_next(work, 60000, &epoch, &slice, err), err);
    CHECK_OK(psd_work_next(work, 60000, &epoch, &slice, err), err);
    CHECK_OK(psd_work_next(work, 60000, &epoch, &slice, err), err);
    return false;
}

/* Waits at the barrier, worker 0, or for the clock of who waits there. */
static bool wait_crosswise(const char *endpoint, uint32_t worker)
{
    psd_error_t *err = psd_error_new();
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    uint64_t row = 0;
    float value = 0;

    psd_options_set_timeout_ms(options, 60000);
    CHECK_OK(psd_spec_set(spec, "rows", "1", err), err);
    CHECK_OK(psd_connect(endpoint, options, &client, err), err);
    CHECK_OK(psd_join(client, "cross", worker, 2, 0, err), err);
    CHECK_OK(psd_table_ensure(client, "cross", spec, &table, err), err);
    if (worker == 0) {
        CHECK_OK(psd_barrier(client, 60000, err), err);
    } else {
        CHECK_OK(psd_clock(client, err), err);
        CHECK_OK(psd_pull(table, &row, 1, &value, 1, err), err);
    }
    return false;
}

static pid_t start_part(const char *endpoint, int part)
{
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)(part == 2 ? want_more(endpoint) : wait_crosswise(endpoint, (uint32_t)part));
        _exit(1);
    }
    return pid;
}

static bool why_names(const char *endpoint)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK(ask_until(
        client, "{\"op\":\"why\",\"job\":\"self\"}",
        "circle: worker 0 (queue in) waits for itself, which has slices of it: it cannot continue",
        err));
    CHECK(ask_until(
        client, "{\"op\":\"why\",\"job\":\"cross\"}",
        "\"circles\":[{\"workers\":[0,1],\"text\":\"circle: worker 0 (barrier) waits for worker 1, "
        "worker 1 (table cross partition 0) for worker 0: none of them can continue\"}]",
        err));
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

static bool circles_are_named(const cluster_t *cluster)
{
    const char *endpoint = cluster->nodes[0].control;
    pid_t pids[3];
    pid_t asker = -1;
    bool good = false;

    for (int i = 0; i < 3; i++) {
        pids[i] = start_part(endpoint, i);
    }
    asker = fork();
    if (asker == 0) { /* this process must stay without threads */
        _exit(why_names(endpoint) ? 0 : 1);
    }
    good = ended_with(asker, 0, 0);
    for (int i = 0; i < 3; i++) {
        (void)kill(pids[i], SIGKILL);
        good = ended_with(pids[i], 0, SIGKILL) && good;
    }
    return good;
}

int main(void)
{
    const cluster_args_t args = {.n_nodes = 1, .config = config};
    cluster_t cluster;
    bool good = cluster_start(&cluster, &args);

    good = good && one_waits(&cluster) && circles_are_named(&cluster) &&
           each_is_counted_once(&cluster);
    cluster_drop(&cluster, !good);
    return good ? 0 : 1;
}
