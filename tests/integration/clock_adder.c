/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that adds 1 to all values of a table of i64 in each clock, as the overlay passes it
 * on, and looks at the sums, which are exact in a job of BSP.
 *
 *     clock_adder TABLE CLOCKS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <psd.h>

#define WAIT_MS 600000 /* longer than any test takes */

typedef struct adder {
    psd_client_t *client;
    psd_table_t *table;
    psd_select_t *all;
    psd_call_t *last_push;
    int64_t *ones;
    int64_t *sums;
    size_t n;
    int64_t n_workers;
} adder_t;

static psd_status_t look(const adder_t *self, psd_error_t *err)
{
    int64_t wanted = (int64_t)psd_clock_count(self->client) * self->n_workers;
    psd_ticket_t ticket = 0;
    psd_status_t rc =
        psd_pull_start(self->table, self->all, self->sums, self->n, NULL, &ticket, err);

    if (rc == PSD_OK) {
        rc = psd_wait(self->client, ticket, WAIT_MS, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n; i++) {
        if (self->sums[i] != wanted) {
            fprintf(stderr, "value %zu is %" PRId64 " and not %" PRId64 "\n", i, self->sums[i],
                    wanted);
            rc = PSD_FAILED;
        }
    }
    return rc;
}

static psd_status_t add(const adder_t *self, uint64_t clocks, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && psd_clock_count(self->client) < clocks) {
        psd_ticket_t ticket = 0;

        rc = psd_push_start(self->table, self->all, self->ones, self->n, self->last_push, &ticket,
                            err);
        if (rc == PSD_OK) {
            rc = look(self, err);
        }
    }
    return rc == PSD_OK ? psd_wait_all(self->client, WAIT_MS, err) : rc;
}

static psd_status_t work(adder_t *self, const char *name, uint64_t clocks, psd_error_t *err)
{
    psd_status_t rc = psd_join(self->client, NULL, -1, 0, PSD_DELAY_ENV, err);

    if (rc == PSD_OK) {
        rc = psd_table_open(self->client, name, &self->table, err);
    }
    if (rc == PSD_OK) {
        self->n = (size_t)psd_table_rows(self->table) * psd_table_cols(self->table);
        self->ones = malloc(self->n * sizeof *self->ones);
        self->sums = malloc(self->n * sizeof *self->sums);
        rc = self->ones == NULL || self->sums == NULL ? PSD_NOMEM : PSD_OK;
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n; i++) {
        self->ones[i] = 1;
    }
    if (rc == PSD_OK) {
        rc = add(self, clocks, err);
    }
    return rc == PSD_OK ? psd_leave(self->client, WAIT_MS, err) : rc;
}

int main(int argc, char **argv)
{
    const char *n_workers = getenv("PSD_WORKERS"); /* pscli run sets it */
    adder_t self = {.all = psd_select_new(), .last_push = psd_call_new()};
    psd_error_t *err = psd_error_new();
    psd_status_t rc = PSD_OK;

    if (argc < 3 || n_workers == NULL) {
        fprintf(stderr, "usage: pscli run -- clock_adder TABLE CLOCKS\n");
        return 2;
    }
    self.n_workers = strtol(n_workers, NULL, 10);
    psd_select_all_rows(self.all);
    psd_call_set_ends_clock(self.last_push, true);
    psd_call_set_timeout_ms(self.last_push, WAIT_MS);
    rc = psd_connect(NULL, NULL, &self.client, err);
    if (rc == PSD_OK) {
        rc = work(&self, argv[1], strtoull(argv[2], NULL, 10), err);
    }
    if (rc != PSD_OK) {
        fprintf(stderr, "clock_adder: %s %s\n", psd_status_code(rc), psd_error_text(err));
    }
    psd_table_close(&self.table);
    psd_close(&self.client);
    psd_call_destroy(&self.last_push);
    psd_select_destroy(&self.all);
    psd_error_destroy(&err);
    free(self.ones);
    free(self.sums);
    return psd_status_exit(rc);
}
