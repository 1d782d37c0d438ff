/* SPDX-License-Identifier: Apache-2.0 */
/* Work on tables where they lie, against the same done here: whole numbers, so
 * that every sum is exact. */
#include <psd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define ROWS 300
#define COLS 7
#define VALUES (ROWS * COLS)

typedef struct fixture {
    psd_client_t *client;
    psd_error_t *err;
} fixture_t;

typedef struct pair {
    const char *key;
    const char *value;
} pair_t;

static psd_table_t *open_table(fixture_t *f, const char *name, const pair_t *pairs)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && pairs[i].key != NULL; i++) {
        rc = psd_spec_set(spec, pairs[i].key, pairs[i].value, f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(f->client, name, spec, &table, f->err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "%s: %s\n", name, psd_error_text(f->err));
    }
    psd_spec_destroy(&spec);
    return table;
}

static psd_table_t *range_table(fixture_t *f, const char *name)
{
    return open_table(
        f, name, (pair_t[]){{"rows", "300"}, {"cols", "7"}, {"partitions", "3"}, {NULL, NULL}});
}

static bool push_all(fixture_t *f, psd_table_t *t, const float *values)
{
    psd_select_t *all = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_select_all_rows(all);
    CHECK_OK(psd_push_start(t, all, values, VALUES, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    psd_select_destroy(&all);
    return true;
}

static bool holds(fixture_t *f, psd_table_t *t, const float *wanted)
{
    psd_select_t *all = psd_select_new();
    psd_ticket_t ticket = 0;
    float got[VALUES];

    psd_select_all_rows(all);
    CHECK_OK(psd_pull_start(t, all, got, VALUES, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    CHECK(memcmp(got, wanted, sizeof got) == 0);
    psd_select_destroy(&all);
    return true;
}

static bool measures(fixture_t *f)
{
    psd_table_t *a = range_table(f, "a");
    psd_table_t *b = range_table(f, "b");
    psd_select_t *select = psd_select_new();
    const uint64_t rows[] = {299, 0, 299};
    float left[VALUES];
    float right[VALUES];
    double sum = 0;
    double dot = 0;
    double squares = 0;
    double got = -1;
    uint64_t nonzeros = 0;
    uint64_t n = 0;

    CHECK(a != NULL && b != NULL);
    for (int i = 0; i < VALUES; i++) {
        left[i] = (float)(i % 11);
        right[i] = (float)(i % 5) - 2;
        sum += (double)left[i];
        squares += (double)(left[i] * left[i]);
        dot += (double)(left[i] * right[i]);
        nonzeros += left[i] != 0 ? 1 : 0;
    }
    CHECK(push_all(f, a, left) && push_all(f, b, right));
    CHECK_OK(psd_table_sum(a, NULL, NULL, &got, f->err), f->err);
    CHECK(got == sum);
    CHECK_OK(psd_table_norm(a, NULL, NULL, &got, f->err), f->err);
    CHECK(got * got > squares * (1 - 1e-12) && got * got < squares * (1 + 1e-12));
    CHECK_OK(psd_table_nonzeros(a, NULL, NULL, &n, f->err), f->err);
    CHECK(n == nonzeros);
    CHECK_OK(psd_table_dot(a, b, NULL, NULL, &got, f->err), f->err);
    CHECK(got == dot);

    psd_select_rows(select, rows, 3); /* a row that is named twice counts so */
    psd_select_col_range(select, 1, 2);
    CHECK_OK(psd_table_sum(a, select, NULL, &got, f->err), f->err);
    CHECK(got == (double)(2 * (left[299 * COLS + 1] + left[299 * COLS + 2]) + left[1] + left[2]));
    psd_select_rows(select, rows, 0);
    CHECK_OK(psd_table_sum(a, select, NULL, &got, f->err), f->err);
    CHECK(got == 0);
    psd_select_destroy(&select);
    psd_table_close(&a);
    psd_table_close(&b);
    return true;
}

static bool changes(fixture_t *f)
{
    psd_table_t *x = range_table(f, "x");
    psd_table_t *y = range_table(f, "y");
    psd_select_t *select = psd_select_new();
    float in_x[VALUES];
    float in_y[VALUES];

    CHECK(x != NULL && y != NULL);
    for (int i = 0; i < VALUES; i++) {
        in_x[i] = (float)i;
        in_y[i] = 3;
    }
    CHECK(push_all(f, x, in_x));
    CHECK_OK(psd_table_fill(y, NULL, 3, NULL, f->err), f->err);
    CHECK(holds(f, y, in_y));
    CHECK_OK(psd_table_scale(x, NULL, 0.5, NULL, f->err), f->err);
    CHECK_OK(psd_table_axpy(x, 2, y, NULL, NULL, f->err), f->err);
    for (int i = 0; i < VALUES; i++) {
        in_x[i] = in_x[i] / 2 + 6;
    }
    CHECK(holds(f, x, in_x));
    psd_select_row_range(select, 100, 150);
    CHECK_OK(psd_table_fill(x, select, -1, NULL, f->err), f->err);
    for (int i = 100 * COLS; i < 250 * COLS; i++) {
        in_x[i] = -1;
    }
    CHECK(holds(f, x, in_x));
    psd_select_destroy(&select);
    psd_table_close(&x);
    psd_table_close(&y);
    return true;
}

static bool ranks(fixture_t *f)
{
    psd_table_t *t = range_table(f, "ranked");
    psd_result_t *top = NULL;
    float values[VALUES] = {0};
    const float wanted[] = {9, 8, 8, 7};
    const uint64_t rows[] = {150, 10, 299, 0};
    const uint32_t cols[] = {3, 6, 0, 2};

    CHECK(t != NULL);
    for (int i = 0; i < 4; i++) {
        values[rows[i] * COLS + cols[i]] = wanted[i];
    }
    CHECK(push_all(f, t, values));
    CHECK_OK(psd_table_top(t, NULL, 4, NULL, &top, f->err), f->err);
    CHECK(psd_result_count(top) == 4);
    for (size_t i = 0; i < 4; i++) {
        uint64_t row = 0;
        size_t n = 0;
        const void *value = NULL;
        const uint32_t *col = NULL;

        psd_result_row(top, i, &row, &n, &value, &col);
        CHECK(row == rows[i] && n == 1 && *col == cols[i]);
        CHECK(*(const float *)value == wanted[i]);
    }
    psd_result_destroy(&top);
    CHECK_ERROR(psd_table_top(t, NULL, 0, NULL, &top, f->err), PSD_INVALID,
                "top of table \"ranked\": n is 0; allowed: 1..1048576", f->err);
    psd_table_close(&t);
    return true;
}

/* All rows of a table with hash keys are those present. */
static bool works_on_what_is_present(fixture_t *f)
{
    enum { N = 1000 };
    psd_table_t *t =
        open_table(f, "hashed", (pair_t[]){{"keys", "hash"}, {"type", "i64"}, {NULL, NULL}});
    uint64_t keys[N];
    int64_t values[N];
    double sum = 0;
    double got = 0;
    uint64_t n = 0;

    CHECK(t != NULL);
    for (int64_t i = 0; i < N; i++) {
        keys[i] = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        values[i] = i - 300;
        sum += (double)values[i];
    }
    CHECK_OK(psd_push(t, keys, N, values, N, f->err), f->err);
    CHECK_OK(psd_table_sum(t, NULL, NULL, &got, f->err), f->err);
    CHECK(got == sum);
    CHECK_OK(psd_table_scale(t, NULL, -2, NULL, f->err), f->err);
    CHECK_OK(psd_table_nonzeros(t, NULL, NULL, &n, f->err), f->err);
    CHECK(n == N - 1);
    CHECK_OK(psd_table_sum(t, NULL, NULL, &got, f->err), f->err);
    CHECK(got == -2 * sum);
    CHECK_ERROR(psd_table_scale(t, NULL, 0.5, NULL, f->err), PSD_INVALID, "the operand is 0.5",
                f->err); /* by whichever is first */
    psd_table_close(&t);
    return true;
}

/* Exactly the rows that somebody changed come, each time. */
static bool tells_what_has_changed(fixture_t *f)
{
    const pair_t pairs[] = {
        {"rows", "300"}, {"cols", "2"}, {"partitions", "3"}, {"versions", "true"}, {NULL, NULL}};
    psd_table_t *t = open_table(f, "versioned", pairs);
    psd_table_t *other = open_table(f, "other", pairs);
    psd_seen_t *seen = psd_seen_new();
    psd_result_t *got = NULL;
    const uint64_t rows[] = {299, 4, 150};
    const float deltas[] = {1, 2, 3, 4, 5, 6};
    uint64_t row = 0;
    const void *values = NULL;

    CHECK(t != NULL && other != NULL);
    CHECK_OK(psd_pull_changed(t, NULL, seen, false, NULL, &got, f->err), f->err);
    CHECK(psd_result_count(got) == 300);
    psd_result_destroy(&got);
    CHECK_OK(psd_push(t, rows, 1, deltas, 2, f->err), f->err);
    CHECK_OK(psd_pull_changed(t, NULL, seen, false, NULL, &got, f->err), f->err);
    psd_result_destroy(&got);
    CHECK_OK(psd_push(t, rows, 3, deltas, 6, f->err), f->err);
    CHECK_OK(psd_pull_changed(t, NULL, seen, false, NULL, &got, f->err), f->err);
    CHECK(psd_result_count(got) == 3);
    psd_result_row(got, 0, &row, NULL, &values, NULL);
    CHECK(row == 4 && ((const float *)values)[0] == 3);
    psd_result_row(got, 2, &row, NULL, &values, NULL);
    CHECK(row == 299 && ((const float *)values)[1] == 4);
    psd_result_destroy(&got);
    CHECK_OK(psd_pull_changed(t, NULL, seen, false, NULL, &got, f->err), f->err);
    CHECK(psd_result_count(got) == 0);
    psd_result_destroy(&got);
    CHECK_ERROR(psd_pull_changed(other, NULL, seen, false, NULL, &got, f->err), PSD_INVALID,
                "seen is of another table", f->err);
    psd_seen_destroy(&seen);
    psd_table_close(&t);
    psd_table_close(&other);
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
    ok = ok && measures(&f) && changes(&f) && ranks(&f) && works_on_what_is_present(&f) &&
         tells_what_has_changed(&f);
    psd_close(&f.client);
    psd_error_destroy(&f.err);
    ok = ok && daemon_end(&daemon, SIGTERM);
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
