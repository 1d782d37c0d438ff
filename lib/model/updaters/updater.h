/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/model/updaters: how a delta changes values
 *
 * It is       The rules of updaters.def and of plug-ins, first values, the loops
 *             over values for several instruction sets, the checks of a spec.
 * It uses     tables, lib/base.
 * It ignores  Where values lie and which rows there are: it gets pointers and
 *             counts.
 * Start at    updater.h, then loops.h and loops_body.c; loops_float.h for the rules
 *             of sgd to nesterov; init.h for first values.
 */
/*
 * ps_updater - the server-side rules that merge a delta into values
 *
 * What     model/tables/updaters.def defines each rule; a plug-in's functions
 *          define its rule (psd_updater.h). b of dcasgd is the backup of the
 *          worker that pushes: the value after its last push (before that, the
 *          first value). A client that is not a worker has no backup:
 *          w -= alpha g.
 *          prox(x, eta) = soft(x, l1 eta) / (1 + l2 eta)
 *          All arithmetic is done in the table's type, with the same bits on
 *          every instruction set; adam's corrections are computed in double and
 *          rounded. If beta + sqrt(s) or ftrl's divisor is 0, no gradient has
 *          been seen: eta is then 0, and ftrl's w is 0.
 * Zeros    A delta of zero changes nothing if value and state are zero, so a
 *          sparse row need not store such columns: adam counts t for each
 *          value, from its first delta that is not zero on (to 2^24 - 1).
 *          Otherwise a delta of zero is a normal delta: it makes momentum,
 *          nesterov, adam and rmsprop decay. A column that a push does not name does not
 *          change, nor does its state.
 * Shape    state is n_states arrays of the row's width, of the table's type,
 *          one after the other
 * Owner    The caller.
 * Threads  Any number of threads may apply with one object; it is read-only.
 * Source   McMahan et al., KDD 2013, algorithm 1 (ftrl); Duchi et al., JMLR
 *          2011 (adagrad); Kingma and Ba, ICLR 2015 (adam); Loshchilov and
 *          Hutter, ICLR 2019 (adamw); Zheng et al., ICML 2017, algorithm 2
 *          (dcasgd); Sutskever et al., ICML 2013, in the form of PyTorch's SGD
 *          with nesterov=True (nesterov); elastic-net prox: Parikh and Boyd 2014, 6.5.3.
 */
#ifndef PS_MODEL_UPDATER_H
#define PS_MODEL_UPDATER_H

#include "model/tables/table.h"

#define PS_UPDATER_STATES_MAX 256       /* state arrays in addition to the values */
#define PS_UPDATER_NO_WORKER UINT32_MAX /* deltas of a client in no job */

typedef struct ps_updater ps_updater_t;

/* Prepares the rule. The spec has passed ps_table_spec_check, and
 * ps_plugins_bind if it is a plug-in; it is copied. Errors: PSD_NOMEM;
 * PSD_UNSUPPORTED a plug-in that is not bound; PSD_FAILED one that fails. */
PSD_MUST_CHECK psd_status_t ps_updater_new(const ps_updater_spec_t *spec, ps_type_t type,
                                           ps_updater_t **ret_updater, psd_error_t *err);
void ps_updater_destroy(ps_updater_t **self_p);
/* Arrays of state in addition to the values: 0 .. PS_UPDATER_STATES_MAX. */
uint32_t ps_updater_n_states(const ps_updater_t *self);
/* May this worker push? Errors: PSD_RANGE dcasgd has no backup for it. */
PSD_MUST_CHECK psd_status_t ps_updater_check_worker(const ps_updater_t *self, uint32_t worker,
                                                    psd_error_t *err);

/*
 * Initializes the state of n neighbouring values that just got first values
 * other than zero; state must be all zeros. Arguments as ps_updater_apply.
 */
void ps_updater_begin(const ps_updater_t *self, const uint8_t *values, uint8_t *state,
                      size_t state_stride, size_t n);
/*
 * Applies n deltas to n neighbouring values.
 *
 * worker         whose deltas they are: its rank, or PS_UPDATER_NO_WORKER
 * values, state  row memory, aligned to the type; state[k] begins at
 *                state + k * state_stride values
 * deltas         wire bytes, any alignment
 */
void ps_updater_apply(const ps_updater_t *self, uint32_t worker, uint8_t *values, uint8_t *state,
                      size_t state_stride, const uint8_t *deltas, size_t n);

/* True for a rule that reads every delta once and leaves out deltas that are
 * not finite, so another process may write them meanwhile. */
bool ps_updater_is_guarded(const ps_updater_t *self);
/* Applies deltas to n rows of `width` values each; a guarded rule has no state.
 * The deltas of a row follow those of the previous row. */
void ps_updater_apply_guarded(const ps_updater_t *self, uint8_t *const *rows, size_t n,
                              size_t width, const uint8_t *deltas);
#endif
