/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/messages/utf8.h"

static bool is_between(uint8_t byte, uint8_t low, uint8_t high)
{
    return byte >= low && byte <= high;
}

/* Bytes that a character with this first byte has; 0 when none starts so. */
static size_t announced_length(uint8_t first)
{
    if (first < 0x80) {
        return 1;
    }
    if (is_between(first, 0xC2, 0xDF)) {
        return 2;
    }
    if (is_between(first, 0xE0, 0xEF)) {
        return 3;
    }
    return is_between(first, 0xF0, 0xF4) ? 4 : 0;
}

/* The second byte's range excludes overlong forms and surrogates. */
static bool second_is_valid(uint8_t first, uint8_t second)
{
    uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;

    return is_between(second, low, high);
}

size_t ps_utf8_character(const uint8_t *data, size_t size)
{
    size_t length = announced_length(data[0]);

    if (length == 0 || length > size) {
        return 0;
    }
    if (length > 1 && !second_is_valid(data[0], data[1])) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (!is_between(data[i], 0x80, 0xBF)) {
            return 0;
        }
    }
    return length;
}

bool ps_utf8_is_text(const uint8_t *data, size_t size)
{
    size_t at = 0;

    while (at < size) {
        size_t length = ps_utf8_character(data + at, size - at);

        if (length == 0) {
            return false;
        }
        at += length;
    }
    return true;
}
