/* SPDX-License-Identifier: Apache-2.0 */
/* Three nodes have the registry. Its leader is killed, again and again, while a
 * client pushes and makes tables: every call succeeds, every table is there once,
 * the sums are exact; nodes and the client find the new leader, and a killed node
 * comes back as a member. */
#include <jansson.h>
#include <psd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/cluster.h"

#define NODES 4 /* one of them stands by */
#define ROUNDS 4
#define PUSHES 20 /* in a round, before and after the kill */
#define ROWS 60
#define CALL_MS 30000

static uint64_t rows[ROWS];
static int64_t ones[ROWS];

static const cluster_args_t args = {.n_nodes = NODES,
                                    .net = CLUSTER_DIRECT,
                                    .calm = true,
                                    .config = "shards: 1\nregistry:\n  voters: 3\n"};

typedef struct world {
    cluster_t cluster;
    psd_client_t *client;
    psd_table_t *table;
    int64_t pushed; /* to each row */
    psd_error_t *err;
} world_t;

static bool connect_all(world_t *world)
{
    char endpoints[CLUSTER_NODES_MAX * CLUSTER_TEXT_SIZE] = "";
    psd_options_t *options = psd_options_new();

    for (unsigned i = 0; i < NODES; i++) {
        size_t used = strlen(endpoints);

        (void)snprintf(endpoints + used, sizeof endpoints - used, "%s%s", i == 0 ? "" : ",",
                       world->cluster.nodes[i].control);
    }
    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_connect(endpoints, options, &world->client, world->err), world->err);
    psd_options_destroy(&options);
    return true;
}

static bool make_table(world_t *world, const char *name, psd_table_t **ret_table)
{
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_spec_set(spec, "rows", "60", world->err), world->err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", world->err), world->err);
    CHECK_OK(psd_spec_set(spec, "partitions", "4", world->err), world->err);
    CHECK_OK(psd_spec_set(spec, "replicas", "3", world->err), world->err);
    CHECK_OK(psd_spec_set(spec, "ack", "replica", world->err), world->err);
    CHECK_OK(psd_table_create(world->client, name, spec, ret_table, world->err), world->err);
    psd_spec_destroy(&spec);
    return true;
}

static bool push_some(world_t *world)
{
    for (int i = 0; i < PUSHES; i++) {
        CHECK_OK(psd_push(world->table, rows, ROWS, ones, ROWS, world->err), world->err);
        world->pushed++;
    }
    return true;
}

static bool has_all(world_t *world)
{
    int64_t values[ROWS];

    CHECK_OK(psd_pull(world->table, rows, ROWS, values, ROWS, world->err), world->err);
    for (size_t i = 0; i < ROWS; i++) {
        CHECK(values[i] == world->pushed);
    }
    return true;
}

/* How many nodes have that as `key` in node_list; the last of them. */
static size_t count_nodes(world_t *world, const char *key, const char *value, unsigned *ret_node)
{
    char *reply = NULL;
    size_t n = 0;
    json_t *doc = NULL;
    json_t *node = NULL;
    size_t i = 0;

    if (psd_request(world->client, "{\"op\":\"node_list\"}", CALL_MS, &reply, world->err) !=
        PSD_OK) {
        psd_error_clear(world->err);
        return 0;
    }
    doc = json_loads(reply, 0, NULL);
    json_array_foreach(json_object_get(doc, "nodes"), i, node)
    {
        if (strcmp(json_string_value(json_object_get(node, key)), value) == 0) {
            *ret_node = (unsigned)(json_string_value(json_object_get(node, "name"))[1] - '0');
            n++;
        }
    }
    json_decref(doc);
    psd_free(reply);
    return n;
}

static bool wait_nodes(world_t *world, const char *key, const char *value, size_t wanted,
                       unsigned *ret_node)
{
    for (int i = 0; i < CALL_MS / 10; i++) {
        const struct timespec gap = {.tv_nsec = 10000000};

        if (count_nodes(world, key, value, ret_node) == wanted) {
            return true;
        }
        (void)nanosleep(&gap, NULL);
    }
    (void)fprintf(stderr, "not %zu nodes with %s = %s\n", wanted, key, value);
    return false;
}

/* The leader is killed; the others go on; it comes back as a voter. */
static bool lose_leader(world_t *world, unsigned round)
{
    char name[16];
    unsigned leader = 0;
    unsigned node = 0;
    psd_table_t *table = NULL;

    CHECK(wait_nodes(world, "member", "leader", 1, &leader));
    CHECK(push_some(world));
    CHECK(cluster_kill(&world->cluster, leader, SIGKILL));
    /* A busy machine may keep one of the others silent for a second, too. */
    CHECK(wait_nodes(world, "state", "up", NODES - 1, &node));
    (void)snprintf(name, sizeof name, "t%u", round);
    CHECK(make_table(world, name, &table));
    psd_table_close(&table);
    CHECK(push_some(world));
    CHECK(cluster_restart(&world->cluster, leader));
    CHECK(wait_nodes(world, "state", "up", NODES, &node));
    CHECK(wait_nodes(world, "member", "voter", 2, &node));
    return has_all(world);
}

/* All at once, and all come back: nothing that was acknowledged is missing. */
static bool lose_all(world_t *world)
{
    unsigned node = 0;
    psd_table_t *table = NULL;

    psd_table_close(&world->table);
    psd_close(&world->client);
    for (unsigned i = 0; i < NODES; i++) {
        CHECK(cluster_kill(&world->cluster, i, SIGKILL));
    }
    CHECK(cluster_restart_all(&world->cluster, 1));
    CHECK(connect_all(world));
    CHECK(wait_nodes(world, "state", "up", NODES, &node));
    for (unsigned i = 0; i < ROUNDS; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "t%u", i);
        CHECK_OK(psd_table_open(world->client, name, &table, world->err), world->err);
        psd_table_close(&table);
    }
    return make_table(world, "last", &table) && (psd_table_close(&table), true);
}

static bool run(world_t *world)
{
    unsigned node = 0;

    CHECK(cluster_start(&world->cluster, &args));
    CHECK(connect_all(world));
    CHECK(wait_nodes(world, "member", "voter", 2, &node));
    CHECK(make_table(world, "w", &world->table));
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK(lose_leader(world, i));
    }
    return lose_all(world);
}

int main(void)
{
    static world_t world;
    bool good = false;

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    world.err = psd_error_new();
    good = run(&world);
    psd_table_close(&world.table);
    psd_close(&world.client);
    cluster_drop(&world.cluster, !good);
    psd_error_destroy(&world.err);
    return good ? 0 : 1;
}
