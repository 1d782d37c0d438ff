/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that are killed, frozen and cut off while a job of integer adds runs
 *
 * A round: a random node, a random fault of those allowed, until everybody has
 * felt it or, where copies take over, until everybody has gone on; then the
 * node comes back, and everybody goes on. At the end the ledger.
 *
 * What survives a kill follows from the table: with one copy in memory nothing
 * does. Then a round is a job of its own, and its workers must be told so, all
 * of them, and no row may have a wrong value after it.
 *
 * fault_nodes KEY=VALUE…: nodes, replicas, ack (memory, replica, disk), faults
 * (kill, freeze, cut, slow; joined by +), net (proxy, netns), rounds, seed,
 * seconds (instead of rounds). 77: this machine does not allow the net.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adders.h"
#include "base/rng.h"
#include "support/check.h"
#include "support/cluster.h"

#define TIMEOUT_MS 300
#define RECOVERED 3 /* pushes of each worker */
#define SLOW 200000 /* bytes in a second */
#define SKIPPED 77

#define KILL 1U
#define FREEZE 2U
#define CUT 4U
#define SLOW_LINK 8U

static const char config[] = "shards: 2\n"
                             "disk:\n"
                             "  segment_bytes: 64KiB\n"
                             "  snapshot_after_bytes: 64KiB\n"
                             "workers:\n"
                             "  heartbeat_ms: 100\n"
                             "  lost_after_ms: 120000\n";

typedef struct plan {
    unsigned nodes;
    unsigned replicas;
    ledger_level_t ack;
    unsigned faults; /* a set of the above */
    cluster_net_t net;
    unsigned rounds;
    uint64_t seed;
    time_t seconds;
} plan_t;

typedef struct test {
    plan_t plan;
    cluster_t cluster;
    adders_t adders;
    ps_rng_t rng;
    unsigned n_rounds;
    char job[ADDERS_TEXT]; /* the name of the one that runs */
} test_t;

/* Whether what was acknowledged outlives a node. */
static bool
survives_kill(const plan_t *plan)
{
    return plan->ack == LEDGER_DISK ||
           (plan->ack == LEDGER_REPLICA && plan->replicas >= 2);
}

/* Whether the job goes on while that node is away: not without the first one,
 * whose registry names the next primaries. */
static bool
goes_on_without(const plan_t *plan, unsigned node)
{
    return node != 0 && (plan->replicas >= 3 ||
                         (plan->replicas == 2 && plan->ack == LEDGER_MEMORY));
}

/* The fault is there: everybody has felt it, or has gone on in spite of it. */
static bool
wait_felt(test_t *test, unsigned node)
{
    if (goes_on_without(&test->plan, node)) {
        adders_mark(&test->adders);
        return adders_wait_acks(&test->adders, RECOVERED);
    }
    return adders_wait_deadlines(&test->adders, 1);
}

static bool
kill_node(test_t *test, unsigned node)
{
    CHECK(cluster_kill(&test->cluster, node, SIGKILL));
    if (goes_on_without(&test->plan, node)) {
        CHECK(wait_felt(test, node));
    }
    CHECK(cluster_restart(&test->cluster, node));
    return true;
}

static bool
freeze_node(test_t *test, unsigned node)
{
    bool good = cluster_freeze(&test->cluster, node) && wait_felt(test, node);

    return cluster_thaw(&test->cluster, node) && good;
}

static bool
cut_node(test_t *test, unsigned node)
{
    unsigned ways = 1 + (unsigned)ps_rng_below(&test->rng, 3);
    bool good = cluster_set_link(&test->cluster, node, (ways & 1) == 0,
                                 (ways & 2) == 0) &&
                wait_felt(test, node);

    return cluster_set_link(&test->cluster, node, true, true) && good;
}

static bool
slow_node(test_t *test, unsigned node)
{
    bool good = cluster_set_rate(&test->cluster, node, SLOW) &&
                adders_wait_acks(&test->adders, RECOVERED);

    return cluster_set_rate(&test->cluster, node, 0) && good;
}

static const struct fault {
    unsigned in_set;
    const char *name;
    bool (*play)(test_t *test, unsigned node); /* from its begin to its end */
} faults[] = {
    {KILL, "kill", kill_node},
    {FREEZE, "freeze", freeze_node},
    {CUT, "cut", cut_node},
    {SLOW_LINK, "slow", slow_node},
};
#define N_FAULTS (sizeof faults / sizeof faults[0])

static bool
start_job(test_t *test)
{
    adders_args_t job = {.endpoint = test->cluster.nodes[0].control,
                         .n_workers = 4,
                         .max_delay = 2,
                         .seed = test->plan.seed + test->n_rounds,
                         .n_rows = 600,
                         .replicas = test->plan.replicas,
                         .ack = test->plan.ack,
                         .timeout_ms = TIMEOUT_MS};

    (void)snprintf(test->job, sizeof test->job, "nodes-%u", test->n_rounds);
    job.job = test->job;
    CHECK(adders_start(&test->adders, &job));
    return adders_wait_acks(&test->adders, 1);
}

/* With another job every time: its rows are gone, and everybody is told. */
static bool
play_loss(test_t *test, unsigned node)
{
    bool good = true;

    adders_drop(&test->adders);
    CHECK(start_job(test));
    CHECK(cluster_kill(&test->cluster, node, SIGKILL));
    CHECK(cluster_restart(&test->cluster, node));
    good = adders_wait_end(&test->adders, ADDER_ROWS_LOST);
    /* Level disk: nothing that was acknowledged at a lower one must be there,
     * and what is there was pushed, once. */
    good = good && adders_check(&test->adders, LEDGER_DISK);
    adders_drop(&test->adders);
    return good;
}

static bool
play(test_t *test)
{
    const struct fault *fault = NULL;
    unsigned node = (unsigned)ps_rng_below(&test->rng, test->plan.nodes);
    bool good = true;

    do {
        fault = &faults[ps_rng_below(&test->rng, N_FAULTS)];
    } while ((fault->in_set & test->plan.faults) == 0);
    if (fault->in_set == KILL && !survives_kill(&test->plan)) {
        good = play_loss(test, node);
    } else {
        adders_mark(&test->adders);
        good = fault->play(test, node);
        adders_mark(&test->adders);
        good = good && adders_wait_acks(&test->adders, RECOVERED);
    }
    if (!good) {
        (void)fprintf(stderr, "in round %u: %s of n%u\n", test->n_rounds,
                      fault->name, node);
    }
    test->n_rounds++;
    return good;
}

static bool
run(test_t *test)
{
    const plan_t *plan = &test->plan;
    const cluster_args_t args = {
        .n_nodes = plan->nodes, .net = plan->net, .config = config};
    bool loses = (plan->faults & KILL) != 0 && !survives_kill(plan);
    time_t end = time(NULL) + plan->seconds;

    test->rng = (ps_rng_t){plan->seed};
    CHECK(cluster_start(&test->cluster, &args));
    CHECK(loses || start_job(test));
    while (plan->seconds > 0 ? time(NULL) < end
                             : test->n_rounds < plan->rounds) {
        CHECK(play(test));
    }
    (void)fprintf(stderr, "%u rounds\n", test->n_rounds);
    return loses || (adders_finish(&test->adders, ADDER_DONE) &&
                     adders_check(&test->adders, plan->ack));
}

/* ---- arguments ---- */

/* The place of a word in a list; n when it is not there. */
static unsigned
place_of(const char *word, size_t size, const char *const *words, unsigned n)
{
    unsigned i = 0;

    while (i < n &&
           (strlen(words[i]) != size || strncmp(words[i], word, size) != 0)) {
        i++;
    }
    return i;
}

static bool
read_faults(const char *text, plan_t *plan)
{
    static const char *const words[] = {"kill", "freeze", "cut", "slow"};

    plan->faults = 0;
    while (*text != '\0') {
        size_t size = strcspn(text, "+");
        unsigned place = place_of(text, size, words, 4);

        if (place == 4) {
            return false;
        }
        plan->faults |= 1U << place;
        text += size + (text[size] == '+' ? 1 : 0);
    }
    return plan->faults != 0;
}

static bool
read_number(plan_t *plan, unsigned key, const char *text)
{
    char *end = NULL;
    unsigned long long number = 0;

    errno = 0;
    number = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0) {
        return false;
    }
    switch (key) {
    case 0:
        plan->nodes = (unsigned)number;
        return number >= 1 && number <= CLUSTER_NODES_MAX;
    case 1:
        plan->replicas = (unsigned)number;
        return number >= 1 && number <= CLUSTER_NODES_MAX;
    case 2:
        plan->rounds = (unsigned)number;
        return true;
    case 3:
        plan->seed = number;
        return true;
    default:
        plan->seconds = (time_t)number;
        return true;
    }
}

static bool
read_one(plan_t *plan, const char *text)
{
    static const char *const keys[] = {"nodes", "replicas", "rounds", "seed",
                                       "seconds"};
    static const char *const levels[] = {"memory", "replica", "disk"};
    static const char *const nets[] = {"proxy", "netns"};
    size_t size = strcspn(text, "=");
    const char *value = text + size + (text[size] == '=' ? 1 : 0);
    unsigned place = place_of(text, size, keys, 5);

    if (place < 5) {
        return read_number(plan, place, value);
    }
    if (size == 6 && strncmp(text, "faults", size) == 0) {
        return read_faults(value, plan);
    }
    if (size == 3 && strncmp(text, "ack", size) == 0) {
        place = place_of(value, strlen(value), levels, 3);
        plan->ack = (ledger_level_t)(LEDGER_MEMORY + place);
        return place < 3;
    }
    if (size == 3 && strncmp(text, "net", size) == 0) {
        place = place_of(value, strlen(value), nets, 2);
        plan->net = place == 0 ? CLUSTER_PROXY : CLUSTER_NETNS;
        return place < 2;
    }
    return false;
}

int
main(int argc, char **argv)
{
    static test_t test = {.plan = {.nodes = 1,
                                   .replicas = 1,
                                   .ack = LEDGER_MEMORY,
                                   .faults = FREEZE | CUT | SLOW_LINK,
                                   .net = CLUSTER_PROXY,
                                   .rounds = 6,
                                   .seed = 1}};
    int exit_code = 0;
    bool good = false;

    if (adder_main(argc, argv, &exit_code)) {
        return exit_code;
    }
    for (int i = 1; i < argc; i++) {
        if (!read_one(&test.plan, argv[i])) {
            (void)fprintf(stderr, "not understood: %s\n", argv[i]);
            return 2;
        }
    }
    if (!cluster_can(test.plan.net)) {
        return SKIPPED;
    }
    good = run(&test);
    adders_drop(&test.adders);
    cluster_drop(&test.cluster, !good);
    return good ? 0 : 1;
}
