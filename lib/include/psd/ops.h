/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work on tables where they lie - sums, changes, and what has changed
 *
 * What     The server reads or changes the rows that a selection names, without
 *          sending them. All of these wait; they are ordered behind the pushes
 *          that this client made before, and wait at a clock as a push or pull
 *          does.
 * Shape    select NULL: all rows and columns; it is never of sparse rows to be
 *          pushed. Of a table with hash keys, all rows (or a range) are those
 *          present; a row that is named and not present counts with its first
 *          values. call NULL: defaults.
 * Errors   of all: those of psd_pull, or of psd_push for what changes rows;
 *          PSD_INVALID for a selection that cannot be.
 */
#ifndef PSD_OPS_H
#define PSD_OPS_H

#include "psd/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The sum of the values, in double precision; the same table gives the same
 * bits. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_sum(psd_table_t *table, const psd_select_t *select,
                                                     const psd_call_t *call, double *ret_sum,
                                                     psd_error_t *err);
/* The square root of the sum of the values' squares. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_norm(psd_table_t *table,
                                                      const psd_select_t *select,
                                                      const psd_call_t *call, double *ret_norm,
                                                      psd_error_t *err);
/* How many values are not 0. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_nonzeros(psd_table_t *table,
                                                          const psd_select_t *select,
                                                          const psd_call_t *call, uint64_t *ret_n,
                                                          psd_error_t *err);
/* The sum of products with the same places of another table, which must be of
 * the same type, rows, columns and partitions, and lie beside it. Errors:
 * PSD_INVALID, PSD_SHAPE, PSD_TYPE, naming what differs. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_dot(psd_table_t *table, psd_table_t *other,
                                                     const psd_select_t *select,
                                                     const psd_call_t *call, double *ret_dot,
                                                     psd_error_t *err);
/* The n largest values, from the largest down (equal ones: lower row, then
 * lower column first), each with its row and column: psd_result_row gives one
 * value a row, so a row may come several times. Fewer when there are fewer.
 * Errors: PSD_INVALID n is not 1 .. 2^20. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_top(psd_table_t *table, const psd_select_t *select,
                                                     size_t n, const psd_call_t *call,
                                                     psd_result_t **ret_result, psd_error_t *err);

/* Every value times factor; every value becomes `value`; every value plus
 * factor times that of another table, as for psd_table_dot. The updater's
 * states stay as they are. Integer tables take whole numbers of their range,
 * sparse rows are filled with 0 only. Errors: PSD_NOT_FINITE; PSD_INVALID the
 * number is none of the table's. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_scale(psd_table_t *table,
                                                       const psd_select_t *select, double factor,
                                                       const psd_call_t *call, psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_fill(psd_table_t *table,
                                                      const psd_select_t *select, double value,
                                                      const psd_call_t *call, psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_axpy(psd_table_t *table, double factor,
                                                      psd_table_t *other,
                                                      const psd_select_t *select,
                                                      const psd_call_t *call, psd_error_t *err);

/* How far somebody has seen the changes of one table: a version for each of its
 * partitions. New: nothing was seen. NULL when there is no memory. */
typedef struct psd_seen psd_seen_t;
PSD_EXPORT psd_seen_t *psd_seen_new(void);
PSD_EXPORT void psd_seen_destroy(psd_seen_t **self_p);
/*
 * Pulls the rows that were changed since, and remembers in `seen` how far that
 * was: the first time all rows of the selection, then those that anybody has
 * changed. A row that is changed meanwhile may come twice, never not at all.
 * Always use one `seen` with one table and one selection.
 *
 * sparse      in   true: each row as its entries that are not zero
 * ret_result  out  rows in ascending order of key
 * Errors: PSD_UNSUPPORTED the table keeps no versions, or its rows are split by
 * columns; PSD_INVALID seen is another table's. It is then as it was.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t
psd_pull_changed(psd_table_t *table, const psd_select_t *select, psd_seen_t *seen, bool sparse,
                 const psd_call_t *call, psd_result_t **ret_result, psd_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
