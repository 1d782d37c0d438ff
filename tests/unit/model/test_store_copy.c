/* SPDX-License-Identifier: Apache-2.0 */
/* Rows handed out in pieces and taken in: the edges by hand. Stories of any
 * tables and pushes are in protocol/test_partition_copy.c. */
#include "store_kit.h"

#include "model/store/store_copy.h"
#include "model/store/store_growth.h"
#include "support/fail_alloc.h"

#define HEAD 32 /* bytes of a piece in front of its rows */

static ps_payload_t *next_piece(const ps_store_t *store, ps_store_cursor_t *cursor,
                                size_t max_bytes, bool *ret_done)
{
    ps_payload_t *piece = NULL;

    cr_assert_eq(ps_store_hand_out(store, cursor, max_bytes, &piece, ret_done, NULL), PSD_OK);
    return piece;
}

/* One piece from one store to the other; whether it was the last. */
static bool move(const ps_store_t *from, ps_store_t *to, ps_store_cursor_t *cursor,
                 size_t max_bytes)
{
    bool is_done = false;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *piece = next_piece(from, cursor, max_bytes, &is_done);

    cr_assert_eq(ps_store_take_in(to, piece->span, NULL), PSD_OK);
    return is_done;
}

static ps_store_t *partial_store(const ps_table_spec_t *spec)
{
    ps_store_t *store = kit_store(spec, 0);

    ps_store_set_partial(store, true);
    return store;
}

/* Adds to one column of the row, on both. */
static void add(ps_store_t *one, ps_store_t *two, uint64_t row, double value)
{
    kit_apply(one, kit_dense(PS_TYPE_F32, 1, &row, 1, &value));
    kit_apply(two, kit_dense(PS_TYPE_F32, 1, &row, 1, &value));
}

static ps_table_spec_t array_spec(uint64_t n_rows, double first_value)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, n_rows, 1);

    spec.init.kind = first_value == 0 ? PS_INIT_ZERO : PS_INIT_CONSTANT;
    spec.init.a = first_value;
    return spec;
}

Test(store_copy, an_empty_store_is_done_with_one_piece)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_SPARSE, PS_TYPE_F32, 0, 4);
    PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(&spec, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *to = partial_store(&spec);
    ps_store_cursor_t cursor = {0};

    cr_expect(move(from, to, &cursor, 100));
    cr_expect_eq(cursor.next, 0);
}

Test(store_copy, a_store_is_whole_until_it_is_said_to_be_partial)
{
    ps_table_spec_t spec = array_spec(4, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *store = kit_store(&spec, 0);

    cr_expect_not(ps_store_is_partial(store));
    ps_store_set_partial(store, true);
    cr_expect(ps_store_is_partial(store));
}

Test(store_copy, a_push_to_rows_that_have_not_come_changes_nothing)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, 1);
    PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(&spec, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *to = partial_store(&spec);
    ps_store_cursor_t cursor = {0};

    add(from, to, 8, 1);
    add(from, to, 9, 1);
    cr_expect_eq(ps_store_bytes(to).rows_present, 0);
    cr_expect_not(move(from, to, &cursor, 1));
    add(from, to, 8, 10);
    add(from, to, 9, 10);
    cr_expect_eq(ps_store_bytes(to).rows_present, 1);
    cr_expect_eq(kit_value(to, PS_TYPE_F32, 8, 0), 11);
    add(from, to, 7, 5); /* a new row comes last */
    cr_expect_not(move(from, to, &cursor, 1));
    cr_expect(move(from, to, &cursor, 1));
    cr_expect_eq(kit_value(to, PS_TYPE_F32, 9, 0), 11);
    cr_expect_eq(kit_value(to, PS_TYPE_F32, 7, 0), 5);
}

/* The block that both pieces are parts of gets its first values at the primary
 * by a push that the copy passes over. */
Test(store_copy, a_block_may_be_filled_between_two_of_its_parts)
{
    ps_table_spec_t spec = array_spec(3000, 7);
    PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(&spec, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *to = partial_store(&spec);
    ps_store_cursor_t cursor = {0};

    cr_assert_not(move(from, to, &cursor, 40));
    cr_assert_lt(cursor.next, 2999);
    add(from, to, 2999, 1);
    while (!move(from, to, &cursor, 40)) {
    }
    ps_store_set_partial(to, false);
    cr_expect_eq(kit_value(to, PS_TYPE_F32, 0, 0), 7);
    cr_expect_eq(kit_value(to, PS_TYPE_F32, 2998, 0), 7);
    cr_expect_eq(kit_value(to, PS_TYPE_F32, 2999, 0), 8);
}

/* What is zero does not travel; so it must be zero at the copy. */
Test(store_copy, the_row_behind_those_taken_is_not_changed)
{
    ps_table_spec_t spec = array_spec(8, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(&spec, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *to = partial_store(&spec);
    ps_store_cursor_t cursor = {0};

    add(from, to, 0, 5);
    add(from, to, 1, 5);
    cr_assert_not(move(from, to, &cursor, 1));
    cr_assert_eq(cursor.next, 1);
    add(from, to, 1, -5);
    while (!move(from, to, &cursor, 1)) {
    }
    cr_expect_eq(kit_value(to, PS_TYPE_F32, 0, 0), 5);
    cr_expect_eq(kit_value(to, PS_TYPE_F32, 1, 0), 0);
}

Test(store_copy, blocks_that_nobody_touched_do_not_travel)
{
    for (int first_value = 0; first_value < 2; first_value++) {
        ps_table_spec_t spec = array_spec(1000000, first_value);
        PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(&spec, 0);
        ps_store_cursor_t cursor = {0};
        size_t bytes = 0;
        bool is_done = false;
        double one = 1;
        uint64_t row = 500000;

        kit_apply(from, kit_dense(PS_TYPE_F32, 1, &row, 1, &one));
        while (!is_done) {
            PSD_AUTO(ps_payload_destroy)
            ps_payload_t *piece = next_piece(from, &cursor, 1 << 20, &is_done);

            bytes += piece->span.size;
        }
        cr_expect_gt(bytes, 4096 * 4);
        cr_expect_lt(bytes, 4096 * 4 + 200);
    }
}

Test(store_copy, a_row_is_never_cut)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, 3, 10000);
    PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(&spec, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *to = partial_store(&spec);
    ps_store_cursor_t cursor = {0};

    for (uint64_t row = 0; row < 3; row++) {
        double one = 1;
        kit_push_t push = {
            .slice = {.type = PS_TYPE_F32, .cols = PS_COLS_RANGE, .first_col = 9999, .n_cols = 1}};

        kit_push_key(&push, row);
        kit_push_value(&push, one);
        kit_push_close(&push, NULL);
        kit_apply(from, push);
    }
    for (uint64_t row = 1; row <= 3; row++) {
        cr_expect_eq(move(from, to, &cursor, 100), row == 3);
        cr_expect_eq(cursor.next, row);
    }
    cr_expect_eq(kit_value(to, PS_TYPE_F32, 2, 9999), 1);
}

/* ---- bytes that are no piece ---- */

/* A piece of one row with its bytes changed, and what is said of it. */
static void expect_refused(const ps_table_spec_t *spec, size_t at, uint8_t value, size_t size,
                           const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(spec, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *to = partial_store(spec);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
    PSD_AUTO(ps_free_at) uint8_t *bytes = NULL;
    ps_store_cursor_t cursor = {0};
    const uint32_t columns[] = {1, 3};
    const double values[] = {5, 6};
    bool is_done = false;

    kit_apply(from, kit_sparse(PS_TYPE_F32, 2, 2, columns, values));
    piece = next_piece(from, &cursor, 1000, &is_done);
    size = size == 0 ? piece->span.size : size;
    bytes = ps_alloc(size, 1);
    cr_assert_not_null(bytes);
    memcpy(bytes, piece->span.data, size < piece->span.size ? size : piece->span.size);
    bytes[at] = value;
    cr_expect_eq(ps_store_take_in(to, (ps_bytes_t){bytes, size}, err), PSD_PROTO);
    cr_expect_str_eq(psd_error_text(err), text);
}

Test(store_copy, heads_are_checked)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, 4);

    expect_refused(&spec, 0, 2, HEAD - 1, "a piece of rows has 31 bytes; its head takes 32");
    expect_refused(&spec, 0, 3, 0, "a piece of rows has layout 3; this partition's is 2");
    expect_refused(&spec, 8, 1, 0, "a piece begins at row 1; the next one here is 0");
    expect_refused(&spec, 23, 1, 0,
                   "a piece has 72057594037927937 rows, and 0 are left; "
                   "allowed: at most 2147483647");
    expect_refused(&spec, 31, 1, 0,
                   "a piece has 1 rows, and 72057594037927936 are left; "
                   "allowed: at most 2147483647");
}

Test(store_copy, rows_of_an_array_are_checked)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, 4, 4);

    expect_refused(&spec, HEAD + 1, 1, 0,
                   "a piece of rows names blocks past its last one, which is 0");
    expect_refused(
        &spec, HEAD, 0, 0,
        "a piece of 4 rows has 72 bytes for them, which do not match the blocks that it names");
    expect_refused(
        &spec, HEAD, 1, HEAD + 71,
        "a piece of 4 rows has 71 bytes for them, which do not match the blocks that it names");
}

Test(store_copy, dense_rows_are_checked)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, 4);

    expect_refused(&spec, 0, 2, HEAD + 25, "a piece of 1 rows has 25 bytes for them; allowed: 24");
    expect_refused(&spec, 16, 2, 0,
                   "a piece of 2 rows has 24 bytes for them; allowed: at "
                   "least 24 each");
    spec.n_partitions = 2;
    spec.partition_by = PS_PARTITION_BY_RANGE;
    expect_refused(&spec, HEAD + 7, 0x80, 0,
                   "a piece has row 9223372036854775810, which is not of this "
                   "partition");
}

Test(store_copy, a_row_comes_once)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, 1);
    PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(&spec, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *to = partial_store(&spec);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
    PSD_AUTO(ps_free_at) uint8_t *bytes = NULL;
    ps_store_cursor_t cursor = {0};
    const uint64_t keys[] = {4, 5};
    const double values[] = {1, 1};
    bool is_done = false;

    kit_apply(from, kit_dense(PS_TYPE_F32, 2, keys, 1, values));
    piece = next_piece(from, &cursor, 1000, &is_done);
    bytes = ps_alloc(piece->span.size, 1);
    cr_assert_not_null(bytes);
    memcpy(bytes, piece->span.data, piece->span.size);
    bytes[HEAD + 12] = 4;
    cr_expect_eq(ps_store_take_in(to, (ps_bytes_t){bytes, piece->span.size}, err), PSD_PROTO);
    cr_expect_str_eq(psd_error_text(err), "a piece has row 4, which is here");
}

/* A head that promises two thousand million rows behind one made the index
 * ready for all of them. */
Test(store_copy, memory_is_taken_for_rows_that_came_not_for_those_promised)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, 1);
    PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(&spec, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *to = partial_store(&spec);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
    ps_store_cursor_t cursor = {0};
    uint64_t before = 0;
    bool is_done = false;

    add(from, from, 8, 1);
    piece = next_piece(from, &cursor, 1000, &is_done);
    cr_assert(ps_store_piece_is_last(piece->span));
    ps_store_u64((uint8_t *)(piece + 1) + 24, 2000000000);
    cr_assert_not(ps_store_piece_is_last(piece->span));
    before = ps_store_footprint(to);
    cr_assert_eq(ps_store_take_in(to, piece->span, NULL), PSD_OK);
    cr_expect_lt(ps_store_footprint(to), before + 100000);
}

/* Deltas that are zero make no entries; the room that they were given at birth
 * stayed with the row, without a bound that a new copy could check. */
Test(store_copy, a_row_keeps_no_room_for_entries_it_does_not_have)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_SPARSE, PS_TYPE_F32, 0, 1000);
    PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(&spec, 0);
    PSD_AUTO(ps_store_destroy) ps_store_t *to = partial_store(&spec);
    ps_store_cursor_t cursor = {0};
    uint32_t columns[900];
    double values[900] = {0};

    for (uint32_t i = 0; i < 900; i++) {
        columns[i] = i;
    }
    values[500] = 7;
    kit_apply(from, kit_sparse(PS_TYPE_F32, 2, 900, columns, values));
    kit_apply(from, kit_sparse(PS_TYPE_F32, 3, 2, columns, values));
    cr_expect(move(from, to, &cursor, 1000));
    cr_expect_eq(kit_value(to, PS_TYPE_F32, 2, 500), 7);
    cr_expect_lt(ps_store_bytes(from).values, 200);
    cr_expect_eq(ps_store_bytes(to).values, ps_store_bytes(from).values);
}

/* The rows in front of the one for which there was no memory stay. */
Test(store_copy, goes_on_behind_what_it_had_memory_for)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_SPARSE, PS_TYPE_F32, 0, 4);
    PSD_AUTO(ps_store_destroy) ps_store_t *from = kit_store(&spec, 0);
    uint64_t most = 0;

    for (uint64_t row = 0; row < 9; row++) {
        double one = 1;
        const uint32_t column = 2;

        kit_apply(from, kit_sparse(PS_TYPE_F32, row, 1, &column, &one));
    }
    for (size_t at = 0; most < 9; at++) {
        PSD_AUTO(ps_store_destroy) ps_store_t *to = partial_store(&spec);
        PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
        ps_store_cursor_t cursor = {0};
        bool is_done = false;
        psd_status_t rc = PSD_OK;

        piece = next_piece(from, &cursor, 10000, &is_done);
        fail_alloc_at(at);
        rc = ps_store_take_in(to, piece->span, NULL);
        cr_assert_eq(rc, fail_alloc_happened() ? PSD_NOMEM : PSD_OK);
        fail_alloc_off();
        most = ps_store_n_taken(to);
        cr_assert(rc != PSD_OK || most == 9);
        cursor.next = most;
        cr_assert(rc == PSD_OK || move(from, to, &cursor, 10000));
        ps_store_set_partial(to, false);
        for (uint64_t row = 0; row < 9; row++) {
            cr_assert_eq(kit_value(to, PS_TYPE_F32, row, 2), 1);
        }
    }
}

Test(store_copy, sparse_rows_are_checked)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_SPARSE, PS_TYPE_F32, 0, 4);

    expect_refused(&spec, HEAD + 16, 1, 0,
                   "row 2 of a piece has flags 1, version 0, which no row of "
                   "this table has");
    expect_refused(&spec, HEAD + 8, 9, 0,
                   "row 2 of a piece has flags 0, version 9, which no row of "
                   "this table has");
    expect_refused(&spec, HEAD + 24, 5, 0,
                   "row 2 of a piece has 2 entries and room for 5; allowed: "
                   "at most 4");
    spec.n_cols = 1000;
    expect_refused(&spec, HEAD + 24, 8, 0,
                   "row 2 of a piece has 2 entries and room for 8; allowed: "
                   "at most 7");
    spec.n_cols = 4;
    expect_refused(&spec, HEAD + 24, 1, 0,
                   "row 2 of a piece has 2 entries and room for 1; allowed: "
                   "at most 4");
    expect_refused(&spec, HEAD + 40, 3, 0,
                   "row 2 of a piece has an entry that is zero, or columns "
                   "that do not ascend within the partition's");
    expect_refused(&spec, HEAD + 44, 4, 0,
                   "row 2 of a piece has an entry that is zero, or columns "
                   "that do not ascend within the partition's");
    expect_refused(&spec, 0, 3, HEAD + 40, "a piece ends inside row 2");
    expect_refused(&spec, 0, 3, HEAD + 49, "a piece of 1 rows has 1 bytes after the last one");
}
