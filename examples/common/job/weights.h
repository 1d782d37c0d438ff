/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ex_weights - a table with a row for each key of the data
 *
 * What     Rows are keys. A small model is one partition, which stays in the
 *          cache of the core that serves it, and a minibatch is one request.
 *          When keys are far apart it is a table of hash keys.
 */
#ifndef EX_WEIGHTS_H
#define EX_WEIGHTS_H

#include "../samples/model.h"
#include "job.h"
#include "psd.h"

/* The number of rows for keys up to the greatest, which need not be exact
 * beyond 2^53; 0: hash keys. */
uint64_t ex_weights_rows(double greatest);
/*
 * Opens a table with a row for each key, or creates it when it does not exist.
 * Training continues with an existing table: it may have more rows, or hash
 * keys.
 *
 * pairs   in  as in ex_job_ensure, at most 8 of them; an existing table must
 *             have the same type, columns and updater
 * n_rows  in  as ex_weights_rows returns it
 *
 * Errors: those of psd_table_ensure; PSD_SHAPE an existing table has fewer
 * rows.
 */
PSD_MUST_CHECK psd_status_t ex_weights_ensure(ex_job_t *self, const char *name,
                                              const char *const *pairs, uint64_t n_rows,
                                              psd_table_t **ret_table, psd_error_t *err);
/* Every nonzero weight of a table of f32 with 1 column. */
PSD_MUST_CHECK psd_status_t ex_weights_pull(ex_job_t *self, psd_table_t *table,
                                            ex_model_t *ret_model, psd_error_t *err);
#endif
