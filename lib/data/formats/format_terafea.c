/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terafea - `label id | key key …`, one sample a line
 *
 * +1 where the label is above 0, else -1. Every value is 1; a key's group is
 * its top 10 bits, and the keys of a group may stand apart. Groups are in
 * ascending order, the keys of one in the order of the line.
 */
#include "data/formats/format.h"

#include <string.h>

#include "data/text/number.h"

#define GROUP_SHIFT 54
#define N_GROUPS 1024

/* Puts the keys of each group together, in their order: counts them, then
 * distributes them from a copy after them, for which there is room. */
static void gather_groups(psd_samples_t *samples, size_t first)
{
    uint64_t *keys = samples->keys + first;
    size_t n = samples->n_entries - first;
    size_t places[N_GROUPS] = {0};
    size_t place = 0;

    memcpy(keys + n, keys, n * sizeof *keys);
    for (size_t i = 0; i < n; i++) {
        places[keys[i] >> GROUP_SHIFT]++;
    }
    for (size_t g = 0; g < N_GROUPS; g++) {
        size_t count = places[g];

        places[g] = place;
        place += count;
    }
    for (size_t i = n; i < 2 * n; i++) {
        keys[places[keys[i] >> GROUP_SHIFT]++] = keys[i];
    }
}

static void end_groups(psd_samples_t *samples, size_t first)
{
    size_t n = samples->n_entries;

    samples->n_entries = first;
    while (samples->n_entries < n) {
        uint64_t group = samples->keys[samples->n_entries] >> GROUP_SHIFT;

        while (samples->n_entries < n &&
               samples->keys[samples->n_entries] >> GROUP_SHIFT == group) {
            samples->n_entries++;
        }
        ps_samples_end_group(samples, (int64_t)group);
    }
}

static psd_status_t parse(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples,
                          psd_error_t *err)
{
    const char *at = ps_skip_blanks(line.text);
    size_t first = samples->n_entries;
    float label = 0;
    uint64_t number = 0;
    const char *end = NULL;

    (void)parser;
    if (*at == '\n') {
        return PSD_OK;
    }
    if (!ps_samples_reserve(samples, line.size / 2 + 1, line.size + 2)) {
        return ps_sample_no_memory(line.size, err);
    }
    end = ps_number_f32(at, &label);
    if (!ps_is_behind_word(end)) {
        return ps_sample_refuse(at, "a label, a finite number", err);
    }
    at = ps_skip_blanks(end);
    end = ps_number_u64(at, &number);
    if (end == NULL || *ps_skip_blanks(end) != '|') {
        return ps_sample_refuse(at, "the number of the line, and a bar after it", err);
    }
    ps_samples_begin(samples, label > 0 ? 1 : -1);
    for (at = ps_skip_blanks(ps_skip_blanks(end) + 1); *at != '\n'; at = ps_skip_blanks(end)) {
        end = ps_number_u64(at, &number);
        if (!ps_is_behind_word(end)) {
            return ps_sample_refuse(at, "a key, a whole number below 2^64", err);
        }
        ps_samples_add(samples, number, 1);
    }
    gather_groups(samples, first);
    end_groups(samples, first);
    ps_samples_end(samples);
    return PSD_OK;
}

/* Keys are long; vw's names of features seldom are numbers, and short then. */
static bool fits(ps_line_t line)
{
    float label = 0;
    uint64_t number = 0;
    const char *at = ps_number_f32(ps_skip_blanks(line.text), &label);

    at = ps_is_behind_word(at) ? ps_number_u64(ps_skip_blanks(at), &number) : NULL;
    if (at == NULL || *ps_skip_blanks(at) != '|') {
        return false;
    }
    at = ps_number_u64(ps_skip_blanks(ps_skip_blanks(at) + 1), &number);
    return ps_is_behind_word(at) && number >> GROUP_SHIFT != 0;
}

const ps_sample_format_t ps_sample_format_terafea = {
    .name = "terafea",
    .about = "label id | key …",
    .entries = PSD_ENTRIES_BINARY,
    .fits = fits,
    .sureness = 3,
    .parse = parse,
};
