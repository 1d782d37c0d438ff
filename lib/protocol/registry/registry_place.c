/* SPDX-License-Identifier: Apache-2.0 */
/* Where copies go: loads of nodes, and the placement of a new table. */
#include "protocol/registry/registry_place.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

/* Of one partition: sums and weights stay in their numbers. */
#define BYTES_MOST (UINT64_C(1) << 40)

size_t ps_node_index(const ps_registry_t *self, uint64_t incarnation)
{
    const ps_node_t *node = ps_registry_node_by_incarnation(self, incarnation);

    assert(node != NULL);
    return (size_t)(node - self->nodes);
}

bool ps_node_takes(const ps_node_t *self)
{
    return self->up && !self->draining;
}

uint32_t ps_node_weight(const ps_node_t *self)
{
    return self->weight == 0 ? self->n_shards : self->weight;
}

void ps_loads_done(ps_loads_t *self)
{
    if (self->shards != NULL) {
        ps_free(self->shards[0]);
    }
    ps_free(self->shards);
    ps_free(self->copies);
    ps_free(self->primaries);
    *self = (ps_loads_t){0};
}

/* All shards' counts are one piece; shards[i] points to those of node i. */
static bool make_loads(const ps_registry_t *self, ps_loads_t *loads)
{
    size_t n_shards = 0;

    for (size_t i = 0; i < self->n_nodes; i++) {
        n_shards += self->nodes[i].n_shards;
    }
    loads->copies = ps_alloc(self->n_nodes, sizeof *loads->copies);
    loads->primaries = ps_alloc(self->n_nodes, sizeof *loads->primaries);
    loads->shards = ps_alloc(self->n_nodes + 1, sizeof *loads->shards);
    if (loads->copies == NULL || loads->primaries == NULL || loads->shards == NULL) {
        return false;
    }
    loads->shards[0] = ps_alloc(n_shards, sizeof **loads->shards);
    for (size_t i = 0; loads->shards[0] != NULL && i < self->n_nodes; i++) {
        loads->shards[i + 1] = loads->shards[i] + self->nodes[i].n_shards;
    }
    return loads->shards[0] != NULL;
}

static void count_one(const ps_registry_t *self, const ps_table_t *table, uint32_t partition,
                      ps_loads_t *loads)
{
    const ps_copies_t *copies = &table->copies[partition];
    const ps_node_t *next = ps_registry_node_by_incarnation(self, table->watches[partition].prefer);
    uint64_t load = ps_copy_load(table, partition);

    /* A primary that moves is counted where it goes. */
    if (copies->fenced) {
        loads->primaries[next == NULL ? ps_node_index(self, copies->at[0].incarnation)
                                      : (size_t)(next - self->nodes)]++;
    }
    for (uint32_t i = 0; i < copies->n; i++) {
        const ps_copy_t *copy = &copies->at[i];
        size_t node = ps_node_index(self, copy->incarnation);

        if (!copy->leaving) {
            ps_loads_add(loads, node, copy->shard, load);
        }
        loads->primaries[node] += copy->state == PS_COPY_PRIMARY ? 1 : 0;
    }
}

psd_status_t ps_loads_count(const ps_registry_t *self, ps_loads_t *ret_loads, psd_error_t *err)
{
    ps_loads_t loads = {0};

    if (!make_loads(self, &loads)) {
        ps_loads_done(&loads);
        return psd_error_set(err, PSD_NOMEM, "no memory for loads of %zu nodes", self->n_nodes);
    }
    for (size_t i = 0; i < self->n_tables; i++) {
        for (uint32_t j = 0; j < self->tables[i].spec.n_partitions; j++) {
            count_one(self, &self->tables[i], j, &loads);
        }
    }
    *ret_loads = loads;
    return PSD_OK;
}

uint64_t ps_copy_load(const ps_table_t *table, uint32_t partition)
{
    uint64_t bytes = table->bytes == NULL ? 0 : table->bytes[partition];

    return PS_COPY_LOAD + (bytes < BYTES_MOST ? bytes : BYTES_MOST);
}

void ps_loads_add(ps_loads_t *self, size_t node, uint32_t shard, uint64_t load)
{
    self->copies[node] += load;
    self->shards[node][shard] += load;
}

void ps_loads_take(ps_loads_t *self, size_t node, uint32_t shard, uint64_t load)
{
    assert(self->copies[node] >= load && self->shards[node][shard] >= load);
    self->copies[node] -= load;
    self->shards[node][shard] -= load;
}

/* By more than half of an empty copy: what is a few bytes smaller moves
 * nothing. (Where weights differ, what is compared is finer than a copy.) */
bool ps_loads_evens(const ps_loads_t *self, const ps_registry_t *registry, size_t from, size_t to,
                    uint64_t load, uint32_t slack)
{
    uint64_t has = self->copies[from] * ps_node_weight(&registry->nodes[to]);
    uint64_t would = (self->copies[to] + slack * load) * ps_node_weight(&registry->nodes[from]);

    uint32_t weight = ps_node_weight(&registry->nodes[from]);

    if (weight != ps_node_weight(&registry->nodes[to])) {
        weight = 1;
    }
    return has > would && has - would > PS_COPY_LOAD / 2 * weight;
}

bool ps_loads_evens_primaries(const ps_loads_t *self, const ps_registry_t *registry, size_t from,
                              size_t to, uint32_t slack)
{
    return self->primaries[from] * ps_node_weight(&registry->nodes[to]) >
           (self->primaries[to] + slack) * ps_node_weight(&registry->nodes[from]);
}

size_t ps_loads_best(const ps_loads_t *self, const ps_registry_t *registry,
                     const ps_copies_t *copies, uint64_t load, size_t first)
{
    size_t best = PS_NO_PLACE;
    uint64_t best_has = 0;

    for (size_t i = 0; i < registry->n_nodes; i++) {
        size_t at = (first + i) % registry->n_nodes;
        const ps_node_t *node = &registry->nodes[at];
        uint64_t has = self->copies[at] + load;

        if (!ps_node_takes(node) || ps_copies_on(copies, node->incarnation) != NULL) {
            continue;
        }
        if (best == PS_NO_PLACE ||
            has * ps_node_weight(&registry->nodes[best]) < best_has * ps_node_weight(node)) {
            best = at;
            best_has = has;
        }
    }
    return best;
}

ps_copy_t ps_loads_copy(const ps_loads_t *self, const ps_registry_t *registry, size_t node,
                        ps_copy_state_t state)
{
    const ps_node_t *to = &registry->nodes[node];
    ps_copy_t copy = {.incarnation = to->incarnation, .state = state};

    for (uint32_t i = 1; i < to->n_shards; i++) {
        if (self->shards[node][i] < self->shards[node][copy.shard]) {
            copy.shard = i;
        }
    }
    return copy;
}

/* New tables */

/* Nodes that take copies, and the sum of their weights. */
static uint32_t count_takers(const ps_registry_t *self, uint64_t *ret_weights)
{
    uint32_t n = 0;

    *ret_weights = 0;
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (ps_node_takes(&self->nodes[i])) {
            n++;
            *ret_weights += ps_node_weight(&self->nodes[i]);
        }
    }
    return n;
}

/* The primary at place `at` of the round; at < the sum of the weights. */
static ps_copy_t primary_at(const ps_registry_t *self, uint64_t at, size_t *ret_node)
{
    ps_copy_t copy = {.state = PS_COPY_PRIMARY};

    for (size_t i = 0; i < self->n_nodes; i++) {
        const ps_node_t *node = &self->nodes[i];
        uint32_t weight = ps_node_weight(node);

        if (!ps_node_takes(node)) {
            continue;
        }
        if (at < weight) {
            copy.incarnation = node->incarnation;
            copy.shard = (uint32_t)(at % node->n_shards);
            *ret_node = i;
            break;
        }
        at -= weight;
    }
    assert(copy.incarnation != 0);
    return copy;
}

/* All primaries first, so that the other copies even them out. */
static void place_all(const ps_registry_t *self, uint64_t epoch, uint64_t weights,
                      ps_loads_t *loads, ps_table_t *table)
{
    uint32_t n = table->spec.n_partitions;
    uint64_t first = n >= weights ? 0 : table->id - 1;

    for (uint32_t i = 0; i < n; i++) {
        ps_copies_t *copies = &table->copies[i];
        size_t node = 0;

        copies->epoch = epoch;
        copies->at[0] = primary_at(self, (first + i) % weights, &node);
        copies->n = 1;
        ps_loads_add(loads, node, copies->at[0].shard, PS_COPY_LOAD);
    }
    for (uint32_t i = 0; i < n; i++) {
        ps_copies_t *copies = &table->copies[i];
        size_t node = ps_node_index(self, copies->at[0].incarnation);

        while (copies->n < table->spec.replicas) {
            size_t next = ps_loads_best(loads, self, copies, PS_COPY_LOAD,
                                        (node + copies->n) % self->n_nodes);
            ps_copy_t copy = {0};

            assert(next != PS_NO_PLACE);
            copy = ps_loads_copy(loads, self, next, PS_COPY_IN_SYNC);
            ps_copies_add(copies, &copy);
            ps_loads_add(loads, next, copy.shard, PS_COPY_LOAD);
        }
    }
}

psd_status_t ps_registry_place(const ps_registry_t *self, uint64_t epoch, ps_table_t *table,
                               psd_error_t *err)
{
    PSD_AUTO(ps_loads_done) ps_loads_t loads = {0};
    uint64_t weights = 0;
    uint32_t n_nodes = count_takers(self, &weights);
    psd_status_t rc = PSD_OK;

    if (n_nodes == 0) {
        return psd_error_set(err, PSD_FEW_NODES, "no node is up to hold table %s",
                             table->spec.name);
    }
    if (n_nodes < table->spec.replicas) {
        return psd_error_set(err, PSD_FEW_NODES,
                             "table %s wants copies on %u nodes; %u are up and "
                             "not draining",
                             table->spec.name, table->spec.replicas, n_nodes);
    }
    rc = ps_loads_count(self, &loads, err);
    if (rc != PSD_OK) {
        return rc;
    }
    table->copies = ps_alloc(table->spec.n_partitions, sizeof *table->copies);
    if (table->copies == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the copies of %u partitions",
                             table->spec.n_partitions);
    }
    place_all(self, epoch, weights, &loads, table);
    return PSD_OK;
}
