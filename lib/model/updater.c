/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that merge deltas into values: one plain loop per rule and type.
 * This file is compiled for speed (see meson.build of this room). */
#include "model/updater.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"

struct ps_updater {
    ps_updater_spec_t spec;
    ps_type_t type;
    uint32_t n_states;
};

#define REAL float
#define NAME(rule) rule##_f32
#define LOAD(at) ps_load_f32(at)
#define SQRT(x) sqrtf(x)
#define FABS(x) fabsf(x)
#define COPYSIGN(x, y) copysignf(x, y)
#include "model/updater_float.h"
#undef REAL
#undef NAME
#undef LOAD
#undef SQRT
#undef FABS
#undef COPYSIGN

#define REAL double
#define NAME(rule) rule##_f64
#define LOAD(at) ps_load_f64(at)
#define SQRT(x) sqrt(x)
#define FABS(x) fabs(x)
#define COPYSIGN(x, y) copysign(x, y)
#include "model/updater_float.h"

/* Integers are added as unsigned ones: signed overflow is undefined in C, and
 * the bits are the same. */
static void
add_i32(uint32_t *restrict w, const uint8_t *restrict deltas, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        w[i] += ps_load_u32(deltas + i * sizeof *w);
    }
}

static void
add_i64(uint64_t *restrict w, const uint8_t *restrict deltas, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        w[i] += ps_load_u64(deltas + i * sizeof *w);
    }
}

static void
add(ps_type_t type, void *values, const uint8_t *deltas, size_t n)
{
    switch (type) {
    case PS_TYPE_I32:
        add_i32(values, deltas, n);
        break;
    case PS_TYPE_I64:
        add_i64(values, deltas, n);
        break;
    case PS_TYPE_F32:
        add_f32(values, deltas, n);
        break;
    case PS_TYPE_F64:
    default:
        add_f64(values, deltas, n);
        break;
    }
}

static void
apply_f32(const ps_updater_spec_t *spec,
          float *values,
          float *state,
          size_t stride,
          const uint8_t *deltas,
          size_t n)
{
    if (spec->kind == PS_UPDATER_SGD) {
        sgd_f32(spec, values, deltas, n);
    } else if (spec->kind == PS_UPDATER_ADAGRAD) {
        adagrad_f32(spec, values, state, deltas, n);
    } else {
        ftrl_f32(spec, values, state, state + stride, deltas, n);
    }
}

static void
apply_f64(const ps_updater_spec_t *spec,
          double *values,
          double *state,
          size_t stride,
          const uint8_t *deltas,
          size_t n)
{
    if (spec->kind == PS_UPDATER_SGD) {
        sgd_f64(spec, values, deltas, n);
    } else if (spec->kind == PS_UPDATER_ADAGRAD) {
        adagrad_f64(spec, values, state, deltas, n);
    } else {
        ftrl_f64(spec, values, state, state + stride, deltas, n);
    }
}

static uint32_t
state_count(ps_updater_kind_t kind)
{
    switch (kind) {
    case PS_UPDATER_ADAGRAD:
        return 1;
    case PS_UPDATER_FTRL:
        return 2;
    case PS_UPDATER_ADD:
    case PS_UPDATER_ASSIGN:
    case PS_UPDATER_SGD:
    default:
        return 0;
    }
}

psd_status_t
ps_updater_new(const ps_updater_spec_t *spec,
               ps_type_t type,
               ps_updater_t **ret_updater,
               psd_error_t *err)
{
    ps_updater_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an updater");
    }
    *self = (ps_updater_t){
        .spec = *spec, .type = type, .n_states = state_count(spec->kind)};
    *ret_updater = self;
    return PSD_OK;
}

void
ps_updater_destroy(ps_updater_t **self_p)
{
    ps_free(*self_p);
    *self_p = NULL;
}

uint32_t
ps_updater_n_states(const ps_updater_t *self)
{
    return self->n_states;
}

void
ps_updater_begin(const ps_updater_t *self,
                 const uint8_t *values,
                 uint8_t *state,
                 size_t state_stride,
                 size_t n)
{
    (void)self; /* the state of every rule begins at zero */
    (void)values;
    (void)state;
    (void)state_stride;
    (void)n;
}

void
ps_updater_apply(const ps_updater_t *self,
                 uint32_t worker,
                 uint8_t *values,
                 uint8_t *state,
                 size_t state_stride,
                 const uint8_t *deltas,
                 size_t n)
{
    const ps_updater_spec_t *spec = &self->spec;
    void *w = values; /* by way of void: rows are aligned to the type */
    void *s = state;

    (void)worker; /* no rule tells workers apart */
    if (spec->kind == PS_UPDATER_ADD) {
        add(self->type, w, deltas, n);
    } else if (spec->kind == PS_UPDATER_ASSIGN) {
        memcpy(w, deltas, n * ps_type_size(self->type));
    } else if (self->type == PS_TYPE_F32) {
        apply_f32(spec, w, s, state_stride, deltas, n);
    } else {
        assert(self->type == PS_TYPE_F64);
        apply_f64(spec, w, s, state_stride, deltas, n);
    }
}
