/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets, linear probing from bucket to bucket, growth in small steps. */
#include "model/row_index.h"

#include <assert.h>
#include <string.h>

#define FIRST_BUCKETS 4
#define FULL_PER_BUCKET 4 /* keys per bucket, on average, when it grows */
#define COPIES_PER_ADD                                     \
    2 /* buckets; all are copied long before `now` is full \
       */

_Static_assert(sizeof(ps_row_bucket_t) == 64, "a bucket is one cache line");

static uint64_t
n_buckets(const ps_pages_t *table)
{
    return table->size / sizeof(ps_row_bucket_t);
}

static ps_row_bucket_t *
buckets(const ps_pages_t *table)
{
    return (void *)table->data;
}

/* Nothing is ever taken out, so the first bucket that is not full ends the
 * search. */
static uint32_t *
find_in(const ps_pages_t *table, uint64_t hash, uint64_t key)
{
    uint64_t mask = n_buckets(table) - 1;
    uint64_t b = hash & mask;

    for (;;) {
        ps_row_bucket_t *bucket = &buckets(table)[b];

        for (uint32_t i = 0; i < bucket->n; i++) {
            if (bucket->keys[i] == key) {
                return &bucket->numbers[i];
            }
        }
        if (bucket->n < PS_BUCKET_KEYS) {
            return NULL;
        }
        b = (b + 1) & mask;
    }
}

static void
put_in(const ps_pages_t *table, uint64_t key, uint32_t number)
{
    uint64_t mask = n_buckets(table) - 1;
    uint64_t b = ps_hash_u64(key) & mask;
    ps_row_bucket_t *bucket = NULL;

    while (buckets(table)[b].n == PS_BUCKET_KEYS) {
        b = (b + 1) & mask;
    }
    bucket = &buckets(table)[b];
    bucket->keys[bucket->n] = key;
    bucket->numbers[bucket->n] = number;
    bucket->n++;
}

/* The old table is left as it is, because its searches run over full buckets;
 * a key that has been copied is found in the new one first. */
static void
copy_some(ps_row_index_t *self, uint64_t n)
{
    for (; n > 0 && self->old.data != NULL; n--) {
        const ps_row_bucket_t *bucket = &buckets(&self->old)[self->n_copied];

        for (uint32_t i = 0; i < bucket->n; i++) {
            put_in(&self->now, bucket->keys[i], bucket->numbers[i]);
        }
        self->n_copied++;
        if (self->n_copied == n_buckets(&self->old)) {
            ps_pages_done(&self->old);
            self->n_copied = 0;
        }
    }
}

static bool
grow(ps_row_index_t *self)
{
    uint64_t n = n_buckets(&self->now);
    ps_pages_t larger = {0};

    copy_some(self, UINT64_MAX);
    n = n == 0 ? FIRST_BUCKETS : 2 * n;
    if (!ps_pages_init(&larger, n * sizeof(ps_row_bucket_t))) {
        return false;
    }
    ps_pages_will_fill(&larger); /* hashed keys touch it everywhere */
    self->old = self->now;
    self->now = larger;
    self->n_copied = 0;
    return true;
}

void
ps_row_index_done(ps_row_index_t *self)
{
    ps_pages_done(&self->now);
    ps_pages_done(&self->old);
    memset(self, 0, sizeof *self);
}

uint32_t *
ps_row_index_find(const ps_row_index_t *self, uint64_t key)
{
    uint64_t hash = ps_hash_u64(key);
    uint32_t *number = NULL;

    if (self->now.data != NULL) {
        number = find_in(&self->now, hash, key);
    }
    if (number == NULL && self->old.data != NULL) {
        number = find_in(&self->old, hash, key);
    }
    return number;
}

bool
ps_row_index_add(ps_row_index_t *self, uint64_t key, uint32_t number)
{
    assert(number <= PS_ROW_NUMBER_MAX);
    if (self->n >= n_buckets(&self->now) * FULL_PER_BUCKET && !grow(self)) {
        return false;
    }
    copy_some(self, COPIES_PER_ADD);
    put_in(&self->now, key, number);
    self->n++;
    return true;
}

bool
ps_row_index_next(const ps_row_index_t *self,
                  uint64_t *at,
                  uint64_t *ret_key,
                  uint32_t *ret_number)
{
    uint64_t n_now = n_buckets(&self->now);
    uint64_t n_old = n_buckets(&self->old) - self->n_copied;

    /* *at counts slots, eight to a bucket: first those of the new table, then
     * those of the old one that have not been copied. */
    for (; *at / 8 < n_now + n_old; *at = (*at / 8 + 1) * 8) {
        uint64_t b = *at / 8;
        const ps_row_bucket_t *bucket =
            b < n_now ? &buckets(&self->now)[b]
                      : &buckets(&self->old)[b - n_now + self->n_copied];
        uint64_t i = *at % 8;

        if (i < bucket->n) {
            *ret_key = bucket->keys[i];
            *ret_number = bucket->numbers[i];
            (*at)++;
            return true;
        }
    }
    return false;
}

uint64_t
ps_row_index_bytes(const ps_row_index_t *self)
{
    return (uint64_t)self->now.size + self->old.size;
}
