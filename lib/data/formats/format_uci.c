/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uci - bags of words as the UCI repository has them (docword.txt)
 *
 * Three lines give the numbers of documents, words and entries. Each line after
 * them is `document word count`, both counted from 1, by ascending documents.
 * Sample i is document i + 1; it has no entries if no line names it. A word's
 * key is its number minus 1. Documents are found by number: by binary search in
 * plain files, from the front in compressed ones.
 */
#include "data/formats/feed.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "data/sinks/sink.h"
#include "data/text/number.h"

#define N_HEAD 3
#define DOCUMENTS_MAX (UINT64_C(1) << 32)
#define EMPTY_MAX (UINT64_C(1) << 20) /* documents that no line need name */
#define EMPTY_PER_ENTRY 64            /* and this many more for each entry */
#define ENTRIES_MAX ((size_t)1 << 24) /* of a document */
#define NEAR ((uint64_t)64 << 10)     /* bytes that are not worth a search */
#define NO_MORE UINT64_MAX

typedef struct entry {
    uint64_t sample; /* NO_MORE: there is no further one */
    uint64_t key;
    float value;
} entry_t;

struct ps_feed {
    const ps_parser_t *parser;
    ps_lines_t lines;
    uint64_t head[N_HEAD]; /* documents, words, entries */
    ps_rows_t rows;        /* samples that are wanted */
    uint64_t next;         /* the one that is given next */
    uint64_t last;         /* that a good line was of */
    uint64_t n_lines;      /* of entries, good or bad */
    bool waits;            /* `entry` was read and is not used yet */
    entry_t entry;
    uint64_t *keys; /* of the sample `next`, as far as it was read */
    float *values;
    size_t n, capacity;
};

/* ---- lines ---- */

/* A whole number and nothing else. */
static bool take_alone(const char *at, uint64_t *ret_value)
{
    at = ps_number_u64(ps_skip_blanks(at), ret_value);
    return at != NULL && *ps_skip_blanks(at) == '\n';
}

/* Three of them. */
static bool take_three(const char *at, uint64_t ret_values[3])
{
    for (int i = 0; i < 3; i++) {
        at = ps_number_u64(ps_skip_blanks(at), &ret_values[i]);
        if (!ps_is_behind_word(at)) {
            return false;
        }
    }
    return *ps_skip_blanks(at) == '\n';
}

static bool knows(const char *path, const uint8_t *head, size_t size)
{
    char text[PS_FEED_HEAD + 1];
    ps_line_t all = {.text = text, .size = size};
    ps_line_t line = {0};
    size_t at = 0;
    uint64_t values[3];

    (void)path;
    if (size > PS_FEED_HEAD) {
        return false;
    }
    memcpy(text, head, size);
    text[size] = '\n';
    for (int i = 0; i < N_HEAD; i++) {
        line = ps_text_line(all, &at);
        if (line.text == NULL || at > size + 1 || !take_alone(line.text, values)) {
            return false;
        }
    }
    line = ps_text_line(all, &at);
    return line.text == NULL || take_three(line.text, values);
}

/* Puts the line's place in front of what is wrong with it. */
static psd_status_t name_place(const ps_feed_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t place = {0};

    if (!ps_lines_place(&self->lines, &place)) {
        psd_error_clear(err);
        return psd_error_set(err, PSD_NOMEM, "no memory for what is wrong");
    }
    return psd_error_wrap(err, PSD_INVALID, "%s", (const char *)place.data);
}

/* What a line says; PSD_INVALID without its place. */
static psd_status_t take_entry(const ps_feed_t *self, const char *text, entry_t *ret_entry,
                               psd_error_t *err)
{
    uint64_t v[3] = {0};

    if (!take_three(text, v)) {
        return psd_error_set(err, PSD_INVALID,
                             "\"%s…\" is not DOCUMENT WORD COUNT, three whole "
                             "numbers",
                             ps_sample_word(ps_skip_blanks(text)));
    }
    if (v[0] < 1 || v[0] > self->head[0] || v[1] < 1 || v[1] > self->head[1]) {
        return psd_error_set(err, PSD_INVALID,
                             "document %" PRIu64 ", word %" PRIu64 "; there are %" PRIu64
                             " and %" PRIu64 ", counted from 1",
                             v[0], v[1], self->head[0], self->head[1]);
    }
    if (v[2] < 1 || v[2] > PS_COUNT_MAX) {
        return psd_error_set(err, PSD_INVALID, "count %" PRIu64 "; 1 .. %" PRIu32 " are allowed",
                             v[2], PS_COUNT_MAX);
    }
    if (v[0] - 1 < self->last) {
        return psd_error_set(err, PSD_INVALID,
                             "document %" PRIu64 " after %" PRIu64 "; documents must ascend", v[0],
                             self->last + 1);
    }
    *ret_entry = (entry_t){v[0] - 1, v[1] - 1, (float)v[2]};
    return PSD_OK;
}

/* Reads the next entry of a wanted sample, or of one after them. A bad line
 * before the first of them belongs to another share. */
static psd_status_t read_entry(ps_feed_t *self, psd_error_t *err)
{
    for (;;) {
        ps_line_t line = {0};
        psd_status_t rc = ps_lines_next(&self->lines, &line, err);

        if (rc != PSD_OK) {
            return rc;
        }
        if (line.text == NULL) {
            self->entry.sample = NO_MORE;
            break;
        }
        if (*ps_skip_blanks(line.text) == '\n') {
            continue;
        }
        self->n_lines++;
        rc = take_entry(self, line.text, &self->entry, err);
        if (rc != PSD_OK && self->last >= self->rows.first) {
            return name_place(self, err);
        }
        if (rc != PSD_OK) {
            psd_error_clear(err);
            continue;
        }
        self->last = self->entry.sample;
        if (self->last >= self->rows.first) {
            break;
        }
    }
    self->waits = true;
    return PSD_OK;
}

/* ---- opening ---- */

/* The maximum number of documents of a file with that number of entries. A
 * plain file has no more entries than bytes; a compressed one fewer than 64 for
 * each byte. */
static uint64_t documents_max(const ps_feed_t *self)
{
    uint64_t size = ps_source_size(self->lines.source);
    uint64_t n = self->head[2];

    n = size != 0 && size < n ? size : n;
    n = n < DOCUMENTS_MAX / EMPTY_PER_ENTRY ? EMPTY_MAX + n * EMPTY_PER_ENTRY : DOCUMENTS_MAX;
    return n < DOCUMENTS_MAX ? n : DOCUMENTS_MAX;
}

/* Documents without lines take no room in the file, but some as samples. Words
 * that come last in a vocabulary need not occur. */
static psd_status_t check_head(const ps_feed_t *self, psd_error_t *err)
{
    const char *path = ps_source_path(self->lines.source);
    const psd_vocabulary_t *vocabulary = self->parser->vocabulary;

    if (self->head[0] > DOCUMENTS_MAX) {
        return psd_error_set(err, PSD_LIMIT, "%s: %" PRIu64 " documents; 2^32 are allowed", path,
                             self->head[0]);
    }
    if (self->head[0] > documents_max(self)) {
        return psd_error_set(err, PSD_LIMIT,
                             "%s: %" PRIu64 " documents of %" PRIu64 " entries; %" PRIu64
                             " are allowed in a file of its size",
                             path, self->head[0], self->head[2], documents_max(self));
    }
    if (vocabulary != NULL && self->head[1] > psd_vocabulary_count(vocabulary)) {
        return psd_error_set(err, PSD_INVALID, "%s has %" PRIu64 " words, %s has %zu", path,
                             self->head[1], self->parser->vocabulary_path,
                             psd_vocabulary_count(vocabulary));
    }
    return PSD_OK;
}

static psd_status_t read_head(ps_feed_t *self, psd_error_t *err)
{
    static const char *const names[N_HEAD] = {"documents", "words", "entries"};

    for (int i = 0; i < N_HEAD; i++) {
        ps_line_t line = {0};
        psd_status_t rc = ps_lines_next(&self->lines, &line, err);

        if (rc != PSD_OK) {
            return rc;
        }
        if (line.text == NULL || !take_alone(line.text, &self->head[i])) {
            return psd_error_set(err, PSD_INVALID, "%s: line %d is not the number of %s",
                                 ps_source_path(self->lines.source), i + 1, names[i]);
        }
    }
    return check_head(self, err);
}

/* The sample of the first good line after that byte, or NO_MORE. */
static psd_status_t look_behind(ps_feed_t *self, uint64_t offset, uint64_t *ret_sample,
                                psd_error_t *err)
{
    psd_status_t rc = ps_lines_seek(&self->lines, offset, err);

    while (rc == PSD_OK) {
        ps_line_t line = {0};
        entry_t entry = {0};

        rc = ps_lines_next(&self->lines, &line, err);
        if (rc == PSD_OK && line.text == NULL) {
            *ret_sample = NO_MORE;
            return PSD_OK;
        }
        if (rc == PSD_OK && take_entry(self, line.text, &entry, NULL) == PSD_OK) {
            *ret_sample = entry.sample;
            return PSD_OK;
        }
    }
    return rc;
}

/* Goes near the first line that is wanted, from in front. */
static psd_status_t go_near(ps_feed_t *self, psd_error_t *err)
{
    uint64_t low = self->lines.offset;
    uint64_t high = ps_source_size(self->lines.source);
    psd_status_t rc = PSD_OK;

    if (self->rows.first == 0 || !ps_source_can_seek(self->lines.source) || low >= high) {
        return PSD_OK;
    }
    while (rc == PSD_OK && high - low > NEAR) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t sample = 0;

        rc = look_behind(self, middle, &sample, err);
        if (sample < self->rows.first) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return rc == PSD_OK ? ps_lines_seek(&self->lines, low, err) : rc;
}

static void close_feed(ps_feed_t **self_p)
{
    ps_feed_t *self = *self_p;

    if (self != NULL) {
        ps_lines_done(&self->lines);
        ps_free(self->keys);
        ps_free(self->values);
    }
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t open_feed(const ps_parser_t *parser, const char *path, ps_share_t share,
                              ps_feed_t **ret_feed, psd_error_t *err)
{
    PSD_AUTO(close_feed) ps_feed_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s", path);
    }
    self->parser = parser;
    rc = ps_lines_open(&self->lines, path, (ps_share_t){0, 1}, err);
    if (rc == PSD_OK) {
        rc = read_head(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->rows = ps_rows_of(parser, share, self->head[0]);
    self->next = self->rows.first;
    rc = go_near(self, err);
    if (rc == PSD_OK) {
        *ret_feed = self;
        self = NULL;
    }
    return rc;
}

/* ---- reading ---- */

static psd_status_t keep_entry(ps_feed_t *self, psd_error_t *err)
{
    size_t capacity = self->capacity == 0 ? 1024 : self->capacity * 2;

    if (self->n == ENTRIES_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "%s: document %" PRIu64 " has more than %zu "
                             "entries",
                             ps_source_path(self->lines.source), self->next + 1, ENTRIES_MAX);
    }
    if (self->n == self->capacity) {
        uint64_t *keys = ps_alloc_resize(self->keys, capacity, sizeof *keys);
        float *values = NULL;

        self->keys = keys == NULL ? self->keys : keys;
        values = ps_alloc_resize(self->values, capacity, sizeof *values);
        self->values = values == NULL ? self->values : values;
        if (keys == NULL || values == NULL) {
            return ps_sample_no_memory(capacity * sizeof *keys, err);
        }
        self->capacity = capacity;
    }
    self->keys[self->n] = self->entry.key;
    self->values[self->n++] = self->entry.value;
    self->waits = false;
    return PSD_OK;
}

static psd_status_t give(ps_feed_t *self, psd_samples_t *samples, psd_error_t *err)
{
    if (!ps_samples_reserve(samples, 1, self->n)) {
        return ps_sample_no_memory(self->n * sizeof *self->keys, err);
    }
    ps_samples_begin(samples, NAN);
    for (size_t e = 0; e < self->n; e++) {
        ps_samples_add(samples, self->keys[e], self->values[e]);
    }
    ps_samples_end_group(samples, 0);
    ps_samples_end(samples);
    self->n = 0;
    self->next++;
    return PSD_OK;
}

/* All of it was read: is it all that there was? */
static psd_status_t check_whole(const ps_feed_t *self, psd_error_t *err)
{
    bool whole = self->rows.first == 0 && self->rows.end == self->head[0] && self->waits &&
                 self->entry.sample == NO_MORE;

    if (!whole || self->n_lines == self->head[2]) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_DAMAGED,
                         "%s has %" PRIu64 " entries; its third line says "
                         "%" PRIu64,
                         ps_source_path(self->lines.source), self->n_lines, self->head[2]);
}

static psd_status_t next_sample(ps_feed_t *self, psd_samples_t *samples, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    /* After the last one, only a whole file is read to its end. */
    while (rc == PSD_OK) {
        if (!self->waits) {
            rc = read_entry(self, err);
        } else if (self->entry.sample == self->next && self->next < self->rows.end) {
            rc = keep_entry(self, err);
        } else {
            break;
        }
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return self->next < self->rows.end ? give(self, samples, err) : check_whole(self, err);
}

static uint64_t taken(const ps_feed_t *self)
{
    return ps_source_taken(self->lines.source);
}

static const ps_feed_kind_t FEED = {
    .has_rows = true,
    .knows = knows,
    .open = open_feed,
    .next = next_sample,
    .taken = taken,
    .close = close_feed,
};

const ps_sample_format_t ps_sample_format_uci = {
    .name = "uci",
    .about = "document word count   (docword.txt; three lines of totals first)",
    .entries = PSD_ENTRIES_SPARSE,
    .feed = &FEED,
    .sink = &ps_sink_uci,
    .unlabelled = true,
};
