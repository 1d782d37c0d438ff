/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_reader - one input after another, its lines or records made samples
 *
 * The input is opened even if its samples are in a parse cache: when the cache
 * turns out to be damaged, the reader parses the input from its beginning, and
 * skips the samples that it has returned already.
 */
#include "data/feed/reader.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "transport/threads/fork.h"

#define BAD_KEPT PS_PARSE_BAD_KEPT

/* ---- opening ---- */

/* The cache of the open input; reads it if it is valid (and not made again). */
static psd_status_t open_cache(psd_reader_t *self, bool anew, psd_error_t *err)
{
    const ps_parse_what_t what = {.path = self->inputs.paths[self->next - 1],
                                  .directory = self->options.cache_directory,
                                  .parser = &self->parser,
                                  .share = self->options.share,
                                  .merge = self->options.merge,
                                  .strict = self->options.strict,
                                  .since = self->since};
    bool wanted = what.directory != NULL && self->looked && self->options.max_lines == 0 &&
                  (self->kind == NULL || !self->kind->needs_no_parsing);

    return wanted ? ps_parse_cache_open(&what, anew, &self->cache, self->warning, err) : PSD_OK;
}

static bool is_cached(const psd_reader_t *self)
{
    return self->cache != NULL && ps_parse_cache_is_read(self->cache);
}

static psd_status_t open_next(psd_reader_t *self, psd_error_t *err)
{
    const ps_feed_kind_t *kind = self->kind;
    const char *path = self->inputs.paths[self->next];
    psd_status_t rc = kind != NULL
                          ? kind->open(&self->parser, path, self->options.share, &self->feed, err)
                          : ps_lines_open(&self->lines, path, self->options.share, err);

    if (rc == PSD_OK) {
        self->next++;
        self->n_lines = 0;
        self->n_given = 0;
        self->n_skipped = 0;
        self->bad_before = self->n_bad;
        self->is_open = true;
        rc = open_cache(self, false, err);
    }
    return rc;
}

/* Bytes taken of the input that is open. */
static uint64_t taken(const psd_reader_t *self)
{
    if (is_cached(self) && self->kind == NULL) {
        return (uint64_t)(ps_parse_cache_taken(self->cache) *
                          (double)ps_source_size(self->lines.source));
    }
    return self->kind != NULL ? self->kind->taken(self->feed) : ps_source_taken(self->lines.source);
}

static void close_input(psd_reader_t *self)
{
    uint64_t size = self->kind != NULL ? 0 : ps_source_size(self->lines.source);

    self->done_bytes += size != 0 ? size : taken(self);
    if (self->kind != NULL) {
        self->kind->close(&self->feed);
    } else {
        ps_lines_done(&self->lines);
    }
    ps_parse_cache_close(&self->cache);
    self->is_open = false;
}

static psd_status_t open_first(psd_reader_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->parser.format == NULL) {
        rc = ps_reader_look_for_feed(self, err);
    }
    if (rc == PSD_OK && self->parser.format != NULL && self->parser.format->feed != NULL) {
        rc = ps_reader_look_at_feed(self, err);
        self->looked = true;
        return rc == PSD_OK ? open_next(self, err) : rc;
    }
    if (rc == PSD_OK) {
        rc = open_next(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_reader_look_at_lines(self, err);
    }
    self->looked = true;
    return rc == PSD_OK ? open_cache(self, false, err) : rc;
}

/* Loads and makes what the options ask for. */
static psd_status_t set_up(psd_reader_t *self, psd_error_t *err)
{
    self->parser = self->options.parser;
    self->parser.format = self->options.format;
    if (self->options.cache_directory != NULL) {
        self->warning = psd_error_new();
        if (self->warning == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a reader");
        }
        (void)clock_gettime(CLOCK_REALTIME, &self->since);
    }
    if (self->parser.vocabulary_path != NULL) {
        psd_status_t rc = psd_vocabulary_read(self->parser.vocabulary_path, &self->vocabulary, err);

        self->parser.vocabulary = self->vocabulary;
        return rc;
    }
    return PSD_OK;
}

/* Begins a public call: empties err. Errors: PSD_CLOSED: how far its files are
 * read is the parent process's affair. */
static psd_status_t enter(const psd_reader_t *self, psd_error_t *err)
{
    psd_error_clear(err);
    return ps_fork_is_since(self->n_forks) ? ps_fork_error("reader", err) : PSD_OK;
}

psd_status_t psd_reader_open(const char *const *paths, size_t n_paths,
                             const psd_reader_options_t *options, psd_reader_t **ret_reader,
                             psd_error_t *err)
{
    psd_error_clear(err);

    PSD_AUTO(psd_reader_close) psd_reader_t *self = NULL;
    psd_status_t rc = PSD_OK;

    if (n_paths == 0) {
        return psd_error_set(err, PSD_INVALID, "no path to read from");
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a reader");
    }
    self->n_forks = ps_fork_count();
    if (!ps_reader_options_copy(options, &self->options)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a reader");
    }
    rc = set_up(self, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_inputs_find(&self->inputs, paths, n_paths, err);
    if (rc == PSD_OK) {
        rc = open_first(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_reader = self;
    self = NULL;
    return PSD_OK;
}

void psd_reader_close(psd_reader_t **self_p)
{
    psd_reader_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    if (self->feed != NULL) {
        self->kind->close(&self->feed);
    }
    ps_parse_cache_close(&self->cache);
    psd_error_destroy(&self->warning);
    ps_lines_done(&self->lines);
    ps_inputs_done(&self->inputs);
    ps_reader_options_done(&self->options);
    psd_vocabulary_destroy(&self->vocabulary);
    psd_error_destroy(&self->why);
    for (size_t i = 0; i < BAD_KEPT; i++) {
        psd_error_destroy(&self->bad[i]);
    }
    ps_free(self);
    *self_p = NULL;
}

/* ---- reading ---- */

/* Puts the line's place in front of what is wrong with it. PSD_NOMEM, else
 * `why`. */
static psd_status_t name_place(psd_reader_t *self, psd_status_t why, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t place = {0};

    if (!ps_lines_place(&self->lines, &place)) {
        psd_error_clear(err);
        return psd_error_set(err, PSD_NOMEM, "no memory for what is wrong");
    }
    return psd_error_wrap(err, why, "%s", (const char *)place.data);
}

/* Says with a bad line's error that the format was guessed, if it was: it may
 * be the guess that is wrong. PSD_NOMEM, else `why`. */
static psd_status_t name_guess(const psd_reader_t *self, psd_status_t why, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    bool printed = false;

    if (self->options.format != NULL || why != PSD_INVALID) {
        return why;
    }
    printed =
        ps_buffer_print(&text, "%s; the format was guessed as %s; if it is another one, name it",
                        psd_error_text(err), self->parser.format->name);
    psd_error_clear(err);
    return printed ? psd_error_set(err, why, "%s", (const char *)text.data)
                   : psd_error_set(err, PSD_NOMEM, "no memory for what is wrong");
}

/* Counts a bad line and keeps what is wrong with the first ones. */
static psd_status_t note_bad(psd_reader_t *self, ps_line_t line, psd_samples_t *samples,
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

static void note_label(psd_reader_t *self, float label)
{
    psd_labels_t kind = ps_sample_label_kind(label);

    self->labels = kind > self->labels ? kind : self->labels;
}

/* What holds for the samples of all formats. */
static psd_status_t finish_sample(psd_reader_t *self, psd_samples_t *samples)
{
    note_label(self, samples->labels[samples->n - 1]);
    return self->options.merge && !ps_samples_merge(samples) ? PSD_NOMEM : PSD_OK;
}

static psd_status_t take_line(psd_reader_t *self, ps_line_t line, psd_samples_t *samples,
                              psd_error_t *err)
{
    ps_samples_mark_t mark = ps_samples_mark(samples);
    /* Most bad lines need no words: only those that are kept, or returned. */
    psd_status_t rc =
        self->parser.format->parse(&self->parser, line, samples, self->options.strict ? err : NULL);

    if (rc == PSD_OK && samples->n > mark.n) {
        rc = finish_sample(self, samples);
    }
    if (rc == PSD_OK) {
        return PSD_OK;
    }
    ps_samples_go_back(samples, mark);
    if (rc != PSD_INVALID) {
        return rc == PSD_NOMEM ? ps_sample_no_memory(line.size, err) : rc;
    }
    return self->options.strict ? name_guess(self, name_place(self, rc, err), err)
                                : note_bad(self, line, samples, err);
}

/* Counts a feed's bad sample, and keeps what is wrong with the first ones. */
static psd_status_t note_bad_sample(psd_reader_t *self, psd_error_t *err)
{
    if (self->n_bad < BAD_KEPT) {
        self->bad[self->n_bad] = self->why;
        self->why = psd_error_new();
    }
    self->n_bad++;
    return self->why != NULL ? PSD_OK
                             : psd_error_set(err, PSD_NOMEM, "no memory for what is wrong");
}

/* The next sample of a feed, or the end. */
static psd_status_t take_sample(psd_reader_t *self, psd_samples_t *samples, bool *ret_end,
                                psd_error_t *err)
{
    ps_samples_mark_t mark = ps_samples_mark(samples);
    psd_status_t rc = PSD_OK;

    psd_error_clear(self->why);
    rc = self->kind->next(self->feed, samples, self->why);
    *ret_end = rc == PSD_OK && samples->n == mark.n;
    if (rc == PSD_OK && !*ret_end) {
        rc = finish_sample(self, samples);
        return rc == PSD_OK ? rc : ps_sample_no_memory(0, err);
    }
    if (rc == PSD_OK) {
        return rc;
    }
    ps_samples_go_back(samples, mark);
    return rc == PSD_INVALID && !self->options.strict
               ? note_bad_sample(self, err)
               : psd_error_set(err, rc, "%s", psd_error_text(self->why));
}

/* ---- reading from a cache, and making it ---- */

/* What was bad when the cache was made. */
static psd_status_t take_bad(psd_reader_t *self, psd_error_t *err)
{
    const char *text = NULL;

    for (size_t i = 0; i < BAD_KEPT && self->n_bad + i < BAD_KEPT &&
                       (text = ps_parse_cache_bad(self->cache, i)) != NULL;
         i++) {
        psd_error_t *why = psd_error_new();

        if (why == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for what is wrong");
        }
        (void)psd_error_set(why, PSD_INVALID, "%s", text);
        self->bad[self->n_bad + i] = why;
    }
    self->n_bad += ps_parse_cache_bad_count(self->cache);
    return PSD_OK;
}

/* Samples of the cache, up to a maximum in the batch, or the end. A damaged
 * cache is made again from the input, which is still at its beginning. */
static psd_status_t take_cached(psd_reader_t *self, size_t max_samples, psd_samples_t *samples,
                                bool *ret_end, psd_error_t *err)
{
    size_t before = samples->n;
    psd_status_t rc =
        ps_parse_cache_next(self->cache, max_samples - before, samples, self->warning);

    if (rc == PSD_DAMAGED) {
        self->n_skipped = self->n_given;
        ps_parse_cache_close(&self->cache);
        return open_cache(self, true, err);
    }
    if (rc != PSD_OK) {
        return psd_error_set(err, rc, "%s", psd_error_text(self->warning));
    }
    for (size_t i = before; i < samples->n; i++) {
        note_label(self, samples->labels[i]);
    }
    self->n_given += samples->n - before;
    *ret_end = samples->n == before;
    return *ret_end ? take_bad(self, err) : PSD_OK;
}

/* Adds what was parsed last to the cache that is made; takes it back where it
 * was given before. */
static void keep_sample(psd_reader_t *self, psd_samples_t *samples, ps_samples_mark_t mark)
{
    if (samples->n == mark.n) {
        return;
    }
    if (self->cache != NULL) {
        ps_parse_cache_add(self->cache, samples);
    }
    if (self->n_skipped > 0) {
        self->n_skipped--;
        ps_samples_go_back(samples, mark);
    }
}

/* All of the input was parsed. A cache has what was wrong with its first bad
 * lines: if that was not kept, there is none. */
static void keep_cache(psd_reader_t *self)
{
    uint64_t n = self->n_bad - self->bad_before;
    uint64_t n_texts = n < BAD_KEPT ? n : BAD_KEPT;

    if (self->cache != NULL && self->bad_before <= BAD_KEPT &&
        n_texts <= BAD_KEPT - self->bad_before) {
        ps_parse_cache_keep(self->cache, n, self->bad + self->bad_before, self->warning);
    }
}

/* The next line or sample of the open input, or its end. */
static psd_status_t take_next(psd_reader_t *self, psd_samples_t *samples, bool *ret_end,
                              psd_error_t *err)
{
    ps_line_t line = {0};
    psd_status_t rc = PSD_OK;

    if (self->options.max_lines != 0 && self->n_lines >= self->options.max_lines) {
        *ret_end = true;
        return PSD_OK;
    }
    self->n_lines++;
    if (self->kind != NULL) {
        return take_sample(self, samples, ret_end, err);
    }
    rc = ps_lines_next(&self->lines, &line, err);
    *ret_end = line.text == NULL;
    return rc == PSD_OK && !*ret_end ? take_line(self, line, samples, err) : rc;
}

static psd_status_t parse_next(psd_reader_t *self, psd_samples_t *samples, bool *ret_end,
                               psd_error_t *err)
{
    ps_samples_mark_t mark = ps_samples_mark(samples);
    psd_status_t rc = take_next(self, samples, ret_end, err);

    if (rc == PSD_OK) {
        keep_sample(self, samples, mark);
    }
    if (rc == PSD_OK && *ret_end) {
        keep_cache(self);
    }
    return rc;
}

psd_status_t psd_reader_next(psd_reader_t *self, size_t max_samples, psd_samples_t *samples,
                             psd_error_t *err)
{
    if (enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = PSD_OK;

    ps_samples_clear(samples);
    samples->entries = self->parser.entries;
    while (rc == PSD_OK && samples->n < max_samples) {
        bool ended = false;

        if (self->is_open && is_cached(self)) {
            rc = take_cached(self, max_samples, samples, &ended, err);
        } else if (self->is_open) {
            rc = parse_next(self, samples, &ended, err);
        } else if (self->next < self->inputs.n) {
            rc = open_next(self, err);
        } else {
            break;
        }
        if (rc == PSD_OK && ended) {
            close_input(self);
        }
    }
    self->n_samples += samples->n;
    return rc;
}

const char *psd_reader_format(const psd_reader_t *self)
{
    return self->parser.format->name;
}

const psd_vocabulary_t *psd_reader_vocabulary(const psd_reader_t *self)
{
    return self->vocabulary;
}

psd_labels_t psd_reader_labels(const psd_reader_t *self)
{
    return self->labels;
}

uint64_t psd_reader_bytes(const psd_reader_t *self, uint64_t *ret_total)
{
    *ret_total = self->inputs.bytes;
    return self->done_bytes + (self->is_open ? taken(self) : 0);
}

uint64_t psd_reader_sample_count(const psd_reader_t *self)
{
    return self->n_samples;
}

uint64_t psd_reader_bad_count(const psd_reader_t *self)
{
    return self->n_bad;
}

const char *psd_reader_bad(const psd_reader_t *self, size_t i)
{
    return i < BAD_KEPT && self->bad[i] != NULL ? psd_error_text(self->bad[i]) : NULL;
}

const char *psd_reader_warning(const psd_reader_t *self)
{
    return self->warning != NULL && psd_error_status(self->warning) != PSD_OK
               ? psd_error_text(self->warning)
               : NULL;
}
