/* SPDX-License-Identifier: Apache-2.0 */
/* Plans about the cluster, its sessions and tables. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "protocol/registry/registry_place.h"

ps_command_t ps_registry_command(const ps_registry_t *self, ps_command_kind_t kind,
                                 uint64_t unix_ms)
{
    return (ps_command_t){.kind = kind, .unix_ms = unix_ms, .epoch = self->epoch};
}

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
    memcpy(command.name, name, strlen(name) + 1);
    command.uuid = *uuid;
    (void)snprintf(command.text, sizeof command.text, "cluster %s was made", name);
    *ret_command = command;
    return PSD_OK;
}

ps_command_t ps_registry_plan_note(const ps_registry_t *self, uint64_t unix_ms, const char *text)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_NOTE, unix_ms);

    (void)snprintf(command.text, sizeof command.text, "%s", text);
    return command;
}

psd_status_t ps_registry_plan_sessions(const ps_registry_t *self, uint32_t n, uint64_t unix_ms,
                                       ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_SESSIONS, unix_ms);
    uint64_t left = self->sessions + 1 - self->next_session;

    if (n == 0) {
        return psd_error_set(err, PSD_INVALID, "sessions are 0; allowed: 1 ..");
    }
    if (left > 0 && left >= n / 2) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    if (self->sessions > PS_STORED_MAX - n) {
        return psd_error_set(err, PSD_LIMIT, "session numbers are used up at %llu",
                             (unsigned long long)self->sessions);
    }
    command.number = self->sessions + n;
    (void)snprintf(command.text, sizeof command.text, "sessions up to %llu may be given out",
                   (unsigned long long)command.number);
    *ret_command = command;
    return PSD_OK;
}

/* The levels that a table may have here. */
static const char *levels_offered(const ps_registry_t *self)
{
    if (self->args.disk) {
        return self->args.copies_max == 1 ? "memory, disk" : "memory, replica, disk";
    }
    return self->args.copies_max == 1 ? "memory" : "memory, replica";
}

static psd_status_t check_offered(const ps_registry_t *self, const ps_table_spec_t *spec,
                                  psd_error_t *err)
{
    uint32_t max = self->args.copies_max;

    if (spec->replicas > max) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             max == 1 ? "replicas is %u; supported: %u"
                                      : "replicas is %u; supported: 1..%u",
                             spec->replicas, max);
    }
    if (spec->ack == PS_ACK_REPLICA && max > 1 && spec->replicas == 1) {
        return psd_error_set(err, PSD_INVALID,
                             "ack is replica, which takes 2 replicas or more; "
                             "replicas is 1");
    }
    if ((spec->ack == PS_ACK_REPLICA && max == 1) ||
        (spec->ack == PS_ACK_DISK && !self->args.disk)) {
        return psd_error_set(err, PSD_UNSUPPORTED, "ack is %s; supported: %s",
                             ps_ack_name(spec->ack), levels_offered(self));
    }
    return PSD_OK;
}

static psd_status_t check_new_table(const ps_registry_t *self, const ps_table_spec_t *spec,
                                    psd_error_t *err)
{
    if (ps_registry_table(self, spec->name) != NULL) {
        return psd_error_set(err, PSD_TABLE_EXISTS, "table \"%s\" exists already", spec->name);
    }
    if (self->n_tables >= self->args.tables_max) {
        return psd_error_set(err, PSD_LIMIT, "the cluster has %zu tables; allowed: %u",
                             self->n_tables, self->args.tables_max);
    }
    if (self->last_table == UINT32_MAX) {
        return psd_error_set(err, PSD_LIMIT, "table numbers are used up");
    }
    return check_offered(self, spec, err);
}

/* Fills a command as far as it gets; what it holds is the caller's. */
static psd_status_t fill_table(const ps_registry_t *self, const ps_table_spec_t *spec,
                               ps_command_t *command, psd_error_t *err)
{
    ps_table_t *table = &command->table;
    psd_status_t rc = ps_table_spec_copy(spec, &table->spec, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_table_spec_settle(&table->spec, self->args.default_partitions);
    rc = ps_table_spec_check(&table->spec, err);
    if (rc == PSD_OK) {
        rc = check_new_table(self, &table->spec, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    table->id = self->last_table + 1;
    table->created_unix_ms = command->unix_ms;
    command->epoch = ps_registry_next_epoch(self);
    (void)snprintf(command->text, sizeof command->text, "table %s was created with %u partitions",
                   table->spec.name, table->spec.n_partitions);
    return ps_registry_place(self, command->epoch, table, err);
}

psd_status_t ps_registry_plan_table(const ps_registry_t *self, const ps_table_spec_t *spec,
                                    uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_TABLE, unix_ms);
    psd_status_t rc = fill_table(self, spec, &command, err);

    if (rc != PSD_OK) {
        ps_command_done(&command);
        return rc;
    }
    *ret_command = command; /* ownership moves to the caller */
    return PSD_OK;
}

psd_status_t ps_registry_plan_restored(const ps_registry_t *self, uint32_t table, uint64_t unix_ms,
                                       ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_RESTORED, unix_ms);
    const ps_table_t *found = ps_registry_table_by_id(self, table);

    if (found == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "table number %u does not exist", table);
    }
    if (!found->restoring) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    command.number = table;
    (void)snprintf(command.text, sizeof command.text, "table %s was restored from a checkpoint",
                   found->spec.name);
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_registry_plan_ack(const ps_registry_t *self, const char *name, uint64_t unix_ms,
                                  ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_ACK, unix_ms);
    const ps_table_t *table = ps_registry_table(self, name);

    if (table == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "table \"%.80s\" does not exist", name);
    }
    if (!table->rows_lost || table->loss_acked) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    command.number = table->id;
    (void)snprintf(command.text, sizeof command.text,
                   "the loss of rows of table %s was acknowledged", name);
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_registry_plan_drop(const ps_registry_t *self, const char *name, uint64_t unix_ms,
                                   ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_DROP, unix_ms);
    const ps_table_t *table = ps_registry_table(self, name);

    if (table == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "table \"%.80s\" does not exist", name);
    }
    command.epoch = ps_registry_next_epoch(self);
    command.number = table->id;
    memcpy(command.name, table->spec.name, sizeof command.name);
    (void)snprintf(command.text, sizeof command.text, "table %s was dropped", name);
    *ret_command = command;
    return PSD_OK;
}
