/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster has set, and which commands all of its members know, each planned, checked
 * and applied. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/registry/registry_journal.h"

#define SETTINGS_SINCE 2 /* the machine version that has them */

#define SETTING_ROW(NAME, number, key) [number] = (key),
static const char *const KEYS[PS_SETTING_END] = {PS_SETTING_MAP(SETTING_ROW)};
#undef SETTING_ROW
static_assert(PS_SETTING_END <= PS_SETTINGS_MAX + 1, "a place for each");

const char *ps_setting_key(ps_setting_id_t id)
{
    return (size_t)id < PS_SETTING_END ? KEYS[id] : NULL;
}

static uint64_t value_in(const ps_registry_args_t *args, ps_setting_id_t id)
{
    switch (id) {
    case PS_SETTING_SUSPECT_AFTER:
        return args->suspect_after_ms;
    case PS_SETTING_REPAIR_AFTER:
        return args->repair_after_ms;
    case PS_SETTING_MOVES_MAX:
        return args->moves_max;
    case PS_SETTING_EVEN_OUT:
        return args->rebalance_on_request ? 0 : 1;
    case PS_SETTING_HEARTBEAT:
        return args->heartbeat_ms;
    case PS_SETTING_LOST_AFTER:
        return args->lost_after_ms;
    case PS_SETTING_JOIN_WITHIN:
        return args->join_within_ms;
    case PS_SETTING_SLOW_AFTER:
        return args->unreached_after_ms;
    case PS_SETTING_COPY_RATE:
        return args->copy_bytes_per_s;
    case PS_SETTING_BUSY_COPY_RATE:
        return args->busy_copy_bytes_per_s;
    case PS_SETTING_END:
    default:
        return 0;
    }
}

static void set_in(ps_registry_args_t *args, const ps_setting_t *setting)
{
    switch ((ps_setting_id_t)setting->id) {
    case PS_SETTING_SUSPECT_AFTER:
        args->suspect_after_ms = setting->value;
        break;
    case PS_SETTING_REPAIR_AFTER:
        args->repair_after_ms = setting->value;
        break;
    case PS_SETTING_MOVES_MAX:
        args->moves_max = (uint32_t)setting->value;
        break;
    case PS_SETTING_EVEN_OUT:
        args->rebalance_on_request = setting->value == 0;
        break;
    case PS_SETTING_HEARTBEAT:
        args->heartbeat_ms = setting->value;
        break;
    case PS_SETTING_LOST_AFTER:
        args->lost_after_ms = setting->value;
        break;
    case PS_SETTING_JOIN_WITHIN:
        args->join_within_ms = setting->value;
        break;
    case PS_SETTING_SLOW_AFTER:
        args->unreached_after_ms = setting->value;
        break;
    case PS_SETTING_COPY_RATE:
        args->copy_bytes_per_s = setting->value;
        break;
    case PS_SETTING_BUSY_COPY_RATE:
        args->busy_copy_bytes_per_s = setting->value;
        break;
    case PS_SETTING_END:
    default:
        break;
    }
}

static const ps_setting_t *find(const ps_registry_t *self, ps_setting_id_t id)
{
    for (size_t i = 0; i < self->n_settings; i++) {
        if (self->settings[i].id == (uint32_t)id) {
            return &self->settings[i];
        }
    }
    return NULL;
}

uint64_t ps_registry_setting(const ps_registry_t *self, ps_setting_id_t id)
{
    return value_in(&self->args, id);
}

uint64_t ps_registry_own_setting(const ps_registry_t *self, ps_setting_id_t id)
{
    return value_in(&self->own, id);
}

const ps_setting_t *ps_registry_settings(const ps_registry_t *self, size_t *ret_n)
{
    *ret_n = self->n_settings;
    return self->settings;
}

bool ps_registry_is_set(const ps_registry_t *self, ps_setting_id_t id)
{
    return find(self, id) != NULL;
}

/* ---- a setting ---- */

psd_status_t ps_registry_plan_setting(const ps_registry_t *self, ps_setting_id_t id,
                                      const uint64_t *value, const char *shown, uint64_t unix_ms,
                                      ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_SETTING, unix_ms);
    const ps_setting_t *known = find(self, id);
    const char *key = ps_setting_key(id);

    if (key == NULL) {
        return psd_error_set(err, PSD_INVALID, "setting %d; there is no such one", (int)id);
    }
    if (self->cluster.sm_version < SETTINGS_SINCE) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "the cluster has no settings yet: its registry is of machine version "
                             "%" PRIu32 ", as a node that has a part of it runs an older psd",
                             self->cluster.sm_version);
    }
    if (value == NULL ? known == NULL : known != NULL && known->value == *value) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    command.setting.id = (uint32_t)id;
    command.setting.value = value == NULL ? 0 : *value;
    command.is_set = value != NULL;
    if (value == NULL) {
        (void)snprintf(command.text, sizeof command.text, "setting %s is as the nodes' files say",
                       key);
    } else {
        (void)snprintf(command.text, sizeof command.text, "setting %s is %.100s", key, shown);
    }
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_command_check_setting(const ps_registry_t *self, const ps_command_t *command,
                                      psd_error_t *err)
{
    const ps_setting_t *setting = &command->setting;
    bool needs_some = setting->id != PS_SETTING_EVEN_OUT && setting->id != PS_SETTING_COPY_RATE &&
                      setting->id != PS_SETTING_BUSY_COPY_RATE;

    if (setting->id == 0 || ps_setting_key((ps_setting_id_t)setting->id) == NULL) {
        return psd_error_set(err, PSD_DAMAGED, "setting %" PRIu32 " is none", setting->id);
    }
    if (self->cluster.sm_version < SETTINGS_SINCE) {
        return psd_error_set(err, PSD_DAMAGED, "a setting, and machine version %" PRIu32,
                             self->cluster.sm_version);
    }
    return !command->is_set ||
                   (setting->value <= PS_STORED_MAX && (setting->value > 0 || !needs_some) &&
                    (setting->value <= UINT32_MAX || setting->id != PS_SETTING_MOVES_MAX))
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED, "setting %s is %" PRIu64,
                               ps_setting_key((ps_setting_id_t)setting->id), setting->value);
}

/* The journal has the values of before. */
psd_status_t ps_command_apply_setting(ps_registry_t *self, const ps_command_t *command,
                                      psd_error_t *err)
{
    size_t at = 0;

    (void)err;
    while (at < self->n_settings && self->settings[at].id != command->setting.id) {
        at++;
    }
    if (command->is_set) {
        self->settings[at] = command->setting;
        self->n_settings += at == self->n_settings ? 1 : 0;
    } else if (at < self->n_settings) {
        self->settings[at] = self->settings[--self->n_settings];
    }
    self->args = self->own;
    for (size_t i = 0; i < self->n_settings; i++) {
        set_in(&self->args, &self->settings[i]);
    }
    if (command->setting.id == PS_SETTING_EVEN_OUT) {
        self->rebalancing = !self->args.rebalance_on_request;
    }
    self->rest_until_ms = 0;
    ps_touch(self, PS_ROW_SETTING, command->setting.id);
    return PSD_OK;
}

/* ---- the machine ---- */

uint32_t ps_registry_machine(const ps_registry_t *self)
{
    return self->cluster.sm_version;
}

psd_status_t ps_registry_plan_machine(const ps_registry_t *self, uint32_t version, uint64_t unix_ms,
                                      ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_MACHINE, unix_ms);

    if (version > PS_SM_VERSION) {
        return psd_error_set(err, PSD_INVALID, "machine version %" PRIu32 "; this psd knows 1..%d",
                             version, PS_SM_VERSION);
    }
    if (version <= self->cluster.sm_version) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    command.number = version;
    (void)snprintf(command.text, sizeof command.text,
                   "the registry is of machine version %" PRIu32 " from here on", version);
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_command_check_machine(const ps_registry_t *self, const ps_command_t *command,
                                      psd_error_t *err)
{
    return command->number > self->cluster.sm_version && command->number <= PS_SM_VERSION
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED,
                               "machine version %" PRIu64 " after %" PRIu32
                               "; this psd knows 1..%d",
                               command->number, self->cluster.sm_version, PS_SM_VERSION);
}

psd_status_t ps_command_apply_machine(ps_registry_t *self, const ps_command_t *command,
                                      psd_error_t *err)
{
    (void)err;
    self->cluster.sm_version = (uint32_t)command->number;
    return PSD_OK;
}
