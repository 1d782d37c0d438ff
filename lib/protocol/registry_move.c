/* SPDX-License-Identifier: Apache-2.0 */
/* What a drain or evening out would move, tried on a shadow of the copies. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry_look.h"

typedef struct moves {
    ps_move_t *at; /* owned */
    size_t n;
    size_t capacity;
} moves_t;

static bool
put_move(moves_t *moves,
         const ps_spot_t *spot,
         const ps_node_t *from,
         const ps_node_t *to,
         bool role)
{
    ps_move_t *move = NULL;
    const ps_copy_t *copy = ps_copies_on(spot->copies, from->incarnation);

    if (!ps_grow(&moves->at, &moves->capacity, moves->n + 1,
                 sizeof *moves->at)) {
        return false;
    }
    move = &moves->at[moves->n++];
    *move =
        (ps_move_t){.table = spot->table->id,
                    .partition = spot->partition,
                    .primary = copy == &spot->copies->at[0],
                    .role = role,
                    .bytes = role ? 0 : spot->table->bytes[spot->partition]};
    memcpy(move->from, from->name, sizeof move->from);
    if (to != NULL) {
        memcpy(move->to, to->name, sizeof move->to);
    }
    return true;
}

bool
ps_registry_set_bytes(ps_registry_t *self,
                      uint64_t from,
                      uint32_t table,
                      uint32_t partition,
                      uint64_t bytes)
{
    ps_table_t *found = ps_registry_find_table(self, table);

    if (found == NULL || partition >= found->spec.n_partitions ||
        found->copies[partition].at[0].incarnation != from) {
        return false;
    }
    found->bytes[partition] = bytes;
    return true;
}

uint64_t
ps_moves_ms(const ps_move_t *moves, size_t n, uint64_t bytes_per_second)
{
    double bytes = 0;

    for (size_t i = 0; i < n; i++) {
        bytes += (double)moves[i].bytes;
    }
    return bytes_per_second == 0
               ? 0
               : (uint64_t)(bytes * 1000 / (double)bytes_per_second);
}

/* A registry with nodes and copies of its own, and all else borrowed. */
static void
drop_shadow(ps_registry_t *shadow)
{
    for (size_t i = 0; shadow->tables != NULL && i < shadow->n_tables; i++) {
        ps_free(shadow->tables[i].copies);
    }
    ps_free(shadow->tables);
    ps_free(shadow->nodes);
}

static bool
make_shadow(const ps_registry_t *self, ps_registry_t *shadow)
{
    *shadow = *self;
    shadow->nodes = ps_alloc(self->n_nodes, sizeof *self->nodes);
    shadow->tables = ps_alloc(self->n_tables, sizeof *self->tables);
    if (shadow->nodes == NULL || shadow->tables == NULL) {
        return false;
    }
    if (self->n_nodes > 0) {
        memcpy(shadow->nodes, self->nodes, self->n_nodes * sizeof *self->nodes);
    }
    for (size_t i = 0; i < self->n_tables; i++) {
        uint32_t n = self->tables[i].spec.n_partitions;

        shadow->tables[i] = self->tables[i];
        shadow->tables[i].copies = ps_alloc(n, sizeof *shadow->tables->copies);
        if (shadow->tables[i].copies == NULL) {
            shadow->n_tables = i;
            return false;
        }
        memcpy(shadow->tables[i].copies, self->tables[i].copies,
               n * sizeof *shadow->tables->copies);
    }
    return true;
}

/* The copy is at once where it goes. */
static void
take_move(ps_look_t *look, const ps_spot_t *spot, const ps_even_t *even)
{
    ps_registry_t *self = look->registry;
    ps_copies_t *copies = spot->copies;
    ps_copy_t old = copies->at[even->at];
    ps_copy_t copy = ps_loads_copy(&look->loads, self, even->to, old.state);
    size_t from = ps_node_index(self, old.incarnation);

    if (even->role || old.state == PS_COPY_PRIMARY) {
        look->loads.primaries[from]--;
        look->loads.primaries[even->to]++;
    }
    if (even->role) {
        uint64_t next = self->nodes[even->to].incarnation;

        ps_copies_fence(copies);
        ps_copies_promote(copies,
                          (uint32_t)(ps_copies_on(copies, next) - copies->at));
        return;
    }
    copies->at[even->at] = copy;
    ps_loads_take(&look->loads, from, old.shard);
    ps_loads_add(&look->loads, even->to, copy.shard);
}

/* All moves of one kind, until there are none. */
static psd_status_t
collect(ps_look_t *look,
        bool (*find)(ps_look_t *, const ps_spot_t *, ps_even_t *),
        moves_t *moves,
        psd_error_t *err)
{
    bool found = true;

    while (found) {
        ps_spot_t spot = {0};
        size_t at = 0;

        found = false;
        while (ps_spot_next(look, &spot, &at)) {
            ps_registry_t *self = look->registry;
            ps_even_t even = {0};

            if (!find(look, &spot, &even)) {
                continue;
            }
            if (!put_move(moves, &spot,
                          ps_copy_node(self, &spot.copies->at[even.at]),
                          &self->nodes[even.to], even.role)) {
                return psd_error_set(err, PSD_NOMEM, "no memory for moves");
            }
            take_move(look, &spot, &even);
            found = true;
        }
    }
    return PSD_OK;
}

/* Each copy on the node goes where most room is. */
static psd_status_t
collect_drain(ps_look_t *look,
              ps_node_t *node,
              moves_t *moves,
              psd_error_t *err)
{
    ps_registry_t *self = look->registry;
    ps_spot_t spot = {0};
    size_t at = 0;

    node->draining = true;
    while (ps_spot_next(look, &spot, &at)) {
        const ps_copy_t *copy = ps_copies_on(spot.copies, node->incarnation);
        ps_even_t even = {0};

        if (copy == NULL) {
            continue;
        }
        even.at = (uint32_t)(copy - spot.copies->at);
        even.to = ps_loads_best(&look->loads, self, spot.copies, 0);
        if (!put_move(moves, &spot, node,
                      even.to == PS_NO_PLACE ? NULL : &self->nodes[even.to],
                      false)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for moves");
        }
        if (even.to != PS_NO_PLACE && !copy->leaving) {
            take_move(look, &spot, &even);
        }
    }
    return PSD_OK;
}

/* name NULL: evens out. */
static psd_status_t
plan(const ps_registry_t *self,
     const char *name,
     ps_move_t **ret_moves,
     size_t *ret_n,
     psd_error_t *err)
{
    ps_registry_t shadow = {0};
    ps_look_t look = {.registry = &shadow, .now_ms = self->looked_ms};
    moves_t moves = {0};
    psd_status_t rc = PSD_OK;

    if (!make_shadow(self, &shadow)) {
        drop_shadow(&shadow);
        return psd_error_set(err, PSD_NOMEM, "no memory to plan moves");
    }
    rc = ps_loads_count(&shadow, &look.loads, err);
    if (rc == PSD_OK && name != NULL) {
        rc = collect_drain(&look, ps_registry_find_node(&shadow, name), &moves,
                           err);
    } else if (rc == PSD_OK) {
        rc = collect(&look, ps_even_copy, &moves, err);
        if (rc == PSD_OK) {
            rc = collect(&look, ps_even_primary, &moves, err);
        }
    }
    ps_loads_done(&look.loads);
    drop_shadow(&shadow);
    if (rc != PSD_OK) {
        ps_free(moves.at);
        return rc;
    }
    *ret_moves = moves.at; /* ownership moves to the caller */
    *ret_n = moves.n;
    return PSD_OK;
}

psd_status_t
ps_registry_plan_drain(const ps_registry_t *self,
                       const char *name,
                       ps_move_t **ret_moves,
                       size_t *ret_n,
                       psd_error_t *err)
{
    if (ps_registry_find_node(self, name) == NULL) {
        return psd_error_set(err, PSD_NO_NODE, "node \"%.80s\" does not exist",
                             name);
    }
    return plan(self, name, ret_moves, ret_n, err);
}

psd_status_t
ps_registry_plan_rebalance(const ps_registry_t *self,
                           ps_move_t **ret_moves,
                           size_t *ret_n,
                           psd_error_t *err)
{
    return plan(self, NULL, ret_moves, ret_n, err);
}
