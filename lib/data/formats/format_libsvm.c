/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libsvm - `label [qid:N] key:value …`, one sample a line
 *
 * Keys do not descend within a line, and may have a + in front. Text after a #
 * is a comment; lines with nothing else are skipped. A label alone is a sample
 * without entries. Samples have one group, of id 0.
 */
#include "data/formats/format.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/text/number.h"

static bool is_end(const char *at)
{
    return *at == '\n' || *at == '#';
}

static psd_status_t refuse_entry(const char *at, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "\"%s\" is not KEY:VALUE of a whole number below 2^64 "
                         "and a finite number",
                         ps_sample_word(at));
}

/* Reads KEY:VALUE; NULL where there is none. A + in front of a key is what
 * other readers of this format pass over. */
static const char *take_entry(const char *at, uint64_t *ret_key, float *ret_value)
{
    at = ps_number_u64(*at == '+' ? at + 1 : at, ret_key);
    if (at == NULL || *at != ':') {
        return NULL;
    }
    at = ps_number_f32(at + 1, ret_value);
    return at != NULL && (ps_is_blank(*at) || is_end(at)) ? at : NULL;
}

static const char *take_query(const char *at, uint64_t *ret_query)
{
    /* Letter by letter: reads nothing after the first that differs. */
    if (at[0] != 'q' || at[1] != 'i' || at[2] != 'd' || at[3] != ':') {
        return at;
    }
    at = ps_number_u64(at + 4, ret_query);
    return at != NULL && (ps_is_blank(*at) || is_end(at)) ? at : NULL;
}

/* All entries from `at` to the end of the line. */
static psd_status_t take_entries(const char *at, psd_samples_t *samples, psd_error_t *err)
{
    uint64_t *keys = samples->keys;
    float *values = samples->values;
    size_t n = samples->n_entries;
    uint64_t last = 0;

    for (at = ps_skip_blanks(at); !is_end(at); at = ps_skip_blanks(at)) {
        const char *end = take_entry(at, keys + n, values + n);

        if (end == NULL) {
            return refuse_entry(at, err);
        }
        if (keys[n] < last) {
            return psd_error_set(err, PSD_INVALID,
                                 "key %" PRIu64 " after %" PRIu64 "; keys of a line must ascend",
                                 keys[n], last);
        }
        last = keys[n++];
        at = end;
    }
    samples->n_entries = n;
    return PSD_OK;
}

static psd_status_t parse(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples,
                          psd_error_t *err)
{
    const char *at = ps_skip_blanks(line.text);
    const char *start = at;
    float label = 0;
    psd_status_t rc = PSD_OK;

    (void)parser;
    if (is_end(at)) {
        return PSD_OK;
    }
    /* An entry and the blank before it take four bytes at least. */
    if (!ps_samples_reserve(samples, 1, line.size / 4 + 1)) {
        return ps_sample_no_memory(line.size, err);
    }
    at = ps_number_f32(at, &label);
    if (at == NULL || !(ps_is_blank(*at) || is_end(at))) {
        return psd_error_set(err, PSD_INVALID, "label \"%s\" is not a finite number",
                             ps_sample_word(start));
    }
    ps_samples_begin(samples, label);
    start = ps_skip_blanks(at);
    at = take_query(start, &samples->queries[samples->n]);
    if (at == NULL) {
        return psd_error_set(err, PSD_INVALID, "\"%s\" is not qid: and a whole number",
                             ps_sample_word(start));
    }
    rc = take_entries(at, samples, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_samples_end_group(samples, 0);
    ps_samples_end(samples);
    return PSD_OK;
}

/* The place after label and query, where both are there as they ought to be;
 * NULL: they are not. */
static const char *pass_head(ps_line_t line)
{
    float label = 0;
    uint64_t query = 0;
    const char *at = ps_number_f32(ps_skip_blanks(line.text), &label);

    if (at == NULL || !(ps_is_blank(*at) || is_end(at))) {
        return NULL;
    }
    at = take_query(ps_skip_blanks(at), &query);
    return at == NULL ? NULL : ps_skip_blanks(at);
}

static bool fits(ps_line_t line)
{
    const char *at = pass_head(line);
    uint64_t key = 0;
    float value = 0;

    return at != NULL && take_entry(at, &key, &value) != NULL;
}

/* A label alone: data sets have many, but so has a list of numbers. */
static bool allows(ps_line_t line)
{
    const char *at = pass_head(line);

    return at != NULL && is_end(at);
}

static psd_status_t print(const psd_samples_t *samples, size_t i, ps_printed_t *before,
                          ps_buffer_t *out, psd_error_t *err)
{
    size_t first = samples->groups[i];
    bool room = true;
    uint64_t last = 0;

    (void)before;
    if (isnan(samples->labels[i])) {
        return psd_error_set(err, PSD_INVALID,
                             "a sample without a label; libsvm lines begin "
                             "with one");
    }
    room = ps_sample_print_f32(out, samples->labels[i]);
    if (room && samples->queries[i] != 0) {
        room = ps_buffer_print(out, " qid:%" PRIu64, samples->queries[i]);
    }
    for (size_t e = samples->starts[first]; room && e < samples->starts[samples->groups[i + 1]];
         e++) {
        if (samples->keys[e] < last) {
            return psd_error_set(err, PSD_INVALID,
                                 "key %" PRIu64 " after %" PRIu64
                                 "; keys of libsvm lines must ascend",
                                 samples->keys[e], last);
        }
        last = samples->keys[e];
        room = ps_buffer_print(out, " %" PRIu64 ":", last) &&
               ps_sample_print_f32(out, samples->values[e]);
    }
    return room && ps_buffer_append(out, "\n", 1) ? PSD_OK : ps_sample_no_memory(out->size, err);
}

const ps_sample_format_t ps_sample_format_libsvm = {
    .name = "libsvm",
    .about = "label [qid:N] key:value …   # comment",
    .entries = PSD_ENTRIES_SPARSE,
    .fits = fits,
    .allows = allows,
    .sureness = 2,
    .parse = parse,
    .print = print,
    .holds_queries = true,
};
