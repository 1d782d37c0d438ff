/* SPDX-License-Identifier: Apache-2.0 */
/* ps_hash - xxHash under psd's own names. The results go over the wire and
 * decide placement, so they never change. */
#ifndef PS_BASE_HASH_H
#define PS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* XXH3-128 of the bytes: the name of a list of keys. Low half first, both
 * halves little-endian. Not collision-resistant against an attacker. */
void ps_hash_id(const void *data, size_t size, ps_id_t *ret_id);

/* The same of n spans as if they were contiguous. */
void ps_hash_id_spans(const ps_bytes_t *spans, size_t n, ps_id_t *ret_id);

/* XXH3-64 of the bytes. */
uint64_t ps_hash_bytes(const void *data, size_t size, uint64_t seed);

/* XXH3-64, seed 0, of n spans as if they were contiguous. */
uint64_t ps_hash_spans(const ps_bytes_t *spans, size_t n);

/* Mixes a row key: the 64-bit finaliser of MurmurHash3 (Appleby), a bijection,
 * so that different keys never collide before they are folded. */
static inline uint64_t ps_hash_u64(uint64_t key)
{
    key ^= key >> 33;
    key *= UINT64_C(0xff51afd7ed558ccd);
    key ^= key >> 33;
    key *= UINT64_C(0xc4ceb9fe1a85ec53);
    key ^= key >> 33;
    return key;
}

/* ISO C has no 128-bit integer; both supported compilers do. */
__extension__ typedef unsigned __int128 ps_u128_t;

/* Spreads 64 random bits evenly over 0 .. n - 1 without a division (Lemire, ACM
 * TOMACS 2019): the high half of bits x n. */
static inline uint64_t ps_fold(uint64_t bits, uint64_t n)
{
    return (uint64_t)(((ps_u128_t)bits * n) >> 64);
}
#endif
