/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets, linear probing from bucket to bucket, incremental growth from the
 * front. */
#include "model/rows/row_index.h"

#include <assert.h>
#include <string.h>

#define FIRST_BUCKETS 8
#define END_BUCKETS 16    /* at the end of a table; see put_in */
#define PAUSE_BUCKETS 512 /* a table of up to this size moves at once */
#define FULL_NUM 78       /* per cent of its places that a table fills before it grows */
#define FULL_DEN 100
#define KEYS_PER_STEP                                                                           \
    2                                   /* added for a bucket that moves: all have moved when a \
                                           fifth more keys are there, at nine tenths of the     \
                                           places in what is left of the old table */
#define EARLY 64                        /* the next table is allocated 1/EARLY of the keys ahead */
#define STAGGER 8                       /* different sizes of the indexes of one table … */
#define STAGGER_DEN 40                  /* … each larger by such a part than the one before */
#define AHEAD 8                         /* buckets whose rows are prefetched before they move */
#define GROWTH_UNIT (UINT64_C(1) << 28) /* `growth` is in parts of it */

_Static_assert(sizeof(ps_row_bucket_t) == 64, "a bucket is one cache line");

static uint64_t key_at(const ps_row_index_t *self, uint32_t number)
{
    return ps_load_u64(ps_slab_at(self->rows, number));
}

static uint32_t find_in_bucket(const ps_row_index_t *self, const ps_row_bucket_t *bucket,
                               uint8_t tag, uint64_t key)
{
    for (uint32_t bits = ps_row_bucket_match(bucket, tag); bits != 0; bits &= bits - 1) {
        uint32_t number = bucket->numbers[__builtin_ctz(bits)];

        if (key_at(self, number) == key) {
            return number;
        }
    }
    return PS_ROW_NONE;
}

/* Searches from a bucket on. Nothing is ever removed, so the first bucket that
 * is not full ends the search. *ret_ran_over: the search reached the end. */
static uint32_t find_from(const ps_row_index_t *self, const ps_row_table_t *table, uint64_t b,
                          uint64_t hash, uint64_t key, bool *ret_ran_over)
{
    for (; b < table->n_with_end; b++) {
        const ps_row_bucket_t *bucket = ps_row_table_at(table, b);
        uint32_t number = find_in_bucket(self, bucket, ps_row_tag(hash), key);

        if (number != PS_ROW_NONE || bucket->n < PS_BUCKET_ROWS) {
            return number;
        }
    }
    *ret_ran_over = true;
    return PS_ROW_NONE;
}

uint32_t ps_row_index_find(const ps_row_index_t *self, uint64_t key)
{
    uint64_t hash = ps_row_hash(key);
    bool ran_over = false;
    uint32_t number = PS_ROW_NONE;

    if (self->n == 0) {
        return PS_ROW_NONE;
    }
    if (self->old.n_buckets > 0) {
        uint64_t b = ps_fold(hash, self->old.n_buckets);

        if (b >= self->n_moved) {
            number = find_from(self, &self->old, b, hash, key, &ran_over);
            if (number != PS_ROW_NONE || !ran_over) {
                return number;
            }
            ran_over = false;
        }
    }
    number = find_from(self, &self->now, ps_fold(hash, self->now.n_buckets), hash, key, &ran_over);
    if (number == PS_ROW_NONE && ran_over && self->now.is_round) {
        number = find_from(self, &self->now, 0, hash, key, &ran_over);
    }
    return number;
}

/* Puts a key into the first bucket from b on that is not full; false when there
 * is none up to the end. Keys that are spread by their hash never get there
 * (the odds are below 1e-20); adversarially chosen keys may. */
static bool put_from(const ps_row_table_t *table, uint64_t b, uint8_t tag, uint32_t number)
{
    for (; b < table->n_with_end; b++) {
        ps_row_bucket_t *bucket = ps_row_table_at(table, b);

        if (bucket->n < PS_BUCKET_ROWS) {
            bucket->tags[bucket->n] = tag;
            bucket->numbers[bucket->n] = number;
            bucket->n++;
            return true;
        }
    }
    return false;
}

static void put_now(ps_row_index_t *self, uint64_t hash, uint32_t number)
{
    ps_row_table_t *now = &self->now;

    if (!put_from(now, ps_fold(hash, now->n_buckets), ps_row_tag(hash), number)) {
        bool is_put = put_from(now, 0, ps_row_tag(hash), number);

        assert(is_put); /* a table is never full */
        now->is_round = true;
    }
}

/* Prefetches what moving will need: the bucket, a little later the rows whose
 * keys it reads, and their destination buckets. */
static void ask_ahead(const ps_row_index_t *self, uint64_t b)
{
    const ps_row_table_t *old = &self->old;
    uint64_t to = (b + AHEAD) * self->growth / GROWTH_UNIT;

    if (b + 2 * AHEAD < old->n_with_end) {
        const ps_row_bucket_t *bucket = ps_row_table_at(old, b + AHEAD);

        ps_prefetch(ps_row_table_at(old, b + 2 * AHEAD));
        for (uint32_t i = 0; i < bucket->n; i++) {
            ps_prefetch(ps_slab_at(self->rows, bucket->numbers[i]));
        }
    }
    for (uint64_t i = to; i < to + 2 && i < self->now.n_with_end; i++) {
        ps_prefetch(ps_row_table_at(&self->now, i));
    }
}

/* Moves n buckets, and the buckets into which the last of them overflowed, so
 * that no search that begins after the front needs a bucket before it. */
static void move_some(ps_row_index_t *self, uint64_t n)
{
    ps_row_table_t *old = &self->old;
    bool is_full = false;

    for (; (n > 0 || is_full) && self->n_moved<old->n_with_end; n -= n> 0 ? 1 : 0) {
        const ps_row_bucket_t *bucket = ps_row_table_at(old, self->n_moved);

        ask_ahead(self, self->n_moved);
        for (uint32_t i = 0; i < bucket->n; i++) {
            uint64_t hash = ps_row_hash(key_at(self, bucket->numbers[i]));

            put_now(self, hash, bucket->numbers[i]);
        }
        is_full = bucket->n == PS_BUCKET_ROWS;
        self->n_moved++;
    }
    if (self->n_moved == old->n_with_end) {
        ps_pages_done(&old->pages);
        *old = (ps_row_table_t){0};
        self->returned = 0;
        return;
    }
    ps_pages_return(&old->pages, self->n_moved * sizeof(ps_row_bucket_t), &self->returned);
}

/* The number of keys at which a table of n buckets starts to move to the next
 * one. */
static uint64_t limit_of(uint64_t n_buckets)
{
    return n_buckets * PS_BUCKET_ROWS * FULL_NUM / FULL_DEN;
}

/* The number of keys at which the next table is allocated. A small table moves
 * at once. */
static uint64_t early_limit_of(uint64_t n_buckets)
{
    uint64_t limit = limit_of(n_buckets);

    return n_buckets <= PAUSE_BUCKETS ? limit : limit - limit / EARLY;
}

/* Buckets of the table after one of n. The first table that does not move at
 * once gets a size that depends on the partition. Partitions divide the keys by
 * the high bits of the hash (ps_fold), so the first key's hash tells them
 * apart. */
static uint64_t next_size(const ps_row_index_t *self, uint64_t n)
{
    uint64_t larger = n <= PAUSE_BUCKETS ? 2 * n : n + n / 4;

    if (n <= PAUSE_BUCKETS && larger > PAUSE_BUCKETS && self->n > 0) {
        larger += larger * ps_fold(ps_hash_u64(key_at(self, 0)), STAGGER) / STAGGER_DEN;
    }
    return larger < FIRST_BUCKETS ? FIRST_BUCKETS : larger;
}

static bool grow(ps_row_index_t *self, uint64_t n_keys)
{
    uint64_t n = next_size(self, self->now.n_buckets);
    ps_row_table_t larger = {0};

    if (limit_of(n) < n_keys) {
        n = n_keys / PS_BUCKET_ROWS * FULL_DEN / FULL_NUM + FIRST_BUCKETS;
    }
    larger.n_buckets = n;
    larger.n_with_end = n + END_BUCKETS;
    if (!ps_pages_init(&larger.pages, larger.n_with_end * sizeof(ps_row_bucket_t))) {
        return false;
    }
    ps_pages_will_fill(&larger.pages); /* hashed keys touch all of it */
    move_some(self, UINT64_MAX);
    self->old = self->now;
    self->now = larger;
    self->n_moved = 0;
    self->named = 0;
    self->still = limit_of(self->old.n_buckets);
    self->growth = n * GROWTH_UNIT / (self->old.n_buckets + 1);
    if (self->old.n_buckets <= PAUSE_BUCKETS || self->old.is_round) {
        move_some(self, UINT64_MAX);
    }
    return true;
}

void ps_row_index_init(ps_row_index_t *self, const ps_slab_t *rows)
{
    *self = (ps_row_index_t){.rows = rows};
}

void ps_row_index_done(ps_row_index_t *self)
{
    ps_pages_done(&self->now.pages);
    ps_pages_done(&self->old.pages);
    memset(self, 0, sizeof *self);
}

bool ps_row_index_reserve(ps_row_index_t *self, uint64_t more)
{
    uint64_t n = self->n + more;

    if (n <= early_limit_of(self->now.n_buckets)) {
        return true;
    }
    return (self->old.n_buckets > 0 && n <= limit_of(self->now.n_buckets)) || grow(self, n) ||
           n <= limit_of(self->now.n_buckets);
}

void ps_row_index_add(ps_row_index_t *self, uint64_t key, uint32_t number)
{
    uint64_t hash = ps_row_hash(key);
    uint64_t b = 0;

    assert(self->n < limit_of(self->now.n_buckets));
    self->n++;
    if (self->old.n_buckets > 0 && self->n > self->still && self->n % KEYS_PER_STEP == 0) {
        move_some(self, 1);
    }
    if (self->old.n_buckets > 0) {
        b = ps_fold(hash, self->old.n_buckets);
        if (b >= self->n_moved && put_from(&self->old, b, ps_row_tag(hash), number)) {
            return;
        }
    }
    put_now(self, hash, number);
}

/* The position of the old table's front in the new one. */
static uint64_t front(const ps_row_index_t *self)
{
    return self->n_moved * self->growth / GROWTH_UNIT;
}

bool ps_row_index_soon(ps_row_index_t *self, ps_soon_t *ret_soon)
{
    return self->old.n_buckets > 0 &&
           ps_pages_soon(&self->now.pages, front(self) * sizeof(ps_row_bucket_t), &self->named,
                         ret_soon);
}

uint64_t ps_row_index_bytes(const ps_row_index_t *self)
{
    const ps_row_table_t *old = &self->old;
    uint64_t now = self->now.pages.size;

    if (old->n_buckets > 0) { /* only this part of the new table is filled */
        uint64_t n = (uint64_t)((ps_u128_t)self->n_moved * self->now.n_buckets / old->n_buckets) +
                     END_BUCKETS;
        uint64_t filled = n * sizeof(ps_row_bucket_t);

        now = filled < now ? filled : now;
    }
    return now + old->pages.size - self->returned;
}
