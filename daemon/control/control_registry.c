/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster registry: its members as they are, and changes of them. */
#include "daemon/quorum/replica_list.h"
#include "daemon/state/control_inner.h"

psd_status_t ps_control_registry_list(ps_control_t *self, ps_control_request_t *request,
                                      psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, self->is.node);

    return ps_replica_list(self->is.replica, self->is.node, node == NULL ? "" : node->control,
                           request->reply) &&
                   ps_doc_set_u64(request->reply, "wanted", self->is.config->registry.voters)
               ? PSD_OK
               : ps_control_no_memory(err);
}
