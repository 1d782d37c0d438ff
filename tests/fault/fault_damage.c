/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a node that has ended are damaged while a job of integer adds runs
 *
 * A round: a node is killed, and one of its files, of each kind in turn, gets a
 * flipped bit or is cut at a random place; psd names the file and the byte.
 * With copies it may be gone as a whole: what it had comes from the others.
 * With one copy it does not start, unless nothing was lost; then the file is
 * put back. With more it starts, but for what says who it is, and has what it
 * lost from the others again. At the end the ledger: whatever was acknowledged
 * at level disk is there, once.
 *
 * fault_damage KEY=VALUE…: those of fault_nodes; faults and net count for
 * nothing. With moves=1 the node has often given all its copies away before,
 * and got others: rows that were sent, not records. 200 places of each kind:
 * rounds=1000 nodes=3 replicas=2.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "adders.h"
#include "plan.h"
#include "support/check.h"
#include "support/cluster.h"
#include "victim.h"
#include "view.h"

#define JOB "damage"
#define NODE 1      /* the registry's file has a test of its own */
#define RECOVERED 2 /* pushes of each worker */
#define FULL 300    /* … until there are snapshots */
#define ACKS_EVERY 4
#define MOVES_EVERY 4
#define TRIES 40 /* to find a file of a kind */
#define SURE 4   /* rounds of a kind in which there is one */
#define LOG_SIZE (1 << 20)

static const char config[] = "shards: 2\n"
                             "disk:\n"
                             "  segment_bytes: 64KiB\n"
                             "  snapshot_after_bytes: 64KiB\n"
                             "workers:\n"
                             "  heartbeat_ms: 100\n"
                             "  lost_after_ms: 120000\n";

/* What a file's name begins with, and where it lies. */
static const char *const kinds[] = {"log-0",       "snap-",     "table-",
                                    "log-flushed", "inventory", "member.json"};
#define N_KINDS (sizeof kinds / sizeof kinds[0])
#define MEMBER (N_KINDS - 1)

typedef struct test {
    plan_t plan;
    cluster_t cluster;
    adders_t adders;
    view_t view;
    ps_rng_t rng;
    unsigned n_rounds;
    unsigned n_refused[N_KINDS];
    unsigned n_started[N_KINDS];
    unsigned n_gone;    /* files that were removed, … */
    unsigned n_unnamed; /* … and not missed: nothing showed that they were */
} test_t;

typedef enum harm { FLIPPED, CUT, GONE } harm_t;

static void data_path(const test_t *test, const char *name, char ret[PATH_MAX])
{
    (void)snprintf(ret, PATH_MAX, "%.3000s/n%u/%s", test->cluster.dir.path, NODE, name);
}

/* A file of that kind that counts, in one of the shards' directories, if there
 * is one. */
static bool find_file(test_t *test, const char *kind, victim_t *victim)
{
    char dir[PATH_MAX];
    char name[32] = "data";

    if (strcmp(kind, "member.json") != 0) {
        (void)snprintf(name, sizeof name, "data/log-%u", (unsigned)ps_rng_below(&test->rng, 2));
    }
    data_path(test, name, dir);
    return victim_find(victim, dir, kind, &test->rng);
}

/* Flips a bit, cuts, or removes where there are other copies. */
static bool damage(test_t *test, victim_t *victim, size_t *ret_at, harm_t *ret_harm)
{
    static const harm_t harms[] = {FLIPPED, FLIPPED, FLIPPED, CUT, CUT, GONE};
    uint8_t bit = (uint8_t)(1U << ps_rng_below(&test->rng, 8));
    bool good = false;

    *ret_harm = harms[ps_rng_below(&test->rng, sizeof harms / sizeof *harms -
                                                   (test->plan.replicas < 2 ? 1 : 0))];
    *ret_at = (size_t)ps_rng_below(&test->rng, victim->size);
    if (*ret_harm == GONE) {
        return unlink(victim->path) == 0;
    }
    if (*ret_harm == CUT) {
        return victim_write(victim, *ret_at);
    }
    victim->bytes[*ret_at] ^= bit;
    good = victim_write(victim, victim->size);
    victim->bytes[*ret_at] ^= bit;
    return good;
}

/* A line that begins so, behind the time, with the file and a byte. */
static bool has_line(const char *text, const char *what, const char *name)
{
    const char *line = strstr(text, what);

    while (line != NULL) {
        size_t size = strcspn(line, "\n");
        const char *named = strstr(line, name);
        const char *byte = strstr(line, "byte");

        if (named != NULL && byte != NULL && named < line + size && byte < line + size) {
            return true;
        }
        line = strstr(line + size, what);
    }
    return false;
}

static bool read_log(const test_t *test, long since, char ret_text[LOG_SIZE])
{
    char path[PATH_MAX];
    FILE *file = NULL;
    size_t n = 0;

    data_path(test, "log", path);
    file = fopen(path, "re");
    CHECK(file != NULL && fseek(file, since, SEEK_SET) == 0);
    n = fread(ret_text, 1, LOG_SIZE - 1, file);
    ret_text[n] = '\0';
    (void)fclose(file);
    return true;
}

/* What psd has logged since then names the file and a byte. What was written
 * and not flushed may be torn, and so may be one slot of what was flushed. */
static bool says(const test_t *test, long since, const char *name, bool refused)
{
    static char text[LOG_SIZE];

    CHECK(read_log(test, since, text));
    /* Of several files psd refuses with the first one, and logs them all. */
    if (has_line(text, " damaged ", name) || (refused && has_line(text, "psd: E", name)) ||
        (!refused &&
         (strstr(text, "flushed_note_torn") != NULL || strstr(text, "torn_tail_cut") != NULL))) {
        return true;
    }
    (void)fprintf(stderr, "wanted %s and a byte in: %s\n", name, text);
    return false;
}

/* What is in the inventory is named; of a segment, records that only it had are
 * missed. */
static bool note_gone(test_t *test, long since, const victim_t *victim, bool refused)
{
    static char text[LOG_SIZE];

    CHECK(read_log(test, since, text));
    test->n_gone++;
    test->n_unnamed += strstr(text, refused ? "psd: E" : " damaged ") == NULL ? 1 : 0;
    CHECK(!victim->is_listed || has_line(text, " damaged ", victim->name));
    return true;
}

static bool is_noticed(test_t *test, long since, const victim_t *victim, harm_t harm, bool refused)
{
    return harm == GONE ? note_gone(test, since, victim, refused)
                        : says(test, since, victim->name, refused);
}

static long log_size(const test_t *test)
{
    struct stat info;
    char path[PATH_MAX];

    data_path(test, "log", path);
    return stat(path, &info) == 0 ? (long)info.st_size : 0;
}

static bool play(test_t *test, unsigned kind)
{
    victim_t victim = {.size = 0};
    long since = log_size(test);
    size_t at = 0;
    harm_t harm = FLIPPED;
    bool good = true;

    CHECK(cluster_kill(&test->cluster, NODE, SIGKILL));
    for (int i = 0; i < TRIES && victim.path[0] == '\0'; i++) {
        CHECK(find_file(test, kinds[kind], &victim));
    }
    if (victim.path[0] != '\0') {
        CHECK(damage(test, &victim, &at, &harm));
    }
    if (cluster_restart(&test->cluster, NODE)) {
        test->n_started[kind] += victim.path[0] != '\0' ? 1 : 0;
        good = victim.path[0] == '\0' || is_noticed(test, since, &victim, harm, false);
    } else {
        test->n_refused[kind]++;
        good = (kind == MEMBER || test->plan.replicas < 2) &&
               is_noticed(test, since, &victim, harm, true) && victim_write(&victim, victim.size) &&
               cluster_restart(&test->cluster, NODE);
    }
    good =
        good && (test->plan.replicas < 2 || view_wait_whole(&test->view, JOB, test->plan.replicas));
    if (!good) {
        (void)fprintf(stderr, "%s %s at %zu of %zu\n", victim.path,
                      harm == FLIPPED ? "flipped"
                      : harm == CUT   ? "cut"
                                      : "gone",
                      at, victim.size);
    }
    victim_done(&victim);
    return good;
}

/* It gives all its copies away, and gets others: of rows that were sent. */
static bool move_away_and_back(test_t *test)
{
    const char *node = test->cluster.nodes[NODE].name;

    CHECK(view_drain(&test->view, node, false));
    CHECK(view_wait_drained(&test->view, node));
    CHECK(view_drain(&test->view, node, true));
    /* With one it would be killed before it gets more, again and again. */
    return view_wait_copies(&test->view, node, 2 * test->plan.replicas) &&
           view_wait_whole(&test->view, JOB, test->plan.replicas);
}

static bool run(test_t *test)
{
    const plan_t *plan = &test->plan;
    const cluster_args_t args = {.n_nodes = plan->nodes, .net = CLUSTER_DIRECT, .config = config};
    adders_args_t job = {.job = JOB,
                         .n_workers = 4,
                         .max_delay = 2,
                         .seed = plan->seed,
                         .n_rows = 600,
                         .replicas = plan->replicas,
                         .ack = plan->ack,
                         .timeout_ms = 300};

    test->rng = (ps_rng_t){plan->seed};
    CHECK(cluster_start(&test->cluster, &args));
    job.endpoint = test->cluster.nodes[0].control;
    CHECK(view_open(&test->view, test->cluster.nodes[0].control));
    CHECK(adders_start(&test->adders, &job));
    adders_mark(&test->adders);
    CHECK(adders_wait_acks(&test->adders, FULL));
    for (unsigned i = 0; i < plan->rounds; i++) {
        if (i % ACKS_EVERY == 0) {
            adders_mark(&test->adders);
            CHECK(adders_wait_acks(&test->adders, RECOVERED));
        }
        CHECK(plan->moves == 0 || i % MOVES_EVERY != 0 || move_away_and_back(test));
        CHECK(play(test, i % N_KINDS));
        test->n_rounds++;
    }
    for (unsigned i = 0; i < N_KINDS; i++) {
        CHECK(test->n_started[i] + test->n_refused[i] > 0 || plan->rounds / N_KINDS < SURE);
    }
    CHECK(adders_finish(&test->adders, ADDER_DONE));
    return adders_check(&test->adders, plan->ack);
}

int main(int argc, char **argv)
{
    static test_t test = {
        .plan = {.nodes = 2, .replicas = 1, .ack = LEDGER_DISK, .rounds = 20, .seed = 1}};
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
    good = run(&test);
    for (size_t i = 0; i < N_KINDS; i++) {
        (void)fprintf(stderr, "%s…: refused %u times, started %u times\n", kinds[i],
                      test.n_refused[i], test.n_started[i]);
    }
    (void)fprintf(stderr,
                  "%u rounds, %u kills: %u files gone, %u of them not missed: "
                  "%s\n",
                  test.n_rounds, test.n_rounds, test.n_gone, test.n_unnamed,
                  good ? "good" : "FAILED");
    adders_drop(&test.adders);
    view_close(&test.view);
    cluster_drop(&test.cluster, !good);
    return good ? 0 : 1;
}
