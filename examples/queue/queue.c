/* SPDX-License-Identifier: Apache-2.0 */
/* Logistic regression whose workers share their input through a work queue:
 * psd-queue FILE SLICES EPOCHS [DELAY_MS]. Start several with
 * `pscli run -n N --job J -- psd-queue FILE SLICES EPOCHS`. A slice is one of
 * SLICES shares of the file, which must be a plain one: gzip has no places to
 * cut it at. With each slice a worker sleeps up to DELAY_MS, as on a machine
 * that has other things to do. */
#include <psd_data.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "psd.h"

#define RATE 0.5F
#define SHARE 0.25F         /* of its steps: others learn from the same weights */
#define SAMPLES_MAX 1000000 /* of a slice */
#define WAIT_MS 600000      /* others may be slow */
#define ASK_MS 10000        /* then it says whom it waits for */

typedef struct job {
    const char *path;
    uint32_t n_slices;
    uint64_t n_epochs;
    long delay_ms;
    unsigned short chance[3];
    psd_client_t *client;
    psd_table_t *weights;
    psd_work_t *work;
    size_t n_seen;
    size_t n_right; /* as predicted before they were learnt from */
} job_t;

/* The rows that a slice needs. */
typedef struct rows {
    uint64_t *keys; /* ascending, each once */
    float *values;
    float *old;
    size_t n;
} rows_t;

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static psd_status_t find_rows(const psd_samples_t *samples, rows_t *ret, psd_error_t *err)
{
    size_t n = psd_samples_entry_count(samples);

    ret->keys = malloc((n + 1) * sizeof *ret->keys);
    ret->values = malloc((n + 1) * sizeof *ret->values);
    ret->old = malloc((n + 1) * sizeof *ret->old);
    if (ret->keys == NULL || ret->values == NULL || ret->old == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu rows", n);
    }
    for (size_t i = 0; i < n; i++) {
        ret->keys[i] = psd_samples_keys(samples)[i];
    }
    qsort(ret->keys, n, sizeof *ret->keys, compare);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || ret->keys[i] != ret->keys[ret->n - 1]) {
            ret->keys[ret->n++] = ret->keys[i];
        }
    }
    return PSD_OK;
}

static float *value_of(const rows_t *rows, uint64_t key)
{
    const uint64_t *at = bsearch(&key, rows->keys, rows->n, sizeof key, compare);

    return &rows->values[at - rows->keys];
}

/* One pass over the samples, on the worker's own copy of the weights. */
static void learn(job_t *job, const psd_samples_t *samples, const rows_t *rows)
{
    const size_t *starts = psd_samples_starts(samples);
    const uint64_t *keys = psd_samples_keys(samples);
    const float *x = psd_samples_values(samples);

    for (size_t i = 0; i < psd_samples_count(samples); i++) {
        float label = psd_samples_labels(samples)[i] > 0 ? 1.0F : -1.0F;
        float margin = 0;
        float slope = 0;

        for (size_t k = starts[i]; k < starts[i + 1]; k++) {
            margin += *value_of(rows, keys[k]) * x[k];
        }
        slope = label * RATE / (1 + expf(label * margin));
        for (size_t k = starts[i]; k < starts[i + 1]; k++) {
            *value_of(rows, keys[k]) += slope * x[k];
        }
        job->n_right += label * margin > 0;
        job->n_seen++;
    }
}

/* What it has learnt joins what the others have. */
static psd_status_t update(job_t *job, const psd_samples_t *samples, rows_t *rows, psd_error_t *err)
{
    psd_status_t rc = find_rows(samples, rows, err);

    if (rc == PSD_OK) {
        rc = psd_pull(job->weights, rows->keys, rows->n, rows->values, rows->n, err);
    }
    if (rc == PSD_OK) {
        memcpy(rows->old, rows->values, rows->n * sizeof *rows->old);
        learn(job, samples, rows);
        for (size_t i = 0; i < rows->n; i++) {
            rows->values[i] = (rows->values[i] - rows->old[i]) * SHARE;
        }
        rc = psd_push(job->weights, rows->keys, rows->n, rows->values, rows->n, err);
    }
    return rc;
}

static psd_status_t read_slice(const job_t *job, uint32_t slice, psd_samples_t *samples,
                               psd_error_t *err)
{
    psd_reader_options_t *options = psd_reader_options_new();
    psd_reader_t *reader = NULL;
    psd_status_t rc = psd_reader_options_set_share(options, slice, job->n_slices, err);

    if (rc == PSD_OK) {
        rc = psd_reader_open(&job->path, 1, options, &reader, err);
    }
    if (rc == PSD_OK) {
        rc = psd_reader_next(reader, SAMPLES_MAX, samples, err);
    }
    psd_reader_close(&reader);
    psd_reader_options_destroy(&options);
    return rc;
}

static void sleep_a_while(job_t *job)
{
    long chosen = job->delay_ms > 0 ? nrand48(job->chance) % (job->delay_ms + 1) : 0;
    const struct timespec time = {.tv_sec = chosen / 1000, .tv_nsec = chosen % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

static psd_status_t train_slice(job_t *job, uint32_t slice, psd_error_t *err)
{
    psd_samples_t *samples = psd_samples_new();
    rows_t rows = {.keys = NULL};
    psd_status_t rc = read_slice(job, slice, samples, err);

    if (rc == PSD_OK && psd_samples_entry_count(samples) > 0) {
        rc = update(job, samples, &rows, err);
    }
    sleep_a_while(job);
    free(rows.keys);
    free(rows.values);
    free(rows.old);
    psd_samples_destroy(&samples);
    return rc;
}

static psd_status_t work_through(job_t *job, psd_error_t *err)
{
    uint64_t epoch = 0; /* 1, 2, ...; 0 after the last slice of the last one */
    uint32_t slice = 0;

    for (;;) {
        psd_status_t rc = psd_work_next(job->work, ASK_MS, &epoch, &slice, err);

        if (rc == PSD_DEADLINE) { /* others have all that are left */
            (void)fprintf(stderr, "%s\n", psd_error_text(err));
            continue;
        }
        if (rc != PSD_OK || epoch == 0) {
            return rc;
        }
        rc = train_slice(job, slice, err); /* pulls and pushes */
        if (rc != PSD_OK) {
            return rc; /* not done: it goes to another worker */
        }
        do { /* counted once, however often it is said */
            rc = psd_work_done(job->work, epoch, slice, WAIT_MS, err);
        } while (rc == PSD_DEADLINE);
        if (rc == PSD_OK) {
            (void)printf("slice %u of epoch %llu\n", (unsigned)slice, (unsigned long long)epoch);
            rc = psd_clock(job->client, err); /* after psd_work_done */
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
}

static psd_status_t begin(job_t *job, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_options_t *options = psd_options_new();
    psd_status_t rc = psd_spec_set(spec, "keys", "hash", err);

    psd_options_set_timeout_ms(options, WAIT_MS);
    if (rc == PSD_OK) {
        rc = psd_connect(NULL, options, &job->client, err);
    }
    if (rc == PSD_OK) {
        rc = psd_join(job->client, NULL, -1, 0, PSD_DELAY_ENV, err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(job->client, "weights", spec, &job->weights, err);
    }
    if (rc == PSD_OK) {
        rc = psd_work_open(job->client, "input", job->n_slices, job->n_epochs, &job->work, err);
    }
    psd_options_destroy(&options);
    psd_spec_destroy(&spec);
    return rc;
}

/* One that failed says why: nobody waits for it, `pscli why` shows it, and its
 * slices go to others. One that was declared lost, or whose job was stopped, is
 * no worker any more. */
static psd_status_t end(job_t *job, psd_status_t rc, psd_error_t *err)
{
    if (rc == PSD_OK) {
        (void)printf("%zu samples, %.4f right\n", job->n_seen,
                     job->n_seen == 0 ? 0 : (double)job->n_right / (double)job->n_seen);
        rc = psd_leave(job->client, WAIT_MS, err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "queue: %s\n", psd_error_text(err));
    }
    if (rc != PSD_OK && rc != PSD_JOB_STOPPED && rc != PSD_WORKER_LOST && job->client != NULL) {
        char reason[160];

        (void)snprintf(reason, sizeof reason, "%s", psd_error_text(err));
        if (psd_fail(job->client, reason, 1000, err) != PSD_OK &&
            psd_error_status(err) != PSD_NOT_JOINED) {
            (void)fprintf(stderr, "queue: %s\n", psd_error_text(err));
        }
    }
    psd_work_close(&job->work);
    psd_table_close(&job->weights);
    psd_close(&job->client);
    return rc;
}

int main(int argc, char **argv)
{
    job_t job = {.client = NULL};
    psd_error_t *err = psd_error_new();
    psd_status_t rc = PSD_OK;
    int is_help = argc > 1 && strcmp(argv[1], "--help") == 0;

    if (argc >= 4 && argc <= 5) {
        job.path = argv[1];
        job.n_slices = (uint32_t)strtoul(argv[2], NULL, 10);
        job.n_epochs = strtoull(argv[3], NULL, 10);
        job.delay_ms = argc == 5 ? strtol(argv[4], NULL, 10) : 0;
    }
    if (job.n_slices == 0 || job.n_epochs == 0 || job.delay_ms < 0) {
        (void)fputs("usage: psd-queue FILE SLICES EPOCHS [DELAY_MS]\n", is_help ? stdout : stderr);
        psd_error_destroy(&err);
        return is_help ? 0 : 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    job.chance[0] = (unsigned short)getpid();
    job.chance[1] = (unsigned short)time(NULL);
    rc = begin(&job, err);
    if (rc == PSD_OK) {
        rc = work_through(&job, err);
    }
    rc = end(&job, rc, err);
    psd_error_destroy(&err);
    return psd_status_exit(rc);
}
