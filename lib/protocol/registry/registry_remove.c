/* SPDX-License-Identifier: Apache-2.0 */
/* Removes a node and its copies; and reports what a node still has. */
#include <stdio.h>

#include "base/alloc.h"
#include "protocol/registry/registry_node.h"
#include "protocol/registry/registry_place.h"

#define NAMES_MAX 3 /* tables that an error names */
#define NAMES_SIZE (NAMES_MAX * (PS_NAME_MAX + 2) + 32)

static void take_copy(const ps_node_t *old, const ps_node_t *node, const ps_table_t *table,
                      ps_change_t *change)
{
    ps_copies_t *copies = &change->copies;
    const ps_copy_t *copy = ps_copies_on(copies, old->incarnation);

    (void)node;
    (void)table;
    if (copy->state == PS_COPY_PRIMARY) {
        ps_copies_fence(copies);
    }
    ps_copies_remove(copies, (uint32_t)(copy - copies->at));
}

/* What could take over when a copy is gone. */
typedef enum others {
    OTHERS_NONE = 0,
    OTHERS_DOWN, /* all of them are on nodes that are down, and may not come back */
    OTHERS_UP
} others_t;

/* A copy that was dropped could, too, when the node of this one starts again with
 * nothing. */
static bool could_lead(const ps_table_t *table, uint32_t partition, uint32_t i)
{
    const ps_copy_t *copy = &table->copies[partition].at[i];

    return (ps_copy_is_heir(copy) || copy->dropped) &&
           (table->watches[partition].partial >> i & 1) == 0;
}

static others_t others_of(const ps_registry_t *self, const ps_table_t *table, uint32_t partition,
                          const ps_copy_t *copy)
{
    const ps_copies_t *copies = &table->copies[partition];
    others_t others = OTHERS_NONE;

    for (uint32_t i = 0; i < copies->n; i++) {
        const ps_node_t *node = ps_registry_node_by_incarnation(self, copies->at[i].incarnation);

        if (&copies->at[i] == copy || !could_lead(table, partition, i)) {
            continue;
        }
        if (node != NULL && node->up) {
            return OTHERS_UP;
        }
        others = OTHERS_DOWN;
    }
    return others;
}

/* Counts the copy among the last ones, if it is one. */
static void count_last(const ps_registry_t *self, const ps_table_t *table, uint32_t partition,
                       const ps_copy_t *copy, ps_last_t *last)
{
    others_t others = ps_copy_is_heir(copy) ? others_of(self, table, partition, copy) : OTHERS_UP;

    last->n += others == OTHERS_UP ? 0 : 1;
    last->n_down += others == OTHERS_DOWN ? 1 : 0;
}

/* Nodes that are up and stay could not have as many copies as are wanted. */
static bool is_stuck(const ps_registry_t *self, const ps_table_t *table, const ps_node_t *node)
{
    uint32_t n_others = 0;

    for (size_t i = 0; i < self->n_nodes; i++) {
        const ps_node_t *other = &self->nodes[i];

        n_others += other != node && other->up && !other->draining ? 1 : 0;
    }
    return n_others < table->spec.replicas;
}

static ps_node_left_t count_left(const ps_registry_t *self, const ps_node_t *node)
{
    ps_node_left_t left = {0};

    for (size_t i = 0; i < self->n_tables; i++) {
        const ps_table_t *table = &self->tables[i];

        for (uint32_t j = 0; j < table->spec.n_partitions; j++) {
            const ps_copies_t *copies = &table->copies[j];
            const ps_copy_t *copy = ps_copies_on(copies, node->incarnation);

            if (copy != NULL) {
                left.n_copies++;
                left.n_primaries += copy->state == PS_COPY_PRIMARY ? 1 : 0;
                count_last(self, table, j, copy, &left.last);
                left.n_stuck += is_stuck(self, table, node) ? 1 : 0;
                left.bytes += table->bytes[j];
            }
        }
    }
    return left;
}

ps_last_t ps_registry_last_copies(const ps_registry_t *self, const ps_table_t *table,
                                  const ps_node_t *node)
{
    ps_last_t last = {0};

    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        const ps_copy_t *copy = ps_copies_on(&table->copies[i], node->incarnation);

        if (copy != NULL) {
            count_last(self, table, i, copy, &last);
        }
    }
    return last;
}

bool ps_registry_node_left(const ps_registry_t *self, const char *name, ps_node_left_t *ret_left)
{
    const ps_node_t *node = ps_registry_find_node(self, name);

    if (node == NULL) {
        return false;
    }
    *ret_left = count_left(self, node);
    return true;
}

/* `w, v and 3 more`: the tables of which the node has last copies. */
static void name_tables(const ps_registry_t *self, const ps_node_t *node,
                        char ret_names[NAMES_SIZE])
{
    size_t n = 0;
    size_t used = 0;

    ret_names[0] = '\0';
    for (size_t i = 0; i < self->n_tables; i++) {
        const ps_table_t *table = &self->tables[i];

        if (ps_registry_last_copies(self, table, node).n > 0 && n++ < NAMES_MAX) {
            used += (size_t)snprintf(ret_names + used, NAMES_SIZE - used, "%s%s",
                                     n == 1 ? "" : ", ", table->spec.name);
        }
    }
    if (n > NAMES_MAX) {
        (void)snprintf(ret_names + used, NAMES_SIZE - used, " and %zu more", n - NAMES_MAX);
    }
}

/* It is down, and there are copies that only it has, or only nodes that are down. */
static psd_status_t refuse_last(const ps_registry_t *self, const ps_node_t *node,
                                const ps_node_left_t *left, psd_error_t *err)
{
    const ps_last_t *last = &left->last;
    char names[NAMES_SIZE];

    name_tables(self, node, names);
    if (last->n_down == 0) {
        return psd_error_set(
            err, PSD_NODE_HELD,
            "node %s has copies of %u partitions, the last ones of %u of them (tables: %s); "
            "restart it to recover what is on its disk; if it is lost, use --force: those %u start "
            "empty",
            node->name, left->n_copies, last->n, names, last->n);
    }
    return psd_error_set(
        err, PSD_NODE_HELD,
        "node %s has copies of %u partitions; of %u of them (tables: %s) no node that is up has "
        "another; restart it to recover what is on its disk; if it is lost, use --force: %u start "
        "empty, and %u wait for other nodes that are down",
        node->name, left->n_copies, last->n, names, last->n - last->n_down, last->n_down);
}

static psd_status_t check_removal(const ps_registry_t *self, const ps_node_t *node, bool force,
                                  psd_error_t *err)
{
    ps_node_left_t left = count_left(self, node);

    if (!node->up && (left.n_copies == 0 || force)) {
        return PSD_OK;
    }
    if (left.n_copies == 0) { /* it would be back with its next question */
        return psd_error_set(err, PSD_NODE_HELD,
                             "node %s is up and would join again; stop it "
                             "first",
                             node->name);
    }
    if (node->up) {
        return psd_error_set(err, PSD_NODE_HELD,
                             "node %s has copies of %u partitions; drain it "
                             "first",
                             node->name, left.n_copies);
    }
    if (left.last.n == 0) {
        return psd_error_set(err, PSD_NODE_HELD,
                             "node %s has copies of %u partitions, which other nodes have too; "
                             "restart it, or use --force if it is lost",
                             node->name, left.n_copies);
    }
    return refuse_last(self, node, &left, err);
}

/* A copy that catches up, on a node that takes copies: it can become whole no
 * more. false: there is none. */
static bool choose_unfinished(const ps_registry_t *self, ps_copies_t *copies)
{
    for (uint32_t i = 0; i < copies->n; i++) {
        const ps_node_t *node = ps_registry_node_by_incarnation(self, copies->at[i].incarnation);

        if (node != NULL && ps_node_takes(node)) {
            copies->at[i].leaving = false;
            ps_copies_set_state(copies, i, PS_COPY_IN_SYNC);
            return true;
        }
    }
    return false;
}

/* A node without a copy has nothing to throw away; ps_replicas_begin_empty is for
 * the others. */
static bool choose_empty(const ps_registry_t *self, ps_loads_t *loads, ps_copies_t *copies)
{
    size_t node = ps_loads_best(loads, self, copies, PS_COPY_LOAD, 0);
    ps_copy_t copy = {0};

    if (node == PS_NO_PLACE) {
        return choose_unfinished(self, copies);
    }
    copy = ps_loads_copy(loads, self, node, PS_COPY_IN_SYNC);
    ps_loads_add(loads, node, copy.shard, PS_COPY_LOAD);
    ps_copies_add(copies, &copy);
    return true;
}

/* Creates a partition without any heir again, empty. */
static psd_status_t make_again(const ps_registry_t *self, ps_loads_t *loads, ps_change_t *change,
                               psd_error_t *err)
{
    ps_copies_t *copies = &change->copies;

    if (!choose_empty(self, loads, copies)) {
        return psd_error_set(err, PSD_NODE_HELD,
                             "the last copy of partition %u of table %s would be lost, and no "
                             "other node can take a new one",
                             change->partition,
                             ps_registry_find_table(self, change->table)->spec.name);
    }
    copies->fenced = true;
    ps_copies_promote(copies, 0);
    change->rows_lost = true;
    return PSD_OK;
}

psd_status_t ps_registry_fill_removal(const ps_registry_t *self, const ps_node_t *node, bool force,
                                      ps_command_t *command, psd_error_t *err)
{
    PSD_AUTO(ps_loads_done) ps_loads_t loads = {0};
    psd_status_t rc = check_removal(self, node, force, err);

    if (rc == PSD_OK) {
        rc = ps_registry_change_all(self, node, NULL, take_copy, command, err);
    }
    if (rc == PSD_OK) {
        rc = ps_loads_count(self, &loads, err);
    }
    for (size_t i = 0; i < command->n_changes && rc == PSD_OK; i++) {
        ps_copies_t *copies = &command->changes[i].copies;

        if (ps_copies_n_heirs(copies) == 0) {
            ps_copies_recall(copies); /* it is gone for good: those take over */
        }
        if (ps_copies_n_heirs(copies) == 0) {
            rc = make_again(self, &loads, &command->changes[i], err);
        }
    }
    return rc;
}
