/* SPDX-License-Identifier: Apache-2.0 */
/* model/rows/slab.h and model/rows/pages.h: where the memory of rows comes from. */
#include "model/rows/slab.h"

#include <criterion/criterion.h>
#include <string.h>

#include "model/rows/pages.h"
#include "support/fail_alloc.h"

#define N_ITEMS 1000

static void check_items(size_t item_size)
{
    ps_slab_t slab;
    uint32_t number = 0;

    ps_slab_init(&slab, item_size);
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        cr_assert(ps_slab_add(&slab, &number));
        cr_assert_eq(number, i);
        memset(ps_slab_at(&slab, i), (int)(i % 251), item_size);
    }
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        cr_assert_eq(ps_slab_at(&slab, i)[0], i % 251);
        cr_assert_eq(ps_slab_at(&slab, i)[item_size - 1], i % 251);
    }
    cr_assert_geq(ps_slab_bytes(&slab), N_ITEMS * item_size);
    ps_slab_done(&slab);
}

Test(slab, items_of_any_size_keep_their_place)
{
    check_items(4);
    check_items(12);
    check_items(100 * 8);
    check_items((size_t)300 * 1024); /* larger than a chunk */
}

Test(slab, items_are_zero)
{
    ps_slab_t slab;
    uint32_t number = 7;

    ps_slab_init(&slab, 24);
    for (uint32_t i = 0; i < 100 * N_ITEMS; i++) {
        cr_assert(ps_slab_add(&slab, &number));
        for (size_t j = 0; j < 24; j++) {
            cr_assert_eq(ps_slab_at(&slab, i)[j], 0);
        }
        memset(ps_slab_at(&slab, i), 0xff, 24);
    }
    ps_slab_done(&slab);
}

/* Room for the most rows that a partition may have costs addresses only. */
Test(slab, reserves_up_to_its_maximum)
{
    ps_slab_t slab;
    uint32_t number = 7;

    ps_slab_init(&slab, 12);
    cr_assert(ps_slab_reserve(&slab, PS_SLAB_MAX));
    cr_assert_not(ps_slab_reserve(&slab, PS_SLAB_MAX + 1));
    cr_assert_lt(ps_slab_bytes(&slab), 1 << 20);
    slab.n = PS_SLAB_MAX - 1;
    cr_assert(ps_slab_add(&slab, &number));
    cr_assert_eq(number, PS_SLAB_MAX - 1);
    memset(ps_slab_at(&slab, number), 1, 12);
    cr_assert_not(ps_slab_add(&slab, &number));
    ps_slab_done(&slab);
}

static psd_status_t add_or_fail(void *fixture)
{
    ps_slab_t slab;
    psd_status_t rc = PSD_OK;

    (void)fixture;
    ps_slab_init(&slab, 1024);
    for (uint32_t i = 0; i < 40 && rc == PSD_OK; i++) {
        uint32_t number = 77;

        if (!ps_slab_add(&slab, &number)) {
            cr_assert_eq(number, 77);
            cr_assert_eq(slab.n, i);
            rc = PSD_NOMEM;
        }
    }
    ps_slab_done(&slab);
    return rc;
}

Test(slab, no_memory_changes_nothing)
{
    cr_assert_null(fail_alloc_sweep(add_or_fail, NULL));
}

Test(pages, small_and_large_ones_are_zero_and_aligned)
{
    static const size_t sizes[] = {1, 63, 4096, 100000, 10000000};

    for (size_t i = 0; i < 5; i++) {
        ps_pages_t pages = {0};

        cr_assert(ps_pages_init(&pages, sizes[i]));
        cr_assert_eq((uintptr_t)pages.data % 64, 0);
        cr_assert_eq(pages.size, sizes[i]);
        cr_assert_eq(pages.data[0], 0);
        cr_assert_eq(pages.data[sizes[i] - 1], 0);
        memset(pages.data, 1, sizes[i]);
        ps_pages_done(&pages);
        cr_assert_null(pages.data);
        ps_pages_done(&pages);
    }
}

Test(pages, what_is_not_touched_costs_nothing)
{
    ps_pages_t pages = {0};
    size_t size = (size_t)1 << 42; /* more than any test machine has */

    cr_assert(ps_pages_init(&pages, size));
    pages.data[size / 2] = 1;
    cr_assert_eq(pages.data[size / 2 + 4096], 0);
    ps_pages_done(&pages);
}

Test(pages, what_is_given_back_in_front_costs_nothing_and_the_rest_stays)
{
    ps_pages_t pages = {0};
    size_t size = (size_t)16 << 20;
    size_t returned = 0;

    cr_assert(ps_pages_init(&pages, size));
    memset(pages.data, 1, size);
    ps_pages_return(&pages, 1000, &returned);
    cr_assert_eq(returned, 0);
    for (size_t until = 0; until <= size; until += 100000) {
        size_t before = returned;

        ps_pages_return(&pages, until, &returned);
        cr_assert(returned >= before && returned <= until);
        cr_assert_lt(until - returned, (size_t)1 << 20);
        cr_assert_eq(pages.data[until < size ? until : size - 1], 1);
    }
    cr_assert_eq(pages.data[0], 0);
    ps_pages_done(&pages);
}

/* Each byte is named once, in order, and before it is written. */
Test(pages, what_is_written_soon_is_named_once)
{
    ps_pages_t pages = {0};
    ps_soon_t soon = {0};
    size_t size = (size_t)64 << 20;
    size_t named = 0;

    cr_assert(ps_pages_init(&pages, size));
    cr_assert_not(ps_pages_soon(&pages, 0, &named, &soon), "small pages");
    ps_pages_will_fill(&pages);
    for (size_t until = 0; until <= size; until += 4096) {
        size_t before = named;

        if (ps_pages_soon(&pages, until, &named, &soon)) {
            cr_assert_eq((uint8_t *)soon.data, pages.data + before);
            cr_assert_eq(before + soon.size, named);
        }
        cr_assert_geq(named, until + ((size_t)2 << 20) < size ? until + ((size_t)2 << 20) : size);
        cr_assert_leq(named, until + ((size_t)4 << 20));
        cr_assert_not(ps_pages_soon(&pages, until, &named, &soon));
    }
    cr_assert_eq(named, size);
    ps_pages_done(&pages);
}

/* Also the first pages of a chunk, while the one before is being filled. */
Test(slab, memory_of_items_is_named_before_they_come)
{
    ps_slab_t slab;
    ps_soon_t soon = {0};
    uint32_t number = 0;
    uint8_t *end = NULL;
    uint64_t n_late = 0;
    uint64_t bytes = 0;

    ps_slab_init(&slab, 4096);
    cr_assert_not(ps_slab_soon(&slab, &soon), "nothing was taken");
    for (uint32_t i = 0; i < 100 * N_ITEMS; i++) {
        cr_assert(ps_slab_add(&slab, &number));
        if (i >= 10 * N_ITEMS) {
            n_late += slab.soon > 0 ? 0 : 1;
        }
        for (int j = 0; j < 3 && ps_slab_soon(&slab, &soon); j++) {
            bytes += soon.size;
            end = (uint8_t *)soon.data + soon.size;
        }
        cr_assert_not(ps_slab_soon(&slab, &soon));
    }
    cr_assert_eq(n_late, 0);
    cr_assert_gt(bytes, (uint64_t)N_ITEMS * 90 * 4096);
    cr_assert_leq(bytes, (uint64_t)N_ITEMS * 100 * 4096 + ((uint64_t)4 << 20));
    cr_assert_gt(end, ps_slab_at(&slab, number) + 4096);
    ps_slab_done(&slab);
}

/* The first chunk in huge pages follows one in small pages, which needs no
 * names; all partitions of a table come there at about the same time. */
Test(slab, the_first_huge_chunk_is_named_before_it_is_reached)
{
    ps_slab_t slab;
    ps_soon_t soon = {0};
    uint32_t number = 0;
    bool is_named = false;

    ps_slab_init(&slab, 12);
    while (!is_named) {
        cr_assert(ps_slab_add(&slab, &number));
        is_named = ps_slab_soon(&slab, &soon);
    }
    cr_assert_eq(slab.soon, slab.n_chunks - 1);
    cr_assert_eq((uint8_t *)soon.data, slab.data[slab.soon]);
    cr_assert_lt(number, (UINT32_C(1) << (slab.shift + slab.soon)) - (UINT32_C(1) << slab.shift));
    ps_slab_done(&slab);
}

Test(pages, no_memory_changes_nothing)
{
    ps_pages_t pages = {0};

    fail_alloc_at(0);
    cr_assert_not(ps_pages_init(&pages, 100));
    fail_alloc_off();
    cr_assert_null(pages.data);
    cr_assert_not(ps_pages_init(&pages, SIZE_MAX / 2));
    cr_assert_null(pages.data);
}
