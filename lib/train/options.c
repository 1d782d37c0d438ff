/* SPDX-License-Identifier: Apache-2.0 */
/* What is set before anything runs. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "protocol/facts/work.h"
#include "train/train_state.h"

#define TIMEOUT_MS 60000
#define KEEP_BYTES (INT64_C(256) << 20)

void ps_train_options_init(ps_train_options_t *self)
{
    *self = (ps_train_options_t){.worker = -1,
                                 .max_delay = PSD_DELAY_ENV,
                                 .n_trainers = 1,
                                 .pipeline = true,
                                 .max_blocks = 4,
                                 .push_every = 1,
                                 .n_locks = 100,
                                 .timeout_ms = TIMEOUT_MS,
                                 .n_epochs = 1,
                                 .progress_ms = 1000,
                                 .fetch_every = 1,
                                 .staleness = PS_KEPT_NEVER,
                                 .keep_bytes = KEEP_BYTES};
}

void ps_train_options_done(ps_train_options_t *self)
{
    ps_free(self->endpoint);
    ps_free(self->job);
    ps_free(self->queue);
    self->endpoint = NULL;
    self->job = NULL;
    self->queue = NULL;
}

static psd_status_t take_text(char **to, const char *value, psd_error_t *err)
{
    char *copy = ps_strdup(value);

    if (copy == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an option");
    }
    ps_free(*to);
    *to = copy;
    return PSD_OK;
}

static psd_status_t take_name(char **to, const char *key, const char *value, psd_error_t *err)
{
    return ps_text_is_name(value) ? take_text(to, value, err)
                                  : psd_error_set(err, PSD_INVALID,
                                                  "%s is \"%.80s\"; allowed: 1..%d of letters, "
                                                  "digits, \"_\", \".\", \"-\"",
                                                  key, value, PS_NAME_MAX);
}

/* One of the words, which are separated by ", "; its number. */
static psd_status_t take_word(uint32_t *to, const char *key, const char *value,
                              const char *const *words, const char *allowed, psd_error_t *err)
{
    for (uint32_t i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], value) == 0) {
            *to = i;
            return PSD_OK;
        }
    }
    return psd_error_set(err, PSD_INVALID, "%s is \"%.40s\"; allowed: %s", key, value, allowed);
}

static psd_status_t take_number(int64_t *to, const char *key, const char *value, int64_t min,
                                int64_t max, psd_error_t *err)
{
    int64_t number = 0;

    if (!ps_text_i64(value, &number) || number < min || number > max) {
        return psd_error_set(err, PSD_INVALID, "%s is \"%.40s\"; allowed: %" PRId64 "..%" PRId64,
                             key, value, min, max);
    }
    *to = number;
    return PSD_OK;
}

/* A number of uint32_t, by key. */
typedef struct number_option {
    const char *key;
    size_t offset;
    uint32_t min;
    uint32_t max;
} number_option_t;

static const number_option_t number_options[] = {
    {"workers", offsetof(ps_train_options_t, n_workers), 1, 4096},
    {"trainers", offsetof(ps_train_options_t, n_trainers), 1, 256},
    {"max-blocks", offsetof(ps_train_options_t, max_blocks), 1, 4096},
    {"fetch-every", offsetof(ps_train_options_t, fetch_every), 1, 1000000},
    {"push-every", offsetof(ps_train_options_t, push_every), 0, 1000000},
    {"locks", offsetof(ps_train_options_t, n_locks), 1, 65536},
    {"slices", offsetof(ps_train_options_t, n_slices), 1, PS_WORK_SLICES_MAX},
    {"epochs", offsetof(ps_train_options_t, n_epochs), 0, PS_WORK_EPOCHS_MAX},
    {"timeout-ms", offsetof(ps_train_options_t, timeout_ms), 0, UINT32_MAX},
    {"progress-ms", offsetof(ps_train_options_t, progress_ms), 0, UINT32_MAX},
};

static psd_status_t set_number(ps_train_options_t *self, const number_option_t *option,
                               const char *value, psd_error_t *err)
{
    int64_t number = 0;
    psd_status_t rc = take_number(&number, option->key, value, option->min, option->max, err);

    if (rc == PSD_OK) {
        uint32_t narrow = (uint32_t)number;

        memcpy((char *)self + option->offset, &narrow, sizeof narrow);
    }
    return rc;
}

static psd_status_t set_signed(ps_train_options_t *self, const char *key, const char *value,
                               psd_error_t *err)
{
    int64_t number = 0;
    psd_status_t rc = PSD_OK;

    if (strcmp(key, "worker") == 0) {
        return take_number(&self->worker, key, value, 0, 4095, err);
    }
    if (strcmp(key, "keep-bytes") == 0) {
        return take_number(&self->keep_bytes, key, value, 0, INT64_MAX, err);
    }
    if (strcmp(key, "staleness") == 0) {
        if (strcmp(value, "off") == 0) {
            self->staleness = PS_KEPT_NEVER;
            return PSD_OK;
        }
        return take_number(&self->staleness, key, value, 0, INT32_MAX, err);
    }
    rc = take_number(&number, key, value, -INT32_MAX, INT32_MAX, err);
    if (rc == PSD_OK) {
        self->max_delay = (int32_t)number;
    }
    return rc;
}

psd_status_t psd_train_set(psd_train_t *self, const char *key, const char *value, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    static const char *const switches[] = {"off", "on", NULL};
    static const char *const locks[] = {"immutable", "lock-free", "locked", NULL};
    ps_train_options_t *options = &self->options;
    uint32_t word = 0;
    psd_status_t rc = PSD_OK;

    if (self->phase != PS_TRAIN_NEW) {
        return psd_error_set(err, PSD_INVALID, "%.40s is set behind psd_train_config_begin", key);
    }
    for (size_t i = 0; i < sizeof number_options / sizeof *number_options; i++) {
        if (strcmp(number_options[i].key, key) == 0) {
            return set_number(options, &number_options[i], value, err);
        }
    }
    if (strcmp(key, "endpoint") == 0) {
        return take_text(&options->endpoint, value, err);
    }
    if (strcmp(key, "job") == 0) {
        return take_text(&options->job, value, err);
    }
    if (strcmp(key, "queue") == 0) {
        return take_name(&options->queue, key, value, err);
    }
    if (strcmp(key, "worker") == 0 || strcmp(key, "max-delay") == 0 ||
        strcmp(key, "staleness") == 0 || strcmp(key, "keep-bytes") == 0) {
        return set_signed(options, key, value, err);
    }
    if (strcmp(key, "pipeline") == 0) {
        rc = take_word(&word, key, value, switches, "on, off", err);
        options->pipeline = rc == PSD_OK ? word == 1 : options->pipeline;
        return rc;
    }
    if (strcmp(key, "lock") == 0) {
        rc = take_word(&word, key, value, locks, "immutable, lock-free, locked", err);
        options->lock = rc == PSD_OK ? (ps_train_lock_t)word : options->lock;
        return rc;
    }
    return psd_error_set(err, PSD_INVALID,
                         "there is no option \"%.40s\"; allowed: endpoint, "
                         "job, worker, workers, max-delay, trainers, pipeline, "
                         "max-blocks, push-every, fetch-every, "
                         "staleness, keep-bytes, lock, locks, queue, slices, "
                         "epochs, timeout-ms, progress-ms",
                         key);
}
