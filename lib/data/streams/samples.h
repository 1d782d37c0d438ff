/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_samples - a batch of samples, as readers fill it
 *
 * What     Arrays that grow together (psd_data.h says how they hang together).
 *          A reader takes a mark, adds a sample piece by piece, and goes back
 *          to the mark when its line turns out to be bad.
 * Shape    starts and groups have always one item more than groups and samples:
 *          the end of the last one, kept up to date by ps_samples_end_group and
 *          ps_samples_end
 * Owner    the batch owns its arrays
 * Threads  confined to one thread
 */
#ifndef PS_DATA_SAMPLES_H
#define PS_DATA_SAMPLES_H

#include "base/bytes.h"
#include "psd_data.h"

struct psd_samples {
    size_t n, n_capacity;
    float *labels;
    float *weights;
    float *initials;
    uint64_t *queries;
    size_t *tag_ends; /* in tags */
    size_t *groups;   /* n + 1 */
    size_t n_groups, groups_capacity;
    int64_t *group_ids;
    size_t *starts; /* n_groups + 1 */
    size_t n_entries, entries_capacity;
    uint64_t *keys;
    float *values;
    ps_buffer_t tags;
    psd_entries_t entries;
};

/* A place to go back to. */
typedef struct ps_samples_mark {
    size_t n, n_groups, n_entries, tags_size;
} ps_samples_mark_t;

void ps_samples_clear(psd_samples_t *self);
ps_samples_mark_t ps_samples_mark(const psd_samples_t *self);
void ps_samples_go_back(psd_samples_t *self, ps_samples_mark_t mark);

/* Reserves room for one more sample with up to that number of groups and
 * entries, which can then be added without a check. false: no memory, nothing
 * changed. */
PSD_MUST_CHECK bool ps_samples_reserve(psd_samples_t *self, size_t n_groups, size_t n_entries);

/* The same for that number of samples, with their groups and entries. */
PSD_MUST_CHECK bool ps_samples_reserve_all(psd_samples_t *self, size_t n_samples, size_t n_groups,
                                           size_t n_entries);
/* Adds n samples of another batch, from `first` on. false: no memory, nothing
 * changed. */
PSD_MUST_CHECK bool ps_samples_append(psd_samples_t *self, const psd_samples_t *from, size_t first,
                                      size_t n);

/* The pieces of a sample, in this order: begin; for each group its entries and
 * then its end; end. Room was reserved. */
static inline void ps_samples_begin(psd_samples_t *self, float label)
{
    self->labels[self->n] = label;
    self->weights[self->n] = 1;
    self->initials[self->n] = 0;
    self->queries[self->n] = 0;
}

static inline void ps_samples_add(psd_samples_t *self, uint64_t key, float value)
{
    self->keys[self->n_entries] = key;
    self->values[self->n_entries++] = value;
}

static inline void ps_samples_end_group(psd_samples_t *self, int64_t id)
{
    self->group_ids[self->n_groups++] = id;
    self->starts[self->n_groups] = self->n_entries;
}

static inline void ps_samples_end(psd_samples_t *self)
{
    self->tag_ends[self->n++] = self->tags.size;
    self->groups[self->n] = self->n_groups;
}

/* Before the sample's end: what it is called. false: no memory. */
PSD_MUST_CHECK bool ps_samples_tag(psd_samples_t *self, const char *text, size_t size);
/* Makes one group of id 0 of the last sample's groups. Its keys ascend then,
 * equal ones in the order that they had; dense ones count on. false: no memory.
 */
PSD_MUST_CHECK bool ps_samples_merge(psd_samples_t *self);

/* The greatest whole number that a float holds with all those below it. */
#define PS_COUNT_MAX ((uint32_t)1 << 24)

/* What a label alone says: the least kind that has it; NaN is none. */
psd_labels_t ps_sample_label_kind(float label);
/* "no memory for a sample of N bytes". */
psd_status_t ps_sample_no_memory(size_t size, psd_error_t *err);
/* Is it one that lda-c and uci files hold, whole, 1 .. PS_COUNT_MAX? */
bool ps_sample_is_count(float value);
/* PSD_INVALID: it is none. */
psd_status_t ps_sample_refuse_count(float value, psd_error_t *err);
#endif
