/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks fill under a replicated registry
 *
 * One member's, the leader's: changes go on. All members': a change is refused when its
 * time is up, and pushes go on; when there is room again, so do changes. No change that
 * was acknowledged is missing at the end. The times are printed.
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
#include "support/tmpfs.h"

#define NODES 3
#define DATA_BYTES (UINT64_C(48) << 20)
#define WAIT_MS 60000
#define LOOK_MS 50
#define SHORT_MS 1000 /* of a call that is to be refused */
#define ROUNDS 30     /* changes while one disk is full: more than a page holds */
#define TRIES 300     /* until one finds no room */
#define ROWS 10

static const cluster_args_t args = {.n_nodes = NODES,
                                    .net = CLUSTER_DIRECT,
                                    .data_bytes = DATA_BYTES,
                                    .config = "shards: 1\nregistry:\n  voters: 3\n"};

typedef struct test {
    cluster_t cluster;
    char endpoints[NODES * CLUSTER_TEXT_SIZE];
    psd_client_t *client; /* that waits */
    psd_client_t *hasty;
    psd_client_t *pushing;
    psd_table_t *table;
    psd_error_t *err;
    pthread_t pusher;
    bool is_pushing;
    atomic_bool ends;
    atomic_bool failed;
    atomic_uint_fast64_t n_pushed;
    unsigned n_made; /* tables t0, t1 … that were acknowledged */
} test_t;

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void rest(unsigned ms)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* ---- clients ---- */

/* A client whose calls have that time; a busy machine may take several of them to connect it. */
static bool connect_with(test_t *test, uint32_t timeout_ms, psd_client_t **ret)
{
    psd_options_t *options = psd_options_new();
    psd_status_t rc = PSD_CONNECT;

    psd_options_set_timeout_ms(options, timeout_ms);
    for (unsigned ms = 0; rc != PSD_OK && ms < WAIT_MS; ms += timeout_ms) {
        psd_error_clear(test->err);
        rc = psd_connect(test->endpoints, options, ret, test->err);
    }
    psd_options_destroy(&options);
    CHECK_OK(rc, test->err);
    return true;
}

static void *push_all(void *argument)
{
    test_t *test = argument;
    psd_error_t *err = psd_error_new();
    uint64_t rows[ROWS];
    int64_t ones[ROWS];

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    while (!atomic_load(&test->ends) && !atomic_load(&test->failed)) {
        if (psd_push(test->table, rows, ROWS, ones, ROWS, err) != PSD_OK) {
            (void)fprintf(stderr, "push: %s\n", psd_error_text(err));
            atomic_store(&test->failed, true);
        }
        atomic_fetch_add(&test->n_pushed, 1);
        rest(2);
    }
    psd_error_destroy(&err);
    return NULL;
}

static bool begin_pushing(test_t *test)
{
    CHECK_OK(churn_make_table(test->pushing, "pushed", ROWS, "2", "replica", test->err), test->err);
    CHECK_OK(psd_table_open(test->pushing, "pushed", &test->table, test->err), test->err);
    CHECK(pthread_create(&test->pusher, NULL, push_all, test) == 0);
    test->is_pushing = true;
    return true;
}

static bool end_pushing(test_t *test)
{
    if (test->is_pushing) {
        atomic_store(&test->ends, true);
        (void)pthread_join(test->pusher, NULL);
        test->is_pushing = false;
    }
    return !atomic_load(&test->failed) && atomic_load(&test->n_pushed) > 0;
}

/* Pushes are acknowledged now. */
static bool wait_pushes(test_t *test)
{
    const uint64_t until = atomic_load(&test->n_pushed) + 10;
    const uint64_t end_ms = now_ms() + WAIT_MS;

    while (atomic_load(&test->n_pushed) < until && now_ms() < end_ms &&
           !atomic_load(&test->failed)) {
        rest(2);
    }
    CHECK(atomic_load(&test->n_pushed) >= until && !atomic_load(&test->failed));
    return true;
}

/* ---- the registry ---- */

/* Three voters; *ret_leader: the one that leads. */
static bool wait_members(test_t *test, unsigned *ret_leader)
{
    const uint64_t end_ms = now_ms() + WAIT_MS;

    for (unsigned n = 0; now_ms() < end_ms; n = 0) {
        char *reply = NULL;
        json_t *doc = NULL;
        const json_t *member = NULL;
        size_t i = 0;

        *ret_leader = NODES;
        CHECK_OK(
            psd_request(test->client, "{\"op\":\"registry_list\"}", WAIT_MS, &reply, test->err),
            test->err);
        doc = json_loads(reply, 0, NULL);
        json_array_foreach(json_object_get(doc, "members"), i, member)
        {
            const char *role = json_string_value(json_object_get(member, "role"));
            const char *state = json_string_value(json_object_get(member, "state"));
            const char *node = json_string_value(json_object_get(member, "node"));

            n += strcmp(role, "stand-by") != 0 && strcmp(state, "up") == 0 ? 1 : 0;
            *ret_leader = strcmp(role, "leader") == 0 ? (unsigned)(node[1] - '0') : *ret_leader;
        }
        json_decref(doc);
        psd_free(reply);
        if (n == NODES && *ret_leader < NODES) {
            return true;
        }
        rest(LOOK_MS);
    }
    (void)fprintf(stderr, "there are no three voters\n");
    return false;
}

static psd_status_t make_next(test_t *test, psd_client_t *client)
{
    char name[32];
    psd_status_t rc = PSD_OK;

    (void)snprintf(name, sizeof name, "t%u", test->n_made);
    rc = churn_make_table(client, name, 8, "1", "memory", test->err);
    test->n_made += rc == PSD_OK ? 1 : 0;
    return rc;
}

static bool fill_one(test_t *test)
{
    unsigned leader = NODES;
    uint64_t longest_ms = 0;

    CHECK(wait_members(test, &leader));
    CHECK(cluster_fill(&test->cluster, leader));
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t since_ms = now_ms();

        CHECK_OK(make_next(test, test->client), test->err);
        longest_ms = now_ms() - since_ms > longest_ms ? now_ms() - since_ms : longest_ms;
    }
    CHECK(wait_pushes(test));
    (void)printf("one disk full: %u changes, the longest took %" PRIu64 " ms\n", ROUNDS,
                 longest_ms);
    return cluster_empty(&test->cluster, leader);
}

static bool fill_all(test_t *test)
{
    unsigned leader = NODES;
    uint64_t since_ms = 0;
    psd_status_t rc = PSD_OK;

    CHECK(wait_members(test, &leader));
    for (unsigned i = 0; i < NODES; i++) {
        CHECK(cluster_fill(&test->cluster, i));
    }
    for (unsigned i = 0; i < TRIES && rc == PSD_OK; i++) {
        since_ms = now_ms();
        rc = make_next(test, test->hasty);
    }
    CHECK(rc != PSD_OK);
    (void)printf("all disks full: refused after %" PRIu64 " ms: %s\n", now_ms() - since_ms,
                 psd_error_text(test->err));
    psd_error_clear(test->err);
    test->n_made++; /* whether that one was made is not known */
    CHECK(wait_pushes(test));
    for (unsigned i = 0; i < NODES; i++) {
        CHECK(cluster_empty(&test->cluster, i));
    }
    since_ms = now_ms();
    CHECK_OK(make_next(test, test->client), test->err);
    (void)printf("room again: the next change after %" PRIu64 " ms\n", now_ms() - since_ms);
    return wait_pushes(test);
}

/* All but the one that was refused. */
static bool check_tables(test_t *test)
{
    for (unsigned i = 0; i < test->n_made; i++) {
        char name[32];
        psd_table_t *table = NULL;

        (void)snprintf(name, sizeof name, "t%u", i);
        if (i != test->n_made - 2) {
            CHECK_OK(psd_table_open(test->client, name, &table, test->err), test->err);
            psd_table_close(&table);
        }
    }
    return true;
}

static bool run(test_t *test)
{
    CHECK(cluster_start(&test->cluster, &args));
    for (unsigned i = 0; i < NODES; i++) {
        size_t used = strlen(test->endpoints);

        (void)snprintf(test->endpoints + used, sizeof test->endpoints - used, "%s%s",
                       i == 0 ? "" : ",", test->cluster.nodes[i].control);
    }
    CHECK(connect_with(test, WAIT_MS, &test->client));
    CHECK(connect_with(test, SHORT_MS, &test->hasty));
    CHECK(connect_with(test, WAIT_MS, &test->pushing));
    CHECK(begin_pushing(test));
    CHECK(fill_one(test));
    CHECK(fill_all(test));
    return check_tables(test);
}

int main(void)
{
    static test_t test;
    bool good = false;

    if (!tmpfs_can()) {
        return 77;
    }
    test.err = psd_error_new();
    good = run(&test);
    good = end_pushing(&test) && good;
    psd_table_close(&test.table);
    psd_close(&test.pushing);
    psd_close(&test.hasty);
    psd_close(&test.client);
    cluster_drop(&test.cluster, !good);
    psd_error_destroy(&test.err);
    return good ? 0 : 1;
}
