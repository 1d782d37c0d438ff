/* SPDX-License-Identifier: Apache-2.0 */
/* ps_utf8 - checks that bytes are text: the well-formed sequences of Unicode
 * 15, table 3-7 (no overlong forms, no surrogates, nothing above U+10FFFF). */
#ifndef PS_WIRE_UTF8_H
#define PS_WIRE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at the front of data, 1 .. 4; 0 when it is
 * ill-formed or cut off. size > 0. */
size_t ps_utf8_character(const uint8_t *data, size_t size);
/* True when the bytes are whole characters. data may be NULL when size is 0. */
bool ps_utf8_is_text(const uint8_t *data, size_t size);
#endif
