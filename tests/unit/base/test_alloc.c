/* SPDX-License-Identifier: Apache-2.0 */
/* base/alloc.h: the one door to the heap. */
#include "base/alloc.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "support/fail_alloc.h"

/* Larger than the compiler can see through, and than any memory. */
static volatile size_t huge = SIZE_MAX / 2;

Test(alloc, gives_zeroed_memory)
{
    unsigned char *block = ps_alloc(100, 3);

    cr_assert_not_null(block);
    for (size_t i = 0; i < 300; i++) {
        cr_assert_eq(block[i], 0);
    }
    ps_free(block);
}

Test(alloc, product_that_does_not_fit_gives_null)
{
    cr_assert_null(ps_alloc(huge, 3));
    cr_assert_null(ps_alloc_raw(huge, 3));
    cr_assert_null(ps_alloc_resize(NULL, huge, 3));
    cr_assert_null(ps_alloc(3, huge));
}

Test(alloc, count_of_zero_gives_a_unique_pointer)
{
    void *a = ps_alloc(0, 8);
    void *b = ps_alloc_raw(8, 0);
    void *c = ps_alloc_resize(NULL, 0, 0);

    cr_assert_not_null(a);
    cr_assert_not_null(b);
    cr_assert_not_null(c);
    cr_assert_neq(a, b);
    cr_assert_neq(b, c);
    ps_free(a);
    ps_free(b);
    ps_free(c);
}

Test(alloc, resize_keeps_the_content_and_the_old_block_on_failure)
{
    char *block = ps_alloc_resize(NULL, 4, 1);

    cr_assert_not_null(block);
    memcpy(block, "abc", 4);
    cr_assert_null(ps_alloc_resize(block, huge, 3));
    cr_assert_str_eq(block, "abc");
    block = ps_alloc_resize(block, 4096, 1);
    cr_assert_not_null(block);
    cr_assert_str_eq(block, "abc");
    /* Size zero shrinks; it does not free. */
    block = ps_alloc_resize(block, 0, 1);
    cr_assert_not_null(block);
    ps_free(block);
}

Test(alloc, free_takes_null)
{
    ps_free(NULL);
}

Test(alloc, strdup_copies)
{
    const char *text = "row";
    char *copy = ps_strdup(text);

    cr_assert_str_eq(copy, "row");
    cr_assert_neq((const void *)copy, (const void *)text);
    ps_free(copy);
}

Test(alloc, free_at_frees_and_nulls)
{
    char *text = ps_strdup("row");

    cr_assert_not_null(text);
    ps_free_at(&text);
    cr_assert_null(text);
    ps_free_at(&text);
}

Test(alloc, auto_frees_at_the_end_of_the_block)
{
    /* AddressSanitizer fails this test when nothing is freed. */
    PSD_AUTO(ps_free_at) char *text = ps_strdup("row");

    cr_assert_str_eq(text, "row");
}

Test(alloc, grow_makes_room_and_keeps_items)
{
    uint32_t *items = NULL;
    size_t capacity = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        cr_assert(ps_grow(&items, &capacity, i + 1, sizeof *items));
        cr_assert_geq(capacity, i + 1);
        items[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++) {
        cr_assert_eq(items[i], i);
    }
    cr_assert_eq(capacity, 1024);
    ps_free(items);
}

Test(alloc, grow_does_nothing_when_there_is_room)
{
    uint32_t *items = NULL;
    size_t capacity = 0;

    cr_assert(ps_grow(&items, &capacity, 0, sizeof *items));
    cr_assert_null(items);
    cr_assert(ps_grow(&items, &capacity, 5, sizeof *items));
    cr_assert_eq(capacity, 8);
    fail_alloc_at(0);
    cr_assert(ps_grow(&items, &capacity, 8, sizeof *items));
    cr_assert_eq(fail_alloc_calls(), 0);
    fail_alloc_off();
    ps_free(items);
}

Test(alloc, grow_without_memory_changes_nothing)
{
    uint32_t *items = NULL;
    uint32_t *before = NULL;
    size_t capacity = 0;

    cr_assert(ps_grow(&items, &capacity, 5, sizeof *items));
    items[0] = 7;
    before = items;
    fail_alloc_at(0);
    cr_assert_not(ps_grow(&items, &capacity, 9, sizeof *items));
    cr_assert(fail_alloc_happened());
    cr_assert_not(ps_grow(&items, &capacity, SIZE_MAX, sizeof *items));
    cr_assert_eq(items, before);
    cr_assert_eq(items[0], 7);
    cr_assert_eq(capacity, 8);
    ps_free(items);
}

Test(alloc, every_shape_passes_the_one_door)
{
    fail_alloc_at(0);
    cr_assert_null(ps_alloc(1, 1));
    fail_alloc_at(0);
    cr_assert_null(ps_alloc_raw(1, 1));
    fail_alloc_at(0);
    cr_assert_null(ps_strdup("x"));
    fail_alloc_at(0);
    cr_assert_null(ps_alloc_resize(NULL, 1, 1));
}
