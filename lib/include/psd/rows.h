/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push and pull - deltas in, values out
 *
 * Shape    values are of the table's type, row by row in the order of the rows
 *          named; a row as wide as the columns selected
 * Units    n_values counts values, not bytes. It is checked against the
 *          selection (PSD_SHAPE), so that no call reads or writes more values.
 *          psd_table_type says how wide one is: no call can see the type of an
 *          array, and 64-bit values written to floats go past its end.
 *          psd_table_ensure compares the type of a table with the one wanted.
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
 * The four everyday calls: whole rows, waiting for the end.
 * Errors: PSD_SHAPE, PSD_RANGE, PSD_NOT_FINITE: refused, nothing of that
 * partition's slice was applied; PSD_DEADLINE: outcome unknown, the library
 * goes on trying (psd_flush); PSD_ROWS_LOST, PSD_NO_TABLE, PSD_CLOSED;
 * PSD_JOB_STOPPED, PSD_WORKER_LOST for workers.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_push(psd_table_t *table, const uint64_t *rows,
                                                size_t n_rows, const void *values, size_t n_values,
                                                psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_pull(psd_table_t *table, const uint64_t *rows,
                                                size_t n_rows, void *ret_values, size_t n_values,
                                                psd_error_t *err);
/* Pushes deltas and pulls the same rows as they are behind them, in one round
 * trip (under BSP: as they are at the last closed clock). */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_pushpull(psd_table_t *table, const uint64_t *rows,
                                                    size_t n_rows, const void *deltas,
                                                    void *ret_values, size_t n_values,
                                                    psd_error_t *err);

/* Pushes what filters of this table handle's pushes (topk, threshold; see
 * psd_call_set_filter) held back so far, and waits for it. To be called before
 * the table is closed, which drops it. What could not even be sent is held back
 * again; what was sent and is refused, or whose deadline passes, is not: it
 * counts as pushed, as after psd_push. Errors: as psd_push. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_push_rest(psd_table_t *table, psd_error_t *err);

/* Which rows and columns. A row that a push names several times gets its deltas
 * one after the other, in their order: `add` sums them up, `assign` keeps the
 * last. Arrays are borrowed until the selection changes or
 * is destroyed. A new selection names no rows and all columns. NULL when there
 * is no memory. */
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
/* For a push of rows of different lengths: row i has values for its lengths[i]
 * leading columns, and none for those behind; n_values is the sum. It means
 * what the same values would as sparse rows. */
PSD_EXPORT void psd_select_lengths(psd_select_t *self, const uint32_t *lengths);

/*
 * The same with every choice, started and not waited for. *ret_ticket is for
 * psd_wait, psd_wait_all or psd_poll. Rows and values are copied unless
 * psd_call_set_borrow; where results go must stay in place until the end.
 * What is started is on its way within 2 ms, whether another call comes or not.
 * Errors: what can be seen at once: PSD_SHAPE, PSD_RANGE, PSD_INVALID,
 * PSD_NOMEM, PSD_CLOSED; PSD_LIMIT 2^24 tickets are still to be waited for, or
 * 2^32 rows do not lie together. No ticket is given then.
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
 * A push whose values are written where the server reads them. With a lane to
 * it (and a call made over that before) the memory given is shared with it and
 * nothing is copied on the way; else it is ordinary memory, and a push like any
 * other: programs need not care.
 *
 *   psd_push_begin(table, select, &draft, &values, &n_values, err);
 *   … write n_values values of the table's type to values …
 *   psd_push_commit(&draft, call, &ticket, err);
 *
 * The arrays of the selection must stay in place until the commit; the values
 * are the library's from then on. The table stays open until the commit too.
 * The memory holds anything at first. Large drafts that are kept for long take
 * room from calls under way.
 *
 * ret_draft     out  for one of the two below
 * ret_values    out  aligned to 16 bytes at least
 * ret_n_values  out  what the selection calls for
 * Errors: those of psd_push_start.
 */
typedef struct psd_draft psd_draft_t;
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_push_begin(psd_table_t *table,
                                                      const psd_select_t *select,
                                                      psd_draft_t **ret_draft, void **ret_values,
                                                      size_t *ret_n_values, psd_error_t *err);
/* Starts the push and takes the draft: *draft_p is nulled. On an error it stays
 * the caller's. Errors: those of psd_push_start. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_push_commit(psd_draft_t **draft_p,
                                                       const psd_call_t *call,
                                                       psd_ticket_t *ret_ticket, psd_error_t *err);
/* Nothing is pushed. Takes NULL, nulls *draft_p. */
PSD_EXPORT void psd_push_abandon(psd_draft_t **draft_p);

/*
 * Pulls rows whose number or length only the server knows: the rows present of
 * a hash table, sparse rows. Waits.
 *
 * sparse      in   true: each row as its entries that are not zero
 * max_rows    in   stop after that many rows; 0: no bound
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
