/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: the shard takes an unknown list of keys for the last one that it
 * kept, if that is as long. */
#include "sim_planted.h"

ps_payload_t *__real_ps_key_cache_find(ps_key_cache_t *self, const ps_id_t *hash, uint64_t n_keys);
ps_payload_t *__wrap_ps_key_cache_find(ps_key_cache_t *self, const ps_id_t *hash, uint64_t n_keys);

ps_payload_t *__wrap_ps_key_cache_find(ps_key_cache_t *self, const ps_id_t *hash, uint64_t n_keys)
{
    static ps_id_t last;
    ps_payload_t *found = __real_ps_key_cache_find(self, hash, n_keys);

    if (found == NULL) {
        return __real_ps_key_cache_find(self, &last, n_keys);
    }
    last = *hash;
    return found;
}

int main(void)
{
    return sim_planted_main("one list of keys taken for another");
}
