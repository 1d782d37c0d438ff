/* SPDX-License-Identifier: Apache-2.0 */
/* Commands about the cluster as a whole, each planned, checked and applied: its
 * name, sessions that may be given out, notes. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "protocol/registry/registry_state.h"

psd_status_t ps_registry_plan_cluster(const ps_registry_t *self, const char *name,
                                      const ps_id_t *uuid, uint64_t unix_ms,
                                      ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_CLUSTER, unix_ms);

    if (self->has_cluster) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    if (!ps_text_is_name(name)) {
        return psd_error_set(err, PSD_INVALID,
                             "cluster name is \"%.80s\"; allowed: 1..%d of "
                             "letters, digits, \"_\", \".\", \"-\"",
                             name, PS_NAME_MAX);
    }
    if (ps_id_is_zero(uuid)) {
        return psd_error_set(err, PSD_INVALID, "the cluster's UUID is 0");
    }
    memcpy(command.cluster.name, name, strlen(name) + 1);
    command.cluster.uuid = *uuid;
    command.cluster.lineage = *uuid;
    command.cluster.sm_version = PS_SM_VERSION;
    (void)snprintf(command.text, sizeof command.text, "cluster %s was made", name);
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_command_check_cluster(const ps_registry_t *self, const ps_command_t *command,
                                      psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->has_cluster) {
        return psd_error_set(err, PSD_DAMAGED, "there is a cluster already");
    }
    rc = ps_registry_check_name(command->cluster.name, "cluster", err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_id_is_zero(&command->cluster.uuid)) {
        return psd_error_set(err, PSD_DAMAGED, "the cluster's UUID is 0");
    }
    if (ps_id_is_zero(&command->cluster.lineage) || command->cluster.sm_version < 1 ||
        command->cluster.sm_version > PS_SM_VERSION) {
        return psd_error_set(err, PSD_DAMAGED,
                             "the cluster has no lineage, or sm_version %u; this psd knows 1..%d",
                             command->cluster.sm_version, PS_SM_VERSION);
    }
    if (command->cluster.sessions > PS_STORED_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "sessions are out of range");
    }
    return PSD_OK;
}

/* Session numbers stored as free may have been given out before a load. */
psd_status_t ps_command_apply_cluster(ps_registry_t *self, const ps_command_t *command,
                                      psd_error_t *err)
{
    (void)err;
    self->cluster = command->cluster;
    self->cluster.id = 1;
    self->cluster.created_unix_ms = command->unix_ms;
    self->old_sessions = self->cluster.sessions;
    self->next_session = self->cluster.sessions + 1;
    self->has_cluster = true;
    return PSD_OK;
}

/* ---- sessions ---- */

psd_status_t ps_registry_plan_sessions(const ps_registry_t *self, uint32_t n, uint64_t unix_ms,
                                       ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_SESSIONS, unix_ms);
    uint64_t left = self->cluster.sessions + 1 - self->next_session;

    if (n == 0) {
        return psd_error_set(err, PSD_INVALID, "sessions are 0; allowed: 1 ..");
    }
    if (left > 0 && left >= n / 2) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    if (self->cluster.sessions > PS_STORED_MAX - n) {
        return psd_error_set(err, PSD_LIMIT, "session numbers are used up at %llu",
                             (unsigned long long)self->cluster.sessions);
    }
    command.number = self->cluster.sessions + n;
    (void)snprintf(command.text, sizeof command.text, "sessions up to %llu may be given out",
                   (unsigned long long)command.number);
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_command_check_sessions(const ps_registry_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    return command->number >= self->cluster.sessions && command->number <= PS_STORED_MAX
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED, "sessions would shrink");
}

psd_status_t ps_command_apply_sessions(ps_registry_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    (void)err;
    self->cluster.sessions = command->number;
    return PSD_OK;
}

/* ---- notes ---- */

ps_command_t ps_registry_plan_note(const ps_registry_t *self, uint64_t unix_ms, const char *text)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_NOTE, unix_ms);

    (void)snprintf(command.text, sizeof command.text, "%s", text);
    return command;
}

psd_status_t ps_command_check_note(const ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    (void)self;
    (void)command;
    (void)err;
    return PSD_OK;
}

psd_status_t ps_command_apply_note(ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    (void)self;
    (void)command;
    (void)err;
    return PSD_OK;
}
