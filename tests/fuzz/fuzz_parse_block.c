/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a parse cache: whatever head and body say, the samples that come of
 * them hang together, and are printed and taken again as they were. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/feed/parse_block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const psd_samples_t *samples)
{
    assert(samples->groups[0] == 0 && samples->starts[0] == 0);
    assert(samples->groups[samples->n] == samples->n_groups);
    assert(samples->starts[samples->n_groups] == samples->n_entries);
    for (size_t i = 0; i < samples->n; i++) {
        size_t tag_size = 0;

        assert(samples->groups[i] <= samples->groups[i + 1]);
        assert(!isinf(samples->labels[i]));
        (void)psd_samples_tag(samples, i, &tag_size);
        assert(tag_size <= samples->tags.size);
    }
    for (size_t g = 0; g < samples->n_groups; g++) {
        assert(samples->starts[g] <= samples->starts[g + 1]);
    }
    for (size_t e = 0; e < samples->n_entries; e++) {
        assert(isfinite(samples->values[e]));
    }
}

static void go_around(const psd_samples_t *samples)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *back = psd_samples_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    ps_parse_head_t head;
    bool printed = ps_parse_block_print(samples, &text);

    assert(back != NULL && printed);
    memcpy(&head, text.data, sizeof head);
    assert(ps_parse_head_is_valid(&head));
    assert(sizeof head + head.body_size == text.size);
    assert(ps_parse_block_sum(&head, text.data + sizeof head) == head.sum);
    assert(ps_parse_block_take(&head, text.data + sizeof head, back) == PSD_OK);
    assert(back->n == samples->n && back->n_entries == samples->n_entries);
    assert(memcmp(back->keys, samples->keys, back->n_entries * sizeof *back->keys) == 0);
    assert(memcmp(back->group_ids, samples->group_ids, back->n_groups * sizeof *back->group_ids) ==
           0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    ps_parse_head_t head;
    uint8_t *body = NULL;

    if (samples == NULL || size < sizeof head) {
        return 0;
    }
    memcpy(&head, data, sizeof head);
    head.body_size = size - sizeof head;
    body = malloc(head.body_size); /* so that what is behind it is noticed */
    if (body != NULL && ps_parse_head_is_valid(&head)) {
        memcpy(body, data + sizeof head, head.body_size);
        if (ps_parse_block_take(&head, body, samples) == PSD_OK) {
            check(samples);
            go_around(samples);
        } else {
            assert(samples->n == 0 && samples->n_entries == 0);
        }
    }
    free(body);
    return 0;
}
