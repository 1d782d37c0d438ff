/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: an image of a checkpoint begins at once, and not after the named
 * clock. */
#include "protocol/shard/shard_state.h"
#include "sim_cluster_planted.h"

void __real_ps_shard_image_begin(ps_shard_t *self, const ps_image_step_t *step,
                                 const ps_image_order_t *order);
void __wrap_ps_shard_image_begin(ps_shard_t *self, const ps_image_step_t *step,
                                 const ps_image_order_t *order);

void __wrap_ps_shard_image_begin(ps_shard_t *self, const ps_image_step_t *step,
                                 const ps_image_order_t *order)
{
    const ps_local_table_t *table = ps_map_get(&self->step.tables, order->table);
    ps_image_order_t at_once = *order;

    at_once.job = 0;
    __real_ps_shard_image_begin(self, step, &at_once);
    for (uint32_t i = 0; table != NULL && i < table->spec.n_partitions; i++) {
        if (table->partitions[i] != NULL) {
            table->partitions[i]->image.view.clock = order->clock;
        }
    }
}

int main(void)
{
    return cluster_planted_main("an image before its clock");
}
