/* SPDX-License-Identifier: Apache-2.0 */
/* base/cursor.h: numbers out of bytes. */
#include "base/cursor.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

static ps_bytes_t bytes_of(const ps_buffer_t *buffer)
{
    return (ps_bytes_t){.data = buffer->data, .size = buffer->size};
}

static bool write_one_of_each(ps_buffer_t *buffer)
{
    return ps_buffer_u8(buffer, 0x01) && ps_buffer_u16(buffer, 0x0302) &&
           ps_buffer_u32(buffer, 0x07060504) &&
           ps_buffer_u64(buffer, UINT64_C(0x0F0E0D0C0B0A0908)) && ps_buffer_i32(buffer, -2) &&
           ps_buffer_i64(buffer, INT64_MIN) && ps_buffer_f32(buffer, 1.5F) &&
           ps_buffer_f64(buffer, -2.25);
}

Test(cursor, writes_little_endian_without_padding)
{
    static const uint8_t wanted[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A,
                                     0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0xFE, 0xFF, 0xFF, 0xFF, 0x00,
                                     0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0xC0,
                                     0x3F, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xC0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    cr_assert(write_one_of_each(&buffer));
    cr_assert_eq(buffer.size, sizeof wanted);
    cr_assert_arr_eq(buffer.data, wanted, sizeof wanted);
}

Test(cursor, reads_back_what_was_written)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
    ps_cursor_t cursor = {0};

    cr_assert(write_one_of_each(&buffer));
    cursor = ps_cursor_over(bytes_of(&buffer));
    cr_assert_eq(ps_cursor_u8(&cursor), 0x01);
    cr_assert_eq(ps_cursor_u16(&cursor), 0x0302);
    cr_assert_eq(ps_cursor_u32(&cursor), 0x07060504);
    cr_assert_eq(ps_cursor_u64(&cursor), UINT64_C(0x0F0E0D0C0B0A0908));
    cr_assert_eq(ps_cursor_i32(&cursor), -2);
    cr_assert_eq(ps_cursor_i64(&cursor), INT64_MIN);
    cr_assert_not(ps_cursor_is_done(&cursor));
    cr_assert_eq(ps_cursor_f32(&cursor), 1.5F);
    cr_assert_eq(ps_cursor_f64(&cursor), -2.25);
    cr_assert(ps_cursor_is_done(&cursor));
}

Test(cursor, read_past_the_end_gives_zero_and_fails_for_good)
{
    static const uint8_t data[] = {1, 2, 3};
    ps_cursor_t cursor = ps_cursor_over((ps_bytes_t){data, sizeof data});

    cr_assert_eq(ps_cursor_u16(&cursor), 0x0201);
    cr_assert_eq(ps_cursor_u16(&cursor), 0);
    cr_assert(cursor.failed);
    /* One byte is left, but nothing is read after a failure. */
    cr_assert_eq(ps_cursor_u8(&cursor), 0);
    cr_assert(cursor.failed);
    cr_assert_not(ps_cursor_is_done(&cursor));
}

/* Each width, at every length that is too short for it. */
#define CHECK_SHORT(name, type)                                        \
    for (size_t size = 0; size < sizeof(type); size++) {               \
        ps_cursor_t cursor = ps_cursor_over((ps_bytes_t){data, size}); \
        cr_assert(ps_cursor_##name(&cursor) == 0);                     \
        cr_assert(cursor.failed);                                      \
    }

Test(cursor, every_width_checks_its_length)
{
    static const uint8_t data[8] = {1, 1, 1, 1, 1, 1, 1, 1};

    PS_CURSOR_TYPES(CHECK_SHORT)
}

Test(cursor, take_borrows)
{
    static const uint8_t data[] = {1, 2, 3};
    ps_cursor_t cursor = ps_cursor_over((ps_bytes_t){data, sizeof data});
    ps_bytes_t taken = ps_cursor_take(&cursor, 2);

    cr_assert_eq(taken.data, data);
    cr_assert_eq(taken.size, 2);
    taken = ps_cursor_take(&cursor, 2);
    cr_assert_null(taken.data);
    cr_assert_eq(taken.size, 0);
    cr_assert(cursor.failed);
}

Test(cursor, take_of_a_size_near_the_limit_does_not_wrap)
{
    static const uint8_t data[] = {1, 2, 3};
    ps_cursor_t cursor = ps_cursor_over((ps_bytes_t){data, sizeof data});

    (void)ps_cursor_u8(&cursor);
    cr_assert_null(ps_cursor_take(&cursor, SIZE_MAX).data);
    cr_assert(cursor.failed);
}

Test(cursor, take_of_nothing_from_nothing_is_fine)
{
    ps_cursor_t cursor = ps_cursor_over((ps_bytes_t){NULL, 0});

    cr_assert_eq(ps_cursor_take(&cursor, 0).size, 0);
    cr_assert(ps_cursor_is_done(&cursor));
}

Test(cursor, copy_copies_or_zeroes)
{
    static const uint8_t data[] = {1, 2, 3};
    ps_cursor_t cursor = ps_cursor_over((ps_bytes_t){data, sizeof data});
    uint8_t copy[2] = {9, 9};

    ps_cursor_copy(&cursor, copy, 2);
    cr_assert_arr_eq(copy, data, 2);
    ps_cursor_copy(&cursor, copy, 2);
    cr_assert_eq(copy[0], 0);
    cr_assert_eq(copy[1], 0);
    cr_assert(cursor.failed);
    ps_cursor_copy(&cursor, NULL, 0);
}

Test(cursor, load_and_store_take_any_alignment)
{
    uint8_t data[16] = {0};

    for (size_t at = 0; at < 8; at++) {
        ps_store_u64(data + at, UINT64_C(0x1122334455667788));
        cr_assert_eq(data[at], 0x88);
        cr_assert_eq(ps_load_u64(data + at), UINT64_C(0x1122334455667788));
        ps_store_f32(data + at, 0.5F);
        cr_assert_eq(ps_load_f32(data + at), 0.5F);
    }
}

static psd_status_t write_until_no_memory(void *fixture)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    (void)fixture;
    return write_one_of_each(&buffer) ? PSD_OK : PSD_NOMEM;
}

Test(cursor, writing_without_memory_says_so)
{
    const char *complaint = fail_alloc_sweep(write_until_no_memory, NULL);

    cr_assert_null(complaint, "%s", complaint);
}
