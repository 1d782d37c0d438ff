/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes through a filter that holds values back, when they cannot be started:
 * the client here is broken. */
#include <stdio.h>

#include "client/slices/sparsify.h"
#include "client/requests/table.h"
#include "client_kit.h"

#define N 3

static const uint64_t ROWS[N] = {1, 2, 3};
static const float VALUES[N] = {5, 7, 6};
static const ps_filter_t TOP = {.thin = PS_THIN_TOPK, .thin_amount = 0.1};

/* A table whose pushes send one value of three. */
static void make_table(fixture_t *f, psd_table_t *ret_table)
{
    ps_table_spec_t *spec = &ret_table->spec;

    *ret_table = (psd_table_t){.client = &f->client, .known = f->table, .filter = TOP};
    ps_table_spec_init(spec);
    (void)snprintf(spec->name, sizeof spec->name, "w");
    spec->n_rows = 100;
    ps_table_spec_settle(spec, 1);
}

static double sum_of_rest(ps_sparsify_t *self)
{
    ps_thinned_t rest = {.n_rows = 0};
    double sum = 0;

    cr_assert_eq(ps_sparsify_rest(self, &rest, NULL), PSD_OK);
    for (size_t i = 0; i < rest.n_values; i++) {
        sum += (double)((const float *)rest.values)[i];
    }
    return sum;
}

Test(thin, a_push_that_fails_holds_nothing_back)
{
    fixture_t f;
    psd_table_t table;
    psd_error_t *err = psd_error_new();

    set_up(&f);
    make_table(&f, &table);
    ps_client_break(&f.client, PSD_CONNECT, "it is broken");
    cr_assert_eq(psd_push(&table, ROWS, N, VALUES, N, err), PSD_CLOSED, "%s", psd_error_text(err));
    cr_assert_not_null(table.thin);
    cr_assert_eq(sum_of_rest(table.thin), 0);
    ps_sparsify_destroy(&table.thin);
    psd_error_destroy(&err);
    tear_down(&f);
}

Test(thin, a_rest_that_is_not_sent_waits_on)
{
    const ps_thin_rows_t rows = {.rows = ROWS, .n_rows = N};
    ps_thinned_t thinned = {.n_rows = 0};
    fixture_t f;
    psd_table_t table;

    set_up(&f);
    make_table(&f, &table);
    table.thin = ps_sparsify_new(PS_TYPE_F32, 1, UINT64_MAX, 1);
    cr_assert_not_null(table.thin);
    cr_assert_eq(ps_sparsify_push(table.thin, &TOP, &rows, VALUES, &thinned, NULL), PSD_OK);
    cr_assert_eq(thinned.n_values, 1);
    ps_client_break(&f.client, PSD_CONNECT, "it is broken");
    cr_assert_eq(psd_push_rest(&table, NULL), PSD_CLOSED);
    cr_assert_eq(sum_of_rest(table.thin), 5 + 6);
    ps_sparsify_destroy(&table.thin);
    tear_down(&f);
}
