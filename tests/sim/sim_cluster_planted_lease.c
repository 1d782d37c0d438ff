/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a primary answers without asking who lends it the right to. */
#include "sim_cluster_planted.h"

bool __wrap_ps_replicas_may_answer(const ps_shard_t *shard, const ps_partition_t *partition);

bool __wrap_ps_replicas_may_answer(const ps_shard_t *shard, const ps_partition_t *partition)
{
    (void)shard;
    return partition->replicas->serving;
}

int main(void)
{
    return cluster_planted_main("lease not checked");
}
