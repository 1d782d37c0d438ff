/* SPDX-License-Identifier: Apache-2.0 */
/* MurmurHash3 over bytes of any alignment, little-endian. */
#include "data/text/murmur.h"

#include <string.h>

static uint32_t rotate_32(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static uint64_t rotate_64(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint32_t mix_32(uint32_t word)
{
    return rotate_32(word * UINT32_C(0xcc9e2d51), 15) * UINT32_C(0x1b873593);
}

uint32_t ps_murmur_32(const void *bytes, size_t size, uint32_t seed)
{
    const uint8_t *at = bytes;
    uint32_t hash = seed;
    uint32_t word = 0;

    for (size_t i = 0; i < size / 4; i++, at += 4) {
        memcpy(&word, at, 4);
        hash = rotate_32(hash ^ mix_32(word), 13) * 5 + UINT32_C(0xe6546b64);
    }
    word = 0;
    memcpy(&word, at, size % 4);
    hash ^= mix_32(word); /* 0 stays 0 */
    hash ^= (uint32_t)size;
    hash = (hash ^ hash >> 16) * UINT32_C(0x85ebca6b);
    hash = (hash ^ hash >> 13) * UINT32_C(0xc2b2ae35);
    return hash ^ hash >> 16;
}

#define FIRST UINT64_C(0x87c37b91114253d5)
#define SECOND UINT64_C(0x4cf5ad432745937f)

static uint64_t mix_first(uint64_t word)
{
    return rotate_64(word * FIRST, 31) * SECOND;
}

static uint64_t mix_second(uint64_t word)
{
    return rotate_64(word * SECOND, 33) * FIRST;
}

static uint64_t finish_64(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

void ps_murmur_128(const void *bytes, size_t size, uint32_t seed, uint64_t ret_halves[2])
{
    const uint8_t *at = bytes;
    uint64_t a = seed;
    uint64_t b = seed;
    uint64_t words[2] = {0, 0};

    for (size_t i = 0; i < size / 16; i++, at += 16) {
        memcpy(words, at, 16);
        a = (rotate_64(a ^ mix_first(words[0]), 27) + b) * 5 + 0x52dce729;
        b = (rotate_64(b ^ mix_second(words[1]), 31) + a) * 5 + 0x38495ab5;
    }
    words[0] = 0;
    words[1] = 0;
    memcpy(words, at, size % 16);
    a ^= mix_first(words[0]) ^ size;
    b ^= mix_second(words[1]) ^ size;
    a += b;
    b += a;
    a = finish_64(a);
    b = finish_64(b);
    a += b;
    ret_halves[0] = a;
    ret_halves[1] = a + b;
}
