/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes through a filter that sends only a part of the values: which pushes
 * may use it, and what they become. */
#include "client/requests/thin.h"

#include "base/cursor.h"
#include "client/slices/sparsify.h"
#include "protocol/facts/table_filter.h"

/* Of what one table holds back. */
#define HELD_MAX_BYTES (UINT64_C(256) << 20)

static psd_status_t check_selection(const psd_select_t *select, ps_thin_t thin, psd_error_t *err)
{
    if (select->counts == NULL && select->cols_are == PS_COLS_ALL) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "filter %s chooses columns itself; allowed for whole "
                         "dense rows",
                         ps_filter_thin_name(thin));
}

/* The selection of what is sent. */
static psd_select_t select_of(const ps_thinned_t *thinned)
{
    return (psd_select_t){.rows_are = PS_SELECT_LIST,
                          .rows = thinned->rows,
                          .n_rows = thinned->n_rows,
                          .cols_are = PS_COLS_ALL,
                          .counts = thinned->counts,
                          .sparse_cols = thinned->cols};
}

static psd_status_t thin(const ps_call_t *call, const ps_filter_t *filter, psd_select_t *select,
                         const void **ret_values, psd_error_t *err)
{
    psd_table_t *table = call->table;
    const ps_thin_rows_t rows = {.rows = select->rows_are == PS_SELECT_LIST ? select->rows : NULL,
                                 .first_row = select->first_row,
                                 .n_rows = select->n_rows};
    ps_thinned_t thinned = {.n_rows = 0};
    psd_status_t rc = PSD_OK;

    if (table->thin == NULL) {
        table->thin = ps_sparsify_new(table->spec.type, table->spec.n_cols, HELD_MAX_BYTES,
                                      ps_load_u64(table->client->id.bytes) + table->known->id);
    }
    if (table->thin == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to thin a push");
    }
    rc = ps_sparsify_push(table->thin, filter, &rows, call->values, &thinned, err);
    if (rc == PSD_OK) {
        *select = select_of(&thinned);
        *ret_values = thinned.values;
    }
    return rc;
}

psd_status_t ps_thin_call(const ps_call_t *call, const ps_filter_t *filter, psd_select_t *select,
                          const void **ret_values, bool *ret_thinned, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *ret_thinned = false;
    if (call->kind != PS_REQUEST_PUSH || call->row_op.op != 0 || call->draft != NULL ||
        call->whole || select->n_rows == 0) {
        return PSD_OK;
    }
    rc = ps_table_filter_check(&call->table->spec, filter, err);
    if (rc == PSD_OK) {
        rc = check_selection(select, filter->thin, err);
    }
    if (rc == PSD_OK) {
        rc = thin(call, filter, select, ret_values, err);
    }
    *ret_thinned = rc == PSD_OK;
    return rc;
}

psd_status_t ps_thin_rest(psd_table_t *table, psd_select_t *ret_select, const void **ret_values,
                          size_t *ret_n, psd_error_t *err)
{
    ps_thinned_t thinned = {.n_rows = 0};
    psd_status_t rc = PSD_OK;

    if (table->thin != NULL) {
        rc = ps_sparsify_rest(table->thin, &thinned, err);
    }
    if (rc == PSD_OK) {
        *ret_select = select_of(&thinned);
        *ret_values = thinned.values;
        *ret_n = thinned.n_values;
    }
    return rc;
}

void ps_thin_undo(psd_table_t *table)
{
    if (table->thin != NULL) {
        ps_sparsify_undo(table->thin);
    }
}
