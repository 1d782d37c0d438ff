/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_murmur - MurmurHash3, by which other systems' formats name features
 *
 * Source   Appleby's MurmurHash3: the variants x86_32 and x64_128
 * Threads  any
 */
#ifndef PS_DATA_MURMUR_H
#define PS_DATA_MURMUR_H

#include <stddef.h>
#include <stdint.h>

uint32_t ps_murmur_32(const void *bytes, size_t size, uint32_t seed);
/* ret_halves: the 128 bits, the first half first. */
void ps_murmur_128(const void *bytes, size_t size, uint32_t seed, uint64_t ret_halves[2]);
#endif
