/* SPDX-License-Identifier: Apache-2.0 */
/* Plans about the cluster, its nodes, sessions and tables. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "protocol/registry_state.h"

static ps_command_t
command_of(const ps_registry_t *self, ps_command_kind_t kind, uint64_t unix_ms)
{
    return (ps_command_t){
        .kind = kind, .unix_ms = unix_ms, .epoch = self->epoch};
}

psd_status_t
ps_registry_plan_cluster(const ps_registry_t *self,
                         const char *name,
                         const ps_id_t *uuid,
                         uint64_t unix_ms,
                         ps_command_t *ret_command,
                         psd_error_t *err)
{
    ps_command_t command = command_of(self, PS_COMMAND_CLUSTER, unix_ms);

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
    (void)snprintf(command.text, sizeof command.text, "cluster %s was made",
                   name);
    *ret_command = command;
    return PSD_OK;
}

/* True when another node goes by that incarnation; they are random, so that
 * this is a mistake. */
static bool
is_taken(const ps_registry_t *self, const ps_node_t *node)
{
    return ps_registry_node_by_incarnation(self, node->incarnation) != NULL;
}

psd_status_t
ps_registry_plan_node(const ps_registry_t *self,
                      const ps_node_t *node,
                      uint64_t unix_ms,
                      ps_command_t *ret_command,
                      psd_error_t *err)
{
    ps_command_t command = command_of(self, PS_COMMAND_NODE, unix_ms);
    const ps_node_t *known = NULL;
    psd_status_t rc = ps_node_check(node, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (is_taken(self, node)) {
        return psd_error_set(err, PSD_INVALID,
                             "incarnation %016llx of node %s is taken",
                             (unsigned long long)node->incarnation, node->name);
    }
    known = ps_registry_find_node(self, node->name);
    if (known == NULL && self->n_nodes >= self->args.nodes_max) {
        return psd_error_set(err, PSD_LIMIT,
                             "the cluster has %zu nodes; allowed: %u",
                             self->n_nodes, self->args.nodes_max);
    }
    rc = ps_node_copy(node, &command.node, err);
    if (rc != PSD_OK) {
        return rc;
    }
    command.node.up = true;
    command.epoch++;
    (void)snprintf(command.text, sizeof command.text,
                   "node %s %s with %u shards", node->name,
                   known == NULL ? "joined" : "was started again",
                   node->n_shards);
    *ret_command = command; /* ownership moves to the caller */
    return PSD_OK;
}

psd_status_t
ps_registry_plan_sessions(const ps_registry_t *self,
                          uint32_t n,
                          uint64_t unix_ms,
                          ps_command_t *ret_command,
                          psd_error_t *err)
{
    ps_command_t command = command_of(self, PS_COMMAND_SESSIONS, unix_ms);
    uint64_t left = self->sessions + 1 - self->next_session;

    if (n == 0) {
        return psd_error_set(err, PSD_INVALID, "sessions are 0; allowed: 1 ..");
    }
    if (left > 0 && left >= n / 2) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    if (self->sessions > PS_STORED_MAX - n) {
        return psd_error_set(err, PSD_LIMIT,
                             "session numbers are used up at %llu",
                             (unsigned long long)self->sessions);
    }
    command.number = self->sessions + n;
    (void)snprintf(command.text, sizeof command.text,
                   "sessions up to %llu may be given out",
                   (unsigned long long)command.number);
    *ret_command = command;
    return PSD_OK;
}

/* One copy, in memory: more than this has to come before more is promised. */
static psd_status_t
check_offered(const ps_table_spec_t *spec, psd_error_t *err)
{
    if (spec->replicas > 1) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "replicas is %u; supported: 1", spec->replicas);
    }
    if (spec->ack != PS_ACK_MEMORY) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "ack is %s; supported: memory",
                             ps_ack_name(spec->ack));
    }
    return PSD_OK;
}

static uint32_t
count_shards(const ps_registry_t *self)
{
    uint32_t n = 0;

    for (size_t i = 0; i < self->n_nodes; i++) {
        n += self->nodes[i].up ? self->nodes[i].n_shards : 0;
    }
    return n;
}

/* The shards of all nodes that are up, one behind the other; at < their
 * number. */
static const ps_route_t *
shard_at(const ps_registry_t *self, uint32_t at)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        const ps_node_t *node = &self->nodes[i];

        if (!node->up) {
            continue;
        }
        if (at < node->n_shards) {
            return &node->shards[at];
        }
        at -= node->n_shards;
    }
    return NULL;
}

/* Round-robin. A table with a partition for every shard begins at the first
 * one, so that tables that are cut alike lie alike, and can be worked on
 * together; a smaller one begins a shard further than the one before, so that
 * they spread.
 */
static psd_status_t
place_table(const ps_registry_t *self,
            uint64_t epoch,
            ps_table_t *table,
            psd_error_t *err)
{
    uint32_t n_shards = count_shards(self);
    uint32_t n = table->spec.n_partitions;
    uint32_t first = n >= n_shards ? 0 : table->id - 1;

    if (n_shards == 0) {
        return psd_error_set(err, PSD_NO_NODE, "no node is up to hold table %s",
                             table->spec.name);
    }
    table->routes = ps_alloc(n, sizeof *table->routes);
    if (table->routes == NULL) {
        return psd_error_set(err, PSD_NOMEM,
                             "no memory for the routes of %u partitions", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        const ps_route_t *shard = shard_at(self, (first + i) % n_shards);

        assert(shard != NULL);
        table->routes[i] = *shard;
        table->routes[i].partition = i;
        table->routes[i].epoch = epoch;
    }
    return PSD_OK;
}

static psd_status_t
check_new_table(const ps_registry_t *self,
                const ps_table_spec_t *spec,
                psd_error_t *err)
{
    if (ps_registry_table(self, spec->name) != NULL) {
        return psd_error_set(err, PSD_TABLE_EXISTS,
                             "table \"%s\" exists already", spec->name);
    }
    if (self->n_tables >= self->args.tables_max) {
        return psd_error_set(err, PSD_LIMIT,
                             "the cluster has %zu tables; allowed: %u",
                             self->n_tables, self->args.tables_max);
    }
    if (self->last_table == UINT32_MAX) {
        return psd_error_set(err, PSD_LIMIT, "table numbers are used up");
    }
    return check_offered(spec, err);
}

/* Fills a command as far as it gets; what it holds is the caller's. */
static psd_status_t
fill_table(const ps_registry_t *self,
           const ps_table_spec_t *spec,
           ps_command_t *command,
           psd_error_t *err)
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
    command->epoch++;
    (void)snprintf(command->text, sizeof command->text,
                   "table %s was created with %u partitions", table->spec.name,
                   table->spec.n_partitions);
    return place_table(self, command->epoch, table, err);
}

psd_status_t
ps_registry_plan_table(const ps_registry_t *self,
                       const ps_table_spec_t *spec,
                       uint64_t unix_ms,
                       ps_command_t *ret_command,
                       psd_error_t *err)
{
    ps_command_t command = command_of(self, PS_COMMAND_TABLE, unix_ms);
    psd_status_t rc = fill_table(self, spec, &command, err);

    if (rc != PSD_OK) {
        ps_command_done(&command);
        return rc;
    }
    *ret_command = command; /* ownership moves to the caller */
    return PSD_OK;
}

psd_status_t
ps_registry_plan_drop(const ps_registry_t *self,
                      const char *name,
                      uint64_t unix_ms,
                      ps_command_t *ret_command,
                      psd_error_t *err)
{
    ps_command_t command = command_of(self, PS_COMMAND_DROP, unix_ms);
    const ps_table_t *table = ps_registry_table(self, name);

    if (table == NULL) {
        return psd_error_set(err, PSD_NO_TABLE,
                             "table \"%.80s\" does not exist", name);
    }
    command.epoch++;
    command.number = table->id;
    memcpy(command.name, table->spec.name, sizeof command.name);
    (void)snprintf(command.text, sizeof command.text, "table %s was dropped",
                   name);
    *ret_command = command;
    return PSD_OK;
}
