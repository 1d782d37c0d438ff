/* SPDX-License-Identifier: Apache-2.0 */
/* A client whose n-th allocation fails, for every n: it says so, or does
 * without; it never crashes, leaks, waits without an end, or applies a push
 * twice. With SEEDS_LESS in the environment every third n. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "psd.h"
#include "support/check.h"
#include "support/daemon.h"
#include "support/fail_alloc.h"

#define RUNS_MAX 3000
#define TIMEOUT_MS 3000
#define LATE_MAX 20 /* lives that end before their failure */

typedef struct scene {
    const char *endpoint;
    uint64_t row; /* of its own for each run */
    psd_client_t *client;
    psd_table_t *table;
    psd_table_t *hashed;
    psd_spec_t *spec;
    psd_error_t *err;
} scene_t;

static psd_status_t open_tables(scene_t *self)
{
    psd_status_t rc = PSD_OK;

    self->spec = psd_spec_new();
    if (self->spec == NULL) {
        return PSD_NOMEM;
    }
    rc = psd_spec_set(self->spec, "type", "i64", self->err);
    if (rc == PSD_OK) {
        rc = psd_spec_set(self->spec, "rows", "4000", self->err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(self->client, "plain", self->spec, &self->table, self->err);
    }
    psd_spec_destroy(&self->spec);
    self->spec = psd_spec_new();
    if (rc == PSD_OK && self->spec == NULL) {
        return PSD_NOMEM;
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(self->spec, "keys", "hash", self->err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(self->client, "hashed", self->spec, &self->hashed, self->err);
    }
    return rc;
}

static psd_status_t fetch_some(scene_t *self)
{
    const uint64_t keys[] = {self->row, 77, UINT64_MAX};
    const uint32_t counts[] = {1, 0, 1};
    const uint32_t cols[] = {0, 0};
    const float values[] = {1.0F, 2.0F};
    psd_select_t *select = psd_select_new();
    psd_call_t *call = psd_call_new();
    psd_result_t *result = NULL;
    psd_ticket_t ticket = 0;
    psd_status_t rc = select == NULL || call == NULL ? PSD_NOMEM : PSD_OK;

    if (rc == PSD_OK) {
        psd_select_rows(select, keys, 3);
        psd_select_sparse(select, counts, cols);
        psd_call_set_borrow(call, true);
        rc = psd_push_start(self->hashed, select, values, 2, call, &ticket, self->err);
    }
    if (rc == PSD_OK) {
        rc = psd_wait_all(self->client, TIMEOUT_MS, self->err);
    }
    if (rc == PSD_OK) {
        psd_select_all_rows(select);
        psd_select_sparse(select, NULL, NULL);
        rc = psd_fetch(self->hashed, select, false, 10, NULL, &result, self->err);
    }
    psd_result_destroy(&result);
    psd_call_destroy(&call);
    psd_select_destroy(&select);
    return rc;
}

/* A list that is kept and then named, bodies that are written anew, values that
 * are held back. */
static psd_status_t push_filtered(scene_t *self)
{
    enum { N = 200 };
    static uint64_t keys[N];
    static float values[N];
    psd_select_t *select = psd_select_new();
    psd_call_t *call = psd_call_new();
    psd_ticket_t ticket = 0;
    psd_status_t rc = select == NULL || call == NULL ? PSD_NOMEM : PSD_OK;

    for (uint64_t i = 0; i < N; i++) {
        keys[i] = 5000 + i;
        values[i] = 1;
    }
    if (rc == PSD_OK) {
        psd_select_rows(select, keys, N);
        rc = psd_call_set_filter(call, "cache+delta+lz4+f16+topk=0.9", self->err);
    }
    for (int turn = 0; rc == PSD_OK && turn < 2; turn++) {
        rc = psd_push_start(self->hashed, select, values, N, call, &ticket, self->err);
    }
    if (rc == PSD_OK) {
        rc = psd_pull_start(self->hashed, select, values, N, call, &ticket, self->err);
    }
    if (rc == PSD_OK) {
        rc = psd_wait_all(self->client, TIMEOUT_MS, self->err);
    }
    if (rc == PSD_OK) {
        rc = psd_push_rest(self->hashed, self->err);
    }
    psd_call_destroy(&call);
    psd_select_destroy(&select);
    return rc;
}

/* Values written in place, rows of different lengths, a sum on the server. */
static psd_status_t work_in_place(scene_t *self)
{
    const uint64_t keys[] = {self->row, 77};
    const uint32_t lengths[] = {1, 0};
    psd_select_t *select = psd_select_new();
    psd_draft_t *draft = NULL;
    psd_ticket_t ticket = 0;
    void *values = NULL;
    size_t n = 0;
    double sum = 0;
    psd_status_t rc = select == NULL ? PSD_NOMEM : PSD_OK;

    if (rc == PSD_OK) {
        psd_select_rows(select, keys, 2);
        psd_select_lengths(select, lengths);
        rc = psd_push_begin(self->hashed, select, &draft, &values, &n, self->err);
    }
    if (rc == PSD_OK) {
        memset(values, 0, n * sizeof(float));
        rc = psd_push_commit(&draft, NULL, &ticket, self->err);
    }
    psd_push_abandon(&draft);
    if (rc == PSD_OK) {
        rc = psd_wait_all(self->client, TIMEOUT_MS, self->err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_sum(self->hashed, NULL, NULL, &sum, self->err);
    }
    psd_select_destroy(&select);
    return rc;
}

static psd_status_t push_and_pull(scene_t *self)
{
    const uint64_t rows[] = {self->row, 3999};
    const int64_t deltas[] = {1, 0};
    int64_t values[] = {0, 0};
    psd_status_t rc = psd_push(self->table, rows, 2, deltas, 2, self->err);

    if (rc == PSD_OK) {
        rc = psd_pull(self->table, rows, 2, values, 2, self->err);
    }
    if (rc == PSD_OK && values[0] != 1) {
        return psd_error_set(self->err, PSD_FAILED, "row %llu is %lld",
                             (unsigned long long)self->row, (long long)values[0]);
    }
    return rc;
}

static psd_status_t work(scene_t *self)
{
    psd_options_t *options = psd_options_new();
    psd_status_t rc = options == NULL ? PSD_NOMEM : PSD_OK;
    char job[64];

    (void)snprintf(job, sizeof job, "job%llu", (unsigned long long)self->row);
    if (rc == PSD_OK) {
        psd_options_set_timeout_ms(options, TIMEOUT_MS);
        rc = psd_connect(self->endpoint, options, &self->client, self->err);
    }
    psd_options_destroy(&options);
    if (rc == PSD_OK) {
        rc = psd_join(self->client, job, 0, 1, 1, self->err);
    }
    if (rc == PSD_OK) {
        rc = open_tables(self);
    }
    if (rc == PSD_OK) {
        rc = push_and_pull(self);
    }
    if (rc == PSD_OK) {
        rc = psd_clock(self->client, self->err);
    }
    if (rc == PSD_OK) {
        rc = fetch_some(self);
    }
    if (rc == PSD_OK) {
        rc = work_in_place(self);
    }
    if (rc == PSD_OK) {
        rc = push_filtered(self);
    }
    if (rc == PSD_OK) {
        rc = psd_leave(self->client, TIMEOUT_MS, self->err);
    }
    return rc;
}

static psd_status_t run(scene_t *self)
{
    psd_status_t rc = PSD_NOMEM;

    self->err = psd_error_new();
    if (self->err != NULL) {
        rc = work(self);
    }
    psd_table_close(&self->table);
    psd_table_close(&self->hashed);
    psd_spec_destroy(&self->spec);
    psd_close(&self->client);
    return rc;
}

/* Every row was pushed once or not at all. */
static bool nothing_was_applied_twice(const char *endpoint, uint64_t n_rows)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_table_open(client, "plain", &table, err), err);
    for (uint64_t row = 0; row < n_rows; row++) {
        int64_t value = 0;

        CHECK_OK(psd_pull(table, &row, 1, &value, 1, err), err);
        CHECK(value == 0 || value == 1);
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

static bool every_allocation_fails_once(const char *endpoint)
{
    uint64_t stride = getenv("SEEDS_LESS") == NULL ? 1 : 3;
    uint64_t n = 0;
    unsigned n_late = 0;
    bool happened = true;

    for (n = 0; happened && n < RUNS_MAX; n += stride) {
        scene_t scene = {.endpoint = endpoint, .row = n};
        psd_status_t rc = PSD_OK;

        fail_alloc_at((size_t)n);
        rc = run(&scene);
        happened = fail_alloc_happened();
        fail_alloc_off();
        if (rc != PSD_OK && rc != PSD_NOMEM && rc != PSD_CLOSED && rc != PSD_DEADLINE &&
            rc != PSD_CONNECT) {
            (void)fprintf(stderr, "allocation %llu: %s: %s\n", (unsigned long long)n,
                          psd_status_name(rc), psd_error_text(scene.err));
            return false;
        }
        if (!happened && (rc == PSD_DEADLINE || rc == PSD_CONNECT)) { /* the machine stood still */
            happened = n_late++ < LATE_MAX;
        }
        CHECK(rc == PSD_OK || happened);
        psd_error_destroy(&scene.err);
    }
    CHECK(n > 100 && n < RUNS_MAX);
    (void)printf("%llu allocations\n", (unsigned long long)n);
    return nothing_was_applied_twice(endpoint, n);
}

int main(void)
{
    /* Whose answer to the join is lost does not beat yet; a busy machine may
     * make that long, and nobody is to be lost here. */
    daemon_t daemon = {.pid = 0};
    bool ok = daemon_start(&daemon, "workers: {lost_after_ms: 60000}\n");

    ok = ok && every_allocation_fails_once(daemon.control);
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
