/* SPDX-License-Identifier: Apache-2.0 */
/* Tables with a log and copies on three nodes: a primary is killed and comes
 * back, then all nodes are killed at once and started again. Nothing that was
 * acknowledged is missing, nothing is there twice. */
#include <psd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/cluster.h"

#define NODES 3
#define ROWS 600
#define PUSHES 30 /* in each part of the test */
#define CALL_MS 60000
#define LOOKS_MAX 6000

static uint64_t rows[ROWS];
static int64_t ones[ROWS];
static int64_t values[ROWS];

static const cluster_args_t args = {
    .n_nodes = NODES, .net = CLUSTER_DIRECT, .calm = true, .config = "shards: 2\n"};

/* Two tables, of as many copies as there are nodes, and of fewer. */
#define TABLES 2
static const char *const names[TABLES] = {"two", "three"};
static const char *const replicas[TABLES] = {"2", "3"};

typedef struct tables {
    psd_client_t *client;
    psd_table_t *at[TABLES];
    int64_t wanted; /* of every value */
} tables_t;

static bool open_tables(cluster_t *cluster, tables_t *self, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();

    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_connect(cluster->nodes[0].control, options, &self->client, err), err);
    psd_options_destroy(&options);
    for (int i = 0; i < TABLES; i++) {
        psd_spec_t *spec = psd_spec_new();

        CHECK_OK(psd_spec_set(spec, "rows", "600", err), err);
        CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
        CHECK_OK(psd_spec_set(spec, "partitions", "6", err), err);
        CHECK_OK(psd_spec_set(spec, "replicas", replicas[i], err), err);
        CHECK_OK(psd_spec_set(spec, "ack", "disk", err), err);
        CHECK_OK(psd_table_ensure(self->client, names[i], spec, &self->at[i], err), err);
        psd_spec_destroy(&spec);
    }
    return true;
}

static void close_tables(tables_t *self)
{
    for (int i = 0; i < TABLES; i++) {
        psd_table_close(&self->at[i]);
    }
    psd_close(&self->client);
}

static bool push_often(tables_t *self, psd_error_t *err)
{
    for (int n = 0; n < PUSHES; n++) {
        for (int i = 0; i < TABLES; i++) {
            CHECK_OK(psd_push(self->at[i], rows, ROWS, ones, ROWS, err), err);
        }
    }
    self->wanted += PUSHES;
    return true;
}

static bool have_all(tables_t *self, psd_error_t *err)
{
    for (int i = 0; i < TABLES; i++) {
        CHECK_OK(psd_pull(self->at[i], rows, ROWS, values, ROWS, err), err);
        for (size_t k = 0; k < ROWS; k++) {
            if (values[k] != self->wanted) {
                (void)fprintf(stderr, "%s: row %zu is %lld, not %lld\n", names[i], k,
                              (long long)values[k], (long long)self->wanted);
                return false;
            }
        }
    }
    return true;
}

/* Which node it is: one that holds primaries and not the registry. */
static bool a_node_is_killed_and_comes_back(cluster_t *cluster, tables_t *tables, psd_error_t *err)
{
    CHECK(cluster_kill(cluster, 1, SIGKILL));
    CHECK(push_often(tables, err));
    CHECK(have_all(tables, err));
    CHECK(cluster_restart(cluster, 1));
    CHECK(push_often(tables, err));
    CHECK(have_all(tables, err));
    return true;
}

/* Who was connected is not: a client's sessions are the registry's, which goes
 * too. */
static bool all_are_killed_at_once(cluster_t *cluster, tables_t *tables, psd_error_t *err)
{
    for (unsigned i = 0; i < NODES; i++) {
        CHECK(cluster_kill(cluster, i, SIGKILL));
    }
    for (unsigned i = 0; i < NODES; i++) {
        CHECK(cluster_restart(cluster, i));
    }
    CHECK(have_all(tables, err));
    CHECK(push_often(tables, err));
    CHECK(have_all(tables, err));
    return true;
}

/* Asks until the answer has the part, which is an event to wait for. */
static bool status_says(psd_client_t *client, const char *part, psd_error_t *err)
{
    const struct timespec step = {.tv_nsec = 5000000};
    bool has = false;

    for (int i = 0; i < LOOKS_MAX && !has; i++) {
        char *reply = NULL;

        CHECK_OK(psd_request(client, "{\"op\":\"cluster_status\"}", CALL_MS, &reply, err), err);
        has = strstr(reply, part) != NULL;
        if (i == LOOKS_MAX - 1 && !has) {
            (void)fprintf(stderr, "no \"%s\" in %s\n", part, reply);
        }
        psd_free(reply);
        (void)nanosleep(&step, NULL);
    }
    return has;
}

/* All are killed, and one stays away: what it has of tables with copies on all
 * nodes is waited for. That others served was said of it. */
static bool a_copy_that_is_waited_for_is_named(cluster_t *cluster, tables_t *tables,
                                               psd_error_t *err)
{
    /* A copy that is alone in sync waits for no other. */
    CHECK(status_says(tables->client, "\"healthy\":true", err));
    for (unsigned i = 0; i < NODES; i++) {
        CHECK(cluster_kill(cluster, i, SIGKILL));
    }
    CHECK(cluster_restart(cluster, 0));
    CHECK(status_says(tables->client, "; psd waits for it: ", err));
    CHECK(cluster_restart(cluster, 2));
    CHECK(status_says(tables->client,
                      "and node \\\"n1\\\", which is silent and may have it, is awaited", err));
    CHECK(cluster_restart(cluster, 1));
    return have_all(tables, err) && push_often(tables, err) && have_all(tables, err);
}

int main(void)
{
    cluster_t cluster = {.n_nodes = 0};
    tables_t tables = {.wanted = 0};
    psd_error_t *err = psd_error_new();
    bool good = cluster_start(&cluster, &args);

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    good = good && open_tables(&cluster, &tables, err) && push_often(&tables, err) &&
           have_all(&tables, err) && all_are_killed_at_once(&cluster, &tables, err) &&
           a_node_is_killed_and_comes_back(&cluster, &tables, err) &&
           a_copy_that_is_waited_for_is_named(&cluster, &tables, err) &&
           all_are_killed_at_once(&cluster, &tables, err);
    close_tables(&tables);
    cluster_drop(&cluster, !good);
    psd_error_destroy(&err);
    return good ? 0 : 1;
}
