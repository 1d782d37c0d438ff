/* SPDX-License-Identifier: Apache-2.0 */
/* wire/filters/keys_cache.h: lists that two peers know. */
#include "wire/filters/keys_cache.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "support/fail_alloc.h"

#define N_KEYS 4
#define COST (N_KEYS * 8 + PS_KEY_CACHE_COST)

/* A list whose keys tell it from others, and its name. */
typedef struct sample {
    uint64_t keys[N_KEYS];
    ps_id_t hash;
} sample_t;

static sample_t sample(uint64_t number)
{
    sample_t one = {.keys = {number, number + 1, number + 2, number + 3}};

    ps_hash_id(one.keys, sizeof one.keys, &one.hash);
    return one;
}

static ps_bytes_t bytes_of(const sample_t *one)
{
    return (ps_bytes_t){(const uint8_t *)one->keys, sizeof one->keys};
}

static void put(ps_key_cache_t *cache, uint64_t number)
{
    sample_t one = sample(number);

    cr_assert_eq(ps_key_cache_put(cache, &one.hash, bytes_of(&one)), PSD_OK);
}

/* Whether the list is known, and then as it was. */
static bool finds(ps_key_cache_t *cache, uint64_t number)
{
    sample_t one = sample(number);
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *list = ps_key_cache_find(cache, &one.hash, N_KEYS);

    if (list == NULL) {
        return false;
    }
    cr_assert_eq(list->keys.size, sizeof one.keys);
    cr_assert_arr_eq(list->keys.data, one.keys, sizeof one.keys);
    return true;
}

Test(keys_cache, list_is_found_by_its_name)
{
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *cache = ps_key_cache_new(10 * COST);

    put(cache, 1);
    put(cache, 2);
    cr_assert(finds(cache, 1));
    cr_assert(finds(cache, 2));
    cr_assert_not(finds(cache, 3));
    cr_assert_eq(ps_key_cache_bytes(cache), 2 * COST);
}

Test(keys_cache, list_of_another_length_is_not_found)
{
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *cache = ps_key_cache_new(10 * COST);
    sample_t one = sample(1);

    put(cache, 1);
    cr_assert_null(ps_key_cache_find(cache, &one.hash, N_KEYS - 1));
    cr_assert_null(ps_key_cache_find(cache, &one.hash, N_KEYS + 1));
    cr_assert_null(ps_key_cache_find(cache, &one.hash, UINT64_MAX));
    /* n x 8 would be the length again in 64 bits. */
    cr_assert_null(ps_key_cache_find(cache, &one.hash, N_KEYS + (UINT64_C(1) << 61)));
    cr_assert(finds(cache, 1));
}

Test(keys_cache, what_was_used_longest_ago_goes_first)
{
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *cache = ps_key_cache_new(2 * COST + 1);

    put(cache, 1);
    put(cache, 2);
    cr_assert(finds(cache, 1));
    put(cache, 3);
    cr_assert_not(finds(cache, 2));
    cr_assert(finds(cache, 1));
    cr_assert(finds(cache, 3));
    cr_assert_eq(ps_key_cache_bytes(cache), 2 * COST);
}

Test(keys_cache, list_put_twice_counts_once)
{
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *cache = ps_key_cache_new(COST);

    put(cache, 1);
    put(cache, 1);
    cr_assert_eq(ps_key_cache_bytes(cache), COST);
    cr_assert(finds(cache, 1));
}

Test(keys_cache, list_above_the_limit_is_not_kept)
{
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *cache = ps_key_cache_new(COST - 1);
    PSD_AUTO(ps_key_cache_destroy) ps_key_cache_t *none = ps_key_cache_new(0);
    sample_t one = sample(1);

    put(cache, 1);
    put(none, 1);
    cr_assert_not(finds(cache, 1));
    cr_assert_not(finds(none, 1));
    cr_assert_eq(ps_key_cache_note(cache, &one.hash, sizeof one.keys), PSD_OK);
    cr_assert_not(ps_key_cache_knows(cache, &one.hash, sizeof one.keys));
    cr_assert_eq(ps_key_cache_bytes(cache), 0);
}

Test(keys_cache, found_list_outlives_the_cache)
{
    ps_key_cache_t *cache = ps_key_cache_new(COST);
    sample_t one = sample(1);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *list = NULL;

    put(cache, 1);
    list = ps_key_cache_find(cache, &one.hash, N_KEYS);
    ps_key_cache_destroy(&cache);
    cr_assert_null(cache);
    cr_assert_arr_eq(list->keys.data, one.keys, sizeof one.keys);
}

/* What makes a hash enough most of the time: both ends drop the same lists. */
Test(keys_cache, sender_and_receiver_forget_in_step)
{
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *sent = ps_key_cache_new(8 * COST);
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *kept = ps_key_cache_new(8 * COST);

    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t number = i * i % 23;
        sample_t one = sample(number);
        bool known = ps_key_cache_knows(sent, &one.hash, sizeof one.keys);

        cr_assert_eq(known, finds(kept, number));
        if (!known) {
            cr_assert_eq(ps_key_cache_note(sent, &one.hash, sizeof one.keys), PSD_OK);
            put(kept, number);
        }
        cr_assert_eq(ps_key_cache_bytes(sent), ps_key_cache_bytes(kept));
    }
}

Test(keys_cache, noted_name_has_no_list)
{
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *cache = ps_key_cache_new(COST);
    sample_t one = sample(1);

    cr_assert_eq(ps_key_cache_note(cache, &one.hash, sizeof one.keys), PSD_OK);
    cr_assert(ps_key_cache_knows(cache, &one.hash, sizeof one.keys));
    cr_assert_not(ps_key_cache_knows(cache, &one.hash, sizeof one.keys + 8));
    cr_assert_null(ps_key_cache_find(cache, &one.hash, N_KEYS));
}

Test(keys_cache, lists_are_dropped_one_by_one_or_all)
{
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *cache = ps_key_cache_new(10 * COST);
    sample_t one = sample(1);

    put(cache, 1);
    put(cache, 2);
    put(cache, 3);
    ps_key_cache_drop(cache, &one.hash);
    ps_key_cache_drop(cache, &one.hash);
    cr_assert_not(finds(cache, 1));
    cr_assert(finds(cache, 2));
    ps_key_cache_clear(cache);
    cr_assert_not(finds(cache, 2));
    cr_assert_eq(ps_key_cache_bytes(cache), 0);
    put(cache, 4);
    cr_assert(finds(cache, 4));
}

/* The map of names goes by half of a hash. */
Test(keys_cache, names_that_agree_in_half_replace_each_other)
{
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *cache = ps_key_cache_new(10 * COST);
    sample_t one = sample(1);
    sample_t other = sample(2);

    memcpy(other.hash.bytes, one.hash.bytes, 8);
    put(cache, 1);
    cr_assert_eq(ps_key_cache_put(cache, &other.hash, bytes_of(&other)), PSD_OK);
    cr_assert_not(finds(cache, 1));
    ps_key_cache_drop(cache, &one.hash);
    cr_assert_eq(ps_key_cache_bytes(cache), COST);
    cr_assert(ps_key_cache_knows(cache, &other.hash, sizeof other.keys));
}

static psd_status_t use_once(void *fixture)
{
    PSD_AUTO(ps_key_cache_destroy)
    ps_key_cache_t *cache = ps_key_cache_new(10 * COST);
    sample_t one = sample(1);
    psd_status_t rc = PSD_OK;

    (void)fixture;
    if (cache == NULL) {
        return PSD_NOMEM;
    }
    rc = ps_key_cache_put(cache, &one.hash, bytes_of(&one));
    cr_assert_eq(ps_key_cache_bytes(cache), rc == PSD_OK ? COST : 0);
    if (rc == PSD_OK) {
        rc = ps_key_cache_put(cache, &one.hash, bytes_of(&one));
        cr_assert_eq(ps_key_cache_bytes(cache), COST);
        cr_assert(ps_key_cache_knows(cache, &one.hash, sizeof one.keys));
    }
    return rc;
}

Test(keys_cache, no_memory_changes_nothing)
{
    cr_assert_null(fail_alloc_sweep(use_once, NULL));
}

/* A body of two spans, and a list to be put before it. */
static psd_status_t put_once(void *fixture)
{
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
    ps_bytes_t none = {NULL, 0};
    ps_bytes_t *spans = ps_alloc(2, sizeof *spans);
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *body = ps_payload_copy(none, (ps_bytes_t){bytes, 4}, none);
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *list = ps_payload_copy((ps_bytes_t){bytes, 8}, none, none);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *whole = NULL;

    (void)fixture;
    if (spans == NULL || body == NULL || list == NULL) {
        ps_free(spans);
        return PSD_NOMEM;
    }
    spans[0] = (ps_bytes_t){bytes, 4};
    spans[1] = (ps_bytes_t){bytes + 4, 4};
    body->spans = spans;
    body->n_spans = 2;
    whole = ps_key_list_put(body, list);
    if (whole == NULL) {
        return PSD_NOMEM;
    }
    cr_assert_eq(whole->keys.data, list->keys.data);
    cr_assert_eq(whole->index.data, body->index.data);
    cr_assert_eq(whole->n_spans, 2);
    cr_assert_eq(whole->spans[1].data, bytes + 4);
    ps_payload_destroy(&body); /* the whole holds both */
    ps_payload_destroy(&list);
    cr_assert_eq(whole->keys.data[7], 8);
    cr_assert_eq(ps_payload_size(whole), 20);
    return PSD_OK;
}

Test(keys_cache, list_is_put_before_a_body_where_both_lie)
{
    cr_assert_null(fail_alloc_sweep(put_once, NULL));
}
