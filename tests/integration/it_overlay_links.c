/* SPDX-License-Identifier: Apache-2.0 */
/* Deltas and rows go from worker to worker only along the connections of LeMethod's file, and
 * nowhere with LEMETHOD_CONNECTION_TYPE=0: by the sockets that each worker has open, by the bytes
 * that it says it has sent, and with the bits that the job has without an overlay. Set by the
 * variables of LeMethod and TSEngine. A worker that sets them otherwise takes part in nothing. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/http_get.h"

#define WORKERS 4
#define ROWS 32000 /* of f32, in 4 partitions */
#define CLOCKS 24
#define WAIT_MS 60000
#define FIRST_ADDRESS 11 /* worker i listens at 127.0.0.(11 + i) */
#define FDS 1024
#define TRIES 5
#define MISFIT (WORKERS - 1)
#define SENT_BYTES 500000 /* that a way which is used has carried by the end */

static const char config[] = "shards: 2\n"
                             "workers:\n"
                             "  heartbeat_ms: 50\n"
                             "  lost_after_ms: 10000\n";

typedef struct run {
    const char *endpoint;
    const char *job;
    const char *policy; /* the variable that turns it on; NULL: no overlay */
    const char *type;   /* LEMETHOD_CONNECTION_TYPE */
    const char *down;   /* PSD_OVERLAY_DOWN; NULL: not set, which is on but with a list */
    const char *file;   /* where the connections are … */
    const char *lines;  /* … which are these */
    bool may[WORKERS][WORKERS];
    unsigned n_used;  /* of these ways at least that many carry deltas */
    bool rows_come;   /* some rows do not come from the shards */
    bool has_misfit;  /* the last worker comes with another GREED_RATE, after the others … */
    const char *said; /* … and its stderr is there */
} run_t;

static bool read_said(const run_t *run, char *ret, size_t size)
{
    FILE *file = fopen(run->said, "re");

    CHECK(file != NULL);
    ret[fread(ret, 1, size - 1, file)] = '\0';
    (void)fclose(file);
    return true;
}

/* ---- a worker ---- */

static bool set_environment(const run_t *run, uint32_t worker)
{
    char listen[40];

    (void)snprintf(listen, sizeof listen, "tcp://127.0.0.%u:*", FIRST_ADDRESS + worker);
    return run->policy == NULL ||
           (setenv(run->policy, "1", 1) == 0 &&
            setenv("LEMETHOD_CONNECTION_TYPE", run->type, 1) == 0 &&
            setenv("LEMETHOD_CONF_PATH", run->file, 1) == 0 &&
            setenv("GREED_RATE", run->has_misfit && worker == MISFIT ? "0.25" : "1", 1) == 0 &&
            (run->down == NULL || setenv("PSD_OVERLAY_DOWN", run->down, 1) == 0) &&
            setenv("PSD_OVERLAY_LISTEN", listen, 1) == 0);
}

/* Is there any connection to another worker that is not listed? */
static bool only_listed(const run_t *run, uint32_t worker)
{
    for (int fd = 0; fd < FDS; fd++) {
        struct sockaddr_in peer = {.sin_family = AF_UNSPEC};
        socklen_t size = sizeof peer;
        uint32_t to = 0;

        if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 || peer.sin_family != AF_INET) {
            continue;
        }
        to = ntohl(peer.sin_addr.s_addr) - (INADDR_LOOPBACK & 0xffffff00) - FIRST_ADDRESS;
        if (to < WORKERS && !run->may[worker][to]) {
            (void)fprintf(stderr, "worker %u is connected to worker %u\n", worker, to);
            return false;
        }
    }
    return true;
}

static psd_status_t ask(psd_client_t *client, const run_t *run, char **ret_reply, psd_error_t *err)
{
    char question[80];

    (void)snprintf(question, sizeof question, "{\"op\":\"job_inspect\",\"job\":\"%s\"}", run->job);
    return psd_request(client, question, WAIT_MS, ret_reply, err);
}

static bool inspect(psd_client_t *client, const run_t *run, char **ret_reply, psd_error_t *err)
{
    CHECK_OK(ask(client, run, ret_reply, err), err);
    return true;
}

/* All that fit are in the plan. */
static bool wait_for_plan(psd_client_t *client, const run_t *run, psd_error_t *err)
{
    const struct timespec look = {.tv_nsec = 5000000};
    bool found = false;

    for (int i = 0; i < 4000 && !found; i++) {
        char *reply = NULL;

        found = ask(client, run, &reply, err) == PSD_OK; /* nobody may have joined so far */
        for (uint32_t k = 0; found && k < WORKERS - (run->has_misfit ? 1 : 0); k++) {
            char part[40];

            (void)snprintf(part, sizeof part, "\"worker\":%u,\"relay\"", k);
            found = strstr(reply, part) != NULL;
        }
        psd_free(reply);
        psd_error_clear(err);
        (void)nanosleep(&look, NULL);
    }
    CHECK(found);
    return true;
}

/* The line of a worker that is in no plan; its process writes it. */
static bool wait_for_refusal(const run_t *run)
{
    static const char WANTED[] = "overlay_off job=misfit worker=3 reason=\"PSD_OVERLAY_GREED of "
                                 "worker 3 is 0.25, and that of worker 0 is 1; ";
    const struct timespec look = {.tv_nsec = 5000000};
    char text[4096] = "";

    for (int i = 0; i < 4000 && strstr(text, WANTED) == NULL; i++) {
        CHECK(read_said(run, text, sizeof text));
        (void)nanosleep(&look, NULL);
    }
    CHECK(strstr(text, WANTED) != NULL);
    return true;
}

static bool do_clock(psd_client_t *client, psd_table_t *table, uint32_t worker, int clock,
                     float *values, psd_error_t *err)
{
    psd_select_t *all = psd_select_new();
    psd_ticket_t ticket = 0;

    for (uint32_t i = 0; i < ROWS; i++) {
        values[i] = (float)((i * 7 + worker * 31 + (uint32_t)clock * 13) % 1009) / 3.0F;
    }
    psd_select_all_rows(all);
    CHECK_OK(psd_push_start(table, all, values, ROWS, NULL, &ticket, err), err);
    CHECK_OK(psd_clock(client, err), err);
    CHECK_OK(psd_wait(client, ticket, WAIT_MS, err), err);
    CHECK_OK(psd_pull_start(table, all, values, ROWS, NULL, &ticket, err), err);
    CHECK_OK(psd_wait(client, ticket, WAIT_MS, err), err);
    psd_select_destroy(&all);
    return true;
}

/* The bytes that `from` says it has sent to `to`, in the answer to job_inspect. */
static uint64_t find_bytes(const char *reply, uint32_t from, uint32_t to)
{
    char link[64];
    const char *at = NULL;

    (void)snprintf(link, sizeof link, "{\"from\":%u,\"to\":%u,\"bytes\":", from, to);
    at = strstr(reply, link);
    return at == NULL ? 0 : strtoull(at + strlen(link), NULL, 10);
}

/* Nothing went where it may not, and enough where it may, as soon as heartbeats have said so. */
static bool check_bytes(psd_client_t *client, const run_t *run, psd_error_t *err)
{
    const struct timespec look = {.tv_nsec = 5000000};
    unsigned n_used = 0;

    for (int i = 0; i < 4000; i++) {
        char *reply = NULL;

        CHECK(inspect(client, run, &reply, err));
        n_used = 0;
        for (uint32_t k = 0; k < WORKERS * WORKERS; k++) {
            uint64_t bytes = find_bytes(reply, k / WORKERS, k % WORKERS);

            CHECK(bytes == 0 || run->may[k / WORKERS][k % WORKERS]);
            n_used += bytes >= SENT_BYTES ? 1 : 0;
        }
        psd_free(reply);
        if (n_used >= run->n_used) {
            return true;
        }
        (void)nanosleep(&look, NULL);
    }
    (void)fprintf(stderr, "%s: %u ways are used, not %u\n", run->job, n_used, run->n_used);
    return false;
}

static bool work(const run_t *run, uint32_t worker, float *values, psd_error_t *err)
{
    bool has_relays = run->policy != NULL && strcmp(run->type, "0") != 0;
    bool is_misfit = run->has_misfit && worker == MISFIT;
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK_OK(psd_connect(run->endpoint, NULL, &client, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "32000", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "4", err), err);
    CHECK_OK(psd_spec_set(spec, "combine", "clock-sum", err), err);
    CHECK(!is_misfit || wait_for_plan(client, run, err));
    CHECK_OK(psd_join(client, run->job, worker, WORKERS, 0, err), err);
    CHECK_OK(psd_table_ensure(client, run->job, spec, &table, err), err);
    CHECK(is_misfit ? wait_for_refusal(run) : !has_relays || wait_for_plan(client, run, err));
    CHECK_OK(psd_barrier(client, WAIT_MS, err), err);
    for (int clock = 0; clock < CLOCKS; clock++) {
        CHECK(do_clock(client, table, worker, clock, values, err));
        CHECK(only_listed(run, worker));
    }
    CHECK(worker != 0 || !has_relays || check_bytes(client, run, err));
    CHECK_OK(psd_barrier(client, WAIT_MS, err), err);
    CHECK_OK(psd_leave(client, WAIT_MS, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

/* ---- the runs ---- */

/* values: shared, [WORKERS + 1][ROWS]: what each worker has pulled last. */
static bool run_job(const run_t *run, float *values)
{
    pid_t pids[WORKERS];
    bool ok = true;

    (void)fflush(NULL);
    for (uint32_t i = 0; i < WORKERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            psd_error_t *err = psd_error_new();

            ok = set_environment(run, i) &&
                 (!run->has_misfit || i != MISFIT || freopen(run->said, "we", stderr) != NULL) &&
                 work(run, i, values + (size_t)(1 + i) * ROWS, err);
            psd_error_destroy(&err);
            _exit(ok ? 0 : 1);
        }
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        int status = 0;

        ok = pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && status == 0 && ok;
    }
    return ok;
}

/* All workers have pulled what the first one did without an overlay. */
static bool all_same(const float *values)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        CHECK(memcmp(values, values + (size_t)(1 + i) * ROWS, ROWS * sizeof *values) == 0);
    }
    return true;
}

/* -1: psd does not say it. */
static double count(const daemon_t *d, const char *family, const char *label)
{
    char *answer = NULL;
    char dir[4096];
    double sum = -1;

    (void)snprintf(dir, sizeof dir, "%.4000s/data", d->dir.path);
    if (http_ask(http_port(dir), "GET", "/metrics", &answer) == 200) {
        sum = http_sum(answer, family, label);
    }
    free(answer);
    return sum;
}

static double count_bundles(const daemon_t *d)
{
    return count(d, "psd_requests_total", "request=\"bundle\"");
}

/* Rows that the shards have sent so far. */
static double count_rows(const daemon_t *d)
{
    return count(d, "psd_rows_pulled_total", "");
}

static bool write_lines(const run_t *run)
{
    FILE *file = fopen(run->file, "we");

    return file != NULL && fputs(run->lines, file) >= 0 && fclose(file) == 0;
}

static const run_t RUNS[] = {
    {.job = "star", .policy = "ENABLE_LEMETHOD", .type = "0", .lines = ""},
    {.job = "hub",
     .policy = "ENABLE_LEMETHOD",
     .type = "2",
     .lines = "ADD_CONNECTION 1 0\nADD_CONNECTION 2 0\nADD_CONNECTION 3 0\n"
              "SET_SCHEDULE_NUM 4\nSET_BANDWIDTH_EXPIRATION 1\n",
     .may = {{0}, {1}, {1}, {1}},
     .n_used = 3},
    {.job = "chain",
     .policy = "ENABLE_TSENGINE",
     .type = "2",
     .lines = "ADD_CONNECTION 0 1\nADD_CONNECTION 1 3\nADD_CONNECTION 2 3\nADD_CONNECTION 3 0\n"
              "REMOVE_CONNECTION 3 0\nSET_SCHEDULE_RATIO 0.5\n",
     .may = {{0, 1, 0, 0}, {0, 0, 0, 1}, {0, 0, 0, 1}, {0}},
     .n_used = 3},
    {.job = "rows_back",
     .policy = "ENABLE_LEMETHOD",
     .type = "2",
     .down = "on",
     .lines = "ADD_CONNECTION 1 0\nADD_CONNECTION 0 1\nADD_CONNECTION 3 2\n",
     .may = {{0, 1, 0, 0}, {1, 0, 0, 0}},
     .n_used = 1,
     .rows_come = true},
    {.job = "misfit",
     .policy = "ENABLE_TSENGINE",
     .type = "1",
     .lines = "",
     .may = {{0, 1, 1, 0}, {1, 0, 1, 0}, {1, 1, 0, 0}, {0}},
     .n_used = 2,
     .has_misfit = true},
    {.job = "all",
     .policy = "ENABLE_LEMETHOD",
     .type = "1",
     .lines = "ADD_CONNECTION 1 0\n",
     .may = {{0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}},
     .n_used = 3,
     .rows_come = true},
};

/* One line, whatever was refused how often. */
static bool said_once(const run_t *run)
{
    char text[4096] = "";
    const char *at = NULL;

    CHECK(read_said(run, text, sizeof text));
    at = strstr(text, "overlay_off");
    CHECK(at != NULL && strstr(at + 1, "overlay_off") == NULL);
    return true;
}

/* Workers that a busy machine lets run late pull from the shards: a job that gets rows from workers
 * has some more tries. */
static bool run_until_rows_come(const daemon_t *d, run_t *run, float *values)
{
    const double all = (double)WORKERS * CLOCKS * ROWS;
    const char *name = run->job;
    char job[40];
    double rows = all;

    for (int i = 0; i < TRIES && rows >= all; i++) {
        (void)snprintf(job, sizeof job, "%s%d", name, i);
        run->job = job;
        rows = count_rows(d);
        CHECK(rows >= 0);
        CHECK(run_job(run, values) && all_same(values));
        rows = count_rows(d) - rows;
        (void)printf("%s: %g rows from the shards of %g\n", run->job, rows, all);
    }
    CHECK(rows >= 0 && rows < all);
    return true;
}

static bool run_all(const daemon_t *d, float *values)
{
    run_t run = {.endpoint = d->control, .job = "off"};
    char file[4096];
    char said[4096];
    double bundles = 0;

    (void)snprintf(file, sizeof file, "%.4000s/lines", d->dir.path);
    (void)snprintf(said, sizeof said, "%.4000s/said", d->dir.path);
    CHECK(run_job(&run, values));
    memcpy(values, values + ROWS, ROWS * sizeof *values);
    CHECK(values[1] != 0 && all_same(values) && count_bundles(d) == 0);
    for (size_t i = 0; i < sizeof RUNS / sizeof *RUNS; i++) {
        run = RUNS[i];
        run.endpoint = d->control;
        run.file = file;
        run.said = said;
        CHECK(write_lines(&run));
        CHECK(run.rows_come ? run_until_rows_come(d, &run, values)
                            : run_job(&run, values) && all_same(values));
        CHECK(!run.has_misfit || said_once(&run));
        CHECK(count_bundles(d) >= 0);
        CHECK((count_bundles(d) > bundles) == (run.n_used > 0));
        bundles = count_bundles(d);
    }
    return true;
}

int main(void)
{
    daemon_t d = {.pid = 0};
    float *values = mmap(NULL, (size_t)(WORKERS + 1) * ROWS * sizeof *values,
                         PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool ok = values != MAP_FAILED && daemon_start(&d, config);

    ok = ok && run_all(&d, values);
    ok = daemon_end(&d, SIGTERM) && ok;
    daemon_drop(&d, !ok);
    return ok ? 0 : 1;
}
