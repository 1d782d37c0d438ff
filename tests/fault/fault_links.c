/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links that fail while four workers push integer adds in SSP
 *
 * Cuts at random bytes, ways that hold or lose everything (one or both),
 * resets, refused connections, slow and late links, a daemon that is frozen.
 * After each the job goes on; at the end the sums are exact: one daemon that
 * lives loses nothing and applies nothing twice, and it does not grow.
 *
 * fault_links [N_FAULTS [SEED [SECONDS]]]: with SECONDS as many faults as fit.
 */
#include <stdlib.h>
#include <time.h>

#include "adders.h"
#include "base/rng.h"
#include "support/check.h"
#include "support/cluster.h"

#define N_FAULTS 14 /* each kind once, then as the seed has it */
#define SEED 4
#define TIMEOUT_MS 300
#define RECOVERED 3 /* pushes of each worker */
#define WARM_UP 11  /* faults before the memory is looked at */
#define GROWTH_MAX ((uint64_t)64 << 20)
#define CUT_WITHIN 6000 /* bytes: a few messages */
#define WAIT_MS 60000
/* Bytes in a second. At 20000 what four workers send again fills the way, and
 * nobody gets on; at 40000 they do. */
#define SLOWEST 100000
#define N_KINDS 11

/* A worker may be unheard for longer than any of the faults lasts. */
static const char config[] = "shards: 2\n"
                             "workers:\n"
                             "  heartbeat_ms: 100\n"
                             "  lost_after_ms: 120000\n";

typedef struct test {
    cluster_t cluster;
    tcp_proxy_t *proxy;
    adders_t adders;
    ps_rng_t rng;
    uint64_t resident;          /* of the daemon, after the warm-up */
    uint64_t n[N_KINDS];        /* faults */
    uint64_t felt_ms[N_KINDS];  /* the longest, until everybody had felt it */
    uint64_t again_ms[N_KINDS]; /* … from its end until everybody went on */
} test_t;

static bool cut_more_than(const tcp_counts_t *counts, uint64_t number)
{
    return counts->n_cut > number;
}

static bool cut_one(test_t *test, tcp_way_t way)
{
    tcp_counts_t counts = {0};

    tcp_proxy_counts(test->proxy, &counts);
    tcp_proxy_cut_after(test->proxy, way, ps_rng_below(&test->rng, CUT_WITHIN),
                        ps_rng_below(&test->rng, 2) == 0);
    return tcp_proxy_wait(test->proxy, cut_more_than, counts.n_cut, WAIT_MS);
}

static bool cut_in(test_t *test)
{
    return cut_one(test, TCP_WAY_IN);
}

static bool cut_out(test_t *test)
{
    return cut_one(test, TCP_WAY_OUT);
}

/* Half-open: until everybody has noticed. */
static bool hold(test_t *test)
{
    unsigned ways = 1 + (unsigned)ps_rng_below(&test->rng, 3);

    return cluster_set_link(&test->cluster, 0, (ways & 1) == 0, (ways & 2) == 0) &&
           adders_wait_deadlines(&test->adders, 1);
}

static bool lose(test_t *test)
{
    unsigned ways = 1 + (unsigned)ps_rng_below(&test->rng, 3);

    for (unsigned way = 0; way < 2; way++) {
        tcp_proxy_set_flow(test->proxy, (tcp_way_t)way,
                           (ways >> way & 1) != 0 ? TCP_FLOW_DROP : TCP_FLOW_PASS);
    }
    return adders_wait_deadlines(&test->adders, 1);
}

static bool reset(test_t *test)
{
    tcp_proxy_reset(test->proxy);
    return true;
}

/* Some resets one after the other, each as soon as somebody is back. */
static bool reset_often(test_t *test)
{
    for (uint64_t n = 2 + ps_rng_below(&test->rng, 3); n > 0; n--) {
        if (!cut_one(test, (tcp_way_t)ps_rng_below(&test->rng, 2))) {
            return false;
        }
        tcp_proxy_reset(test->proxy);
    }
    return true;
}

static bool refuse(test_t *test)
{
    if (!tcp_proxy_accept(test->proxy, false)) {
        return false;
    }
    tcp_proxy_reset(test->proxy);
    return adders_wait_deadlines(&test->adders, 1);
}

static bool slow(test_t *test)
{
    return cluster_set_rate(&test->cluster, 0, SLOWEST + ps_rng_below(&test->rng, SLOWEST)) &&
           adders_wait_acks(&test->adders, RECOVERED);
}

static bool late(test_t *test)
{
    for (unsigned way = 0; way < 2; way++) {
        tcp_proxy_set_delay(test->proxy, (tcp_way_t)way, (uint32_t)ps_rng_below(&test->rng, 60));
    }
    return adders_wait_acks(&test->adders, RECOVERED);
}

/* Later than the calls' time: answers come when nobody waits any more. */
static bool too_late(test_t *test)
{
    tcp_proxy_set_delay(test->proxy, (tcp_way_t)ps_rng_below(&test->rng, 2),
                        TIMEOUT_MS + (uint32_t)ps_rng_below(&test->rng, 300));
    return adders_wait_deadlines(&test->adders, 2);
}

static bool freeze(test_t *test)
{
    bool good = cluster_freeze(&test->cluster, 0) && adders_wait_deadlines(&test->adders, 2);

    return cluster_thaw(&test->cluster, 0) && good;
}

static const struct fault {
    const char *name;
    bool (*begin)(test_t *test); /* and waits until it has been felt */
} faults[N_KINDS] = {
    {"cut in", cut_in}, {"cut out", cut_out},         {"hold", hold},     {"lose", lose},
    {"reset", reset},   {"reset often", reset_often}, {"refuse", refuse}, {"slow", slow},
    {"late", late},     {"too late", too_late},       {"freeze", freeze},
};

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void keep_longest(uint64_t *longest_ms, uint64_t *begin_ms)
{
    uint64_t now = now_ms();

    if (now - *begin_ms > *longest_ms) {
        *longest_ms = now - *begin_ms;
    }
    *begin_ms = now;
}

static bool is_bounded(test_t *test, unsigned n_faults)
{
    uint64_t resident = cluster_resident(&test->cluster, 0);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    resident = 1; /* what was freed is kept there */
#endif
    CHECK(resident > 0);
    if (n_faults == WARM_UP) {
        test->resident = resident;
    }
    if (n_faults > WARM_UP && resident > test->resident + GROWTH_MAX) {
        (void)fprintf(stderr, "the daemon grew from %llu to %llu bytes\n",
                      (unsigned long long)test->resident, (unsigned long long)resident);
        return false;
    }
    return true;
}

static bool play(test_t *test, unsigned number)
{
    /* Each kind once, then as the seed has it. */
    uint64_t kind = number < N_KINDS ? number : ps_rng_below(&test->rng, N_KINDS);
    uint64_t at_ms = now_ms();
    bool good = false;

    adders_mark(&test->adders);
    good = faults[kind].begin(test);
    keep_longest(&test->felt_ms[kind], &at_ms);
    good = tcp_proxy_heal(test->proxy) && good;
    adders_mark(&test->adders);
    good = good && adders_wait_acks(&test->adders, RECOVERED) && is_bounded(test, number + 1);
    keep_longest(&test->again_ms[kind], &at_ms);
    test->n[kind]++;
    if (!good) {
        (void)fprintf(stderr, "in fault %u: %s\n", number, faults[kind].name);
    }
    return good;
}

static void tell(const test_t *test)
{
    for (size_t i = 0; i < N_KINDS; i++) {
        (void)fprintf(stderr,
                      "%-12s %5llu times, felt after %6llu ms at most, over "
                      "%6llu ms later\n",
                      faults[i].name, (unsigned long long)test->n[i],
                      (unsigned long long)test->felt_ms[i], (unsigned long long)test->again_ms[i]);
    }
}

static bool run(test_t *test, unsigned n_faults, uint64_t seed, time_t seconds)
{
    const cluster_args_t args = {.n_nodes = 1, .net = CLUSTER_PROXY, .config = config};
    adders_args_t job = {.job = "links",
                         .n_workers = 4,
                         .max_delay = 2,
                         .seed = seed,
                         .n_rows = 600,
                         .replicas = 1,
                         .ack = LEDGER_MEMORY,
                         .timeout_ms = TIMEOUT_MS};
    time_t end = time(NULL) + seconds;
    unsigned i = 0;

    test->rng = (ps_rng_t){seed};
    CHECK(cluster_start(&test->cluster, &args));
    test->proxy = test->cluster.nodes[0].proxy;
    job.endpoint = test->cluster.nodes[0].control;
    CHECK(adders_start(&test->adders, &job));
    CHECK(adders_wait_acks(&test->adders, 1));
    for (i = 0; seconds > 0 ? time(NULL) < end : i < n_faults; i++) {
        CHECK(play(test, i));
    }
    CHECK(adders_finish(&test->adders, ADDER_DONE));
    tell(test);
    (void)fprintf(stderr, "%u faults, seed %llu, daemon of %llu KiB\n", i, (unsigned long long)seed,
                  (unsigned long long)cluster_resident(&test->cluster, 0) / 1024);
    return adders_check(&test->adders, LEDGER_MEMORY);
}

int main(int argc, char **argv)
{
    static test_t test;
    int exit_code = 0;
    bool good = false;

    if (adder_main(argc, argv, &exit_code)) {
        return exit_code;
    }
    good = run(&test, argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : N_FAULTS,
               argc > 2 ? strtoull(argv[2], NULL, 10) : SEED,
               argc > 3 ? (time_t)strtol(argv[3], NULL, 10) : 0);
    adders_drop(&test.adders);
    cluster_drop(&test.cluster, !good);
    return good ? 0 : 1;
}
