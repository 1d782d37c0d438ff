/* SPDX-License-Identifier: Apache-2.0 */
/* The features, cut into blocks. */
#include "blocks.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX 1e6

size_t bcd_blocks_count(double n_entries, double n_samples, double ratio)
{
    double each = n_samples > 0 ? n_entries / n_samples : 0;

    if (each <= 1) {
        return 1;
    }
    return (size_t)fmin(fmax(ceil(each * ratio), 1), BLOCKS_MAX);
}

/* Spreads neighbouring keys: splitmix64's last step. */
static uint64_t mix(uint64_t key)
{
    key = (key ^ (key >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ (key >> 27)) * UINT64_C(0x94d049bb133111eb);
    return key ^ (key >> 31);
}

static size_t group_of(const bcd_cut_t *cut, int64_t id)
{
    size_t g = 0;

    while (g < cut->n_groups && cut->groups[g].id != id) {
        g++;
    }
    assert(g < cut->n_groups); /* the workers have exchanged their counts */
    return g;
}

/* firsts[g] is the first block of group g; n_groups + 1 of them. */
static size_t *count_blocks(const bcd_cut_t *cut)
{
    size_t *firsts = calloc(cut->n_groups + 1, sizeof(*firsts));

    for (size_t g = 0; firsts != NULL && g < cut->n_groups; g++) {
        firsts[g + 1] =
            firsts[g] + bcd_blocks_count(cut->groups[g].n_entries, cut->n_samples, cut->ratio);
    }
    return firsts;
}

/* Sorts the features by block, in two passes that count. */
static void deal(bcd_blocks_t *self, const ex_samples_t *samples, const bcd_cut_t *cut,
                 const size_t *firsts, uint32_t *block_of)
{
    for (size_t j = 0; j < samples->n_features; j++) {
        size_t g = group_of(cut, samples->groups[j]);
        size_t n = firsts[g + 1] - firsts[g];

        block_of[j] = (uint32_t)(firsts[g] + mix(samples->keys[j]) % n);
        self->starts[block_of[j] + 1]++;
    }
    for (size_t b = 0; b < self->n; b++) {
        if (self->starts[b + 1] > self->greatest) {
            self->greatest = self->starts[b + 1];
        }
        self->starts[b + 1] += self->starts[b];
    }
    for (size_t j = 0; j < samples->n_features; j++) {
        self->features[self->starts[block_of[j]]++] = (uint32_t)j;
    }
    memmove(self->starts + 1, self->starts, self->n * sizeof(*self->starts));
    self->starts[0] = 0;
}

psd_status_t bcd_blocks_init(bcd_blocks_t *self, const ex_samples_t *samples, const bcd_cut_t *cut,
                             psd_error_t *err)
{
    size_t *firsts = count_blocks(cut);
    uint32_t *block_of = malloc((samples->n_features + 1) * sizeof(*block_of));
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof(*self));
    self->features = malloc((samples->n_features + 1) * sizeof(*self->features));
    if (firsts != NULL) {
        self->n = firsts[cut->n_groups];
        self->n_prior = firsts[cut->n_prior];
        self->starts = calloc(self->n + 2, sizeof(*self->starts));
    }
    if (block_of == NULL || self->features == NULL || self->starts == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "blocks of %zu features", samples->n_features);
        bcd_blocks_done(self);
    } else {
        deal(self, samples, cut, firsts, block_of);
    }
    free(firsts);
    free(block_of);
    return rc;
}

void bcd_blocks_done(bcd_blocks_t *self)
{
    free(self->starts);
    free(self->features);
    memset(self, 0, sizeof(*self));
}
