/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the server. Sums of partitions are added up in the order of the
 * slices, not in the order in which answers arrive. */
#include "psd/ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "client/requests/call.h"
#include "client/requests/ops.h"
#include "client/requests/result.h"
#include "client/requests/wait.h"

#define TOP_MAX (1U << 20) /* values that the server gives at most */

void ps_work_done(ps_row_work_t *self)
{
    ps_cuts_done(&self->cuts);
    ps_free(self->aggregates);
    psd_result_destroy(&self->result);
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a request");
}

/* No selection means everything; the rows present in a hash table stay a
 * range. */
static psd_status_t take_selection(ps_row_work_t *self, const psd_select_t *select,
                                   psd_error_t *err)
{
    psd_select_t all = {.all_rows = false};

    psd_select_all_rows(&all);
    if (select == NULL) {
        select = &all;
    }
    if (select->counts != NULL || select->lengths != NULL) {
        return psd_error_set(err, PSD_INVALID, "select is of sparse rows to be pushed");
    }
    return ps_select_check_places(select, &self->call.table->spec, &self->select, err);
}

static psd_status_t cut(ps_row_work_t *self, psd_error_t *err)
{
    const ps_table_spec_t *spec = &self->call.table->spec;
    const ps_present_args_t present = {
        .spec = spec, .select = &self->select, .sparse = self->sparse};
    const ps_cut_args_t known = {.spec = spec,
                                 .select = &self->select,
                                 .sparse_answer = self->sparse,
                                 .limit_bytes = ps_call_slice_bytes(self->call.table->client)};
    bool has_rows = self->select.all_rows || self->select.n_rows > 0;
    psd_status_t rc = PSD_OK;

    if (spec->keys == PS_KEYS_RANGE || self->select.rows_are == PS_SELECT_LIST) {
        return ps_cut(&known, &self->cuts, err);
    }
    for (uint32_t i = 0; has_rows && rc == PSD_OK && i < spec->n_partitions; i++) {
        rc = ps_cut_present(&present, i, &self->cuts, err);
    }
    return rc;
}

psd_status_t ps_work_cut(ps_row_work_t *self, const psd_select_t *select, psd_error_t *err)
{
    psd_status_t rc = take_selection(self, select, err);

    if (rc == PSD_OK) {
        rc = cut(self, err);
    }
    if (rc == PSD_OK && self->cuts.n > 0) {
        self->aggregates = ps_alloc(self->cuts.n, sizeof *self->aggregates);
        self->n_aggregates = self->cuts.n;
        self->call.aggregates = self->aggregates;
        rc = self->aggregates == NULL ? no_memory(err) : PSD_OK;
    }
    return ps_work_refuse(self, rc, err);
}

psd_status_t ps_work_run(ps_row_work_t *self, psd_error_t *err)
{
    ps_ticket_t *ticket = NULL;
    psd_status_t rc = PSD_OK;

    if (self->cuts.n == 0) {
        return PSD_OK;
    }
    self->call.result = self->result;
    rc = ps_call_start_cuts(&self->call, &self->cuts, &ticket, err);
    if (rc != PSD_OK) {
        return ps_work_refuse(self, rc, err);
    }
    return ps_ticket_wait(self->call.table->client, ticket, UINT64_MAX, err);
}

psd_status_t ps_work_refuse(const ps_row_work_t *self, psd_status_t rc, psd_error_t *err)
{
    return rc == PSD_OK ? rc
                        : psd_error_wrap(err, rc, "%s table \"%s\"", self->call.verb,
                                         self->call.table->spec.name);
}

/* ---- what gives a number ------------------------------------------------- */

/* number and count become the sums of all slices. Ends the work. */
static psd_status_t measure(ps_row_work_t *work, ps_read_op_t op, const psd_select_t *select,
                            ps_aggregate_t *ret_sum, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    work->call.row_op.op = (uint8_t)op;
    rc = ps_work_cut(work, select, err);
    if (rc == PSD_OK) {
        rc = ps_work_run(work, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < work->n_aggregates; i++) {
        ret_sum->number += work->aggregates[i].number;
        ret_sum->count += work->aggregates[i].count;
    }
    ps_work_done(work);
    return rc;
}

psd_status_t psd_table_sum(psd_table_t *table, const psd_select_t *select, const psd_call_t *call,
                           double *ret_sum, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_row_work_t work = PS_WORK(table, PS_REQUEST_PULL, "sum of", call);
    ps_aggregate_t sum = {.number = 0};
    psd_status_t rc = measure(&work, PS_READ_SUM, select, &sum, err);

    if (rc == PSD_OK) {
        *ret_sum = sum.number;
    }
    return rc;
}

psd_status_t psd_table_norm(psd_table_t *table, const psd_select_t *select, const psd_call_t *call,
                            double *ret_norm, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_row_work_t work = PS_WORK(table, PS_REQUEST_PULL, "norm of", call);
    ps_aggregate_t sum = {.number = 0};
    psd_status_t rc = measure(&work, PS_READ_SQUARES, select, &sum, err);

    if (rc == PSD_OK) {
        *ret_norm = sqrt(sum.number);
    }
    return rc;
}

psd_status_t psd_table_nonzeros(psd_table_t *table, const psd_select_t *select,
                                const psd_call_t *call, uint64_t *ret_n, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_row_work_t work = PS_WORK(table, PS_REQUEST_PULL, "count of", call);
    ps_aggregate_t sum = {.number = 0};
    psd_status_t rc = measure(&work, PS_READ_NONZEROS, select, &sum, err);

    if (rc == PSD_OK) {
        *ret_n = sum.count;
    }
    return rc;
}

/* The server checks the rest: only it knows where the two tables are. */
static psd_status_t check_pair(const psd_table_t *table, const psd_table_t *other, psd_error_t *err)
{
    if (other == NULL || other->client != table->client) {
        return psd_error_set(err, PSD_INVALID, "the other table is NULL or another client's");
    }
    return PSD_OK;
}

psd_status_t psd_table_dot(psd_table_t *table, psd_table_t *other, const psd_select_t *select,
                           const psd_call_t *call, double *ret_dot, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_row_work_t work = PS_WORK(table, PS_REQUEST_PULL, "dot of", call);
    ps_aggregate_t sum = {.number = 0};
    psd_status_t rc = check_pair(table, other, err);

    if (rc != PSD_OK) {
        return ps_work_refuse(&work, rc, err);
    }
    work.call.row_op.other = other->known->id;
    rc = measure(&work, PS_READ_DOT, select, &sum, err);
    if (rc == PSD_OK) {
        *ret_dot = sum.number;
    }
    return rc;
}

/* ---- what gives rows ----------------------------------------------------- */

psd_status_t psd_table_top(psd_table_t *table, const psd_select_t *select, size_t n,
                           const psd_call_t *call, psd_result_t **ret_result, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(ps_work_done)
    ps_row_work_t work = PS_WORK(table, PS_REQUEST_PULL, "top of", call);
    psd_status_t rc = PSD_OK;

    if (n == 0 || n > TOP_MAX) {
        rc = psd_error_set(err, PSD_INVALID, "n is %zu; allowed: 1..%u", n, TOP_MAX);
        return ps_work_refuse(&work, rc, err);
    }
    work.call.row_op.op = PS_READ_TOP;
    work.call.row_op.operand = n;
    rc = ps_result_new(table->spec.type, true, SIZE_MAX, &work.result, err);
    if (rc == PSD_OK) {
        rc = ps_work_cut(&work, select, err);
    }
    if (rc == PSD_OK) {
        rc = ps_work_run(&work, err);
    }
    if (rc == PSD_OK) {
        rc = ps_result_rank(work.result, table->spec.type, n, err);
    }
    if (rc == PSD_OK) {
        *ret_result = work.result;
        work.result = NULL;
    }
    return rc;
}

/* ---- what changes rows --------------------------------------------------- */

/* Ends the work. */
static psd_status_t change(ps_row_work_t *work, ps_change_op_t op, double operand,
                           const psd_select_t *select, psd_error_t *err)
{
    psd_status_t rc = ps_work_cut(work, select, err);

    work->call.row_op.op = (uint8_t)op;
    memcpy(&work->call.row_op.operand, &operand, sizeof operand);
    if (rc == PSD_OK) {
        rc = ps_work_run(work, err);
    }
    ps_work_done(work);
    return rc;
}

psd_status_t psd_table_scale(psd_table_t *table, const psd_select_t *select, double factor,
                             const psd_call_t *call, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_row_work_t work = PS_WORK(table, PS_REQUEST_PUSH, "scale of", call);

    return change(&work, PS_CHANGE_SCALE, factor, select, err);
}

psd_status_t psd_table_fill(psd_table_t *table, const psd_select_t *select, double value,
                            const psd_call_t *call, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_row_work_t work = PS_WORK(table, PS_REQUEST_PUSH, "fill of", call);

    return change(&work, PS_CHANGE_FILL, value, select, err);
}

psd_status_t psd_table_axpy(psd_table_t *table, double factor, psd_table_t *other,
                            const psd_select_t *select, const psd_call_t *call, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_row_work_t work = PS_WORK(table, PS_REQUEST_PUSH, "axpy of", call);
    psd_status_t rc = check_pair(table, other, err);

    if (rc != PSD_OK) {
        return ps_work_refuse(&work, rc, err);
    }
    work.call.row_op.other = other->known->id;
    return change(&work, PS_CHANGE_AXPY, factor, select, err);
}
