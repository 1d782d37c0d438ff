/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a copy that takes records does not finish their windows. */
#include "sim_cluster_planted.h"

void __real_ps_replicas_append(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                               uint64_t conn, const ps_msg_append_t *append, ps_payload_t *payload);
void __wrap_ps_replicas_append(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                               uint64_t conn, const ps_msg_append_t *append, ps_payload_t *payload);

void __wrap_ps_replicas_append(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                               uint64_t conn, const ps_msg_append_t *append, ps_payload_t *payload)
{
    size_t at = 0;
    uint64_t session = 0;
    void *value = NULL;

    __real_ps_replicas_append(step, partition, from, conn, append, payload);
    while (append->n_records > 0 && ps_map_next(&partition->windows, &at, &session, &value)) {
        ps_window_t *window = value;

        window->next = 1;
        window->arrived = 1;
    }
}

int main(void)
{
    return cluster_planted_main("no dedupe in the replica");
}
