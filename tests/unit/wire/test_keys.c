/* SPDX-License-Identifier: Apache-2.0 */
/* wire/filters/keys.h: ascending lists as differences. */
#include "wire/filters/keys.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/rng.h"
#include "support/fail_alloc.h"

#define N_MANY 5000

static bool encode(const uint64_t *keys, uint64_t n, ps_buffer_t *to)
{
    bool ascending = false;

    cr_assert_eq(ps_keys_delta_encode((const uint8_t *)keys, n, to, &ascending), PSD_OK);
    return ascending;
}

static void assert_comes_back(const uint64_t *keys, uint64_t n)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t coded = {0};
    PSD_AUTO(ps_free_at) uint64_t *back = ps_alloc(n, sizeof *back);

    cr_assert(encode(keys, n, &coded));
    cr_assert(ps_keys_delta_can_hold(coded.size, n));
    cr_assert_eq(
        ps_keys_delta_decode((ps_bytes_t){coded.data, coded.size}, n, (uint8_t *)back, NULL),
        PSD_OK);
    cr_assert_arr_eq(back, keys, n * sizeof *keys);
}

static void assert_refused(ps_bytes_t coded, uint64_t n, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_free_at) uint8_t *exact = ps_alloc_raw(coded.size, 1);
    PSD_AUTO(ps_free_at) uint8_t *keys = ps_alloc_raw(n, PS_KEY_SIZE);

    if (coded.size > 0) {
        memcpy(exact, coded.data, coded.size);
    }
    coded.data = exact;
    cr_assert_eq(ps_keys_delta_decode(coded, n, keys, err), PSD_PROTO);
    cr_assert_str_eq(psd_error_text(err), text);
}

#define BYTES(...) \
    ((ps_bytes_t){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})

Test(keys, list_is_first_key_and_distances)
{
    static const uint64_t keys[] = {5, 5, 6, 134, 16518, UINT64_MAX};
    static const uint8_t wanted[] = {5,    0,    1,    0x80, 0x01, 0x80, 0x80, 0x01, 0xF9,
                                     0xFE, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01};
    PSD_AUTO(ps_buffer_done) ps_buffer_t coded = {0};

    cr_assert(encode(keys, 6, &coded));
    cr_assert_eq(coded.size, sizeof wanted);
    cr_assert_arr_eq(coded.data, wanted, sizeof wanted);
    assert_comes_back(keys, 6);
}

Test(keys, lists_of_any_gaps_come_back)
{
    uint64_t keys[N_MANY];
    ps_rng_t rng = {.state = 1};

    for (unsigned bits = 1; bits <= 51; bits++) {
        keys[0] = ps_rng_u64(&rng) >> 1;
        for (size_t i = 1; i < N_MANY; i++) {
            keys[i] = keys[i - 1] + (ps_rng_u64(&rng) >> (64 - bits));
        }
        assert_comes_back(keys, N_MANY);
        assert_comes_back(keys, bits);
    }
}

Test(keys, gaps_of_one_byte_reach_the_greatest_key)
{
    uint64_t keys[40];

    for (size_t i = 0; i < 40; i++) {
        keys[i] = UINT64_MAX - 127 * (39 - i);
    }
    assert_comes_back(keys, 40);
}

Test(keys, nothing_is_a_list_too)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t coded = {0};

    cr_assert(encode(NULL, 0, &coded));
    cr_assert_eq(coded.size, 0);
    cr_assert(ps_keys_delta_can_hold(0, 0));
    cr_assert_eq(ps_keys_delta_decode((ps_bytes_t){NULL, 0}, 0, NULL, NULL), PSD_OK);
}

Test(keys, list_that_descends_is_left_as_it_is)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t coded = {0};
    uint64_t keys[N_MANY];

    for (size_t i = 0; i < N_MANY; i++) {
        keys[i] = i * 3;
    }
    keys[N_MANY - 1] = 7;
    cr_assert(ps_buffer_append(&coded, "psd", 3));
    cr_assert_not(encode(keys, N_MANY, &coded));
    cr_assert_eq(coded.size, 3);
    cr_assert_arr_eq(coded.data, "psd", 3);
}

Test(keys, hold_says_how_many_keys_bytes_may_be)
{
    cr_assert(ps_keys_delta_can_hold(10, 10));
    cr_assert(ps_keys_delta_can_hold(10, 1));
    cr_assert_not(ps_keys_delta_can_hold(10, 11));
    cr_assert_not(ps_keys_delta_can_hold(11, 1));
    cr_assert_not(ps_keys_delta_can_hold(1, 0));
    cr_assert_not(ps_keys_delta_can_hold(SIZE_MAX, 1));
    cr_assert_not(ps_keys_delta_can_hold(10, UINT64_MAX));
}

Test(keys, hostile_bytes_are_refused)
{
    assert_refused(BYTES(1, 0x80), 2, "key 1 of 2 is cut off");
    assert_refused((ps_bytes_t){NULL, 0}, 1, "key 0 of 1 is cut off");
    assert_refused(BYTES(1, 0x80, 0), 2, "key 1 of 2 is longer than it needs to be");
    assert_refused(BYTES(0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2), 1,
                   "key 0 of 1 is a distance beyond 64 bits");
    assert_refused(BYTES(0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x81), 1,
                   "key 0 of 1 is a distance beyond 64 bits");
    assert_refused(BYTES(0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 1), 2,
                   "key 1 of 2 lies beyond 2^64 - 1");
    assert_refused(BYTES(1, 2, 3), 2, "1 bytes are left over after 2 keys");
    assert_refused(BYTES(1, 2, 3), 0, "3 bytes are left over after 0 keys");
}

/* Eight short distances are read at once; the sum must not wrap there. */
Test(keys, short_distances_do_not_pass_the_end)
{
    assert_refused(
        BYTES(0xF8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
        10, "key 8 of 10 lies beyond 2^64 - 1");
}

static psd_status_t encode_once(void *fixture)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t coded = {0};
    const uint64_t *keys = fixture;
    bool ascending = false;
    psd_status_t rc = ps_keys_delta_encode((const uint8_t *)keys, N_MANY, &coded, &ascending);

    cr_assert_eq(ascending, rc == PSD_OK);
    cr_assert(rc == PSD_OK || coded.size == 0);
    return rc;
}

Test(keys, no_memory_is_said)
{
    uint64_t keys[N_MANY];

    for (size_t i = 0; i < N_MANY; i++) {
        keys[i] = i << 40;
    }
    cr_assert_null(fail_alloc_sweep(encode_once, keys));
}
