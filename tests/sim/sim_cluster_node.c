/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of one shard each, and a registry that fences and promotes. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "sim_cluster.h"

#define BEAT_MS 100
#define SUSPECT_MS 400
#define REGISTRY_MS 50
#define TELL_MS 100
#define CLIENT_CONN 100 /* conns of clients at a node begin here */
#define PEER_CONN_BITS                                     \
    20 /* a conn of a shard: its node + 1, then its number \
        */

static uint64_t
clock_of(const cluster_t *self, const cluster_node_t *node)
{
    int64_t now = (int64_t)self->now_ms;

    return (uint64_t)(now + node->offset_ms + now * node->drift / 1000);
}

static void
plan_tick(cluster_t *self, uint32_t number)
{
    cluster_node_t *node = &self->nodes[number];
    uint64_t wanted = ps_shard_deadline(node->shard);
    uint64_t here = clock_of(self, node);
    uint64_t at_ms = self->now_ms;

    if (wanted == UINT64_MAX) {
        return;
    }
    if (wanted > here) {
        at_ms +=
            (uint64_t)((int64_t)(wanted - here) * 1000 / (1000 + node->drift)) +
            1;
    }
    if (at_ms < node->wake_ms) {
        node->wake_ms = at_ms;
        (void)cluster_at(self, at_ms, CLUSTER_TICK, number);
    }
}

/* ---- what a shard wants done ---- */

/* A3: nobody answers under an epoch that another one has gone beyond. */
static void
check_answer(cluster_t *self, uint32_t number, const ps_message_t *message)
{
    uint64_t epoch = message->kind == PS_KIND_ACK ? message->ack.epoch
                                                  : message->values.epoch;

    if (message->kind != PS_KIND_ACK && message->kind != PS_KIND_VALUES) {
        return;
    }
    self->n_answers++;
    if (epoch < self->answer_epoch && number != self->answer_node) {
        cluster_fail(self,
                     "A3: node %u answers under epoch %" PRIu64
                     ", node %u did under %" PRIu64,
                     number, epoch, self->answer_node, self->answer_epoch);
    }
    if (epoch >= self->answer_epoch) {
        self->answer_epoch = epoch;
        self->answer_node = number;
    }
}

static uint32_t
node_of(const cluster_t *self, uint64_t incarnation)
{
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        if (self->nodes[i].incarnation == incarnation) {
            return i;
        }
    }
    cluster_stop("a node that exists");
}

static void
send_effect(cluster_t *self, uint32_t number, const ps_effect_t *effect)
{
    uint64_t to = effect->to;

    if (to >= PS_LINK_CONN) {
        uint64_t k = to - PS_LINK_CONN;
        uint32_t peer = self->nodes[number].peer_of[k % CLUSTER_LINKS_MAX];

        cluster_send(self, number, peer, false,
                     ((uint64_t)(number + 1) << PEER_CONN_BITS) + k,
                     &effect->message, effect->payload);
    } else if (to >> PEER_CONN_BITS != 0) {
        uint64_t k = to & ((UINT64_C(1) << PEER_CONN_BITS) - 1);

        cluster_send(self, number, (uint32_t)(to >> PEER_CONN_BITS) - 1, false,
                     PS_LINK_CONN + k, &effect->message, effect->payload);
    } else {
        check_answer(self, number, &effect->message);
        cluster_send(self, number, (uint32_t)(to - CLIENT_CONN), true, 0,
                     &effect->message, effect->payload);
    }
}

/* The record's checksum as others would read it; W3 on the way. */
static void
take_record(cluster_t *self, uint32_t number, const ps_effect_t *effect)
{
    cluster_node_t *node = &self->nodes[number];
    const ps_record_t *record = &effect->record;
    size_t size = ps_record_size(record, effect->payload);
    uint8_t *bytes = ps_alloc_raw(size, 1);

    if (bytes == NULL || record->lsn >= CLUSTER_RECORDS_MAX) {
        cluster_stop("room for a record");
    }
    if (record->lsn != node->lsn + 1) {
        cluster_fail(self, "node %u has record %" PRIu64 " behind %" PRIu64,
                     number, record->lsn, node->lsn);
    }
    ps_record_write(record, effect->payload, bytes);
    node->lsn = record->lsn;
    node->sums[record->lsn] = ps_load_u64(bytes + 8);
    ps_free(bytes);
    if (record->seq == 0 || record->session == 0) {
        return;
    }
    if (record->seq != node->seqs[record->session - 1] + 1) {
        cluster_fail(self,
                     "W3: node %u takes seq %" PRIu64 " of client %" PRIu64
                     " behind %" PRIu64,
                     number, record->seq, record->session - 1,
                     node->seqs[record->session - 1]);
    }
    node->seqs[record->session - 1] = record->seq;
}

static void
report(cluster_t *self, uint32_t number, const ps_report_t *report)
{
    uint64_t at_ms = cluster_way(self, number, CLUSTER_REGISTRY);
    cluster_event_t *event = NULL;

    cluster_trace(self, "  node %u reports %d of node %u: lsn %" PRIu64, number,
                  (int)report->kind, node_of(self, report->incarnation),
                  report->lsn);
    if (at_ms != 0 && report->kind != PS_REPORT_FENCED &&
        report->kind != PS_REPORT_CAUGHT_UP) {
        event = cluster_at(self, at_ms, CLUSTER_POSITION,
                           node_of(self, report->incarnation));
        event->epoch = report->epoch;
        event->lsn = report->lsn;
        event->from = report->kind == PS_REPORT_POSITION ? 1 : 0;
    }
}

static void
perform(cluster_t *self, uint32_t number, const ps_outbox_t *outbox)
{
    cluster_node_t *node = &self->nodes[number];
    char text[256];

    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];

        if (effect->kind == PS_EFFECT_SEND) {
            send_effect(self, number, effect);
        } else if (effect->kind == PS_EFFECT_OPEN) {
            node->peer_of[(effect->to - PS_LINK_CONN) % CLUSTER_LINKS_MAX] =
                node_of(self, effect->copy.incarnation);
        } else if (effect->kind == PS_EFFECT_RECORD) {
            take_record(self, number, effect);
        } else if (effect->kind == PS_EFFECT_REPORT) {
            report(self, number, &effect->report);
        } else if (effect->kind == PS_EFFECT_NOTE && self->trace != NULL) {
            ps_note_print(&effect->note, text, sizeof text, NULL);
            cluster_trace(self, "  node %u: %s", number, text);
        }
    }
}

void
cluster_node_step(cluster_t *self, uint32_t number, ps_event_t *event)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    cluster_node_t *node = &self->nodes[number];

    event->now_ms = clock_of(self, node);
    if (ps_shard_step(node->shard, event, &outbox, NULL) != PSD_OK) {
        cluster_fail(self, "node %u refused an event", number);
    }
    perform(self, number, &outbox);
    plan_tick(self, number);
}

/* ---- the registry ---- */

static void
tell_map(cluster_t *self, uint32_t number)
{
    const cluster_registry_t *registry = &self->registry;
    uint64_t at_ms = cluster_way(self, CLUSTER_REGISTRY, number);
    ps_copies_t *map = NULL;

    if (at_ms == 0) {
        return;
    }
    map = ps_alloc(1, sizeof *map);
    if (map == NULL) {
        cluster_stop("memory for a map");
    }
    map->epoch = registry->epoch;
    for (uint32_t k = 0; k < self->plan.n_nodes; k++) {
        uint32_t i = (registry->primary + k) % self->plan.n_nodes;

        if (registry->in_sync[i]) {
            map->at[map->n++] = (ps_copy_t){
                .incarnation = self->nodes[i].incarnation,
                .state = k == 0 ? PS_COPY_PRIMARY : PS_COPY_IN_SYNC};
        }
    }
    cluster_at(self, at_ms, CLUSTER_TELL, number)->map = map;
}

static void
told(cluster_t *self, uint32_t number, const ps_copies_t *map)
{
    ps_route_t route = {.epoch = map->epoch,
                        .incarnation = map->at[0].incarnation};
    cluster_node_t *node = &self->nodes[number];

    if (map->epoch <= node->told_epoch) {
        return;
    }
    node->told_epoch = map->epoch;
    cluster_trace(self, "node %u is told epoch %" PRIu64, number, map->epoch);
    cluster_node_step(self, number,
                      &(ps_event_t){.kind = PS_EVENT_TABLE,
                                    .table = CLUSTER_TABLE,
                                    .spec = &self->plan.spec,
                                    .routes = &route,
                                    .n_routes = 1,
                                    .copies = map});
}

void
cluster_node_event(cluster_t *self, const cluster_event_t *event)
{
    cluster_registry_t *registry = &self->registry;
    cluster_node_t *node = &self->nodes[event->to];

    if (event->kind == CLUSTER_TICK) {
        node->wake_ms = UINT64_MAX;
        cluster_node_step(self, event->to,
                          &(ps_event_t){.kind = PS_EVENT_TICK});
    } else if (event->kind == CLUSTER_TELL) {
        told(self, event->to, event->map);
    } else if (event->kind == CLUSTER_FENCE) {
        cluster_node_step(self, event->to,
                          &(ps_event_t){.kind = PS_EVENT_FENCE,
                                        .table = CLUSTER_TABLE,
                                        .epoch = event->epoch});
    } else if (event->kind == CLUSTER_BEAT && event->from == CLUSTER_REGISTRY) {
        registry->beat_ms[event->to] = self->now_ms;
    } else if (event->kind == CLUSTER_BEAT && node->shard != NULL) {
        uint64_t at_ms = cluster_way(self, event->to, CLUSTER_REGISTRY);

        if (at_ms != 0) {
            cluster_at(self, at_ms, CLUSTER_BEAT, event->to)->from =
                CLUSTER_REGISTRY;
        }
        (void)cluster_at(self, self->now_ms + BEAT_MS, CLUSTER_BEAT, event->to);
    } else if (event->kind == CLUSTER_POSITION && event->from == 1) {
        if (registry->fencing && event->epoch == registry->epoch) {
            registry->answered[event->to] = true;
            registry->position[event->to] = event->lsn;
        }
    } else if (event->kind == CLUSTER_POSITION &&
               event->epoch == registry->epoch && !registry->fencing) {
        registry->bad[event->to] = true; /* slow, or diverged */
    }
}

static bool
is_suspect(const cluster_t *self, uint32_t number)
{
    return self->now_ms > self->registry.beat_ms[number] + SUSPECT_MS;
}

static void
fence(cluster_t *self)
{
    cluster_registry_t *registry = &self->registry;

    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        uint64_t at_ms = cluster_way(self, CLUSTER_REGISTRY, i);

        if (registry->in_sync[i] && i != registry->primary &&
            !registry->answered[i] && at_ms != 0) {
            cluster_at(self, at_ms, CLUSTER_FENCE, i)->epoch = registry->epoch;
        }
    }
}

/* The one that has most, when all that live have answered. */
static void
promote(cluster_t *self)
{
    cluster_registry_t *registry = &self->registry;
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        if (!registry->in_sync[i] || i == registry->primary) {
            continue;
        }
        if (!registry->answered[i] && !is_suspect(self, i)) {
            return;
        }
        if (registry->answered[i] && !is_suspect(self, i) &&
            (best == UINT32_MAX ||
             registry->position[i] > registry->position[best])) {
            best = i;
        }
    }
    if (best == UINT32_MAX) {
        return;
    }
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        registry->in_sync[i] = registry->in_sync[i] && registry->answered[i] &&
                               !is_suspect(self, i);
    }
    registry->primary = best;
    registry->fencing = false;
    registry->epoch++;
    self->n_promotions++;
    cluster_trace(self, "node %u becomes primary under epoch %" PRIu64, best,
                  registry->epoch);
}

/* Copies that are lost leave the map; the primary's loss is a matter for a
 * fence. */
static void
shrink(cluster_t *self)
{
    cluster_registry_t *registry = &self->registry;

    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        if (registry->in_sync[i] && i != registry->primary &&
            (is_suspect(self, i) || registry->bad[i])) {
            registry->in_sync[i] = false;
            registry->epoch++;
            cluster_trace(self, "node %u leaves under epoch %" PRIu64, i,
                          registry->epoch);
        }
    }
}

void
cluster_registry_tick(cluster_t *self)
{
    cluster_registry_t *registry = &self->registry;

    if (!registry->fencing && is_suspect(self, registry->primary)) {
        registry->fencing = true;
        registry->epoch++;
        memset(registry->answered, 0, sizeof registry->answered);
        cluster_trace(self, "node %u is suspect: fence %" PRIu64,
                      registry->primary, registry->epoch);
    }
    if (registry->fencing) {
        fence(self);
        promote(self);
    } else {
        shrink(self);
    }
    for (uint32_t i = 0; !registry->fencing && i < self->plan.n_nodes; i++) {
        if (self->nodes[i].told_epoch < registry->epoch &&
            self->now_ms % TELL_MS < REGISTRY_MS) {
            tell_map(self, i);
        }
    }
    (void)cluster_at(self, self->now_ms + REGISTRY_MS, CLUSTER_REGISTRY_TICK,
                     0);
}

/* ---- life ---- */

static void
tell_job(cluster_t *self, uint32_t number)
{
    ps_worker_t workers[CLUSTER_CLIENTS_MAX];
    ps_job_t job = {.id = CLUSTER_JOB,
                    .version = 1,
                    .workers = workers,
                    .n_workers = self->plan.n_clients};

    (void)snprintf(job.name, sizeof job.name, "job");
    for (uint32_t i = 0; i < self->plan.n_clients; i++) {
        workers[i] = (ps_worker_t){.worker = i,
                                   .state = PS_WORKER_RUNNING,
                                   .n_members = 1,
                                   .joins = 1};
    }
    cluster_node_step(self, number,
                      &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job});
}

static void
start_node(cluster_t *self, uint32_t number)
{
    cluster_node_t *node = &self->nodes[number];
    const ps_shard_args_t args = {.incarnation = 70 + number,
                                  .credit_requests = 8,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = 16,
                                  .tail_bytes = self->plan.tail_bytes,
                                  .flight_bytes = self->plan.flight_bytes,
                                  .trace = self->trace != NULL,
                                  .log = true};

    *node =
        (cluster_node_t){.incarnation = args.incarnation,
                         .wake_ms = UINT64_MAX,
                         .offset_ms = (int64_t)ps_rng_below(&self->rng, 100000),
                         .drift = (int64_t)ps_rng_below(&self->rng, 11) - 5};
    if (ps_shard_new(&args, &node->shard, NULL) != PSD_OK) {
        cluster_stop("memory for a shard");
    }
}

void
cluster_nodes_start(cluster_t *self)
{
    cluster_registry_t *registry = &self->registry;

    registry->epoch = 5;
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        start_node(self, i);
        registry->in_sync[i] = true;
        registry->beat_ms[i] = self->now_ms;
        (void)cluster_at(self, self->now_ms, CLUSTER_BEAT, i);
    }
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        tell_map(self, i);
        if (self->plan.bsp) {
            tell_job(self, i);
        }
    }
    (void)cluster_at(self, self->now_ms, CLUSTER_REGISTRY_TICK, 0);
}

void
cluster_nodes_done(cluster_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        ps_shard_destroy(&self->nodes[i].shard);
    }
}

void
cluster_nodes_compare(cluster_t *self)
{
    const cluster_registry_t *registry = &self->registry;
    const cluster_node_t *primary = &self->nodes[registry->primary];

    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        const cluster_node_t *node = &self->nodes[i];

        if (!registry->in_sync[i] || node->shard == NULL ||
            primary->shard == NULL || registry->fencing) {
            continue;
        }
        if (node->lsn != primary->lsn) {
            cluster_fail(
                self, "node %u has %" PRIu64 " records, its primary %" PRIu64,
                i, node->lsn, primary->lsn);
        }
        for (uint64_t lsn = 1; lsn <= node->lsn; lsn++) {
            if (node->sums[lsn] != primary->sums[lsn]) {
                cluster_fail(self,
                             "record %" PRIu64 " of node %u is another than "
                             "node %u's",
                             lsn, i, registry->primary);
                return;
            }
        }
    }
}
