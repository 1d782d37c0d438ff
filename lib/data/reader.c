/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_reader - one input after another, its lines made samples
 *
 * The format, and what the first lines say of it, are found at the beginning of
 * the first input, so that all shares of it agree.
 */
#include "psd_data.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "data/format.h"
#include "data/inputs.h"
#include "data/number.h"

#define LOOK_LINES 1000
#define LOOK_BYTES ((size_t)4 << 20)
#define BAD_KEPT 10
#define BITS_DEFAULT 18
#define BITS_MAX 61

struct psd_reader_options {
    const ps_sample_format_t *format; /* NULL: auto */
    ps_share_t share;
    ps_parser_t parser;
    uint64_t max_lines; /* of each input; 0: all */
    bool strict;
    bool merge;
};

struct psd_reader {
    ps_inputs_t inputs;
    size_t next; /* input to open */
    bool is_open;
    ps_lines_t lines; /* of the open one */
    uint64_t n_lines; /* of it, taken so far */
    psd_reader_options_t options;
    ps_parser_t parser;
    psd_labels_t labels;
    uint64_t done_bytes; /* of inputs that are closed */
    uint64_t n_samples;
    uint64_t n_bad;
    psd_error_t *bad[BAD_KEPT]; /* owned */
};

/* ---- options ---- */

static const psd_reader_options_t DEFAULTS = {
    .share = {0, 1}, .parser = {.bits = BITS_DEFAULT, .constant = true}};

psd_reader_options_t *
psd_reader_options_new(void)
{
    psd_reader_options_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        *self = DEFAULTS;
    }
    return self;
}

void
psd_reader_options_destroy(psd_reader_options_t **self_p)
{
    ps_free(*self_p);
    *self_p = NULL;
}

psd_status_t
psd_reader_options_set_format(psd_reader_options_t *self,
                              const char *format,
                              psd_error_t *err)
{
    if (strcmp(format, "auto") == 0) {
        self->format = NULL;
        return PSD_OK;
    }
    return ps_sample_format_find(format, &self->format, err);
}

psd_status_t
psd_reader_options_set_share(psd_reader_options_t *self,
                             uint32_t part,
                             uint32_t n_parts,
                             psd_error_t *err)
{
    if (part >= n_parts) {
        return psd_error_set(err, PSD_INVALID,
                             "share %" PRIu32 " of %" PRIu32
                             "; shares count from 0",
                             part, n_parts);
    }
    self->share = (ps_share_t){part, n_parts};
    return PSD_OK;
}

void
psd_reader_options_set_strict(psd_reader_options_t *self, bool strict)
{
    self->strict = strict;
}

psd_status_t
psd_reader_options_set_entries(psd_reader_options_t *self,
                               psd_entries_t entries,
                               psd_error_t *err)
{
    /* A number of another language may be none of the enumeration's. */
    if ((unsigned)entries > PSD_ENTRIES_DENSE) {
        return psd_error_set(err, PSD_INVALID,
                             "%u is no kind of entries; 0, 1 and 2 are",
                             (unsigned)entries);
    }
    self->parser.entries = entries;
    self->parser.entries_set = true;
    return PSD_OK;
}

void
psd_reader_options_set_max_lines(psd_reader_options_t *self, uint64_t max_lines)
{
    self->max_lines = max_lines;
}

void
psd_reader_options_set_merge(psd_reader_options_t *self, bool merge)
{
    self->merge = merge;
}

psd_status_t
psd_reader_options_set_bits(psd_reader_options_t *self,
                            uint32_t bits,
                            psd_error_t *err)
{
    if (bits < 1 || bits > BITS_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "%" PRIu32 " bits of an index; 1 .. %d are "
                             "allowed",
                             bits, BITS_MAX);
    }
    self->parser.bits = bits;
    return PSD_OK;
}

void
psd_reader_options_set_constant(psd_reader_options_t *self, bool constant)
{
    self->parser.constant = constant;
}

void
psd_reader_options_set_hash_all(psd_reader_options_t *self, bool hash_all)
{
    self->parser.hash_all = hash_all;
}

/* ---- opening ---- */

static psd_status_t
open_next(psd_reader_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_lines_open(
        &self->lines, self->inputs.paths[self->next], self->options.share, err);

    if (rc == PSD_OK) {
        self->next++;
        self->n_lines = 0;
        self->is_open = true;
    }
    return rc;
}

static void
close_input(psd_reader_t *self)
{
    uint64_t size = ps_source_size(self->lines.source);

    self->done_bytes += size != 0 ? size : ps_source_taken(self->lines.source);
    ps_lines_done(&self->lines);
    self->is_open = false;
}

static psd_status_t
look_at(psd_reader_t *self, const char *path, ps_line_t text, psd_error_t *err)
{
    if (self->parser.format == NULL) {
        self->parser.format = ps_sample_format_guess(text);
    }
    if (self->parser.format == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "%s: its first lines are of no format that is "
                             "known; name the one that it has",
                             path);
    }
    self->parser.entries_set =
        self->parser.entries_set && self->parser.format->entries_open;
    if (!self->parser.entries_set) {
        self->parser.entries = self->parser.format->entries;
    }
    if (self->parser.format->look != NULL) {
        self->parser.format->look(&self->parser, text);
    }
    return PSD_OK;
}

/* The first lines of input i: on its way where it is read once only, and is
 * open; else on a way of their own, from the very beginning. */
static psd_status_t
peek(psd_reader_t *self,
     size_t i,
     ps_lines_t *own,
     ps_line_t *ret_text,
     psd_error_t *err)
{
    ps_lines_t *lines = own;
    psd_status_t rc = PSD_OK;

    if (i == 0 && ps_source_size(self->lines.source) == 0) {
        lines = &self->lines;
    } else {
        rc = ps_lines_open(own, self->inputs.paths[i], (ps_share_t){0, 1}, err);
    }
    return rc == PSD_OK
               ? ps_lines_peek(lines, LOOK_LINES, LOOK_BYTES, ret_text, err)
               : rc;
}

static bool
is_blank(ps_line_t text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (!ps_is_blank(text.text[i]) && text.text[i] != '\n') {
            return false;
        }
    }
    return true;
}

/* Looks at the first input in which anything is; at a pipe behind another input
 * not, for it cannot be read again. */
static psd_status_t
look(psd_reader_t *self, psd_error_t *err)
{
    const ps_sample_format_t *format = self->parser.format;

    if (format != NULL && format->look == NULL) {
        return look_at(self, self->inputs.paths[0], (ps_line_t){.text = "\n"},
                       err);
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

psd_status_t
psd_reader_open(const char *const *paths,
                size_t n_paths,
                const psd_reader_options_t *options,
                psd_reader_t **ret_reader,
                psd_error_t *err)
{
    PSD_AUTO(psd_reader_close) psd_reader_t *self = NULL;
    psd_status_t rc = PSD_OK;

    if (n_paths == 0) {
        return psd_error_set(err, PSD_INVALID, "no path to read from");
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a reader");
    }
    self->options = options == NULL ? DEFAULTS : *options;
    self->parser = self->options.parser;
    self->parser.format = self->options.format;
    rc = ps_inputs_find(&self->inputs, paths, n_paths, err);
    if (rc == PSD_OK) {
        rc = open_next(self, err);
    }
    if (rc == PSD_OK) {
        rc = look(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_reader = self;
    self = NULL;
    return PSD_OK;
}

void
psd_reader_close(psd_reader_t **self_p)
{
    psd_reader_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_lines_done(&self->lines);
    ps_inputs_done(&self->inputs);
    for (size_t i = 0; i < BAD_KEPT; i++) {
        psd_error_destroy(&self->bad[i]);
    }
    ps_free(self);
    *self_p = NULL;
}

/* ---- reading ---- */

/* Puts the line's place in front of what is wrong with it. PSD_NOMEM, else
 * `why`. */
static psd_status_t
name_place(psd_reader_t *self, psd_status_t why, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t place = {0};

    if (!ps_lines_place(&self->lines, &place)) {
        psd_error_clear(err);
        return psd_error_set(err, PSD_NOMEM, "no memory for what is wrong");
    }
    return psd_error_wrap(err, why, "%s", (const char *)place.data);
}

/* Counts a bad line and keeps what is wrong with the first ones. */
static psd_status_t
note_bad(psd_reader_t *self,
         ps_line_t line,
         psd_samples_t *samples,
         psd_error_t *err)
{
    size_t i = self->n_bad < BAD_KEPT ? (size_t)self->n_bad : BAD_KEPT;
    ps_samples_mark_t mark = ps_samples_mark(samples);
    psd_status_t rc = PSD_OK;

    self->n_bad++;
    if (i == BAD_KEPT) {
        return PSD_OK;
    }
    self->bad[i] = psd_error_new();
    if (self->bad[i] == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for what is wrong");
    }
    rc = self->parser.format->parse(&self->parser, line, samples, self->bad[i]);
    rc = name_place(self, rc, self->bad[i]);
    ps_samples_go_back(samples, mark);
    return rc == PSD_NOMEM ? psd_error_set(err, rc,
                                           "no memory for what is "
                                           "wrong")
                           : PSD_OK;
}

static void
note_label(psd_reader_t *self, float label)
{
    psd_labels_t kind = ps_sample_label_kind(label);

    self->labels = kind > self->labels ? kind : self->labels;
}

static psd_status_t
take_line(psd_reader_t *self,
          ps_line_t line,
          psd_samples_t *samples,
          psd_error_t *err)
{
    ps_samples_mark_t mark = ps_samples_mark(samples);
    /* Most bad lines need no words: only those that are kept, or returned. */
    psd_status_t rc = self->parser.format->parse(
        &self->parser, line, samples, self->options.strict ? err : NULL);

    if (rc == PSD_OK && samples->n > mark.n) {
        note_label(self, samples->labels[mark.n]);
        if (self->options.merge && !ps_samples_merge(samples)) {
            rc = PSD_NOMEM;
        }
    }
    if (rc == PSD_OK) {
        return PSD_OK;
    }
    ps_samples_go_back(samples, mark);
    if (rc != PSD_INVALID) {
        return rc == PSD_NOMEM ? ps_sample_no_memory(line.size, err) : rc;
    }
    return self->options.strict ? name_place(self, rc, err)
                                : note_bad(self, line, samples, err);
}

psd_status_t
psd_reader_next(psd_reader_t *self,
                size_t max_samples,
                psd_samples_t *samples,
                psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_samples_clear(samples);
    samples->entries = self->parser.entries;
    while (rc == PSD_OK && samples->n < max_samples) {
        ps_line_t line = {0};

        if (!self->is_open) {
            if (self->next == self->inputs.n) {
                break;
            }
            rc = open_next(self, err);
            continue;
        }
        if (self->options.max_lines == 0 ||
            self->n_lines < self->options.max_lines) {
            rc = ps_lines_next(&self->lines, &line, err);
            self->n_lines++;
        }
        if (rc == PSD_OK && line.text == NULL) {
            close_input(self);
        } else if (rc == PSD_OK) {
            rc = take_line(self, line, samples, err);
        }
    }
    self->n_samples += samples->n;
    return rc;
}

const char *
psd_reader_format(const psd_reader_t *self)
{
    return self->parser.format->name;
}

psd_labels_t
psd_reader_labels(const psd_reader_t *self)
{
    return self->labels;
}

uint64_t
psd_reader_bytes(const psd_reader_t *self, uint64_t *ret_total)
{
    *ret_total = self->inputs.bytes;
    return self->done_bytes +
           (self->is_open ? ps_source_taken(self->lines.source) : 0);
}

uint64_t
psd_reader_sample_count(const psd_reader_t *self)
{
    return self->n_samples;
}

uint64_t
psd_reader_bad_count(const psd_reader_t *self)
{
    return self->n_bad;
}

const char *
psd_reader_bad(const psd_reader_t *self, size_t i)
{
    return i < BAD_KEPT && self->bad[i] != NULL ? psd_error_text(self->bad[i])
                                                : NULL;
}
