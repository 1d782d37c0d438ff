/* SPDX-License-Identifier: Apache-2.0 */
/* A partition with a log leaves a node and is made anew there, empty, when the
 * node that it went to is removed by force: what the first node has of it from
 * before does not come back with a restart, what was acknowledged since does.
 */
#include <psd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/cluster.h"

#define CALL_MS 60000
#define TRIES 6000 /* of 5 ms */
#define BEFORE 6   /* pushes of 1 */
#define SINCE 3    /* pushes of 100: fewer records than before */

static const cluster_args_t args = {.n_nodes = 1, .net = CLUSTER_DIRECT, .config = "shards: 1\n"};

/* Asks until the reply has that text; it may be refused until then. */
static bool wait_reply(psd_client_t *client, const char *request, const char *wanted,
                       psd_error_t *err)
{
    const struct timespec step = {.tv_nsec = 5000000L};
    char last[4096] = "";

    for (int i = 0; i < TRIES; i++) {
        char *reply = NULL;
        bool found = false;

        if (psd_request(client, request, CALL_MS, &reply, err) == PSD_OK) {
            found = strstr(reply, wanted) != NULL;
        }
        (void)snprintf(last, sizeof last, "%s", reply == NULL ? psd_error_text(err) : reply);
        psd_free(reply);
        if (found) {
            return true;
        }
        (void)nanosleep(&step, NULL);
    }
    (void)fprintf(stderr, "%s: no %s in %s\n", request, wanted, last);
    return false;
}

/* As a new client: opens or makes the table, adds `delta` so often, and expects
 * `wanted` then. */
static bool add(const cluster_t *cluster, int64_t delta, int times, int64_t wanted,
                psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_spec_t *spec = psd_spec_new();
    const uint64_t row = 1;
    int64_t value = 0;

    CHECK_OK(psd_connect(cluster->nodes[0].control, NULL, &client, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "4", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "1", err), err);
    CHECK_OK(psd_spec_set(spec, "ack", "disk", err), err);
    CHECK_OK(psd_table_ensure(client, "w", spec, &table, err), err);
    for (int i = 0; i < times; i++) {
        CHECK_OK(psd_push(table, &row, 1, &delta, 1, err), err);
    }
    CHECK_OK(psd_pull(table, &row, 1, &value, 1, err), err);
    if (value != wanted) {
        (void)fprintf(stderr, "the row is %lld, not %lld\n", (long long)value, (long long)wanted);
    }
    CHECK(value == wanted);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

/* All of it goes to n1, which is lost. */
static bool lose_it_elsewhere(cluster_t *cluster, psd_error_t *err)
{
    psd_client_t *client = NULL;

    CHECK(cluster_add(cluster));
    CHECK_OK(psd_connect(cluster->nodes[0].control, NULL, &client, err), err);
    CHECK(wait_reply(client, "{\"op\":\"node_drain\",\"name\":\"n0\"}", "\"left\":{\"copies\":0,",
                     err));
    CHECK(wait_reply(client, "{\"op\":\"node_drain\",\"name\":\"n0\",\"stay\":true}",
                     "\"left\":", err));
    CHECK(cluster_kill(cluster, 1, SIGKILL));
    CHECK(wait_reply(client, "{\"op\":\"node_remove\",\"name\":\"n1\",\"force\":true}",
                     "\"removed\":true", err));
    psd_close(&client);
    return true;
}

int main(void)
{
    cluster_t cluster = {.n_nodes = 0};
    psd_error_t *err = psd_error_new();
    bool good = cluster_start(&cluster, &args) && add(&cluster, 1, BEFORE, (int64_t)BEFORE, err) &&
                lose_it_elsewhere(&cluster, err) &&
                add(&cluster, 100, SINCE, (int64_t)SINCE * 100, err) &&
                cluster_kill(&cluster, 0, SIGKILL) && cluster_restart(&cluster, 0) &&
                add(&cluster, 0, 0, (int64_t)SINCE * 100, err);

    psd_error_destroy(&err);
    cluster_drop(&cluster, !good);
    return good ? 0 : 1;
}
