/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_store_hand_out, ps_store_take_in - the rows of a store, moved to another
 *
 * What     A walk hands out all rows of a store in pieces, in the order in
 *          which they came to be, while pushes go on between the pieces. The
 *          other store takes the pieces in, and between them the same pushes,
 *          where those change only rows that it has (ps_store_set_partial):
 *          what has not come yet will come with the change in it. A row that
 *          is made on the way gets a higher place, so it comes later. Behind
 *          the last piece both stores hold the same bits: values, states,
 *          versions, presence, room of sparse rows (an AUTO row turns dense by
 *          it), and the order of rows.
 * Shape    a piece: u8 layout (1 array, 2 dense rows, 3 rows that may be
 *          sparse), 7 zero bytes, u64 first place, u64 n rows, u64 rows that
 *          were left behind these; then
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

/* How far a walk has come; zero in the beginning. */
typedef struct ps_store_cursor {
    uint64_t next; /* place of the next row: an array's row, from 0; else the
                      number of its coming */
} ps_store_cursor_t;

/*
 * The next piece, which the caller frees: of about max_bytes, and one row at
 * least, however wide: a row is never cut.
 *
 * ret_done  out  no row is left now. With this piece the other store becomes
 *                whole, before it takes another push
 *
 * Errors: PSD_NOMEM; the cursor stays.
 */
PSD_MUST_CHECK psd_status_t ps_store_hand_out(const ps_store_t *self, ps_store_cursor_t *cursor,
                                              size_t max_bytes, ps_payload_t **ret_piece,
                                              bool *ret_done, psd_error_t *err);
/* Takes a piece into a store of the same table and partition that is partial:
 * the one behind those that it has. Errors: PSD_PROTO the bytes are no such
 * piece, naming what is wrong: the store is then to be thrown away; PSD_NOMEM:
 * it has taken as many rows as ps_store_n_taken says, and goes on from there.
 */
PSD_MUST_CHECK psd_status_t ps_store_take_in(ps_store_t *self, ps_bytes_t piece, psd_error_t *err);
/* What a piece of so many bytes adds to the store, about: rows in an array have
 * taken all they can. */
uint64_t ps_store_piece_growth(const ps_store_t *self, size_t bytes);
/* No rows are left behind those of the piece, as its head says. */
bool ps_store_piece_is_last(ps_bytes_t piece);
/* Partial: pushes and changes pass over rows that were not taken in. Whole: as
 * ever. A new store is whole; one that is to be filled becomes partial before
 * its first push. */
void ps_store_set_partial(ps_store_t *self, bool is_partial);
bool ps_store_is_partial(const ps_store_t *self);
/* Rows that a store which is partial has taken in: the place of the next one.
 */
uint64_t ps_store_n_taken(const ps_store_t *self);
/* The place of a row of an array. false: this is none, so that no number tells
 * it, or it has no such row. */
bool ps_store_place_of(const ps_store_t *self, uint64_t row, uint64_t *ret_place);
#endif
