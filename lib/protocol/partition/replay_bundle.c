/* SPDX-License-Identifier: Apache-2.0 */
/* What a bundle's record does to a partition: it moves the windows of all its contributors, keeps
 * its spans until their clock closes, and marks; or it does nothing. Of a job whose pushes are
 * applied at once it has one span at most, which is applied as well. */
#include <string.h>

#include "base/alloc.h"
#include "model/store/store_ops.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"

bool ps_partition_span_entry(const ps_record_t *record, const ps_bundle_t *bundle, uint16_t i,
                             ps_payload_t *payload, ps_logged_t *ret_entry)
{
    const ps_bundle_span_t *span = &bundle->spans[i];
    const ps_bundle_from_t *first = &bundle->from[span->from];
    ps_bundle_from_t *from = ps_alloc_raw(span->n_from, sizeof *from);
    ps_payload_t *part = from == NULL ? NULL : ps_bundle_span_payload(span, payload);

    if (part == NULL) {
        ps_free(from);
        return false;
    }
    memcpy(from, first, span->n_from * sizeof *from);
    *ret_entry = (ps_logged_t){.worker = span->first,
                               .n = span->n,
                               .member = first->member,
                               .session = first->session,
                               .seq = first->last_seq,
                               .clock = record->clock,
                               .lsn = record->lsn,
                               .slice = span->slice,
                               .payload = part,
                               .from = from,
                               .n_from = span->n_from};
    return true;
}

/* Entries for all spans. false: no memory; there are none then. */
static bool make_entries(const ps_record_t *record, const ps_bundle_t *bundle,
                         ps_payload_t *payload, ps_logged_t *entries)
{
    uint16_t n = 0;

    while (n < bundle->n_spans &&
           ps_partition_span_entry(record, bundle, n, payload, &entries[n])) {
        n++;
    }
    if (n == bundle->n_spans) {
        return true;
    }
    while (n > 0) {
        n--;
        ps_payload_destroy(&entries[n].payload);
        ps_free(entries[n].from);
    }
    return false;
}

bool ps_partition_sums_at_once(const ps_partition_t *self)
{
    return self->spec->updater.kind == PS_UPDATER_ADD;
}

/* Room for all that follows, which then cannot fail. */
static bool reserve(const ps_step_t *step, ps_partition_t *self, ps_job_place_t *place,
                    const ps_bundle_t *bundle)
{
    for (uint16_t i = 0; i < bundle->n_from; i++) {
        if (ps_partition_window_of(step, self, bundle->from[i].session) == NULL) {
            return false;
        }
    }
    return ps_open_clock_reserve(&place->open, bundle->n_spans);
}

static void keep_span(ps_step_t *step, ps_partition_t *self, ps_job_place_t *place,
                      ps_logged_t *entry)
{
    bool added = ps_open_clock_add(&place->open, entry);
    uint64_t cost = ps_open_clock_cost(entry->payload, entry->n_from);

    (void)added; /* there is room */
    self->pushes += entry->n_from;
    self->rows_pushed += entry->slice.n_rows;
    step->logged_bytes += cost;
    self->use->logged_bytes += cost;
    ps_payload_destroy(&entry->payload); /* the clock holds it */
}

static bool apply_span(ps_step_t *step, ps_partition_t *self, const ps_bundle_t *bundle,
                       ps_payload_t *payload)
{
    const ps_row_op_t add = {.op = PS_CHANGE_UPDATE};
    const ps_bundle_span_t *span = &bundle->spans[0];
    PSD_AUTO(ps_payload_destroy) ps_payload_t *part = ps_bundle_span_payload(span, payload);

    if (part == NULL || !ps_partition_apply(step, self, bundle->from[span->from].worker, &add,
                                            &span->slice, part)) {
        return false;
    }
    self->pushes += span->n_from;
    self->rows_pushed += span->slice.n_rows;
    return true;
}

/* false: no memory; nothing changed. */
static bool take_spans(ps_step_t *step, ps_partition_t *self, ps_job_place_t *place,
                       const ps_record_t *record, const ps_bundle_t *bundle, ps_payload_t *payload)
{
    ps_logged_t entries[PS_BUNDLE_SPANS_MAX];

    if (!ps_gate_is_bsp(place->gate)) {
        return bundle->n_spans == 0 || apply_span(step, self, bundle, payload);
    }
    if (!make_entries(record, bundle, payload, entries)) {
        return false;
    }
    for (uint16_t i = 0; i < bundle->n_spans; i++) {
        keep_span(step, self, place, &entries[i]);
    }
    return true;
}

/* Clocks that the contributor has finished before. */
static uint64_t clock_of(const ps_job_place_t *place, const ps_record_t *record,
                         const ps_bundle_from_t *from)
{
    return ps_gate_is_bsp(place->gate) ? record->clock
                                       : ps_gate_mark_of(place->gate, from->worker, from->member);
}

static void finish_one(ps_step_t *step, ps_partition_t *self, const ps_job_place_t *place,
                       const ps_record_t *record, const ps_bundle_from_t *from)
{
    bool bsp = ps_gate_is_bsp(place->gate);
    uint64_t clock = clock_of(place, record, from);

    ps_window_finish(ps_partition_window_of(step, self, from->session), from->last_seq);
    PS_NOTE_TRACE(step, (&(ps_note_t){.kind = bsp ? PS_NOTE_LOGGED : PS_NOTE_APPLIED,
                                      .table = self->table,
                                      .partition = self->number,
                                      .a = from->session,
                                      .b = from->last_seq,
                                      .c = record->lsn,
                                      .d = from->worker,
                                      .e = clock}));
    if (from->marks > 0) {
        ps_partition_mark(step, self, place, from->worker, from->member, clock + from->marks);
    }
}

bool ps_partition_replay_bundle(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                                ps_payload_t *payload)
{
    ps_job_place_t *place = ps_partition_find_place(self, record->job);
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};

    if (place == NULL ||
        ps_bundle_open(payload, record->worker, record->member, &bundle, NULL) != PSD_OK ||
        !reserve(step, self, place, &bundle) ||
        !take_spans(step, self, place, record, &bundle, payload)) {
        return false;
    }
    for (uint16_t i = 0; i < bundle.n_from; i++) {
        finish_one(step, self, place, record, &bundle.from[i]);
    }
    return true;
}

/* ---- before ---- */

static bool takes_span(const ps_partition_t *self, const ps_bundle_span_t *span,
                       ps_payload_t *payload)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *part = ps_bundle_span_payload(span, payload);

    /* without memory the replay fails, and is tried again */
    return part == NULL || (ps_store_check_push(self->store, &span->slice, part, NULL) == PSD_OK &&
                            ps_store_check_worker(self->store, span->first, NULL) == PSD_OK);
}

bool ps_partition_takes_bundle(const ps_partition_t *self, const ps_record_t *record,
                               ps_payload_t *payload)
{
    const ps_job_place_t *place = ps_partition_find_place(self, record->job);
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};
    psd_status_t rc = PSD_OK;

    if (place == NULL ||
        (ps_gate_is_bsp(place->gate) ? self->combine == PS_COMBINE_EACH
                                     : !ps_partition_sums_at_once(self) || record->member > 1)) {
        return false;
    }
    rc = ps_bundle_open(payload, record->worker, record->member, &bundle, NULL);
    if (rc != PSD_OK) {
        return rc == PSD_NOMEM;
    }
    for (uint16_t i = 0; i < bundle.n_from; i++) {
        const ps_bundle_from_t *from = &bundle.from[i];

        if (ps_gate_check(place->gate, from->worker, from->joins, from->member, NULL) != PSD_OK ||
            (from->tail == 0 ? !ps_gate_is_bsp(place->gate) || from->marks > 1
                             : ps_gate_is_bsp(place->gate))) {
            return false;
        }
    }
    for (uint16_t i = 0; i < bundle.n_spans; i++) {
        if (!takes_span(self, &bundle.spans[i], payload)) {
            return false;
        }
    }
    return true;
}
