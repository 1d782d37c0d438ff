/* SPDX-License-Identifier: Apache-2.0 */
/* Lines: a window over the input that holds whole ones. */
#include "data/text/lines.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

#define WINDOW ((size_t)1 << 20)

/* Makes room after the data: moves it to the front, or grows. One more byte
 * than asked for stays free, for the '\n' that a last line may lack. */
static psd_status_t make_room(ps_lines_t *self, psd_error_t *err)
{
    size_t capacity = self->capacity == 0 ? WINDOW : self->capacity;
    char *data = NULL;

    if (self->at > 0) {
        memmove(self->data, self->data + self->at, self->filled - self->at);
        self->filled -= self->at;
        self->at = 0;
    }
    if (self->capacity != 0 && self->capacity - self->filled > WINDOW / 2) {
        return PSD_OK;
    }
    if (self->capacity != 0) {
        capacity *= 2;
    }
    data = ps_alloc_resize(self->data, capacity + 1, 1);
    if (data == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a line of %s",
                             ps_source_path(self->source));
    }
    self->data = data;
    self->capacity = capacity;
    return PSD_OK;
}

/* Reads more; at the end of the input completes the last line. */
static psd_status_t fill(ps_lines_t *self, psd_error_t *err)
{
    size_t n = 0;
    psd_status_t rc = make_room(self, err);

    if (rc == PSD_OK) {
        rc = ps_source_read(self->source, self->data + self->filled, self->capacity - self->filled,
                            &n, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->filled += n;
    if (n == 0) {
        self->ended = true;
        if (self->filled > self->at && self->data[self->filled - 1] != '\n') {
            self->data[self->filled++] = '\n';
        }
    }
    return PSD_OK;
}

/* Passes over a byte order mark. */
static void skip_mark(ps_line_t *line)
{
    if (line->size >= 3 && memcmp(line->text, "\xef\xbb\xbf", 3) == 0) {
        line->text += 3;
        line->size -= 3;
    }
}

static psd_status_t too_long(const ps_lines_t *self, psd_error_t *err)
{
    return psd_error_set(
        err, PSD_INVALID,
        "%s: a line at byte %" PRIu64
        " is longer than %zu bytes; the file is not text, or its lines are not meant as such",
        ps_source_path(self->source), self->offset, PS_LINE_MAX);
}

/* The next line, whichever share it belongs to. */
static psd_status_t take_line(ps_lines_t *self, ps_line_t *ret_line, psd_error_t *err)
{
    size_t seen = 0; /* bytes that have no '\n' */
    const char *stop = NULL;

    for (;;) {
        size_t left = self->filled - self->at;
        psd_status_t rc = PSD_OK;

        stop = left == seen ? NULL : memchr(self->data + self->at + seen, '\n', left - seen);
        if (stop != NULL) {
            break;
        }
        if (self->ended) {
            *ret_line = (ps_line_t){0};
            return PSD_OK;
        }
        if (left > PS_LINE_MAX) {
            return too_long(self, err);
        }
        seen = left;
        rc = fill(self, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    ret_line->text = self->data + self->at;
    ret_line->size = (size_t)(stop - ret_line->text);
    if (ret_line->size > PS_LINE_MAX) {
        return too_long(self, err);
    }
    ret_line->first = self->offset == 0;
    self->given = self->offset;
    self->at += ret_line->size + 1;
    self->offset += ret_line->size + 1;
    self->n_lines++;
    if (ret_line->first) {
        skip_mark(ret_line);
    }
    return PSD_OK;
}

/* size x part / n_parts, rounded down. */
static uint64_t begin_of(uint64_t size, uint64_t part, uint64_t n_parts)
{
    return size / n_parts * part + size % n_parts * part / n_parts;
}

psd_status_t ps_lines_seek(ps_lines_t *self, uint64_t offset, psd_error_t *err)
{
    ps_line_t line = {0};
    psd_status_t rc = PSD_OK;

    /* It begins after the line that has the byte before the offset. */
    self->offset = offset == 0 ? 0 : offset - 1;
    self->at = 0;
    self->filled = 0;
    self->ended = false;
    self->from_middle = true;
    rc = ps_source_seek(self->source, self->offset, err);
    return rc == PSD_OK && offset > 0 ? take_line(self, &line, err) : rc;
}

/* Goes to where the share begins. */
static psd_status_t go_to_share(ps_lines_t *self, psd_error_t *err)
{
    uint64_t size = ps_source_size(self->source);
    uint64_t first = 0;

    self->by_bytes = ps_source_can_seek(self->source);
    if (!self->by_bytes || self->share.n_parts == 1) {
        self->end = UINT64_MAX;
        return PSD_OK;
    }
    first = begin_of(size, self->share.part, self->share.n_parts);
    self->end = begin_of(size, self->share.part + 1, self->share.n_parts);
    return first == 0 ? PSD_OK : ps_lines_seek(self, first, err);
}

psd_status_t ps_lines_open(ps_lines_t *ret_lines, const char *path, ps_share_t share,
                           psd_error_t *err)
{
    ps_lines_t self = {.share = share};
    psd_status_t rc = ps_source_open(path, &self.source, err);

    if (rc == PSD_OK) {
        rc = go_to_share(&self, err);
    }
    if (rc != PSD_OK) {
        ps_lines_done(&self);
        return rc;
    }
    *ret_lines = self;
    return PSD_OK;
}

void ps_lines_done(ps_lines_t *self)
{
    ps_source_close(&self->source);
    ps_free(self->data);
    *self = (ps_lines_t){0};
}

static bool is_ours(const ps_lines_t *self, uint64_t offset)
{
    return self->by_bytes || offset / PS_LINES_BLOCK % self->share.n_parts == self->share.part;
}

psd_status_t ps_lines_next(ps_lines_t *self, ps_line_t *ret_line, psd_error_t *err)
{
    for (;;) {
        uint64_t offset = self->offset;
        psd_status_t rc = PSD_OK;

        if (offset >= self->end) {
            *ret_line = (ps_line_t){0};
            return PSD_OK;
        }
        rc = take_line(self, ret_line, err);
        if (rc != PSD_OK || ret_line->text == NULL || is_ours(self, offset)) {
            return rc;
        }
    }
}

psd_status_t ps_lines_peek(ps_lines_t *self, size_t n_lines, size_t max_bytes, ps_line_t *ret_text,
                           psd_error_t *err)
{
    size_t size = 0; /* of the whole lines found so far */
    size_t seen = 0;
    psd_status_t rc = PSD_OK;

    if (self->data == NULL) {
        rc = fill(self, err); /* then there is something to point at */
    }
    while (rc == PSD_OK && n_lines > 0 && size < max_bytes) {
        size_t left = self->filled - self->at;
        const char *text = self->data + self->at;
        const char *stop = left == seen ? NULL : memchr(text + seen, '\n', left - seen);

        if (stop != NULL) {
            size = (size_t)(stop - text) + 1;
            seen = size;
            n_lines--;
            continue;
        }
        if (self->ended || left > PS_LINE_MAX) {
            break;
        }
        seen = left;
        rc = fill(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ret_text->first = self->offset == 0;
    ret_text->text = size == 0 ? "\n" : self->data + self->at;
    ret_text->size = size;
    if (ret_text->first) {
        skip_mark(ret_text);
    }
    return PSD_OK;
}

bool ps_lines_place(const ps_lines_t *self, ps_buffer_t *out)
{
    const char *path = ps_source_path(self->source);

    return self->from_middle ? ps_buffer_print(out, "%s: byte %" PRIu64, path, self->given)
                             : ps_buffer_print(out, "%s:%" PRIu64, path, self->n_lines);
}
