/* SPDX-License-Identifier: Apache-2.0 */
/* Commands about nodes, each planned, checked and applied: one starts, drains,
 * stays or is removed, and what becomes of the copies that it has. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/registry_journal.h"
#include "protocol/registry/registry_node.h"

#define HOLD_SINCE 5 /* the machine version that has wishes about members */

psd_status_t ps_registry_change_all(const ps_registry_t *self, const ps_node_t *old,
                                    const ps_node_t *node, ps_change_copy_t *change_one,
                                    ps_command_t *command, psd_error_t *err)
{
    size_t capacity = 0;

    for (size_t i = 0; i < self->n_tables; i++) {
        const ps_table_t *table = &self->tables[i];

        for (uint32_t j = 0; j < table->spec.n_partitions; j++) {
            ps_change_t *change = NULL;

            if (ps_copies_on(&table->copies[j], old->incarnation) == NULL) {
                continue;
            }
            if (!ps_grow(&command->changes, &capacity, command->n_changes + 1,
                         sizeof *command->changes)) {
                return psd_error_set(err, PSD_NOMEM, "no memory for the copies of node %s",
                                     old->name);
            }
            change = &command->changes[command->n_changes++];
            *change = (ps_change_t){.table = table->id, .partition = j, .copies = table->copies[j]};
            change->copies.epoch = command->epoch;
            change_one(old, node, table, change);
        }
    }
    return PSD_OK;
}

static uint32_t place_of(const ps_copies_t *copies, uint64_t incarnation)
{
    return (uint32_t)(ps_copies_on(copies, incarnation) - copies->at);
}

/* Demotes an heir. Another heir, if there is one, will become primary; the
 * registry finds out which has most. */
static void step_back(ps_copies_t *copies, uint32_t at, ps_copy_state_t state)
{
    if (copies->at[at].state == PS_COPY_PRIMARY) {
        ps_copies_fence(copies);
    }
    ps_copies_set_state(copies, at, state);
}

/* The primary has nothing any more, and was the only heir. That it starts again
 * proves that its life before has ended, so what was dropped may take its
 * place: it is asked, and preferred if it has not started again from rows. */
static void recall(ps_copies_t *copies)
{
    ps_copies_fence(copies);
    ps_copies_recall(copies);
    ps_copies_set_state(copies, 0, PS_COPY_KEPT);
}

bool ps_table_has_other_heir(const ps_table_t *table, uint32_t partition, uint64_t incarnation)
{
    const ps_copies_t *copies = &table->copies[partition];
    uint8_t partial = table->watches[partition].partial;

    for (uint32_t i = 0; i < copies->n; i++) {
        if (copies->at[i].incarnation != incarnation && ps_copy_is_heir(&copies->at[i]) &&
            (partial >> i & 1) == 0) {
            return true;
        }
    }
    return false;
}

/* An heir has lost its content. */
static void lose_rows(ps_change_t *change, uint32_t at, bool last)
{
    ps_copies_t *copies = &change->copies;

    if (last && !copies->fenced && ps_copies_has_dropped(copies)) {
        recall(copies);
        return;
    }
    change->rows_lost = last;
    if (!last) {
        step_back(copies, at, PS_COPY_CATCHING_UP);
    } else if (copies->at[at].state == PS_COPY_KEPT) {
        ps_copies_set_state(copies, at, PS_COPY_IN_SYNC);
    }
}

/* An heir keeps its flushed records: every write acknowledged at `disk`, but
 * not at `replica`. A primary stays primary only if no other copy can have
 * more. */
static void keep_rows(ps_change_t *change, uint32_t at)
{
    ps_copies_t *copies = &change->copies;

    if (copies->at[at].state != PS_COPY_PRIMARY || ps_copies_n_heirs(copies) > 1) {
        step_back(copies, at, PS_COPY_KEPT);
    }
}

/* True when it was kept, but its files are damaged. */
static bool is_damaged(const ps_node_t *node, const ps_copy_t *copy, const ps_table_t *table,
                       uint32_t partition)
{
    return ps_lost_has(node->lost, node->n_lost, copy->shard, table->id, partition);
}

/* A copy follows its node into its new life. It stays on its shard unless their
 * number has changed; then it gets a new shard. */
static void restart_copy(const ps_node_t *old, const ps_node_t *node, const ps_table_t *table,
                         ps_change_t *change)
{
    uint32_t at = place_of(&change->copies, old->incarnation);
    ps_copy_t *copy = &change->copies.at[at];
    bool same = node->n_shards == old->n_shards;

    copy->incarnation = node->incarnation;
    copy->shard = same ? copy->shard : (table->id - 1 + change->partition) % node->n_shards;
    copy->dropped = false; /* what it had is gone, or lies in a log */
    if (!ps_copy_is_heir(copy) || (copy->state == PS_COPY_KEPT && table->spec.ack != PS_ACK_DISK)) {
        return; /* it has nothing, as before, or as is known now */
    }
    if (node->kept && same && table->spec.ack == PS_ACK_DISK &&
        !is_damaged(node, copy, table, change->partition)) {
        keep_rows(change, at);
    } else {
        lose_rows(change, at, !ps_table_has_other_heir(table, change->partition, old->incarnation));
    }
}

/* What fills a command may end in the middle; what it holds then is freed. */
static psd_status_t give(psd_status_t rc, ps_command_t *command, ps_command_t *ret_command)
{
    if (rc != PSD_OK) {
        ps_command_done(command);
        return rc;
    }
    *ret_command = *command; /* ownership moves to the caller */
    return PSD_OK;
}

/* A terminated text in an array of `size` bytes. */
static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

static psd_status_t check_shard(const ps_node_t *node, uint32_t i, psd_error_t *err)
{
    const ps_route_t *shard = &node->shards[i];

    if (!is_text(shard->tcp, sizeof shard->tcp) || !is_text(shard->ipc, sizeof shard->ipc) ||
        ps_route_any(shard)[0] == '\0') {
        return psd_error_set(err, PSD_INVALID, "shard %u of node %s has no endpoint", i,
                             node->name);
    }
    return PSD_OK;
}

static psd_status_t check_node(const ps_node_t *node, psd_error_t *err)
{
    psd_status_t rc = ps_registry_check_name(node->name, "node", err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (node->incarnation == 0) {
        return psd_error_set(err, PSD_INVALID, "incarnation of node %s is 0", node->name);
    }
    if (!is_text(node->control, sizeof node->control)) {
        return psd_error_set(err, PSD_INVALID, "control endpoint of node %s is too long",
                             node->name);
    }
    if (node->weight > PS_NODE_SHARDS_MAX) {
        return psd_error_set(err, PSD_INVALID, "weight of node %s is %u; allowed: 0..%d",
                             node->name, node->weight, PS_NODE_SHARDS_MAX);
    }
    if (node->n_shards < 1 || node->n_shards > PS_NODE_SHARDS_MAX || node->shards == NULL) {
        return psd_error_set(err, PSD_INVALID, "node %s has %u shards; allowed: 1..%d", node->name,
                             node->n_shards, PS_NODE_SHARDS_MAX);
    }
    for (uint32_t i = 0; i < node->n_shards && rc == PSD_OK; i++) {
        rc = check_shard(node, i, err);
    }
    return rc;
}

/* Incarnations are random: one that is known is a mistake. */
static psd_status_t check_start(const ps_registry_t *self, const ps_node_t *node,
                                const ps_node_t *known, psd_error_t *err)
{
    if (ps_registry_node_by_incarnation(self, node->incarnation) != NULL) {
        return psd_error_set(err, PSD_INVALID, "another node has the incarnation of node %s",
                             node->name);
    }
    if (known != NULL && !ps_node_knows(known, &node->secret)) {
        return psd_error_set(err, PSD_DENIED, "node %s has another secret", node->name);
    }
    if (known == NULL && self->n_nodes >= self->args.nodes_max) {
        return psd_error_set(err, PSD_LIMIT, "the cluster has %zu nodes; allowed: %u",
                             self->n_nodes, self->args.nodes_max);
    }
    return PSD_OK;
}

/* Heirs on the node that are damaged; the last ones are those of which no other
 * copy is an heir. */
typedef struct losses {
    uint32_t n;
    uint32_t n_last;
    const ps_table_t *table; /* of the first of the last ones */
    uint32_t partition;
} losses_t;

static losses_t count_losses(const ps_registry_t *self, const ps_node_t *known,
                             const ps_node_t *node)
{
    losses_t losses = {0};

    for (size_t i = 0; i < self->n_tables && node->n_lost > 0; i++) {
        const ps_table_t *table = &self->tables[i];

        for (uint32_t j = 0; j < table->spec.n_partitions; j++) {
            const ps_copies_t *copies = &table->copies[j];
            const ps_copy_t *copy = ps_copies_on(copies, known->incarnation);

            if (copy == NULL || !ps_copy_is_heir(copy) || table->spec.ack != PS_ACK_DISK ||
                !is_damaged(node, copy, table, j)) {
                continue;
            }
            losses.n++;
            if (!ps_table_has_other_heir(table, j, known->incarnation)) {
                losses.table = losses.n_last == 0 ? table : losses.table;
                losses.partition = losses.n_last == 0 ? j : losses.partition;
                losses.n_last++;
            }
        }
    }
    return losses;
}

/* Only the operator may give up data that no other copy has. */
static psd_status_t check_losses(const ps_node_t *node, const losses_t *losses, psd_error_t *err)
{
    if (losses->n_last == 0 || node->accepts_loss) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_DAMAGED,
                         "no other copy of %u partition%s is whole (the first is partition %u of "
                         "table %s); restore the files from a backup, or start psd once with "
                         "--accept-loss, and those partitions start empty",
                         losses->n_last, losses->n_last == 1 ? "" : "s", losses->partition,
                         losses->table->spec.name);
}

static void print_start(const ps_node_t *node, bool is_new, const losses_t *losses, char *ret_text,
                        size_t size)
{
    int n = snprintf(ret_text, size, "node %s %s with %u shards", node->name,
                     is_new ? "joined" : "was started again", node->n_shards);

    if (losses->n > 0 && n > 0 && (size_t)n < size) {
        (void)snprintf(ret_text + n, size - (size_t)n,
                       "; damaged files cost it %u partition%s, of which %u "
                       "ha%s no other copy",
                       losses->n, losses->n == 1 ? "" : "s", losses->n_last,
                       losses->n_last == 1 ? "s" : "ve");
    }
}

psd_status_t ps_registry_plan_node(const ps_registry_t *self, const ps_node_t *node,
                                   uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_NODE, unix_ms);
    const ps_node_t *known = NULL;
    losses_t losses = {0};
    psd_status_t rc = check_node(node, err);

    if (rc != PSD_OK) {
        return rc;
    }
    known = ps_registry_find_node(self, node->name);
    rc = check_start(self, node, known, err);
    if (rc == PSD_OK && known != NULL) {
        losses = count_losses(self, known, node);
        rc = check_losses(node, &losses, err);
    }
    if (rc == PSD_OK) {
        rc = ps_node_copy(node, &command.node, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    command.node.draining = known != NULL && known->draining;
    command.epoch = ps_registry_next_epoch(self);
    print_start(node, known == NULL, &losses, command.text, sizeof command.text);
    if (known != NULL) {
        rc = ps_registry_change_all(self, known, node, restart_copy, &command, err);
    }
    return give(rc, &command, ret_command);
}

psd_status_t ps_command_check_node(const ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    const ps_node_t *node = &command->node;
    const ps_node_t *other = NULL;
    psd_status_t rc = check_node(node, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (node->held > PS_HOLD_OUT) {
        return psd_error_set(err, PSD_DAMAGED, "node %s is held as %u", node->name, node->held);
    }
    other = ps_registry_node_by_incarnation(self, node->incarnation);
    if (other != NULL) {
        return psd_error_set(err, PSD_DAMAGED, "nodes %s and %s have one incarnation", node->name,
                             other->name);
    }
    return ps_registry_check_changes(self, command, err);
}

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
    node.held = known == NULL ? command->node.held : known->held;
    node.up = true;
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
    self->old_sessions = self->cluster.sessions;
    self->next_session = self->cluster.sessions + 1;
    self->journal->node_out = *known;
    *known = node; /* ownership moves to the state */
    return ps_command_apply_copies(self, command, err);
}

/* ---- wishes about it as a member of the registry ---- */

static const char *const hold_texts[] = {"may have a part of the registry again",
                                         "gets no vote in the registry",
                                         "gets no part of the registry"};

psd_status_t ps_registry_plan_hold(const ps_registry_t *self, const char *name, ps_hold_t hold,
                                   uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_HOLD, unix_ms);
    const ps_node_t *node = ps_registry_find_node(self, name);

    if (node == NULL) {
        return psd_error_set(err, PSD_NO_NODE, "node \"%.80s\" does not exist", name);
    }
    if (node->held == (uint32_t)hold) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    if (self->cluster.sm_version < HOLD_SINCE) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "the registry is of machine version %u and remembers no wishes about "
                             "its members, as a node that has a part of it runs an older psd",
                             self->cluster.sm_version);
    }
    memcpy(command.name, node->name, sizeof command.name);
    command.number = hold;
    (void)snprintf(command.text, sizeof command.text, "node %s %s", name, hold_texts[hold]);
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_command_check_hold(const ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    if (self->cluster.sm_version < HOLD_SINCE) {
        return psd_error_set(err, PSD_DAMAGED, "a wish about a member, and machine version %u",
                             self->cluster.sm_version);
    }
    return command->number <= PS_HOLD_OUT &&
                   ps_registry_check_name(command->name, "node", NULL) == PSD_OK &&
                   ps_registry_find_node(self, command->name) != NULL
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED, "a wish about a node that does not exist");
}

psd_status_t ps_command_apply_hold(ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    ps_node_t *node = ps_registry_find_node(self, command->name);

    if (!ps_journal_save(self, node, sizeof *node)) {
        return no_memory(command->name, err);
    }
    ps_touch(self, PS_ROW_NODE, node->id);
    node->held = (uint32_t)command->number;
    return PSD_OK;
}

/* ---- drains, stays, removed ---- */

static const char *const state_texts[] = {"", "stays", "is draining", "was removed"};

psd_status_t ps_registry_plan_node_state(const ps_registry_t *self, const char *name,
                                         ps_node_state_t state, bool force, uint64_t unix_ms,
                                         ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_NODE_STATE, unix_ms);
    const ps_node_t *node = ps_registry_find_node(self, name);
    psd_status_t rc = PSD_OK;

    if (state < PS_NODE_UP || state > PS_NODE_REMOVED) {
        return psd_error_set(err, PSD_INVALID, "state of a node is %d", (int)state);
    }
    if (node == NULL) {
        return psd_error_set(err, PSD_NO_NODE, "node \"%.80s\" does not exist", name);
    }
    if (state != PS_NODE_REMOVED && node->draining == (state == PS_NODE_DRAINING)) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    memcpy(command.name, node->name, sizeof command.name);
    command.number = state;
    command.epoch = ps_registry_next_epoch(self);
    (void)snprintf(command.text, sizeof command.text, "node %s %s", name, state_texts[state]);
    if (state == PS_NODE_REMOVED) {
        rc = ps_registry_fill_removal(self, node, force, &command, err);
    }
    return give(rc, &command, ret_command);
}

psd_status_t ps_command_check_node_state(const ps_registry_t *self, const ps_command_t *command,
                                         psd_error_t *err)
{
    if (ps_registry_check_name(command->name, "node", NULL) != PSD_OK ||
        ps_registry_find_node(self, command->name) == NULL || command->number < PS_NODE_UP ||
        command->number > PS_NODE_REMOVED) {
        return psd_error_set(err, PSD_DAMAGED, "a node that does not exist is in state %llu",
                             (unsigned long long)command->number);
    }
    return ps_registry_check_changes(self, command, err);
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
