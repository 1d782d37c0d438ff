/* SPDX-License-Identifier: Apache-2.0 */
/* One suite for every kind of store: each keys x row format x partitioning x
 * type x updater is driven by random pushes and pulls beside a plain model, a
 * square of cells. */
#include <math.h>

#include "model/updaters/init.h"
#include "model/updaters/updater.h"
#include "model/updaters/updater_rule.h"
#include "support/seeds.h"
#include "unit/model/plain_cell.h"

#define N_ROWS 24
#define N_COLS 11
#define N_ROUNDS 40
#define PUSHES_MAX 3 /* pushes between two looks */

typedef struct world {
    ps_table_spec_t spec;
    ps_store_t *store;
    ps_extent_t extent;
    bool is_scattered;
    uint64_t keys[N_ROWS]; /* ascending */
    bool present[N_ROWS];
    cell_t cells[N_ROWS][N_COLS];
    ps_rng_t rng;
    _Alignas(64) uint8_t room[N_ROWS * N_COLS * 8];
} world_t;

static bool same_value(const world_t *self, const uint8_t *a, const uint8_t *b)
{
    double x = kit_read(self->spec.type, a);
    double y = kit_read(self->spec.type, b);

    if (self->spec.type == PS_TYPE_I32 || self->spec.type == PS_TYPE_I64) {
        return memcmp(a, b, ps_type_size(self->spec.type)) == 0;
    }
    if (self->spec.updater.kind <= PS_UPDATER_ASSIGN) {
        return x == y;
    }
    return fabs(x - y) <= 1e-6 * (1 + fabs(y));
}

/* Keys with neighbours among them, and both ends of what u64 holds. */
static void make_keys(world_t *self)
{
    for (uint64_t i = 0; i < N_ROWS; i++) {
        self->keys[i] = i;
    }
    if (self->spec.keys == PS_KEYS_RANGE) {
        return;
    }
    for (uint64_t i = 1; i < N_ROWS; i++) {
        self->keys[i] = (UINT64_C(1) << 40) + i; /* a run of neighbours */
    }
    for (uint64_t i = N_ROWS / 2; i < N_ROWS; i++) {
        self->keys[i] =
            UINT64_C(0x0a00000000000000) * (i - N_ROWS / 2 + 2) + ps_rng_below(&self->rng, 1000);
    }
    self->keys[N_ROWS - 1] = UINT64_MAX;
}

static uint32_t width_of(const world_t *self)
{
    return self->extent.last_col - self->extent.first_col + 1;
}

/* A random row of the partition; N_ROWS when it has none. */
static size_t any_row(world_t *self)
{
    size_t at = ps_rng_below(&self->rng, N_ROWS);

    for (size_t i = 0; i < N_ROWS; i++) {
        size_t row = (at + i) % N_ROWS;

        if (ps_extent_has_row(&self->extent, self->keys[row])) {
            return row;
        }
    }
    return N_ROWS;
}

static size_t row_of_key(const world_t *self, uint64_t key)
{
    size_t row = 0;

    while (row < N_ROWS && self->keys[row] != key) {
        row++;
    }
    return row;
}

static double any_delta(world_t *self)
{
    bool is_plain = self->spec.updater.kind <= PS_UPDATER_ASSIGN;
    bool is_float = self->spec.type == PS_TYPE_F32 || self->spec.type == PS_TYPE_F64;

    if (ps_rng_below(&self->rng, 4) == 0) {
        return 0;
    }
    if (!is_float && ps_rng_below(&self->rng, 20) == 0) {
        return self->spec.type == PS_TYPE_I32 ? -0x1p31 : -0x1p63; /* wraps */
    }
    if (is_plain) {
        return (double)ps_rng_below(&self->rng, 3) - 1;
    }
    return 4 * ps_rng_f64(&self->rng) - 2;
}

/* Rows: a list with repetitions, or a run of neighbours. */
static void any_rows(world_t *self, ps_slice_t *slice, ps_buffer_t *keys)
{
    size_t row = any_row(self);
    uint64_t n = ps_rng_below(&self->rng, 7);

    slice->rows = ps_rng_below(&self->rng, 3) == 0 ? PS_ROWS_RANGE : PS_ROWS_LIST;
    if (row == N_ROWS) {
        slice->rows = PS_ROWS_LIST;
        return; /* an empty extent takes no rows */
    }
    if (slice->rows == PS_ROWS_LIST) {
        for (; n > 0; n--) {
            cr_assert(ps_buffer_u64(keys, self->keys[any_row(self)]));
            slice->n_rows++;
        }
        return;
    }
    slice->first_row = self->keys[row];
    for (slice->n_rows = 1; slice->n_rows < n; slice->n_rows++) {
        uint64_t key = slice->first_row + slice->n_rows;

        if (key == 0 || row_of_key(self, key) == N_ROWS || !ps_extent_has_row(&self->extent, key)) {
            return;
        }
    }
}

static void any_columns(world_t *self, kit_push_t *push)
{
    uint32_t first = self->extent.first_col;
    uint32_t width = width_of(self);

    push->slice.cols = (ps_cols_kind_t)ps_rng_below(&self->rng, 3);
    push->slice.n_cols = width;
    if (push->slice.cols == PS_COLS_RANGE) {
        uint32_t skip = (uint32_t)ps_rng_below(&self->rng, width);

        push->slice.first_col = first + skip;
        push->slice.n_cols = 1 + (uint32_t)ps_rng_below(&self->rng, width - skip);
    }
    if (push->slice.cols == PS_COLS_LIST) {
        push->slice.n_cols = 1 + (uint32_t)ps_rng_below(&self->rng, 2 * width);
        for (uint32_t i = 0; i < push->slice.n_cols; i++) {
            kit_push_u32(push, first + (uint32_t)ps_rng_below(&self->rng, width));
        }
    }
}

static void any_entries(world_t *self, kit_push_t *push)
{
    ps_buffer_t columns = {0};

    for (uint64_t i = 0; i < push->slice.n_rows; i++) {
        uint32_t n = 0;

        for (uint32_t col = self->extent.first_col; col <= self->extent.last_col; col++) {
            if (ps_rng_below(&self->rng, 3) == 0) {
                cr_assert(ps_buffer_u32(&columns, col));
                kit_push_value(push, any_delta(self));
                n++;
            }
        }
        kit_push_u32(push, n);
    }
    if (columns.size > 0) {
        cr_assert(ps_buffer_append(&push->index, columns.data, columns.size));
    }
    ps_buffer_done(&columns);
}

static kit_push_t any_push(world_t *self)
{
    kit_push_t push = {.slice = {.type = self->spec.type}};

    any_rows(self, &push.slice, &push.keys);
    if (ps_rng_below(&self->rng, 2) == 0) {
        push.slice.layout = PS_LAYOUT_SPARSE;
        any_entries(self, &push);
    } else {
        any_columns(self, &push);
        for (uint64_t i = 0; i < push.slice.n_rows * push.slice.n_cols; i++) {
            kit_push_value(&push, any_delta(self));
        }
        push.slice.n_values = push.slice.n_rows * push.slice.n_cols;
    }
    kit_push_close(&push, &self->rng);
    return push;
}

static uint32_t dense_column(const world_t *self, const kit_push_t *push, uint32_t i)
{
    switch (push->slice.cols) {
    case PS_COLS_LIST:
        return ps_load_u32(push->index.data + 4 * (size_t)i);
    case PS_COLS_RANGE:
        return push->slice.first_col + i;
    case PS_COLS_ALL:
    default:
        return self->extent.first_col + i;
    }
}

/* The push in the model. */
static void plain_push(world_t *self, const kit_push_t *push)
{
    const ps_slice_t *slice = &push->slice;
    size_t size = ps_type_size(self->spec.type);
    const uint8_t *delta = push->values.data;
    size_t entry = 0;

    for (uint64_t i = 0; i < slice->n_rows; i++) {
        uint64_t key = ps_slice_row(slice, push->payload, i);
        size_t row = row_of_key(self, key);
        uint32_t n = slice->n_cols;

        self->present[row] = true;
        if (slice->layout == PS_LAYOUT_SPARSE) {
            n = ps_load_u32(push->index.data + 4 * i);
        }
        for (uint32_t j = 0; j < n; j++, entry++, delta += size) {
            uint32_t col = slice->layout == PS_LAYOUT_SPARSE
                               ? ps_load_u32(push->index.data + 4 * (slice->n_rows + entry))
                               : dense_column(self, push, j);

            plain_apply(&self->spec, &self->cells[row][col], delta);
        }
    }
}

static void push_some(world_t *self)
{
    size_t n = 1 + ps_rng_below(&self->rng, PUSHES_MAX);

    for (size_t i = 0; i < n; i++) {
        kit_push_t push = any_push(self);

        /* values that may change, but do not, are values like others */
        push.payload->shared = ps_rng_below(&self->rng, 2) == 0;
        cr_assert_eq(ps_store_check_push(self->store, &push.slice, push.payload, NULL), PSD_OK);
        cr_assert_eq(ps_store_push(self->store, &push.slice, push.payload, NULL), PSD_OK);
        plain_push(self, &push);
        kit_push_done(&push);
    }
}

/* Is the row among those that a range of a scattered store means? */
static bool is_there(const world_t *self, size_t row)
{
    return ps_extent_has_row(&self->extent, self->keys[row]) &&
           (self->present[row] || self->spec.keys == PS_KEYS_RANGE);
}

/* The row that comes next in what a pull wants; N_ROWS at the end. */
static size_t next_wanted(const world_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                          uint64_t *at)
{
    for (; *at < want->n_rows; (*at)++) {
        size_t row = row_of_key(self, ps_slice_row(want, rows, *at));

        if (want->rows == PS_ROWS_LIST || !self->is_scattered || is_there(self, row)) {
            (*at)++;
            return row;
        }
    }
    return N_ROWS;
}

static void check_dense_row(const world_t *self, const kit_push_t *pull, size_t row,
                            const uint8_t *values)
{
    size_t size = ps_type_size(self->spec.type);

    for (uint32_t j = 0; j < pull->slice.n_cols; j++) {
        uint32_t col = dense_column(self, pull, j);
        const uint8_t *want = self->cells[row][col].value;

        cr_assert(same_value(self, values + j * size, want),
                  "updater %s: row %zu column %u is %.9g, not %.9g",
                  ps_updater_name(self->spec.updater.kind), row, col,
                  kit_read(self->spec.type, values + j * size), kit_read(self->spec.type, want));
    }
}

static void check_sparse_row(const world_t *self, size_t row, uint32_t n, const uint8_t *columns,
                             const uint8_t *values)
{
    size_t size = ps_type_size(self->spec.type);
    uint32_t at = 0;

    for (uint32_t col = self->extent.first_col; col <= self->extent.last_col; col++) {
        const uint8_t *want = self->cells[row][col].value;

        if (kit_read(self->spec.type, want) == 0) {
            continue;
        }
        cr_assert_lt(at, n, "row %zu ends before column %u", row, col);
        cr_assert_eq(ps_load_u32(columns + 4 * (size_t)at), col);
        cr_assert(same_value(self, values + at * size, want));
        at++;
    }
    cr_assert_eq(at, n, "row %zu has %u entries too many", row, n - at);
}

/* One reply against the rows that are wanted from *at on. */
static void check_reply(const world_t *self, const kit_push_t *pull, const ps_slice_t *got,
                        const ps_payload_t *reply, uint64_t *at)
{
    size_t size = ps_type_size(self->spec.type);
    const uint8_t *values = reply->n_spans > 0 ? reply->spans[0].data : NULL;
    const uint8_t *columns = reply->index.data + 4 * got->n_rows;

    cr_assert_eq(got->type, self->spec.type);
    cr_assert_eq(got->layout, pull->slice.layout);
    cr_assert_eq(reply->keys.size, got->rows == PS_ROWS_LIST ? 8 * got->n_rows : 0);
    cr_assert_eq(reply->n_spans > 0 ? reply->spans[0].size : 0, got->n_values * size);
    for (uint64_t i = 0; i < got->n_rows; i++) {
        size_t row = next_wanted(self, &pull->slice, pull->payload, at);

        cr_assert_lt(row, N_ROWS);
        if (got->rows != PS_ROWS_ASKED) {
            cr_assert_eq(ps_slice_row(got, reply, i), self->keys[row]);
        }
        if (got->layout == PS_LAYOUT_DENSE) {
            check_dense_row(self, pull, row, values);
            values += got->n_cols * size;
        } else {
            uint32_t n = ps_load_u32(reply->index.data + 4 * i);

            check_sparse_row(self, row, n, columns, values);
            columns += 4 * (size_t)n;
            values += n * size;
        }
    }
}

/* None, one that is too small for some answers, or one for all of them. */
static ps_room_t any_room(world_t *self)
{
    static const size_t sizes[] = {0, 256, sizeof self->room};

    return (ps_room_t){self->room, sizes[ps_rng_below(&self->rng, 3)]};
}

/* Asks again until everything wanted has come. */
static void check_pull(world_t *self, const kit_push_t *pull, size_t max_bytes)
{
    uint64_t at = 0;   /* rows of the pull that were seen in replies */
    uint64_t done = 0; /* as the store says */
    uint64_t n_rows = pull->slice.n_rows;

    do {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *reply = NULL;
        ps_slice_t want = pull->slice;
        ps_payload_t rows = *pull->payload;
        ps_slice_t got = {0};
        uint64_t n_done = 0;

        want.n_rows -= done;
        if (want.rows == PS_ROWS_RANGE) {
            want.first_row += done;
        } else {
            rows.keys.data += 8 * done;
            rows.keys.size -= 8 * done;
        }
        cr_assert_eq(ps_store_gather(self->store, &want, &rows, max_bytes, any_room(self), &got,
                                     &reply, &n_done, NULL),
                     PSD_OK);
        cr_assert(n_done > 0 || want.n_rows == 0);
        cr_assert(got.n_rows <= 1 || ps_payload_size(reply) <= max_bytes);
        check_reply(self, pull, &got, reply, &at);
        done += n_done;
    } while (done < n_rows);
    cr_assert_eq(done, n_rows);
    cr_assert_eq(next_wanted(self, &pull->slice, pull->payload, &at), N_ROWS);
}

static void pull_some(world_t *self)
{
    static const size_t limits[] = {0, 60, 333, 1 << 20};
    kit_push_t pull = {.slice = {.type = self->spec.type}};

    any_rows(self, &pull.slice, &pull.keys);
    if (pull.slice.n_rows == 0) {
        return;
    }
    if (ps_rng_below(&self->rng, 2) == 0) {
        pull.slice.layout = PS_LAYOUT_SPARSE;
    } else {
        any_columns(self, &pull);
    }
    kit_push_close(&pull, &self->rng);
    cr_assert_eq(ps_store_check_pull(self->store, &pull.slice, pull.payload, NULL), PSD_OK);
    check_pull(self, &pull, limits[ps_rng_below(&self->rng, 4)]);
    kit_push_done(&pull);
}

/* Present rows, and in a SPARSE table exactly one value per entry that is not
 * zero with its state. */
static void check_bytes(const world_t *self)
{
    ps_store_bytes_t bytes = ps_store_bytes(self->store);
    uint64_t n_present = 0;
    uint64_t n_entries = 0;

    for (size_t row = 0; row < N_ROWS; row++) {
        n_present += is_there(self, row) ? 1 : 0;
        for (uint32_t col = self->extent.first_col;
             is_there(self, row) && col <= self->extent.last_col; col++) {
            const cell_t *cell = &self->cells[row][col];

            n_entries += kit_read(self->spec.type, cell->value) != 0 || cell->state[0] != 0 ||
                                 cell->state[1] != 0 || cell->state[2] != 0
                             ? 1
                             : 0;
        }
    }
    cr_assert_eq(bytes.rows_present, n_present);
    cr_assert_eq(bytes.state, bytes.values * plain_n_states(&self->spec));
    if (self->spec.row_format == PS_ROW_SPARSE) {
        cr_assert_eq(bytes.values, n_entries * ps_type_size(self->spec.type));
    }
}

static void run_partition(world_t *self, uint32_t partition)
{
    self->store = kit_store(&self->spec, partition);
    ps_store_set_worker(self->store, 0);
    self->extent = *ps_store_extent(self->store);
    self->is_scattered = self->spec.keys == PS_KEYS_HASH || self->extent.n_slices > 1;
    memset(self->present, 0, sizeof self->present);
    memset(self->cells, 0, sizeof self->cells);
    for (size_t row = 0; row < N_ROWS; row++) {
        for (uint32_t col = 0; col < N_COLS; col++) {
            cell_t *cell = &self->cells[row][col];

            ps_init_fill(&self->spec, self->keys[row], col, 1, cell->value);
            if (self->spec.updater.kind == PS_UPDATER_DCASGD) {
                cell->state[0] = kit_read(self->spec.type, cell->value);
            }
        }
    }
    for (uint64_t round = 0; round < seeds_of(N_ROUNDS); round++) {
        push_some(self);
        pull_some(self);
        pull_some(self);
        check_bytes(self);
    }
    ps_store_destroy(&self->store);
}

static void run_updaters(world_t *self)
{
    bool is_float = self->spec.type == PS_TYPE_F32 || self->spec.type == PS_TYPE_F64;

    for (int kind = PS_UPDATER_ADD; kind <= PS_UPDATER_NESTEROV; kind++) {
        const ps_updater_rule_t *rule = ps_updater_rule_of((ps_updater_kind_t)kind);

        if (kind == PS_UPDATER_PLUGIN || (!is_float && !rule->takes_integers)) {
            continue;
        }
        self->spec.updater = plain_any_updater((ps_updater_kind_t)kind, &self->rng);
        self->spec.init = (ps_init_spec_t){.kind = PS_INIT_ZERO};
        if (self->spec.row_format == PS_ROW_DENSE && kind != PS_UPDATER_FTRL &&
            ps_rng_below(&self->rng, 2) == 0) {
            self->spec.init = (ps_init_spec_t){.kind = PS_INIT_UNIFORM, .a = -4, .b = 4};
        }
        for (uint32_t p = 0; p < self->spec.n_partitions; p++) {
            run_partition(self, p);
        }
    }
}

static void run_partitionings(world_t *self)
{
    static uint64_t boundaries[] = {7, (UINT64_C(1) << 40) + 4};

    for (int by = PS_PARTITION_BY_RANGE; by <= PS_PARTITION_BY_LIST; by++) {
        for (uint32_t col_slices = 1; col_slices <= 2; col_slices++) {
            bool is_list = by == PS_PARTITION_BY_LIST;
            bool is_hash = self->spec.keys == PS_KEYS_HASH;

            self->spec.partition_by = (ps_partition_by_t)by;
            self->spec.n_boundaries = is_list ? 1 : 0;
            self->spec.boundaries = is_list ? &boundaries[is_hash ? 1 : 0] : NULL;
            self->spec.n_col_slices = col_slices;
            self->spec.n_partitions = 2 * col_slices;
            run_updaters(self);
        }
    }
}

static void run(ps_keys_t keys, ps_row_format_t format, uint64_t seed)
{
    for (int type = PS_TYPE_I32; type <= PS_TYPE_F64; type++) {
        world_t *self = ps_alloc(1, sizeof *self);

        cr_assert_not_null(self);
        self->rng.state = seed;
        self->spec =
            kit_spec(keys, format, (ps_type_t)type, keys == PS_KEYS_RANGE ? N_ROWS : 0, N_COLS);
        self->spec.seed = seed;
        make_keys(self);
        run_partitionings(self);
        ps_free(self);
    }
}

#define CONFORMANCE(KEYS, FORMAT, name)          \
    Test(store_conformance, name)                \
    {                                            \
        run(PS_KEYS_##KEYS, PS_ROW_##FORMAT, 1); \
        run(PS_KEYS_##KEYS, PS_ROW_##FORMAT, 2); \
    }

CONFORMANCE(RANGE, DENSE, range_keys_dense_rows)
CONFORMANCE(RANGE, SPARSE, range_keys_sparse_rows)
CONFORMANCE(RANGE, AUTO, range_keys_auto_rows)
CONFORMANCE(HASH, DENSE, hash_keys_dense_rows)
CONFORMANCE(HASH, SPARSE, hash_keys_sparse_rows)
CONFORMANCE(HASH, AUTO, hash_keys_auto_rows)
