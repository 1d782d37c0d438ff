/* SPDX-License-Identifier: Apache-2.0 */
#include "data/feed/parse_block.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

/* What a body has; in this order, each array without a gap. */
enum {
    HAS_LABELS = 1,   /* f32 of each sample; else NaN */
    HAS_HEADS = 2,    /* f32 weights, f32 initial predictions; else 1 and 0 */
    HAS_QUERIES = 4,  /* u64 of each sample; else 0 */
    HAS_TAGS = 8,     /* u32 size of each sample's; else 0 */
    HAS_GROUPS = 16,  /* u32 how many of each sample, i64 id of each; else one
                         of id 0 */
                      /* u32 entries of each group, always */
    HAS_KEYS = 32,    /* of each entry; else they count from 0 in each group */
    WIDE_KEYS = 64,   /* they are u64; else u32 */
    HAS_VALUES = 128, /* f32 of each entry; else 1 */
                      /* bytes of all tags */
    ALL_FLAGS = 255
};

#define BODY_MAX ((uint64_t)1 << 30)

/* ---- what is there ---- */

static uint32_t flags_of_samples(const psd_samples_t *s)
{
    uint32_t flags = 0;

    for (size_t i = 0; i < s->n; i++) {
        flags |= isnan(s->labels[i]) ? 0 : HAS_LABELS;
        flags |= s->weights[i] == 1 && s->initials[i] == 0 ? 0 : HAS_HEADS;
        flags |= s->queries[i] == 0 ? 0 : HAS_QUERIES;
        flags |= s->groups[i + 1] - s->groups[i] == 1 && s->group_ids[s->groups[i]] == 0
                     ? 0
                     : HAS_GROUPS;
    }
    return flags | (s->tags.size == 0 ? 0 : HAS_TAGS);
}

static uint32_t flags_of_entries(const psd_samples_t *s)
{
    uint64_t bits = 0;
    bool counted = true;
    bool ones = true;

    for (size_t g = 0; g < s->n_groups; g++) {
        for (size_t e = s->starts[g]; e < s->starts[g + 1]; e++) {
            counted = counted && s->keys[e] == e - s->starts[g];
            ones = ones && s->values[e] == 1;
            bits |= s->keys[e];
        }
    }
    /* An entry takes some bytes always, so that their number is bounded. */
    if (counted && !ones) {
        return HAS_VALUES;
    }
    return HAS_KEYS | (bits > UINT32_MAX ? WIDE_KEYS : 0) | (ones ? 0 : HAS_VALUES);
}

/* The body's size; BODY_MAX: too much. */
static uint64_t size_of(const ps_parse_head_t *head)
{
    uint64_t sample =
        ((head->flags & HAS_LABELS) != 0 ? 4U : 0) + ((head->flags & HAS_HEADS) != 0 ? 8U : 0) +
        ((head->flags & HAS_QUERIES) != 0 ? 8U : 0) + ((head->flags & HAS_TAGS) != 0 ? 4U : 0) +
        ((head->flags & HAS_GROUPS) != 0 ? 4U : 0);
    uint64_t group = (head->flags & HAS_GROUPS) != 0 ? 12 : 4;
    uint64_t key = (head->flags & WIDE_KEYS) != 0 ? 8 : 4;
    uint64_t entry =
        ((head->flags & HAS_KEYS) != 0 ? key : 0) + ((head->flags & HAS_VALUES) != 0 ? 4U : 0);

    if (head->n_groups >= BODY_MAX || head->n_entries >= BODY_MAX ||
        head->n_tag_bytes >= BODY_MAX) {
        return BODY_MAX;
    }
    /* Below 2^32 each, times 28 at most. */
    sample = sample * head->n_samples + group * head->n_groups + entry * head->n_entries +
             head->n_tag_bytes;
    return sample < BODY_MAX ? sample : BODY_MAX;
}

bool ps_parse_head_is_valid(const ps_parse_head_t *head)
{
    bool has_groups = (head->flags & HAS_GROUPS) != 0;
    bool has_entries = (head->flags & (HAS_KEYS | HAS_VALUES)) != 0;

    return head->n_samples > 0 && (head->flags & ~(uint32_t)ALL_FLAGS) == 0 &&
           (has_groups || head->n_groups == head->n_samples) &&
           (has_entries || head->n_entries == 0) &&
           ((head->flags & HAS_TAGS) != 0 || head->n_tag_bytes == 0) && size_of(head) < BODY_MAX &&
           size_of(head) == head->body_size;
}

uint64_t ps_parse_block_sum(const ps_parse_head_t *head, const void *body)
{
    const size_t skipped = sizeof head->sum;
    const ps_bytes_t spans[2] = {{(const uint8_t *)head + skipped, sizeof *head - skipped},
                                 {body, head->body_size}};

    return ps_hash_spans(spans, 2);
}

/* ---- printing, into room that is there ---- */

static uint8_t *put(uint8_t *at, const void *items, size_t size)
{
    memcpy(at, items, size);
    return at + size;
}

static uint8_t *put_u32(uint8_t *at, size_t value)
{
    uint32_t narrow = (uint32_t)value;

    return put(at, &narrow, sizeof narrow);
}

static uint8_t *put_samples(uint8_t *at, const psd_samples_t *s, uint32_t flags)
{
    if ((flags & HAS_LABELS) != 0) {
        at = put(at, s->labels, s->n * sizeof(float));
    }
    if ((flags & HAS_HEADS) != 0) {
        at = put(at, s->weights, s->n * sizeof(float));
        at = put(at, s->initials, s->n * sizeof(float));
    }
    if ((flags & HAS_QUERIES) != 0) {
        at = put(at, s->queries, s->n * sizeof(uint64_t));
    }
    for (size_t i = 0; (flags & HAS_TAGS) != 0 && i < s->n; i++) {
        size_t size = 0;

        (void)psd_samples_tag(s, i, &size);
        at = put_u32(at, size);
    }
    for (size_t i = 0; (flags & HAS_GROUPS) != 0 && i < s->n; i++) {
        at = put_u32(at, s->groups[i + 1] - s->groups[i]);
    }
    return at;
}

static uint8_t *put_entries(uint8_t *at, const psd_samples_t *s, uint32_t flags)
{
    if ((flags & HAS_GROUPS) != 0) {
        at = put(at, s->group_ids, s->n_groups * sizeof(int64_t));
    }
    for (size_t g = 0; g < s->n_groups; g++) {
        at = put_u32(at, s->starts[g + 1] - s->starts[g]);
    }
    if ((flags & WIDE_KEYS) != 0) {
        at = put(at, s->keys, s->n_entries * sizeof(uint64_t));
    } else if ((flags & HAS_KEYS) != 0) {
        for (size_t e = 0; e < s->n_entries; e++) {
            at = put_u32(at, s->keys[e]);
        }
    }
    if ((flags & HAS_VALUES) != 0) {
        at = put(at, s->values, s->n_entries * sizeof(float));
    }
    return s->tags.size == 0 ? at : put(at, s->tags.data, s->tags.size);
}

bool ps_parse_block_print(const psd_samples_t *samples, ps_buffer_t *out)
{
    ps_parse_head_t head = {.n_groups = samples->n_groups,
                            .n_entries = samples->n_entries,
                            .n_tag_bytes = samples->tags.size,
                            .n_samples = (uint32_t)samples->n,
                            .flags = flags_of_samples(samples) | flags_of_entries(samples)};
    uint8_t *body = NULL;

    head.body_size = size_of(&head);
    if (samples->n >= UINT32_MAX || !ps_parse_head_is_valid(&head) ||
        !ps_buffer_reserve(out, sizeof head + head.body_size)) {
        return false;
    }
    body = out->data + out->size + sizeof head;
    (void)put_entries(put_samples(body, samples, head.flags), samples, head.flags);
    head.sum = ps_parse_block_sum(&head, body);
    memcpy(out->data + out->size, &head, sizeof head);
    out->size += sizeof head + head.body_size;
    return true;
}

/* ---- taking ---- */

/* How much of a body was taken. */
typedef struct taker {
    const ps_parse_head_t *head;
    const uint8_t *at;
    psd_samples_t *to; /* with room */
} taker_t;

static void take(taker_t *self, void *ret_items, size_t size)
{
    memcpy(ret_items, self->at, size);
    self->at += size;
}

static uint32_t take_u32(taker_t *self)
{
    uint32_t value = 0;

    take(self, &value, sizeof value);
    return value;
}

static bool has(const taker_t *self, uint32_t flag)
{
    return (self->head->flags & flag) != 0;
}

static void take_numbers(taker_t *self)
{
    psd_samples_t *to = self->to;
    size_t n = self->head->n_samples;

    for (size_t i = 0; i < n; i++) {
        to->labels[to->n + i] = NAN;
        to->weights[to->n + i] = 1;
        to->initials[to->n + i] = 0;
        to->queries[to->n + i] = 0;
    }
    if (has(self, HAS_LABELS)) {
        take(self, to->labels + to->n, n * sizeof(float));
    }
    if (has(self, HAS_HEADS)) {
        take(self, to->weights + to->n, n * sizeof(float));
        take(self, to->initials + to->n, n * sizeof(float));
    }
    if (has(self, HAS_QUERIES)) {
        take(self, to->queries + to->n, n * sizeof(uint64_t));
    }
}

/* The sums of what all samples, or groups, have are right at the end; they grow
 * by 32 bits at a time, and cannot go beyond 64. */
static bool take_shape(taker_t *self)
{
    psd_samples_t *to = self->to;
    size_t n = self->head->n_samples;
    size_t end = to->tags.size;

    for (size_t i = 0; i < n; i++) {
        end += has(self, HAS_TAGS) ? take_u32(self) : 0;
        to->tag_ends[to->n + i] = end;
    }
    if (end != to->tags.size + self->head->n_tag_bytes) {
        return false;
    }
    end = to->n_groups;
    for (size_t i = 0; i < n; i++) {
        end += has(self, HAS_GROUPS) ? take_u32(self) : 1;
        to->groups[to->n + i + 1] = end;
    }
    if (end != to->n_groups + self->head->n_groups) {
        return false;
    }
    memset(to->group_ids + to->n_groups, 0, self->head->n_groups * sizeof(int64_t));
    if (has(self, HAS_GROUPS)) {
        take(self, to->group_ids + to->n_groups, self->head->n_groups * sizeof(int64_t));
    }
    end = to->n_entries;
    for (size_t g = 0; g < self->head->n_groups; g++) {
        end += take_u32(self);
        to->starts[to->n_groups + g + 1] = end;
    }
    return end == to->n_entries + self->head->n_entries;
}

static void take_keys(taker_t *self)
{
    psd_samples_t *to = self->to;
    uint64_t *keys = to->keys + to->n_entries;
    size_t n = self->head->n_entries;

    if (has(self, WIDE_KEYS)) {
        take(self, keys, n * sizeof(uint64_t));
        return;
    }
    if (has(self, HAS_KEYS)) {
        for (size_t e = 0; e < n; e++) {
            uint32_t narrow = 0;

            memcpy(&narrow, self->at + e * sizeof narrow, sizeof narrow);
            keys[e] = narrow;
        }
        self->at += n * sizeof(uint32_t);
        return;
    }
    for (size_t g = 0; g < self->head->n_groups; g++) {
        const size_t *starts = to->starts + to->n_groups + g;

        for (size_t e = starts[0]; e < starts[1]; e++) {
            to->keys[e] = e - starts[0];
        }
    }
}

/* false: one is not finite. */
static bool take_values(taker_t *self)
{
    float *values = self->to->values + self->to->n_entries;
    size_t n = self->head->n_entries;
    uint32_t beyond = 0;

    if (!has(self, HAS_VALUES)) {
        for (size_t e = 0; e < n; e++) {
            values[e] = 1;
        }
        return true;
    }
    take(self, values, n * sizeof(float));
    for (size_t e = 0; e < n; e++) {
        beyond |= (uint32_t)!isfinite(values[e]);
    }
    return beyond == 0;
}

static bool are_numbers(const psd_samples_t *samples, size_t n)
{
    for (size_t i = samples->n; i < samples->n + n; i++) {
        if (isinf(samples->labels[i]) || !isfinite(samples->weights[i]) ||
            !isfinite(samples->initials[i])) {
            return false;
        }
    }
    return true;
}

psd_status_t ps_parse_block_take(const ps_parse_head_t *head, const uint8_t *body,
                                 psd_samples_t *samples)
{
    taker_t taker = {.head = head, .at = body, .to = samples};
    ps_samples_mark_t mark = ps_samples_mark(samples);

    if (!ps_samples_reserve_all(samples, head->n_samples, head->n_groups, head->n_entries) ||
        !ps_buffer_reserve(&samples->tags, head->n_tag_bytes)) {
        return PSD_NOMEM;
    }
    take_numbers(&taker);
    if (!take_shape(&taker)) {
        ps_samples_go_back(samples, mark); /* its ends were written over */
        return PSD_DAMAGED;
    }
    take_keys(&taker);
    if (!take_values(&taker) || !are_numbers(samples, head->n_samples)) {
        ps_samples_go_back(samples, mark);
        return PSD_DAMAGED;
    }
    if (head->n_tag_bytes > 0) {
        take(&taker, samples->tags.data + samples->tags.size, head->n_tag_bytes);
        samples->tags.size += head->n_tag_bytes;
    }
    samples->n += head->n_samples;
    samples->n_groups += head->n_groups;
    samples->n_entries += head->n_entries;
    return PSD_OK;
}
