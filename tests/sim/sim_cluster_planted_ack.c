/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: an answer says replica before any other copy has the record. */
#include "sim_cluster_planted.h"

void __wrap_ps_replicas_withhold(ps_step_t *step, ps_partition_t *partition,
                                 const ps_request_t *request, size_t n_before);

void __wrap_ps_replicas_withhold(ps_step_t *step, ps_partition_t *partition,
                                 const ps_request_t *request, size_t n_before)
{
    ps_message_t *message = NULL;

    (void)partition;
    (void)request;
    if (step->outbox->n_effects == n_before) {
        return;
    }
    message = &step->outbox->effects[step->outbox->n_effects - 1].message;
    if (message->kind == PS_KIND_ACK) {
        message->ack.level = PS_ACK_REPLICA;
    } else if (message->kind == PS_KIND_VALUES) {
        message->values.level = PS_ACK_REPLICA;
    }
}

int main(void)
{
    return cluster_planted_main("ack before replication");
}
