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
 * Owner    The caller.
 * Threads  Any number may apply with one object; it is never written.
 * Source   McMahan et al., KDD 2013, algorithm 1 (ftrl); Duchi et al., JMLR
 *          2011 (adagrad); elastic-net prox: Parikh and Boyd 2014, 6.5.3.
 */
#ifndef PS_MODEL_UPDATER_H
#define PS_MODEL_UPDATER_H

#include "model/table.h"

#define PS_UPDATER_STATES_MAX 256       /* state arrays beside the values */
#define PS_UPDATER_NO_WORKER UINT32_MAX /* deltas of a client in no job */

typedef struct ps_updater ps_updater_t;

/* Makes ready what the rule needs. The spec has passed ps_table_spec_check and
 * is copied. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_updater_new(const ps_updater_spec_t *spec,
                                           ps_type_t type,
                                           ps_updater_t **ret_updater,
                                           psd_error_t *err);
void ps_updater_destroy(ps_updater_t **self_p);
/* Arrays of state beside the values: 0 .. PS_UPDATER_STATES_MAX. */
uint32_t ps_updater_n_states(const ps_updater_t *self);

/*
 * Makes the state of n neighbouring values that were just given first values
 * other than zero; state is all zeros before. Arguments as ps_updater_apply.
 */
void ps_updater_begin(const ps_updater_t *self,
                      const uint8_t *values,
                      uint8_t *state,
                      size_t state_stride,
                      size_t n);
/*
 * Applies n deltas to n neighbouring values.
 *
 * worker         whose deltas they are: its rank, or PS_UPDATER_NO_WORKER
 * values, state  row memory, aligned to the type; state[k] begins at
 *                state + k * state_stride values
 * deltas         wire bytes, any alignment
 */
void ps_updater_apply(const ps_updater_t *self,
                      uint32_t worker,
                      uint8_t *values,
                      uint8_t *state,
                      size_t state_stride,
                      const uint8_t *deltas,
                      size_t n);
#endif
