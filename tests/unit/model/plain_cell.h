/* SPDX-License-Identifier: Apache-2.0 */
/* plain_cell - one cell of a table as a test sees it: a value, its state, and
 * the updaters written out for one value at a time */
#ifndef PS_TESTS_PLAIN_CELL_H
#define PS_TESTS_PLAIN_CELL_H

#include "unit/model/plain_updater.h"
#include "unit/model/store_kit.h"

typedef struct cell {
    uint8_t value[8]; /* of the table's type */
    double state[PLAIN_STATES];
} cell_t;

/* A spec of the rule, with penalties and without. */
static inline ps_updater_spec_t plain_any_updater(ps_updater_kind_t kind, ps_rng_t *rng)
{
    return (ps_updater_spec_t){
        .kind = kind,
        .alpha = 0.3,
        .beta = ps_rng_below(rng, 2) == 0 ? 0 : 1,
        .l1 = ps_rng_below(rng, 2) == 0 ? 0 : 0.2,
        .l2 = ps_rng_below(rng, 2) == 0 ? 0 : 0.1,
        .momentum = 0.5,
        .beta1 = 0.7,
        .beta2 = 0.9,
        .rho = 0.6,
        .eps = 1e-3,
        .decay = 0.1,
        .lambda = 0.2,
        .workers = 1,
    };
}

static inline uint32_t plain_n_states(const ps_table_spec_t *spec)
{
    PSD_AUTO(ps_updater_destroy) ps_updater_t *updater = NULL;

    cr_assert_eq(ps_updater_new(&spec->updater, spec->type, &updater, NULL), PSD_OK);
    return ps_updater_n_states(updater);
}

static inline void plain_apply_f32(const ps_updater_spec_t *u, cell_t *cell, const uint8_t *delta)
{
    float w = ps_load_f32(cell->value);
    float state[PLAIN_STATES];
    float *s[PLAIN_STATES];

    for (size_t k = 0; k < PLAIN_STATES; k++) {
        state[k] = (float)cell->state[k];
        s[k] = &state[k];
    }
    plain_f32(u, &w, s, ps_load_f32(delta));
    for (size_t k = 0; k < PLAIN_STATES; k++) {
        cell->state[k] = (double)state[k];
    }
    ps_store_f32(cell->value, w);
}

static inline void plain_apply_f64(const ps_updater_spec_t *u, cell_t *cell, const uint8_t *delta)
{
    double w = ps_load_f64(cell->value);
    double *s[PLAIN_STATES];

    for (size_t k = 0; k < PLAIN_STATES; k++) {
        s[k] = &cell->state[k];
    }
    plain_f64(u, &w, s, ps_load_f64(delta));
    ps_store_f64(cell->value, w);
}

/* Integers: both as i64; a sum wraps around in the type when it is stored. */
static inline int64_t plain_integer(ps_updater_kind_t kind, int64_t w, int64_t d)
{
    if (kind == PS_UPDATER_ADD) {
        return (int64_t)((uint64_t)w + (uint64_t)d);
    }
    if (kind == PS_UPDATER_ASSIGN) {
        return d;
    }
    return kind == PS_UPDATER_MIN ? (d < w ? d : w) : (d > w ? d : w);
}

static inline void plain_apply(const ps_table_spec_t *spec, cell_t *cell, const uint8_t *delta)
{
    ps_updater_kind_t kind = spec->updater.kind;

    if (spec->type == PS_TYPE_F32) {
        plain_apply_f32(&spec->updater, cell, delta);
    } else if (spec->type == PS_TYPE_F64) {
        plain_apply_f64(&spec->updater, cell, delta);
    } else if (spec->type == PS_TYPE_I64) {
        ps_store_u64(cell->value, (uint64_t)plain_integer(kind, (int64_t)ps_load_u64(cell->value),
                                                          (int64_t)ps_load_u64(delta)));
    } else {
        int32_t w = (int32_t)ps_load_u32(cell->value);
        int32_t d = (int32_t)ps_load_u32(delta);

        ps_store_u32(cell->value, (uint32_t)plain_integer(kind, w, d));
    }
}
#endif
