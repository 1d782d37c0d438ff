/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that sees xxHash. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t
ps_hash_bytes(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}
