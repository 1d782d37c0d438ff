/* SPDX-License-Identifier: Apache-2.0 */
/* Five nodes, of which three vote and two stand by. Any of them lists the members; the
 * lead is handed over; the leader is removed as a member; a killed voter is replaced by
 * a node that stands by; a registry without a majority says so. A client pushes all the
 * time: no call fails, the sums are exact. */
#include <jansson.h>
#include <psd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "support/check.h"
#include "support/cluster.h"

#define NODES 5
#define ROWS 40
#define WAIT_MS 60000
#define LOOK_MS 100
#define PUSH_MS 5 /* between two pushes */
#define TRIES 5   /* of a command, 30 s each */

static const cluster_args_t args = {
    .n_nodes = NODES,
    .net = CLUSTER_DIRECT,
    .config = "shards: 1\nregistry:\n  voters: 3\ncluster:\n  repair_after: 3000\n"};

typedef struct world {
    cluster_t cluster;
    psd_client_t *client;
    psd_table_t *table;
    psd_error_t *err;
    pthread_t pusher;
    atomic_bool ends;
    int64_t n_pushed;
    bool is_pushing;
    bool failed; /* the pusher */
} world_t;

/* ---- pscli ---- */

static void print_endpoints(const world_t *world, char *ret, size_t size)
{
    ret[0] = '\0';
    for (unsigned i = 0; i < NODES; i++) {
        size_t used = strlen(ret);

        (void)snprintf(ret + used, size - used, "%s%s", i == 0 ? "" : ",",
                       world->cluster.nodes[i].control);
    }
}

/* Runs pscli; its exit code, and what it printed as JSON (NULL: nothing such). */
static int run_pscli(const char *words, const char *endpoints, json_t **ret_doc)
{
    char line[2000];
    FILE *pipe = NULL;
    int status = 0;

    (void)snprintf(line, sizeof line, "'%s' %s -o json --timeout 30s --endpoint '%s'",
                   getenv("PSCLI_PROGRAM"), words, endpoints);
    pipe = popen(line, "r");
    if (pipe == NULL) {
        return -1;
    }
    *ret_doc = json_loadf(pipe, 0, NULL);
    status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Manages the members. On a busy machine the members may not agree in time (exit codes 3
 * and 7): all of these commands may be repeated. */
static int manage(const world_t *world, const char *words)
{
    char endpoints[NODES * CLUSTER_TEXT_SIZE];
    int rc = 7;

    print_endpoints(world, endpoints, sizeof endpoints);
    for (int i = 0; i < TRIES && (rc == 3 || rc == 7); i++) {
        json_t *doc = NULL;

        rc = run_pscli(words, endpoints, &doc);
        if (rc != 0 && doc != NULL) {
            (void)json_dumpf(doc, stderr, 0);
            (void)fprintf(stderr, "\n");
        }
        json_decref(doc);
    }
    return rc;
}

static const char *text_of(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text == NULL ? "" : text;
}

/* Members in that role that are up; the last of them. */
static unsigned count_role(const json_t *list, const char *role, char ret_name[CLUSTER_TEXT_SIZE])
{
    const json_t *member = NULL;
    unsigned n = 0;
    size_t i = 0;

    json_array_foreach(json_object_get(list, "members"), i, member)
    {
        if (strcmp(text_of(member, "role"), role) == 0 &&
            strcmp(text_of(member, "state"), "up") == 0) {
            (void)snprintf(ret_name, CLUSTER_TEXT_SIZE, "%s", text_of(member, "node"));
            n++;
        }
    }
    return n;
}

static bool is_member(const json_t *list, const char *name)
{
    const json_t *member = NULL;
    size_t i = 0;

    json_array_foreach(json_object_get(list, "members"), i, member)
    {
        if (strcmp(text_of(member, "node"), name) == 0) {
            return true;
        }
    }
    return false;
}

static json_t *list_at(const char *endpoints)
{
    json_t *list = NULL;

    (void)run_pscli("cluster registry list", endpoints, &list);
    return list;
}

static void rest(long ms)
{
    const struct timespec gap = {.tv_nsec = ms * 1000000L};

    (void)nanosleep(&gap, NULL);
}

/* Waits until the registry has a leader, two more voters that are up, and so many
 * stand-bys at least, none of them `without`. */
static bool wait_members(const world_t *world, unsigned standbys, const char *without,
                         char ret_leader[CLUSTER_TEXT_SIZE], char ret_voter[CLUSTER_TEXT_SIZE])
{
    char endpoints[NODES * CLUSTER_TEXT_SIZE];
    char standby[CLUSTER_TEXT_SIZE];

    print_endpoints(world, endpoints, sizeof endpoints);
    for (int i = 0; i < WAIT_MS / LOOK_MS; i++) {
        json_t *list = list_at(endpoints);
        bool good = list != NULL && !json_is_true(json_object_get(list, "stale")) &&
                    count_role(list, "leader", ret_leader) == 1 &&
                    count_role(list, "voter", ret_voter) == 2 &&
                    count_role(list, "stand-by", standby) >= standbys &&
                    (without == NULL || !is_member(list, without));

        json_decref(list);
        if (good) {
            return true;
        }
        rest(LOOK_MS);
    }
    (void)fprintf(stderr, "the members are not those that were awaited\n");
    return false;
}

/* ---- the client ---- */

static void *push_all(void *argument)
{
    world_t *world = argument;
    psd_error_t *err = psd_error_new();
    uint64_t rows[ROWS];
    int64_t ones[ROWS];

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    while (!atomic_load(&world->ends) && !world->failed) {
        if (psd_push(world->table, rows, ROWS, ones, ROWS, err) != PSD_OK) {
            (void)fprintf(stderr, "push: %s\n", psd_error_text(err));
            world->failed = true;
        }
        world->n_pushed++;
        rest(PUSH_MS);
    }
    psd_error_destroy(&err);
    return NULL;
}

static bool begin_pushing(world_t *world)
{
    char endpoints[NODES * CLUSTER_TEXT_SIZE];
    psd_options_t *options = psd_options_new();
    psd_spec_t *spec = psd_spec_new();

    print_endpoints(world, endpoints, sizeof endpoints);
    psd_options_set_timeout_ms(options, WAIT_MS);
    CHECK_OK(psd_connect(endpoints, options, &world->client, world->err), world->err);
    psd_options_destroy(&options);
    CHECK_OK(psd_spec_set(spec, "rows", "40", world->err), world->err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", world->err), world->err);
    CHECK_OK(psd_spec_set(spec, "partitions", "4", world->err), world->err);
    CHECK_OK(psd_spec_set(spec, "replicas", "3", world->err), world->err);
    CHECK_OK(psd_spec_set(spec, "ack", "replica", world->err), world->err);
    CHECK_OK(psd_table_create(world->client, "w", spec, &world->table, world->err), world->err);
    psd_spec_destroy(&spec);
    CHECK(pthread_create(&world->pusher, NULL, push_all, world) == 0);
    world->is_pushing = true;
    return true;
}

static bool end_pushing(world_t *world)
{
    uint64_t rows[ROWS];
    int64_t values[ROWS];

    atomic_store(&world->ends, true);
    (void)pthread_join(world->pusher, NULL);
    world->is_pushing = false;
    CHECK(!world->failed && world->n_pushed > 0);
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
    }
    CHECK_OK(psd_pull(world->table, rows, ROWS, values, ROWS, world->err), world->err);
    for (size_t i = 0; i < ROWS; i++) {
        CHECK(values[i] == world->n_pushed);
    }
    return true;
}

/* ---- the story ---- */

static unsigned number_of(const char *name)
{
    return (unsigned)(name[1] - '0');
}

/* Each node alone leads pscli to the leader's list, whoever leads just now. */
static bool list_everywhere(const world_t *world)
{
    for (unsigned i = 0; i < NODES; i++) {
        bool good = false;

        for (int k = 0; !good && k < WAIT_MS / LOOK_MS; k++) {
            json_t *list = list_at(world->cluster.nodes[i].control);

            good = list != NULL && !json_is_true(json_object_get(list, "stale")) &&
                   json_array_size(json_object_get(list, "members")) == NODES &&
                   text_of(list, "leader")[0] != '\0';
            json_decref(list);
            if (!good) {
                rest(LOOK_MS);
            }
        }
        CHECK(good);
    }
    return true;
}

/* All voters but one are killed: that one says what it sees. */
static bool lose_majority(world_t *world)
{
    char leader[CLUSTER_TEXT_SIZE];
    char voter[CLUSTER_TEXT_SIZE];
    bool good = false;

    CHECK(wait_members(world, 0, NULL, leader, voter));
    for (unsigned i = 0; i < NODES; i++) {
        if (world->cluster.nodes[i].pid != 0 && i != number_of(voter)) {
            CHECK(cluster_kill(&world->cluster, i, SIGKILL));
        }
    }
    for (int i = 0; !good && i < WAIT_MS / LOOK_MS; i++) {
        json_t *list = list_at(world->cluster.nodes[number_of(voter)].control);

        good = list != NULL && json_is_true(json_object_get(list, "stale")) &&
               json_is_null(json_object_get(list, "leader")) &&
               json_integer_value(json_object_get(list, "voters_up")) == 1 &&
               strcmp(text_of(list, "answered_by"), voter) == 0;
        json_decref(list);
        rest(LOOK_MS);
    }
    CHECK(good);
    CHECK(cluster_restart_all(&world->cluster, 0));
    return wait_members(world, 0, NULL, leader, voter);
}

static bool run(world_t *world)
{
    char words[100];
    char leader[CLUSTER_TEXT_SIZE];
    char next[CLUSTER_TEXT_SIZE];
    char voter[CLUSTER_TEXT_SIZE];

    CHECK(cluster_start(&world->cluster, &args));
    CHECK(wait_members(world, 2, NULL, leader, voter));
    CHECK(list_everywhere(world));
    CHECK(begin_pushing(world));

    (void)snprintf(words, sizeof words, "cluster registry transfer %s", voter);
    CHECK(manage(world, words) == 0);
    CHECK(manage(world, "cluster registry transfer --dry-run") == 0);
    CHECK(manage(world, "cluster registry transfer") == 0);
    CHECK(manage(world, "cluster registry remove nobody") == 5);

    CHECK(wait_members(world, 2, NULL, leader, voter));
    (void)snprintf(words, sizeof words, "cluster registry remove %s", leader);
    CHECK(manage(world, words) == 0);
    CHECK(wait_members(world, 1, leader, next, voter));
    CHECK(manage(world, "cluster registry transfer") == 0); /* the next one knows that, too */
    CHECK(wait_members(world, 1, leader, next, voter));
    CHECK(cluster_kill(&world->cluster, number_of(voter), SIGKILL));
    CHECK(wait_members(world, 0, voter, next, words));
    CHECK(cluster_restart(&world->cluster, number_of(voter)));
    CHECK(wait_members(world, 0, leader, next, voter));

    (void)snprintf(words, sizeof words, "node demote %s", leader);
    CHECK(manage(world, words) == 0);
    CHECK(end_pushing(world));
    return lose_majority(world);
}

int main(void)
{
    static world_t world;
    bool good = false;

    world.err = psd_error_new();
    good = run(&world);
    if (world.is_pushing) {
        atomic_store(&world.ends, true);
        (void)pthread_join(world.pusher, NULL);
    }
    psd_table_close(&world.table);
    psd_close(&world.client);
    cluster_drop(&world.cluster, !good);
    psd_error_destroy(&world.err);
    return good ? 0 : 1;
}
