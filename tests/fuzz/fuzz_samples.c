/* SPDX-License-Identifier: Apache-2.0 */
/* lib/data's text formats: no text hurts; samples hang together; what can be
 * written is read again as it was. PSD_FUZZ_FORMAT names the format, else the
 * first byte chooses it; those without lines are fuzz_feed's. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/sample_text.h"

#define ROOM ((size_t)1 << 20) /* whole pages */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const psd_samples_t *samples)
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

static bool is_same_label(float a, float b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

static void compare(const psd_samples_t *a, const psd_samples_t *b)
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
static void go_around(const ps_parser_t *parser, const psd_samples_t *samples)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(psd_samples_destroy) psd_samples_t *back = psd_samples_new();
    ps_parser_t again = *parser;
    ps_printed_t before = {0};

    assert(back != NULL);
    for (size_t i = 0; i < samples->n; i++) {
        psd_status_t rc = parser->format->print(samples, i, &before, &text, NULL);

        if (rc == PSD_INVALID && parser->format->holds_heads) {
            return; /* a tag that was read with a tab cannot be written */
        }
        assert(rc == PSD_OK);
    }
    if (samples->n == 0) {
        return;
    }
    again.entries_set = true;
    again.constant = false; /* it is among what was written */
    again.hash_all = false; /* keys are written as digits */
    assert(sample_text_parse(&again, (const char *)text.data, text.size, back, NULL) == 0);
    compare(samples, back);
}

static const char *choose(uint8_t byte)
{
    const char *found[256];
    const char *named = getenv("PSD_FUZZ_FORMAT");
    size_t n = 0;

    if (named != NULL) {
        return named;
    }
    for (size_t i = 0; ps_sample_format_at(i) != NULL; i++) {
        if (ps_sample_format_at(i)->feed == NULL) {
            found[n++] = ps_sample_format_at(i)->name;
        }
    }
    assert(n > 0);
    return found[byte % n];
}

/* Room for a text that ends where a page begins that nobody may read, so that
 * a step behind it shows, also one of the C library's. */
static char *end_at_guard(size_t size)
{
    static char *room;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (room == NULL) {
        void *block =
            mmap(NULL, ROOM + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (block == MAP_FAILED || mprotect((char *)block + ROOM, page, PROT_NONE) != 0) {
            perror("fuzz_samples: memory in front of a guard");
            return NULL;
        }
        room = block;
    }
    return size <= ROOM ? room + ROOM - size : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    char *text = NULL;
    ps_parser_t parser;

    if (samples == NULL || err == NULL || size == 0) {
        return 0; /* no memory is the machine's fault, not the input's */
    }
    parser = sample_text_parser(choose(data[0]));
    parser.hash_all = data[0] >= 128;
    text = end_at_guard(size);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\n';
    (void)sample_text_parse(&parser, text, size, samples, err);
    (void)ps_sample_format_guess((ps_line_t){.text = text, .size = size, .first = true});
    check(samples);
    if (parser.format->print != NULL) {
        go_around(&parser, samples);
    }
    return 0;
}
