/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes whose values are written in place, over whatever transport: they mean
 * what other pushes mean, many are under way at a time, and what is not pushed
 * costs nothing. */
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define ROWS 512
#define COLS 512
#define VALUES ((size_t)ROWS * COLS)
#define IN_FLIGHT 8
#define TIMEOUT_MS 60000

typedef struct fixture {
    psd_client_t *client;
    psd_error_t *err;
} fixture_t;

static psd_table_t *open_table(fixture_t *f, const char *name, const char *keys, const char *parts)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    bool hashed = strcmp(keys, "hash") == 0;
    psd_status_t rc = psd_spec_set(spec, "type", "i32", f->err);

    if (rc == PSD_OK && !hashed) {
        rc = psd_spec_set(spec, "rows", "512", f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "keys", keys, f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "cols", hashed ? "1" : "512", f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "partitions", parts, f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(f->client, name, spec, &table, f->err);
    }
    psd_spec_destroy(&spec);
    return table;
}

/* Fresh values for every push, several under way, all of them counted. */
static bool fills_in_place(fixture_t *f, const char *name, const char *parts)
{
    enum { PUSHES = 40 };
    psd_table_t *t = open_table(f, name, "range", parts);
    int32_t *values = malloc(VALUES * sizeof *values);
    psd_select_t *all = psd_select_new();
    psd_ticket_t tickets[IN_FLIGHT] = {0};

    CHECK(t != NULL && values != NULL);
    psd_select_all_rows(all);
    for (int32_t i = 0; i < PUSHES; i++) {
        psd_draft_t *draft = NULL;
        void *at = NULL;
        size_t n = 0;

        if (i >= IN_FLIGHT) {
            CHECK_OK(psd_wait(f->client, tickets[i % IN_FLIGHT], TIMEOUT_MS, f->err), f->err);
        }
        CHECK_OK(psd_push_begin(t, all, &draft, &at, &n, f->err), f->err);
        CHECK(n == VALUES);
        for (size_t j = 0; j < n; j++) {
            ((int32_t *)at)[j] = i * (int32_t)(j % 7);
        }
        CHECK_OK(psd_push_commit(&draft, NULL, &tickets[i % IN_FLIGHT], f->err), f->err);
        CHECK(draft == NULL);
    }
    CHECK_OK(psd_wait_all(f->client, TIMEOUT_MS, f->err), f->err);
    CHECK_OK(psd_pull_start(t, all, values, VALUES, NULL, tickets, f->err), f->err);
    CHECK_OK(psd_wait(f->client, tickets[0], TIMEOUT_MS, f->err), f->err);
    for (size_t j = 0; j < VALUES; j++) {
        CHECK(values[j] == PUSHES * (PUSHES - 1) / 2 * (int32_t)(j % 7));
    }
    psd_select_destroy(&all);
    psd_table_close(&t);
    free(values);
    return true;
}

/* Rows that have to be sorted by partition, and rows of entries. */
static bool takes_every_selection(fixture_t *f)
{
    enum { N = 3000 };
    psd_table_t *t = open_table(f, "hashed", "hash", "4");
    psd_select_t *select = psd_select_new();
    psd_draft_t *draft = NULL;
    psd_ticket_t ticket = 0;
    uint64_t keys[N];
    uint32_t counts[N];
    uint32_t cols[N] = {0};
    int32_t values[N];
    void *at = NULL;
    size_t n = 0;

    CHECK(t != NULL);
    for (size_t i = 0; i < N; i++) {
        keys[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        counts[i] = i % 2 == 0 ? 1 : 0;
    }
    psd_select_rows(select, keys, N);
    CHECK_OK(psd_push_begin(t, select, &draft, &at, &n, f->err), f->err);
    CHECK(n == N);
    for (size_t i = 0; i < N; i++) {
        ((int32_t *)at)[i] = (int32_t)i;
    }
    CHECK_OK(psd_push_commit(&draft, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, TIMEOUT_MS, f->err), f->err);
    psd_select_sparse(select, counts, cols);
    CHECK_OK(psd_push_begin(t, select, &draft, &at, &n, f->err), f->err);
    CHECK(n == N / 2);
    for (size_t i = 0; i < n; i++) {
        ((int32_t *)at)[i] = 100000;
    }
    CHECK_OK(psd_push_commit(&draft, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, TIMEOUT_MS, f->err), f->err);
    CHECK_OK(psd_pull(t, keys, N, values, N, f->err), f->err);
    for (size_t i = 0; i < N; i++) {
        CHECK(values[i] == (int32_t)i + (i % 2 == 0 ? 100000 : 0));
    }
    psd_select_destroy(&select);
    psd_table_close(&t);
    return true;
}

/* Entries that lie together at the caller are pointed at. */
static bool points_at_entries(fixture_t *f)
{
    psd_table_t *t = open_table(f, "entries", "hash", "1");
    psd_select_t *select = psd_select_new();
    psd_draft_t *draft = NULL;
    psd_ticket_t ticket = 0;
    const uint64_t keys[] = {7, 9, 8};
    const uint32_t lengths[] = {1, 0, 1};
    int32_t values[3];
    void *at = NULL;
    size_t n = 0;

    CHECK(t != NULL);
    psd_select_rows(select, keys, 3);
    psd_select_lengths(select, lengths);
    CHECK_OK(psd_push_begin(t, select, &draft, &at, &n, f->err), f->err);
    CHECK(n == 2);
    ((int32_t *)at)[0] = 70;
    ((int32_t *)at)[1] = 80;
    CHECK_OK(psd_push_commit(&draft, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, TIMEOUT_MS, f->err), f->err);
    CHECK_OK(psd_pull(t, keys, 3, values, 3, f->err), f->err);
    CHECK(values[0] == 70 && values[1] == 0 && values[2] == 80);
    psd_select_destroy(&select);
    psd_table_close(&t);
    return true;
}

static bool refuses_and_abandons(fixture_t *f)
{
    psd_table_t *t = open_table(f, "one", "range", "1");
    psd_select_t *select = psd_select_new();
    psd_draft_t *draft = NULL;
    const uint64_t bad = 512;
    const uint64_t good = 511;
    int32_t values[COLS] = {1};
    void *at = NULL;
    size_t n = 0;

    CHECK(t != NULL);
    CHECK_ERROR(psd_push_begin(t, NULL, &draft, &at, &n, f->err), PSD_INVALID, "select is NULL",
                f->err);
    psd_select_rows(select, &bad, 1);
    CHECK_ERROR(psd_push_begin(t, select, &draft, &at, &n, f->err), PSD_RANGE,
                "push to table \"one\": row 512", f->err);
    CHECK(draft == NULL && at == NULL && n == 0);
    psd_select_rows(select, &good, 1);
    for (int i = 0; i < 100; i++) {
        CHECK_OK(psd_push_begin(t, select, &draft, &at, &n, f->err), f->err);
        memset(at, 1, n * sizeof(int32_t));
        psd_push_abandon(&draft);
        CHECK(draft == NULL);
    }
    CHECK_OK(psd_pull(t, &good, 1, values, COLS, f->err), f->err);
    for (size_t i = 0; i < COLS; i++) {
        CHECK(values[i] == 40 * 39 / 2 * (int32_t)((511 * COLS + i) % 7));
    }
    psd_push_abandon(&draft);
    psd_push_abandon(NULL);
    psd_select_destroy(&select);
    psd_table_close(&t);
    return true;
}

/* A draft outlives its client, as far as being abandoned goes. */
static bool is_closed_under_a_draft(fixture_t *f)
{
    psd_table_t *t = open_table(f, "one", "range", "1");
    psd_select_t *all = psd_select_new();
    psd_draft_t *draft = NULL;
    psd_draft_t *sent = NULL;
    psd_ticket_t ticket = 0;
    void *at = NULL;
    size_t n = 0;

    CHECK(t != NULL);
    psd_select_all_rows(all);
    CHECK_OK(psd_push_begin(t, all, &draft, &at, &n, f->err), f->err);
    CHECK_OK(psd_push_begin(t, all, &sent, &at, &n, f->err), f->err);
    memset(at, 0, n * sizeof(int32_t));
    CHECK_OK(psd_push_commit(&sent, NULL, &ticket, f->err), f->err);
    psd_table_close(&t);
    psd_close(&f->client);
    CHECK_ERROR(psd_push_commit(&draft, NULL, &ticket, f->err), PSD_CLOSED, "client is closed",
                f->err);
    psd_push_abandon(&draft);
    psd_select_destroy(&all);
    return true;
}

int main(void)
{
    daemon_t daemon;
    fixture_t f = {.err = psd_error_new()};
    bool ok = daemon_start(&daemon, NULL);

    if (ok && psd_connect(daemon.control, NULL, &f.client, f.err) != PSD_OK) {
        ok = false;
    }
    ok = ok && fills_in_place(&f, "one", "1") && fills_in_place(&f, "few", "3");
    ok = ok && takes_every_selection(&f) && points_at_entries(&f) && refuses_and_abandons(&f) &&
         is_closed_under_a_draft(&f);
    psd_close(&f.client);
    psd_error_destroy(&f.err);
    ok = ok && daemon_end(&daemon, SIGTERM);
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
