/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long pushes stand still when a node fails
 *
 * One client pushes small adds to every partition without pause. A round: the
 * node that is primary of most partitions is killed, or frozen, until every
 * partition has acknowledged a push that was begun behind that; then the node
 * comes back, and the next round waits until all copies are in sync. Printed,
 * not judged: for each fault the longest time between two acknowledged pushes
 * of one partition. At the end every row must be the sum of what was
 * acknowledged (at level memory: that or less).
 *
 * fault_failover KEY=VALUE…: nodes, replicas, partitions, rounds, seconds (no
 * round begins later), ack (memory, replica), fault (kill, freeze), victim
 * (primary: never the first node; registry: the first node; leader: the node
 * whose registry leads; both: that one and the one of the others that is primary
 * of most), voters (1; 3, 5: the registry is replicated), logs (1: those of the
 * nodes are printed).
 */
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pauses.h"
#include "support/check.h"
#include "support/cluster.h"

#define CALL_MS 120000 /* longer than any fault */
#define HANG_MS 120000 /* pushes that stand still for so long hang */
#define SYNC_MS 120000 /* for copies that catch up */
#define STEP_MS 20     /* between two looks at the copies */

typedef struct plan {
    unsigned nodes;
    unsigned replicas;
    unsigned partitions;
    unsigned rounds;
    unsigned seconds; /* 0: rounds alone count */
    unsigned voters;
    unsigned logs;
    bool memory;
    bool freezes;
    bool of_registry;
    bool of_leader;
    bool of_both;
} plan_t;

typedef struct places { /* of copies */
    unsigned n_primaries[CLUSTER_NODES_MAX];
    unsigned primary[PAUSES_MAX]; /* node; CLUSTER_NODES_MAX: none */
    bool in_sync;                 /* all */
} places_t;

typedef struct test {
    plan_t plan;
    cluster_t cluster;
    char config[64];
    char endpoints[CLUSTER_NODES_MAX * CLUSTER_TEXT_SIZE];
    psd_client_t *client; /* looks at the copies */
    psd_error_t *err;
    pauses_t pauses;
    uint64_t *longest_ms; /* of each round: of any partition … */
    uint64_t *primary_ms; /* … and of any whose primary was there */
    unsigned n_rounds;
} test_t;

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- the table ---- */

static bool open_client(test_t *test)
{
    psd_options_t *options = psd_options_new();

    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_options_set_transport(options, "tcp", test->err), test->err);
    CHECK_OK(psd_connect(test->endpoints, options, &test->client, test->err), test->err);
    psd_options_destroy(&options);
    return true;
}

static bool set_number(psd_spec_t *spec, const char *key, unsigned number, psd_error_t *err)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", number);
    CHECK_OK(psd_spec_set(spec, key, text, err), err);
    return true;
}

static bool make_table(test_t *test)
{
    const plan_t *plan = &test->plan;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK(set_number(spec, "rows", plan->partitions * PAUSES_ROWS, test->err));
    CHECK(set_number(spec, "partitions", plan->partitions, test->err));
    CHECK(set_number(spec, "replicas", plan->replicas, test->err));
    CHECK_OK(psd_spec_set(spec, "type", "i64", test->err), test->err);
    CHECK_OK(psd_spec_set(spec, "ack", plan->memory ? "memory" : "replica", test->err), test->err);
    CHECK_OK(psd_table_create(test->client, PAUSES_TABLE, spec, &table, test->err), test->err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return true;
}

/* ---- where the copies are ---- */

/* The node in "n1/0"; CLUSTER_NODES_MAX: it names none. */
static unsigned node_of(const char *place)
{
    return place != NULL && place[0] == 'n' ? (unsigned)strtoul(place + 1, NULL, 10)
                                            : CLUSTER_NODES_MAX;
}

static bool read_places(const test_t *test, const json_t *partitions, places_t *ret)
{
    size_t i = 0;
    const json_t *partition = NULL;

    CHECK(json_array_size(partitions) == test->plan.partitions);
    *ret = (places_t){.in_sync = true};
    json_array_foreach(partitions, i, partition)
    {
        size_t n_synced = json_array_size(json_object_get(partition, "in_sync"));
        unsigned node = node_of(json_string_value(json_object_get(partition, "primary")));

        CHECK(node <= CLUSTER_NODES_MAX);
        ret->primary[i] = node;
        if (node < CLUSTER_NODES_MAX) {
            ret->n_primaries[node]++;
        }
        ret->in_sync = ret->in_sync && node < CLUSTER_NODES_MAX && n_synced == test->plan.replicas;
    }
    return true;
}

static bool look(test_t *test, places_t *ret)
{
    char *text = NULL;
    json_t *reply = NULL;
    bool good = false;

    CHECK_OK(psd_request(test->client, "{\"op\":\"table_inspect\",\"name\":\"" PAUSES_TABLE "\"}",
                         CALL_MS, &text, test->err),
             test->err);
    reply = json_loads(text, 0, NULL);
    good = read_places(test, json_object_get(json_object_get(reply, "table"), "partitions"), ret);
    json_decref(reply);
    psd_free(text);
    return good;
}

static bool wait_in_sync(test_t *test, places_t *ret)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    uint64_t end_ms = now_ms() + SYNC_MS;

    CHECK(look(test, ret));
    while (!ret->in_sync && now_ms() < end_ms) {
        (void)nanosleep(&step, NULL);
        CHECK(look(test, ret));
    }
    CHECK(ret->in_sync);
    return true;
}

/* ---- who has the registry ---- */

/* The leader, if all other voters are there too; else CLUSTER_NODES_MAX. */
static bool look_leader(test_t *test, unsigned *ret_leader)
{
    char *text = NULL;
    json_t *reply = NULL;
    const json_t *node = NULL;
    unsigned n_voters = 0;
    size_t i = 0;

    *ret_leader = CLUSTER_NODES_MAX;
    CHECK_OK(psd_request(test->client, "{\"op\":\"node_list\"}", CALL_MS, &text, test->err),
             test->err);
    reply = json_loads(text, 0, NULL);
    json_array_foreach(json_object_get(reply, "nodes"), i, node)
    {
        const char *member = json_string_value(json_object_get(node, "member"));
        const char *state = json_string_value(json_object_get(node, "state"));
        bool is_leader = member != NULL && strcmp(member, "leader") == 0;

        if (is_leader) {
            *ret_leader = node_of(json_string_value(json_object_get(node, "name")));
        }
        n_voters += is_leader || (member != NULL && strcmp(member, "voter") == 0 && state != NULL &&
                                  strcmp(state, "up") == 0)
                        ? 1
                        : 0;
    }
    json_decref(reply);
    psd_free(text);
    *ret_leader = n_voters == test->plan.voters ? *ret_leader : CLUSTER_NODES_MAX;
    return true;
}

static bool wait_leader(test_t *test, unsigned *ret_leader)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    uint64_t end_ms = now_ms() + SYNC_MS;

    *ret_leader = 0;
    if (test->plan.voters < 3) {
        return true;
    }
    CHECK(look_leader(test, ret_leader));
    while (*ret_leader == CLUSTER_NODES_MAX && now_ms() < end_ms) {
        (void)nanosleep(&step, NULL);
        CHECK(look_leader(test, ret_leader));
    }
    CHECK(*ret_leader < CLUSTER_NODES_MAX);
    return true;
}

/* ---- a round ---- */

/* The node, other than that one, that is primary of most. */
static unsigned find_most(const test_t *test, const places_t *places, unsigned other)
{
    unsigned best = other == 0 ? 1 : 0;

    for (unsigned i = best + 1; i < test->plan.nodes; i++) {
        best = i != other && places->n_primaries[i] > places->n_primaries[best] ? i : best;
    }
    return best;
}

/* Which nodes fail: one, or two. *ret_also: the second; CLUSTER_NODES_MAX: none. */
static unsigned choose(const test_t *test, const places_t *places, unsigned leader,
                       unsigned *ret_also)
{
    *ret_also = CLUSTER_NODES_MAX;
    if (test->plan.of_both) {
        *ret_also = leader;
        return find_most(test, places, leader);
    }
    if (test->plan.of_registry || test->plan.of_leader) {
        return test->plan.of_leader ? leader : 0;
    }
    return find_most(test, places, 0);
}

static bool fail(test_t *test, unsigned node)
{
    return test->plan.freezes ? cluster_freeze(&test->cluster, node)
                              : cluster_kill(&test->cluster, node, SIGKILL);
}

static bool mend(test_t *test, unsigned node)
{
    return test->plan.freezes ? cluster_thaw(&test->cluster, node)
                              : cluster_restart(&test->cluster, node);
}

static void note(test_t *test, const places_t *places, unsigned node)
{
    uint64_t *longest_ms = &test->longest_ms[test->n_rounds];
    uint64_t *primary_ms = &test->primary_ms[test->n_rounds];

    for (unsigned i = 0; i < test->plan.partitions; i++) {
        uint64_t ms = pauses_of(&test->pauses, i);

        *longest_ms = ms > *longest_ms ? ms : *longest_ms;
        if (places->primary[i] == node && ms > *primary_ms) {
            *primary_ms = ms;
        }
    }
    (void)fprintf(stderr, "round %u: n%u, primary of %u: %" PRIu64 " ms, others %" PRIu64 " ms\n",
                  test->n_rounds, node, places->n_primaries[node], *primary_ms, *longest_ms);
}

/* Without the only node of the registry nobody is promoted: it comes back at
 * once, and what it was primary of waits for that. */
static bool play(test_t *test)
{
    places_t places;
    unsigned leader = 0;
    unsigned node = 0;
    unsigned also = 0;
    bool is_alone = false;
    bool good = false;

    CHECK(wait_leader(test, &leader) && wait_in_sync(test, &places));
    node = choose(test, &places, leader, &also);
    is_alone = node == 0 && test->plan.voters < 3;
    pauses_mark(&test->pauses);
    CHECK(fail(test, node) && (also == CLUSTER_NODES_MAX || fail(test, also)));
    good = !is_alone || mend(test, node);
    good = good && pauses_wait(&test->pauses, HANG_MS);
    note(test, &places, node);
    good = (is_alone || mend(test, node)) && good;
    good = (also == CLUSTER_NODES_MAX || mend(test, also)) && good;
    test->n_rounds++;
    return good;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static double load_average(void)
{
    double load = 0;

    return getloadavg(&load, 1) == 1 ? load : -1;
}

static void print(const char *what, uint64_t *ms, unsigned n)
{
    if (n == 0) {
        return;
    }
    qsort(ms, n, sizeof *ms, compare);
    (void)printf("%s: %u rounds, median %" PRIu64 " ms, p99 %" PRIu64 " ms, longest %" PRIu64
                 " ms, load %.1f\n",
                 what, n, ms[n / 2], ms[(n * 99 + 99) / 100 - 1], ms[n - 1], load_average());
}

static bool play_all(test_t *test)
{
    const plan_t *plan = &test->plan;
    const cluster_args_t args = {
        .n_nodes = plan->nodes, .net = CLUSTER_DIRECT, .config = test->config};
    uint64_t end_ms = plan->seconds == 0 ? UINT64_MAX : now_ms() + (uint64_t)plan->seconds * 1000;

    (void)snprintf(test->config, sizeof test->config, "registry:\n  voters: %u\n", plan->voters);
    CHECK(cluster_start(&test->cluster, &args));
    for (unsigned i = 0; i < (plan->voters < 3 ? 1 : plan->nodes); i++) {
        size_t used = strlen(test->endpoints);

        (void)snprintf(test->endpoints + used, sizeof test->endpoints - used, "%s%s",
                       i == 0 ? "" : ",", test->cluster.nodes[i].control);
    }
    CHECK(open_client(test) && make_table(test));
    CHECK(pauses_start(&test->pauses, test->endpoints, plan->partitions, plan->memory));
    CHECK(pauses_wait(&test->pauses, HANG_MS));
    while (test->n_rounds < plan->rounds && now_ms() < end_ms) {
        CHECK(play(test));
    }
    CHECK(pauses_stop(&test->pauses, PAUSES_SETTLE));
    return pauses_check(&test->pauses, test->client);
}

static bool run(test_t *test)
{
    bool good = false;

    test->err = psd_error_new();
    test->longest_ms = calloc(test->plan.rounds, sizeof *test->longest_ms);
    test->primary_ms = calloc(test->plan.rounds, sizeof *test->primary_ms);
    CHECK(test->longest_ms != NULL && test->primary_ms != NULL);
    good = play_all(test);
    print("partitions whose primary failed", test->primary_ms, test->n_rounds);
    print("any partition", test->longest_ms, test->n_rounds);
    (void)pauses_stop(&test->pauses, PAUSES_DROP);
    cluster_drop(&test->cluster, !good || test->plan.logs != 0);
    psd_close(&test->client);
    psd_error_destroy(&test->err);
    free(test->longest_ms);
    free(test->primary_ms);
    return good;
}

/* ---- arguments ---- */

static bool read_word(plan_t *plan, const char *text)
{
    static const struct {
        const char *text;
        size_t at;
        bool is;
    } words[] = {
        {"ack=memory", offsetof(plan_t, memory), true},
        {"ack=replica", offsetof(plan_t, memory), false},
        {"fault=freeze", offsetof(plan_t, freezes), true},
        {"fault=kill", offsetof(plan_t, freezes), false},
        {"victim=registry", offsetof(plan_t, of_registry), true},
        {"victim=leader", offsetof(plan_t, of_leader), true},
        {"victim=both", offsetof(plan_t, of_both), true},
        {"victim=primary", offsetof(plan_t, of_registry), false},
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].text, text) == 0) {
            *(bool *)((char *)plan + words[i].at) = words[i].is;
            return true;
        }
    }
    return false;
}

static bool read_one(plan_t *plan, const char *text)
{
    const struct {
        const char *key;
        unsigned *number;
        unsigned min;
        unsigned max;
    } keys[] = {
        {"nodes=", &plan->nodes, 2, CLUSTER_NODES_MAX},
        {"replicas=", &plan->replicas, 2, CLUSTER_NODES_MAX},
        {"partitions=", &plan->partitions, 1, PAUSES_MAX},
        {"rounds=", &plan->rounds, 1, 100000},
        {"seconds=", &plan->seconds, 0, 100000},
        {"voters=", &plan->voters, 1, 5},
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
    return read_word(plan, text);
}

int main(int argc, char **argv)
{
    static test_t test = {
        .plan = {.nodes = 3, .replicas = 3, .partitions = 6, .rounds = 3, .voters = 1}};

    for (int i = 1; i < argc; i++) {
        if (!read_one(&test.plan, argv[i])) {
            (void)fprintf(stderr, "not understood: %s\n", argv[i]);
            return 2;
        }
    }
    if (test.plan.of_leader && test.plan.voters < 3) {
        test.plan.voters = 3;
    }
    if (test.plan.of_both) { /* of three voters two are no majority */
        test.plan.voters = 5;
    }
    return run(&test) ? 0 : 1;
}
