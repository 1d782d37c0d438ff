/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock of a BSP job whose workers are in two sites: 4 in each, 1 Gbit/s within, and a link of
 * 20 Mbit/s between each site and the rest. In turns without the overlay, with a tree that knows no
 * sites, with sites, and with a tree between the sites, too. A clock is a push and a pull of the
 * whole table; the bytes are those on a site's link, from one moment at which all workers have
 * done a clock to the next. Medians. The first three clocks do not count: the
 * first one goes directly, and then relays learn how much comes.
 *
 *     overlay_sites [MB [CLOCKS [ROUNDS [SERVER [RANKS [ONLY]]]]]]
 *
 * SERVER: hub, which is in neither site, or a, the first one; then only the other one's link
 * counts. RANKS: blocks, 0 to 3 and 4 to 7; or mixed, even ones and odd ones. ONLY: one of the
 * four; all.
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
#define SITES 2
#define COLS 250 /* of f32: a row is 1000 bytes */
#define CLOCKS_MAX 100
#define WARM_CLOCKS 3
#define CALL_MS 600000
#define FAST_RATE 125000000
#define SLOW_RATE 2500000 /* bytes in a second, each way */
#define LOOK_NS 2000000

static const cluster_args_t CLUSTER = {.n_nodes = 1,
                                       .net = CLUSTER_NETNS,
                                       .config = "shards: 2\n"
                                                 "workers:\n"
                                                 "  lost_after_ms: 120000\n"};

/* What a run asks for. */
typedef struct variant {
    const char *name;
    bool has_overlay;
    bool has_sites;
    bool between;
    double copies_out; /* of the table, over a site's link in a clock, in theory … */
    double copies_in;
} variant_t;

static const variant_t VARIANTS[] = {{"off", false, false, false, 4, 4},
                                     {"tree", true, false, false, 0, 0},
                                     {"sites", true, true, false, 1, 1},
                                     {"between", true, true, true, 0, 0}};
#define N_VARIANTS (sizeof VARIANTS / sizeof VARIANTS[0])

typedef struct shared {
    _Atomic int phase;          /* 1: all are warm; 2: the links were read; 3: a worker failed */
    _Atomic unsigned n_done;    /* clocks that counted, of all workers */
    double clock_s[CLOCKS_MAX]; /* of worker 0 */
} shared_t;

typedef struct run {
    const char *endpoint;
    char job[40];
    const variant_t *variant;
    unsigned rows;
    int clocks;
    bool is_mixed; /* ranks */
    bool in_a;     /* the server */
    shared_t *shared;
} run_t;

static unsigned site_of(const run_t *run, unsigned worker)
{
    return run->is_mixed ? worker % SITES : worker / (WORKERS / SITES);
}

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

/* All are in the plan. */
static bool wait_for_plan(psd_client_t *client, const run_t *run, psd_error_t *err)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    char question[80];
    bool found = !run->variant->has_overlay;

    (void)snprintf(question, sizeof question, "{\"op\":\"job_inspect\",\"job\":\"%s\"}", run->job);
    for (int i = 0; !found && i < 10000; i++) {
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
    CHECK(found);
    return true;
}

static bool do_clock(const run_t *run, psd_client_t *client, psd_table_t *table, int clock,
                     float *values, psd_error_t *err)
{
    size_t n = (size_t)run->rows * COLS;
    float expected = (float)((clock + 1) * WORKERS);
    psd_select_t *all = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_select_all_rows(all);
    CHECK_OK(psd_push_start(table, all, values + n, n, NULL, &ticket, err), err);
    CHECK_OK(psd_clock(client, err), err);
    CHECK_OK(psd_wait(client, ticket, CALL_MS, err), err);
    CHECK_OK(psd_pull_start(table, all, values, n, NULL, &ticket, err), err);
    CHECK_OK(psd_wait(client, ticket, CALL_MS, err), err);
    for (size_t i = 0; i < n; i++) {
        CHECK(values[i] == expected);
    }
    psd_select_destroy(&all);
    return true;
}

static bool train(const run_t *run, unsigned worker, psd_client_t *client, psd_table_t *table,
                  psd_error_t *err)
{
    size_t n = (size_t)run->rows * COLS;
    float *values = calloc(2 * n, sizeof *values);
    bool good = values != NULL;

    for (size_t i = 0; good && i < n; i++) {
        values[n + i] = 1.0F;
    }
    for (int clock = 0; good && clock < WARM_CLOCKS; clock++) {
        good = do_clock(run, client, table, clock, values, err);
    }
    CHECK_OK(psd_barrier(client, CALL_MS, err), err);
    if (worker == 0) {
        atomic_store(&run->shared->phase, 1);
        wait_for_phase(run->shared, 2);
    }
    CHECK_OK(psd_barrier(client, CALL_MS, err), err);
    for (int clock = 0; good && clock < run->clocks; clock++) {
        double start_s = seconds();

        good = do_clock(run, client, table, WARM_CLOCKS + clock, values, err);
        if (worker == 0) {
            run->shared->clock_s[clock] = seconds() - start_s;
        }
        (void)atomic_fetch_add(&run->shared->n_done, 1);
    }
    CHECK_OK(psd_barrier(client, CALL_MS, err), err); /* who leaves changes the plan */
    free(values);
    return good;
}

static bool set_environment(const run_t *run, unsigned worker)
{
    const variant_t *variant = run->variant;
    char listen[40];

    (void)snprintf(listen, sizeof listen, "tcp://10.77.0.%u:*", 11 + worker);
    return (!variant->has_overlay || (setenv("PSD_OVERLAY", "tree", 1) == 0 &&
                                      setenv("PSD_OVERLAY_LISTEN", listen, 1) == 0)) &&
           (!variant->has_sites ||
            setenv("PSD_SITE", site_of(run, worker) == 0 ? "a" : "b", 1) == 0) &&
           (!variant->between || setenv("PSD_OVERLAY_BETWEEN", "tree", 1) == 0);
}

static bool work(const run_t *run, unsigned worker)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;

    CHECK(set_environment(run, worker));
    CHECK(connect_to(run->endpoint, &client, err));
    CHECK_OK(psd_join(client, run->job, worker, WORKERS, 0, err), err);
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
    CHECK_OK(psd_spec_set(spec, "combine", "clock-sum", err), err);
    CHECK_OK(psd_table_create(client, run->job, spec, &table, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

/* Bytes over the links of sites. */
typedef struct passed {
    double out[SITES];
    double in[SITES];
} passed_t;

static passed_t read_links(void)
{
    passed_t passed;

    for (unsigned i = 0; i < SITES; i++) {
        passed.out[i] = (double)netns_passed(i, true);
        passed.in[i] = (double)netns_passed(i, false);
    }
    return passed;
}

/* The counters when all have done each clock; false: a worker failed. */
static bool watch(const run_t *run, passed_t *ret_passed)
{
    const struct timespec step = {.tv_nsec = LOOK_NS};

    ret_passed[0] = read_links();
    atomic_store(&run->shared->phase, 2);
    for (int clock = 1; clock <= run->clocks; clock++) {
        while (atomic_load(&run->shared->n_done) < (unsigned)(clock * WORKERS)) {
            if (atomic_load(&run->shared->phase) == 3) {
                return false;
            }
            (void)nanosleep(&step, NULL);
        }
        ret_passed[clock] = read_links();
    }
    return true;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Of one counter of passed_t, how often the table. */
static double median_of(const run_t *run, const double *counter)
{
    double bytes[CLOCKS_MAX];
    const size_t step = sizeof(passed_t) / sizeof(double);

    for (size_t i = 0; i < (size_t)run->clocks; i++) {
        bytes[i] = counter[(i + 1) * step] - counter[i * step];
    }
    qsort(bytes, (size_t)run->clocks, sizeof(double), by_size);
    return bytes[run->clocks / 2] / ((double)run->rows * COLS * sizeof(float));
}

static void show(const run_t *run, const passed_t *passed)
{
    double *clock_s = run->shared->clock_s;

    qsort(clock_s, (size_t)run->clocks, sizeof(double), by_size);
    printf("%-8s %6.2f s a clock (%.2f to %.2f), tables across in a clock:", run->variant->name,
           clock_s[run->clocks / 2], clock_s[0], clock_s[run->clocks - 1]);
    for (unsigned i = run->in_a ? 1 : 0; i < SITES; i++) {
        printf(" site %c out %.2f in %.2f", 'a' + (int)i, median_of(run, &passed->out[i]),
               median_of(run, &passed->in[i]));
    }
    printf("\n");
    (void)fflush(stdout);
}

/* Processes that have ended leave their namespaces, which are used again. */
static bool run_job(const run_t *run, const int netns[WORKERS], psd_error_t *err)
{
    pid_t pids[WORKERS];
    passed_t passed[CLOCKS_MAX + 1];
    bool good = true;

    memset(run->shared, 0, sizeof *run->shared);
    CHECK(make_table(run, err));
    (void)fflush(NULL);
    for (unsigned i = 0; i < WORKERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            good = netns_enter(netns[i]) && work(run, i);
            if (!good) {
                atomic_store(&run->shared->phase, 3); /* nobody waits for it */
            }
            _exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
        }
        CHECK(pids[i] > 0);
    }
    wait_for_phase(run->shared, 1);
    good = atomic_load(&run->shared->phase) == 1 && watch(run, passed);
    for (unsigned i = 0; i < WORKERS; i++) {
        int status = 0;

        good = waitpid(pids[i], &status, 0) == pids[i] && status == 0 && good;
    }
    CHECK(good);
    show(run, passed);
    return true;
}

static void print_theory(double mb)
{
    printf("theory, without headers, of %.0f MB:\n", mb);
    for (size_t i = 0; i < N_VARIANTS; i++) {
        if (VARIANTS[i].copies_out > 0) {
            printf("%-8s %6.2f s a clock, tables across in a clock: each site out %.0f in %.0f\n",
                   VARIANTS[i].name,
                   (VARIANTS[i].copies_out + VARIANTS[i].copies_in) * mb * 1e6 / SLOW_RATE,
                   VARIANTS[i].copies_out, VARIANTS[i].copies_in);
        }
    }
}

static bool make_net(const run_t *run, cluster_t *cluster, int netns[WORKERS])
{
    CHECK(cluster_start(cluster, &CLUSTER));
    CHECK(cluster_set_rate(cluster, 0, FAST_RATE));
    for (unsigned i = 0; i < SITES; i++) {
        CHECK(netns_add_site(i, SLOW_RATE));
    }
    CHECK(!run->in_a || netns_move(0, 0));
    for (unsigned i = 0; i < WORKERS; i++) {
        netns[i] = netns_add(1 + i);
        CHECK(netns[i] >= 0 && netns_set_rate(netns[i], 1 + i, FAST_RATE));
        CHECK(netns_move(1 + i, site_of(run, i)));
    }
    return true;
}

static bool run_all(cluster_t *cluster, run_t *run, int rounds, const char *only, psd_error_t *err)
{
    int netns[WORKERS];

    CHECK(make_net(run, cluster, netns));
    run->endpoint = cluster->nodes[0].control;
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < N_VARIANTS; i++) {
            run->variant = &VARIANTS[i];
            if (only == NULL || strcmp(only, run->variant->name) == 0) {
                (void)snprintf(run->job, sizeof run->job, "%s%d", run->variant->name, round);
                CHECK(run_job(run, netns, err));
            }
        }
    }
    return true;
}

static int number(int argc, char **argv, int i, int fallback, int most)
{
    long n = argc > i ? strtol(argv[i], NULL, 10) : fallback;

    return n < 1 ? 1 : n > most ? most : (int)n;
}

/* The word at that place is the second of two; false: it is the first, or none is there. */
static bool is_second(int argc, char **argv, int i, const char *first, const char *second)
{
    const char *word = argc > i ? argv[i] : first;

    if (strcmp(word, first) != 0 && strcmp(word, second) != 0) {
        (void)fprintf(stderr, "argument %d is \"%s\"; allowed: %s, %s\n", i, word, first, second);
        exit(EXIT_FAILURE);
    }
    return strcmp(word, second) == 0;
}

int main(int argc, char **argv)
{
    cluster_t cluster = {.n_nodes = 0, .keeper_fd = -1};
    psd_error_t *err = psd_error_new();
    unsigned mb = (unsigned)number(argc, argv, 1, 4, 1000);
    const char *only = argc > 6 && strcmp(argv[6], "all") != 0 ? argv[6] : NULL;
    run_t run = {.rows = mb * 1000,
                 .clocks = number(argc, argv, 2, 5, CLOCKS_MAX),
                 .in_a = is_second(argc, argv, 4, "hub", "a"),
                 .is_mixed = is_second(argc, argv, 5, "blocks", "mixed")};
    bool good = false;

    if (!cluster_can(CLUSTER_NETNS)) {
        return SKIPPED;
    }
    run.shared =
        mmap(NULL, sizeof *run.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    print_theory(mb);
    /* Hosts of this program share their files: over sockets there nothing is slow. */
    good = run.shared != MAP_FAILED && setenv("PSD_TRANSPORT", "tcp", 1) == 0 &&
           run_all(&cluster, &run, number(argc, argv, 3, 2, 100), only, err);
    cluster_drop(&cluster, !good);
    psd_error_destroy(&err);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
