/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over found rows: a call of the updater for each row would cost more
 * than the work. This file is compiled for speed (see meson.build of this
 * room). */
#include "model/updaters/row_loops.h"

#include <assert.h>
#include <string.h>

#include "base/cursor.h"
#include "base/prefetch.h"
#include "model/updaters/loops.h"

#define DIFFER_BITS 12
#define DIFFER_PLACES (1 << DIFFER_BITS) /* 11 % of groups of 32 rows have a collision */

/* Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4) of the bits
 * in which rows near each other differ. */
static inline uint32_t differ_place(const uint8_t *row)
{
    return (uint32_t)((uintptr_t)row >> 2) * UINT32_C(0x9e3779b1) >> (32 - DIFFER_BITS);
}

/* One loop for each type: a single value a row, or more of them. */
#define ROWS_ADD(name, number_t, LOAD)                                                          \
    static void add_##name(uint8_t *const *rows, size_t n, size_t width, const uint8_t *deltas) \
    {                                                                                           \
        for (size_t i = 0; width == 1 && i < n; i++) {                                          \
            number_t *w = (void *)rows[i];                                                      \
                                                                                                \
            *w += LOAD(deltas + i * sizeof *w);                                                 \
        }                                                                                       \
        for (size_t i = 0; width != 1 && i < n; i++) {                                          \
            number_t *restrict w = (void *)rows[i];                                             \
            const uint8_t *restrict d = deltas + i * width * sizeof *w;                         \
                                                                                                \
            for (size_t j = 0; j < width; j++) {                                                \
                w[j] += LOAD(d + j * sizeof *w);                                                \
            }                                                                                   \
        }                                                                                       \
    }

/* Integers are added as unsigned, which wrap. */
ROWS_ADD(i32, uint32_t, ps_load_u32)
ROWS_ADD(i64, uint64_t, ps_load_u64)
ROWS_ADD(f32, float, ps_load_f32)
ROWS_ADD(f64, double, ps_load_f64)

void ps_rows_add(ps_type_t type, uint8_t *const *rows, size_t n, size_t width,
                 const uint8_t *deltas)
{
    switch (type) {
    case PS_TYPE_I32:
        add_i32(rows, n, width, deltas);
        break;
    case PS_TYPE_I64:
        add_i64(rows, n, width, deltas);
        break;
    case PS_TYPE_F32:
        add_f32(rows, n, width, deltas);
        break;
    case PS_TYPE_F64:
    default:
        add_f64(rows, n, width, deltas);
        break;
    }
}

void ps_rows_copy(uint8_t *to, uint8_t *const *rows, size_t n, size_t size)
{
    if (size == 4) { /* the most common rows: without a call for each */
        for (size_t i = 0; i < n; i++) {
            if (rows[i] != NULL) {
                memcpy(to + 4 * i, rows[i], 4);
            }
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (rows[i] != NULL) {
            memcpy(to + i * size, rows[i], size);
        }
    }
}

static inline uint8_t *behind(uint8_t *row, uintptr_t distance)
{
    return (uint8_t *)((uintptr_t)row + distance);
}

void ps_values_gather(uint8_t *to, uint8_t *const *rows, uintptr_t distance, size_t n, size_t size)
{
    assert(size == 4 || size == 8);
    for (size_t i = 0; size == 4 && i < n; i++) {
        memcpy(to + 4 * i, behind(rows[i], distance), 4);
    }
    for (size_t i = 0; size == 8 && i < n; i++) {
        memcpy(to + 8 * i, behind(rows[i], distance), 8);
    }
}

void ps_values_scatter(uint8_t *const *rows, uintptr_t distance, const uint8_t *from, size_t n,
                       size_t size)
{
    assert(size == 4 || size == 8);
    for (size_t i = 0; size == 4 && i < n; i++) {
        memcpy(behind(rows[i], distance), from + 4 * i, 4);
    }
    for (size_t i = 0; size == 8 && i < n; i++) {
        memcpy(behind(rows[i], distance), from + 8 * i, 8);
    }
}

static bool is_twice(uint8_t *const *rows, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (rows[j] == rows[i]) {
                return true;
            }
        }
    }
    return false;
}

/* Each row writes its number to the place that its address hashes to. If every
 * row finds its own number there, all rows differ. A row that finds another
 * number and equals that row occurs twice; if it only shares the place, the
 * result is unknown. Only written places are read. */
static bool differ_by_place(uint8_t *const *rows, size_t n)
{
    uint8_t numbers[DIFFER_PLACES];
    bool shared = false;

    for (size_t i = 0; i < n; i++) {
        numbers[differ_place(rows[i])] = (uint8_t)i;
    }
    for (size_t i = 0; i < n; i++) {
        size_t other = numbers[differ_place(rows[i])];

        if (other != i && rows[other] == rows[i]) {
            return false;
        }
        shared = shared || other != i;
    }
    return !shared || !is_twice(rows, n);
}

bool ps_rows_differ(uint8_t *const *rows, size_t n)
{
    uint32_t steps_back = 0;

    assert(n <= PS_ROWS_GROUP);
    for (size_t i = 1; i < n; i++) {
        steps_back += (uintptr_t)rows[i] <= (uintptr_t)rows[i - 1] ? 1 : 0;
    }
    return steps_back == 0 || differ_by_place(rows, n);
}

bool ps_rows_may_stream(const uint8_t *to, size_t n_bytes, size_t size)
{
    return n_bytes >= PS_STREAM_FROM && size > 0 && size % PS_LINE == 0 &&
           (uintptr_t)to % PS_LINE == 0;
}

void ps_rows_stream(uint8_t *to, uint8_t *const *rows, size_t n, size_t size)
{
    ps_loops_best()->stream_rows(to, rows, n, size);
}

void ps_stream_copy(uint8_t *to, const uint8_t *from, size_t size)
{
    size_t head = -(uintptr_t)to % PS_LINE; /* before the first whole line */
    size_t lines = 0;

    head = head < size ? head : size;
    lines = (size - head) / PS_LINE * PS_LINE;
    memcpy(to, from, head);
    ps_loops_best()->stream(to + head, from + head, lines);
    memcpy(to + head + lines, from + head + lines, size - head - lines);
}

void ps_rows_stream_end(void)
{
    ps_loops_best()->stream_end();
}
