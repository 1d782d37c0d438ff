/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_row_set - rows, each once, numbered in the order in which they are added
 *
 * Shape    open addressing over the list of rows, load <= 1/2
 * Owner    A zeroed struct is an empty set; ps_row_set_done frees it.
 * Threads  Several threads may look up rows while none changes the set.
 */
#ifndef PS_TRAIN_ROW_SET_H
#define PS_TRAIN_ROW_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#define PS_ROW_NONE SIZE_MAX

typedef struct ps_row_set {
    uint64_t *rows; /* owned; n of them */
    size_t n;
    size_t capacity;
    uint32_t *slots; /* owned; number + 1 of a row, 0: free */
    size_t n_slots;  /* 0 or a power of two */
} ps_row_set_t;

void ps_row_set_done(ps_row_set_t *self);
/* Empties it and keeps its memory. */
void ps_row_set_clear(ps_row_set_t *self);
/* The number of the row, which is added if it is not there. false: no memory,
 * or 2^32 - 1 rows; nothing changed. */
PSD_MUST_CHECK bool ps_row_set_add(ps_row_set_t *self, uint64_t row, size_t *ret_number);
/* PS_ROW_NONE: it is not there. */
size_t ps_row_set_find(const ps_row_set_t *self, uint64_t row);
#endif
