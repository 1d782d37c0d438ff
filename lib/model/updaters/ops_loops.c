/* SPDX-License-Identifier: Apache-2.0 */
/* One set of plain loops for each type. */
#include "model/updaters/ops_loops.h"

#include "base/cursor.h"

#define SIGN_BIT (UINT64_C(1) << 63)

static uint32_t u32_of(double operand)
{
    return (uint32_t)(int32_t)operand;
}

static uint64_t u64_of(double operand)
{
    return (uint64_t)(int64_t)operand;
}

static float f32_of(double operand)
{
    return (float)operand;
}

static double f64_of(double operand)
{
    return operand;
}

/* work_t: the type to calculate in, integers as unsigned ones, which wrap;
 * value_t: the type to read sums in. */
#define LOOPS(name, work_t, value_t, of)                                                        \
    static void scale_##name(uint8_t *values, size_t n, double operand)                         \
    {                                                                                           \
        work_t *w = (void *)values;                                                             \
        work_t by = of(operand);                                                                \
                                                                                                \
        for (size_t i = 0; i < n; i++) {                                                        \
            w[i] *= by;                                                                         \
        }                                                                                       \
    }                                                                                           \
    static void fill_##name(uint8_t *values, size_t n, double operand)                          \
    {                                                                                           \
        work_t *w = (void *)values;                                                             \
        work_t with = of(operand);                                                              \
                                                                                                \
        for (size_t i = 0; i < n; i++) {                                                        \
            w[i] = with;                                                                        \
        }                                                                                       \
    }                                                                                           \
    static void axpy_##name(uint8_t *values, const uint8_t *other, size_t n, double operand)    \
    {                                                                                           \
        work_t *w = (void *)values;                                                             \
        const work_t *x = (const void *)other;                                                  \
        work_t by = of(operand);                                                                \
                                                                                                \
        for (size_t i = 0; i < n; i++) {                                                        \
            w[i] += by * x[i];                                                                  \
        }                                                                                       \
    }                                                                                           \
    static double sum_##name(const uint8_t *values, size_t n, double sum)                       \
    {                                                                                           \
        const value_t *w = (const void *)values;                                                \
                                                                                                \
        for (size_t i = 0; i < n; i++) {                                                        \
            sum += (double)w[i];                                                                \
        }                                                                                       \
        return sum;                                                                             \
    }                                                                                           \
    static double dot_##name(const uint8_t *values, const uint8_t *other, size_t n, double sum) \
    {                                                                                           \
        const value_t *w = (const void *)values;                                                \
        const value_t *x = (const void *)other;                                                 \
                                                                                                \
        for (size_t i = 0; i < n; i++) {                                                        \
            sum += (double)w[i] * (double)x[i];                                                 \
        }                                                                                       \
        return sum;                                                                             \
    }                                                                                           \
    static uint64_t nonzeros_##name(const uint8_t *values, size_t n)                            \
    {                                                                                           \
        const value_t *w = (const void *)values;                                                \
        uint64_t count = 0;                                                                     \
                                                                                                \
        for (size_t i = 0; i < n; i++) {                                                        \
            count += w[i] != 0 ? 1 : 0;                                                         \
        }                                                                                       \
        return count;                                                                           \
    }

LOOPS(i32, uint32_t, int32_t, u32_of)
LOOPS(i64, uint64_t, int64_t, u64_of)
LOOPS(f32, float, float, f32_of)
LOOPS(f64, double, double, f64_of)

/* Calls the loop of the type. */
#define CALL(type, loop, ...)        \
    do {                             \
        switch (type) {              \
        case PS_TYPE_I32:            \
            loop##_i32(__VA_ARGS__); \
            break;                   \
        case PS_TYPE_I64:            \
            loop##_i64(__VA_ARGS__); \
            break;                   \
        case PS_TYPE_F32:            \
            loop##_f32(__VA_ARGS__); \
            break;                   \
        case PS_TYPE_F64:            \
        default:                     \
            loop##_f64(__VA_ARGS__); \
            break;                   \
        }                            \
    } while (0)

void ps_values_scale(ps_type_t type, uint8_t *values, size_t n, double operand)
{
    CALL(type, scale, values, n, operand);
}

void ps_values_fill(ps_type_t type, uint8_t *values, size_t n, double operand)
{
    CALL(type, fill, values, n, operand);
}

void ps_values_axpy(ps_type_t type, uint8_t *values, const uint8_t *other, size_t n, double operand)
{
    CALL(type, axpy, values, other, n, operand);
}

double ps_values_sum(ps_type_t type, const uint8_t *values, size_t n, double sum)
{
    CALL(type, sum = sum, values, n, sum);
    return sum;
}

double ps_values_squares(ps_type_t type, const uint8_t *values, size_t n, double sum)
{
    CALL(type, sum = dot, values, values, n, sum);
    return sum;
}

double ps_values_dot(ps_type_t type, const uint8_t *values, const uint8_t *other, size_t n,
                     double sum)
{
    CALL(type, sum = dot, values, other, n, sum);
    return sum;
}

uint64_t ps_values_nonzeros(ps_type_t type, const uint8_t *values, size_t n)
{
    uint64_t count = 0;

    CALL(type, count = nonzeros, values, n);
    return count;
}

uint64_t ps_value_order(ps_type_t type, const uint8_t *value)
{
    double number = 0;
    uint64_t bits = 0;

    if (type == PS_TYPE_I32) {
        return SIGN_BIT + (uint64_t)(int64_t)ps_load_i32(value);
    }
    if (type == PS_TYPE_I64) { /* the least value shares its number with NaN */
        bits = SIGN_BIT + (uint64_t)ps_load_i64(value);
        return bits == 0 ? 1 : bits;
    }
    number = type == PS_TYPE_F32 ? (double)ps_load_f32(value) : ps_load_f64(value);
    if (number != number) {
        return 0;
    }
    number += 0.0; /* -0 becomes 0 */
    __builtin_memcpy(&bits, &number, sizeof bits);
    return (bits & SIGN_BIT) != 0 ? ~bits : bits | SIGN_BIT;
}
