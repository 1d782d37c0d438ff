/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that sees xxHash. */
#include "base/hash.h"

#include <string.h>

/* Inlined, so that the state of a streaming hash lies on the stack. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cursor.h"

static void store_id(XXH128_hash_t hash, ps_id_t *ret_id)
{
    ps_store_u64(ret_id->bytes, hash.low64);
    ps_store_u64(ret_id->bytes + 8, hash.high64);
}

void ps_hash_id(const void *data, size_t size, ps_id_t *ret_id)
{
    store_id(XXH3_128bits(data, size), ret_id);
}

void ps_hash_id_spans(const ps_bytes_t *spans, size_t n, ps_id_t *ret_id)
{
    XXH3_state_t state;

    (void)XXH3_128bits_reset(&state);
    for (size_t i = 0; i < n; i++) {
        (void)XXH3_128bits_update(&state, spans[i].data, spans[i].size);
    }
    store_id(XXH3_128bits_digest(&state), ret_id);
}

uint64_t ps_hash_bytes(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

/* Short inputs are gathered and hashed in one call: no streaming state. */
#define GATHER_MAX 1024

uint64_t ps_hash_spans(const ps_bytes_t *spans, size_t n)
{
    uint8_t gathered[GATHER_MAX];
    XXH3_state_t state;
    size_t size = 0;

    for (size_t i = 0; i < n && spans[i].size <= GATHER_MAX - size; i++) {
        if (spans[i].size > 0) {
            memcpy(gathered + size, spans[i].data, spans[i].size);
        }
        size += spans[i].size;
        if (i + 1 == n) {
            return XXH3_64bits(gathered, size);
        }
    }
    (void)XXH3_64bits_reset(&state);
    for (size_t i = 0; i < n; i++) {
        (void)XXH3_64bits_update(&state, spans[i].data, spans[i].size);
    }
    return XXH3_64bits_digest(&state);
}
