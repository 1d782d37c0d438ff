/* SPDX-License-Identifier: Apache-2.0 */
/* model/store/store.h: what ps_store_gather hands out, and where it cuts. */
#include "unit/model/store_kit.h"

#include "model/updaters/init.h"
#include "support/fail_alloc.h"

typedef struct answer {
    ps_slice_t slice;
    ps_payload_t *payload;
    uint64_t n_done;
} answer_t;

static void answer_done(answer_t *self)
{
    ps_payload_destroy(&self->payload);
}

/* Asks and frees the question. */
static answer_t ask(ps_store_t *store, kit_push_t pull, size_t max_bytes)
{
    answer_t answer = {.payload = NULL};

    cr_assert_eq(ps_store_check_pull(store, &pull.slice, pull.payload, NULL), PSD_OK);
    cr_assert_eq(ps_store_gather(store, &pull.slice, pull.payload, max_bytes, (ps_room_t){0},
                                 &answer.slice, &answer.payload, &answer.n_done, NULL),
                 PSD_OK);
    kit_push_done(&pull);
    return answer;
}

static double value_of(const answer_t *answer, size_t i)
{
    size_t size = ps_type_size(answer->slice.type);

    cr_assert_lt(i * size, answer->payload->spans[0].size);
    return kit_read(answer->slice.type, answer->payload->spans[0].data + i * size);
}

static kit_push_t range_pull(ps_layout_t layout, uint64_t first, uint64_t n, uint32_t n_cols)
{
    kit_push_t pull = {.slice = {.rows = PS_ROWS_RANGE,
                                 .layout = layout,
                                 .type = PS_TYPE_I64,
                                 .n_rows = n,
                                 .first_row = first,
                                 .n_cols = n_cols}};

    kit_push_close(&pull, NULL);
    return pull;
}

/* Rows whose value is their key modulo 1000, plus 1. */
static ps_store_t *store_with(ps_keys_t keys, ps_row_format_t format, size_t n,
                              const uint64_t *rows)
{
    ps_table_spec_t spec = kit_spec(keys, format, PS_TYPE_I64, keys == PS_KEYS_RANGE ? 1000 : 0, 1);
    ps_store_t *store = kit_store(&spec, 0);

    for (size_t i = 0; i < n; i++) {
        double value = (double)(rows[i] % 1000) + 1;

        kit_apply(store, kit_dense(PS_TYPE_I64, 1, &rows[i], 1, &value));
    }
    return store;
}

Test(store_gather, a_list_comes_back_with_its_keys)
{
    uint64_t rows[3] = {5, 900, 5};
    ps_store_t *store = store_with(PS_KEYS_RANGE, PS_ROW_DENSE, 2, rows);
    PSD_AUTO(answer_done)
    answer_t answer = ask(store, kit_dense(PS_TYPE_I64, 3, rows, 1, NULL), 1000);

    cr_assert_eq(answer.n_done, 3);
    cr_assert_eq(answer.slice.rows, PS_ROWS_ASKED, "they are not named again");
    cr_assert_eq(answer.slice.n_rows, 3);
    cr_assert_eq(answer.slice.n_values, 3);
    cr_assert_eq(answer.payload->keys.size, 0);
    cr_assert_eq(value_of(&answer, 0), 6);
    cr_assert_eq(value_of(&answer, 1), 901);
    cr_assert_eq(value_of(&answer, 2), 6);
    ps_store_destroy(&store);
}

Test(store_gather, a_range_comes_back_as_a_range)
{
    uint64_t rows[2] = {5, 900};
    ps_store_t *store = store_with(PS_KEYS_RANGE, PS_ROW_DENSE, 2, rows);
    PSD_AUTO(answer_done)
    answer_t answer = ask(store, range_pull(PS_LAYOUT_DENSE, 4, 3, 1), 1000);

    cr_assert_eq(answer.n_done, 3);
    cr_assert_eq(answer.slice.rows, PS_ROWS_RANGE);
    cr_assert_eq(answer.slice.first_row, 4);
    cr_assert_eq(answer.payload->keys.size, 0);
    cr_assert_eq(value_of(&answer, 0), 0);
    cr_assert_eq(value_of(&answer, 1), 6);
    cr_assert_eq(value_of(&answer, 2), 0);
    ps_store_destroy(&store);
}

Test(store_gather, the_limit_cuts_between_rows)
{
    uint64_t rows[1] = {5};
    ps_store_t *store = store_with(PS_KEYS_RANGE, PS_ROW_DENSE, 1, rows);
    static const struct {
        size_t max_bytes;
        uint64_t n_rows;
    } cases[] = {{0, 1}, {8, 1}, {15, 1}, {16, 2}, {79, 9}, {80, 10}};

    for (size_t i = 0; i < 6; i++) {
        PSD_AUTO(answer_done)
        answer_t answer = ask(store, range_pull(PS_LAYOUT_DENSE, 0, 10, 1), cases[i].max_bytes);

        cr_assert_eq(answer.n_done, cases[i].n_rows);
        cr_assert_eq(answer.slice.n_rows, cases[i].n_rows);
    }
    ps_store_destroy(&store);
}

Test(store_gather, no_rows_are_no_rows)
{
    static const ps_layout_t layouts[] = {PS_LAYOUT_DENSE, PS_LAYOUT_SPARSE};
    static const ps_keys_t keys[] = {PS_KEYS_RANGE, PS_KEYS_HASH};

    for (size_t i = 0; i < 4; i++) {
        ps_store_t *store = store_with(keys[i / 2], PS_ROW_DENSE, 0, NULL);
        PSD_AUTO(answer_done)
        answer_t answer = ask(store, range_pull(layouts[i % 2], 0, 0, 0), 1000);

        cr_assert_eq(answer.n_done, 0);
        cr_assert_eq(answer.slice.n_rows, 0);
        cr_assert_eq(answer.slice.n_values, 0);
        cr_assert_eq(ps_payload_size(answer.payload), 0);
        ps_store_destroy(&store);
    }
}

Test(store_gather, sparse_answers_leave_zeros_out)
{
    static const ps_row_format_t formats[] = {PS_ROW_DENSE, PS_ROW_SPARSE, PS_ROW_AUTO};

    for (size_t f = 0; f < 3; f++) {
        ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, formats[f], PS_TYPE_F64, 10, 2000);
        ps_store_t *store = kit_store(&spec, 0);
        uint32_t columns[2] = {3, 1999};
        double values[2] = {0.5, -1};

        kit_apply(store, kit_sparse(PS_TYPE_F64, 4, 2, columns, values));
        {
            PSD_AUTO(answer_done)
            answer_t answer = ask(store, kit_sparse(PS_TYPE_F64, 4, 0, NULL, NULL), 1 << 20);

            cr_assert_eq(answer.slice.layout, PS_LAYOUT_SPARSE);
            cr_assert_eq(answer.slice.n_cols, 0);
            cr_assert_eq(answer.slice.n_values, 2);
            cr_assert_eq(answer.payload->index.size, 12);
            cr_assert_eq(ps_load_u32(answer.payload->index.data), 2);
            cr_assert_eq(ps_load_u32(answer.payload->index.data + 4), 3);
            cr_assert_eq(ps_load_u32(answer.payload->index.data + 8), 1999);
            cr_assert_eq(value_of(&answer, 0), 0.5);
            cr_assert_eq(value_of(&answer, 1), -1);
        }
        ps_store_destroy(&store);
    }
}

Test(store_gather, an_absent_row_reads_as_first_values_and_is_not_made)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F64, 0, 700);
    ps_store_t *store = NULL;
    uint64_t key = 12345;
    uint8_t first[700 * 8];

    spec.init = (ps_init_spec_t){.kind = PS_INIT_NORMAL, .a = 0, .b = 1};
    store = kit_store(&spec, 0);
    ps_init_fill(&spec, key, 0, 700, first);
    {
        PSD_AUTO(answer_done)
        answer_t dense = ask(store, kit_dense(PS_TYPE_F64, 1, &key, 700, NULL), 1 << 20);
        PSD_AUTO(answer_done)
        answer_t sparse = ask(store, kit_sparse(PS_TYPE_F64, key, 0, NULL, NULL), 1 << 20);

        cr_assert_arr_eq(dense.payload->spans[0].data, first, sizeof first);
        cr_assert_eq(sparse.slice.n_values, 700);
        cr_assert_arr_eq(sparse.payload->spans[0].data, first, sizeof first);
    }
    cr_assert_eq(ps_store_bytes(store).rows_present, 0);
    cr_assert_eq(ps_store_bytes(store).values, 0);
    ps_store_destroy(&store);
}

Test(store_gather, selected_columns_come_back_with_their_list)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_I64, 10, 4);
    ps_store_t *store = kit_store(&spec, 0);
    uint64_t key = 2;
    double values[4] = {10, 11, 12, 13};
    kit_push_t pull = {.slice = {.type = PS_TYPE_I64, .cols = PS_COLS_LIST, .n_cols = 3}};

    kit_apply(store, kit_dense(PS_TYPE_I64, 1, &key, 4, values));
    kit_push_key(&pull, 2);
    kit_push_key(&pull, 3);
    kit_push_u32(&pull, 3);
    kit_push_u32(&pull, 0);
    kit_push_u32(&pull, 3);
    kit_push_close(&pull, NULL);
    {
        PSD_AUTO(answer_done) answer_t answer = ask(store, pull, 1000);

        cr_assert_eq(answer.slice.cols, PS_COLS_LIST);
        cr_assert_eq(answer.slice.n_values, 6);
        cr_assert_eq(answer.payload->index.size, 12);
        cr_assert_eq(ps_load_u32(answer.payload->index.data + 8), 3);
        cr_assert_eq(value_of(&answer, 0), 13);
        cr_assert_eq(value_of(&answer, 1), 10);
        cr_assert_eq(value_of(&answer, 2), 13);
        cr_assert_eq(value_of(&answer, 5), 0);
    }
    ps_store_destroy(&store);
}

Test(store_gather, a_range_of_hash_keys_gives_those_present)
{
    uint64_t rows[4] = {UINT64_MAX, 7, UINT64_C(1) << 63, 0};
    ps_store_t *store = store_with(PS_KEYS_HASH, PS_ROW_DENSE, 4, rows);
    PSD_AUTO(answer_done)
    answer_t answer = ask(store, range_pull(PS_LAYOUT_DENSE, 0, UINT64_MAX, 1), 1 << 20);

    cr_assert_eq(answer.n_done, UINT64_MAX);
    cr_assert_eq(answer.slice.rows, PS_ROWS_LIST);
    cr_assert_eq(answer.slice.first_row, 0);
    cr_assert_eq(answer.slice.n_rows, 3);
    cr_assert_eq(ps_slice_row(&answer.slice, answer.payload, 0), 0);
    cr_assert_eq(ps_slice_row(&answer.slice, answer.payload, 1), 7);
    cr_assert_eq(ps_slice_row(&answer.slice, answer.payload, 2), UINT64_C(1) << 63);
    cr_assert_eq(value_of(&answer, 1), 8);
    {
        PSD_AUTO(answer_done)
        answer_t last = ask(store, range_pull(PS_LAYOUT_DENSE, UINT64_MAX, 1, 1), 1 << 20);

        cr_assert_eq(last.n_done, 1);
        cr_assert_eq(last.slice.n_rows, 1);
        cr_assert_eq(ps_slice_row(&last.slice, last.payload, 0), UINT64_MAX);
    }
    ps_store_destroy(&store);
}

Test(store_gather, an_empty_range_of_hash_keys_is_done_at_once)
{
    uint64_t rows[1] = {50};
    ps_store_t *store = store_with(PS_KEYS_HASH, PS_ROW_SPARSE, 1, rows);
    PSD_AUTO(answer_done)
    answer_t answer = ask(store, range_pull(PS_LAYOUT_SPARSE, 51, UINT64_MAX - 50, 0), 0);

    cr_assert_eq(answer.n_done, UINT64_MAX - 50);
    cr_assert_eq(answer.slice.n_rows, 0);
    cr_assert_eq(answer.slice.rows, PS_ROWS_LIST);
    ps_store_destroy(&store);
}

/* A range of all columns carries no bytes, and so may come without a payload.
 */
Test(store_gather, a_range_needs_no_payload)
{
    static const ps_keys_t keys[] = {PS_KEYS_RANGE, PS_KEYS_HASH};
    static const ps_layout_t layouts[] = {PS_LAYOUT_DENSE, PS_LAYOUT_SPARSE};
    uint64_t row = 50;

    for (size_t i = 0; i < 4; i++) {
        ps_store_t *store = store_with(keys[i / 2], PS_ROW_DENSE, 1, &row);
        ps_slice_t want = {.rows = PS_ROWS_RANGE,
                           .layout = layouts[i % 2],
                           .type = PS_TYPE_I64,
                           .n_rows = 10,
                           .first_row = 50,
                           .n_cols = layouts[i % 2] == PS_LAYOUT_DENSE};
        PSD_AUTO(answer_done) answer_t answer = {.payload = NULL};

        cr_assert_eq(ps_store_check_pull(store, &want, NULL, NULL), PSD_OK);
        cr_assert_eq(ps_store_gather(store, &want, NULL, 1000, (ps_room_t){0}, &answer.slice,
                                     &answer.payload, &answer.n_done, NULL),
                     PSD_OK);
        cr_assert_eq(answer.n_done, 10);
        cr_assert_eq(value_of(&answer, 0), 51);
        ps_store_destroy(&store);
    }
}

/* 3,000 keys anywhere, page by page: each once, ascending, with progress. */
static void walk_all(ps_layout_t layout, size_t max_bytes)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_AUTO, PS_TYPE_I64, 0, 1);
    ps_store_t *store = kit_store(&spec, 0);
    ps_rng_t rng = {4};
    uint64_t first = 0;
    uint64_t left = UINT64_MAX;
    uint64_t before = 0;
    size_t n_seen = 0;

    for (int i = 0; i < 3000; i++) {
        uint64_t key = ps_rng_u64(&rng) | 1;
        double value = (double)(key % 1000) + 1;

        kit_apply(store, kit_dense(PS_TYPE_I64, 1, &key, 1, &value));
    }
    while (left > 0) {
        PSD_AUTO(answer_done)
        answer_t answer =
            ask(store, range_pull(layout, first, left, layout == PS_LAYOUT_DENSE), max_bytes);

        cr_assert_gt(answer.n_done, 0);
        cr_assert_leq(answer.n_done, left);
        cr_assert(answer.slice.n_rows <= 1 || ps_payload_size(answer.payload) <= max_bytes);
        for (uint64_t i = 0; i < answer.slice.n_rows; i++) {
            uint64_t key = ps_slice_row(&answer.slice, answer.payload, i);

            cr_assert_gt(key, before);
            cr_assert_eq(value_of(&answer, i), (double)(key % 1000) + 1);
            before = key;
            n_seen++;
        }
        first += answer.n_done;
        left -= answer.n_done;
    }
    cr_assert_eq(n_seen, 3000);
    ps_store_destroy(&store);
}

Test(store_gather, pages_over_all_keys_meet_each_once)
{
    walk_all(PS_LAYOUT_DENSE, 0);
    walk_all(PS_LAYOUT_DENSE, 1000);
    walk_all(PS_LAYOUT_DENSE, SIZE_MAX);
    walk_all(PS_LAYOUT_SPARSE, 0);
    walk_all(PS_LAYOUT_SPARSE, 1000);
    walk_all(PS_LAYOUT_SPARSE, SIZE_MAX);
}

/* 16 bytes for one row would do; 1.5 TiB must not be asked for. */
Test(store_gather, only_what_fits_is_taken_memory_for)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_I64, UINT64_C(1) << 37, 1);
    ps_store_t *store = kit_store(&spec, 0);
    PSD_AUTO(answer_done)
    answer_t answer = ask(store, range_pull(PS_LAYOUT_DENSE, 0, UINT64_C(1) << 37, 1), 4096);

    cr_assert_eq(answer.n_done, 512);
    ps_store_destroy(&store);
}

/* ASan ends a program that asks malloc for too much, so this one pretends. */
Test(store_gather, a_reply_larger_than_memory_is_an_error)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_I64, UINT64_C(1) << 40, 2);
    ps_store_t *store = kit_store(&spec, 0);
    kit_push_t pull = range_pull(PS_LAYOUT_DENSE, 0, UINT64_C(1) << 40, 2);
    ps_payload_t *reply = NULL;
    ps_slice_t got;
    uint64_t n_done = 5;

    fail_alloc_at(0);
    cr_assert_eq(ps_store_gather(store, &pull.slice, pull.payload, SIZE_MAX / 2, (ps_room_t){0},
                                 &got, &reply, &n_done, err),
                 PSD_NOMEM);
    fail_alloc_off();
    cr_assert_str_eq(psd_error_text(err), "no memory to read 1099511627776 rows");
    cr_assert_null(reply);
    cr_assert_eq(n_done, 5);
    kit_push_done(&pull);
    ps_store_destroy(&store);
}

#define WIDE_ROWS 5000 /* of 64 floats: more than a cache holds */
#define WIDE_COLS 64
#define WIDE_BYTES ((size_t)WIDE_ROWS * WIDE_COLS * sizeof(float))

/* Keys from first_key on in steps of 2, and values that say which they are. */
static ps_payload_t *wide_rows(uint64_t first_key, bool with_values)
{
    uint8_t *bytes = NULL;
    ps_payload_t *payload =
        ps_payload_room(WIDE_ROWS * sizeof(uint64_t), 0, with_values ? WIDE_BYTES : 0, &bytes);

    cr_assert_not_null(payload);
    for (size_t i = 0; i < WIDE_ROWS; i++) {
        ps_store_u64(bytes + i * sizeof(uint64_t), first_key + 2 * i);
    }
    bytes += WIDE_ROWS * sizeof(uint64_t);
    for (size_t i = 0; with_values && i < WIDE_BYTES / sizeof(float); i++) {
        ps_store_f32(bytes + i * sizeof(float), (float)i);
    }
    return payload;
}

/* Every second row asked for is there, whatever the room's alignment. */
static void gather_wide(ps_store_t *store, const ps_slice_t *slice, uint8_t *room)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *known = wide_rows(0, false);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *unknown = wide_rows(1, false);
    const ps_payload_t *asked[] = {known, unknown};

    for (size_t k = 0; k < 2; k++) {
        answer_t answer = {.payload = NULL};
        ps_room_t place = {.data = room, .size = WIDE_BYTES};

        memset(room, 0xee, WIDE_BYTES);
        cr_assert_eq(ps_store_gather(store, slice, asked[k], SIZE_MAX / 2, place, &answer.slice,
                                     &answer.payload, &answer.n_done, NULL),
                     PSD_OK);
        cr_assert_eq(answer.n_done, WIDE_ROWS);
        cr_assert_eq(answer.payload->spans[0].data, room);
        for (size_t i = 0; i < WIDE_BYTES / sizeof(float); i++) {
            cr_assert_eq(ps_load_f32(room + i * sizeof(float)), k == 0 ? (float)i : 0);
        }
        answer_done(&answer);
    }
}

Test(store_gather, large_answers_of_wide_rows_are_the_same_at_any_alignment)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, WIDE_COLS);
    PSD_AUTO(ps_store_destroy) ps_store_t *store = kit_store(&spec, 0);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *pushed = wide_rows(0, true);
    PSD_AUTO(ps_free_at) uint8_t *memory = ps_alloc(WIDE_BYTES + 128, 1);
    ps_slice_t slice = {.type = PS_TYPE_F32,
                        .n_rows = WIDE_ROWS,
                        .n_cols = WIDE_COLS,
                        .n_values = WIDE_BYTES / sizeof(float)};
    size_t past = (uintptr_t)memory % 64;

    cr_assert_eq(ps_store_push(store, &slice, pushed, NULL), PSD_OK);
    gather_wide(store, &slice, memory + (64 - past));
    gather_wide(store, &slice, memory + (64 - past) + 4);
}
