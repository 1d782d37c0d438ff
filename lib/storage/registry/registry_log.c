/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a replicated registry: what changes it.
 *
 * The state in the file `term` decides what the log is. A cut or a reset is
 * done when the state says so; files follow, and an open makes up for what is
 * missing. So a crash finds what was before or what is after, and no order of
 * names matters. registry_log_open.c reads, registry_log_files.c has the steps
 * that both need.
 */
#include "storage/registry/registry_log.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "storage/registry/registry_log_impl.h"

static psd_status_t refuse_broken(const ps_registry_log_t *self, psd_error_t *err)
{
    return self->is_broken
               ? psd_error_set(err, PSD_IO,
                               "%s: an earlier write or flush failed; the log must be opened again",
                               self->dir)
               : PSD_OK;
}

/* ---- term, vote, lineage ---- */

psd_status_t ps_registry_log_set_term(ps_registry_log_t *self, uint64_t term, uint64_t vote,
                                      psd_error_t *err)
{
    ps_registry_state_t to = ps_registry_log_state(self);
    psd_status_t rc = refuse_broken(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (term < to.term || term > PS_REGISTRY_COUNT_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "term is %" PRIu64 "; allowed: %" PRIu64 " to %" PRIu64, term, to.term,
                             PS_REGISTRY_COUNT_MAX);
    }
    if (term == to.term && to.vote != 0 && vote != to.vote) {
        return psd_error_set(err, PSD_INVALID,
                             "the vote of term %" PRIu64 " was for %016" PRIx64
                             "; it cannot be for %016" PRIx64,
                             term, to.vote, vote);
    }
    if (term == to.term && vote == to.vote) {
        return PSD_OK;
    }
    to.term = term;
    to.vote = vote;
    return ps_registry_log_change(self, &to, err);
}

psd_status_t ps_registry_log_set_lineage(ps_registry_log_t *self, const ps_id_t *lineage,
                                         psd_error_t *err)
{
    ps_registry_state_t to = ps_registry_log_state(self);
    psd_status_t rc = refuse_broken(self, err);

    if (rc != PSD_OK || ps_id_equal(&to.lineage, lineage)) {
        return rc;
    }
    to.lineage = *lineage;
    return ps_registry_log_change(self, &to, err);
}

psd_status_t ps_registry_log_count_start(ps_registry_log_t *self, uint64_t *ret_life,
                                         psd_error_t *err)
{
    ps_registry_state_t to = ps_registry_log_state(self);
    psd_status_t rc = refuse_broken(self, err);

    if (rc == PSD_OK) {
        rc = ps_registry_log_change(self, &to, err);
    }
    *ret_life = self->state.sequence; /* counts all changes */
    return rc;
}

/* ---- append and flush ---- */

static psd_status_t check_entries(const ps_registry_log_t *self, const ps_registry_entry_t *entries,
                                  size_t n, psd_error_t *err)
{
    uint64_t index = ps_registry_log_last(self) + 1;
    uint64_t term = self->last_term;

    for (size_t i = 0; i < n; i++, index++) {
        const ps_registry_entry_t *entry = &entries[i];

        if (entry->index != index) {
            return psd_error_set(err, PSD_INVALID, "entry %" PRIu64 " cannot follow entry %" PRIu64,
                                 entry->index, index - 1);
        }
        if (entry->term < term || entry->term > self->state.term) {
            return psd_error_set(err, PSD_INVALID,
                                 "entry %" PRIu64 ": term is %" PRIu64 "; allowed: %" PRIu64
                                 " to %" PRIu64,
                                 index, entry->term, term, self->state.term);
        }
        if (entry->kind < PS_REGISTRY_COMMAND || entry->kind > PS_REGISTRY_MEMBERS) {
            return psd_error_set(err, PSD_INVALID, "entry %" PRIu64 ": kind is %d", index,
                                 (int)entry->kind);
        }
        if (entry->bytes.size > PS_REGISTRY_ENTRY_MAX) {
            return psd_error_set(err, PSD_INVALID,
                                 "entry %" PRIu64 " has %zu bytes; allowed: at most %zu", index,
                                 entry->bytes.size, PS_REGISTRY_ENTRY_MAX);
        }
        term = entry->term;
    }
    return PSD_OK;
}

/* A segment that was not made for lack of room leaves nothing: after a cut, the
 * one before may grow beyond the index in its name. Until then it would do no
 * harm, and a cut flushes the names. */
static psd_status_t take_back(ps_registry_log_t *self, uint64_t first, psd_status_t rc)
{
    bool is_clean =
        (rc == PSD_LIMIT || rc == PSD_NOMEM) && ps_registry_log_remove(self, first, NULL) == PSD_OK;

    self->is_broken = self->is_broken || !is_clean;
    return rc;
}

/* The last segment is full: flushes it, and makes another one. */
static psd_status_t roll(ps_registry_log_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_registry_segment_t next = {.first = ps_registry_log_last(self) + 1};
    uint8_t head[PS_REGISTRY_SEGMENT_HEAD];
    ps_disk_file_t *file = NULL;
    psd_status_t rc = ps_registry_log_flush(self, err);

    if (rc == PSD_OK) {
        rc = ps_registry_log_reserve(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_segment_path(&path, self->dir, next.first, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    next.seed = ps_registry_segment_write(&self->owner, next.first, head);
    rc = ps_disk_make(self->disk, self->dir, (const char *)path.data,
                      (ps_bytes_t){head, sizeof head}, &file, err);
    if (rc != PSD_OK) {
        return take_back(self, next.first, rc);
    }
    self->disk->close(self->disk, &self->file);
    self->file = file;
    self->segments[self->n_segments++] = next;
    return PSD_OK;
}

/* Records of the entries in self->buffer, and their ends in the segment, which
 * has them only when its n says so. */
static psd_status_t encode(ps_registry_log_t *self, const ps_registry_entry_t *entries, size_t n,
                           psd_error_t *err)
{
    ps_registry_segment_t *segment = ps_registry_log_current(self);
    uint64_t at = ps_registry_segment_bytes(segment);
    size_t size = 0;

    for (size_t i = 0; i < n; i++) {
        size += ps_registry_record_size(entries[i].bytes.size);
    }
    self->buffer.size = 0;
    if (!ps_buffer_reserve(&self->buffer, size) ||
        !ps_grow(&segment->ends, &segment->capacity, segment->n + n, sizeof *segment->ends)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu bytes of the registry's log", size);
    }
    for (size_t i = 0; i < n; i++) {
        const ps_registry_record_t record = {entries[i], self->flushed};

        ps_registry_record_write(&record, segment->seed, self->buffer.data + self->buffer.size);
        self->buffer.size += ps_registry_record_size(entries[i].bytes.size);
        segment->ends[segment->n + i] = at + self->buffer.size;
    }
    return PSD_OK;
}

psd_status_t ps_registry_log_append(ps_registry_log_t *self, const ps_registry_entry_t *entries,
                                    size_t n, psd_error_t *err)
{
    ps_bytes_t span = {NULL, 0};
    uint64_t at = 0;
    psd_status_t rc = refuse_broken(self, err);

    if (rc == PSD_OK) {
        rc = check_entries(self, entries, n, err);
    }
    if (rc != PSD_OK || n == 0) {
        return rc;
    }
    if (ps_registry_segment_bytes(ps_registry_log_current(self)) >= self->segment_bytes &&
        ps_registry_log_current(self)->n > 0) {
        rc = roll(self, err);
    }
    if (rc == PSD_OK) {
        rc = encode(self, entries, n, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    at = ps_registry_segment_bytes(ps_registry_log_current(self));
    span = (ps_bytes_t){self->buffer.data, self->buffer.size};
    rc = self->disk->write(self->disk, self->file, at, &span, 1, err);
    if (rc != PSD_OK) {
        self->is_broken =
            rc != PSD_LIMIT || self->disk->truncate(self->disk, self->file, at, NULL) != PSD_OK;
        return rc;
    }
    ps_registry_log_current(self)->n += n;
    self->last_term = entries[n - 1].term;
    return PSD_OK;
}

psd_status_t ps_registry_log_flush(ps_registry_log_t *self, psd_error_t *err)
{
    psd_status_t rc = refuse_broken(self, err);

    if (rc != PSD_OK || self->flushed == ps_registry_log_last(self)) {
        return rc;
    }
    rc = self->disk->flush(self->disk, self->file, err);
    if (rc != PSD_OK) {
        self->is_broken = true;
        return rc;
    }
    self->flushed = ps_registry_log_last(self);
    ps_registry_log_note(self);
    return PSD_OK;
}

/* ---- cuts ---- */

/* The term of the last entry that stays; 0: none does. */
static psd_status_t take_term(void *context, const ps_registry_entry_t *entry, psd_error_t *err)
{
    uint64_t *term = context;

    (void)err;
    *term = entry->term;
    return PSD_OK;
}

/* Removes what the state says is cut, newest first. */
static psd_status_t drop_tail(ps_registry_log_t *self, uint64_t from, psd_error_t *err)
{
    ps_registry_segment_t *last = ps_registry_log_current(self);
    psd_status_t rc = PSD_OK;

    while (self->n_segments > 1 && last->first >= from && rc == PSD_OK) {
        self->disk->close(self->disk, &self->file);
        rc = ps_registry_log_remove(self, last->first, err);
        ps_free(last->ends);
        self->n_segments--;
        last = ps_registry_log_current(self);
    }
    if (from < last->first + last->n) {
        last->n = (size_t)(from - last->first);
    }
    return rc;
}

psd_status_t ps_registry_log_cut_tail(ps_registry_log_t *self, uint64_t from, psd_error_t *err)
{
    ps_registry_state_t to = ps_registry_log_state(self);
    uint64_t term = 0;
    psd_status_t rc = refuse_broken(self, err);

    if (rc != PSD_OK || from > ps_registry_log_last(self)) {
        return rc;
    }
    if (from < ps_registry_log_first(self)) {
        return psd_error_set(err, PSD_INVALID,
                             "entry %" PRIu64 " is not in the log, which begins at %" PRIu64, from,
                             ps_registry_log_first(self));
    }
    to.generation++;
    to.cut_from = from;
    to.flushed = to.flushed < from ? to.flushed : from - 1;
    rc = ps_registry_log_change(self, &to, err);
    if (rc == PSD_OK) {
        rc = drop_tail(self, from, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_log_settle(self, err);
    }
    if (rc == PSD_OK && from > ps_registry_log_first(self)) {
        rc = ps_registry_log_read(self, from - 1, take_term, &term, err);
    }
    self->last_term = term;
    self->is_broken = rc != PSD_OK;
    return rc;
}

psd_status_t ps_registry_log_cut_head(ps_registry_log_t *self, uint64_t before, psd_error_t *err)
{
    ps_registry_state_t to = ps_registry_log_state(self);
    size_t n = 0;
    psd_status_t rc = refuse_broken(self, err);

    while (n + 1 < self->n_segments && self->segments[n + 1].first <= before) {
        n++;
    }
    if (rc != PSD_OK || n == 0) {
        return rc;
    }
    to.first = self->segments[n].first;
    rc = ps_registry_log_change(self, &to, err);
    for (size_t i = 0; i < n && rc == PSD_OK; i++) {
        rc = ps_registry_log_remove(self, self->segments[i].first, err);
    }
    if (rc == PSD_OK) {
        rc = self->disk->flush_dir(self->disk, self->dir, err);
    }
    if (rc != PSD_OK) {
        self->is_broken = true;
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        ps_free(self->segments[i].ends);
    }
    self->n_segments -= n;
    memmove(self->segments, self->segments + n, self->n_segments * sizeof *self->segments);
    return PSD_OK;
}

psd_status_t ps_registry_log_reset(ps_registry_log_t *self, uint64_t next, psd_error_t *err)
{
    ps_registry_state_t to = ps_registry_log_state(self);
    psd_status_t rc = refuse_broken(self, err);

    if (rc == PSD_OK) {
        rc = ps_registry_log_check_first(next, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    to.generation++;
    to.first = next;
    to.flushed = next - 1;
    to.is_begun = false;
    rc = ps_registry_log_change(self, &to, err);
    return rc == PSD_OK ? ps_registry_log_begin(self, err) : rc;
}

/* ---- questions ---- */

uint64_t ps_registry_log_first(const ps_registry_log_t *self)
{
    return self->state.first;
}

uint64_t ps_registry_log_flushed(const ps_registry_log_t *self)
{
    return self->flushed;
}

uint64_t ps_registry_log_member(const ps_registry_log_t *self)
{
    return self->owner.member;
}

uint64_t ps_registry_log_term(const ps_registry_log_t *self)
{
    return self->state.term;
}

uint64_t ps_registry_log_vote(const ps_registry_log_t *self)
{
    return self->state.vote;
}

ps_id_t ps_registry_log_lineage(const ps_registry_log_t *self)
{
    return self->state.lineage;
}

uint64_t ps_registry_log_bytes(const ps_registry_log_t *self)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < self->n_segments; i++) {
        sum += ps_registry_segment_bytes(&self->segments[i]);
    }
    return sum;
}

bool ps_registry_log_is_broken(const ps_registry_log_t *self)
{
    return self->is_broken;
}

uint64_t ps_registry_log_torn_bytes(const ps_registry_log_t *self)
{
    return self->torn_bytes;
}
