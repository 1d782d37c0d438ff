/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of words in memory. */
#include "slice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)1 << 21)
#define LINE 64

_Static_assert(sizeof(lda_bucket_t) == LDA_BUCKET * sizeof(uint64_t) &&
                   sizeof(lda_four_t) == LDA_BUCKET * sizeof(uint32_t),
               "a cell of a bucket takes as much as one of a wide row, and a "
               "bucket's topics are compared at once");
_Static_assert(2 * LDA_COUNT_BITS == 32, "a count and a base are a value");

/* The smallest power of two >= n; n <= 2^31. */
static uint32_t power_of_two(uint64_t n)
{
    uint32_t power = 1;

    while (power < n) {
        power *= 2;
    }
    return power;
}

/* A hash table has four cells for each token: during a clock up to two are
 * taken, one for the topic as it came and one for its new one, and buckets
 * should seldom be full. n <= 2^16. */
static uint32_t hashed_cells(uint32_t n_tokens)
{
    return power_of_two(n_tokens == 0 ? LDA_BUCKET : LDA_BUCKET * (uint64_t)n_tokens);
}

/* All topics have a cell where that takes at most twice as much, as it is found
 * without a search, or where a hash table could not count so far. */
static lda_shape_t shape_of(const lda_prior_t *prior, uint32_t n_tokens)
{
    if (n_tokens >> LDA_COUNT_BITS > 0) {
        return LDA_WIDE;
    }
    return 4 * (uint64_t)hashed_cells(n_tokens) >= prior->n_topics ? LDA_NARROW : LDA_HASHED;
}

static lda_row_t row_of(const lda_prior_t *prior, uint32_t n_tokens)
{
    lda_row_t row = {.n_tokens = n_tokens, .shape = (uint8_t)shape_of(prior, n_tokens)};

    switch ((lda_shape_t)row.shape) {
    case LDA_HASHED:
        row.n_cells = hashed_cells(n_tokens);
        row.left = 2;
        break;
    case LDA_NARROW: /* two in the place of one */
        row.n_cells = (prior->n_topics + 1) / 2 * 2;
        row.right = 1;
        break;
    case LDA_WIDE:
        row.n_cells = prior->n_topics;
        break;
    }
    return row;
}

/* Aligns buckets so that none spans two cache lines. */
static size_t places_of(const lda_prior_t *prior, const lda_row_t *row)
{
    uint32_t n_entries = row->n_tokens < prior->n_topics ? row->n_tokens : prior->n_topics;
    size_t n = (size_t)(row->n_cells >> row->right) + n_entries;

    return (n + LDA_BUCKET - 1) / LDA_BUCKET * LDA_BUCKET;
}

size_t lda_slice_row_bytes(const lda_prior_t *prior, uint32_t frequency)
{
    lda_row_t row = row_of(prior, frequency);

    return sizeof row + places_of(prior, &row) * sizeof(uint64_t);
}

psd_status_t lda_slice_init(lda_slice_t *self, const lda_prior_t *prior, psd_error_t *err)
{
    size_t n = prior->n_topics;

    memset(self, 0, sizeof *self);
    self->prior = *prior;
    self->stale = calloc(n, sizeof *self->stale);
    self->smooth = calloc(n, sizeof *self->smooth);
    self->weights = calloc(n, sizeof *self->weights);
    self->scratch = calloc(n, sizeof *self->scratch);
    return self->stale == NULL || self->smooth == NULL || self->weights == NULL ||
                   self->scratch == NULL
               ? psd_error_set(err, PSD_NOMEM, "%zu topics", n)
               : PSD_OK;
}

void lda_slice_done(lda_slice_t *self)
{
    free(self->rows);
    free(self->cells);
    free(self->stale);
    free(self->smooth);
    free(self->weights);
    free(self->scratch);
    memset(self, 0, sizeof *self);
}

/* Room for n things; frees the old room and its content. NULL: no memory, or
 * n is 0. Rows are looked up all over it: with small pages finding the page
 * takes longer than the row. */
static void *make_room(void *things, size_t *room, size_t n, size_t size)
{
    size_t n_bytes = 0;

    if (n <= *room) {
        return things;
    }
    free(things);
    things = NULL;
    *room = 0;
    if (n < (SIZE_MAX - HUGE_PAGE) / size) {
        size_t align = n * size > HUGE_PAGE ? HUGE_PAGE : LINE;

        n_bytes = (n * size + align - 1) / align * align;
        things = aligned_alloc(align, n_bytes);
    }
    if (things == NULL) {
        return NULL;
    }
    if (n_bytes > HUGE_PAGE) { /* only a hint; it also works without */
        (void)madvise(things, n_bytes, MADV_HUGEPAGE);
    }
    *room = n;
    return things;
}

static psd_status_t lay_out(lda_slice_t *self, const uint32_t *frequencies, psd_error_t *err)
{
    size_t n_places = 0;

    self->rows = make_room(self->rows, &self->rows_room, self->n, sizeof *self->rows);
    if (self->rows == NULL && self->n > 0) {
        return psd_error_set(err, PSD_NOMEM, "%" PRIu32 " words", self->n);
    }
    for (uint32_t i = 0; i < self->n; i++) {
        lda_row_t *row = &self->rows[i];

        *row = row_of(&self->prior, frequencies[i]);
        row->cells = n_places;
        n_places += places_of(&self->prior, row);
    }
    self->cells = make_room(self->cells, &self->cells_room, n_places, sizeof *self->cells);
    return self->cells != NULL || n_places == 0
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "counts of %" PRIu32 " words", self->n);
}

static void clear_row(lda_slice_t *self, const lda_row_t *row)
{
    if (row->shape != LDA_HASHED) {
        memset(self->cells + row->cells, 0, (row->n_cells >> row->right) * sizeof *self->cells);
        return;
    }
    for (uint32_t i = 0; i < row->n_cells; i++) {
        lda_bucket_t *bucket = lda_row_bucket(self, row, i);

        bucket->topics[i % LDA_BUCKET] = LDA_NO_TOPIC;
        bucket->values[i % LDA_BUCKET] = 0;
    }
}

psd_status_t lda_slice_begin(lda_slice_t *self, uint32_t first, uint32_t n,
                             const uint32_t *frequencies, const int64_t *totals, psd_error_t *err)
{
    const lda_prior_t *prior = &self->prior;
    double v_beta = prior->beta * (double)prior->n_words;
    psd_status_t rc = PSD_OK;

    self->first = first;
    self->n = n;
    rc = lay_out(self, frequencies, err);
    if (rc != PSD_OK) {
        return rc;
    }
    for (uint32_t i = 0; i < n; i++) {
        clear_row(self, &self->rows[i]);
    }
    for (uint32_t k = 0; k < prior->n_topics; k++) {
        self->stale[k] = (double)totals[k] + v_beta;
        self->smooth[k] = lda_alias_entry(k);
        self->weights[k] = prior->beta / self->stale[k];
    }
    self->smooth_mass =
        lda_alias_build(self->smooth, self->weights, self->scratch, prior->n_topics);
    return PSD_OK;
}

/* A hash table's value of a topic, or a new one. There is room: at most
 * twice as many cells as tokens have or had a count. */
static uint32_t *own_value(lda_slice_t *self, const lda_row_t *row, uint32_t topic)
{
    uint32_t at = topic * LDA_BUCKET & (row->n_cells - LDA_BUCKET);
    uint32_t spare = at;
    bool has_spare = false;

    for (uint32_t i = 0; i < row->n_cells; i++) {
        lda_bucket_t *bucket = lda_row_bucket(self, row, at);
        uint32_t has = bucket->topics[at % LDA_BUCKET];
        uint32_t *value = &bucket->values[at % LDA_BUCKET];

        if (has == topic) {
            return value;
        }
        if (!has_spare && *value == 0) {
            spare = at; /* of a topic whose count is 0 again, or free */
            has_spare = true;
        }
        if (has == LDA_NO_TOPIC) {
            break;
        }
        at = (at + 1) & (row->n_cells - 1);
    }
    lda_row_bucket(self, row, spare)->topics[spare % LDA_BUCKET] = topic;
    return &lda_row_bucket(self, row, spare)->values[spare % LDA_BUCKET];
}

/* The same without a branch, unless its first bucket is full: the topic is
 * there or gets the first free cell. */
static uint32_t *value_of(lda_slice_t *self, const lda_row_t *row, uint32_t topic)
{
    const lda_four_t places = {1, 2, 3, 4};
    uint32_t first = topic * LDA_BUCKET & (row->n_cells - LDA_BUCKET);
    lda_bucket_t *bucket = lda_row_bucket(self, row, first);
    lda_four_t topics;
    uint32_t found = 0; /* its place, and 16 times how many are free */
    uint32_t at = 0;

    memcpy(&topics, bucket->topics, sizeof topics);
    found = lda_four_sum(((lda_four_t)(topics == topic) & places) |
                         ((lda_four_t)(topics == LDA_NO_TOPIC) & 16));
    if (found == 0) {
        return own_value(self, row, topic);
    }
    at = found % 16 > 0 ? found % 16 - 1 : LDA_BUCKET - found / 16;
    bucket->topics[at] = topic;
    return &bucket->values[at];
}

/* Adds to a cell's count and base. */
static void add(lda_slice_t *self, const lda_row_t *row, uint32_t topic, int count, int base)
{
    uint32_t narrow = ((uint32_t)count << LDA_COUNT_BITS) + (uint32_t)base;

    switch ((lda_shape_t)row->shape) {
    case LDA_HASHED:
        *value_of(self, row, topic) += narrow;
        break;
    case LDA_NARROW:
        lda_row_values(self, row)[topic] += narrow;
        break;
    case LDA_WIDE:
        self->cells[row->cells + topic] +=
            ((uint64_t)(int64_t)count << 32) + (uint64_t)(int64_t)base;
        break;
    }
}

static psd_status_t check(const lda_slice_t *self, uint32_t word, uint32_t frequency,
                          const uint32_t *topics, const int32_t *counts, size_t n, psd_error_t *err)
{
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (topics[i] >= self->prior.n_topics || counts[i] <= 0 ||
            (i > 0 && topics[i] <= topics[i - 1])) {
            return psd_error_set(err, PSD_DAMAGED,
                                 "word %" PRIu32 ": %" PRId32 " tokens of topic %" PRIu32, word,
                                 counts[i], topics[i]);
        }
        sum += counts[i];
    }
    return sum == (int64_t)frequency ? PSD_OK
                                     : psd_error_set(err, PSD_DAMAGED,
                                                     "word %" PRIu32 ": its counts are of %" PRId64
                                                     " tokens, there are %" PRIu32,
                                                     word, sum, frequency);
}

psd_status_t lda_slice_set(lda_slice_t *self, uint32_t word, uint32_t frequency,
                           const uint32_t *topics, const int32_t *counts, size_t n,
                           psd_error_t *err)
{
    lda_row_t *row = &self->rows[word - self->first];
    lda_alias_t *entries = self->cells + row->cells + (row->n_cells >> row->right);
    psd_status_t rc = check(self, word, frequency, topics, counts, n, err);

    if (rc != PSD_OK || n == 0) {
        return rc;
    }
    row->n_entries = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        add(self, row, topics[i], counts[i], counts[i]);
        entries[i] = lda_alias_entry(topics[i]);
        self->weights[i] = (double)counts[i] / self->stale[topics[i]];
    }
    row->mass = lda_alias_build(entries, self->weights, self->scratch, row->n_entries);
    return PSD_OK;
}

void lda_slice_add(lda_slice_t *self, uint32_t word, uint32_t topic, int delta)
{
    add(self, &self->rows[word - self->first], topic, delta, 0);
}

static int compare(const void *a, const void *b)
{
    uint32_t x = ((const lda_change_t *)a)->topic;
    uint32_t y = ((const lda_change_t *)b)->topic;

    return (x > y) - (x < y);
}

size_t lda_slice_changes(const lda_slice_t *self, uint32_t word, lda_change_t *ret_changes)
{
    const lda_row_t *row = &self->rows[word - self->first];
    size_t n = 0;

    for (uint32_t i = 0; i < row->n_cells; i++) {
        lda_cell_t cell = lda_row_at(self, row, i);

        if (cell.count != cell.base) {
            ret_changes[n++] = (lda_change_t){cell.topic, cell.count - cell.base};
        }
    }
    if (row->shape == LDA_HASHED) {
        qsort(ret_changes, n, sizeof *ret_changes, compare);
    }
    return n;
}
