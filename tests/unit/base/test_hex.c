/* SPDX-License-Identifier: Apache-2.0 */
/* base/hex.h: bytes as digits and back. */
#include "base/hex.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"

Test(hex, every_byte_comes_back)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t back = {0};
    uint8_t all[256];

    for (int i = 0; i < 256; i++) {
        all[i] = (uint8_t)i;
    }
    cr_assert(ps_hex_write(&text, (ps_bytes_t){all, sizeof all}));
    cr_assert_eq(text.size, 512);
    cr_assert_eq(strncmp((char *)text.data, "000102", 6), 0);
    cr_assert_eq(strcmp((char *)text.data + 506, "fdfeff"), 0);
    cr_assert_eq(ps_hex_read(&back, (char *)text.data, NULL), PSD_OK);
    cr_assert_eq(back.size, 256);
    cr_assert_eq(memcmp(back.data, all, 256), 0);
    cr_assert_eq(ps_hex_read(&back, "aAfF", NULL), PSD_OK);
    cr_assert_eq(back.size, 258);
    cr_assert_eq(back.data[256], 0xaa);
    cr_assert_eq(back.data[257], 0xff);
}

Test(hex, what_are_no_digits_is_refused_and_named)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t back = {0};

    cr_assert_eq(ps_hex_read(&back, "abc", err), PSD_PROTO);
    cr_assert(strstr(psd_error_text(err), "3 hexadecimal digits"));
    psd_error_clear(err);
    cr_assert_eq(ps_hex_read(&back, "00g0", err), PSD_PROTO);
    cr_assert(strstr(psd_error_text(err), "\"g0\" at 2"));
    psd_error_clear(err);
    cr_assert_eq(ps_hex_read(&back, "000/", err), PSD_PROTO);
    cr_assert_eq(back.size, 0);
}
