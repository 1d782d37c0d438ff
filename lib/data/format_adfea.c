/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adfea - `id 1 clicks key:group key:group …`, one sample a line
 *
 * +1 where clicks > 0, else -1. Every value is 1; the keys of a group stand
 * together.
 */
#include "data/format.h"

#include <inttypes.h>

#include "data/number.h"

#define GROUPS_MAX 4096 /* of a sample: each is compared with those before */

/* Ends the open group; its id must be new in this sample. */
static psd_status_t
end_group(psd_samples_t *samples, size_t first, int64_t id, psd_error_t *err)
{
    if (samples->n_groups - first == GROUPS_MAX) {
        return psd_error_set(err, PSD_INVALID, "it has more than %d groups",
                             GROUPS_MAX);
    }
    for (size_t g = first; g < samples->n_groups; g++) {
        if (samples->group_ids[g] == id) {
            return psd_error_set(err, PSD_INVALID,
                                 "keys of group %" PRId64 " stand apart", id);
        }
    }
    ps_samples_end_group(samples, id);
    return PSD_OK;
}

static psd_status_t
take_adfea_keys(const char *at, psd_samples_t *samples, psd_error_t *err)
{
    size_t first = samples->n_groups;
    int64_t open = -1;

    for (at = ps_skip_blanks(at); *at != '\n'; at = ps_skip_blanks(at)) {
        uint64_t key = 0;
        uint64_t group = 0;
        const char *end = ps_number_u64(at, &key);

        end =
            end != NULL && *end == ':' ? ps_number_u64(end + 1, &group) : NULL;
        if (!ps_is_behind_word(end) || group > INT64_MAX) {
            return ps_sample_refuse(at, "KEY:GROUP of two whole numbers", err);
        }
        if (open >= 0 && open != (int64_t)group) {
            psd_status_t rc = end_group(samples, first, open, err);

            if (rc != PSD_OK) {
                return rc;
            }
        }
        open = (int64_t)group;
        ps_samples_add(samples, key, 1);
        at = end;
    }
    return open < 0 ? psd_error_set(err, PSD_INVALID, "it has no key")
                    : end_group(samples, first, open, err);
}

static psd_status_t
parse(const ps_parser_t *parser,
      ps_line_t line,
      psd_samples_t *samples,
      psd_error_t *err)
{
    const char *at = ps_skip_blanks(line.text);
    uint64_t head[3] = {0}; /* id, 1, clicks */

    (void)parser;
    if (*at == '\n') {
        return PSD_OK;
    }
    if (!ps_samples_reserve(samples, line.size / 4 + 1, line.size / 4 + 1)) {
        return ps_sample_no_memory(line.size, err);
    }
    for (int i = 0; i < 3; i++) {
        const char *end = ps_number_u64(at, &head[i]);

        if (!ps_is_behind_word(end)) {
            return ps_sample_refuse(
                at, "a whole number (a line begins with ID 1 CLICKS)", err);
        }
        at = ps_skip_blanks(end);
    }
    ps_samples_begin(samples, head[2] > 0 ? 1 : -1);
    psd_status_t rc = take_adfea_keys(at, samples, err);

    if (rc == PSD_OK) {
        ps_samples_end(samples);
    }
    return rc;
}

static bool
fits(ps_line_t line)
{
    const char *at = ps_skip_blanks(line.text);
    uint64_t number = 0;

    for (int i = 0; i < 3; i++) {
        const char *end = ps_number_u64(at, &number);

        if (!ps_is_behind_word(end) || (i == 1 && number != 1)) {
            return false;
        }
        at = ps_skip_blanks(end);
    }
    at = ps_number_u64(at, &number);
    return at != NULL && *at == ':';
}

const ps_sample_format_t ps_sample_format_adfea = {
    .name = "adfea",
    .about = "id 1 clicks key:group …",
    .entries = PSD_ENTRIES_BINARY,
    .fits = fits,
    .sureness = 3,
    .parse = parse,
};
