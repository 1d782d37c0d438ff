/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_case - what a line becomes, as one text
 *
 * What     Samples printed as `label[*weight][+initial][?query]['tag] {group
 *          key:value …}`, so that a test compares all of a sample at once.
 */
#ifndef PS_TESTS_SAMPLE_CASE_H
#define PS_TESTS_SAMPLE_CASE_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "support/sample_text.h"

static inline void sample_case_print(const psd_samples_t *s, size_t i, ps_buffer_t *out)
{
    size_t tag_size = 0;
    const char *tag = psd_samples_tag(s, i, &tag_size);
    bool room = ps_buffer_print(out, isnan(s->labels[i]) ? "none" : "%g", (double)s->labels[i]);

    if (s->weights[i] != 1) {
        room = room && ps_buffer_print(out, "*%g", (double)s->weights[i]);
    }
    if (s->initials[i] != 0) {
        room = room && ps_buffer_print(out, "+%g", (double)s->initials[i]);
    }
    if (s->queries[i] != 0) {
        room = room && ps_buffer_print(out, "?%" PRIu64, s->queries[i]);
    }
    if (tag_size != 0) {
        room = room && ps_buffer_print(out, "'%.*s", (int)tag_size, tag);
    }
    for (size_t g = s->groups[i]; g < s->groups[i + 1]; g++) {
        room = room && ps_buffer_print(out, " {%" PRId64, s->group_ids[g]);
        for (size_t e = s->starts[g]; e < s->starts[g + 1]; e++) {
            room =
                room && ps_buffer_print(out, " %" PRIu64 ":%g", s->keys[e], (double)s->values[e]);
        }
        room = room && ps_buffer_print(out, "}");
    }
    cr_assert(room && ps_buffer_append(out, "\n", 2));
    out->size--;
}

/* All samples of the text, a line each. */
static inline void sample_case_expect(ps_parser_t *parser, const char *text, const char *expected)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t got = {0};
    size_t n_bad = 0;

    cr_assert(samples != NULL && err != NULL);
    n_bad = sample_text_parse(parser, text, strlen(text), samples, err);
    cr_assert_eq(n_bad, 0, "%s: %s", text, psd_error_text(err));
    cr_assert(ps_buffer_append(&got, "", 1));
    got.size = 0;
    for (size_t i = 0; i < psd_samples_count(samples); i++) {
        sample_case_print(samples, i, &got);
    }
    cr_expect_str_eq((const char *)got.data, expected, "%s\nis\n%s", text, (const char *)got.data);
}

/* The first bad line of the text is refused with this. */
static inline void sample_case_refused(ps_parser_t *parser, const char *text, const char *why)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert(samples != NULL && err != NULL);
    cr_assert_neq(sample_text_parse(parser, text, strlen(text), samples, err), 0, "%s", text);
    cr_expect_eq(psd_error_status(err), PSD_INVALID);
    cr_expect_str_eq(psd_error_text(err), why, "%s: %s", text, psd_error_text(err));
}
#endif
