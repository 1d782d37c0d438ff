/* SPDX-License-Identifier: Apache-2.0 */
/* Growing buffers, and random names as text. */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

void ps_buffer_done(ps_buffer_t *self)
{
    ps_free(self->data);
    *self = (ps_buffer_t){0};
}

bool ps_buffer_reserve(ps_buffer_t *self, size_t more)
{
    size_t need = 0;

    if (__builtin_add_overflow(self->size, more, &need)) {
        return false;
    }
    return ps_grow(&self->data, &self->capacity, need, 1);
}

bool ps_buffer_append(ps_buffer_t *self, const void *data, size_t size)
{
    if (size == 0) {
        return true;
    }
    if (!ps_buffer_reserve(self, size)) {
        return false;
    }
    memcpy(self->data + self->size, data, size);
    self->size += size;
    return true;
}

bool ps_buffer_print(ps_buffer_t *self, const char *format, ...)
{
    va_list arguments;
    int length = 0;
    size_t room = 0;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return false;
    }
    room = (size_t)length + 1;
    if (!ps_buffer_reserve(self, room)) {
        return false;
    }
    va_start(arguments, format);
    (void)vsnprintf((char *)self->data + self->size, room, format, arguments);
    va_end(arguments);
    self->size += (size_t)length;
    return true;
}

bool ps_id_equal(const ps_id_t *a, const ps_id_t *b)
{
    return memcmp(a->bytes, b->bytes, PS_ID_SIZE) == 0;
}

bool ps_id_is_zero(const ps_id_t *self)
{
    static const ps_id_t zero;

    return ps_id_equal(self, &zero);
}

/* A dash precedes these bytes. */
static bool follows_dash(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void ps_id_format(const ps_id_t *self, char ret_text[PS_ID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char *at = ret_text;

    for (size_t i = 0; i < PS_ID_SIZE; i++) {
        if (follows_dash(i)) {
            *at++ = '-';
        }
        *at++ = digits[self->bytes[i] >> 4];
        *at++ = digits[self->bytes[i] & 0x0F];
    }
    *at = '\0';
}

/* The digit's value; -1: not a hex digit. */
static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    if (digit >= 'A' && digit <= 'F') {
        return digit - 'A' + 10;
    }
    return -1;
}

bool ps_id_parse(const char *text, ps_id_t *ret_id)
{
    ps_id_t id = {{0}};
    const char *at = text;

    if (strlen(text) != PS_ID_TEXT_SIZE - 1) {
        return false;
    }
    for (size_t i = 0; i < PS_ID_SIZE; i++) {
        int high = 0;
        int low = 0;

        if (follows_dash(i) && *at++ != '-') {
            return false;
        }
        high = hex_value(*at++);
        low = hex_value(*at++);
        if (high < 0 || low < 0) {
            return false;
        }
        id.bytes[i] = (uint8_t)(high << 4 | low);
    }
    *ret_id = id;
    return true;
}
