/* SPDX-License-Identifier: Apache-2.0 */
/* ps_relay_verify - is that lot the sum of what its contributors have pushed? Pure. */
#ifndef PS_PROTOCOL_RELAY_VERIFY_H
#define PS_PROTOCOL_RELAY_VERIFY_H

#include "protocol/relay/relay_sum.h"

/* True also where contributors have no checks: then nobody knows. The parts of its slices have been
 * checked against their lengths. type: of the partition; first_col: its first column. */
bool ps_relay_lot_is_right(const ps_relay_lot_t *lot, ps_type_t type, uint32_t first_col);
#endif
