/* SPDX-License-Identifier: Apache-2.0 */
/* model/store/store_image.h: what a store was when the image began comes out, however
 * pushes and changes fall between the pieces, and however the store that takes
 * it is cut. */
#include "store_kit.h"

#include "model/store/store_image.h"
#include "model/store/store_ops.h"
#include "support/fail_alloc.h"

#define N_ROWS 120
#define N_COLS 6
#define EARLY_BYTES (UINT64_C(1) << 30)

typedef struct shape {
    ps_keys_t keys;
    ps_row_format_t format;
    ps_partition_by_t by;
    const char *updater;
    const char *init;
} shape_t;

static const shape_t SHAPES[] = {
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_RANGE, "add", "zero"},
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_RANGE, "adam", "normal:0,1"},
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_RANGE, "adagrad", "zero"},
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_HASH, "adagrad", "uniform:0,1"},
    {PS_KEYS_HASH, PS_ROW_DENSE, PS_PARTITION_BY_RANGE, "ftrl", "zero"},
    {PS_KEYS_HASH, PS_ROW_SPARSE, PS_PARTITION_BY_RANGE, "add", "zero"},
    {PS_KEYS_HASH, PS_ROW_SPARSE, PS_PARTITION_BY_RANGE, "ftrl", "zero"},
    {PS_KEYS_HASH, PS_ROW_AUTO, PS_PARTITION_BY_RANGE, "adagrad", "zero"},
    {PS_KEYS_RANGE, PS_ROW_AUTO, PS_PARTITION_BY_HASH, "add", "zero"},
};
#define N_SHAPES (sizeof SHAPES / sizeof SHAPES[0])

static ps_table_spec_t spec_of(const shape_t *shape, uint32_t n_row_slices, uint32_t n_col_slices)
{
    ps_table_spec_t spec = kit_spec(shape->keys, shape->format, PS_TYPE_F32,
                                    shape->keys == PS_KEYS_RANGE ? N_ROWS : 0, N_COLS);

    cr_assert_eq(ps_updater_spec_parse(shape->updater, &spec.updater, NULL), PSD_OK);
    cr_assert_eq(ps_init_spec_parse(shape->init, &spec.init, NULL), PSD_OK);
    spec.versions = true;
    spec.partition_by = shape->by;
    spec.n_col_slices = n_col_slices;
    spec.n_partitions = n_row_slices * n_col_slices;
    return spec;
}

/* All partitions of a table. */
typedef struct table {
    ps_store_t *stores[16];
    uint32_t n;
} table_t;

static table_t new_table(const ps_table_spec_t *spec)
{
    table_t table = {.n = spec->n_partitions};

    for (uint32_t i = 0; i < table.n; i++) {
        table.stores[i] = kit_store(spec, i);
    }
    return table;
}

static void table_done(table_t *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        ps_store_destroy(&self->stores[i]);
    }
}

/* A key that lies in the store: any of HASH keys are of few, so that rows come
 * again. */
static uint64_t any_row(const ps_store_t *store, const shape_t *shape, ps_rng_t *rng)
{
    uint64_t row = 0;

    do {
        row = ps_rng_below(rng, N_ROWS);
        row = shape->keys == PS_KEYS_HASH ? row * UINT64_C(0x9e3779b97f4a7c15) : row;
    } while (!ps_extent_has_row(ps_store_extent(store), row));
    return row;
}

static double any_value(ps_rng_t *rng)
{
    return (double)ps_rng_below(rng, 9) - 4;
}

/* The same push on all of the stores, which are of one partition. */
static void push_any(ps_store_t *const *stores, size_t n, const shape_t *shape, uint64_t version,
                     ps_rng_t *rng)
{
    const ps_extent_t *extent = ps_store_extent(stores[0]);
    uint32_t width = extent->last_col - extent->first_col + 1;
    uint64_t n_rows = 1 + ps_rng_below(rng, 3);
    bool one_column = ps_rng_below(rng, 2) == 0;
    uint64_t rows[3];
    double values[3 * N_COLS];

    for (size_t i = 0; i < n_rows; i++) {
        rows[i] = any_row(stores[0], shape, rng);
    }
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        values[i] = any_value(rng);
    }
    for (size_t i = 0; i < n; i++) {
        ps_store_stamp(stores[i], version);
        if (shape->format == PS_ROW_DENSE && one_column) {
            kit_push_t push = {.slice = {.type = PS_TYPE_F32,
                                         .cols = PS_COLS_RANGE,
                                         .first_col = extent->first_col,
                                         .n_cols = 1}};

            kit_push_key(&push, rows[0]);
            kit_push_value(&push, values[0]);
            kit_push_close(&push, NULL);
            kit_apply(stores[i], push);
        } else if (shape->format != PS_ROW_DENSE && one_column) {
            uint32_t column = extent->first_col;

            kit_apply(stores[i], kit_sparse(PS_TYPE_F32, rows[0], 1, &column, values));
        } else {
            kit_apply(stores[i], kit_dense(PS_TYPE_F32, n_rows, rows, width, values));
        }
    }
}

/* Halves every row, as an operation on rows where they lie. */
static void scale_all(ps_store_t *store, const shape_t *shape, uint64_t version)
{
    const ps_extent_t *extent = ps_store_extent(store);
    ps_slice_t slice = {.type = PS_TYPE_F32,
                        .rows = PS_ROWS_RANGE,
                        .cols = PS_COLS_ALL,
                        .n_cols = extent->last_col - extent->first_col + 1};
    ps_row_change_t change = {.kind = PS_CHANGE_SCALE_ROWS, .operand = 0.5};
    const ps_bytes_t none = {NULL, 0};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *nothing = ps_payload_new(none, none, none, NULL, NULL);

    slice.n_rows = shape->keys == PS_KEYS_HASH ? UINT64_MAX : N_ROWS;
    ps_store_stamp(store, version);
    cr_assert_eq(ps_store_change(store, &slice, nothing, &change, NULL), PSD_OK);
}

static void put_everywhere(const table_t *to, const ps_payload_t *piece)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t version = 0;

    for (uint32_t i = 0; i < to->n; i++) {
        cr_assert_eq(ps_store_put(to->stores[i], piece->span, &version, err), PSD_OK, "%s",
                     psd_error_text(err));
    }
}

/* Hands the image out in pieces with pushes between them; gives its rows. */
static uint64_t copy_image(ps_store_t *from, const shape_t *shape, uint64_t since,
                           const table_t *to, ps_rng_t *rng)
{
    ps_image_args_t args = {
        .since = since, .early_bytes = EARLY_BYTES, .step_bytes = ps_rng_below(rng, 200)};
    uint64_t version = 1000;
    uint64_t n_rows = 0;
    bool is_done = false;

    cr_assert_eq(ps_store_image_begin(from, &args, NULL), PSD_OK);
    while (!is_done) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;

        for (uint64_t i = ps_rng_below(rng, 4); i > 0; i--) {
            push_any(&from, 1, shape, ++version, rng);
        }
        if (ps_rng_below(rng, 20) == 0) {
            scale_all(from, shape, ++version);
        }
        cr_assert_eq(ps_store_image_next(from, 1 + ps_rng_below(rng, 300), &piece, &is_done, NULL),
                     PSD_OK);
        if (piece != NULL) {
            put_everywhere(to, piece);
        }
    }
    n_rows = ps_store_image_rows(from);
    ps_store_image_end(from);
    return n_rows;
}

/* Rows of a store that changed after each version. */
static uint64_t rows_since(ps_store_t *store, uint64_t since)
{
    ps_image_args_t args = {.since = since, .early_bytes = EARLY_BYTES};
    uint64_t n = 0;
    bool is_done = false;

    cr_assert_eq(ps_store_image_begin(store, &args, NULL), PSD_OK);
    while (!is_done) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;

        cr_assert_eq(ps_store_image_next(store, 1000, &piece, &is_done, NULL), PSD_OK);
    }
    n = ps_store_image_rows(store);
    ps_store_image_end(store);
    return n;
}

static void expect_equal(ps_store_t *one, ps_store_t *two, const shape_t *shape)
{
    const ps_extent_t *extent = ps_store_extent(one);

    for (uint64_t i = 0; i < N_ROWS; i++) {
        uint64_t row = shape->keys == PS_KEYS_HASH ? i * UINT64_C(0x9e3779b97f4a7c15) : i;

        if (!ps_extent_has_row(extent, row)) {
            continue;
        }
        for (uint32_t c = extent->first_col; c <= extent->last_col; c++) {
            double a = kit_value(one, PS_TYPE_F32, row, c);
            double b = kit_value(two, PS_TYPE_F32, row, c);

            cr_assert(a == b, "%s %s row %llu col %u: %g and %g", shape->updater,
                      ps_row_format_name(shape->format), (unsigned long long)row, c, a, b);
        }
    }
}

static void story(const shape_t *shape, uint64_t seed)
{
    ps_rng_t rng = {.state = seed};
    ps_table_spec_t spec = spec_of(shape, 2, 1);
    PSD_AUTO(table_done) table_t from = new_table(&spec);
    PSD_AUTO(table_done) table_t same = new_table(&spec);
    PSD_AUTO(table_done) table_t to = new_table(&spec);

    for (uint32_t p = 0; p < from.n; p++) {
        ps_store_t *both[] = {from.stores[p], same.stores[p]};

        for (uint64_t v = 1; v < 80; v++) {
            push_any(both, 2, shape, v, &rng);
        }
        (void)copy_image(from.stores[p], shape, 0, &to, &rng);
        expect_equal(same.stores[p], to.stores[p], shape);
        for (uint64_t v = 1; v < 80; v += 13) {
            cr_expect_eq(rows_since(same.stores[p], v), rows_since(to.stores[p], v));
        }
        /* updaters' states show in what later pushes make */
        both[0] = to.stores[p];
        for (uint64_t v = 80; v < 120; v++) {
            push_any(both, 2, shape, v, &rng);
        }
        expect_equal(same.stores[p], to.stores[p], shape);
    }
}

Test(store_image, what_the_store_was_comes_out_between_any_pushes)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        for (uint64_t seed = 1; seed <= 12; seed++) {
            story(&SHAPES[i], seed);
        }
    }
}

/* The value of a cell, wherever it lies. */
static double cell(const table_t *table, uint64_t row, uint32_t col)
{
    for (uint32_t i = 0; i < table->n; i++) {
        const ps_extent_t *extent = ps_store_extent(table->stores[i]);

        if (ps_extent_has_row(extent, row) && col >= extent->first_col && col <= extent->last_col) {
            return kit_value(table->stores[i], PS_TYPE_F32, row, col);
        }
    }
    cr_assert_fail("row %llu is nowhere", (unsigned long long)row);
    return 0;
}

Test(store_image, a_table_of_other_partitions_takes_the_same_rows)
{
    static const uint32_t SLICES[][2] = {{1, 1}, {5, 1}, {2, 3}, {3, 2}};

    for (size_t i = 0; i < N_SHAPES; i++) {
        for (size_t k = 0; k < 4; k++) {
            ps_rng_t rng = {.state = i * 10 + k};
            ps_table_spec_t spec = spec_of(&SHAPES[i], 2, 2);
            ps_table_spec_t other = spec_of(&SHAPES[i], SLICES[k][0], SLICES[k][1]);
            PSD_AUTO(table_done) table_t from = new_table(&spec);
            PSD_AUTO(table_done) table_t same = new_table(&spec);
            PSD_AUTO(table_done) table_t to = new_table(&other);

            for (uint32_t p = 0; p < from.n; p++) {
                ps_store_t *both[] = {from.stores[p], same.stores[p]};

                for (uint64_t v = 1; v < 60; v++) {
                    push_any(both, 2, &SHAPES[i], v, &rng);
                }
                (void)copy_image(from.stores[p], &SHAPES[i], 0, &to, &rng);
            }
            for (uint64_t r = 0; r < N_ROWS; r++) {
                uint64_t row =
                    SHAPES[i].keys == PS_KEYS_HASH ? r * UINT64_C(0x9e3779b97f4a7c15) : r;

                for (uint32_t c = 0; c < N_COLS; c++) {
                    cr_assert_eq(cell(&same, row, c), cell(&to, row, c));
                }
            }
        }
    }
}

Test(store_image, base_and_what_changed_since_give_the_rows)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        ps_rng_t rng = {.state = 700 + i};
        ps_table_spec_t spec = spec_of(&SHAPES[i], 1, 1);
        PSD_AUTO(table_done) table_t from = new_table(&spec);
        PSD_AUTO(table_done) table_t same = new_table(&spec);
        PSD_AUTO(table_done) table_t base = new_table(&spec);
        PSD_AUTO(table_done) table_t to = new_table(&spec);
        ps_store_t *three[] = {from.stores[0], same.stores[0], base.stores[0]};
        uint64_t n_all = 0;

        for (uint64_t v = 1; v < 100; v++) {
            push_any(three, 3, &SHAPES[i], v, &rng);
        }
        (void)copy_image(base.stores[0], &SHAPES[i], 0, &to, &rng);
        n_all = rows_since(from.stores[0], 0);
        for (uint64_t v = 100; v < 110; v++) {
            push_any(three, 2, &SHAPES[i], v, &rng);
        }
        cr_expect_lt(copy_image(from.stores[0], &SHAPES[i], 99, &to, &rng), n_all);
        expect_equal(same.stores[0], to.stores[0], &SHAPES[i]);
    }
}

/* Who serves requests between two calls is not kept for longer than a step. */
Test(store_image, a_step_reads_little_and_pieces_are_full)
{
    enum { ROWS = 4000, PIECE = 16384, STEP = 4096, ROW_BYTES = 8 + 4 * N_COLS };
    static double values[ROWS * N_COLS];
    static uint64_t rows[ROWS];
    ps_table_spec_t spec = spec_of(&SHAPES[0], 1, 1);
    ps_image_args_t args = {.early_bytes = EARLY_BYTES, .step_bytes = STEP};
    uint64_t n_rows = 0;
    bool is_done = false;

    spec.n_rows = ROWS;
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        values[i * N_COLS] = 1;
    }
    PSD_AUTO(table_done) table_t from = new_table(&spec);
    kit_apply(from.stores[0], kit_dense(PS_TYPE_F32, ROWS, rows, N_COLS, values));
    cr_assert_eq(ps_store_image_begin(from.stores[0], &args, NULL), PSD_OK);
    while (!is_done) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;

        cr_assert_eq(ps_store_image_next(from.stores[0], PIECE, &piece, &is_done, NULL), PSD_OK);
        cr_expect_leq((ps_store_image_rows(from.stores[0]) - n_rows) * ROW_BYTES, 2 * STEP);
        n_rows = ps_store_image_rows(from.stores[0]);
        cr_expect(piece == NULL || is_done || piece->span.size >= PIECE);
    }
    cr_expect_eq(n_rows, ROWS);
}

Test(store_image, too_many_early_rows_end_the_image_and_not_the_push)
{
    ps_table_spec_t spec = spec_of(&SHAPES[0], 1, 1);
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(table_done) table_t from = new_table(&spec);
    ps_image_args_t args = {.early_bytes = 100};
    ps_payload_t *piece = NULL;
    uint64_t row = 3;
    double values[N_COLS] = {1, 2, 3, 4, 5, 6};
    bool is_done = false;

    kit_apply(from.stores[0], kit_dense(PS_TYPE_F32, 1, &row, N_COLS, values));
    cr_assert_eq(ps_store_image_begin(from.stores[0], &args, NULL), PSD_OK);
    kit_apply(from.stores[0], kit_dense(PS_TYPE_F32, 1, &row, N_COLS, values));
    cr_expect_eq(ps_store_image_next(from.stores[0], 1000, &piece, &is_done, err), PSD_LIMIT);
    cr_expect_not_null(strstr(psd_error_text(err), "allowed: 100"), "%s", psd_error_text(err));
    cr_expect_eq(kit_value(from.stores[0], PS_TYPE_F32, 3, 1), 4);
}

Test(store_image, bytes_that_are_no_piece_are_refused)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        ps_rng_t rng = {.state = 900 + i};
        ps_table_spec_t spec = spec_of(&SHAPES[i], 1, 1);
        PSD_AUTO(table_done) table_t from = new_table(&spec);
        PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
        ps_image_args_t args = {.early_bytes = EARLY_BYTES};
        bool is_done = false;

        for (uint64_t v = 1; v < 30; v++) {
            push_any(from.stores, 1, &SHAPES[i], v, &rng);
        }
        cr_assert_eq(ps_store_image_begin(from.stores[0], &args, NULL), PSD_OK);
        cr_assert_eq(ps_store_image_next(from.stores[0], 100000, &piece, &is_done, NULL), PSD_OK);
        for (size_t n = 1; n < 400 && n < piece->span.size; n++) {
            PSD_AUTO(table_done) table_t to = new_table(&spec);
            PSD_AUTO(ps_free_at)
            uint8_t *bytes = ps_alloc_raw(piece->span.size, 1);
            uint64_t version = 0;
            psd_status_t rc = PSD_OK;

            memcpy(bytes, piece->span.data, piece->span.size);
            bytes[ps_rng_below(&rng, piece->span.size)] ^= (uint8_t)(1 + ps_rng_below(&rng, 255));
            rc = ps_store_put(to.stores[0], (ps_bytes_t){bytes, piece->span.size - n % 2}, &version,
                              NULL);
            cr_assert(rc == PSD_OK || rc == PSD_PROTO);
            cr_assert(rc == PSD_OK ||
                          ps_store_check_piece(to.stores[0],
                                               (ps_bytes_t){bytes, piece->span.size - n % 2},
                                               NULL) == PSD_PROTO,
                      "what is refused when it is set is found before");
        }
        cr_assert_eq(ps_store_check_piece(from.stores[0], piece->span, NULL), PSD_OK);
    }
}
