/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is scheduler, server or worker, as its environment says. A worker pushes
 * 1 to row 0 and, when all have, prints its rank and the sum. */
#include <inttypes.h>
#include <stdio.h>

#include <psd.h>
#include <psd_server.h>

#define WAIT_MS 60000

static psd_status_t work(psd_client_t *client, psd_error_t *err)
{
    const uint64_t row = 0;
    const float one = 1.0F;
    float sum = 0;
    psd_table_t *table = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_status_t rc = psd_join(client, NULL, -1, 0, PSD_DELAY_ENV, err);

    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "rows", "10", err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(client, "t", spec, &table, err);
    }
    if (rc == PSD_OK) {
        rc = psd_push(table, &row, 1, &one, 1, err);
    }
    if (rc == PSD_OK) {
        rc = psd_clock(client, err);
    }
    if (rc == PSD_OK) {
        rc = psd_pull(table, &row, 1, &sum, 1, err);
    }
    if (rc == PSD_OK) {
        printf("worker %" PRIu32 " sum %.0f\n", psd_worker(client), (double)sum);
        rc = psd_leave(client, WAIT_MS, err);
    }
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return rc;
}

int main(void)
{
    psd_client_t *client = NULL;
    psd_error_t *err = psd_error_new();
    bool works = false;
    psd_status_t rc = psd_start(NULL, &works, err);

    if (rc == PSD_OK && works) {
        rc = psd_connect(NULL, NULL, &client, err);
    }
    if (rc == PSD_OK && works) {
        rc = work(client, err);
    }
    if (rc != PSD_OK) {
        fprintf(stderr, "%s %s\n", psd_status_code(rc), psd_error_text(err));
    }
    psd_close(&client);
    psd_error_destroy(&err);
    return psd_status_exit(rc);
}
