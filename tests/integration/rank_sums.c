/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that pushes 1 to all rows of a table in each clock, and looks at the sums at the
 * end. One of them kills itself: the acknowledged pushes of all are known.
 *
 *     rank_sums VICTIM CLOCKS AT       the worker of rank VICTIM has AT pushes acknowledged;
 *                                      with -AT it exits with code 0, and does not leave the job
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <psd.h>

#define ROWS 64
#define WAIT_MS 60000

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static psd_status_t make_table(psd_client_t *client, psd_table_t **ret_table, psd_error_t *err)
{
    static const char *const SETTINGS[][2] = {{"type", "i64"},
                                              {"rows", "64"},
                                              {"partitions", "8"},
                                              {"replicas", "2"},
                                              {"ack", "replica"}};
    psd_spec_t *spec = psd_spec_new();
    psd_status_t rc = spec == NULL ? PSD_NOMEM : PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < sizeof SETTINGS / sizeof SETTINGS[0]; i++) {
        rc = psd_spec_set(spec, SETTINGS[i][0], SETTINGS[i][1], err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(client, "sums", spec, ret_table, err);
    }
    psd_spec_destroy(&spec);
    return rc;
}

static psd_status_t train(psd_client_t *client, psd_table_t *table, const uint64_t *rows,
                          const long *args, psd_error_t *err)
{
    int64_t ones[ROWS];
    double longest_s = 0;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < ROWS; i++) {
        ones[i] = 1;
    }
    for (long clock = 0; rc == PSD_OK && clock < args[1]; clock++) {
        double begin_s = now_s();

        rc = psd_push(table, rows, ROWS, ones, ROWS, err);
        if (rc == PSD_OK && psd_worker(client) == args[0] && clock + 1 == args[2]) {
            (void)kill(getpid(), SIGKILL);
        }
        if (rc == PSD_OK) {
            rc = psd_clock(client, err);
        }
        if (rc == PSD_OK && psd_worker(client) == args[0] && clock + 1 == -args[2]) {
            exit(0);
        }
        longest_s = now_s() - begin_s > longest_s ? now_s() - begin_s : longest_s;
    }
    if (rc == PSD_OK) {
        (void)printf("longest clock %.1f s\n", longest_s);
        rc = psd_barrier(client, WAIT_MS, err);
    }
    return rc;
}

int main(int argc, char **argv)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    uint64_t rows[ROWS];
    int64_t sums[ROWS] = {0};
    long args[3] = {0};
    psd_status_t rc = PSD_OK;

    for (int i = 0; i < 3 && i + 1 < argc; i++) {
        args[i] = strtol(argv[i + 1], NULL, 10);
    }
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
    }
    rc = psd_connect(NULL, NULL, &client, err);
    if (rc == PSD_OK) {
        rc = psd_join(client, NULL, -1, 0, PSD_DELAY_ENV, err);
    }
    if (rc == PSD_OK) {
        rc = make_table(client, &table, err);
    }
    if (rc == PSD_OK) {
        rc = train(client, table, rows, args, err);
    }
    if (rc == PSD_OK) {
        rc = psd_pull(table, rows, ROWS, sums, ROWS, err);
    }
    for (size_t i = 1; rc == PSD_OK && i < ROWS; i++) {
        sums[0] = sums[i] == sums[0] ? sums[0] : -1;
    }
    if (rc == PSD_OK) {
        (void)printf("all rows are %" PRId64 "\n", sums[0]);
        rc = psd_leave(client, WAIT_MS, err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "rank_sums: %s\n", psd_error_text(err));
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_error_destroy(&err);
    return rc == PSD_OK ? 0 : 1;
}
