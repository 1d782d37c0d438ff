/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes and pulls with an op: rows are changed or measured where they lie
 * (model/store/store_ops.h). */
#include <inttypes.h>
#include <string.h>

#include "base/cursor.h"
#include "model/store/store_growth.h"
#include "protocol/partition/answer.h"

/* Values that one answer looks at: some tens of milliseconds. A client that
 * wants more asks again, and others get their turn in between. */
#define MEASURE_MAX (UINT64_C(1) << 24)

static const char *name_of(const ps_request_t *request)
{
    return request->kind == PS_KIND_PUSH ? "AXPY" : "DOT";
}

psd_status_t ps_partition_other(const ps_step_t *step, const ps_partition_t *self,
                                const ps_request_t *request, ps_partition_t **ret_other,
                                psd_error_t *err)
{
    const ps_local_table_t *table = ps_map_get(&step->tables, request->op.other);

    if (table == NULL) {
        return psd_error_set(err, PSD_INVALID, "%s names table %" PRIu32 ", which does not exist",
                             name_of(request), request->op.other);
    }
    /* its own table's loss is asked for first, and of no record */
    if (request->op.other != self->table && request->session <= table->lost_sessions) {
        return psd_error_set(err, PSD_ROWS_LOST, PS_ROWS_LOST_TEXT, table->spec.name);
    }
    if (self->number >= table->spec.n_partitions || table->partitions[self->number] == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "%s needs partition %" PRIu32 " of table %.*s on shard %" PRIu32
                             " too, where the first table has it",
                             name_of(request), self->number, PS_NAME_MAX, table->spec.name,
                             step->args.shard);
    }
    *ret_other = table->partitions[self->number];
    if (*ret_other != self && !(*ret_other)->lead.primary) {
        return psd_error_set(err, PSD_INVALID,
                             "%s needs partition %" PRIu32 " of table %.*s on shard %" PRIu32
                             " to be the primary too, as the first table's is",
                             name_of(request), self->number, PS_NAME_MAX, table->spec.name,
                             step->args.shard);
    }
    return PSD_OK;
}

static ps_row_change_t change_of(const ps_row_op_t *op, ps_store_t *other)
{
    ps_row_change_t change = {.kind = (ps_change_kind_t)op->op, .other = other};

    memcpy(&change.operand, &op->operand, sizeof change.operand);
    return change;
}

/* A change may visit at most as many values as a push can carry, so it blocks
 * its shard no longer than a push. Clients cut larger ones, as they cut pushes;
 * one row is always allowed. */
static psd_status_t check_walk(const ps_step_t *step, const ps_partition_t *self,
                               const ps_slice_t *slice, const ps_row_change_t *change,
                               psd_error_t *err)
{
    static const char *const names[] = {"?", "SCALE", "FILL", "AXPY"};
    uint64_t bytes = ps_store_change_walk(self->store, slice, change);

    if (slice->n_rows <= 1 || bytes <= step->args.slice_bytes) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_LIMIT,
                         "%s of %" PRIu64 " rows x %" PRIu32 " columns goes through %" PRIu64
                         " bytes of values; allowed: limits.slice_bytes, which "
                         "is %" PRIu64,
                         names[change->kind], slice->n_rows, slice->n_cols, bytes,
                         step->args.slice_bytes);
}

psd_status_t ps_partition_check_change(const ps_step_t *step, const ps_partition_t *self,
                                       const ps_request_t *request, bool bsp,
                                       ps_row_change_t *ret_change, psd_error_t *err)
{
    ps_partition_t *other = NULL;
    ps_row_change_t change;
    psd_status_t rc = PSD_OK;

    if (request->op.op == PS_CHANGE_AXPY) {
        rc = ps_partition_other(step, self, request, &other, err);
        if (rc != PSD_OK) {
            return rc;
        }
        if ((self->spec->replicas > 1 || self->has_log) && other != self) {
            return psd_error_set(err, PSD_UNSUPPORTED,
                                 "AXPY from another table into one with copies or a log: they "
                                 "could not reproduce the result");
        }
        if (bsp && other != self) {
            return psd_error_set(err, PSD_UNSUPPORTED,
                                 "AXPY from another table in a job with max_delay 0: it is "
                                 "undefined which clocks it would read");
        }
    }
    change = change_of(&request->op, other == NULL ? NULL : other->store);
    rc = ps_store_check_change(self->store, &request->slice, request->payload, &change, err);
    if (rc == PSD_OK) {
        rc = check_walk(step, self, &request->slice, &change, err);
    }
    if (rc == PSD_OK) {
        *ret_change = change;
    }
    return rc;
}

/* The other partition was there, with all its rows, when the push was checked;
 * nothing comes between that and its applying but under BSP, where it is the
 * same one. So no session is asked for. */
psd_status_t ps_partition_change(const ps_step_t *step, ps_partition_t *self,
                                 const ps_slice_t *slice, const ps_payload_t *payload,
                                 const ps_row_op_t *op)
{
    const ps_request_t asks = {.kind = PS_KIND_PUSH, .op = *op, .session = UINT64_MAX};
    ps_partition_t *other = NULL;
    ps_row_change_t change;

    if (op->op == PS_CHANGE_AXPY && op->other == self->table) {
        other = self;
    } else if (op->op == PS_CHANGE_AXPY &&
               ps_partition_other(step, self, &asks, &other, NULL) != PSD_OK) {
        return PSD_OK; /* cannot be */
    }
    change = change_of(op, other == NULL ? NULL : other->store);
    return ps_store_change(self->store, slice, payload, &change, NULL);
}

psd_status_t ps_partition_check_read(const ps_step_t *step, const ps_partition_t *self,
                                     const ps_request_t *request, psd_error_t *err)
{
    ps_partition_t *other = NULL;
    psd_status_t rc = ps_store_check_pull(self->store, &request->slice, request->payload, err);

    if (rc == PSD_OK && request->since > 0 && !ps_store_has_versions(self->store)) {
        return psd_error_set(
            err, PSD_UNSUPPORTED,
            "table %s keeps no versions; create it with versions, or pull all of it",
            self->spec->name);
    }
    if (rc == PSD_OK && request->op.op == PS_READ_TOP && request->op.operand > PS_TOP_MAX) {
        return psd_error_set(err, PSD_LIMIT, "TOP of %" PRIu64 " values; allowed: 0..%" PRIu64,
                             request->op.operand, PS_TOP_MAX);
    }
    if (rc == PSD_OK && request->op.op == PS_READ_DOT) {
        rc = ps_partition_other(step, self, request, &other, err);
        if (rc == PSD_OK) {
            rc = ps_store_check_pair(self->store, other->store, err);
        }
    }
    return rc;
}

/* One number as the values of a slice of one row and column. */
static psd_status_t answer_number(const ps_request_t *request, const ps_measure_t *measure,
                                  ps_slice_t *ret_slice, ps_payload_t **ret_payload)
{
    uint8_t bytes[sizeof(uint64_t)];
    bool counts = request->op.op == PS_READ_NONZEROS;

    if (counts) {
        ps_store_u64(bytes, measure->count);
    } else {
        ps_store_f64(bytes, measure->number);
    }
    *ret_payload = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                   (ps_bytes_t){bytes, sizeof bytes});
    *ret_slice = (ps_slice_t){.rows = PS_ROWS_RANGE,
                              .type = counts ? PS_TYPE_I64 : PS_TYPE_F64,
                              .n_rows = 1,
                              .n_cols = 1,
                              .n_values = 1};
    return *ret_payload == NULL ? PSD_NOMEM : PSD_OK;
}

psd_status_t ps_partition_measure(const ps_step_t *step, ps_partition_t *self,
                                  const ps_request_t *request, ps_slice_t *ret_slice,
                                  ps_payload_t **ret_payload, uint64_t *ret_done)
{
    ps_partition_t *other = NULL;
    ps_measure_t measure = {.done = 0};
    psd_status_t rc = PSD_OK;

    if (request->op.op == PS_READ_TOP) {
        return ps_store_top(self->store, &request->slice, request->payload, request->op.operand,
                            MEASURE_MAX, ret_slice, ret_payload, ret_done, NULL);
    }
    if (request->op.op == PS_READ_DOT) {
        rc = ps_partition_other(step, self, request, &other, NULL);
    }
    if (rc == PSD_OK) {
        rc = ps_store_measure(self->store, &request->slice, request->payload,
                              (ps_measure_kind_t)request->op.op,
                              other == NULL ? NULL : other->store, MEASURE_MAX, &measure, NULL);
    }
    if (rc == PSD_OK) {
        rc = answer_number(request, &measure, ret_slice, ret_payload);
    }
    *ret_done = measure.done;
    return rc;
}
