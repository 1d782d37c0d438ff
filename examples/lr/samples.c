/* SPDX-License-Identifier: Apache-2.0 */
/* Labelled sparse examples in memory. */
#include "samples.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 1024

void
lr_samples_done(lr_samples_t *self)
{
    free(self->starts);
    free(self->labels);
    free(self->features);
    free(self->values);
    memset(self, 0, sizeof(*self));
}

static size_t
next_room(size_t room)
{
    return room == 0 ? FIRST_ROOM : room + room / 2;
}

/* What was grown before memory ran out stays: it is only room. */
static bool
grow_samples(lr_samples_t *self)
{
    size_t room = next_room(self->samples_room);
    size_t *starts = realloc(self->starts, (room + 1) * sizeof(*starts));
    int8_t *labels = NULL;

    if (starts == NULL) {
        return false;
    }
    self->starts = starts;
    labels = realloc(self->labels, room * sizeof(*labels));
    if (labels == NULL) {
        return false;
    }
    self->labels = labels;
    self->samples_room = room;
    return true;
}

static bool
grow_entries(lr_samples_t *self)
{
    size_t room = next_room(self->entries_room);
    uint32_t *features = realloc(self->features, room * sizeof(*features));
    float *values = NULL;

    if (features == NULL) {
        return false;
    }
    self->features = features;
    values = realloc(self->values, room * sizeof(*values));
    if (values == NULL) {
        return false;
    }
    self->values = values;
    self->entries_room = room;
    return true;
}

bool
lr_samples_add(lr_samples_t *self, int8_t label)
{
    if (self->n == self->samples_room) {
        if (!grow_samples(self)) {
            return false;
        }
    }
    self->labels[self->n] = label;
    self->starts[self->n] = self->n_entries;
    self->n++;
    self->starts[self->n] = self->n_entries;
    return true;
}

bool
lr_samples_add_entry(lr_samples_t *self, uint32_t feature, float value)
{
    if (self->n_entries == self->entries_room) {
        if (!grow_entries(self)) {
            return false;
        }
    }
    self->features[self->n_entries] = feature;
    self->values[self->n_entries] = value;
    self->n_entries++;
    self->starts[self->n] = self->n_entries;
    return true;
}

double
lr_samples_dot(const lr_samples_t *self, size_t i, const float *weights)
{
    double sum = 0;

    for (size_t k = self->starts[i]; k < self->starts[i + 1]; k++) {
        sum += (double)weights[self->features[k]] * (double)self->values[k];
    }
    return sum;
}
