/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_updater - the server-side rules that merge a delta into values
 *
 * What     add      w += d                 (integers wrap modulo 2^32 / 2^64)
 *          assign   w = d
 *          sgd      w = prox(w - eta g, eta), eta = alpha
 *          adagrad  s += g^2; eta = alpha / (beta + sqrt(s));
 *                   w = prox(w - eta g, eta)
 *          ftrl     n' = n + g^2; sigma = (sqrt(n') - sqrt(n)) / alpha;
 *                   z += g - sigma w; n = n';
 *                   w = 0 if |z| <= l1, else
 *                   -(z - sign(z) l1) / ((beta + sqrt(n)) / alpha + l2)
 *          prox(x, eta) = soft(x, l1 eta) / (1 + l2 eta)
 *          All arithmetic is done in the table's type. Where beta + sqrt(s) or
 *          ftrl's divisor is 0, no gradient has been seen: eta is then 0, and
 *          ftrl's w is 0.
 * Shape    state is n_state arrays of the row's width, of the table's type,
 *          one behind the other: adagrad {s}; ftrl {z, n}; else none
 * Source   McMahan et al., KDD 2013, algorithm 1 (ftrl); Duchi et al., JMLR
 *          2011 (adagrad); elastic-net prox: Parikh and Boyd 2014, 6.5.3.
 */
#ifndef PS_MODEL_UPDATER_H
#define PS_MODEL_UPDATER_H

#include "model/table.h"

/* Arrays of state beside the values: 0, 1 or 2. */
uint32_t ps_updater_state_count(ps_updater_kind_t kind);

/*
 * Applies n deltas to n neighbouring values.
 *
 * values, state  row memory, aligned to the type; state[k] begins at
 *                state + k * state_stride values
 * deltas         wire bytes, any alignment
 */
void ps_updater_apply(const ps_updater_spec_t *spec,
                      ps_type_t type,
                      uint8_t *values,
                      uint8_t *state,
                      size_t state_stride,
                      const uint8_t *deltas,
                      size_t n);
#endif
