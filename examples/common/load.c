/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from files. */
#include "load.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "psd_data.h"

#define BATCH 1000

static psd_status_t
set_options(psd_reader_options_t *how,
            const ex_load_options_t *options,
            const ex_share_t *share,
            psd_error_t *err)
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
        rc =
            psd_reader_options_set_share(how, share->part, share->n_parts, err);
    }
    return rc;
}

static psd_status_t
open_reader(const char *path,
            const ex_load_options_t *options,
            const ex_share_t *share,
            psd_reader_t **ret_reader,
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

static psd_status_t
add_entries(ex_samples_t *self,
            const psd_samples_t *batch,
            size_t group,
            uint64_t key_max,
            psd_error_t *err)
{
    const size_t *starts = psd_samples_starts(batch);
    const uint64_t *keys = psd_samples_keys(batch);
    const float *values = psd_samples_values(batch);
    int64_t id = psd_samples_group_ids(batch)[group];
    psd_status_t rc = PSD_OK;

    for (size_t k = starts[group]; rc == PSD_OK && k < starts[group + 1]; k++) {
        if (keys[k] > key_max) {
            return psd_error_set(err, PSD_INVALID,
                                 "sample %" PRIu64 ": key %" PRIu64
                                 " is not a whole number from 0 to %" PRIu64,
                                 self->n_seen + 1, keys[k], key_max);
        }
        if (values[k] != 0) {
            rc = ex_samples_add_entry(self, id, keys[k], values[k], err);
        }
    }
    return rc;
}

static psd_status_t
add_sample(ex_samples_t *self,
           const psd_samples_t *batch,
           size_t i,
           const ex_share_t *share,
           psd_error_t *err)
{
    const size_t *groups = psd_samples_groups(batch);
    float label = psd_samples_labels(batch)[i];
    psd_status_t rc = PSD_OK;

    if (isnan(label)) {
        return psd_error_set(err, PSD_INVALID,
                             "sample %" PRIu64 " has no label",
                             self->n_seen + 1);
    }
    if (!share->any_label) {
        if (label != 0 && label != 1 && label != -1) {
            return psd_error_set(err, PSD_INVALID,
                                 "sample %" PRIu64 ": label %g is not one of "
                                 "0, 1, -1, +1",
                                 self->n_seen + 1, (double)label);
        }
        label = label > 0 ? 1 : -1;
    }
    rc = ex_samples_add(self, label, psd_samples_weights(batch)[i], err);
    for (size_t g = groups[i]; rc == PSD_OK && g < groups[i + 1]; g++) {
        rc = add_entries(self, batch, g, share->key_max, err);
    }
    return rc;
}

/* Takes what belongs to the share. */
static psd_status_t
add_batch(ex_samples_t *self,
          const psd_samples_t *batch,
          const ex_share_t *share,
          bool turns,
          psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < psd_samples_count(batch); i++) {
        if (!turns || self->n_seen % share->n_parts == share->part) {
            rc = add_sample(self, batch, i, share, err);
        }
        self->n_seen++;
    }
    return rc;
}

static psd_status_t
read_all(psd_reader_t *reader,
         const char *path,
         bool turns,
         const ex_share_t *share,
         ex_samples_t *samples,
         psd_error_t *err)
{
    psd_samples_t *batch = psd_samples_new();
    psd_status_t rc = PSD_OK;

    if (batch == NULL) {
        return psd_error_set(err, PSD_NOMEM, "a batch of samples");
    }
    do {
        rc = psd_reader_next(reader, BATCH, batch, err);
        if (rc == PSD_OK) {
            rc = add_batch(samples, batch, share, turns, err);
            rc = rc == PSD_OK ? rc : psd_error_wrap(err, rc, "%s", path);
        }
    } while (rc == PSD_OK && psd_samples_count(batch) > 0);
    psd_samples_destroy(&batch);
    return rc;
}

/* Tells of bad lines that were left out, and of a cache that is of no use. */
static void
tell_bad(const psd_reader_t *reader)
{
    uint64_t n = psd_reader_bad_count(reader);
    const char *text = psd_reader_warning(reader);

    if (text != NULL) {
        (void)fprintf(stderr, "%s\n", text);
    }
    for (size_t i = 0; (text = psd_reader_bad(reader, i)) != NULL; i++) {
        (void)fprintf(stderr, "left out: %s\n", text);
    }
    if (n > 0) {
        (void)fprintf(stderr, "left out: %" PRIu64 " bad lines\n", n);
    }
}

psd_status_t
ex_load(const char *path,
        const ex_load_options_t *options,
        const ex_share_t *share,
        ex_samples_t *ret_samples,
        psd_error_t *err)
{
    ex_samples_t samples = {0};
    psd_reader_t *reader = NULL;
    bool turns = options->deal == EX_DEAL_TURNS;
    psd_status_t rc = open_reader(path, options, share, &reader, err);

    if (rc == PSD_OK) {
        rc = read_all(reader, path, turns, share, &samples, err);
    }
    if (rc == PSD_OK && samples.n_seen == 0 && (turns || share->n_parts == 1)) {
        rc = psd_error_set(err, PSD_INVALID, "%s has no sample", path);
    }
    if (rc == PSD_OK) {
        rc = ex_samples_number(&samples, err);
        tell_bad(reader);
    }
    psd_reader_close(&reader);
    if (rc != PSD_OK) {
        ex_samples_done(&samples);
        return rc;
    }
    *ret_samples = samples;
    return PSD_OK;
}

static psd_status_t
give_all(psd_reader_t *reader,
         size_t n_most,
         ex_take_t *take,
         void *self,
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

psd_status_t
ex_read(const char *path,
        const char *format,
        size_t n_most,
        ex_take_t *take,
        void *self,
        psd_error_t *err)
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
