/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rows that were found: what an updater's call for each of them
 * would cost is more than the work. This file is compiled for speed (see
 * meson.build of this room). */
#include "model/row_loops.h"

#include <string.h>

#include "base/cursor.h"
#include "model/loops.h"

/* One loop for each type: a single value a row, or more of them. */
#define ROWS_ADD(name, number_t, LOAD)                                   \
    static void add_##name(uint8_t *const *rows, size_t n, size_t width, \
                           const uint8_t *deltas)                        \
    {                                                                    \
        for (size_t i = 0; width == 1 && i < n; i++) {                   \
            number_t *w = (void *)rows[i];                               \
                                                                         \
            *w += LOAD(deltas + i * sizeof *w);                          \
        }                                                                \
        for (size_t i = 0; width != 1 && i < n; i++) {                   \
            number_t *restrict w = (void *)rows[i];                      \
            const uint8_t *restrict d = deltas + i * width * sizeof *w;  \
                                                                         \
            for (size_t j = 0; j < width; j++) {                         \
                w[j] += LOAD(d + j * sizeof *w);                         \
            }                                                            \
        }                                                                \
    }

/* Integers are added as unsigned ones, which wrap. */
ROWS_ADD(i32, uint32_t, ps_load_u32)
ROWS_ADD(i64, uint64_t, ps_load_u64)
ROWS_ADD(f32, float, ps_load_f32)
ROWS_ADD(f64, double, ps_load_f64)

void
ps_rows_add(ps_type_t type,
            uint8_t *const *rows,
            size_t n,
            size_t width,
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

void
ps_rows_copy(uint8_t *to, uint8_t *const *rows, size_t n, size_t size)
{
    if (size == 4) { /* the commonest rows: without a call for each */
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

bool
ps_rows_may_stream(const uint8_t *to, size_t n_bytes, size_t size)
{
    return n_bytes >= PS_STREAM_FROM && size > 0 && size % PS_LINE == 0 &&
           (uintptr_t)to % PS_LINE == 0;
}

void
ps_rows_stream(uint8_t *to, uint8_t *const *rows, size_t n, size_t size)
{
    ps_loops_best()->stream_rows(to, rows, n, size);
}

void
ps_stream_copy(uint8_t *to, const uint8_t *from, size_t size)
{
    size_t head = -(uintptr_t)to % PS_LINE; /* before the first whole line */
    size_t lines = 0;

    head = head < size ? head : size;
    lines = (size - head) / PS_LINE * PS_LINE;
    memcpy(to, from, head);
    ps_loops_best()->stream(to + head, from + head, lines);
    memcpy(to + head + lines, from + head + lines, size - head - lines);
}

void
ps_rows_stream_end(void)
{
    ps_loops_best()->stream_end();
}
