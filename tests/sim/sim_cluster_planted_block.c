/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a leader gives on from the block of session numbers that an earlier
 * one may have given. */
#include "protocol/registry/registry_state.h"
#include "sim_cluster_planted.h"

psd_status_t __real_ps_command_apply_term(ps_registry_t *self, const ps_command_t *command,
                                          psd_error_t *err);
psd_status_t __wrap_ps_command_apply_term(ps_registry_t *self, const ps_command_t *command,
                                          psd_error_t *err);

psd_status_t __wrap_ps_command_apply_term(ps_registry_t *self, const ps_command_t *command,
                                          psd_error_t *err)
{
    uint64_t next = self->next_session;
    psd_status_t rc = __real_ps_command_apply_term(self, command, err);

    self->next_session = next;
    return rc;
}

int main(void)
{
    return cluster_planted_main("session numbers of an earlier term are given again");
}
