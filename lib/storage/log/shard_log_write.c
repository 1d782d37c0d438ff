/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the log of a shard.
 *
 * A segment is written from its head on, and only while no write fails. When a
 * write or a flush fails, it is unknown which bytes after the last flush are on
 * the disk, and a later flush of the same file would not change that. So the
 * segment ends where it was flushed last. The records after that are still in
 * memory, and are written to a new segment. Its head says where the old one
 * ends, so that bytes after that end are never read.
 */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "storage/log/shard_log_inner.h"

void ps_shard_log_note_flushed(ps_shard_log_t *self, uint64_t number, uint64_t bytes)
{
    uint8_t note[PS_FLUSHED_SLOT];
    ps_bytes_t span = {note, sizeof note};

    ps_flushed_write(number, bytes, note);
    /* A write that fails may tear the slot: the other one stays as it is. */
    if (self->disk->write(self->disk, self->note, self->note_slot * PS_FLUSHED_SLOT, &span, 1,
                          NULL) == PSD_OK) {
        self->note_slot = 1 - self->note_slot;
    }
}

/* Ends the segment where it was flushed last; all records in memory become
 * unwritten. */
static void abandon(ps_shard_log_t *self)
{
    ps_segment_t *segment = ps_shard_log_current(self);

    /* Only to give the room back. */
    (void)self->disk->truncate(self->disk, self->file, self->safe_bytes, NULL);
    self->disk->close(self->disk, &self->file);
    segment->bytes = self->safe_bytes;
    self->unwritten = self->first;
    self->n_unwritten_spans = 0;
    for (ps_log_entry_t *at = self->first; at != NULL; at = at->next) {
        self->n_unwritten_spans += at->n_spans;
    }
}

/* A new segment after the last one. An empty one is replaced, so that a disk
 * that fails again and again does not fill up with heads. */
static psd_status_t start_segment(ps_shard_log_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    uint8_t head[PS_SEGMENT_HEAD];
    ps_segment_t *last = ps_shard_log_last(self);
    bool replaces = last != NULL && last->bytes == PS_SEGMENT_HEAD && !last->is_damaged;
    ps_segment_t next = {.number = 1, .bytes = PS_SEGMENT_HEAD};
    psd_status_t rc = PSD_OK;

    if (replaces) {
        next.number = last->number;
        next.previous_bytes = last->previous_bytes;
    } else if (last != NULL) {
        next.number = last->number + 1;
        next.previous_bytes = last->bytes;
    }
    if (!ps_grow(&self->segments, &self->capacity, self->n_segments + 1, sizeof *self->segments)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a segment");
    }
    rc = ps_segment_path(&path, self->dir, next.number, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_segment_write_head(&next, &self->owner, head);
    rc = ps_disk_make(self->disk, self->dir, (const char *)path.data,
                      (ps_bytes_t){head, sizeof head}, &self->file, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (replaces) {
        ps_segment_done(ps_shard_log_current(self));
        self->n_segments--;
    }
    self->segments[self->n_segments++] = next;
    self->safe_bytes = PS_SEGMENT_HEAD;
    self->file_bytes = PS_SEGMENT_HEAD;
    return PSD_OK;
}

/* Flushes what is written. */
static psd_status_t flush_file(ps_shard_log_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->file == NULL || self->safe_bytes == self->file_bytes) {
        return PSD_OK;
    }
    rc = self->disk->flush(self->disk, self->file, err);
    if (rc != PSD_OK) {
        abandon(self);
        return rc;
    }
    self->safe_bytes = self->file_bytes;
    while (self->first != self->unwritten) {
        ps_shard_log_drop_first(self);
        self->n_flushed++;
    }
    ps_shard_log_note_flushed(self, ps_shard_log_current(self)->number, self->safe_bytes);
    return PSD_OK;
}

/* Makes sure that there is a segment that may be written to. */
static psd_status_t need_segment(ps_shard_log_t *self, psd_error_t *err)
{
    if (self->file != NULL && self->file_bytes >= self->segment_bytes) {
        /* A segment that another follows is whole. */
        psd_status_t rc = flush_file(self, err);

        if (rc != PSD_OK) {
            return rc;
        }
        self->disk->close(self->disk, &self->file);
    }
    return self->file == NULL ? start_segment(self, err) : PSD_OK;
}

static void note_written(ps_shard_log_t *self)
{
    ps_segment_t *segment = ps_shard_log_current(self);

    for (ps_log_entry_t *at = self->unwritten; at != NULL; at = at->next) {
        ps_shard_log_note(self, self->n_segments - 1, at->kind, at->table, at->partition, at->lsn);
        self->file_bytes += at->size;
    }
    segment->bytes = self->file_bytes;
    self->unwritten = NULL;
    self->n_unwritten_spans = 0;
}

/* Room in the segment for partitions that it has no records of yet. */
static psd_status_t reserve_ranges(ps_shard_log_t *self, psd_error_t *err)
{
    ps_segment_t *segment = ps_shard_log_current(self);
    size_t n = 0;

    for (ps_log_entry_t *at = self->unwritten; at != NULL; at = at->next) {
        n += !ps_segment_has(segment, at->table, at->partition, 0);
    }
    return ps_segment_reserve(segment, n, err);
}

psd_status_t ps_shard_log_write(ps_shard_log_t *self, psd_error_t *err)
{
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (self->unwritten == NULL) {
        return PSD_OK;
    }
    rc = need_segment(self, err);
    if (rc == PSD_OK) {
        rc = reserve_ranges(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_grow(&self->spans, &self->spans_capacity, self->n_unwritten_spans,
                 sizeof *self->spans)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to write the log");
    }
    for (ps_log_entry_t *at = self->unwritten; at != NULL; at = at->next) {
        memcpy(self->spans + n, at->spans, at->n_spans * sizeof *at->spans);
        n += at->n_spans;
    }
    assert(n == self->n_unwritten_spans);
    rc = self->disk->write(self->disk, self->file, self->file_bytes, self->spans, n, err);
    if (rc != PSD_OK) {
        abandon(self);
        return rc;
    }
    note_written(self);
    return PSD_OK;
}

psd_status_t ps_shard_log_flush(ps_shard_log_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_shard_log_write(self, err);

    return rc == PSD_OK ? flush_file(self, err) : rc;
}
