/* SPDX-License-Identifier: Apache-2.0 */
/* Options, set before anything runs. */
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/options.h"
#include "base/text.h"
#include "protocol/facts/work.h"
#include "train/setup/setup.h"
#include "transport/environment/environment.h"

#define TIMEOUT_MS 60000
#define KEEP_BYTES (INT64_C(256) << 20)
#define KEEP_BYTES_MAX (INT64_C(1) << 62)

void ps_train_options_init(ps_train_options_t *self)
{
    *self = (ps_train_options_t){.worker = -1,
                                 .max_delay = PSD_DELAY_ENV,
                                 .n_trainers = 1,
                                 .pipeline = 1,
                                 .max_blocks = 4,
                                 .push_every = 1,
                                 .n_locks = 100,
                                 .timeout_ms = TIMEOUT_MS,
                                 .n_epochs = 1,
                                 .progress_ms = 1000,
                                 .fetch_every = 1,
                                 .outer_fragments = 1,
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

/* Texts are copied: an owned one is in the place of each. */
static psd_status_t take_text(const ps_opt_t *option, ps_train_options_t *self, const char *value,
                              psd_error_t *err)
{
    char **to = (char **)(void *)((char *)self + option->offset);
    char *copy = NULL;

    if (to == &self->queue && !ps_text_is_name(value)) {
        return psd_error_set(err, PSD_INVALID,
                             "%s is \"%.80s\"; allowed: 1..%d of letters, "
                             "digits, \"_\", \".\", \"-\"",
                             option->name, value, PS_NAME_MAX);
    }
    copy = ps_strdup(value);
    if (copy == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an option");
    }
    ps_free(*to);
    *to = copy;
    return PSD_OK;
}

#define AT(member) offsetof(ps_train_options_t, member)
#define NUMBER(name, kind, member, min, max) \
    PS_OPT_NUMBER(name, "N", kind, AT(member), min, max, NULL)
static const ps_opt_t OPTIONS[] = {
    PS_OPT_ROW("endpoint", "URL", PS_OPT_TEXT, AT(endpoint), NULL),
    PS_OPT_ROW("job", "NAME", PS_OPT_TEXT, AT(job), NULL),
    NUMBER("worker", PS_OPT_U64, worker, 0, 4095),
    NUMBER("workers", PS_OPT_U32, n_workers, 1, 4096),
    NUMBER("max-delay", PS_OPT_I32, max_delay, 0, 0),
    NUMBER("trainers", PS_OPT_U32, n_trainers, 1, 256),
    PS_OPT_ROW("pipeline", "off|on", PS_OPT_CHOICE, AT(pipeline), NULL),
    NUMBER("max-blocks", PS_OPT_U32, max_blocks, 1, 4096),
    NUMBER("push-every", PS_OPT_U32, push_every, 0, 1000000),
    NUMBER("fetch-every", PS_OPT_U32, fetch_every, 1, 1000000),
    NUMBER("staleness", PS_OPT_U64, staleness, 0, INT32_MAX),
    NUMBER("keep-bytes", PS_OPT_U64, keep_bytes, 0, KEEP_BYTES_MAX),
    NUMBER("outer-every", PS_OPT_U32, outer_every, 0, 1000000),
    NUMBER("outer-fragments", PS_OPT_U32, outer_fragments, 1, 65536),
    NUMBER("outer-overlap", PS_OPT_U32, outer_overlap, 0, 1000000),
    PS_OPT_ROW("lock", "immutable|lock-free|locked", PS_OPT_CHOICE, AT(lock), NULL),
    NUMBER("locks", PS_OPT_U32, n_locks, 1, 65536),
    PS_OPT_ROW("queue", "NAME", PS_OPT_TEXT, AT(queue), NULL),
    NUMBER("slices", PS_OPT_U32, n_slices, 1, PS_WORK_SLICES_MAX),
    NUMBER("epochs", PS_OPT_U32, n_epochs, 0, PS_WORK_EPOCHS_MAX),
    NUMBER("timeout-ms", PS_OPT_U32, timeout_ms, 0, UINT32_MAX),
    NUMBER("progress-ms", PS_OPT_U32, progress_ms, 0, UINT32_MAX),
    PS_OPT_END,
};
#undef NUMBER
#undef AT

static psd_status_t refuse_key(const char *key, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t names = {0};
    bool ok = true;

    for (const ps_opt_t *at = OPTIONS; ok && !ps_opt_is_end(at); at++) {
        ok = ps_buffer_print(&names, "%s%s", at == OPTIONS ? "" : ", ", at->name);
    }
    return psd_error_set(err, PSD_INVALID, "unknown option \"%.40s\"; allowed: %s", key,
                         ok ? (const char *)names.data : "");
}

psd_status_t ps_train_options_environment(ps_train_options_t *self, psd_error_t *err)
{
    static const char *const SETTINGS[][2] = {{"trainers", "PSD_TRAINERS"},
                                              {"pipeline", "PSD_PIPELINE"},
                                              {"lock", "PSD_LOCK"},
                                              {"locks", "PSD_LOCKS"}};
    const ps_opts_t options = {.lists = {OPTIONS}};
    psd_status_t rc = PSD_OK;

    for (size_t k = 0; rc == PSD_OK && k < sizeof SETTINGS / sizeof *SETTINGS; k++) {
        int i = ps_opts_find(&options, SETTINGS[k][0]);
        ps_environment_t said = {.text = NULL};

        if ((self->said & 1U << i) == 0) {
            rc = ps_environment_read(SETTINGS[k][1], &said, err);
        }
        if (rc == PSD_OK && said.text != NULL) {
            rc = ps_opt_take(ps_opts_at(&options, (size_t)i), said.text, said.origin, PSD_INVALID,
                             self, err);
        }
    }
    return rc;
}

psd_status_t psd_train_set(psd_train_t *self, const char *key, const char *value, psd_error_t *err)
{
    const ps_opts_t options = {.lists = {OPTIONS}};
    const ps_opt_t *option = NULL;
    int i = ps_opts_find(&options, key);

    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }
    if (self->phase != PS_TRAIN_NEW) {
        return psd_error_set(err, PSD_INVALID, "%.40s is set after psd_train_config_begin", key);
    }
    if (i < 0) {
        return refuse_key(key, err);
    }
    option = ps_opts_at(&options, (size_t)i);
    self->options.said |= 1U << i;
    if (option->kind == PS_OPT_TEXT) {
        return take_text(option, &self->options, value, err);
    }
    if (option->offset == offsetof(ps_train_options_t, staleness) && strcmp(value, "off") == 0) {
        self->options.staleness = PS_KEPT_NEVER;
        return PSD_OK;
    }
    return ps_opt_take(option, value, key, PSD_INVALID, &self->options, err);
}
