/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/model/store: the rows of a partition and what can be done to them
 *
 * It is       One interface over both layouts: checks, pushes, pulls, changes in
 *             place, measures, images for checkpoints, pieces for copies, and
 *             the memory that all of it takes.
 * It uses     rows, updaters, tables, lib/base.
 * It ignores  Clients, clocks, records, and who asks.
 * Start at    store.h, store_impl.h for the struct; store_check.c, store_push.c,
 *             store_gather.c for a push and a pull.
 */
/*
 * ps_store - the rows of one partition
 *
 * What     One interface for two layouts. RANGE keys with dense rows: one
 *          aligned array of values and one per state, filled with first values
 *          block by block on first touch. Everything else: an index from row to
 *          a row object (open addressing, incremental growth); dense rows in
 *          slabs of equal width; sparse rows as arrays sorted by column, which
 *          grow and drop an entry whose value and state are zero.
 * Shape    rows and columns have the table's numbers; a slice may only name
 *          those of the partition's extent
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
    uint64_t index;  /* bytes of index, row headers, columns, unused capacity */
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
 * `wire` has checked the slice against its payload.
 * Errors: PSD_TYPE, PSD_RANGE, PSD_SHAPE, PSD_NOT_FINITE, each naming row (and
 * column) and what is allowed. The store is not changed.
 */
PSD_MUST_CHECK psd_status_t ps_store_check_push(const ps_store_t *self, const ps_slice_t *slice,
                                                const ps_payload_t *payload, psd_error_t *err);
/* Sets the worker (its rank in its job) of the deltas applied from now on, or
 * PS_UPDATER_NO_WORKER (model/updaters/updater.h), the initial value. Some
 * updaters keep state per worker. */
void ps_store_set_worker(ps_store_t *self, uint32_t worker);
/* Whether the updater takes deltas of this worker. Errors: PSD_RANGE. */
PSD_MUST_CHECK psd_status_t ps_store_check_worker(const ps_store_t *self, uint32_t worker,
                                                  psd_error_t *err);
/*
 * Applies a push that ps_store_check_push accepted, row by row in the slice's
 * order; creates missing rows. A dense delta into a dense or range row runs the
 * updater on every column of the slice; a sparse delta only on the columns that
 * it names.
 * Values of a shared payload may have changed since the check. A value that is
 * no longer finite, in a table that requires it, is left out, perhaps with its
 * neighbours, and never reaches a row.
 * Errors: PSD_NOMEM; then no value has changed, and no new row is present.
 */
PSD_MUST_CHECK psd_status_t ps_store_push(ps_store_t *self, const ps_slice_t *slice,
                                          const ps_payload_t *payload, psd_error_t *err);

/* Names the memory that pushes of new rows will use next, once; ask after each
 * push. As ps_pages_soon. */
bool ps_store_soon(ps_store_t *self, ps_soon_t *ret_soon);

/* Same checks for the rows and columns of a pull (slice->n_values is 0 and
 * layout is the layout of the answer). Errors: PSD_RANGE, PSD_SHAPE. */
PSD_MUST_CHECK psd_status_t ps_store_check_pull(const ps_store_t *self, const ps_slice_t *slice,
                                                const ps_payload_t *payload, psd_error_t *err);
/*
 * Gathers rows into a fresh payload. A row that is not present reads as its
 * first values and is not created.
 *
 * want       in   a checked pull. DENSE: every named row, all selected columns.
 *                 SPARSE: the entries that are not zero (cols ALL only).
 *                 rows RANGE over HASH keys: only rows present, ascending; over
 *                 a hash partition of RANGE keys: the rows of this partition.
 * rows       in   keys and columns of `want`; NULL if it has neither
 * max_bytes  in   stop before a row that would make the payload larger, but
 *                 take at least one row
 * room       in   receives the values if all gathered ones fit; the payload
 *                 then borrows it
 * ret_slice  out  what was gathered: rows LIST with keys if the rows are the
 *                 present ones of a range; else as `want` with n_rows cut, and
 *                 rows LIST becomes ASKED without keys
 * ret_done   out  rows of `want` that are done: for RANGE, continue at
 *                 first_row + *ret_done while it is below want->n_rows
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_store_gather(ps_store_t *self, const ps_slice_t *want,
                                            const ps_payload_t *rows, size_t max_bytes,
                                            ps_room_t room, ps_slice_t *ret_slice,
                                            ps_payload_t **ret_payload, uint64_t *ret_done,
                                            psd_error_t *err);

ps_store_bytes_t ps_store_bytes(const ps_store_t *self);
/* values, state and index together; does not walk the rows. */
uint64_t ps_store_size(const ps_store_t *self);
/* Rows that are present; of a RANGE-keys table by hash an even share, which all
 * partitions together make exact. Walks nothing. */
uint64_t ps_store_rows_about(const ps_store_t *self);
/* The same, but for a partial store only what has arrived: an array's memory
 * exists before its rows arrive. */
uint64_t ps_store_size_come(const ps_store_t *self);
const ps_extent_t *ps_store_extent(const ps_store_t *self);
#endif
