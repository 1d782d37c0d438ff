/* SPDX-License-Identifier: Apache-2.0 */
/* A node's damaged copies. */
#include "protocol/facts/lost.h"

bool ps_lost_has(const ps_lost_t *lost, size_t n, uint32_t shard, uint32_t table,
                 uint32_t partition)
{
    for (size_t i = 0; i < n; i++) {
        if (lost[i].shard == shard &&
            (lost[i].table == 0 ||
             (lost[i].table == table && partition >= lost[i].first && partition <= lost[i].last))) {
            return true;
        }
    }
    return false;
}
