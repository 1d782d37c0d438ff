/* SPDX-License-Identifier: Apache-2.0 */
/* data/text/murmur.h: values that the reference implementation is known by. */
#include "data/text/murmur.h"

#include <criterion/criterion.h>
#include <string.h>

Test(murmur, hash_of_32_bits_is_the_published_one)
{
    static const struct {
        const char *text;
        uint32_t seed;
        uint32_t hash;
    } cases[] = {{"", 0, 0},
                 {"", 1, 0x514e28b7},
                 {"", 0xffffffff, 0x81f16f39},
                 {"test", 0, 0xba6bd213},
                 {"test", 0x9747b28c, 0x704b81dc},
                 {"Hello, world!", 0, 0xc0363e43},
                 {"Hello, world!", 0x9747b28c, 0x24884cba},
                 {"The quick brown fox jumps over the lazy dog", 0x9747b28c, 0x2fa826cd}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_eq(ps_murmur_32(cases[i].text, strlen(cases[i].text), cases[i].seed),
                     cases[i].hash, "%s", cases[i].text);
    }
}

/* The check that came with the reference: hashes of the keys 0, 01, 012, …
 * with falling seeds, hashed again. */
static void hash_hashes(void (*hash)(const void *, size_t, uint32_t, uint8_t *), size_t hash_size,
                        uint32_t expected)
{
    uint8_t key[256];
    uint8_t hashes[256 * 16];
    uint8_t last[16];
    uint32_t got = 0;

    for (uint32_t i = 0; i < 256; i++) {
        key[i] = (uint8_t)i;
        hash(key, i, 256 - i, hashes + i * hash_size);
    }
    hash(hashes, 256 * hash_size, 0, last);
    memcpy(&got, last, sizeof got);
    cr_expect_eq(got, expected, "%#x", got);
}

static void hash_32(const void *bytes, size_t size, uint32_t seed, uint8_t *ret)
{
    uint32_t hash = ps_murmur_32(bytes, size, seed);

    memcpy(ret, &hash, sizeof hash);
}

static void hash_128(const void *bytes, size_t size, uint32_t seed, uint8_t *ret)
{
    uint64_t halves[2];

    ps_murmur_128(bytes, size, seed, halves);
    memcpy(ret, halves, sizeof halves);
}

Test(murmur, hashes_of_all_lengths_pass_the_references_check)
{
    hash_hashes(hash_32, 4, 0xb0f57ee3);
    hash_hashes(hash_128, 16, 0x6384ba69);
}
