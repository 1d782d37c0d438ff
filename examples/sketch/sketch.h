/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketch - a count-min sketch in a table
 *
 * What     The table has SKETCH_DEPTH x width cells of i64 that add. A word has
 *          a cell in each of SKETCH_DEPTH stretches of `width`; the least of
 *          them is never below its count, and above it by more than e N / width
 *          with a probability of at most e^-SKETCH_DEPTH, 2 %, after N words.
 *          It only adds, so any number of workers may insert in any order, and
 *          the cells are the same.
 * Owner    the caller; sketch_done
 * Source   Cormode and Muthukrishnan, J. Algorithms 55, 2005.
 */
#ifndef SKETCH_SKETCH_H
#define SKETCH_SKETCH_H

#include <stddef.h>
#include <stdint.h>

#include "../common/job/job.h"
#include "psd.h"
#include "psd_data.h"

#define SKETCH_DEPTH 4

typedef struct sketch {
    ex_job_t *job;
    psd_table_t *table;
    psd_localizer_t *localizer; /* adds up what goes to one cell */
    uint64_t width;             /* a power of two */
    uint64_t *cells;            /* of words that are not pushed yet */
    size_t n, room;
    int64_t *counts;
} sketch_t;

/* Opens the table; makes: create it when it does not exist; room: words that
 * are pushed together. Errors: those of psd_table_ensure; PSD_NO_TABLE;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t sketch_open(sketch_t *self, ex_job_t *job, const char *table,
                                        uint64_t width, size_t room, bool makes, psd_error_t *err);
void sketch_done(sketch_t *self);
/* A number of 64 bits for a word. */
uint64_t sketch_hash(const char *word, size_t size);
/* Counts a word; it is pushed with others. */
PSD_MUST_CHECK psd_status_t sketch_insert(sketch_t *self, uint64_t hash, psd_error_t *err);
/* Pushes what is left. */
PSD_MUST_CHECK psd_status_t sketch_flush(sketch_t *self, psd_error_t *err);
/* How often each of n words was counted, about. */
PSD_MUST_CHECK psd_status_t sketch_query(sketch_t *self, const uint64_t *hashes, size_t n,
                                         int64_t *ret_counts, psd_error_t *err);
/* How many words were counted in all. */
PSD_MUST_CHECK psd_status_t sketch_total(sketch_t *self, uint64_t *ret_total, psd_error_t *err);
#endif
