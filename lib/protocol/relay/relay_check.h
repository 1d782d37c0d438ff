/* SPDX-License-Identifier: Apache-2.0 */
/* ps_relay_check - is that lot one that a relay may pass on? Pure. */
#ifndef PS_PROTOCOL_RELAY_CHECK_H
#define PS_PROTOCOL_RELAY_CHECK_H

#include "protocol/relay/relay.h"

/* tree: of the giver's plan; worker: the relay's own position. Errors as ps_relay_give, but for
 * what depends on what is held. */
PSD_MUST_CHECK psd_status_t ps_relay_check(const ps_relay_tree_t *tree, uint32_t worker,
                                           uint32_t giver, const ps_relay_key_t *key,
                                           const ps_relay_lot_t *lot, psd_error_t *err);
#endif
