/* SPDX-License-Identifier: Apache-2.0 */
/* A ready request: records or serves it, and answers. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/admission/admission.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"
#include "protocol/replica/replicas.h"

#define EFFECTS_PER_TAKE 5 /* two records, answer, two notes */

/* The record of the request's result. */
static ps_record_t record_of(const ps_request_t *request, ps_record_kind_t kind)
{
    return (ps_record_t){.kind = kind,
                         .session = request->session,
                         .seq = request->seq,
                         .job = request->job,
                         .worker = request->worker,
                         .member = request->member,
                         .joins = request->joins,
                         .clock = request->clock};
}

/* Withholds the answer until its level is reached. */
static void withhold(ps_step_t *step, ps_partition_t *self, const ps_request_t *request,
                     size_t n_before)
{
    if (self->replicas != NULL) {
        ps_replicas_withhold(step, self, request, n_before);
    }
}

/* A push that ends a clock does so also when its rows are not taken. */
static bool marks_refused(const ps_partition_t *self, const ps_request_t *request)
{
    const ps_gate_t *gate = request->marks ? ps_partition_gate(self, request->job) : NULL;

    return gate != NULL &&
           ps_gate_check(gate, request->worker, request->joins, request->member, NULL) == PSD_OK;
}

/* Refuses permanently: consumes the seq and remembers the refusal. */
static bool refuse(ps_step_t *step, ps_partition_t *self, const ps_request_t *request,
                   psd_status_t status)
{
    PSD_AUTO(psd_error_destroy)
    psd_error_t *why = ps_partition_words(step, self, request);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *words = NULL;
    ps_record_t record = record_of(request, PS_RECORD_REFUSAL);
    const ps_bytes_t none = {NULL, 0};
    const char *text = NULL;
    size_t n_before = 0;

    if (why == NULL) {
        return false;
    }
    text = psd_error_text(why);
    words = ps_payload_copy(none, none, (ps_bytes_t){(const uint8_t *)text, strlen(text)});
    record.status = status;
    record.marks = marks_refused(self, request);
    if (words == NULL || !ps_replicas_record(step, self, &record, words)) {
        return false;
    }
    n_before = step->outbox->n_effects;
    ps_answer_refused(step, request, status, 0, text);
    withhold(step, self, request, n_before);
    return true;
}

static void count_pull(ps_step_t *step, ps_partition_t *self, uint64_t n_rows)
{
    self->pulls++;
    self->rows_pulled += n_rows;
    ps_count_add(step->counts->pulls, 1);
    ps_count_add(step->counts->rows_pulled, n_rows);
}

static bool take_push(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_record_t record = record_of(request, PS_RECORD_PUSH);
    size_t n_before = 0;

    record.op = request->op;
    record.slice = request->slice;
    record.marks = request->marks;
    if (!ps_replicas_record(step, self, &record, request->payload)) {
        return false;
    }
    ps_count_add(step->counts->pushes, 1);
    ps_count_add(step->counts->rows_pushed, request->slice.n_rows);
    n_before = step->outbox->n_effects;
    if (request->pull) {
        count_pull(step, self, ps_answer_values(step, self, request));
    } else {
        ps_answer_ack(step, request);
    }
    withhold(step, self, request, n_before);
    return true;
}

static bool take_mark(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_record_t record = record_of(request, PS_RECORD_MARK);
    size_t n_before = 0;

    if (!ps_replicas_record(step, self, &record, NULL)) {
        return false;
    }
    n_before = step->outbox->n_effects;
    ps_answer_ack(step, request);
    withhold(step, self, request, n_before);
    return true;
}

/* A push that is kept beyond this step (in a record, or under BSP) while
 * another process can change its values: the kept values must be the checked
 * ones. */
static bool needs_own_payload(const ps_step_t *step, const ps_partition_t *self,
                              const ps_request_t *request)
{
    const ps_gate_t *gate = NULL;
    uint64_t lowest = 0;

    if (request->kind != PS_KIND_PUSH || request->payload == NULL || !request->payload->shared) {
        return false;
    }
    if (step->args.log || (self->replicas != NULL &&
                           !ps_rows_lie_ahead(self, request->job, &request->op, &request->slice,
                                              request->payload, &lowest))) {
        return true;
    }
    if (request->job == 0) {
        return false;
    }
    gate = ps_partition_gate(self, request->job);
    return gate == NULL || ps_gate_is_bsp(gate);
}

bool ps_partition_settle_combine(ps_step_t *step, ps_partition_t *self, const ps_job_place_t *place)
{
    ps_record_t record = {.kind = PS_RECORD_SET, .seq = (uint64_t)self->spec->combine};

    if (self->combine == self->spec->combine || place == NULL || !ps_gate_is_bsp(place->gate)) {
        return true;
    }
    for (size_t i = 0; i < self->n_jobs; i++) {
        if (self->jobs[i].open.n_pushes > 0) {
            return true;
        }
    }
    return ps_replicas_record(step, self, &record, NULL);
}

static bool take(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_job_place_t *place = NULL;
    psd_status_t rc = ps_partition_check(step, self, request, &place, NULL);

    if (rc == PSD_NOMEM || rc == PSD_BUSY) {
        return false;
    }
    if (rc != PSD_OK) {
        return refuse(step, self, request, rc);
    }
    if (!ps_partition_settle_combine(step, self, place)) {
        return false;
    }
    return request->kind == PS_KIND_MARK ? take_mark(step, self, request)
                                         : take_push(step, self, request);
}

bool ps_partition_take(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_request_t own;

    if (!ps_outbox_reserve(step->outbox, EFFECTS_PER_TAKE)) {
        return false;
    }
    if (!needs_own_payload(step, self, request) && self->replicas == NULL) {
        return take(step, self, request);
    }
    own = *request;
    if (needs_own_payload(step, self, request)) {
        payload = ps_payload_own(request->payload);
        if (payload == NULL) {
            return false;
        }
        own.payload = payload;
    }
    if (self->replicas != NULL) {
        own.room = (ps_room_t){NULL, 0}; /* it may be gone before the answer */
    }
    return take(step, self, &own);
}

void ps_partition_serve(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_job_place_t *place = NULL;
    uint64_t n_rows = 0;
    psd_status_t rc = ps_partition_check(step, self, request, &place, NULL);

    if (rc != PSD_OK) {
        PSD_AUTO(psd_error_destroy)
        psd_error_t *why = ps_partition_words(step, self, request);

        ps_answer_refused(step, request, rc, 0, psd_error_text(why));
        return;
    }
    n_rows = ps_answer_values(step, self, request);
    count_pull(step, self, n_rows);
    PS_NOTE_TRACE(step, (&(ps_note_t){.kind = PS_NOTE_SERVED,
                                      .table = self->table,
                                      .partition = self->number,
                                      .a = request->session,
                                      .b = request->worker,
                                      .c = request->clock,
                                      .d = n_rows}));
}
