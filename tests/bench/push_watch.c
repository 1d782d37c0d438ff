/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pushes 1 to all rows of a table again and again, one push at a time. For each
 * line that it reads it prints how many pushes were acknowledged since the last
 * line, and the milliseconds of the longest one. Ends with its input.
 *
 *     push_watch TABLE
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <psd.h>

#define WAIT_MS 600000

static double now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Reads what is there. -1: the input has ended; else how many lines. */
static int count_lines(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char text[64];
    ssize_t n = poll(&input, 1, 0) == 1 ? read(STDIN_FILENO, text, sizeof text) : 0;
    int n_lines = input.revents != 0 && n <= 0 ? -1 : 0;

    for (ssize_t i = 0; i < n; i++) {
        n_lines += text[i] == '\n' ? 1 : 0;
    }
    return n_lines;
}

static psd_status_t push_all(psd_table_t *table, const uint64_t *rows, const float *values,
                             psd_error_t *err)
{
    size_t n = (size_t)psd_table_rows(table);
    double longest_ms = 0;
    uint64_t n_pushes = 0;
    psd_status_t rc = PSD_OK;
    int n_lines = 0;

    while (rc == PSD_OK && n_lines >= 0) {
        double begin_ms = now_ms();
        double took_ms = 0;

        rc = psd_push(table, rows, n, values, n * psd_table_cols(table), err);
        took_ms = now_ms() - begin_ms;
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
        n_pushes++;
        n_lines = count_lines();
        if (rc == PSD_OK && n_lines > 0) {
            (void)printf("%" PRIu64 " %.2f\n", n_pushes, longest_ms);
            (void)fflush(stdout);
            longest_ms = 0;
            n_pushes = 0;
        }
    }
    return rc;
}

int main(int n_args, char **args)
{
    psd_error_t *err = psd_error_new();
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    uint64_t *rows = NULL;
    float *values = NULL;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (n_args != 2 || err == NULL || options == NULL) {
        (void)fprintf(stderr, "usage: push_watch TABLE\n");
        return 2;
    }
    psd_options_set_timeout_ms(options, WAIT_MS);
    rc = psd_connect(NULL, options, &client, err);
    if (rc == PSD_OK) {
        rc = psd_table_open(client, args[1], &table, err);
    }
    if (rc == PSD_OK) {
        n = (size_t)psd_table_rows(table);
        rows = calloc(n, sizeof *rows);
        values = calloc(n * psd_table_cols(table), sizeof *values);
        rc = rows == NULL || values == NULL ? PSD_NOMEM : PSD_OK;
    }
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        rows[i] = i;
    }
    if (rc == PSD_OK) {
        rc = push_all(table, rows, values, err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "push_watch: %s\n", psd_error_text(err));
    }
    free(rows);
    free(values);
    psd_table_close(&table);
    psd_close(&client);
    psd_options_destroy(&options);
    psd_error_destroy(&err);
    return rc == PSD_OK ? 0 : 1;
}
