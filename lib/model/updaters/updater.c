/* SPDX-License-Identifier: Apache-2.0 */
/* A prepared rule: which loop, with which numbers, of which instruction set.
 */
#include "model/updaters/updater.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "model/updaters/loops.h"
#include "model/updaters/updater_rule.h"
#include "psd_updater.h"

#define ALIGNED_BYTES 4096 /* of deltas that are copied for a plug-in */

struct ps_updater {
    ps_updater_kind_t kind;
    ps_type_t type;
    uint32_t n_states;
    ps_loop_t *loop;            /* of the rule; NULL for a plug-in */
    ps_loop_t *plain_sgd;       /* for clients without a backup; DCASGD only */
    ps_guarded_loop_t *guarded; /* NULL: there is none */
    const void *numbers;        /* the one of the two for the type */
    ps_numbers_f32_t f32;
    ps_numbers_f64_t f64;
    ps_bias_t *bias;                /* owned; ADAM and ADAMW only */
    const psd_updater_t *functions; /* PLUGIN only */
    void *plugin;                   /* the plug-in's own object; owned */
};

/* `keep` is the factor that a step of adamw leaves of the value. */
static void fill_numbers(ps_updater_t *self, const ps_updater_spec_t *spec, double keep)
{
#define SETTING(name, meaning)          \
    self->f32.name = (float)spec->name; \
    self->f64.name = spec->name;
#include "model/tables/updaters.def"
    self->f32.keep = (float)keep;
    self->f64.keep = keep;
}

static void fill_powers(ps_powers_t *powers, double base)
{
    for (size_t k = 0; k < PS_POWER_TABLES; k++) {
        double power = 1;

        for (size_t i = 0; i < PS_POWER_SIZE; i++) {
            powers->of[k][i] = power;
            power *= base;
        }
        base = power; /* base to the PS_POWER_SIZE */
    }
}

static psd_status_t make_bias(ps_updater_t *self, const ps_updater_spec_t *spec, psd_error_t *err)
{
    bool narrow = self->type == PS_TYPE_F32;
    double beta1 = narrow ? (double)self->f32.beta1 : spec->beta1;
    double beta2 = narrow ? (double)self->f32.beta2 : spec->beta2;

    self->bias = ps_alloc(1, sizeof *self->bias);
    if (self->bias == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an updater");
    }
    self->bias->alpha = spec->alpha;
    fill_powers(&self->bias->beta1, beta1);
    fill_powers(&self->bias->beta2, beta2);
    self->f32.bias = self->bias;
    self->f64.bias = self->bias;
    return PSD_OK;
}

static psd_status_t make_rule(ps_updater_t *self, const ps_updater_spec_t *spec, psd_error_t *err)
{
    const ps_loops_t *loops = ps_loops_best();
    double decay = spec->kind == PS_UPDATER_ADAMW ? spec->decay : 0;
    double keep = 1 - spec->alpha * decay;

    assert(spec->kind >= PS_UPDATER_ADD && spec->kind < PS_UPDATER_KINDS);
    self->loop = loops->of[spec->kind][self->type];
    self->plain_sgd = loops->of[PS_UPDATER_SGD][self->type];
    assert(self->loop != NULL);
    if (spec->kind != PS_UPDATER_SGD || (spec->l1 == 0 && spec->l2 == 0)) {
        self->guarded = loops->guarded[spec->kind][self->type];
    }
    fill_numbers(self, spec, keep);
    self->numbers = self->type == PS_TYPE_F32 ? (const void *)&self->f32 : (const void *)&self->f64;
    if (spec->kind == PS_UPDATER_ADAM || spec->kind == PS_UPDATER_ADAMW) {
        return make_bias(self, spec, err);
    }
    return PSD_OK;
}

static psd_status_t make_plugin(ps_updater_t *self, const ps_updater_spec_t *spec, psd_error_t *err)
{
    char reason[128] = "";

    if (spec->functions == NULL) {
        return psd_error_set(err, PSD_UNSUPPORTED, "plug-in %s is not loaded here", spec->plugin);
    }
    if (spec->functions->open((uint32_t)self->type, spec->parameters, &self->plugin, reason,
                              sizeof reason) != 0) {
        reason[sizeof reason - 1] = '\0';
        return psd_error_set(err, PSD_FAILED, "plug-in %s failed: %s", spec->plugin, reason);
    }
    self->functions = spec->functions; /* from here on there is a plug-in to close */
    self->n_states = self->functions->n_states(self->plugin);
    if (self->n_states > PS_UPDATER_STATES_MAX) {
        return psd_error_set(err, PSD_FAILED, "plug-in %s asks for too many state arrays",
                             spec->plugin);
    }
    return PSD_OK;
}

psd_status_t ps_updater_new(const ps_updater_spec_t *spec, ps_type_t type,
                            ps_updater_t **ret_updater, psd_error_t *err)
{
    PSD_AUTO(ps_updater_destroy) ps_updater_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an updater");
    }
    self->kind = spec->kind;
    self->type = type;
    self->n_states = spec->kind == PS_UPDATER_DCASGD ? (uint32_t)spec->workers
                                                     : ps_updater_rule_of(spec->kind)->n_states;
    rc =
        spec->kind == PS_UPDATER_PLUGIN ? make_plugin(self, spec, err) : make_rule(self, spec, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_updater = self;
    self = NULL;
    return PSD_OK;
}

void ps_updater_destroy(ps_updater_t **self_p)
{
    ps_updater_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    if (self->functions != NULL) {
        self->functions->close(self->plugin);
    }
    ps_free(self->bias);
    ps_free(self);
    *self_p = NULL;
}

uint32_t ps_updater_n_states(const ps_updater_t *self)
{
    return self->n_states;
}

psd_status_t ps_updater_check_worker(const ps_updater_t *self, uint32_t worker, psd_error_t *err)
{
    if (self->kind != PS_UPDATER_DCASGD || worker < self->n_states ||
        worker == PS_UPDATER_NO_WORKER) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_RANGE,
                         "updater dcasgd keeps a backup for workers 0..%" PRIu32
                         " (workers=%" PRIu32 "), not for worker %" PRIu32,
                         self->n_states - 1, self->n_states, worker);
}

void ps_updater_begin(const ps_updater_t *self, const uint8_t *values, uint8_t *state,
                      size_t state_stride, size_t n)
{
    size_t size = ps_type_size(self->type);

    if (self->functions != NULL && self->functions->begin != NULL) {
        self->functions->begin(self->plugin, values, state, state_stride, n);
    }
    if (self->kind != PS_UPDATER_DCASGD) {
        return;
    }
    for (uint32_t k = 0; k < self->n_states; k++) {
        memcpy(state + k * state_stride * size, values, n * size);
    }
}

static void apply_plugin(const ps_updater_t *self, uint32_t worker, uint8_t *values, uint8_t *state,
                         size_t state_stride, const uint8_t *deltas, size_t n)
{
    size_t size = ps_type_size(self->type);
    uint64_t aligned[ALIGNED_BYTES / sizeof(uint64_t)];

    if ((uintptr_t)deltas % size == 0) {
        self->functions->apply(self->plugin, worker, values, state, state_stride, deltas, n);
        return;
    }
    for (size_t i = 0; i < n;) {
        size_t part = n - i < sizeof aligned / size ? n - i : sizeof aligned / size;

        memcpy(aligned, deltas + i * size, part * size);
        self->functions->apply(self->plugin, worker, values + i * size,
                               state == NULL ? NULL : state + i * size, state_stride, aligned,
                               part);
        i += part;
    }
}

void ps_updater_apply(const ps_updater_t *self, uint32_t worker, uint8_t *values, uint8_t *state,
                      size_t state_stride, const uint8_t *deltas, size_t n)
{
    ps_loop_t *loop = self->loop;

    if (loop == NULL) {
        if (n > 0) {
            apply_plugin(self, worker, values, state, state_stride, deltas, n);
        }
        return;
    }
    if (self->kind == PS_UPDATER_DCASGD) {
        if (worker < self->n_states) {
            state += worker * state_stride * ps_type_size(self->type);
        } else {
            loop = self->plain_sgd;
        }
    }
    loop(self->numbers, values, state, state_stride, deltas, n);
}

bool ps_updater_is_guarded(const ps_updater_t *self)
{
    return self->guarded != NULL;
}

void ps_updater_apply_guarded(const ps_updater_t *self, uint8_t *const *rows, size_t n,
                              size_t width, const uint8_t *deltas)
{
    self->guarded(self->numbers, rows, n, width, deltas);
}
