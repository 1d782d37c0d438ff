/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a registry's log: the steps that an open and a change both
 * need. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "storage/registry/registry_log_impl.h"

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for the registry's log");
}

psd_status_t ps_registry_log_check_first(uint64_t first, psd_error_t *err)
{
    return first > 0 && first <= PS_REGISTRY_INDEX_MAX
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID,
                               "no log begins with entry %" PRIu64 "; allowed: 1 to %" PRIu64,
                               first, PS_REGISTRY_INDEX_MAX);
}

/* ---- state ---- */

ps_registry_state_t ps_registry_log_state(const ps_registry_log_t *self)
{
    ps_registry_state_t state = self->state;

    state.flushed = self->flushed;
    return state;
}

/*
 * The new state is flushed in the slot that is not needed for the old one; then
 * both slots say the same. So a crash costs one slot at most, and a damaged one
 * nothing.
 */
psd_status_t ps_registry_log_change(ps_registry_log_t *self, const ps_registry_state_t *to,
                                    psd_error_t *err)
{
    ps_registry_state_t next = *to;
    uint8_t bytes[PS_REGISTRY_STATE_SLOT];
    ps_bytes_t span = {bytes, sizeof bytes};
    size_t slot = 1 - self->state_slot;
    psd_status_t rc = PSD_OK;

    next.sequence = self->state.sequence + 1;
    if (next.sequence > PS_REGISTRY_COUNT_MAX || next.generation > PS_REGISTRY_COUNT_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "%s: change %" PRIu64 ", %" PRIu64 " cuts; allowed: at most %" PRIu64
                             " each",
                             self->dir, next.sequence, next.generation, PS_REGISTRY_COUNT_MAX);
    }
    ps_registry_state_write(&next, &self->owner, bytes);
    rc = self->disk->write(self->disk, self->state_file, slot * PS_REGISTRY_SLOT_AT, &span, 1, err);
    if (rc == PSD_OK) {
        rc = self->disk->flush(self->disk, self->state_file, err);
    }
    if (rc != PSD_OK) {
        self->is_broken = true;
        return rc;
    }
    self->state = next;
    self->state_slot = slot;
    self->flushed = next.flushed;
    rc = self->disk->write(self->disk, self->state_file, (1 - slot) * PS_REGISTRY_SLOT_AT, &span, 1,
                           NULL);
    (void)rc; /* it is written again before it is needed */
    return PSD_OK;
}

/* ---- how far it is flushed ---- */

void ps_registry_log_note(ps_registry_log_t *self)
{
    const ps_registry_flushed_t note = {self->state.generation, self->flushed};
    uint8_t bytes[PS_REGISTRY_FLUSHED_SLOT];
    ps_bytes_t span = {bytes, sizeof bytes};
    psd_status_t rc = PSD_OK;

    ps_registry_flushed_write(&note, bytes);
    /* A write that fails may tear the slot: the other one stays as it is. */
    rc = self->disk->write(self->disk, self->note, self->note_slot * PS_REGISTRY_SLOT_AT, &span, 1,
                           NULL);
    self->note_is_torn = self->note_is_torn || rc != PSD_OK;
    /* Else a loss of power could bring it back while the other one is written. */
    if (rc == PSD_OK && self->note_is_torn) {
        rc = self->disk->flush(self->disk, self->note, NULL);
    }
    if (rc == PSD_OK) {
        self->note_is_torn = false;
        self->note_slot = 1 - self->note_slot;
    }
}

static psd_status_t make_note(ps_registry_log_t *self, const char *path, psd_error_t *err)
{
    const ps_registry_flushed_t note = {self->state.generation, self->flushed};
    uint8_t bytes[PS_REGISTRY_FLUSHED_SIZE] = {0};

    ps_registry_flushed_write(&note, bytes);
    ps_registry_flushed_write(&note, bytes + PS_REGISTRY_SLOT_AT);
    return ps_disk_make(self->disk, self->dir, path, (ps_bytes_t){bytes, sizeof bytes}, &self->note,
                        err);
}

psd_status_t ps_registry_log_open_note(ps_registry_log_t *self, bool is_new, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    uint8_t bytes[PS_REGISTRY_FLUSHED_SIZE];
    ps_registry_flushed_t note = {0};
    size_t size = 0;
    size_t slot = 0;
    const char *name = NULL;
    psd_status_t rc = ps_disk_path(&path, err, self->dir, PS_REGISTRY_FLUSHED_NAME);

    if (rc != PSD_OK) {
        return rc;
    }
    name = (const char *)path.data;
    if (is_new) {
        return make_note(self, name, err);
    }
    rc = self->disk->open(self->disk, name, PS_DISK_KEEP, &self->note, err);
    if (rc == PSD_OK) {
        rc = self->disk->read(self->disk, self->note, 0, bytes, sizeof bytes, &size, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_flushed_read((ps_bytes_t){bytes, size}, name, &note, &slot, err);
    }
    if (rc == PSD_OK && note.generation > self->state.generation) {
        rc =
            psd_error_set(err, PSD_DAMAGED,
                          "%s/" PS_REGISTRY_STATE_NAME
                          ": byte 72: the log was cut or reset %" PRIu64 " times; %s says %" PRIu64,
                          self->dir, self->state.generation, name, note.generation);
    }
    if (rc == PSD_OK) {
        self->note_slot = 1 - slot;
        self->note_is_torn = ps_registry_flushed_is_torn((ps_bytes_t){bytes, size});
    }
    if (rc == PSD_OK && note.generation == self->state.generation && note.index > self->flushed) {
        self->flushed = note.index;
    }
    return rc;
}

/* ---- segments ---- */

psd_status_t ps_registry_log_remove(ps_registry_log_t *self, uint64_t first, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = ps_registry_segment_path(&path, self->dir, first, err);

    return rc == PSD_OK ? self->disk->remove(self->disk, (const char *)path.data, err) : rc;
}

psd_status_t ps_registry_log_reserve(ps_registry_log_t *self, psd_error_t *err)
{
    return ps_grow(&self->segments, &self->capacity, self->n_segments + 1, sizeof *self->segments)
               ? PSD_OK
               : no_memory(err);
}

psd_status_t ps_registry_log_load(ps_registry_log_t *self, uint64_t first, ps_buffer_t *ret_path,
                                  ps_buffer_t *to, psd_error_t *err)
{
    ps_disk_file_t *file = NULL;
    uint64_t size = 0;
    psd_status_t rc = ps_registry_segment_path(ret_path, self->dir, first, err);

    to->size = 0;
    if (rc == PSD_OK) {
        rc = self->disk->open(self->disk, (const char *)ret_path->data, PS_DISK_READ, &file, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rc = self->disk->size(self->disk, file, &size, err);
    if (rc == PSD_OK && !ps_buffer_reserve(to, (size_t)size)) {
        rc = no_memory(err);
    }
    if (rc == PSD_OK && size > 0) {
        rc = self->disk->read(self->disk, file, 0, to->data, (size_t)size, &to->size, err);
    }
    self->disk->close(self->disk, &file);
    return rc;
}

static psd_status_t settle(ps_registry_log_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    const ps_registry_segment_t *last = ps_registry_log_current(self);
    ps_registry_state_t to = {0};
    uint64_t size = 0;
    psd_status_t rc = ps_registry_segment_path(&path, self->dir, last->first, err);

    if (rc == PSD_OK && self->file == NULL) {
        rc = self->disk->open(self->disk, (const char *)path.data, PS_DISK_KEEP, &self->file, err);
    }
    if (rc == PSD_OK) {
        rc = self->disk->size(self->disk, self->file, &size, err);
    }
    if (rc == PSD_OK && size > ps_registry_segment_bytes(last)) {
        rc = self->disk->truncate(self->disk, self->file, ps_registry_segment_bytes(last), err);
    }
    if (rc == PSD_OK) {
        rc = self->disk->flush(self->disk, self->file, err);
    }
    if (rc == PSD_OK) {
        rc = self->disk->flush_dir(self->disk, self->dir, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->flushed = ps_registry_log_last(self);
    to = ps_registry_log_state(self);
    to.cut_from = 0;
    if (self->state.cut_from != 0) {
        rc = ps_registry_log_change(self, &to, err);
    }
    if (rc == PSD_OK) {
        ps_registry_log_note(self);
    }
    return rc;
}

psd_status_t ps_registry_log_settle(ps_registry_log_t *self, psd_error_t *err)
{
    psd_status_t rc = settle(self, err);

    self->is_broken = self->is_broken || rc != PSD_OK;
    return rc;
}

/* ---- an empty log ---- */

/* The names are flushed with that of the segment that is made then. */
static psd_status_t remove_all(ps_registry_log_t *self, psd_error_t *err)
{
    ps_registry_names_t names = {0};
    psd_status_t rc = ps_registry_names_list(self->disk, self->dir, &names, err);

    for (size_t i = 0; i < names.n && rc == PSD_OK; i++) {
        rc = ps_registry_log_remove(self, names.firsts[i], err);
    }
    ps_registry_names_done(&names);
    return rc;
}

static psd_status_t make_only(ps_registry_log_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_registry_segment_t only = {.first = self->state.first};
    uint8_t head[PS_REGISTRY_SEGMENT_HEAD];
    psd_status_t rc = ps_registry_log_reserve(self, err);

    if (rc == PSD_OK) {
        rc = ps_registry_segment_path(&path, self->dir, only.first, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    only.seed = ps_registry_segment_write(&self->owner, only.first, head);
    rc = ps_disk_make(self->disk, self->dir, (const char *)path.data,
                      (ps_bytes_t){head, sizeof head}, &self->file, err);
    if (rc == PSD_OK) {
        self->segments[self->n_segments++] = only;
    }
    return rc;
}

psd_status_t ps_registry_log_begin(ps_registry_log_t *self, psd_error_t *err)
{
    ps_registry_state_t to = {0};
    psd_status_t rc = PSD_OK;

    self->disk->close(self->disk, &self->file);
    while (self->n_segments > 0) {
        ps_free(self->segments[--self->n_segments].ends);
    }
    self->last_term = 0;
    rc = remove_all(self, err);
    if (rc == PSD_OK && self->note == NULL) {
        rc = ps_registry_log_open_note(self, true, err);
    }
    if (rc == PSD_OK) {
        rc = make_only(self, err);
    }
    if (rc == PSD_OK) {
        to = ps_registry_log_state(self);
        to.is_begun = true;
        rc = ps_registry_log_change(self, &to, err);
    }
    self->is_broken = self->is_broken || rc != PSD_OK;
    return rc;
}

/* ---- names ---- */

void ps_registry_names_done(ps_registry_names_t *self)
{
    ps_free(self->firsts);
    ps_buffer_done(&self->stale);
    *self = (ps_registry_names_t){0};
}

/* One of our file names, followed by ".tmp". */
static bool is_stale(const char *name)
{
    size_t length = strlen(name);
    char whole[64];
    uint64_t first = 0;

    if (length <= 4 || length >= sizeof whole || strcmp(name + length - 4, ".tmp") != 0) {
        return false;
    }
    memcpy(whole, name, length - 4);
    whole[length - 4] = '\0';
    return strcmp(whole, PS_REGISTRY_STATE_NAME) == 0 ||
           strcmp(whole, PS_REGISTRY_FLUSHED_NAME) == 0 || ps_registry_segment_parse(whole, &first);
}

static psd_status_t take_name(void *context, const char *name, psd_error_t *err)
{
    ps_registry_names_t *names = context;
    uint64_t first = 0;

    if (strcmp(name, PS_REGISTRY_STATE_NAME) == 0) {
        names->has_state = true;
    } else if (strcmp(name, PS_REGISTRY_FLUSHED_NAME) == 0) {
        names->has_note = true;
    } else if (ps_registry_segment_parse(name, &first)) {
        if (!ps_grow(&names->firsts, &names->capacity, names->n + 1, sizeof *names->firsts)) {
            return no_memory(err);
        }
        names->firsts[names->n++] = first;
    } else if (is_stale(name) && !ps_buffer_append(&names->stale, name, strlen(name) + 1)) {
        return no_memory(err);
    }
    return PSD_OK;
}

static int compare_firsts(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

psd_status_t ps_registry_names_list(ps_disk_t *disk, const char *dir,
                                    ps_registry_names_t *ret_names, psd_error_t *err)
{
    psd_status_t rc = disk->make_dir(disk, dir, err);

    if (rc == PSD_OK) {
        rc = disk->list(disk, dir, take_name, ret_names, err);
    }
    if (rc == PSD_OK && ret_names->n > 0) {
        qsort(ret_names->firsts, ret_names->n, sizeof *ret_names->firsts, compare_firsts);
    }
    return rc;
}

uint64_t ps_registry_log_last(const ps_registry_log_t *self)
{
    const ps_registry_segment_t *last = ps_registry_log_current(self);

    return last->first + last->n - 1;
}
