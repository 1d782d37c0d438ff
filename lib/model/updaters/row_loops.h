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
/* Copies n rows of `size` bytes, which lie apart, one behind the other. A row
 * that is NULL is passed over. */
void ps_rows_copy(uint8_t *to, uint8_t *const *rows, size_t n, size_t size);
/* Copies the value of `size` bytes, 4 or 8, at the same distance behind each of
 * n rows, one behind the other; and back. The distance wraps: it may lie before
 * the row. */
void ps_values_gather(uint8_t *to, uint8_t *const *rows, uintptr_t distance, size_t n, size_t size);
void ps_values_scatter(uint8_t *const *rows, uintptr_t distance, const uint8_t *from, size_t n,
                       size_t size);
/* Whether no row is among n <= PS_ROWS_GROUP, aligned to 4 bytes, twice. */
bool ps_rows_differ(uint8_t *const *rows, size_t n);

/* Rows of `size` bytes, n_bytes in all, are worth streaming to `to`: they would
 * fill the caches, and lines of memory are written whole. */
bool ps_rows_may_stream(const uint8_t *to, size_t n_bytes, size_t size);
/* As ps_rows_copy, past the caches, where ps_rows_may_stream. */
void ps_rows_stream(uint8_t *to, uint8_t *const *rows, size_t n, size_t size);
/* As memcpy, past the caches: worth it for parts of what is PS_STREAM_FROM
 * bytes and more. */
void ps_stream_copy(uint8_t *to, const uint8_t *from, size_t size);
/* What was streamed is seen by others before what is written after this. */
void ps_rows_stream_end(void);
#endif
