/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_row_index - row key -> row number, for any u64 keys
 *
 * What     Open addressing by buckets of one cache line: five keys, their
 *          numbers and a fill count, so that most look-ups touch one line,
 *          which a caller with many keys asks for ahead. It grows without a
 *          pause: while a table twice as large fills, the old one is read
 *          beside it, and every insertion copies two of its buckets over.
 *          Rows are never taken out.
 * Shape    load between 0.4 and 0.8: 16 to 32 bytes per row
 * Owner    The struct's holder; a zeroed struct is an empty index.
 */
#ifndef PS_MODEL_ROW_INDEX_H
#define PS_MODEL_ROW_INDEX_H

#include "base/hash.h"
#include "model/pages.h"

#define PS_ROW_NUMBER_MAX ((UINT32_C(1) << 31) - 1)
#define PS_ROW_MARK (UINT32_C(1) << 31) /* a flag of the caller's, per row */

#define PS_BUCKET_KEYS 5
typedef struct ps_row_bucket {
    uint64_t keys[PS_BUCKET_KEYS];
    uint32_t numbers[PS_BUCKET_KEYS]; /* number, or'ed with PS_ROW_MARK */
    uint32_t n;                       /* keys held, from the front */
} ps_row_bucket_t;

typedef struct ps_row_index {
    ps_pages_t now;    /* buckets; a power of two of them */
    ps_pages_t old;    /* the table before, while it is copied; else empty */
    uint64_t n_copied; /* buckets of old that have been copied */
    uint64_t n;        /* keys */
} ps_row_index_t;

void ps_row_index_done(ps_row_index_t *self);
/* The number (and mark) of the key, to read or to mark; NULL when it is not
 * there. Valid until the next ps_row_index_add. */
uint32_t *ps_row_index_find(const ps_row_index_t *self, uint64_t key);
/* Adds a key that is not there. number <= PS_ROW_NUMBER_MAX. false: no memory,
 * nothing changed. */
PSD_MUST_CHECK bool
ps_row_index_add(ps_row_index_t *self, uint64_t key, uint32_t number);
/* Walks all keys in no useful order: start with *at = 0; false at the end. No
 * change of the index while walking. */
bool ps_row_index_next(const ps_row_index_t *self,
                       uint64_t *at,
                       uint64_t *ret_key,
                       uint32_t *ret_number);
uint64_t ps_row_index_bytes(const ps_row_index_t *self);

/* Partitions by hash take the hash's high bits (ps_fold), this the low ones;
 * so the keys of one partition still spread over all buckets. */
static inline ps_row_bucket_t *
ps_row_bucket_of(const ps_pages_t *table, uint64_t hash)
{
    uint64_t mask = table->size / sizeof(ps_row_bucket_t) - 1;

    return (ps_row_bucket_t *)(void *)table->data + (hash & mask);
}

/* Asks the processor for the line that a find of the key will read. */
static inline void
ps_row_index_prefetch(const ps_row_index_t *self, uint64_t key)
{
    uint64_t hash = ps_hash_u64(key);

    if (self->now.data != NULL) {
        __builtin_prefetch(ps_row_bucket_of(&self->now, hash));
    }
    if (self->old.data != NULL) {
        __builtin_prefetch(ps_row_bucket_of(&self->old, hash));
    }
}
#endif
