/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pushes 1 to all rows of a table again and again, with a few pushes under way,
 * until it gets SIGTERM; then it says how many pushes were acknowledged.
 *
 *     steady_pusher TABLE
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <psd.h>

#define WAIT_MS 600000 /* longer than any test takes */
#define WINDOW 4       /* pushes under way */

static volatile sig_atomic_t must_end;

static void on_term(int signal)
{
    (void)signal;
    must_end = 1;
}

static psd_status_t push_all(psd_client_t *client, psd_table_t *table, const psd_select_t *rows,
                             const float *values, psd_error_t *err)
{
    size_t n = (size_t)psd_table_rows(table) * psd_table_cols(table);
    psd_ticket_t tickets[WINDOW] = {0};
    uint64_t n_pushes = 0;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && must_end == 0) {
        psd_ticket_t *ticket = &tickets[n_pushes % WINDOW];

        if (*ticket != 0) {
            rc = psd_wait(client, *ticket, WAIT_MS, err);
        }
        if (rc == PSD_OK) {
            rc = psd_push_start(table, rows, values, n, NULL, ticket, err);
            n_pushes++;
        }
    }
    if (rc == PSD_OK) {
        rc = psd_wait_all(client, WAIT_MS, err);
    }
    if (rc == PSD_OK) {
        (void)printf("%" PRIu64 " pushes\n", n_pushes);
    }
    return rc;
}

static psd_status_t run(psd_client_t *client, const char *name, psd_error_t *err)
{
    psd_table_t *table = NULL;
    psd_select_t *rows = psd_select_new();
    float *values = NULL;
    size_t n = 0;
    psd_status_t rc = psd_table_open(client, name, &table, err);

    if (rc == PSD_OK) {
        n = (size_t)psd_table_rows(table) * psd_table_cols(table);
        values = calloc(n, sizeof *values);
        rc = rows == NULL || values == NULL ? PSD_NOMEM : PSD_OK;
    }
    if (rc == PSD_OK) {
        for (size_t i = 0; i < n; i++) {
            values[i] = 1.0F;
        }
        psd_select_all_rows(rows);
        rc = push_all(client, table, rows, values, err);
    }
    free(values);
    psd_select_destroy(&rows);
    psd_table_close(&table);
    return rc;
}

int main(int argc, char **argv)
{
    const struct sigaction act = {.sa_handler = on_term};
    psd_client_t *client = NULL;
    psd_options_t *options = psd_options_new();
    psd_error_t *err = psd_error_new();
    psd_status_t rc = PSD_OK;

    if (argc != 2 || options == NULL || sigaction(SIGTERM, &act, NULL) != 0) {
        (void)fprintf(stderr, "usage: steady_pusher TABLE\n");
        return 2;
    }
    psd_options_set_timeout_ms(options, WAIT_MS);
    rc = psd_connect(NULL, options, &client, err);
    if (rc == PSD_OK) {
        rc = run(client, argv[1], err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "steady_pusher: %s\n", psd_error_text(err));
    }
    psd_close(&client);
    psd_options_destroy(&options);
    psd_error_destroy(&err);
    return psd_status_exit(rc);
}
