/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of a clock against the plainest possible computation: for each cell a
 * list of values by position, added up by halves. */
#include <math.h>
#include <stdlib.h>

#include "support/fail_alloc.h"
#include "model/combine/combine.h"
#include "model/combine/combine_check.h"
#include "model/rows/deltas.h"
#include "store_kit.h"

#define ROWS 12
#define COLS 5
#define PUSHES 24
#define POSITIONS 16
#define IN_CELL 512

/* What the test knows of a push: its cells in the order of its slice. */
typedef struct told {
    uint32_t position;
    kit_push_t push;
} told_t;

/* The values of one cell, in order. */
typedef struct values {
    uint32_t positions[IN_CELL];
    uint64_t bits[IN_CELL];
    size_t n;
} values_t;

typedef struct world {
    ps_rng_t rng;
    ps_type_t type;
    uint32_t first_col;
    told_t told[PUSHES];
    size_t n;
    values_t cells[ROWS][COLS];
    bool rows[ROWS];
} world_t;

static const ps_type_t TYPES[] = {PS_TYPE_I32, PS_TYPE_I64, PS_TYPE_F32, PS_TYPE_F64};

/* ---- the plain way ---- */

static uint64_t add_plainly(ps_type_t type, uint64_t a, uint64_t b)
{
    uint8_t left[8], right[8];
    uint64_t bits = 0;

    memcpy(left, &a, sizeof a);
    memcpy(right, &b, sizeof b);
    switch (type) {
    case PS_TYPE_I32:
        ps_store_u32(left, ps_load_u32(left) + ps_load_u32(right));
        break;
    case PS_TYPE_I64:
        ps_store_u64(left, ps_load_u64(left) + ps_load_u64(right));
        break;
    case PS_TYPE_F32:
        ps_store_f32(left, ps_load_f32(left) + ps_load_f32(right));
        break;
    case PS_TYPE_F64:
    default:
        ps_store_f64(left, ps_load_f64(left) + ps_load_f64(right));
        break;
    }
    memcpy(&bits, left, ps_type_size(type));
    return bits;
}

/* By halves of [first, first + n); false: no value is there. */
static bool halve(const values_t *cell, ps_type_t type, uint32_t first, uint32_t n, uint64_t *ret)
{
    uint64_t left = 0;
    uint64_t right = 0;
    bool has_left = false;
    bool has_right = false;

    if (n == 1) {
        for (size_t i = 0; i < cell->n; i++) {
            if (cell->positions[i] == first) {
                *ret = has_left ? add_plainly(type, *ret, cell->bits[i]) : cell->bits[i];
                has_left = true;
            }
        }
        return has_left;
    }
    has_left = halve(cell, type, first, n / 2, &left);
    has_right = halve(cell, type, first + n / 2, n / 2, &right);
    if (has_left && has_right) {
        *ret = add_plainly(type, left, right);
    } else {
        *ret = has_left ? left : right;
    }
    return has_left || has_right;
}

static uint64_t divide_plainly(ps_type_t type, uint64_t bits, uint32_t divisor)
{
    uint8_t at[8];

    memcpy(at, &bits, sizeof bits);
    switch (type) {
    case PS_TYPE_I32:
        ps_store_i32(at, (int32_t)(ps_load_i32(at) / (int64_t)divisor));
        break;
    case PS_TYPE_I64:
        ps_store_i64(at, ps_load_i64(at) / (int64_t)divisor);
        break;
    case PS_TYPE_F32:
        ps_store_f32(at, ps_load_f32(at) / (float)divisor);
        break;
    case PS_TYPE_F64:
    default:
        ps_store_f64(at, ps_load_f64(at) / (double)divisor);
        break;
    }
    memcpy(&bits, at, sizeof bits);
    return bits;
}

/* ---- pushes ---- */

static uint32_t below(world_t *world, uint32_t n)
{
    return (uint32_t)ps_rng_below(&world->rng, n);
}

/* Of very different sizes, so that the order of additions shows. */
static double any_value(world_t *world)
{
    double value = (double)below(world, 2000001) / 1000003 - 1;

    if (world->type == PS_TYPE_I32 || world->type == PS_TYPE_I64) {
        return (double)below(world, 1U << 31) - 0x1p30;
    }
    return ldexp(value, (int)below(world, 40) - 20);
}

static void add_value(world_t *world, told_t *told, uint32_t row, uint32_t col)
{
    values_t *cell = &world->cells[row][col];
    size_t size = ps_type_size(world->type);

    kit_push_value(&told->push, any_value(world));
    cr_assert(cell->n < IN_CELL);
    cell->positions[cell->n] = told->position;
    memcpy(&cell->bits[cell->n], told->push.values.data + told->push.values.size - size, size);
    cell->n++;
}

static void add_dense(world_t *world, told_t *told, const uint32_t *rows, uint32_t n_rows)
{
    ps_slice_t *slice = &told->push.slice;
    uint32_t columns[COLS];

    slice->cols = (ps_cols_kind_t)below(world, 3);
    slice->n_cols = slice->cols == PS_COLS_ALL ? COLS : 1 + below(world, COLS);
    if (slice->cols == PS_COLS_RANGE) {
        slice->first_col = world->first_col + below(world, COLS - slice->n_cols + 1);
    }
    for (uint32_t k = 0; k < slice->n_cols; k++) {
        columns[k] = slice->cols == PS_COLS_LIST    ? below(world, COLS)
                     : slice->cols == PS_COLS_RANGE ? slice->first_col - world->first_col + k
                                                    : k;
        if (slice->cols == PS_COLS_LIST) {
            kit_push_u32(&told->push, world->first_col + columns[k]);
        }
    }
    for (uint32_t i = 0; i < n_rows; i++) {
        for (uint32_t k = 0; k < slice->n_cols; k++) {
            add_value(world, told, rows[i], columns[k]);
        }
    }
}

static void add_sparse(world_t *world, told_t *told, const uint32_t *rows, uint32_t n_rows)
{
    uint32_t sets[ROWS * 2];

    told->push.slice.layout = PS_LAYOUT_SPARSE;
    for (uint32_t i = 0; i < n_rows; i++) {
        sets[i] = below(world, 1U << COLS);
        kit_push_u32(&told->push, (uint32_t)__builtin_popcount(sets[i]));
    }
    for (uint32_t i = 0; i < n_rows; i++) {
        for (uint32_t col = 0; col < COLS; col++) {
            if ((sets[i] >> col & 1) != 0) {
                kit_push_u32(&told->push, world->first_col + col);
                add_value(world, told, rows[i], col);
            }
        }
    }
}

/* alike: all pushes whole and of the same rows. */
static void add_push(world_t *world, uint32_t position, bool alike)
{
    told_t *told = &world->told[world->n++];
    uint32_t rows[ROWS * 2];
    uint32_t n_rows = alike ? ROWS : below(world, ROWS + 3);
    bool is_range = alike || below(world, 2) == 0;

    *told = (told_t){.position = position, .push.slice.type = world->type};
    told->push.slice.rows = is_range ? PS_ROWS_RANGE : PS_ROWS_LIST;
    n_rows = is_range && n_rows > ROWS ? ROWS : n_rows;
    if (is_range) {
        told->push.slice.first_row = alike ? 0 : below(world, ROWS - n_rows + 1);
    }
    for (uint32_t i = 0; i < n_rows; i++) {
        rows[i] = is_range ? (uint32_t)told->push.slice.first_row + i : below(world, ROWS);
        world->rows[rows[i]] = true;
        if (is_range) {
            told->push.slice.n_rows++;
        } else {
            kit_push_key(&told->push, rows[i]);
        }
    }
    if (alike) {
        told->push.slice.n_cols = COLS;
        for (uint32_t i = 0; i < ROWS * COLS; i++) {
            add_value(world, told, i / COLS, i % COLS);
        }
    } else if (below(world, 2) == 0) {
        add_dense(world, told, rows, n_rows);
    } else {
        add_sparse(world, told, rows, n_rows);
    }
    kit_push_close(&told->push, &world->rng);
}

static void make_world(world_t *world, uint64_t seed, bool alike)
{
    uint32_t n_positions = 0;

    memset(world, 0, sizeof *world);
    world->rng = (ps_rng_t){seed + 1};
    n_positions = 1 + below(world, POSITIONS);
    world->type = TYPES[seed % 4];
    world->first_col = alike ? 0 : below(world, 3);
    for (uint32_t position = 0; position < n_positions; position++) {
        uint32_t n = below(world, 3);

        for (uint32_t i = 0; i < n && world->n < PUSHES; i++) {
            add_push(world, position, alike);
        }
    }
}

static void end_world(world_t *world)
{
    for (size_t i = 0; i < world->n; i++) {
        kit_push_done(&world->told[i].push);
    }
}

/* ---- checks ---- */

static ps_combine_args_t args_of(const world_t *world, uint32_t divisor)
{
    return (ps_combine_args_t){
        .type = world->type, .first_col = world->first_col, .width = COLS, .divisor = divisor};
}

/* Every cell of the sum, and no other. */
static void check_sum(const world_t *world, const ps_slice_t *slice, const ps_payload_t *payload,
                      uint32_t divisor, uint64_t seed)
{
    bool seen[ROWS][COLS] = {{false}};
    bool rows[ROWS] = {false};
    ps_deltas_t deltas;

    if (slice->n_rows > 0) {
        deltas = ps_deltas_over(slice, payload, world->first_col);
        while (ps_deltas_next(&deltas)) {
            ps_columns_t columns;
            const uint8_t *values = NULL;
            size_t n = 0;

            cr_assert_not(rows[deltas.row], "seed %lu: row %lu twice", seed, deltas.row);
            rows[deltas.row] = true;
            while ((n = ps_deltas_take(&deltas, &columns, &values)) > 0) {
                for (size_t i = 0; i < n; i++) {
                    uint32_t col = ps_columns_at(columns, i) - world->first_col;
                    size_t size = ps_type_size(world->type);
                    uint64_t wanted = 0;
                    uint64_t bits = 0;

                    memcpy(&bits, values + i * size, size);
                    cr_assert(!seen[deltas.row][col] && halve(&world->cells[deltas.row][col],
                                                              world->type, 0, POSITIONS, &wanted));
                    seen[deltas.row][col] = true;
                    wanted = divide_plainly(world->type, wanted, divisor);
                    cr_assert_eq(bits, wanted, "seed %lu: row %lu col %u: %lx, not %lx", seed,
                                 deltas.row, col, bits, wanted);
                }
            }
        }
    }
    for (uint32_t row = 0; row < ROWS; row++) {
        cr_assert_eq(rows[row], world->rows[row], "seed %lu: row %u", seed, row);
        for (uint32_t col = 0; col < COLS; col++) {
            cr_assert_eq(seen[row][col], world->cells[row][col].n > 0);
        }
    }
}

static size_t parts_of(const world_t *world, ps_combine_part_t *parts)
{
    for (size_t i = 0; i < world->n; i++) {
        parts[i] = (ps_combine_part_t){.first = world->told[i].position,
                                       .n = 1,
                                       .slice = &world->told[i].push.slice,
                                       .payload = world->told[i].push.payload};
    }
    return world->n;
}

static void combine_world(uint64_t seed, bool alike)
{
    world_t world;
    ps_combine_part_t parts[PUSHES];
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_combine_args_t args;
    ps_slice_t slice;
    size_t n = 0;

    make_world(&world, seed, alike);
    n = parts_of(&world, parts);
    args = args_of(&world, 1 + (uint32_t)(seed / 4 % 3));
    cr_assert(ps_combine_fits(parts, n));
    cr_assert_eq(ps_combine(&args, parts, n, &slice, &payload, NULL), PSD_OK);
    check_sum(&world, &slice, payload, args.divisor, seed);
    end_world(&world);
}

Test(combine, any_pushes_are_added_by_halves)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        combine_world(seed, false);
    }
}

Test(combine, pushes_of_the_same_rows_are_added_by_halves)
{
    for (uint64_t seed = 0; seed < 1000; seed++) {
        combine_world(seed, true);
    }
}

/* Somebody else adds up an aligned interval before: the same bits. */
Test(combine, it_does_not_matter_who_adds)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        world_t world;
        ps_combine_part_t parts[PUSHES];
        ps_combine_part_t fewer[PUSHES];
        ps_slice_t slices[PUSHES];
        ps_payload_t *payloads[PUSHES] = {NULL};
        ps_combine_args_t args;
        ps_slice_t slice;
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        size_t n = 0;
        size_t n_fewer = 0;

        make_world(&world, seed, seed % 5 == 0);
        n = parts_of(&world, parts);
        args = args_of(&world, 1);
        for (size_t i = 0, end = 0; i < n; i = end) {
            uint32_t size = 1U << below(&world, 4);
            uint32_t first = parts[i].first / size * size;
            ps_combine_part_t *to = &fewer[n_fewer];
            bool meets = n_fewer > 0 && fewer[n_fewer - 1].first + fewer[n_fewer - 1].n > first;

            size = meets ? 1 : size;
            first = meets ? parts[i].first : first;
            for (end = i; end < n && parts[end].first < first + size; end++) {
            }
            cr_assert(ps_combine_is_interval(first, size));
            cr_assert_eq(
                ps_combine(&args, &parts[i], end - i, &slices[n_fewer], &payloads[n_fewer], NULL),
                PSD_OK);
            *to = (ps_combine_part_t){
                .first = first, .n = size, .slice = &slices[n_fewer], .payload = payloads[n_fewer]};
            n_fewer++;
        }
        cr_assert(ps_combine_fits(fewer, n_fewer));
        cr_assert_eq(ps_combine(&args, fewer, n_fewer, &slice, &payload, NULL), PSD_OK);
        check_sum(&world, &slice, payload, 1, seed);
        for (size_t i = 0; i < n_fewer; i++) {
            ps_payload_destroy(&payloads[i]);
        }
        end_world(&world);
    }
}

/* Whatever rows, columns and layouts the pushes have; and what is not the sum has another check. */
Test(combine, the_check_of_a_sum_is_the_sum_of_the_checks)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        world_t world;
        ps_combine_part_t parts[PUSHES];
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        ps_combine_args_t args;
        ps_slice_t slice;
        uint64_t checks = 0;
        uint64_t one = 0;
        uint64_t check = 0;
        size_t n = 0;

        make_world(&world, seed, seed % 5 == 0);
        n = parts_of(&world, parts);
        args = args_of(&world, 1);
        if (ps_combine_has_check(world.type)) {
            for (size_t i = 0; i < n; i++) {
                check = ps_combine_check(parts[i].slice, parts[i].payload, args.first_col);
                checks += check;
                one = ps_combine_checks_agree(world.type, check, 0) ? one : check;
            }
            cr_assert_eq(ps_combine(&args, parts, n, &slice, &payload, NULL), PSD_OK);
            check = ps_combine_check(&slice, payload, args.first_col);
            cr_assert(ps_combine_checks_agree(world.type, check, checks), "seed %lu", seed);
            cr_assert(one == 0 || (!ps_combine_checks_agree(world.type, check, checks - one) &&
                                   !ps_combine_checks_agree(world.type, check, checks + one)),
                      "seed %lu: a part is missing, or is there twice", seed);
        }
        end_world(&world);
    }
    cr_assert_not(ps_combine_has_check(PS_TYPE_F32));
    cr_assert_not(ps_combine_has_check(PS_TYPE_F64));
}

/* In another row or column, or changed by one, a value has another check. Of 2^63 in any cell it is
 * the same: only its lowest bit is weighed. */
Test(combine, each_cell_has_a_check_of_its_own)
{
    for (uint32_t shift = 0; shift < 48; shift++) {
        const int64_t value = (int64_t)(UINT64_C(1) << shift);
        const int64_t next = value ^ 1;
        const ps_bytes_t none = {NULL, 0};
        const ps_slice_t slice = {.rows = PS_ROWS_RANGE,
                                  .type = PS_TYPE_I64,
                                  .n_rows = 1,
                                  .first_row = 7,
                                  .n_cols = 1,
                                  .n_values = 1};
        ps_slice_t below_it = slice;
        PSD_AUTO(ps_payload_destroy)
        ps_payload_t *payload =
            ps_payload_copy(none, none, (ps_bytes_t){(const uint8_t *)&value, sizeof value});
        PSD_AUTO(ps_payload_destroy)
        ps_payload_t *other =
            ps_payload_copy(none, none, (ps_bytes_t){(const uint8_t *)&next, sizeof next});
        uint64_t check = ps_combine_check(&slice, payload, 0);

        below_it.first_row = 8;
        cr_assert_neq(check, 0);
        cr_assert_neq(check, ps_combine_check(&slice, payload, 1));
        cr_assert_neq(check, ps_combine_check(&below_it, payload, 0));
        cr_assert_neq(check, ps_combine_check(&slice, other, 0));
    }
}

Test(combine, no_rows_are_no_rows)
{
    const ps_combine_args_t args = {.type = PS_TYPE_F32, .width = 1, .divisor = 1};
    const ps_slice_t none = {.rows = PS_ROWS_LIST, .type = PS_TYPE_F32, .n_cols = 1};
    const ps_combine_part_t part = {.n = 1, .slice = &none};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_slice_t slice;

    cr_assert_eq(ps_combine(&args, &part, 1, &slice, &payload, NULL), PSD_OK);
    cr_assert(slice.n_rows == 0 && payload == NULL);
    cr_assert_eq(ps_combine(&args, NULL, 0, &slice, &payload, NULL), PSD_OK);
    cr_assert(slice.n_rows == 0 && payload == NULL);
}

/* -0.0 stays when nobody adds to it: what is absent is not +0.0. */
Test(combine, what_is_absent_is_not_zero)
{
    const ps_combine_args_t args = {.type = PS_TYPE_F64, .width = 1, .divisor = 1};
    const ps_slice_t one = {
        .rows = PS_ROWS_RANGE, .type = PS_TYPE_F64, .n_rows = 1, .n_cols = 1, .n_values = 1};
    const double minus = -0.0;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *value = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                          (ps_bytes_t){(const uint8_t *)&minus, sizeof minus});
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    const ps_combine_part_t part = {.first = 5, .n = 1, .slice = &one, .payload = value};
    ps_slice_t slice;

    cr_assert_eq(ps_combine(&args, &part, 1, &slice, &payload, NULL), PSD_OK);
    cr_assert(signbit(ps_load_f64(payload->spans[0].data)));
}

/* Which of two NaN an addition keeps is not defined. */
Test(combine, there_is_one_nan)
{
    const ps_combine_args_t args = {.type = PS_TYPE_F32, .width = 1, .divisor = 1};
    const uint32_t nans[] = {0xffc00001, 0x7fa12345};
    const ps_slice_t one = {
        .rows = PS_ROWS_RANGE, .type = PS_TYPE_F32, .n_rows = 1, .n_cols = 1, .n_values = 1};
    ps_payload_t *values[2];
    ps_combine_part_t parts[2];

    for (uint32_t i = 0; i < 2; i++) {
        values[i] = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                    (ps_bytes_t){(const uint8_t *)&nans[i], sizeof nans[i]});
        parts[i] = (ps_combine_part_t){.first = i, .n = 1, .slice = &one, .payload = values[i]};
    }
    for (size_t n = 1; n <= 2; n++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        ps_slice_t slice;

        cr_assert_eq(ps_combine(&args, parts, n, &slice, &payload, NULL), PSD_OK);
        cr_assert_eq(ps_load_u32(payload->spans[0].data), 0x7fc00000);
    }
    ps_payload_destroy(&values[0]);
    ps_payload_destroy(&values[1]);
}

Test(combine, intervals_that_do_not_fit)
{
    static const struct {
        uint32_t at[2][2]; /* first, n */
        bool fits;
    } cases[] = {
        {{{0, 1}, {1, 1}}, true},  {{{3, 1}, {3, 1}}, true},     {{{0, 2}, {0, 2}}, false},
        {{{0, 4}, {2, 2}}, false}, {{{0, 4}, {4, 4}}, true},     {{{2, 2}, {0, 1}}, false},
        {{{1, 2}, {4, 1}}, false}, {{{0, 3}, {4, 1}}, false},    {{{0, 0}, {4, 1}}, false},
        {{{0, 2}, {1, 1}}, false}, {{{0, 1}, {4096, 1}}, false}, {{{0, 1}, {2048, 4096}}, false},
        {{{4, 1}, {4, 4}}, false}, {{{0, 1}, {4095, 1}}, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ps_combine_part_t parts[] = {
            {.first = cases[i].at[0][0], .n = cases[i].at[0][1]},
            {.first = cases[i].at[1][0], .n = cases[i].at[1][1]},
        };

        cr_assert_eq(ps_combine_fits(parts, 2), cases[i].fits, "case %zu", i);
    }
}

/* Memory may end at any point: nothing leaks, nothing is returned. */
Test(combine, short_memory)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        world_t world;
        ps_combine_part_t parts[PUSHES];
        ps_combine_args_t args;
        psd_status_t rc = PSD_NOMEM;
        size_t n = 0;

        make_world(&world, seed, seed % 3 == 0);
        n = parts_of(&world, parts);
        args = args_of(&world, 1);
        for (size_t at = 0; rc == PSD_NOMEM; at++) {
            PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
            ps_slice_t slice;

            fail_alloc_at(at);
            rc = ps_combine(&args, parts, n, &slice, &payload, NULL);
            fail_alloc_off();
            cr_assert(rc == PSD_OK || payload == NULL);
        }
        cr_assert_eq(rc, PSD_OK);
        end_world(&world);
    }
}
