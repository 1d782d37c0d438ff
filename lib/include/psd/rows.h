/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push and pull - deltas in, values out
 *
 * Shape    Values have the table's type. They are stored row by row, in the
 *          order of the rows named; a row has one value for each selected
 *          column.
 * Units    n_values counts values, not bytes. Each call checks it against the
 *          selection (PSD_SHAPE) and never reads or writes more values than
 *          that. psd_table_type says how wide a value is. No call can see the
 *          type of an array: 64-bit values written to an array of floats
 *          overrun it. psd_table_ensure compares the table's type with the one
 *          wanted.
 */
#ifndef PSD_ROWS_H
#define PSD_ROWS_H

#include "psd/table.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psd_select psd_select_t;
typedef struct psd_result psd_result_t;

/*
 * The four everyday calls: whole rows, and they wait for the result.
 * Errors: PSD_SHAPE, PSD_RANGE, PSD_NOT_FINITE: refused, that partition applied
 * nothing of its part; PSD_DEADLINE: outcome unknown, the library goes on
 * retrying (psd_flush); PSD_ROWS_LOST, PSD_NO_TABLE, PSD_CLOSED;
 * PSD_JOB_STOPPED, PSD_WORKER_LOST for workers.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_push(psd_table_t *table, const uint64_t *rows,
                                                size_t n_rows, const void *values, size_t n_values,
                                                psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_pull(psd_table_t *table, const uint64_t *rows,
                                                size_t n_rows, void *ret_values, size_t n_values,
                                                psd_error_t *err);
/* Pushes deltas and pulls the same rows as they are after that push, in one
 * round trip (under BSP: as they are at the last closed clock). */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_pushpull(psd_table_t *table, const uint64_t *rows,
                                                    size_t n_rows, const void *deltas,
                                                    void *ret_values, size_t n_values,
                                                    psd_error_t *err);

/* Pushes the values that the filters topk and threshold (psd_call_set_filter)
 * have held back so far from pushes of this table handle, and waits. Call it
 * before psd_table_close, which drops them. Values that could not be sent are
 * held back again. Values that were sent and refused, or whose deadline passes,
 * are not: they count as pushed, as after psd_push. Errors: as psd_push. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_push_rest(psd_table_t *table, psd_error_t *err);

/* Which rows and columns. When a push names a row several times, its deltas are
 * applied one after the other, in order: `add` sums them up, `assign` keeps the
 * last. The selection borrows the arrays until it changes or is destroyed. A
 * new selection names no rows and all columns. NULL when there is no memory. */
PSD_EXPORT psd_select_t *psd_select_new(void);
PSD_EXPORT void psd_select_destroy(psd_select_t **self_p);
PSD_EXPORT void psd_select_rows(psd_select_t *self, const uint64_t *rows, size_t n_rows);
PSD_EXPORT void psd_select_row_range(psd_select_t *self, uint64_t first, uint64_t n_rows);
PSD_EXPORT void psd_select_all_rows(psd_select_t *self);
PSD_EXPORT void psd_select_cols(psd_select_t *self, const uint32_t *cols, size_t n_cols);
PSD_EXPORT void psd_select_col_range(psd_select_t *self, uint32_t first, uint32_t n_cols);
PSD_EXPORT void psd_select_all_cols(psd_select_t *self);
/* For a push of sparse rows: counts[n_rows] entries of each row and their
 * columns, ascending within a row; n_values is the sum of counts. */
PSD_EXPORT void psd_select_sparse(psd_select_t *self, const uint32_t *counts, const uint32_t *cols);
/* For a push of rows of different lengths: row i has values for its first
 * lengths[i] columns and none for the rest; n_values is the sum of lengths. It
 * has the same effect as a push of these values as sparse rows. */
PSD_EXPORT void psd_select_lengths(psd_select_t *self, const uint32_t *lengths);

/*
 * The same calls with every option; they start the request and do not wait. One
 * exception: a client that is a guest (psd_options_set_guest) waits here for its
 * session before it pushes, for the call's timeout at most; then PSD_NOT_LEADER.
 * *ret_ticket is for psd_wait, psd_wait_all or psd_poll. The library copies
 * rows and values unless psd_call_set_borrow is set; the memory for results
 * must stay in place until the ticket has ended. It sends the request within 2
 * ms, even when the program makes no other call.
 * Errors: those that show at once: PSD_SHAPE, PSD_RANGE, PSD_INVALID,
 * PSD_NOMEM, PSD_CLOSED, PSD_NOT_LEADER; PSD_LIMIT 2^24 tickets are not waited for yet, or the
 * call selects 2^32 rows that are not consecutive. There is no ticket then.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_push_start(psd_table_t *table,
                                                      const psd_select_t *select,
                                                      const void *values, size_t n_values,
                                                      const psd_call_t *call,
                                                      psd_ticket_t *ret_ticket, psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_pull_start(psd_table_t *table,
                                                      const psd_select_t *select, void *ret_values,
                                                      size_t n_values, const psd_call_t *call,
                                                      psd_ticket_t *ret_ticket, psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_pushpull_start(
    psd_table_t *table, const psd_select_t *select, const void *deltas, void *ret_values,
    size_t n_values, const psd_call_t *call, psd_ticket_t *ret_ticket, psd_error_t *err);

/*
 * A push whose values the caller writes where the server reads them. Over a
 * lane (after a first call over it) the memory is shared with the server, and
 * nothing is copied on the way. Otherwise it is ordinary memory and a push like
 * any other: programs need not care.
 *
 *   psd_push_begin(table, select, &draft, &values, &n_values, err);
 *   … write n_values values of the table's type to values …
 *   psd_push_commit(&draft, call, &ticket, err);
 *
 * The arrays of the selection must stay in place until the commit, and the
 * table must stay open until then. From the commit on the values belong to the
 * library. The memory is not initialized. Large drafts that stay open for long
 * take room from calls in flight.
 *
 * ret_draft     out  for one of the two calls below
 * ret_values    out  aligned to at least 16 bytes
 * ret_n_values  out  number of values of the selection
 * Errors: those of psd_push_start.
 */
typedef struct psd_draft psd_draft_t;
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_push_begin(psd_table_t *table,
                                                      const psd_select_t *select,
                                                      psd_draft_t **ret_draft, void **ret_values,
                                                      size_t *ret_n_values, psd_error_t *err);
/* Starts the push, takes the draft and nulls *draft_p. On an error the draft
 * stays the caller's. Errors: those of psd_push_start. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_push_commit(psd_draft_t **draft_p,
                                                       const psd_call_t *call,
                                                       psd_ticket_t *ret_ticket, psd_error_t *err);
/* Discards the draft and pushes nothing. Takes NULL, nulls *draft_p. */
PSD_EXPORT void psd_push_abandon(psd_draft_t **draft_p);

/*
 * Pulls rows whose number or length only the server knows: the rows present in
 * a hash table, sparse rows. Waits.
 *
 * sparse      in   true: each row as its entries that are not zero
 * max_rows    in   stops after max_rows rows, those with the least keys; 0: no limit
 * ret_result  out  rows in ascending order of key
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_fetch(psd_table_t *table, const psd_select_t *select,
                                                 bool sparse, size_t max_rows,
                                                 const psd_call_t *call, psd_result_t **ret_result,
                                                 psd_error_t *err);
PSD_EXPORT void psd_result_destroy(psd_result_t **self_p);
PSD_EXPORT size_t psd_result_count(const psd_result_t *self);
/* Row i < count: its key, number of values, the values (aligned to the type)
 * and, when fetched sparse, their columns (else *ret_cols is NULL). Borrowed
 * until the result is destroyed. Any ret_ may be NULL. */
PSD_EXPORT void psd_result_row(const psd_result_t *self, size_t i, uint64_t *ret_row, size_t *ret_n,
                               const void **ret_values, const uint32_t **ret_cols);

#ifdef __cplusplus
}
#endif
#endif
