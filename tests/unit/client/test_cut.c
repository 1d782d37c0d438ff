/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting calls into slices, and putting answers into place. A small model of
 * the server holds one value for each (row, column); whatever a call is cut
 * into, the model must end up with what the caller meant, every slice must lie
 * in its partition, and what is pulled must come back where it belongs. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/rng.h"
#include "client/slices/cut.h"
#include "model/tables/partition.h"
#include "model/updaters/row_loops.h"
#include "support/seeds.h"
#include "wire/messages/message.h"

#define MODEL_MAX 4096 /* (row, column) pairs pushed in one test */

typedef struct cell {
    uint64_t row;
    uint32_t col;
    double value;
} cell_t;

typedef struct model {
    cell_t cells[MODEL_MAX];
    size_t n;
} model_t;

static double *cell_of(model_t *self, uint64_t row, uint32_t col)
{
    for (size_t i = 0; i < self->n; i++) {
        if (self->cells[i].row == row && self->cells[i].col == col) {
            return &self->cells[i].value;
        }
    }
    cr_assert_lt(self->n, MODEL_MAX);
    self->cells[self->n] = (cell_t){.row = row, .col = col};
    return &self->cells[self->n++].value;
}

/* The bytes of all spans, one after the other. */
static uint8_t *join(const ps_payload_t *payload, size_t size)
{
    uint8_t *all = malloc(size + 1);
    size_t at = 0;

    cr_assert_not_null(all);
    for (size_t i = 0; payload != NULL && i < payload->n_spans; i++) {
        cr_assert_leq(at + payload->spans[i].size, size);
        memcpy(all + at, payload->spans[i].data, payload->spans[i].size);
        at += payload->spans[i].size;
    }
    cr_assert_eq(at, size);
    return all;
}

/* Column j of a dense slice. */
static uint32_t col_of(const ps_cut_t *cut, const ps_extent_t *extent, size_t j)
{
    switch (cut->slice.cols) {
    case PS_COLS_RANGE:
        return cut->slice.first_col + (uint32_t)j;
    case PS_COLS_LIST:
        return ps_load_u32(cut->payload->index.data + 4 * j);
    case PS_COLS_ALL:
    default:
        return extent->first_col + (uint32_t)j;
    }
}

static void check_place(const ps_table_spec_t *spec, const ps_extent_t *extent, uint64_t row,
                        uint32_t col)
{
    cr_assert(ps_extent_has_row(extent, row));
    cr_assert(col >= extent->first_col && col <= extent->last_col);
    cr_assert_lt(col, spec->n_cols);
}

static void check_sizes(const ps_cut_t *cut, bool pushes)
{
    uint64_t keys = 0;
    uint64_t index = 0;
    uint64_t values = 0;

    cr_assert(ps_slice_sizes(&cut->slice, &keys, &index, &values));
    if (cut->slice.layout == PS_LAYOUT_SPARSE && !pushes) {
        index = 0;
    }
    cr_assert_eq(ps_payload_size(cut->payload), keys + index + values);
    if (cut->payload != NULL) {
        cr_assert_eq(cut->payload->keys.size, keys);
        cr_assert_eq(cut->payload->index.size, index);
    }
}

static void apply_dense(model_t *model, const ps_table_spec_t *spec, const ps_cut_t *cut)
{
    ps_extent_t extent = ps_extent_of(spec, cut->partition);
    uint8_t *values = join(cut->payload, cut->slice.n_values * 8);

    for (uint64_t i = 0; i < cut->slice.n_rows; i++) {
        uint64_t row = ps_slice_row(&cut->slice, cut->payload, i);

        for (uint32_t j = 0; j < cut->slice.n_cols; j++) {
            uint32_t col = col_of(cut, &extent, j);

            check_place(spec, &extent, row, col);
            *cell_of(model, row, col) += ps_load_f64(values + (i * cut->slice.n_cols + j) * 8);
        }
    }
    free(values);
}

static void apply_sparse(model_t *model, const ps_table_spec_t *spec, const ps_cut_t *cut)
{
    ps_extent_t extent = ps_extent_of(spec, cut->partition);
    uint8_t *values = join(cut->payload, cut->slice.n_values * 8);
    const uint8_t *counts = cut->payload->index.data;
    const uint8_t *cols = counts + 4 * cut->slice.n_rows;
    size_t at = 0;

    for (uint64_t i = 0; i < cut->slice.n_rows; i++) {
        uint64_t row = ps_slice_row(&cut->slice, cut->payload, i);

        for (uint32_t k = 0; k < ps_load_u32(counts + 4 * i); k++, at++) {
            uint32_t col = ps_load_u32(cols + 4 * at);

            check_place(spec, &extent, row, col);
            *cell_of(model, row, col) += ps_load_f64(values + 8 * at);
        }
    }
    cr_assert_eq(at, cut->slice.n_values);
    free(values);
}

/* What the server would answer to a pull, in spans of odd lengths. */
static void answer(model_t *model, const ps_table_spec_t *spec, ps_cut_t *cut, double *ret_values)
{
    ps_extent_t extent = ps_extent_of(spec, cut->partition);
    size_t n = cut->slice.n_rows * cut->slice.n_cols;
    double *values = malloc(n * 8);
    ps_payload_t *payload = NULL;
    size_t cut_at = n / 3;

    cr_assert_not_null(values);
    for (size_t i = 0; i < n; i++) {
        uint64_t row = ps_slice_row(&cut->slice, cut->payload, i / cut->slice.n_cols);
        uint32_t col = col_of(cut, &extent, i % cut->slice.n_cols);

        check_place(spec, &extent, row, col);
        values[i] = *cell_of(model, row, col);
    }
    payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){(uint8_t *)values, n * 8}, NULL, NULL);
    payload->spans = ps_alloc(2, sizeof *payload->spans);
    payload->n_spans = 2;
    payload->spans[0] = (ps_bytes_t){(uint8_t *)values, cut_at * 8};
    payload->spans[1] = (ps_bytes_t){(uint8_t *)(values + cut_at), (n - cut_at) * 8};
    ps_places_scatter(&cut->places, payload, cut->slice.n_rows, cut->slice.n_cols, 8, ret_values);
    ps_payload_destroy(&payload);
    free(values);
}

/* ---- one random call after the other ------------------------------------- */

typedef struct call {
    ps_table_spec_t spec;
    psd_select_t select;
    uint64_t rows[40];
    uint32_t cols[60];
    uint32_t counts[40];
    uint32_t sparse_cols[40 * 60];
    double values[40 * 60];
    size_t n_values;
} call_t;

static int by_value(const void *left, const void *right)
{
    uint64_t a = ps_load_u64(left);
    uint64_t b = ps_load_u64(right);

    return a < b ? -1 : a > b;
}

static void make_spec(call_t *call, ps_rng_t *rng)
{
    static const uint32_t slices[] = {1, 1, 2, 3, 7};
    ps_table_spec_t *spec = &call->spec;

    ps_table_spec_init(spec);
    (void)snprintf(spec->name, sizeof spec->name, "t");
    spec->type = PS_TYPE_F64;
    spec->keys = ps_rng_below(rng, 3) == 0 ? PS_KEYS_HASH : PS_KEYS_RANGE;
    spec->n_rows = spec->keys == PS_KEYS_RANGE ? 100 : 0;
    spec->n_cols = (uint32_t)ps_rng_below(rng, 60) + 1;
    spec->n_col_slices = ps_rng_below(rng, 2) == 0 ? 1
                         : spec->n_cols < 4        ? 1
                                                   : (uint32_t)ps_rng_below(rng, 3) + 2;
    spec->n_partitions = slices[ps_rng_below(rng, 5)] * spec->n_col_slices;
    if (ps_rng_below(rng, 3) == 0) {
        spec->partition_by = PS_PARTITION_BY_HASH;
    } else if (ps_rng_below(rng, 3) == 0) {
        spec->partition_by = PS_PARTITION_BY_LIST;
        spec->n_boundaries = spec->n_partitions / spec->n_col_slices - 1;
        spec->boundaries = ps_alloc(spec->n_boundaries + 1, 8);
        for (uint32_t i = 0; i < spec->n_boundaries; i++) {
            spec->boundaries[i] = 3 + i * 13;
        }
    }
}

static void make_select(call_t *call, ps_rng_t *rng)
{
    psd_select_t *select = &call->select;
    uint64_t limit = call->spec.keys == PS_KEYS_RANGE ? 100 : UINT64_MAX;
    size_t n = (size_t)ps_rng_below(rng, 40) + 1;

    *select = (psd_select_t){.n_rows = n};
    if (ps_rng_below(rng, 2) == 0) {
        psd_select_row_range(select, ps_rng_below(rng, limit - n + 1), n);
    } else {
        for (size_t i = 0; i < n; i++) {
            call->rows[i] = ps_rng_below(rng, limit);
        }
        if (ps_rng_below(rng, 2) == 0) {
            qsort(call->rows, n, 8, by_value);
        }
        psd_select_rows(select, call->rows, n);
    }
    if (ps_rng_below(rng, 3) == 0) {
        uint32_t first = (uint32_t)ps_rng_below(rng, call->spec.n_cols);

        psd_select_col_range(select, first,
                             (uint32_t)ps_rng_below(rng, call->spec.n_cols - first) + 1);
    } else if (ps_rng_below(rng, 2) == 0) {
        n = (size_t)ps_rng_below(rng, call->spec.n_cols) + 1;
        for (size_t i = 0; i < n; i++) {
            call->cols[i] = (uint32_t)(i * 7 % call->spec.n_cols);
        }
        psd_select_cols(select, call->cols, n);
    }
}

static void make_sparse(call_t *call, ps_rng_t *rng)
{
    size_t at = 0;

    psd_select_all_cols(&call->select);
    for (size_t i = 0; i < call->select.n_rows; i++) {
        call->counts[i] = 0;
        for (uint32_t col = 0; col < call->spec.n_cols; col++) {
            if (ps_rng_below(rng, 4) == 0) {
                call->sparse_cols[at++] = col;
                call->counts[i]++;
            }
        }
    }
    psd_select_sparse(&call->select, call->counts, call->sparse_cols);
    call->n_values = at;
}

static void make_call(call_t *call, uint64_t seed, bool sparse)
{
    ps_rng_t rng = {.state = seed};

    make_spec(call, &rng);
    make_select(call, &rng);
    if (sparse) {
        make_sparse(call, &rng);
    } else {
        call->n_values = call->select.n_rows * ps_select_width(&call->select, &call->spec);
    }
    for (size_t i = 0; i < call->n_values; i++) {
        call->values[i] = (double)ps_rng_below(&rng, 1000);
    }
}

/* What the caller means, without cutting anything. */
static void expect(model_t *model, const call_t *call)
{
    const psd_select_t *select = &call->select;
    size_t width = ps_select_width(select, &call->spec);
    size_t at = 0;

    for (size_t i = 0; i < select->n_rows; i++) {
        size_t n = select->counts != NULL ? select->counts[i] : width;

        for (size_t j = 0; j < n; j++, at++) {
            uint32_t col = select->counts != NULL             ? select->sparse_cols[at]
                           : select->cols_are == PS_COLS_LIST ? select->cols[j]
                                                              : select->first_col + (uint32_t)j;

            *cell_of(model, ps_select_row(select, i), col) += call->values[at];
        }
    }
}

static void check_same(model_t *got, model_t *wanted)
{
    for (size_t i = 0; i < wanted->n; i++) {
        const cell_t *cell = &wanted->cells[i];

        cr_assert_eq(*cell_of(got, cell->row, cell->col), cell->value);
    }
    cr_assert_eq(got->n, wanted->n);
}

/* Duplicated rows make both copies point at one cell, as at the server. */
static void check_pull(const call_t *call, model_t *model, const ps_cut_args_t *like)
{
    ps_cuts_t cuts = {.n = 0};
    ps_cut_args_t args = *like;
    double values[40 * 60] = {0};
    const psd_select_t *select = &call->select;
    size_t width = ps_select_width(select, &call->spec);

    args.values = NULL;
    args.places = true;
    cr_assert_eq(ps_cut(&args, &cuts, NULL), PSD_OK);
    for (size_t i = 0; i < cuts.n; i++) {
        check_sizes(&cuts.items[i], false);
        answer(model, &call->spec, &cuts.items[i], values);
    }
    for (size_t i = 0; i < call->n_values; i++) {
        uint32_t col = select->cols_are == PS_COLS_LIST ? select->cols[i % width]
                                                        : select->first_col + (uint32_t)(i % width);

        cr_assert_eq(values[i], *cell_of(model, ps_select_row(select, i / width), col));
    }
    ps_cuts_done(&cuts);
}

static void run(uint64_t seed, bool sparse)
{
    static call_t call;
    static model_t got;
    static model_t wanted;
    psd_select_t plain;
    ps_cuts_t cuts = {.n = 0};
    ps_cut_args_t args = {.spec = &call.spec,
                          .select = &plain,
                          .values = call.values,
                          .borrow = seed % 2 == 0,
                          .borrow_lists = seed % 4 == 0,
                          .limit_bytes = seed % 5 == 0 ? 300 : 1 << 20};

    got.n = wanted.n = 0;
    make_call(&call, seed, sparse);
    cr_assert_eq(ps_table_spec_check(&call.spec, NULL), PSD_OK);
    cr_assert_eq(ps_select_check(&call.select, &call.spec, call.n_values, &plain, NULL), PSD_OK);
    expect(&wanted, &call);
    cr_assert_eq(ps_cut(&args, &cuts, NULL), PSD_OK);
    for (size_t i = 0; i < cuts.n; i++) {
        const ps_cut_t *cut = &cuts.items[i];

        check_sizes(cut, true);
        cr_assert(args.borrow || !cut->borrows);
        cr_assert(cut->slice.n_rows == 1 || ps_payload_size(cut->payload) <= args.limit_bytes);
        if (sparse) {
            apply_sparse(&got, &call.spec, cut);
        } else {
            apply_dense(&got, &call.spec, cut);
        }
    }
    check_same(&got, &wanted);
    ps_cuts_done(&cuts);
    if (!sparse) {
        check_pull(&call, &got, &args);
    }
    ps_table_spec_done(&call.spec);
}

Test(cut, dense_pushes_mean_the_same_in_slices)
{
    for (uint64_t seed = 0; seed < seeds_of(3000); seed++) {
        run(seed, false);
    }
}

Test(cut, sparse_pushes_mean_the_same_in_slices)
{
    for (uint64_t seed = 0; seed < seeds_of(1000); seed++) {
        run(seed, true);
    }
}

/* ---- single facts -------------------------------------------------------- */

static ps_table_spec_t spec_of(uint64_t n_rows, uint32_t n_cols, uint32_t n_partitions)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    spec.n_rows = n_rows;
    spec.n_cols = n_cols;
    spec.n_partitions = n_partitions;
    spec.n_col_slices = 1;
    (void)snprintf(spec.name, sizeof spec.name, "t");
    return spec;
}

Test(cut, sorted_keys_over_ranges_are_pointed_at)
{
    ps_table_spec_t spec = spec_of(100, 1, 4);
    const uint64_t rows[] = {0, 3, 24, 25, 99};
    const float values[] = {1, 2, 3, 4, 5};
    psd_select_t select = {0};
    ps_cuts_t cuts = {.n = 0};
    ps_cut_args_t args = {.spec = &spec,
                          .select = &select,
                          .values = values,
                          .borrow = true,
                          .borrow_lists = true,
                          .limit_bytes = 1 << 20};

    psd_select_rows(&select, rows, 5);
    cr_assert_eq(ps_cut(&args, &cuts, NULL), PSD_OK);
    cr_assert_eq(cuts.n, 3);
    cr_assert_eq(cuts.items[0].slice.n_rows, 3);
    cr_assert_eq((const void *)cuts.items[0].payload->keys.data, rows);
    cr_assert_eq((const void *)cuts.items[0].payload->spans[0].data, values);
    cr_assert_eq((const void *)cuts.items[1].payload->keys.data, rows + 3);
    cr_assert_eq((const void *)cuts.items[2].payload->spans[0].data, values + 4);
    cr_assert_eq(cuts.items[2].partition, 3);
    cr_assert(cuts.items[0].borrows);
    ps_cuts_done(&cuts);

    args.borrow = args.borrow_lists = false;
    cr_assert_eq(ps_cut(&args, &cuts, NULL), PSD_OK);
    cr_assert_neq((const void *)cuts.items[0].payload->keys.data, rows);
    cr_assert_not(cuts.items[0].borrows);
    ps_cuts_done(&cuts);
}

#define LARGE ((size_t)3 * PS_STREAM_FROM / 2) /* bytes of an answer */

/* Its place may begin anywhere, its pieces end anywhere. */
Test(cut, a_large_answer_is_put_into_place)
{
    const ps_places_t places = {.first = 1, .row_width = 3};
    const size_t ends[] = {0, PS_STREAM_FROM - 1, PS_STREAM_FROM + 6, LARGE};
    uint8_t *from = malloc(LARGE);
    uint8_t *to = malloc(LARGE + 24);
    ps_bytes_t spans[3];
    const ps_payload_t payload = {.spans = spans, .n_spans = 3};

    cr_assert(from != NULL && to != NULL);
    for (size_t i = 0; i < 3; i++) {
        spans[i] = (ps_bytes_t){from + ends[i], ends[i + 1] - ends[i]};
    }
    for (size_t i = 0; i < LARGE; i++) {
        from[i] = (uint8_t)(i * 7 + i / 256);
    }
    memset(to, 0xee, LARGE + 24);
    ps_places_scatter(&places, &payload, LARGE / 12, 3, 4, to);
    cr_assert_eq(memcmp(to + 12, from, LARGE), 0);
    cr_assert_eq(to[11], 0xee);
    cr_assert_eq(to[12 + LARGE], 0xee);
    free(from);
    free(to);
}

Test(cut, no_rows_make_no_slice)
{
    ps_table_spec_t spec = spec_of(100, 1, 4);
    psd_select_t select = {0};
    ps_cuts_t cuts = {.n = 0};
    ps_cut_args_t args = {.spec = &spec, .select = &select, .limit_bytes = 1};

    cr_assert_eq(ps_cut(&args, &cuts, NULL), PSD_OK);
    cr_assert_eq(cuts.n, 0);
    ps_cuts_done(&cuts);
}

Test(cut, a_row_over_the_limit_goes_alone)
{
    ps_table_spec_t spec = spec_of(10, 1000, 1);
    psd_select_t select = {0};
    ps_cuts_t cuts = {.n = 0};
    ps_cut_args_t args = {.spec = &spec, .select = &select, .limit_bytes = 100};

    psd_select_row_range(&select, 2, 3);
    cr_assert_eq(ps_cut(&args, &cuts, NULL), PSD_OK);
    cr_assert_eq(cuts.n, 3);
    cr_assert_eq(cuts.items[2].slice.first_row, 4);
    cr_assert_eq(cuts.items[2].slice.n_rows, 1);
    cr_assert_null(cuts.items[2].payload);
    ps_cuts_done(&cuts);
}

/* status and text of a selection that the table does not have */
static void refuses(const psd_select_t *select, const ps_table_spec_t *spec, size_t n_values,
                    psd_status_t status, const char *part)
{
    psd_error_t *err = psd_error_new();
    psd_select_t plain;

    cr_assert_eq(ps_select_check(select, spec, n_values, &plain, err), status);
    cr_assert_not_null(strstr(psd_error_text(err), part), "%s", psd_error_text(err));
    psd_error_destroy(&err);
}

Test(select, names_what_is_not_there)
{
    ps_table_spec_t spec = spec_of(100, 3, 1);
    const uint64_t rows[] = {5, 100};
    const uint32_t cols[] = {0, 3};
    const uint32_t counts[] = {2, 1};
    const uint32_t entries[] = {2, 1, 0};
    psd_select_t select = {0};

    psd_select_rows(&select, rows, 2);
    refuses(&select, &spec, 6, PSD_RANGE, "row 100 is not in table \"t\"; allowed: 0..99");
    psd_select_rows(&select, NULL, 2);
    refuses(&select, &spec, 6, PSD_INVALID, "rows is NULL");
    psd_select_rows(&select, rows, 1);
    refuses(&select, &spec, 4, PSD_SHAPE, "4 values for 1 rows of 3 columns; allowed: 3");
    psd_select_cols(&select, cols, 2);
    refuses(&select, &spec, 2, PSD_RANGE, "column 3 is not in table \"t\"; allowed: 0..2");
    psd_select_cols(&select, cols, 0);
    refuses(&select, &spec, 0, PSD_INVALID, "no column");
    psd_select_col_range(&select, 2, UINT32_MAX);
    refuses(&select, &spec, 2, PSD_RANGE, "column 4294967296");
    psd_select_all_cols(&select);
    psd_select_row_range(&select, 99, 2);
    refuses(&select, &spec, 6, PSD_RANGE, "row 100");
    psd_select_row_range(&select, UINT64_MAX, 2);
    refuses(&select, &spec, 6, PSD_RANGE, "past the greatest row");
    psd_select_row_range(&select, 0, 2);
    psd_select_sparse(&select, counts, entries);
    refuses(&select, &spec, 3, PSD_SHAPE, "row 0: column 1 comes after column 2");
    refuses(&select, &spec, 1, PSD_SHAPE, "more than the 1 values");
    psd_select_col_range(&select, 0, 1);
    refuses(&select, &spec, 3, PSD_INVALID, "all columns");
}

Test(select, all_rows_of_hash_keys_are_not_known)
{
    ps_table_spec_t spec = spec_of(0, 3, 1);
    psd_select_t select = {0};
    psd_select_t plain;

    spec.keys = PS_KEYS_HASH;
    psd_select_all_rows(&select);
    refuses(&select, &spec, 3, PSD_INVALID, "psd_fetch");
    cr_assert_eq(ps_select_check_places(&select, &spec, &plain, NULL), PSD_OK);
    cr_assert(plain.all_rows);
}
