/* SPDX-License-Identifier: Apache-2.0 */
/* A count-min sketch in a table: cells are added up before they are pushed. */
#include "sketch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/random.h"

#define QUERY_BATCH ((size_t)10000)

psd_status_t sketch_open(sketch_t *self, ex_job_t *job, const char *table, uint64_t width,
                         size_t room, bool makes, psd_error_t *err)
{
    char rows[32];
    const char *const pairs[] = {"rows",  rows,   "cols",  "1",       "type", "i64", "row-format",
                                 "dense", "keys", "range", "updater", "add",  NULL};
    size_t most = room > QUERY_BATCH ? room : QUERY_BATCH;
    psd_status_t rc = psd_localizer_new(1, &self->localizer, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->job = job;
    self->width = width;
    self->room = room;
    self->cells = calloc(SKETCH_DEPTH * most, sizeof *self->cells);
    self->counts = calloc(SKETCH_DEPTH * most, sizeof *self->counts);
    if (self->cells == NULL || self->counts == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu words", room);
    }
    (void)snprintf(rows, sizeof rows, "%" PRIu64, SKETCH_DEPTH * width);
    if (!makes) {
        rc = psd_table_open(job->client, table, &self->table, err);
        psd_table_close(&self->table);
    }
    return rc == PSD_OK ? ex_job_ensure(job, table, pairs, &self->table, err) : rc;
}

void sketch_done(sketch_t *self)
{
    psd_table_close(&self->table);
    psd_localizer_destroy(&self->localizer);
    free(self->cells);
    free(self->counts);
    memset(self, 0, sizeof *self);
}

/* FNV-1a, followed by a mix, since its low bits are weak. */
uint64_t sketch_hash(const char *word, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ (unsigned char)word[i]) * UINT64_C(0x100000001b3);
    }
    return ex_random(&hash);
}

/* The cells of a word: independent of each other. */
static void find_cells(const sketch_t *self, uint64_t hash, uint64_t *ret_cells)
{
    for (uint64_t d = 0; d < SKETCH_DEPTH; d++) {
        ret_cells[d] = d * self->width + (ex_random(&hash) & (self->width - 1));
    }
}

psd_status_t sketch_flush(sketch_t *self, psd_error_t *err)
{
    size_t n_cells = 0;
    psd_status_t rc = PSD_OK;

    if (self->n == 0) {
        return PSD_OK;
    }
    rc = psd_localizer_run(self->localizer, self->cells, SKETCH_DEPTH * self->n, err);
    self->n = 0;
    if (rc != PSD_OK) {
        return rc;
    }
    n_cells = psd_localizer_count(self->localizer);
    for (size_t i = 0; i < n_cells; i++) {
        self->counts[i] = psd_localizer_counts(self->localizer)[i];
    }
    return psd_push(self->table, psd_localizer_keys(self->localizer), n_cells, self->counts,
                    n_cells, err);
}

psd_status_t sketch_insert(sketch_t *self, uint64_t hash, psd_error_t *err)
{
    find_cells(self, hash, self->cells + SKETCH_DEPTH * self->n);
    self->n++;
    return self->n == self->room ? sketch_flush(self, err) : PSD_OK;
}

/* Up to QUERY_BATCH words. */
static psd_status_t query(sketch_t *self, const uint64_t *hashes, size_t n, int64_t *ret_counts,
                          psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < n; i++) {
        find_cells(self, hashes[i], self->cells + SKETCH_DEPTH * i);
    }
    rc = psd_localizer_run(self->localizer, self->cells, SKETCH_DEPTH * n, err);
    if (rc == PSD_OK) {
        size_t n_cells = psd_localizer_count(self->localizer);

        rc = psd_pull(self->table, psd_localizer_keys(self->localizer), n_cells, self->counts,
                      n_cells, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        const uint32_t *ids = psd_localizer_ids(self->localizer) + SKETCH_DEPTH * i;

        ret_counts[i] = self->counts[ids[0]];
        for (size_t d = 1; d < SKETCH_DEPTH; d++) {
            int64_t count = self->counts[ids[d]];

            ret_counts[i] = count < ret_counts[i] ? count : ret_counts[i];
        }
    }
    return rc;
}

psd_status_t sketch_query(sketch_t *self, const uint64_t *hashes, size_t n, int64_t *ret_counts,
                          psd_error_t *err)
{
    psd_status_t rc = sketch_flush(self, err);

    for (size_t first = 0; rc == PSD_OK && first < n; first += QUERY_BATCH) {
        size_t left = n - first;

        rc = query(self, hashes + first, left < QUERY_BATCH ? left : QUERY_BATCH,
                   ret_counts + first, err);
    }
    return rc;
}

psd_status_t sketch_total(sketch_t *self, uint64_t *ret_total, psd_error_t *err)
{
    psd_select_t *first = psd_select_new();
    double sum = 0;
    psd_status_t rc = PSD_OK;

    if (first == NULL) {
        return psd_error_set(err, PSD_NOMEM, "the sum of the cells");
    }
    /* The first stretch has each word once. */
    psd_select_row_range(first, 0, self->width);
    rc = psd_table_sum(self->table, first, NULL, &sum, err);
    psd_select_destroy(&first);
    *ret_total = (uint64_t)sum;
    return rc;
}
