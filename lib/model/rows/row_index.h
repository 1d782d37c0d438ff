/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_row_index - row key -> row number, for any u64 keys
 *
 * What     Open addressing by buckets of one cache line: twelve row numbers, a
 *          byte of each key's hash, a fill count. The keys themselves are in
 *          the rows, so a find reads one line here and one in the row; a caller
 *          with many keys prefetches both. Rows are never removed. The table
 *          grows by a quarter, incrementally. In every table, buckets follow
 *          the order of hashes. So the old table moves from its front, one
 *          bucket with every second added key. Keys before that front are in
 *          the new table, the others in the old one; the old memory before the
 *          front goes back to the kernel. The new table is allocated a little
 *          before anything moves, to leave time to prefault its first pages.
 *          The indexes of a table's partitions differ in size, so that they do
 *          not all start to grow at once.
 * Shape    load 0.72 to 0.78: 6.8 to 7.5 bytes for each row
 * Owner    The struct's holder.
 */
#ifndef PS_MODEL_ROW_INDEX_H
#define PS_MODEL_ROW_INDEX_H

#include "base/cursor.h"
#include "base/hash.h"
#include "base/prefetch.h"
#include "model/rows/slab.h"

#define PS_ROW_NONE UINT32_MAX                    /* no row's number */
#define PS_ROW_NUMBER_MAX ((uint32_t)PS_SLAB_MAX) /* the maximum number of rows */

#define PS_BUCKET_ROWS 12
typedef struct ps_row_bucket {
    uint8_t tags[PS_BUCKET_ROWS]; /* a byte of the hash */
    uint8_t n;                    /* rows held, from the front */
    uint8_t unused[3];
    uint32_t numbers[PS_BUCKET_ROWS];
} ps_row_bucket_t;

typedef struct ps_row_table {
    ps_pages_t pages;    /* buckets; empty when there is no table */
    uint64_t n_buckets;  /* over which hashes are spread */
    uint64_t n_with_end; /* plus a few at the end, for overflow */
    bool is_round;       /* overflow past those continued at the front */
} ps_row_table_t;

typedef struct ps_row_index {
    const ps_slab_t *rows; /* borrowed; every item begins with its key */
    ps_row_table_t now;
    ps_row_table_t old; /* the previous table, while it moves */
    uint64_t n_moved;   /* buckets of old that have moved */
    size_t returned;    /* bytes of old that were returned to the kernel */
    uint64_t growth;    /* how much larger now is than old, in parts of 2^28 */
    uint64_t n;         /* keys */
    uint64_t still;     /* up to this number of keys the old table does not move */
    size_t named;       /* bytes of now that ps_row_index_soon named */
} ps_row_index_t;

/* An empty index over rows whose first eight bytes are their key. */
void ps_row_index_init(ps_row_index_t *self, const ps_slab_t *rows);
void ps_row_index_done(ps_row_index_t *self);
/* Reserves room for `more` keys. false: no memory; the index is unchanged. */
PSD_MUST_CHECK bool ps_row_index_reserve(ps_row_index_t *self, uint64_t more);
/* Adds a key that the index does not hold and has room for. Its row must
 * exist. */
void ps_row_index_add(ps_row_index_t *self, uint64_t key, uint32_t number);
/* The row's number; PS_ROW_NONE when the index does not hold the key. */
uint32_t ps_row_index_find(const ps_row_index_t *self, uint64_t key);
/* Names the memory that growing will use next, once; as ps_pages_soon. */
bool ps_row_index_soon(ps_row_index_t *self, ps_soon_t *ret_soon);
/* Bytes of the tables, without memory that was returned or is not filled
 * yet. */
uint64_t ps_row_index_bytes(const ps_row_index_t *self);

/* The order of buckets, high bits first. Partitions by hash use the hash's high
 * bits (ps_fold), so the halves are swapped; the tag is a byte that neither
 * uses. */
static inline uint64_t ps_row_hash(uint64_t key)
{
    uint64_t hash = ps_hash_u64(key);

    return hash << 32 | hash >> 32;
}

static inline ps_row_bucket_t *ps_row_table_at(const ps_row_table_t *self, uint64_t bucket)
{
    return (ps_row_bucket_t *)(void *)self->pages.data + bucket;
}

/* The bucket where a find begins; the index must not be empty. */
static inline const ps_row_bucket_t *ps_row_index_home(const ps_row_index_t *self, uint64_t hash)
{
    if (self->old.n_buckets > 0) {
        uint64_t bucket = ps_fold(hash, self->old.n_buckets);

        if (bucket >= self->n_moved) {
            return ps_row_table_at(&self->old, bucket);
        }
    }
    return ps_row_table_at(&self->now, ps_fold(hash, self->now.n_buckets));
}

/* Prefetches the line that a find reads first. */
static inline void ps_row_index_prefetch(const ps_row_index_t *self, uint64_t hash)
{
    if (self->n > 0) {
        ps_prefetch(ps_row_index_home(self, hash));
    }
}

#ifdef __SSE2__
typedef char ps_row_tags_t __attribute__((vector_size(16)));
#endif

static inline uint8_t ps_row_tag(uint64_t hash)
{
    return (uint8_t)hash;
}

/* A bit for every row of the bucket with this tag. */
static inline uint32_t ps_row_bucket_match(const ps_row_bucket_t *self, uint8_t tag)
{
    uint32_t in_use = (UINT32_C(1) << self->n) - 1;
#ifdef __SSE2__
    ps_row_tags_t tags;
    ps_row_tags_t same = (ps_row_tags_t){0} + (char)tag;

    __builtin_memcpy(&tags, self, sizeof tags); /* more bytes than the tags: masked out */
    same = (ps_row_tags_t)(tags == same);
    return (uint32_t)__builtin_ia32_pmovmskb128(same) & in_use;
#else
    uint32_t bits = 0;

    for (uint32_t i = 0; i < PS_BUCKET_ROWS; i++) {
        bits |= (uint32_t)(self->tags[i] == tag) << i;
    }
    return bits & in_use;
#endif
}

/* The row that a find would look at first: nearly always the right one if the
 * key exists. NULL: only a find can tell. */
static inline uint8_t *ps_row_index_guess(const ps_row_index_t *self, uint64_t hash)
{
    const ps_row_bucket_t *bucket = NULL;
    uint32_t bits = 0;

    if (self->n == 0) {
        return NULL;
    }
    bucket = ps_row_index_home(self, hash);
    bits = ps_row_bucket_match(bucket, ps_row_tag(hash));
    if (bits == 0 && bucket->n == PS_BUCKET_ROWS) {
        bucket++; /* there are a few more after the last one that hashes select */
        bits = ps_row_bucket_match(bucket, ps_row_tag(hash));
    }
    return bits == 0 ? NULL : ps_slab_at(self->rows, bucket->numbers[__builtin_ctz(bits)]);
}
#endif
