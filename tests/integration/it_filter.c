/* SPDX-License-Identifier: Apache-2.0 */
/* Filters against a real daemon: what is exact stays exact, what is rounded
 * stays within its bounds, and lists that the daemon has forgotten are sent
 * again without anybody noticing. */
#include <math.h>
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define N_ROWS 3000
#define N_COLS 4
#define N_VALUES (N_ROWS * N_COLS)
#define ROUNDS 3

typedef struct fixture {
    psd_client_t *client;
    psd_error_t *err;
    psd_call_t *call;
    uint64_t *keys;
    float *deltas;
    float *values;
} fixture_t;

static psd_table_t *make_table(fixture_t *f, const char *name, const char *type, const char *keys)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    psd_status_t rc = psd_spec_set(spec, "type", type, f->err);

    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "cols", "4", f->err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "keys", keys, f->err);
    }
    if (rc == PSD_OK && strcmp(keys, "range") == 0) {
        rc = psd_spec_set(spec, "rows", "1000000", f->err);
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

/* Ascending keys with gaps, or the same in a wild order. */
static void fill(fixture_t *f, bool ascending)
{
    for (uint64_t i = 0; i < N_ROWS; i++) {
        uint64_t at = ascending ? i : i * 1009 % N_ROWS;

        f->keys[i] = at * 331 + at % 7;
    }
    for (int i = 0; i < N_VALUES; i++) {
        f->deltas[i] = (float)(i * 7919 % 2001 - 1000) / 1024;
    }
}

static bool push_and_pull(fixture_t *f, psd_table_t *t)
{
    psd_select_t *rows = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_select_rows(rows, f->keys, N_ROWS);
    CHECK_OK(psd_push_start(t, rows, f->deltas, N_VALUES, f->call, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    memset(f->values, 0, N_VALUES * sizeof *f->values);
    CHECK_OK(psd_pull_start(t, rows, f->values, N_VALUES, f->call, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    psd_select_destroy(&rows);
    return true;
}

/* The bound on one push of values within -1 .. 1, and one pull of sums within
 * -n .. n. */
static double bound_of(const char *filter, int n)
{
    if (strstr(filter, "bf16") != NULL) {
        return (n + n) * 0x1p-7;
    }
    if (strstr(filter, "f16") != NULL) {
        return (n + n) * 0x1p-10;
    }
    for (int k = 1; k <= 4; k++) {
        char word[8] = {'f', 'i', 'x', 'e', 'd', (char)('0' + k), '\0'};

        if (strstr(filter, word) != NULL) {
            return (n * 2 + 2 * n) * 1.01 / (ldexp(1, 8 * k) - 2) + n * 0x1p-21;
        }
    }
    return 0;
}

static bool is_within(const char *name, int i, float got, double wanted, double bound)
{
    if (fabs((double)got - wanted) <= bound) {
        return true;
    }
    (void)fprintf(stderr, "%s: value %d is %g, wanted %g within %g\n", name, i, (double)got, wanted,
                  bound);
    return false;
}

static bool goes_through(fixture_t *f, const char *filter, const char *keys, bool ascending)
{
    char name[64];
    psd_table_t *t = NULL;

    (void)snprintf(name, sizeof name, "%s-%s-%d", filter, keys, ascending);
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '+' ? '_' : *at;
    }
    t = make_table(f, name, "f32", keys);
    CHECK(t != NULL);
    CHECK_OK(psd_call_set_filter(f->call, filter, f->err), f->err);
    fill(f, ascending);
    for (int round = 1; round <= ROUNDS; round++) {
        double bound = bound_of(filter, round);

        CHECK(push_and_pull(f, t));
        for (int i = 0; i < N_VALUES; i++) {
            double wanted = round * (double)f->deltas[i];

            CHECK(is_within(name, i, f->values[i], wanted, bound));
        }
    }
    psd_table_close(&t);
    return true;
}

static bool every_filter_goes_through(fixture_t *f)
{
    static const char *const filters[] = {
        "none",
        "cache",
        "delta",
        "lz4",
        "zstd",
        "f16",
        "bf16",
        "fixed1",
        "fixed2",
        "fixed3",
        "fixed4",
        "cache+delta",
        "cache+delta+lz4",
        "cache+zstd+bf16",
        "delta+lz4+fixed1",
    };

    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        CHECK(goes_through(f, filters[i], "range", true));
        CHECK(goes_through(f, filters[i], "hash", true));
        CHECK(goes_through(f, filters[i], "hash", false));
    }
    return true;
}

static bool integers_are_exact_or_refused(fixture_t *f)
{
    psd_table_t *t = make_table(f, "whole", "i64", "hash");
    psd_select_t *rows = psd_select_new();
    int64_t *deltas = calloc(N_VALUES, sizeof *deltas);
    int64_t *values = calloc(N_VALUES, sizeof *values);
    psd_ticket_t ticket = 0;

    CHECK(t != NULL && deltas != NULL && values != NULL);
    fill(f, true);
    for (int64_t i = 0; i < N_VALUES; i++) {
        deltas[i] = INT64_MAX / 3 - i * i;
    }
    psd_select_rows(rows, f->keys, N_ROWS);
    CHECK_OK(psd_call_set_filter(f->call, "cache+delta+zstd", f->err), f->err);
    CHECK_OK(psd_pushpull_start(t, rows, deltas, values, N_VALUES, f->call, &ticket, f->err),
             f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    CHECK(memcmp(deltas, values, N_VALUES * sizeof *values) == 0);
    CHECK_OK(psd_call_set_filter(f->call, "f16", f->err), f->err);
    CHECK_ERROR(psd_push_start(t, rows, deltas, N_VALUES, f->call, &ticket, f->err), PSD_INVALID,
                "filter f16 rounds values; allowed for f32 and "
                "f64, and these are i64",
                f->err);
    CHECK_ERROR(psd_call_set_filter(f->call, "f17", f->err), PSD_INVALID,
                "filter is \"f17\"; allowed: ", f->err);
    free(deltas);
    free(values);
    psd_select_destroy(&rows);
    psd_table_close(&t);
    return true;
}

/* A push of several MiB goes in pieces, and its values are those of the
 * filter. */
static bool large_bodies_go_in_pieces(fixture_t *f)
{
    enum { N = 3 << 20 };
    psd_table_t *t = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_select_t *all = psd_select_new();
    float *deltas = calloc(N, sizeof *deltas);
    float *values = calloc(N, sizeof *values);
    psd_ticket_t ticket = 0;

    CHECK(deltas != NULL && values != NULL);
    CHECK_OK(psd_spec_set(spec, "rows", "1", f->err), f->err);
    CHECK_OK(psd_spec_set(spec, "cols", "3145728", f->err), f->err);
    CHECK_OK(psd_spec_set(spec, "partitions", "1", f->err), f->err);
    CHECK_OK(psd_table_create(f->client, "wide", spec, &t, f->err), f->err);
    for (int i = 0; i < N; i++) {
        deltas[i] = (float)(i % 2000 - 1000) / 1000;
    }
    psd_select_all_rows(all);
    CHECK_OK(psd_call_set_filter(f->call, "fixed2", f->err), f->err);
    CHECK_OK(psd_push_start(t, all, deltas, N, f->call, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    CHECK_OK(psd_pull_start(t, all, values, N, f->call, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    for (int i = 0; i < N; i++) {
        CHECK(is_within("wide", i, values[i], (double)deltas[i], 4 * 1.01 / 65534));
    }
    free(deltas);
    free(values);
    psd_spec_destroy(&spec);
    psd_select_destroy(&all);
    psd_table_close(&t);
    return true;
}

/* Rows that only the server knows: their keys and columns come back exactly. */
static bool fetches_rows(fixture_t *f, bool sparse)
{
    psd_table_t *t = make_table(f, sparse ? "entries" : "present", "f32", "hash");
    psd_select_t *all = psd_select_new();
    psd_result_t *result = NULL;
    double bound = 8 * 0x1p-7;

    CHECK(t != NULL);
    fill(f, true);
    CHECK_OK(psd_push(t, f->keys, N_ROWS, f->deltas, N_VALUES, f->err), f->err);
    CHECK_OK(psd_call_set_filter(f->call, "delta+zstd+bf16", f->err), f->err);
    psd_select_all_rows(all);
    CHECK_OK(psd_fetch(t, all, sparse, 0, f->call, &result, f->err), f->err);
    CHECK(psd_result_count(result) == N_ROWS);
    for (size_t i = 0; i < N_ROWS; i++) {
        const void *values = NULL;
        const uint32_t *cols = NULL;
        uint64_t row = 0;
        size_t n = 0;

        psd_result_row(result, i, &row, &n, &values, &cols);
        CHECK(row == f->keys[i]);
        CHECK((cols != NULL) == sparse && n <= N_COLS);
        for (size_t k = 0; k < n; k++) {
            size_t col = sparse ? cols[k] : k;

            CHECK(is_within("fetch", (int)i, ((const float *)values)[k],
                            (double)f->deltas[i * N_COLS + col], bound));
        }
    }
    psd_result_destroy(&result);
    psd_select_destroy(&all);
    psd_table_close(&t);
    return true;
}

static bool fetches_go_through(fixture_t *f)
{
    return fetches_rows(f, false) && fetches_rows(f, true);
}

/* Values of few bits, so that sums are exact in whatever order. */
static bool held_back_values_arrive_in_the_end(fixture_t *f)
{
    static const char *const filters[] = {"topk=0.05", "threshold=0.9", "topk=0.2+delta+lz4+cache"};

    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        char name[] = {'t', 'h', 'i', 'n', (char)('0' + i), '\0'};
        psd_table_t *t = make_table(f, name, "f32", i == 0 ? "range" : "hash");
        int n_late = 0;

        CHECK(t != NULL);
        CHECK_OK(psd_call_set_filter(f->call, filters[i], f->err), f->err);
        fill(f, true);
        for (int round = 0; round < ROUNDS; round++) {
            CHECK(push_and_pull(f, t));
        }
        for (int k = 0; k < N_VALUES; k++) {
            n_late += f->values[k] != ROUNDS * f->deltas[k];
        }
        CHECK(n_late > N_VALUES / 4);
        CHECK_OK(psd_push_rest(t, f->err), f->err);
        CHECK_OK(psd_pull(t, f->keys, N_ROWS, f->values, N_VALUES, f->err), f->err);
        for (int k = 0; k < N_VALUES; k++) {
            CHECK(is_within(name, k, f->values[k], ROUNDS * (double)f->deltas[k], 0));
        }
        CHECK_OK(psd_push_rest(t, f->err), f->err);
        psd_table_close(&t);
    }
    return true;
}

/* The table's filter is every call's that names none, and outlives its maker.
 */
static bool tables_have_filters_of_their_own(fixture_t *f)
{
    psd_spec_t *spec = psd_spec_new();
    psd_select_t *all = psd_select_new();
    const float third = 1.0F / 3;
    float value = 0;
    psd_table_t *t = NULL;
    psd_ticket_t ticket = 0;

    CHECK_ERROR(psd_spec_set(spec, "filter", "f16+fast", f->err), PSD_INVALID, "filter is \"fast\"",
                f->err);
    CHECK_OK(psd_spec_set(spec, "filter", "zstd,bf16,cache", f->err), f->err);
    CHECK_OK(psd_spec_set(spec, "rows", "1", f->err), f->err);
    CHECK_OK(psd_spec_set(spec, "cols", "4096", f->err), f->err);
    CHECK_OK(psd_table_create(f->client, "own", spec, &t, f->err), f->err);
    for (int i = 0; i < 4096; i++) {
        f->deltas[i] = third;
    }
    CHECK_OK(psd_push(t, (uint64_t[]){0}, 1, f->deltas, 4096, f->err), f->err);
    psd_select_all_rows(all);
    psd_select_col_range(all, 7, 1);
    CHECK_OK(psd_call_set_filter(f->call, "none", f->err), f->err);
    CHECK_OK(psd_pull_start(t, all, &value, 1, f->call, &ticket, f->err), f->err);
    CHECK_OK(psd_wait(f->client, ticket, 60000, f->err), f->err);
    CHECK(value != third && fabs((double)(value - third)) < 0x1p-9);
    psd_table_close(&t);
    CHECK_OK(psd_spec_set(spec, "type", "i32", f->err), f->err);
    CHECK_ERROR(psd_table_create(f->client, "ints", spec, &t, f->err), PSD_INVALID,
                "filter bf16 rounds values", f->err);
    psd_spec_destroy(&spec);
    psd_select_destroy(&all);
    return true;
}

static bool only_sums_are_thinned(fixture_t *f)
{
    psd_spec_t *spec = psd_spec_new();
    psd_select_t *rows = psd_select_new();
    const uint32_t col = 0;
    psd_table_t *t = NULL;
    psd_ticket_t ticket = 0;

    CHECK_OK(psd_spec_set(spec, "rows", "10", f->err), f->err);
    CHECK_OK(psd_spec_set(spec, "updater", "adagrad:alpha=0.1", f->err), f->err);
    CHECK_OK(psd_table_create(f->client, "adagrad", spec, &t, f->err), f->err);
    CHECK_OK(psd_call_set_filter(f->call, "skip=0.5", f->err), f->err);
    psd_select_all_rows(rows);
    CHECK_ERROR(psd_push_start(t, rows, f->deltas, 10, f->call, &ticket, f->err), PSD_INVALID,
                "filter skip sends values late or not at all; allowed with "
                "the updaters add and sgd",
                f->err);
    psd_table_close(&t);
    t = make_table(f, "columns", "f32", "range");
    CHECK(t != NULL);
    psd_select_row_range(rows, 0, 10);
    psd_select_cols(rows, &col, 1);
    CHECK_ERROR(psd_push_start(t, rows, f->deltas, 10, f->call, &ticket, f->err), PSD_INVALID,
                "filter skip chooses columns itself; allowed for whole dense "
                "rows",
                f->err);
    psd_table_close(&t);
    psd_select_destroy(&rows);
    psd_spec_destroy(&spec);
    return true;
}

/* Of a daemon that keeps few lists or none: nobody notices but the network. */
static bool forgotten_lists_are_sent_again(fixture_t *f)
{
    psd_table_t *t = make_table(f, "lists", "f32", "hash");
    psd_select_t *rows = psd_select_new();
    psd_ticket_t ticket = 0;

    CHECK(t != NULL);
    CHECK_OK(psd_call_set_filter(f->call, "cache+f16", f->err), f->err);
    fill(f, true);
    for (int i = 0; i < N_VALUES; i++) {
        f->deltas[i] = (float)(i % 64);
    }
    psd_select_rows(rows, f->keys, N_ROWS);
    for (int round = 1; round <= 20; round++) {
        CHECK_OK(psd_push_start(t, rows, f->deltas, N_VALUES, f->call, &ticket, f->err), f->err);
        CHECK(push_and_pull(f, t));
        for (int i = 0; i < N_VALUES; i++) {
            CHECK(is_within("lists", i, f->values[i], 2 * round * (double)f->deltas[i], 4));
        }
    }
    CHECK_OK(psd_wait_all(f->client, 60000, f->err), f->err);
    CHECK_OK(psd_pull(t, f->keys, N_ROWS, f->values, N_VALUES, f->err), f->err);
    for (int i = 0; i < N_VALUES; i++) {
        CHECK(f->values[i] == 40 * f->deltas[i]);
    }
    psd_select_destroy(&rows);
    psd_table_close(&t);
    return true;
}

static bool run(const daemon_t *daemon, bool (*part)(fixture_t *f))
{
    fixture_t f = {.err = psd_error_new(),
                   .call = psd_call_new(),
                   .keys = calloc(N_ROWS, sizeof *f.keys),
                   .deltas = calloc(N_VALUES, sizeof *f.deltas),
                   .values = calloc(N_VALUES, sizeof *f.values)};
    bool good = true;

    CHECK_OK(psd_connect(daemon->control, NULL, &f.client, f.err), f.err);
    good = part(&f);
    psd_close(&f.client);
    psd_call_destroy(&f.call);
    psd_error_destroy(&f.err);
    free(f.keys);
    free(f.deltas);
    free(f.values);
    return good;
}

/* A daemon that keeps so much of lists. */
static bool with_lists_of(const char *bytes)
{
    char config[64];
    daemon_t daemon;
    bool good = false;

    (void)snprintf(config, sizeof config, "limits:\n  keys_bytes: %s\n", bytes);
    good = daemon_start(&daemon, config) && run(&daemon, forgotten_lists_are_sent_again) &&
           daemon_end(&daemon, SIGTERM);
    daemon_drop(&daemon, !good);
    return good;
}

int main(void)
{
    daemon_t daemon;
    bool good = with_lists_of("0") && with_lists_of("10KiB") && with_lists_of("16MiB");

    good = daemon_start(&daemon, NULL) && good;
    good = good && run(&daemon, every_filter_goes_through);
    good = good && run(&daemon, integers_are_exact_or_refused);
    good = good && run(&daemon, large_bodies_go_in_pieces);
    good = good && run(&daemon, fetches_go_through);
    good = good && run(&daemon, held_back_values_arrive_in_the_end);
    good = good && run(&daemon, only_sums_are_thinned);
    good = good && run(&daemon, tables_have_filters_of_their_own);
    good = good && daemon_end(&daemon, SIGTERM);
    daemon_drop(&daemon, !good);
    return good ? 0 : 1;
}
