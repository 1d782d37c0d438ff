/* SPDX-License-Identifier: Apache-2.0 */
/* How the control part changes the registry. */
#include "daemon/quorum/replica.h"
#include "daemon/state/control_inner.h"

psd_status_t ps_control_commit(ps_control_t *self, const ps_command_t *command,
                               ps_log_level_t level, psd_error_t *err)
{
    psd_status_t rc = ps_replica_commit(self->is.replica, command, level, err);

    if (rc == PSD_OK) {
        ps_overseer_set_index(self->overseer, ps_registry_db_applied(self->is.db).index);
    }
    return rc;
}

psd_status_t ps_control_commit_for(ps_control_t *self, const ps_control_request_t *request,
                                   ps_command_t *command, uint64_t detail, ps_log_level_t level,
                                   psd_error_t *err)
{
    if (request->once) {
        command->session = request->waits.session;
        command->request = request->waits.id;
        command->detail = detail;
    }
    return ps_control_commit(self, command, level, err);
}
