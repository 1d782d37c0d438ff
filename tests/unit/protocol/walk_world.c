/* SPDX-License-Identifier: Apache-2.0 */
/* The world of the walk: time, what happens to nodes, what the registry
 * decides. */
#include "walk_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "protocol/registry/command_code.h"

#define CALM_ROUNDS 400
#define CALM_QUIET 30 /* rounds in which nothing is decided: it is calm */

static ps_registry_args_t world_args(void)
{
    ps_registry_args_t args = fixture_args();

    args.nodes_max = WORLD_NODES;
    args.copies_max = 3;
    args.suspect_after_ms = WORLD_SUSPECT_MS;
    args.repair_after_ms = WORLD_REPAIR_MS;
    args.lease_ms = WORLD_LEASE_MS;
    args.catch_up_after_ms = WORLD_CATCH_UP_MS;
    args.moves_max = 2;
    return args;
}

static void need(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "walk: %s\n", what);
        abort();
    }
}

static ps_registry_t *new_registry(void)
{
    ps_registry_args_t args = world_args();
    ps_registry_t *registry = NULL;

    need(ps_registry_new(&args, &registry, NULL) == PSD_OK, "no registry");
    return registry;
}

/* Another member applies the same bytes, at another time, and has heard no
 * node: what it would store must be the same. */
static void follow(world_t *self, const ps_command_t *command)
{
    PSD_AUTO(ps_command_done) ps_command_t copy = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

    need(ps_command_encode(command, &bytes) &&
             ps_command_decode((ps_bytes_t){bytes.data, bytes.size}, &copy, NULL) == PSD_OK,
         "no bytes of a command");
    if (ps_registry_apply(self->follower, &copy, 5 * self->now_ms, NULL) != PSD_OK) {
        world_blame(self, "a command's bytes do not fit", 0, 0);
    } else if (ps_registry_hash(self->follower) != ps_registry_hash(self->registry)) {
        world_blame(self, "from bytes it does something else", 0, 0);
    }
}

/* Stored, applied; the command moves into the log. */
static void commit(world_t *self, ps_command_t *command)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    if (command->kind == 0) {
        return;
    }
    world_check_command(self, command);
    if (ps_registry_apply(self->registry, command, self->now_ms, err) != PSD_OK) {
        world_blame(self, "a planned command does not fit", 0, 0);
        (void)fprintf(stderr, "%s\n", psd_error_text(err));
        ps_command_done(command);
        return;
    }
    follow(self, command);
    need(ps_grow(&self->log, &self->max_log, self->n_log + 1, sizeof *self->log), "no memory");
    self->log[self->n_log++] = *command;
    *command = (ps_command_t){0};
}

/* The registry loses what is volatile, and may have missed time. */
static void reload(world_t *self)
{
    ps_registry_destroy(&self->registry);
    self->registry = new_registry();
    for (size_t i = 0; i < self->n_log; i++) {
        need(ps_registry_apply(self->registry, &self->log[i], self->now_ms, NULL) == PSD_OK,
             "a stored command does not fit");
    }
}

static uint64_t max_epoch_of(const world_node_t *node)
{
    uint64_t max = 0;

    for (int i = 0; i < WORLD_TABLES; i++) {
        for (int j = 0; j < WORLD_PARTITIONS; j++) {
            max = node->copies[i][j].epoch > max ? node->copies[i][j].epoch : max;
        }
    }
    return max;
}

static void join(world_t *self, world_node_t *node)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t is = fixture_node(node->name, node->incarnation, node->n_shards, shards);
    ps_command_t command = {0};

    is.kept = node->kept;
    is.weight = 1; /* all alike, so that what is even is plain to see */
    if (ps_registry_plan_node(self->registry, &is, self->now_ms, &command, NULL) == PSD_OK) {
        node->beat_ms = self->now_ms;
        node->joined = true;
        node->logged = true;
        commit(self, &command);
    }
}

static void beat(world_t *self, world_node_t *node)
{
    if (!node->alive || node->frozen) {
        return;
    }
    if (ps_registry_node_beat(self->registry, node->name, node->incarnation, max_epoch_of(node),
                              self->now_ms, NULL) == PSD_OK) {
        node->beat_ms = self->now_ms;
    } else {
        join(self, node);
    }
}

static void ask(world_t *self, const ps_fence_t *fence)
{
    for (uint32_t i = 0; i < fence->n; i++) {
        world_node_t *node = world_node(self, fence->to[i]);

        if (node != NULL && node->alive) {
            node->copies[fence->table - 1][fence->partition].asked = fence->epoch;
        }
    }
}

/* true: something was decided. */
static bool decide(world_t *self)
{
    for (int i = 0; i < 1000; i++) {
        PSD_AUTO(ps_decision_done) ps_decision_t decision = {0};

        need(ps_registry_decide(self->registry, self->now_ms, self->now_ms, &decision, NULL) ==
                 PSD_OK,
             "no decision");
        if (decision.kind == PS_DECIDE_NOTHING) {
            return i > 0;
        }
        for (size_t j = 0; j < decision.n_fences; j++) {
            ask(self, &decision.fences[j]);
        }
        commit(self, &decision.command);
    }
    world_blame(self, "decisions do not end", 0, 0);
    return true;
}

static void each_partition(world_t *self, bool calm)
{
    for (size_t i = 0; i < ps_registry_n_tables(self->registry); i++) {
        const ps_table_t *table = ps_registry_table_at(self->registry, i);

        for (uint32_t j = 0; j < table->spec.n_partitions; j++) {
            world_node_t *node = &self->nodes[ps_rng_below(&self->rng, WORLD_NODES)];

            for (int k = 0; k < WORLD_NODES && calm; k++) {
                world_node_tell(self, &self->nodes[k], table, j);
                world_node_answer(self, &self->nodes[k], table->id - 1, j, true);
                world_node_serve(self, &self->nodes[k], table->id - 1, j, true);
            }
            switch (calm ? 3 : ps_rng_below(&self->rng, 4)) {
            case 0:
                world_node_tell(self, node, table, j);
                break;
            case 1:
                world_node_serve(self, node, table->id - 1, j, false);
                break;
            case 2:
                world_node_answer(self, node, table->id - 1, j, false);
                break;
            default:
                break;
            }
        }
    }
}

static void set_state(world_t *self, const world_node_t *node, ps_node_state_t state)
{
    ps_command_t command = {0};

    if (ps_registry_plan_node_state(self->registry, node->name, state, true, self->now_ms, &command,
                                    NULL) == PSD_OK) {
        commit(self, &command);
    }
}

/* All nodes are killed at once, and start with what their logs have. */
static void kill_all(world_t *self)
{
    for (int i = 0; i < WORLD_NODES; i++) {
        if (self->nodes[i].incarnation != 0) {
            world_node_start(self, &self->nodes[i], true);
            self->nodes[i].alive = !world_chance(self, 4);
        }
    }
    if (world_chance(self, 2)) {
        reload(self);
    }
}

/* Something happens to a node. */
static void disturb(world_t *self)
{
    world_node_t *node = &self->nodes[ps_rng_below(&self->rng, WORLD_NODES)];

    switch (ps_rng_below(&self->rng, 11)) {
    case 10:
        kill_all(self);
        break;
    case 0:
    case 1:
        node->alive = false;
        break;
    case 2:
        node->frozen = node->alive;
        break;
    case 3:
    case 4:
        node->frozen = false;
        break;
    case 5:
    case 6:
        if (!node->alive || world_chance(self, 3)) {
            world_node_start(self, node, node->incarnation != 0 && world_chance(self, 2));
        }
        break;
    case 7:
        set_state(self, node, PS_NODE_DRAINING);
        break;
    case 8:
        set_state(self, node, world_chance(self, 3) ? PS_NODE_REMOVED : PS_NODE_UP);
        break;
    default:
        reload(self);
        break;
    }
}

void world_make(world_t *self, uint64_t seed)
{
    ps_id_t uuid = fixture_uuid();
    ps_command_t command = {0};

    *self = (world_t){.seed = seed, .rng = {seed}, .now_ms = 1000};
    self->registry = new_registry();
    self->follower = new_registry();
    need(ps_registry_plan_cluster(self->registry, "psd", &uuid, 1, &command, NULL) == PSD_OK,
         "no cluster");
    commit(self, &command);
    for (int i = 0; i < WORLD_NODES; i++) {
        (void)snprintf(self->nodes[i].name, sizeof self->nodes[i].name, "n%d", i);
        if (i < 3 || world_chance(self, 2)) {
            world_node_start(self, &self->nodes[i], false);
            beat(self, &self->nodes[i]);
        }
    }
    for (uint32_t i = 0; i < WORLD_TABLES; i++) {
        char name[8];
        ps_table_spec_t spec;

        (void)snprintf(name, sizeof name, "t%u", i);
        spec = fixture_spec(name);
        spec.n_partitions = WORLD_PARTITIONS;
        spec.replicas = 1 + i;
        need(ps_registry_plan_table(self->registry, &spec, 1, &command, NULL) == PSD_OK,
             "no table");
        if (world_chance(self, 2)) {
            command.table.spec.ack = PS_ACK_DISK; /* has a log */
        }
        commit(self, &command);
    }
}

void world_done(world_t *self)
{
    ps_registry_destroy(&self->registry);
    ps_registry_destroy(&self->follower);
    for (size_t i = 0; i < self->n_log; i++) {
        ps_command_done(&self->log[i]);
    }
    ps_free(self->log);
}

void world_walk(world_t *self, int n)
{
    for (int i = 0; i < n && self->wrong == NULL; i++) {
        self->now_ms += 10 + ps_rng_below(&self->rng, 100);
        for (int j = 0; j < WORLD_NODES; j++) {
            if (!world_chance(self, 4)) {
                beat(self, &self->nodes[j]);
            }
        }
        each_partition(self, false);
        if (world_chance(self, 6)) {
            disturb(self);
        }
        (void)decide(self);
    }
}

/* Nodes that drain, as many as others can take over from. */
static void choose_drains(world_t *self)
{
    for (int i = 0; i < WORLD_NODES; i++) {
        bool may = i >= 3 && world_chance(self, 2);

        set_state(self, &self->nodes[i], may ? PS_NODE_DRAINING : PS_NODE_UP);
    }
}

void world_calm(world_t *self)
{
    int quiet = 0;

    for (int i = 0; i < WORLD_NODES; i++) {
        self->nodes[i].frozen = false;
        if (!self->nodes[i].alive) {
            world_node_start(self, &self->nodes[i],
                             self->nodes[i].incarnation != 0 && world_chance(self, 2));
        }
        beat(self, &self->nodes[i]);
    }
    choose_drains(self);
    for (int i = 0; i < CALM_ROUNDS && quiet < CALM_QUIET; i++) {
        self->now_ms += 100;
        for (int j = 0; j < WORLD_NODES; j++) {
            beat(self, &self->nodes[j]);
        }
        each_partition(self, true);
        quiet = decide(self) ? 0 : quiet + 1;
        if (self->wrong != NULL) {
            return;
        }
    }
    if (quiet < CALM_QUIET) {
        world_blame(self, "it does not come to rest", 0, 0);
    }
    world_check_whole(self);
}
