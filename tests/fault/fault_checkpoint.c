/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that are killed in the middle of checkpoints, while integer adds go on
 *
 * A round: a checkpoint is begun, a random node is killed before it, in its
 * middle or not at all, and comes back. A checkpoint that has failed says why,
 * and the next one works. It is restored as another table, with a kill as
 * before: a restore that has failed says why, leaves no table, and the next one
 * works. What is restored has all that was acknowledged before the checkpoint
 * began, and nothing twice. At the end the ledger.
 *
 * fault_checkpoint KEY=VALUE…: nodes, replicas, ack, rounds, seed, seconds
 * (instead of rounds), logs, apart (1: the registry's node has no copies, and
 * is the one that is killed, so that one copy in memory loses nothing).
 */
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "adders.h"
#include "base/rng.h"
#include "plan.h"
#include "support/check.h"
#include "support/cluster.h"
#include "view.h"

#define TIMEOUT_MS 300 /* of a worker's call */
#define CALL_MS 30000  /* of a step of a checkpoint */
#define END_MS 120000  /* of all of its steps */
#define STEP_MS 2
#define LOOKS 3     /* at most, from the begin to the kill */
#define RECOVERED 3 /* pushes of each worker */
#define ROWS 30000  /* so many that few pushes of a checkpoint's time meet */
#define TEXT_SIZE 512
#define COPY "back"

#define CONFIG                        \
    "shards: 2\n"                     \
    "disk:\n"                         \
    "  segment_bytes: 64KiB\n"        \
    "  snapshot_after_bytes: 64KiB\n" \
    "workers:\n"                      \
    "  heartbeat_ms: 100\n"           \
    "  lost_after_ms: 120000\n"       \
    "checkpoint:\n"                   \
    "  dir: %s\n"

typedef struct test {
    plan_t plan;
    temp_dir_t dir; /* of checkpoints; all nodes see it */
    char config[sizeof CONFIG + 128];
    cluster_t cluster;
    adders_t adders;
    view_t view;
    ps_rng_t rng;
    unsigned n_rounds;
    unsigned n_kills;
    unsigned n_failed; /* checkpoints and restores, by a kill */
    char name[32];     /* of the checkpoint at hand */
} test_t;

/* One kill, somewhere in a work. */
typedef struct fault {
    int at; /* -1: before it begins; else behind so many looks */
    unsigned node;
    bool is_done;
} fault_t;

static const fault_t no_fault = {.is_done = true};

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void pause_a_step(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
}

/* ---- one checkpoint or restore ---- */

/* Takes the request. *ret_reply: NULL where there is none. */
static psd_status_t ask(test_t *test, json_t *request, json_t **ret_reply)
{
    char *words = json_dumps(request, JSON_COMPACT);
    char *text = NULL;
    psd_status_t rc = PSD_OK;

    *ret_reply = NULL;
    psd_error_clear(test->view.err);
    rc = psd_request(test->view.client, words, CALL_MS, &text, test->view.err);
    if (rc == PSD_OK) {
        *ret_reply = json_loads(text, 0, NULL);
    }
    psd_free(text);
    free(words);
    json_decref(request);
    return rc;
}

/* The registry's node comes back at once, for nobody answers without it. */
static bool play(test_t *test, fault_t *fault)
{
    fault->is_done = true;
    CHECK(cluster_kill(&test->cluster, fault->node, SIGKILL));
    test->n_kills++;
    return fault->node != 0 || cluster_restart(&test->cluster, 0);
}

/* Until it is done, or has failed. */
static psd_status_t look(test_t *test, json_int_t number, fault_t *fault)
{
    uint64_t end_ms = now_ms() + END_MS;
    bool is_done = false;
    psd_status_t rc = PSD_OK;

    for (int i = 0; !is_done && rc == PSD_OK; i++) {
        json_t *reply = NULL;

        if (!fault->is_done && i >= fault->at && !play(test, fault)) {
            return PSD_IO;
        }
        rc = ask(test, json_pack("{s:s,s:I}", "op", "checkpoint_look", "number", number), &reply);
        is_done = json_is_true(json_object_get(reply, "is_done"));
        json_decref(reply);
        if (rc == PSD_DEADLINE && now_ms() < end_ms) {
            rc = PSD_OK; /* its answer was lost with a node */
        }
        if (!is_done && rc == PSD_OK) {
            pause_a_step();
        }
    }
    return rc;
}

/* Whether a text says more than that it went wrong. */
static bool is_reason(const char *text)
{
    static const char *const causes[] = {"node n", "moved", "cancelled", "no node", " are up"};

    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (strstr(text, causes[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Takes the request, and does all of it. *ret_done: it has worked; else it has
 * failed for a reason that it gave. false: it gave none. */
static bool work(test_t *test, json_t *request, fault_t *fault, bool *ret_done)
{
    json_t *reply = NULL;
    psd_status_t rc = PSD_OK;

    if (!fault->is_done && fault->at < 0 && !play(test, fault)) {
        json_decref(request);
        return false;
    }
    rc = ask(test, request, &reply);
    if (rc == PSD_OK) {
        rc = look(test, json_integer_value(json_object_get(reply, "number")), fault);
    }
    json_decref(reply);
    *ret_done = rc == PSD_OK;
    if (rc == PSD_OK) {
        return true;
    }
    if (test->plan.why != 0) {
        (void)fprintf(stderr, "%s: %s\n", psd_status_name(rc), psd_error_text(test->view.err));
    }
    if (rc == PSD_DEADLINE || !is_reason(psd_error_text(test->view.err))) {
        (void)fprintf(stderr, "failed without a reason: %s: %s\n", psd_status_name(rc),
                      psd_error_text(test->view.err));
        return false;
    }
    return true;
}

/* ---- a round ---- */

static void draw(test_t *test, fault_t *ret)
{
    *ret = (fault_t){.at = (int)ps_rng_below(&test->rng, LOOKS + 2) - 1,
                     .node = test->plan.apart != 0
                                 ? 0
                                 : (unsigned)ps_rng_below(&test->rng, test->cluster.n_nodes)};
}

/* Who was killed is back, and everybody goes on. */
static bool recover(test_t *test, const fault_t *fault)
{
    CHECK(fault->node == 0 || !fault->is_done || cluster_restart(&test->cluster, fault->node));
    adders_mark(&test->adders);
    CHECK(adders_wait_acks(&test->adders, RECOVERED));
    return view_wait_whole(&test->view, test->adders.args.job, test->plan.replicas);
}

/* Does it with a kill, and, where that made it fail, again without. What moves
 * meanwhile, as nodes are evened out, may make it fail once more. */
static bool do_it(test_t *test, json_t *(*request)(test_t *test), uint64_t *ret_then)
{
    uint64_t end_ms = 0;
    bool is_done = false;
    fault_t fault;

    draw(test, &fault);
    adders_mark(&test->adders);
    *ret_then = ledger_now(test->adders.ledger);
    CHECK(work(test, request(test), &fault, &is_done));
    CHECK(recover(test, &fault));
    test->n_failed += is_done ? 0 : 1;
    end_ms = now_ms() + END_MS;
    while (!is_done) {
        pause_a_step();
        fault = no_fault;
        adders_mark(&test->adders);
        *ret_then = ledger_now(test->adders.ledger);
        CHECK(work(test, request(test), &fault, &is_done));
        if (!is_done && now_ms() >= end_ms) {
            (void)fprintf(stderr, "the next one does not work: %s\n",
                          psd_error_text(test->view.err));
            return false;
        }
    }
    return true;
}

static json_t *create(test_t *test)
{
    static unsigned n;

    (void)snprintf(test->name, sizeof test->name, "c%u", n++);
    return json_pack("{s:s,s:s,s:[s]}", "op", "checkpoint_create", "name", test->name, "tables",
                     test->adders.args.job);
}

static json_t *restore(test_t *test)
{
    return json_pack("{s:s,s:s,s:s,s:s}", "op", "checkpoint_restore", "name", test->name, "table",
                     test->adders.args.job, "as", COPY);
}

static bool drop(test_t *test, const char *op, const char *name)
{
    json_t *reply = NULL;

    CHECK_OK(ask(test, json_pack("{s:s,s:s}", "op", op, "name", name), &reply), test->view.err);
    json_decref(reply);
    return true;
}

static bool play_round(test_t *test)
{
    uint64_t then = 0;
    uint64_t unused = 0;

    CHECK(do_it(test, create, &then));
    CHECK(do_it(test, restore, &unused));
    CHECK(adders_check_copy(&test->adders, COPY, test->plan.ack, then));
    CHECK(drop(test, "table_drop", COPY));
    CHECK(drop(test, "checkpoint_drop", test->name));
    test->n_rounds++;
    return true;
}

static bool run(test_t *test)
{
    const plan_t *plan = &test->plan;
    const cluster_args_t nodes = {
        .n_nodes = plan->nodes, .net = CLUSTER_DIRECT, .config = test->config};
    adders_args_t job = {.job = "adds",
                         .n_workers = 3,
                         .max_delay = 2,
                         .seed = plan->seed,
                         .n_rows = ROWS,
                         .replicas = plan->replicas,
                         .ack = plan->ack,
                         .timeout_ms = TIMEOUT_MS};
    time_t end = time(NULL) + plan->seconds;

    test->rng = (ps_rng_t){plan->seed};
    CHECK(temp_dir_make(&test->dir));
    CHECK(snprintf(test->config, sizeof test->config, CONFIG, test->dir.path) <
          (int)sizeof test->config);
    CHECK(cluster_start(&test->cluster, &nodes));
    job.endpoint = test->cluster.nodes[0].control;
    CHECK(view_open(&test->view, job.endpoint));
    CHECK(plan->apart == 0 || view_drain(&test->view, "n0", false));
    CHECK(adders_start(&test->adders, &job));
    CHECK(adders_wait_acks(&test->adders, 1));
    while (plan->seconds > 0 ? time(NULL) < end : test->n_rounds < plan->rounds) {
        CHECK(play_round(test));
    }
    return adders_finish(&test->adders, ADDER_DONE) && adders_check(&test->adders, plan->ack);
}

int main(int argc, char **argv)
{
    static test_t test = {
        .plan = {.nodes = 3, .replicas = 2, .ack = LEDGER_REPLICA, .rounds = 3, .seed = 1}};
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
    (void)fprintf(stderr, "%u rounds, %u failed for a reason, %u kills: %s\n", test.n_rounds,
                  test.n_failed, test.n_kills, good ? "good" : "FAILED");
    adders_drop(&test.adders);
    view_close(&test.view);
    cluster_drop(&test.cluster, !good || test.plan.logs != 0);
    temp_dir_drop(&test.dir);
    return good ? 0 : 1;
}
