/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the log of a shard after a restart: in blocks, with readahead, so
 * that the disk fetches the next block while the records of one are checked. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "storage/log/shard_log_inner.h"

#define BLOCK ((size_t)4 << 20) /* bytes read at once */
#define AHEAD 2                 /* blocks that are fetched beforehand */
#define CLAIM_SIZE 8            /* bytes that tell the size of a record */

/* A segment that is being read. The file before `offset` is done; bytes `at` ..
 * `end` of the buffer are those from `offset` on. */
typedef struct reader {
    ps_shard_log_t *log;
    ps_segment_t *segment;
    ps_disk_file_t *file;
    ps_disk_file_t *to; /* where the last segment is written again */
    uint64_t offset;
    uint8_t *buffer; /* owned */
    size_t capacity;
    size_t at;
    size_t end;
    ps_shard_log_each_t *each;
    void *context;
    ps_shard_log_found_t found;
} reader_t;

/* Bytes of the segment after offset. */
static uint64_t bytes_left(const reader_t *self)
{
    return self->segment->bytes - self->offset;
}

/* The segment has these bytes. */
static psd_status_t read_exactly(const reader_t *self, uint64_t from, uint8_t *ret_bytes,
                                 size_t size, psd_error_t *err)
{
    ps_disk_t *disk = self->log->disk;
    size_t got = 0;
    psd_status_t rc = disk->read(disk, self->file, from, ret_bytes, size, &got, err);

    return rc != PSD_OK || got == size
               ? rc
               : psd_error_set(err, PSD_IO,
                               "%s/log-%016" PRIx64 ".seg became shorter than "
                               "%" PRIu64 " bytes",
                               self->log->dir, self->segment->number, self->segment->bytes);
}

/* Makes sure that `need` bytes from offset on are in the buffer; the segment
 * has that many. */
static psd_status_t fill(reader_t *self, size_t need, psd_error_t *err)
{
    size_t have = self->end - self->at;
    uint64_t from = self->offset + have;
    uint64_t rest = self->segment->bytes - from;
    size_t want = need > have ? need - have : 0;
    psd_status_t rc = PSD_OK;

    if (want == 0) {
        return PSD_OK;
    }
    want = want > BLOCK ? want : BLOCK;
    want = want < rest ? want : (size_t)rest;
    if (have > 0) {
        memmove(self->buffer, self->buffer + self->at, have);
    }
    self->at = 0;
    self->end = have;
    if (!ps_grow(&self->buffer, &self->capacity, have + want, 1)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %zu bytes of the log", have + want);
    }
    self->log->disk->ahead(self->log->disk, self->file, from + want, AHEAD * BLOCK);
    rc = read_exactly(self, from, self->buffer + have, want, err);
    self->end += rc == PSD_OK ? want : 0;
    return rc;
}

/* Says what is wrong with the record at offset. */
static psd_status_t refuse(const reader_t *self, psd_error_t *err)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    ps_bytes_t bytes = {self->buffer + self->at, self->end - self->at};
    size_t claimed = ps_record_claims(bytes);
    ps_record_t record;
    ps_body_t body = {0};
    size_t size = 0;
    psd_status_t rc = PSD_OK;

    if (claimed > bytes_left(self)) {
        rc = psd_error_set(why, PSD_DAMAGED, "byte 0: size is %zu; %" PRIu64 " bytes are left",
                           claimed, bytes_left(self));
    } else {
        rc = ps_record_read(bytes, &size, &record, &body, why);
    }
    assert(rc != PSD_OK);
    return psd_error_set(err, rc, "%s/log-%016" PRIx64 ".seg: record at byte %" PRIu64 ": %s",
                         self->log->dir, self->segment->number, self->offset, psd_error_text(why));
}

/* Whether the buffer has all of the next record, as far as its size tells. */
static bool holds_next(const reader_t *self)
{
    size_t have = self->end - self->at;

    return have >= CLAIM_SIZE &&
           ps_record_claims((ps_bytes_t){self->buffer + self->at, have}) <= have;
}

/* Makes sure that the next record is in the buffer. ret_size 0: there is
 * none. */
static psd_status_t find_record(reader_t *self, ps_record_t *ret_record, ps_body_t *ret_body,
                                size_t *ret_size, psd_error_t *err)
{
    uint64_t left = bytes_left(self);
    size_t least = left < CLAIM_SIZE ? (size_t)left : CLAIM_SIZE;
    psd_status_t rc = fill(self, least, err);
    ps_bytes_t bytes = {NULL, 0};
    size_t claimed = 0;

    *ret_size = 0;
    if (rc != PSD_OK) {
        return rc;
    }
    claimed = ps_record_claims((ps_bytes_t){self->buffer + self->at, self->end - self->at});
    if (claimed == 0 || claimed > left) {
        return PSD_OK;
    }
    rc = fill(self, claimed, err);
    if (rc != PSD_OK) {
        return rc;
    }
    bytes = (ps_bytes_t){self->buffer + self->at, claimed};
    if (ps_record_read(bytes, ret_size, ret_record, ret_body, NULL) != PSD_OK) {
        *ret_size = 0;
    }
    return PSD_OK;
}

/* Tells of the next record. ret_good false: it is none. */
static psd_status_t read_record(reader_t *self, bool *ret_good, psd_error_t *err)
{
    ps_record_t record;
    ps_body_t body = {0};
    size_t size = 0;
    psd_status_t rc = find_record(self, &record, &body, &size, err);

    *ret_good = false;
    if (rc != PSD_OK || size == 0) {
        return rc;
    }
    rc = ps_segment_reserve(self->segment, 1, err);
    if (rc == PSD_OK) {
        rc = self->each(self->context, &record, &body, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_shard_log_note(self->log, (size_t)(self->segment - self->log->segments), record.kind,
                      record.table, record.partition, record.lsn);
    self->at += size;
    self->offset += size;
    self->found.n_records++;
    *ret_good = true;
    return PSD_OK;
}

/* What was never flushed may be torn; all else is damage. */
static bool may_be_torn(const reader_t *self)
{
    const ps_shard_log_t *log = self->log;
    uint64_t number = self->segment->number;

    return number == log->segments[log->n_segments - 1].number &&
           (log->flushed.number != number || self->offset >= log->flushed.bytes);
}

/* The record at offset is damaged: its size leads to the next record if there
 * is a valid one, else the rest is not readable. */
static psd_status_t pass_over(reader_t *self, psd_error_t *err)
{
    ps_damage_t *damage = self->log->damage;
    psd_status_t rc = ps_damage_pass(damage, refuse(self, err), NULL, err);
    uint64_t left = bytes_left(self);
    uint64_t size = 0;
    bool good = false;

    if (rc != PSD_OK) {
        return rc;
    }
    damage->n_holes++;
    self->segment->is_damaged = true;
    if (self->end - self->at >= CLAIM_SIZE) {
        size = ps_load_u32(self->buffer + self->at);
    }
    if (size >= PS_RECORD_HEAD && size % PS_RECORD_ALIGN == 0 && size < left) {
        rc = fill(self, (size_t)size, err);
        if (rc == PSD_OK) {
            self->at += (size_t)size;
            self->offset += size;
            rc = read_record(self, &good, err);
        }
    }
    if (!good) {
        self->offset = self->segment->bytes;
    }
    return rc;
}

static psd_status_t read_records(reader_t *self, psd_error_t *err)
{
    while (bytes_left(self) > 0) {
        bool good = false;
        psd_status_t rc = read_record(self, &good, err);

        if (rc == PSD_OK && !good && !may_be_torn(self)) {
            rc = pass_over(self, err);
            good = true;
        }
        if (rc != PSD_OK) {
            return rc;
        }
        if (!good) {
            self->found.cut_segment = self->segment->number;
            self->found.cut_offset = self->offset;
            self->found.cut_bytes = bytes_left(self);
            self->segment->bytes = self->offset;
        }
    }
    return PSD_OK;
}

/* Nothing is changed before the damage is accepted (ps_shard_log_settle). */
static bool must_wait(const ps_shard_log_t *self)
{
    return self->damage != NULL && self->damage->n_texts > 0;
}

/* The offset from which on the last segment is not known to be flushed. */
static uint64_t told_until(const ps_shard_log_t *self, const ps_segment_t *last)
{
    uint64_t number = self->flushed.number;

    if (number == last->number) {
        return self->flushed.bytes;
    }
    /* One that another follows is whole. */
    return number > last->number ? last->bytes : PS_SEGMENT_HEAD;
}

/* Writes a block of complete records to the place in `to` where it was read;
 * *ret_end: no record after it was reported. */
static psd_status_t write_block(reader_t *self, bool *ret_end, psd_error_t *err)
{
    uint64_t from = self->offset;
    ps_record_t record;
    ps_body_t body = {0};
    ps_bytes_t span = {NULL, 0};

    do {
        size_t size = 0;
        psd_status_t rc = find_record(self, &record, &body, &size, err);

        *ret_end = size == 0 && self->segment->is_damaged;
        if (rc == PSD_OK && size == 0 && !*ret_end) {
            rc = psd_error_set(err, PSD_IO,
                               "%s/log-%016" PRIx64 ".seg: the record at byte "
                               "%" PRIu64 " was whole when it was read, and "
                               "was not a moment later",
                               self->log->dir, self->segment->number, self->offset);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        self->at += size;
        self->offset += size;
    } while (!*ret_end && holds_next(self));
    span.size = (size_t)(self->offset - from);
    if (span.size == 0) {
        return PSD_OK;
    }
    span.data = self->buffer + self->at - span.size;
    return self->log->disk->write(self->log->disk, self->to, from, &span, 1, err);
}

/* Writes what is known to be flushed of the segment, head and damage included. */
static psd_status_t write_front(reader_t *self, psd_error_t *err)
{
    ps_disk_t *disk = self->log->disk;
    psd_status_t rc = PSD_OK;

    for (uint64_t at = 0; rc == PSD_OK && at < self->offset;) {
        uint64_t left = self->offset - at;
        ps_bytes_t span = {NULL, left < BLOCK ? (size_t)left : BLOCK};

        if (!ps_grow(&self->buffer, &self->capacity, span.size, 1)) {
            return psd_error_set(err, PSD_NOMEM, "no memory to copy %zu bytes of the log",
                                 span.size);
        }
        rc = read_exactly(self, at, self->buffer, span.size, err);
        if (rc == PSD_OK) {
            span.data = self->buffer;
            rc = disk->write(disk, self->to, at, &span, 1, err);
        }
        at += span.size;
    }
    return rc;
}

/* Bytes of the last segment that are not known to be flushed may be only in the
 * page cache, after a flush that failed in an earlier run. A later flush does
 * not cover them unless they are written again. The system may drop them at any
 * moment, so they are checked before they are written. `to` is a new file, or the
 * segment's own. */
static psd_status_t write_again(ps_shard_log_t *self, ps_segment_t *last, ps_disk_file_t *file,
                                ps_disk_file_t *to, psd_error_t *err)
{
    reader_t reader = {
        .log = self, .segment = last, .file = file, .to = to, .offset = told_until(self, last)};
    bool is_end = false;
    psd_status_t rc = to == file ? PSD_OK : write_front(&reader, err);

    /* A damaged segment may be shorter than log-flushed says. */
    while (rc == PSD_OK && !is_end && reader.offset < last->bytes) {
        rc = write_block(&reader, &is_end, err);
    }
    if (rc == PSD_OK) {
        rc = self->disk->flush(self->disk, to, err);
    }
    ps_free(reader.buffer);
    return rc;
}

/* A loss of power may spoil what is being written, so the segment stays as it is
 * until a copy of it is flushed. *ret_has_room false: there is none for the copy. */
static psd_status_t replace_last(ps_shard_log_t *self, ps_segment_t *last, ps_disk_file_t *file,
                                 const char *path, bool *ret_has_room, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t beside = {0};
    ps_disk_t *disk = self->disk;
    ps_disk_file_t *to = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_buffer_print(&beside, "%s.tmp", path)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    rc = disk->open(disk, (const char *)beside.data, PS_DISK_NEW, &to, err);
    if (rc == PSD_OK) {
        rc = write_again(self, last, file, to, err);
        disk->close(disk, &to);
    }
    *ret_has_room = rc != PSD_LIMIT;
    if (rc == PSD_OK) {
        rc = disk->rename(disk, (const char *)beside.data, path, err);
    }
    if (rc != PSD_OK) {
        (void)disk->remove(disk, (const char *)beside.data, NULL);
        return rc;
    }
    return disk->flush_dir(disk, self->dir, err);
}

/* What follows the records is cut off, and the records may be on the disk only in
 * part. */
static psd_status_t settle_file(ps_shard_log_t *self, ps_segment_t *last, ps_disk_file_t *file,
                                const char *path, psd_error_t *err)
{
    ps_disk_t *disk = self->disk;
    uint64_t size = 0;
    psd_status_t rc = PSD_OK;

    /* A damaged one has more in it than its records, and somebody may want to see that. */
    if (told_until(self, last) < last->bytes && !last->is_damaged) {
        bool has_room = true;

        rc = replace_last(self, last, file, path, &has_room, err);
        if (has_room) {
            return rc;
        }
        if (err != NULL) {
            psd_error_clear(err);
        }
    }
    rc = disk->size(disk, file, &size, err);
    if (rc == PSD_OK && size > last->bytes) {
        rc = disk->truncate(disk, file, last->bytes, err);
    }
    return rc == PSD_OK ? write_again(self, last, file, file, err) : rc;
}

/* From now on the last segment is like one that another follows: complete, and
 * on the disk. */
static psd_status_t settle_last(ps_shard_log_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_segment_t *last = ps_shard_log_last(self);
    ps_disk_t *disk = self->disk;
    ps_disk_file_t *file = NULL;
    psd_status_t rc = PSD_OK;

    if (last == NULL) {
        return PSD_OK;
    }
    rc = ps_segment_path(&path, self->dir, last->number, err);
    if (rc == PSD_OK) {
        rc = disk->open(disk, (const char *)path.data, PS_DISK_KEEP, &file, err);
    }
    if (rc == PSD_OK) {
        rc = settle_file(self, last, file, (const char *)path.data, err);
    }
    disk->close(disk, &file);
    return rc;
}

static psd_status_t read_segment(reader_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_disk_t *disk = self->log->disk;
    const char *name = NULL;
    psd_status_t rc = ps_segment_path(&path, self->log->dir, self->segment->number, err);

    if (rc != PSD_OK) {
        return rc;
    }
    name = (const char *)path.data;
    rc = disk->open(disk, name, PS_DISK_READ, &self->file, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->offset = PS_SEGMENT_HEAD;
    self->at = 0;
    self->end = 0;
    rc = read_records(self, err);
    disk->close(disk, &self->file);
    if (rc == PSD_OK && self->segment == ps_shard_log_current(self->log) && !must_wait(self->log)) {
        ps_free(self->buffer); /* the last segment: it would be there twice */
        self->buffer = NULL;
        self->capacity = 0;
        rc = settle_last(self->log, err);
        if (rc == PSD_OK) {
            ps_shard_log_note_flushed(self->log, self->segment->number, self->segment->bytes);
        }
    }
    self->found.n_segments++;
    self->found.bytes += self->segment->bytes;
    return rc;
}

psd_status_t ps_shard_log_read(ps_shard_log_t *self, ps_shard_log_each_t *each, void *context,
                               ps_shard_log_found_t *ret_found, psd_error_t *err)
{
    reader_t reader = {
        .log = self, .each = each, .context = context, .found.note_torn = self->flushed.is_torn};
    psd_status_t rc = PSD_OK;

    assert(!self->is_read);
    for (size_t i = 0; i < self->n_segments && rc == PSD_OK; i++) {
        reader.segment = &self->segments[i];
        if (reader.segment->follows_hole || reader.segment->is_unread) {
            self->damage->n_holes++;
        }
        if (!reader.segment->is_unread) {
            rc = read_segment(&reader, err);
        }
    }
    ps_free(reader.buffer);
    if (rc != PSD_OK) {
        return rc;
    }
    if (self->ends_in_hole) {
        self->damage->n_holes++;
    }
    self->is_read = true;
    self->is_unsettled = must_wait(self);
    reader.found.is_unsettled = self->is_unsettled;
    *ret_found = reader.found;
    return PSD_OK;
}

/* ---- what was damaged ---- */

/* The caller renames segments of which nothing was read. */
static void drop_unread(ps_shard_log_t *self)
{
    size_t n = 0;

    for (size_t i = 0; i < self->n_segments; i++) {
        if (self->segments[i].is_unread) {
            ps_segment_done(&self->segments[i]);
        } else {
            self->segments[n++] = self->segments[i];
        }
    }
    self->n_segments = n;
}

/* A copy of the old log-flushed gets the name of damaged files: the old one
 * stays in place until the new one replaces it. */
static psd_status_t keep_note(ps_shard_log_t *self, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};
    uint8_t note[PS_FLUSHED_SIZE];
    size_t size = 0;
    psd_status_t rc = PSD_OK;

    if (!self->note_is_damaged) {
        return PSD_OK;
    }
    if (!ps_buffer_print(&to, "%s.damaged", name)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    rc = self->disk->read(self->disk, self->note, 0, note, sizeof note, &size, err);
    if (rc == PSD_OK) {
        rc = ps_disk_make(self->disk, self->dir, (const char *)to.data, (ps_bytes_t){note, size},
                          NULL, err);
    }
    self->note_is_damaged = rc != PSD_OK;
    return rc;
}

/* Writes both slots again: neither may say more than there is. */
static psd_status_t write_note(ps_shard_log_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    const ps_segment_t *last = ps_shard_log_last(self);
    uint64_t number = last == NULL ? 0 : last->number;
    uint64_t bytes = last == NULL ? 0 : last->bytes;
    uint8_t note[PS_FLUSHED_SIZE];
    psd_status_t rc = ps_disk_path(&path, err, self->dir, PS_FLUSHED_NAME);

    if (rc == PSD_OK) {
        rc = keep_note(self, (const char *)path.data, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_flushed_write(number, bytes, note);
    ps_flushed_write(number, bytes, note + PS_FLUSHED_SLOT);
    self->disk->close(self->disk, &self->note);
    self->note_slot = 0;
    return ps_disk_make(self->disk, self->dir, (const char *)path.data,
                        (ps_bytes_t){note, sizeof note}, &self->note, err);
}

psd_status_t ps_shard_log_settle(ps_shard_log_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    assert(self->is_read);
    if (!self->is_unsettled) {
        return PSD_OK;
    }
    drop_unread(self);
    rc = settle_last(self, err);
    if (rc == PSD_OK) {
        rc = write_note(self, err);
    }
    if (rc == PSD_OK) {
        self->is_unsettled = false;
        self->damage = NULL;
    }
    return rc;
}
