/* SPDX-License-Identifier: Apache-2.0 */
/* Three nodes, which have the registry, and a table with a copy on each: a primary
 * is killed, and pushes go on where its copies are; nothing that was acknowledged is
 * lost. The time from the kill to the next acknowledged push is printed, not judged. */
#include <psd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/cluster.h"

#define NODES 3
#define ROWS 600
#define PUSHES 50 /* before the kill, and behind it */
#define CALL_MS 60000

static uint64_t rows[ROWS];
static int64_t ones[ROWS];
static int64_t values[ROWS];

static const cluster_args_t args = {.n_nodes = NODES,
                                    .net = CLUSTER_DIRECT,
                                    .calm = true,
                                    .config = "shards: 2\nregistry:\n  voters: 3\n"};

static uint64_t now_ms(void)
{
    struct timespec now = {.tv_sec = 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* So that the registry has a majority when one node stands still. */
static bool wait_voters(psd_client_t *client, psd_error_t *err)
{
    const struct timespec step = {.tv_nsec = 5000000L};
    uint64_t end_ms = now_ms() + CALL_MS;
    bool found = false;

    while (!found && now_ms() < end_ms) {
        char *reply = NULL;

        CHECK_OK(psd_request(client, "{\"op\":\"registry_list\"}", CALL_MS, &reply, err), err);
        found = strstr(reply, "\"voters_up\":3") != NULL;
        psd_free(reply);
        (void)nanosleep(&step, NULL);
    }
    CHECK(found);
    return true;
}

static bool make_table(psd_client_t *client, psd_table_t **ret_table, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_spec_set(spec, "rows", "600", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "6", err), err);
    CHECK_OK(psd_spec_set(spec, "replicas", "3", err), err);
    CHECK_OK(psd_spec_set(spec, "ack", "replica", err), err);
    CHECK_OK(psd_table_create(client, "w", spec, ret_table, err), err);
    psd_spec_destroy(&spec);
    return true;
}

static bool push_often(psd_table_t *table, psd_error_t *err)
{
    for (int i = 0; i < PUSHES; i++) {
        CHECK_OK(psd_push(table, rows, ROWS, ones, ROWS, err), err);
    }
    return true;
}

static bool has_all(psd_table_t *table, int64_t wanted, psd_error_t *err)
{
    CHECK_OK(psd_pull(table, rows, ROWS, values, ROWS, err), err);
    for (size_t i = 0; i < ROWS; i++) {
        if (values[i] != wanted) {
            (void)fprintf(stderr, "row %zu is %lld, not %lld\n", i, (long long)values[i],
                          (long long)wanted);
            return false;
        }
    }
    return true;
}

/* Too many copies for the nodes that there are; one reason says so. */
static bool more_copies_than_nodes_are_refused(psd_client_t *client, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK_OK(psd_spec_set(spec, "rows", "10", err), err);
    CHECK_OK(psd_spec_set(spec, "replicas", "4", err), err);
    CHECK(psd_table_create(client, "x", spec, &table, err) == PSD_FEW_NODES);
    (void)fprintf(stderr, "refused: %s\n", psd_error_text(err));
    psd_error_clear(err);
    psd_spec_destroy(&spec);
    return true;
}

/* The registry still counts on a node that has just fallen silent: who joins
 * then, or makes a table, waits until others have taken its part. */
static bool a_worker_joins_while_a_node_fails(cluster_t *cluster, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_client_t *workers[2] = {NULL, NULL};
    psd_table_t *table = NULL;

    psd_options_set_timeout_ms(options, CALL_MS);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(psd_connect(cluster->nodes[0].control, options, &workers[i], err), err);
    }
    CHECK_OK(psd_join(workers[0], "late", 0, 2, 1, err), err);
    CHECK_OK(psd_table_open(workers[0], "w", &table, err), err);
    CHECK(wait_voters(workers[0], err));
    CHECK(cluster_freeze(cluster, 1));
    CHECK_OK(psd_join(workers[1], "late", 1, 2, 1, err), err);
    CHECK(cluster_thaw(cluster, 1));
    psd_table_close(&table);
    CHECK_OK(psd_leave(workers[1], CALL_MS, err), err);
    CHECK_OK(psd_leave(workers[0], CALL_MS, err), err);
    psd_close(&workers[1]);
    psd_close(&workers[0]);
    psd_options_destroy(&options);
    return true;
}

static bool a_table_is_made_while_a_node_fails(cluster_t *cluster, psd_client_t *client,
                                               psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK_OK(psd_spec_set(spec, "rows", "600", err), err);
    CHECK(wait_voters(client, err));
    CHECK(cluster_freeze(cluster, 2));
    CHECK_OK(psd_table_create(client, "z", spec, &table, err), err);
    CHECK(cluster_thaw(cluster, 2));
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return true;
}

/* All that was acknowledged is in both copies that are left; the third one, on
 * the node that is gone, does not answer. */
static bool copies_are_shown(psd_client_t *client, psd_error_t *err)
{
    char *reply = NULL;

    CHECK_OK(psd_request(client, "{\"op\":\"table_inspect\",\"name\":\"w\"}", CALL_MS, &reply, err),
             err);
    CHECK(strstr(reply, "\"place\":\"n0/") != NULL);
    CHECK(strstr(reply, "\"state\":\"in_sync\",\"leaving\":false,"
                        "\"answers\":true,") != NULL);
    CHECK(strstr(reply, "\"lag_records\":0,\"lag_bytes\":0,\"lag_s\":0") != NULL);
    CHECK(strstr(reply, "\"state\":\"catching_up\",\"leaving\":false,"
                        "\"answers\":false,\"lag_records\":") != NULL);
    psd_free(reply);
    reply = NULL;
    CHECK_OK(psd_request(client, "{\"op\":\"cluster_status\"}", CALL_MS, &reply, err), err);
    CHECK(strstr(reply, "its partitions are served by their other copies") != NULL);
    CHECK(strstr(reply, "6 partitions have fewer than the 3 whole copies") != NULL);
    psd_free(reply);
    return true;
}

static bool pushes_go_on_without_a_primary(cluster_t *cluster, psd_client_t *client,
                                           psd_error_t *err)
{
    psd_table_t *table = NULL;
    uint64_t killed_ms = 0;

    CHECK(make_table(client, &table, err));
    CHECK(push_often(table, err));
    CHECK(has_all(table, PUSHES, err));
    CHECK(wait_voters(client, err));
    CHECK(cluster_kill(cluster, 1, SIGKILL));
    killed_ms = now_ms();
    CHECK_OK(psd_push(table, rows, ROWS, ones, ROWS, err), err);
    (void)fprintf(stderr, "acknowledged %llu ms behind the kill\n",
                  (unsigned long long)(now_ms() - killed_ms));
    CHECK(push_often(table, err));
    CHECK(has_all(table, 2 * PUSHES + 1, err));
    CHECK(copies_are_shown(client, err));
    psd_table_close(&table);
    return true;
}

/* Everything that the node had is elsewhere too: who was there before it was
 * killed is served by its next life. */
static bool a_node_that_lost_no_rows_serves_all(cluster_t *cluster, psd_client_t *client,
                                                psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK(cluster_restart(cluster, 1));
    CHECK_OK(psd_spec_set(spec, "rows", "600", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "12", err), err);
    CHECK_OK(psd_table_create(client, "y", spec, &table, err), err);
    CHECK_OK(psd_push(table, rows, ROWS, ones, ROWS, err), err);
    CHECK(has_all(table, 1, err));
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return true;
}

int main(void)
{
    cluster_t cluster = {.n_nodes = 0};
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_options_t *options = psd_options_new();
    bool good = cluster_start(&cluster, &args);

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    psd_options_set_timeout_ms(options, CALL_MS);
    good = good && psd_connect(cluster.nodes[0].control, options, &client, err) == PSD_OK;
    good = good && more_copies_than_nodes_are_refused(client, err);
    good = good && pushes_go_on_without_a_primary(&cluster, client, err);
    good = good && a_node_that_lost_no_rows_serves_all(&cluster, client, err);
    good = good && a_worker_joins_while_a_node_fails(&cluster, err);
    good = good && a_table_is_made_while_a_node_fails(&cluster, client, err);
    psd_close(&client);
    psd_options_destroy(&options);
    cluster_drop(&cluster, !good);
    psd_error_destroy(&err);
    return good ? 0 : 1;
}
