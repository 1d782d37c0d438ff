/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda-c - `N word:count …`, one document a line, as Blei's lda-c has it
 *
 * N is how many pairs follow; words are numbers from 0 and become keys, counts
 * are whole, also as `2.0`. A sample has one group, of id 0, and no label.
 * Words may stand in any order.
 */
#include "data/formats/format.h"

#include <inttypes.h>
#include <math.h>

#include "data/text/number.h"

#define PAIR "WORD:COUNT of two whole numbers, the count 1 .. 16777216"

/* Reads WORD:COUNT; NULL where there is none. */
static const char *take_pair(const char *at, uint64_t *ret_key, float *ret_value)
{
    uint64_t count = 0;

    at = ps_number_u64(at, ret_key);
    if (at == NULL || *at != ':') {
        return NULL;
    }
    at = ps_skip_point_zeros(ps_number_u64(at + 1, &count));
    if (!ps_is_behind_word(at) || count == 0 || count > PS_COUNT_MAX) {
        return NULL;
    }
    *ret_value = (float)count;
    return at;
}

static psd_status_t take_pairs(const ps_parser_t *parser, const char *at, psd_samples_t *samples,
                               psd_error_t *err)
{
    uint64_t n_words =
        parser->vocabulary == NULL ? UINT64_MAX : psd_vocabulary_count(parser->vocabulary);

    for (at = ps_skip_blanks(at); *at != '\n'; at = ps_skip_blanks(at)) {
        uint64_t key = 0;
        float value = 0;
        const char *end = take_pair(at, &key, &value);

        if (end == NULL) {
            return ps_sample_refuse(at, PAIR, err);
        }
        if (key >= n_words) {
            return psd_error_set(err, PSD_INVALID,
                                 "word %" PRIu64 " is not in the vocabulary of %" PRIu64
                                 " words, numbered from 0",
                                 key, n_words);
        }
        ps_samples_add(samples, key, value);
        at = end;
    }
    return PSD_OK;
}

static psd_status_t parse(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples,
                          psd_error_t *err)
{
    const char *start = ps_skip_blanks(line.text);
    const char *at = NULL;
    size_t before = samples->n_entries;
    uint64_t n = 0;
    psd_status_t rc = PSD_OK;

    if (*start == '\n') {
        return PSD_OK;
    }
    /* A pair and the blank before it take four bytes at least. */
    if (!ps_samples_reserve(samples, 1, line.size / 4 + 1)) {
        return ps_sample_no_memory(line.size, err);
    }
    at = ps_number_u64(start, &n);
    if (!ps_is_behind_word(at)) {
        return ps_sample_refuse(start, "how many words follow, a whole number", err);
    }
    ps_samples_begin(samples, NAN);
    rc = take_pairs(parser, at, samples, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (samples->n_entries - before != n) {
        return psd_error_set(err, PSD_INVALID, "it begins with %" PRIu64 ", but has %zu words", n,
                             samples->n_entries - before);
    }
    ps_samples_end_group(samples, 0);
    ps_samples_end(samples);
    return PSD_OK;
}

/* As many pairs as its first number says, and at least two: one pair after a 1
 * is also a libsvm line with that label. */
static bool fits(ps_line_t line)
{
    uint64_t n = 0;
    const char *at = ps_number_u64(ps_skip_blanks(line.text), &n);

    if (!ps_is_behind_word(at) || n < 2) {
        return false;
    }
    for (at = ps_skip_blanks(at); *at != '\n'; at = ps_skip_blanks(at)) {
        uint64_t key = 0;
        float value = 0;

        at = take_pair(at, &key, &value);
        if (at == NULL || n == 0) {
            return false;
        }
        n--;
    }
    return n == 0;
}

/* A document without words. */
static bool allows(ps_line_t line)
{
    uint64_t n = 1;
    const char *at = ps_number_u64(ps_skip_blanks(line.text), &n);

    return at != NULL && n == 0 && *ps_skip_blanks(at) == '\n';
}

static psd_status_t print(const psd_samples_t *samples, size_t i, ps_printed_t *before,
                          ps_buffer_t *out, psd_error_t *err)
{
    size_t first = samples->starts[samples->groups[i]];
    size_t end = samples->starts[samples->groups[i + 1]];
    bool room = ps_buffer_print(out, "%zu", end - first);

    (void)before;
    for (size_t e = first; room && e < end; e++) {
        if (!ps_sample_is_count(samples->values[e])) {
            return ps_sample_refuse_count(samples->values[e], err);
        }
        room = ps_buffer_print(out, " %" PRIu64 ":%" PRIu32, samples->keys[e],
                               (uint32_t)samples->values[e]);
    }
    return room && ps_buffer_append(out, "\n", 1) ? PSD_OK : ps_sample_no_memory(out->size, err);
}

const ps_sample_format_t ps_sample_format_lda_c = {
    .name = "lda-c",
    .about = "N word:count …   (documents; words are numbers from 0)",
    .entries = PSD_ENTRIES_SPARSE,
    .fits = fits,
    .allows = allows,
    .sureness = 3,
    .parse = parse,
    .print = print,
    .unlabelled = true,
};
