/* SPDX-License-Identifier: Apache-2.0 */
/* plain_cell - one cell of a table as a test sees it: a value, its state, and
 * the updaters written out for one value at a time */
#ifndef PS_TESTS_PLAIN_CELL_H
#define PS_TESTS_PLAIN_CELL_H

#include <math.h>

#include "unit/model/store_kit.h"

typedef struct cell {
    uint8_t value[8]; /* of the table's type */
    double state[2];
} cell_t;

/* The updaters, one value at a time, as the header writes them. REAL
 * arithmetic in the type: `narrow` rounds to it. */
static inline double
narrow(ps_type_t type, double x)
{
    return type == PS_TYPE_F32 ? (double)(float)x : x;
}

static inline double
plain_prox(ps_type_t type, double x, double eta, const ps_updater_spec_t *u)
{
    double cut = narrow(type, narrow(type, u->l1) * eta);
    double rest = narrow(type, fabs(x) - cut);
    double soft = rest < 0 ? 0 : copysign(rest, x);

    return narrow(type, soft / narrow(type, 1 + narrow(type, u->l2) * eta));
}

static inline double
plain_ftrl(ps_type_t type,
           cell_t *cell,
           double w,
           double g,
           const ps_updater_spec_t *u)
{
    double alpha = narrow(type, u->alpha);
    double l1 = narrow(type, u->l1);
    double *z = &cell->state[0];
    double *n = &cell->state[1];
    double sum = narrow(type, *n + narrow(type, g * g));
    double root = narrow(type, sqrt(sum));
    double sigma =
        narrow(type, narrow(type, root - narrow(type, sqrt(*n))) / alpha);
    double weight = narrow(
        type, narrow(type, narrow(type, narrow(type, u->beta) + root) / alpha) +
                  narrow(type, u->l2));

    *z = narrow(type, *z + narrow(type, g - narrow(type, sigma * w)));
    *n = sum;
    if (fabs(*z) <= l1 || weight == 0) {
        return 0;
    }
    return narrow(type, -narrow(type, *z - copysign(l1, *z)) / weight);
}

static inline double
plain_step(const ps_updater_spec_t *u,
           ps_type_t type,
           cell_t *cell,
           double w,
           double g)
{
    double eta = narrow(type, u->alpha);

    if (u->kind == PS_UPDATER_FTRL) {
        return plain_ftrl(type, cell, w, g, u);
    }
    if (u->kind == PS_UPDATER_ADAGRAD) {
        double *s = &cell->state[0];
        double root = 0;

        *s = narrow(type, *s + narrow(type, g * g));
        root = narrow(type, narrow(type, u->beta) + narrow(type, sqrt(*s)));
        eta = root > 0 ? narrow(type, eta / root) : 0;
    }
    return plain_prox(type, narrow(type, w - narrow(type, eta * g)), eta, u);
}

static inline void
plain_apply(const ps_table_spec_t *spec, cell_t *cell, const uint8_t *delta)
{
    const ps_updater_spec_t *u = &spec->updater;
    double w = kit_read(spec->type, cell->value);

    if (u->kind == PS_UPDATER_ASSIGN) {
        memcpy(cell->value, delta, ps_type_size(spec->type));
    } else if (spec->type == PS_TYPE_I32) {
        ps_store_u32(cell->value,
                     ps_load_u32(cell->value) + ps_load_u32(delta));
    } else if (spec->type == PS_TYPE_I64) {
        ps_store_u64(cell->value,
                     ps_load_u64(cell->value) + ps_load_u64(delta));
    } else if (u->kind == PS_UPDATER_ADD) {
        kit_write(spec->type, cell->value, w + kit_read(spec->type, delta));
    } else {
        kit_write(
            spec->type, cell->value,
            plain_step(u, spec->type, cell, w, kit_read(spec->type, delta)));
    }
}
#endif
