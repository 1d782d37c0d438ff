/* SPDX-License-Identifier: Apache-2.0 */
/* From the gate to the rows: is it ready, is it right, log it, apply it. */
#include <inttypes.h>

#include "base/alloc.h"
#include "model/store_growth.h"
#include "model/store_ops.h"
#include "model/updater.h"
#include "protocol/partition_work.h"

#define EFFECTS_PER_TAKE 4 /* record, answer, two notes */

/* A level above memory needs what this partition does not have: a second copy
 * in sync, a log on disk. */
static bool
level_is_reachable(const ps_partition_t *self, const ps_request_t *request)
{
    uint8_t level = request->ack == PS_ACK_DEFAULT ? (uint8_t)self->spec->ack
                                                   : request->ack;

    return level <= PS_ACK_MEMORY;
}

static bool
is_in_turn(const ps_partition_t *self, const ps_request_t *request)
{
    const ps_window_t *window = NULL;

    if (request->after == 0) {
        return true;
    }
    window = ps_map_get(&self->windows, request->session);
    return window != NULL && window->next > request->after;
}

/* The job's gate at this partition is open to it; also when its worker may not
 * work, for then it will be refused. */
static bool
gate_is_open(ps_shard_t *shard,
             ps_partition_t *self,
             const ps_request_t *request)
{
    ps_job_place_t *place = NULL;

    if (ps_partition_place(shard, self, request->job, &place, NULL) != PSD_OK ||
        place == NULL ||
        ps_gate_check(place->gate, request->worker, request->joins,
                      request->member, NULL) != PSD_OK) {
        return true;
    }
    if (ps_gate_is_bsp(place->gate) &&
        place->applied < ps_gate_closed(place->gate)) {
        return false; /* a closed clock is not in the rows yet */
    }
    if (request->kind == PS_KIND_MARK) {
        return ps_gate_takes_mark(place->gate, request->worker, request->member,
                                  request->clock);
    }
    return ps_gate_is_open(place->gate, request->clock);
}

bool
ps_partition_is_ready(ps_shard_t *shard,
                      ps_partition_t *self,
                      const ps_request_t *request)
{
    ps_partition_t *other = NULL;

    if (request->kind == PS_KIND_PUSH && !level_is_reachable(self, request)) {
        return false;
    }
    if (request->kind == PS_KIND_PULL && !is_in_turn(self, request)) {
        return false;
    }
    if (request->job == 0) {
        return true;
    }
    if (!gate_is_open(shard, self, request)) {
        return false;
    }
    /* what is read of the other table is bound by the clocks as well */
    return !ps_request_is_paired(request) ||
           ps_partition_other(shard, self, request, &other, NULL) != PSD_OK ||
           gate_is_open(shard, other, request);
}

/* May this worker work? *ret_place is NULL for a request of no worker. */
static psd_status_t
check_worker(ps_shard_t *shard,
             ps_partition_t *self,
             const ps_request_t *request,
             ps_job_place_t **ret_place,
             psd_error_t *err)
{
    psd_status_t rc;

    *ret_place = NULL;
    if (request->job == 0) {
        return PSD_OK;
    }
    rc = ps_partition_place(shard, self, request->job, ret_place, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (*ret_place == NULL) {
        return psd_error_set(err, PSD_NO_JOB,
                             "job %" PRIu32 " is not known here", request->job);
    }
    return ps_gate_check((*ret_place)->gate, request->worker, request->joins,
                         request->member, err);
}

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

/* A clock that is open keeps its pushes; one that would keep too much is
 * refused for good, because waiting cannot help: the clock would never close.
 */
static psd_status_t
check_open_clock(const ps_shard_t *shard,
                 const ps_job_place_t *place,
                 const ps_request_t *request,
                 psd_error_t *err)
{
    uint64_t cost = ps_open_clock_cost(request->payload);

    if (place == NULL || !ps_gate_is_bsp(place->gate) ||
        (shard->logged_bytes <= shard->args.held_bytes &&
         cost <= shard->args.held_bytes - shard->logged_bytes)) {
        return PSD_OK;
    }
    return psd_error_set(
        err, PSD_LIMIT,
        "open clocks keep %" PRIu64 " bytes on this shard, %" PRIu64
        " more are above limits.held_bytes %" PRIu64 "; push less in one clock",
        shard->logged_bytes, cost, shard->args.held_bytes);
}

static bool
is_plain_read(const ps_request_t *request)
{
    return request->op.op == PS_READ_VALUES && request->since == 0;
}

/* A push makes rows for which there is room in the node's memory; one that is
 * kept until its clock closes takes its own bytes, too. Waiting would not help:
 * what is full stays full. */
static psd_status_t
check_memory(const ps_shard_t *shard,
             const ps_partition_t *self,
             const ps_request_t *request,
             bool bsp,
             psd_error_t *err)
{
    uint64_t limit = shard->args.memory_bytes;
    uint64_t kept =
        shard->row_bytes + shard->other_bytes + (bsp ? shard->logged_bytes : 0);
    uint64_t cost = bsp ? ps_open_clock_cost(request->payload) : 0;
    uint64_t left = kept + cost < limit ? limit - kept - cost : 0;
    uint64_t growth = 0;

    if (limit == 0 ||
        ps_store_growth_bound(self->store, &request->slice) <= left) {
        return PSD_OK;
    }
    growth = ps_store_growth(self->store, &request->slice, request->payload);
    if (growth <= left && kept + cost <= limit) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_LIMIT,
                         "it takes %" PRIu64
                         " bytes and the node keeps %" PRIu64
                         "; limits.memory_bytes is %" PRIu64,
                         growth + cost, kept, limit);
}

/* What speaks against the request, for good: its worker, its content. */
static psd_status_t
check(ps_shard_t *shard,
      ps_partition_t *self,
      const ps_request_t *request,
      ps_job_place_t **ret_place,
      psd_error_t *err)
{
    psd_status_t rc = check_worker(shard, self, request, ret_place, err);
    bool bsp = false;

    if (rc != PSD_OK) {
        return rc;
    }
    bsp = *ret_place != NULL && ps_gate_is_bsp((*ret_place)->gate);
    if (request->kind == PS_KIND_PULL) {
        return is_plain_read(request)
                   ? ps_store_check_pull(self->store, &request->slice,
                                         request->payload, err)
                   : ps_partition_check_read(shard, self, request, err);
    }
    if (request->kind == PS_KIND_PUSH && request->op.op != PS_CHANGE_UPDATE) {
        rc = ps_partition_check_change(shard, self, request, bsp, err);
        return rc != PSD_OK ? rc
                            : check_open_clock(shard, *ret_place, request, err);
    }
    if (request->kind == PS_KIND_PUSH) {
        rc = ps_store_check_push(self->store, &request->slice, request->payload,
                                 err);
        if (rc == PSD_OK && request->job != 0) {
            rc = ps_store_check_worker(self->store, request->worker, err);
        }
        if (rc == PSD_OK) {
            rc = check_memory(shard, self, request, bsp, err);
        }
        return rc != PSD_OK ? rc
                            : check_open_clock(shard, *ret_place, request, err);
    }
    if (*ret_place == NULL) {
        return psd_error_set(err, PSD_NOT_JOINED,
                             "a mark of a client that is no worker");
    }
    return PSD_OK;
}

/* The same again, only for its words: the way without errors makes none. */
static psd_error_t *
words_of(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request)
{
    psd_error_t *why = psd_error_new();
    ps_job_place_t *place = NULL;

    if (why != NULL && check(shard, self, request, &place, why) == PSD_OK) {
        psd_error_clear(why); /* cannot be: nothing changed in between */
    }
    return why;
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
    psd_error_t *why = words_of(shard, self, request);

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
    note_push(shard, self, request, PS_NOTE_LOGGED);
    return true;
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
    if (ps_store_has_versions(self->store)) {
        ps_store_stamp(self->store, ++self->version);
    }
    if (op->op != PS_CHANGE_UPDATE) {
        return ps_partition_change(shard, self, slice, payload, op) == PSD_OK;
    }
    ps_store_set_worker(self->store, worker);
    if (ps_store_push(self->store, slice, payload, NULL) != PSD_OK) {
        return false;
    }
    if (shard->args.memory_bytes > 0) {
        ps_shard_count_rows(shard, self, false);
    }
    return true;
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
    psd_status_t rc = check(shard, self, request, &place, NULL);

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
    psd_status_t rc = check(shard, self, request, &place, NULL);

    if (rc != PSD_OK) {
        PSD_AUTO(psd_error_destroy)
        psd_error_t *why = words_of(shard, self, request);

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
