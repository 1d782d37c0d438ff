/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_cursor - the only code that reads numbers out of bytes
 *
 * What     A reader over borrowed bytes. A read past the end sets `failed` and
 *          returns zero, so a decoder reads all fields and then checks once.
 *          ps_load_* / ps_store_* are for bytes whose length was checked.
 * Units    little-endian, fixed widths, any alignment
 */
#ifndef PS_BASE_CURSOR_H
#define PS_BASE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "psd is written for little-endian machines"
#endif

typedef struct ps_cursor {
    ps_bytes_t rest; /* what has not been read */
    bool failed;     /* a read went past the end; stays true */
} ps_cursor_t;

#define PS_CURSOR_TYPES(X) \
    X(u8, uint8_t)         \
    X(u16, uint16_t)       \
    X(u32, uint32_t)       \
    X(u64, uint64_t)       \
    X(i32, int32_t)        \
    X(i64, int64_t)        \
    X(f32, float)          \
    X(f64, double)

#define PS_CURSOR_INLINE(name, type)                            \
    static inline type ps_load_##name(const uint8_t *at)        \
    {                                                           \
        type value;                                             \
        memcpy(&value, at, sizeof value);                       \
        return value;                                           \
    }                                                           \
    static inline void ps_store_##name(uint8_t *at, type value) \
    {                                                           \
        memcpy(at, &value, sizeof value);                       \
    }                                                           \
    type ps_cursor_##name(ps_cursor_t *self);                   \
    PSD_MUST_CHECK bool ps_buffer_##name(ps_buffer_t *self, type value);
PS_CURSOR_TYPES(PS_CURSOR_INLINE)
#undef PS_CURSOR_INLINE

ps_cursor_t ps_cursor_over(ps_bytes_t bytes);
/* The next `size` bytes, borrowed; {NULL, 0} and failed when fewer are left. */
ps_bytes_t ps_cursor_take(ps_cursor_t *self, size_t size);
/* Copies the next size bytes; zeroes ret and fails when fewer are left. */
void ps_cursor_copy(ps_cursor_t *self, void *ret, size_t size);
/* Nothing failed and nothing is left. */
bool ps_cursor_is_done(const ps_cursor_t *self);
#endif
