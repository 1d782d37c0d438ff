/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_window - the bytes of one input, as many at a time as a format wants
 *
 * What     Stretches of an input, each contiguous in memory, one after the
 *          other.
 * Units    bytes
 * Owner    the caller owns the struct; a stretch is borrowed until the next
 *          call
 * Threads  confined to one thread
 * Errors   as ps_source
 */
#ifndef PS_DATA_WINDOW_H
#define PS_DATA_WINDOW_H

#include "data/streams/source.h"

/* The longest stretch that a format may want. */
#define PS_STRETCH_MAX ((size_t)64 << 20)

typedef struct ps_byte_window {
    ps_source_t *source; /* owned */
    uint8_t *data;       /* owned */
    size_t capacity;
    size_t at, filled; /* data[at .. filled) is not taken yet */
    uint64_t offset;   /* of data[at] in the input, unpacked */
} ps_byte_window_t;

PSD_MUST_CHECK psd_status_t ps_window_open(ps_byte_window_t *ret_window, const char *path,
                                           psd_error_t *err);
/* Frees what is inside and zeroes it; fits PSD_AUTO. */
void ps_window_done(ps_byte_window_t *self);
/* The next `size` bytes <= PS_STRETCH_MAX, or as many as there are; these are
 * given again, where ps_window_take does not take them. */
PSD_MUST_CHECK psd_status_t ps_window_peek(ps_byte_window_t *self, size_t size,
                                           const uint8_t **ret_bytes, size_t *ret_size,
                                           psd_error_t *err);
/* The next `size` bytes <= PS_STRETCH_MAX. PSD_DAMAGED: there are fewer. */
PSD_MUST_CHECK psd_status_t ps_window_take(ps_byte_window_t *self, size_t size,
                                           const uint8_t **ret_bytes, psd_error_t *err);
/* Passes over `size` bytes, unread where the input can seek. PSD_DAMAGED: there
 * are fewer. */
PSD_MUST_CHECK psd_status_t ps_window_skip(ps_byte_window_t *self, uint64_t size, psd_error_t *err);
#endif
