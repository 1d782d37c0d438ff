/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of a job, whole: fits y = 3 u - 2 v + 0.5 to samples that it draws.
 *     pscli run -n 4 -- psd-worker */
#include <psd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_WEIGHTS 3 /* of u and v, and what is added */
#define N_SAMPLES 1000
#define N_CLOCKS 200
#define RATE 0.1F
#define WAIT_MS 60000

/* In -1 .. 1; each worker draws others. */
static float draw(unsigned *state)
{
    *state = *state * 1664525U + 1013904223U;
    return (float)(*state >> 8) / (float)(1U << 23) - 1.0F;
}

/* How the weights should change, by this worker's samples. */
static void learn(unsigned seed, const float *weights, float share, float *ret_deltas)
{
    memset(ret_deltas, 0, N_WEIGHTS * sizeof *ret_deltas);
    for (int i = 0; i < N_SAMPLES; i++) {
        const float x[N_WEIGHTS] = {draw(&seed), draw(&seed), 1.0F};
        float error = 3.0F * x[0] - 2.0F * x[1] + 0.5F;

        for (int k = 0; k < N_WEIGHTS; k++) {
            error -= weights[k] * x[k];
        }
        for (int k = 0; k < N_WEIGHTS; k++) {
            ret_deltas[k] += share * RATE * error * x[k] / N_SAMPLES;
        }
    }
}

/* One clock: pull, learn, push. The push ends the clock; nobody waits for it,
 * but the next pull waits for those of the slowest worker (BSP). */
static psd_status_t run_clock(psd_client_t *client, psd_table_t *table, const psd_select_t *all,
                              const psd_call_t *last_push, float share, psd_error_t *err)
{
    float weights[N_WEIGHTS];
    float deltas[N_WEIGHTS];
    psd_ticket_t ticket = 0;
    psd_status_t rc = psd_pull_start(table, all, weights, N_WEIGHTS, NULL, &ticket, err);

    if (rc == PSD_OK) {
        rc = psd_wait(client, ticket, WAIT_MS, err);
    }
    if (rc == PSD_OK) {
        learn(psd_worker(client) + 1, weights, share, deltas);
        rc = psd_push_start(table, all, deltas, N_WEIGHTS, last_push, &ticket, err);
    }
    return rc;
}

static psd_status_t train(psd_client_t *client, psd_table_t *table, psd_error_t *err)
{
    const char *n_workers = getenv("PSD_WORKERS"); /* pscli run sets it */
    float share = n_workers == NULL ? 1.0F : 1.0F / strtof(n_workers, NULL);
    psd_select_t *all = psd_select_new();
    psd_call_t *last_push = psd_call_new();
    psd_status_t rc = all == NULL || last_push == NULL ? PSD_NOMEM : PSD_OK;

    if (rc == PSD_OK) {
        psd_select_all_rows(all);
        psd_call_set_ends_clock(last_push, true);
        psd_call_set_timeout_ms(last_push, WAIT_MS);
    }
    while (rc == PSD_OK && psd_clock_count(client) < N_CLOCKS) {
        rc = run_clock(client, table, all, last_push, share, err);
    }
    if (rc == PSD_OK) { /* did every push succeed? */
        rc = psd_wait_all(client, WAIT_MS, err);
    }
    psd_call_destroy(&last_push);
    psd_select_destroy(&all);
    return rc;
}

/* Joins the job, trains, and leaves, so that nobody waits for this worker. */
static psd_status_t work(psd_client_t *client, const psd_spec_t *spec, psd_error_t *err)
{
    const uint64_t rows[N_WEIGHTS] = {0, 1, 2};
    float weights[N_WEIGHTS];
    psd_table_t *table = NULL;
    psd_status_t rc = psd_join(client, NULL, -1, 0, PSD_DELAY_ENV, err);
    unsigned rank = psd_worker(client);

    if (rc == PSD_OK) {
        rc = psd_table_ensure(client, "weights", spec, &table, err);
    }
    if (rc == PSD_OK) {
        rc = train(client, table, err);
    }
    if (rc == PSD_OK) {
        rc = psd_barrier(client, WAIT_MS, err);
    }
    if (rc == PSD_OK && psd_first_worker(client) == rank) {
        rc = psd_pull(table, rows, N_WEIGHTS, weights, N_WEIGHTS, err);
        if (rc == PSD_OK) {
            printf("%.3f %.3f %.3f\n", weights[0], weights[1], weights[2]);
        }
    }
    if (rc == PSD_OK) {
        rc = psd_leave(client, WAIT_MS, err);
    }
    psd_table_close(&table);
    return rc;
}

int main(void)
{
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_error_t *err = psd_error_new();
    psd_status_t rc = psd_spec_set(spec, "rows", "3", err);

    if (rc == PSD_OK) {
        rc = psd_connect(NULL, NULL, &client, err);
    }
    if (rc == PSD_OK) {
        rc = work(client, spec, err);
    }
    if (rc != PSD_OK) {
        fprintf(stderr, "psd-worker: %s %s\n", psd_status_code(rc), psd_error_text(err));
    }
    psd_close(&client);
    psd_spec_destroy(&spec);
    psd_error_destroy(&err);
    return psd_status_exit(rc);
}
