/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps - the parameter server's text: `label; id entry entry …; id entry …;`
 *
 * One sample a line: a label, then groups, each with its id and one entry at
 * least. Entries are `key:value` (sparse), `key` (binary) or `value` (dense),
 * the same kind in all groups of a file. Labels are +1 and -1, whole numbers,
 * any number, or nothing at all. What they are, the first lines say, or the
 * caller; a line that does not fit is bad.
 */
#include "data/formats/format.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/text/number.h"

static const char *end_of_field(const char *at)
{
    while (*at != ';' && *at != '\n') {
        at++;
    }
    return at;
}

static bool is_end(const char *at)
{
    return *at == ';' || *at == '\n';
}

static bool is_behind_word(const char *at)
{
    return at != NULL && (ps_is_blank(*at) || is_end(at));
}

/* ---- what the first lines are ---- */

/* Widens what is known by the words of one group, its id left out. */
static void look_at_entries(const char *at, psd_entries_t *entries)
{
    uint64_t key = 0;

    for (; !is_end(at); at = ps_skip_blanks(at)) {
        const char *end = at;

        while (!ps_is_blank(*end) && !is_end(end) && *end != ':') {
            end++;
        }
        if (*end == ':') {
            *entries = PSD_ENTRIES_SPARSE;
            return;
        }
        if (ps_number_u64(at, &key) != end) {
            *entries = PSD_ENTRIES_DENSE;
        }
        at = end;
    }
}

static void look(ps_parser_t *parser, ps_line_t text)
{
    psd_entries_t entries = PSD_ENTRIES_BINARY;
    psd_labels_t labels = PSD_LABELS_NONE;
    size_t next = 0;

    for (ps_line_t line = ps_text_line(text, &next); line.text != NULL;
         line = ps_text_line(text, &next)) {
        const char *at = ps_skip_blanks(line.text);
        float label = 0;
        int64_t id = 0;
        const char *end = ps_number_f32(at, &label);

        if (end != NULL && ps_sample_label_kind(label) > labels) {
            labels = ps_sample_label_kind(label);
        }
        for (at = end_of_field(at); *at == ';' && entries != PSD_ENTRIES_SPARSE;
             at = end_of_field(at)) {
            at = ps_skip_blanks(at + 1);
            end = ps_number_i64(at, &id);
            if (is_behind_word(end)) {
                look_at_entries(ps_skip_blanks(end), &entries);
            }
        }
    }
    parser->labels = labels;
    if (!parser->entries_set) {
        parser->entries = entries;
    }
}

/* ---- a line ---- */

static psd_status_t take_label(const ps_parser_t *parser, const char **at_p, psd_samples_t *samples,
                               psd_error_t *err)
{
    const char *at = ps_skip_blanks(*at_p);
    const char *end = NULL;
    float label = NAN;

    if (!is_end(at)) {
        end = ps_number_f32(at, &label);
        if (!is_behind_word(end) || !is_end(ps_skip_blanks(end))) {
            return psd_error_set(err, PSD_INVALID, "label \"%s\" is not a finite number",
                                 ps_sample_cell(at));
        }
    }
    if (isnan(label) != (parser->labels == PSD_LABELS_NONE)) {
        return psd_error_set(err, PSD_INVALID, "%s",
                             isnan(label) ? "it has no label; the first lines have"
                                          : "it has a label; the first lines have none");
    }
    if (!isnan(label) && ps_sample_label_kind(label) > parser->labels) {
        return psd_error_set(err, PSD_INVALID, "label \"%s\" is not %s, as the first lines' are",
                             ps_sample_word(at),
                             parser->labels == PSD_LABELS_BINARY ? "1 or -1" : "a whole number");
    }
    ps_samples_begin(samples, label);
    *at_p = end == NULL ? at : ps_skip_blanks(end);
    return PSD_OK;
}

/* Reads one entry; NULL where there is none of this kind. */
static const char *take_entry(const char *at, psd_entries_t entries, uint64_t *key,
                              float *ret_value)
{
    if (entries == PSD_ENTRIES_DENSE) {
        return ps_number_f32(at, ret_value);
    }
    at = ps_number_u64(at, key);
    if (entries == PSD_ENTRIES_BINARY) {
        *ret_value = 1;
        return at;
    }
    return at != NULL && *at == ':' ? ps_number_f32(at + 1, ret_value) : NULL;
}

static psd_status_t take_group(const ps_parser_t *parser, const char **at_p, psd_samples_t *samples,
                               psd_error_t *err)
{
    static const char *const kinds[] = {[PSD_ENTRIES_SPARSE] = "KEY:VALUE",
                                        [PSD_ENTRIES_BINARY] = "KEY, a whole number below 2^64",
                                        [PSD_ENTRIES_DENSE] = "VALUE, a finite number"};
    const char *at = ps_skip_blanks(*at_p);
    int64_t id = 0;
    const char *end = ps_number_i64(at, &id);
    size_t n = samples->n_entries;

    if (!is_behind_word(end) || id < INT32_MIN || id > INT32_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "id \"%s\" of a group is not a whole number from "
                             "-2^31 to 2^31 - 1",
                             ps_sample_word(at));
    }
    for (at = ps_skip_blanks(end); !is_end(at); at = ps_skip_blanks(end)) {
        uint64_t key = n - samples->n_entries; /* a dense entry's */
        float value = 0;

        end = take_entry(at, parser->entries, &key, &value);
        if (!is_behind_word(end)) {
            return psd_error_set(err, PSD_INVALID, "\"%s\" in group %" PRId64 " is not %s",
                                 ps_sample_word(at), id, kinds[parser->entries]);
        }
        samples->keys[n] = key;
        samples->values[n++] = value;
    }
    if (n == samples->n_entries) {
        return psd_error_set(err, PSD_INVALID, "group %" PRId64 " has no entry", id);
    }
    samples->n_entries = n;
    ps_samples_end_group(samples, id);
    *at_p = at;
    return PSD_OK;
}

static psd_status_t parse(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples,
                          psd_error_t *err)
{
    const char *at = ps_skip_blanks(line.text);
    size_t before = samples->n_groups;
    psd_status_t rc = PSD_OK;

    if (*at == '\n') {
        return PSD_OK;
    }
    /* A group takes four bytes at least ("; 1 2"), an entry two. */
    if (!ps_samples_reserve(samples, line.size / 4 + 1, line.size / 2 + 1)) {
        return ps_sample_no_memory(line.size, err);
    }
    rc = take_label(parser, &at, samples, err);
    while (rc == PSD_OK && *at == ';') {
        at = ps_skip_blanks(at + 1);
        if (*at == '\n') {
            break; /* after the last ';' */
        }
        rc = take_group(parser, &at, samples, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (samples->n_groups == before) {
        return psd_error_set(err, PSD_INVALID, "it has no group");
    }
    ps_samples_end(samples);
    return PSD_OK;
}

/* A label or nothing, and a group's id. */
static bool fits(ps_line_t line)
{
    const char *at = ps_skip_blanks(line.text);
    const char *end = end_of_field(at);
    float label = 0;
    int64_t id = 0;

    if (*end != ';' || (at != end && !is_behind_word(ps_number_f32(at, &label)))) {
        return false;
    }
    return is_behind_word(ps_number_i64(ps_skip_blanks(end + 1), &id));
}

/* ---- back ---- */

/* A dense value; the first of a group with a point, for whole numbers alone
 * would be keys. */
static bool print_dense(float value, bool first, ps_buffer_t *out)
{
    size_t size = out->size + 1;

    if (!ps_buffer_append(out, " ", 1) || !ps_sample_print_f32(out, value)) {
        return false;
    }
    return !first || memchr(out->data + size, '.', out->size - size) != NULL ||
           memchr(out->data + size, 'e', out->size - size) != NULL ||
           ps_buffer_append(out, ".0", 2);
}

static bool print_entry(const psd_samples_t *samples, size_t e, bool first, ps_buffer_t *out)
{
    switch (samples->entries) {
    case PSD_ENTRIES_DENSE:
        return print_dense(samples->values[e], first, out);
    case PSD_ENTRIES_BINARY:
        return ps_buffer_print(out, " %" PRIu64, samples->keys[e]);
    case PSD_ENTRIES_SPARSE:
        break;
    }
    return ps_buffer_print(out, " %" PRIu64 ":", samples->keys[e]) &&
           ps_sample_print_f32(out, samples->values[e]);
}

/* Readers want an entry in each sample, and a label in all or none. */
static psd_status_t check_sample(const psd_samples_t *samples, size_t i, ps_printed_t *before,
                                 psd_error_t *err)
{
    bool labelled = !isnan(samples->labels[i]);

    if (samples->starts[samples->groups[i]] == samples->starts[samples->groups[i + 1]]) {
        return psd_error_set(err, PSD_INVALID, "a sample without entries; ps lines have some");
    }
    if (before->any && labelled != before->labelled) {
        return psd_error_set(
            err, PSD_INVALID,
            "a sample %s a label after samples %s; in ps files all have one or none has",
            labelled ? "with" : "without", labelled ? "without" : "with");
    }
    before->any = true;
    before->labelled = labelled;
    return PSD_OK;
}

static psd_status_t print(const psd_samples_t *samples, size_t i, ps_printed_t *before,
                          ps_buffer_t *out, psd_error_t *err)
{
    bool room = isnan(samples->labels[i]) || ps_sample_print_f32(out, samples->labels[i]);
    psd_status_t rc = check_sample(samples, i, before, err);

    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t g = samples->groups[i]; g < samples->groups[i + 1]; g++) {
        int64_t id = samples->group_ids[g];

        if (id < INT32_MIN || id > INT32_MAX) {
            return psd_error_set(err, PSD_INVALID, "group id %" PRId64 " does not fit in 32 bits",
                                 id);
        }
        if (samples->starts[g] == samples->starts[g + 1]) {
            continue; /* a group without entries is none */
        }
        room = room && ps_buffer_print(out, "; %" PRId64, id);
        for (size_t e = samples->starts[g]; room && e < samples->starts[g + 1]; e++) {
            room = print_entry(samples, e, e == samples->starts[g], out);
        }
    }
    return room && ps_buffer_append(out, ";\n", 2) ? PSD_OK : ps_sample_no_memory(out->size, err);
}

const ps_sample_format_t ps_sample_format_ps = {
    .name = "ps",
    .about = "label; group key:value …; group key:value …;   (or key, or value)",
    .entries = PSD_ENTRIES_SPARSE,
    .entries_open = true,
    .fits = fits,
    .sureness = 2,
    .look = look,
    .parse = parse,
    .print = print,
    .holds_groups = true,
};
