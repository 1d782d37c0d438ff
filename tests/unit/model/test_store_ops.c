/* SPDX-License-Identifier: Apache-2.0 */
/* model/store/store_ops.h: every operation over every layout does what a plain array
 * of numbers does. */
#include "unit/model/store_kit.h"

#include <math.h>

#include "model/store/store_ops.h"
#include "support/fail_alloc.h"

#define N_ROWS 40
#define N_COLS 6

typedef struct layout {
    ps_keys_t keys;
    ps_row_format_t format;
    ps_partition_by_t by;
    double first; /* first value */
} layout_t;

/* Every way in which rows can lie. */
static const layout_t LAYOUTS[] = {
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_RANGE, 0},
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_RANGE, 3},
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_HASH, 0},
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_HASH, 2},
    {PS_KEYS_RANGE, PS_ROW_SPARSE, PS_PARTITION_BY_RANGE, 0},
    {PS_KEYS_HASH, PS_ROW_DENSE, PS_PARTITION_BY_RANGE, 0},
    {PS_KEYS_HASH, PS_ROW_DENSE, PS_PARTITION_BY_RANGE, 5},
    {PS_KEYS_HASH, PS_ROW_SPARSE, PS_PARTITION_BY_RANGE, 0},
    {PS_KEYS_HASH, PS_ROW_AUTO, PS_PARTITION_BY_RANGE, 0},
};
#define N_LAYOUTS (sizeof LAYOUTS / sizeof LAYOUTS[0])

/* A store and what is in it. */
typedef struct side {
    ps_store_t *store;
    double cells[N_ROWS][N_COLS];
    bool present[N_ROWS];
    bool here[N_ROWS]; /* the partition holds the row */
} side_t;

static void set_up(side_t *self, const layout_t *layout, ps_type_t type, ps_rng_t *rng)
{
    bool is_range = layout->keys == PS_KEYS_RANGE;
    ps_table_spec_t spec =
        kit_spec(layout->keys, layout->format, type, is_range ? N_ROWS : 0, N_COLS);

    spec.versions = ps_rng_below(rng, 2) == 0;
    spec.partition_by = layout->by;
    spec.n_partitions = layout->by == PS_PARTITION_BY_HASH ? 2 : 1;
    if (layout->first != 0) {
        spec.init = (ps_init_spec_t){.kind = PS_INIT_CONSTANT, .a = layout->first};
    }
    self->store = kit_store(&spec, 0);
    for (size_t row = 0; row < N_ROWS; row++) {
        self->here[row] = ps_extent_has_row(ps_store_extent(self->store), row);
        self->present[row] = is_range && self->here[row];
        for (size_t col = 0; col < N_COLS; col++) {
            self->cells[row][col] = layout->first;
        }
    }
}

/* Some cells of some rows, small whole numbers. */
static void fill_some(side_t *self, ps_type_t type, ps_rng_t *rng)
{
    for (uint64_t row = 0; row < N_ROWS; row++) {
        kit_push_t push = {.slice = {.type = type, .layout = PS_LAYOUT_SPARSE}};
        uint32_t n = 0;

        if (!self->here[row] || ps_rng_below(rng, 3) == 0) {
            continue;
        }
        kit_push_key(&push, row);
        for (int pass = 0; pass < 2; pass++) {
            for (uint32_t col = (uint32_t)row % 3; col < N_COLS; col += 1 + (uint32_t)row % 4) {
                if (pass == 0) {
                    n++;
                    continue;
                }
                kit_push_u32(&push, col);
                kit_push_value(&push, (double)(row + col) - 9);
                self->cells[row][col] += (double)(row + col) - 9;
            }
            if (pass == 0) {
                kit_push_u32(&push, n);
            }
        }
        self->present[row] = true;
        kit_push_close(&push, NULL);
        kit_apply(self->store, push);
    }
}

/* Some rows and columns, named in any of the ways. */
static kit_push_t any_want(const side_t *self, ps_type_t type, ps_rng_t *rng)
{
    kit_push_t want = {.slice = {.type = type, .n_cols = N_COLS}};
    uint64_t cols = ps_rng_below(rng, 3);

    if (cols == 1) {
        want.slice.cols = PS_COLS_RANGE;
        want.slice.first_col = (uint32_t)ps_rng_below(rng, N_COLS);
        want.slice.n_cols = 1 + (uint32_t)ps_rng_below(rng, N_COLS - want.slice.first_col);
    } else if (cols == 2) {
        want.slice.cols = PS_COLS_LIST;
        want.slice.n_cols = 1 + (uint32_t)ps_rng_below(rng, 5);
        for (uint32_t i = 0; i < want.slice.n_cols; i++) {
            kit_push_u32(&want, (uint32_t)ps_rng_below(rng, N_COLS));
        }
    }
    if (ps_rng_below(rng, 2) == 0) {
        want.slice.rows = PS_ROWS_RANGE;
        want.slice.first_row = ps_rng_below(rng, N_ROWS);
        want.slice.n_rows = 1 + ps_rng_below(rng, N_ROWS - want.slice.first_row);
    } else {
        for (int i = 0; i < 12; i++) {
            uint64_t row = ps_rng_below(rng, N_ROWS);

            if (self->here[row]) {
                kit_push_key(&want, row);
            }
        }
    }
    kit_push_close(&want, NULL);
    return want;
}

static uint32_t column(const kit_push_t *want, uint32_t i)
{
    return want->slice.cols == PS_COLS_LIST ? ps_load_u32(want->index.data + 4 * (size_t)i)
                                            : want->slice.first_col + i;
}

/* Every cell, and which rows are there. */
static void check_cells(const side_t *self, ps_type_t type)
{
    uint64_t n_present = 0;

    for (uint64_t row = 0; row < N_ROWS; row++) {
        n_present += self->present[row] ? 1 : 0;
        for (uint32_t col = 0; self->here[row] && col < N_COLS; col++) {
            cr_assert_eq(kit_value(self->store, type, row, col), self->cells[row][col],
                         "row %lu column %u is %g, not "
                         "%g",
                         (unsigned long)row, col, kit_value(self->store, type, row, col),
                         self->cells[row][col]);
        }
    }
    cr_assert_eq(ps_store_bytes(self->store).rows_present, n_present);
}

/* The plain way: row by row, column by column. */
static void plain_change(side_t *self, const side_t *other, const kit_push_t *want,
                         const ps_row_change_t *change)
{
    const ps_slice_t *slice = &want->slice;

    for (uint64_t i = 0; i < slice->n_rows; i++) {
        uint64_t row = ps_slice_row(slice, want->payload, i);
        const bool *counts = change->other != NULL ? other->present : self->present;

        if (!self->here[row] || (slice->rows == PS_ROWS_RANGE && !counts[row])) {
            continue;
        }
        self->present[row] = true;
        for (uint32_t j = 0; j < slice->n_cols; j++) {
            double *cell = &self->cells[row][column(want, j)];

            if (change->kind == PS_CHANGE_SCALE_ROWS) {
                *cell *= change->operand;
            } else if (change->kind == PS_CHANGE_FILL_ROWS) {
                *cell = change->operand;
            } else {
                *cell += change->operand * other->cells[row][column(want, j)];
            }
        }
    }
}

static void check_change(const layout_t *layout, ps_type_t type, ps_rng_t *rng)
{
    side_t self;
    side_t other;

    set_up(&self, layout, type, rng);
    set_up(&other, layout, type, rng);
    fill_some(&self, type, rng);
    fill_some(&other, type, rng);
    for (int kind = PS_CHANGE_SCALE_ROWS; kind <= PS_CHANGE_AXPY_ROWS; kind++) {
        bool is_axpy = kind == PS_CHANGE_AXPY_ROWS;
        bool is_fill = kind == PS_CHANGE_FILL_ROWS;
        bool is_dense = layout->format == PS_ROW_DENSE;
        ps_row_change_t change = {.kind = (ps_change_kind_t)kind,
                                  .operand =
                                      is_fill && !is_dense ? 0 : (double)ps_rng_below(rng, 4) - 1,
                                  .other = is_axpy ? other.store : NULL};
        kit_push_t want = any_want(&self, type, rng);

        cr_assert_eq(ps_store_check_change(self.store, &want.slice, want.payload, &change, NULL),
                     PSD_OK);
        cr_assert_eq(ps_store_change(self.store, &want.slice, want.payload, &change, NULL), PSD_OK);
        plain_change(&self, &other, &want, &change);
        check_cells(&self, type);
        check_cells(&other, type);
        kit_push_done(&want);
    }
    ps_store_destroy(&self.store);
    ps_store_destroy(&other.store);
}

Test(store_ops, changes_are_what_a_plain_array_does)
{
    static const ps_type_t types[] = {PS_TYPE_I32, PS_TYPE_I64, PS_TYPE_F32, PS_TYPE_F64};
    ps_rng_t rng = {3};

    for (size_t i = 0; i < N_LAYOUTS * 4 * 10; i++) {
        check_change(&LAYOUTS[i % N_LAYOUTS], types[i / N_LAYOUTS % 4], &rng);
    }
}

static ps_measure_t plain_measure(const side_t *self, const side_t *other, const kit_push_t *want,
                                  ps_measure_kind_t kind)
{
    const ps_slice_t *slice = &want->slice;
    ps_measure_t measure = {.number = 0};

    for (uint64_t i = 0; i < slice->n_rows; i++) {
        uint64_t row = ps_slice_row(slice, want->payload, i);
        bool counts = slice->rows == PS_ROWS_LIST ||
                      (self->present[row] && (kind != PS_MEASURE_DOT || other->present[row]));

        for (uint32_t j = 0; counts && j < slice->n_cols; j++) {
            double value = self->cells[row][column(want, j)];

            measure.count += value != 0 ? 1 : 0;
            measure.number += kind == PS_MEASURE_SUM   ? value
                              : kind == PS_MEASURE_DOT ? value * other->cells[row][column(want, j)]
                                                       : value * value;
        }
    }
    return measure;
}

/* All pages of a measurement together. */
static ps_measure_t all_pages(const side_t *self, const side_t *other, const kit_push_t *want,
                              ps_measure_kind_t kind, uint64_t max_values)
{
    ps_measure_t sum = {.number = 0};

    while (sum.done < want->slice.n_rows) {
        ps_slice_t page = want->slice;
        ps_payload_t rows = *want->payload;
        ps_measure_t got = {.number = 0};

        page.n_rows -= sum.done;
        if (page.rows == PS_ROWS_RANGE) {
            page.first_row += sum.done;
        } else {
            rows.keys.data += 8 * sum.done;
            rows.keys.size -= 8 * sum.done;
        }
        cr_assert_eq(
            ps_store_measure(self->store, &page, &rows, kind, other->store, max_values, &got, NULL),
            PSD_OK);
        cr_assert_gt(got.done, 0);
        sum.number += got.number;
        sum.count += got.count;
        sum.done += got.done;
    }
    return sum;
}

static void check_measure(const layout_t *layout, ps_type_t type, ps_rng_t *rng)
{
    side_t self;
    side_t other;

    set_up(&self, layout, type, rng);
    set_up(&other, layout, type, rng);
    fill_some(&self, type, rng);
    fill_some(&other, type, rng);
    for (int kind = PS_MEASURE_SUM; kind <= PS_MEASURE_DOT; kind++) {
        kit_push_t want = any_want(&self, type, rng);
        ps_measure_t plain = plain_measure(&self, &other, &want, (ps_measure_kind_t)kind);
        ps_measure_t got =
            all_pages(&self, &other, &want, (ps_measure_kind_t)kind, 1 + ps_rng_below(rng, 100));

        if (kind == PS_MEASURE_NONZEROS) {
            cr_assert_eq(got.count, plain.count);
        } else { /* small whole numbers: exact in any order */
            cr_assert_eq(got.number, plain.number);
        }
        kit_push_done(&want);
    }
    ps_store_destroy(&self.store);
    ps_store_destroy(&other.store);
}

Test(store_ops, measures_are_what_a_plain_array_gives)
{
    static const ps_type_t types[] = {PS_TYPE_I32, PS_TYPE_I64, PS_TYPE_F32, PS_TYPE_F64};
    ps_rng_t rng = {4};

    for (size_t i = 0; i < N_LAYOUTS * 4 * 10; i++) {
        check_measure(&LAYOUTS[i % N_LAYOUTS], types[i / N_LAYOUTS % 4], &rng);
    }
}

/* True when the cell is among the n largest of those wanted: fewer than n come
 * before it. */
static size_t cells_before(const side_t *self, const kit_push_t *want, bool is_sparse, double value,
                           uint64_t row, uint32_t col)
{
    size_t n = 0;

    for (uint64_t i = 0; i < want->slice.n_rows; i++) {
        uint64_t r = want->slice.first_row + i;

        for (uint32_t c = 0; self->present[r] && c < N_COLS; c++) {
            double v = self->cells[r][c];

            if (is_sparse && v == 0) {
                continue;
            }
            n += v > value || (v == value && (r < row || (r == row && c < col))) ? 1 : 0;
        }
    }
    return n;
}

static void check_top(const layout_t *layout, ps_type_t type, ps_rng_t *rng)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *reply = NULL;
    side_t self;
    kit_push_t want = {.slice = {.rows = PS_ROWS_RANGE,
                                 .type = type,
                                 .n_cols = N_COLS,
                                 .first_row = 3,
                                 .n_rows = N_ROWS - 5}};
    uint64_t n = 1 + ps_rng_below(rng, 30);
    uint64_t n_done = 0;
    ps_slice_t got = {0};
    bool is_sparse = layout->format != PS_ROW_DENSE;

    set_up(&self, layout, type, rng);
    fill_some(&self, type, rng);
    kit_push_close(&want, NULL);
    cr_assert_eq(
        ps_store_top(self.store, &want.slice, want.payload, n, 100000, &got, &reply, &n_done, NULL),
        PSD_OK);
    cr_assert_eq(n_done, want.slice.n_rows);
    cr_assert_leq(got.n_rows, n);
    cr_assert_eq(got.layout, PS_LAYOUT_SPARSE);
    for (uint64_t i = 0; i < got.n_rows && layout->format != PS_ROW_AUTO; i++) {
        uint64_t row = ps_slice_row(&got, reply, i);
        uint32_t col = ps_load_u32(reply->index.data + 4 * (got.n_rows + i));
        double value = kit_read(type, reply->spans[0].data + i * ps_type_size(type));

        cr_assert_eq(ps_load_u32(reply->index.data + 4 * i), 1);
        cr_assert_eq(value, self.cells[row][col]);
        cr_assert_eq(cells_before(&self, &want, is_sparse, value, row, col), i);
    }
    kit_push_done(&want);
    ps_store_destroy(&self.store);
}

Test(store_ops, the_largest_values_come_in_order)
{
    static const ps_type_t types[] = {PS_TYPE_I32, PS_TYPE_I64, PS_TYPE_F32, PS_TYPE_F64};
    ps_rng_t rng = {5};

    for (size_t i = 0; i < N_LAYOUTS * 4 * 5; i++) {
        check_top(&LAYOUTS[i % N_LAYOUTS], types[i / N_LAYOUTS % 4], &rng);
    }
}

/* The two stores may have updaters with different states. */
Test(store_ops, states_of_the_updaters_do_not_matter)
{
    static const uint32_t columns[] = {1, 4};
    static const double values[] = {2, -3};
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_SPARSE, PS_TYPE_F64, 0, N_COLS);
    ps_store_t *self = kit_store(&spec, 0);
    ps_store_t *other = NULL;
    ps_row_change_t change = {.kind = PS_CHANGE_AXPY_ROWS, .operand = 2};
    kit_push_t want = {
        .slice = {.rows = PS_ROWS_RANGE, .type = PS_TYPE_F64, .n_cols = N_COLS, .n_rows = 100}};
    ps_measure_t dot = {.number = 0};

    cr_assert_eq(ps_updater_spec_parse("ftrl", &spec.updater, NULL), PSD_OK);
    other = kit_store(&spec, 0);
    kit_push_close(&want, NULL);
    kit_apply(self, kit_sparse(PS_TYPE_F64, 7, 2, columns, values));
    change.other = self;
    cr_assert_eq(ps_store_check_change(other, &want.slice, want.payload, &change, NULL), PSD_OK);
    cr_assert_eq(ps_store_change(other, &want.slice, want.payload, &change, NULL), PSD_OK);
    cr_assert_eq(kit_value(other, PS_TYPE_F64, 7, 1), 4);
    cr_assert_eq(kit_value(other, PS_TYPE_F64, 7, 4), -6);
    cr_assert_eq(
        ps_store_measure(self, &want.slice, want.payload, PS_MEASURE_DOT, other, 1000, &dot, NULL),
        PSD_OK);
    cr_assert_eq(dot.number, 8 + 18);
    kit_push_done(&want);
    ps_store_destroy(&self);
    ps_store_destroy(&other);
}

static void refused(ps_store_t *store, const ps_slice_t *slice, ps_row_change_t change,
                    psd_status_t status, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(ps_store_check_change(store, slice, NULL, &change, err), status);
    cr_assert_str_eq(psd_error_text(err), text);
}

Test(store_ops, what_cannot_be_done_is_refused)
{
    ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_SPARSE, PS_TYPE_I32, 10, 2);
    ps_store_t *store = kit_store(&spec, 0);
    ps_store_t *other = NULL;
    ps_slice_t slice = {.rows = PS_ROWS_RANGE, .type = PS_TYPE_I32, .n_rows = 10, .n_cols = 2};

    spec.n_rows = 11;
    other = kit_store(&spec, 0);
    refused(store, &slice, (ps_row_change_t){.kind = PS_CHANGE_SCALE_ROWS, .operand = 0.5},
            PSD_INVALID,
            "the operand is 0.5; allowed for i32 values are whole numbers of "
            "their range");
    refused(store, &slice, (ps_row_change_t){.kind = PS_CHANGE_SCALE_ROWS, .operand = 0x1p31},
            PSD_INVALID,
            "the operand is 2147483648; allowed for i32 values are whole "
            "numbers of their range");
    refused(store, &slice, (ps_row_change_t){.kind = PS_CHANGE_FILL_ROWS, .operand = 1},
            PSD_INVALID, "rows of format sparse can be filled with 0 only, not with 1");
    refused(store, &slice, (ps_row_change_t){.kind = PS_CHANGE_AXPY_ROWS, .operand = 1},
            PSD_INVALID, "axpy needs a table to add from");
    refused(store, &slice,
            (ps_row_change_t){.kind = PS_CHANGE_AXPY_ROWS, .operand = 1, .other = other}, PSD_SHAPE,
            "the partitions hold rows 0..9 and 0..10; they must be the same");
    refused(store, &slice,
            (ps_row_change_t){.kind = PS_CHANGE_SCALE_ROWS, .operand = (double)INFINITY},
            PSD_NOT_FINITE, "the operand is inf; only finite ones of type i32 are allowed");
    slice.n_rows = 11;
    refused(store, &slice, (ps_row_change_t){.kind = PS_CHANGE_SCALE_ROWS, .operand = 1}, PSD_RANGE,
            "row 10 is outside 0..9");
    ps_store_destroy(&store);
    ps_store_destroy(&other);
}

typedef struct attempt {
    const layout_t *layout;
    int kind;
} attempt_t;

/* One change and one of each measure; what fails leaves every cell. */
static psd_status_t change_or_fail(void *arg)
{
    const attempt_t *attempt = arg;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *reply = NULL;
    ps_rng_t rng = {9};
    side_t self;
    side_t other;
    ps_row_change_t change = {.kind = (ps_change_kind_t)attempt->kind};
    ps_measure_t measure;
    ps_slice_t got;
    uint64_t n_done = 0;
    kit_push_t want;
    psd_status_t rc = PSD_OK;

    /* the kit asserts, so the failure must fall on what is tested */
    fail_alloc_off();
    set_up(&self, attempt->layout, PS_TYPE_F64, &rng);
    set_up(&other, attempt->layout, PS_TYPE_F64, &rng);
    fill_some(&self, PS_TYPE_F64, &rng);
    fill_some(&other, PS_TYPE_F64, &rng);
    want = any_want(&self, PS_TYPE_F64, &rng);
    change.operand = attempt->kind == PS_CHANGE_FILL_ROWS ? 0 : 3;
    change.other = attempt->kind == PS_CHANGE_AXPY_ROWS ? other.store : NULL;
    for (size_t at = 0; rc != PSD_OK || at == 0; at++) {
        fail_alloc_at(at);
        rc = ps_store_change(self.store, &want.slice, want.payload, &change, NULL);
        if (rc == PSD_OK) {
            fail_alloc_off();
            plain_change(&self, &other, &want, &change);
        }
        fail_alloc_off();
        check_cells(&self, PS_TYPE_F64);
    }
    for (size_t at = 0; at == 0 || rc != PSD_OK; at++) {
        fail_alloc_at(at);
        rc = ps_store_measure(self.store, &want.slice, want.payload, PS_MEASURE_DOT, other.store,
                              100, &measure, NULL);
        if (rc == PSD_OK) {
            rc = ps_store_top(self.store, &want.slice, want.payload, 9, 100, &got, &reply, &n_done,
                              NULL);
        }
    }
    fail_alloc_off();
    kit_push_done(&want);
    ps_store_destroy(&self.store);
    ps_store_destroy(&other.store);
    return PSD_OK;
}

Test(store_ops, no_memory_changes_nothing)
{
    for (size_t i = 0; i < N_LAYOUTS; i++) {
        for (int kind = PS_CHANGE_SCALE_ROWS; kind <= PS_CHANGE_AXPY_ROWS; kind++) {
            attempt_t attempt = {&LAYOUTS[i], kind};

            cr_assert_eq(change_or_fail(&attempt), PSD_OK);
        }
    }
}
