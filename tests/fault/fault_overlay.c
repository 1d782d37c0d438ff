/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays of an overlay that are killed, stopped and cut off
 *
 * Workers push integers, and add up each other's deltas. A round: a
 * random worker that others send to, the next fault of those allowed, at a
 * random moment of a clock; shortly, or until the others have gone on without
 * it; then it comes back, or another one in its place, and all go on. In a pause
 * after one clock the table is read: each worker's cells are the sum of its
 * acknowledged pushes, and of some of those that were under way when it was
 * lost. No clock of the others may take longer than limit_ms, and as long as the
 * registry waited for a processor meanwhile: that is no silence of a worker's.
 *
 * fault_overlay KEY=VALUE…: kinds (joined by +: kill; stop; down, the relay's
 * link; way, what goes one way is lost: to or from the relay, or from it to one
 * other host; node, the node with the registry is killed and started again, and all
 * is acknowledged on disk), rounds, seed, net (direct; netns, which down and way need),
 * workers, nodes, rows (of each partition), policy (PSD_OVERLAY),
 * max_delay (BSP without it), lost_after_ms, limit_ms (0: lost_after_ms + 2000), logs (1: those of
 * the nodes are printed). 77: this machine does not allow the net.
 */
#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "pushers.h"
#include "support/check.h"
#include "support/cluster.h"
#include "support/http_get.h"
#include "support/netns.h"
#include "view.h"

#define SKIPPED 77
#define N_KINDS 5
#define NODE_KIND 4   /* place in kinds of what needs ack disk */
#define SHORT_MS 800  /* at most, of faults that nobody is lost by */
#define MOMENT_MS 40  /* of a round, before its fault */
#define GONE_ON 3     /* clocks: who was there may have sent its marks of two */
#define SLACK_MS 2000 /* beyond lost_after_ms */
#define TEXT_SIZE 4096

typedef struct options {
    unsigned kinds; /* bits, by place in `kinds` below */
    unsigned rounds;
    unsigned seed;
    unsigned workers;
    unsigned nodes;
    unsigned rows;
    unsigned lost_after_ms;
    unsigned limit_ms;
    unsigned logs;
    int32_t max_delay;
    cluster_net_t net;
    char policy[16];
} options_t;

typedef struct tally {
    unsigned n_rounds;
    unsigned n_lost; /* the victim was */
    uint64_t longest_ms;
} tally_t;

typedef struct test {
    options_t options;
    cluster_t cluster;
    char config[128];
    view_t view;
    pushers_t pushers;
    int netns[PUSHERS_MAX];
    char hosts[PUSHERS_MAX][24];
    int64_t *values;
    ps_rng_t rng;
    unsigned n_rounds;
    unsigned kind; /* of the next round, if it is allowed */
    tally_t tallies[N_KINDS];
    unsigned n_long;   /* rounds in which a clock took longer than allowed */
    unsigned n_others; /* losses of workers that nothing was done to */
} test_t;

static unsigned below(test_t *test, unsigned n)
{
    return (unsigned)ps_rng_below(&test->rng, n);
}

static void pass(unsigned ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    (void)nanosleep(&time, NULL);
}

/* ---- faults ---- */

/* Shortly, or until all others have gone on without it. */
static bool last(test_t *test, unsigned victim, bool is_short)
{
    if (is_short) {
        pass(1 + below(test, SHORT_MS));
        return true;
    }
    pushers_count(&test->pushers);
    return pushers_wait(&test->pushers, victim, GONE_ON);
}

static bool is_short(test_t *test)
{
    return below(test, 3) == 0;
}

/* Another one takes its place at once, or later. */
static bool play_kill(test_t *test, unsigned victim)
{
    CHECK(pushers_kill(&test->pushers, victim));
    CHECK(last(test, victim, is_short(test)));
    return pushers_restart(&test->pushers, victim);
}

static bool play_stop(test_t *test, unsigned victim)
{
    bool good = pushers_freeze(&test->pushers, victim) && last(test, victim, is_short(test));

    return pushers_thaw(&test->pushers, victim) && good;
}

static bool play_down(test_t *test, unsigned victim)
{
    int netns = test->netns[victim];
    bool good = netns_set_device(netns, false) && last(test, victim, is_short(test));

    return netns_set_device(netns, true) && good;
}

/* Without a way to a node that has not the registry nobody is lost: the others wait. */
static bool play_hole(test_t *test, unsigned victim, unsigned host)
{
    int netns = test->netns[victim];
    bool waits = host > 0 && host < test->options.nodes;
    bool good = netns_set_hole(netns, host, true) && last(test, victim, waits || is_short(test));

    return netns_set_hole(netns, host, false) && good;
}

static bool play_way(test_t *test, unsigned victim)
{
    unsigned n_workers = test->options.workers;
    unsigned own = test->options.nodes + victim;
    unsigned what = below(test, 4);
    bool good = false;

    if (what >= 2) { /* to a node, to another worker */
        unsigned other = (victim + 1 + below(test, n_workers - 1)) % n_workers;
        unsigned host = what == 2 ? below(test, test->options.nodes) : test->options.nodes + other;

        return play_hole(test, victim, host);
    }
    good = netns_set_link(test->netns[victim], own, what != 0, what != 1) &&
           last(test, victim, is_short(test));
    return netns_set_link(test->netns[victim], own, true, true) && good;
}

/* All of it comes back from its disk. */
static bool play_node(test_t *test, unsigned victim)
{
    (void)victim;
    CHECK(cluster_kill(&test->cluster, 0, SIGKILL));
    pass(1 + below(test, SHORT_MS));
    CHECK(cluster_restart(&test->cluster, 0));
    pushers_count(&test->pushers);
    return pushers_wait(&test->pushers, PUSHERS_MAX, GONE_ON);
}

static const struct kind {
    const char *name;
    bool needs_netns;
    bool (*play)(test_t *test, unsigned victim); /* from its begin to its end */
} kinds[N_KINDS] = {
    {"kill", false, play_kill}, {"stop", false, play_stop}, {"down", true, play_down},
    {"way", true, play_way},    {"node", false, play_node},
};

/* ---- what is there ---- */

/* Workers that others send to, by the plan: bits. */
static bool find_relays(test_t *test, unsigned *ret_relays)
{
    char *text = NULL;
    json_t *reply = NULL;
    json_t *workers = NULL;
    const json_t *worker = NULL;
    const json_t *to = NULL;
    size_t i = 0;
    size_t k = 0;

    CHECK_OK(psd_request(test->view.client, "{\"op\":\"job_inspect\",\"job\":\"" PUSHERS_JOB "\"}",
                         PUSHERS_CALL_MS, &text, test->view.err),
             test->view.err);
    reply = json_loads(text, 0, NULL);
    workers = json_object_get(json_object_get(json_object_get(reply, "job"), "overlay"), "workers");
    *ret_relays = 0;
    json_array_foreach(workers, i, worker)
    {
        json_array_foreach(json_object_get(worker, "sends_to"), k, to)
        {
            unsigned relay = 0;

            if (sscanf(json_string_value(to), "worker %u", &relay) == 1 && relay < PUSHERS_MAX) {
                *ret_relays |= 1U << relay;
            }
        }
    }
    json_decref(reply);
    psd_free(text);
    return true;
}

/* One of those; any, if nobody is sent to. */
static bool choose_victim(test_t *test, unsigned *ret_victim)
{
    unsigned relays = 0;

    CHECK(find_relays(test, &relays));
    do {
        *ret_victim = below(test, test->options.workers);
    } while (relays != 0 && (relays >> *ret_victim & 1) == 0);
    return true;
}

static bool read_table(test_t *test)
{
    psd_error_t *err = test->view.err;
    psd_table_t *table = NULL;
    psd_select_t *all = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_select_all_rows(all);
    CHECK_OK(psd_table_open(test->view.client, PUSHERS_JOB, &table, err), err);
    CHECK_OK(psd_pull_start(table, all, test->values,
                            (size_t)PUSHERS_PARTITIONS * test->options.rows, NULL, &ticket, err),
             err);
    CHECK_OK(psd_wait(test->view.client, ticket, PUSHERS_CALL_MS, err), err);
    psd_select_destroy(&all);
    psd_table_close(&table);
    return true;
}

/* Bundles that came to the node; its port is in its namespace. */
static unsigned long count_bundles(const test_t *test, unsigned node)
{
    int ends[2] = {-1, -1};
    double sum = -1;
    pid_t pid = -1;

    if (pipe(ends) != 0) {
        return 0;
    }
    pid = fork();
    if (pid == 0) {
        int netns = test->cluster.nodes[node].netns;
        char *answer = NULL;
        char dir[4096];

        (void)snprintf(dir, sizeof dir, "%.4000s/n%u/data", test->cluster.dir.path, node);
        if ((netns < 0 || netns_enter(netns)) &&
            http_ask(http_port(dir), "GET", "/metrics", &answer) == 200) {
            sum = http_sum(answer, "psd_requests_total", "request=\"bundle\"");
        }
        free(answer);
        _exit(write(ends[1], &sum, sizeof sum) == (ssize_t)sizeof sum ? 0 : 1);
    }
    (void)close(ends[1]);
    if (pid < 0 || read(ends[0], &sum, sizeof sum) != (ssize_t)sizeof sum) {
        sum = 0;
    }
    (void)close(ends[0]);
    (void)waitpid(pid, NULL, 0);
    return sum > 0 ? (unsigned long)sum : 0;
}

/* How long a thread of the registry's node has waited for a processor: the one that did so most. */
static uint64_t read_delay(const test_t *test)
{
    char path[300];
    uint64_t longest_ns = 0;
    DIR *tasks = NULL;
    const struct dirent *task = NULL;

    (void)snprintf(path, sizeof path, "/proc/%d/task", test->cluster.nodes[0].pid);
    tasks = opendir(path);
    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        uint64_t ns = 0;
        FILE *file = NULL;

        (void)snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", test->cluster.nodes[0].pid,
                       task->d_name);
        file = fopen(path, "re");
        if (file != NULL && fscanf(file, "%*u %" SCNu64, &ns) == 1 && ns > longest_ns) {
            longest_ns = ns;
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
    return longest_ns / 1000000;
}

/* ---- a round ---- */

static bool end_round(test_t *test)
{
    CHECK(pushers_pause(&test->pushers));
    CHECK(read_table(test));
    CHECK(pushers_check(&test->pushers, test->values));
    return true;
}

static bool play(test_t *test, unsigned kind, unsigned victim)
{
    tally_t *tally = &test->tallies[kind];
    pushers_t *pushers = &test->pushers;
    uint64_t longest_ms = 0;
    uint64_t delay_ms = 0;
    uint64_t after_ms = 0;
    unsigned n_lost = 0;

    pushers_count(pushers);
    pushers_go_on(pushers);
    CHECK(pushers_wait(pushers, PUSHERS_MAX, 1 + below(test, 4)));
    pass(below(test, MOMENT_MS));
    pushers_mark(pushers);
    delay_ms = read_delay(test);
    CHECK(kinds[kind].play(test, victim));
    pushers_count(pushers);
    CHECK(pushers_wait(pushers, PUSHERS_MAX, GONE_ON));
    CHECK(end_round(test));
    after_ms = read_delay(test);
    delay_ms = after_ms > delay_ms ? after_ms - delay_ms : after_ms; /* of another process */
    longest_ms = pushers_longest(pushers, victim);
    n_lost = pushers_lost(pushers, PUSHERS_MAX) - pushers_lost(pushers, victim);
    tally->n_rounds++;
    tally->n_lost += n_lost > 0 ? 1 : 0;
    tally->longest_ms = longest_ms > tally->longest_ms ? longest_ms : tally->longest_ms;
    test->n_others += pushers_lost(pushers, victim);
    (void)fprintf(stderr,
                  "round %u: %s of worker %u%s: %" PRIu64 " ms, psd waited %" PRIu64 " ms\n",
                  test->n_rounds, kinds[kind].name, victim, n_lost > 0 ? ", which was lost" : "",
                  longest_ms, delay_ms);
    if (longest_ms > test->options.limit_ms + delay_ms) {
        test->n_long++;
        pushers_tell(pushers);
    }
    return true;
}

/* Who waits, and for whom. */
static void tell_why(test_t *test)
{
    char text[TEXT_SIZE] = "";

    if (view_try_why(&test->view, PUSHERS_JOB, text, sizeof text)) {
        (void)fprintf(stderr, "why: %s\n", text);
    }
}

static bool play_one(test_t *test)
{
    unsigned kind = test->kind;
    unsigned victim = 0;

    while ((test->options.kinds >> kind & 1) == 0) {
        kind = (kind + 1) % N_KINDS;
    }
    test->kind = (kind + 1) % N_KINDS;
    CHECK(choose_victim(test, &victim));
    if (!play(test, kind, victim)) {
        (void)fprintf(stderr, "in round %u: %s of worker %u\n", test->n_rounds, kinds[kind].name,
                      victim);
        tell_why(test);
        return false;
    }
    test->n_rounds++;
    return true;
}

/* ---- the run ---- */

static bool make_table(test_t *test)
{
    psd_error_t *err = test->view.err;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    char rows[16];

    (void)snprintf(rows, sizeof rows, "%u", PUSHERS_PARTITIONS * test->options.rows);
    CHECK_OK(psd_spec_set(spec, "rows", rows, err), err);
    (void)snprintf(rows, sizeof rows, "%u", PUSHERS_PARTITIONS);
    CHECK_OK(psd_spec_set(spec, "partitions", rows, err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(
        psd_spec_set(spec, "combine", test->options.max_delay == 0 ? "clock-sum" : "each", err),
        err);
    if ((test->options.kinds >> NODE_KIND & 1) != 0) {
        CHECK_OK(psd_spec_set(spec, "ack", "disk", err), err);
    }
    CHECK_OK(psd_table_create(test->view.client, PUSHERS_JOB, spec, &table, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return true;
}

static bool add_hosts(test_t *test, pushers_args_t *args)
{
    for (unsigned i = 0; i < PUSHERS_MAX; i++) {
        args->netns[i] = -1;
    }
    for (unsigned i = 0; test->options.net == CLUSTER_NETNS && i < test->options.workers; i++) {
        unsigned host = test->options.nodes + i;

        test->netns[i] = netns_add(host);
        CHECK(test->netns[i] >= 0);
        (void)snprintf(test->hosts[i], sizeof test->hosts[i], "10.77.0.%u", 10 + host);
        args->netns[i] = test->netns[i];
        args->hosts[i] = test->hosts[i];
    }
    return true;
}

static bool start(test_t *test)
{
    const options_t *options = &test->options;
    const cluster_args_t cluster = {
        .n_nodes = options->nodes, .net = options->net, .config = test->config};
    pushers_args_t args = {.transport = options->net == CLUSTER_NETNS ? "tcp" : "auto",
                           .policy = options->policy,
                           .n_workers = options->workers,
                           .max_delay = options->max_delay,
                           .n_rows = options->rows,
                           .seed = options->seed};

    (void)snprintf(test->config, sizeof test->config,
                   "shards: 2\nworkers:\n  heartbeat_ms: 100\n  lost_after_ms: %u\n",
                   options->lost_after_ms);
    test->rng = (ps_rng_t){options->seed};
    test->values = calloc((size_t)PUSHERS_PARTITIONS * options->rows, sizeof *test->values);
    CHECK(test->values != NULL);
    CHECK(cluster_start(&test->cluster, &cluster));
    CHECK(add_hosts(test, &args));
    args.endpoint = test->cluster.nodes[0].control;
    CHECK(view_open(&test->view, args.endpoint) && make_table(test));
    CHECK(pushers_start(&test->pushers, &args));
    return end_round(test);
}

static bool run(test_t *test)
{
    unsigned long n_bundles = 0;

    CHECK(start(test));
    while (test->n_rounds < test->options.rounds) {
        CHECK(play_one(test));
    }
    for (unsigned i = 0; i < test->options.nodes; i++) {
        n_bundles += count_bundles(test, i);
    }
    (void)fprintf(stderr, "%lu bundles\n", n_bundles);
    CHECK(n_bundles > 0);
    if (test->n_long > 0) {
        (void)fprintf(stderr, "in %u rounds a clock took longer than %u ms\n", test->n_long,
                      test->options.limit_ms);
        return false;
    }
    return pushers_finish(&test->pushers);
}

static void print(const test_t *test, bool good)
{
    uint64_t longest_ms = 0;
    double load = -1;

    for (unsigned i = 0; i < N_KINDS; i++) {
        const tally_t *tally = &test->tallies[i];

        if (tally->n_rounds > 0) {
            (void)printf("%s: %u rounds, lost in %u, longest stall %" PRIu64 " ms\n", kinds[i].name,
                         tally->n_rounds, tally->n_lost, tally->longest_ms);
        }
        longest_ms = tally->longest_ms > longest_ms ? tally->longest_ms : longest_ms;
    }
    (void)getloadavg(&load, 1);
    (void)printf("%u rounds, %u losses of other workers, load %.1f, longest call %" PRIu64
                 " ms: %s\n",
                 test->n_rounds, test->n_others, load, longest_ms,
                 good ? "every sum as it must be" : "FAILED");
}

/* ---- arguments ---- */

static bool read_kinds(options_t *options, const char *text)
{
    options->kinds = 0;
    while (*text != '\0') {
        size_t size = strcspn(text, "+");
        unsigned i = 0;

        while (i < N_KINDS &&
               (strlen(kinds[i].name) != size || strncmp(kinds[i].name, text, size) != 0)) {
            i++;
        }
        if (i == N_KINDS) {
            return false;
        }
        options->kinds |= 1U << i;
        text += size + (text[size] == '+' ? 1 : 0);
    }
    return options->kinds != 0;
}

static bool read_word(options_t *options, const char *key, const char *value)
{
    if (strcmp(key, "kinds") == 0) {
        return read_kinds(options, value);
    }
    if (strcmp(key, "net") == 0) {
        options->net = strcmp(value, "netns") == 0 ? CLUSTER_NETNS : CLUSTER_DIRECT;
        return options->net == CLUSTER_NETNS || strcmp(value, "direct") == 0;
    }
    if (strcmp(key, "max_delay") == 0) {
        char *end = NULL;
        long delay = strtol(value, &end, 10);

        options->max_delay = (int32_t)delay;
        return end != value && *end == '\0' && delay >= -1 && delay <= 100;
    }
    (void)snprintf(options->policy, sizeof options->policy, "%s", value);
    return strcmp(key, "policy") == 0 && *value != '\0';
}

static bool read_one(options_t *options, const char *text)
{
    const struct {
        const char *key;
        unsigned *number;
        unsigned min;
        unsigned max;
    } keys[] = {
        {"rounds", &options->rounds, 1, 100000},
        {"seed", &options->seed, 0, UINT32_MAX},
        {"workers", &options->workers, 3, PUSHERS_MAX},
        {"nodes", &options->nodes, 1, 4},
        {"rows", &options->rows, PUSHERS_MAX, 100000},
        {"lost_after_ms", &options->lost_after_ms, 1000, 60000},
        {"limit_ms", &options->limit_ms, 0, 60000},
        {"logs", &options->logs, 0, 1},
    };
    char key[16] = "";
    const char *value = strchr(text, '=');

    if (value == NULL || (size_t)(value - text) >= sizeof key) {
        return false;
    }
    memcpy(key, text, (size_t)(value - text));
    value++;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(keys[i].key, key) == 0) {
            char *end = NULL;
            unsigned long number = strtoul(value, &end, 10);

            *keys[i].number = (unsigned)number;
            return end != value && *end == '\0' && number >= keys[i].min && number <= keys[i].max;
        }
    }
    return read_word(options, key, value);
}

static bool read_options(options_t *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!read_one(options, argv[i])) {
            (void)fprintf(stderr, "not understood: %s\n", argv[i]);
            return false;
        }
    }
    for (unsigned i = 0; i < N_KINDS; i++) {
        if ((options->kinds >> i & 1) != 0 && kinds[i].needs_netns &&
            options->net != CLUSTER_NETNS) {
            (void)fprintf(stderr, "kinds=%s needs net=netns\n", kinds[i].name);
            return false;
        }
    }
    if (options->limit_ms == 0) {
        options->limit_ms = options->lost_after_ms + SLACK_MS;
    }
    return true;
}

int main(int argc, char **argv)
{
    static test_t test = {.options = {.kinds = 3,
                                      .rounds = 6,
                                      .seed = 1,
                                      .workers = 5,
                                      .nodes = 1,
                                      .rows = 2500, /* rows go from worker to worker, too */
                                      .lost_after_ms = 3000,
                                      .policy = "tree"}};
    int exit_code = 0;
    bool good = false;

    if (pusher_main(argc, argv, &exit_code)) {
        return exit_code;
    }
    if (!read_options(&test.options, argc, argv)) {
        return 2;
    }
    if (!cluster_can(test.options.net)) {
        return SKIPPED;
    }
    good = run(&test);
    print(&test, good);
    pushers_drop(&test.pushers);
    view_close(&test.view);
    cluster_drop(&test.cluster, !good || test.options.logs != 0);
    free(test.values);
    return good ? 0 : 1;
}
