/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pushes 1 to all rows of a table again and again, with a few pushes under way,
 * until it gets SIGTERM; then it says how many pushes were acknowledged. With PAUSE_MS it rests so
 * long after each, and also says how long the longest wait for one took; the errors have when the
 * first one was acknowledged, and what libpsd reports.
 *
 *     steady_pusher TABLE [PAUSE_MS]
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <psd.h>

#define WAIT_MS 600000 /* longer than any test takes */
#define WINDOW 4       /* pushes under way */

static volatile sig_atomic_t must_end;

static long pause_ms; /* 0: it does not rest */

static void on_wait(void *user, const char *what)
{
    (void)user;
    (void)fprintf(stderr, "%s\n", what);
}

static double now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Ends early at a signal. */
static void rest(void)
{
    const struct timespec time = {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000};

    if (pause_ms > 0) {
        (void)nanosleep(&time, NULL);
    }
}

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
    double longest_s = 0;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && must_end == 0) {
        psd_ticket_t *ticket = &tickets[n_pushes % WINDOW];

        if (*ticket != 0) {
            double since_s = now_s();

            rc = psd_wait(client, *ticket, WAIT_MS, err);
            if (pause_ms > 0 && rc == PSD_OK && n_pushes == WINDOW) {
                (void)fprintf(stderr, "has pushed\n");
            }
            longest_s = now_s() - since_s > longest_s ? now_s() - since_s : longest_s;
        }
        if (rc == PSD_OK) {
            rc = psd_push_start(table, rows, values, n, NULL, ticket, err);
            n_pushes++;
        }
        rest();
    }
    if (rc == PSD_OK) {
        rc = psd_wait_all(client, WAIT_MS, err);
    }
    if (rc == PSD_OK) {
        (void)printf("%" PRIu64 " pushes\n", n_pushes);
        if (pause_ms > 0) {
            (void)printf("longest wait %.0f ms\n", longest_s * 1000);
        }
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

    if (argc < 2 || argc > 3 || options == NULL || sigaction(SIGTERM, &act, NULL) != 0) {
        (void)fprintf(stderr, "usage: steady_pusher TABLE [PAUSE_MS]\n");
        return 2;
    }
    pause_ms = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    psd_options_set_timeout_ms(options, WAIT_MS);
    if (pause_ms > 0) {
        psd_options_set_on_wait(options, on_wait, NULL);
    }
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
