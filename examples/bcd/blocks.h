/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks - the features, cut into blocks for training one after another
 *
 * What     All workers cut in the same way: by group of features first, then by
 *          a hash of the key. So each knows the block of a feature without
 *          asking. A group in which a sample has e entries on average has
 *          ceil(e * ratio) blocks when e > 1, else one.
 * Owner    the caller; bcd_blocks_done
 */
#ifndef BCD_BLOCKS_H
#define BCD_BLOCKS_H

#include "../common/samples/samples.h"
#include "psd.h"

/* A group of features, in the data of all workers. */
typedef struct bcd_group {
    int64_t id;
    double n_entries;
} bcd_group_t;

typedef struct bcd_blocks {
    size_t n;
    size_t n_prior;     /* the first blocks: those of groups that come first */
    size_t greatest;    /* features of the largest block */
    size_t *starts;     /* n + 1: block b has features[starts[b] ..] */
    uint32_t *features; /* ascending in each block */
} bcd_blocks_t;

/* How many blocks a group has. */
size_t bcd_blocks_count(double n_entries, double n_samples, double ratio);
/* The input of the cut; the same for all workers. */
typedef struct bcd_cut {
    const bcd_group_t *groups; /* with those that come first at the front */
    size_t n_groups;           /* all groups that any worker has */
    size_t n_prior;            /* how many of them come first */
    double n_samples;          /* of all workers */
    double ratio;
} bcd_cut_t;

/* Cuts the features of a worker's samples. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t bcd_blocks_init(bcd_blocks_t *self, const ex_samples_t *samples,
                                            const bcd_cut_t *cut, psd_error_t *err);
void bcd_blocks_done(bcd_blocks_t *self);
#endif
