/* SPDX-License-Identifier: Apache-2.0 */
/* base/bytes.h: buffers and ids. */
#include "base/bytes.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

Test(buffer, zeroed_is_empty_and_done_zeroes)
{
    ps_buffer_t buffer = {0};

    ps_buffer_done(&buffer);
    cr_assert(ps_buffer_append(&buffer, "abc", 3));
    ps_buffer_done(&buffer);
    cr_assert_null(buffer.data);
    cr_assert_eq(buffer.size, 0);
    cr_assert_eq(buffer.capacity, 0);
}

Test(buffer, append_copies_behind_what_is_there)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    cr_assert(ps_buffer_append(&buffer, "abc", 3));
    cr_assert(ps_buffer_append(&buffer, NULL, 0));
    cr_assert(ps_buffer_append(&buffer, "de", 2));
    cr_assert_eq(buffer.size, 5);
    cr_assert_arr_eq(buffer.data, "abcde", 5);
}

Test(buffer, reserve_makes_room_without_using_it)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    cr_assert(ps_buffer_append(&buffer, "abc", 3));
    cr_assert(ps_buffer_reserve(&buffer, 1000));
    cr_assert_geq(buffer.capacity, 1003);
    cr_assert_eq(buffer.size, 3);
    cr_assert_not(ps_buffer_reserve(&buffer, SIZE_MAX));
    cr_assert_eq(buffer.size, 3);
    cr_assert_arr_eq(buffer.data, "abc", 3);
}

Test(buffer, print_appends_text_with_a_terminator_behind)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    cr_assert(ps_buffer_print(&buffer, "row %d", 7));
    cr_assert(ps_buffer_print(&buffer, "%s", ""));
    cr_assert(ps_buffer_print(&buffer, ", col %s", "x"));
    cr_assert_eq(buffer.size, strlen("row 7, col x"));
    cr_assert_str_eq((const char *)buffer.data, "row 7, col x");
}

Test(buffer, print_fits_any_length)
{
    char text[100];

    for (size_t length = 0; length < sizeof text; length++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

        memset(text, 'x', length);
        text[length] = '\0';
        cr_assert(ps_buffer_print(&buffer, "%s", text));
        cr_assert_eq(buffer.size, length);
        cr_assert_str_eq((const char *)buffer.data, text);
    }
}

static psd_status_t fill_buffer(void *fixture)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    (void)fixture;
    for (int i = 0; i < 50; i++) {
        ps_buffer_t before = buffer;
        bool done = i % 2 == 0 ? ps_buffer_append(&buffer, "abcdef", 6)
                               : ps_buffer_print(&buffer, "%06d", i);

        if (!done) {
            cr_assert_eq(buffer.data, before.data);
            cr_assert_eq(buffer.size, before.size);
            cr_assert_eq(buffer.capacity, before.capacity);
            return PSD_NOMEM;
        }
    }
    return PSD_OK;
}

Test(buffer, no_memory_changes_nothing)
{
    const char *complaint = fail_alloc_sweep(fill_buffer, NULL);

    cr_assert_null(complaint, "%s", complaint);
}

Test(id, format_and_parse_are_inverse)
{
    static const char text[] = "00010203-0405-0607-0809-0a0b0c0d0e0f";
    char back[PS_ID_TEXT_SIZE];
    ps_id_t id = {{0}};

    cr_assert(ps_id_parse(text, &id));
    for (uint8_t i = 0; i < PS_ID_SIZE; i++) {
        cr_assert_eq(id.bytes[i], i);
    }
    ps_id_format(&id, back);
    cr_assert_str_eq(back, text);
}

Test(id, upper_case_is_read_and_lower_case_written)
{
    char back[PS_ID_TEXT_SIZE];
    ps_id_t id = {{0}};

    cr_assert(ps_id_parse("ABCDEF00-0000-0000-0000-0000000000FF", &id));
    ps_id_format(&id, back);
    cr_assert_str_eq(back, "abcdef00-0000-0000-0000-0000000000ff");
}

Test(id, other_forms_are_refused_and_change_nothing)
{
    static const char *const wrong[] = {
        "",
        "00010203-0405-0607-0809-0a0b0c0d0e0",
        "00010203-0405-0607-0809-0a0b0c0d0e0f0",
        "00010203x0405-0607-0809-0a0b0c0d0e0f",
        "0001020-30405-0607-0809-0a0b0c0d0e0f",
        "g0010203-0405-0607-0809-0a0b0c0d0e0f",
        "00010203-0405-0607-0809-0a0b0c0d0e0g",
        "000102030405060708090a0b0c0d0e0f",
        "{0010203-0405-0607-0809-0a0b0c0d0e0}",
    };
    ps_id_t id = {{42}};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert_not(ps_id_parse(wrong[i], &id), "%s", wrong[i]);
        cr_assert_eq(id.bytes[0], 42);
    }
}

Test(id, equality_looks_at_every_byte)
{
    for (size_t i = 0; i < PS_ID_SIZE; i++) {
        ps_id_t a = {{0}};
        ps_id_t b = {{0}};

        cr_assert(ps_id_equal(&a, &b));
        cr_assert(ps_id_is_zero(&a));
        a.bytes[i] = 1;
        cr_assert_not(ps_id_equal(&a, &b));
        cr_assert_not(ps_id_is_zero(&a));
    }
}
