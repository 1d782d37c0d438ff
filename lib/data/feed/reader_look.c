/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader's inputs are, and what their beginning says of all their
 * samples: found in the first input, so that all shares of it agree.
 */
#include "data/feed/reader.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "data/streams/window.h"
#include "data/text/number.h"

#define LOOK_LINES 1000
#define LOOK_BYTES ((size_t)4 << 20)

static bool is_blank(ps_line_t text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (!ps_is_blank(text.text[i]) && text.text[i] != '\n') {
            return false;
        }
    }
    return true;
}

/* If at least half of the lines fit one format, the others are the bad ones:
 * the error names the first of them, as if that format had been set. */
static psd_status_t refuse_line(const char *path, ps_line_t text, const char *line,
                                const char *what, psd_error_t *err)
{
    size_t number = 1;

    for (const char *at = text.text; at < line; at++) {
        number += *at == '\n';
    }
    return psd_error_set(err, PSD_INVALID, "%s:%zu: \"%s…\" is not %s: name its format", path,
                         number, ps_sample_word(ps_skip_blanks(line)), what);
}

static bool has_numbers_only(ps_line_t text)
{
    size_t at = 0;

    for (ps_line_t line = ps_text_line(text, &at); line.text != NULL;
         line = ps_text_line(text, &at)) {
        if (*ps_skip_blanks(line.text) != '\n' && !ps_line_is_number(line)) {
            return false;
        }
    }
    return true;
}

/* Says what came nearest, and where it ends. */
static psd_status_t refuse_format(const char *path, ps_line_t text, psd_error_t *err)
{
    size_t n_fit = 0;
    size_t n_lines = 0;
    ps_line_t other = {0};
    const ps_sample_format_t *nearest = ps_sample_format_nearest(text, &n_fit, &n_lines, &other);
    char what[160];

    if (is_blank(text)) {
        (void)snprintf(what, sizeof what, "they are empty");
    } else if (nearest == NULL && has_numbers_only(text)) {
        (void)snprintf(what, sizeof what,
                       "they have only numbers, like libsvm lines without features");
    } else if (nearest == NULL) {
        (void)snprintf(what, sizeof what, "no format begins like \"%s…\"",
                       ps_sample_word(ps_skip_blanks(text.text)));
    } else if (other.text != NULL && 2 * n_fit >= n_lines) {
        (void)snprintf(what, sizeof what, "%s, guessed by only %zu of the first %zu lines",
                       nearest->name, n_fit, n_lines);
        return refuse_line(path, text, other.text, what, err);
    } else {
        (void)snprintf(what, sizeof what, "%zu of %zu could be %s, but not \"%s…\"", n_fit, n_lines,
                       nearest->name,
                       other.text == NULL ? "" : ps_sample_word(ps_skip_blanks(other.text)));
    }
    return psd_error_set(err, PSD_INVALID,
                         "%s: its first lines match no known format (%s); name its format", path,
                         what);
}

/* A line may look like a format and be invalid: a guessed format needs at least
 * one good line. The error says what is wrong with the first line. */
static psd_status_t try_lines(const ps_parser_t *parser, const char *path, ps_line_t text,
                              psd_error_t *err)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    size_t at = 0;
    size_t number = 0;
    size_t first = 0; /* the number of the first bad line; 0: there is none */

    if (samples == NULL || why == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a reader");
    }
    samples->entries = parser->entries;
    for (ps_line_t line = ps_text_line(text, &at); line.text != NULL;
         line = ps_text_line(text, &at)) {
        psd_status_t rc = parser->format->parse(parser, line, samples, first == 0 ? why : NULL);

        number++;
        if (rc == PSD_NOMEM) {
            return psd_error_set(err, rc, "no memory for a sample");
        }
        if (rc == PSD_OK && psd_samples_count(samples) > 0) {
            return PSD_OK;
        }
        if (rc != PSD_OK) {
            ps_samples_clear(samples);
            first = first == 0 ? number : first;
        }
    }
    return first == 0 ? PSD_OK
                      : psd_error_set(err, PSD_INVALID,
                                      "%s: its first lines look like %s, but none of them is a "
                                      "sample (line %zu: %s); name its format",
                                      path, parser->format->name, first, psd_error_text(why));
}

static psd_status_t look_at(psd_reader_t *self, const char *path, ps_line_t text, psd_error_t *err)
{
    bool guessed = self->parser.format == NULL;

    if (guessed) {
        self->parser.format = ps_sample_format_guess(text);
    }
    if (self->parser.format == NULL) {
        return refuse_format(path, text, err);
    }
    self->parser.entries_set = self->parser.entries_set && self->parser.format->entries_open;
    if (!self->parser.entries_set) {
        self->parser.entries = self->parser.format->entries;
    }
    if (self->parser.format->look != NULL) {
        self->parser.format->look(&self->parser, text);
    }
    return guessed ? try_lines(&self->parser, path, text, err) : PSD_OK;
}

/* The first lines of input i: on its way where it is read once only, and is
 * open; else on a way of their own, from the very beginning. */
static psd_status_t peek(psd_reader_t *self, size_t i, ps_lines_t *own, ps_line_t *ret_text,
                         psd_error_t *err)
{
    ps_lines_t *lines = own;
    psd_status_t rc = PSD_OK;

    if (i == 0 && ps_source_size(self->lines.source) == 0) {
        lines = &self->lines;
    } else {
        rc = ps_lines_open(own, self->inputs.paths[i], (ps_share_t){0, 1}, err);
    }
    return rc == PSD_OK ? ps_lines_peek(lines, LOOK_LINES, LOOK_BYTES, ret_text, err) : rc;
}

/* Looks at the first input that is not empty; not at a pipe after another
 * input, because a pipe cannot be read again. */
static psd_status_t find_lines(psd_reader_t *self, psd_error_t *err)
{
    const ps_sample_format_t *format = self->parser.format;

    if (format != NULL && format->look == NULL) {
        return look_at(self, self->inputs.paths[0], (ps_line_t){.text = "\n"}, err);
    }
    for (size_t i = 0;; i++) {
        PSD_AUTO(ps_lines_done) ps_lines_t own = {0};
        ps_line_t text = {0};
        psd_status_t rc = peek(self, i, &own, &text, err);

        if (rc != PSD_OK) {
            return rc;
        }
        if (!is_blank(text) || i + 1 == self->inputs.n ||
            strcmp(self->inputs.paths[i + 1], "-") == 0) {
            return look_at(self, self->inputs.paths[i], text, err);
        }
    }
}

/* Is the first input in which anything is of a format without lines? Pipes are
 * not looked at, for they cannot be read again. */
psd_status_t ps_reader_look_for_feed(psd_reader_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_window_done) ps_byte_window_t window = {0};
    const uint8_t *head = NULL;
    size_t i = 0;
    size_t size = 0;
    psd_status_t rc = PSD_OK;

    for (;; i++) {
        struct stat about;

        if (i == self->inputs.n) {
            return PSD_OK;
        }
        if (stat(self->inputs.paths[i], &about) == 0 && S_ISREG(about.st_mode) &&
            about.st_size > 0) {
            break;
        }
    }
    rc = ps_window_open(&window, self->inputs.paths[i], err);
    if (rc == PSD_OK) {
        rc = ps_window_peek(&window, PS_FEED_HEAD, &head, &size, err);
    }
    if (rc == PSD_OK) {
        self->parser.format = ps_sample_format_know(self->inputs.paths[i], head, size);
    }
    return rc;
}

static psd_status_t refuse_rows(const psd_reader_t *self, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "rows are asked for by number, but %s files do not say where they are",
                         self->parser.format->name);
}

/* A format without lines is set up by its first input. */
psd_status_t ps_reader_look_at_feed(psd_reader_t *self, psd_error_t *err)
{
    const ps_feed_kind_t *kind = self->parser.format->feed;

    self->kind = kind;
    if (self->parser.end != 0 && !kind->has_rows) {
        return refuse_rows(self, err);
    }
    self->why = psd_error_new();
    if (self->why == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a reader");
    }
    self->parser.entries = self->parser.format->entries;
    return kind->look == NULL ? PSD_OK : kind->look(&self->parser, self->inputs.paths[0], err);
}

psd_status_t ps_reader_look_at_lines(psd_reader_t *self, psd_error_t *err)
{
    psd_status_t rc = find_lines(self, err);

    return rc == PSD_OK && self->parser.end != 0 ? refuse_rows(self, err) : rc;
}
