/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/client/slices: one call cut by partition
 *
 * It is       Selections, the slices that they become, the places for a slice's
 *             answer, and filters that hold back a part of a push.
 * It uses     lib/model, for what a table is, and lib/wire, for payloads.
 * It ignores  Clients, connections and time: it gets arrays and a spec.
 * Start at    cut.c.
 */
/*
 * ps_cut - one call cut into slices, each for one partition
 *
 * What     Rows that are contiguous at the caller (one partition, or sorted
 *          keys over ranges) are cut without copying: the payload borrows them.
 *          Other rows are gathered, one block for each slice. Neither the body
 *          of a slice nor its answer exceeds limit_bytes, unless a single row
 *          does.
 * Shape    places: row i of a slice belongs to the caller's row
 *          (rows ? rows[n_done + i] : first + n_done + i), its column j to the
 *          value (cols ? cols[j] : col + j) of that row
 * Owner    ps_cuts_done frees what is left in the list; a user may take a
 *          cut's payload and places, and null them in the list.
 */
#ifndef PS_CLIENT_CUT_H
#define PS_CLIENT_CUT_H

#include "client/slices/select.h"

typedef struct ps_places {
    size_t first;
    uint32_t *rows; /* owned; NULL: first + i */
    size_t n_done;  /* rows that are in place already */
    size_t col;
    uint32_t *cols;   /* owned; NULL: col + j */
    size_t row_width; /* values of the caller's row */
} ps_places_t;

typedef struct ps_cut {
    uint32_t partition;
    ps_slice_t slice;
    ps_payload_t *payload; /* owned; NULL: no body */
    bool borrows;          /* some of the payload's bytes are the caller's */
    ps_places_t places;    /* set when args.places */
} ps_cut_t;

/* Most calls are one slice, which is stored in the list itself: do not copy a
 * list that is not empty. */
typedef struct ps_cuts {
    ps_cut_t *items; /* &one, or owned */
    size_t n;
    size_t capacity; /* of what is owned */
    ps_cut_t one;
} ps_cuts_t;

typedef struct ps_cut_args {
    const ps_table_spec_t *spec; /* settled */
    const psd_select_t *select;  /* passed ps_select_check */
    const void *values;          /* NULL: a pull */
    bool sparse_answer;          /* a pull that wants sparse rows */
    bool places;                 /* answers will be put into place */
    bool borrow;                 /* the caller's values may be pointed at */
    bool borrow_lists;           /* … and the lists of rows and columns */
    uint64_t limit_bytes;
} ps_cut_args_t;

/* Appends the slices of a call to an empty list. Errors: PSD_NOMEM; PSD_LIMIT
 * 2^32 rows or more that are not contiguous; the list may have some slices
 * then. */
PSD_MUST_CHECK psd_status_t ps_cut(const ps_cut_args_t *args, ps_cuts_t *cuts, psd_error_t *err);
/* Rows present in a range of a table with hash keys, or in all of it. */
typedef struct ps_present_args {
    const ps_table_spec_t *spec; /* settled */
    const psd_select_t *select;  /* passed ps_select_check_places; a RANGE */
    bool sparse;                 /* sparse rows are wanted */
    bool keys_only;              /* as little of each row as possible */
} ps_present_args_t;

/* Appends the slices that one partition has of them; none when it has no part
 * of the range. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_cut_present(const ps_present_args_t *args, uint32_t partition,
                                           ps_cuts_t *cuts, psd_error_t *err);
/* One more, zeroed; NULL: no memory. Borrowed until the next one. */
PSD_MUST_CHECK ps_cut_t *ps_cuts_add(ps_cuts_t *self);
/* Frees the list and what is in it; fits PSD_AUTO. */
void ps_cuts_done(ps_cuts_t *self);

/* Frees and zeroes. */
void ps_places_done(ps_places_t *self);
/* The first n rows are done: row i + n becomes row i. */
void ps_places_skip(ps_places_t *self, size_t n);
/* Copies the values of a DENSE answer of n_rows rows and n_cols columns to
 * their places in the caller's array; the payload's size has been checked. */
void ps_places_scatter(const ps_places_t *self, const ps_payload_t *payload, size_t n_rows,
                       size_t n_cols, size_t value_size, void *values);
#endif
