/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/rng.h"
#include "transport/lane/lane_arena.h"

Test(arena, takes_the_lowest_and_joins_what_is_given_back)
{
    ps_arena_t arena;
    uint64_t at[4] = {0};
    uint64_t none = 7;

    cr_assert(ps_arena_init(&arena, 4 * 64));
    for (int i = 0; i < 4; i++) {
        cr_assert(ps_arena_take(&arena, 1 + (uint64_t)i, &at[i]));
        cr_assert_eq(at[i], 64u * (unsigned)i);
    }
    cr_assert_not(ps_arena_take(&arena, 1, &none));
    ps_arena_give(&arena, at[1], 2);
    ps_arena_give(&arena, at[3], 4);
    cr_assert_eq(arena.n_free, 2);
    cr_assert_not(ps_arena_take(&arena, 65, &none));
    ps_arena_give(&arena, at[2], 3);
    cr_assert_eq(arena.n_free, 1);
    cr_assert(ps_arena_take(&arena, 192, &none));
    cr_assert_eq(none, 64);
    ps_arena_give(&arena, 64, 192);
    ps_arena_give(&arena, at[0], 1);
    cr_assert_eq(arena.n_free, 1);
    cr_assert_eq(arena.free[0].size, 256);
    ps_arena_done(&arena);
}

Test(arena, refuses_sizes_that_cannot_be)
{
    ps_arena_t arena;
    uint64_t at = 7;

    cr_assert(ps_arena_init(&arena, 256));
    cr_assert_not(ps_arena_take(&arena, 0, &at));
    cr_assert_not(ps_arena_take(&arena, 257, &at));
    cr_assert_not(ps_arena_take(&arena, UINT64_MAX, &at));
    cr_assert_eq(at, 7);
    ps_arena_done(&arena);
}

/* No two blocks overlap, and at the end everything is one extent again. */
Test(arena, blocks_never_overlap)
{
    enum { BLOCKS = 64, UNITS = 512 };
    static uint8_t owner[UNITS];
    uint64_t at[BLOCKS];
    uint64_t size[BLOCKS] = {0};
    ps_rng_t rng = {.state = 1};
    ps_arena_t arena;

    cr_assert(ps_arena_init(&arena, UNITS * 64));
    for (int round = 0; round < 20000; round++) {
        size_t i = ps_rng_below(&rng, BLOCKS);

        if (size[i] > 0) {
            memset(owner + at[i] / 64, 0, ps_arena_round(size[i]) / 64);
            ps_arena_give(&arena, at[i], size[i]);
            size[i] = 0;
            continue;
        }
        size[i] = 1 + ps_rng_below(&rng, 40 * 64);
        if (!ps_arena_take(&arena, size[i], &at[i])) {
            size[i] = 0;
            continue;
        }
        for (uint64_t unit = 0; unit < ps_arena_round(size[i]) / 64; unit++) {
            cr_assert_eq(owner[at[i] / 64 + unit], 0);
            owner[at[i] / 64 + unit] = 1;
        }
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (size[i] > 0) {
            ps_arena_give(&arena, at[i], size[i]);
        }
    }
    cr_assert_eq(arena.n_free, 1);
    cr_assert_eq(arena.free[0].size, UNITS * 64);
    ps_arena_done(&arena);
}
