/* SPDX-License-Identifier: Apache-2.0 */
/* Logistic regression with the training framework: psd-train FILE [EPOCHS].
 * Start several with `pscli run -n N -- psd-train FILE`; each reads its share
 * of the file, which is best a plain one: gzip has no places to cut it at. */
#include <psd_data.h>
#include <psd_train.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 1000
#define RATE 0.5F
#define WAIT_MS 60000

enum { WEIGHTS = 0 }; /* tables are numbered as they are made */

typedef struct job {
    atomic_size_t n_seen;
    atomic_size_t n_right; /* as predicted before they were learnt from */
} job_t;

static void free_batch(void *block)
{
    psd_samples_t *batch = block;

    psd_samples_destroy(&batch);
}

/* In the loader's thread: a batch needs the weights of its features. */
static psd_status_t load(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    (void)user;
    return psd_loader_rows(loader, WEIGHTS, psd_samples_keys(block), psd_samples_entry_count(block),
                           err);
}

/* In each trainer's thread: learns from its part of the batch. */
static psd_status_t step(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    job_t *job = user;
    const size_t *starts = psd_samples_starts(block);
    const uint64_t *keys = psd_samples_keys(block);
    const float *values = psd_samples_values(block);
    size_t n = psd_samples_count(block);
    size_t first = 0;
    size_t end = 0;

    (void)err;
    psd_trainer_share(trainer, n, &first, &end);
    for (size_t i = first; i < end; i++) {
        float label = psd_samples_labels(block)[i] > 0 ? 1.0F : -1.0F;
        float margin = 0;
        float slope = 0;

        for (size_t k = starts[i]; k < starts[i + 1]; k++) {
            const float *weight = psd_trainer_row(trainer, WEIGHTS, keys[k]);

            margin += weight == NULL ? 0 : *weight * values[k];
        }
        slope = label / (1 + expf(label * margin)) * RATE / (float)n;
        for (size_t k = starts[i]; k < starts[i + 1]; k++) {
            psd_trainer_add_f64(trainer, WEIGHTS, keys[k], 0, (double)(slope * values[k]));
        }
        job->n_right += label * margin > 0;
        job->n_seen++;
    }
    return PSD_OK;
}

/* Reads this worker's share once; every batch is a clock. */
static psd_status_t run_epoch(psd_train_t *train, const char *path, psd_error_t *err)
{
    psd_reader_options_t *options = psd_reader_options_new();
    psd_reader_t *reader = NULL;
    psd_status_t rc = psd_reader_options_set_share(options, psd_train_worker(train),
                                                   psd_train_workers(train), err);
    int more = 1;

    if (rc == PSD_OK) {
        rc = psd_reader_open(&path, 1, options, &reader, err);
    }
    while (rc == PSD_OK && more) {
        psd_samples_t *batch = psd_samples_new();

        rc = psd_reader_next(reader, BATCH, batch, err);
        more = rc == PSD_OK && psd_samples_count(batch) > 0;
        if (more) {
            rc = psd_train_clock_begin(train, err);
        }
        if (rc == PSD_OK && more) {
            rc = psd_train_push_block(train, batch, free_batch, WAIT_MS, err);
        }
        if (rc != PSD_OK || !more) {
            psd_samples_destroy(&batch); /* it was not taken */
        } else {
            rc = psd_train_clock_end(train, err);
        }
    }
    psd_reader_close(&reader);
    psd_reader_options_destroy(&options);
    return rc;
}

static psd_status_t configure(psd_train_t *train, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 0;
    psd_status_t rc = psd_train_set(train, "trainers", "2", err);

    if (rc == PSD_OK) { /* slower, and the same at every run */
        rc = psd_train_set(train, "pipeline", "off", err);
    }
    if (rc == PSD_OK) {
        rc = psd_train_config_begin(train, err);
    }
    if (rc == PSD_OK) { /* any u64 may be a feature */
        rc = psd_spec_set(spec, "keys", "hash", err);
    }
    if (rc == PSD_OK) {
        rc = psd_train_table(train, "train-weights", spec, &table, err);
    }
    if (rc == PSD_OK) {
        rc = psd_train_config_end(train, err);
    }
    psd_spec_destroy(&spec);
    return rc;
}

int main(int argc, char **argv)
{
    int n_epochs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 10;
    job_t job = {0};
    psd_error_t *err = NULL;
    psd_train_t *train = NULL;
    psd_status_t rc = PSD_OK;
    int is_help = 0;

    if (argc < 2 || argc > 3 || n_epochs < 1 || strncmp(argv[1], "--", 2) == 0) {
        is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
        (void)fputs("usage: psd-train FILE [EPOCHS]\n", is_help ? stdout : stderr);
        return is_help ? 0 : 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* a line is seen at once */
    err = psd_error_new();
    train = psd_train_new(&job);
    psd_train_on_load(train, load);
    psd_train_on(train, PSD_TRAIN_STEP, step);
    rc = configure(train, err);
    if (rc == PSD_OK) {
        rc = psd_train_begin(train, err);
    }
    for (int i = 0; rc == PSD_OK && i < n_epochs; i++) {
        job = (job_t){0};
        rc = run_epoch(train, argv[1], err);
        if (rc == PSD_OK) {
            rc = psd_train_wait(train, WAIT_MS, err);
        }
        if (rc == PSD_OK) {
            size_t n = job.n_seen;

            (void)printf("epoch %d: %zu samples, %.4f right\n", i + 1, n,
                         n == 0 ? 0 : (double)job.n_right / (double)n);
        }
    }
    if (rc == PSD_OK) {
        rc = psd_train_end(train, WAIT_MS, err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "psd-train: %s %s\n", psd_status_code(rc), psd_error_text(err));
    }
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return psd_status_exit(rc);
}
