/* SPDX-License-Identifier: Apache-2.0 */
/* Tables with their copies, and reports of nodes about copies. */
#include <inttypes.h>

#include "base/alloc.h"
#include "daemon/nodes/fleet_doc.h"
#include "protocol/facts/table_doc.h"

#define N_REPORT 8

/* ---- tables ---- */

static bool add_copies(const ps_table_t *table, ps_doc_t *array)
{
    bool done = array != NULL;

    for (uint32_t i = 0; done && i < table->spec.n_partitions; i++) {
        ps_doc_t *item = ps_doc_append_object(array);

        done = item != NULL && ps_copies_to_doc(&table->copies[i], item);
    }
    return done;
}

bool ps_told_table_to_doc(const ps_table_t *table, ps_doc_t *doc)
{
    ps_doc_t *spec = ps_doc_add_object(doc, "spec");
    ps_doc_t *routes = ps_doc_add_array(doc, "routes");

    return spec != NULL && routes != NULL && ps_doc_set_u64(doc, "table", table->id) &&
           ps_doc_set_bool(doc, "rows_lost", table->rows_lost) &&
           ps_doc_set_u64(doc, "lost_sessions", table->lost_sessions) &&
           ps_doc_set_bool(doc, "restoring", table->restoring) &&
           ps_table_spec_to_doc(&table->spec, spec) &&
           ps_routes_to_doc(table->routes, table->spec.n_partitions, routes) &&
           add_copies(table, ps_doc_add_array(doc, "copies"));
}

void ps_told_table_done(ps_table_t *self)
{
    ps_table_spec_done(&self->spec);
    ps_free(self->routes);
    ps_free(self->copies);
    *self = (ps_table_t){0};
}

static psd_status_t check_count(const ps_table_t *table, const char *what, size_t n,
                                psd_error_t *err)
{
    return n == table->spec.n_partitions
               ? PSD_OK
               : psd_error_set(err, PSD_PROTO, "table %s has %zu %s for %" PRIu32 " partitions",
                               table->spec.name, n, what, table->spec.n_partitions);
}

static psd_status_t read_routes(const ps_doc_t *doc, ps_table_t *table, psd_error_t *err)
{
    const ps_doc_t *routes = NULL;
    uint32_t n = 0;
    psd_status_t rc = ps_doc_get_array(doc, "routes", PS_TABLE_PARTITIONS_MAX, &routes, err);

    if (rc == PSD_OK) {
        rc = ps_routes_from_doc(routes, &table->routes, &n, err);
    }
    return rc == PSD_OK ? check_count(table, "routes", n, err) : rc;
}

static psd_status_t read_copies(const ps_doc_t *doc, ps_table_t *table, psd_error_t *err)
{
    uint32_t n = table->spec.n_partitions;
    const ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "copies", PS_TABLE_PARTITIONS_MAX, &array, err);

    if (rc == PSD_OK) {
        rc = check_count(table, "lists of copies", ps_doc_count(array), err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    table->copies = ps_alloc(n, sizeof *table->copies);
    if (table->copies == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
        const ps_doc_t *item = NULL;

        rc = ps_doc_at_object(array, i, &item, err);
        if (rc == PSD_OK) {
            rc = ps_copies_from_doc(item, &table->copies[i], err);
        }
    }
    return rc;
}

psd_status_t ps_told_table_from_doc(const ps_doc_t *doc, ps_table_t *ret_table, psd_error_t *err)
{
    PSD_AUTO(ps_told_table_done) ps_table_t table = {0};
    const ps_doc_t *spec = NULL;
    uint64_t id = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "table", 1, UINT32_MAX, &id, err);

    table.id = (uint32_t)id;
    if (rc == PSD_OK && ps_doc_has(doc, "rows_lost")) {
        rc = ps_doc_get_bool(doc, "rows_lost", &table.rows_lost, err);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "restoring")) {
        rc = ps_doc_get_bool(doc, "restoring", &table.restoring, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "lost_sessions", 0, INT64_MAX, 0, &table.lost_sessions, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_object(doc, "spec", &spec, err);
    }
    if (rc == PSD_OK) {
        rc = ps_table_spec_from_doc(spec, &table.spec, err);
    }
    if (rc == PSD_OK) {
        rc = read_routes(doc, &table, err);
    }
    if (rc == PSD_OK) {
        rc = read_copies(doc, &table, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_table = table;
    table = (ps_table_t){0};
    return PSD_OK;
}

/* ---- reports ---- */

bool ps_report_to_doc(const ps_report_t *report, ps_doc_t *array)
{
    const uint64_t numbers[N_REPORT] = {report->kind,  report->table,       report->partition,
                                        report->epoch, report->incarnation, report->shard,
                                        report->lsn,   report->lsn_epoch};
    bool done = true;

    for (size_t i = 0; done && i < N_REPORT; i++) {
        done = ps_doc_append_u64(array, numbers[i]);
    }
    return done;
}

psd_status_t ps_reports_count(const ps_doc_t *array, size_t *ret_n, psd_error_t *err)
{
    size_t n = ps_doc_count(array);

    if (n % N_REPORT != 0) {
        return psd_error_set(err, PSD_PROTO,
                             "reports have %zu numbers; allowed: a multiple of "
                             "%d",
                             n, N_REPORT);
    }
    *ret_n = n / N_REPORT;
    return PSD_OK;
}

psd_status_t ps_report_from_doc(const ps_doc_t *array, size_t i, ps_report_t *ret_report,
                                psd_error_t *err)
{
    uint64_t at[N_REPORT] = {0};
    psd_status_t rc = PSD_OK;

    for (size_t k = 0; rc == PSD_OK && k < N_REPORT; k++) {
        rc = ps_doc_at_u64(array, i * N_REPORT + k, &at[k], err);
    }
    if (rc == PSD_OK && (at[0] < PS_REPORT_POSITION || at[0] > PS_REPORT_PARTIAL ||
                         at[1] > UINT32_MAX || at[2] > UINT32_MAX || at[5] > UINT32_MAX)) {
        rc = psd_error_set(err, PSD_INVALID,
                           "report %zu is of kind %" PRIu64 " on partition %" PRIu64
                           " of table %" PRIu64 ", shard %" PRIu64 "; allowed: kinds %d..%d, the "
                           "others below 2^32",
                           i, at[0], at[2], at[1], at[5], PS_REPORT_POSITION, PS_REPORT_PARTIAL);
    }
    if (rc == PSD_OK) {
        *ret_report = (ps_report_t){.kind = (ps_report_kind_t)at[0],
                                    .table = (uint32_t)at[1],
                                    .partition = (uint32_t)at[2],
                                    .epoch = at[3],
                                    .incarnation = at[4],
                                    .shard = (uint32_t)at[5],
                                    .lsn = at[6],
                                    .lsn_epoch = at[7]};
    }
    return rc;
}
