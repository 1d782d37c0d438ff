/* SPDX-License-Identifier: Apache-2.0 */
/* The primary makes a record: replays it, and sends it to the other copies. */
#include <assert.h>

#include "base/alloc.h"
#include "protocol/facts/job_bytes.h"
#include "protocol/partition/replay.h"
#include "protocol/replica/replicas.h"

/* What goes to the other copies; *ret_bytes is NULL where nothing can. false:
 * no memory. */
static bool prepare(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                    const ps_payload_t *payload, ps_payload_t **ret_bytes)
{
    ps_record_t ahead = *record;

    *ret_bytes = NULL;
    if (self->replicas == NULL || self->replicas->n_followers == 0) {
        return true;
    }
    if (record->kind == PS_RECORD_PUSH &&
        ps_rows_lie_ahead(self, record->job, &record->op, &record->slice, payload,
                          &ahead.slice.first_row)) {
        ahead.kind = PS_RECORD_AHEAD;
        *ret_bytes = ps_replicas_prepare(self->replicas, &ahead, NULL);
        return *ret_bytes != NULL;
    }
    if (!ps_replicas_can_send(step, self, &record->op, payload)) {
        return true;
    }
    assert(payload == NULL || !payload->shared); /* as what is applied */
    *ret_bytes = ps_replicas_prepare(self->replicas, record, payload);
    return *ret_bytes != NULL;
}

bool ps_replicas_record(ps_step_t *step, ps_partition_t *self, ps_record_t *record,
                        ps_payload_t *payload)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *bytes = NULL;

    record->table = self->table;
    record->partition = self->number;
    record->lsn = self->lsn + 1;
    record->epoch = self->epoch;
    if (!prepare(step, self, record, payload, &bytes)) {
        return false;
    }
    if (!ps_partition_replay_noted(step, self, record, payload)) {
        return false;
    }
    if (bytes != NULL) {
        ps_replicas_send(step, self, record, bytes);
    } else if (self->replicas != NULL) {
        ps_tail_pass(&self->replicas->tail, record->lsn, record->epoch);
        ps_replicas_pump(step, self); /* a copy that needed it gets rows again */
    }
    return true;
}

psd_status_t ps_replicas_record_job(ps_step_t *step, ps_partition_t *self, uint32_t id,
                                    const ps_job_t *job, psd_error_t *err)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = job == NULL ? NULL : ps_job_encode(job);
    ps_record_t record = {.kind = PS_RECORD_JOB, .job = id, .seq = job == NULL ? 0 : job->version};

    if ((job != NULL && payload == NULL) || !ps_replicas_record(step, self, &record, payload)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a clock gate");
    }
    return PSD_OK;
}
