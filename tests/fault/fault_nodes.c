/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that are killed, frozen and cut off while a job of integer adds runs
 *
 * A round: a random node, a random fault of those allowed, until everybody has
 * felt it or, where copies take over, until everybody has gone on; then the
 * node comes back, everybody goes on, and the copies become whole again. At the
 * end the ledger. Who waits is told why: that question is asked every time.
 *
 * What survives a kill follows from the table: with one copy in memory nothing
 * does. Then a round is a job of its own, and its workers must be told so, all
 * of them, and no row may have a wrong value after it.
 *
 * fault_nodes KEY=VALUE…: nodes, replicas, ack (memory, replica, disk), faults
 * (kill, freeze, cut, slow, all, full, away; joined by +), net (proxy, netns),
 * rounds, seed, seconds (instead of rounds), logs (1: those of the nodes are
 * printed), apart (1: the registry's node has no copies), moves (1: a node
 * joins, others drain and come back, and faults fall into the middle of that),
 * why (1: of every wait over a second the client, `why` and `cluster status`
 * are asked, and each must name a cause).
 * all kills every node at once; full takes the room of a node's disk; away is
 * for apart only.
 * 77: this machine does not allow the net, or the disk.
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "adders.h"
#include "asker.h"
#include "base/rng.h"
#include "moves.h"
#include "plan.h"
#include "support/check.h"
#include "support/cluster.h"
#include "support/tmpfs.h"
#include "view.h"

#define TIMEOUT_MS 300
#define FULL_LOOKS 24000 /* for the word of a full disk, … */
#define FULL_LOOK_MS 5   /* … so far apart */
#define RECOVERED 3      /* pushes of each worker */
#define ROWS 600         /* of the table; those of moves are more */
#define BEGUN 3          /* pushes at most, from a move's begin to its fault */
#define SLOW 200000      /* bytes in a second */
#define SKIPPED 77

#define DISK_BYTES (UINT64_C(48) << 20)
#define WHY_SIZE 4096

#define CONFIG                        \
    "shards: 2\n"                     \
    "disk:\n"                         \
    "  segment_bytes: 64KiB\n"        \
    "  snapshot_after_bytes: 64KiB\n" \
    "workers:\n"                      \
    "  heartbeat_ms: 100\n"           \
    "  lost_after_ms: 120000\n"
/* A primary that is on its way when the registry goes is nowhere until that is
 * back. */
#define STILL_CONFIG "copies:\n  even_out: false\n"

typedef struct test {
    plan_t plan;
    cluster_t cluster;
    adders_t adders;
    view_t view;
    moves_t moves;
    asker_t asker;
    ps_rng_t rng;
    unsigned n_rounds;
    unsigned n_kills;
    char job[ADDERS_TEXT]; /* the name of the one that runs */
} test_t;

/* Who waits is told something, whatever has failed. */
static bool ask_why(test_t *test)
{
    char text[WHY_SIZE];

    return view_why(&test->view, test->job, text, sizeof text);
}

/* Nobody can go on without a node that is frozen, and who waits is told that it
 * is this one. */
static bool freeze_is_named(test_t *test, unsigned node)
{
    char text[WHY_SIZE];

    CHECK(adders_wait_deadlines(&test->adders, 6));
    CHECK(view_why(&test->view, test->job, text, sizeof text));
    if (strstr(text, test->cluster.nodes[node].name) == NULL) {
        (void)fprintf(stderr, "%s is frozen; why says: %s\n", test->cluster.nodes[node].name, text);
        return false;
    }
    return true;
}

/* The fault is there: everybody has felt it, or has gone on in spite of it. */
static bool wait_felt(test_t *test, unsigned node)
{
    if (plan_goes_on_without(&test->plan, node)) {
        adders_mark(&test->adders);
        return adders_wait_acks(&test->adders, RECOVERED) && ask_why(test);
    }
    /* A node that gives its copies away, or gets some, may have none; so may
     * one that came back from another fault, where copies move by themselves.
     */
    if (test->plan.moves != 0 || test->plan.replicas > 1) {
        return adders_wait_either(&test->adders, RECOVERED);
    }
    return adders_wait_deadlines(&test->adders, 1) && (node == 0 || ask_why(test));
}

static bool kill_node(test_t *test, unsigned node)
{
    CHECK(cluster_kill(&test->cluster, node, SIGKILL));
    test->n_kills++;
    if (plan_goes_on_without(&test->plan, node)) {
        CHECK(wait_felt(test, node));
    }
    CHECK(cluster_restart(&test->cluster, node));
    return true;
}

static bool kill_all(test_t *test, unsigned node)
{
    unsigned n = test->cluster.n_nodes;

    for (unsigned i = 0; i < n; i++) {
        CHECK(cluster_kill(&test->cluster, (node + i) % n, SIGKILL));
    }
    test->n_kills += n;
    CHECK(cluster_restart_all(&test->cluster, (unsigned)ps_rng_below(&test->rng, n)));
    return true;
}

/* The node says so, when its next push finds no room: the last page of a file
 * may have some yet. */
static bool wait_full(test_t *test, unsigned node)
{
    const struct timespec gap = {.tv_nsec = FULL_LOOK_MS * 1000000L};

    for (int i = 0; i < FULL_LOOKS; i++) {
        if (cluster_log_has(&test->cluster, node, " disk_full ")) {
            return true;
        }
        adders_mark(&test->adders); /* takes their reports, so they go on */
        (void)nanosleep(&gap, NULL);
    }
    (void)fprintf(stderr, "n%u never said that its disk is full\n", node);
    return false;
}

/* At level disk its partitions go on elsewhere, when it has been slow for long
 * enough. It says so, and works again by itself. */
static bool fill_disk(test_t *test, unsigned node)
{
    bool good =
        cluster_fill(&test->cluster, node) && wait_full(test, node) && wait_felt(test, node);

    return cluster_empty(&test->cluster, node) && good;
}

static bool freeze_node(test_t *test, unsigned node)
{
    bool good = cluster_freeze(&test->cluster, node) && wait_felt(test, node);

    if (good && test->plan.replicas < 2 && test->plan.moves == 0 && node != 0) {
        good = freeze_is_named(test, node);
    }
    return cluster_thaw(&test->cluster, node) && good;
}

static bool cut_node(test_t *test, unsigned node)
{
    unsigned ways = 1 + (unsigned)ps_rng_below(&test->rng, 3);
    bool good = cluster_set_link(&test->cluster, node, (ways & 1) == 0, (ways & 2) == 0) &&
                wait_felt(test, node);

    return cluster_set_link(&test->cluster, node, true, true) && good;
}

static bool slow_node(test_t *test, unsigned node)
{
    bool good =
        cluster_set_rate(&test->cluster, node, SLOW) && adders_wait_acks(&test->adders, RECOVERED);

    return cluster_set_rate(&test->cluster, node, 0) && good;
}

/* Who serves goes on without the registry. It finds who was lost meanwhile when
 * it is back. What had no primary before has none until then. */
static bool lose_registry(test_t *test, unsigned node)
{
    unsigned how = (unsigned)ps_rng_below(&test->rng, 3);

    CHECK(test->plan.replicas < 2 || view_wait_whole(&test->view, test->job, test->plan.replicas));
    if (how == 0) {
        CHECK(cluster_freeze(&test->cluster, 0));
    } else {
        CHECK(cluster_kill(&test->cluster, 0, SIGKILL));
        test->n_kills++;
    }
    adders_mark(&test->adders);
    CHECK(adders_wait_acks(&test->adders, RECOVERED));
    if (how == 0) {
        return cluster_thaw(&test->cluster, 0);
    }
    if (how == 1 || node == 0) {
        return cluster_restart(&test->cluster, 0);
    }
    CHECK(cluster_kill(&test->cluster, node, SIGKILL));
    test->n_kills++;
    CHECK(cluster_restart(&test->cluster, 0));
    if (plan_goes_on_without(&test->plan, node)) {
        CHECK(wait_felt(test, node));
    }
    return cluster_restart(&test->cluster, node);
}

static const struct fault {
    unsigned in_set;
    const char *name;
    bool (*play)(test_t *test, unsigned node); /* from its begin to its end */
} faults[] = {
    {FAULT_KILL, "kill", kill_node},
    {FAULT_FREEZE, "freeze", freeze_node},
    {FAULT_CUT, "cut", cut_node},
    {FAULT_SLOW, "slow", slow_node},
    {FAULT_ALL, "kill of all", kill_all},
    {FAULT_FULL, "full disk", fill_disk},
    {FAULT_AWAY, "lost registry", lose_registry},
};
#define N_FAULTS (sizeof faults / sizeof faults[0])

static bool start_job(test_t *test)
{
    adders_args_t job = {.endpoint = test->cluster.nodes[0].control,
                         .n_workers = 4,
                         .max_delay = 2,
                         .seed = test->plan.seed + test->n_rounds,
                         .n_rows = test->plan.moves != 0 ? MOVES_ROWS : ROWS,
                         .replicas = test->plan.replicas,
                         .ack = test->plan.ack,
                         .timeout_ms = TIMEOUT_MS};

    (void)snprintf(test->job, sizeof test->job, "nodes-%u", test->n_rounds);
    job.job = test->job;
    CHECK(adders_start(&test->adders, &job));
    CHECK(test->plan.why == 0 || asker_start(&test->asker, &test->cluster, &test->adders));
    return adders_wait_acks(&test->adders, 1);
}

/* With another job every time: its rows are gone, and everybody is told. */
static bool play_loss(test_t *test, unsigned node)
{
    bool good = true;

    CHECK(start_job(test));
    CHECK(cluster_kill(&test->cluster, node, SIGKILL));
    CHECK(cluster_restart(&test->cluster, node));
    good = adders_wait_end(&test->adders, ADDER_ROWS_LOST);
    /* Level disk: nothing that was acknowledged at a lower one must be there,
     * and what is there was pushed, once. */
    good = good && adders_check(&test->adders, LEDGER_DISK);
    good = asker_stop(&test->asker) && good;
    adders_drop(&test->adders);
    return good;
}

/* A fault, alone or in the middle of a move, until all is whole again. */
static bool play_fault(test_t *test, const struct fault *fault, unsigned node)
{
    adders_mark(&test->adders);
    if (test->plan.moves != 0) {
        CHECK(moves_begin(&test->moves, &test->rng));
        CHECK(adders_wait_acks(&test->adders, ps_rng_below(&test->rng, BEGUN)));
        adders_mark(&test->adders);
    }
    CHECK(fault->play(test, node));
    adders_mark(&test->adders);
    CHECK(adders_wait_acks(&test->adders, RECOVERED));
    CHECK(test->plan.moves == 0 || moves_end(&test->moves));
    return test->plan.replicas < 2 || view_wait_whole(&test->view, test->job, test->plan.replicas);
}

static bool play(test_t *test)
{
    const struct fault *fault = NULL;
    unsigned node = (unsigned)ps_rng_below(&test->rng, test->cluster.n_nodes);
    bool good = true;

    do {
        fault = &faults[ps_rng_below(&test->rng, N_FAULTS)];
    } while ((fault->in_set & test->plan.faults) == 0);
    good = fault->in_set == FAULT_KILL && !plan_survives(&test->plan)
               ? play_loss(test, node)
               : play_fault(test, fault, node);
    if (!good) {
        (void)fprintf(stderr, "in round %u: %s of n%u\n", test->n_rounds, fault->name, node);
    }
    test->n_rounds++;
    return good;
}

static bool run(test_t *test)
{
    const plan_t *plan = &test->plan;
    const cluster_args_t args = {.n_nodes = plan->nodes,
                                 .net = plan->net,
                                 .config = plan->moves != 0                   ? CONFIG MOVES_CONFIG
                                           : (plan->faults & FAULT_AWAY) != 0 ? CONFIG STILL_CONFIG
                                                                              : CONFIG,
                                 .data_bytes = (plan->faults & FAULT_FULL) != 0 ? DISK_BYTES : 0};
    bool loses = (plan->faults & FAULT_KILL) != 0 && !plan_survives(plan);
    time_t end = time(NULL) + plan->seconds;

    test->rng = (ps_rng_t){plan->seed};
    CHECK(cluster_start(&test->cluster, &args));
    CHECK(view_open(&test->view, test->cluster.nodes[0].control));
    test->moves = (moves_t){.cluster = &test->cluster, .view = &test->view};
    CHECK(plan->apart == 0 || view_drain(&test->view, test->cluster.nodes[0].name, false));
    CHECK(loses || start_job(test));
    while (plan->seconds > 0 ? time(NULL) < end : test->n_rounds < plan->rounds) {
        CHECK(play(test));
    }
    CHECK(asker_stop(&test->asker));
    return loses ||
           (adders_finish(&test->adders, ADDER_DONE) && adders_check(&test->adders, plan->ack));
}

int main(int argc, char **argv)
{
    static test_t test = {.plan = {.nodes = 1,
                                   .replicas = 1,
                                   .ack = LEDGER_MEMORY,
                                   .faults = FAULT_FREEZE | FAULT_CUT | FAULT_SLOW,
                                   .net = CLUSTER_PROXY,
                                   .rounds = 6,
                                   .seed = 1}};
    int exit_code = 0;
    bool good = false;

    if (adder_main(argc, argv, &exit_code)) {
        return exit_code;
    }
    for (int i = 1; i < argc; i++) {
        if (!plan_read(&test.plan, argv[i])) {
            (void)fprintf(stderr, "not understood: %s\n", argv[i]);
            return 2;
        }
    }
    if (!cluster_can(test.plan.net) || ((test.plan.faults & FAULT_FULL) != 0 && !tmpfs_can())) {
        return SKIPPED;
    }
    good = run(&test);
    (void)fprintf(stderr, "%u rounds, %u kills: %s\n", test.n_rounds, test.n_kills,
                  good ? "good" : "FAILED");
    (void)asker_stop(&test.asker); /* of a run that failed */
    adders_drop(&test.adders);
    view_close(&test.view);
    cluster_drop(&test.cluster, !good || test.plan.logs != 0);
    return good ? 0 : 1;
}
