/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/train/setup: before the first block, and after the last
 *
 * It is       Options, the agreement of the workers, tables and their first
 *             values, dumps.
 * It uses     courier, state, lib/client for jobs and tables, lib/data for
 *             files, lib/protocol/facts, lib/wire, lib/base.
 * It ignores  Loaders and trainers.
 * Start at    options.c, config.c.
 */
#ifndef PS_TRAIN_SETUP_H
#define PS_TRAIN_SETUP_H

#include "train/state/train_state.h"

/* ---- options.c ---- */

void ps_train_options_init(ps_train_options_t *self);
void ps_train_options_done(ps_train_options_t *self);
/* Takes from the environment what the program has not set ($PSD_TRAINERS, _PIPELINE, _LOCK,
 * _LOCKS). Errors: PSD_INVALID naming the variable. */
PSD_MUST_CHECK psd_status_t ps_train_options_environment(ps_train_options_t *self,
                                                         psd_error_t *err);

/* ---- outer.c ---- */

/* Errors of these: PSD_INVALID naming what does not go with outer-every. */
PSD_MUST_CHECK psd_status_t ps_outer_check_options(const ps_train_options_t *self,
                                                   psd_error_t *err);
/* The workers have agreed on max_delay. */
PSD_MUST_CHECK psd_status_t ps_outer_check_delay(const psd_train_t *self, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_outer_check_table(const psd_train_t *self, const psd_table_t *table,
                                                 psd_error_t *err);

/* ---- agree.c ---- */

/* Returns the number of workers of the job, and the greatest max_delay of all.
 * Errors: those of psd_join; PSD_DEADLINE naming the workers that are
 * missing. */
PSD_MUST_CHECK psd_status_t ps_train_agree(psd_train_t *self, uint32_t *ret_n_workers,
                                           int32_t *ret_max_delay, psd_error_t *err);

/* ---- first.c ---- */

/* The table gets first values as they are; by_one: worker 0 alone adds. Errors: PSD_INVALID naming
 * table, updater or combine, and what is allowed. */
PSD_MUST_CHECK psd_status_t ps_first_check(const psd_train_t *self, uint32_t table, bool by_one,
                                           psd_error_t *err);
/* Before first values are added to a table; *ret_adds: they have not come in an
 * earlier life. Errors: PSD_FAILED it is not known whether they have; those of
 * psd_connect, psd_table_ensure, psd_pull, psd_push. */
PSD_MUST_CHECK psd_status_t ps_first_begin(psd_train_t *self, uint32_t table, bool *ret_adds,
                                           psd_error_t *err);
/* All that were added are acknowledged. Errors: those of psd_push. */
PSD_MUST_CHECK psd_status_t ps_first_end(psd_train_t *self, psd_error_t *err);
void ps_first_close(psd_train_t *self);

/* ---- config.c ---- */

/* Errors: those of psd_connect. */
PSD_MUST_CHECK psd_status_t ps_train_connect(const psd_train_t *self, psd_client_t **ret_client,
                                             psd_error_t *err);
#endif
