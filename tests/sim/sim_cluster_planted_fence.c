/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: no fencing. A copy stays with its old primary: in spite of newer
 * epochs it takes that primary's records and grants it leases. */
#include "sim_cluster_planted.h"

void __real_ps_replicas_append(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                               uint64_t conn, const ps_msg_append_t *append, ps_payload_t *payload);
void __wrap_ps_replicas_append(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                               uint64_t conn, const ps_msg_append_t *append, ps_payload_t *payload);

void __wrap_ps_replicas_append(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                               uint64_t conn, const ps_msg_append_t *append, ps_payload_t *payload)
{
    ps_replicas_t *replicas = partition->replicas;
    const ps_replicas_t was = *replicas;
    uint64_t epoch = partition->epoch;

    if (append->epoch >= epoch && append->epoch >= was.fence) {
        __real_ps_replicas_append(step, partition, from, conn, append, payload);
        return;
    }
    partition->epoch = append->epoch;
    replicas->fence = 0;
    replicas->from = from;
    replicas->primary = false;
    __real_ps_replicas_append(step, partition, from, conn, append, payload);
    partition->epoch = epoch;
    replicas->fence = was.fence;
    replicas->from = was.from;
    replicas->primary = was.primary;
}

/* A node that comes back gets the new map at once: few seeds show it. */
int main(void)
{
    return cluster_planted_from("no fencing", 20901);
}
