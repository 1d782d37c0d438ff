/* SPDX-License-Identifier: Apache-2.0 */
/* What the nodes of the walk do with their copies. */
#include "walk_world.h"

#define SHARDS 2

/* A copy as a log keeps it. */
static void restart_copy(world_copy_t *copy, bool kept)
{
    world_copy_t old = *copy;

    *copy = (world_copy_t){0};
    if (kept) {
        copy->lsn = copy->flushed = old.flushed;
        copy->lsn_epoch = copy->flushed_epoch = old.flushed_epoch;
    }
}

static bool has_log(const world_t *self, uint32_t table)
{
    return ps_registry_n_tables(self->registry) > table &&
           ps_registry_table_at(self->registry, table)->spec.ack == PS_ACK_DISK;
}

void world_node_start(world_t *self, world_node_t *node, bool kept)
{
    node->n_shards = kept ? node->n_shards : SHARDS + (world_chance(self, 8) ? 1 : 0);
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

static void flush(world_copy_t *copy)
{
    copy->flushed = copy->lsn;
    copy->flushed_epoch = copy->lsn_epoch;
}

/* A node hears what the registry has of one partition. */
void world_node_tell(world_t *self, world_node_t *node, const ps_table_t *table, uint32_t at)
{
    const ps_copies_t *copies = &table->copies[at];
    const ps_copy_t *copy = ps_copies_on(copies, node->incarnation);
    world_copy_t *mine = &node->copies[table->id - 1][at];
    const ps_copy_t *was = ps_copies_on(&mine->map, node->incarnation);

    if (!node->alive || node->frozen || !node->joined || copies->epoch <= mine->map.epoch) {
        return;
    }
    if (copy == NULL) {
        *mine = (world_copy_t){.epoch = copies->epoch, .map = *copies};
        return;
    }
    if (copy->state == PS_COPY_CATCHING_UP &&
        (copy->dropped ? world_chance(self, 4)
                       : was == NULL || was->state != PS_COPY_CATCHING_UP)) {
        mine->lsn = mine->flushed = 0; /* it begins anew */
        mine->lsn_epoch = mine->flushed_epoch = 0;
        mine->partial = was != NULL;
    }
    mine->epoch = copies->epoch > mine->epoch ? copies->epoch : mine->epoch;
    mine->map = *copies;
    mine->waits = 0;
    if (copy->state != PS_COPY_PRIMARY) {
        mine->serves = false;
    } else if (!mine->serves) {
        mine->serves = true;
        mine->partial = false; /* one that was begins empty */
        mine->lsn++;
        mine->lsn_epoch = copies->epoch;
    }
    if (world_chance(self, 2)) {
        flush(mine);
    }
}

/* What a primary sends to copy i; false: it is not taken. */
static bool send_to(world_t *self, const world_copy_t *from, uint32_t table, uint32_t at,
                    uint32_t i)
{
    world_node_t *node = world_node(self, from->map.at[i].incarnation);
    world_copy_t *to = node == NULL ? NULL : &node->copies[table][at];

    if (node == NULL || !node->alive || node->frozen || to->epoch > from->map.epoch ||
        ps_copies_on(&to->map, node->incarnation) == NULL) {
        return false;
    }
    if (to->flushed > from->lsn) {
        to->flushed = to->flushed_epoch = 0; /* it has others: begins anew */
    }
    to->lsn = from->lsn;
    to->partial = false;
    to->lsn_epoch = from->lsn_epoch;
    to->epoch = from->map.epoch;
    if (world_chance(self, 2)) {
        flush(to);
    }
    return true;
}

/* What every whole copy has, and every one that it waits for, is acknowledged
 * when there are two or more. */
static void acknowledge(world_t *self, const world_copy_t *from, uint32_t table, uint32_t at)
{
    uint64_t least = from->lsn;
    uint64_t flushed = from->flushed;
    uint32_t n = 1;

    for (uint32_t i = 1; i < from->map.n; i++) {
        const world_node_t *node = world_node(self, from->map.at[i].incarnation);

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

static void report(world_t *self, const world_node_t *node, uint32_t table, uint32_t at, uint32_t i,
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
void world_node_serve(world_t *self, world_node_t *node, uint32_t table, uint32_t at, bool calm)
{
    world_copy_t *mine = &node->copies[table][at];

    if (!node->alive || node->frozen || !mine->serves) {
        return;
    }
    mine->lsn += ps_rng_below(&self->rng, 3);
    if (calm || world_chance(self, 2)) {
        flush(mine);
    }
    for (uint32_t i = 1; i < mine->map.n; i++) {
        bool late = !calm && world_chance(self, 3);
        bool taken = !late && send_to(self, mine, table, at, i);

        if (taken && mine->map.at[i].state == PS_COPY_CATCHING_UP) {
            world_node_t *to = world_node(self, mine->map.at[i].incarnation);

            flush(&to->copies[table][at]);
            mine->waits = (uint8_t)(mine->waits | 1U << i);
            report(self, node, table, at, i, PS_REPORT_CAUGHT_UP);
        } else if (!taken && !calm && world_chance(self, 20)) {
            report(self, node, table, at, i,
                   world_chance(self, 2) ? PS_REPORT_SLOW : PS_REPORT_DIVERGED);
        }
    }
    acknowledge(self, mine, table, at);
}

/* An old primary ends as one: it sends what it has while it is taken. */
void world_node_answer(world_t *self, world_node_t *node, uint32_t table, uint32_t at, bool calm)
{
    world_copy_t *mine = &node->copies[table][at];

    if (!node->alive || node->frozen || mine->asked == 0) {
        return;
    }
    if (mine->serves) {
        for (uint32_t i = 1; i < mine->map.n; i++) {
            if (calm || !world_chance(self, 4)) {
                (void)send_to(self, mine, table, at, i);
            }
        }
        acknowledge(self, mine, table, at);
    }
    mine->serves = false;
    mine->epoch = mine->asked > mine->epoch ? mine->asked : mine->epoch;
    if (calm || !world_chance(self, 4)) {
        ps_report_t said = {.kind = mine->partial ? PS_REPORT_PARTIAL : PS_REPORT_POSITION,
                            .table = table + 1,
                            .partition = at,
                            .epoch = mine->asked,
                            .lsn = mine->lsn,
                            .lsn_epoch = mine->lsn_epoch};

        (void)ps_registry_fenced(self->registry, node->incarnation, &said);
    }
    mine->asked = 0;
}
