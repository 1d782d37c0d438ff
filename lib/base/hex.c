/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal digits, both ways. */
#include "base/hex.h"

#include <string.h>

bool ps_hex_write(ps_buffer_t *to, ps_bytes_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    char *at = NULL;

    if (!ps_buffer_reserve(to, 2 * bytes.size + 1)) {
        return false;
    }
    at = (char *)to->data + to->size;
    for (size_t i = 0; i < bytes.size; i++) {
        *at++ = digits[bytes.data[i] >> 4];
        *at++ = digits[bytes.data[i] & 15];
    }
    *at = '\0';
    to->size += 2 * bytes.size;
    return true;
}

/* -1: no digit. */
static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

psd_status_t ps_hex_read(ps_buffer_t *to, const char *text, psd_error_t *err)
{
    size_t length = strlen(text);
    uint8_t *at = NULL;

    if (length % 2 != 0) {
        return psd_error_set(err, PSD_PROTO, "%zu hexadecimal digits are not whole bytes", length);
    }
    if (!ps_buffer_reserve(to, length / 2)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu bytes", length / 2);
    }
    at = to->data + to->size;
    for (size_t i = 0; i < length; i += 2) {
        int high = digit_of(text[i]);
        int low = digit_of(text[i + 1]);

        if (high < 0 || low < 0) {
            return psd_error_set(err, PSD_PROTO, "\"%.2s\" at %zu is not a hexadecimal byte",
                                 text + i, i);
        }
        *at++ = (uint8_t)(high << 4 | low);
    }
    to->size += length / 2;
    return PSD_OK;
}
