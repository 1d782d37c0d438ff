/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv - numbers between commas, the first of a line its label
 *
 * One sample a line, dense: the values of column 1, 2, … have the keys 0, 1, ….
 * An empty label is none, an empty value 0; a number may be in quotes. The
 * first line of a file is skipped when it has names. That is: no cell is empty,
 * and either none is a number, or the first is a name for the label and the
 * others are numbers that count up from 0 or 1. All lines must have as many
 * columns as the first one with a sample. Texts are refused.
 */
#include "data/formats/format.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/text/number.h"

static bool is_end(const char *at)
{
    return *at == ',' || *at == '\n';
}

/* One cell; NULL when it is neither empty nor a number. */
static const char *take_cell(const char *at, float empty, float *ret_value)
{
    bool quoted = false;

    at = ps_skip_blanks(at);
    quoted = *at == '"';
    at = quoted ? ps_skip_blanks(at + 1) : at;
    if (quoted ? *at == '"' : is_end(at)) {
        *ret_value = empty;
    } else {
        at = ps_number_f32(at, ret_value);
    }
    if (at != NULL && quoted) {
        at = ps_skip_blanks(at);
        at = *at == '"' ? at + 1 : NULL;
    }
    if (at == NULL) {
        return NULL;
    }
    at = ps_skip_blanks(at);
    return is_end(at) ? at : NULL;
}

/* The place after the cell there, whatever is in it. */
static const char *pass_cell(const char *at)
{
    while (!is_end(at)) {
        at++;
    }
    return at;
}

/* Do the cells after the first one count up from 0 or 1? These are the names of
 * columns without names. */
static bool counts_up(const char *at)
{
    float next = NAN;

    for (at = pass_cell(at); *at == ','; at = pass_cell(at)) {
        float value = 0;

        if (take_cell(at + 1, NAN, &value) == NULL ||
            (isnan(next) ? value != 0 && value != 1 : value != next)) {
            return false;
        }
        next = value + 1;
        at++;
    }
    return !isnan(next);
}

/* Some cells of it have something, and none of them a number; or the label's
 * alone has none. */
static bool is_names(const char *start)
{
    bool any = false;

    for (const char *at = start;; at++) {
        float value = 0;

        if (take_cell(at, NAN, &value) == NULL) {
            any = true;
        } else if (!isnan(value)) {
            return take_cell(start, 0, &value) == NULL && counts_up(start);
        }
        at = pass_cell(at);
        if (*at == '\n') {
            return any;
        }
    }
}

static psd_status_t parse(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples,
                          psd_error_t *err)
{
    const char *at = line.text;
    float label = 0;
    uint64_t column = 0;
    const char *end = NULL;

    if (*ps_skip_blanks(at) == '\n' || (line.first && is_names(at))) {
        return PSD_OK;
    }
    if (!ps_samples_reserve(samples, 1, line.size + 1)) {
        return ps_sample_no_memory(line.size, err);
    }
    end = take_cell(at, NAN, &label);
    if (end == NULL) {
        return ps_sample_refuse_cell(at, "a label, a finite number", err);
    }
    ps_samples_begin(samples, label);
    while (*end == ',') {
        float value = 0;

        at = end + 1;
        end = take_cell(at, 0, &value);
        if (end == NULL) {
            return psd_error_set(err, PSD_INVALID,
                                 "\"%s\" in column %" PRIu64 " is not a finite number",
                                 ps_sample_cell(at), column + 2);
        }
        ps_samples_add(samples, column++, value);
    }
    if (parser->columns != 0 && column + 1 != parser->columns) {
        return psd_error_set(err, PSD_INVALID, "it has %" PRIu64 " columns; the first has %" PRIu64,
                             column + 1, parser->columns);
    }
    ps_samples_end_group(samples, 0);
    ps_samples_end(samples);
    return PSD_OK;
}

static uint64_t count_commas(ps_line_t line)
{
    uint64_t n = 0;

    for (size_t i = 0; i < line.size; i++) {
        n += line.text[i] == ',' ? 1 : 0;
    }
    return n;
}

static void look(ps_parser_t *parser, ps_line_t text)
{
    size_t next = 0;

    for (ps_line_t line = ps_text_line(text, &next); line.text != NULL;
         line = ps_text_line(text, &next)) {
        if (*ps_skip_blanks(line.text) != '\n' && !(line.first && is_names(line.text))) {
            parser->columns = count_commas(line) + 1;
            return;
        }
    }
}

static bool fits(ps_line_t line)
{
    float value = 0;

    return count_commas(line) > 0 && take_cell(line.text, 0, &value) != NULL;
}

static psd_status_t print(const psd_samples_t *samples, size_t i, ps_printed_t *before,
                          ps_buffer_t *out, psd_error_t *err)
{
    size_t first = samples->starts[samples->groups[i]];
    size_t end = samples->starts[samples->groups[i + 1]];
    bool room = true;

    if (!isnan(samples->labels[i])) {
        room = ps_sample_print_f32(out, samples->labels[i]);
    } else if (end == first) {
        room = ps_buffer_append(out, "\"\"", 2); /* or the line has nothing */
    }
    if (before->any && end - first != before->columns) {
        return psd_error_set(err, PSD_INVALID,
                             "a sample of %zu values after samples of %zu; all csv lines have the "
                             "same number of columns",
                             end - first, before->columns);
    }
    before->any = true;
    before->columns = end - first;
    for (size_t e = first; room && e < end; e++) {
        if (samples->keys[e] != e - first) {
            return psd_error_set(err, PSD_INVALID,
                                 "key %" PRIu64 " of a sample that is not dense; csv has a "
                                 "column for each key from 0",
                                 samples->keys[e]);
        }
        room = ps_buffer_append(out, ",", 1) && ps_sample_print_f32(out, samples->values[e]);
    }
    return room && ps_buffer_append(out, "\n", 1) ? PSD_OK : ps_sample_no_memory(out->size, err);
}

const ps_sample_format_t ps_sample_format_csv = {
    .name = "csv",
    .about = "label,value,value,…   (dense; a line of names in front)",
    .entries = PSD_ENTRIES_DENSE,
    .fits = fits,
    .sureness = 1,
    .look = look,
    .parse = parse,
    .print = print,
};
