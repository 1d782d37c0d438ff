/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - words between blanks, one document a line
 *
 * A word's key is the first half of its MurmurHash3 (x64_128, seed 0), or its
 * line in the vocabulary, if there is one; words that are not in it are left
 * out.
 * Entries are the words of the line, each once by ascending keys with its count
 * (sparse), or one for each word in the order of the text (binary). Bytes are
 * taken as they are: no conversion to lower case, no removal of commas.
 */
#include "data/formats/format.h"

#include <math.h>

#include "data/text/murmur.h"
#include "data/text/number.h"

static bool is_space(char c)
{
    return ps_is_blank(c) || c == '\v' || c == '\f';
}

/* false: the vocabulary lacks it. */
static bool find_key(const ps_parser_t *parser, const char *word, size_t size, uint64_t *ret_key)
{
    uint64_t halves[2];

    if (parser->vocabulary != NULL) {
        return psd_vocabulary_find(parser->vocabulary, word, size, ret_key);
    }
    ps_murmur_128(word, size, 0, halves);
    *ret_key = halves[0];
    return true;
}

static void take_words(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples)
{
    const char *at = line.text;
    const char *stop = line.text + line.size;

    while (at < stop) {
        const char *word = at;
        uint64_t key = 0;

        while (at < stop && !is_space(*at)) {
            at++;
        }
        if (at > word && find_key(parser, word, (size_t)(at - word), &key)) {
            ps_samples_add(samples, key, 1);
        }
        at++;
    }
}

/* Equal keys of the last sample, which stand side by side, become one. */
static void count_equal(psd_samples_t *samples)
{
    size_t first = samples->starts[samples->groups[samples->n - 1]];
    size_t end = first;

    for (size_t e = first; e < samples->n_entries; e++) {
        if (end > first && samples->keys[end - 1] == samples->keys[e]) {
            samples->values[end - 1] += 1; /* up to 2^24, where floats stop */
        } else {
            samples->keys[end] = samples->keys[e];
            samples->values[end++] = 1;
        }
    }
    samples->n_entries = end;
    samples->starts[samples->n_groups] = end;
}

static bool is_without_words(ps_line_t line)
{
    for (size_t i = 0; i < line.size; i++) {
        if (!is_space(line.text[i])) {
            return false;
        }
    }
    return true;
}

static psd_status_t parse(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples,
                          psd_error_t *err)
{
    if (is_without_words(line)) {
        return PSD_OK;
    }
    /* A word and the blank after it take at least two bytes. */
    if (!ps_samples_reserve(samples, 1, line.size / 2 + 1)) {
        return ps_sample_no_memory(line.size, err);
    }
    ps_samples_begin(samples, NAN);
    take_words(parser, line, samples);
    ps_samples_end_group(samples, 0);
    ps_samples_end(samples);
    if (parser->entries == PSD_ENTRIES_BINARY) {
        return PSD_OK;
    }
    if (!ps_samples_merge(samples)) {
        return ps_sample_no_memory(line.size, err);
    }
    count_equal(samples);
    return PSD_OK;
}

/* Any text fits, so "auto" never selects it. */
static bool fits(ps_line_t line)
{
    (void)line;
    return false;
}

static void look(ps_parser_t *parser, ps_line_t text)
{
    (void)text;
    if (!parser->entries_set || parser->entries == PSD_ENTRIES_DENSE) {
        parser->entries = PSD_ENTRIES_SPARSE;
    }
}

const ps_sample_format_t ps_sample_format_text = {
    .name = "text",
    .about = "word word …   (documents; words are hashed, or looked up)",
    .entries = PSD_ENTRIES_SPARSE,
    .entries_open = true,
    .fits = fits,
    .sureness = 0,
    .look = look,
    .parse = parse,
    .unlabelled = true,
};
