/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of the walk: what they do, and what happens to them. */
#include "walk_world.h"

#include <stdio.h>
#include <stdlib.h>

#define SHARDS 2
#define CALM_ROUNDS 400
#define CALM_QUIET 30 /* rounds in which nothing is decided: it is calm */

static bool
chance(world_t *self, uint32_t one_in)
{
    return ps_rng_below(&self->rng, one_in) == 0;
}

static ps_registry_args_t
world_args(void)
{
    ps_registry_args_t args = fixture_args();

    args.nodes_max = WORLD_NODES;
    args.copies_max = 3;
    args.suspect_after_ms = WORLD_SUSPECT_MS;
    args.repair_after_ms = WORLD_REPAIR_MS;
    args.lease_ms = WORLD_LEASE_MS;
    args.moves_max = 2;
    return args;
}

static void
need(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "walk: %s\n", what);
        abort();
    }
}

static ps_registry_t *
new_registry(void)
{
    ps_registry_args_t args = world_args();
    ps_registry_t *registry = NULL;

    need(ps_registry_new(&args, &registry, NULL) == PSD_OK, "no registry");
    return registry;
}

/* Stored, applied; the command moves into the log. */
static void
commit(world_t *self, ps_command_t *command)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    if (command->kind == 0) {
        return;
    }
    world_check_command(self, command);
    if (ps_registry_apply(self->registry, command, self->now_ms, err) !=
        PSD_OK) {
        world_blame(self, "a planned command does not fit", 0, 0);
        (void)fprintf(stderr, "%s\n", psd_error_text(err));
        ps_command_done(command);
        return;
    }
    need(
        ps_grow(&self->log, &self->max_log, self->n_log + 1, sizeof *self->log),
        "no memory");
    self->log[self->n_log++] = *command;
    *command = (ps_command_t){0};
}

/* The registry loses what is volatile, and may have missed time. */
static void
reload(world_t *self)
{
    ps_registry_destroy(&self->registry);
    self->registry = new_registry();
    for (size_t i = 0; i < self->n_log; i++) {
        need(ps_registry_apply(self->registry, &self->log[i], self->now_ms,
                               NULL) == PSD_OK,
             "a stored command does not fit");
    }
}

static uint64_t
max_epoch_of(const world_node_t *node)
{
    uint64_t max = 0;

    for (int i = 0; i < WORLD_TABLES; i++) {
        for (int j = 0; j < WORLD_PARTITIONS; j++) {
            max =
                node->copies[i][j].epoch > max ? node->copies[i][j].epoch : max;
        }
    }
    return max;
}

static void
join(world_t *self, world_node_t *node)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t is =
        fixture_node(node->name, node->incarnation, node->n_shards, shards);
    ps_command_t command = {0};

    is.kept = node->kept;
    is.weight = 1; /* all alike, so that what is even is plain to see */
    if (ps_registry_plan_node(self->registry, &is, self->now_ms, &command,
                              NULL) == PSD_OK) {
        node->beat_ms = self->now_ms;
        node->joined = true;
        node->logged = true;
        commit(self, &command);
    }
}

static void
beat(world_t *self, world_node_t *node)
{
    if (!node->alive || node->frozen) {
        return;
    }
    if (ps_registry_node_beat(self->registry, node->name, node->incarnation,
                              max_epoch_of(node), self->now_ms,
                              NULL) == PSD_OK) {
        node->beat_ms = self->now_ms;
    } else {
        join(self, node);
    }
}

/* A copy as a log keeps it. */
static void
restart_copy(world_copy_t *copy, bool kept)
{
    world_copy_t old = *copy;

    *copy = (world_copy_t){0};
    if (kept) {
        copy->lsn = copy->flushed = old.flushed;
        copy->lsn_epoch = copy->flushed_epoch = old.flushed_epoch;
    }
}

static bool
has_log(const world_t *self, uint32_t table)
{
    return ps_registry_n_tables(self->registry) > table &&
           ps_registry_table_at(self->registry, table)->spec.ack == PS_ACK_DISK;
}

static void
start(world_t *self, world_node_t *node, bool kept)
{
    node->n_shards = kept ? node->n_shards : SHARDS + (chance(self, 8) ? 1 : 0);
    node->kept = kept && node->logged;
    node->logged = node->kept;
    for (uint32_t i = 0; i < WORLD_TABLES; i++) {
        for (int j = 0; j < WORLD_PARTITIONS; j++) {
            restart_copy(&node->copies[i][j], node->kept && has_log(self, i));
        }
    }
    node->start_ms = self->now_ms;
    node->incarnation = ++self->incarnations;
    node->alive = true;
    node->frozen = false;
    node->joined = false;
}

static void
flush(world_copy_t *copy)
{
    copy->flushed = copy->lsn;
    copy->flushed_epoch = copy->lsn_epoch;
}

/* A node hears what the registry has of one partition. */
static void
tell(world_t *self, world_node_t *node, const ps_table_t *table, uint32_t at)
{
    const ps_copies_t *copies = &table->copies[at];
    const ps_copy_t *copy = ps_copies_on(copies, node->incarnation);
    world_copy_t *mine = &node->copies[table->id - 1][at];
    const ps_copy_t *was = ps_copies_on(&mine->map, node->incarnation);

    if (!node->alive || node->frozen || !node->joined ||
        copies->epoch <= mine->map.epoch) {
        return;
    }
    if (copy == NULL) {
        *mine = (world_copy_t){.epoch = copies->epoch, .map = *copies};
        return;
    }
    if (copy->state == PS_COPY_CATCHING_UP &&
        (was == NULL || was->state != PS_COPY_CATCHING_UP)) {
        mine->lsn = mine->flushed = 0; /* it begins anew */
        mine->lsn_epoch = mine->flushed_epoch = 0;
    }
    mine->epoch = copies->epoch > mine->epoch ? copies->epoch : mine->epoch;
    mine->map = *copies;
    mine->waits = 0;
    if (copy->state != PS_COPY_PRIMARY) {
        mine->serves = false;
    } else if (!mine->serves) {
        mine->serves = true;
        mine->lsn++;
        mine->lsn_epoch = copies->epoch;
    }
    if (chance(self, 2)) {
        flush(mine);
    }
}

/* What a primary sends to copy i; false: it is not taken. */
static bool
send_to(world_t *self,
        const world_copy_t *from,
        uint32_t table,
        uint32_t at,
        uint32_t i)
{
    world_node_t *node = world_node(self, from->map.at[i].incarnation);
    world_copy_t *to = node == NULL ? NULL : &node->copies[table][at];

    if (node == NULL || !node->alive || node->frozen ||
        to->epoch > from->map.epoch ||
        ps_copies_on(&to->map, node->incarnation) == NULL) {
        return false;
    }
    if (to->flushed > from->lsn) {
        to->flushed = to->flushed_epoch = 0; /* it has others: begins anew */
    }
    to->lsn = from->lsn;
    to->lsn_epoch = from->lsn_epoch;
    to->epoch = from->map.epoch;
    if (chance(self, 2)) {
        flush(to);
    }
    return true;
}

/* What every whole copy has, and every one that it waits for, is acknowledged
 * when there are two or more. */
static void
acknowledge(world_t *self,
            const world_copy_t *from,
            uint32_t table,
            uint32_t at)
{
    uint64_t least = from->lsn;
    uint64_t flushed = from->flushed;
    uint32_t n = 1;

    for (uint32_t i = 1; i < from->map.n; i++) {
        const world_node_t *node =
            world_node(self, from->map.at[i].incarnation);

        if (ps_copy_is_heir(&from->map.at[i]) || (from->waits >> i & 1) != 0) {
            uint64_t has = node == NULL ? 0 : node->copies[table][at].lsn;
            uint64_t safe = node == NULL ? 0 : node->copies[table][at].flushed;

            least = has < least ? has : least;
            flushed = safe < flushed ? safe : flushed;
            n += ps_copy_is_heir(&from->map.at[i]) ? 1 : 0;
        }
    }
    if (from->map.epoch < self->lost[table][at]) {
        return; /* it was given up by force, and what it says is lost */
    }
    if (n >= 2 && least > self->acked[table][at]) {
        self->acked[table][at] = least;
    }
    if (has_log(self, table) && flushed > self->acked_disk[table][at]) {
        self->acked_disk[table][at] = flushed;
    }
}

static void
report(world_t *self,
       const world_node_t *node,
       uint32_t table,
       uint32_t at,
       uint32_t i,
       ps_report_kind_t kind)
{
    const world_copy_t *mine = &node->copies[table][at];
    ps_report_t said = {.kind = kind,
                        .table = table + 1,
                        .partition = at,
                        .epoch = mine->map.epoch,
                        .incarnation = mine->map.at[i].incarnation};

    if (ps_registry_report(self->registry, node->incarnation, &said) &&
        kind != PS_REPORT_CAUGHT_UP) {
        self->out[table][at] = true;
    }
}

/* A primary pushes, sends, and says what it sees of its copies. */
static void
serve(world_t *self, world_node_t *node, uint32_t table, uint32_t at, bool calm)
{
    world_copy_t *mine = &node->copies[table][at];

    if (!node->alive || node->frozen || !mine->serves) {
        return;
    }
    mine->lsn += ps_rng_below(&self->rng, 3);
    if (calm || chance(self, 2)) {
        flush(mine);
    }
    for (uint32_t i = 1; i < mine->map.n; i++) {
        bool late = !calm && chance(self, 3);
        bool taken = !late && send_to(self, mine, table, at, i);

        if (taken && mine->map.at[i].state == PS_COPY_CATCHING_UP) {
            world_node_t *to = world_node(self, mine->map.at[i].incarnation);

            flush(&to->copies[table][at]);
            mine->waits = (uint8_t)(mine->waits | 1U << i);
            report(self, node, table, at, i, PS_REPORT_CAUGHT_UP);
        } else if (!taken && !calm && chance(self, 20)) {
            report(self, node, table, at, i,
                   chance(self, 2) ? PS_REPORT_SLOW : PS_REPORT_DIVERGED);
        }
    }
    acknowledge(self, mine, table, at);
}

/* An old primary ends as one: it sends what it has while it is taken. */
static void
answer(
    world_t *self, world_node_t *node, uint32_t table, uint32_t at, bool calm)
{
    world_copy_t *mine = &node->copies[table][at];

    if (!node->alive || node->frozen || mine->asked == 0) {
        return;
    }
    if (mine->serves) {
        for (uint32_t i = 1; i < mine->map.n; i++) {
            if (calm || !chance(self, 4)) {
                (void)send_to(self, mine, table, at, i);
            }
        }
        acknowledge(self, mine, table, at);
    }
    mine->serves = false;
    mine->epoch = mine->asked > mine->epoch ? mine->asked : mine->epoch;
    if (calm || !chance(self, 4)) {
        ps_report_t said = {.kind = PS_REPORT_POSITION,
                            .table = table + 1,
                            .partition = at,
                            .epoch = mine->asked,
                            .lsn = mine->lsn,
                            .lsn_epoch = mine->lsn_epoch};

        (void)ps_registry_fenced(self->registry, node->incarnation, &said);
    }
    mine->asked = 0;
}

static void
ask(world_t *self, const ps_fence_t *fence)
{
    for (uint32_t i = 0; i < fence->n; i++) {
        world_node_t *node = world_node(self, fence->to[i]);

        if (node != NULL && node->alive) {
            node->copies[fence->table - 1][fence->partition].asked =
                fence->epoch;
        }
    }
}

/* true: something was decided. */
static bool
decide(world_t *self)
{
    for (int i = 0; i < 1000; i++) {
        PSD_AUTO(ps_decision_done) ps_decision_t decision = {0};

        need(ps_registry_decide(self->registry, self->now_ms, self->now_ms,
                                &decision, NULL) == PSD_OK,
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

static void
each_partition(world_t *self, bool calm)
{
    for (size_t i = 0; i < ps_registry_n_tables(self->registry); i++) {
        const ps_table_t *table = ps_registry_table_at(self->registry, i);

        for (uint32_t j = 0; j < table->spec.n_partitions; j++) {
            world_node_t *node =
                &self->nodes[ps_rng_below(&self->rng, WORLD_NODES)];

            for (int k = 0; k < WORLD_NODES && calm; k++) {
                tell(self, &self->nodes[k], table, j);
                answer(self, &self->nodes[k], table->id - 1, j, true);
                serve(self, &self->nodes[k], table->id - 1, j, true);
            }
            switch (calm ? 3 : ps_rng_below(&self->rng, 4)) {
            case 0:
                tell(self, node, table, j);
                break;
            case 1:
                serve(self, node, table->id - 1, j, false);
                break;
            case 2:
                answer(self, node, table->id - 1, j, false);
                break;
            default:
                break;
            }
        }
    }
}

static void
set_state(world_t *self, const world_node_t *node, ps_node_state_t state)
{
    ps_command_t command = {0};

    if (ps_registry_plan_node_state(self->registry, node->name, state, true,
                                    self->now_ms, &command, NULL) == PSD_OK) {
        commit(self, &command);
    }
}

/* All nodes are killed at once, and start with what their logs have. */
static void
kill_all(world_t *self)
{
    for (int i = 0; i < WORLD_NODES; i++) {
        if (self->nodes[i].incarnation != 0) {
            start(self, &self->nodes[i], true);
            self->nodes[i].alive = !chance(self, 4);
        }
    }
    if (chance(self, 2)) {
        reload(self);
    }
}

/* Something happens to a node. */
static void
disturb(world_t *self)
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
        if (!node->alive || chance(self, 3)) {
            start(self, node, node->incarnation != 0 && chance(self, 2));
        }
        break;
    case 7:
        set_state(self, node, PS_NODE_DRAINING);
        break;
    case 8:
        set_state(self, node, chance(self, 3) ? PS_NODE_REMOVED : PS_NODE_UP);
        break;
    default:
        reload(self);
        break;
    }
}

void
world_make(world_t *self, uint64_t seed)
{
    ps_id_t uuid = fixture_uuid();
    ps_command_t command = {0};

    *self = (world_t){.seed = seed, .rng = {seed}, .now_ms = 1000};
    self->registry = new_registry();
    need(ps_registry_plan_cluster(self->registry, "psd", &uuid, 1, &command,
                                  NULL) == PSD_OK,
         "no cluster");
    commit(self, &command);
    for (int i = 0; i < WORLD_NODES; i++) {
        (void)snprintf(self->nodes[i].name, sizeof self->nodes[i].name, "n%d",
                       i);
        if (i < 3 || chance(self, 2)) {
            start(self, &self->nodes[i], false);
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
        need(ps_registry_plan_table(self->registry, &spec, 1, &command, NULL) ==
                 PSD_OK,
             "no table");
        if (chance(self, 2)) {
            command.table.spec.ack = PS_ACK_DISK; /* has a log */
        }
        commit(self, &command);
    }
}

void
world_done(world_t *self)
{
    ps_registry_destroy(&self->registry);
    for (size_t i = 0; i < self->n_log; i++) {
        ps_command_done(&self->log[i]);
    }
    ps_free(self->log);
}

void
world_walk(world_t *self, int n)
{
    for (int i = 0; i < n && self->wrong == NULL; i++) {
        self->now_ms += 10 + ps_rng_below(&self->rng, 100);
        for (int j = 0; j < WORLD_NODES; j++) {
            if (!chance(self, 4)) {
                beat(self, &self->nodes[j]);
            }
        }
        each_partition(self, false);
        if (chance(self, 6)) {
            disturb(self);
        }
        (void)decide(self);
    }
}

/* Nodes that drain, as many as others can take over from. */
static void
choose_drains(world_t *self)
{
    for (int i = 0; i < WORLD_NODES; i++) {
        bool may = i >= 3 && chance(self, 2);

        set_state(self, &self->nodes[i], may ? PS_NODE_DRAINING : PS_NODE_UP);
    }
}

void
world_calm(world_t *self)
{
    int quiet = 0;

    for (int i = 0; i < WORLD_NODES; i++) {
        self->nodes[i].frozen = false;
        if (!self->nodes[i].alive) {
            start(self, &self->nodes[i],
                  self->nodes[i].incarnation != 0 && chance(self, 2));
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
