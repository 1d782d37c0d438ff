/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_bytes, ps_buffer, ps_id - borrowed bytes, owned bytes, random names
 *
 * What     ps_bytes points to memory with another owner; ps_buffer owns and
 *          grows; ps_id is a random 128-bit name (cluster, client).
 */
#ifndef PS_BASE_BYTES_H
#define PS_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

typedef struct ps_bytes {
    const uint8_t *data; /* may be NULL when size is 0; any alignment */
    size_t size;         /* bytes */
} ps_bytes_t;

typedef struct ps_buffer {
    uint8_t *data;   /* owned; NULL when capacity is 0 */
    size_t size;     /* bytes in use */
    size_t capacity; /* bytes allocated */
} ps_buffer_t;

/* Frees the block and zeroes the struct; fits PSD_AUTO. */
void ps_buffer_done(ps_buffer_t *self);
/* Reserves room for `more` bytes after size. false: no memory, nothing
 * changed. */
PSD_MUST_CHECK bool ps_buffer_reserve(ps_buffer_t *self, size_t more);
/* Appends a copy. false: no memory, nothing changed. */
PSD_MUST_CHECK bool ps_buffer_append(ps_buffer_t *self, const void *data, size_t size);
/* Appends formatted text without its terminator; the byte after it is '\0'. */
PSD_MUST_CHECK bool ps_buffer_print(ps_buffer_t *self, const char *format, ...) PSD_PRINTF(2, 3);

#define PS_ID_SIZE 16
#define PS_ID_TEXT_SIZE 37 /* 8-4-4-4-12 hex digits and '\0' */
typedef struct ps_id {
    uint8_t bytes[PS_ID_SIZE];
} ps_id_t;

bool ps_id_equal(const ps_id_t *a, const ps_id_t *b);
bool ps_id_is_zero(const ps_id_t *self);
/* Lower-case UUID form. */
void ps_id_format(const ps_id_t *self, char ret_text[PS_ID_TEXT_SIZE]);
/* False when text is not of that form. */
PSD_MUST_CHECK bool ps_id_parse(const char *text, ps_id_t *ret_id);
#endif
