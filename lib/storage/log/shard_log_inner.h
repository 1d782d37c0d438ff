/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the log of a shard (shard_log*.c). */
#ifndef PS_STORAGE_SHARD_LOG_INNER_H
#define PS_STORAGE_SHARD_LOG_INNER_H

#include <assert.h>

#include "storage/log/segment.h"

/* Records up to this size are copied: they then hold no payload and are one
 * span. */
#define PS_SHARD_LOG_COPY_MAX ((size_t)16 << 10)

/* A record that was appended and is not flushed. */
typedef struct ps_log_entry {
    struct ps_log_entry *next;
    ps_payload_t *payload; /* held; may be NULL */
    ps_record_kind_t kind;
    uint32_t table;
    uint32_t partition;
    uint64_t lsn;
    size_t size;    /* bytes of the record */
    size_t n_spans; /* at `spans`; their own bytes follow */
    ps_bytes_t spans[];
} ps_log_entry_t;

struct ps_shard_log {
    ps_disk_t *disk;
    char *dir; /* owned */
    ps_segment_owner_t owner;
    uint64_t segment_bytes;

    ps_segment_t *segments; /* owned; ascending numbers without a gap */
    size_t n_segments;
    size_t capacity;
    ps_flushed_t flushed; /* log-flushed as it was found */
    ps_disk_file_t *note; /* log-flushed; open */
    size_t note_slot;     /* of it that is written next */
    bool note_is_damaged; /* it will be kept under another name */
    bool is_read;         /* ps_shard_log_read has succeeded */
    ps_damage_t *damage;  /* borrowed until it is settled; may be NULL */
    bool ends_in_hole;    /* records may be missing after the last one */
    bool is_unsettled;    /* damaged files are still as they were found */

    /* The last segment while it is written to, else NULL. Bytes after
     * safe_bytes may or may not be on the disk. */
    ps_disk_file_t *file;
    uint64_t safe_bytes;
    uint64_t file_bytes; /* written */

    ps_log_entry_t *first;     /* not flushed, in order; NULL: none */
    ps_log_entry_t *last;      /* undefined when first is NULL */
    ps_log_entry_t *unwritten; /* the first not in `file`; NULL: none */
    size_t n_unwritten_spans;
    uint64_t n_appended;
    uint64_t n_flushed;
    uint64_t waiting_bytes;
    ps_bytes_t *spans; /* owned; room for those of one write */
    size_t spans_capacity;
};

/* The last segment; NULL: there is none. */
static inline ps_segment_t *ps_shard_log_last(ps_shard_log_t *self)
{
    return self->n_segments > 0 ? &self->segments[self->n_segments - 1] : NULL;
}

/* The last segment, where there is one. */
static inline ps_segment_t *ps_shard_log_current(ps_shard_log_t *self)
{
    assert(self->n_segments > 0);
    return &self->segments[self->n_segments - 1];
}

/* A record is in self->segments[segment], the last one that was looked at;
 * room for a range was reserved there. With the mark of a life's beginning or
 * end, earlier records of the partition are not needed any more. */
void ps_shard_log_note(ps_shard_log_t *self, size_t segment, ps_record_kind_t kind, uint32_t table,
                       uint32_t partition, uint64_t lsn);
/* Drops the first entry. */
void ps_shard_log_drop_first(ps_shard_log_t *self);
/* Says in log-flushed that the last segment is on the disk up to `bytes`.
 * Failures are ignored: log-flushed then says less than the truth. */
void ps_shard_log_note_flushed(ps_shard_log_t *self, uint64_t number, uint64_t bytes);
#endif
