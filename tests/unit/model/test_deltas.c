/* SPDX-License-Identifier: Apache-2.0 */
/* model/rows/deltas.h: a slice as a sequence of rows. */
#include "model/rows/deltas.h"

#include <criterion/criterion.h>

#include "base/alloc.h"

#define N_SPANS 4

/* The values 0, 1, 2 … cut into spans of 1, 0, 4 and the rest. */
typedef struct cut_values {
    uint8_t bytes[12 * 4];
    ps_bytes_t spans[N_SPANS];
    ps_payload_t payload;
} cut_values_t;

static void cut(cut_values_t *self, size_t n)
{
    static const size_t sizes[] = {1, 0, 4};
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        ps_store_i32(self->bytes + 4 * i, (int32_t)i);
    }
    for (size_t s = 0; s < N_SPANS; s++) {
        size_t size = s < 3 ? sizes[s] : n - at;

        self->spans[s] = (ps_bytes_t){self->bytes + 4 * at, 4 * size};
        at += size;
    }
    self->payload = (ps_payload_t){.spans = self->spans, .n_spans = N_SPANS};
}

Test(deltas, a_row_comes_in_as_many_pieces_as_spans)
{
    cut_values_t values;
    ps_slice_t slice = {.rows = PS_ROWS_RANGE,
                        .type = PS_TYPE_I32,
                        .n_rows = 4,
                        .first_row = 70,
                        .n_cols = 3,
                        .n_values = 12};
    ps_deltas_t deltas;
    int32_t next = 0;

    cut(&values, 12);
    deltas = ps_deltas_over(&slice, &values.payload, 5);
    for (uint64_t row = 70; row < 74; row++) {
        ps_columns_t columns = {0};
        const uint8_t *piece = NULL;
        size_t n = 0;
        uint32_t col = 5;

        cr_assert(ps_deltas_next(&deltas));
        cr_assert_eq(deltas.row, row);
        while ((n = ps_deltas_take(&deltas, &columns, &piece)) > 0) {
            for (size_t i = 0; i < n; i++) {
                cr_assert_eq(ps_columns_at(columns, i), col++);
                cr_assert_eq(ps_load_i32(piece + 4 * i), next++);
            }
        }
        cr_assert_eq(col, 8);
    }
    cr_assert_not(ps_deltas_next(&deltas));
    cr_assert_eq(next, 12);
}

Test(deltas, a_row_may_be_left_in_the_middle)
{
    cut_values_t values;
    ps_slice_t slice = {
        .rows = PS_ROWS_RANGE, .type = PS_TYPE_I32, .n_rows = 4, .n_cols = 3, .n_values = 12};
    ps_deltas_t deltas;
    ps_columns_t columns = {0};
    const uint8_t *piece = NULL;

    cut(&values, 12);
    deltas = ps_deltas_over(&slice, &values.payload, 0);
    cr_assert(ps_deltas_next(&deltas));
    cr_assert_eq(ps_deltas_take(&deltas, &columns, &piece), 1);
    cr_assert(ps_deltas_next(&deltas));
    cr_assert(ps_deltas_next(&deltas));
    cr_assert_eq(ps_deltas_take(&deltas, &columns, &piece), 3);
    cr_assert_eq(ps_load_i32(piece), 6);
}

Test(deltas, sparse_rows_have_their_own_columns)
{
    cut_values_t values;
    static const uint32_t counts[] = {2, 0, 4};
    static const uint32_t columns_sent[] = {1, 8, 0, 3, 4, 9};
    ps_slice_t slice = {.rows = PS_ROWS_RANGE,
                        .layout = PS_LAYOUT_SPARSE,
                        .type = PS_TYPE_I32,
                        .n_rows = 3,
                        .n_values = 6};
    uint8_t index[(3 + 6) * 4];
    ps_deltas_t deltas;
    size_t entry = 0;

    for (size_t i = 0; i < 9; i++) {
        ps_store_u32(index + 4 * i, i < 3 ? counts[i] : columns_sent[i - 3]);
    }
    cut(&values, 6);
    values.payload.index = (ps_bytes_t){index, sizeof index};
    deltas = ps_deltas_over(&slice, &values.payload, 0);
    for (size_t row = 0; row < 3; row++) {
        ps_columns_t columns = {0};
        const uint8_t *piece = NULL;
        size_t n = 0;

        cr_assert(ps_deltas_next(&deltas));
        cr_assert_eq(deltas.n_left, counts[row]);
        while ((n = ps_deltas_take(&deltas, &columns, &piece)) > 0) {
            for (size_t i = 0; i < n; i++, entry++) {
                cr_assert_eq(ps_columns_at(columns, i), columns_sent[entry]);
                cr_assert_eq(ps_load_u32(piece + 4 * i), entry);
            }
        }
    }
    cr_assert_not(ps_deltas_next(&deltas));
    cr_assert_eq(entry, 6);
}

Test(deltas, runs_of_columns)
{
    static const uint32_t numbers[] = {4, 5, 6, 8, 7, 7, 8};
    uint8_t list[sizeof numbers];
    ps_columns_t columns = {.list = list};
    ps_columns_t range = {.first = 3};

    for (size_t i = 0; i < 7; i++) {
        ps_store_u32(list + 4 * i, numbers[i]);
    }
    cr_assert_eq(ps_columns_neighbours(columns, 7), 3);
    cr_assert_eq(ps_columns_neighbours(columns, 2), 2);
    cr_assert_eq(ps_columns_neighbours(ps_columns_from(columns, 3), 4), 1);
    cr_assert_eq(ps_columns_ascending(columns, 7), 4);
    cr_assert_eq(ps_columns_ascending(ps_columns_from(columns, 4), 3), 1);
    cr_assert_eq(ps_columns_ascending(ps_columns_from(columns, 5), 2), 2);
    cr_assert_eq(ps_columns_neighbours(range, 9), 9);
    cr_assert_eq(ps_columns_ascending(range, 9), 9);
    cr_assert_eq(ps_columns_at(ps_columns_from(range, 4), 1), 8);
}
