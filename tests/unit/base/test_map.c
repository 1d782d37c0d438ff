/* SPDX-License-Identifier: Apache-2.0 */
/* base/map.h: u64 to pointer. */
#include "base/map.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/fail_alloc.h"

#define N_KEYS 512

/* Values are pointers into this array: slot i for key i. */
static char values[N_KEYS];

Test(map, zeroed_is_empty)
{
    ps_map_t map = {0};
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    cr_assert_null(ps_map_get(&map, 0));
    cr_assert_null(ps_map_remove(&map, 0));
    cr_assert_not(ps_map_next(&map, &at, &key, &value));
    ps_map_done(&map);
}

Test(map, put_adds_and_replaces)
{
    PSD_AUTO(ps_map_done) ps_map_t map = {0};

    cr_assert(ps_map_put(&map, 0, &values[1]));
    cr_assert(ps_map_put(&map, UINT64_MAX, &values[2]));
    cr_assert_eq(map.count, 2);
    cr_assert(ps_map_put(&map, 0, &values[3]));
    cr_assert_eq(map.count, 2);
    cr_assert_eq(ps_map_get(&map, 0), &values[3]);
    cr_assert_eq(ps_map_get(&map, UINT64_MAX), &values[2]);
    cr_assert_null(ps_map_get(&map, 1));
}

Test(map, remove_gives_the_value_that_was_there)
{
    PSD_AUTO(ps_map_done) ps_map_t map = {0};

    cr_assert(ps_map_put(&map, 5, &values[5]));
    cr_assert_null(ps_map_remove(&map, 6));
    cr_assert_eq(ps_map_remove(&map, 5), &values[5]);
    cr_assert_null(ps_map_remove(&map, 5));
    cr_assert_eq(map.count, 0);
}

Test(map, load_stays_at_three_quarters)
{
    PSD_AUTO(ps_map_done) ps_map_t map = {0};

    for (uint64_t key = 0; key < N_KEYS; key++) {
        cr_assert(ps_map_put(&map, key, &values[key]));
        cr_assert_leq(map.count * 4, map.capacity * 3);
        cr_assert_eq(map.capacity & (map.capacity - 1), 0);
    }
}

Test(map, replacing_in_a_full_map_needs_no_memory)
{
    PSD_AUTO(ps_map_done) ps_map_t map = {0};

    for (uint64_t key = 0; key < 12; key++) {
        cr_assert(ps_map_put(&map, key, &values[key]));
    }
    cr_assert_eq(map.capacity, 16);
    fail_alloc_at(0);
    cr_assert(ps_map_put(&map, 3, &values[4]));
    cr_assert_not(ps_map_put(&map, 12, &values[12]));
    cr_assert_eq(map.count, 12);
    cr_assert_null(ps_map_get(&map, 12));
    cr_assert_eq(ps_map_get(&map, 3), &values[4]);
    cr_assert_eq(ps_map_get(&map, 11), &values[11]);
}

Test(map, agrees_with_a_plain_array_over_a_long_history)
{
    PSD_AUTO(ps_map_done) ps_map_t map = {0};
    void *model[N_KEYS] = {NULL};
    ps_rng_t rng = {.state = 1};
    size_t count = 0;

    for (int step = 0; step < 200000; step++) {
        uint64_t key = ps_rng_below(&rng, N_KEYS);
        /* Phases of growth and of shrinking. */
        bool put = ps_rng_below(&rng, 100) < (step / 5000 % 2 ? 30U : 70U);

        if (put) {
            char *value = &values[ps_rng_below(&rng, N_KEYS)];

            count += model[key] == NULL;
            cr_assert(ps_map_put(&map, key, value));
            model[key] = value;
        } else {
            cr_assert_eq(ps_map_remove(&map, key), model[key]);
            count -= model[key] != NULL;
            model[key] = NULL;
        }
        cr_assert_eq(map.count, count);
        if (step % 1000 == 0) {
            for (uint64_t k = 0; k < N_KEYS; k++) {
                cr_assert_eq(ps_map_get(&map, k), model[k]);
            }
        }
    }
}

Test(map, next_walks_every_entry_once_and_repeats)
{
    PSD_AUTO(ps_map_done) ps_map_t map = {0};
    uint64_t order[100];
    bool seen[100] = {false};
    size_t n = 0;
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    for (uint64_t k = 0; k < 100; k++) {
        cr_assert(ps_map_put(&map, k, &values[k]));
    }
    while (ps_map_next(&map, &at, &key, &value)) {
        cr_assert_lt(key, 100);
        cr_assert_eq(value, &values[key]);
        cr_assert_not(seen[key]);
        seen[key] = true;
        order[n++] = key;
    }
    cr_assert_eq(n, 100);
    at = 0;
    for (n = 0; ps_map_next(&map, &at, &key, &value); n++) {
        cr_assert_eq(key, order[n]);
    }
}

static psd_status_t fill_map(void *fixture)
{
    PSD_AUTO(ps_map_done) ps_map_t map = {0};

    (void)fixture;
    for (uint64_t key = 0; key < N_KEYS; key++) {
        if (!ps_map_put(&map, key, &values[key])) {
            cr_assert_eq(map.count, key);
            for (uint64_t k = 0; k < key; k++) {
                cr_assert_eq(ps_map_get(&map, k), &values[k]);
            }
            return PSD_NOMEM;
        }
    }
    return PSD_OK;
}

Test(map, no_memory_changes_nothing)
{
    const char *complaint = fail_alloc_sweep(fill_map, NULL);

    cr_assert_null(complaint, "%s", complaint);
}
