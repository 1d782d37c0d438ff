/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of samples in a file, found by a name that all settings are in. */
#include "data/feed/parse_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "data/streams/file_out.h"
#include "data/feed/parse_block.h"

/* Changes with what is kept, and with what any parser makes of a line. */
#define CACHE_MAGIC UINT64_C(0x3230686361637370) /* "pscach02" */
#define NAME_KEPT 200                            /* bytes of the input's name */
#define BLOCK_SAMPLES 500
#define BLOCK_ENTRIES ((size_t)1 << 16)
#define BAD_TEXT_MAX ((uint64_t)1 << 20)
/* A file that is written again so soon may keep its times: clocks of file
 * systems tick every 1 to 10 ms. */
#define SETTLED_NS INT64_C(20000000)

/* At the beginning; `about` follows. */
typedef struct cache_head {
    uint64_t magic;
    uint64_t about_size;
} cache_head_t;

/* The body of the last block; texts of bad lines follow, each with its '\0'. */
typedef struct cache_end {
    uint64_t n_samples;
    uint64_t n_bad;
} cache_end_t;

struct ps_parse_cache {
    char path[PATH_MAX];
    char source[PATH_MAX];
    ps_buffer_t about;    /* what it is of: settings, and the input as it is */
    ps_parse_what_t what; /* its texts are borrowed */
    /* reading */
    int fd; /* -1: it is made */
    uint64_t size, at;
    ps_buffer_t body;     /* of one block */
    psd_samples_t *ready; /* of one block; all of them, when made */
    size_t given;         /* of those */
    bool ended;
    cache_end_t end;
    /* making */
    ps_file_out_t *file;
    ps_buffer_t text;
    bool failed; /* no memory, or disk; it is not kept */
    uint64_t n_samples;
};

/* ---- what it is of ---- */

/* A file as it lies there; false: no memory. What is not there is so. */
static bool print_file(ps_buffer_t *out, const char *name, const char *path)
{
    struct stat about;

    if (path == NULL || stat(path, &about) != 0) {
        return ps_buffer_print(out, "%s %s\n", name, path == NULL ? "" : path);
    }
    return ps_buffer_print(
        out, "%s %s: device %ju inode %ju size %jd changed %jd.%09ld %jd.%09ld\n", name, path,
        (uintmax_t)about.st_dev, (uintmax_t)about.st_ino, (intmax_t)about.st_size,
        (intmax_t)about.st_mtim.tv_sec, about.st_mtim.tv_nsec, (intmax_t)about.st_ctim.tv_sec,
        about.st_ctim.tv_nsec);
}

static bool print_settings(ps_buffer_t *out, const ps_parse_what_t *what)
{
    const ps_parser_t *parser = what->parser;

    return ps_buffer_print(out,
                           "format %s entries %d labels %d columns %" PRIu64 " bits %" PRIu32
                           " constant %d hash_all %d scale %a rows %" PRIu64 ":%" PRIu64
                           " share %" PRIu32 "/%" PRIu32 " merge %d strict %d\n",
                           parser->format->name, (int)parser->entries, (int)parser->labels,
                           parser->columns, parser->bits, parser->constant, parser->hash_all,
                           (double)parser->scale, parser->first, parser->end, what->share.part,
                           what->share.n_parts, what->merge, what->strict);
}

static bool print_about(const ps_parse_cache_t *self, ps_buffer_t *out)
{
    out->size = 0;
    return print_settings(out, &self->what) && print_file(out, "input", self->source) &&
           print_file(out, "words", self->what.parser->vocabulary_path) &&
           print_file(out, "labels", self->what.parser->labels_path);
}

/* Had the file lain there long enough for another change to show? What is not
 * there had; a file of the future had not. */
static bool is_settled(const char *path, struct timespec since)
{
    struct stat about;
    int64_t seconds = 0;

    if (path == NULL || stat(path, &about) != 0) {
        return true;
    }
    seconds = (int64_t)since.tv_sec - (int64_t)about.st_ctim.tv_sec;
    return seconds > 1 ||
           (seconds >= 0 &&
            seconds * INT64_C(1000000000) + since.tv_nsec - about.st_ctim.tv_nsec >= SETTLED_NS);
}

/* Then what is read is what the times stand for, if these are the same at the
 * end. */
static bool are_settled(const ps_parse_cache_t *self)
{
    const ps_parser_t *parser = self->what.parser;

    return is_settled(self->source, self->what.since) &&
           is_settled(parser->vocabulary_path, self->what.since) &&
           is_settled(parser->labels_path, self->what.since);
}

/* One file for each input and settings, whatever the input is by now. */
static bool name_cache(ps_parse_cache_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    const char *slash = strrchr(self->source, '/');
    const char *name = slash == NULL ? self->source : slash + 1;
    bool beside = strcmp(self->what.directory, PS_PARSE_BESIDE) == 0;
    const char *parser_words = self->what.parser->vocabulary_path;

    if (!print_settings(&text, &self->what) ||
        !ps_buffer_print(&text, "%s\n%s\n", self->source,
                         parser_words == NULL ? "" : parser_words)) {
        return false;
    }
    if (snprintf(self->path, sizeof self->path, "%.*s%s%s%.*s.%016" PRIx64 ".parsed",
                 beside ? (int)(name - self->source) : PATH_MAX,
                 beside ? self->source : self->what.directory, beside ? "" : "/", beside ? "." : "",
                 NAME_KEPT, name,
                 ps_hash_bytes(text.data, text.size, 0)) >= (int)sizeof self->path) {
        self->path[0] = '\0';
    }
    return true;
}

/* ---- reading ---- */

/* false: the file has no more. */
static bool read_all(ps_parse_cache_t *self, void *ret_bytes, size_t size)
{
    uint8_t *at = ret_bytes;

    while (size > 0) {
        ssize_t n = read(self->fd, at, size);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
        self->at += (uint64_t)n;
    }
    return true;
}

/* Does the file go on with these bytes? */
static bool goes_on_with(ps_parse_cache_t *self, const uint8_t *bytes, size_t size)
{
    uint8_t piece[512];

    while (size > 0) {
        size_t n = size < sizeof piece ? size : sizeof piece;

        if (!read_all(self, piece, n) || memcmp(piece, bytes, n) != 0) {
            return false;
        }
        bytes += n;
        size -= n;
    }
    return true;
}

/* Is what lies there of this input as it is? */
static bool begin_reading(ps_parse_cache_t *self)
{
    cache_head_t head;
    struct stat about;

    self->fd = open(self->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (self->fd >= 0 && fstat(self->fd, &about) == 0 && S_ISREG(about.st_mode)) {
        self->size = (uint64_t)about.st_size;
        if (read_all(self, &head, sizeof head) && head.magic == CACHE_MAGIC &&
            head.about_size == self->about.size &&
            goes_on_with(self, self->about.data, self->about.size)) {
            return true;
        }
    }
    if (self->fd >= 0) {
        (void)close(self->fd);
    }
    self->fd = -1;
    return false;
}

static psd_status_t set_damaged(const ps_parse_cache_t *self, psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED,
                         "%s is damaged at byte %" PRIu64 "; its input is parsed again", self->path,
                         self->at);
}

static psd_status_t set_no_memory(const ps_parse_cache_t *self, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to read %s", self->path);
}

/* The last block: counts, then texts up to the end. */
static psd_status_t take_end(ps_parse_cache_t *self, const ps_parse_head_t *head, psd_error_t *err)
{
    if (head->body_size < sizeof self->end || self->at != self->size ||
        (head->body_size > sizeof self->end && self->body.data[head->body_size - 1] != '\0')) {
        return set_damaged(self, err);
    }
    memcpy(&self->end, self->body.data, sizeof self->end);
    self->body.size = head->body_size;
    if (self->end.n_samples != self->n_samples) {
        return set_damaged(self, err);
    }
    self->ended = true;
    return PSD_OK;
}

/* Is its body of a size for which there can be memory? */
static bool is_sized(const ps_parse_head_t *head)
{
    return head->n_samples == 0 ? head->body_size <= BAD_TEXT_MAX : ps_parse_head_is_valid(head);
}

/* Reads the next block to `to`, or the end. */
static psd_status_t read_block(ps_parse_cache_t *self, const ps_parse_head_t *head,
                               psd_samples_t *to, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->body.size = 0;
    if (head->body_size > self->size - self->at || !is_sized(head)) {
        return set_damaged(self, err);
    }
    if (!ps_buffer_reserve(&self->body, head->body_size)) {
        return set_no_memory(self, err);
    }
    if (!read_all(self, self->body.data, head->body_size) ||
        ps_parse_block_sum(head, self->body.data) != head->sum) {
        return set_damaged(self, err);
    }
    if (head->n_samples == 0) {
        return take_end(self, head, err);
    }
    rc = ps_parse_block_take(head, self->body.data, to);
    if (rc != PSD_OK) {
        return rc == PSD_NOMEM ? set_no_memory(self, err) : set_damaged(self, err);
    }
    self->n_samples += head->n_samples;
    return PSD_OK;
}

/* What of the block that was read was not given yet. */
static psd_status_t give_ready(ps_parse_cache_t *self, size_t max, psd_samples_t *samples,
                               psd_error_t *err)
{
    size_t left = self->ready->n - self->given;
    size_t n = left < max ? left : max;

    if (!ps_samples_append(samples, self->ready, self->given, n)) {
        return set_no_memory(self, err);
    }
    self->given += n;
    return PSD_OK;
}

psd_status_t ps_parse_cache_next(ps_parse_cache_t *self, size_t max, psd_samples_t *samples,
                                 psd_error_t *err)
{
    ps_parse_head_t head;
    bool fits = false;
    psd_status_t rc = PSD_OK;

    if (self->given < self->ready->n) {
        return give_ready(self, max, samples, err);
    }
    if (self->ended) {
        return PSD_OK;
    }
    if (!read_all(self, &head, sizeof head)) {
        return set_damaged(self, err);
    }
    ps_samples_clear(self->ready);
    self->given = 0;
    fits = head.n_samples <= max;
    rc = read_block(self, &head, fits ? samples : self->ready, err);
    return rc == PSD_OK && !fits ? give_ready(self, max, samples, err) : rc;
}

uint64_t ps_parse_cache_bad_count(const ps_parse_cache_t *self)
{
    return self->end.n_bad;
}

const char *ps_parse_cache_bad(const ps_parse_cache_t *self, size_t i)
{
    size_t at = sizeof self->end;

    for (; at < self->body.size; i--) {
        if (i == 0) {
            return (const char *)self->body.data + at;
        }
        at += strlen((const char *)self->body.data + at) + 1;
    }
    return NULL;
}

double ps_parse_cache_taken(const ps_parse_cache_t *self)
{
    return self->size == 0 ? 0 : (double)self->at / (double)self->size;
}

/* ---- making ---- */

static void flush(ps_parse_cache_t *self)
{
    if (self->failed || self->ready->n == 0) {
        return;
    }
    self->text.size = 0;
    self->failed = !ps_parse_block_print(self->ready, &self->text) ||
                   ps_file_out_write(self->file, self->text.data, self->text.size, NULL) != PSD_OK;
    ps_samples_clear(self->ready);
}

void ps_parse_cache_add(ps_parse_cache_t *self, const psd_samples_t *samples)
{
    if (self->failed) {
        return;
    }
    self->failed = !ps_samples_append(self->ready, samples, samples->n - 1, 1);
    self->n_samples++;
    if (self->ready->n >= BLOCK_SAMPLES || self->ready->n_entries >= BLOCK_ENTRIES) {
        flush(self);
    }
}

static bool print_end(ps_parse_cache_t *self, uint64_t n_bad, psd_error_t *const *bad)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t body = {0};
    cache_end_t end = {.n_samples = self->n_samples, .n_bad = n_bad};
    ps_parse_head_t head = {0};
    bool room = ps_buffer_append(&body, &end, sizeof end);

    for (size_t i = 0; room && i < n_bad && i < PS_PARSE_BAD_KEPT; i++) {
        const char *text = psd_error_text(bad[i]);

        room = ps_buffer_append(&body, text, strlen(text) + 1);
    }
    if (!room || body.size > BAD_TEXT_MAX) {
        return false;
    }
    head.body_size = body.size;
    head.sum = ps_parse_block_sum(&head, body.data);
    self->text.size = 0;
    return ps_buffer_append(&self->text, &head, sizeof head) &&
           ps_buffer_append(&self->text, body.data, body.size);
}

static psd_status_t begin_making(ps_parse_cache_t *self, psd_error_t *err)
{
    cache_head_t head = {.magic = CACHE_MAGIC, .about_size = self->about.size};
    struct stat there;
    struct stat source;
    mode_t mode = 0600;
    psd_status_t rc = PSD_OK;

    if (lstat(self->path, &there) == 0 && !S_ISREG(there.st_mode)) {
        return psd_error_set(err, PSD_INVALID, "%s is not a file", self->path);
    }
    if (stat(self->source, &source) == 0) { /* who may not read that … */
        mode |= source.st_mode & (source.st_gid == getegid() ? 0044 : 0004);
    }
    rc = ps_file_out_open(self->path, mode, &self->file, err);
    if (rc == PSD_OK) {
        rc = ps_file_out_write(self->file, &head, sizeof head, err);
    }
    return rc == PSD_OK ? ps_file_out_write(self->file, self->about.data, self->about.size, err)
                        : rc;
}

void ps_parse_cache_keep(ps_parse_cache_t *self, uint64_t n_bad, psd_error_t *const *bad,
                         psd_error_t *warning)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t about = {0};
    psd_status_t rc = PSD_OK;

    flush(self);
    if (self->failed || !print_end(self, n_bad, bad) || !print_about(self, &about)) {
        (void)psd_error_set(warning, PSD_IO, "%s could not be written; there is no cache",
                            self->path);
        return;
    }
    if (about.size != self->about.size || memcmp(about.data, self->about.data, about.size) != 0) {
        return; /* the input changed while it was read */
    }
    rc = ps_file_out_write(self->file, self->text.data, self->text.size, warning);
    if (rc == PSD_OK) {
        rc = ps_file_out_place(self->file, warning);
    }
    (void)rc; /* warning has it */
}

/* ---- opening ---- */

void ps_parse_cache_close(ps_parse_cache_t **self_p)
{
    ps_parse_cache_t *self = *self_p;

    if (self != NULL) {
        if (self->fd >= 0) {
            (void)close(self->fd);
        }
        ps_file_out_close(&self->file);
        ps_buffer_done(&self->about);
        ps_buffer_done(&self->body);
        ps_buffer_done(&self->text);
        psd_samples_destroy(&self->ready);
    }
    ps_free(self);
    *self_p = NULL;
}

bool ps_parse_cache_is_read(const ps_parse_cache_t *self)
{
    return self->fd >= 0;
}

psd_status_t ps_parse_cache_open(const ps_parse_what_t *what, bool anew,
                                 ps_parse_cache_t **ret_cache, psd_error_t *warning,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_parse_cache_close) ps_parse_cache_t *self = NULL;
    struct stat about;
    psd_status_t rc = PSD_OK;

    *ret_cache = NULL;
    if (stat(what->path, &about) != 0 || !S_ISREG(about.st_mode)) {
        return PSD_OK;
    }
    self = ps_alloc(1, sizeof *self);
    if (self != NULL) {
        self->fd = -1;
        self->what = *what;
        self->ready = psd_samples_new();
    }
    if (self == NULL || self->ready == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a parse cache");
    }
    self->ready->entries = what->parser->entries;
    if (realpath(what->path, self->source) == NULL) {
        return PSD_OK;
    }
    if (!print_about(self, &self->about) || !name_cache(self)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a parse cache");
    }
    if (self->path[0] == '\0') {
        (void)psd_error_set(warning, PSD_INVALID, "the name of a cache of %s is too long",
                            what->path);
        return PSD_OK;
    }
    if (anew || !begin_reading(self)) {
        if (!are_settled(self)) {
            return PSD_OK;
        }
        rc = begin_making(self, warning);
    }
    if (rc == PSD_OK) {
        *ret_cache = self;
        self = NULL;
    }
    return PSD_OK;
}
