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
 * Shape    A row is a hash table of cells by topic. A frequent word has a cell
 *          for every topic, each in its own place; a rare one has room for
 *          twice its tokens, all it can need.
 * Owner    the caller; lda_slice_done
 * Source   Yuan et al., "LightLDA", WWW 2015, sections 4 and 5.2
 */
#ifndef LDA_SLICE_H
#define LDA_SLICE_H

#include <stdbool.h>

#include "../common/random.h"
#include "alias.h"
#include "psd.h"

#define LDA_NO_TOPIC UINT32_MAX

typedef struct lda_prior {
    uint32_t n_topics;
    uint32_t n_words; /* of the vocabulary */
    double alpha;     /* of each topic in a document */
    double beta;      /* of each word in a topic */
} lda_prior_t;

typedef struct lda_cell {
    uint32_t topic; /* LDA_NO_TOPIC: free */
    int32_t count;
    int32_t base; /* as it came */
} lda_cell_t;

typedef struct lda_change {
    uint32_t topic;
    int32_t delta;
} lda_change_t;

typedef struct lda_row {
    size_t cells;   /* where they begin */
    size_t entries; /* of the alias table */
    uint32_t mask;  /* cells - 1 */
    uint32_t n_entries;
    double mass; /* of the term of the counts */
} lda_row_t;

typedef struct lda_slice {
    lda_prior_t prior;
    uint32_t first; /* word */
    uint32_t n;
    lda_row_t *rows;
    lda_cell_t *cells;
    lda_alias_t *entries;
    size_t rows_room, cells_room, entries_room, entries_used;
    double *stale;       /* by topic: total + V beta, as it came */
    lda_alias_t *smooth; /* by topic: beta / stale */
    double smooth_mass;
    double *weights; /* scratch of n_topics */
    uint32_t *scratch;
} lda_slice_t;

/* What a word of so many tokens takes of memory, at most. */
size_t lda_slice_row_bytes(const lda_prior_t *prior, uint32_t frequency);
/* PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_slice_init(lda_slice_t *self,
                                           const lda_prior_t *prior,
                                           psd_error_t *err);
void lda_slice_done(lda_slice_t *self);
/* Words first .. first + n - 1, without counts yet. frequencies has the tokens
 * of each of them, totals those of each topic. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_slice_begin(lda_slice_t *self,
                                            uint32_t first,
                                            uint32_t n,
                                            const uint32_t *frequencies,
                                            const int64_t *totals,
                                            psd_error_t *err);
/* The counts of a word: n topics, each once, and how often each. Errors:
 * PSD_DAMAGED a topic that there is not, a count below 0, or they are not as
 * many as the word's tokens. */
PSD_MUST_CHECK psd_status_t lda_slice_set(lda_slice_t *self,
                                          uint32_t word,
                                          uint32_t frequency,
                                          const uint32_t *topics,
                                          const int32_t *counts,
                                          size_t n,
                                          psd_error_t *err);
/* Adds to a count. A count never gets below 0, nor a word more tokens than it
 * was begun with. */
void lda_slice_add(lda_slice_t *self, uint32_t word, uint32_t topic, int delta);
/* By how much a word's counts have changed, by ascending topic; room for
 * n_topics. Gives how many there are. */
size_t lda_slice_changes(const lda_slice_t *self,
                         uint32_t word,
                         lda_change_t *ret_changes);

/* The cell of a topic; NULL: there is none. */
static inline const lda_cell_t *
lda_row_cell(const lda_slice_t *self, const lda_row_t *row, uint32_t topic)
{
    const lda_cell_t *cells = self->cells + row->cells;
    uint32_t at = topic & row->mask;

    for (uint32_t i = 0; i <= row->mask; i++) {
        if (cells[at].topic == topic) {
            return &cells[at];
        }
        if (cells[at].topic == LDA_NO_TOPIC) {
            return NULL;
        }
        at = (at + 1) & row->mask;
    }
    return NULL;
}

/* A topic of a word's proposal. */
static inline uint32_t
lda_row_draw(const lda_slice_t *self, const lda_row_t *row, uint64_t *random)
{
    double all = row->mass + self->smooth_mass;

    return ex_random_real(random) * all < row->mass
               ? lda_alias_draw(self->entries + row->entries, row->n_entries,
                                ex_random(random))
               : lda_alias_draw(self->smooth, self->prior.n_topics,
                                ex_random(random));
}
#endif
