/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_count_sketch - about how often each of very many keys was seen
 *
 * What     A count-min sketch: each key has a cell in each of four rows, and
 *          its least one is never below its true count (up to 255, where cells
 *          stay). After N counts in rows of W cells a key is counted too high
 *          by more than e N / W with a probability of at most e^-4, 2 %.
 * Owner    the caller owns the struct
 * Threads  several may add at the same time, and several may look; looks that
 *          come after all adds give the same on any number of threads
 * Source   Cormode and Muthukrishnan, J. Algorithms 55, 2005.
 */
#ifndef PS_DATA_COUNT_SKETCH_H
#define PS_DATA_COUNT_SKETCH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#define PS_COUNT_SKETCH_ROWS 4u
#define PS_COUNT_SKETCH_MOST 255u /* what a cell holds */

typedef struct ps_count_sketch {
    _Atomic uint8_t *cells; /* owned; PS_COUNT_SKETCH_ROWS rows */
    size_t row_cells;       /* a power of two */
} ps_count_sketch_t;

/* At least `cells` of them in all. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_count_sketch_init(ps_count_sketch_t *self, size_t cells,
                                                 psd_error_t *err);
/* Frees what is inside and zeroes it; fits PSD_AUTO. */
void ps_count_sketch_done(ps_count_sketch_t *self);
void ps_count_sketch_add(ps_count_sketch_t *self, uint64_t key, uint32_t count);
uint32_t ps_count_sketch_look(const ps_count_sketch_t *self, uint64_t key);
#endif
