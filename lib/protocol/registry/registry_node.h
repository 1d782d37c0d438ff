/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the registry's plans about nodes; for the registry only. */
#ifndef PS_PROTOCOL_REGISTRY_NODE_H
#define PS_PROTOCOL_REGISTRY_NODE_H

#include "protocol/registry/registry_state.h"

/* Changes the copy on `old`; `node` is the node's new value, NULL when it is
 * removed. */
typedef void ps_change_copy_t(const ps_node_t *old, const ps_node_t *node, const ps_table_t *table,
                              ps_change_t *change);
/* Makes one change for each partition with a copy on `old`. Errors: PSD_NOMEM;
 * the caller frees what the command holds then. */
PSD_MUST_CHECK psd_status_t ps_registry_change_all(const ps_registry_t *self, const ps_node_t *old,
                                                   const ps_node_t *node,
                                                   ps_change_copy_t *change_one,
                                                   ps_command_t *command, psd_error_t *err);
/* Whether a copy on another node could be the primary: an heir that has not
 * reported that it is not whole. */
bool ps_table_has_other_heir(const ps_table_t *table, uint32_t partition, uint64_t incarnation);
/* registry_remove.c: the changes of a command that removes a node. Errors:
 * PSD_NODE_HELD, PSD_NOMEM; the caller frees what the command holds then. */
PSD_MUST_CHECK psd_status_t ps_registry_fill_removal(const ps_registry_t *self,
                                                     const ps_node_t *node, bool force,
                                                     ps_command_t *command, psd_error_t *err);
#endif
