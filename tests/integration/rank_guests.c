/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job of ranks of MPI in which others take part for a while.
 *
 *     rank_guests READY DONE    a rank: rank 0 makes the file READY; each waits for the file DONE,
 *                               pushes 1 to all rows, and at the end rank 0 tells the sums
 *     rank_guests               a worker beside them: pushes 1 to all rows 10 times, and leaves
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <psd.h>

#define ROWS 64
#define OF_GUEST 10
#define WAIT_MS 60000
#define LOOK_NS 10000000L

static uint64_t rows[ROWS];
static int64_t ones[ROWS];
static int64_t sums[ROWS];

static psd_status_t open_table(psd_client_t *client, psd_table_t **ret_table, psd_error_t *err)
{
    static const char *const SETTINGS[][2] = {{"type", "i64"}, {"rows", "64"}, {"partitions", "9"}};
    psd_spec_t *spec = psd_spec_new();
    psd_status_t rc = spec == NULL ? PSD_NOMEM : PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < sizeof SETTINGS / sizeof SETTINGS[0]; i++) {
        rc = psd_spec_set(spec, SETTINGS[i][0], SETTINGS[i][1], err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(client, "shared", spec, ret_table, err);
    }
    psd_spec_destroy(&spec);
    return rc;
}

static psd_status_t push(psd_client_t *client, int times, psd_table_t **ret_table, psd_error_t *err)
{
    psd_status_t rc = open_table(client, ret_table, err);

    for (int i = 0; rc == PSD_OK && i < times; i++) {
        rc = psd_push(*ret_table, rows, ROWS, ones, ROWS, err);
    }
    return rc;
}

/* Rank 0 says when the job is there. */
static bool wait_for_guests(const psd_client_t *client, const char *ready, const char *done)
{
    const struct timespec span = {.tv_nsec = LOOK_NS};
    FILE *file = psd_worker(client) == 0 ? fopen(ready, "we") : NULL;
    bool is_made = psd_worker(client) != 0 || (file != NULL && fclose(file) == 0);

    while (is_made && access(done, F_OK) != 0) {
        (void)nanosleep(&span, NULL);
    }
    return is_made;
}

static psd_status_t be_rank(psd_client_t *client, char **argv, psd_table_t **ret_table,
                            psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (!wait_for_guests(client, argv[1], argv[2])) {
        return PSD_IO;
    }
    rc = push(client, 1, ret_table, err);
    if (rc == PSD_OK) {
        rc = psd_barrier(client, WAIT_MS, err);
    }
    if (rc == PSD_OK) {
        rc = psd_pull(*ret_table, rows, ROWS, sums, ROWS, err);
    }
    for (size_t i = 1; rc == PSD_OK && i < ROWS; i++) {
        sums[0] = sums[i] == sums[0] ? sums[0] : -1;
    }
    if (rc == PSD_OK && psd_worker(client) == 0) {
        (void)printf("all rows are %" PRId64 "\n", sums[0]);
    }
    return rc;
}

int main(int argc, char **argv)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    rc = psd_connect(NULL, NULL, &client, err);
    if (rc == PSD_OK) {
        rc = psd_join(client, NULL, -1, 0, -1, err);
    }
    if (rc == PSD_OK) {
        rc = argc > 2 ? be_rank(client, argv, &table, err) : push(client, OF_GUEST, &table, err);
    }
    if (rc == PSD_OK) {
        rc = psd_leave(client, WAIT_MS, err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "rank_guests: %s\n", psd_error_text(err));
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_error_destroy(&err);
    return rc == PSD_OK ? 0 : 1;
}
