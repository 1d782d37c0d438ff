/* SPDX-License-Identifier: Apache-2.0 */
/* Checked commands about the map: nodes, tables and where partitions are. */
#include "protocol/registry/registry_state.h"

#include <string.h>

#include "base/alloc.h"

psd_status_t ps_registry_apply_node(ps_registry_t *self, const ps_command_t *command,
                                    uint64_t now_ms, psd_error_t *err)
{
    ps_node_t *known = ps_registry_find_node(self, command->node.name);
    ps_node_t node = {0};
    psd_status_t rc = PSD_OK;

    if (known == NULL &&
        !ps_grow(&self->nodes, &self->max_nodes, self->n_nodes + 1, sizeof *self->nodes)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for node %s", command->node.name);
    }
    rc = ps_node_copy(&command->node, &node, err);
    if (rc != PSD_OK) {
        return rc;
    }
    node.last_seen_ms = now_ms;
    node.started_ms = now_ms;
    node.suspect = false;
    if (known == NULL) {
        self->nodes[self->n_nodes++] = node;
        return PSD_OK;
    }
    self->old_sessions = self->sessions;
    self->next_session = self->sessions + 1;
    ps_node_done(known);
    *known = node; /* ownership moves to the state */
    ps_registry_apply_changes(self, command);
    return PSD_OK;
}

void ps_registry_apply_node_state(ps_registry_t *self, const ps_command_t *command)
{
    ps_node_t *node = ps_registry_find_node(self, command->name);
    size_t at = (size_t)(node - self->nodes);

    node->draining = command->number == PS_NODE_DRAINING;
    ps_registry_apply_changes(self, command);
    if (command->number == PS_NODE_REMOVED) {
        ps_node_done(node);
        self->n_nodes--;
        memmove(node, node + 1, (self->n_nodes - at) * sizeof *node);
    }
}

static psd_status_t copy_table(const ps_registry_t *self, const ps_table_t *from,
                               ps_table_t *ret_table, psd_error_t *err)
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

psd_status_t ps_registry_apply_table(ps_registry_t *self, const ps_command_t *command,
                                     psd_error_t *err)
{
    ps_table_t table = {0};
    size_t at = self->n_tables;
    psd_status_t rc = PSD_OK;

    if (!ps_grow(&self->tables, &self->max_tables, self->n_tables + 1, sizeof *self->tables)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for table %s", command->table.spec.name);
    }
    rc = copy_table(self, &command->table, &table, err);
    if (rc != PSD_OK) {
        return rc;
    }
    while (at > 0 && self->tables[at - 1].id > table.id) {
        self->tables[at] = self->tables[at - 1];
        at--;
    }
    self->tables[at] = table; /* ownership moves to the state */
    self->n_tables++;
    if (self->last_table < table.id) {
        self->last_table = table.id;
    }
    return PSD_OK;
}

void ps_registry_apply_drop(ps_registry_t *self, const ps_command_t *command)
{
    uint32_t id = (uint32_t)command->number;
    ps_table_t *table = ps_registry_find_table(self, id);
    size_t at = (size_t)(table - self->tables);

    ps_registry_close_table(self, id);
    ps_table_done(table);
    memmove(table, table + 1, (self->n_tables - at - 1) * sizeof *table);
    self->n_tables--;
}
