/* SPDX-License-Identifier: Apache-2.0 */
/* Checked commands about the map: nodes, tables and where partitions are. */
#include "protocol/registry_state.h"

#include <string.h>

#include "base/alloc.h"

static void
set_route(ps_route_t *route,
          const ps_node_t *node,
          uint32_t shard,
          uint64_t epoch)
{
    route->shard = shard;
    route->epoch = epoch;
    route->incarnation = node->incarnation;
    memcpy(route->tcp, node->shards[shard].tcp, sizeof route->tcp);
    memcpy(route->ipc, node->shards[shard].ipc, sizeof route->ipc);
}

/* The partitions of a node follow it into its new life. They stay on their
 * shards unless their number changed; then they are dealt anew (what they held
 * in memory is gone anyway). The registry's database does the same in SQL. */
static void
move_table(ps_table_t *table,
           const ps_node_t *old,
           const ps_node_t *node,
           uint64_t epoch)
{
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        ps_route_t *route = &table->routes[i];

        if (route->incarnation == old->incarnation) {
            uint32_t shard = (table->id - 1 + i) % node->n_shards;

            set_route(route, node,
                      node->n_shards == old->n_shards ? route->shard : shard,
                      epoch);
            table->rows_lost = true;
        }
    }
}

psd_status_t
ps_registry_apply_node(ps_registry_t *self,
                       const ps_command_t *command,
                       uint64_t now_ms,
                       psd_error_t *err)
{
    ps_node_t *known = ps_registry_find_node(self, command->node.name);
    ps_node_t node = {0};
    psd_status_t rc = PSD_OK;

    if (known == NULL && !ps_grow(&self->nodes, &self->max_nodes,
                                  self->n_nodes + 1, sizeof *self->nodes)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for node %s",
                             command->node.name);
    }
    rc = ps_node_copy(&command->node, &node, err);
    if (rc != PSD_OK) {
        return rc;
    }
    node.last_seen_ms = now_ms;
    if (known == NULL) {
        self->nodes[self->n_nodes++] = node;
        return PSD_OK;
    }
    for (size_t i = 0; i < self->n_tables; i++) {
        move_table(&self->tables[i], known, &node, command->epoch);
    }
    self->old_sessions = self->sessions;
    self->next_session = self->sessions + 1;
    ps_node_done(known);
    *known = node; /* ownership moves to the state */
    return PSD_OK;
}

static psd_status_t
copy_table(const ps_registry_t *self,
           const ps_table_t *from,
           ps_table_t *ret_table,
           psd_error_t *err)
{
    uint32_t n = from->spec.n_partitions;
    ps_table_t table = {.id = from->id,
                        .created_unix_ms = from->created_unix_ms,
                        .rows_lost = from->rows_lost};
    psd_status_t rc = ps_table_spec_copy(&from->spec, &table.spec, err);

    if (rc != PSD_OK) {
        return rc;
    }
    table.routes = ps_alloc(n, sizeof *table.routes);
    if (table.routes == NULL) {
        ps_table_done(&table);
        return psd_error_set(err, PSD_NOMEM,
                             "no memory for the routes of %u partitions", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        const ps_route_t *route = &from->routes[i];

        table.routes[i].partition = i;
        set_route(&table.routes[i],
                  ps_registry_node_by_incarnation(self, route->incarnation),
                  route->shard, route->epoch);
    }
    *ret_table = table;
    return PSD_OK;
}

psd_status_t
ps_registry_apply_table(ps_registry_t *self,
                        const ps_command_t *command,
                        psd_error_t *err)
{
    ps_table_t table = {0};
    size_t at = self->n_tables;
    psd_status_t rc = PSD_OK;

    if (!ps_grow(&self->tables, &self->max_tables, self->n_tables + 1,
                 sizeof *self->tables)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for table %s",
                             command->table.spec.name);
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

void
ps_registry_apply_drop(ps_registry_t *self, const ps_command_t *command)
{
    uint32_t id = (uint32_t)command->number;
    ps_table_t *table = ps_registry_find_table(self, id);
    size_t at = (size_t)(table - self->tables);

    ps_registry_close_table(self, id);
    ps_table_done(table);
    memmove(table, table + 1, (self->n_tables - at - 1) * sizeof *table);
    self->n_tables--;
}
