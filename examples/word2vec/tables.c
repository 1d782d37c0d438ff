/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, made and pulled. */
#include "tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK_ROWS 10000 /* that are pulled at once */
#define VALUE_SIZE 64

static const char *const NAMES[WV_VECTORS] = {"in", "out", "tree"};

typedef struct maker {
    psd_train_t *train;
    const wv_task_t *task;
} maker_t;

bool wv_tables_has(const wv_options_t *options, wv_table_t table)
{
    return table == WV_IN || (table == WV_OUT && options->negative > 0) ||
           (table == WV_TREE && options->hs);
}

uint32_t wv_tables_rows(const wv_task_t *task, wv_table_t table)
{
    return table == WV_IN ? wv_senses_rows(&task->senses) : task->vocabulary.n;
}

/* "NAME.in", "NAME.in.sums" */
static void print_name(const wv_task_t *task, const char *noun, const char *suffix,
                       char ret_name[VALUE_SIZE])
{
    (void)snprintf(ret_name, VALUE_SIZE, "%s.%s%s", task->options->table, noun, suffix);
}

static psd_status_t drop(psd_train_t *train, const wv_task_t *task, const char *noun,
                         const char *suffix, psd_error_t *err)
{
    char name[VALUE_SIZE];
    psd_status_t rc = PSD_OK;

    print_name(task, noun, suffix, name);
    rc = psd_table_drop(psd_train_client(train), name, err);
    if (rc == PSD_NO_TABLE) {
        psd_error_clear(err);
        return PSD_OK;
    }
    return rc;
}

psd_status_t wv_tables_drop(psd_train_t *train, const wv_task_t *task, psd_error_t *err)
{
    psd_status_t rc = drop(train, task, "count", "", err);

    if (rc == PSD_OK) {
        rc = drop(train, task, "senses", "", err);
    }
    for (int i = 0; rc == PSD_OK && i < WV_VECTORS; i++) {
        rc = drop(train, task, NAMES[i], "", err);
        if (rc == PSD_OK) {
            rc = drop(train, task, NAMES[i], ".sums", err);
        }
    }
    return rc;
}

/* Sets keys and values up to a NULL. */
static psd_status_t set_spec(psd_spec_t *spec, const char *const *pairs, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (; rc == PSD_OK && pairs[0] != NULL; pairs += 2) {
        rc = psd_spec_set(spec, pairs[0], pairs[1], err);
    }
    return rc;
}

static psd_status_t make_table(maker_t *maker, const char *name, const char *const *pairs,
                               uint32_t *ret, psd_error_t *err)
{
    static const char *const acks[] = {"memory", "replica", "disk"};
    const ex_job_options_t *job = &maker->task->options->job;
    char replicas[VALUE_SIZE];
    const char *const more[] = {"replicas", replicas, job->ack == EX_NOT_CHOSEN ? NULL : "ack",
                                job->ack == EX_NOT_CHOSEN ? NULL : acks[job->ack], NULL};
    psd_spec_t *spec = psd_spec_new();
    psd_status_t rc = spec == NULL ? psd_error_set(err, PSD_NOMEM, "no memory for a table")
                                   : set_spec(spec, pairs, err);

    (void)snprintf(replicas, sizeof replicas, "%" PRIu32, job->replicas);
    if (rc == PSD_OK) {
        rc = set_spec(spec, more, err);
    }
    if (rc == PSD_OK) {
        rc = psd_train_table(maker->train, name, spec, ret, err);
    }
    psd_spec_destroy(&spec);
    return rc;
}

/* Only vectors of words start at random, a little off zero. */
static psd_status_t make_vectors(maker_t *maker, wv_table_t table, const char *suffix,
                                 uint32_t *ret, psd_error_t *err)
{
    const wv_options_t *options = maker->task->options;
    char name[VALUE_SIZE];
    char rows[VALUE_SIZE];
    char cols[VALUE_SIZE];
    char init[VALUE_SIZE] = "zero";
    char seed[VALUE_SIZE];
    const char *const pairs[] = {"rows", rows, "cols", cols, "init", init, "seed", seed, NULL};

    print_name(maker->task, NAMES[table], suffix, name);
    (void)snprintf(rows, sizeof rows, "%" PRIu32, wv_tables_rows(maker->task, table));
    (void)snprintf(cols, sizeof cols, "%" PRIu32, options->size);
    (void)snprintf(seed, sizeof seed, "%" PRIu64, options->seed);
    if (table == WV_IN && suffix[0] == '\0') {
        (void)snprintf(init, sizeof init, "uniform:-%.9g,%.9g", 0.5 / options->size,
                       0.5 / options->size);
    }
    return make_table(maker, name, pairs, ret, err);
}

static psd_status_t make_counts(maker_t *maker, uint32_t n_workers, uint32_t *ret, psd_error_t *err)
{
    char name[VALUE_SIZE];
    char rows[VALUE_SIZE];
    const char *const pairs[] = {"rows", rows, "type", "i64", NULL};

    print_name(maker->task, "count", "", name);
    (void)snprintf(rows, sizeof rows, "%" PRIu32, n_workers);
    return make_table(maker, name, pairs, ret, err);
}

static psd_status_t make_senses(maker_t *maker, uint32_t *ret, psd_error_t *err)
{
    const wv_senses_t *senses = &maker->task->senses;
    char name[VALUE_SIZE];
    char rows[VALUE_SIZE];
    char cols[VALUE_SIZE];
    const char *const pairs[] = {"rows", rows, "cols", cols, NULL};

    print_name(maker->task, "senses", "", name);
    (void)snprintf(rows, sizeof rows, "%" PRIu32, senses->last + 1);
    (void)snprintf(cols, sizeof cols, "%" PRIu32, senses->n);
    return make_table(maker, name, pairs, ret, err);
}

psd_status_t wv_tables_make(wv_tables_t *self, psd_train_t *train, const wv_task_t *task,
                            uint32_t n_workers, psd_error_t *err)
{
    maker_t maker = {train, task};
    psd_status_t rc = make_counts(&maker, n_workers, &self->count, err);

    if (rc == PSD_OK && task->senses.n > 1) {
        rc = make_senses(&maker, &self->senses, err);
    }
    for (int i = 0; rc == PSD_OK && i < WV_VECTORS; i++) {
        if (!wv_tables_has(task->options, (wv_table_t)i)) {
            continue;
        }
        rc = make_vectors(&maker, (wv_table_t)i, "", &self->vectors[i], err);
        if (rc == PSD_OK && task->options->adagrad) {
            rc = make_vectors(&maker, (wv_table_t)i, ".sums", &self->sums[i], err);
        }
    }
    return rc;
}

/* ---- results ---- */

psd_status_t wv_tables_pull(psd_train_t *train, uint32_t table, uint32_t n, size_t size,
                            float **ret, psd_error_t *err)
{
    psd_table_t *handle = psd_train_table_handle(train, table);
    float *values = malloc(n * size * sizeof *values);
    uint64_t *rows = calloc(CHUNK_ROWS, sizeof *rows);
    psd_status_t rc = values == NULL || rows == NULL
                          ? psd_error_set(err, PSD_NOMEM, "no memory for the vectors")
                          : PSD_OK;

    for (uint32_t at = 0; rc == PSD_OK && at < n; at += CHUNK_ROWS) {
        uint32_t n_rows = 0;

        while (n_rows < CHUNK_ROWS && at + n_rows < n) {
            rows[n_rows] = at + n_rows;
            n_rows++;
        }
        rc = psd_pull(handle, rows, n_rows, values + at * size, n_rows * size, err);
    }
    free(rows);
    if (rc != PSD_OK) {
        free(values);
        return rc;
    }
    *ret = values;
    return PSD_OK;
}
