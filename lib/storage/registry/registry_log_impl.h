/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the log of the registry (registry_log*.c). */
#ifndef PS_STORAGE_REGISTRY_LOG_IMPL_H
#define PS_STORAGE_REGISTRY_LOG_IMPL_H

#include <assert.h>

#include "storage/registry/registry_log_format.h"

typedef struct ps_registry_segment {
    uint64_t first; /* index of its first entry, as in its name */
    uint64_t seed;  /* of the checksums of its records */
    uint64_t *ends; /* owned; offset after each record */
    size_t n;       /* records */
    size_t capacity;
} ps_registry_segment_t;

struct ps_registry_log {
    ps_disk_t *disk;
    char *dir; /* owned */
    ps_registry_owner_t owner;
    uint64_t segment_bytes;
    bool is_broken;      /* nothing may be written */
    uint64_t torn_bytes; /* that the open has cut off */

    ps_registry_state_t state; /* as it is on the disk */
    ps_disk_file_t *state_file;
    size_t state_slot;    /* that is on the disk; the other one is written next */
    ps_disk_file_t *note; /* `flushed`; open */
    size_t note_slot;     /* of it that is written next */
    bool note_is_torn;    /* and that one may be torn on the disk */
    uint64_t flushed;     /* entries up to this one are on the disk */
    uint64_t last_term;   /* of the last entry; 0: none */

    ps_registry_segment_t *segments; /* owned; in order, without a gap; at least
                                        one once it is open */
    size_t n_segments;
    size_t capacity;
    ps_disk_file_t *file; /* the last segment; NULL only while it is changed */
    ps_buffer_t buffer;   /* owned; of the last append */
};

static inline uint64_t ps_registry_segment_bytes(const ps_registry_segment_t *self)
{
    return self->n > 0 ? self->ends[self->n - 1] : PS_REGISTRY_SEGMENT_HEAD;
}

/* Where the record of an index that is in it begins. */
static inline uint64_t ps_registry_segment_at(const ps_registry_segment_t *self, uint64_t index)
{
    return index == self->first ? PS_REGISTRY_SEGMENT_HEAD : self->ends[index - self->first - 1];
}

static inline ps_registry_segment_t *ps_registry_log_current(const ps_registry_log_t *self)
{
    assert(self->n_segments > 0);
    return &self->segments[self->n_segments - 1];
}

/* A copy of the state, with what is known to be flushed now. */
ps_registry_state_t ps_registry_log_state(const ps_registry_log_t *self);
/* Writes and flushes it: it is self->state then. A failure leaves the log
 * broken. */
PSD_MUST_CHECK psd_status_t ps_registry_log_change(ps_registry_log_t *self,
                                                   const ps_registry_state_t *to, psd_error_t *err);
/* Writes in `flushed` how far the log is flushed. Failures are ignored: it then
 * says less than the truth. */
void ps_registry_log_note(ps_registry_log_t *self);
/* Opens the file `flushed`; with is_new, makes it. */
PSD_MUST_CHECK psd_status_t ps_registry_log_open_note(ps_registry_log_t *self, bool is_new,
                                                      psd_error_t *err);
/* Removes a segment's file. */
PSD_MUST_CHECK psd_status_t ps_registry_log_remove(ps_registry_log_t *self, uint64_t first,
                                                   psd_error_t *err);
/* Room for one more segment. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_log_reserve(ps_registry_log_t *self, psd_error_t *err);
/* The last segment's file becomes as long as its records, and is flushed, and
 * so are the names of files; then a cut of the tail is over. The file is
 * open. A failure leaves the log broken. */
PSD_MUST_CHECK psd_status_t ps_registry_log_settle(ps_registry_log_t *self, psd_error_t *err);
/* While the state says !is_begun: removes all segments, makes an empty one, and
 * says is_begun. A failure leaves the log broken. */
PSD_MUST_CHECK psd_status_t ps_registry_log_begin(ps_registry_log_t *self, psd_error_t *err);

/* Errors: PSD_INVALID no log may begin with that index. */
PSD_MUST_CHECK psd_status_t ps_registry_log_check_first(uint64_t first, psd_error_t *err);
/* The bytes of a segment's file into `to`, which is emptied before; ret_path
 * likewise. Errors: those of the disk. */
PSD_MUST_CHECK psd_status_t ps_registry_log_load(ps_registry_log_t *self, uint64_t first,
                                                 ps_buffer_t *ret_path, ps_buffer_t *to,
                                                 psd_error_t *err);

/* What the directory has. */
typedef struct ps_registry_names {
    uint64_t *firsts; /* owned; of segments, ascending */
    size_t n;
    size_t capacity;
    ps_buffer_t stale; /* names that a crash left, each with its '\0' */
    bool has_state;
    bool has_note;
} ps_registry_names_t;

void ps_registry_names_done(ps_registry_names_t *self);
/* Makes the directory when it is missing. ret_names is zeroed before. */
PSD_MUST_CHECK psd_status_t ps_registry_names_list(ps_disk_t *disk, const char *dir,
                                                   ps_registry_names_t *ret_names,
                                                   psd_error_t *err);
#endif
