/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers of a BSP job push and pull a whole table over slow links: a server
 * whose link all of them share, and workers with slow links of their own. Every
 * push and pull ends with the right sums, each pull is answered once, and what
 * goes over the links is little more than the values.
 *
 *     it_slow_link          a small case of each
 *     it_slow_link full     8 workers behind 100 Mbit/s, and 2 at 20 kB/s
 *     it_slow_link full 2   the second of these alone
 *
 * 77: this machine does not allow network namespaces.
 */
#include <inttypes.h>
#include <jansson.h>
#include <psd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cluster.h"
#include "support/netns.h"

#define SKIPPED 77
#define COLS 250 /* of f32: a row is 1000 bytes */
#define CALL_MS 600000
#define WORKERS_MAX 8
#define HEADERS 66 /* of a packet: Ethernet, IP, TCP with its time stamps */

typedef struct plan {
    const char *name;
    unsigned n_workers;
    uint64_t server_rate; /* bytes in a second, both ways; 0: no limit */
    uint64_t worker_rate; /* of each */
    uint64_t rows;        /* of 1000 bytes */
    unsigned partitions;
    unsigned clocks;
    unsigned again;     /* so many pulls may be served twice */
    double bytes_ratio; /* what goes over a link, of the values that do */
} plan_t;

static const plan_t SMALL[] = {
    {"4 workers share 3 MB/s", 4, 3000000, 0, 1000, 4, 2, 16, 2.5},
    /* A machine that stands still breaks connections, which is one more pull
     * for a worker. What joining takes is a tenth here, and TCP adds its own:
     * headers, acknowledgements, and what it takes for lost. */
    {"2 workers at 20 kB/s each", 2, 0, 20000, 150, 2, 1, 8, 3},
};
static const plan_t FULL[] = {
    {"8 workers share 100 Mbit/s", 8, 12500000, 0, 5000, 8, 2, 0, 1.05},
    {"2 workers at 20 kB/s each", 2, 0, 20000, 400, 8, 2, 0, 1.2},
};

static const cluster_args_t CLUSTER = {
    .n_nodes = 1, .net = CLUSTER_NETNS, .config = "shards: 2\nworkers:\n  lost_after_ms: 120000\n"};

/* What links have let through: in all, and without headers. */
typedef struct traffic {
    uint64_t bytes;
    uint64_t bodies;
} traffic_t;

/* Counts what has come from the host at that port of the bridge, or has gone
 * to it. */
static void add_traffic(unsigned node, bool to_host, traffic_t *sum)
{
    const unsigned column = to_host ? 8 : 0;
    char name[16];
    char line[512];
    FILE *file = fopen("/proc/self/net/dev", "re");

    (void)snprintf(name, sizeof name, "hub%u:", node);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, name);

        if (at != NULL) {
            char *end = NULL;
            uint64_t bytes = strtoull(at + strlen(name), &end, 10);
            uint64_t packets = 0;

            for (unsigned i = 0; i < column; i++) {
                bytes = strtoull(end, &end, 10);
            }
            packets = strtoull(end, &end, 10);
            sum->bytes += bytes;
            sum->bodies += bytes - HEADERS * packets;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

static bool connect_to(const char *endpoint, psd_client_t **ret_client, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();

    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_connect(endpoint, options, ret_client, err), err);
    psd_options_destroy(&options);
    return true;
}

/* ---- a worker, in a process and a namespace of its own ---- */

/* Pushes 1 to each value, and ends the clock with that. */
static bool push(psd_client_t *client, psd_table_t *table, const psd_select_t *all,
                 const float *ones, size_t n, psd_error_t *err)
{
    psd_call_t *call = psd_call_new();
    psd_ticket_t ticket = 0;

    psd_call_set_ends_clock(call, true);
    CHECK_OK(psd_push_start(table, all, ones, n, call, &ticket, err), err);
    CHECK_OK(psd_wait(client, ticket, CALL_MS, err), err);
    psd_call_destroy(&call);
    return true;
}

static bool pull(psd_client_t *client, psd_table_t *table, const psd_select_t *all, float *values,
                 size_t n, float expected, psd_error_t *err)
{
    psd_ticket_t ticket = 0;

    CHECK_OK(psd_pull_start(table, all, values, n, NULL, &ticket, err), err);
    CHECK_OK(psd_wait(client, ticket, CALL_MS, err), err);
    for (size_t i = 0; i < n; i++) {
        CHECK(values[i] == expected);
    }
    return true;
}

static bool train(psd_client_t *client, const plan_t *plan, unsigned worker, float *values,
                  psd_error_t *err)
{
    size_t n = (size_t)plan->rows * COLS;
    float *ones = values + n;
    psd_table_t *table = NULL;
    psd_select_t *all = psd_select_new();

    psd_select_all_rows(all);
    for (size_t i = 0; i < n; i++) {
        ones[i] = 1.0F;
    }
    CHECK_OK(psd_join(client, "slow", worker, plan->n_workers, 0, err), err);
    CHECK_OK(psd_table_open(client, "w", &table, err), err);
    for (unsigned clock = 1; clock <= plan->clocks; clock++) {
        CHECK(push(client, table, all, ones, n, err));
        CHECK(pull(client, table, all, values, n, (float)(clock * plan->n_workers), err));
    }
    psd_select_destroy(&all);
    psd_table_close(&table);
    CHECK_OK(psd_leave(client, CALL_MS, err), err);
    return true;
}

static bool work(const plan_t *plan, unsigned worker, const char *endpoint)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    float *values = calloc((size_t)plan->rows * COLS * 2, sizeof *values);
    bool good = values != NULL && connect_to(endpoint, &client, err) &&
                train(client, plan, worker, values, err);

    psd_close(&client);
    free(values);
    psd_error_destroy(&err);
    return good;
}

/* ---- the test ---- */

static bool make_table(psd_client_t *client, const plan_t *plan, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    char number[24];

    (void)snprintf(number, sizeof number, "%" PRIu64, plan->rows);
    CHECK_OK(psd_spec_set(spec, "rows", number, err), err);
    (void)snprintf(number, sizeof number, "%d", COLS);
    CHECK_OK(psd_spec_set(spec, "cols", number, err), err);
    (void)snprintf(number, sizeof number, "%u", plan->partitions);
    CHECK_OK(psd_spec_set(spec, "partitions", number, err), err);
    CHECK_OK(psd_table_create(client, "w", spec, &table, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return true;
}

/* The sum of a counter of the table's partitions. */
/* Of the whole table. */
static bool count(psd_client_t *client, const char *what, uint64_t *ret, psd_error_t *err)
{
    char *reply = NULL;
    json_t *doc = NULL;
    json_t *number = NULL;

    CHECK_OK(psd_request(client, "{\"op\":\"table_inspect\",\"name\":\"w\"}", CALL_MS, &reply, err),
             err);
    doc = json_loads(reply, 0, NULL);
    number = json_object_get(json_object_get(doc, "stats"), what);
    CHECK(json_is_integer(number));
    *ret = (uint64_t)json_integer_value(number);
    json_decref(doc);
    psd_free(reply);
    return true;
}

static bool start_workers(const plan_t *plan, const char *endpoint, pid_t ret_workers[WORKERS_MAX])
{
    for (unsigned i = 0; i < plan->n_workers; i++) {
        int netns = netns_add(1 + i);

        CHECK(netns >= 0);
        if (plan->worker_rate > 0) {
            CHECK(netns_set_rate(netns, 1 + i, plan->worker_rate));
        }
        (void)fflush(NULL);
        ret_workers[i] = fork();
        if (ret_workers[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(netns_enter(netns) && work(plan, i, endpoint) ? EXIT_SUCCESS : EXIT_FAILURE);
        }
        /* Left open: without it the namespace, and what is counted at its
         * link, would end with the worker. */
        CHECK(ret_workers[i] > 0);
    }
    return true;
}

static bool wait_for_workers(const plan_t *plan, const pid_t workers[WORKERS_MAX])
{
    bool good = true;

    for (unsigned i = 0; i < plan->n_workers; i++) {
        int status = 0;

        good = waitpid(workers[i], &status, 0) == workers[i] && status == 0 && good;
    }
    return good;
}

static double seconds(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool look_at_counts(psd_client_t *client, const plan_t *plan, psd_error_t *err)
{
    uint64_t asked = (uint64_t)plan->n_workers * plan->partitions * plan->clocks;
    uint64_t pulls = 0;
    uint64_t pushes = 0;

    CHECK(count(client, "pulls", &pulls, err));
    CHECK(count(client, "pushes", &pushes, err));
    printf("  pulls served %" PRIu64 " of %" PRIu64 " asked, pushes %" PRIu64 "\n", pulls, asked,
           pushes);
    CHECK(pulls >= asked && pulls <= asked + plan->again && pushes == asked);
    return true;
}

/* What the server has sent, and what workers have got and sent. */
typedef struct sides {
    traffic_t out;
    traffic_t in;
    traffic_t from;
} sides_t;

static sides_t sides_of(const plan_t *plan)
{
    sides_t sides = {.out = {.bytes = 0}};

    add_traffic(0, false, &sides.out);
    for (unsigned i = 0; i < plan->n_workers; i++) {
        add_traffic(1 + i, true, &sides.in);
        add_traffic(1 + i, false, &sides.from);
    }
    return sides;
}

/* Of what the server sends to workers with slow links, TCP may lose some at
 * these and send it again; that is not asked about. */
static bool look_at_bytes(const plan_t *plan, const sides_t *sides)
{
    double values = (double)plan->rows * COLS * sizeof(float) * plan->n_workers * plan->clocks;
    double out = (double)sides->out.bytes / values;
    double in = (double)sides->in.bytes / values;
    double from = (double)sides->from.bytes / values;

    printf("  of %.1f kB of values each way: out of the server %.3f, to the "
           "workers %.3f, from them %.3f; without headers %.3f, %.3f, %.3f\n",
           values / 1000, out, in, from, (double)sides->out.bodies / values,
           (double)sides->in.bodies / values, (double)sides->from.bodies / values);
    if (plan->server_rate > 0) {
        /* What workers send to it is counted before that link. */
        CHECK(out <= plan->bytes_ratio);
        return true;
    }
    CHECK(in <= plan->bytes_ratio);
    CHECK((double)sides->from.bodies / values <= plan->bytes_ratio);
    return true;
}

static bool run(cluster_t *cluster, const plan_t *plan, psd_error_t *err)
{
    pid_t workers[WORKERS_MAX] = {0};
    psd_client_t *client = NULL;
    sides_t before = {.out = {.bytes = 0}};
    sides_t after = {.out = {.bytes = 0}};
    double start_s = 0;

    CHECK(cluster_start(cluster, &CLUSTER));
    CHECK(connect_to(cluster->nodes[0].control, &client, err));
    CHECK(make_table(client, plan, err));
    if (plan->server_rate > 0) {
        CHECK(cluster_set_rate(cluster, 0, plan->server_rate));
    }
    before = sides_of(plan);
    start_s = seconds();
    CHECK(start_workers(plan, cluster->nodes[0].control, workers));
    CHECK(wait_for_workers(plan, workers));
    printf("%s, %u clocks of %u partitions: %.1f s\n", plan->name, plan->clocks, plan->partitions,
           seconds() - start_s);
    after = sides_of(plan);
    after.out.bytes -= before.out.bytes;
    after.out.bodies -= before.out.bodies;
    CHECK(look_at_counts(client, plan, err));
    CHECK(look_at_bytes(plan, &after));
    psd_close(&client);
    return true;
}

/* Each in a process of its own, which moves to a hub of its own. */
static bool run_alone(const plan_t *plan)
{
    int status = 0;
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        cluster_t cluster = {.n_nodes = 0, .keeper_fd = -1};
        psd_error_t *err = psd_error_new();
        bool good = run(&cluster, plan, err);

        cluster_drop(&cluster, !good);
        psd_error_destroy(&err);
        (void)fflush(NULL);
        _exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
    const plan_t *plans = SMALL;
    size_t only = argc == 3 ? strtoul(argv[2], NULL, 10) : 0; /* 0: all */
    bool good = true;

    if (argc > 1 && strcmp(argv[1], "full") == 0) {
        plans = FULL;
    }
    if (!cluster_can(CLUSTER_NETNS)) {
        return SKIPPED;
    }
    /* Hosts of this test share their files: over sockets there nothing is slow.
     */
    good = setenv("PSD_TRANSPORT", "tcp", 1) == 0;
    for (size_t i = 0; i < sizeof SMALL / sizeof SMALL[0]; i++) {
        if (only == 0 || only == i + 1) {
            good = run_alone(&plans[i]) && good;
        }
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
