/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a node takes what changed in a table for all of the message, but
 * leaves out the last partition. */
#include "protocol/agent/node_message.h"
#include "sim_cluster_planted.h"

psd_status_t __real_ps_places_put(const ps_node_message_t *message, ps_table_t *table,
                                  psd_error_t *err);
psd_status_t __wrap_ps_places_put(const ps_node_message_t *message, ps_table_t *table,
                                  psd_error_t *err);

psd_status_t __wrap_ps_places_put(const ps_node_message_t *message, ps_table_t *table,
                                  psd_error_t *err)
{
    ps_node_message_t less = *message;

    if (message->kind == PS_NODE_PLACES) {
        less.n_places--;
    }
    return __real_ps_places_put(&less, table, err);
}

int main(void)
{
    return cluster_planted_main("a node leaves out a partition that changed");
}
