/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operations on the server - sums, changes of whole tables, changed rows
 *
 * What     The server reads or changes the selected rows in place; they are not
 *          sent. All of these calls wait. They take effect after the pushes
 *          that this client made before, and wait at a clock as a push or pull
 *          does.
 * Shape    select NULL: all rows and columns; a selection of sparse rows
 *          (psd_select_sparse) is not allowed. Of a table with hash keys, all
 *          rows (or a range) are those present; a row that is named and not
 *          present counts with its initial values. call NULL: defaults.
 * Errors   of all: those of psd_pull, or of psd_push for calls that change
 *          rows; PSD_INVALID for an impossible selection.
 */
#ifndef PSD_OPS_H
#define PSD_OPS_H

#include "psd/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The sum of the values, in double precision; equal tables give the same
 * bits. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_sum(psd_table_t *table, const psd_select_t *select,
                                                     const psd_call_t *call, double *ret_sum,
                                                     psd_error_t *err);
/* The square root of the sum of the values' squares. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_norm(psd_table_t *table,
                                                      const psd_select_t *select,
                                                      const psd_call_t *call, double *ret_norm,
                                                      psd_error_t *err);
/* The number of values that are not 0. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_nonzeros(psd_table_t *table,
                                                          const psd_select_t *select,
                                                          const psd_call_t *call, uint64_t *ret_n,
                                                          psd_error_t *err);
/* The sum of products with the values at the same places of another table. That
 * table must have the same type, rows, columns and partitions, on the same
 * nodes. Errors: PSD_INVALID, PSD_SHAPE, PSD_TYPE, naming what differs. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_dot(psd_table_t *table, psd_table_t *other,
                                                     const psd_select_t *select,
                                                     const psd_call_t *call, double *ret_dot,
                                                     psd_error_t *err);
/* The n largest values, from the largest down (equal ones: lower row, then
 * lower column first), each with its row and column. psd_result_row returns one
 * value for each entry, so a row may appear several times. Fewer than n when
 * there are fewer. Errors: PSD_INVALID n is not 1 .. 2^20. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_top(psd_table_t *table, const psd_select_t *select,
                                                     size_t n, const psd_call_t *call,
                                                     psd_result_t **ret_result, psd_error_t *err);

/* scale: multiplies every value by factor. fill: sets every value to `value`.
 * axpy: adds factor times the value of another table, which must fit as for
 * psd_table_dot. The updater's states do not change. Integer tables take
 * integers within their range; sparse rows can be filled with 0 only. Errors:
 * PSD_NOT_FINITE; PSD_INVALID the table's type cannot hold the number;
 * PSD_UNSUPPORTED axpy with another table into a table that has copies or a
 * log, or in a job with max_delay 0. */
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

/* How far a client has seen the changes of one table: a version for each of its
 * partitions. A new one has seen nothing. NULL when there is no memory. */
typedef struct psd_seen psd_seen_t;
PSD_EXPORT psd_seen_t *psd_seen_new(void);
PSD_EXPORT void psd_seen_destroy(psd_seen_t **self_p);
/*
 * Pulls the rows that have changed since the last call with this `seen`, and
 * records in `seen` how far that was. The first call pulls all rows of the
 * selection; later ones pull the rows that any client has changed. A row that
 * changes meanwhile may come twice, but is never missed. Always use one `seen`
 * with one table and one selection.
 *
 * sparse      in   true: each row as its entries that are not zero
 * ret_result  out  rows in ascending order of key
 * Errors: PSD_UNSUPPORTED the table keeps no versions, or its rows are split by
 * columns; PSD_INVALID seen belongs to another table. An error leaves `seen`
 * unchanged.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t
psd_pull_changed(psd_table_t *table, const psd_select_t *select, psd_seen_t *seen, bool sparse,
                 const psd_call_t *call, psd_result_t **ret_result, psd_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
