/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a primary answers without checking its leases. */
#include "sim_cluster_planted.h"

void __wrap_ps_replicas_set_lead(ps_partition_t *partition);

void __wrap_ps_replicas_set_lead(ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;

    partition->lead =
        (ps_lead_t){.primary = self->primary, .until_ms = self->serving ? UINT64_MAX : 0};
}

int main(void)
{
    return cluster_planted_main("lease not checked");
}
