/* SPDX-License-Identifier: Apache-2.0 */
/* model/store/store.h: values that somebody changes between check and push. */
#include "unit/model/store_kit.h"

#include <math.h>

#include "support/fail_alloc.h"

#define N_ROWS 64
#define N_COLS 200 /* several guarded blocks in a push of all rows */

typedef struct layout {
    ps_keys_t keys;
    ps_row_format_t format;
    ps_rows_kind_t rows;
} layout_t;

static const layout_t LAYOUTS[] = {
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_ROWS_RANGE}, {PS_KEYS_RANGE, PS_ROW_DENSE, PS_ROWS_LIST},
    {PS_KEYS_HASH, PS_ROW_DENSE, PS_ROWS_LIST},   {PS_KEYS_HASH, PS_ROW_SPARSE, PS_ROWS_LIST},
    {PS_KEYS_HASH, PS_ROW_AUTO, PS_ROWS_LIST},
};
#define N_LAYOUTS (sizeof LAYOUTS / sizeof LAYOUTS[0])

/* A push of ones into all rows, or into one column of each. */
static kit_push_t push_of(const layout_t *layout, ps_type_t type, bool one_column)
{
    kit_push_t push = {.slice = {.type = type, .n_cols = N_COLS}};

    if (one_column) {
        push.slice.cols = PS_COLS_RANGE;
        push.slice.first_col = 3;
        push.slice.n_cols = 1;
    }
    for (uint64_t row = 0; row < N_ROWS; row++) {
        kit_push_key(&push, row);
        for (uint32_t i = 0; i < push.slice.n_cols; i++) {
            kit_push_value(&push, 1);
        }
    }
    if (layout->rows == PS_ROWS_RANGE) {
        push.slice.rows = PS_ROWS_RANGE;
        ps_buffer_done(&push.keys);
        push.keys = (ps_buffer_t){.data = NULL};
    }
    kit_push_close(&push, NULL);
    return push;
}

/* The payload's own bytes, to write on as a hostile process would. */
static uint8_t *value_at(const kit_push_t *push, size_t i)
{
    size_t size = ps_type_size(push->slice.type);
    uint8_t *at = NULL;

    /* the kit's block is its own; only the payload sees it as constant */
    memcpy(&at, &push->payload->spans[0].data, sizeof at);
    return at + i * size;
}

/* Returns how many of the values came in; none may be anything but 0 or 1. */
static size_t count_ones(ps_store_t *store, ps_type_t type, const kit_push_t *push)
{
    size_t n = 0;

    for (uint64_t row = 0; row < N_ROWS; row++) {
        for (uint32_t i = 0; i < push->slice.n_cols; i += 1 + i % 7) {
            double value = kit_value(store, type, row, push->slice.first_col + i);

            cr_assert(value == 0 || value == 1, "row %lu is %g", (unsigned long)row, value);
            n += value == 1 ? 1 : 0;
        }
    }
    return n;
}

/* Of layout with a rule that makes 1 of 0 and a delta of 1. */
static void check_turned(const layout_t *layout, ps_updater_kind_t kind, ps_type_t type,
                         bool one_column)
{
    ps_table_spec_t spec = kit_spec(layout->keys, layout->format, type,
                                    layout->keys == PS_KEYS_RANGE ? N_ROWS : 0, N_COLS);
    ps_store_t *store = NULL;
    kit_push_t push = push_of(layout, type, one_column);
    size_t last = push.slice.n_values - 1;

    spec.updater.kind = kind;
    store = kit_store(&spec, 0);
    push.payload->shared = true;
    cr_assert_eq(ps_store_check_push(store, &push.slice, push.payload, NULL), PSD_OK);
    kit_write(type, value_at(&push, last), (double)NAN);
    cr_assert_eq(ps_store_push(store, &push.slice, push.payload, NULL), PSD_OK);
    (void)count_ones(store, type, &push);
    cr_assert_eq(kit_value(store, type, N_ROWS - 1, push.slice.first_col + push.slice.n_cols - 1),
                 0, "what turned bad is left out");
    if (layout->format == PS_ROW_DENSE) {
        cr_assert_gt(count_ones(store, type, &push), 0, "only what is around it is");
    }
    kit_push_done(&push);
    ps_store_destroy(&store);
}

Test(store_push, a_value_that_turned_bad_never_reaches_a_row)
{
    for (size_t i = 0; i < N_LAYOUTS; i++) {
        check_turned(&LAYOUTS[i], PS_UPDATER_ADD, PS_TYPE_F32, false);
        check_turned(&LAYOUTS[i], PS_UPDATER_ADD, PS_TYPE_F64, false);
    }
    check_turned(&LAYOUTS[0], PS_UPDATER_ADD, PS_TYPE_F64, true);
    check_turned(&LAYOUTS[2], PS_UPDATER_ADD, PS_TYPE_F32, true);
    for (size_t i = 0; i < 3; i++) { /* dense ones; max has no guarded loop */
        check_turned(&LAYOUTS[i], PS_UPDATER_ASSIGN, PS_TYPE_F32, false);
        check_turned(&LAYOUTS[i], PS_UPDATER_MAX, PS_TYPE_F32, false);
        check_turned(&LAYOUTS[i], PS_UPDATER_MAX, PS_TYPE_F64, true);
    }
}

/* Rows wider than a block are guarded piece by piece. */
Test(store_push, a_wide_row_keeps_its_good_blocks)
{
    enum { WIDE = 10000 };
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, WIDE);
    ps_store_t *store = kit_store(&spec, 0);
    kit_push_t push = {.slice = {.type = PS_TYPE_F32, .n_cols = WIDE}};

    kit_push_key(&push, 7);
    for (uint32_t i = 0; i < WIDE; i++) {
        kit_push_value(&push, 1);
    }
    kit_push_close(&push, NULL);
    push.payload->shared = true;
    kit_write(PS_TYPE_F32, value_at(&push, WIDE / 2), (double)INFINITY);
    cr_assert_eq(ps_store_push(store, &push.slice, push.payload, NULL), PSD_OK);
    cr_assert_eq(kit_value(store, PS_TYPE_F32, 7, 0), 1);
    cr_assert_eq(kit_value(store, PS_TYPE_F32, 7, WIDE / 2), 0);
    cr_assert_eq(kit_value(store, PS_TYPE_F32, 7, WIDE - 1), 1);
    kit_push_done(&push);
    ps_store_destroy(&store);
}

/* So many wide rows that some share a bucket and the byte of their hash: each
 * gets its own deltas, when it is made and when it is found. */
Test(store_push, many_wide_rows_get_their_own_deltas)
{
    enum { MANY = 3000, WIDE = 40 };
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_F32, 0, WIDE);
    ps_store_t *store = kit_store(&spec, 0);

    for (int step = 0; step < 2; step++) {
        kit_push_t push = {.slice = {.type = PS_TYPE_F32, .n_cols = WIDE}};

        for (uint64_t key = 0; key < MANY; key++) {
            kit_push_key(&push, key * 7);
            for (uint32_t i = 0; i < WIDE; i++) {
                kit_push_value(&push, (double)(key + i));
            }
        }
        kit_push_close(&push, NULL);
        push.payload->shared = step == 1;
        cr_assert_eq(ps_store_push(store, &push.slice, push.payload, NULL), PSD_OK);
        kit_push_done(&push);
    }
    cr_assert_eq(ps_store_bytes(store).rows_present, MANY);
    for (uint64_t key = 0; key < MANY; key++) {
        uint32_t col = (uint32_t)(key % WIDE);

        cr_assert_eq(kit_value(store, PS_TYPE_F32, key * 7, col), 2 * (double)(key + col));
    }
    ps_store_destroy(&store);
}

/* Where the table takes anything, nothing is left out. */
Test(store_push, a_table_that_allows_what_is_not_finite_takes_it)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, 1, 2);
    ps_store_t *store = NULL;
    kit_push_t push = {.slice = {.type = PS_TYPE_F32, .n_cols = 2}};

    spec.allow_nonfinite = true;
    store = kit_store(&spec, 0);
    kit_push_key(&push, 0);
    kit_push_value(&push, 1);
    kit_push_value(&push, (double)INFINITY);
    kit_push_close(&push, NULL);
    push.payload->shared = true;
    cr_assert_eq(ps_store_push(store, &push.slice, push.payload, NULL), PSD_OK);
    cr_assert_eq(kit_value(store, PS_TYPE_F32, 0, 0), 1);
    cr_assert(isinf(kit_value(store, PS_TYPE_F32, 0, 1)));
    kit_push_done(&push);
    ps_store_destroy(&store);
}

/* What was seen on arrival is not looked at again. */
Test(store_push, values_that_were_seen_to_be_finite_are_not_looked_at)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F64, 1, 1);
    ps_store_t *store = kit_store(&spec, 0);
    kit_push_t push = {.slice = {.type = PS_TYPE_F64, .n_cols = 1}};

    kit_push_key(&push, 0);
    kit_push_value(&push, (double)NAN);
    kit_push_close(&push, NULL);
    cr_assert_eq(ps_store_check_push(store, &push.slice, push.payload, NULL), PSD_NOT_FINITE);
    push.payload->finite = true;
    cr_assert_eq(ps_store_check_push(store, &push.slice, push.payload, NULL), PSD_OK);
    kit_push_done(&push);
    ps_store_destroy(&store);
}

/* A copy of a shared push into sparse rows takes memory. */
Test(store_push, no_memory_for_a_copy_changes_nothing)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_SPARSE, PS_TYPE_F32, 0, N_COLS);
    ps_store_t *store = kit_store(&spec, 0);
    kit_push_t push = push_of(&LAYOUTS[3], PS_TYPE_F32, false);
    psd_status_t rc = PSD_NOMEM;

    push.payload->shared = true;
    for (size_t at = 0; rc == PSD_NOMEM; at++) {
        fail_alloc_at(at);
        rc = ps_store_push(store, &push.slice, push.payload, NULL);
        fail_alloc_off();
        if (rc == PSD_NOMEM) {
            cr_assert_eq(count_ones(store, PS_TYPE_F32, &push), 0);
            cr_assert_eq(ps_store_bytes(store).rows_present, 0);
        }
    }
    cr_assert_eq(rc, PSD_OK);
    cr_assert_eq(ps_store_bytes(store).rows_present, N_ROWS);
    kit_push_done(&push);
    ps_store_destroy(&store);
}
