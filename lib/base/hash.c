/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that sees xxHash. */
#include "base/hash.h"

#include <xxhash.h>

#include "base/cursor.h"

void
ps_hash_id(const void *data, size_t size, ps_id_t *ret_id)
{
    XXH128_hash_t hash = XXH3_128bits(data, size);

    ps_store_u64(ret_id->bytes, hash.low64);
    ps_store_u64(ret_id->bytes + 8, hash.high64);
}

uint64_t
ps_hash_bytes(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}
