/* SPDX-License-Identifier: Apache-2.0 */
/* lib/data's text formats: no text hurts; samples hang together; what can be
 * written is read again as it was. The first byte chooses the format. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/sample_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const psd_samples_t *samples)
{
    assert(samples->groups[0] == 0 && samples->starts[0] == 0);
    assert(samples->groups[samples->n] == samples->n_groups);
    assert(samples->starts[samples->n_groups] == samples->n_entries);
    for (size_t i = 0; i < samples->n; i++) {
        size_t tag_size = 0;

        assert(samples->groups[i] <= samples->groups[i + 1]);
        assert(isnan(samples->labels[i]) || isfinite(samples->labels[i]));
        assert(isfinite(samples->weights[i]));
        assert(isfinite(samples->initials[i]));
        assert(psd_samples_tag(samples, i, &tag_size) != NULL);
        assert(tag_size <= samples->tags.size);
    }
    for (size_t g = 0; g < samples->n_groups; g++) {
        assert(samples->starts[g] <= samples->starts[g + 1]);
    }
    for (size_t e = 0; e < samples->n_entries; e++) {
        assert(isfinite(samples->values[e]));
    }
}

static bool
is_same_label(float a, float b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

static void
compare(const psd_samples_t *a, const psd_samples_t *b)
{
    assert(a->n == b->n && a->n_groups == b->n_groups);
    assert(a->n_entries == b->n_entries);
    for (size_t i = 0; i < a->n; i++) {
        assert(is_same_label(a->labels[i], b->labels[i]));
        assert(a->queries[i] == b->queries[i]);
        assert(a->groups[i] == b->groups[i]);
    }
    for (size_t g = 0; g < a->n_groups; g++) {
        assert(a->group_ids[g] == b->group_ids[g]);
        assert(a->starts[g] == b->starts[g]);
    }
    for (size_t e = 0; e < a->n_entries; e++) {
        assert(a->keys[e] == b->keys[e] && a->values[e] == b->values[e]);
    }
}

/* Writes them in their own format, and reads that. */
static void
go_around(const ps_parser_t *parser, const psd_samples_t *samples)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(psd_samples_destroy) psd_samples_t *back = psd_samples_new();
    ps_parser_t again = *parser;
    ps_printed_t before = {0};

    assert(back != NULL);
    for (size_t i = 0; i < samples->n; i++) {
        assert(parser->format->print(samples, i, &before, &text, NULL) ==
               PSD_OK);
    }
    if (samples->n == 0) {
        return;
    }
    again.entries_set = true;
    assert(sample_text_parse(&again, (const char *)text.data, text.size, back,
                             NULL) == 0);
    compare(samples, back);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    size_t n_formats = 0;
    char *text = NULL;
    ps_parser_t parser;

    assert(samples != NULL && err != NULL);
    if (size == 0) {
        return 0;
    }
    while (ps_sample_format_at(n_formats) != NULL) {
        n_formats++;
    }
    parser = sample_text_parser(ps_sample_format_at(data[0] % n_formats)->name);
    parser.hash_all = data[0] >= 128;
    /* As long as it is, so that a sanitizer sees a step behind it. */
    text = malloc(size);
    assert(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\n';
    (void)sample_text_parse(&parser, text, size, samples, err);
    (void)ps_sample_format_guess(
        (ps_line_t){.text = text, .size = size, .first = true});
    check(samples);
    if (parser.format->print != NULL) {
        go_around(&parser, samples);
    }
    free(text);
    return 0;
}
