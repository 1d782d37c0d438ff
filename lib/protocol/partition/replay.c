/* SPDX-License-Identifier: Apache-2.0 */
/* What each kind of record does to a partition, and which records it writes to
 * its log. */
#include "protocol/partition/replay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/store/store_image.h"
#include "model/updaters/updater.h"
#include "protocol/facts/job_bytes.h"
#include "protocol/partition/answer.h"

#define RETRY_MS 50 /* after memory was short */

/* ---- rows ---- */

void ps_partition_ask_to_fill(ps_step_t *step, ps_partition_t *self)
{
    ps_soon_t soon;
    ps_effect_t *effect = NULL;

    if (ps_store_soon(self->store, &soon)) {
        effect = ps_outbox_add(step->outbox, PS_EFFECT_FILL);
    }
    if (effect != NULL) {
        effect->soon = soon;
    }
}

bool ps_partition_apply(ps_step_t *step, ps_partition_t *self, uint32_t worker,
                        const ps_row_op_t *op, const ps_slice_t *slice, const ps_payload_t *payload)
{
    bool has_versions = ps_store_has_versions(self->store);
    psd_status_t rc = PSD_OK;

    if (has_versions) {
        ps_store_stamp(self->store, self->version + 1);
    }
    if (op->op != PS_CHANGE_UPDATE) {
        rc = ps_partition_change(step, self, slice, payload, op);
    } else {
        ps_store_set_worker(self->store, worker);
        rc = ps_store_push(self->store, slice, payload, NULL);
    }
    if (has_versions && rc == PSD_OK) { /* else a copy would count otherwise */
        self->version++;
    }
    ps_partition_ask_to_fill(step, self);
    if (step->args.memory_bytes > 0 || step->args.table_bytes > 0) {
        ps_partition_count_rows(step, self, false);
    }
    return rc == PSD_OK;
}

/* A clock that could not be applied whole comes before everything else: every
 * copy applies in the same order. */
static bool finish_clocks(ps_step_t *step, ps_partition_t *self)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        if (!ps_partition_close_clocks(step, self, &self->jobs[i])) {
            ps_partition_wake(step, self, step->now_ms + RETRY_MS);
            return false;
        }
    }
    return true;
}

/* ---- the kinds ---- */

ps_window_t *ps_partition_window_of(const ps_step_t *step, ps_partition_t *self, uint64_t session)
{
    ps_window_t *window = ps_map_get(&self->windows, session);

    if (window == NULL) {
        window = ps_window_new(session);
        if (window != NULL && !ps_map_put(&self->windows, session, window)) {
            ps_window_destroy(&window);
        }
    }
    if (window != NULL) {
        window->used_ms = step->now_ms;
    }
    return window;
}

/* Into the log, to be applied when the clock closes. */
static bool keep_push(ps_step_t *step, ps_partition_t *self, ps_job_place_t *place,
                      const ps_record_t *record, ps_payload_t *payload)
{
    ps_logged_t push = {.worker = record->worker,
                        .n = 1,
                        .member = record->member,
                        .session = record->session,
                        .seq = record->seq,
                        .clock = record->clock,
                        .lsn = record->lsn,
                        .op = record->op,
                        .slice = record->slice,
                        .payload = payload};

    if (!ps_open_clock_add(&place->open, &push)) {
        return false;
    }
    step->logged_bytes += ps_open_clock_cost(payload, 0);
    self->use->logged_bytes += ps_open_clock_cost(payload, 0);
    return true;
}

void ps_partition_mark(ps_step_t *step, const ps_partition_t *self, const ps_job_place_t *place,
                       uint32_t worker, uint32_t member, uint64_t clock)
{
    PS_NOTE_TRACE(step, (&(ps_note_t){.kind = PS_NOTE_MARKED,
                                      .table = self->table,
                                      .partition = self->number,
                                      .a = ps_gate_job(place->gate),
                                      .b = worker,
                                      .c = member,
                                      .d = clock}));
    ps_gate_mark(place->gate, worker, member, clock);
}

/* The member has finished this number of clocks. */
static void mark(ps_step_t *step, const ps_partition_t *self, const ps_job_place_t *place,
                 const ps_record_t *record, uint64_t clock)
{
    ps_partition_mark(step, self, place, record->worker, record->member, clock);
}

/* The push was taken. */
static void note_push(ps_step_t *step, ps_partition_t *self, ps_window_t *window,
                      const ps_record_t *record, ps_note_kind_t kind)
{
    ps_window_finish(window, record->seq);
    self->pushes++;
    self->rows_pushed += record->slice.n_rows;
    PS_NOTE_TRACE(step, (&(ps_note_t){.kind = kind,
                                      .table = self->table,
                                      .partition = self->number,
                                      .a = record->session,
                                      .b = record->seq,
                                      .c = record->lsn,
                                      .d = record->worker,
                                      .e = record->clock}));
}

static bool replay_push(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                        ps_payload_t *payload)
{
    ps_job_place_t *place = record->job == 0 ? NULL : ps_partition_find_place(self, record->job);
    ps_window_t *window = ps_partition_window_of(step, self, record->session);
    bool bsp = place != NULL && ps_gate_is_bsp(place->gate);

    if (window == NULL || (record->marks && place == NULL) ||
        !(bsp ? keep_push(step, self, place, record, payload)
              : ps_partition_apply(step, self,
                                   record->job == 0 ? PS_UPDATER_NO_WORKER : record->worker,
                                   &record->op, &record->slice, payload))) {
        return false;
    }
    note_push(step, self, window, record, bsp ? PS_NOTE_LOGGED : PS_NOTE_APPLIED);
    if (record->marks) {
        mark(step, self, place, record, record->clock + 1);
    }
    return true;
}

/* A push to rows that arrive later with the change applied. */
static bool replay_ahead(ps_step_t *step, ps_partition_t *self, const ps_record_t *record)
{
    const ps_job_place_t *place = record->marks ? ps_partition_find_place(self, record->job) : NULL;
    ps_window_t *window = ps_partition_window_of(step, self, record->session);

    if (window == NULL || (record->marks && place == NULL)) {
        return false;
    }
    if (ps_store_has_versions(self->store)) {
        self->version++;
    }
    note_push(step, self, window, record, PS_NOTE_APPLIED);
    if (record->marks) {
        mark(step, self, place, record, record->clock + 1);
    }
    return true;
}

static bool replay_refusal(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                           const ps_payload_t *payload)
{
    const ps_job_place_t *place = record->marks ? ps_partition_find_place(self, record->job) : NULL;
    ps_window_t *window = ps_partition_window_of(step, self, record->session);
    char text[PS_TEXT_MAX + 1] = "";
    size_t size = 0;

    if (window == NULL || (record->marks && place == NULL)) {
        return false;
    }
    if (payload != NULL && payload->n_spans > 0) {
        size = payload->spans[0].size < PS_TEXT_MAX ? payload->spans[0].size : PS_TEXT_MAX;
        memcpy(text, payload->spans[0].data, size);
    }
    if (!ps_window_refuse(window, record->seq, record->status, text, step->args.credit_requests)) {
        return false;
    }
    if (record->marks) {
        mark(step, self, place, record, record->clock + 1);
    }
    return true;
}

static bool replay_mark(ps_step_t *step, ps_partition_t *self, const ps_record_t *record)
{
    ps_job_place_t *place = ps_partition_find_place(self, record->job);
    ps_window_t *window = ps_partition_window_of(step, self, record->session);

    if (window == NULL || place == NULL) {
        return false;
    }
    ps_window_finish(window, record->seq);
    mark(step, self, place, record, record->clock);
    return true;
}

/* The job's current state, at a gate that its first record creates. */
static bool set_job(ps_partition_t *self, const ps_job_t *job)
{
    ps_job_place_t *place = ps_partition_find_place(self, job->id);
    ps_gate_t *gate = NULL;

    if (place != NULL) {
        return ps_gate_update(place->gate, job, NULL) == PSD_OK;
    }
    if (!ps_grow(&self->jobs, &self->jobs_capacity, self->n_jobs + 1, sizeof *self->jobs) ||
        ps_gate_new(job, &gate, NULL) != PSD_OK) {
        return false;
    }
    self->jobs[self->n_jobs++] = (ps_job_place_t){.gate = gate, .applied = ps_gate_closed(gate)};
    return true;
}

static void forget_job(ps_partition_t *self, uint32_t job)
{
    ps_job_place_t *place = ps_partition_find_place(self, job);

    if (place != NULL) {
        size_t at = (size_t)(place - self->jobs);

        ps_gate_destroy(&place->gate);
        ps_open_clock_done(&place->open);
        self->n_jobs--;
        memmove(place, place + 1, (self->n_jobs - at) * sizeof *place);
    }
}

static bool replay_job(ps_partition_t *self, const ps_record_t *record, const ps_payload_t *payload)
{
    PSD_AUTO(ps_job_done) ps_job_t job = {0};

    if (payload == NULL || payload->n_spans == 0) {
        forget_job(self, record->job);
        return true;
    }
    return ps_job_decode(payload->spans[0], &job, NULL) == PSD_OK && set_job(self, &job);
}

/* Rows of a checkpoint; while more come, requests wait. */
static bool replay_rows(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                        const ps_payload_t *payload)
{
    if (payload != NULL && payload->n_spans > 0 &&
        ps_store_put(self->store, payload->spans[0], &self->version, NULL) != PSD_OK) {
        return false;
    }
    self->restoring = record->seq != 0;
    if (step->args.memory_bytes > 0 || step->args.table_bytes > 0) {
        ps_partition_count_rows(step, self, false);
    }
    return true;
}

/* What an older psd has forgotten were all sessions up to one. */
static bool replay_retire(ps_partition_t *self, const ps_record_t *record)
{
    ps_window_t *window = NULL;
    bool is_one = record->kind == PS_RECORD_RETIRE;
    uint64_t last = is_one ? record->session : record->seq - 1;

    if ((is_one || record->seq > 0) &&
        !ps_session_set_add(&self->retired, is_one ? last : 0, last)) {
        return false;
    }
    window = ps_map_remove(&self->windows, record->session);
    ps_window_destroy(&window);
    return true;
}

static bool replay(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                   ps_payload_t *payload)
{
    switch (record->kind) {
    case PS_RECORD_PUSH:
        return replay_push(step, self, record, payload);
    case PS_RECORD_AHEAD:
        return replay_ahead(step, self, record);
    case PS_RECORD_REFUSAL:
        return replay_refusal(step, self, record, payload);
    case PS_RECORD_MARK:
        return replay_mark(step, self, record);
    case PS_RECORD_JOB:
        return replay_job(self, record, payload);
    case PS_RECORD_FORGET:
    case PS_RECORD_RETIRE:
        return replay_retire(self, record);
    case PS_RECORD_EPOCH:
        if (self->epoch < record->epoch) {
            self->epoch = record->epoch;
        }
        return true;
    case PS_RECORD_ROWS:
        return replay_rows(step, self, record, payload);
    case PS_RECORD_BUNDLE:
        return ps_partition_replay_bundle(step, self, record, payload);
    case PS_RECORD_SET:
        self->combine = (ps_combine_t)record->seq;
        return true;
    case PS_RECORD_ANEW: /* never one of a partition's records */
    case PS_RECORD_LEAVE:
    default:
        return false;
    }
}

bool ps_partition_replay(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                         ps_payload_t *payload)
{
    if (!finish_clocks(step, self)) {
        return false;
    }
    ps_partition_image_try(step, self);
    if (!replay(step, self, record, payload)) {
        return false;
    }
    self->lsn = record->lsn;
    self->lsn_epoch = record->epoch;
    ps_epochs_add(&self->epochs, record->lsn, record->epoch);
    if (record->kind == PS_RECORD_MARK || record->kind == PS_RECORD_JOB ||
        record->kind == PS_RECORD_BUNDLE || record->marks) {
        (void)finish_clocks(step, self); /* or with the next one, or a tick */
        ps_partition_image_try(step, self);
    }
    return true;
}

/* ---- its log ---- */

/* Appends a record effect if the shell reads it: all records with args.log,
 * otherwise those of a partition with a log. The outbox has room for it. */
static void write_log(ps_step_t *step, const ps_partition_t *self, const ps_record_t *record,
                      ps_payload_t *payload)
{
    bool is_wanted = step->args.log || self->has_log;
    ps_effect_t *effect = is_wanted ? ps_outbox_add(step->outbox, PS_EFFECT_RECORD) : NULL;

    assert(!is_wanted || effect != NULL);

    if (effect != NULL) {
        step->unflushed_bytes += self->has_log ? ps_record_size(record, payload) : 0;
        effect->record = *record;
        effect->payload = payload == NULL ? NULL : ps_payload_keep(payload);
    }
}

/* false: no memory. */
static bool put_mark(ps_step_t *step, const ps_partition_t *self, ps_record_kind_t kind)
{
    const ps_record_t record = {.kind = kind,
                                .table = self->table,
                                .partition = self->number,
                                .lsn = self->lsn,
                                .epoch = self->lsn_epoch,
                                .seq = self->life};

    if (!ps_outbox_reserve(step->outbox, 1)) {
        return false;
    }
    write_log(step, self, &record, NULL);
    return true;
}

bool ps_partition_log_anew(ps_step_t *step, ps_partition_t *self)
{
    if (!self->has_log) {
        return true;
    }
    self->needs_base = self->lsn > 0; /* else records say it all */
    return put_mark(step, self, PS_RECORD_ANEW);
}

/* Without memory for it the log is kept until the next start, which finds a
 * partition that the map does not place here. */
void ps_partition_log_leave(ps_step_t *step, const ps_partition_t *self)
{
    bool is_told = !self->has_log || put_mark(step, self, PS_RECORD_LEAVE);

    (void)is_told;
}

void ps_partition_log_reason(const ps_step_t *step, char *ret_text, size_t size)
{
    (void)snprintf(ret_text, size,
                   "waiting for the disk of node %" PRIu64 " shard %" PRIu32 ": %" PRIu64
                   " bytes are not flushed; allowed: %" PRIu64 "%s%s",
                   step->args.incarnation, step->args.shard, step->unflushed_bytes,
                   step->args.log_queue_bytes, step->disk_trouble[0] == '\0' ? "" : "; ",
                   step->disk_trouble);
}

bool ps_partition_replay_noted(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                               ps_payload_t *payload)
{
    bool is_done = false;

    if (!ps_outbox_hold(step->outbox)) {
        return false;
    }
    is_done = ps_partition_replay(step, self, record, payload);
    ps_outbox_give_up(step->outbox);

    if (is_done) {
        write_log(step, self, record, payload);
    }
    return is_done;
}
