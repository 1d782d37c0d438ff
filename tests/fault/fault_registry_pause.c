/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connected clients while another node gets to lead the registry
 *
 * Clients push to partitions that all live. Stretches with a change of leader and stretches
 * of the same length without one take turns; the longest call of each kind is noted. In a
 * run the longest pause over all changes is at most 50 ms, or 1.5 times the longest of the
 * other stretches, or limit_ms.
 *
 * fault_registry_pause KEY=VALUE…: runs, changes (of leader, in a run), limit_ms (allowed
 * in any case, for busy machines; 0: none).
 */
#include <inttypes.h>
#include <jansson.h>
#include <psd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "churn.h"
#include "support/check.h"
#include "support/cluster.h"

#define NODES 3
#define CLIENTS 2
#define WAIT_MS 60000
#define LOOK_MS 20
#define STRETCH_MS 400 /* at least */
#define PAUSE_MS 50
#define ROWS 8
#define NAME_SIZE 64

static const cluster_args_t args = {.n_nodes = NODES,
                                    .net = CLUSTER_DIRECT,
                                    .calm = true,
                                    .config = "shards: 1\nregistry:\n  voters: 3\n"};

typedef struct plan {
    unsigned runs;
    unsigned changes;
    unsigned limit_ms;
} plan_t;

struct test;

typedef struct pusher {
    struct test *test;
    psd_client_t *client;
    psd_table_t *table;
    pthread_t thread;
    bool runs;
} pusher_t;

typedef struct test {
    plan_t plan;
    cluster_t cluster;
    char endpoints[NODES * CLUSTER_TEXT_SIZE];
    psd_client_t *client;
    psd_error_t *err;
    pusher_t pushers[CLIENTS];
    atomic_bool ends;
    atomic_bool failed;
    atomic_uint stretch;                /* odd: with a change of leader */
    atomic_uint_fast64_t longest_us[2]; /* of calls that ended in such a stretch */
    atomic_uint_fast64_t n_calls[2];
} test_t;

static uint64_t now_us(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void rest(unsigned ms)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* ---- clients ---- */

static void note(test_t *test, unsigned kind, uint64_t us)
{
    uint64_t most = atomic_load(&test->longest_us[kind]);

    while (us > most && !atomic_compare_exchange_weak(&test->longest_us[kind], &most, us)) {
    }
    atomic_fetch_add(&test->n_calls[kind], 1);
}

/* A call counts for the stretch in which it began and for that in which it ended. */
static void *push_all(void *argument)
{
    const pusher_t *self = argument;
    test_t *test = self->test;
    psd_error_t *err = psd_error_new();
    uint64_t rows[ROWS];
    int64_t ones[ROWS];

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    while (!atomic_load(&test->ends) && !atomic_load(&test->failed)) {
        unsigned before = atomic_load(&test->stretch) % 2;
        uint64_t since_us = now_us();
        unsigned after = 0;

        if (psd_push(self->table, rows, ROWS, ones, ROWS, err) != PSD_OK) {
            (void)fprintf(stderr, "push: %s\n", psd_error_text(err));
            atomic_store(&test->failed, true);
        }
        after = atomic_load(&test->stretch) % 2;
        note(test, before, now_us() - since_us);
        if (after != before) {
            note(test, after, now_us() - since_us);
        }
        rest(1);
    }
    psd_error_destroy(&err);
    return NULL;
}

static bool begin_pushing(test_t *test)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        pusher_t *pusher = &test->pushers[i];
        char name[32];

        (void)snprintf(name, sizeof name, "w%u", i);
        pusher->test = test;
        CHECK_OK(churn_connect(test->endpoints, &pusher->client, test->err), test->err);
        CHECK_OK(churn_make_table(pusher->client, name, ROWS, "3", "replica", test->err),
                 test->err);
        CHECK_OK(psd_table_open(pusher->client, name, &pusher->table, test->err), test->err);
        CHECK(pthread_create(&pusher->thread, NULL, push_all, pusher) == 0);
        pusher->runs = true;
    }
    return true;
}

static void end_pushing(test_t *test)
{
    atomic_store(&test->ends, true);
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (test->pushers[i].runs) {
            (void)pthread_join(test->pushers[i].thread, NULL);
        }
        psd_table_close(&test->pushers[i].table);
        psd_close(&test->pushers[i].client);
    }
}

/* ---- the lead ---- */

/* Who leads, once all three vote and are up; not `but`. */
static bool wait_leader(test_t *test, const char *but, char ret[NAME_SIZE])
{
    const uint64_t end_us = now_us() + WAIT_MS * UINT64_C(1000);

    while (now_us() < end_us) {
        char *reply = NULL;
        json_t *doc = NULL;
        const char *leader = NULL;
        bool good = false;

        CHECK_OK(
            psd_request(test->client, "{\"op\":\"registry_list\"}", WAIT_MS, &reply, test->err),
            test->err);
        doc = json_loads(reply, 0, NULL);
        leader = json_string_value(json_object_get(doc, "leader"));
        good = leader != NULL && strcmp(leader, but) != 0 &&
               !json_is_true(json_object_get(doc, "stale")) &&
               json_integer_value(json_object_get(doc, "voters_up")) == NODES;
        if (good) {
            (void)snprintf(ret, NAME_SIZE, "%s", leader);
        }
        json_decref(doc);
        psd_free(reply);
        if (good) {
            return true;
        }
        rest(LOOK_MS);
    }
    (void)fprintf(stderr, "nobody leads but \"%s\"\n", but);
    return false;
}

static bool change_leader(test_t *test)
{
    char leader[NAME_SIZE];
    char next[NAME_SIZE];
    char request[200];
    char *reply = NULL;

    CHECK(wait_leader(test, "", leader));
    (void)snprintf(request, sizeof request, "{\"op\":\"registry_transfer\",\"from\":\"%s\"}",
                   leader);
    CHECK_OK(psd_request(test->client, request, WAIT_MS, &reply, test->err), test->err);
    psd_free(reply);
    return wait_leader(test, leader, next);
}

/* One change, and as long without one. */
static bool play(test_t *test)
{
    uint64_t since_us = now_us();
    uint64_t took_us = 0;

    atomic_fetch_add(&test->stretch, 1);
    CHECK(change_leader(test));
    while (now_us() < since_us + STRETCH_MS * UINT64_C(1000)) {
        rest(LOOK_MS);
    }
    took_us = now_us() - since_us;
    atomic_fetch_add(&test->stretch, 1);
    since_us = now_us();
    while (now_us() < since_us + took_us) {
        rest(LOOK_MS);
    }
    return !atomic_load(&test->failed);
}

static bool play_run(test_t *test, unsigned number)
{
    double with = 0;
    double without = 0;
    double load = 0;
    double allowed = PAUSE_MS;

    for (unsigned i = 0; i < 2; i++) {
        atomic_store(&test->longest_us[i], 0);
        atomic_store(&test->n_calls[i], 0);
    }
    for (unsigned i = 0; i < test->plan.changes; i++) {
        CHECK(play(test));
    }
    with = (double)atomic_load(&test->longest_us[1]) / 1000.0;
    without = (double)atomic_load(&test->longest_us[0]) / 1000.0;
    allowed = 1.5 * without > allowed ? 1.5 * without : allowed;
    allowed = test->plan.limit_ms > allowed ? test->plan.limit_ms : allowed;
    (void)getloadavg(&load, 1);
    (void)printf("run %u: longest call over %u changes of leader %.1f ms (%" PRIu64
                 " calls), without %.1f ms (%" PRIu64 " calls), load %.1f\n",
                 number, test->plan.changes, with, (uint64_t)atomic_load(&test->n_calls[1]),
                 without, (uint64_t)atomic_load(&test->n_calls[0]), load);
    CHECK(atomic_load(&test->n_calls[0]) > 0 && atomic_load(&test->n_calls[1]) > 0);
    CHECK(with <= allowed);
    return true;
}

static bool run(test_t *test)
{
    char leader[NAME_SIZE];

    CHECK(cluster_start(&test->cluster, &args));
    for (unsigned i = 0; i < NODES; i++) {
        size_t used = strlen(test->endpoints);

        (void)snprintf(test->endpoints + used, sizeof test->endpoints - used, "%s%s",
                       i == 0 ? "" : ",", test->cluster.nodes[i].control);
    }
    CHECK_OK(churn_connect(test->endpoints, &test->client, test->err), test->err);
    CHECK(wait_leader(test, "", leader));
    CHECK(begin_pushing(test));
    for (unsigned i = 0; i < test->plan.runs; i++) {
        CHECK(play_run(test, i));
    }
    return true;
}

static bool read_one(plan_t *plan, const char *text)
{
    const struct {
        const char *key;
        unsigned *number;
    } keys[] = {
        {"runs=", &plan->runs}, {"changes=", &plan->changes}, {"limit_ms=", &plan->limit_ms}};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t size = strlen(keys[i].key);

        if (strncmp(keys[i].key, text, size) == 0) {
            char *end = NULL;

            *keys[i].number = (unsigned)strtoul(text + size, &end, 10);
            return end != text + size && *end == '\0';
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    static test_t test = {.plan = {.runs = 5, .changes = 20}};
    bool good = false;

    for (int i = 1; i < argc; i++) {
        if (!read_one(&test.plan, argv[i])) {
            (void)fprintf(stderr, "not understood: %s\n", argv[i]);
            return 2;
        }
    }
    test.err = psd_error_new();
    good = run(&test);
    end_pushing(&test);
    psd_close(&test.client);
    cluster_drop(&test.cluster, !good);
    psd_error_destroy(&test.err);
    return good ? 0 : 1;
}
