/* SPDX-License-Identifier: Apache-2.0 */
/* Work on tables where they lie, against a real daemon: changes, sums, the
 * largest values, and what has changed since. */
#include <math.h>
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define N_ROWS 1000

typedef struct fixture {
    psd_client_t *client;
    psd_error_t *err;
} fixture_t;

static psd_table_t *make_table(fixture_t *f, const char *name, const char *const (*pairs)[2])
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    for (; rc == PSD_OK && (*pairs)[0] != NULL; pairs++) {
        rc = psd_spec_set(spec, (*pairs)[0], (*pairs)[1], f->err);
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

/* Rows 0 .. n - 1 become their own numbers plus one. */
static bool count_up(fixture_t *f, psd_table_t *table, uint64_t n)
{
    uint64_t keys[N_ROWS];
    float values[N_ROWS];

    for (uint64_t i = 0; i < n; i++) {
        keys[i] = i;
        values[i] = (float)(i + 1);
    }
    CHECK_OK(psd_push(table, keys, n, values, n, f->err), f->err);
    return true;
}

static bool works_in(fixture_t *f, const char *keys)
{
    const char *const spec[][2] = {
        {"keys", keys},
        {strcmp(keys, "range") == 0 ? "rows" : "cols", strcmp(keys, "range") == 0 ? "1000" : "1"},
        {"partitions", "5"},
        {NULL, NULL}};
    psd_table_t *a = make_table(f, "a", spec);
    psd_table_t *b = make_table(f, "b", spec);
    psd_result_t *top = NULL;
    double number = 0;
    uint64_t n = 0;
    const uint64_t key = 9;
    float value = 0;

    CHECK(a != NULL && b != NULL);
    CHECK(count_up(f, a, 100) && count_up(f, b, 10));
    CHECK_OK(psd_table_sum(a, NULL, NULL, &number, f->err), f->err);
    CHECK(number == 5050);
    CHECK_OK(psd_table_norm(b, NULL, NULL, &number, f->err), f->err);
    CHECK(fabs(number - sqrt(385)) < 1e-12);
    CHECK_OK(psd_table_nonzeros(a, NULL, NULL, &n, f->err), f->err);
    CHECK(n == 100);
    CHECK_OK(psd_table_dot(a, b, NULL, NULL, &number, f->err), f->err);
    CHECK(number == 385);
    CHECK_OK(psd_table_scale(a, NULL, 2, NULL, f->err), f->err);
    CHECK_OK(psd_table_axpy(a, -1, b, NULL, NULL, f->err), f->err);
    CHECK_OK(psd_pull(a, &key, 1, &value, 1, f->err), f->err);
    CHECK(value == 10.0F);
    CHECK_OK(psd_table_top(a, NULL, 3, NULL, &top, f->err), f->err);
    CHECK(psd_result_count(top) == 3);
    psd_result_destroy(&top);
    CHECK_OK(psd_table_fill(a, NULL, 0.5, NULL, f->err), f->err);
    CHECK_OK(psd_table_sum(a, NULL, NULL, &number, f->err), f->err);
    CHECK(number == (strcmp(keys, "range") == 0 ? N_ROWS : 100) * 0.5);
    CHECK_ERROR(psd_table_scale(a, NULL, (double)NAN, NULL, f->err), PSD_NOT_FINITE, "", f->err);
    psd_table_close(&a);
    psd_table_close(&b);
    CHECK_OK(psd_table_drop(f->client, "a", f->err), f->err);
    CHECK_OK(psd_table_drop(f->client, "b", f->err), f->err);
    return true;
}

static bool refuses_tables_that_differ(fixture_t *f)
{
    const char *const narrow[][2] = {{"rows", "100"}, {NULL, NULL}};
    const char *const wide[][2] = {{"rows", "100"}, {"cols", "2"}, {NULL, NULL}};
    psd_table_t *a = make_table(f, "a", narrow);
    psd_table_t *b = make_table(f, "b", wide);
    psd_seen_t *seen = psd_seen_new();
    psd_result_t *changed = NULL;
    double number = 0;

    CHECK(a != NULL && b != NULL);
    CHECK_ERROR(psd_table_dot(a, b, NULL, NULL, &number, f->err), PSD_SHAPE, "", f->err);
    CHECK_ERROR(psd_pull_changed(a, NULL, seen, false, NULL, &changed, f->err), PSD_UNSUPPORTED,
                "keeps no versions", f->err);
    psd_seen_destroy(&seen);
    psd_table_close(&a);
    psd_table_close(&b);
    CHECK_OK(psd_table_drop(f->client, "a", f->err), f->err);
    CHECK_OK(psd_table_drop(f->client, "b", f->err), f->err);
    return true;
}

static bool pulls_what_has_changed(fixture_t *f)
{
    const char *const spec[][2] = {
        {"rows", "1000"}, {"partitions", "3"}, {"versions", "true"}, {NULL, NULL}};
    psd_table_t *table = make_table(f, "a", spec);
    psd_seen_t *seen = psd_seen_new();
    psd_result_t *changed = NULL;
    const uint64_t keys[] = {3, 999};
    const float deltas[] = {1, 2};

    CHECK(table != NULL && seen != NULL);
    CHECK_OK(psd_pull_changed(table, NULL, seen, false, NULL, &changed, f->err), f->err);
    CHECK(psd_result_count(changed) == N_ROWS);
    psd_result_destroy(&changed);
    CHECK_OK(psd_push(table, keys, 2, deltas, 2, f->err), f->err);
    for (size_t n = 2; n <= 2; n -= 2) {
        CHECK_OK(psd_pull_changed(table, NULL, seen, false, NULL, &changed, f->err), f->err);
        CHECK(psd_result_count(changed) == n);
        psd_result_destroy(&changed);
    }
    psd_seen_destroy(&seen);
    psd_table_close(&table);
    CHECK_OK(psd_table_drop(f->client, "a", f->err), f->err);
    return true;
}

static bool run_all(const char *endpoint)
{
    fixture_t f = {.err = psd_error_new()};
    bool ok = false;

    CHECK_OK(psd_connect(endpoint, NULL, &f.client, f.err), f.err);
    ok = works_in(&f, "range") && works_in(&f, "hash") && refuses_tables_that_differ(&f) &&
         pulls_what_has_changed(&f);
    psd_close(&f.client);
    psd_error_destroy(&f.err);
    return ok;
}

int main(void)
{
    daemon_t daemon;
    bool ok = daemon_start(&daemon, NULL);

    ok = ok && run_all(daemon.control);
    ok = ok && daemon_end(&daemon, SIGTERM);
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
