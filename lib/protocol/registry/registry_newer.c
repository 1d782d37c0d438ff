/* SPDX-License-Identifier: Apache-2.0 */
/* The map by what nodes have, where the registry's is older. */
#include "protocol/registry/registry_newer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "protocol/registry/registry_state.h"

/* What was said of one partition. */
typedef struct said {
    const ps_testimony_t *all;
    const ps_witness_t *at;
    size_t n;
} said_t;

int ps_witness_compare(const void *a, const void *b)
{
    const ps_witness_t *x = a;
    const ps_witness_t *y = b;

    if (x->table != y->table) {
        return x->table < y->table ? -1 : 1;
    }
    return (x->partition > y->partition) - (x->partition < y->partition);
}

/* The next ones, if they are of that partition. */
static said_t take_said(const ps_testimony_t *all, size_t *next, uint32_t table, uint32_t partition)
{
    const ps_witness_t key = {.table = table, .partition = partition};
    said_t said = {.all = all};

    while (*next < all->n_copies && ps_witness_compare(&all->copies[*next], &key) < 0) {
        (*next)++;
    }
    said.at = all->copies + *next;
    while (*next < all->n_copies && ps_witness_compare(&all->copies[*next], &key) == 0) {
        (*next)++;
        said.n++;
    }
    return said;
}

static bool has_spoken(const said_t *said, uint64_t incarnation)
{
    for (size_t i = 0; i < said->all->n_nodes; i++) {
        if (said->all->nodes[i] == incarnation) {
            return true;
        }
    }
    return false;
}

static bool has_copy(const said_t *said, uint64_t incarnation)
{
    for (size_t i = 0; i < said->n; i++) {
        if (said->at[i].incarnation == incarnation) {
            return true;
        }
    }
    return false;
}

static uint64_t latest_of(const said_t *said)
{
    uint64_t epoch = 0;

    for (size_t i = 0; i < said->n; i++) {
        epoch = said->at[i].epoch > epoch ? said->at[i].epoch : epoch;
    }
    return epoch;
}

/* A node has one copy of a partition at most. */
static void add(const ps_registry_t *self, const ps_copy_t *copy, ps_copies_t *to)
{
    const ps_node_t *node = ps_registry_node_by_incarnation(self, copy->incarnation);

    if (node != NULL && copy->shard < node->n_shards && to->n < PS_COPIES_MAX &&
        ps_copies_on(to, copy->incarnation) == NULL) {
        ps_copies_add(to, copy);
    }
}

/* The copies of the latest epoch are asked; the others catch up, and so may those on nodes
 * that have said nothing. */
static ps_copies_t by_latest(const ps_registry_t *self, const said_t *said, uint64_t latest,
                             const ps_copies_t *old)
{
    ps_copies_t copies = {.fenced = true};

    for (size_t later = 0; later < 2; later++) {
        for (size_t i = 0; i < said->n; i++) {
            const ps_witness_t *from = &said->at[i];
            const ps_copy_t copy = {.incarnation = from->incarnation,
                                    .shard = from->shard,
                                    .state = later == 0 ? PS_COPY_IN_SYNC : PS_COPY_CATCHING_UP};

            if ((from->epoch == latest) == (later == 0)) {
                add(self, &copy, &copies);
            }
        }
    }
    for (uint32_t i = 0; i < old->n; i++) {
        const ps_copy_t copy = {.incarnation = old->at[i].incarnation,
                                .shard = old->at[i].shard,
                                .state = PS_COPY_CATCHING_UP};

        if (!has_spoken(said, copy.incarnation)) {
            add(self, &copy, &copies);
        }
    }
    return copies;
}

static bool is_empty(const said_t *said, const ps_copy_t *copy)
{
    return has_spoken(said, copy->incarnation) && !has_copy(said, copy->incarnation);
}

/* Copies on nodes that have nothing of the partition catch up, if another one is an heir. */
static ps_copies_t without_empty(const said_t *said, const ps_copies_t *old)
{
    ps_copies_t copies = *old;
    uint32_t n_left = 0;

    for (uint32_t i = 0; i < old->n; i++) {
        n_left += ps_copy_is_heir(&old->at[i]) && !is_empty(said, &old->at[i]) ? 1 : 0;
    }
    for (uint32_t i = old->n; n_left > 0 && i > 0; i--) {
        const ps_copy_t *copy = &old->at[i - 1];

        if (!ps_copy_is_heir(copy) || !is_empty(said, copy)) {
            continue;
        }
        if (copy->state == PS_COPY_PRIMARY) {
            ps_copies_fence(&copies);
        }
        copies.at[i - 1].dropped = false;
        ps_copies_set_state(&copies, i - 1, PS_COPY_CATCHING_UP);
    }
    return copies;
}

/* A start of a node changes a line, but knows no more than the line before. */
static uint64_t known_epoch(const ps_testimony_t *all, uint32_t table, uint32_t partition,
                            const ps_copies_t *old)
{
    const ps_witness_t key = {.table = table, .partition = partition};
    const ps_witness_t *before = all->n_before == 0 ? NULL
                                                    : bsearch(&key, all->before, all->n_before,
                                                              sizeof key, ps_witness_compare);

    return before == NULL ? old->epoch : before->epoch;
}

/* false: nothing changes. */
static bool compare(const ps_registry_t *self, const said_t *said, uint64_t known,
                    const ps_copies_t *old, ps_copies_t *ret)
{
    uint64_t latest = latest_of(said);

    if (latest > known) {
        *ret = by_latest(self, said, latest, old);
        return ps_copies_n_heirs(ret) > 0;
    }
    *ret = without_empty(said, old);
    return ps_copies_n_heirs(ret) < ps_copies_n_heirs(old);
}

static psd_status_t fill(const ps_registry_t *self, const ps_testimony_t *testimony,
                         ps_command_t *command, psd_error_t *err)
{
    size_t capacity = 0;
    size_t next = 0;

    for (size_t i = 0; i < self->n_tables; i++) {
        const ps_table_t *table = &self->tables[i];

        for (uint32_t k = 0; k < table->spec.n_partitions; k++) {
            const said_t said = take_said(testimony, &next, table->id, k);
            ps_copies_t copies = {0};

            if (!compare(self, &said, known_epoch(testimony, table->id, k, &table->copies[k]),
                         &table->copies[k], &copies)) {
                continue;
            }
            if (!ps_grow(&command->changes, &capacity, command->n_changes + 1,
                         sizeof *command->changes)) {
                return psd_error_set(err, PSD_NOMEM, "no memory for newer copies");
            }
            copies.epoch = command->epoch;
            command->changes[command->n_changes++] =
                (ps_change_t){.table = table->id, .partition = k, .copies = copies};
        }
    }
    return PSD_OK;
}

psd_status_t ps_registry_plan_newer(const ps_registry_t *self, const ps_testimony_t *testimony,
                                    uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_COPIES, unix_ms);
    psd_status_t rc = PSD_OK;

    command.epoch = ps_registry_next_epoch(self);
    for (size_t i = 0; i < testimony->n_copies; i++) {
        if (testimony->copies[i].epoch >= command.epoch) {
            command.epoch = testimony->copies[i].epoch + 1;
        }
    }
    rc = fill(self, testimony, &command, err);
    if (rc == PSD_OK && command.n_changes > 0) {
        (void)snprintf(command.text, sizeof command.text,
                       "nodes have %zu partitions elsewhere than the registry knew",
                       command.n_changes);
        *ret_command = command; /* ownership moves to the caller */
        return PSD_OK;
    }
    ps_command_done(&command);
    if (rc == PSD_OK) {
        *ret_command = (ps_command_t){0};
    }
    return rc;
}
