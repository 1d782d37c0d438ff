/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_store_hand_out, ps_store_take_in - the rows of a store, moved to another
 *
 * What     A walk hands out all rows of a store in pieces, in insertion order,
 *          while pushes continue between the pieces. The other store takes the
 *          pieces in and applies the same pushes between them, but only to rows
 *          that it has (ps_store_set_partial): the others arrive later with the
 *          change applied. A row that is created meanwhile gets a higher place,
 *          so it arrives later. After the last piece both stores hold the same
 *          bits: values, states, versions, presence, room of sparse rows (it
 *          decides when an AUTO row turns dense), and the order of rows.
 * Shape    a piece: u8 layout (1 array, 2 dense rows, 3 rows that may be
 *          sparse), 7 zero bytes, u64 first place, u64 n rows, u64 rows left
 *          after these; then
 *          array       a bit for each block of 4096 values (see array_rows.h)
 *                      that a value of these rows lies in: it follows; zeros up
 *                      to a multiple of 8 bytes. For each block that follows,
 *                      the part of it that is of these rows: u64 versions of
 *                      the rows that begin there (where the table has them),
 *                      values, each state. A block that does not follow reads
 *                      as first values with versions of 0
 *          dense rows  each: u64 key, u64 version (where the table has them),
 *                      values, states
 *          others      each: u64 key, u64 version, u32 flags (1 dense, 2
 *                      absent), u32 n entries, u32 room for entries, u32 zero;
 *                      then n values, n of each state, n u32 columns; or, if it
 *                      is dense, n 0 and room 0, values, states
 *          A piece is untrusted bytes: everything that is read is checked.
 * Owner    Borrows the store.
 * Threads  Confined to the store's.
 */
#ifndef PS_MODEL_STORE_COPY_H
#define PS_MODEL_STORE_COPY_H

#include "model/store/store.h"

/* The progress of a walk; zero at the start. */
typedef struct ps_store_cursor {
    uint64_t next; /* place of the next row: an array's row, from 0; else its insertion number */
} ps_store_cursor_t;

/*
 * The next piece, which the caller frees: about max_bytes, but at least one
 * row, however wide. A row is never cut.
 *
 * ret_done  out  no row is left. With this piece the other store becomes whole,
 *                before it takes another push
 *
 * Errors: PSD_NOMEM; the cursor does not move.
 */
PSD_MUST_CHECK psd_status_t ps_store_hand_out(const ps_store_t *self, ps_store_cursor_t *cursor,
                                              size_t max_bytes, ps_payload_t **ret_piece,
                                              bool *ret_done, psd_error_t *err);
/* Takes the next piece into a partial store of the same table and partition.
 * Errors: PSD_PROTO the bytes are not such a piece, naming what is wrong:
 * discard the store; PSD_NOMEM: the store has taken ps_store_n_taken rows, and
 * continues from there.
 */
PSD_MUST_CHECK psd_status_t ps_store_take_in(ps_store_t *self, ps_bytes_t piece, psd_error_t *err);
/* The approximate number of bytes that a piece of this size adds to the store.
 * An array already has memory for all its rows. */
uint64_t ps_store_piece_growth(const ps_store_t *self, size_t bytes);
/* True when the piece's head says that it is the last one. */
bool ps_store_piece_is_last(ps_bytes_t piece);
/* Partial: pushes and changes skip rows that were not taken in. Whole: the
 * normal state. A new store is whole; make it partial before its first push if
 * it will take pieces. */
void ps_store_set_partial(ps_store_t *self, bool is_partial);
bool ps_store_is_partial(const ps_store_t *self);
/* The number of rows that a partial store has taken in: the place of the next
 * one.
 */
uint64_t ps_store_n_taken(const ps_store_t *self);
/* The place of a row of an array. false: the store is not an array, so rows
 * have no such number, or it has no such row. */
bool ps_store_place_of(const ps_store_t *self, uint64_t row, uint64_t *ret_place);
#endif
