/* SPDX-License-Identifier: Apache-2.0 */
/* model/rows/row_index.h: a million rows, growth in small steps, keys that collide.
 */
#include "model/rows/row_index.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

#define MANY 1000000
#define SOME 60000
#define BUCKET_BYTES sizeof(ps_row_bucket_t)

/* An index and its rows, which are nothing but keys. */
typedef struct world {
    ps_slab_t rows;
    ps_row_index_t index;
} world_t;

static void set_up(world_t *self)
{
    ps_slab_init(&self->rows, sizeof(uint64_t));
    ps_row_index_init(&self->index, &self->rows);
}

static void tear_down(world_t *self)
{
    ps_row_index_done(&self->index);
    ps_slab_done(&self->rows);
}

static bool add(world_t *self, uint64_t key)
{
    uint32_t number = 0;

    if (!ps_row_index_reserve(&self->index, 1)) {
        return false;
    }
    cr_assert(ps_slab_add(&self->rows, &number));
    ps_store_u64(ps_slab_at(&self->rows, number), key);
    ps_row_index_add(&self->index, key, number);
    return true;
}

/* Keys that share their low bits, so that the hash has to tell them apart. */
static uint64_t key_of(uint32_t i)
{
    return (uint64_t)i << 20;
}

/* The key whose ps_row_hash this is: every step of the hash run backwards. */
static uint64_t key_with(uint64_t row_hash)
{
    uint64_t key = row_hash << 32 | row_hash >> 32;

    key ^= key >> 33;
    key *= UINT64_C(0x9cb4b2f8129337db);
    key ^= key >> 33;
    key *= UINT64_C(0x4f74430c22a54005);
    key ^= key >> 33;
    return key;
}

Test(row_index, a_new_one_is_empty)
{
    world_t world;

    set_up(&world);
    cr_assert_eq(ps_row_index_find(&world.index, 0), PS_ROW_NONE);
    cr_assert_null(ps_row_index_guess(&world.index, 0));
    ps_row_index_prefetch(&world.index, 0);
    cr_assert_eq(ps_row_index_bytes(&world.index), 0);
    tear_down(&world);
}

Test(row_index, grows_to_a_million_rows)
{
    world_t world;
    uint32_t n_guessed = 0;

    set_up(&world);
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(ps_row_index_find(&world.index, key_of(i)), PS_ROW_NONE);
        cr_assert(add(&world, key_of(i)));
    }
    cr_assert_eq(world.index.n, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        const uint8_t *guess = ps_row_index_guess(&world.index, ps_row_hash(key_of(i)));

        cr_assert_eq(ps_row_index_find(&world.index, key_of(i)), i);
        n_guessed += guess == ps_slab_at(&world.rows, i) ? 1 : 0;
    }
    cr_assert_geq(n_guessed, MANY / 10 * 9, "a guess is nearly always right");
    cr_assert_eq(ps_row_index_find(&world.index, key_of(MANY)), PS_ROW_NONE);
    cr_assert_eq(ps_row_index_find(&world.index, 1), PS_ROW_NONE);
    tear_down(&world);
}

/* A key is found at every moment: before it moves, while others do, after. */
Test(row_index, every_key_is_found_while_a_table_moves)
{
    world_t world;

    set_up(&world);
    for (uint32_t n = 0; n < SOME; n++) {
        cr_assert(add(&world, key_of(n)));
        if (n % 997 == 0) {
            for (uint32_t i = 0; i <= n; i++) {
                cr_assert_eq(ps_row_index_find(&world.index, key_of(i)), i);
            }
        }
        cr_assert_eq(ps_row_index_find(&world.index, key_of(n)), n);
        cr_assert_eq(ps_row_index_find(&world.index, key_of(n / 3)), n / 3);
    }
    tear_down(&world);
}

/* The header says 7.5 bytes at most: beside the key's 8 in the row that keeps a
 * row of a hash table below 16 bytes over its values. */
Test(row_index, is_compact_at_every_size)
{
    world_t world;

    set_up(&world);
    for (uint32_t i = 1; i <= MANY; i++) {
        cr_assert(add(&world, key_of(i)));
        if (i > MANY / 2) { /* memory goes in steps of 2 MiB, and their rest */
            cr_assert_leq(ps_row_index_bytes(&world.index),
                          75 * (uint64_t)i / 10 + ((uint64_t)3 << 20));
        }
    }
    tear_down(&world);
}

/* What an insertion may do is bounded, so that no pause can be long: it moves
 * the buckets of one key and those that these ran over into. */
Test(row_index, growth_goes_in_small_steps)
{
    world_t world;
    uint64_t moved = 0;
    uint64_t most = 0;
    uint64_t n_grown = 0;
    uint8_t *table = NULL;

    set_up(&world);
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert(add(&world, key_of(i)));
        if (world.index.now.pages.data != table) {
            table = world.index.now.pages.data;
            n_grown += world.index.old.n_buckets > 0 ? 1 : 0;
        } else if (world.index.old.n_buckets > 0) {
            uint64_t step = world.index.n_moved - moved;

            most = step > most ? step : most;
        }
        moved = world.index.old.n_buckets > 0 ? world.index.n_moved : 0;
    }
    cr_assert_geq(n_grown, 10);
    cr_assert_leq(most, 100);
    tear_down(&world);
}

/* The new table is there before anything moves, its memory is named before keys
 * reach it, and all of it by the end. */
Test(row_index, memory_is_named_before_keys_move_there)
{
    world_t world;
    ps_soon_t soon = {0};
    uint8_t *table = NULL;
    size_t named = 0;
    uint32_t n_tables = 0;

    set_up(&world);
    for (uint32_t i = 0; i < 2 * MANY; i++) {
        const ps_row_table_t *now = &world.index.now;

        cr_assert(add(&world, key_of(i)));
        if (now->pages.data != table) {
            table = now->pages.data;
            named = 0;
            cr_assert(world.index.old.n_buckets == 0 || world.index.n_moved == 0);
        }
        while (ps_row_index_soon(&world.index, &soon)) {
            cr_assert_eq((uint8_t *)soon.data, table + named);
            named += soon.size;
            n_tables += named == now->pages.size ? 1 : 0;
        }
        if (world.index.old.n_buckets > 0 && named > 0) {
            uint64_t reached =
                world.index.n_moved * now->n_buckets / world.index.old.n_buckets * BUCKET_BYTES;

            cr_assert(named > reached || named == now->pages.size);
        }
    }
    cr_assert_geq(n_tables, 3);
    tear_down(&world);
}

/* Indexes of partitions that share out the same keys do not begin to grow at
 * the same number of keys. */
Test(row_index, partitions_grow_one_after_the_other)
{
    uint64_t sizes[8] = {0};

    for (uint32_t p = 0; p < 8; p++) {
        world_t world;

        set_up(&world);
        for (uint32_t i = 0; world.index.n < SOME / 2; i++) {
            if (ps_fold(ps_hash_u64(i), 8) == p) {
                cr_assert(add(&world, i));
            }
        }
        sizes[p] = world.index.now.n_buckets;
        for (uint32_t q = 0; q < p; q++) {
            cr_assert_neq(sizes[q], sizes[p]);
        }
        tear_down(&world);
    }
}

Test(row_index, room_for_many_is_made_at_once)
{
    world_t world;

    set_up(&world);
    cr_assert(ps_row_index_reserve(&world.index, MANY));
    fail_alloc_at(0);
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t number = 0;

        fail_alloc_off();
        cr_assert(ps_slab_add(&world.rows, &number));
        fail_alloc_at(0);
        ps_store_u64(ps_slab_at(&world.rows, number), key_of(i));
        ps_row_index_add(&world.index, key_of(i), number);
    }
    fail_alloc_off();
    cr_assert_eq(ps_row_index_find(&world.index, key_of(999)), 999);
    tear_down(&world);
}

Test(row_index, both_ends_of_u64_are_keys)
{
    world_t world;

    set_up(&world);
    cr_assert(add(&world, 0));
    cr_assert(add(&world, UINT64_MAX));
    cr_assert_eq(ps_row_index_find(&world.index, 0), 0);
    cr_assert_eq(ps_row_index_find(&world.index, UINT64_MAX), 1);
    tear_down(&world);
}

/* Somebody may choose keys whose hashes all fall on the last bucket: they run
 * over the table's end and go on at its front, and are found all the same. */
Test(row_index, keys_that_were_chosen_to_collide_are_found)
{
    world_t world;

    set_up(&world);
    for (uint32_t i = 0; i < SOME / 10; i++) {
        uint64_t key = key_with(UINT64_MAX - 256 * (uint64_t)(i % 50) - i);

        cr_assert_eq(ps_row_hash(key), UINT64_MAX - 256 * (uint64_t)(i % 50) - i);
        if (ps_row_index_find(&world.index, key) == PS_ROW_NONE) {
            cr_assert(add(&world, key));
            cr_assert_neq(ps_row_index_find(&world.index, key), PS_ROW_NONE);
        }
        cr_assert(add(&world, key_of(i)));
    }
    for (uint32_t i = 0; i < SOME / 10; i++) {
        uint64_t key = key_with(UINT64_MAX - 256 * (uint64_t)(i % 50) - i);

        cr_assert_neq(ps_row_index_find(&world.index, key), PS_ROW_NONE);
        cr_assert_neq(ps_row_index_find(&world.index, key_of(i)), PS_ROW_NONE);
    }
    tear_down(&world);
}

static psd_status_t fill_or_fail(void *fixture)
{
    world_t world;
    psd_status_t rc = PSD_OK;

    (void)fixture;
    set_up(&world);
    rc = ps_slab_reserve(&world.rows, SOME) ? PSD_OK : PSD_NOMEM;
    for (uint32_t i = 0; i < SOME && rc == PSD_OK; i++) {
        rc = add(&world, key_of(i)) ? PSD_OK : PSD_NOMEM;
    }
    for (uint32_t i = 0; i < world.index.n; i++) {
        cr_assert_eq(ps_row_index_find(&world.index, key_of(i)), i);
    }
    tear_down(&world);
    return rc;
}

Test(row_index, no_memory_changes_nothing)
{
    cr_assert_null(fail_alloc_sweep(fill_or_fail, NULL));
}
