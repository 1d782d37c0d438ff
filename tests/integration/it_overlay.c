/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that add up each other's deltas: the same bits with PSD_OVERLAY=tree, pairs and queue as
 * without, with one to five workers, and exact sums when one of them is killed in the middle, or
 * leaves; those also with max_delay 2 and -1, where each worker sees its own pushes at once. One
 * job's pushes end their clocks, the others push and then call psd_clock, and sometimes wait for
 * the push before. With an argument: in these sites (PSD_SITE); there auto is as tree. */
#include <psd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/http_get.h"

#define WORKERS 4
#define WORKERS_MAX 5
#define ROWS 400
#define LISTED 60 /* rows of a sparse push */
#define CLOCKS 30
#define VICTIM 2 /* others send to it, by some of the trees */
#define DIES_AT 12
#define WAIT_MS 60000
#define TRIES 4

static const char config[] = "shards: 2\n"
                             "workers:\n"
                             "  heartbeat_ms: 50\n"
                             "  lost_after_ms: 10000\n";

typedef struct run {
    const char *endpoint;
    const char *job;
    bool is_counted;    /* i64: what each worker has pushed; else f32 */
    bool is_listed;     /* some rows, others each time; else all */
    bool is_loop;       /* a push, then psd_clock; else the push ends its clock */
    bool kills;         /* the victim ends itself */
    bool leaves;        /* it leaves as early */
    const char *policy; /* PSD_OVERLAY; auto leaves so little to the star */
    uint32_t n_workers;
    int32_t max_delay;
    _Atomic int *acknowledged; /* shared: clocks of the victim */
} run_t;

/* xorshift64* (Vigna, 2016) */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* Everybody is in the plan. */
static bool wait_for_plan(psd_client_t *client, const run_t *run, psd_error_t *err)
{
    const struct timespec step = {.tv_nsec = 5000000};
    char question[80];
    char last[40];
    char *reply = NULL;
    bool found = false;

    (void)snprintf(question, sizeof question, "{\"op\":\"job_inspect\",\"job\":\"%s\"}", run->job);
    (void)snprintf(last, sizeof last, "\"worker\":%u,\"relay\"", run->n_workers - 1);
    for (int i = 0; i < 4000 && !found; i++) {
        CHECK_OK(psd_request(client, question, WAIT_MS, &reply, err), err);
        found = strstr(reply, last) != NULL;
        for (uint32_t k = 0; found && k < run->n_workers; k++) {
            (void)snprintf(last, sizeof last, "\"worker\":%u,\"relay\"", k);
            found = strstr(reply, last) != NULL;
        }
        psd_free(reply);
        reply = NULL;
        (void)nanosleep(&step, NULL);
    }
    CHECK(found);
    return true;
}

/* The values of one clock, always the same. */
static size_t make_deltas(const run_t *run, uint32_t worker, uint64_t *state, uint64_t *rows,
                          void *deltas)
{
    uint64_t first = next_random(state) % ROWS;

    if (run->is_counted) {
        memset(deltas, 0, ROWS * sizeof(int64_t));
        ((int64_t *)deltas)[worker] = 1;
        ((int64_t *)deltas)[ROWS - 1] = 1;
        return ROWS;
    }
    for (size_t i = 0; i < (run->is_listed ? LISTED : ROWS); i++) {
        rows[i] = (first + 7 * i) % ROWS;
        ((float *)deltas)[i] = (float)(int64_t)next_random(state) / 1e12F;
    }
    return run->is_listed ? LISTED : ROWS;
}

/* Between a push and its clock: most often nothing, which is what the overlay is for. */
static bool look(psd_client_t *client, psd_table_t *table, psd_ticket_t *ticket, int clock,
                 psd_error_t *err)
{
    const uint64_t row = 1;
    int64_t value[2];
    bool is_done = false;

    if (clock % 7 == 3) {
        CHECK_OK(psd_wait(client, *ticket, WAIT_MS, err), err);
        *ticket = 0;
    } else if (clock % 7 == 5) {
        CHECK_OK(psd_pull(table, &row, 1, value, 1, err), err);
    } else if (clock % 11 == 8) {
        while (!is_done) {
            CHECK_OK(psd_poll(client, *ticket, &is_done, err), err);
        }
    }
    return true;
}

/* A push to one row ends the clock of a push to all of them, which has not gone yet. */
static bool end_by_another(psd_client_t *client, psd_table_t *table, psd_error_t *err)
{
    const uint64_t row = 0;
    const int64_t nothing = 0;
    psd_call_t *call = psd_call_new();
    psd_select_t *select = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_call_set_ends_clock(call, true);
    psd_select_rows(select, &row, 1);
    CHECK_OK(psd_push_start(table, select, &nothing, 1, call, &ticket, err), err);
    CHECK_OK(psd_wait(client, ticket, WAIT_MS, err), err);
    psd_select_destroy(&select);
    psd_call_destroy(&call);
    return true;
}

static bool push(const run_t *run, psd_client_t *client, psd_table_t *table, const uint64_t *rows,
                 const void *deltas, size_t n, int clock, bool dies, psd_error_t *err)
{
    psd_call_t *call = psd_call_new();
    psd_select_t *select = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_call_set_ends_clock(call, !run->is_loop);
    if (run->is_listed) {
        psd_select_rows(select, rows, n);
    } else {
        psd_select_all_rows(select);
    }
    CHECK_OK(psd_push_start(table, select, deltas, n, call, &ticket, err), err);
    if (run->is_loop) {
        CHECK(look(client, table, &ticket, clock, err));
    }
    if (run->is_loop && clock % 7 == 1) {
        CHECK(end_by_another(client, table, err));
    } else if (run->is_loop) {
        CHECK_OK(psd_clock(client, err), err);
    }
    if (dies) {
        (void)raise(SIGKILL);
    }
    if (ticket != 0) {
        CHECK_OK(psd_wait(client, ticket, WAIT_MS, err), err);
    }
    psd_select_destroy(&select);
    psd_call_destroy(&call);
    return true;
}

static bool train(const run_t *run, uint32_t worker, psd_client_t *client, psd_table_t *table,
                  psd_error_t *err)
{
    uint64_t rows[ROWS];
    int64_t deltas[ROWS];
    int64_t value[2];
    const uint64_t row = worker;
    uint64_t state = 1000 + worker;

    for (int clock = 0; clock < CLOCKS; clock++) {
        size_t n = make_deltas(run, worker, &state, rows, deltas);

        if (run->leaves && worker == VICTIM && clock == DIES_AT) {
            return true;
        }

        CHECK_OK(psd_pull(table, &row, 1, value, 1, err), err);
        CHECK(run->max_delay == 0 ||
              value[0] == clock); /* its own pushes, also those on their way */
        CHECK(push(run, client, table, rows, deltas, n, clock,
                   run->kills && worker == VICTIM && clock == DIES_AT, err));
        if (worker == VICTIM) {
            atomic_store(run->acknowledged, clock + 1);
        }
    }
    return true;
}

/* A worker fails with a push that waits for psd_clock: the push ends, and nothing else does. */
static bool fail_with_a_push(psd_client_t *client, psd_table_t *table, psd_error_t *err)
{
    const int64_t nothing[ROWS] = {0};
    psd_select_t *select = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_select_all_rows(select);
    CHECK_OK(psd_push_start(table, select, nothing, ROWS, NULL, &ticket, err), err);
    CHECK_OK(psd_fail(client, "it was asked to", WAIT_MS, err), err);
    CHECK(psd_wait(client, ticket, WAIT_MS, err) != PSD_OK);
    psd_error_clear(err);
    psd_select_destroy(&select);
    return true;
}

static bool work(const run_t *run, uint32_t worker, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK_OK(psd_connect(run->endpoint, NULL, &client, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "400", err), err);
    CHECK_OK(psd_spec_set(spec, "type", run->is_counted ? "i64" : "f32", err), err);
    if (getenv("PSD_OVERLAY") == NULL) { /* with it that is the default */
        CHECK_OK(psd_spec_set(spec, "combine", "clock-sum", err), err);
    }
    CHECK_OK(psd_join(client, run->job, worker, run->n_workers, run->max_delay, err), err);
    CHECK_OK(psd_table_ensure(client, run->job, spec, &table, err), err);
    if (getenv("PSD_OVERLAY") != NULL) {
        CHECK(wait_for_plan(client, run, err));
    }
    CHECK_OK(psd_barrier(client, WAIT_MS, err), err);
    CHECK(train(run, worker, client, table, err));
    if (run->is_loop && !run->kills && !run->leaves) {
        CHECK_OK(psd_barrier(client, WAIT_MS, err), err);
    }
    if (run->is_loop && !run->kills && !run->leaves && worker == 0) {
        CHECK(fail_with_a_push(client, table, err));
    } else {
        CHECK_OK(psd_leave(client, WAIT_MS, err), err);
    }
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

static pid_t start(const run_t *run, uint32_t worker, bool is_on)
{
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        psd_error_t *err = psd_error_new();
        bool ok = (!is_on || setenv("PSD_OVERLAY", run->policy, 1) == 0) &&
                  setenv("PSD_OVERLAY_LISTEN", "tcp://127.0.0.1:*", 1) == 0 &&
                  work(run, worker, err);

        psd_error_destroy(&err);
        _exit(ok ? 0 : 1);
    }
    return pid;
}

static bool run_job(const run_t *run, bool is_on)
{
    pid_t pids[WORKERS_MAX];
    bool ok = true;

    for (uint32_t i = 0; i < run->n_workers; i++) {
        pids[i] = start(run, i, is_on);
    }
    for (uint32_t i = 0; i < run->n_workers; i++) {
        int status = 0;
        bool dies = run->kills && i == VICTIM;

        ok = pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] &&
             (dies ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0) && ok;
    }
    return ok;
}

/* The whole table, in a process of its own: this one must have no threads when it forks. */
static bool read_table(const run_t *run, void *values)
{
    int status = 0;
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        psd_error_t *err = psd_error_new();
        psd_client_t *client = NULL;
        psd_table_t *table = NULL;
        psd_select_t *all = psd_select_new();
        psd_ticket_t ticket = 0;
        bool ok = false;

        psd_select_all_rows(all);
        ok = psd_connect(run->endpoint, NULL, &client, err) == PSD_OK &&
             psd_table_open(client, run->job, &table, err) == PSD_OK &&
             psd_pull_start(table, all, values, ROWS, NULL, &ticket, err) == PSD_OK &&
             psd_wait(client, ticket, WAIT_MS, err) == PSD_OK;
        if (!ok) {
            (void)fprintf(stderr, "%s\n", psd_error_text(err));
        }
        psd_select_destroy(&all);
        psd_table_close(&table);
        psd_close(&client);
        psd_error_destroy(&err);
        _exit(ok ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Requests of that kind that came to the shards so far. */
static double count(const daemon_t *d, const char *label)
{
    char *answer = NULL;
    char dir[4096];
    double sum = -1;

    (void)snprintf(dir, sizeof dir, "%.4000s/data", d->dir.path);
    if (http_ask(http_port(dir), "GET", "/metrics", &answer) == 200) {
        sum = http_sum(answer, "psd_requests_total", label);
    }
    free(answer);
    return sum;
}

static const char *name_of(const run_t *run)
{
    return run->is_listed ? "listed" : "dense";
}

/* A run with the overlay, and what brought its deltas; true: it has the bits. */
static bool run_relayed(const daemon_t *d, run_t *run, const char *job, const char *wanted,
                        char *values, double *ret_messages, double *ret_bundles)
{
    double direct = count(d, "request=\"push\"");
    double bundles = count(d, "request=\"bundle\"");

    run->job = job;
    CHECK(run_job(run, true));
    CHECK(read_table(run, values));
    CHECK(memcmp(wanted, values, ROWS * sizeof(float)) == 0);
    direct = count(d, "request=\"push\"") - direct;
    bundles = count(d, "request=\"bundle\"") - bundles;
    (void)printf("%s: %g pushes, %g bundles\n", job, direct, bundles);
    *ret_messages = direct + bundles;
    *ret_bundles = bundles;
    return true;
}

/* The same, in a job in which a worker has heard of its plan before all was over: where it waits
 * for a processor, one of the next. */
static bool has_bits(const daemon_t *d, run_t *run, int i, const char *wanted, char *values,
                     double *ret_messages)
{
    static char job[48];
    double bundles = 0;

    for (int k = 0; k < TRIES && bundles <= 0; k++) {
        (void)snprintf(job, sizeof job, "%s_%s%d_%u_%d", name_of(run), run->policy, i,
                       run->n_workers, k);
        CHECK(run_relayed(d, run, job, wanted, values, ret_messages, &bundles));
    }
    CHECK(bundles > 0);
    return true;
}

/* With PSD_OVERLAY=auto workers have relays, and what is not worth it goes to the shards, with the
 * bits that it had. */
static bool auto_leaves_little_to_the_star(const daemon_t *d, run_t *run, const char *wanted,
                                           char *values)
{
    double bundles = count(d, "request=\"bundle\"");

    run->job = "auto";
    run->policy = "auto";
    CHECK(run_job(run, true));
    CHECK(read_table(run, values));
    CHECK(memcmp(wanted, values, ROWS * sizeof(float)) == 0);
    CHECK(count(d, "request=\"bundle\"") == bundles);
    return true;
}

/* The overlay's run has the bits of the other one, and fewer messages: a bundle had several
 * workers' deltas. Workers that a busy machine lets run one after the other may send as many, so
 * it has some more tries. */
static bool bits_are_the_same(const daemon_t *d, run_t *run, char *values)
{
    static char wanted[ROWS * sizeof(float)];
    double bundles = count(d, "request=\"bundle\"");
    double direct = count(d, "request=\"push\"");
    double messages = 0;

    static char job[40];

    (void)snprintf(job, sizeof job, "%s_star", name_of(run));
    run->job = job;
    CHECK(run_job(run, false));
    CHECK(read_table(run, values));
    memcpy(wanted, values, sizeof wanted);
    CHECK(count(d, "request=\"bundle\"") == bundles);
    direct = count(d, "request=\"push\"") - direct;
    (void)printf("%s: %g pushes\n", run->job, direct);
    messages = direct;
    run->policy = "tree";
    for (int i = 0; i < TRIES && messages >= direct; i++) {
        CHECK(has_bits(d, run, i, wanted, values, &messages));
    }
    CHECK(messages < direct);
    run->policy = "pairs";
    CHECK(has_bits(d, run, 0, wanted, values, &messages));
    run->policy = "queue";
    CHECK(has_bits(d, run, 0, wanted, values, &messages));
    CHECK(run->is_listed || getenv("PSD_SITE") != NULL ||
          auto_leaves_little_to_the_star(d, run, wanted, values));
    return true;
}

/* With other numbers of workers. */
static bool sizes_are_the_same(const daemon_t *d, run_t *run, char *values)
{
    static const uint32_t SIZES[] = {1, 2, 3, 5};
    static char wanted[ROWS * sizeof(float)];
    static char job[40];

    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        double messages = 0;

        run->n_workers = SIZES[i];
        (void)snprintf(job, sizeof job, "star%u", SIZES[i]);
        run->job = job;
        CHECK(run_job(run, false));
        CHECK(read_table(run, values));
        memcpy(wanted, values, sizeof wanted);
        run->policy = i % 2 == 0 ? "pairs" : "queue";
        CHECK(has_bits(d, run, 0, wanted, values, &messages));
    }
    run->n_workers = WORKERS;
    return true;
}

static bool sums_are_exact(const daemon_t *d, run_t *run, const int64_t *values)
{
    static char job[40];
    int64_t shared = 0; /* of the victim, in a row of another partition */
    int acknowledged = 0;
    double bundles = count(d, "request=\"bundle\"");

    (void)snprintf(job, sizeof job, "counted_%s%s_%d", run->policy, run->leaves ? "_leaves" : "",
                   run->max_delay);
    run->job = job;
    run->is_counted = true;
    run->is_listed = false;
    run->kills = !run->leaves;
    atomic_store(run->acknowledged, 0);
    CHECK(run_job(run, true));
    (void)printf("%s: %g bundles\n", job, count(d, "request=\"bundle\"") - bundles);
    CHECK(count(d, "request=\"bundle\"") > bundles);
    CHECK(read_table(run, (void *)values));
    acknowledged = atomic_load(run->acknowledged);
    for (int i = 0; i < WORKERS; i++) {
        CHECK(i == VICTIM || values[i] == CLOCKS);
    }
    CHECK(values[VICTIM] >= acknowledged && values[VICTIM] <= acknowledged + 1);
    shared = values[ROWS - 1] - (WORKERS - 1) * CLOCKS;
    CHECK(shared >= acknowledged && shared <= acknowledged + 1);
    CHECK(!run->leaves || values[VICTIM] == DIES_AT);
    return true;
}

/* A client that attaches makes tables as the one that joined would. To be called when nothing is
 * forked any more: this process gets threads. */
static bool attached_sums(const char *endpoint, psd_error_t *err)
{
    psd_client_t *joined = NULL;
    psd_client_t *attached = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    char *reply = NULL;

    CHECK(setenv("PSD_OVERLAY", "tree", 1) == 0);
    CHECK_OK(psd_connect(endpoint, NULL, &joined, err), err);
    CHECK_OK(psd_connect(endpoint, NULL, &attached, err), err);
    CHECK_OK(psd_join(joined, "attached", 0, 1, 0, err), err);
    CHECK_OK(psd_attach(attached, joined, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "8", err), err);
    CHECK_OK(psd_table_ensure(attached, "attached", spec, &table, err), err);
    CHECK_OK(psd_request(attached, "{\"op\":\"table_inspect\",\"name\":\"attached\"}", WAIT_MS,
                         &reply, err),
             err);
    CHECK(strstr(reply, "\"combine\":\"clock-sum\"") != NULL);
    psd_free(reply);
    psd_spec_destroy(&spec);
    psd_table_close(&table);
    CHECK_OK(psd_leave(attached, WAIT_MS, err), err);
    CHECK_OK(psd_leave(joined, WAIT_MS, err), err);
    psd_close(&attached);
    psd_close(&joined);
    return true;
}

static bool look_at_attached(const char *endpoint)
{
    psd_error_t *err = psd_error_new();
    bool ok = attached_sums(endpoint, err);

    psd_error_destroy(&err);
    return ok;
}

static void *share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

int main(int argc, char **argv)
{
    static const char *const POLICIES[] = {"tree", "pairs", "queue"};
    daemon_t d = {.pid = 0};
    int64_t *values = share(ROWS * sizeof *values);
    run_t run = {.n_workers = WORKERS, .acknowledged = share(sizeof *run.acknowledged)};
    bool ok = values != NULL && run.acknowledged != NULL && daemon_start(&d, config) &&
              (argc < 2 || setenv("PSD_SITE", argv[1], 1) == 0);

    run.endpoint = d.control;
    ok = ok && bits_are_the_same(&d, &run, (char *)values);
    ok = ok && sizes_are_the_same(&d, &run, (char *)values);
    run.is_listed = true;
    run.is_loop = true;
    ok = ok && bits_are_the_same(&d, &run, (char *)values);
    for (size_t i = 0; i < 2 * sizeof POLICIES / sizeof *POLICIES; i++) {
        run.policy = POLICIES[i / 2];
        run.leaves = i % 2 != 0;
        ok = ok && sums_are_exact(&d, &run, values);
    }
    run.policy = "tree";
    for (size_t i = 0; i < 4; i++) {
        run.max_delay = i / 2 == 0 ? 2 : -1;
        run.leaves = i % 2 != 0;
        ok = ok && sums_are_exact(&d, &run, values);
    }
    ok = ok && look_at_attached(d.control);
    ok = daemon_end(&d, SIGTERM) && ok;
    daemon_drop(&d, !ok);
    return ok ? 0 : 1;
}
