/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move_cost - what a job notices of a table that moves to a node that joins
 *
 *   move_cost [MB] [BYTES_PER_S]
 *
 * One node with a table of f32 (default 2048 MB, 8 partitions); a client pushes
 * to 1 MB of it and pulls it, over and over. Then a second node joins, and half
 * of the table moves there. Prints the client's rounds in a second before and
 * meanwhile, and the bytes that moved in a second, which
 * copies.bytes_per_s bounds if it is given. PSD_PROGRAM names the
 * daemon.
 */
#include <psd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/cluster.h"

#define COLS 1024
#define PART_ROWS 256
#define CALL_MS 60000
#define BEFORE_S 4.0
#define MOST_S 40.0

static double
now_s(void)
{
    struct timespec now = {.tv_sec = 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool
reply_has(psd_client_t *client, const char *request, const char *text)
{
    psd_error_t *err = psd_error_new();
    char *reply = NULL;
    bool found = psd_request(client, request, CALL_MS, &reply, err) == PSD_OK &&
                 strstr(reply, text) != NULL;

    psd_free(reply);
    psd_error_destroy(&err);
    return found;
}

/* Every partition in turn. */
static bool
run_round(psd_table_t *table,
          uint64_t n_rows,
          uint64_t round,
          float *values,
          psd_error_t *err)
{
    static uint64_t rows[PART_ROWS];
    uint64_t first = round * (n_rows / 8) % (n_rows - PART_ROWS);

    for (size_t i = 0; i < PART_ROWS; i++) {
        rows[i] = first + i;
    }
    CHECK_OK(
        psd_push(table, rows, PART_ROWS, values, (size_t)PART_ROWS * COLS, err),
        err);
    CHECK_OK(
        psd_pull(table, rows, PART_ROWS, values, (size_t)PART_ROWS * COLS, err),
        err);
    return true;
}

static bool
measure(cluster_t *cluster,
        psd_client_t *client,
        psd_table_t *table,
        uint64_t n_rows,
        psd_error_t *err)
{
    static float values[PART_ROWS * COLS];
    double from = now_s();
    double before = 0;
    double spent = 0;
    double bytes = (double)n_rows * COLS * 4 / 2;
    uint64_t round = 0;
    uint64_t n = 0;
    bool done = false;

    for (; now_s() - from < BEFORE_S; n++) {
        CHECK(run_round(table, n_rows, round++, values, err));
    }
    before = (double)n / (now_s() - from);
    CHECK(cluster_add(cluster));
    from = now_s();
    for (n = 0; !done && now_s() - from < MOST_S; n++) {
        CHECK(run_round(table, n_rows, round++, values, err));
        done =
            n % 16 == 0 &&
            reply_has(client, "{\"op\":\"node_inspect\",\"name\":\"n1\"}",
                      "\"primary\":4,\"replica\":0}") &&
            reply_has(client, "{\"op\":\"cluster_rebalance\",\"dry_run\":true}",
                      "\"moving\":0,");
    }
    spent = now_s() - from;
    (void)printf("before %.0f rounds/s; while %s %.0f rounds/s (%.0f %%); %.0f "
                 "MB in %.2f s: %.0f MB/s; no request failed\n",
                 before, done ? "it moved" : "it DID NOT end",
                 (double)n / spent, 100 * (double)n / spent / before,
                 bytes / 1e6, spent, bytes / 1e6 / spent);
    return done;
}

int
main(int argc, char **argv)
{
    char config[128];
    cluster_args_t args = {
        .n_nodes = 1, .net = CLUSTER_DIRECT, .config = config};
    uint64_t mb = argc > 1 ? strtoull(argv[1], NULL, 10) : 2048;
    cluster_t cluster = {.n_nodes = 0};
    psd_error_t *err = psd_error_new();
    psd_options_t *options = psd_options_new();
    psd_spec_t *spec = psd_spec_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    char rows[32];
    bool good = false;

    (void)snprintf(config, sizeof config,
                   "shards: 1\ncopies:\n  bytes_per_s: %s\n",
                   argc > 2 ? argv[2] : "0");
    good = cluster_start(&cluster, &args);

    psd_options_set_timeout_ms(options, CALL_MS);
    (void)snprintf(rows, sizeof rows, "%llu", (unsigned long long)mb * 256);
    good = good && psd_connect(cluster.nodes[0].control, options, &client,
                               err) == PSD_OK;
    good = good && psd_spec_set(spec, "rows", rows, err) == PSD_OK &&
           psd_spec_set(spec, "cols", "1024", err) == PSD_OK &&
           psd_spec_set(spec, "partitions", "8", err) == PSD_OK &&
           psd_table_create(client, "big", spec, &table, err) == PSD_OK;
    good = good && measure(&cluster, client, table, mb * 256, err);
    if (!good) {
        (void)fprintf(stderr, "%s\n", psd_error_text(err));
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_spec_destroy(&spec);
    psd_options_destroy(&options);
    cluster_drop(&cluster, false);
    psd_error_destroy(&err);
    return good ? 0 : 1;
}
