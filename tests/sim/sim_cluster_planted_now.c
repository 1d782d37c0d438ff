/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a member's own time gets into what it stores. */
#include "sim_cluster_planted.h"

psd_status_t __real_ps_registry_try(ps_registry_t *self, const ps_command_t *command,
                                    uint64_t now_ms, psd_error_t *err);
psd_status_t __wrap_ps_registry_try(ps_registry_t *self, const ps_command_t *command,
                                    uint64_t now_ms, psd_error_t *err);

psd_status_t __wrap_ps_registry_try(ps_registry_t *self, const ps_command_t *command,
                                    uint64_t now_ms, psd_error_t *err)
{
    ps_command_t own = *command;

    own.unix_ms = now_ms;
    return __real_ps_registry_try(self, &own, now_ms, err);
}

int main(void)
{
    return cluster_planted_main("a member's own time is stored");
}
