/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a record can be replayed here; does not trust the primary's
 * checks. */
#include "base/alloc.h"
#include "model/store/store_copy.h"
#include "model/store/store_image.h"
#include "model/store/store_growth.h"
#include "protocol/facts/job_bytes.h"
#include "protocol/partition/replay.h"

/* Its pushes are applied at once, not kept until their clock closes: by then
 * the rows would have arrived without them. */
bool ps_partition_applies_at_once(const ps_partition_t *self, uint32_t job)
{
    const ps_job_place_t *place = job == 0 ? NULL : ps_partition_find_place(self, job);

    return job == 0 || (place != NULL && !ps_gate_is_bsp(place->gate));
}

/* A push that is to be replayed: what the store asserts is so. */
static bool takes_push(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                       ps_payload_t *payload)
{
    const ps_request_t request = {.kind = PS_KIND_PUSH,
                                  .table = self->table,
                                  .partition = self->number,
                                  .job = record->job,
                                  .worker = record->worker,
                                  .op = record->op,
                                  .slice = record->slice,
                                  .payload = payload};
    ps_row_change_t change;

    if (record->op.op == PS_CHANGE_AXPY && record->op.other != self->table) {
        return false; /* what it came to would be here */
    }
    if (record->op.op != PS_CHANGE_UPDATE) {
        return ps_partition_check_change(step, self, &request, false, &change, NULL) == PSD_OK;
    }
    return ps_store_check_push(self->store, &record->slice, payload, NULL) == PSD_OK &&
           (record->job == 0 || ps_store_check_worker(self->store, record->worker, NULL) == PSD_OK);
}

static bool takes_mark(const ps_job_place_t *place, const ps_record_t *record)
{
    return place != NULL && ps_gate_check(place->gate, record->worker, record->joins,
                                          record->member, NULL) == PSD_OK;
}

/* A job that can be read, and is the one that the record names. */
static bool takes_job(const ps_record_t *record, const ps_payload_t *payload)
{
    PSD_AUTO(ps_job_done) ps_job_t job = {0};
    psd_status_t rc = PSD_OK;

    if (payload == NULL || payload->n_spans == 0) {
        return true; /* it is forgotten */
    }
    rc = ps_job_decode(payload->spans[0], &job, NULL);
    return rc == PSD_NOMEM || (rc == PSD_OK && job.id == record->job);
}

static bool takes_ahead(const ps_partition_t *self, const ps_record_t *record)
{
    uint64_t place = 0;

    return !self->has_log && ps_store_is_partial(self->store) &&
           ps_partition_applies_at_once(self, record->job) &&
           ps_store_place_of(self->store, record->slice.first_row, &place) &&
           place >= ps_store_n_taken(self->store);
}

bool ps_partition_takes_record(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                               ps_payload_t *payload)
{
    const ps_job_place_t *place =
        record->job == 0 ? NULL : ps_partition_find_place(self, record->job);

    if ((record->kind == PS_RECORD_MARK || record->marks) && !takes_mark(place, record)) {
        return false;
    }
    if (record->kind == PS_RECORD_PUSH) {
        return (record->job == 0 || (place != NULL && record->worker < PS_WORKERS_MAX)) &&
               takes_push(step, self, record, payload);
    }
    if (record->kind == PS_RECORD_BUNDLE) {
        return ps_partition_takes_bundle(self, record, payload);
    }
    if (record->kind == PS_RECORD_AHEAD) {
        return takes_ahead(self, record);
    }
    if (record->kind == PS_RECORD_JOB) {
        return takes_job(record, payload);
    }
    if (record->kind == PS_RECORD_ROWS) {
        return payload == NULL || payload->n_spans == 0 ||
               ps_store_check_piece(self->store, payload->spans[0], NULL) == PSD_OK;
    }
    if (record->kind == PS_RECORD_SET) {
        return record->seq >= PS_COMBINE_EACH && record->seq <= PS_COMBINE_CLOCK_MEAN;
    }
    return record->kind != PS_RECORD_ANEW && record->kind != PS_RECORD_LEAVE; /* a log's business */
}
