/* SPDX-License-Identifier: Apache-2.0 */
/* A request that is ready: log it, apply it or serve it, answer. */
#include "base/alloc.h"
#include "model/store_ops.h"
#include "model/updater.h"
#include "protocol/partition_work.h"

#define EFFECTS_PER_TAKE 4 /* record, answer, two notes */

/* The record of what became of the request; its lsn is the partition's. */
static void
record(ps_shard_t *shard,
       const ps_partition_t *self,
       const ps_request_t *request,
       ps_record_kind_t kind,
       psd_status_t status)
{
    if (!shard->args.log) {
        return;
    }
    ps_note_record(shard,
                   &(ps_record_t){.kind = kind,
                                  .table = self->table,
                                  .partition = self->number,
                                  .lsn = self->lsn,
                                  .session = request->session,
                                  .seq = request->seq,
                                  .status = status,
                                  .job = request->job,
                                  .worker = request->worker,
                                  .member = request->member,
                                  .clock = request->clock,
                                  .op = request->op,
                                  .slice = request->slice},
                   kind == PS_RECORD_PUSH ? request->payload : NULL);
}

/* Refuses for good: the seq is used up and the refusal remembered. */
static bool
refuse(ps_shard_t *shard,
       ps_partition_t *self,
       ps_window_t *window,
       const ps_request_t *request,
       psd_status_t status)
{
    PSD_AUTO(psd_error_destroy)
    psd_error_t *why = ps_partition_words(shard, self, request);

    if (why == NULL || !ps_window_reserve(window)) {
        return false;
    }
    self->lsn++;
    record(shard, self, request, PS_RECORD_REFUSAL, status);
    ps_window_refuse(window, request->seq, status, psd_error_text(why),
                     shard->args.credit_requests);
    ps_answer_refused(shard, request, status, 0, psd_error_text(why));
    return true;
}

static void
note_push(ps_shard_t *shard,
          const ps_partition_t *self,
          const ps_request_t *request,
          ps_note_kind_t kind)
{
    PS_NOTE_TRACE(shard, (&(ps_note_t){.kind = kind,
                                       .table = self->table,
                                       .partition = self->number,
                                       .a = request->session,
                                       .b = request->seq,
                                       .c = self->lsn,
                                       .d = request->worker,
                                       .e = request->clock}));
}

/* Into the log, to be applied when the clock closes. */
static bool
log_push(ps_shard_t *shard,
         ps_partition_t *self,
         ps_job_place_t *place,
         const ps_request_t *request)
{
    ps_logged_t push = {.worker = request->worker,
                        .member = request->member,
                        .session = request->session,
                        .seq = request->seq,
                        .clock = request->clock,
                        .lsn = self->lsn + 1,
                        .op = request->op,
                        .slice = request->slice,
                        .payload = request->payload};

    if (!ps_open_clock_add(&place->open, &push)) {
        return false;
    }
    self->lsn++;
    shard->logged_bytes += ps_open_clock_cost(request->payload);
    self->use->logged_bytes += ps_open_clock_cost(request->payload);
    note_push(shard, self, request, PS_NOTE_LOGGED);
    return true;
}

/* What comes after this push finds its pages there, if somebody has the time.
 * Nothing depends on it. */
static void
ask_to_fill(ps_shard_t *shard, ps_partition_t *self)
{
    ps_soon_t soon;
    ps_effect_t *effect = NULL;

    if (ps_store_soon(self->store, &soon)) {
        effect = ps_outbox_add(shard->outbox, PS_EFFECT_FILL);
    }
    if (effect != NULL) {
        effect->soon = soon;
    }
}

/* Into the rows, for that worker. false: no memory; nothing changed. */
static bool
apply(ps_shard_t *shard,
      ps_partition_t *self,
      uint32_t worker,
      const ps_row_op_t *op,
      const ps_slice_t *slice,
      const ps_payload_t *payload)
{
    psd_status_t rc = PSD_OK;

    if (ps_store_has_versions(self->store)) {
        ps_store_stamp(self->store, ++self->version);
    }
    if (op->op != PS_CHANGE_UPDATE) {
        rc = ps_partition_change(shard, self, slice, payload, op);
    } else {
        ps_store_set_worker(self->store, worker);
        rc = ps_store_push(self->store, slice, payload, NULL);
    }
    ask_to_fill(shard, self);
    if (shard->args.memory_bytes > 0 || shard->args.table_bytes > 0) {
        ps_shard_count_rows(shard, self, false);
    }
    return rc == PSD_OK;
}

static bool
apply_push(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request)
{
    uint32_t worker =
        request->job == 0 ? PS_UPDATER_NO_WORKER : request->worker;

    if (!apply(shard, self, worker, &request->op, &request->slice,
               request->payload)) {
        return false;
    }
    self->lsn++;
    note_push(shard, self, request, PS_NOTE_APPLIED);
    return true;
}

static bool
take_push(ps_shard_t *shard,
          ps_partition_t *self,
          ps_job_place_t *place,
          ps_window_t *window,
          const ps_request_t *request)
{
    bool bsp = place != NULL && ps_gate_is_bsp(place->gate);
    bool done = bsp ? log_push(shard, self, place, request)
                    : apply_push(shard, self, request);

    if (!done) {
        return false;
    }
    record(shard, self, request, PS_RECORD_PUSH, PSD_OK);
    ps_window_finish(window, request->seq);
    self->pushes++;
    self->rows_pushed += request->slice.n_rows;
    if (request->pull) {
        self->pulls++;
        self->rows_pulled += ps_answer_values(shard, self, request);
    } else {
        ps_answer_ack(shard, request);
    }
    return true;
}

static bool
take_mark(ps_shard_t *shard,
          ps_partition_t *self,
          ps_job_place_t *place,
          ps_window_t *window,
          const ps_request_t *request)
{
    self->lsn++;
    record(shard, self, request, PS_RECORD_MARK, PSD_OK);
    PS_NOTE_TRACE(shard, (&(ps_note_t){.kind = PS_NOTE_MARKED,
                                       .table = self->table,
                                       .partition = self->number,
                                       .a = request->job,
                                       .b = request->worker,
                                       .c = request->member,
                                       .d = request->clock}));
    ps_window_finish(window, request->seq);
    ps_answer_ack(shard, request);
    ps_gate_mark(place->gate, request->worker, request->member, request->clock);
    if (!ps_partition_close_clocks(shard, self, place)) {
        ps_shard_wake(shard, self, shard->now_ms); /* go on with a tick */
    }
    return true;
}

/* A push that is kept beyond this step (in a record, or under BSP) while
 * somebody else can change its values: what is checked must be what is kept. */
static bool
needs_own_payload(const ps_shard_t *shard,
                  const ps_partition_t *self,
                  const ps_request_t *request)
{
    const ps_gate_t *gate = NULL;

    if (request->kind != PS_KIND_PUSH || request->payload == NULL ||
        !request->payload->shared) {
        return false;
    }
    if (shard->args.log) {
        return true;
    }
    if (request->job == 0) {
        return false;
    }
    gate = ps_partition_gate(self, request->job);
    return gate == NULL || ps_gate_is_bsp(gate);
}

static bool
take(ps_shard_t *shard,
     ps_partition_t *self,
     ps_window_t *window,
     const ps_request_t *request)
{
    ps_job_place_t *place = NULL;
    psd_status_t rc = ps_partition_check(shard, self, request, &place, NULL);

    if (rc == PSD_NOMEM) {
        return false;
    }
    if (rc != PSD_OK) {
        return refuse(shard, self, window, request, rc);
    }
    return request->kind == PS_KIND_MARK
               ? take_mark(shard, self, place, window, request)
               : take_push(shard, self, place, window, request);
}

bool
ps_partition_take(ps_shard_t *shard,
                  ps_partition_t *self,
                  ps_window_t *window,
                  const ps_request_t *request)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_request_t own;

    if (!ps_outbox_reserve(shard->outbox, EFFECTS_PER_TAKE)) {
        return false;
    }
    if (!needs_own_payload(shard, self, request)) {
        return take(shard, self, window, request);
    }
    payload = ps_payload_own(request->payload);
    if (payload == NULL) {
        return false;
    }
    own = *request;
    own.payload = payload;
    return take(shard, self, window, &own);
}

void
ps_partition_serve(ps_shard_t *shard,
                   ps_partition_t *self,
                   const ps_request_t *request)
{
    ps_job_place_t *place = NULL;
    uint64_t n_rows = 0;
    psd_status_t rc = ps_partition_check(shard, self, request, &place, NULL);

    if (rc != PSD_OK) {
        PSD_AUTO(psd_error_destroy)
        psd_error_t *why = ps_partition_words(shard, self, request);

        ps_answer_refused(shard, request, rc, 0, psd_error_text(why));
        return;
    }
    n_rows = ps_answer_values(shard, self, request);
    self->pulls++;
    self->rows_pulled += n_rows;
    PS_NOTE_TRACE(shard, (&(ps_note_t){.kind = PS_NOTE_SERVED,
                                       .table = self->table,
                                       .partition = self->number,
                                       .a = request->session,
                                       .b = request->worker,
                                       .c = request->clock,
                                       .d = n_rows}));
}

bool
ps_partition_close_clocks(ps_shard_t *shard,
                          ps_partition_t *self,
                          ps_job_place_t *place)
{
    uint64_t closed = ps_gate_closed(place->gate);
    bool over = place->applied < closed || ps_gate_is_deserted(place->gate);
    uint64_t bytes = place->open.bytes;
    size_t n = 0;

    if (!ps_gate_is_bsp(place->gate) || !over) {
        return true;
    }
    ps_open_clock_sort(&place->open);
    while (n < place->open.n_pushes) {
        const ps_logged_t *push = &place->open.pushes[n];

        if (!apply(shard, self, push->worker, &push->op, &push->slice,
                   push->payload)) {
            break;
        }
        n++;
    }
    ps_open_clock_drop(&place->open, n);
    shard->logged_bytes -= bytes - place->open.bytes;
    self->use->logged_bytes -= bytes - place->open.bytes;
    if (place->open.n_pushes > 0) {
        return false;
    }
    if (place->applied < closed || n > 0) {
        PS_NOTE_TRACE(shard, (&(ps_note_t){.kind = PS_NOTE_CLOSED,
                                           .table = self->table,
                                           .partition = self->number,
                                           .a = ps_gate_job(place->gate),
                                           .b = closed,
                                           .c = n}));
    }
    place->applied = closed;
    return true;
}
