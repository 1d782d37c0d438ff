/* SPDX-License-Identifier: Apache-2.0 */
/* The moves of a drain, a rebalance or a repair, simulated on a shadow of the
 * copies. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/placement/registry_look.h"

#define TELLING_BYTES (UINT64_C(1) << 20) /* less evens nothing out */

typedef struct moves {
    ps_move_t *at; /* owned */
    size_t n;
    size_t capacity;
} moves_t;

static bool put_move(moves_t *moves, const ps_spot_t *spot, const ps_node_t *from,
                     const ps_node_t *to, bool role)
{
    ps_move_t *move = NULL;
    const ps_copy_t *copy = ps_copies_on(spot->copies, from->incarnation);

    if (!ps_grow(&moves->at, &moves->capacity, moves->n + 1, sizeof *moves->at)) {
        return false;
    }
    move = &moves->at[moves->n++];
    *move = (ps_move_t){.table = spot->table->id,
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

bool ps_registry_set_bytes(ps_registry_t *self, uint64_t from, uint32_t table, uint32_t partition,
                           uint64_t bytes)
{
    ps_table_t *found = ps_registry_find_table(self, table);
    uint64_t old = 0;

    if (found == NULL || partition >= found->spec.n_partitions ||
        found->copies[partition].at[0].incarnation != from) {
        return false;
    }
    old = found->bytes[partition];
    found->bytes[partition] = bytes;
    if ((bytes > old ? bytes - old : old - bytes) >= TELLING_BYTES) {
        self->dirty = true; /* the nodes may be uneven now */
    }
    return true;
}

uint64_t ps_registry_copy_rate(const ps_registry_t *self)
{
    return self->copied_bytes_per_s;
}

/* A registry with nodes and copies of its own, and all else borrowed. */
static void drop_shadow(ps_registry_t *shadow)
{
    for (size_t i = 0; shadow->tables != NULL && i < shadow->n_tables; i++) {
        ps_free(shadow->tables[i].copies);
    }
    ps_free(shadow->tables);
    ps_free(shadow->nodes);
}

static bool make_shadow(const ps_registry_t *self, ps_registry_t *shadow)
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

/* Applies the move at once. */
static void take_move(ps_look_t *look, const ps_spot_t *spot, const ps_even_t *even)
{
    ps_registry_t *self = look->registry;
    ps_copies_t *copies = spot->copies;
    ps_copy_t old = copies->at[even->at];
    ps_copy_t copy = ps_loads_copy(&look->loads, self, even->to, old.state);
    size_t from = ps_node_index(self, old.incarnation);
    uint64_t load = ps_copy_load(spot->table, spot->partition);

    if (even->role || old.state == PS_COPY_PRIMARY) {
        look->loads.primaries[from]--;
        look->loads.primaries[even->to]++;
    }
    if (even->role) {
        uint64_t next = self->nodes[even->to].incarnation;

        ps_copies_fence(copies);
        ps_copies_promote(copies, (uint32_t)(ps_copies_on(copies, next) - copies->at));
        return;
    }
    copies->at[even->at] = copy;
    ps_loads_take(&look->loads, from, old.shard, load);
    ps_loads_add(&look->loads, even->to, copy.shard, load);
}

/* All moves of one kind, until there are none. */
static psd_status_t collect(ps_look_t *look,
                            bool (*find)(ps_look_t *, const ps_spot_t *, ps_even_t *),
                            moves_t *moves, psd_error_t *err)
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
            if (!put_move(moves, &spot, ps_copy_node(self, &spot.copies->at[even.at]),
                          &self->nodes[even.to], even.role)) {
                return psd_error_set(err, PSD_NOMEM, "no memory for moves");
            }
            take_move(look, &spot, &even);
            found = true;
        }
    }
    return PSD_OK;
}

/* The node of the copy that catches up; NULL: none does. */
static const ps_node_t *coming(const ps_registry_t *self, const ps_copies_t *copies)
{
    for (uint32_t i = 0; i < copies->n; i++) {
        if (!ps_copy_is_whole(&copies->at[i]) && !copies->at[i].leaving &&
            ps_copy_lives(self, &copies->at[i])) {
            return ps_copy_node(self, &copies->at[i]);
        }
    }
    return NULL;
}

/* Moves each copy on the node to the least loaded node. */
static psd_status_t collect_drain(ps_look_t *look, ps_node_t *node, moves_t *moves,
                                  psd_error_t *err)
{
    ps_registry_t *self = look->registry;
    const ps_node_t *next = NULL;
    ps_spot_t spot = {0};
    size_t at = 0;

    node->draining = true;
    while (ps_spot_next(look, &spot, &at)) {
        const ps_copy_t *copy = ps_copies_on(spot.copies, node->incarnation);
        ps_even_t even = {0};

        if (copy == NULL) {
            continue;
        }
        next = spot.copies->n > spot.table->spec.replicas ? coming(self, spot.copies) : NULL;
        if (next != NULL) {
            if (!put_move(moves, &spot, node, next, false)) {
                return psd_error_set(err, PSD_NOMEM, "no memory for moves");
            }
            moves->at[moves->n - 1].under_way = true;
            continue;
        }
        even.at = (uint32_t)(copy - spot.copies->at);
        even.to = ps_loads_best(&look->loads, self, spot.copies,
                                ps_copy_load(spot.table, spot.partition), 0);
        if (!put_move(moves, &spot, node, even.to == PS_NO_PLACE ? NULL : &self->nodes[even.to],
                      false)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for moves");
        }
        if (even.to != PS_NO_PLACE && !copy->leaving) {
            take_move(look, &spot, &even);
        }
    }
    return PSD_OK;
}

/* A copy that is made from what the primary has. */
static bool put_copy(ps_look_t *look, const ps_spot_t *spot, const ps_node_t *to, bool under_way,
                     moves_t *moves)
{
    const ps_copy_t *primary = ps_copies_primary(spot->copies);
    ps_move_t *move = NULL;

    if (!ps_grow(&moves->at, &moves->capacity, moves->n + 1, sizeof *moves->at)) {
        return false;
    }
    move = &moves->at[moves->n++];
    *move = (ps_move_t){.table = spot->table->id,
                        .partition = spot->partition,
                        .under_way = under_way,
                        .bytes = spot->table->bytes[spot->partition]};
    if (primary != NULL) {
        const ps_node_t *from = ps_copy_node(look->registry, primary);

        memcpy(move->from, from->name, sizeof move->from);
    }
    if (to != NULL) {
        memcpy(move->to, to->name, sizeof move->to);
    }
    return true;
}

/* The copies of one partition that catch up, and those that are missing. */
static bool put_missing(ps_look_t *look, const ps_spot_t *spot, moves_t *moves)
{
    ps_registry_t *self = look->registry;
    ps_copies_t *copies = spot->copies;
    uint64_t load = ps_copy_load(spot->table, spot->partition);
    uint32_t n_there = 0;
    bool done = true;

    for (uint32_t i = 0; done && i < copies->n; i++) {
        const ps_copy_t *copy = &copies->at[i];

        if (copy->leaving || !ps_copy_lives(self, copy)) {
            continue;
        }
        n_there++;
        if (!ps_copy_is_whole(copy)) {
            done = put_copy(look, spot, ps_copy_node(self, copy), true, moves);
        }
    }
    for (; done && n_there < spot->table->spec.replicas; n_there++) {
        size_t to = ps_loads_best(&look->loads, self, copies, load, 0);
        ps_copy_t copy = {0};

        done = put_copy(look, spot, to == PS_NO_PLACE ? NULL : &self->nodes[to], false, moves);
        if (to != PS_NO_PLACE && copies->n < PS_COPIES_MAX) {
            copy = ps_loads_copy(&look->loads, self, to, PS_COPY_CATCHING_UP);
            ps_copies_add(copies, &copy);
            ps_loads_add(&look->loads, to, copy.shard, load);
        }
    }
    return done;
}

static psd_status_t collect_repair(ps_look_t *look, moves_t *moves, psd_error_t *err)
{
    ps_spot_t spot = {0};
    size_t at = 0;

    while (ps_spot_next(look, &spot, &at)) {
        if (!put_missing(look, &spot, moves)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for moves");
        }
    }
    return PSD_OK;
}

typedef enum plan_kind {
    PLAN_DRAIN = 1, /* of the node that is named */
    PLAN_EVEN,
    PLAN_REPAIR
} plan_kind_t;

static psd_status_t plan(const ps_registry_t *self, plan_kind_t kind, const char *name,
                         ps_move_t **ret_moves, size_t *ret_n, psd_error_t *err)
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
    if (rc == PSD_OK && kind == PLAN_REPAIR) {
        rc = collect_repair(&look, &moves, err);
    } else if (rc == PSD_OK && kind == PLAN_DRAIN) {
        rc = collect_drain(&look, ps_registry_find_node(&shadow, name), &moves, err);
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

psd_status_t ps_registry_plan_drain(const ps_registry_t *self, const char *name,
                                    ps_move_t **ret_moves, size_t *ret_n, psd_error_t *err)
{
    if (ps_registry_find_node(self, name) == NULL) {
        return psd_error_set(err, PSD_NO_NODE, "node \"%.80s\" does not exist", name);
    }
    return plan(self, PLAN_DRAIN, name, ret_moves, ret_n, err);
}

psd_status_t ps_registry_plan_rebalance(const ps_registry_t *self, ps_move_t **ret_moves,
                                        size_t *ret_n, psd_error_t *err)
{
    return plan(self, PLAN_EVEN, NULL, ret_moves, ret_n, err);
}

psd_status_t ps_registry_plan_repair(const ps_registry_t *self, ps_move_t **ret_moves,
                                     size_t *ret_n, psd_error_t *err)
{
    return plan(self, PLAN_REPAIR, NULL, ret_moves, ret_n, err);
}
