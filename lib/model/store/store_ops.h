/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_store_change, ps_store_measure, ps_store_top - operations on rows in place
 *
 * What     The operations of a push or pull with an op: they change or
 *          aggregate rows without sending them. A change leaves updater states
 *          alone.
 * Shape    rows LIST: every named row, in order; a change makes them present as
 *          a push does, a measure reads the first values of missing rows;
 *          duplicates count each time.
 *          rows RANGE over rows that are scattered (HASH keys): SCALE, FILL and
 *          measures apply to the rows present here; AXPY to the rows present in
 *          `other`, which it makes present here; DOT to the rows present in
 *          both. cols: as for a pull of DENSE rows. In a sparse row, SCALE,
 *          AXPY and measures touch only its entries (AXPY: the other row's
 *          entries); FILL allows only 0, which drops them.
 * Units    operand: an f64. Integer tables take whole operands in the type's
 *          range, and wrap around as `add` does.
 * Threads  Confined to one thread, which owns both stores.
 */
#ifndef PS_MODEL_STORE_OPS_H
#define PS_MODEL_STORE_OPS_H

#include "model/store/store.h"

/* The numbers go over the wire: PUSH.op and PULL.op of the protocol. */
typedef enum ps_change_kind {
    PS_CHANGE_SCALE_ROWS = 1, /* value *= operand */
    PS_CHANGE_FILL_ROWS = 2,  /* value = operand */
    PS_CHANGE_AXPY_ROWS = 3   /* value += operand * other's value */
} ps_change_kind_t;

typedef enum ps_measure_kind {
    PS_MEASURE_SUM = 1,
    PS_MEASURE_SQUARES = 2,  /* the sum of the values' squares */
    PS_MEASURE_NONZEROS = 3, /* the number of values that are not 0; NaN is not 0 */
    PS_MEASURE_DOT = 4,      /* the sum of products with other's values */
    PS_MEASURE_TOP = 5       /* ps_store_top only */
} ps_measure_kind_t;

typedef struct ps_row_change {
    ps_change_kind_t kind;
    double operand;
    ps_store_t *other; /* AXPY: borrowed, same shape, may be the store itself;
                          else NULL */
} ps_row_change_t;

/* Whether AXPY and DOT allow two stores: same type, same extent. Errors:
 * PSD_SHAPE, PSD_TYPE, naming what differs. */
PSD_MUST_CHECK psd_status_t ps_store_check_pair(const ps_store_t *self, const ps_store_t *other,
                                                psd_error_t *err);
/* Checks a change completely, so that ps_store_change can only run out of
 * memory: rows and columns as ps_store_check_pull (the slice is DENSE and
 * carries no values), the type, the operand (non-finite only if the spec allows
 * it; whole and in the type's range for integers; FILL of rows that can be
 * sparse: 0), the pair. Results are not checked: they may overflow as in any
 * push. Errors: PSD_TYPE, PSD_RANGE, PSD_SHAPE, PSD_NOT_FINITE, PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_store_check_change(const ps_store_t *self, const ps_slice_t *slice,
                                                  const ps_payload_t *rows,
                                                  const ps_row_change_t *change, psd_error_t *err);
/* Applies a checked change. Allocates all memory before the first value
 * changes. Errors: PSD_NOMEM; no value has changed. */
PSD_MUST_CHECK psd_status_t ps_store_change(ps_store_t *self, const ps_slice_t *slice,
                                            const ps_payload_t *rows, const ps_row_change_t *change,
                                            psd_error_t *err);

/* The result of a measurement. Sums are f64, row by row in the slice's order,
 * columns ascending: the same store gives the same bits. NaN and overflow
 * follow IEEE 754. */
typedef struct ps_measure {
    double number;  /* SUM, SQUARES, DOT */
    uint64_t count; /* NONZEROS */
    uint64_t done;  /* rows of `want` that are done, as `ret_done` of ps_store_gather; below
                       want->n_rows: ask for the rest */
} ps_measure_t;

/* want was checked by ps_store_check_pull (DENSE); other (DOT only) by
 * ps_store_check_pair. Reads at most max_values values, but at least one row.
 * Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_store_measure(ps_store_t *self, const ps_slice_t *want,
                                             const ps_payload_t *rows, ps_measure_kind_t kind,
                                             ps_store_t *other, uint64_t max_values,
                                             ps_measure_t *ret_measure, psd_error_t *err);
/* The n largest values: a SPARSE slice with rows LIST, one entry each, from the
 * largest down (equal ones: lower row, then lower column first). NaN is never
 * among them; of sparse rows only entries count. n <= 2^20; the result has
 * fewer if there are fewer. max_values and ret_done as above. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_store_top(ps_store_t *self, const ps_slice_t *want,
                                         const ps_payload_t *rows, uint64_t n, uint64_t max_values,
                                         ps_slice_t *ret_slice, ps_payload_t **ret_payload,
                                         uint64_t *ret_done, psd_error_t *err);

#define PS_TOP_MAX (UINT64_C(1) << 20) /* values that one TOP may want */

/*
 * Versions, if the table's option asks for them; otherwise they cost nothing.
 *
 * ps_store_stamp: rows that change from now on get this version, which never
 * decreases; the shard sets the partition's lsn before it applies a record.
 */
bool ps_store_has_versions(const ps_store_t *self);
void ps_store_stamp(ps_store_t *self, uint64_t version);
/* As ps_store_gather, but only rows whose version is above `since`: rows LIST,
 * with keys, in the order of `want`. */
PSD_MUST_CHECK psd_status_t ps_store_gather_since(ps_store_t *self, const ps_slice_t *want,
                                                  const ps_payload_t *rows, uint64_t since,
                                                  size_t max_bytes, ps_slice_t *ret_slice,
                                                  ps_payload_t **ret_payload, uint64_t *ret_done,
                                                  psd_error_t *err);
#endif
