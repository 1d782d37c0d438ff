/* SPDX-License-Identifier: Apache-2.0 */
/* Counts between tables and memory. */
#include "counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUSH_MOST 1048576 /* values of one push, except for a single row */
#define NAME_SIZE 256

static void table_name(char ret_name[NAME_SIZE], const char *name, const char *what)
{
    (void)snprintf(ret_name, NAME_SIZE, "%s.%s", name, what);
}

/* Worker 0 creates it again, replacing what an earlier run left. */
static psd_status_t prepare(lda_counts_t *self, const char *table, const char *what,
                            uint64_t n_rows, uint32_t n_cols, const char *type, psd_error_t *err)
{
    char name[NAME_SIZE];
    char rows[24];
    char cols[24];
    const char *const pairs[] = {"rows", rows,    "cols",       cols,
                                 "type", type,    "row-format", n_rows > 1 ? "auto" : "dense",
                                 "keys", "range", "updater",    "add",
                                 NULL};

    if (self->job->worker != 0) {
        return PSD_OK;
    }
    table_name(name, table, what);
    (void)snprintf(rows, sizeof rows, "%" PRIu64, n_rows);
    (void)snprintf(cols, sizeof cols, "%" PRIu32, n_cols);
    return ex_job_prepare(self->job, name, pairs, err);
}

static psd_status_t open_table(lda_counts_t *self, const char *table, const char *what,
                               psd_table_t **ret_table, psd_error_t *err)
{
    char name[NAME_SIZE];

    table_name(name, table, what);
    return psd_table_open(self->job->client, name, ret_table, err);
}

static psd_status_t open_tables(lda_counts_t *self, const char *table, psd_error_t *err)
{
    uint32_t n_topics = self->prior->n_topics;
    psd_status_t rc = prepare(self, table, "words", self->prior->n_words, n_topics, "i32", err);

    if (rc == PSD_OK) {
        rc = prepare(self, table, "topics", 1, n_topics, "i64", err);
    }
    if (rc == PSD_OK) {
        rc = prepare(self, table, "clocks", 1, self->job->n_workers, "i64", err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_barrier(self->job, err);
    }
    if (rc == PSD_OK) {
        rc = open_table(self, table, "words", &self->words, err);
    }
    if (rc == PSD_OK) {
        rc = open_table(self, table, "topics", &self->topics, err);
    }
    if (rc == PSD_OK) {
        rc = open_table(self, table, "clocks", &self->clocks, err);
    }
    return rc;
}

static psd_status_t cut_slices(lda_counts_t *self, uint64_t most, psd_error_t *err)
{
    const lda_corpus_t *corpus = self->corpus;
    uint64_t bytes = 0;

    self->starts = calloc((size_t)corpus->n_words + 2, sizeof *self->starts);
    if (self->starts == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%" PRIu32 " words", corpus->n_words);
    }
    self->n_slices = 1;
    for (uint32_t word = 0; word < corpus->n_words; word++) {
        uint64_t own = lda_slice_row_bytes(self->prior, corpus->frequencies[word]);

        if (most > 0 && bytes > 0 && bytes + own > most) {
            self->starts[self->n_slices++] = word;
            bytes = 0;
        }
        bytes += own;
    }
    self->starts[self->n_slices] = corpus->n_words;
    return PSD_OK;
}

static psd_status_t allocate(lda_counts_t *self, psd_error_t *err)
{
    size_t n_topics = self->prior->n_topics;
    size_t n_rows = self->corpus->n_words < PUSH_MOST ? self->corpus->n_words : PUSH_MOST;
    size_t n_values = PUSH_MOST + n_topics;

    self->range = psd_select_new();
    self->changed = psd_select_new();
    self->totals = calloc(n_topics, sizeof *self->totals);
    self->pulled = calloc(n_topics, sizeof *self->pulled);
    self->changes = calloc(n_topics, sizeof *self->changes);
    self->rows = calloc(n_rows, sizeof *self->rows);
    self->lengths = calloc(n_rows, sizeof *self->lengths);
    self->cols = calloc(n_values, sizeof *self->cols);
    self->deltas = calloc(n_values, sizeof *self->deltas);
    return self->range == NULL || self->changed == NULL || self->totals == NULL ||
                   self->pulled == NULL || self->changes == NULL || self->rows == NULL ||
                   self->lengths == NULL || self->cols == NULL || self->deltas == NULL
               ? psd_error_set(err, PSD_NOMEM, "%zu topics", n_topics)
               : PSD_OK;
}

psd_status_t lda_counts_init(lda_counts_t *self, ex_job_t *job, const lda_corpus_t *corpus,
                             const lda_prior_t *prior, const lda_options_t *options,
                             psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof *self);
    self->job = job;
    self->corpus = corpus;
    self->prior = prior;
    rc = allocate(self, err);
    if (rc == PSD_OK) {
        rc = cut_slices(self, options->slice_bytes, err);
    }
    if (rc == PSD_OK) {
        rc = lda_slice_init(&self->slice, prior, err);
    }
    return rc == PSD_OK ? open_tables(self, options->table, err) : rc;
}

void lda_counts_done(lda_counts_t *self)
{
    psd_table_close(&self->words);
    psd_table_close(&self->topics);
    psd_table_close(&self->clocks);
    psd_select_destroy(&self->range);
    psd_select_destroy(&self->changed);
    lda_slice_done(&self->slice);
    free(self->totals);
    free(self->pulled);
    free(self->starts);
    free(self->changes);
    free(self->rows);
    free(self->lengths);
    free(self->cols);
    free(self->deltas);
    memset(self, 0, sizeof *self);
}

psd_status_t lda_counts_pull_totals(lda_counts_t *self, bool whole, psd_error_t *err)
{
    const uint64_t row = 0;
    size_t n = self->prior->n_topics;
    int64_t sum = 0;
    psd_status_t rc = psd_pull(self->topics, &row, 1, self->totals, n, err);

    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t k = 0; k < n; k++) {
        self->pulled[k] = self->totals[k];
        sum += self->totals[k];
    }
    return whole && sum != (int64_t)self->corpus->n_tokens
               ? psd_error_set(err, PSD_DAMAGED,
                               "table \"%s\" counts %" PRId64 " tokens, there are %" PRIu64,
                               psd_table_name(self->topics), sum, self->corpus->n_tokens)
               : PSD_OK;
}

psd_status_t lda_counts_empty_slice(lda_counts_t *self, uint32_t slice, psd_error_t *err)
{
    uint32_t first = self->starts[slice];

    return lda_slice_begin(&self->slice, first, self->starts[slice + 1] - first,
                           self->corpus->frequencies + first, self->totals, err);
}

psd_status_t lda_counts_visit(lda_counts_t *self, uint32_t slice, lda_counts_visit_t *visit,
                              void *user, psd_error_t *err)
{
    uint32_t first = self->starts[slice];
    uint32_t n = self->starts[slice + 1] - first;
    psd_result_t *result = NULL;
    size_t at = 0;
    psd_status_t rc = PSD_OK;

    psd_select_row_range(self->range, first, n);
    rc = psd_fetch(self->words, self->range, true, 0, NULL, &result, err);
    for (uint32_t word = first; rc == PSD_OK && word < first + n; word++) {
        const void *counts = NULL;
        const uint32_t *topics = NULL;
        uint64_t row = UINT64_MAX;
        size_t n_counts = 0;

        if (at < psd_result_count(result)) {
            psd_result_row(result, at, &row, &n_counts, &counts, &topics);
        }
        if (row == word) {
            at++;
        } else {
            n_counts = 0;
        }
        rc = visit(user, word, topics, counts, n_counts, err);
    }
    psd_result_destroy(&result);
    return rc;
}

static psd_status_t take_word(void *user, uint32_t word, const uint32_t *topics,
                              const int32_t *counts, size_t n, psd_error_t *err)
{
    lda_counts_t *self = user;

    return lda_slice_set(&self->slice, word, self->corpus->frequencies[word], topics, counts, n,
                         err);
}

psd_status_t lda_counts_pull_slice(lda_counts_t *self, uint32_t slice, psd_error_t *err)
{
    psd_status_t rc = lda_counts_empty_slice(self, slice, err);

    if (rc == PSD_OK) {
        rc = lda_counts_visit(self, slice, take_word, self, err);
        rc = rc == PSD_OK ? rc
                          : psd_error_wrap(err, rc, "table \"%s\"", psd_table_name(self->words));
    }
    return rc;
}

/* Pushes what was gathered. */
static psd_status_t push_gathered(lda_counts_t *self, psd_error_t *err)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc = PSD_OK;

    if (self->n_rows == 0) {
        return PSD_OK;
    }
    psd_select_rows(self->changed, self->rows, self->n_rows);
    psd_select_sparse(self->changed, self->lengths, self->cols);
    rc = psd_push_start(self->words, self->changed, self->deltas, self->n_deltas, NULL, &ticket,
                        err);
    self->n_rows = 0;
    self->n_deltas = 0;
    if (rc == PSD_OK) {
        rc = ex_job_wait(self->job, &ticket, err);
    }
    return rc;
}

psd_status_t lda_counts_push_slice(lda_counts_t *self, psd_error_t *err)
{
    const lda_slice_t *slice = &self->slice;
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; rc == PSD_OK && i < slice->n; i++) {
        uint32_t word = slice->first + i;
        size_t n = lda_slice_changes(slice, word, self->changes);

        if (n == 0) {
            continue;
        }
        for (size_t c = 0; c < n; c++) {
            self->cols[self->n_deltas] = self->changes[c].topic;
            self->deltas[self->n_deltas++] = self->changes[c].delta;
        }
        self->lengths[self->n_rows] = (uint32_t)n;
        self->rows[self->n_rows++] = word;
        if (self->n_deltas >= PUSH_MOST) {
            rc = push_gathered(self, err);
        }
    }
    return rc == PSD_OK ? push_gathered(self, err) : rc;
}

psd_status_t lda_counts_push_totals(lda_counts_t *self, psd_error_t *err)
{
    const uint64_t row = 0;
    size_t n = self->prior->n_topics;

    for (size_t k = 0; k < n; k++) {
        self->pulled[k] = self->totals[k] - self->pulled[k];
    }
    return psd_push(self->topics, &row, 1, self->pulled, n, err);
}

/* ---- clocks -------------------------------------------------------------- */

static psd_status_t count_clock(lda_counts_t *self, psd_error_t *err)
{
    const uint64_t row = 0;
    int64_t *clocks = calloc(self->job->n_workers, sizeof *clocks);
    psd_status_t rc = PSD_OK;

    if (clocks == NULL) {
        return psd_error_set(err, PSD_NOMEM, "clocks");
    }
    clocks[self->job->worker] = 1;
    rc = psd_push(self->clocks, &row, 1, clocks, self->job->n_workers, err);
    free(clocks);
    self->n_clocks++;
    return rc;
}

/* All have finished as many clocks as this one. */
static psd_status_t check_clocks(lda_counts_t *self, psd_error_t *err)
{
    const uint64_t row = 0;
    int64_t *clocks = calloc(self->job->n_workers, sizeof *clocks);
    psd_status_t rc = PSD_OK;

    if (clocks == NULL) {
        return psd_error_set(err, PSD_NOMEM, "clocks");
    }
    rc = psd_pull(self->clocks, &row, 1, clocks, self->job->n_workers, err);
    for (uint32_t i = 0; rc == PSD_OK && i < self->job->n_workers; i++) {
        if (clocks[i] < (int64_t)self->n_clocks) {
            rc = psd_error_set(err, PSD_WORKER_LOST,
                               "worker %" PRIu32 " has done %" PRId64 " clocks of %" PRIu64
                               " and is gone; restart the job",
                               i, clocks[i], self->n_clocks);
        }
    }
    free(clocks);
    return rc;
}

psd_status_t lda_counts_clock(lda_counts_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->job->max_delay == 0) {
        return lda_counts_meet(self, err);
    }
    rc = count_clock(self, err);
    return rc == PSD_OK ? psd_clock(self->job->client, err) : rc;
}

psd_status_t lda_counts_meet(lda_counts_t *self, psd_error_t *err)
{
    psd_status_t rc = count_clock(self, err);

    if (rc == PSD_OK) {
        rc = ex_job_meet(self->job, err);
    }
    return rc == PSD_OK ? check_clocks(self, err) : rc;
}
