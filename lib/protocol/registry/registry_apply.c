/* SPDX-License-Identifier: Apache-2.0 */
/* Applies checked commands about the map: nodes, tables and places of
 * partitions. */
#include "protocol/registry/registry_journal.h"

#include <string.h>

static psd_status_t no_memory(const char *name, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for %s", name);
}

psd_status_t ps_command_apply_node(ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    ps_node_t *known = ps_registry_find_node(self, command->node.name);
    ps_node_t node = {0};
    psd_status_t rc = PSD_OK;

    if (known != NULL && !ps_journal_save(self, known, sizeof *known)) {
        return no_memory(command->node.name, err);
    }
    rc = ps_node_copy(&command->node, &node, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->journal->node_in = node;
    node.last_seen_ms = self->journal->now_ms;
    node.started_ms = self->journal->now_ms;
    node.started_unix_ms = command->unix_ms;
    node.suspect = false;
    if (known == NULL) {
        if (node.id == 0) {
            node.id = self->n_nodes == 0 ? 1 : self->nodes[self->n_nodes - 1].id + 1;
        }
        self->nodes[self->n_nodes++] = node;
        ps_touch(self, PS_ROW_NODE, node.id);
        return PSD_OK;
    }
    node.id = known->id;
    ps_touch(self, PS_ROW_NODE, node.id);
    self->old_sessions = self->sessions;
    self->next_session = self->sessions + 1;
    self->journal->node_out = *known;
    *known = node; /* ownership moves to the state */
    return ps_command_apply_copies(self, command, err);
}

psd_status_t ps_command_apply_node_state(ps_registry_t *self, const ps_command_t *command,
                                         psd_error_t *err)
{
    ps_node_t *node = ps_registry_find_node(self, command->name);
    size_t at = (size_t)(node - self->nodes);
    psd_status_t rc = PSD_OK;

    if (!ps_journal_save(self, node, (self->n_nodes - at) * sizeof *node)) {
        return no_memory(command->name, err);
    }
    ps_touch(self, PS_ROW_NODE, node->id);
    node->draining = command->number == PS_NODE_DRAINING;
    rc = ps_command_apply_copies(self, command, err);
    if (rc == PSD_OK && command->number == PS_NODE_REMOVED) {
        self->journal->node_out = *node;
        self->n_nodes--;
        memmove(node, node + 1, (self->n_nodes - at) * sizeof *node);
    }
    return rc;
}

static psd_status_t copy_table(ps_registry_t *self, const ps_table_t *from, ps_table_t *ret_table,
                               psd_error_t *err)
{
    ps_table_t table = {.id = from->id,
                        .created_unix_ms = from->created_unix_ms,
                        .rows_lost = from->rows_lost,
                        .loss_acked = from->loss_acked,
                        .restoring = from->restoring,
                        .lost_sessions = from->lost_sessions,
                        .lost_jobs = from->lost_jobs};
    psd_status_t rc = ps_table_spec_copy(&from->spec, &table.spec, err);

    if (rc == PSD_OK) {
        rc = ps_registry_settle_copies(self, from, &table, err);
    }
    if (rc != PSD_OK) {
        ps_table_done(&table);
        return rc;
    }
    *ret_table = table;
    return PSD_OK;
}

psd_status_t ps_command_apply_table(ps_registry_t *self, const ps_command_t *command,
                                    psd_error_t *err)
{
    ps_table_t *table = &self->journal->table_in;
    size_t at = self->n_tables;
    psd_status_t rc = copy_table(self, &command->table, table, err);

    if (rc != PSD_OK) {
        return rc;
    }
    while (at > 0 && self->tables[at - 1].id > table->id) {
        at--;
    }
    if (!ps_journal_save(self, &self->tables[at], (self->n_tables - at) * sizeof *table)) {
        return no_memory(table->spec.name, err);
    }
    memmove(&self->tables[at + 1], &self->tables[at], (self->n_tables - at) * sizeof *table);
    self->tables[at] = *table; /* ownership moves to the state */
    self->n_tables++;
    if (self->last_table < table->id) {
        self->last_table = table->id;
    }
    ps_touch(self, PS_ROW_TABLE, table->id);
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        ps_touch(self, PS_ROW_PARTITION, table->id, i);
    }
    return PSD_OK;
}

psd_status_t ps_command_apply_drop(ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    uint32_t id = (uint32_t)command->number;
    ps_table_t *table = ps_registry_find_table(self, id);
    size_t at = (size_t)(table - self->tables);
    psd_status_t rc = ps_registry_close_table(self, id, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_journal_save(self, table, (self->n_tables - at) * sizeof *table)) {
        return no_memory(table->spec.name, err);
    }
    ps_touch(self, PS_ROW_TABLE, id);
    self->journal->table_out = *table;
    memmove(table, table + 1, (self->n_tables - at - 1) * sizeof *table);
    self->n_tables--;
    return PSD_OK;
}

/* Session numbers stored as free may have been given out before a load. */
psd_status_t ps_command_apply_cluster(ps_registry_t *self, const ps_command_t *command,
                                      psd_error_t *err)
{
    (void)err;
    memcpy(self->cluster, command->name, sizeof self->cluster);
    self->uuid = command->uuid;
    self->created_unix_ms = command->unix_ms;
    self->sessions = command->number;
    self->old_sessions = command->number;
    self->next_session = command->number + 1;
    self->last_table = command->last_table;
    self->last_job = command->last_job;
    self->has_cluster = true;
    return PSD_OK;
}

psd_status_t ps_command_apply_sessions(ps_registry_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    (void)err;
    self->sessions = command->number;
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

/* A mark of the table that the command names. */
static psd_status_t set_mark(ps_registry_t *self, const ps_command_t *command, bool loss_acked,
                             psd_error_t *err)
{
    ps_table_t *table = ps_registry_find_table(self, (uint32_t)command->number);

    assert(table != NULL); /* it was checked */
    if (!ps_journal_save(self, table, sizeof *table)) {
        return no_memory(table->spec.name, err);
    }
    ps_touch(self, PS_ROW_TABLE, table->id);
    table->loss_acked = table->loss_acked || loss_acked;
    table->restoring = table->restoring && loss_acked;
    table->revision = ++self->revision;
    return PSD_OK;
}

psd_status_t ps_command_apply_restored(ps_registry_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    return set_mark(self, command, false, err);
}

psd_status_t ps_command_apply_loss_acked(ps_registry_t *self, const ps_command_t *command,
                                         psd_error_t *err)
{
    return set_mark(self, command, true, err);
}
