/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in commands: do they fit the nodes, and how they become the map. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/registry_journal.h"

/* The node that an incarnation will identify after the command. */
static const ps_node_t *node_behind(const ps_registry_t *self, const ps_command_t *command,
                                    uint64_t incarnation)
{
    const ps_node_t *node = ps_registry_node_by_incarnation(self, incarnation);
    bool starts = command->kind == PS_COMMAND_NODE;
    bool goes = command->kind == PS_COMMAND_NODE_STATE && command->number == PS_NODE_REMOVED;

    if (starts && command->node.incarnation == incarnation) {
        return &command->node;
    }
    if (node != NULL && ((starts && strcmp(node->name, command->node.name) == 0) ||
                         (goes && strcmp(node->name, command->name) == 0))) {
        return NULL;
    }
    return node;
}

static psd_status_t check_one(const ps_registry_t *self, const ps_command_t *command,
                              const char *table, uint32_t partition, const ps_copies_t *copies,
                              psd_error_t *err)
{
    psd_status_t rc = ps_copies_check(copies, err);

    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "partition %u of table %s", partition, table);
    }
    if (copies->epoch < 1 || copies->epoch > command->epoch) {
        return psd_error_set(err, PSD_DAMAGED, "partition %u of table %s is of epoch %llu",
                             partition, table, (unsigned long long)copies->epoch);
    }
    for (uint32_t i = 0; i < copies->n; i++) {
        const ps_node_t *node = node_behind(self, command, copies->at[i].incarnation);

        if (node == NULL || copies->at[i].shard >= node->n_shards) {
            return psd_error_set(err, PSD_DAMAGED,
                                 "partition %u of table %s is on a shard that "
                                 "does not exist",
                                 partition, table);
        }
    }
    return PSD_OK;
}

psd_status_t ps_registry_check_copies(const ps_registry_t *self, const ps_command_t *command,
                                      psd_error_t *err)
{
    const ps_table_t *table = &command->table;
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; i < table->spec.n_partitions && rc == PSD_OK; i++) {
        rc = check_one(self, command, table->spec.name, i, &table->copies[i], err);
    }
    return rc;
}

/* True when `change` sorts after `before` (NULL: it is the first). */
static bool is_behind(const ps_change_t *before, const ps_change_t *change)
{
    return before == NULL || before->table < change->table ||
           (before->table == change->table && before->partition < change->partition);
}

static psd_status_t check_change(const ps_registry_t *self, const ps_command_t *command, size_t i,
                                 psd_error_t *err)
{
    const ps_change_t *change = &command->changes[i];
    const ps_table_t *table = ps_registry_find_table(self, change->table);

    if (table == NULL || change->partition >= table->spec.n_partitions ||
        !is_behind(i == 0 ? NULL : change - 1, change)) {
        return psd_error_set(err, PSD_DAMAGED,
                             "change %zu is of partition %u of table %u, which "
                             "does not exist or is out of order",
                             i, change->partition, change->table);
    }
    if (change->copies.epoch != command->epoch) {
        return psd_error_set(err, PSD_DAMAGED,
                             "partition %u of table %s changes in epoch %llu, "
                             "not %llu",
                             change->partition, table->spec.name,
                             (unsigned long long)command->epoch,
                             (unsigned long long)change->copies.epoch);
    }
    return check_one(self, command, table->spec.name, change->partition, &change->copies, err);
}

/* The incarnation that nothing may refer to any more; 0: none. */
static uint64_t ended_by(const ps_registry_t *self, const ps_command_t *command)
{
    const ps_node_t *node = NULL;

    if (command->kind == PS_COMMAND_NODE) {
        node = ps_registry_find_node(self, command->node.name);
    } else if (command->kind == PS_COMMAND_NODE_STATE && command->number == PS_NODE_REMOVED) {
        node = ps_registry_find_node(self, command->name);
    }
    return node == NULL ? 0 : node->incarnation;
}

/* Every copy of what has ended is in a change. */
static psd_status_t check_left(const ps_registry_t *self, const ps_command_t *command,
                               psd_error_t *err)
{
    uint64_t ended = ended_by(self, command);
    size_t next = 0;

    for (size_t i = 0; ended != 0 && i < self->n_tables; i++) {
        const ps_table_t *table = &self->tables[i];

        for (uint32_t j = 0; j < table->spec.n_partitions; j++) {
            if (next < command->n_changes && command->changes[next].table == table->id &&
                command->changes[next].partition == j) {
                next++;
            } else if (ps_copies_on(&table->copies[j], ended) != NULL) {
                return psd_error_set(err, PSD_DAMAGED,
                                     "partition %u of table %s is left on a "
                                     "node that has ended",
                                     j, table->spec.name);
            }
        }
    }
    return PSD_OK;
}

psd_status_t ps_registry_check_changes(const ps_registry_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < command->n_changes && rc == PSD_OK; i++) {
        rc = check_change(self, command, i, err);
    }
    return rc == PSD_OK ? check_left(self, command, err) : rc;
}

psd_status_t ps_command_check_copies(const ps_registry_t *self, const ps_command_t *command,
                                     psd_error_t *err)
{
    if (command->n_changes == 0 || command->epoch <= self->epoch) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%zu changes of copies in epoch %llu; the epoch is %llu already",
                             command->n_changes, (unsigned long long)command->epoch,
                             (unsigned long long)self->epoch);
    }
    return ps_registry_check_changes(self, command, err);
}

/* Fills in where the copies' shards are, and the route to the first. */
static void settle(const ps_registry_t *self, ps_table_t *table, uint32_t partition)
{
    ps_copies_t *copies = &table->copies[partition];
    ps_route_t *route = &table->routes[partition];

    for (uint32_t i = 0; i < copies->n; i++) {
        ps_copy_t *copy = &copies->at[i];
        const ps_node_t *node = ps_registry_node_by_incarnation(self, copy->incarnation);

        memcpy(copy->tcp, ps_route_any(&node->shards[copy->shard]), sizeof copy->tcp);
        if (i == 0) {
            *route = node->shards[copy->shard];
        }
    }
    route->partition = partition;
    route->epoch = copies->epoch;
}

psd_status_t ps_registry_settle_copies(ps_registry_t *self, const ps_table_t *from,
                                       ps_table_t *table, psd_error_t *err)
{
    uint32_t n = from->spec.n_partitions;

    table->copies = ps_alloc(n, sizeof *table->copies);
    table->routes = ps_alloc(n, sizeof *table->routes);
    table->changed = ps_alloc(n, sizeof *table->changed);
    table->bytes = ps_alloc(n, sizeof *table->bytes);
    table->watches = ps_alloc(n, sizeof *table->watches);
    if (table->copies == NULL || table->routes == NULL || table->changed == NULL ||
        table->bytes == NULL || table->watches == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the copies of %u partitions", n);
    }
    memcpy(table->copies, from->copies, n * sizeof *table->copies);
    table->revision = ++self->revision;
    for (uint32_t i = 0; i < n; i++) {
        settle(self, table, i);
        table->changed[i] = table->revision;
    }
    return PSD_OK;
}

/* A copy that goes on catching up has been at it since it began. */
static ps_copy_watch_t watch_behind(const ps_table_t *table, const ps_change_t *change)
{
    const ps_copies_t *old = &table->copies[change->partition];
    const ps_copies_t *copies = &change->copies;
    const ps_copy_watch_t *before = &table->watches[change->partition];
    ps_copy_watch_t watch = {.prefer = change->prefer, .relieved_ms = before->relieved_ms};

    for (uint32_t i = 1; i < copies->n; i++) {
        const ps_copy_t *was = ps_copies_on(old, copies->at[i].incarnation);

        if (was != NULL && was->state == PS_COPY_CATCHING_UP &&
            old->at[0].incarnation == copies->at[0].incarnation) {
            watch.since_ms[i] = before->since_ms[was - old->at];
        }
    }
    return watch;
}

/* All sessions given out so far knew the lost rows; new ones do not. */
static void lose_rows(ps_registry_t *self, ps_table_t *table)
{
    self->next_session = self->cluster.sessions + 1;
    self->old_sessions = self->cluster.sessions;
    table->rows_lost = true;
    table->loss_acked = false;
    table->lost_sessions = self->cluster.sessions;
    table->lost_jobs = self->cluster.last_job;
}

static psd_status_t apply_change(ps_registry_t *self, const ps_change_t *change, psd_error_t *err)
{
    ps_table_t *table = ps_registry_find_table(self, change->table);
    uint32_t at = change->partition;

    if (!ps_journal_save(self, &table->watches[at], sizeof *table->watches) ||
        !ps_journal_save(self, &table->copies[at], sizeof *table->copies) ||
        !ps_journal_save(self, &table->routes[at], sizeof *table->routes) ||
        (change->rows_lost && !ps_journal_save(self, table, sizeof *table))) {
        return psd_error_set(err, PSD_NOMEM, "no memory for copies of table %s", table->spec.name);
    }
    table->watches[at] = watch_behind(table, change);
    table->copies[at] = change->copies;
    if (change->rows_lost) {
        lose_rows(self, table);
        ps_touch(self, PS_ROW_TABLE, change->table);
    }
    settle(self, table, at);
    table->revision = ++self->revision;
    table->changed[at] = table->revision;
    ps_touch(self, PS_ROW_PARTITION, change->table, at);
    return PSD_OK;
}

psd_status_t ps_command_apply_copies(ps_registry_t *self, const ps_command_t *command,
                                     psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < command->n_changes && rc == PSD_OK; i++) {
        rc = apply_change(self, &command->changes[i], err);
    }
    return rc;
}
