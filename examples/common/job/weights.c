/* SPDX-License-Identifier: Apache-2.0 */
/* A table with a row for each key of the data. */
#include "weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS_MAX 8
#define NUMBER_SIZE 24
/* Rows in one pull of the whole model. */
#define CHUNK_ROWS 65536
/* Up to this many rows a table is one partition: 2 MiB of f32. */
#define ONE_PARTITION_ROWS (UINT64_C(1) << 19)
/* Up to this many rows it makes a range table. */
#define RANGE_ROWS_MAX (UINT64_C(1) << 28)

uint64_t ex_weights_rows(double greatest)
{
    return greatest < (double)RANGE_ROWS_MAX ? (uint64_t)greatest + 1 : 0;
}

/* The rows of an existing table, which replace the number from the data; 0
 * for hash keys. */
static psd_status_t look_at_rows(ex_job_t *self, const char *name, uint64_t *n_rows,
                                 psd_error_t *err)
{
    psd_table_t *table = NULL;
    psd_status_t rc = psd_table_open(self->client, name, &table, err);
    uint64_t rows = 0;

    if (rc == PSD_NO_TABLE) {
        psd_error_clear(err);
        return PSD_OK;
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rows = psd_table_rows(table);
    psd_table_close(&table);
    if (rows != 0 && (*n_rows == 0 || rows < *n_rows)) {
        return psd_error_set(
            err, PSD_SHAPE,
            "table \"%s\" has %" PRIu64 " rows; the data has features up to %s%" PRIu64, name, rows,
            *n_rows == 0 ? "more than " : "", *n_rows == 0 ? RANGE_ROWS_MAX : *n_rows - 1);
    }
    *n_rows = rows;
    return PSD_OK;
}

psd_status_t ex_weights_ensure(ex_job_t *self, const char *name, const char *const *pairs,
                               uint64_t n_rows, psd_table_t **ret_table, psd_error_t *err)
{
    const char *all[2 * PAIRS_MAX + 5] = {NULL};
    char rows[NUMBER_SIZE];
    size_t n = 0;
    psd_status_t rc = look_at_rows(self, name, &n_rows, err);

    if (rc != PSD_OK) {
        return rc;
    }
    for (; n < 2 * PAIRS_MAX && pairs[n] != NULL; n++) {
        all[n] = pairs[n];
    }
    (void)snprintf(rows, sizeof(rows), "%" PRIu64, n_rows);
    all[n++] = n_rows == 0 ? "keys" : "rows";
    all[n++] = n_rows == 0 ? "hash" : rows;
    if (n_rows > 0 && n_rows <= ONE_PARTITION_ROWS) {
        all[n++] = "partitions";
        all[n] = "1";
    }
    return ex_job_ensure(self, name, all, ret_table, err);
}

static psd_status_t pull_chunk(ex_job_t *self, psd_table_t *table, psd_select_t *select,
                               float *weights, size_t n, psd_error_t *err)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc = psd_pull_start(table, select, weights, n, NULL, &ticket, err);

    return rc == PSD_OK ? ex_job_wait(self, &ticket, err) : rc;
}

/* All rows of a range table, chunk by chunk. */
static psd_status_t pull_range(ex_job_t *self, psd_table_t *table, psd_select_t *select,
                               ex_model_t *model, psd_error_t *err)
{
    uint64_t n_rows = psd_table_rows(table);
    float *weights = malloc(CHUNK_ROWS * sizeof(*weights));
    psd_status_t rc = PSD_OK;

    if (weights == NULL) {
        return psd_error_set(err, PSD_NOMEM, "pull of %d rows", CHUNK_ROWS);
    }
    for (uint64_t first = 0; rc == PSD_OK && first < n_rows; first += CHUNK_ROWS) {
        size_t n = n_rows - first < CHUNK_ROWS ? (size_t)(n_rows - first) : CHUNK_ROWS;

        psd_select_row_range(select, first, n);
        rc = pull_chunk(self, table, select, weights, n, err);
        for (size_t i = 0; rc == PSD_OK && i < n; i++) {
            rc = ex_model_add(model, first + i, weights[i], err);
        }
    }
    free(weights);
    return rc;
}

/* The stored rows of a table with hash keys. */
static psd_status_t fetch_hash(psd_table_t *table, psd_select_t *select, ex_model_t *model,
                               psd_error_t *err)
{
    psd_result_t *result = NULL;
    psd_status_t rc = PSD_OK;

    psd_select_all_rows(select);
    rc = psd_fetch(table, select, false, 0, NULL, &result, err);
    for (size_t i = 0; rc == PSD_OK && i < psd_result_count(result); i++) {
        uint64_t row = 0;
        const void *values = NULL;

        psd_result_row(result, i, &row, NULL, &values, NULL);
        rc = ex_model_add(model, row, *(const float *)values, err);
    }
    psd_result_destroy(&result);
    return rc;
}

psd_status_t ex_weights_pull(ex_job_t *self, psd_table_t *table, ex_model_t *ret_model,
                             psd_error_t *err)
{
    psd_select_t *select = psd_select_new();
    ex_model_t model = {0};
    psd_status_t rc = PSD_OK;

    if (select == NULL) {
        return psd_error_set(err, PSD_NOMEM, "selection of rows");
    }
    if (psd_table_rows(table) > 0) {
        rc = pull_range(self, table, select, &model, err);
    } else {
        rc = fetch_hash(table, select, &model, err);
    }
    psd_select_destroy(&select);
    if (rc != PSD_OK) {
        ex_model_done(&model);
        return rc;
    }
    *ret_model = model;
    return PSD_OK;
}
