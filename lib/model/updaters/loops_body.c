/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that merge deltas into values: one plain loop per rule and type.
 * This file is compiled for speed, once for each instruction set (meson.build
 * of this room), which passes its name as PS_LOOPS_SET. */
#include <math.h>
#include <string.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "base/cursor.h"
#include "base/prefetch.h"
#include "model/updaters/loops_sets.h"

/* A vector of the set, and an empty asm that may change it: so the compiler
 * cannot load the value again from memory. */
#if defined __AVX512F__
#define UNIT 64
#define KEEP(unit) __asm__ volatile("" : "+v"(unit))
#elif defined __AVX2__
#define UNIT 32
#define KEEP(unit) __asm__ volatile("" : "+x"(unit))
#elif defined __SSE2__
#define UNIT 16
#define KEEP(unit) __asm__ volatile("" : "+x"(unit))
#else
#define UNIT 16
#define KEEP(unit) __asm__ volatile("" : "+m"(unit))
#endif

#define BLOCK 256 /* values whose corrections fit into the L1 cache */

#define REAL float
#define BITS uint32_t
#define NAME(rule) rule##_f32
#define LOAD(at) ps_load_f32(at)
#define LOAD_BITS(at) ps_load_u32(at)
#define EXPONENT UINT32_C(0x7f800000)
#define ONE UINT32_C(0x00800000)
#define SQRT(x) sqrtf(x)
#define FABS(x) fabsf(x)
#define COPYSIGN(x, y) copysignf(x, y)
#include "model/updaters/loops_float.h"
#include "model/updaters/loops_guard.h"
#undef REAL
#undef BITS
#undef NAME
#undef LOAD
#undef LOAD_BITS
#undef EXPONENT
#undef ONE
#undef SQRT
#undef FABS
#undef COPYSIGN

#define REAL double
#define BITS uint64_t
#define NAME(rule) rule##_f64
#define LOAD(at) ps_load_f64(at)
#define LOAD_BITS(at) ps_load_u64(at)
#define EXPONENT UINT64_C(0x7ff0000000000000)
#define ONE UINT64_C(0x0010000000000000)
#define SQRT(x) sqrt(x)
#define FABS(x) fabs(x)
#define COPYSIGN(x, y) copysign(x, y)
#include "model/updaters/loops_float.h"
#include "model/updaters/loops_guard.h"

/* A loop over integers of one type. They are added as unsigned integers: signed
 * overflow is undefined in C, and the bits are the same. */
#define INTEGER_LOOP(NAME, UNSIGNED, SIGNED, LOAD, RESULT)                          \
    static void NAME(const void *numbers, void *values, void *state, size_t stride, \
                     const uint8_t *restrict deltas, size_t n)                      \
    {                                                                               \
        UNSIGNED *restrict w = values;                                              \
                                                                                    \
        (void)numbers;                                                              \
        (void)state;                                                                \
        (void)stride;                                                               \
        for (size_t i = 0; i < n; i++) {                                            \
            UNSIGNED d = LOAD(deltas + i * sizeof d);                               \
                                                                                    \
            w[i] = (RESULT);                                                        \
        }                                                                           \
    }

INTEGER_LOOP(add_i32, uint32_t, int32_t, ps_load_u32, w[i] + d)
INTEGER_LOOP(add_i64, uint64_t, int64_t, ps_load_u64, w[i] + d)
INTEGER_LOOP(min_i32, uint32_t, int32_t, ps_load_u32, (int32_t)d < (int32_t)w[i] ? d : w[i])
INTEGER_LOOP(min_i64, uint64_t, int64_t, ps_load_u64, (int64_t)d < (int64_t)w[i] ? d : w[i])
INTEGER_LOOP(max_i32, uint32_t, int32_t, ps_load_u32, (int32_t)d > (int32_t)w[i] ? d : w[i])
INTEGER_LOOP(max_i64, uint64_t, int64_t, ps_load_u64, (int64_t)d > (int64_t)w[i] ? d : w[i])

static void assign_4(const void *numbers, void *values, void *state, size_t stride,
                     const uint8_t *deltas, size_t n)
{
    (void)numbers;
    (void)state;
    (void)stride;
    memcpy(values, deltas, n * 4);
}

static void assign_8(const void *numbers, void *values, void *state, size_t stride,
                     const uint8_t *deltas, size_t n)
{
    (void)numbers;
    (void)state;
    (void)stride;
    memcpy(values, deltas, n * 8);
}

#define LINE 64 /* bytes that are streamed at once */

/* The widest non-temporal store. */
#if defined __AVX512F__
#define STREAM_UNIT __m512i
#define STREAM(to, unit) _mm512_stream_si512((to), (unit))
#elif defined __AVX2__
#define STREAM_UNIT __m256i
#define STREAM(to, unit) _mm256_stream_si256((to), (unit))
#elif defined __SSE2__
#define STREAM_UNIT __m128i
#define STREAM(to, unit) _mm_stream_si128((to), (unit))
#else
#define STREAM_UNIT uint64_t
#define STREAM(to, unit) (*(to) = (unit))
#endif

/* A line is a fixed number of stores, so the inner loop unrolls completely. */
static void stream(uint8_t *to, const uint8_t *from, size_t size)
{
    for (size_t at = 0; at < size; at += LINE) {
        for (size_t k = 0; k < LINE; k += sizeof(STREAM_UNIT)) {
            STREAM_UNIT unit;

            memcpy(&unit, from + at + k, sizeof unit);
            STREAM((STREAM_UNIT *)(void *)(to + at + k), unit);
        }
    }
}

static void stream_rows(uint8_t *to, uint8_t *const *rows, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i] != NULL) {
            stream(to + i * size, rows[i], size);
        }
    }
}

static void stream_end(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

#define FLOATS(rule)                                           \
    {                                                          \
        [PS_TYPE_F32] = rule##_f32, [PS_TYPE_F64] = rule##_f64 \
    }
#define NUMBERS(rule)                                                                       \
    {                                                                                       \
        [PS_TYPE_I32] = rule##_i32, [PS_TYPE_I64] = rule##_i64, [PS_TYPE_F32] = rule##_f32, \
        [PS_TYPE_F64] = rule##_f64                                                          \
    }
#define assign_i32 assign_4
#define assign_i64 assign_8
#define assign_f32 assign_4
#define assign_f64 assign_8
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const ps_loops_t PS_LOOPS_SET = {
    .name = TEXT(PS_LOOPS_SET),
    .of =
        {
#define UPDATER(NAME, number, name, types, loop, ...) [PS_UPDATER_##NAME] = types(loop),
#include "model/tables/updaters.def"
        },
    .guarded =
        {
            [PS_UPDATER_ADD] = FLOATS(guarded_add),
            [PS_UPDATER_ASSIGN] = FLOATS(guarded_assign),
            [PS_UPDATER_SGD] = FLOATS(guarded_sgd),
        },
    .finite_f32 = finite_f32,
    .finite_f64 = finite_f64,
    .stream = stream,
    .stream_rows = stream_rows,
    .stream_end = stream_end,
};
