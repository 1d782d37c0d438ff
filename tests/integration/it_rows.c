/* SPDX-License-Identifier: Apache-2.0 */
/* Pushing and pulling against a real daemon: every way to name rows and
 * columns, every way to wait. */
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define HUGE_KEY UINT64_MAX

typedef struct fixture {
    psd_client_t *client;
    psd_error_t *err;
} fixture_t;

typedef struct pair {
    const char *key;
    const char *value;
} pair_t;

/* A fresh table; pairs end with a NULL key. */
static psd_table_t *make_table(fixture_t *f, const char *name, const pair_t *pairs)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    for (; rc == PSD_OK && pairs->key != NULL; pairs++) {
        rc = psd_spec_set(spec, pairs->key, pairs->value, f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_create(f->client, name, spec, &table, f->err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "table %s: %s\n", name, psd_error_text(f->err));
    }
    psd_spec_destroy(&spec);
    return table;
}

static bool pushes_and_pulls(fixture_t *f)
{
    psd_table_t *t = make_table(f, "plain", (pair_t[]){{"rows", "1000"}, {NULL, NULL}});
    const uint64_t keys[] = {1, 3, 5};
    const float deltas[] = {0.5F, 1.5F, 2.5F};
    float values[3] = {0};

    CHECK(t != NULL);
    CHECK_OK(psd_push(t, keys, 3, deltas, 3, f->err), f->err);
    CHECK_OK(psd_push(t, keys, 3, deltas, 3, f->err), f->err);
    CHECK_OK(psd_pull(t, keys, 3, values, 3, f->err), f->err);
    CHECK(values[0] == 1.0F && values[1] == 3.0F && values[2] == 5.0F);
    CHECK_OK(psd_pushpull(t, keys, 3, deltas, values, 3, f->err), f->err);
    CHECK(values[0] == 1.5F && values[1] == 4.5F && values[2] == 7.5F);
    CHECK(psd_table_rows(t) == 1000 && psd_table_cols(t) == 1);
    CHECK(strcmp(psd_table_type(t), "f32") == 0);
    CHECK_OK(psd_push(t, NULL, 0, NULL, 0, f->err), f->err);
    psd_table_close(&t);
    return true;
}

static bool refuses_at_once(fixture_t *f)
{
    psd_table_t *t = NULL;
    const uint64_t key = 1000;
    const uint64_t row = 7;
    const float two[] = {1.0F, 2.0F};
    const float nan[] = {0.0F / 0.0F};
    float value = 3.0F;

    CHECK_OK(psd_table_open(f->client, "plain", &t, f->err), f->err);
    CHECK_ERROR(psd_push(t, &key, 1, two, 1, f->err), PSD_RANGE,
                "row 1000 is not in table \"plain\"; allowed: 0..999", f->err);
    CHECK_ERROR(psd_push(t, &row, 1, two, 2, f->err), PSD_SHAPE, "2 values for 1 rows of 1 columns",
                f->err);
    CHECK_ERROR(psd_push(t, &row, 1, nan, 1, f->err), PSD_NOT_FINITE, "row 7", f->err);
    CHECK_OK(psd_pull(t, &row, 1, &value, 1, f->err), f->err);
    CHECK(value == 0.0F);
    CHECK_ERROR(psd_wait(f->client, 12345, 0, f->err), PSD_INVALID, "ticket 12345", f->err);
    psd_table_close(&t);
    CHECK_ERROR(psd_table_open(f->client, "nobody", &t, f->err), PSD_NO_TABLE, "nobody", f->err);
    CHECK_ERROR(psd_table_create(f->client, "plain", NULL, &t, f->err), PSD_INVALID, "rows",
                f->err);
    return true;
}

/* i64 rows of four columns over every way to lay partitions; unsorted keys,
 * ranges, columns. */
static bool select_in(fixture_t *f, const char *name, const pair_t *pairs)
{
    enum { ROWS = 1000, COLS = 6 };
    psd_table_t *t = make_table(f, name, pairs);
    psd_select_t *all = psd_select_new();
    psd_select_t *some = psd_select_new();
    int64_t *values = calloc((size_t)ROWS * COLS, sizeof *values);
    const uint64_t keys[] = {900, 3, 555, 4, 901, 0};
    const uint32_t cols[] = {5, 0, 3};
    int64_t few[6 * 3];
    psd_ticket_t ticket = 0;

    CHECK(t != NULL && values != NULL);
    for (int64_t i = 0; i < ROWS * COLS; i++) {
        values[i] = i;
    }
    psd_select_all_rows(all);
    CHECK_OK(psd_push_start(t, all, values, ROWS * COLS, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);

    psd_select_rows(some, keys, 6);
    psd_select_cols(some, cols, 3);
    CHECK_OK(psd_pull_start(t, some, few, 18, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    for (size_t i = 0; i < 6; i++) {
        for (size_t j = 0; j < 3; j++) {
            CHECK(few[i * 3 + j] == (int64_t)(keys[i] * COLS + cols[j]));
        }
    }

    psd_select_col_range(some, 2, 3);
    CHECK_OK(psd_pushpull_start(t, some, few, few, 18, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    for (size_t i = 0; i < 6; i++) {
        for (size_t j = 0; j < 3; j++) {
            int64_t row = (int64_t)keys[i] * COLS;

            CHECK(few[i * 3 + j] == row + 2 + (int64_t)j + row + cols[j]);
        }
    }

    memset(values, 0, (size_t)ROWS * COLS * sizeof *values);
    psd_select_row_range(some, 100, 700);
    psd_select_all_cols(some);
    CHECK_OK(psd_pull_start(t, some, values, 700 * COLS, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    for (int64_t i = 0; i < 700 * COLS; i++) {
        bool touched = i / COLS == 455 && i % COLS >= 2 && i % COLS <= 4;

        CHECK(touched || values[i] == 100 * COLS + i);
    }
    psd_select_destroy(&all);
    psd_select_destroy(&some);
    free(values);
    psd_table_close(&t);
    return true;
}

static bool selects(fixture_t *f)
{
    return select_in(f, "range",
                     (pair_t[]){{"rows", "1000"}, {"cols", "6"}, {"type", "i64"}, {NULL, NULL}}) &&
           select_in(f, "hashed",
                     (pair_t[]){{"rows", "1000"},
                                {"cols", "6"},
                                {"type", "i64"},
                                {"partition-by", "hash"},
                                {"partitions", "5"},
                                {NULL, NULL}}) &&
           select_in(f, "listed",
                     (pair_t[]){{"rows", "1000"},
                                {"cols", "6"},
                                {"type", "i64"},
                                {"partition-by", "list:10,500,501"},
                                {NULL, NULL}}) &&
           select_in(f, "sparsely",
                     (pair_t[]){{"rows", "1000"},
                                {"cols", "6"},
                                {"type", "i64"},
                                {"row-format", "sparse"},
                                {NULL, NULL}});
}

static bool takes_sparse_rows(fixture_t *f)
{
    psd_table_t *t = make_table(
        f, "sparse",
        (pair_t[]){{"rows", "100"}, {"cols", "1000"}, {"row-format", "sparse"}, {NULL, NULL}});
    const uint64_t keys[] = {99, 7, 50};
    const uint32_t counts[] = {2, 0, 1};
    const uint32_t cols[] = {3, 999, 0};
    const float values[] = {1.0F, 2.0F, 3.0F};
    psd_select_t *select = psd_select_new();
    psd_result_t *result = NULL;
    psd_ticket_t ticket = 0;
    uint64_t row = 0;
    size_t n = 0;
    const void *got = NULL;
    const uint32_t *got_cols = NULL;

    CHECK(t != NULL);
    psd_select_rows(select, keys, 3);
    psd_select_sparse(select, counts, cols);
    CHECK_OK(psd_push_start(t, select, values, 3, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);

    psd_select_sparse(select, NULL, NULL);
    CHECK_OK(psd_fetch(t, select, true, 0, NULL, &result, f->err), f->err);
    CHECK(psd_result_count(result) == 3);
    psd_result_row(result, 0, &row, &n, NULL, NULL);
    CHECK(row == 7 && n == 0);
    psd_result_row(result, 2, &row, &n, &got, &got_cols);
    CHECK(row == 99 && n == 2 && got_cols[0] == 3 && got_cols[1] == 999);
    CHECK(memcmp(got, values, 2 * sizeof *values) == 0);
    psd_result_destroy(&result);
    psd_select_destroy(&select);
    psd_table_close(&t);
    return true;
}

/* Rows of different lengths, one of them named twice. */
static bool takes_lengths(fixture_t *f)
{
    psd_table_t *t =
        make_table(f, "lengths", (pair_t[]){{"rows", "100"}, {"cols", "4"}, {NULL, NULL}});
    const uint64_t keys[] = {99, 7, 50, 99};
    const uint32_t lengths[] = {2, 0, 1, 4};
    const uint32_t too_long[] = {2, 5, 0, 0};
    const float values[] = {1, 2, 3, 10, 20, 30, 40};
    const float wanted[] = {11, 22, 30, 40, 3, 0, 0, 0};
    const uint64_t pulled[] = {99, 50};
    float got[8];
    psd_select_t *select = psd_select_new();
    psd_draft_t *draft = NULL;
    psd_ticket_t ticket = 0;
    void *at = NULL;
    size_t n = 0;

    CHECK(t != NULL);
    psd_select_rows(select, keys, 4);
    psd_select_lengths(select, too_long);
    CHECK_ERROR(psd_push_start(t, select, values, 7, NULL, &ticket, f->err), PSD_RANGE,
                "row 7 has 5 values; allowed: 0..4", f->err);
    psd_select_lengths(select, lengths);
    CHECK_ERROR(psd_push_start(t, select, values, 6, NULL, &ticket, f->err), PSD_SHAPE,
                "lengths add up to 7; there are 6 values", f->err);
    CHECK_OK(psd_push_start(t, select, values, 7, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    CHECK_OK(psd_pull(t, pulled, 2, got, 8, f->err), f->err);
    CHECK(memcmp(got, wanted, sizeof got) == 0);
    CHECK_OK(psd_push_begin(t, select, &draft, &at, &n, f->err), f->err);
    CHECK(n == 7);
    memcpy(at, values, sizeof values);
    CHECK_OK(psd_push_commit(&draft, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    CHECK_OK(psd_pull(t, pulled, 2, got, 8, f->err), f->err);
    for (size_t i = 0; i < 8; i++) {
        CHECK(got[i] == 2 * wanted[i]);
    }
    CHECK_ERROR(psd_pull_start(t, select, got, 7, NULL, &ticket, f->err), PSD_INVALID,
                "sparse rows can be pushed", f->err);
    psd_select_destroy(&select);
    psd_table_close(&t);
    return true;
}

static bool takes_any_key(fixture_t *f)
{
    psd_table_t *t = make_table(
        f, "any", (pair_t[]){{"keys", "hash"}, {"cols", "2"}, {"type", "i64"}, {NULL, NULL}});
    const uint64_t keys[] = {HUGE_KEY, 0, 1ULL << 63, 12345};
    const int64_t deltas[] = {1, 2, 3, 4, 5, 6, INT64_MAX, INT64_MIN};
    int64_t values[8] = {0};
    psd_select_t *all = psd_select_new();
    psd_result_t *result = NULL;
    uint64_t row = 0;
    const void *got = NULL;
    size_t n = 0;

    CHECK(t != NULL);
    CHECK_OK(psd_push(t, keys, 4, deltas, 8, f->err), f->err);
    CHECK_OK(psd_pull(t, keys, 4, values, 8, f->err), f->err);
    CHECK(memcmp(values, deltas, sizeof values) == 0);

    psd_select_all_rows(all);
    CHECK_OK(psd_fetch(t, all, false, 0, NULL, &result, f->err), f->err);
    CHECK(psd_result_count(result) == 4);
    psd_result_row(result, 3, &row, &n, &got, NULL);
    CHECK(row == HUGE_KEY && n == 2 && memcmp(got, deltas, 16) == 0);
    psd_result_row(result, 0, &row, &n, &got, NULL);
    CHECK(row == 0 && memcmp(got, deltas + 2, 16) == 0);
    psd_result_destroy(&result);

    CHECK_OK(psd_fetch(t, all, false, 2, NULL, &result, f->err), f->err);
    CHECK(psd_result_count(result) == 2);
    psd_result_row(result, 0, &row, NULL, NULL, NULL);
    CHECK(row == 0);
    psd_result_row(result, 1, &row, NULL, NULL, NULL);
    CHECK(row == 12345);
    psd_result_destroy(&result);

    psd_select_row_range(all, 1, HUGE_KEY - 1);
    CHECK_OK(psd_fetch(t, all, true, 0, NULL, &result, f->err), f->err);
    CHECK(psd_result_count(result) == 2);
    psd_result_destroy(&result);
    psd_select_destroy(&all);
    psd_table_close(&t);
    return true;
}

/* The rows of a range, at most `max_rows` at once, each once and in order. */
static bool walk_rows(fixture_t *f, psd_table_t *t, bool sparse, size_t max_rows, uint64_t last,
                      size_t *ret_n)
{
    psd_select_t *select = psd_select_new();
    uint64_t first = 0;
    bool is_over = false;

    *ret_n = 0;
    while (!is_over) {
        psd_result_t *result = NULL;

        psd_select_all_rows(select);
        if (first > 0 || last < UINT64_MAX) {
            psd_select_row_range(select, first, last - first + 1);
        }
        CHECK_OK(psd_fetch(t, select, sparse, max_rows, NULL, &result, f->err), f->err);
        is_over = psd_result_count(result) < max_rows;
        for (size_t i = 0; i < psd_result_count(result); i++) {
            uint64_t row = 0;

            psd_result_row(result, i, &row, NULL, NULL, NULL);
            CHECK(row >= first && row <= last);
            first = row + 1;
            is_over = is_over || row == last;
        }
        *ret_n += psd_result_count(result);
        psd_result_destroy(&result);
    }
    psd_select_destroy(&select);
    return true;
}

/* Rows of hash keys lie in all partitions; a bound takes the least keys of all of them. */
static bool bounds_scattered_rows(fixture_t *f, const char *name, const char *format)
{
    enum { N = 3000 };
    psd_table_t *t = make_table(f, name,
                                (pair_t[]){{"keys", "hash"},
                                           {"cols", "3"},
                                           {"row-format", format},
                                           {"partitions", "7"},
                                           {NULL, NULL}});
    uint64_t keys[N];
    float deltas[N * 3];
    const bool is_sparse = strcmp(format, "sparse") == 0;
    const size_t bounds[] = {1000, 300, 100000};
    size_t n = 0;

    CHECK(t != NULL);
    for (size_t i = 0; i < N; i++) {
        keys[i] = i < N - 1 ? i * 3 : UINT64_MAX;
        deltas[i * 3] = deltas[i * 3 + 1] = deltas[i * 3 + 2] = 1.0F;
    }
    CHECK_OK(psd_push(t, keys, N, deltas, N * 3, f->err), f->err);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        CHECK(walk_rows(f, t, is_sparse, bounds[i], UINT64_MAX, &n) && n == N);
    }
    CHECK(walk_rows(f, t, is_sparse, 100, 300, &n) && n == 101);
    psd_table_close(&t);
    CHECK_OK(psd_table_drop(f->client, name, f->err), f->err);
    return true;
}

static bool gives_tickets(fixture_t *f)
{
    enum { N = 500 };
    psd_table_t *t = NULL;
    psd_select_t *select = psd_select_new();
    psd_call_t *call = psd_call_new();
    psd_ticket_t tickets[N];
    float value = 0;
    const float one = 1.0F;
    uint64_t key = 42;
    bool done = false;

    CHECK_OK(psd_table_open(f->client, "plain", &t, f->err), f->err);
    psd_select_rows(select, &key, 1);
    for (int i = 0; i < N; i++) {
        psd_call_set_priority(call, i % 3);
        CHECK_OK(psd_push_start(t, select, &one, 1, call, &tickets[i], f->err), f->err);
    }
    psd_call_set_after(call, tickets[N - 1]);
    CHECK_OK(psd_pull_start(t, select, &value, 1, call, &tickets[0], f->err), f->err);
    while (!done) {
        CHECK_OK(psd_poll(f->client, tickets[N - 1], &done, f->err), f->err);
    }
    CHECK_OK(psd_wait(f->client, tickets[N - 1], 0, f->err), f->err);
    CHECK_ERROR(psd_wait(f->client, tickets[N - 1], 0, f->err), PSD_INVALID, "ticket", f->err);
    CHECK_OK(psd_wait_all(f->client, 60000, f->err), f->err);
    CHECK(value == (float)N);
    CHECK_ERROR(psd_wait(f->client, tickets[0], 0, f->err), PSD_INVALID, "ticket", f->err);
    CHECK_OK(psd_flush(f->client, 1000, f->err), f->err);
    psd_call_destroy(&call);
    psd_select_destroy(&select);
    psd_table_close(&t);
    return true;
}

/* Large enough to travel in chunks, in several slices, borrowed. */
static bool moves_much(fixture_t *f, const char *name, const char *partition_by)
{
    enum { ROWS = 100, COLS = 60000 };
    psd_table_t *t = make_table(
        f, name,
        (pair_t[]){
            {"rows", "100"}, {"cols", "60000"}, {"partition-by", partition_by}, {NULL, NULL}});
    size_t n = (size_t)ROWS * COLS;
    float *deltas = malloc(n * sizeof *deltas);
    float *values = malloc(n * sizeof *values);
    psd_select_t *all = psd_select_new();
    psd_call_t *call = psd_call_new();
    psd_ticket_t ticket = 0;

    CHECK(t != NULL && deltas != NULL && values != NULL);
    for (size_t i = 0; i < n; i++) {
        deltas[i] = (float)(i % 10007);
    }
    psd_select_all_rows(all);
    psd_call_set_borrow(call, true);
    CHECK_OK(psd_push_start(t, all, deltas, n, call, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    CHECK_OK(psd_pushpull_start(t, all, deltas, values, n, call, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    for (size_t i = 0; i < n; i++) {
        CHECK(values[i] == 2 * deltas[i]);
    }
    memset(values, 0, n * sizeof *values);
    CHECK_OK(psd_pull_start(t, all, values, n, call, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    for (size_t i = 0; i < n; i++) {
        CHECK(values[i] == 2 * deltas[i]);
    }
    CHECK_OK(psd_table_drop(f->client, name, f->err), f->err);
    psd_call_destroy(&call);
    psd_select_destroy(&all);
    psd_table_close(&t);
    free(deltas);
    free(values);
    return true;
}

/* Rows so wide that they are split by columns. */
static bool splits_wide_rows(fixture_t *f)
{
    enum { COLS = 4500000 };
    psd_table_t *t =
        make_table(f, "wide", (pair_t[]){{"rows", "3"}, {"cols", "4500000"}, {NULL, NULL}});
    float *deltas = malloc(2 * COLS * sizeof *deltas);
    float *values = calloc(2 * COLS, sizeof *values);
    const uint64_t keys[] = {2, 0};
    const uint32_t cols[] = {4499999, 0, 2250000};
    const uint64_t key = 0;
    psd_select_t *select = psd_select_new();
    psd_call_t *call = psd_call_new();
    psd_result_t *result = NULL;
    psd_ticket_t ticket = 0;
    float few[3];
    const void *got = NULL;
    size_t n = 0;

    CHECK(t != NULL && deltas != NULL && values != NULL);
    for (size_t i = 0; i < (size_t)2 * COLS; i++) {
        deltas[i] = (float)(i % 8191) + 1.0F;
    }
    CHECK_OK(psd_push(t, keys, 2, deltas, 2 * COLS, f->err), f->err);
    CHECK_OK(psd_pull(t, keys, 2, values, 2 * COLS, f->err), f->err);
    CHECK(memcmp(deltas, values, 2 * COLS * sizeof *deltas) == 0);
    psd_select_rows(select, &key, 1);
    psd_select_cols(select, cols, 3);
    CHECK_OK(psd_pull_start(t, select, few, 3, NULL, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    for (size_t i = 0; i < 3; i++) {
        CHECK(few[i] == deltas[COLS + cols[i]]);
    }
    psd_select_all_cols(select);
    psd_call_set_timeout_ms(call, 180000); /* it is much for a sanitizer */
    CHECK_OK(psd_fetch(t, select, true, 0, call, &result, f->err), f->err);
    CHECK(psd_result_count(result) == 1);
    psd_result_row(result, 0, NULL, &n, &got, NULL);
    CHECK(n == COLS && memcmp(got, deltas + COLS, COLS * sizeof(float)) == 0);
    psd_result_destroy(&result);
    psd_call_destroy(&call);
    psd_select_destroy(&select);
    psd_table_close(&t);
    CHECK_OK(psd_table_drop(f->client, "wide", f->err), f->err);
    free(deltas);
    free(values);
    return true;
}

static bool ensures_tables(fixture_t *f)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *a = NULL;
    psd_table_t *b = NULL;

    CHECK_OK(psd_spec_set(spec, "rows", "10", f->err), f->err);
    CHECK_OK(psd_table_ensure(f->client, "sure", spec, &a, f->err), f->err);
    CHECK_OK(psd_table_ensure(f->client, "sure", spec, &b, f->err), f->err);
    psd_table_close(&b);
    CHECK_ERROR(psd_table_create(f->client, "sure", spec, &b, f->err), PSD_TABLE_EXISTS, "sure",
                f->err);
    CHECK_OK(psd_spec_set(spec, "cols", "2", f->err), f->err);
    CHECK_ERROR(psd_table_ensure(f->client, "sure", spec, &b, f->err), PSD_TABLE_EXISTS,
                "exists with cols 1, not 2", f->err);
    CHECK_ERROR(psd_spec_set(spec, "colour", "2", f->err), PSD_INVALID, "colour", f->err);
    CHECK_ERROR(psd_spec_set(spec, "cols", "0", f->err), PSD_INVALID, "1..2147483648", f->err);
    psd_table_close(&a);
    psd_spec_destroy(&spec);
    return true;
}

static bool answers_requests(fixture_t *f)
{
    char *reply = NULL;

    CHECK_OK(psd_request(f->client, "{\"op\":\"cluster_status\"}", 60000, &reply, f->err), f->err);
    CHECK(strstr(reply, "\"nodes\"") != NULL);
    psd_free(reply);
    reply = NULL;
    CHECK_ERROR(
        psd_request(f->client, "{\"op\":\"table_inspect\",\"name\":\"no\"}", 5000, &reply, f->err),
        PSD_NO_TABLE, "no", f->err);
    CHECK(reply != NULL && strstr(reply, "E2003") != NULL);
    psd_free(reply);
    reply = NULL;
    CHECK_ERROR(psd_request(f->client, "[1]", 5000, &reply, f->err), PSD_INVALID, "", f->err);
    CHECK(reply == NULL);
    return true;
}

static bool run_all(const char *endpoint)
{
    fixture_t f = {.err = psd_error_new()};
    const char *const names[] = {"plain",  "range",   "hashed", "listed", "sparsely",
                                 "sparse", "lengths", "any",    "sure"};
    bool ok = false;

    CHECK_OK(psd_connect(endpoint, NULL, &f.client, f.err), f.err);
    ok = pushes_and_pulls(&f) && refuses_at_once(&f) && selects(&f) && takes_sparse_rows(&f) &&
         takes_lengths(&f) && takes_any_key(&f) &&
         bounds_scattered_rows(&f, "scattered", "dense") &&
         bounds_scattered_rows(&f, "scattered_sparse", "sparse") && gives_tickets(&f) &&
         moves_much(&f, "much", "range") && moves_much(&f, "much_hashed", "hash") &&
         splits_wide_rows(&f) && ensures_tables(&f) && answers_requests(&f);
    for (size_t i = 0; ok && i < sizeof names / sizeof *names; i++) {
        CHECK_OK(psd_table_drop(f.client, names[i], f.err), f.err);
    }
    psd_close(&f.client);
    psd_error_destroy(&f.err);
    return ok;
}

int main(void)
{
    daemon_t daemon;
    bool ok = daemon_start(&daemon, NULL);

    ok = ok && run_all(daemon.control);
    ok = ok && run_all(daemon.ipc);
    ok = ok && unsetenv("PSD_TRANSPORT") == 0; /* the library chooses */
    ok = ok && run_all(daemon.control);
    ok = ok && daemon_end(&daemon, SIGTERM);
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
