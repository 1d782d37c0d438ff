/* SPDX-License-Identifier: Apache-2.0 */
/* model/row_index.h: a million rows, growth in small steps, marks that last. */
#include "model/row_index.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

#define MANY 1000000
#define SOME 3000

/* Keys that share their low bits, so that the hash has to tell them apart. */
static uint64_t
key_of(uint32_t i)
{
    return (uint64_t)i << 20;
}

static void
fill(ps_row_index_t *index, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_null(ps_row_index_find(index, key_of(i)));
        cr_assert(ps_row_index_add(index, key_of(i), i));
    }
}

Test(row_index, zeroed_is_empty)
{
    ps_row_index_t index = {0};
    uint64_t at = 0;
    uint64_t key = 0;
    uint32_t number = 0;

    cr_assert_null(ps_row_index_find(&index, 0));
    cr_assert_not(ps_row_index_next(&index, &at, &key, &number));
    ps_row_index_prefetch(&index, 0);
    cr_assert_eq(ps_row_index_bytes(&index), 0);
    ps_row_index_done(&index);
}

Test(row_index, grows_to_a_million_rows)
{
    ps_row_index_t index = {0};

    fill(&index, MANY);
    cr_assert_eq(index.n, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t *number = ps_row_index_find(&index, key_of(i));

        cr_assert_not_null(number);
        cr_assert_eq(*number, i);
    }
    cr_assert_null(ps_row_index_find(&index, key_of(MANY)));
    cr_assert_null(ps_row_index_find(&index, 1));
    ps_row_index_done(&index);
}

/* The header says 16 to 32 bytes per row, and the old table's half while it is
 * copied. */
Test(row_index, is_compact_at_every_size)
{
    ps_row_index_t index = {0};

    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert(ps_row_index_add(&index, key_of(i), i));
        if (i > 1000) {
            cr_assert_leq(ps_row_index_bytes(&index), UINT64_C(48) * i);
        }
    }
    ps_row_index_done(&index);
}

Test(row_index, copying_ends_long_before_the_next_growth)
{
    ps_row_index_t index = {0};
    size_t size = 0;
    uint64_t grown_at = 0;

    for (uint32_t i = 0; i < SOME * 10; i++) {
        cr_assert(ps_row_index_add(&index, key_of(i), i));
        if (index.now.size != size) {
            size = index.now.size;
            grown_at = index.n;
        }
        if (index.old.data != NULL) {
            cr_assert_leq(index.n - grown_at, grown_at / 4);
        }
    }
    ps_row_index_done(&index);
}

Test(row_index, both_ends_of_u64_are_keys)
{
    ps_row_index_t index = {0};

    cr_assert(ps_row_index_add(&index, 0, 1));
    cr_assert(ps_row_index_add(&index, UINT64_MAX, PS_ROW_NUMBER_MAX));
    cr_assert_eq(*ps_row_index_find(&index, 0), 1);
    cr_assert_eq(*ps_row_index_find(&index, UINT64_MAX), PS_ROW_NUMBER_MAX);
    ps_row_index_done(&index);
}

/* At every size: in the middle of copying, keys are in one table or in both. */
Test(row_index, a_walk_meets_every_key_once)
{
    ps_row_index_t index = {0};

    for (uint32_t n = 0; n < SOME; n++) {
        uint64_t at = 0;
        uint64_t key = 0;
        uint64_t sum = 0;
        uint32_t number = 0;
        uint32_t n_met = 0;

        if (n % 37 == 0 || index.old.data != NULL) {
            while (ps_row_index_next(&index, &at, &key, &number)) {
                cr_assert_eq(key, key_of(number));
                sum += number;
                n_met++;
            }
            cr_assert_eq(n_met, n);
            cr_assert_eq(sum, (uint64_t)n * (n - 1) / 2);
        }
        cr_assert(ps_row_index_add(&index, key_of(n), n));
    }
    ps_row_index_done(&index);
}

Test(row_index, marks_survive_growth)
{
    ps_row_index_t index = {0};

    for (uint32_t i = 0; i < SOME; i++) {
        cr_assert(ps_row_index_add(&index, key_of(i), i));
        /* marks an old key, which may not have been copied yet */
        *ps_row_index_find(&index, key_of(i / 2)) |= PS_ROW_MARK;
    }
    for (uint32_t i = 0; i < SOME; i++) {
        uint32_t mark = i <= (SOME - 1) / 2 ? PS_ROW_MARK : 0;

        cr_assert_eq(*ps_row_index_find(&index, key_of(i)), i | mark);
    }
    ps_row_index_done(&index);
}

static psd_status_t
fill_or_fail(void *fixture)
{
    ps_row_index_t index = {0};
    psd_status_t rc = PSD_OK;

    (void)fixture;
    for (uint32_t i = 0; i < SOME && rc == PSD_OK; i++) {
        if (!ps_row_index_add(&index, key_of(i), i)) {
            rc = PSD_NOMEM;
            cr_assert_eq(index.n, i);
            cr_assert_null(ps_row_index_find(&index, key_of(i)));
        }
    }
    for (uint32_t i = 0; i < index.n; i++) {
        cr_assert_eq(*ps_row_index_find(&index, key_of(i)), i);
    }
    ps_row_index_done(&index);
    return rc;
}

Test(row_index, no_memory_changes_nothing)
{
    cr_assert_null(fail_alloc_sweep(fill_or_fail, NULL));
}
