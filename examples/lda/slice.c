/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of words in memory. */
#include "slice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)1 << 21)

/* Smallest power of two that is not below n; n <= 2^31. */
static uint32_t
power_of_two(uint64_t n)
{
    uint32_t power = 1;

    while (power < n) {
        power *= 2;
    }
    return power;
}

/* All topics have a cell where that takes no more. */
static uint32_t
cells_of(const lda_prior_t *prior, uint32_t frequency)
{
    uint32_t all = power_of_two(prior->n_topics);
    uint64_t few = 2 * (uint64_t)frequency + 1;

    return few >= all ? all : power_of_two(few);
}

static bool
has_all(const lda_prior_t *prior, uint32_t n_cells)
{
    return n_cells >= prior->n_topics;
}

static uint32_t
entries_of(const lda_prior_t *prior, uint32_t frequency)
{
    return frequency < prior->n_topics ? frequency : prior->n_topics;
}

size_t
lda_slice_row_bytes(const lda_prior_t *prior, uint32_t frequency)
{
    return sizeof(lda_row_t) + cells_of(prior, frequency) * sizeof(lda_cell_t) +
           entries_of(prior, frequency) * sizeof(lda_alias_t);
}

psd_status_t
lda_slice_init(lda_slice_t *self, const lda_prior_t *prior, psd_error_t *err)
{
    size_t n = prior->n_topics;

    memset(self, 0, sizeof *self);
    self->prior = *prior;
    self->stale = calloc(n, sizeof *self->stale);
    self->smooth = calloc(n, sizeof *self->smooth);
    self->weights = calloc(n, sizeof *self->weights);
    self->scratch = calloc(n, sizeof *self->scratch);
    return self->stale == NULL || self->smooth == NULL ||
                   self->weights == NULL || self->scratch == NULL
               ? psd_error_set(err, PSD_NOMEM, "%zu topics", n)
               : PSD_OK;
}

void
lda_slice_done(lda_slice_t *self)
{
    free(self->rows);
    free(self->cells);
    free(self->entries);
    free(self->stale);
    free(self->smooth);
    free(self->weights);
    free(self->scratch);
    memset(self, 0, sizeof *self);
}

/* Makes room for n things; what was there is lost. Rows are looked up all over
 * it: with small pages finding the page takes longer than the row. */
static bool
make_room(void **things, size_t *room, size_t n, size_t size)
{
    size_t n_bytes = 0;

    if (n <= *room) {
        return true;
    }
    free(*things);
    *things = NULL;
    *room = 0;
    if (n < (SIZE_MAX - HUGE_PAGE) / size) {
        n_bytes = (n * size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        *things = n_bytes > HUGE_PAGE ? aligned_alloc(HUGE_PAGE, n_bytes)
                                      : malloc(n * size);
    }
    if (*things == NULL) {
        return false;
    }
    if (n_bytes > HUGE_PAGE) { /* a wish; it does without, too */
        (void)madvise(*things, n_bytes, MADV_HUGEPAGE);
    }
    *room = n;
    return true;
}

static psd_status_t
lay_out(lda_slice_t *self, const uint32_t *frequencies, psd_error_t *err)
{
    size_t n_cells = 0;
    size_t n_entries = 0;

    if (!make_room((void **)&self->rows, &self->rows_room, self->n,
                   sizeof *self->rows)) {
        return psd_error_set(err, PSD_NOMEM, "%" PRIu32 " words", self->n);
    }
    for (uint32_t i = 0; i < self->n; i++) {
        uint32_t own = cells_of(&self->prior, frequencies[i]);

        self->rows[i] = (lda_row_t){
            .cells = n_cells, .entries = n_entries, .mask = own - 1};
        n_cells += own;
        n_entries += entries_of(&self->prior, frequencies[i]);
    }
    if (!make_room((void **)&self->cells, &self->cells_room, n_cells,
                   sizeof *self->cells) ||
        !make_room((void **)&self->entries, &self->entries_room, n_entries,
                   sizeof *self->entries)) {
        return psd_error_set(err, PSD_NOMEM, "counts of %" PRIu32 " words",
                             self->n);
    }
    return PSD_OK;
}

static void
clear_row(lda_slice_t *self, const lda_row_t *row)
{
    lda_cell_t *cells = self->cells + row->cells;
    bool all = has_all(&self->prior, row->mask + 1);

    for (uint32_t i = 0; i <= row->mask; i++) {
        cells[i] = (lda_cell_t){.topic = LDA_NO_TOPIC};
        if (all && i < self->prior.n_topics) {
            cells[i].topic = i;
        }
    }
}

psd_status_t
lda_slice_begin(lda_slice_t *self,
                uint32_t first,
                uint32_t n,
                const uint32_t *frequencies,
                const int64_t *totals,
                psd_error_t *err)
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
        self->smooth[k].topic = k;
        self->weights[k] = prior->beta / self->stale[k];
    }
    self->smooth_mass = lda_alias_build(self->smooth, self->weights,
                                        self->scratch, prior->n_topics);
    return PSD_OK;
}

/* The cell of a topic, or one that it gets. There is room: of a row's cells
 * fewer than twice its tokens have a count or had one. */
static lda_cell_t *
own_cell(lda_slice_t *self, const lda_row_t *row, uint32_t topic)
{
    lda_cell_t *cells = self->cells + row->cells;
    lda_cell_t *spare = NULL;
    uint32_t at = topic & row->mask;

    for (uint32_t i = 0; i <= row->mask; i++) {
        lda_cell_t *cell = &cells[at];

        if (cell->topic == topic) {
            return cell;
        }
        if (spare == NULL && cell->count == 0 && cell->base == 0) {
            spare = cell; /* of a topic that has come and gone, or free */
        }
        if (cell->topic == LDA_NO_TOPIC) {
            break;
        }
        at = (at + 1) & row->mask;
    }
    spare->topic = topic;
    return spare;
}

static psd_status_t
check(const lda_slice_t *self,
      uint32_t word,
      uint32_t frequency,
      const uint32_t *topics,
      const int32_t *counts,
      size_t n,
      psd_error_t *err)
{
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (topics[i] >= self->prior.n_topics || counts[i] <= 0 ||
            (i > 0 && topics[i] <= topics[i - 1])) {
            return psd_error_set(err, PSD_DAMAGED,
                                 "word %" PRIu32 ": %" PRId32
                                 " tokens of topic %" PRIu32,
                                 word, counts[i], topics[i]);
        }
        sum += counts[i];
    }
    return sum == (int64_t)frequency
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED,
                               "word %" PRIu32 ": its counts are of %" PRId64
                               " tokens, there are %" PRIu32,
                               word, sum, frequency);
}

psd_status_t
lda_slice_set(lda_slice_t *self,
              uint32_t word,
              uint32_t frequency,
              const uint32_t *topics,
              const int32_t *counts,
              size_t n,
              psd_error_t *err)
{
    lda_row_t *row = &self->rows[word - self->first];
    lda_alias_t *entries = self->entries + row->entries;
    psd_status_t rc = check(self, word, frequency, topics, counts, n, err);

    if (rc != PSD_OK || n == 0) {
        return rc;
    }
    row->n_entries = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        lda_cell_t *cell = own_cell(self, row, topics[i]);

        cell->count = counts[i];
        cell->base = counts[i];
        entries[i].topic = topics[i];
        self->weights[i] = (double)counts[i] / self->stale[topics[i]];
    }
    row->mass =
        lda_alias_build(entries, self->weights, self->scratch, row->n_entries);
    return PSD_OK;
}

void
lda_slice_add(lda_slice_t *self, uint32_t word, uint32_t topic, int delta)
{
    own_cell(self, &self->rows[word - self->first], topic)->count += delta;
}

static int
compare(const void *a, const void *b)
{
    uint32_t x = ((const lda_change_t *)a)->topic;
    uint32_t y = ((const lda_change_t *)b)->topic;

    return (x > y) - (x < y);
}

size_t
lda_slice_changes(const lda_slice_t *self,
                  uint32_t word,
                  lda_change_t *ret_changes)
{
    const lda_row_t *row = &self->rows[word - self->first];
    const lda_cell_t *cells = self->cells + row->cells;
    size_t n = 0;

    for (uint32_t i = 0; i <= row->mask; i++) {
        if (cells[i].count != cells[i].base) {
            ret_changes[n++] =
                (lda_change_t){cells[i].topic, cells[i].count - cells[i].base};
        }
    }
    if (!has_all(&self->prior, row->mask + 1)) {
        qsort(ret_changes, n, sizeof *ret_changes, compare);
    }
    return n;
}
