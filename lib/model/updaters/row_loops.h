/* SPDX-License-Identifier: Apache-2.0 */
/* ps_rows_add - sums and copies of rows, a group or many lines at a time */
#ifndef PS_MODEL_ROW_LOOPS_H
#define PS_MODEL_ROW_LOOPS_H

#include "base/slice.h"

#define PS_ROWS_GROUP 32                 /* rows that ps_rows_differ takes at most */
#define PS_STREAM_FROM ((size_t)1 << 20) /* bytes that would fill a cache */

/* Adds n rows of `width` deltas (wire bytes, any alignment), row by row, to the
 * values at rows[0] …, which are aligned to the type. Integers wrap. */
void ps_rows_add(ps_type_t type, uint8_t *const *rows, size_t n, size_t width,
                 const uint8_t *deltas);
/* Copies n scattered rows of `size` bytes, one after the other. Skips a row
 * that is NULL. */
void ps_rows_copy(uint8_t *to, uint8_t *const *rows, size_t n, size_t size);
/* Gathers the value of `size` bytes, 4 or 8, at the same distance from each of
 * n rows, one after the other; and scatters them back. The distance wraps: the
 * value may lie before the row. */
void ps_values_gather(uint8_t *to, uint8_t *const *rows, uintptr_t distance, size_t n, size_t size);
void ps_values_scatter(uint8_t *const *rows, uintptr_t distance, const uint8_t *from, size_t n,
                       size_t size);
/* True when all n <= PS_ROWS_GROUP rows, aligned to 4 bytes, differ. */
bool ps_rows_differ(uint8_t *const *rows, size_t n);

/* Rows of `size` bytes, n_bytes in all, are worth streaming to `to`: they would
 * fill the caches, and whole cache lines are written. */
bool ps_rows_may_stream(const uint8_t *to, size_t n_bytes, size_t size);
/* As ps_rows_copy, with non-temporal stores; only if ps_rows_may_stream. */
void ps_rows_stream(uint8_t *to, uint8_t *const *rows, size_t n, size_t size);
/* As memcpy, with non-temporal stores: worth it for parts of copies of
 * PS_STREAM_FROM bytes and more. */
void ps_stream_copy(uint8_t *to, const uint8_t *from, size_t size);
/* Store fence: streamed data becomes visible to other threads before later
 * writes. */
void ps_rows_stream_end(void);
#endif
