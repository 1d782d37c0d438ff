/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock of a BSP job over a slow link, in turns without the overlay, with a
 * tree, as psd decides (auto), in pairs and in a queue: each worker pushes to
 * the whole table, ends its clock and pulls the whole table. Of the last three
 * the last half of the clocks counts.
 *
 *     overlay_cost [MB [CLOCKS [ROUNDS [POLICY [MAX_DELAY]]]]]
 *
 * With a MAX_DELAY other than 0 (0) the job is SSP or ASP: workers only push, without the
 * overlay and with a tree, and pushes of all in a second are counted; the sums are looked
 * at in the end.
 *
 * POLICY: only this one; all: each. With PSD_OVERLAY_DOWN=off the workers get all rows from
 * the server; PSD_OVERLAY_GREED counts for pairs and queue.
 *
 * 77: this machine does not allow network namespaces.
 */
#include <inttypes.h>
#include <psd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cluster.h"
#include "support/netns.h"

#define SKIPPED 77
#define WORKERS 8
#define COLS 250 /* of f32: a row is 1000 bytes */
#define CLOCKS_MAX 100
#define AUTO_CLOCKS 16 /* at least: links are measured first */
#define N_POLICIES 5
#define CALL_MS 600000
#define SERVER_RATE 12500000.0 /* bytes in a second, each way */
#define WORKER_RATE 125000000
#define LOOK_NS 2000000

static const cluster_args_t CLUSTER = {.n_nodes = 1,
                                       .net = CLUSTER_NETNS,
                                       .config = "shards: 2\n"
                                                 "workers:\n"
                                                 "  lost_after_ms: 120000\n"};

typedef struct shared {
    _Atomic int phase; /* 1: all have pushed once; 2: the link was read; 3: all are through */
    double clock_s[CLOCKS_MAX]; /* of worker 0 */
    double all_s;               /* until all had done all clocks */
} shared_t;

typedef struct run {
    const char *endpoint;
    char job[40];
    const char *policy; /* PSD_OVERLAY; NULL: off */
    unsigned rows;
    int clocks;
    int max_delay;
    shared_t *shared;
} run_t;

static double seconds(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void wait_for_phase(const shared_t *shared, int phase)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};

    while (atomic_load(&shared->phase) < phase) {
        (void)nanosleep(&look, NULL);
    }
}

/* ---- a worker, in a process and a namespace of its own ---- */

static bool connect_to(const char *endpoint, psd_client_t **ret_client, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();

    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_connect(endpoint, options, ret_client, err), err);
    psd_options_destroy(&options);
    return true;
}

static bool pull_all(psd_client_t *client, psd_table_t *table, float *values, size_t n,
                     float expected, psd_error_t *err)
{
    psd_select_t *all = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_select_all_rows(all);
    CHECK_OK(psd_pull_start(table, all, values, n, NULL, &ticket, err), err);
    CHECK_OK(psd_wait(client, ticket, CALL_MS, err), err);
    for (size_t i = 0; i < n; i++) {
        CHECK(values[i] == expected);
    }
    psd_select_destroy(&all);
    return true;
}

/* All are in the plan. */
static bool wait_for_plan(psd_client_t *client, const run_t *run, psd_error_t *err)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    char question[80];
    bool found = false;

    (void)snprintf(question, sizeof question, "{\"op\":\"job_inspect\",\"job\":\"%s\"}", run->job);
    for (int i = 0; run->policy != NULL && !found && i < 10000; i++) {
        char *reply = NULL;

        CHECK_OK(psd_request(client, question, CALL_MS, &reply, err), err);
        found = true;
        for (int k = 0; found && k < WORKERS; k++) {
            char part[40];

            (void)snprintf(part, sizeof part, "\"worker\":%d,\"relay\"", k);
            found = strstr(reply, part) != NULL;
        }
        psd_free(reply);
        (void)nanosleep(&look, NULL);
    }
    CHECK(found || run->policy == NULL);
    return true;
}

static bool do_clock(const run_t *run, psd_client_t *client, psd_table_t *table, int clock,
                     float *values, psd_error_t *err)
{
    size_t n = (size_t)run->rows * COLS;
    psd_select_t *all = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_select_all_rows(all);
    CHECK_OK(psd_push_start(table, all, values + n, n, NULL, &ticket, err), err);
    CHECK_OK(psd_clock(client, err), err);
    CHECK_OK(psd_wait(client, ticket, CALL_MS, err), err);
    psd_select_destroy(&all);
    return run->max_delay != 0 ||
           pull_all(client, table, values, n, (float)((clock + 1) * WORKERS), err);
}

static bool train(const run_t *run, unsigned worker, psd_client_t *client, psd_table_t *table,
                  psd_error_t *err)
{
    size_t n = (size_t)run->rows * COLS;
    float *values = calloc(2 * n, sizeof *values);
    bool good = values != NULL;
    double all_s = 0;

    for (size_t i = 0; good && i < n; i++) {
        values[n + i] = 1.0F;
    }
    good = good && do_clock(run, client, table, 0, values, err); /* goes directly */
    CHECK_OK(psd_barrier(client, CALL_MS, err), err);
    if (worker == 0) {
        atomic_store(&run->shared->phase, 1);
        wait_for_phase(run->shared, 2);
    }
    CHECK_OK(psd_barrier(client, CALL_MS, err), err);
    all_s = seconds();
    for (int clock = 1; good && clock <= run->clocks; clock++) {
        double start_s = seconds();

        good = do_clock(run, client, table, clock, values, err);
        if (worker == 0) {
            run->shared->clock_s[clock - 1] = seconds() - start_s;
        }
    }
    CHECK_OK(psd_barrier(client, CALL_MS, err), err);
    if (worker == 0) {
        run->shared->all_s = seconds() - all_s;
        atomic_store(&run->shared->phase, 3);
    }
    good = good && (run->max_delay == 0 || worker != 0 ||
                    pull_all(client, table, values, n, (float)((run->clocks + 1) * WORKERS), err));
    free(values);
    return good;
}

static bool work(const run_t *run, unsigned worker)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    char listen[40];

    (void)snprintf(listen, sizeof listen, "tcp://10.77.0.%u:*", 11 + worker);
    if (run->policy == NULL || strchr("pq", run->policy[0]) == NULL) {
        (void)unsetenv("PSD_OVERLAY_GREED");
    }
    CHECK(run->policy == NULL || (setenv("PSD_OVERLAY", run->policy, 1) == 0 &&
                                  setenv("PSD_OVERLAY_LISTEN", listen, 1) == 0));
    CHECK(connect_to(run->endpoint, &client, err));
    CHECK_OK(psd_join(client, run->job, worker, WORKERS, run->max_delay, err), err);
    CHECK_OK(psd_table_open(client, run->job, &table, err), err);
    CHECK(wait_for_plan(client, run, err));
    CHECK_OK(psd_barrier(client, CALL_MS, err), err);
    CHECK(train(run, worker, client, table, err));
    CHECK_OK(psd_leave(client, CALL_MS, err), err);
    psd_table_close(&table);
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

/* ---- the runs ---- */

static bool make_table(const run_t *run, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    char rows[24];

    (void)snprintf(rows, sizeof rows, "%u", run->rows);
    CHECK(connect_to(run->endpoint, &client, err));
    CHECK_OK(psd_spec_set(spec, "rows", rows, err), err);
    CHECK_OK(psd_spec_set(spec, "cols", "250", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "16", err), err);
    CHECK_OK(psd_spec_set(spec, "combine", run->max_delay == 0 ? "clock-sum" : "each", err), err);
    CHECK_OK(psd_table_create(client, run->job, spec, &table, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

/* Bytes that the bridge has sent to the server (in), or has got from it. */
static uint64_t passed(bool in)
{
    char line[512];
    uint64_t bytes = 0;
    FILE *file = fopen("/proc/self/net/dev", "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *at = strstr(line, "hub0:");

        if (at != NULL) {
            at += strlen("hub0:");
            for (int column = 0; column <= (in ? 8 : 0); column++) {
                bytes = strtoull(at, &at, 10);
            }
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return bytes;
}

static const char *name_of(const char *policy)
{
    return policy == NULL ? "off" : policy;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Processes that have ended leave their namespaces, which are used again. */
static bool run_job(run_t *run, const int netns[WORKERS], psd_error_t *err)
{
    pid_t pids[WORKERS];
    uint64_t in = 0;
    uint64_t out = 0;
    bool good = true;
    double megabytes = run->clocks * 1e6;
    bool is_auto = run->policy != NULL && strcmp(run->policy, "tree") != 0; /* it measures */
    double *counted = NULL;
    int skipped = 0;

    memset(run->shared, 0, sizeof *run->shared);
    CHECK(make_table(run, err));
    (void)fflush(NULL);
    for (unsigned i = 0; i < WORKERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            good = netns_enter(netns[i]) && work(run, i);
            if (!good) {
                atomic_store(&run->shared->phase, 4); /* nobody waits for it */
            }
            _exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
        }
        CHECK(pids[i] > 0);
    }
    wait_for_phase(run->shared, 1);
    in = passed(true);
    out = passed(false);
    if (atomic_load(&run->shared->phase) == 1) {
        atomic_store(&run->shared->phase, 2);
    }
    wait_for_phase(run->shared, 3);
    in = passed(true) - in;
    out = passed(false) - out;
    for (unsigned i = 0; i < WORKERS; i++) {
        int status = 0;

        good = waitpid(pids[i], &status, 0) == pids[i] && status == 0 && good;
    }
    CHECK(good);
    if (run->max_delay != 0) {
        printf("%-6s %7.2f pushes/s, to the server %6.1f MB for each worker's push\n",
               name_of(run->policy), WORKERS * run->clocks / run->shared->all_s,
               (double)in / megabytes);
        (void)fflush(stdout);
        return true;
    }
    skipped = is_auto ? run->clocks / 2 : 0;
    counted = run->shared->clock_s + skipped;
    for (int i = 0; is_auto && i < run->clocks; i++) {
        printf(" %.2f", run->shared->clock_s[i]);
    }
    qsort(counted, (size_t)(run->clocks - skipped), sizeof(double), by_size);
    printf("%s%-6s %7.2f s a clock (%.2f to %.2f), to the server %6.1f MB, from it %6.1f MB\n",
           is_auto ? "\n" : "", run->policy == NULL ? "off" : run->policy,
           counted[(run->clocks - skipped) / 2], counted[0], counted[run->clocks - skipped - 1],
           (double)in / megabytes, (double)out / megabytes);
    (void)fflush(stdout);
    return true;
}

static void print_theory(double mb)
{
    const char *down = getenv("PSD_OVERLAY_DOWN");
    double star_s = WORKERS * mb * 1e6 / SERVER_RATE;
    double once = down == NULL || strcmp(down, "on") == 0 ? 1.0 / WORKERS : 1;

    printf("theory, without headers, of %.0f MB, %d workers:\n", mb, WORKERS);
    printf("off    %7.2f s a clock, to the server %6.1f MB, from it %6.1f MB\n", 2 * star_s,
           WORKERS * mb, WORKERS * mb);
    printf("tree   %7.2f s a clock, to the server %6.1f MB, from it %6.1f MB\n",
           star_s / WORKERS + star_s * once, mb, WORKERS * mb * once);
}

static const char *const POLICIES[N_POLICIES] = {NULL, "tree", "auto", "pairs", "queue"};

/* NULL: all of them. */
static bool is_policy(const char *only)
{
    bool is = only == NULL;

    for (unsigned i = 0; !is && i < N_POLICIES; i++) {
        is = strcmp(only, name_of(POLICIES[i])) == 0;
    }
    if (!is) {
        (void)fprintf(stderr, "POLICY is \"%s\"; allowed: off, tree, auto, pairs, queue\n", only);
    }
    return is;
}

/* only: a policy; NULL: all. */
static bool run_all(cluster_t *cluster, unsigned mb, int clocks, int rounds, const char *only,
                    int max_delay, psd_error_t *err)
{
    shared_t *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    run_t run = {.rows = mb * 1000, .clocks = clocks, .max_delay = max_delay, .shared = shared};
    int netns[WORKERS];

    CHECK(shared != MAP_FAILED);
    CHECK(cluster_start(cluster, &CLUSTER));
    CHECK(cluster_set_rate(cluster, 0, (uint64_t)SERVER_RATE));
    for (unsigned i = 0; i < WORKERS; i++) {
        netns[i] = netns_add(1 + i);
        CHECK(netns[i] >= 0 && netns_set_rate(netns[i], 1 + i, WORKER_RATE));
    }
    run.endpoint = cluster->nodes[0].control;
    if (max_delay == 0) {
        print_theory(mb);
    }
    for (int i = 0; i < N_POLICIES * rounds; i++) {
        run.policy = POLICIES[i % N_POLICIES];
        if ((only != NULL && strcmp(only, name_of(run.policy)) != 0) ||
            (max_delay != 0 && i % N_POLICIES >= 2)) {
            continue;
        }
        run.clocks = i % N_POLICIES >= 2 && clocks < AUTO_CLOCKS ? AUTO_CLOCKS : clocks;
        (void)snprintf(run.job, sizeof run.job, "%s%d", name_of(run.policy), i / N_POLICIES);
        CHECK(run_job(&run, netns, err));
    }
    (void)munmap(shared, sizeof *shared);
    return true;
}

static int number(int argc, char **argv, int i, int fallback, int most)
{
    long n = argc > i ? strtol(argv[i], NULL, 10) : fallback;

    return n < 1 ? 1 : n > most ? most : (int)n;
}

int main(int argc, char **argv)
{
    cluster_t cluster = {.n_nodes = 0, .keeper_fd = -1};
    psd_error_t *err = psd_error_new();
    const char *only = argc > 4 && strcmp(argv[4], "all") != 0 ? argv[4] : NULL;
    int max_delay = argc > 5 ? (int)strtol(argv[5], NULL, 10) : 0;
    bool good = is_policy(only);

    if (!good) {
        psd_error_destroy(&err);
        return EXIT_FAILURE;
    }
    if (!cluster_can(CLUSTER_NETNS)) {
        return SKIPPED;
    }
    /* Hosts of this program share their files: over sockets there nothing is slow. */
    good = setenv("PSD_TRANSPORT", "tcp", 1) == 0 &&
           run_all(&cluster, (unsigned)number(argc, argv, 1, 10, 1000),
                   number(argc, argv, 2, 5, CLOCKS_MAX), number(argc, argv, 3, 2, 100), only,
                   max_delay, err);
    cluster_drop(&cluster, !good);
    psd_error_destroy(&err);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
