/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that go from worker to worker (PSD_OVERLAY_DOWN, on by default): each pull has the bits that
 * it has without, the shards send fewer rows, and workers that are left see the same rows when one
 * that has them is killed in the middle of its pull. */
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/http_get.h"

#define WORKERS 4
#define ROWS 400
#define COLS 100 /* of f32: 160 KB in all */
#define VALUES ((size_t)ROWS * COLS)
#define CLOCKS 12
#define VICTIM 1 /* others get rows from it, by some of the trees */
#define DIES_AT 5
#define WAIT_MS 60000
#define TRIES 12

static const char config[] = "shards: 2\n"
                             "workers:\n"
                             "  heartbeat_ms: 50\n"
                             "  lost_after_ms: 10000\n";

/* FNV-1a of what each worker pulled at each clock. */
typedef struct seen {
    uint64_t sums[WORKERS][CLOCKS];
} seen_t;

typedef struct run {
    const char *endpoint;
    char job[40];
    bool is_on;
    bool kills;   /* the victim ends itself, with a pull under way */
    seen_t *seen; /* shared by the workers */
} run_t;

static uint64_t sum_of(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++) {
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return sum;
}

/* Everybody is in the plan. */
static bool wait_for_plan(psd_client_t *client, const run_t *run, psd_error_t *err)
{
    const struct timespec step = {.tv_nsec = 5000000};
    char question[80];
    bool found = false;

    (void)snprintf(question, sizeof question, "{\"op\":\"job_inspect\",\"job\":\"%s\"}", run->job);
    for (int i = 0; i < 4000 && !found; i++) {
        char *reply = NULL;

        CHECK_OK(psd_request(client, question, WAIT_MS, &reply, err), err);
        found = true;
        for (int k = 0; found && k < WORKERS; k++) {
            char part[40];

            (void)snprintf(part, sizeof part, "\"worker\":%d,\"relay\"", k);
            found = strstr(reply, part) != NULL;
        }
        psd_free(reply);
        (void)nanosleep(&step, NULL);
    }
    CHECK(found);
    return true;
}

/* The values of a worker at a clock, always the same. */
static void make_deltas(uint32_t worker, int clock, float *deltas)
{
    uint32_t state = 12345 + worker * 1000 + (uint32_t)clock;

    for (size_t i = 0; i < VALUES; i++) {
        state = state * 1664525 + 1013904223;
        deltas[i] = (float)(int32_t)state / 1e9F;
    }
}

static bool push(psd_client_t *client, psd_table_t *table, const psd_select_t *all,
                 const float *deltas, psd_error_t *err)
{
    psd_call_t *call = psd_call_new();
    psd_ticket_t ticket = 0;

    psd_call_set_ends_clock(call, true);
    CHECK_OK(psd_push_start(table, all, deltas, VALUES, call, &ticket, err), err);
    CHECK_OK(psd_wait(client, ticket, WAIT_MS, err), err);
    psd_call_destroy(&call);
    return true;
}

/* Every third pull is not waited for before the next clock: it must not become one of that. */
static bool train(const run_t *run, uint32_t worker, psd_client_t *client, psd_table_t *table,
                  psd_error_t *err)
{
    static float deltas[VALUES];
    static float values[VALUES];
    psd_select_t *all = psd_select_new();

    psd_select_all_rows(all);
    for (int clock = 0; clock < CLOCKS; clock++) {
        psd_ticket_t ticket = 0;

        make_deltas(worker, clock, deltas);
        CHECK_OK(psd_pull_start(table, all, values, VALUES, NULL, &ticket, err), err);
        if (run->kills && worker == VICTIM && clock == DIES_AT) {
            (void)raise(SIGKILL);
        }
        if (clock % 3 != 2) {
            CHECK_OK(psd_wait(client, ticket, WAIT_MS, err), err);
            CHECK(push(client, table, all, deltas, err));
        } else {
            CHECK(push(client, table, all, deltas, err));
            CHECK_OK(psd_wait(client, ticket, WAIT_MS, err), err);
        }
        run->seen->sums[worker][clock] = sum_of(values, sizeof values);
    }
    psd_select_destroy(&all);
    return true;
}

static bool work(const run_t *run, uint32_t worker, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_options_t *options = psd_options_new();
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    psd_options_set_timeout_ms(options, WAIT_MS); /* longer than a death goes unnoticed */
    CHECK_OK(psd_connect(run->endpoint, options, &client, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "400", err), err);
    CHECK_OK(psd_spec_set(spec, "cols", "100", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "4", err), err);
    CHECK_OK(psd_spec_set(spec, "combine", "clock-sum", err), err);
    CHECK_OK(psd_join(client, run->job, worker, WORKERS, 0, err), err);
    CHECK_OK(psd_table_ensure(client, run->job, spec, &table, err), err);
    if (run->is_on) {
        CHECK(wait_for_plan(client, run, err));
    }
    CHECK_OK(psd_barrier(client, WAIT_MS, err), err);
    CHECK(train(run, worker, client, table, err));
    CHECK_OK(psd_leave(client, WAIT_MS, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_options_destroy(&options);
    psd_close(&client);
    return true;
}

static pid_t start(const run_t *run, uint32_t worker)
{
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        psd_error_t *err = psd_error_new();
        bool ok = (!run->is_on || setenv("PSD_OVERLAY", "tree", 1) == 0) && work(run, worker, err);

        psd_error_destroy(&err);
        _exit(ok ? 0 : 1);
    }
    return pid;
}

static bool run_job(const run_t *run)
{
    pid_t pids[WORKERS];
    bool ok = true;

    memset(run->seen, 0, sizeof *run->seen);
    for (uint32_t i = 0; i < WORKERS; i++) {
        pids[i] = start(run, i);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        int status = 0;
        bool dies = run->kills && i == VICTIM;

        ok = pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] &&
             (dies ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0) && ok;
    }
    return ok;
}

/* Rows that the shards have sent so far. */
static double rows_pulled(const daemon_t *d)
{
    char *answer = NULL;
    char dir[4096];
    double sum = -1;

    (void)snprintf(dir, sizeof dir, "%.4000s/data", d->dir.path);
    if (http_ask(http_port(dir), "GET", "/metrics", &answer) == 200) {
        sum = http_sum(answer, "psd_rows_pulled_total", "");
    }
    free(answer);
    return sum;
}

/* All of them saw the same, but for the one that has died. */
static bool all_saw_the_same(const run_t *run)
{
    for (int clock = 0; clock < CLOCKS; clock++) {
        for (uint32_t i = 0; i < WORKERS; i++) {
            bool is_there = !run->kills || i != VICTIM;

            CHECK(!is_there || run->seen->sums[i][clock] == run->seen->sums[0][clock]);
        }
    }
    return true;
}

/* Workers that a busy machine lets run late pull from the shards: it has some more tries. */
static bool bits_are_the_same(const daemon_t *d, run_t *run)
{
    static seen_t wanted;
    double direct = rows_pulled(d);
    double rows = 0;

    (void)snprintf(run->job, sizeof run->job, "star");
    CHECK(run_job(run));
    CHECK(all_saw_the_same(run));
    wanted = *run->seen;
    direct = rows_pulled(d) - direct;
    CHECK(direct >= (double)WORKERS * CLOCKS * ROWS);
    rows = direct;
    run->is_on = true;
    for (int i = 0; i < TRIES && rows > direct * 3 / 4; i++) {
        (void)snprintf(run->job, sizeof run->job, "tree%d", i);
        rows = rows_pulled(d);
        CHECK(run_job(run));
        rows = rows_pulled(d) - rows;
        (void)printf("%s: %g rows from the shards, %g without\n", run->job, rows, direct);
        CHECK(memcmp(&wanted, run->seen, sizeof wanted) == 0);
    }
    CHECK(rows <= direct * 3 / 4);
    return true;
}

static bool a_death_costs_time_only(run_t *run)
{
    (void)snprintf(run->job, sizeof run->job, "killed");
    run->is_on = true;
    run->kills = true;
    CHECK(run_job(run));
    return all_saw_the_same(run);
}

int main(void)
{
    daemon_t d = {.pid = 0};
    void *shared =
        mmap(NULL, sizeof(seen_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    run_t run = {.seen = shared};
    bool ok = shared != MAP_FAILED && daemon_start(&d, config);

    run.endpoint = d.control;
    ok = ok && bits_are_the_same(&d, &run);
    ok = ok && a_death_costs_time_only(&run);
    ok = daemon_end(&d, SIGTERM) && ok;
    daemon_drop(&d, !ok);
    return ok ? 0 : 1;
}
