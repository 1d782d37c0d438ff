/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry's plans about nodes share; for the registry only. */
#ifndef PS_PROTOCOL_REGISTRY_NODE_H
#define PS_PROTOCOL_REGISTRY_NODE_H

#include "protocol/registry/registry_state.h"

/* What becomes of the copy that `old` has; `node` is what it is from now on,
 * NULL when it goes. */
typedef void ps_change_copy_t(const ps_node_t *old, const ps_node_t *node, const ps_table_t *table,
                              ps_change_t *change);
/* One change for each partition with a copy on `old`. Errors: PSD_NOMEM; what
 * the command holds then is the caller's. */
PSD_MUST_CHECK psd_status_t ps_registry_change_all(const ps_registry_t *self, const ps_node_t *old,
                                                   const ps_node_t *node,
                                                   ps_change_copy_t *change_one,
                                                   ps_command_t *command, psd_error_t *err);
/* A copy elsewhere than on that node could be the primary: an heir that has not
 * said that it is not whole. */
bool ps_table_has_other_heir(const ps_table_t *table, uint32_t partition, uint64_t incarnation);
/* registry_remove.c: the changes of a command that removes a node. Errors:
 * PSD_NODE_HELD, PSD_NOMEM; what the command holds then is the caller's. */
PSD_MUST_CHECK psd_status_t ps_registry_fill_removal(const ps_registry_t *self,
                                                     const ps_node_t *node, bool force,
                                                     ps_command_t *command, psd_error_t *err);
#endif
