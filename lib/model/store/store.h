/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_store - the rows of one partition
 *
 * What     Two layouts behind one face. RANGE keys with dense rows: one aligned
 *          array of values and one per state, filled with first values block
 *          by block on first touch. Everything else: an index from row to a
 *          row object (open addressing, grown step by step), dense rows in
 *          slabs of equal width, sparse rows as arrays sorted by column that
 *          grow by themselves and drop an entry whose value and state are zero.
 * Shape    rows and columns are named as the table names them; a slice may
 *          only name those of the partition's extent
 * Owner    The caller; ps_store_destroy frees every row.
 * Threads  Confined to one thread.
 */
#ifndef PS_MODEL_STORE_H
#define PS_MODEL_STORE_H

#include "model/rows/pages.h"
#include "model/tables/partition.h"

typedef struct ps_store ps_store_t;

typedef struct ps_store_bytes {
    uint64_t values; /* bytes of row values, as allocated for rows in use */
    uint64_t state;  /* bytes of updater state */
    uint64_t index;  /* bytes of index, row headers, columns, free room */
    uint64_t rows_present;
} ps_store_bytes_t;

/* spec has passed ps_table_spec_check and is copied; partition names the
 * extent. Errors: PSD_NOMEM; PSD_LIMIT when the extent cannot be addressed. */
PSD_MUST_CHECK psd_status_t ps_store_new(const ps_table_spec_t *spec, uint32_t partition,
                                         ps_store_t **ret_store, psd_error_t *err);
void ps_store_destroy(ps_store_t **self_p);

/*
 * Checks a push as a whole, so that ps_store_push can only run out of memory:
 * type; rows inside the extent; columns inside it; n_cols of a cols-ALL dense
 * slice equals the extent's width; sparse columns strictly ascending within a
 * row; dense-format tables take sparse deltas too (missing columns: no delta),
 * sparse-format tables take dense deltas of every width; values finite unless
 * the spec allows them not to be.
 * The slice was checked against its payload by `wire`.
 * Errors: PSD_TYPE, PSD_RANGE, PSD_SHAPE, PSD_NOT_FINITE, each naming row (and
 * column) and what is allowed. The store is not changed.
 */
PSD_MUST_CHECK psd_status_t ps_store_check_push(const ps_store_t *self, const ps_slice_t *slice,
                                                const ps_payload_t *payload, psd_error_t *err);
/* Deltas applied from now on are those of this worker (its rank in its job), or
 * of PS_UPDATER_NO_WORKER (model/updaters/updater.h), as in the beginning: some updaters
 * keep state for every worker. */
void ps_store_set_worker(ps_store_t *self, uint32_t worker);
/* Whether the updater takes deltas of this worker. Errors: PSD_RANGE. */
PSD_MUST_CHECK psd_status_t ps_store_check_worker(const ps_store_t *self, uint32_t worker,
                                                  psd_error_t *err);
/*
 * Applies a push that ps_store_check_push accepted, row by row in the slice's
 * order; rows that are not there are made. A dense delta into a dense or range
 * row runs the updater on every column of the slice; a sparse delta only on the
 * columns that it names.
 * Values of a shared payload may have changed since they were checked: what is
 * not finite any more, where it may not be so, is left out, perhaps with the
 * values around it, and never reaches a row.
 * Errors: PSD_NOMEM; no value has changed then, and no row is present that was
 * not before.
 */
PSD_MUST_CHECK psd_status_t ps_store_push(ps_store_t *self, const ps_slice_t *slice,
                                          const ps_payload_t *payload, psd_error_t *err);

/* Memory that pushes of new rows will take next, once; ask after each push. As
 * ps_pages_soon. */
bool ps_store_soon(ps_store_t *self, ps_soon_t *ret_soon);

/* Same checks for the rows and columns of a pull (slice->n_values is 0 and
 * layout is what the reader wants back). Errors: PSD_RANGE, PSD_SHAPE. */
PSD_MUST_CHECK psd_status_t ps_store_check_pull(const ps_store_t *self, const ps_slice_t *slice,
                                                const ps_payload_t *payload, psd_error_t *err);
/*
 * Gathers rows into a fresh payload. A row that is not present reads as its
 * first values and is not made.
 *
 * want       in   a checked pull. DENSE: every named row, all selected columns.
 *                 SPARSE: the entries that are not zero (cols ALL only).
 *                 rows RANGE over HASH keys: only rows present, ascending;
 *                 over a hash partition of RANGE keys: those that lie there.
 * rows       in   keys and columns of `want`; NULL when it has neither
 * max_bytes  in   stop before a row that would make the payload larger, but
 *                 take at least one row
 * room       in   where values go when all that are gathered fit there; the
 *                 payload then borrows it
 * ret_slice  out  what was gathered: rows LIST with keys when the rows are
 *                 those present of a range, else as `want` with n_rows cut,
 *                 where rows LIST becomes ASKED and has no keys
 * ret_done   out  rows of `want` that were dealt with: for RANGE, go on at
 *                 first_row + *ret_done while it is below want->n_rows
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_store_gather(ps_store_t *self, const ps_slice_t *want,
                                            const ps_payload_t *rows, size_t max_bytes,
                                            ps_room_t room, ps_slice_t *ret_slice,
                                            ps_payload_t **ret_payload, uint64_t *ret_done,
                                            psd_error_t *err);

ps_store_bytes_t ps_store_bytes(const ps_store_t *self);
/* values, state and index together; no row is counted for it. */
uint64_t ps_store_size(const ps_store_t *self);
/* The same, and of one that is partial what has come: the memory of an array is
 * there before its rows. */
uint64_t ps_store_size_come(const ps_store_t *self);
const ps_extent_t *ps_store_extent(const ps_store_t *self);
#endif
