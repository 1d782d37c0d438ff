/* SPDX-License-Identifier: Apache-2.0 */
/* Sends rows to a new copy, and encodes a partition's state.
 * partition_copy_take.c decodes it. */
#include "protocol/partition/partition_copy.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/facts/job_bytes.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"

/* ---- rows ---- */

static psd_status_t finish_clocks(ps_step_t *step, ps_partition_t *self, psd_error_t *err)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        if (!ps_partition_close_clocks(step, self, &self->jobs[i])) {
            return psd_error_set(err, PSD_NOMEM, "no memory to apply a clock that has closed");
        }
    }
    return PSD_OK;
}

psd_status_t ps_partition_give_rows(ps_step_t *step, ps_partition_t *self,
                                    ps_store_cursor_t *cursor, size_t max_bytes,
                                    ps_payload_t **ret_piece, bool *ret_done, psd_error_t *err)
{
    psd_status_t rc = finish_clocks(step, self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    return ps_store_hand_out(self->store, cursor, max_bytes, ret_piece, ret_done, err);
}

psd_status_t ps_partition_take_rows(ps_step_t *step, ps_partition_t *self, ps_bytes_t piece,
                                    bool is_last, psd_error_t *err)
{
    psd_status_t rc = finish_clocks(step, self, err);

    if (rc == PSD_OK && is_last && !ps_store_piece_is_last(piece)) {
        rc = psd_error_set(err, PSD_PROTO, "the last piece says that more rows follow");
    }
    if (rc == PSD_OK) {
        rc = ps_store_take_in(self->store, piece, err);
    }
    if (rc == PSD_OK && is_last) {
        ps_store_set_partial(self->store, false);
    }
    ps_partition_ask_to_fill(step, self);
    if (step->args.memory_bytes > 0 || step->args.table_bytes > 0) {
        ps_partition_count_rows(step, self, false);
    }
    return rc;
}

/* ---- state to bytes ---- */

/* Its text is as long as a record's may be. */
static bool put_refusal(ps_buffer_t *to, const ps_refusal_t *refusal)
{
    bool has_text = refusal->text != NULL;
    const char *text = has_text ? refusal->text : "";
    uint16_t size = (uint16_t)strlen(text);

    return ps_buffer_u64(to, refusal->seq) && ps_buffer_u16(to, (uint16_t)refusal->status) &&
           ps_buffer_u16(to, has_text ? size : PS_STATE_NO_TEXT) &&
           ps_buffer_append(to, text, size);
}

static bool put_window(ps_buffer_t *to, const ps_window_t *window)
{
    bool fits = ps_buffer_u64(to, window->session) && ps_buffer_u64(to, window->next) &&
                ps_buffer_u64(to, window->unsure) &&
                ps_buffer_u32(to, (uint32_t)window->n_refusals);

    for (size_t i = 0; fits && i < window->n_refusals; i++) {
        fits = put_refusal(to, &window->refusals[i]);
    }
    return fits;
}

static int by_session(const void *left, const void *right)
{
    const ps_window_t *const *a = left;
    const ps_window_t *const *b = right;

    return ((*a)->session > (*b)->session) - ((*a)->session < (*b)->session);
}

/* Windows with a finished seq: empty ones were only created by look-ups. */
static bool put_windows(ps_buffer_t *to, const ps_map_t *windows)
{
    PSD_AUTO(ps_free_at)
    const ps_window_t **sorted = ps_alloc(windows->count, sizeof *sorted);
    uint32_t n = 0;
    size_t at = 0;
    uint64_t session = 0;
    void *value = NULL;
    bool fits = false;

    if (sorted == NULL) {
        return false;
    }
    while (ps_map_next(windows, &at, &session, &value)) {
        const ps_window_t *window = value;

        if (window->next > 1) {
            sorted[n++] = window;
        }
    }
    qsort(sorted, n, sizeof *sorted, by_session);
    fits = ps_buffer_u32(to, n);
    for (uint32_t i = 0; fits && i < n; i++) {
        fits = put_window(to, sorted[i]);
    }
    return fits;
}

static bool put_job(ps_buffer_t *to, const ps_gate_t *gate)
{
    PSD_AUTO(ps_job_done) ps_job_t job = {0};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *bytes = NULL;

    if (ps_gate_job_now(gate, &job, NULL) != PSD_OK) {
        return false;
    }
    bytes = ps_job_encode(&job);
    return bytes != NULL && ps_buffer_u32(to, (uint32_t)bytes->span.size) &&
           ps_buffer_append(to, bytes->span.data, bytes->span.size);
}

static bool put_marks(ps_buffer_t *to, const ps_gate_t *gate)
{
    for (size_t i = 0; i < ps_gate_n_workers(gate); i++) {
        uint32_t n = 0;
        const uint64_t *marks = ps_gate_marks(gate, i, &n);

        for (uint32_t k = 0; k < n; k++) {
            if (!ps_buffer_u64(to, marks[k])) {
                return false;
            }
        }
    }
    return true;
}

static bool put_record(ps_buffer_t *to, const ps_record_t *record, const ps_payload_t *payload)
{
    size_t size = ps_record_size(record, payload);

    if (size == 0 || !ps_buffer_reserve(to, size)) {
        return false;
    }
    ps_record_write(record, payload, to->data + to->size);
    to->size += size;
    return true;
}

static bool put_span(ps_buffer_t *to, const ps_partition_t *self, uint32_t job,
                     const ps_logged_t *entry)
{
    ps_bundle_span_t span = {.first = entry->worker,
                             .n = entry->n,
                             .n_from = entry->n_from,
                             .slice = entry->slice,
                             .body = {.keys = entry->payload->keys,
                                      .index = entry->payload->index,
                                      .values = entry->payload->span}};
    const ps_bundle_t bundle = {
        .from = entry->from, .spans = &span, .n_from = entry->n_from, .n_spans = 1};
    const ps_record_t record = {.kind = PS_RECORD_BUNDLE,
                                .table = self->table,
                                .partition = self->number,
                                .lsn = entry->lsn,
                                .job = job,
                                .worker = entry->n_from,
                                .member = 1,
                                .clock = entry->clock};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    uint8_t *bytes = NULL;
    size_t size = 0;

    if (!ps_bundle_size(&bundle, &size)) {
        return false;
    }
    payload = ps_payload_room(0, 0, size, &bytes);
    if (payload == NULL) {
        return false;
    }
    ps_bundle_write(&bundle, bytes);
    return put_record(to, &record, payload);
}

static bool put_push(ps_buffer_t *to, const ps_partition_t *self, uint32_t job,
                     const ps_logged_t *push)
{
    const ps_record_t record = {.kind = PS_RECORD_PUSH,
                                .table = self->table,
                                .partition = self->number,
                                .lsn = push->lsn,
                                .session = push->session,
                                .seq = push->seq,
                                .job = job,
                                .worker = push->worker,
                                .member = push->member,
                                .clock = push->clock,
                                .op = push->op,
                                .slice = push->slice};

    return push->from != NULL ? put_span(to, self, job, push)
                              : put_record(to, &record, push->payload);
}

static bool put_place(ps_buffer_t *to, const ps_partition_t *self, const ps_job_place_t *place)
{
    bool fits = put_job(to, place->gate) && ps_buffer_u64(to, ps_gate_closed(place->gate)) &&
                ps_buffer_u64(to, ps_gate_highest(place->gate)) &&
                ps_buffer_u64(to, place->applied) && put_marks(to, place->gate) &&
                ps_buffer_u32(to, (uint32_t)place->open.n_pushes);

    for (size_t i = 0; fits && i < place->open.n_pushes; i++) {
        fits = put_push(to, self, ps_gate_job(place->gate), &place->open.pushes[i]);
    }
    return fits;
}

static bool put_state(ps_buffer_t *to, const ps_partition_t *self)
{
    bool fits = ps_buffer_u32(to, PS_STATE_FORMAT) && ps_buffer_u32(to, self->table) &&
                ps_buffer_u32(to, self->number) && ps_buffer_u64(to, self->epoch) &&
                ps_buffer_u64(to, self->lsn) && ps_buffer_u64(to, self->lsn_epoch) &&
                ps_buffer_u64(to, self->version) && ps_session_set_put(&self->retired, to) &&
                ps_buffer_u32(to, self->restoring ? 1 : 0) &&
                ps_buffer_u32(to, (uint32_t)self->combine) && ps_epochs_put(&self->epochs, to) &&
                put_windows(to, &self->windows) && ps_buffer_u32(to, (uint32_t)self->n_jobs);

    for (size_t i = 0; fits && i < self->n_jobs; i++) {
        fits = put_place(to, self, &self->jobs[i]);
    }
    return fits;
}

ps_payload_t *ps_partition_give_state(const ps_partition_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};
    const ps_bytes_t none = {NULL, 0};
    ps_payload_t *state = NULL;

    if (!put_state(&to, self)) {
        return NULL;
    }
    state = ps_payload_new(none, none, (ps_bytes_t){to.data, to.size}, to.data, ps_free);
    if (state != NULL) {
        to = (ps_buffer_t){0}; /* the payload's now */
    }
    return state;
}
