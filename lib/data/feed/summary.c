/* SPDX-License-Identifier: Apache-2.0 */
/* What the samples of a data set have, added up batch by batch. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "psd_data.h"

#define BATCH 1000

typedef struct label {
    float value;
    uint64_t n;
} label_t;

struct psd_summary {
    uint64_t n_samples;
    uint64_t n_entries;
    uint64_t most_entries; /* of a sample */
    uint64_t n_unlabelled;
    uint64_t min_key, max_key;  /* where n_entries > 0 */
    float min_label, max_label; /* where some have one */
    ps_map_t keys;              /* at most PSD_SUMMARY_KEYS_MAX */
    bool more_keys;
    label_t labels[PSD_SUMMARY_LABELS_MAX]; /* ascending */
    size_t n_labels;
    bool more_labels;
};

psd_summary_t *psd_summary_new(void)
{
    return ps_alloc(1, sizeof(psd_summary_t));
}

void psd_summary_destroy(psd_summary_t **self_p)
{
    if (self_p != NULL && *self_p != NULL) {
        ps_map_done(&(*self_p)->keys);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

/* ---- adding ---- */

static bool add_key(psd_summary_t *self, uint64_t key)
{
    static char mark;

    if (ps_map_get(&self->keys, key) != NULL) {
        return true;
    }
    if (self->keys.count == PSD_SUMMARY_KEYS_MAX) {
        self->more_keys = true;
        return true;
    }
    return ps_map_put(&self->keys, key, &mark);
}

static void add_label(psd_summary_t *self, float label)
{
    bool first = self->n_unlabelled == self->n_samples;
    size_t i = 0;

    if (isnan(label)) {
        self->n_unlabelled++;
        return;
    }
    self->min_label = first ? label : fminf(self->min_label, label);
    self->max_label = first ? label : fmaxf(self->max_label, label);
    while (i < self->n_labels && self->labels[i].value < label) {
        i++;
    }
    if (i < self->n_labels && self->labels[i].value == label) {
        self->labels[i].n++;
    } else if (self->n_labels == PSD_SUMMARY_LABELS_MAX) {
        self->more_labels = true;
    } else {
        memmove(self->labels + i + 1, self->labels + i,
                (self->n_labels - i) * sizeof *self->labels);
        self->labels[i] = (label_t){label, 1};
        self->n_labels++;
    }
}

/* Keys first: what there is no memory for is found before anything counts. */
psd_status_t psd_summary_add(psd_summary_t *self, const psd_samples_t *samples, psd_error_t *err)
{
    const size_t *groups = psd_samples_groups(samples);
    const size_t *starts = psd_samples_starts(samples);
    const uint64_t *keys = psd_samples_keys(samples);
    size_t n_entries = psd_samples_entry_count(samples);

    psd_error_clear(err);
    for (size_t e = 0; e < n_entries; e++) {
        if (!add_key(self, keys[e])) {
            return psd_error_set(err, PSD_NOMEM, "no memory for the keys of a summary");
        }
    }
    for (size_t e = 0; e < n_entries; e++) {
        bool first = self->n_entries++ == 0;

        self->min_key = first || keys[e] < self->min_key ? keys[e] : self->min_key;
        self->max_key = first || keys[e] > self->max_key ? keys[e] : self->max_key;
    }
    for (size_t i = 0; i < psd_samples_count(samples); i++) {
        uint64_t n = starts[groups[i + 1]] - starts[groups[i]];

        self->most_entries = n > self->most_entries ? n : self->most_entries;
        add_label(self, psd_samples_labels(samples)[i]);
        self->n_samples++;
    }
    return PSD_OK;
}

psd_status_t psd_reader_summary(psd_reader_t *reader, psd_summary_t *summary, psd_error_t *err)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();

    psd_error_clear(err);
    if (batch == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for samples");
    }
    for (;;) {
        psd_status_t rc = psd_reader_next(reader, BATCH, batch, err);
        psd_status_t added = psd_summary_add(summary, batch, rc == PSD_OK ? err : NULL);

        if (rc != PSD_OK || added != PSD_OK) {
            return rc != PSD_OK ? rc : added;
        }
        if (psd_samples_count(batch) == 0) {
            return PSD_OK;
        }
    }
}

/* ---- asking ---- */

uint64_t psd_summary_sample_count(const psd_summary_t *self)
{
    return self->n_samples;
}

uint64_t psd_summary_entry_count(const psd_summary_t *self)
{
    return self->n_entries;
}

uint64_t psd_summary_most_entries(const psd_summary_t *self)
{
    return self->most_entries;
}

uint64_t psd_summary_key_count(const psd_summary_t *self, bool *ret_more)
{
    if (ret_more != NULL) {
        *ret_more = self->more_keys;
    }
    return self->keys.count;
}

bool psd_summary_key_range(const psd_summary_t *self, uint64_t *ret_min, uint64_t *ret_max)
{
    if (self->n_entries == 0) {
        return false;
    }
    *ret_min = self->min_key;
    *ret_max = self->max_key;
    return true;
}

uint64_t psd_summary_unlabelled_count(const psd_summary_t *self)
{
    return self->n_unlabelled;
}

bool psd_summary_label_range(const psd_summary_t *self, float *ret_min, float *ret_max)
{
    if (self->n_unlabelled == self->n_samples) {
        return false;
    }
    *ret_min = self->min_label;
    *ret_max = self->max_label;
    return true;
}

size_t psd_summary_label_count(const psd_summary_t *self, bool *ret_more)
{
    if (ret_more != NULL) {
        *ret_more = self->more_labels;
    }
    return self->n_labels;
}

float psd_summary_label(const psd_summary_t *self, size_t i, uint64_t *ret_samples)
{
    bool there = i < self->n_labels;

    if (ret_samples != NULL) {
        *ret_samples = there ? self->labels[i].n : 0;
    }
    return there ? self->labels[i].value : NAN;
}
