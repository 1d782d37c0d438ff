/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over all workers. */
#include "sums.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row has the number of its sum, from 1, then the values. */
#define TURNS 2
#define TEXT_SIZE 24

psd_status_t ex_sums_prepare(ex_job_t *job, const char *name, size_t n, psd_error_t *err)
{
    char rows[TEXT_SIZE];
    char cols[TEXT_SIZE];
    const char *const pairs[] = {"rows", rows,  "cols",    cols,     "partitions", "1",
                                 "type", "f64", "updater", "assign", NULL};

    (void)snprintf(rows, sizeof(rows), "%" PRIu64, TURNS * (uint64_t)job->n_workers);
    (void)snprintf(cols, sizeof(cols), "%zu", n + 1);
    return ex_job_prepare(job, name, pairs, err);
}

psd_status_t ex_sums_open(ex_sums_t *self, ex_job_t *job, const char *name, size_t n,
                          psd_error_t *err)
{
    memset(self, 0, sizeof(*self));
    self->job = job;
    self->n = n;
    self->rows = calloc(job->n_workers * (n + 1), sizeof(*self->rows));
    self->row_names = calloc(job->n_workers, sizeof(*self->row_names));
    if (self->rows == NULL || self->row_names == NULL) {
        return psd_error_set(err, PSD_NOMEM, "sums of %zu numbers", n);
    }
    return psd_table_open(job->client, name, &self->table, err);
}

void ex_sums_done(ex_sums_t *self)
{
    psd_table_close(&self->table);
    free(self->rows);
    free(self->row_names);
    memset(self, 0, sizeof(*self));
}

/* Pushes this worker's row, and waits for the others' rows. */
static psd_status_t exchange(ex_sums_t *self, const double *values, psd_error_t *err)
{
    ex_job_t *job = self->job;
    size_t width = self->n + 1;
    uint64_t first = self->n_done % TURNS * job->n_workers;
    uint64_t own = first + job->worker;
    psd_status_t rc = PSD_OK;

    self->rows[0] = (double)(self->n_done + 1);
    memcpy(self->rows + 1, values, self->n * sizeof(*values));
    rc = psd_push(self->table, &own, 1, self->rows, width, err);
    if (rc == PSD_OK) {
        rc = ex_job_meet(job, err);
    }
    for (uint32_t i = 0; i < job->n_workers; i++) {
        self->row_names[i] = first + i;
    }
    if (rc == PSD_OK) {
        rc = psd_pull(self->table, self->row_names, job->n_workers, self->rows,
                      width * job->n_workers, err);
    }
    return rc;
}

psd_status_t ex_sums_add(ex_sums_t *self, double *values, psd_error_t *err)
{
    size_t width = self->n + 1;
    psd_status_t rc = exchange(self, values, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->n_done++;
    self->n_workers = 0;
    memset(values, 0, self->n * sizeof(*values));
    for (uint32_t i = 0; i < self->job->n_workers; i++) {
        const double *row = self->rows + i * width;

        if (row[0] != (double)self->n_done) {
            continue; /* it was lost before */
        }
        self->n_workers++;
        for (size_t k = 0; k < self->n; k++) {
            values[k] += row[k + 1];
        }
    }
    return PSD_OK;
}
