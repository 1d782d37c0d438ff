/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a partition's state from untrusted bytes. */
#include <assert.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/facts/job_bytes.h"
#include "protocol/partition/partition_copy.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"

#define FORMAT_COMBINE 6 /* from here on the state says how it combines */

static psd_status_t ends(const char *inside, psd_error_t *err)
{
    return psd_error_set(err, PSD_PROTO, "a partition's state ends inside %s", inside);
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a partition's state");
}

/* ---- windows ---- */

static bool is_refusal(uint16_t number)
{
#define KNOWN(name, number, ...) case number:
    switch (number) {
        PSD_STATUS_MAP(KNOWN)
        return number != PSD_OK;
    default:
        return false;
    }
#undef KNOWN
}

static psd_status_t read_refusal(ps_cursor_t *cursor, ps_window_t *window, psd_error_t *err)
{
    char text[PS_TEXT_MAX + 1] = "";
    uint64_t seq = ps_cursor_u64(cursor);
    uint16_t status = ps_cursor_u16(cursor);
    uint16_t size = ps_cursor_u16(cursor);
    bool has_text = size != PS_STATE_NO_TEXT;
    uint64_t after =
        window->n_refusals == 0 ? window->unsure : window->refusals[window->n_refusals - 1].seq;
    ps_refusal_t *refusal = NULL;

    if (cursor->failed) {
        return ends("a refusal", err);
    }
    if (!is_refusal(status) || seq <= after || seq >= window->next ||
        (has_text && size > PS_TEXT_MAX)) {
        return psd_error_set(err, PSD_PROTO,
                             "session %" PRIu64 " has a refusal of seq %" PRIu64
                             ", status %u, %u bytes of text; allowed: seq above %" PRIu64
                             " and below %" PRIu64 ", a status, at most %d bytes",
                             window->session, seq, status, size, after, window->next, PS_TEXT_MAX);
    }
    ps_cursor_copy(cursor, text, has_text ? size : 0);
    if (cursor->failed) {
        return ends("a refusal's text", err);
    }
    if (!ps_window_reserve(window)) {
        return no_memory(err);
    }
    refusal = &window->refusals[window->n_refusals];
    *refusal = (ps_refusal_t){.seq = seq, .status = (psd_status_t)status};
    refusal->text = has_text ? ps_strdup(text) : NULL;
    if (has_text && refusal->text == NULL) {
        return no_memory(err);
    }
    window->n_refusals++;
    return PSD_OK;
}

static psd_status_t read_window(ps_cursor_t *cursor, ps_partition_t *self, uint64_t used_ms,
                                uint64_t *last_session, psd_error_t *err)
{
    PSD_AUTO(ps_window_destroy)
    ps_window_t *window = ps_window_new(ps_cursor_u64(cursor));
    psd_status_t rc = PSD_OK;
    uint32_t n = 0;

    if (window == NULL) {
        return no_memory(err);
    }
    window->next = ps_cursor_u64(cursor);
    window->arrived = window->next;
    window->unsure = ps_cursor_u64(cursor);
    window->used_ms = used_ms;
    n = ps_cursor_u32(cursor);
    if (cursor->failed) {
        return ends("its windows", err);
    }
    if ((self->windows.count > 0 && window->session <= *last_session) || window->next <= 1 ||
        window->unsure >= window->next) {
        return psd_error_set(err, PSD_PROTO,
                             "a window is of session %" PRIu64 ", next %" PRIu64 ", unsure %" PRIu64
                             "; allowed: sessions ascending, unsure below "
                             "next, next above 1",
                             window->session, window->next, window->unsure);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
        rc = read_refusal(cursor, window, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *last_session = window->session;
    if (!ps_map_put(&self->windows, window->session, window)) {
        return no_memory(err);
    }
    window = NULL;
    return PSD_OK;
}

static psd_status_t read_windows(ps_cursor_t *cursor, ps_partition_t *self, uint64_t used_ms,
                                 psd_error_t *err)
{
    uint32_t n = ps_cursor_u32(cursor);
    uint64_t last_session = 0;
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
        rc = read_window(cursor, self, used_ms, &last_session, err);
    }
    return rc;
}

/* ---- jobs ---- */

/* What will be done to the rows when the clock closes, as the primary has
 * checked it when it came. */
static psd_status_t check_push(const ps_partition_t *self, const ps_job_place_t *place,
                               const ps_record_t *record, const ps_payload_t *payload,
                               psd_error_t *err)
{
    ps_row_change_t change = {.kind = (ps_change_kind_t)record->op.op,
                              .other = record->op.op == PS_CHANGE_AXPY ? self->store : NULL};
    psd_status_t rc = PSD_OK;

    if (record->kind != PS_RECORD_PUSH || record->job != ps_gate_job(place->gate) ||
        record->worker >= PS_WORKERS_MAX ||
        (record->op.op == PS_CHANGE_AXPY && record->op.other != self->table)) {
        return psd_error_set(err, PSD_PROTO,
                             "a push of an open clock is a %s of job %" PRIu32 ", worker %" PRIu32
                             " and table %" PRIu32 "; allowed: PUSH, %" PRIu32 ", 0..%d, %" PRIu32,
                             ps_record_kind_name(record->kind), record->job, record->worker,
                             record->op.other, ps_gate_job(place->gate), PS_WORKERS_MAX - 1,
                             self->table);
    }
    rc = ps_store_check_worker(self->store, record->worker, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (record->op.op == PS_CHANGE_UPDATE) {
        return ps_store_check_push(self->store, &record->slice, payload, err);
    }
    memcpy(&change.operand, &record->op.operand, sizeof change.operand);
    return ps_store_check_change(self->store, &record->slice, payload, &change, err);
}

/* A span of a bundle: its record is checked as any, and has one. */
static psd_status_t read_span(ps_job_place_t *place, const ps_partition_t *self,
                              const ps_record_t *record, ps_payload_t *payload, psd_error_t *err)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *part = NULL;
    ps_logged_t entry;
    psd_status_t rc = PSD_OK;

    if (record->job != ps_gate_job(place->gate) || record->member != 1) {
        return psd_error_set(err, PSD_PROTO,
                             "a bundle of an open clock is of job %" PRIu32 ", with %" PRIu32
                             " spans; allowed: %" PRIu32 ", 1",
                             record->job, record->member, ps_gate_job(place->gate));
    }
    rc = ps_bundle_open(payload, record->worker, 1, &bundle, err);
    if (rc != PSD_OK) {
        return rc;
    }
    part = ps_bundle_span_payload(&bundle.spans[0], payload);
    if (part == NULL) {
        return no_memory(err);
    }
    rc = ps_store_check_worker(self->store, bundle.spans[0].first, err);
    if (rc == PSD_OK) {
        rc = ps_store_check_push(self->store, &bundle.spans[0].slice, part, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (bundle.spans[0].n_from != bundle.n_from) {
        return psd_error_set(err, PSD_PROTO, "a span of an open clock is of %u of %u contributors",
                             bundle.spans[0].n_from, bundle.n_from);
    }
    if (!ps_open_clock_reserve(&place->open, 1) ||
        !ps_partition_span_entry(record, &bundle, 0, payload, &entry)) {
        return no_memory(err);
    }
    if (!ps_open_clock_add(&place->open, &entry)) {
        ps_free(entry.from); /* cannot be: there is room */
        rc = no_memory(err);
    }
    ps_payload_destroy(&entry.payload);
    return rc;
}

static psd_status_t read_push(ps_cursor_t *cursor, const ps_partition_t *self,
                              ps_job_place_t *place, psd_error_t *err)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_record_t record;
    ps_body_t body = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    ps_logged_t push;
    size_t size = 0;
    psd_status_t rc = ps_record_read(cursor->rest, &size, &record, &body, err);

    if (rc != PSD_OK) {
        return psd_error_wrap(err, PSD_PROTO, "a push of an open clock");
    }
    (void)ps_cursor_take(cursor, size);
    payload = ps_payload_copy(body.keys, body.index, body.values);
    if (payload == NULL) {
        return no_memory(err);
    }
    if (record.kind == PS_RECORD_BUNDLE) {
        rc = read_span(place, self, &record, payload, err);
        return rc == PSD_OK || rc == PSD_NOMEM
                   ? rc
                   : psd_error_wrap(err, PSD_PROTO, "a push of an open clock");
    }
    rc = check_push(self, place, &record, payload, err);
    if (rc != PSD_OK) {
        return rc == PSD_NOMEM ? rc : psd_error_wrap(err, PSD_PROTO, "a push of an open clock");
    }
    push = (ps_logged_t){.worker = record.worker,
                         .n = 1,
                         .member = record.member,
                         .session = record.session,
                         .seq = record.seq,
                         .clock = record.clock,
                         .lsn = record.lsn,
                         .op = record.op,
                         .slice = record.slice,
                         .payload = payload};
    return ps_open_clock_add(&place->open, &push) ? PSD_OK : no_memory(err);
}

static psd_status_t read_gate(ps_cursor_t *cursor, ps_job_place_t *place, psd_error_t *err)
{
    PSD_AUTO(ps_job_done) ps_job_t job = {0};
    PSD_AUTO(ps_free_at) uint64_t *marks = NULL;
    uint32_t size = ps_cursor_u32(cursor);
    ps_bytes_t bytes = ps_cursor_take(cursor, size);
    uint64_t closed = 0;
    uint64_t highest = 0;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (cursor->failed) {
        return ends("a job", err);
    }
    rc = ps_job_decode(bytes, &job, err);
    if (rc == PSD_OK) {
        rc = ps_gate_new(&job, &place->gate, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    closed = ps_cursor_u64(cursor);
    highest = ps_cursor_u64(cursor);
    place->applied = ps_cursor_u64(cursor);
    for (size_t i = 0; i < job.n_workers; i++) {
        n += job.workers[i].n_members;
    }
    bytes = ps_cursor_take(cursor, n * sizeof *marks);
    if (cursor->failed) {
        return ends("a job's marks", err);
    }
    marks = ps_alloc_raw(n, sizeof *marks);
    if (marks == NULL) {
        return no_memory(err);
    }
    if (n > 0) {
        memcpy(marks, bytes.data, bytes.size);
    }
    ps_gate_restore(place->gate, closed, highest, marks);
    if (ps_gate_closed(place->gate) != closed || place->applied > closed) {
        return psd_error_set(err, PSD_PROTO,
                             "job %" PRIu32 " has closed %" PRIu64 " clocks and applied %" PRIu64
                             "; its marks close %" PRIu64,
                             job.id, closed, place->applied, ps_gate_closed(place->gate));
    }
    return PSD_OK;
}

/* A job's place, which joins those of the partition whatever comes of it. */
static psd_status_t read_place(ps_cursor_t *cursor, ps_partition_t *self, psd_error_t *err)
{
    ps_job_place_t *place = NULL;
    uint32_t n = 0;
    psd_status_t rc = PSD_OK;

    if (!ps_grow(&self->jobs, &self->jobs_capacity, self->n_jobs + 1, sizeof *self->jobs)) {
        return no_memory(err);
    }
    place = &self->jobs[self->n_jobs];
    *place = (ps_job_place_t){.gate = NULL};
    rc = read_gate(cursor, place, err);
    if (rc == PSD_OK && ps_partition_gate(self, ps_gate_job(place->gate))) {
        rc = psd_error_set(err, PSD_PROTO, "job %" PRIu32 " is in a partition's state twice",
                           ps_gate_job(place->gate));
    }
    self->n_jobs++;
    n = rc == PSD_OK ? ps_cursor_u32(cursor) : 0;
    if (cursor->failed) {
        return ends("a job's open clock", err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
        rc = read_push(cursor, self, place, err);
    }
    return rc;
}

static psd_status_t read_jobs(ps_cursor_t *cursor, ps_partition_t *self, psd_error_t *err)
{
    uint32_t n = ps_cursor_u32(cursor);
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
        rc = read_place(cursor, self, err);
    }
    return rc;
}

/* ---- all of it ---- */

/* The fields before the windows. */
typedef struct front {
    uint64_t epoch;
    uint64_t lsn;
    uint64_t lsn_epoch;
    uint64_t version;
    uint32_t restoring; /* 1: rows of a checkpoint are still to come; or 0 */
    ps_combine_t combine;
    ps_epochs_t epochs;
} front_t;

static psd_status_t read_retired(ps_cursor_t *cursor, ps_partition_t *self, uint32_t format,
                                 psd_error_t *err)
{
    uint64_t lowest = 0;

    if (format > PS_STATE_FORMAT_MIN) {
        return ps_session_set_take(cursor, &self->retired, err);
    }
    lowest = ps_cursor_u64(cursor); /* all unknown ones below it are refused */
    return lowest == 0 || ps_session_set_add(&self->retired, 0, lowest - 1) ? PSD_OK
                                                                            : no_memory(err);
}

static psd_status_t read_combine(ps_cursor_t *cursor, uint32_t format, ps_combine_t *ret,
                                 psd_error_t *err)
{
    uint32_t combine = format < FORMAT_COMBINE ? PS_COMBINE_EACH : ps_cursor_u32(cursor);

    if (cursor->failed) {
        return ends("its front", err);
    }
    if (combine < PS_COMBINE_EACH || combine > PS_COMBINE_CLOCK_MEAN) {
        return psd_error_set(err, PSD_PROTO, "a state combines %" PRIu32 "; allowed: %d..%d",
                             combine, PS_COMBINE_EACH, PS_COMBINE_CLOCK_MEAN);
    }
    *ret = (ps_combine_t)combine;
    return PSD_OK;
}

static psd_status_t read_front(ps_cursor_t *cursor, ps_partition_t *self, front_t *ret,
                               psd_error_t *err)
{
    uint32_t format = ps_cursor_u32(cursor);
    uint32_t table = ps_cursor_u32(cursor);
    uint32_t number = ps_cursor_u32(cursor);
    psd_status_t rc = PSD_OK;

    ret->epoch = ps_cursor_u64(cursor);
    ret->lsn = ps_cursor_u64(cursor);
    ret->lsn_epoch = ps_cursor_u64(cursor);
    ret->version = ps_cursor_u64(cursor);
    if (cursor->failed) {
        return ends("its front", err);
    }
    if (format < PS_STATE_FORMAT_MIN || format > PS_STATE_FORMAT || table != self->table ||
        number != self->number) {
        return psd_error_set(
            err, PSD_PROTO,
            "a state has format %" PRIu32 " and is of partition %" PRIu32 " of table %" PRIu32
            "; allowed: %" PRIu32 "..%" PRIu32 ", %" PRIu32 ", %" PRIu32,
            format, number, table, PS_STATE_FORMAT_MIN, PS_STATE_FORMAT, self->number, self->table);
    }
    rc = read_retired(cursor, self, format, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ret->restoring = ps_cursor_u32(cursor);
    rc = read_combine(cursor, format, &ret->combine, err);
    if (rc != PSD_OK) {
        return rc;
    }
    return ret->restoring > 1 ? psd_error_set(err, PSD_PROTO,
                                              "a state says %" PRIu32 " of being restored; "
                                              "allowed: 0, 1",
                                              ret->restoring)
                              : ps_epochs_take(cursor, &ret->epochs, err);
}

static psd_status_t read_state(ps_cursor_t *cursor, ps_partition_t *self, uint64_t used_ms,
                               front_t *ret_front, psd_error_t *err)
{
    psd_status_t rc = read_front(cursor, self, ret_front, err);

    if (rc == PSD_OK) {
        rc = read_windows(cursor, self, used_ms, err);
    }
    if (rc == PSD_OK) {
        rc = read_jobs(cursor, self, err);
    }
    if (rc == PSD_OK && cursor->failed) {
        rc = ends("a list's length", err);
    }
    if (rc == PSD_OK && !ps_cursor_is_done(cursor)) {
        rc = psd_error_set(err, PSD_PROTO, "a partition's state has %zu bytes after its end",
                           cursor->rest.size);
    }
    return rc;
}

psd_status_t ps_partition_take_state(ps_step_t *step, ps_partition_t *self, ps_bytes_t state,
                                     psd_error_t *err)
{
    ps_cursor_t cursor = ps_cursor_over(state);
    front_t front = {0};
    psd_status_t rc = PSD_OK;

    assert(self->lsn == 0 && self->windows.count == 0 && self->n_jobs == 0);
    rc = read_state(&cursor, self, step->now_ms, &front, err);
    if (rc != PSD_OK) {
        ps_partition_clear(self);
        return rc;
    }
    self->epoch = front.epoch;
    self->lsn = front.lsn;
    self->lsn_epoch = front.lsn_epoch;
    self->version = front.version;
    self->restoring = front.restoring != 0;
    self->epochs = front.epochs;
    self->combine = front.combine;
    for (size_t i = 0; i < self->n_jobs; i++) {
        step->logged_bytes += self->jobs[i].open.bytes;
        self->use->logged_bytes += self->jobs[i].open.bytes;
    }
    ps_store_set_partial(self->store, true);
    return PSD_OK;
}
