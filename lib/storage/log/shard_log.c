/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a shard: opening, its segments, appending and truncating.
 * shard_log_write.c writes it, shard_log_read.c reads it. */
#include "storage/log/shard_log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "storage/log/log_dir.h"
#include "storage/log/shard_log_inner.h"

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for the log");
}

/* ---- open ---------------------------------------------------------------- */

/* Names of the directory, taken apart before anything is removed. */
typedef struct found {
    uint64_t *numbers; /* owned */
    size_t n_numbers;
    size_t capacity;
    size_t n_files; /* that only an earlier life can have made */
    bool has_note;
    bool has_stale_note;
    uint64_t *stale; /* owned; numbers of segments that were not finished */
    size_t n_stale;
    size_t stale_capacity;
} found_t;

static psd_status_t add_number(uint64_t **numbers, size_t *n, size_t *capacity, uint64_t number,
                               psd_error_t *err)
{
    if (!ps_grow(numbers, capacity, *n + 1, sizeof **numbers)) {
        return no_memory(err);
    }
    (*numbers)[(*n)++] = number;
    return PSD_OK;
}

static psd_status_t take_name(void *context, const char *name, psd_error_t *err)
{
    found_t *found = context;
    size_t length = strlen(name);
    uint64_t number = 0;
    char whole[64];

    found->n_files += ps_log_dir_fills(name) ? 1 : 0;
    if (strcmp(name, PS_FLUSHED_NAME) == 0) {
        found->has_note = true;
    } else if (strcmp(name, PS_FLUSHED_NAME ".tmp") == 0) {
        found->has_stale_note = true;
    } else if (ps_segment_parse(name, &number)) {
        return add_number(&found->numbers, &found->n_numbers, &found->capacity, number, err);
    } else if (length > 4 && length < sizeof whole && strcmp(name + length - 4, ".tmp") == 0) {
        memcpy(whole, name, length - 4);
        whole[length - 4] = '\0';
        if (ps_segment_parse(whole, &number)) {
            return add_number(&found->stale, &found->n_stale, &found->stale_capacity, number, err);
        }
    }
    return PSD_OK;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

static psd_status_t remove_stale(ps_shard_log_t *self, const found_t *found, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < found->n_stale && rc == PSD_OK; i++) {
        rc = ps_segment_path(&path, self->dir, found->stale[i], err);
        if (rc == PSD_OK && !ps_buffer_print(&path, ".tmp")) {
            rc = no_memory(err);
        }
        if (rc == PSD_OK) {
            rc = self->disk->remove(self->disk, (const char *)path.data, err);
        }
    }
    if (rc == PSD_OK && found->has_stale_note) {
        rc = ps_disk_path(&path, err, self->dir, PS_FLUSHED_NAME ".tmp");
        if (rc == PSD_OK) {
            rc = self->disk->remove(self->disk, (const char *)path.data, err);
        }
    }
    return rc;
}

static psd_status_t read_head(ps_shard_log_t *self, ps_segment_t *segment, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    uint8_t head[PS_SEGMENT_HEAD];
    ps_disk_file_t *file = NULL;
    const char *name = NULL;
    size_t size = 0;
    psd_status_t rc = ps_segment_path(&path, self->dir, segment->number, err);

    if (rc != PSD_OK) {
        return rc;
    }
    name = (const char *)path.data;
    rc = self->disk->open(self->disk, name, PS_DISK_READ, &file, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = self->disk->read(self->disk, file, 0, head, sizeof head, &size, err);
    if (rc == PSD_OK) {
        rc = self->disk->size(self->disk, file, &segment->bytes, err);
    }
    if (rc == PSD_OK) {
        rc = ps_segment_read_head(segment, &self->owner, (ps_bytes_t){head, size}, name, err);
    }
    self->disk->close(self->disk, &file);
    segment->is_unread = rc == PSD_DAMAGED;
    return ps_damage_pass(self->damage, rc, name, err);
}

/* The size of a segment is in the head of the next one. */
static psd_status_t check_size(ps_shard_log_t *self, ps_segment_t *segment, ps_segment_t *next,
                               psd_error_t *err)
{
    uint64_t wanted = next->previous_bytes;

    if (segment->is_unread || next->is_unread || next->number != segment->number + 1) {
        return PSD_OK; /* that is skipped already */
    }
    if (segment->bytes >= wanted && wanted >= PS_SEGMENT_HEAD) {
        segment->bytes = wanted;
        return PSD_OK;
    }
    segment->is_damaged = true;
    next->follows_hole = true;
    return ps_damage_pass(self->damage,
                          psd_error_set(err, PSD_DAMAGED,
                                        "%s/log-%016" PRIx64 ".seg: byte %" PRIu64
                                        ": the file ends; the next segment says "
                                        "%" PRIu64 " bytes",
                                        self->dir, segment->number, segment->bytes, wanted),
                          NULL, err);
}

static psd_status_t check_sizes(ps_shard_log_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i + 1 < self->n_segments; i++) {
        rc = check_size(self, &self->segments[i], &self->segments[i + 1], err);
    }
    return rc;
}

static psd_status_t check_flushed(ps_shard_log_t *self, psd_error_t *err)
{
    ps_segment_t *last = ps_shard_log_last(self);
    uint64_t number = self->flushed.number;

    if (last == NULL ? number != 0 : number > last->number) {
        self->ends_in_hole = true;
        return ps_damage_pass(self->damage,
                              psd_error_set(err, PSD_DAMAGED,
                                            "%s/log-%016" PRIx64 ".seg is missing; %" PRIu64
                                            " bytes of it were flushed",
                                            self->dir, number, self->flushed.bytes),
                              NULL, err);
    }
    if (last != NULL && number == last->number && !last->is_unread &&
        last->bytes < self->flushed.bytes) {
        self->ends_in_hole = true;
        last->is_damaged = true;
        return ps_damage_pass(self->damage,
                              psd_error_set(err, PSD_DAMAGED,
                                            "%s/log-%016" PRIx64 ".seg: byte %" PRIu64
                                            ": the file ends; %" PRIu64 " bytes of it were flushed",
                                            self->dir, number, last->bytes, self->flushed.bytes),
                              NULL, err);
    }
    return PSD_OK;
}

static psd_status_t read_heads(ps_shard_log_t *self, const found_t *found, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (!ps_grow(&self->segments, &self->capacity, found->n_numbers + 1, sizeof *self->segments)) {
        return no_memory(err);
    }
    for (size_t i = 0; i < found->n_numbers && rc == PSD_OK; i++) {
        ps_segment_t segment = {.number = found->numbers[i]};

        if (i > 0 && found->numbers[i] != found->numbers[i - 1] + 1) {
            segment.follows_hole = true;
            rc = ps_damage_pass(self->damage,
                                psd_error_set(err, PSD_DAMAGED,
                                              "%s/log-%016" PRIx64 ".seg is missing between others",
                                              self->dir, found->numbers[i - 1] + 1),
                                NULL, err);
        }
        if (rc == PSD_OK) {
            rc = read_head(self, &segment, err);
        }
        self->segments[self->n_segments++] = segment;
    }
    if (rc == PSD_OK) {
        rc = check_sizes(self, err);
    }
    return rc;
}

/* Opens log-flushed and reads it; an empty directory gets one. */
static psd_status_t open_note(ps_shard_log_t *self, const found_t *found, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    uint8_t bytes[PS_FLUSHED_SIZE];
    const char *name = NULL;
    size_t size = 0;
    psd_status_t rc = ps_disk_path(&path, err, self->dir, PS_FLUSHED_NAME);

    if (rc != PSD_OK) {
        return rc;
    }
    name = (const char *)path.data;
    if (!found->has_note && found->n_files > 0) {
        self->ends_in_hole = true;
        return ps_damage_pass(self->damage,
                              psd_error_set(err, PSD_DAMAGED,
                                            "%s is missing beside %zu other files", name,
                                            found->n_files),
                              NULL, err);
    }
    if (!found->has_note) {
        ps_flushed_write(0, 0, bytes);
        ps_flushed_write(0, 0, bytes + PS_FLUSHED_SLOT);
        return ps_disk_make(self->disk, self->dir, name, (ps_bytes_t){bytes, sizeof bytes},
                            &self->note, err);
    }
    rc = self->disk->open(self->disk, name, PS_DISK_KEEP, &self->note, err);
    if (rc == PSD_OK) {
        rc = self->disk->read(self->disk, self->note, 0, bytes, sizeof bytes, &size, err);
    }
    if (rc == PSD_OK) {
        rc = ps_flushed_read((ps_bytes_t){bytes, size}, name, &self->flushed, err);
    }
    if (rc == PSD_OK) {
        self->note_slot = 1 - self->flushed.slot;
    }
    self->ends_in_hole = rc == PSD_DAMAGED;
    self->note_is_damaged = rc == PSD_DAMAGED;
    return ps_damage_pass(self->damage, rc, NULL, err);
}

static psd_status_t open_dir(ps_shard_log_t *self, found_t *found, psd_error_t *err)
{
    psd_status_t rc = self->disk->make_dir(self->disk, self->dir, err);

    if (rc == PSD_OK) {
        rc = self->disk->list(self->disk, self->dir, take_name, found, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (found->n_numbers > 0) {
        qsort(found->numbers, found->n_numbers, sizeof *found->numbers, compare_numbers);
    }
    rc = read_heads(self, found, err);
    if (rc == PSD_OK) {
        rc = open_note(self, found, err);
    }
    if (rc == PSD_OK) {
        rc = check_flushed(self, err);
    }
    if (rc == PSD_OK) {
        rc = remove_stale(self, found, err);
    }
    return rc;
}

psd_status_t ps_shard_log_open(const ps_shard_log_args_t *args, ps_shard_log_t **ret_log,
                               psd_error_t *err)
{
    PSD_AUTO(ps_shard_log_close)
    ps_shard_log_t *self = ps_alloc(1, sizeof *self);
    found_t found = {0};
    psd_status_t rc = PSD_OK;

    assert(args->segment_bytes > 0 && strlen(args->node) <= PS_SHARD_LOG_NODE_MAX);
    if (self == NULL) {
        return no_memory(err);
    }
    self->disk = args->disk;
    self->segment_bytes = args->segment_bytes;
    self->owner.cluster = args->cluster;
    self->owner.shard = args->shard;
    self->damage = args->damage;
    memcpy(self->owner.node, args->node, strlen(args->node));
    self->dir = ps_strdup(args->dir);
    if (self->dir == NULL) {
        return no_memory(err);
    }
    rc = open_dir(self, &found, err);
    ps_free(found.numbers);
    ps_free(found.stale);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_log = self;
    self = NULL;
    return PSD_OK;
}

void ps_shard_log_close(ps_shard_log_t **self_p)
{
    ps_shard_log_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    while (self->first != NULL) {
        ps_shard_log_drop_first(self);
    }
    for (size_t i = 0; i < self->n_segments; i++) {
        ps_segment_done(&self->segments[i]);
    }
    self->disk->close(self->disk, &self->file);
    self->disk->close(self->disk, &self->note);
    ps_free(self->segments);
    ps_free(self->spans);
    ps_free(self->dir);
    ps_free(self);
    *self_p = NULL;
}

/* ---- append -------------------------------------------------------------- */

/* An entry with room for n spans and `size` bytes after them. */
static ps_log_entry_t *new_entry(const ps_record_t *record, size_t n, size_t size)
{
    size_t front = sizeof(ps_log_entry_t) + n * sizeof(ps_bytes_t);
    ps_log_entry_t *entry = ps_alloc_raw(1, front + size);

    if (entry != NULL) {
        *entry = (ps_log_entry_t){.kind = record->kind,
                                  .table = record->table,
                                  .partition = record->partition,
                                  .lsn = record->lsn};
    }
    return entry;
}

static void add_entry(ps_shard_log_t *self, ps_log_entry_t *entry)
{
    if (self->first == NULL) {
        self->first = entry;
    } else {
        self->last->next = entry;
    }
    self->last = entry;
    if (self->unwritten == NULL) {
        self->unwritten = entry;
    }
    self->n_unwritten_spans += entry->n_spans;
    self->n_appended++;
    self->waiting_bytes += entry->size;
}

void ps_shard_log_drop_first(ps_shard_log_t *self)
{
    ps_log_entry_t *entry = self->first;

    self->first = entry->next;
    self->waiting_bytes -= entry->size;
    ps_payload_destroy(&entry->payload);
    ps_free(entry);
}

psd_status_t ps_shard_log_append(ps_shard_log_t *self, const ps_record_t *record,
                                 ps_payload_t *payload, psd_error_t *err)
{
    size_t size = ps_record_size(record, payload);
    bool copied = size <= PS_SHARD_LOG_COPY_MAX;
    size_t n = 1;
    ps_log_entry_t *entry = NULL;
    uint8_t *bytes = NULL;

    assert(self->is_read);
    if (size == 0) {
        return psd_error_set(err, PSD_LIMIT,
                             "a record's payload is %zu bytes; a record has "
                             "%u at most",
                             ps_payload_size(payload), PS_RECORD_MAX);
    }
    if (!copied) {
        n = PS_RECORD_SPANS + (payload != NULL ? payload->n_spans : 0);
    }
    entry = new_entry(record, n, copied ? size : PS_RECORD_HEAD);
    if (entry == NULL) {
        return no_memory(err);
    }
    bytes = (uint8_t *)(entry->spans + n);
    entry->size = size;
    if (copied) {
        ps_record_write(record, payload, bytes);
        entry->spans[0] = (ps_bytes_t){bytes, size};
        entry->n_spans = 1;
    } else {
        entry->n_spans = ps_record_head_write(record, payload, bytes, entry->spans);
        entry->payload = payload != NULL ? ps_payload_keep(payload) : NULL;
    }
    add_entry(self, entry);
    return PSD_OK;
}

psd_status_t ps_shard_log_append_bytes(ps_shard_log_t *self, const ps_record_t *record,
                                       ps_bytes_t bytes, ps_payload_t *holder, psd_error_t *err)
{
    bool copied = holder == NULL || bytes.size <= PS_SHARD_LOG_COPY_MAX;
    ps_log_entry_t *entry = new_entry(record, 1, copied ? bytes.size : 0);

    assert(self->is_read && bytes.size >= PS_RECORD_HEAD);
    if (entry == NULL) {
        return no_memory(err);
    }
    entry->size = bytes.size;
    entry->n_spans = 1;
    entry->spans[0] = bytes;
    if (copied) {
        uint8_t *own = (uint8_t *)(entry->spans + 1);

        memcpy(own, bytes.data, bytes.size);
        entry->spans[0].data = own;
    } else {
        entry->payload = ps_payload_keep(holder);
    }
    add_entry(self, entry);
    return PSD_OK;
}

void ps_shard_log_note(ps_shard_log_t *self, size_t segment, ps_record_kind_t kind, uint32_t table,
                       uint32_t partition, uint64_t lsn)
{
    bool is_mark = kind == PS_RECORD_ANEW || kind == PS_RECORD_LEAVE;

    for (size_t i = 0; is_mark && i <= segment; i++) {
        ps_segment_forget(&self->segments[i], table, partition);
    }
    if (kind != PS_RECORD_LEAVE) {
        ps_segment_note(&self->segments[segment], table, partition, lsn);
    }
}

/* ---- what there is ------------------------------------------------------- */

uint64_t ps_shard_log_appended(const ps_shard_log_t *self)
{
    return self->n_appended;
}

uint64_t ps_shard_log_flushed(const ps_shard_log_t *self)
{
    return self->n_flushed;
}

uint64_t ps_shard_log_waiting(const ps_shard_log_t *self)
{
    return self->waiting_bytes;
}

uint64_t ps_shard_log_bytes(const ps_shard_log_t *self)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < self->n_segments; i++) {
        sum += self->segments[i].bytes;
    }
    return sum;
}

uint64_t ps_shard_log_segment_with(const ps_shard_log_t *self, uint32_t table, uint32_t partition,
                                   uint64_t lsn)
{
    for (size_t i = 0; i < self->n_segments; i++) {
        if (ps_segment_has(&self->segments[i], table, partition, lsn)) {
            return self->segments[i].number;
        }
    }
    return UINT64_MAX;
}

psd_status_t ps_shard_log_cut(ps_shard_log_t *self, uint64_t lowest, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

    while (self->n_segments > 1 && self->segments[0].number < lowest) {
        psd_status_t rc = ps_segment_path(&path, self->dir, self->segments[0].number, err);

        if (rc == PSD_OK && self->segments[0].is_damaged) {
            rc = ps_damage_rename(self->disk, (const char *)path.data, err);
        } else if (rc == PSD_OK) {
            rc = self->disk->remove(self->disk, (const char *)path.data, err);
        }
        /* One name after the other, so that a crash leaves no gap. */
        if (rc == PSD_OK) {
            rc = self->disk->flush_dir(self->disk, self->dir, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        ps_segment_done(&self->segments[0]);
        self->n_segments--;
        memmove(self->segments, self->segments + 1, self->n_segments * sizeof *self->segments);
    }
    return PSD_OK;
}
