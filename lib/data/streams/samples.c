/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of samples: arrays that grow together. */
#include "data/streams/samples.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define FEWEST_SAMPLES 64
#define FEWEST_ENTRIES 1024

static size_t grown(size_t capacity, size_t need, size_t fewest)
{
    size_t more = capacity < fewest ? fewest : capacity + capacity / 2;

    return more < need ? need : more;
}

/* Gives the array room for `count` items. */
static bool resize(void *items_p, size_t count, size_t size)
{
    void **at = items_p;
    void *items = ps_alloc_resize(*at, count, size);

    if (items == NULL) {
        return false;
    }
    *at = items;
    return true;
}

static bool grow_samples(psd_samples_t *self, size_t need)
{
    size_t count = grown(self->n_capacity, need, FEWEST_SAMPLES);

    if (need <= self->n_capacity) {
        return true;
    }
    if (!resize(&self->labels, count, sizeof *self->labels) ||
        !resize(&self->weights, count, sizeof *self->weights) ||
        !resize(&self->initials, count, sizeof *self->initials) ||
        !resize(&self->queries, count, sizeof *self->queries) ||
        !resize(&self->tag_ends, count, sizeof *self->tag_ends) ||
        !resize(&self->groups, count + 1, sizeof *self->groups)) {
        return false;
    }
    self->n_capacity = count;
    return true;
}

static bool grow_groups(psd_samples_t *self, size_t need)
{
    size_t count = grown(self->groups_capacity, need, FEWEST_SAMPLES);

    if (need <= self->groups_capacity) {
        return true;
    }
    if (!resize(&self->group_ids, count, sizeof *self->group_ids) ||
        !resize(&self->starts, count + 1, sizeof *self->starts)) {
        return false;
    }
    self->groups_capacity = count;
    return true;
}

static bool grow_entries(psd_samples_t *self, size_t need)
{
    size_t count = grown(self->entries_capacity, need, FEWEST_ENTRIES);

    if (need <= self->entries_capacity) {
        return true;
    }
    if (!resize(&self->keys, count, sizeof *self->keys) ||
        !resize(&self->values, count, sizeof *self->values)) {
        return false;
    }
    self->entries_capacity = count;
    return true;
}

psd_samples_t *psd_samples_new(void)
{
    psd_samples_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL || !grow_samples(self, 1) || !grow_groups(self, 1) || !grow_entries(self, 1)) {
        psd_samples_destroy(&self);
        return NULL;
    }
    ps_samples_clear(self);
    return self;
}

void psd_samples_destroy(psd_samples_t **self_p)
{
    psd_samples_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_free(self->labels);
    ps_free(self->weights);
    ps_free(self->initials);
    ps_free(self->queries);
    ps_free(self->tag_ends);
    ps_free(self->groups);
    ps_free(self->group_ids);
    ps_free(self->starts);
    ps_free(self->keys);
    ps_free(self->values);
    ps_buffer_done(&self->tags);
    ps_free(self);
    *self_p = NULL;
}

void ps_samples_clear(psd_samples_t *self)
{
    ps_samples_go_back(self, (ps_samples_mark_t){0});
}

ps_samples_mark_t ps_samples_mark(const psd_samples_t *self)
{
    return (ps_samples_mark_t){
        .n = self->n,
        .n_groups = self->n_groups,
        .n_entries = self->n_entries,
        .tags_size = self->tags.size,
    };
}

void ps_samples_go_back(psd_samples_t *self, ps_samples_mark_t mark)
{
    self->n = mark.n;
    self->n_groups = mark.n_groups;
    self->n_entries = mark.n_entries;
    self->tags.size = mark.tags_size;
    self->groups[self->n] = self->n_groups;
    self->starts[self->n_groups] = self->n_entries;
}

bool ps_samples_reserve(psd_samples_t *self, size_t n_groups, size_t n_entries)
{
    return ps_samples_reserve_all(self, 1, n_groups, n_entries);
}

bool ps_samples_reserve_all(psd_samples_t *self, size_t n_samples, size_t n_groups,
                            size_t n_entries)
{
    return grow_samples(self, self->n + n_samples) &&
           grow_groups(self, self->n_groups + n_groups) &&
           grow_entries(self, self->n_entries + n_entries);
}

static size_t tags_before(const psd_samples_t *self, size_t i)
{
    return i == 0 ? 0 : self->tag_ends[i - 1];
}

/* Room is there. */
static void copy_samples(psd_samples_t *self, const psd_samples_t *from, size_t first, size_t n)
{
    size_t group = from->groups[first];
    size_t entry = from->starts[group];
    size_t n_groups = from->groups[first + n] - group;
    size_t n_entries = from->starts[group + n_groups] - entry;
    size_t tags = self->tags.size - tags_before(from, first);

    memcpy(self->labels + self->n, from->labels + first, n * sizeof(float));
    memcpy(self->weights + self->n, from->weights + first, n * sizeof(float));
    memcpy(self->initials + self->n, from->initials + first, n * sizeof(float));
    memcpy(self->queries + self->n, from->queries + first, n * sizeof(uint64_t));
    memcpy(self->group_ids + self->n_groups, from->group_ids + group, n_groups * sizeof(int64_t));
    memcpy(self->keys + self->n_entries, from->keys + entry, n_entries * sizeof(uint64_t));
    memcpy(self->values + self->n_entries, from->values + entry, n_entries * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        self->tag_ends[self->n + i] = from->tag_ends[first + i] + tags;
        self->groups[self->n + i + 1] = from->groups[first + i + 1] - group + self->n_groups;
    }
    for (size_t g = 0; g < n_groups; g++) {
        self->starts[self->n_groups + g + 1] =
            from->starts[group + g + 1] - entry + self->n_entries;
    }
    self->n += n;
    self->n_groups += n_groups;
    self->n_entries += n_entries;
}

bool ps_samples_append(psd_samples_t *self, const psd_samples_t *from, size_t first, size_t n)
{
    size_t group = from->groups[first];
    size_t n_groups = from->groups[first + n] - group;
    size_t n_entries = from->starts[group + n_groups] - from->starts[group];
    size_t tags = tags_before(from, first);
    size_t n_tags = tags_before(from, first + n) - tags;

    if (!ps_samples_reserve_all(self, n, n_groups, n_entries) ||
        !ps_buffer_reserve(&self->tags, n_tags)) {
        return false;
    }
    copy_samples(self, from, first, n);
    if (n_tags > 0) {
        memcpy(self->tags.data + self->tags.size, from->tags.data + tags, n_tags);
        self->tags.size += n_tags;
    }
    return true;
}

bool ps_samples_tag(psd_samples_t *self, const char *text, size_t size)
{
    return size == 0 || ps_buffer_append(&self->tags, text, size);
}

/* An entry on its way to its place. */
typedef struct entry {
    uint64_t key;
    size_t place; /* where it was; equal keys keep their order */
    float value;
} entry_t;

static int by_key(const void *a, const void *b)
{
    const entry_t *left = a;
    const entry_t *right = b;

    if (left->key != right->key) {
        return left->key < right->key ? -1 : 1;
    }
    return left->place < right->place ? -1 : 1;
}

static bool is_sorted(const uint64_t *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (keys[i] < keys[i - 1]) {
            return false;
        }
    }
    return true;
}

static bool sort_entries(uint64_t *keys, float *values, size_t n)
{
    entry_t *entries = NULL;

    if (is_sorted(keys, n)) {
        return true;
    }
    entries = ps_alloc_raw(n, sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        entries[i] = (entry_t){.key = keys[i], .place = i, .value = values[i]};
    }
    qsort(entries, n, sizeof *entries, by_key);
    for (size_t i = 0; i < n; i++) {
        keys[i] = entries[i].key;
        values[i] = entries[i].value;
    }
    ps_free(entries);
    return true;
}

bool ps_samples_merge(psd_samples_t *self)
{
    size_t group = self->groups[self->n - 1];
    size_t first = self->starts[group];
    size_t n = self->n_entries - first;

    if (!grow_groups(self, group + 1)) {
        return false; /* it had none */
    }
    if (self->entries == PSD_ENTRIES_DENSE) {
        for (size_t i = 0; i < n; i++) {
            self->keys[first + i] = i;
        }
    } else if (!sort_entries(self->keys + first, self->values + first, n)) {
        return false;
    }
    self->n_groups = group + 1;
    self->group_ids[group] = 0;
    self->starts[self->n_groups] = self->n_entries;
    self->groups[self->n] = self->n_groups;
    return true;
}

size_t psd_samples_count(const psd_samples_t *self)
{
    return self->n;
}

size_t psd_samples_group_count(const psd_samples_t *self)
{
    return self->n_groups;
}

size_t psd_samples_entry_count(const psd_samples_t *self)
{
    return self->n_entries;
}

const float *psd_samples_labels(const psd_samples_t *self)
{
    return self->labels;
}

const float *psd_samples_weights(const psd_samples_t *self)
{
    return self->weights;
}

const float *psd_samples_initials(const psd_samples_t *self)
{
    return self->initials;
}

const uint64_t *psd_samples_queries(const psd_samples_t *self)
{
    return self->queries;
}

const size_t *psd_samples_groups(const psd_samples_t *self)
{
    return self->groups;
}

const int64_t *psd_samples_group_ids(const psd_samples_t *self)
{
    return self->group_ids;
}

const size_t *psd_samples_starts(const psd_samples_t *self)
{
    return self->starts;
}

const uint64_t *psd_samples_keys(const psd_samples_t *self)
{
    return self->keys;
}

const float *psd_samples_values(const psd_samples_t *self)
{
    return self->values;
}

const char *psd_samples_tag(const psd_samples_t *self, size_t i, size_t *ret_size)
{
    size_t start = i == 0 ? 0 : self->tag_ends[i - 1];

    *ret_size = self->tag_ends[i] - start;
    return *ret_size == 0 ? "" : (const char *)self->tags.data + start;
}

psd_entries_t psd_samples_entries(const psd_samples_t *self)
{
    return self->entries;
}

psd_labels_t ps_sample_label_kind(float label)
{
    if (isnan(label)) {
        return PSD_LABELS_NONE;
    }
    if (label == 1 || label == -1) {
        return PSD_LABELS_BINARY;
    }
    return label == truncf(label) ? PSD_LABELS_CLASS : PSD_LABELS_REAL;
}

psd_status_t ps_sample_no_memory(size_t size, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a sample of %zu bytes", size);
}

bool ps_sample_is_count(float value)
{
    return value >= 1 && value <= (float)PS_COUNT_MAX && value == truncf(value);
}

psd_status_t ps_sample_refuse_count(float value, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "value %g is not a count, a whole number 1 .. %" PRIu32,
                         (double)value, PS_COUNT_MAX);
}
