/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a relay takes a bundle that it is in itself. */
#include "protocol/relay/relay_check.h"
#include "sim_overlay_planted.h"

psd_status_t __real_ps_relay_check(const ps_relay_tree_t *tree, uint32_t worker, uint32_t giver,
                                   const ps_relay_key_t *key, const ps_relay_lot_t *lot,
                                   psd_error_t *err);
psd_status_t __wrap_ps_relay_check(const ps_relay_tree_t *tree, uint32_t worker, uint32_t giver,
                                   const ps_relay_key_t *key, const ps_relay_lot_t *lot,
                                   psd_error_t *err);

psd_status_t __wrap_ps_relay_check(const ps_relay_tree_t *tree, uint32_t worker, uint32_t giver,
                                   const ps_relay_key_t *key, const ps_relay_lot_t *lot,
                                   psd_error_t *err)
{
    return __real_ps_relay_check(tree, worker == giver ? worker : PS_RELAY_NOBODY, giver, key, lot,
                                 err);
}

int main(void)
{
    return overlay_planted_main("a relay takes its own deltas back");
}
