/* SPDX-License-Identifier: Apache-2.0 */
/* model/updaters/loops.h: every instruction set that this processor has gives the bits
 * of the plain one, for any length, alignment and value. */
#include "model/updaters/loops.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/cursor.h"
#include "base/rng.h"
#include "model/updaters/row_loops.h"
#include "model/updaters/updater_rule.h"

#define N_RAGGED 77 /* neither a multiple nor less than any vector */

/* Values of any size, with the odd zero, minus zero, infinity and NaN. */
static double rugged(ps_rng_t *rng)
{
    static const double odd[] = {0, -0.0, INFINITY, -INFINITY, NAN, 0x1p-140};
    uint64_t pick = ps_rng_u64(rng) % 40;

    return pick < 6 ? odd[pick] : 40 * ps_rng_f64(rng) - 20;
}

static void fill_rugged(ps_type_t type, uint8_t *bytes, size_t n, ps_rng_t *rng)
{
    for (size_t i = 0; i < n; i++) {
        double value = rugged(rng);
        uint64_t whole = ps_rng_u64(rng);
        float narrow = (float)value;
        size_t size = ps_type_size(type);
        const void *from = type == PS_TYPE_F64   ? (const void *)&value
                           : type == PS_TYPE_F32 ? (const void *)&narrow
                                                 : (const void *)&whole;

        memcpy(bytes + i * size, from, size);
    }
}

/* Room for N_RAGGED values and three states, aligned. */
typedef union room {
    uint8_t bytes[4 * N_RAGGED * 8];
    double aligned;
} room_t;

/* NaN is NaN, whatever its bits. */
static bool same(ps_type_t type, const room_t *a, const room_t *b)
{
    size_t size = ps_type_size(type);

    for (size_t i = 0; i < 4 * (size_t)N_RAGGED; i++) {
        const uint8_t *x = a->bytes + i * size;
        const uint8_t *y = b->bytes + i * size;
        bool both_nan = (type == PS_TYPE_F32 && isnan(ps_load_f32(x)) && isnan(ps_load_f32(y))) ||
                        (type == PS_TYPE_F64 && isnan(ps_load_f64(x)) && isnan(ps_load_f64(y)));

        if (!both_nan && memcmp(x, y, size) != 0) {
            return false;
        }
    }
    return true;
}

static void compare_sets(ps_updater_kind_t kind, ps_type_t type, size_t n)
{
    static ps_bias_t bias = {.alpha = 0.1};
#define NUMBERS        \
    {.alpha = 0.1F,    \
     .beta = 1,        \
     .l1 = 0.2F,       \
     .l2 = 0.1F,       \
     .momentum = 0.9F, \
     .beta1 = 0.9F,    \
     .beta2 = 0.9F,    \
     .rho = 1,         \
     .eps = 1,         \
     .keep = 0.5F,     \
     .lambda = 0.25F,  \
     .bias = &bias}
    ps_numbers_f32_t f32 = NUMBERS;
    ps_numbers_f64_t f64 = NUMBERS;
#undef NUMBERS
    const void *numbers = type == PS_TYPE_F32 ? (const void *)&f32 : (const void *)&f64;
    uint8_t deltas[N_RAGGED * 8 + 1];
    room_t first = {{0}};
    ps_rng_t rng = {kind * 100 + n};

    fill_rugged(type, deltas + 1, N_RAGGED, &rng);
    fill_rugged(type, first.bytes, N_RAGGED, &rng);
    for (size_t i = 1; ps_loops_at(i) != NULL; i++) {
        room_t plain = first;
        room_t wide = first;

        for (int step = 0; step < 3; step++) {
            ps_loops_at(0)->of[kind][type](numbers, plain.bytes,
                                           plain.bytes + N_RAGGED * ps_type_size(type), N_RAGGED,
                                           deltas + 1, n);
            ps_loops_at(i)->of[kind][type](numbers, wide.bytes,
                                           wide.bytes + N_RAGGED * ps_type_size(type), N_RAGGED,
                                           deltas + 1, n);
        }
        cr_assert(same(type, &plain, &wide), "%s %s %zu: %s", ps_updater_name(kind),
                  ps_type_name(type), n, ps_loops_at(i)->name);
    }
}

/* Copies of a table on different machines must stay equal to the bit. */
Test(loops, every_instruction_set_gives_the_same_bits)
{
    for (ps_updater_kind_t kind = PS_UPDATER_ADD; kind <= PS_UPDATER_NESTEROV; kind++) {
        for (ps_type_t type = PS_TYPE_I32; type <= PS_TYPE_F64; type++) {
            if (ps_loops_at(0)->of[kind][type] == NULL) {
                continue;
            }
            for (size_t n = 0; n <= N_RAGGED; n += n < 40 ? 1 : 37) {
                compare_sets(kind, type, n);
            }
        }
    }
    cr_assert_null(ps_loops_at(3));
    cr_assert_not_null(ps_loops_best());
}

/* What a guarded loop must make of n values: the plain loop's value where the
 * delta is finite, the old one elsewhere. */
static void guard_plainly(ps_updater_kind_t kind, ps_type_t type, const void *numbers,
                          uint8_t *values, const uint8_t *deltas, size_t n)
{
    size_t size = ps_type_size(type);

    for (size_t i = 0; i < n; i++) {
        double d = type == PS_TYPE_F32 ? (double)ps_load_f32(deltas + i * size)
                                       : ps_load_f64(deltas + i * size);

        if (isfinite(d)) {
            ps_loops_at(0)->of[kind][type](numbers, values + i * size, NULL, 0, deltas + i * size,
                                           1);
        }
    }
}

#define N_GUARDED 3 /* rows, the last one first */

static void compare_guarded(ps_updater_kind_t kind, ps_type_t type, size_t set, size_t n)
{
    ps_numbers_f32_t f32 = {.alpha = 0.1F};
    ps_numbers_f64_t f64 = {.alpha = 0.1};
    const void *numbers = type == PS_TYPE_F32 ? (const void *)&f32 : (const void *)&f64;
    size_t size = ps_type_size(type);
    uint8_t deltas[N_GUARDED * N_RAGGED * 8 + 1];
    uint8_t *rows[N_GUARDED];
    room_t made = {{0}};
    room_t expected = {{0}};
    ps_rng_t rng = {kind * 1000 + n};

    fill_rugged(type, deltas + 1, N_GUARDED * N_RAGGED, &rng);
    fill_rugged(type, made.bytes, 4 * (size_t)N_RAGGED, &rng);
    expected = made;
    for (size_t i = 0; i < N_GUARDED; i++) {
        size_t at = (N_GUARDED - 1 - i) * (N_RAGGED + 1) * size;

        rows[i] = made.bytes + at;
        guard_plainly(kind, type, numbers, expected.bytes + at, deltas + 1 + i * n * size, n);
    }
    ps_loops_at(set)->guarded[kind][type](numbers, rows, N_GUARDED, n, deltas + 1);
    cr_assert(same(type, &made, &expected), "%s %s %zu: %s", ps_updater_name(kind),
              ps_type_name(type), n, ps_loops_at(set)->name);
}

/* Rows of any width; what lies between them stays as it is. */
Test(loops, guarded_loops_leave_out_what_is_not_finite)
{
    static const ps_updater_kind_t kinds[] = {PS_UPDATER_ADD, PS_UPDATER_ASSIGN, PS_UPDATER_SGD};

    for (size_t set = 0; ps_loops_at(set) != NULL; set++) {
        for (size_t k = 0; k < 3; k++) {
            for (size_t n = 0; n <= N_RAGGED; n++) {
                compare_guarded(kinds[k], PS_TYPE_F32, set, n);
                compare_guarded(kinds[k], PS_TYPE_F64, set, n);
            }
            cr_assert_null(ps_loops_at(set)->guarded[kinds[k]][PS_TYPE_I32]);
            cr_assert_null(ps_loops_at(set)->guarded[kinds[k]][PS_TYPE_I64]);
        }
        cr_assert_null(ps_loops_at(set)->guarded[PS_UPDATER_MOMENTUM][PS_TYPE_F32]);
    }
}

Test(loops, loops_are_there_for_what_a_rule_takes)
{
    for (size_t i = 0; ps_updater_rule_at(i) != NULL; i++) {
        const ps_updater_rule_t *rule = ps_updater_rule_at(i);

        for (ps_type_t type = PS_TYPE_I32; rule->kind != PS_UPDATER_PLUGIN && type <= PS_TYPE_F64;
             type++) {
            bool is_float = type == PS_TYPE_F32 || type == PS_TYPE_F64;

            cr_assert_eq(ps_loops_best()->of[rule->kind][type] != NULL,
                         is_float || rule->takes_integers, "%s %s", rule->name, ps_type_name(type));
        }
    }
}

/* A bad value at every place of every length is seen, and nothing else is. */
Test(loops, every_instruction_set_finds_what_is_not_finite)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    uint8_t values[N_RAGGED * 8 + 1];

    for (size_t i = 0; ps_loops_at(i) != NULL; i++) {
        const ps_loops_t *loops = ps_loops_at(i);

        for (size_t n = 0; n < N_RAGGED; n++) {
            memset(values, 0x7e, sizeof values); /* large, but finite */
            cr_assert(loops->finite_f32(values + 1, n), "%s", loops->name);
            cr_assert(loops->finite_f64(values + 1, n), "%s", loops->name);
            if (n == 0) {
                continue;
            }
            for (size_t k = 0; k < 3; k++) {
                size_t at = (n * 7 + k) % n;

                memset(values, 0x7e, sizeof values);
                ps_store_f64(values + 1 + at * 8, bad[k]);
                cr_assert_not(loops->finite_f64(values + 1, n), "%s %zu", loops->name, n);
                memset(values, 0x7e, sizeof values);
                ps_store_f32(values + 1 + at * 4, (float)bad[k]);
                cr_assert_not(loops->finite_f32(values + 1, n), "%s %zu", loops->name, n);
            }
        }
    }
}

#define N_STREAMED 5 /* rows, the second of which is not there */
#define STREAMED 192 /* bytes of a row: three lines */

/* Rows may begin anywhere; what lies around the place stays as it is. */
static void stream_some(const ps_loops_t *loops, size_t shift, size_t size)
{
    _Alignas(64) uint8_t to[64 + N_STREAMED * STREAMED + 64];
    uint8_t expected[sizeof to];
    uint8_t from[N_STREAMED * STREAMED + 64];
    uint8_t *rows[N_STREAMED];

    for (size_t i = 0; i < sizeof from; i++) {
        from[i] = (uint8_t)(i * 7 + shift);
    }
    memset(to, 0xee, sizeof to);
    memset(expected, 0xee, sizeof expected);
    for (size_t i = 0; i < N_STREAMED; i++) { /* the last one first */
        rows[i] = i == 1 ? NULL : from + shift + (N_STREAMED - 1 - i) * size;
        if (rows[i] != NULL) {
            memcpy(expected + 64 + i * size, rows[i], size);
        }
    }
    loops->stream_rows(to + 64, rows, N_STREAMED, size);
    loops->stream_end();
    cr_assert_arr_eq(to, expected, sizeof to, "%s: rows of %zu from %zu", loops->name, size, shift);
}

Test(loops, every_instruction_set_streams_the_same_rows)
{
    for (size_t i = 0; ps_loops_at(i) != NULL; i++) {
        for (size_t size = 64; size <= STREAMED; size += 64) {
            for (size_t shift = 0; shift < 64; shift++) {
                stream_some(ps_loops_at(i), shift, size);
            }
        }
    }
}

/* What lies around the place stays as it is. */
static void stream_copy(size_t to_shift, size_t from_shift, size_t size)
{
    _Alignas(64) uint8_t to[4 * 64];
    uint8_t expected[sizeof to];
    uint8_t from[sizeof to];

    for (size_t i = 0; i < sizeof from; i++) {
        from[i] = (uint8_t)(i * 7 + size);
    }
    memset(to, 0xee, sizeof to);
    memset(expected, 0xee, sizeof expected);
    memcpy(expected + to_shift, from + from_shift, size);
    ps_stream_copy(to + to_shift, from + from_shift, size);
    ps_rows_stream_end();
    cr_assert_arr_eq(to, expected, sizeof to, "%zu bytes from %zu to %zu", size, from_shift,
                     to_shift);
}

Test(loops, streams_from_and_to_any_place)
{
    for (size_t shift = 0; shift < 64; shift++) {
        for (size_t size = 0; size <= 3 * 64; size++) {
            stream_copy(shift, 63 - shift, size);
            stream_copy(shift, 0, size);
        }
    }
}
