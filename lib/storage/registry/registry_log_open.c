/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making, opening and reading the log of a registry.
 *
 * An open checks everything first. Then it does what the state says and a crash
 * left undone, and writes again what may be in the system's memory only: bytes
 * that an earlier flush has failed for are not flushed by a later one.
 */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "storage/registry/registry_log_impl.h"

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for the registry's log");
}

void ps_registry_log_close(ps_registry_log_t **self_p)
{
    ps_registry_log_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    self->disk->close(self->disk, &self->state_file);
    self->disk->close(self->disk, &self->note);
    self->disk->close(self->disk, &self->file);
    for (size_t i = 0; i < self->n_segments; i++) {
        ps_free(self->segments[i].ends);
    }
    ps_free(self->segments);
    ps_buffer_done(&self->buffer);
    ps_free(self->dir);
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t new_log(const ps_registry_log_args_t *args, ps_registry_log_t **ret_log,
                            psd_error_t *err)
{
    PSD_AUTO(ps_registry_log_close) ps_registry_log_t *self = ps_alloc(1, sizeof *self);

    assert(args->segment_bytes > 0);
    if (self == NULL) {
        return no_memory(err);
    }
    self->disk = args->disk;
    self->owner = (ps_registry_owner_t){args->cluster, args->member};
    self->segment_bytes = args->segment_bytes;
    self->dir = ps_strdup(args->dir);
    if (self->dir == NULL) {
        return no_memory(err);
    }
    *ret_log = self;
    self = NULL;
    return PSD_OK;
}

/* ---- create ---- */

static psd_status_t make_state(ps_registry_log_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    uint8_t bytes[PS_REGISTRY_STATE_SIZE] = {0};
    psd_status_t rc = ps_disk_path(&path, err, self->dir, PS_REGISTRY_STATE_NAME);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_registry_state_write(&self->state, &self->owner, bytes);
    ps_registry_state_write(&self->state, &self->owner, bytes + PS_REGISTRY_SLOT_AT);
    return ps_disk_make(self->disk, self->dir, (const char *)path.data,
                        (ps_bytes_t){bytes, sizeof bytes}, &self->state_file, err);
}

psd_status_t ps_registry_log_create(const ps_registry_log_args_t *args, const ps_id_t *lineage,
                                    uint64_t first_index, psd_error_t *err)
{
    PSD_AUTO(ps_registry_log_close) ps_registry_log_t *self = NULL;
    PSD_AUTO(ps_registry_names_done) ps_registry_names_t names = {0};
    psd_status_t rc = ps_registry_log_check_first(first_index, err);

    assert(args->member > 0);

    if (rc == PSD_OK) {
        rc = new_log(args, &self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_names_list(self->disk, self->dir, &names, err);
    }
    if (rc == PSD_OK && (names.has_state || names.has_note || names.n > 0)) {
        rc = psd_error_set(err, PSD_INVALID, "%s has files of a log; remove them to make another",
                           self->dir);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->state = (ps_registry_state_t){.sequence = 1,
                                        .lineage = *lineage,
                                        .generation = 1,
                                        .first = first_index,
                                        .flushed = first_index - 1};
    self->flushed = first_index - 1;
    rc = make_state(self, err);
    return rc == PSD_OK ? ps_registry_log_begin(self, err) : rc;
}

/* ---- read ---- */

/* What is wrong with the record at `at`, which should be of entry `index`. */
static psd_status_t name_record(psd_error_t *err, psd_status_t rc, const ps_buffer_t *path,
                                uint64_t at, uint64_t index)
{
    return psd_error_wrap(err, rc, "%s: byte %" PRIu64 ": entry %" PRIu64, (const char *)path->data,
                          at, index);
}

/* The records of a loaded segment, as they were when it was opened or
 * written. */
static psd_status_t read_segment(const ps_registry_segment_t *segment, const ps_buffer_t *path,
                                 const ps_buffer_t *bytes, uint64_t from,
                                 ps_registry_log_each_t *each, void *context, psd_error_t *err)
{
    for (size_t i = from > segment->first ? (size_t)(from - segment->first) : 0; i < segment->n;
         i++) {
        uint64_t index = segment->first + i;
        uint64_t at = ps_registry_segment_at(segment, index);
        ps_bytes_t rest = {bytes->data + at, bytes->size < at ? 0 : bytes->size - (size_t)at};
        ps_registry_record_t record;
        size_t size = 0;
        psd_status_t rc = ps_registry_record_read(rest, segment->seed, &record, &size, err);

        if (rc == PSD_OK && record.entry.index != index) {
            rc = psd_error_set(err, PSD_DAMAGED, "index is %" PRIu64, record.entry.index);
        }
        if (rc != PSD_OK) {
            return name_record(err, rc, path, at, index);
        }
        rc = each(context, &record.entry, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    return PSD_OK;
}

psd_status_t ps_registry_log_read(ps_registry_log_t *self, uint64_t from,
                                  ps_registry_log_each_t *each, void *context, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < self->n_segments && rc == PSD_OK; i++) {
        const ps_registry_segment_t *segment = &self->segments[i];

        if (segment->n == 0 || segment->first + segment->n - 1 < from) {
            continue;
        }
        rc = ps_registry_log_load(self, segment->first, &path, &bytes, err);
        if (rc == PSD_OK) {
            rc = read_segment(segment, &path, &bytes, from, each, context, err);
        }
    }
    return rc;
}

/* ---- open: check ---- */

/* A segment that is being checked; all of it is in `bytes`. */
typedef struct checking {
    ps_registry_log_t *log;
    ps_registry_segment_t *segment; /* the newest of log's */
    bool is_last;
    ps_buffer_t path;  /* owned */
    ps_buffer_t bytes; /* owned */
} checking_t;

/* A later record says that entry `index`, whose record should be at `at`, was
 * flushed. Records begin at multiples of 8. */
static bool has_witness(const checking_t *self, uint64_t at, uint64_t index)
{
    for (at += PS_REGISTRY_RECORD_ALIGN; at < self->bytes.size; at += PS_REGISTRY_RECORD_ALIGN) {
        ps_bytes_t rest = {self->bytes.data + at, self->bytes.size - (size_t)at};
        ps_registry_record_t record;
        size_t size = 0;

        if (ps_registry_record_read(rest, self->segment->seed, &record, &size, NULL) == PSD_OK &&
            record.flushed >= index) {
            return true;
        }
    }
    return false;
}

/* Whether a whole record fits after the one before it. */
static psd_status_t check_order(const checking_t *self, const ps_registry_record_t *record,
                                uint64_t index, psd_error_t *err)
{
    const ps_registry_log_t *log = self->log;

    if (record->entry.index != index) {
        return psd_error_set(err, PSD_DAMAGED, "index is %" PRIu64, record->entry.index);
    }
    if (record->entry.term < log->last_term || record->entry.term > log->state.term) {
        return psd_error_set(err, PSD_DAMAGED,
                             "term is %" PRIu64 "; allowed: %" PRIu64 " to %" PRIu64,
                             record->entry.term, log->last_term, log->state.term);
    }
    return record->flushed < index
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED, "it says that %" PRIu64 " was flushed before it",
                               record->flushed);
}

static psd_status_t take_record(checking_t *self, const ps_registry_record_t *record, uint64_t end,
                                psd_error_t *err)
{
    ps_registry_segment_t *segment = self->segment;

    if (!ps_grow(&segment->ends, &segment->capacity, segment->n + 1, sizeof *segment->ends)) {
        return no_memory(err);
    }
    segment->ends[segment->n++] = end;
    self->log->last_term = record->entry.term;
    if (record->flushed > self->log->flushed) {
        self->log->flushed = record->flushed;
    }
    return PSD_OK;
}

/* The next record. ret_end: what follows does not count. */
static psd_status_t check_record(checking_t *self, bool *ret_end, psd_error_t *err)
{
    const ps_registry_log_t *log = self->log;
    uint64_t index = self->segment->first + self->segment->n;
    uint64_t at = ps_registry_segment_bytes(self->segment);
    ps_bytes_t rest = {self->bytes.data + at, self->bytes.size - (size_t)at};
    ps_registry_record_t record;
    size_t size = 0;
    psd_status_t rc = PSD_OK;

    *ret_end = rest.size == 0 || (self->is_last && index == log->state.cut_from);
    if (*ret_end) {
        return PSD_OK;
    }
    rc = ps_registry_record_read(rest, self->segment->seed, &record, &size, err);
    if (rc == PSD_DAMAGED && self->is_last && index > log->flushed &&
        !has_witness(self, at, index)) {
        if (err != NULL) {
            psd_error_clear(err);
        }
        *ret_end = true;
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        rc = check_order(self, &record, index, err);
    }
    if (rc != PSD_OK) {
        return name_record(err, rc, &self->path, at, index);
    }
    return take_record(self, &record, at + size, err);
}

static psd_status_t check_segment(checking_t *self, uint64_t first, psd_error_t *err)
{
    ps_registry_log_t *log = self->log;
    bool is_end = false;
    psd_status_t rc = ps_registry_log_load(log, first, &self->path, &self->bytes, err);

    if (rc == PSD_OK) {
        rc = ps_registry_log_reserve(log, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->segment = &log->segments[log->n_segments++];
    *self->segment = (ps_registry_segment_t){.first = first};
    rc = ps_registry_segment_read(&log->owner, first,
                                  (ps_bytes_t){self->bytes.data, self->bytes.size},
                                  (const char *)self->path.data, &self->segment->seed, err);
    while (rc == PSD_OK && !is_end) {
        rc = check_record(self, &is_end, err);
    }
    return rc;
}

/* Entries from `index` on are missing before a segment. */
static psd_status_t refuse_gap(const ps_registry_log_t *self, uint64_t index, uint64_t next,
                               psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED,
                         "%s/entries-%020" PRIu64 ": byte 0: the file is missing, or the one "
                         "before it ends too early; the next one begins with entry %" PRIu64,
                         self->dir, index, next);
}

/* The segments names->firsts[begin] .. [end - 1] are the log. */
static psd_status_t check_segments(checking_t *self, const ps_registry_names_t *names, size_t begin,
                                   size_t end, psd_error_t *err)
{
    ps_registry_log_t *log = self->log;
    uint64_t index = log->state.first;
    psd_status_t rc = PSD_OK;

    for (size_t i = begin; i < end && rc == PSD_OK; i++) {
        self->is_last = i + 1 == end;
        rc = names->firsts[i] == index ? check_segment(self, names->firsts[i], err)
                                       : refuse_gap(log, index, names->firsts[i], err);
        if (rc == PSD_OK) {
            index = ps_registry_log_last(log) + 1;
        }
    }
    if (rc == PSD_OK && (begin == end || index <= log->flushed)) {
        rc = psd_error_set(
            err, PSD_DAMAGED,
            "%s/entries-%020" PRIu64 ": byte %" PRIu64 ": the file ends before entry "
            "%" PRIu64 "; entries up to %" PRIu64 " were flushed",
            log->dir, begin == end ? index : ps_registry_log_current(log)->first,
            begin == end ? 0 : ps_registry_segment_bytes(ps_registry_log_current(log)), index,
            log->flushed);
    }
    return rc;
}

/* ---- open: make up ---- */

/* A loss of power may spoil what is being written, so the segment stays as it is
 * until a copy of it is flushed. Where there is no room for one, its entries from
 * `from` on are written in place. */
static psd_status_t write_entries(checking_t *self, uint64_t from, psd_error_t *err)
{
    ps_registry_log_t *log = self->log;
    const ps_registry_segment_t *last = ps_registry_log_current(log);
    const char *path = (const char *)self->path.data;
    size_t size = (size_t)ps_registry_segment_bytes(last);
    uint64_t at = ps_registry_segment_at(last, from);
    ps_bytes_t span = {self->bytes.data + at, size - (size_t)at};
    psd_status_t rc = ps_disk_make(log->disk, log->dir, path, (ps_bytes_t){self->bytes.data, size},
                                   &log->file, err);

    if (rc != PSD_LIMIT) {
        return rc;
    }
    if (err != NULL) {
        psd_error_clear(err);
    }
    rc = log->disk->open(log->disk, path, PS_DISK_KEEP, &log->file, err);
    if (rc == PSD_OK) {
        rc = log->disk->write(log->disk, log->file, at, &span, 1, err);
    }
    /* The copy may have its name already: only that could not be flushed. */
    return rc == PSD_OK ? log->disk->flush_dir(log->disk, log->dir, err) : rc;
}

/* Bytes that may not be on the disk, though they were read. */
static psd_status_t write_again(checking_t *self, psd_error_t *err)
{
    ps_registry_log_t *log = self->log;
    const ps_registry_segment_t *last = ps_registry_log_current(log);
    uint64_t from = log->flushed < last->first ? last->first : log->flushed + 1;

    log->torn_bytes =
        log->state.cut_from == 0 ? self->bytes.size - ps_registry_segment_bytes(last) : 0;
    return from > ps_registry_log_last(log)
               ? log->disk->open(log->disk, (const char *)self->path.data, PS_DISK_KEEP, &log->file,
                                 err)
               : write_entries(self, from, err);
}

/* The same for the slot that counts. */
static psd_status_t write_state_again(ps_registry_log_t *self, psd_error_t *err)
{
    uint8_t bytes[PS_REGISTRY_STATE_SLOT];
    ps_bytes_t span = {bytes, sizeof bytes};
    psd_status_t rc = PSD_OK;

    ps_registry_state_write(&self->state, &self->owner, bytes);
    rc = self->disk->write(self->disk, self->state_file, self->state_slot * PS_REGISTRY_SLOT_AT,
                           &span, 1, err);
    if (rc == PSD_OK) {
        rc = self->disk->flush(self->disk, self->state_file, err);
    }
    if (rc == PSD_OK) {
        rc = self->disk->write(self->disk, self->state_file,
                               (1 - self->state_slot) * PS_REGISTRY_SLOT_AT, &span, 1, err);
    }
    return rc;
}

/* Files that are not part of the log. */
static psd_status_t remove_rest(ps_registry_log_t *self, const ps_registry_names_t *names,
                                size_t begin, size_t end, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < names->n && rc == PSD_OK; i++) {
        if (i < begin || i >= end) {
            rc = ps_registry_log_remove(self, names->firsts[i], err);
        }
    }
    for (size_t at = 0; at < names->stale.size && rc == PSD_OK;) {
        const char *name = (const char *)names->stale.data + at;

        rc = ps_disk_path(&path, err, self->dir, "%s", name);
        if (rc == PSD_OK) {
            rc = self->disk->remove(self->disk, (const char *)path.data, err);
        }
        at += strlen(name) + 1;
    }
    return rc;
}

static psd_status_t open_segments(ps_registry_log_t *self, const ps_registry_names_t *names,
                                  psd_error_t *err)
{
    checking_t checking = {.log = self};
    size_t begin = 0;
    size_t end = names->n;
    psd_status_t rc = PSD_OK;

    while (begin < end && names->firsts[begin] < self->state.first) {
        begin++;
    }
    while (self->state.cut_from != 0 && end > begin + 1 &&
           names->firsts[end - 1] >= self->state.cut_from) {
        end--;
    }
    rc = check_segments(&checking, names, begin, end, err);
    if (rc == PSD_OK) {
        rc = write_state_again(self, err);
    }
    if (rc == PSD_OK) {
        rc = remove_rest(self, names, begin, end, err);
    }
    if (rc == PSD_OK) {
        rc = write_again(&checking, err);
    }
    ps_buffer_done(&checking.path);
    ps_buffer_done(&checking.bytes);
    return rc == PSD_OK ? ps_registry_log_settle(self, err) : rc;
}

/* ---- open ---- */

static psd_status_t open_state(ps_registry_log_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    uint8_t bytes[PS_REGISTRY_STATE_SIZE];
    size_t size = 0;
    psd_status_t rc = ps_disk_path(&path, err, self->dir, PS_REGISTRY_STATE_NAME);

    if (rc == PSD_OK) {
        rc = self->disk->open(self->disk, (const char *)path.data, PS_DISK_KEEP, &self->state_file,
                              err);
    }
    if (rc == PSD_OK) {
        rc = self->disk->read(self->disk, self->state_file, 0, bytes, sizeof bytes, &size, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_state_read((ps_bytes_t){bytes, size}, &self->owner,
                                    (const char *)path.data, &self->state, &self->state_slot, err);
    }
    self->flushed = self->state.flushed;
    return rc;
}

static psd_status_t refuse_missing(const ps_registry_log_t *self, const char *name, size_t n,
                                   psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED, "%s/%s: byte 0: the file is missing beside %zu segments",
                         self->dir, name, n);
}

static psd_status_t open_all(ps_registry_log_t *self, const ps_registry_names_t *names,
                             psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (!names->has_state) {
        return refuse_missing(self, PS_REGISTRY_STATE_NAME, names->n, err);
    }
    rc = open_state(self, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (!self->state.is_begun) {
        rc = write_state_again(self, err);
        return rc == PSD_OK ? ps_registry_log_begin(self, err) : rc;
    }
    if (!names->has_note) {
        return refuse_missing(self, PS_REGISTRY_FLUSHED_NAME, names->n, err);
    }
    rc = ps_registry_log_open_note(self, false, err);
    return rc == PSD_OK ? open_segments(self, names, err) : rc;
}

psd_status_t ps_registry_log_open(const ps_registry_log_args_t *args, ps_registry_log_t **ret_log,
                                  psd_error_t *err)
{
    PSD_AUTO(ps_registry_log_close) ps_registry_log_t *self = NULL;
    PSD_AUTO(ps_registry_names_done) ps_registry_names_t names = {0};
    psd_status_t rc = new_log(args, &self, err);

    if (rc == PSD_OK) {
        rc = ps_registry_names_list(self->disk, self->dir, &names, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!names.has_state && !names.has_note && names.n == 0) {
        *ret_log = NULL;
        return PSD_OK;
    }
    rc = open_all(self, &names, err);
    if (rc == PSD_OK) {
        *ret_log = self;
        self = NULL;
    }
    return rc;
}
