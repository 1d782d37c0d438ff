/* SPDX-License-Identifier: Apache-2.0 */
/* What partitions take reaches the registry by beats, and counts there: of two
 * nodes with as many copies each, the one that has the large ones gives one
 * away. And what of it an operator is shown: sizes of tables with one copy,
 * moves with bytes and time, a repair. */
#include <psd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/cluster.h"

#define CALL_MS 60000
#define LOOKS_MAX 3000

static const cluster_args_t args = {.n_nodes = 2, .net = CLUSTER_DIRECT, .config = "shards: 1\n"};

/* Asks until the answer has the part, which is an event to wait for. */
static bool answers_with(psd_client_t *client, const char *request, const char *part)
{
    const struct timespec step = {.tv_nsec = 10000000};
    psd_error_t *err = psd_error_new();
    bool has = false;

    for (int i = 0; i < LOOKS_MAX && !has; i++) {
        char *reply = NULL;

        psd_error_clear(err);
        CHECK_OK(psd_request(client, request, CALL_MS, &reply, err), err);
        has = strstr(reply, part) != NULL;
        if (i == LOOKS_MAX - 1 && !has) {
            (void)fprintf(stderr, "no \"%s\" in %s\n", part, reply);
        }
        psd_free(reply);
        (void)nanosleep(&step, NULL);
    }
    psd_error_destroy(&err);
    return has;
}

/* Partitions 0 and 2, which are placed together, have 100 MB each. */
static bool make_uneven(psd_client_t *client, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK_OK(psd_spec_set(spec, "rows", "25000002", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "4", err), err);
    CHECK_OK(psd_spec_set(spec, "partition-by", "list:12500000,12500001,25000001", err), err);
    CHECK_OK(psd_table_create(client, "w", spec, &table, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return true;
}

#define INSPECT "{\"op\":\"table_inspect\",\"name\":\"w\"}"
#define EVENTS "{\"op\":\"cluster_events\"}"
#define NODES "{\"op\":\"node_list\"}"
#define EVEN "{\"op\":\"cluster_rebalance\",\"dry_run\":true}"
#define DRAIN "{\"op\":\"node_drain\",\"name\":\"n1\",\"dry_run\":true}"
#define REPAIR "{\"op\":\"cluster_repair\"}"

static bool sizes_are_shown(psd_client_t *client)
{
    CHECK(answers_with(client, INSPECT,
                       "\"state\":\"primary\",\"leaving\":false,\"answers\":"
                       "true,\"lsn\":0,\"rows_present\":12500000,\"bytes\":"
                       "100000000,\"lag_records\":0,\"lag_bytes\":0,\"lag_s\":"
                       "0"));
    CHECK(answers_with(client, NODES, "\"name\":\"n1\",\"state\":\"up\",\"incarnation\":"));
    CHECK(answers_with(client, NODES, "\"shards\":1,\"weight\":3,"));
    CHECK(answers_with(client, EVENTS, "moves a copy from node n0 to node n1"));
    CHECK(answers_with(client, EVEN, "\"moving\":0,\"moves\":[],\"bytes\":0,"));
    CHECK(answers_with(client, DRAIN,
                       "\"to\":\"n0\",\"what\":\"primary\","
                       "\"bytes\":100000000,\"bytes_done\":0,"
                       "\"under_way\":false}"));
    CHECK(answers_with(client, DRAIN, "\"bytes_per_s\":"));
    CHECK(answers_with(client, REPAIR, "\"moves\":[],\"bytes\":0,"));
    return true;
}

static bool run(cluster_t *cluster, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;

    CHECK(cluster_start(cluster, &args));
    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_connect(cluster->nodes[0].control, options, &client, err), err);
    psd_options_destroy(&options);
    CHECK(make_uneven(client, err));
    CHECK(sizes_are_shown(client));
    psd_close(&client);
    return true;
}

int main(void)
{
    cluster_t cluster = {.n_nodes = 0};
    psd_error_t *err = psd_error_new();
    bool good = setenv("PSD_NODE_WEIGHT", "3", 1) == 0 && run(&cluster, err);

    cluster_drop(&cluster, !good);
    psd_error_destroy(&err);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
