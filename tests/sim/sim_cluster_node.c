/* SPDX-License-Identifier: Apache-2.0 */
/* A node: its shards, their effects, and its letters to and from the
 * registry. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/shard/shard_state.h"
#include "sim_cluster.h"

#define BEAT_MS 100
#define LEASE_MS 300
#define SLOW_MS 600
#define OFFSET_MS 100000 /* most between two nodes' clocks */
#define START_AGAIN_MS 50

static uint64_t clock_of(const cluster_t *self, const cluster_node_t *node)
{
    int64_t now = (int64_t)self->now_ms;

    return (uint64_t)(now + node->offset_ms + now * node->drift / 1000);
}

static void plan_tick(cluster_t *self, uint32_t number, uint32_t at)
{
    const cluster_node_t *node = &self->nodes[number];
    cluster_shard_t *shard = &self->nodes[number].shards[at];
    uint64_t wanted = ps_shard_deadline(shard->machine);
    uint64_t here = clock_of(self, node);
    uint64_t at_ms = self->now_ms;

    if (wanted == UINT64_MAX) {
        return;
    }
    if (wanted > here) {
        at_ms += (uint64_t)((int64_t)(wanted - here) * 1000 / (1000 + node->drift)) + 1;
    }
    if (at_ms < shard->wake_ms) {
        shard->wake_ms = at_ms;
        cluster_at(self, at_ms, CLUSTER_SHARD_TICK, number)->b = at;
    }
}

/* ---- effects of its shards ---- */

static void open_link(cluster_t *self, uint32_t number, uint32_t at, const ps_effect_t *effect)
{
    const cluster_node_t *node = &self->nodes[number];
    cluster_shard_t *shard = &self->nodes[number].shards[at];
    size_t link = (size_t)(effect->to - PS_LINK_CONN);

    cluster_need(link == shard->n_links &&
                     ps_grow(&shard->conn_of, &shard->capacity, link + 1, sizeof *shard->conn_of),
                 "links in order");
    shard->n_links++;
    shard->conn_of[link] = cluster_connect(self,
                                           (cluster_conn_t){.client = CLUSTER_NOBODY,
                                                            .from_node = number,
                                                            .from_shard = at,
                                                            .from_incarnation = node->incarnation,
                                                            .link = effect->to},
                                           effect->copy.tcp);
}

static void send_effect(cluster_t *self, uint32_t number, uint32_t at, const ps_effect_t *effect)
{
    const cluster_shard_t *shard = &self->nodes[number].shards[at];

    if (effect->to >= PS_LINK_CONN) {
        cluster_send(self, shard->conn_of[effect->to - PS_LINK_CONN], false, &effect->message,
                     effect->payload);
        return;
    }
    if (self->conns[effect->to].client != CLUSTER_NOBODY) {
        cluster_check_answer(self, number, &effect->message);
    }
    cluster_send(self, (size_t)effect->to, true, &effect->message, effect->payload);
}

static void report(cluster_t *self, uint32_t number, const ps_report_t *report)
{
    static const char *const kinds[] = {"",         "position",  "fenced",   "slow",
                                        "diverged", "caught up", "not whole"};

    cluster_trace(
        self, "  node %u reports partition %u, epoch %" PRIu64 ": node %d %s, lsn %" PRIu64, number,
        report->partition, report->epoch, (int)cluster_node_of(self, report->incarnation),
        kinds[report->kind], report->lsn);
    cluster_post(self, &(cluster_letter_t){.kind = CLUSTER_REPORT,
                                           .from = number,
                                           .to = CLUSTER_REGISTRY,
                                           .incarnation = self->nodes[number].incarnation,
                                           .report = *report});
}

/* A copy that is rebuilt continues from any record. */
static void noted(cluster_t *self, uint32_t number, uint32_t at, const ps_note_t *note)
{
    char text[256];

    if (note->kind == PS_NOTE_COPY_BEGUN) {
        self->nodes[number].shards[at].copies[note->partition].known = false;
    }
    if (self->trace != NULL) {
        ps_note_print(note, text, sizeof text, NULL);
        cluster_trace(self, "  node %u: %s", number, text);
    }
}

static void perform(cluster_t *self, uint32_t number, uint32_t at, const ps_outbox_t *outbox)
{
    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];

        if (effect->kind == PS_EFFECT_SEND) {
            send_effect(self, number, at, effect);
        } else if (effect->kind == PS_EFFECT_OPEN) {
            open_link(self, number, at, effect);
        } else if (effect->kind == PS_EFFECT_RECORD) {
            cluster_check_record(self, number, at, &effect->record);
            cluster_disk_give(self, number, at, effect);
        } else if (effect->kind == PS_EFFECT_PIECE) {
            cluster_disk_give(self, number, at, effect);
        } else if (effect->kind == PS_EFFECT_REPORT) {
            report(self, number, &effect->report);
        } else if (effect->kind == PS_EFFECT_NOTE) {
            noted(self, number, at, &effect->note);
        }
    }
}

void cluster_node_step(cluster_t *self, uint32_t number, uint32_t at, ps_event_t *event)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    cluster_node_t *node = &self->nodes[number];

    if (!node->alive || node->shards[at].machine == NULL) {
        return;
    }
    event->now_ms = clock_of(self, node);
    if (ps_shard_step(node->shards[at].machine, event, &outbox, err) != PSD_OK) {
        cluster_fail(self, "node %u refused an event: %s", number, psd_error_text(err));
    }
    perform(self, number, at, &outbox);
    plan_tick(self, number, at);
}

void cluster_node_work(cluster_t *self, uint32_t number, uint32_t at, cluster_work_t *work,
                       const void *order)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    const cluster_node_t *node = &self->nodes[number];
    const ps_image_step_t step = {.now_ms = clock_of(self, node), .outbox = &outbox};

    work(self, node->shards[at].machine, &step, order);
    perform(self, number, at, &outbox);
    plan_tick(self, number, at);
}

void cluster_node_tick(cluster_t *self, uint32_t number, uint32_t at)
{
    self->nodes[number].shards[at].wake_ms = UINT64_MAX;
    cluster_node_step(self, number, at, &(ps_event_t){.kind = PS_EVENT_TICK});
}

/* ---- the registry ---- */

void cluster_node_beat(cluster_t *self, uint32_t number)
{
    const cluster_node_t *node = &self->nodes[number];

    if (!node->alive) {
        return;
    }
    cluster_post(self, &(cluster_letter_t){.kind = CLUSTER_BEAT,
                                           .from = number,
                                           .to = CLUSTER_REGISTRY,
                                           .incarnation = node->incarnation,
                                           .number = node->max_epoch});
    cluster_at(self, self->now_ms + BEAT_MS, CLUSTER_BEAT_TIME, number)->b = node->incarnation;
}

/* Records of a copy that the map does not show as whole may begin anywhere. */
static void forget_records(cluster_shard_t *shard, uint32_t at, uint64_t incarnation,
                           const cluster_letter_t *letter, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const ps_copy_t *copy = ps_copies_on(&letter->copies[i], incarnation);

        if (copy == NULL || copy->shard != at || !ps_copy_is_whole(copy)) {
            shard->copies[i].known = false;
        }
    }
}

static void tell_clocks(cluster_t *self, uint32_t number, uint64_t clocks[])
{
    for (uint32_t at = 0; at < self->plan.n_shards[number]; at++) {
        PSD_AUTO(ps_free_at) ps_clock_info_t *infos = NULL;
        size_t n = 0;

        cluster_need(ps_shard_clocks(self->nodes[number].shards[at].machine, self->job, &infos, &n,
                                     NULL) == PSD_OK,
                     "memory for clocks");
        for (size_t i = 0; i < n; i++) {
            uint64_t *clock = &clocks[infos[i].worker];

            *clock = infos[i].max > *clock ? infos[i].max : *clock;
        }
    }
}

/* false: the registry must send it again. */
static bool told_table(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_node_t *node = &self->nodes[letter->to];
    uint32_t n = self->plan.n_partitions;

    for (uint32_t i = 0; i < n; i++) {
        if (letter->copies[i].epoch > node->max_epoch) {
            node->max_epoch = letter->copies[i].epoch;
        }
    }
    cluster_trace(self, "node %u is told epoch %" PRIu64, letter->to, node->max_epoch);
    for (uint32_t at = 0; at < self->plan.n_shards[letter->to]; at++) {
        if (!cluster_disk_table(self, letter->to, at, &letter->spec)) {
            return false;
        }
        forget_records(&node->shards[at], at, node->incarnation, letter, n);
        cluster_node_step(self, letter->to, at,
                          &(ps_event_t){.kind = PS_EVENT_TABLE,
                                        .table = self->table,
                                        .spec = &letter->spec,
                                        .routes = letter->routes,
                                        .n_routes = n,
                                        .copies = letter->copies});
    }
    return true;
}

static void told_job(cluster_t *self, const cluster_letter_t *letter)
{
    for (uint32_t at = 0; at < self->plan.n_shards[letter->to]; at++) {
        cluster_node_step(self, letter->to, at,
                          &(ps_event_t){.kind = PS_EVENT_JOB, .job = &letter->job});
    }
}

static void told(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_letter_t known = {.kind = CLUSTER_KNOWN,
                              .from = letter->to,
                              .to = CLUSTER_REGISTRY,
                              .incarnation = letter->incarnation,
                              .joins = letter->joins,
                              .number = letter->number};

    if (letter->tell == PS_TELL_TABLE && !told_table(self, letter)) {
        return;
    }
    if (letter->tell == PS_TELL_JOB) {
        told_job(self, letter);
    } else if (letter->tell == PS_TELL_ASK) {
        tell_clocks(self, letter->to, known.clocks);
    }
    cluster_post(self, &known);
}

static void fenced(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_node_t *node = &self->nodes[letter->to];

    if (letter->report.epoch > node->max_epoch) {
        node->max_epoch = letter->report.epoch;
    }
    for (uint32_t at = 0; at < self->plan.n_shards[letter->to]; at++) {
        cluster_node_step(self, letter->to, at,
                          &(ps_event_t){.kind = PS_EVENT_FENCE,
                                        .table = letter->report.table,
                                        .partition = letter->report.partition,
                                        .epoch = letter->report.epoch});
    }
}

void cluster_node_letter(cluster_t *self, const cluster_letter_t *letter)
{
    const cluster_node_t *node = &self->nodes[letter->to];

    if (!node->alive || letter->incarnation != node->incarnation) {
        return; /* its connection went with its earlier life */
    }
    if (letter->kind == CLUSTER_TELL) {
        if (cluster_disk_joined(self, letter->to)) {
            told(self, letter);
        }
    } else if (letter->kind == CLUSTER_FENCE) {
        fenced(self, letter);
    } else if (letter->kind >= CLUSTER_ARM) {
        cluster_images_letter(self, letter);
    } else if (letter->kind == CLUSTER_ANEW) {
        cluster_post(self, &(cluster_letter_t){.kind = CLUSTER_JOIN,
                                               .from = letter->to,
                                               .to = CLUSTER_REGISTRY,
                                               .incarnation = node->incarnation,
                                               .number = node->kept ? 1 : 0});
    }
}

/* ---- lives ---- */

static bool start_shard(cluster_t *self, uint32_t number, uint32_t at)
{
    cluster_shard_t *shard = &self->nodes[number].shards[at];
    const ps_shard_args_t args = {.cluster = {.bytes = {1}},
                                  .incarnation = self->nodes[number].incarnation,
                                  .shard = at,
                                  .credit_requests = 8,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = self->plan.forgets ? 2 : 16,
                                  .lease_ms = LEASE_MS,
                                  .slow_after_ms = SLOW_MS,
                                  .tail_bytes = self->plan.tail_bytes,
                                  .flight_bytes = self->plan.flight_bytes,
                                  .disk = self->plan.disk,
                                  .snapshot_after_bytes = 1000 + cluster_below(self, 4000),
                                  .log_queue_bytes = self->plan.log_queue_bytes,
                                  .trace = self->trace != NULL,
                                  .log = true};

    *shard = (cluster_shard_t){.wake_ms = UINT64_MAX};
    cluster_need(ps_shard_new(&args, &shard->machine, NULL) == PSD_OK, "memory for a shard");
    return cluster_disk_open(self, number, at);
}

static void stop(cluster_node_t *node)
{
    for (uint32_t i = 0; i < CLUSTER_SHARDS_MAX; i++) {
        cluster_disk_close(&node->shards[i]);
        cluster_images_done(&node->shards[i].images);
        ps_shard_destroy(&node->shards[i].machine);
        ps_free(node->shards[i].conn_of);
        node->shards[i].conn_of = NULL;
    }
    node->alive = false;
}

/* The clock goes on while a node is down: it is its host's. A disk that does
 * not work keeps it from starting. */
void cluster_node_start(cluster_t *self, uint32_t number)
{
    cluster_node_t *node = &self->nodes[number];
    bool works = true;

    if (node->alive) {
        return;
    }
    if (node->incarnation == 0) {
        node->offset_ms = (int64_t)cluster_below(self, OFFSET_MS);
        node->drift = (int64_t)cluster_below(self, 11) - 5;
    }
    node->incarnation = 70 + 10 * ++self->n_incarnations + number;
    node->alive = true;
    node->starts = false;
    node->kept = self->plan.disk;
    node->max_epoch = 0;
    cluster_trace(self, "node %u starts as %" PRIu64, number, node->incarnation);
    for (uint32_t i = 0; works && i < self->plan.n_shards[number]; i++) {
        works = start_shard(self, number, i);
    }
    if (!works) {
        stop(node);
        node->starts = true;
        (void)cluster_at(self, self->now_ms + START_AGAIN_MS, CLUSTER_NODE_START, number);
        return;
    }
    self->n_recoveries += node->kept ? 1 : 0;
    cluster_at(self, self->now_ms, CLUSTER_BEAT_TIME, number)->b = node->incarnation;
}

void cluster_node_crash(cluster_t *self, uint32_t number, cluster_loss_t loss)
{
    static const char *const losses[] = {"", ", and loses what is not flushed",
                                         ", and loses its disk"};

    cluster_trace(self, "node %u crashes%s", number, self->plan.disk ? losses[loss] : "");
    cluster_disk_crash(self, number, loss);
    cluster_disconnect(self, number);
    if (cluster_below(self, 2) == 0) {
        cluster_lose_letters(self, number);
    }
    stop(&self->nodes[number]);
}

void cluster_nodes_done(cluster_t *self)
{
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        stop(&self->nodes[i]);
        sim_disk_destroy(&self->nodes[i].disk);
    }
}

uint32_t cluster_node_by(uint64_t incarnation)
{
    return (uint32_t)(incarnation % 10);
}

uint32_t cluster_node_of(const cluster_t *self, uint64_t incarnation)
{
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        if (self->nodes[i].alive && self->nodes[i].incarnation == incarnation) {
            return i;
        }
    }
    return CLUSTER_NOBODY;
}

ps_partition_t *cluster_partition(const cluster_t *self, uint64_t incarnation, uint32_t shard,
                                  uint32_t partition)
{
    uint32_t number = cluster_node_of(self, incarnation);
    const ps_shard_t *machine =
        number == CLUSTER_NOBODY ? NULL : self->nodes[number].shards[shard].machine;
    const ps_local_table_t *table =
        machine == NULL ? NULL : ps_map_get(&machine->step.tables, self->table);

    return table == NULL ? NULL : table->partitions[partition];
}
