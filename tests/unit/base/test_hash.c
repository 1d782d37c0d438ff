/* SPDX-License-Identifier: Apache-2.0 */
/* base/hash.h: results travel, so the numbers below never change. */
#include "base/hash.h"

#include <criterion/criterion.h>

Test(hash, bytes_are_xxh3)
{
    /* The published XXH3-64 of the empty input with seed 0. */
    cr_assert_eq(ps_hash_bytes(NULL, 0, 0), UINT64_C(0x2D06800538D394C2));
    cr_assert_eq(ps_hash_bytes("psd", 3, 0), ps_hash_bytes("psd", 3, 0));
    cr_assert_neq(ps_hash_bytes("psd", 3, 0), ps_hash_bytes("psd", 3, 1));
    cr_assert_neq(ps_hash_bytes("psd", 3, 0), ps_hash_bytes("psc", 3, 0));
}

Test(hash, spans_are_as_the_bytes_in_one)
{
    static uint8_t bytes[3000];

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    for (size_t size = 0; size <= sizeof bytes; size += 125) {
        ps_bytes_t spans[4] = {{bytes, size / 3},
                               {NULL, 0},
                               {bytes + size / 3, size / 2 - size / 3},
                               {bytes + size / 2, size - size / 2}};

        cr_assert_eq(ps_hash_spans(spans, 4), ps_hash_bytes(bytes, size, 0));
    }
    cr_assert_eq(ps_hash_spans(NULL, 0), ps_hash_bytes(NULL, 0, 0));
}

Test(hash, id_is_xxh3_of_128_bits)
{
    /* The published XXH3-128 of the empty input with seed 0. */
    static const ps_id_t of_nothing = {{0x7F, 0x49, 0x8D, 0x46, 0x24, 0xC3, 0x01, 0x60, 0xD8, 0x98,
                                        0x47, 0x01, 0xD3, 0x06, 0xAA, 0x99}};
    ps_id_t one = {{0}};
    ps_id_t other = {{0}};

    ps_hash_id(NULL, 0, &one);
    cr_assert(ps_id_equal(&one, &of_nothing));
    ps_hash_id("psd", 3, &one);
    ps_hash_id("psc", 3, &other);
    cr_assert(!ps_id_equal(&one, &other));
}

Test(hash, u64_is_the_finaliser_of_murmur3)
{
    cr_assert_eq(ps_hash_u64(0), 0);
    cr_assert_eq(ps_hash_u64(1), UINT64_C(0xB456BCFC34C2CB2C));
    cr_assert_eq(ps_hash_u64(2), UINT64_C(0x3ABF2A20650683E7));
}
