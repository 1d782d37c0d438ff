/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker for the tests of pscli: joins the job that its environment names,
 * pushes 1 to the row of its rank, finishes clocks, and leaves.
 *
 *     cli_worker TABLE CLOCKS [hold]
 *
 * hold: instead of leaving it pulls, which waits for the others.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <psd.h>

#define WAIT_MS 600000 /* longer than any test takes */

static psd_status_t work(psd_client_t *client, const char *table_name, long n_clocks, int hold,
                         psd_error_t *err)
{
    psd_table_t *table = NULL;
    float value = 1.0F;
    uint64_t row = 0;
    psd_status_t rc = psd_join(client, NULL, -1, 0, PSD_DELAY_ENV, err);

    if (rc == PSD_OK) {
        rc = psd_table_open(client, table_name, &table, err);
    }
    row = psd_worker(client);
    for (long i = 0; rc == PSD_OK && i < n_clocks; i++) {
        rc = psd_push(table, &row, 1, &value, 1, err);
        if (rc == PSD_OK) {
            rc = psd_clock(client, err);
        }
    }
    printf("worker %" PRIu64 " ready\n", row);
    fflush(stdout);
    if (rc == PSD_OK && hold) {
        rc = psd_pull(table, &row, 1, &value, 1, err);
    }
    if (rc == PSD_OK) {
        rc = psd_leave(client, WAIT_MS, err);
    }
    psd_table_close(&table);
    return rc;
}

int main(int argc, char **argv)
{
    psd_client_t *client = NULL;
    psd_options_t *options = psd_options_new();
    psd_error_t *err = psd_error_new();
    psd_status_t rc = PSD_OK;

    if (argc < 3) {
        fprintf(stderr, "usage: cli_worker TABLE CLOCKS [hold]\n");
        return 2;
    }
    psd_options_set_timeout_ms(options, WAIT_MS);
    rc = psd_connect(NULL, options, &client, err);
    if (rc == PSD_OK) {
        rc = work(client, argv[1], strtol(argv[2], NULL, 10),
                  argc > 3 && strcmp(argv[3], "hold") == 0, err);
    }
    if (rc != PSD_OK) {
        fprintf(stderr, "%s\n", psd_error_text(err));
    }
    psd_close(&client);
    psd_options_destroy(&options);
    psd_error_destroy(&err);
    return psd_status_exit(rc);
}
