/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry's leader fails, again and again, while there is much to change
 *
 * Tables are made and dropped, two jobs take slices of work queues, workers join
 * and leave, clients get session numbers (churn.h). A round: the leader is
 * killed, every fifth time another node with it, or it is frozen. The time until
 * a change is acknowledged that was begun after that is noted; then the nodes
 * come back. At the end: every acknowledged change is there, once, no session
 * number was given twice, and all members have the same rows.
 *
 * A leader that was frozen is asked, before it goes on, for a table that was made
 * meanwhile: it may say that it does not lead, or what is so, and not that there
 * is no such table.
 *
 * With cut=1 each node has a network of its own, and the leader is cut off from all others,
 * both ways and one way in turn (cuts.h): it acknowledges nothing alone.
 *
 * fault_registry KEY=VALUE…: members (3, 5), nodes (members or more), kills,
 * stop (1: freezes), cut (1: cuts), limit_ms (the longest that may be; 0: any), logs (1:
 * those of the nodes are printed). 77: this machine does not allow such networks.
 */
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "churn.h"
#include "cuts.h"
#include "same_rows.h"
#include "support/check.h"
#include "support/cluster.h"
#include "support/zmtp.h"

#define KILLS_MAX 10000
#define ALSO 5 /* every so many rounds another node is killed with the leader */
#define LOOK_MS 20
#define WAIT_MS 120000
#define NEAR 100 /* commands, and logs keep 1024 */
#define ENDPOINTS_SIZE (CLUSTER_NODES_MAX * CLUSTER_TEXT_SIZE)

typedef struct plan {
    unsigned members;
    unsigned nodes;
    unsigned kills;
    unsigned stop;
    unsigned cut;
    unsigned limit_ms;
    unsigned logs;
} plan_t;

typedef struct view { /* of the nodes */
    unsigned leader;  /* CLUSTER_NODES_MAX: unknown */
    unsigned other;   /* one that has no part of the registry, else a voter */
    unsigned n_up;
    unsigned n_voters; /* beside the leader */
} view_t;

typedef struct test {
    plan_t plan;
    cluster_t cluster;
    char config[256];
    char endpoints[ENDPOINTS_SIZE];
    churn_t churn;
    psd_client_t *client;
    psd_error_t *err;
    uint64_t took_ms[KILLS_MAX];
    unsigned n_rounds;
    cut_t cuts[CUTS_MAX];
    unsigned n_stale; /* answers of a leader that was frozen */
    unsigned n_asked;
} test_t;

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- who leads ---- */

static bool is_text(const json_t *node, const char *key, const char *text)
{
    const char *found = json_string_value(json_object_get(node, key));

    return found != NULL && strcmp(found, text) == 0;
}

static void read_nodes(const json_t *nodes, view_t *ret)
{
    size_t i = 0;
    const json_t *node = NULL;
    bool spare = false;

    *ret = (view_t){.leader = CLUSTER_NODES_MAX, .other = CLUSTER_NODES_MAX};
    json_array_foreach(nodes, i, node)
    {
        const char *name = json_string_value(json_object_get(node, "name"));
        unsigned number = name == NULL ? 0 : (unsigned)strtoul(name + 1, NULL, 10);

        ret->n_up += is_text(node, "state", "up") ? 1 : 0;
        if (is_text(node, "member", "leader")) {
            ret->leader = number;
        } else if (is_text(node, "member", "voter")) {
            ret->n_voters++;
            ret->other = spare ? ret->other : number;
        } else {
            ret->other = number;
            spare = true;
        }
    }
}

static bool look(test_t *test, view_t *ret)
{
    char *reply = NULL;
    json_t *doc = NULL;

    CHECK_OK(psd_request(test->client, "{\"op\":\"node_list\"}", CHURN_CALL_MS, &reply, test->err),
             test->err);
    doc = json_loads(reply, 0, NULL);
    read_nodes(json_object_get(doc, "nodes"), ret);
    json_decref(doc);
    psd_free(reply);
    return true;
}

/* All nodes are up, and all members are there. */
static bool wait_whole(test_t *test, view_t *ret)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    const uint64_t end_ms = now_ms() + WAIT_MS;

    for (;;) {
        CHECK(look(test, ret));
        if (ret->n_up == test->plan.nodes && ret->n_voters + 1 == test->plan.members &&
            ret->leader < CLUSTER_NODES_MAX) {
            return true;
        }
        if (now_ms() > end_ms || atomic_load(&test->churn.n_failed) > 0) {
            (void)fprintf(stderr, "%u nodes are up, %u voters beside n%u\n", ret->n_up,
                          ret->n_voters, ret->leader);
            return false;
        }
        (void)nanosleep(&gap, NULL);
    }
}

/* ---- a round ---- */

/* A change that is begun now, and how long it takes. */
static bool change(test_t *test, uint64_t since_ms)
{
    char name[32];
    uint64_t *took_ms = &test->took_ms[test->n_rounds];

    (void)snprintf(name, sizeof name, "k%u", test->n_rounds);
    CHECK_OK(churn_make_table(test->client, name, 8, "2", "replica", test->err), test->err);
    *took_ms = now_ms() - since_ms;
    return true;
}

static bool kill_some(test_t *test, const view_t *view)
{
    bool also = (test->n_rounds + 1) % ALSO == 0 && view->other < CLUSTER_NODES_MAX;
    uint64_t since_ms = now_ms();

    CHECK(cluster_kill(&test->cluster, view->leader, SIGKILL));
    CHECK(!also || cluster_kill(&test->cluster, view->other, SIGKILL));
    if (also && test->plan.nodes == test->plan.members) {
        CHECK(cluster_restart(&test->cluster, view->other)); /* there may be no majority else */
    }
    CHECK(change(test, since_ms));
    return cluster_restart_all(&test->cluster, view->leader);
}

/* Asks the frozen leader, on a connection that it has, for the table that the
 * round makes. */
static bool post_question(const test_t *test, int fd)
{
    char question[160];

    (void)snprintf(question, sizeof question,
                   "{\"v\":1,\"id\":2,\"session\":1,\"op\":\"table_inspect\",\"name\":\"k%u\"}",
                   test->n_rounds);
    return zmtp_send(fd, 0, question, strlen(question));
}

static bool judge_answer(test_t *test, int fd)
{
    static char reply[65536];
    size_t size = 0;

    if (!zmtp_receive(fd, reply, sizeof reply, &size)) {
        (void)fprintf(stderr, "round %u: no answer\n", test->n_rounds); /* none is not stale */
        return true;
    }
    test->n_asked++;
    if (strstr(reply, "NO_TABLE") != NULL || strstr(reply, "E2003") != NULL) {
        (void)fprintf(stderr, "round %u: stale: %.300s\n", test->n_rounds, reply);
        test->n_stale++;
    }
    return true;
}

static bool freeze_leader(test_t *test, const view_t *view)
{
    int fd = zmtp_connect(test->cluster.nodes[view->leader].control);
    uint64_t since_ms = now_ms();
    bool good = false;

    CHECK(fd >= 0 && cluster_freeze(&test->cluster, view->leader));
    good = change(test, since_ms) && post_question(test, fd);
    good = cluster_thaw(&test->cluster, view->leader) && good;
    good = good && judge_answer(test, fd);
    (void)close(fd);
    return good;
}

static bool cut_leader(test_t *test, const view_t *view)
{
    cut_t *cut = &test->cuts[test->n_rounds];
    uint64_t since_ms = now_ms();
    bool good = cut_begin(cut, &test->cluster, view->leader, test->n_rounds);

    good = good && change(test, since_ms);
    return cut_end(cut, &test->cluster) && good;
}

static double load_average(void)
{
    double load = 0;

    return getloadavg(&load, 1) == 1 ? load : -1;
}

static bool play(test_t *test)
{
    view_t view;

    CHECK(wait_whole(test, &view));
    CHECK(test->plan.cut != 0    ? cut_leader(test, &view)
          : test->plan.stop != 0 ? freeze_leader(test, &view)
                                 : kill_some(test, &view));
    (void)fprintf(stderr, "round %u: n%u, next change after %" PRIu64 " ms, load %.1f\n",
                  test->n_rounds, view.leader, test->took_ms[test->n_rounds], load_average());
    test->n_rounds++;
    return atomic_load(&test->churn.n_failed) == 0;
}

/* ---- the end ---- */

static void path_of(const test_t *test, unsigned node, char ret[PATH_MAX])
{
    (void)snprintf(ret, PATH_MAX, "%.3000s/%s/data", test->cluster.dir.path,
                   test->cluster.nodes[node].name);
}

static bool has_rows(const test_t *test, unsigned node)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%.3000s/%s/data/registry-log", test->cluster.dir.path,
                   test->cluster.nodes[node].name);
    return access(path, F_OK) == 0;
}

/* Every member lacks so little that the logs of the others still have it. */
static bool are_near(const json_t *members)
{
    size_t i = 0;
    const json_t *member = NULL;

    json_array_foreach(members, i, member)
    {
        const json_t *lag = json_object_get(member, "lag");

        if (!json_is_integer(lag) || json_integer_value(lag) > NEAR) {
            return false;
        }
    }
    return i > 0;
}

static bool wait_near(test_t *test)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    const uint64_t end_ms = now_ms() + WAIT_MS;
    bool near = false;

    while (!near && now_ms() < end_ms) {
        char *reply = NULL;
        json_t *doc = NULL;

        CHECK_OK(psd_request(test->client, "{\"op\":\"registry_list\"}", CHURN_CALL_MS, &reply,
                             test->err),
                 test->err);
        doc = json_loads(reply, 0, NULL);
        near = are_near(json_object_get(doc, "members"));
        json_decref(doc);
        psd_free(reply);
        (void)nanosleep(&gap, NULL);
    }
    CHECK(near);
    return true;
}

/* All end, each at some command; those that lack the last ones get them from the log of
 * the one that has most. */
static bool check_rows(test_t *test)
{
    char paths[CLUSTER_NODES_MAX][PATH_MAX];
    unsigned n = 0;
    unsigned first = 0;
    uint64_t most = 0;

    CHECK(wait_near(test));
    for (unsigned i = 0; i < test->plan.nodes; i++) {
        CHECK(cluster_kill(&test->cluster, i, SIGKILL));
    }
    for (unsigned i = 0; i < test->plan.nodes; i++) {
        uint64_t index = 0;

        if (!has_rows(test, i)) {
            continue;
        }
        path_of(test, i, paths[n]);
        CHECK(same_rows_applied(paths[n], &index));
        if (index == 0) {
            continue; /* invited just now: its part has not come yet */
        }
        first = index > most ? n : first;
        most = index > most ? index : most;
        n++;
    }
    CHECK(n >= test->plan.members); /* and stand-bys */
    for (unsigned i = 0; i < n; i++) {
        CHECK(i == first || same_rows_bring(paths[i], paths[first]));
        CHECK(i == first || same_rows_compare(paths[first], paths[i]));
    }
    (void)printf("%u members have the same rows\n", n);
    return true;
}

static bool check_changes(test_t *test)
{
    for (unsigned i = 0; i < test->n_rounds; i++) {
        char name[32];
        psd_table_t *table = NULL;

        (void)snprintf(name, sizeof name, "k%u", i);
        CHECK_OK(psd_table_open(test->client, name, &table, test->err), test->err);
        psd_table_close(&table);
        CHECK(test->plan.cut == 0 ||
              cut_check(&test->cuts[i], &test->cluster, test->client, test->err));
    }
    return churn_check(&test->churn);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* false: a time was above the limit. */
static bool print(test_t *test)
{
    unsigned n = test->n_rounds;

    if (n == 0) {
        return true;
    }
    qsort(test->took_ms, n, sizeof *test->took_ms, compare);
    (void)printf("%s to the next acknowledged change: %u rounds, p50 %" PRIu64 " ms, p95 %" PRIu64
                 " ms, longest %" PRIu64 " ms, load %.1f\n",
                 test->plan.cut != 0    ? "cut"
                 : test->plan.stop != 0 ? "freeze"
                                        : "kill",
                 n, test->took_ms[n / 2], test->took_ms[(n * 95 + 99) / 100 - 1],
                 test->took_ms[n - 1], load_average());
    if (test->plan.stop != 0) {
        (void)printf("%u answers of leaders that were frozen, %u stale\n", test->n_asked,
                     test->n_stale);
        CHECK(test->n_asked > 0);
    }
    return test->plan.limit_ms == 0 || test->took_ms[n - 1] <= test->plan.limit_ms;
}

static bool start(test_t *test)
{
    const cluster_args_t args = {.n_nodes = test->plan.nodes,
                                 .net = test->plan.cut != 0 ? CLUSTER_NETNS : CLUSTER_DIRECT,
                                 .config = test->config};
    view_t view;

    (void)snprintf(test->config, sizeof test->config,
                   "shards: 1\nregistry:\n  voters: %u\n" CHURN_CONFIG, test->plan.members);
    CHECK(cluster_start(&test->cluster, &args));
    for (unsigned i = 0; i < test->plan.nodes; i++) {
        size_t used = strlen(test->endpoints);

        (void)snprintf(test->endpoints + used, sizeof test->endpoints - used, "%s%s",
                       i == 0 ? "" : ",", test->cluster.nodes[i].control);
    }
    CHECK_OK(churn_connect(test->endpoints, &test->client, test->err), test->err);
    return wait_whole(test, &view) && churn_start(&test->churn, test->endpoints);
}

static bool play_all(test_t *test)
{
    view_t view;
    bool good = start(test);

    while (good && test->n_rounds < test->plan.kills) {
        good = play(test);
    }
    good = churn_stop(&test->churn) && good;
    return print(test) && good && wait_whole(test, &view) && check_changes(test) &&
           check_rows(test) && test->n_stale == 0;
}

static bool run(test_t *test)
{
    bool good = false;

    test->err = psd_error_new();
    good = play_all(test);
    psd_close(&test->client);
    cluster_drop(&test->cluster, !good || test->plan.logs != 0);
    psd_error_destroy(&test->err);
    return good;
}

static bool read_one(plan_t *plan, const char *text)
{
    const struct {
        const char *key;
        unsigned *number;
        unsigned min;
        unsigned max;
    } keys[] = {
        {"members=", &plan->members, 3, 5},
        {"nodes=", &plan->nodes, 3, CLUSTER_NODES_MAX},
        {"kills=", &plan->kills, 1, KILLS_MAX},
        {"stop=", &plan->stop, 0, 1},
        {"cut=", &plan->cut, 0, 1},
        {"limit_ms=", &plan->limit_ms, 0, 1000000},
        {"logs=", &plan->logs, 0, 1},
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t size = strlen(keys[i].key);

        if (strncmp(keys[i].key, text, size) == 0) {
            char *end = NULL;
            unsigned long number = strtoul(text + size, &end, 10);

            *keys[i].number = (unsigned)number;
            return end != text + size && *end == '\0' && number >= keys[i].min &&
                   number <= keys[i].max;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    static test_t test = {.plan = {.members = 3, .kills = 10}};

    for (int i = 1; i < argc; i++) {
        if (!read_one(&test.plan, argv[i])) {
            (void)fprintf(stderr, "not understood: %s\n", argv[i]);
            return 2;
        }
    }
    if (test.plan.nodes == 0) {
        test.plan.nodes = test.plan.members + 1;
    }
    if (test.plan.cut != 0 && (test.plan.kills > CUTS_MAX || !cluster_can(CLUSTER_NETNS))) {
        return 77;
    }
    return run(&test) ? 0 : 1;
}
