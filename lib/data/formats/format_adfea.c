/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adfea - `id 1 clicks key:group key:group …`, one sample a line
 *
 * +1 where clicks > 0, else -1; below 0 is a label that was -1 before. Every
 * value is 1; the keys of a group stand together. A line may have none.
 */
#include "data/formats/format.h"

#include <inttypes.h>

#include "data/text/number.h"

#define GROUPS_MAX 4096 /* of a sample: each is compared with those before */

/* Ends the open group; its id must be new in this sample. */
static psd_status_t end_group(psd_samples_t *samples, size_t first, int64_t id, psd_error_t *err)
{
    if (samples->n_groups - first == GROUPS_MAX) {
        return psd_error_set(err, PSD_INVALID, "it has more than %d groups", GROUPS_MAX);
    }
    for (size_t g = first; g < samples->n_groups; g++) {
        if (samples->group_ids[g] == id) {
            return psd_error_set(err, PSD_INVALID, "keys of group %" PRId64 " are not adjacent",
                                 id);
        }
    }
    ps_samples_end_group(samples, id);
    return PSD_OK;
}

static psd_status_t take_adfea_keys(const char *at, psd_samples_t *samples, psd_error_t *err)
{
    size_t first = samples->n_groups;
    int64_t open = -1;

    for (at = ps_skip_blanks(at); *at != '\n'; at = ps_skip_blanks(at)) {
        uint64_t key = 0;
        uint64_t group = 0;
        const char *end = ps_number_u64(at, &key);

        end = end != NULL && *end == ':' ? ps_number_u64(end + 1, &group) : NULL;
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
    return open < 0 ? PSD_OK : end_group(samples, first, open, err);
}

/* ID 1 CLICKS; NULL, with *at_p at the word that is wrong: it is none. */
static const char *take_head(const char **at_p, uint64_t *ret_shows, int64_t *ret_clicks)
{
    const char *at = *at_p;
    uint64_t id = 0;
    const char *end = ps_number_u64(at, &id);

    if (ps_is_behind_word(end)) {
        *at_p = at = ps_skip_blanks(end);
        end = ps_number_u64(at, ret_shows);
    } else {
        return NULL;
    }
    if (ps_is_behind_word(end)) {
        *at_p = at = ps_skip_blanks(end);
        end = ps_number_i64(at, ret_clicks);
    } else {
        return NULL;
    }
    return ps_is_behind_word(end) ? ps_skip_blanks(end) : NULL;
}

static psd_status_t parse(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples,
                          psd_error_t *err)
{
    const char *at = ps_skip_blanks(line.text);
    const char *keys = NULL;
    uint64_t shows = 0;
    int64_t clicks = 0;
    psd_status_t rc = PSD_OK;

    (void)parser;
    if (*at == '\n') {
        return PSD_OK;
    }
    if (!ps_samples_reserve(samples, line.size / 4 + 1, line.size / 4 + 1)) {
        return ps_sample_no_memory(line.size, err);
    }
    keys = take_head(&at, &shows, &clicks);
    if (keys == NULL) {
        return ps_sample_refuse(at, "a whole number (a line begins with ID 1 CLICKS)", err);
    }
    ps_samples_begin(samples, clicks > 0 ? 1 : -1);
    rc = take_adfea_keys(keys, samples, err);
    if (rc == PSD_OK) {
        ps_samples_end(samples);
    }
    return rc;
}

/* The place after the head of a line that looks like one; NULL: it does not. */
static const char *pass_head(ps_line_t line)
{
    const char *at = ps_skip_blanks(line.text);
    uint64_t shows = 0;
    int64_t clicks = 0;
    const char *keys = take_head(&at, &shows, &clicks);

    return shows == 1 ? keys : NULL;
}

static bool fits(ps_line_t line)
{
    const char *at = pass_head(line);
    uint64_t key = 0;

    at = at == NULL ? NULL : ps_number_u64(at, &key);
    return at != NULL && *at == ':';
}

static bool allows(ps_line_t line)
{
    const char *at = pass_head(line);

    return at != NULL && *at == '\n';
}

const ps_sample_format_t ps_sample_format_adfea = {
    .name = "adfea",
    .about = "id 1 clicks key:group …",
    .entries = PSD_ENTRIES_BINARY,
    .fits = fits,
    .allows = allows,
    .sureness = 3,
    .parse = parse,
};
