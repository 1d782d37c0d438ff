/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_key_sort - the keys of a batch in ascending order, each with its place
 *
 * What     A radix sort from the most significant bit that differs: each part
 *          is cut by as many bits as it has entries for, so that a batch of n
 *          random keys costs about log2(n) bits of work, not 64, and keys that
 *          are all the same cost nothing. Short parts are sorted by insertion.
 *          The first cut, by 8 bits, is made by all threads together; then each
 *          takes one of the 256 parts after the other. So one thread sorts a
 *          part that has nearly all keys.
 * Shape    equal keys stand in no promised order
 * Owner    the caller; items and spare have room for n
 */
#ifndef PS_DATA_KEY_SORT_H
#define PS_DATA_KEY_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "data/feed/crew.h"

typedef struct ps_key_item {
    uint64_t key;
    uint32_t place; /* in the batch */
} ps_key_item_t;

#define PS_KEY_DIGITS 256u

/* What the members of the crew count while they cut the batch. */
typedef struct ps_key_counts {
    uint32_t of[PS_KEY_DIGITS];
} ps_key_counts_t;

/* n <= UINT32_MAX; counts: one of each member, overwritten. Sorted: items. */
void ps_key_sort(ps_crew_t *crew, ps_key_counts_t *counts, const uint64_t *keys, size_t n,
                 ps_key_item_t *items, ps_key_item_t *spare);
#endif
