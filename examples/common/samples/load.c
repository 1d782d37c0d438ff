/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from files. */
#include "load.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "psd_data.h"

#define BATCH 1000
#define TOLD_MOST 5 /* samples that were left out, with what was wrong */

typedef struct loader {
    const char *path;
    const ex_load_options_t *options;
    const ex_share_t *share;
    ex_samples_t samples; /* owned */
    uint64_t n_left_out;  /* for a label or a key that is not allowed */
} loader_t;

static psd_status_t set_options(psd_reader_options_t *how, const ex_load_options_t *options,
                                const ex_share_t *share, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    psd_reader_options_set_strict(how, !options->skip_bad);
    psd_reader_options_set_merge(how, !share->groups);
    psd_reader_options_set_constant(how, options->constant == EX_YES);
    if (options->format != NULL) {
        rc = psd_reader_options_set_format(how, options->format, err);
    }
    if (rc == PSD_OK) {
        rc = psd_reader_options_set_bits(how, options->bits, err);
    }
    if (rc == PSD_OK) {
        rc = psd_reader_options_set_cache(how, options->cache, err);
    }
    if (rc == PSD_OK && options->deal == EX_DEAL_BYTES) {
        rc = psd_reader_options_set_share(how, share->part, share->n_parts, err);
    }
    return rc;
}

static psd_status_t open_reader(const char *path, const ex_load_options_t *options,
                                const ex_share_t *share, psd_reader_t **ret_reader,
                                psd_error_t *err)
{
    psd_reader_options_t *how = psd_reader_options_new();
    psd_status_t rc = PSD_OK;

    if (how == NULL) {
        return psd_error_set(err, PSD_NOMEM, "read %s", path);
    }
    rc = set_options(how, options, share, err);
    if (rc == PSD_OK) {
        rc = psd_reader_open(&path, 1, how, ret_reader, err);
    }
    psd_reader_options_destroy(&how);
    return rc;
}

/* Whether the training can use the batch's i-th sample. */
static psd_status_t check_sample(const loader_t *self, const psd_samples_t *batch, size_t i,
                                 psd_error_t *err)
{
    const size_t *groups = psd_samples_groups(batch);
    const size_t *starts = psd_samples_starts(batch);
    const uint64_t *keys = psd_samples_keys(batch);
    uint64_t number = self->samples.n_seen + 1;
    uint64_t key_max = self->share->key_max;
    float label = psd_samples_labels(batch)[i];

    if (isnan(label)) {
        return psd_error_set(err, PSD_INVALID, "%s: sample %" PRIu64 " has no label", self->path,
                             number);
    }
    if (!self->share->any_label && label != 0 && label != 1 && label != -1) {
        return psd_error_set(err, PSD_INVALID,
                             "%s: sample %" PRIu64 ": label %g is not one of "
                             "0, 1, -1, +1",
                             self->path, number, (double)label);
    }
    for (size_t k = starts[groups[i]]; k < starts[groups[i + 1]]; k++) {
        if (keys[k] > key_max) {
            return psd_error_set(err, PSD_INVALID,
                                 "%s: sample %" PRIu64 ": key %" PRIu64
                                 " is not a whole number from 0 to %" PRIu64,
                                 self->path, number, keys[k], key_max);
        }
    }
    return PSD_OK;
}

/* Adds a checked sample. */
static psd_status_t add_sample(loader_t *self, const psd_samples_t *batch, size_t i,
                               psd_error_t *err)
{
    const size_t *groups = psd_samples_groups(batch);
    const size_t *starts = psd_samples_starts(batch);
    const uint64_t *keys = psd_samples_keys(batch);
    const float *values = psd_samples_values(batch);
    float label = psd_samples_labels(batch)[i];
    psd_status_t rc = PSD_OK;

    if (!self->share->any_label) {
        label = label > 0 ? 1 : -1;
    }
    rc = ex_samples_add(&self->samples, label, psd_samples_weights(batch)[i], err);
    for (size_t g = groups[i]; rc == PSD_OK && g < groups[i + 1]; g++) {
        int64_t id = psd_samples_group_ids(batch)[g];

        for (size_t k = starts[g]; rc == PSD_OK && k < starts[g + 1]; k++) {
            if (values[k] != 0) {
                rc = ex_samples_add_entry(&self->samples, id, keys[k], values[k], err);
            }
        }
    }
    return rc;
}

static void leave_out(loader_t *self, psd_error_t *err)
{
    if (self->n_left_out++ < TOLD_MOST) {
        (void)fprintf(stderr, "skipped: %s\n", psd_error_text(err));
    }
    psd_error_clear(err);
}

/* Takes the samples of the share. */
static psd_status_t add_batch(loader_t *self, const psd_samples_t *batch, psd_error_t *err)
{
    const ex_share_t *share = self->share;
    bool turns = self->options->deal == EX_DEAL_TURNS;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < psd_samples_count(batch); i++) {
        if (!turns || self->samples.n_seen % share->n_parts == share->part) {
            rc = check_sample(self, batch, i, err);
            if (rc == PSD_OK) {
                rc = add_sample(self, batch, i, err);
                rc = rc == PSD_OK ? rc : psd_error_wrap(err, rc, "%s", self->path);
            } else if (self->options->skip_bad) {
                leave_out(self, err);
                rc = PSD_OK;
            }
        }
        self->samples.n_seen++;
    }
    return rc;
}

static psd_status_t read_all(loader_t *self, psd_reader_t *reader, psd_error_t *err)
{
    psd_samples_t *batch = psd_samples_new();
    psd_status_t rc = PSD_OK;

    if (batch == NULL) {
        return psd_error_set(err, PSD_NOMEM, "a batch of samples");
    }
    do {
        rc = psd_reader_next(reader, BATCH, batch, err);
        if (rc == PSD_OK) {
            rc = add_batch(self, batch, err);
        }
    } while (rc == PSD_OK && psd_samples_count(batch) > 0);
    psd_samples_destroy(&batch);
    return rc;
}

/* Reports the samples left out, and a useless cache. */
static void tell_bad(const loader_t *self, const psd_reader_t *reader)
{
    uint64_t n = psd_reader_bad_count(reader);
    const char *text = psd_reader_warning(reader);

    if (text != NULL) {
        (void)fprintf(stderr, "%s\n", text);
    }
    for (size_t i = 0; (text = psd_reader_bad(reader, i)) != NULL; i++) {
        (void)fprintf(stderr, "skipped: %s\n", text);
    }
    if (n > 0) {
        (void)fprintf(stderr, "skipped: %" PRIu64 " bad lines\n", n);
    }
    if (self->n_left_out > 0) {
        (void)fprintf(stderr,
                      "skipped: %" PRIu64 " samples of %" PRIu64
                      ", for a label or a key that is not allowed\n",
                      self->n_left_out, self->samples.n + self->n_left_out);
    }
}

psd_status_t ex_load(const char *path, const ex_load_options_t *options, const ex_share_t *share,
                     ex_samples_t *ret_samples, psd_error_t *err)
{
    loader_t self = {.path = path, .options = options, .share = share};
    ex_samples_t *samples = &self.samples;
    psd_reader_t *reader = NULL;
    bool sees_all = options->deal == EX_DEAL_TURNS || share->n_parts == 1;
    psd_status_t rc = open_reader(path, options, share, &reader, err);

    if (rc == PSD_OK) {
        rc = read_all(&self, reader, err);
    }
    if (rc == PSD_OK) {
        tell_bad(&self, reader);
    }
    if (rc == PSD_OK && samples->n_seen == 0 && sees_all) {
        rc = psd_error_set(err, PSD_INVALID, "%s has no sample", path);
    }
    if (rc == PSD_OK && samples->n == 0 && self.n_left_out > 0) {
        rc = psd_error_set(err, PSD_INVALID, "%s: none of %" PRIu64 " samples can be used", path,
                           self.n_left_out);
    }
    if (rc == PSD_OK) {
        rc = ex_samples_number(samples, err);
    }
    psd_reader_close(&reader);
    if (rc != PSD_OK) {
        ex_samples_done(samples);
        return rc;
    }
    *ret_samples = self.samples;
    return PSD_OK;
}

static psd_status_t give_all(psd_reader_t *reader, size_t n_most, ex_take_t *take, void *self,
                             psd_error_t *err)
{
    psd_samples_t *batch = psd_samples_new();
    psd_status_t rc = PSD_OK;
    bool more = true;

    if (batch == NULL) {
        return psd_error_set(err, PSD_NOMEM, "a batch of samples");
    }
    while (rc == PSD_OK && more) {
        rc = psd_reader_next(reader, n_most, batch, err);
        more = rc == PSD_OK && psd_samples_count(batch) > 0;
        if (more) {
            rc = take(self, batch, err);
        }
    }
    psd_samples_destroy(&batch);
    return rc;
}

psd_status_t ex_read(const char *path, const char *format, size_t n_most, ex_take_t *take,
                     void *self, psd_error_t *err)
{
    psd_reader_options_t *how = psd_reader_options_new();
    psd_reader_t *reader = NULL;
    psd_status_t rc = PSD_OK;

    if (how == NULL) {
        return psd_error_set(err, PSD_NOMEM, "read %s", path);
    }
    psd_reader_options_set_strict(how, true);
    rc = psd_reader_options_set_format(how, format, err);
    if (rc == PSD_OK) {
        rc = psd_reader_open(&path, 1, how, &reader, err);
    }
    psd_reader_options_destroy(&how);
    if (rc == PSD_OK) {
        rc = give_all(reader, n_most, take, self, err);
        rc = rc == PSD_INVALID ? psd_error_wrap(err, rc, "%s", path) : rc;
    }
    psd_reader_close(&reader);
    return rc;
}
