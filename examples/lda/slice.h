/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda_slice - the counts of some words, as this worker has them in memory
 *
 * What     For each word of a range its counts by topic, those that came from
 *          the table and those that sampling has made of them, and an alias
 *          table that was built when they came. A word's proposal is
 *          (base + beta) / (total + V beta) with the counts of that moment; its
 *          two terms are drawn apart: the one of the counts from the word's
 *          own table, that of beta from one that all words share.
 * Shape    A frequent word has a cell for every topic; a rare one a hash table
 *          by topic with room for four times its tokens, in buckets of four
 *          cells that fill from the first one on. A cell has 16 bits of count
 *          and of base, one of a hash table 32 of topic, too; that of a word of
 *          2^16 tokens or more has 32 of count and of base. So reading a row is
 *          one memory access. The word's alias table follows the cells.
 * Time     The topics are unpredictable, so a look-up has no branch that
 *          depends on them, except when a bucket is full; it compares a
 *          bucket's four topics at once.
 * Owner    the caller; lda_slice_done
 * Source   Yuan et al., "LightLDA", WWW 2015, sections 4 and 5.2
 */
#ifndef LDA_SLICE_H
#define LDA_SLICE_H

#include <stdbool.h>
#include <string.h>

#include "../common/program/random.h"
#include "alias.h"
#include "psd.h"

#define LDA_NO_TOPIC UINT32_MAX
#define LDA_COUNT_BITS 16
#define LDA_BUCKET 4

typedef struct lda_prior {
    uint32_t n_topics;
    uint32_t n_words; /* of the vocabulary */
    double alpha;     /* of each topic in a document */
    double beta;      /* of each word in a topic */
} lda_prior_t;

/* A cell, unpacked. */
typedef struct lda_cell {
    uint32_t topic; /* LDA_NO_TOPIC: free */
    int32_t count;
    int32_t base; /* as it came */
} lda_cell_t;

/* Four cells of a hash table; half a line of the cache. */
typedef struct lda_bucket {
    uint32_t topics[LDA_BUCKET];
    uint32_t values[LDA_BUCKET]; /* count << LDA_COUNT_BITS | base */
} lda_bucket_t;

typedef uint32_t lda_four_t __attribute__((vector_size(16)));

typedef struct lda_change {
    uint32_t topic;
    int32_t delta;
} lda_change_t;

typedef enum lda_shape {
    LDA_HASHED, /* buckets */
    LDA_NARROW, /* for each topic a value, as a bucket has them */
    LDA_WIDE,   /* for each topic count << 32 | base */
} lda_shape_t;

/* Half a line of the cache. */
typedef struct lda_row {
    size_t cells;       /* where they begin */
    double mass;        /* of the term of the counts */
    uint32_t n_cells;   /* as the topics or one more, or else a power of two */
    uint32_t n_entries; /* of the alias table */
    uint32_t n_tokens;
    uint8_t shape;       /* lda_shape_t */
    uint8_t left, right; /* topic << left >> right is where its cell may be */
} lda_row_t;

typedef struct lda_slice {
    lda_prior_t prior;
    uint32_t first; /* word */
    uint32_t n;
    lda_row_t *rows;
    uint64_t *cells; /* or buckets, of each row, and its alias table */
    size_t rows_room, cells_room;
    double *stale;       /* by topic: total + V beta, as it came */
    lda_alias_t *smooth; /* by topic: beta / stale */
    double smooth_mass;
    double *weights; /* scratch of n_topics */
    uint32_t *scratch;
} lda_slice_t;

/* The most memory that a word of that many tokens takes. */
size_t lda_slice_row_bytes(const lda_prior_t *prior, uint32_t frequency);
/* PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_slice_init(lda_slice_t *self, const lda_prior_t *prior,
                                           psd_error_t *err);
void lda_slice_done(lda_slice_t *self);
/* Words first .. first + n - 1, without counts yet. frequencies has the tokens
 * of each of them, totals those of each topic. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_slice_begin(lda_slice_t *self, uint32_t first, uint32_t n,
                                            const uint32_t *frequencies, const int64_t *totals,
                                            psd_error_t *err);
/* The counts of a word: n topics, each once, and how often each. Errors:
 * PSD_DAMAGED a topic that does not exist, a count below 0, or a sum that is
 * not the word's tokens. */
PSD_MUST_CHECK psd_status_t lda_slice_set(lda_slice_t *self, uint32_t word, uint32_t frequency,
                                          const uint32_t *topics, const int32_t *counts, size_t n,
                                          psd_error_t *err);
/* Adds to a count. A count never falls below 0, and a word never gets more
 * tokens than it began with. */
void lda_slice_add(lda_slice_t *self, uint32_t word, uint32_t topic, int delta);
/* By how much a word's counts have changed, by ascending topic; room for
 * n_topics. Gives how many there are. */
size_t lda_slice_changes(const lda_slice_t *self, uint32_t word, lda_change_t *ret_changes);

/* Where a topic's cell is, or the first bucket that it may be in. */
static inline size_t lda_row_place(const lda_row_t *row, uint32_t topic)
{
    uint32_t every = 0 - (uint32_t)(row->shape != LDA_HASHED);
    uint32_t mask = (row->n_cells - LDA_BUCKET) | every;

    return row->cells + (topic << row->left >> row->right & mask);
}

static inline const lda_alias_t *lda_row_entries(const lda_slice_t *self, const lda_row_t *row)
{
    return self->cells + row->cells + (row->n_cells >> row->right);
}

static inline lda_cell_t lda_cell_wide(uint32_t topic, uint64_t cell)
{
    return (lda_cell_t){topic, (int32_t)(cell >> 32), (int32_t)(cell & UINT32_MAX)};
}

static inline lda_cell_t lda_cell_narrow(uint32_t topic, uint32_t value)
{
    return (lda_cell_t){topic, (int32_t)(value >> LDA_COUNT_BITS),
                        (int32_t)(value & (UINT32_MAX >> LDA_COUNT_BITS))};
}

/* The bucket of a hash table that has cell i, or begins there. */
static inline lda_bucket_t *lda_row_bucket(const lda_slice_t *self, const lda_row_t *row,
                                           uint32_t i)
{
    return (lda_bucket_t *)(void *)(self->cells + row->cells) + i / LDA_BUCKET;
}

static inline uint32_t *lda_row_values(const lda_slice_t *self, const lda_row_t *row)
{
    return (uint32_t *)(void *)(self->cells + row->cells);
}

/* The sum of four numbers, below 2^32. */
static inline uint32_t lda_four_sum(lda_four_t four)
{
    uint64_t halves[2];

    memcpy(halves, &four, sizeof halves);
    halves[0] += halves[1];
    return (uint32_t)(halves[0] + (halves[0] >> 32));
}

/* The value of a topic, 0 if it is not in the bucket. */
static inline uint32_t lda_bucket_value(const lda_bucket_t *bucket, uint32_t topic)
{
    lda_four_t topics;
    lda_four_t values;

    memcpy(&topics, bucket->topics, sizeof topics);
    memcpy(&values, bucket->values, sizeof values);
    return lda_four_sum((lda_four_t)(topics == topic) & values);
}

/* The cell of a topic in a hash table; without one, neither count nor base. */
static inline lda_cell_t lda_row_find(const lda_slice_t *self, const lda_row_t *row, uint32_t topic)
{
    uint32_t mask = row->n_cells - LDA_BUCKET;
    uint32_t at = topic * LDA_BUCKET & mask;

    for (uint32_t i = 0; i < row->n_cells; i += LDA_BUCKET) {
        const lda_bucket_t *bucket = lda_row_bucket(self, row, at);
        uint32_t value = lda_bucket_value(bucket, topic);
        bool full = bucket->topics[LDA_BUCKET - 1] != LDA_NO_TOPIC;

        if (!(full & (value == 0))) {
            return lda_cell_narrow(topic, value);
        }
        at = (at + LDA_BUCKET) & mask;
    }
    return (lda_cell_t){0};
}

/* The count and base of a topic; its `topic` says nothing. The shape is the
 * row's: where it is known to the compiler, one way is left. */
static inline lda_cell_t lda_row_cell(const lda_slice_t *self, const lda_row_t *row,
                                      lda_shape_t shape, uint32_t topic)
{
    switch (shape) {
    case LDA_NARROW:
        return lda_cell_narrow(topic, lda_row_values(self, row)[topic]);
    case LDA_WIDE:
        return lda_cell_wide(topic, self->cells[row->cells + topic]);
    case LDA_HASHED:
        break;
    }
    return lda_row_find(self, row, topic);
}

/* Cell i < n_cells. */
static inline lda_cell_t lda_row_at(const lda_slice_t *self, const lda_row_t *row, uint32_t i)
{
    const lda_bucket_t *bucket = NULL;

    if (row->shape != LDA_HASHED) {
        return lda_row_cell(self, row, row->shape, i);
    }
    bucket = lda_row_bucket(self, row, i);
    return lda_cell_narrow(bucket->topics[i % LDA_BUCKET], bucket->values[i % LDA_BUCKET]);
}

/* A topic of a word's proposal. */
static inline uint32_t lda_row_draw(const lda_slice_t *self, const lda_row_t *row, uint64_t *random)
{
    double all = row->mass + self->smooth_mass;

    return ex_random_real(random) * all < row->mass
               ? lda_alias_draw(lda_row_entries(self, row), row->n_entries, ex_random(random))
               : lda_alias_draw(self->smooth, self->prior.n_topics, ex_random(random));
}
#endif
