/* SPDX-License-Identifier: Apache-2.0 */
/* Labelled sparse samples in memory. */
#include "samples.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 1024

void ex_samples_done(ex_samples_t *self)
{
    free(self->starts);
    free(self->labels);
    free(self->weights);
    free(self->features);
    free(self->values);
    free(self->keys);
    free(self->groups);
    free(self->table);
    memset(self, 0, sizeof(*self));
}

static size_t next_room(size_t room)
{
    return room == 0 ? FIRST_ROOM : room + room / 2;
}

/* Arrays that grew before memory ran out stay larger: that is only room. */
static bool grow_samples(ex_samples_t *self, size_t room)
{
    size_t *starts = realloc(self->starts, (room + 1) * sizeof(*starts));
    float *labels = NULL;
    float *weights = NULL;

    if (starts != NULL) {
        self->starts = starts;
        labels = realloc(self->labels, room * sizeof(*labels));
    }
    if (labels != NULL) {
        self->labels = labels;
        weights = realloc(self->weights, room * sizeof(*weights));
    }
    if (weights == NULL) {
        return false;
    }
    self->weights = weights;
    self->samples_room = room;
    return true;
}

static bool grow_entries(ex_samples_t *self, size_t room)
{
    uint32_t *features = realloc(self->features, room * sizeof(*features));
    float *values = NULL;

    if (features != NULL) {
        self->features = features;
        values = realloc(self->values, room * sizeof(*values));
    }
    if (values == NULL) {
        return false;
    }
    self->values = values;
    self->entries_room = room;
    return true;
}

static bool grow_keys(ex_samples_t *self, size_t room)
{
    uint64_t *keys = realloc(self->keys, room * sizeof(*keys));
    int64_t *groups = NULL;

    if (keys != NULL) {
        self->keys = keys;
        groups = realloc(self->groups, room * sizeof(*groups));
    }
    if (groups == NULL) {
        return false;
    }
    self->groups = groups;
    return true;
}

psd_status_t ex_samples_add(ex_samples_t *self, float label, float weight, psd_error_t *err)
{
    if (self->n == self->samples_room && !grow_samples(self, next_room(self->samples_room))) {
        return psd_error_set(err, PSD_NOMEM, "%zu samples", self->n + 1);
    }
    self->labels[self->n] = label;
    self->weights[self->n] = weight;
    self->starts[self->n] = self->n_entries;
    self->n++;
    self->starts[self->n] = self->n_entries;
    return PSD_OK;
}

/* Where a key is, or where it would be. */
static size_t probe(const ex_samples_t *self, uint64_t key)
{
    size_t mask = self->table_size - 1;
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & mask;

    while (self->table[at] != 0 && self->keys[self->table[at] - 1] != key) {
        at = (at + 1) & mask;
    }
    return at;
}

static psd_status_t grow_features(ex_samples_t *self, psd_error_t *err)
{
    size_t room = self->features_room == 0 ? FIRST_ROOM : 2 * self->features_room;
    uint32_t *table = NULL;

    if (self->n_features >= UINT32_MAX - 1) {
        return psd_error_set(err, PSD_LIMIT,
                             "more than %zu keys; give every worker fewer "
                             "samples",
                             self->n_features);
    }
    if (grow_keys(self, room)) {
        table = calloc(2 * room, sizeof(*table)); /* never more than half */
    }
    if (table == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu keys", room);
    }
    free(self->table);
    self->table = table;
    self->table_size = 2 * room;
    self->features_room = room;
    for (size_t i = 0; i < self->n_features; i++) {
        self->table[probe(self, self->keys[i])] = (uint32_t)i + 1;
    }
    return PSD_OK;
}

psd_status_t ex_samples_add_entry(ex_samples_t *self, int64_t group, uint64_t key, float value,
                                  psd_error_t *err)
{
    size_t at = 0;

    if (self->n_features == self->features_room) {
        psd_status_t rc = grow_features(self, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    if (self->n_entries == self->entries_room &&
        !grow_entries(self, next_room(self->entries_room))) {
        return psd_error_set(err, PSD_NOMEM, "%zu entries", self->n_entries + 1);
    }
    at = probe(self, key);
    if (self->table[at] == 0) {
        self->keys[self->n_features] = key;
        self->groups[self->n_features] = group;
        self->table[at] = (uint32_t)++self->n_features;
    }
    self->features[self->n_entries] = self->table[at] - 1;
    self->values[self->n_entries] = value;
    self->n_entries++;
    self->starts[self->n] = self->n_entries;
    return PSD_OK;
}

typedef struct numbered {
    uint64_t key;
    int64_t group;
    uint32_t feature; /* as it was first numbered */
} numbered_t;

static int compare(const void *a, const void *b)
{
    uint64_t x = ((const numbered_t *)a)->key;
    uint64_t y = ((const numbered_t *)b)->key;

    return (x > y) - (x < y);
}

psd_status_t ex_samples_number(ex_samples_t *self, psd_error_t *err)
{
    size_t n = self->n_features;
    numbered_t *list = malloc((n + 1) * sizeof(*list));
    uint32_t *now = malloc((n + 1) * sizeof(*now));

    if (list == NULL || now == NULL) {
        free(list);
        free(now);
        return psd_error_set(err, PSD_NOMEM, "%zu features", n);
    }
    for (size_t i = 0; i < n; i++) {
        list[i].key = self->keys[i];
        list[i].group = self->groups[i];
        list[i].feature = (uint32_t)i;
    }
    qsort(list, n, sizeof(*list), compare);
    for (size_t i = 0; i < n; i++) {
        self->keys[i] = list[i].key;
        self->groups[i] = list[i].group;
        now[list[i].feature] = (uint32_t)i;
    }
    for (size_t k = 0; k < self->n_entries; k++) {
        self->features[k] = now[self->features[k]];
    }
    free(list);
    free(now);
    free(self->table); /* it has the old numbers */
    self->table = NULL;
    self->table_size = 0;
    self->features_room = n;
    return PSD_OK;
}

double ex_samples_dot(const ex_samples_t *self, size_t i, const float *weights)
{
    double sum = 0;

    for (size_t k = self->starts[i]; k < self->starts[i + 1]; k++) {
        sum += (double)weights[self->features[k]] * (double)self->values[k];
    }
    return sum;
}
