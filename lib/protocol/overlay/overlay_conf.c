/* SPDX-License-Identifier: Apache-2.0 */
/* Line by line, each setting once. */
#include "protocol/overlay/overlay_conf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define WORDS_MAX 4
#define LINE_MAX 256

typedef struct number_row {
    const char *name;
    size_t offset; /* of its member */
    double least;
    double most;
    double otherwise;
} number_row_t;

static const number_row_t NUMBERS[] = {
#define X(name, member, least, most, otherwise) \
    {name, offsetof(ps_overlay_conf_t, member), least, most, otherwise},
    PS_OVERLAY_NUMBERS(X)
#undef X
};
#define N_NUMBERS (sizeof NUMBERS / sizeof NUMBERS[0])

static const char *const ALL_WORDS[] = {"ADD_CONNECTION", "REMOVE_CONNECTION",
#define X(name, member, least, most, otherwise) name,
                                        PS_OVERLAY_NUMBERS(X)
#undef X
                                            NULL};

static ps_overlay_number_t *number_of(ps_overlay_conf_t *self, const number_row_t *row)
{
    return (ps_overlay_number_t *)(void *)((char *)self + row->offset);
}

void ps_overlay_conf_init(ps_overlay_conf_t *self)
{
    memset(self, 0, sizeof *self);
    for (size_t i = 0; i < N_NUMBERS; i++) {
        number_of(self, &NUMBERS[i])->value = NUMBERS[i].otherwise;
    }
}

void ps_overlay_conf_done(ps_overlay_conf_t *self)
{
    ps_free(self->edges);
    self->edges = NULL;
    self->n_edges = 0;
}

/* ---- reading ---- */

typedef struct reader {
    ps_overlay_conf_t conf;
    size_t capacity; /* edges */
    const char *place;
    uint32_t n_workers;
    uint32_t line;
    char text[LINE_MAX]; /* of the line, cut into words */
    char *words[WORDS_MAX];
    size_t n_words;
} reader_t;

static void reader_done(reader_t *self)
{
    ps_overlay_conf_done(&self->conf);
}

static psd_status_t cut_words(reader_t *self, const char *text, size_t length, psd_error_t *err)
{
    if (length >= LINE_MAX || memchr(text, '\0', length) != NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu32 ": a line of at most %d bytes of text is allowed",
                             self->place, self->line, LINE_MAX - 1);
    }
    memcpy(self->text, text, length);
    self->text[length] = '\0';
    self->n_words = 0;

    char *rest = NULL;

    for (char *word = strtok_r(self->text, " \t\r", &rest);
         word != NULL && self->n_words < WORDS_MAX; word = strtok_r(NULL, " \t\r", &rest)) {
        self->words[self->n_words++] = word;
    }
    return PSD_OK;
}

/* "every word is there, and no other": the line has a name and n values. */
static psd_status_t check_count(const reader_t *self, size_t n, const char *form, psd_error_t *err)
{
    if (self->n_words == n + 1) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID, "%s:%" PRIu32 ": %s has %s; it is \"%s %s\"",
                         self->place, self->line, self->words[0],
                         self->n_words <= n ? "too few words" : "too many words", self->words[0],
                         form);
}

static psd_status_t read_number(reader_t *self, const number_row_t *row, psd_error_t *err)
{
    ps_overlay_number_t *number = number_of(&self->conf, row);
    bool is_whole = row->most > 1;
    double most = row->most;
    double value = 0;
    psd_status_t rc = check_count(self, 1, is_whole ? "NUMBER" : "RATIO", err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (number->line != 0) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu32 ": %s again; it is set in line %" PRIu32 " already",
                             self->place, self->line, row->name, number->line);
    }
    if (row->offset == offsetof(ps_overlay_conf_t, num) && self->n_workers > 0) {
        most = self->n_workers;
    }
    if (!ps_text_f64(self->words[1], &value) || !(value >= row->least && value <= most) ||
        (is_whole && row->least >= 1 && value != floor(value))) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu32 ": %s is \"%s\"; a%s number from %g to %.0f is allowed",
                             self->place, self->line, row->name, self->words[1],
                             is_whole && row->least >= 1 ? " whole" : "", row->least, most);
    }
    *number = (ps_overlay_number_t){value, self->line};
    return PSD_OK;
}

static psd_status_t read_rank(const reader_t *self, const char *word, uint32_t *ret_rank,
                              psd_error_t *err)
{
    uint64_t rank = 0;
    uint64_t n = self->n_workers > 0 ? self->n_workers : PS_OVERLAY_RANKS;

    if (!ps_text_u64(word, &rank) || rank >= n) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu32 ": %s names \"%s\"; a worker's rank from 0 to %" PRIu64
                             " is allowed",
                             self->place, self->line, self->words[0], word, n - 1);
    }
    *ret_rank = (uint32_t)rank;
    return PSD_OK;
}

static psd_status_t check_edge(const reader_t *self, const ps_overlay_edge_t *edge,
                               psd_error_t *err)
{
    if (edge->from == edge->to) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu32 ": %s from worker %" PRIu32
                             " to itself; two workers are allowed",
                             self->place, self->line, self->words[0], edge->from);
    }
    for (size_t i = 0; i < self->conf.n_edges; i++) {
        const ps_overlay_edge_t *other = &self->conf.edges[i];

        if (other->is_cut == edge->is_cut && other->from == edge->from && other->to == edge->to) {
            return psd_error_set(err, PSD_INVALID,
                                 "%s:%" PRIu32 ": %s %s %s again; it stands in line %" PRIu32
                                 " already",
                                 self->place, self->line, self->words[0], self->words[1],
                                 self->words[2], other->line);
        }
    }
    if (self->conf.n_edges == PS_OVERLAY_EDGES_MAX) {
        return psd_error_set(err, PSD_INVALID, "%s:%" PRIu32 ": at most %u connections are allowed",
                             self->place, self->line, PS_OVERLAY_EDGES_MAX);
    }
    return PSD_OK;
}

static psd_status_t read_edge(reader_t *self, bool is_cut, psd_error_t *err)
{
    ps_overlay_edge_t edge = {.is_cut = is_cut, .line = self->line};
    psd_status_t rc = check_count(self, 2, "FROM TO", err);

    if (rc == PSD_OK) {
        rc = read_rank(self, self->words[1], &edge.from, err);
    }
    if (rc == PSD_OK) {
        rc = read_rank(self, self->words[2], &edge.to, err);
    }
    if (rc == PSD_OK) {
        rc = check_edge(self, &edge, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_grow(&self->conf.edges, &self->capacity, self->conf.n_edges + 1, sizeof edge)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu connections of %s",
                             self->conf.n_edges + 1, self->place);
    }
    self->conf.edges[self->conf.n_edges++] = edge;
    return PSD_OK;
}

static psd_status_t refuse_word(const reader_t *self, psd_error_t *err)
{
    const char *near = ps_text_suggest(self->words[0], ALL_WORDS);

    return psd_error_set(err, PSD_INVALID,
                         "%s:%" PRIu32 ": unknown setting \"%s\"; ADD_CONNECTION, "
                         "REMOVE_CONNECTION, SET_SCHEDULE_RATIO, SET_SCHEDULE_NUM and "
                         "SET_BANDWIDTH_EXPIRATION are allowed%s%s%s",
                         self->place, self->line, self->words[0],
                         near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                         near != NULL ? "?" : "");
}

static psd_status_t read_line(reader_t *self, psd_error_t *err)
{
    const char *name = self->words[0];

    if (strcmp(name, "ADD_CONNECTION") == 0) {
        return read_edge(self, false, err);
    }
    if (strcmp(name, "REMOVE_CONNECTION") == 0) {
        return read_edge(self, true, err);
    }
    for (size_t i = 0; i < N_NUMBERS; i++) {
        if (strcmp(name, NUMBERS[i].name) == 0) {
            return read_number(self, &NUMBERS[i], err);
        }
    }
    return refuse_word(self, err);
}

/* What no single line can say. */
static psd_status_t check_together(const reader_t *self, psd_error_t *err)
{
    const ps_overlay_number_t *least = &self->conf.fan_in_least;
    const ps_overlay_number_t *most = &self->conf.fan_in_most;

    if (least->line != 0 && most->line != 0 && least->value > most->value) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu32 ": SET_MIN_RECEIVING_LIMIT is %.0f; at most the "
                             "SET_MAX_RECEIVING_LIMIT of line %" PRIu32 ", %.0f, is allowed",
                             self->place, least->line, least->value, most->line, most->value);
    }
    return PSD_OK;
}

psd_status_t ps_overlay_conf_read(ps_overlay_conf_t *self, const char *text, size_t length,
                                  const char *place, uint32_t n_workers, psd_error_t *err)
{
    PSD_AUTO(reader_done) reader_t reader = {.place = place, .n_workers = n_workers};
    psd_status_t rc = PSD_OK;

    ps_overlay_conf_init(&reader.conf);
    for (size_t at = 0; at < length && rc == PSD_OK;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t n = end != NULL ? (size_t)(end - (text + at)) : length - at;

        reader.line++;
        rc = cut_words(&reader, text + at, n, err);
        if (rc == PSD_OK && reader.n_words > 0 && reader.words[0][0] != '#') {
            rc = read_line(&reader, err);
        }
        at += n + 1;
    }
    if (rc == PSD_OK) {
        rc = check_together(&reader, err);
    }
    if (rc == PSD_OK) {
        ps_overlay_conf_done(self);
        *self = reader.conf;
        reader.conf.edges = NULL;
    }
    return rc;
}

/* ---- use ---- */

void ps_overlay_conf_may(const ps_overlay_conf_t *self, uint32_t from, ps_may_t *ret_may)
{
    memset(ret_may, 0, sizeof *ret_may);
    for (size_t i = 0; i < self->n_edges; i++) {
        const ps_overlay_edge_t *edge = &self->edges[i];

        if (edge->from == from) {
            ps_may_set(ret_may, edge->to, !edge->is_cut);
        }
    }
}

void ps_overlay_conf_fill(const ps_overlay_conf_t *self, ps_overlay_rules_t *rules)
{
    rules->num = self->num.line != 0 ? (uint32_t)self->num.value : 0;
    rules->ratio = self->ratio.value;
    rules->expiry = (uint32_t)self->expiry.value;
}
