/* SPDX-License-Identifier: Apache-2.0 */
/*
 * criteo - 40 columns between tabs: a label, 13 counts, 26 words
 *
 * +1 where the label is above 0, else -1; any other column may be empty, and
 * the last ones missing. A point and zeros may follow a count: programs that
 * read empty columns as NaN write them. Every value is 1. The count c of column
 * i < 13 is the key i × ⌊(2^64 - 1) / 13⌋ + c (mod 2^64, because some counts
 * are negative) of group i + 1. The word of column j < 26 has the key h of
 * group j + 14, where h is both halves of its hash, xored. Words of up to 4
 * bytes are skipped.
 *
 * Source   parameter_server's text parser; the hash is MurmurHash3 x64_128
 */
#include "data/formats/format.h"

#include <stdlib.h>
#include <string.h>

#include "data/text/murmur.h"
#include "data/text/number.h"

#define HASH_SEED 512927377
#define N_COUNTS 13
#define N_WORDS 26
#define SHORT_WORD 4

static const char *end_of_column(const char *at)
{
    while (*at != '\t' && *at != '\n' && *at != '\r') {
        at++;
    }
    return at;
}

/* The place after the tab that ends a column; the same place at the line's end. */
static const char *next_column(const char *end)
{
    return *end == '\t' ? end + 1 : end;
}

static psd_status_t take_counts(const char **at_p, psd_samples_t *samples, psd_error_t *err)
{
    const char *at = *at_p;

    for (uint64_t i = 0; i < N_COUNTS; i++) {
        const char *end = end_of_column(at);
        int64_t count = 0;

        if (end > at) {
            const char *stop = ps_number_i64(at, &count);

            if (ps_skip_point_zeros(stop) != end) {
                return ps_sample_refuse(at, "a count, a whole number", err);
            }
            ps_samples_add(samples, i * (UINT64_MAX / N_COUNTS) + (uint64_t)count, 1);
            ps_samples_end_group(samples, (int64_t)i + 1);
        }
        at = next_column(end);
    }
    *at_p = at;
    return PSD_OK;
}

static void take_words(const char **at_p, psd_samples_t *samples)
{
    const char *at = *at_p;

    for (int64_t i = 0; i < N_WORDS; i++) {
        const char *end = end_of_column(at);
        uint64_t halves[2];

        if (end - at > SHORT_WORD) {
            ps_murmur_128(at, (size_t)(end - at), HASH_SEED, halves);
            ps_samples_add(samples, halves[0] ^ halves[1], 1);
            ps_samples_end_group(samples, i + N_COUNTS + 1);
        }
        at = next_column(end);
    }
    *at_p = at;
}

static psd_status_t parse(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples,
                          psd_error_t *err)
{
    const char *at = line.text;
    const char *end = end_of_column(at);
    float label = 0;
    psd_status_t rc = PSD_OK;

    (void)parser;
    if (*ps_skip_blanks(at) == '\n') {
        return PSD_OK;
    }
    if (!ps_samples_reserve(samples, N_COUNTS + N_WORDS, N_COUNTS + N_WORDS)) {
        return ps_sample_no_memory(line.size, err);
    }
    if (ps_number_f32(at, &label) != end) {
        return ps_sample_refuse(at, "a label, a finite number", err);
    }
    if (*end != '\t') {
        return psd_error_set(err, PSD_INVALID, "it has no tab after its label");
    }
    ps_samples_begin(samples, label > 0 ? 1 : -1);
    at = next_column(end);
    rc = take_counts(&at, samples, err);
    if (rc != PSD_OK) {
        return rc;
    }
    take_words(&at, samples);
    if (*ps_skip_blanks(at) != '\n') {
        return psd_error_set(err, PSD_INVALID, "it has more than %d columns",
                             1 + N_COUNTS + N_WORDS);
    }
    ps_samples_end(samples);
    return PSD_OK;
}

static bool fits(ps_line_t line)
{
    size_t n_tabs = 0;

    for (size_t i = 0; i < line.size; i++) {
        n_tabs += line.text[i] == '\t' ? 1 : 0;
    }
    return n_tabs == N_COUNTS + N_WORDS;
}

const ps_sample_format_t ps_sample_format_criteo = {
    .name = "criteo",
    .about = "40 columns between tabs: label, 13 counts, 26 words",
    .entries = PSD_ENTRIES_BINARY,
    .fits = fits,
    .sureness = 3,
    .parse = parse,
};
