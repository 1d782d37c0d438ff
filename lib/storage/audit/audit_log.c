/* SPDX-License-Identifier: Apache-2.0 */
/* The audit's file: opened, added to, replaced by the next. */
#include "storage/audit/audit_log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "storage/audit/audit_files.h"

#define REASON_SIZE 300
#define WHO_SIZE 256
#define N_PRINCIPALS 64 /* with a pace each; more share theirs */
#define MORE_MS 60000   /* between lines that count what was not written */

/* Failed requests of a principal, of several whose numbers share it, or of all strangers. */
typedef struct caller {
    ps_audit_pace_t pace;
    uint64_t n_more;    /* that had no place in it … */
    char who[WHO_SIZE]; /* … and whose they were; "": nobody's, or of several */
} caller_t;

struct ps_audit_log {
    pthread_mutex_t lock;
    ps_audit_args_t is;
    ps_audit_files_t files;
    ps_disk_file_t *file; /* owned; NULL: it could not be made */
    uint64_t first;       /* number of its first line */
    uint64_t size;        /* of its whole lines … */
    bool is_torn;         /* … after which bytes may stand */
    ps_audit_chain_t chain;
    uint64_t n_lost;                    /* lines since the last one that was written */
    caller_t callers[1 + N_PRINCIPALS]; /* the first: strangers */
    uint64_t more_ms;                   /* no line counts what was not written before */
    char broken[REASON_SIZE];           /* why the file before is wrong; "": it is not */
};

/* ---- one line ---- */

/* The chain moves on when the line is in the file. */
static psd_status_t put(ps_audit_log_t *self, const ps_doc_t *line, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    ps_audit_chain_t chain = self->chain;
    ps_bytes_t span = {0};
    psd_status_t rc = PSD_OK;

    if (line == NULL || !ps_audit_line_end(&chain, line, &text)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a line of the audit");
    }
    if (self->is_torn) {
        rc = self->is.disk->truncate(self->is.disk, self->file, self->size, err);
        self->is_torn = rc != PSD_OK;
    }
    if (rc != PSD_OK) {
        return rc;
    }
    span = (ps_bytes_t){.data = text.data, .size = text.size};
    rc = self->is.disk->write(self->is.disk, self->file, self->size, &span, 1, err);
    if (rc != PSD_OK) {
        self->is_torn = true;
        return rc;
    }
    self->size += text.size;
    self->chain = chain;
    return PSD_OK;
}

/* A line with an event and a number, if it has a name. */
static psd_status_t put_number(ps_audit_log_t *self, const char *event, uint64_t unix_ms,
                               const char *key, uint64_t number, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *line = ps_audit_line_new(&self->chain, unix_ms, event);

    if (line != NULL && key != NULL && !ps_doc_set_u64(line, key, number)) {
        ps_doc_destroy(&line);
    }
    return put(self, line, err);
}

/* ---- files ---- */

static psd_status_t put_begin(ps_audit_log_t *self, uint64_t unix_ms, psd_error_t *err)
{
    char digest[PS_AUDIT_DIGEST_TEXT_SIZE];
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *line = ps_audit_line_new(&self->chain, unix_ms, "begin");

    if (line != NULL &&
        (!ps_doc_set_text(line, "prev", ps_audit_digest_text(self->chain.digest, digest)) ||
         (self->broken[0] != '\0' && !ps_doc_set_text(line, "damaged", self->broken)))) {
        ps_doc_destroy(&line);
    }
    return put(self, line, err);
}

/* Makes audit.jsonl, with its first line. */
static psd_status_t begin_file(ps_audit_log_t *self, uint64_t unix_ms, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_disk_t *disk = self->is.disk;
    psd_status_t rc = ps_audit_path(&path, self->is.dir, 0, err);

    if (rc == PSD_OK) {
        rc = disk->open(disk, (const char *)path.data, PS_DISK_NEW, &self->file, err);
    }
    if (rc == PSD_OK) {
        self->size = 0;
        self->is_torn = false;
        self->first = self->chain.seq + 1;
        rc = put_begin(self, unix_ms, err);
    }
    if (rc != PSD_OK) {
        disk->close(disk, &self->file);
        return rc;
    }
    self->broken[0] = '\0';
    (void)disk->flush_dir(disk, self->is.dir, NULL);
    return PSD_OK;
}

/* Removes the oldest ones of those that are too many; one that stays counts as gone. */
static void remove_oldest(ps_audit_log_t *self)
{
    size_t n = 0;

    while (self->files.n_older - n + 1 > self->is.files && n < self->files.n_older) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

        if (ps_audit_path(&path, self->is.dir, self->files.older[n], NULL) == PSD_OK) {
            (void)self->is.disk->remove(self->is.disk, (const char *)path.data, NULL);
        }
        n++;
    }
    self->files.n_older -= n;
    if (n > 0) {
        memmove(self->files.older, self->files.older + n,
                self->files.n_older * sizeof *self->files.older);
    }
}

/* audit.jsonl becomes an older file with that number. */
static psd_status_t put_aside(ps_audit_log_t *self, uint64_t number, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t from = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};
    ps_disk_t *disk = self->is.disk;
    uint64_t *more = ps_alloc_resize(self->files.older, self->files.n_older + 1, sizeof *more);
    psd_status_t rc = PSD_OK;

    if (more == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the audit's files");
    }
    self->files.older = more;
    rc = ps_audit_path(&from, self->is.dir, 0, err);
    if (rc == PSD_OK) {
        rc = ps_audit_path(&to, self->is.dir, number, err);
    }
    if (rc == PSD_OK) {
        rc = disk->rename(disk, (const char *)from.data, (const char *)to.data, err);
    }
    if (rc == PSD_OK) {
        self->files.older[self->files.n_older++] = number;
        remove_oldest(self);
    }
    return rc;
}

/* The file is full, or could not be made before. One that cannot be replaced is used on. */
static psd_status_t make_room(ps_audit_log_t *self, uint64_t unix_ms, psd_error_t *err)
{
    ps_disk_t *disk = self->is.disk;

    if (self->file != NULL && self->size + PS_AUDIT_LINE_MAX <= self->is.file_bytes) {
        return PSD_OK;
    }
    if (self->file != NULL) {
        if (self->is_torn || disk->flush(disk, self->file, NULL) != PSD_OK ||
            put_aside(self, self->first, NULL) != PSD_OK) {
            return PSD_OK;
        }
        disk->close(disk, &self->file);
    }
    return begin_file(self, unix_ms, err);
}

/* ---- the start ---- */

typedef struct look {
    ps_audit_check_t check;
    uint64_t good_bytes;
    char wrong[REASON_SIZE]; /* "": nothing */
} look_t;

static psd_status_t take_line(void *context, ps_bytes_t line, uint64_t number, psd_error_t *err)
{
    look_t *self = context;
    psd_error_t *why = NULL;

    (void)err;
    if (self->wrong[0] != '\0') {
        ps_audit_check_pass(&self->check, line);
        return PSD_OK;
    }
    why = psd_error_new();
    if (ps_audit_check_line(&self->check, line, why) == PSD_OK) {
        self->good_bytes += line.size + 1;
    } else {
        (void)snprintf(self->wrong, sizeof self->wrong, "line %" PRIu64 ": %.200s", number,
                       why == NULL ? "it is wrong" : psd_error_text(why));
    }
    psd_error_destroy(&why);
    return PSD_OK;
}

static psd_status_t look_at(const ps_audit_log_t *self, uint64_t number, look_t *ret_look,
                            uint64_t *ret_rest, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = ps_audit_path(&path, self->is.dir, number, err);

    if (rc == PSD_OK) {
        rc = ps_audit_read(self->is.disk, (const char *)path.data, take_line, ret_look, ret_rest,
                           err);
    }
    if (rc == PSD_DAMAGED) {
        (void)snprintf(ret_look->wrong, sizeof ret_look->wrong, "%.200s", psd_error_text(err));
        psd_error_clear(err);
        rc = PSD_OK;
    }
    return rc;
}

/* The chain begins once more, after all numbers that were seen. */
static void begin_chain(ps_audit_log_t *self, const look_t *look)
{
    uint64_t newest = self->files.n_older == 0 ? 0 : self->files.older[self->files.n_older - 1];

    self->chain = (ps_audit_chain_t){.seq = look->check.top};
    if (self->chain.seq < newest + 1) {
        self->chain.seq = newest + 1;
    }
    (void)snprintf(self->broken, sizeof self->broken, "%s", look->wrong);
}

/* audit.jsonl has wrong lines: it is kept as it is, beside a new one. */
static psd_status_t leave(ps_audit_log_t *self, const look_t *look, psd_error_t *err)
{
    uint64_t newest = self->files.n_older == 0 ? 0 : self->files.older[self->files.n_older - 1];
    uint64_t number = look->check.first > newest ? look->check.first : newest + 1;

    begin_chain(self, look);
    return put_aside(self, number, err);
}

/* There is no audit.jsonl with a line: the newest older one says how the chain goes on. */
static psd_status_t look_older(ps_audit_log_t *self, psd_error_t *err)
{
    look_t look = {.wrong = ""};
    uint64_t rest = 0;
    psd_status_t rc = PSD_OK;

    if (self->files.n_older == 0) {
        return PSD_OK;
    }
    rc = look_at(self, self->files.older[self->files.n_older - 1], &look, &rest, err);
    if (rc == PSD_OK && look.wrong[0] == '\0' && look.check.n_lines > 0) {
        self->chain = look.check.chain;
    } else if (rc == PSD_OK) {
        begin_chain(self, &look);
    }
    return rc;
}

/* Opens audit.jsonl, of which `size` bytes are whole lines. */
static psd_status_t reopen(ps_audit_log_t *self, const look_t *look, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_disk_t *disk = self->is.disk;
    psd_status_t rc = ps_audit_path(&path, self->is.dir, 0, err);

    if (rc == PSD_OK) {
        rc = disk->open(disk, (const char *)path.data, PS_DISK_KEEP, &self->file, err);
    }
    if (rc == PSD_OK) {
        self->chain = look->check.chain;
        self->first = look->check.first;
        self->size = look->good_bytes;
        rc = disk->truncate(disk, self->file, self->size, err);
    }
    return rc;
}

static psd_status_t look_current(ps_audit_log_t *self, ps_audit_found_t *ret_found,
                                 psd_error_t *err)
{
    look_t look = {.wrong = ""};
    psd_status_t rc = look_at(self, 0, &look, &ret_found->cut, err);

    if (rc == PSD_OK && look.wrong[0] != '\0') {
        ret_found->cut = 0;
        (void)snprintf(ret_found->damaged, sizeof ret_found->damaged, "%s", look.wrong);
        return leave(self, &look, err);
    }
    if (rc == PSD_OK) {
        rc = look.check.n_lines == 0 ? look_older(self, err) : reopen(self, &look, err);
    }
    return rc;
}

static psd_status_t put_start(ps_audit_log_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *line = ps_audit_line_new(&self->chain, self->is.unix_ms, "start");

    if (line != NULL && (!ps_doc_set_text(line, "node", self->is.node) ||
                         !ps_doc_set_text(line, "release", self->is.release))) {
        ps_doc_destroy(&line);
    }
    return put(self, line, err);
}

/* The first lines of this start. What keeps them from being written does not keep psd from
 * starting. */
static psd_status_t put_first(ps_audit_log_t *self, ps_audit_found_t *ret_found, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->file == NULL) {
        rc = begin_file(self, self->is.unix_ms, err);
    }
    if (rc == PSD_OK && ret_found->cut > 0) {
        rc = put_number(self, "cut", self->is.unix_ms, "bytes", ret_found->cut, err);
    }
    if (rc == PSD_OK) {
        rc = put_start(self, err);
    }
    if (rc != PSD_LIMIT && rc != PSD_IO) {
        return rc;
    }
    self->n_lost++;
    (void)snprintf(ret_found->lost, sizeof ret_found->lost, "%.300s", psd_error_text(err));
    psd_error_clear(err);
    return PSD_OK;
}

static psd_status_t open_file(ps_audit_log_t *self, ps_audit_found_t *ret_found, psd_error_t *err)
{
    psd_status_t rc = ps_audit_files_find(self->is.disk, self->is.dir, &self->files, err);

    if (rc == PSD_OK) {
        rc = self->files.has_current ? look_current(self, ret_found, err) : look_older(self, err);
    }
    return rc == PSD_OK ? put_first(self, ret_found, err) : rc;
}

psd_status_t ps_audit_log_open(const ps_audit_args_t *args, ps_audit_found_t *ret_found,
                               ps_audit_log_t **ret_log, psd_error_t *err)
{
    ps_audit_log_t *self = ps_alloc(1, sizeof *self);
    ps_audit_found_t found = {.damaged = ""};
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the audit");
    }
    self->is = *args;
    (void)pthread_mutex_init(&self->lock, NULL);
    rc = open_file(self, &found, err);
    if (rc != PSD_OK) {
        self->is.disk->close(self->is.disk, &self->file);
        ps_audit_log_close(&self, 0);
        return psd_error_wrap(err, rc, "the audit");
    }
    found.seq = self->chain.seq;
    *ret_found = found;
    *ret_log = self;
    return PSD_OK;
}

/* ---- added ---- */

static psd_status_t put_more(ps_audit_log_t *self, caller_t *caller, uint64_t unix_ms,
                             psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *line = ps_audit_line_new(&self->chain, unix_ms, "more");
    psd_status_t rc = PSD_OK;

    if (line != NULL && ((caller->who[0] != '\0' && !ps_doc_set_text(line, "who", caller->who)) ||
                         !ps_doc_set_u64(line, "requests", caller->n_more))) {
        ps_doc_destroy(&line);
    }
    rc = put(self, line, err);
    caller->n_more = rc == PSD_OK ? 0 : caller->n_more;
    return rc;
}

static psd_status_t put_all_more(ps_audit_log_t *self, uint64_t unix_ms, uint64_t now_ms,
                                 psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < sizeof self->callers / sizeof *self->callers; i++) {
        if (self->callers[i].n_more > 0) {
            rc = put_more(self, &self->callers[i], unix_ms, err);
            self->more_ms = now_ms + MORE_MS;
        }
    }
    return rc;
}

/* Lines that are due before the next one: what was lost, and counts of what had no place. */
static psd_status_t put_due(ps_audit_log_t *self, uint64_t unix_ms, uint64_t now_ms,
                            psd_error_t *err)
{
    psd_status_t rc = make_room(self, unix_ms, err);

    if (rc == PSD_OK && self->n_lost > 0) {
        rc = put_number(self, "gap", unix_ms, "lines", self->n_lost, err);
        self->n_lost = rc == PSD_OK ? 0 : self->n_lost;
    }
    return rc == PSD_OK && now_ms >= self->more_ms ? put_all_more(self, unix_ms, now_ms, err) : rc;
}

/* Whether the line is written. */
static bool take_place(ps_audit_log_t *self, const ps_audit_record_t *record, uint64_t now_ms)
{
    const bool is_known = record->who != NULL && record->who_id != 0;
    caller_t *caller = &self->callers[is_known ? 1 + record->who_id % N_PRINCIPALS : 0];
    const char *who = is_known ? record->who : "";

    if (record->result == PSD_OK || record->has_changed ||
        ps_audit_pace_take(&caller->pace, is_known ? PS_AUDIT_BURST : PS_AUDIT_BURST_STRANGERS,
                           now_ms)) {
        return true;
    }
    if (caller->n_more > 0 && strcmp(caller->who, who) != 0) {
        who = "";
    }
    (void)snprintf(caller->who, sizeof caller->who, "%s", who);
    caller->n_more++;
    return false;
}

static psd_status_t add(ps_audit_log_t *self, const ps_audit_record_t *record, uint64_t unix_ms,
                        uint64_t now_ms, ps_audit_outcome_t *ret_outcome, psd_error_t *err)
{
    const uint64_t lost = self->n_lost;
    psd_status_t rc = put_due(self, unix_ms, now_ms, err);

    if (rc == PSD_OK) {
        PSD_AUTO(ps_doc_destroy)
        ps_doc_t *line = ps_audit_line_new(&self->chain, unix_ms, "request");

        if (line != NULL && !ps_audit_line_fill(line, record)) {
            ps_doc_destroy(&line);
        }
        rc = put(self, line, err);
    }
    if (rc != PSD_OK) {
        ret_outcome->begins = self->n_lost == 0 && lost == 0;
        self->n_lost++;
    } else {
        ret_outcome->lost = lost;
    }
    return rc;
}

psd_status_t ps_audit_log_add(ps_audit_log_t *self, const ps_audit_record_t *record,
                              uint64_t unix_ms, uint64_t now_ms, ps_audit_outcome_t *ret_outcome,
                              psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *ret_outcome = (ps_audit_outcome_t){0};
    (void)pthread_mutex_lock(&self->lock);
    if (take_place(self, record, now_ms)) {
        rc = add(self, record, unix_ms, now_ms, ret_outcome, err);
        if (rc == PSD_OK) {
            ret_outcome->end = self->chain;
        }
    }
    (void)pthread_mutex_unlock(&self->lock);
    return rc;
}

void ps_audit_log_say(ps_audit_log_t *self, const char *event, uint64_t unix_ms)
{
    (void)pthread_mutex_lock(&self->lock);
    if (put_due(self, unix_ms, self->more_ms, NULL) != PSD_OK ||
        put_number(self, event, unix_ms, NULL, 0, NULL) != PSD_OK) {
        self->n_lost++;
    }
    (void)pthread_mutex_unlock(&self->lock);
}

void ps_audit_log_close(ps_audit_log_t **self_p, uint64_t unix_ms)
{
    ps_audit_log_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    if (self->file != NULL) {
        ps_audit_log_say(self, "stop", unix_ms);
    }
    if (self->file != NULL) {
        (void)self->is.disk->flush(self->is.disk, self->file, NULL);
    }
    self->is.disk->close(self->is.disk, &self->file);
    ps_audit_files_done(&self->files);
    (void)pthread_mutex_destroy(&self->lock);
    ps_free(self);
    *self_p = NULL;
}

/* ---- read ---- */

ps_audit_chain_t ps_audit_log_end(ps_audit_log_t *self)
{
    ps_audit_chain_t chain;

    (void)pthread_mutex_lock(&self->lock);
    chain = self->chain;
    (void)pthread_mutex_unlock(&self->lock);
    return chain;
}

/* The file that has the place; 0: audit.jsonl; and the next one; 0: none. false: it is gone. */
static bool find_file(const ps_audit_log_t *self, ps_audit_place_t *place, uint64_t *ret_number,
                      uint64_t *ret_next)
{
    const ps_audit_files_t *files = &self->files;
    const uint64_t newest = self->file == NULL ? 0 : self->first;

    *ret_next = 0;
    if (place->file == 0) {
        place->file = files->n_older > 0 ? files->older[0] : self->first;
    }
    for (size_t i = 0; i < files->n_older; i++) {
        if (files->older[i] == place->file) {
            *ret_number = place->file;
            *ret_next = i + 1 < files->n_older ? files->older[i + 1] : newest;
            return true;
        }
    }
    *ret_number = 0;
    return place->file == self->first && self->file != NULL;
}

static psd_status_t read_piece(const ps_audit_log_t *self, uint64_t number, uint64_t offset,
                               size_t size, ps_buffer_t *to, size_t *ret_size, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_disk_t *disk = self->is.disk;
    ps_disk_file_t *file = NULL;
    psd_status_t rc = ps_audit_path(&path, self->is.dir, number, err);

    if (rc == PSD_OK && !ps_buffer_reserve(to, size)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory to read the audit");
    }
    if (rc == PSD_OK) {
        rc = disk->open(disk, (const char *)path.data, PS_DISK_READ, &file, err);
    }
    if (rc == PSD_OK) {
        rc = disk->read(disk, file, offset, to->data + to->size, size, ret_size, err);
        to->size += rc == PSD_OK ? *ret_size : 0;
    }
    disk->close(disk, &file);
    return rc;
}

static psd_status_t read_on(const ps_audit_log_t *self, ps_audit_place_t *place, size_t size,
                            ps_buffer_t *to, bool *ret_is_end, psd_error_t *err)
{
    uint64_t number = 0;
    uint64_t next = 0;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (self->file == NULL && self->files.n_older == 0) {
        *ret_is_end = true; /* the disk was full from the start */
        return PSD_OK;
    }
    if (!find_file(self, place, &number, &next)) {
        return psd_error_set(err, PSD_BUSY,
                             "the audit's oldest file was removed while it was read; ask again");
    }
    if (number == 0 && self->size < place->offset + size) {
        size = self->size <= place->offset ? 0 : (size_t)(self->size - place->offset);
    }
    if (size > 0) {
        rc = read_piece(self, number, place->offset, size, to, &n, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    place->offset += n;
    *ret_is_end = number == 0 ? n == 0 || place->offset >= self->size : n < size && next == 0;
    if (next != 0 && n < size) {
        *place = (ps_audit_place_t){.file = next};
    }
    return PSD_OK;
}

psd_status_t ps_audit_log_read(ps_audit_log_t *self, ps_audit_place_t *place, size_t size,
                               ps_buffer_t *to, bool *ret_is_end, ps_audit_chain_t *ret_end,
                               psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    (void)pthread_mutex_lock(&self->lock);
    rc = read_on(self, place, size, to, ret_is_end, err);
    *ret_end = self->chain;
    (void)pthread_mutex_unlock(&self->lock);
    return rc;
}
