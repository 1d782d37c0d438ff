/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the loss of a node costs a registry of 100 nodes, 1,000 tables and 100,000
 * partitions: processor time of deciding and of telling, and bytes told.
 *
 *     registry_size [NODES TABLES PARTITIONS REPLICAS]
 *
 * PARTITIONS are those of each table. The registry and its overseer are those of
 * psd; the nodes are none: they apply what comes, answer fences at once, and their
 * bytes are counted. Ends with exit code 1 when the loss costs more than 2 s of
 * processor time, or more than 200 bytes for each changed partition and node that
 * is told, or a node without a copy is told.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "protocol/overseer/overseer.h"
#include "protocol/placement/registry_decide.h"

#define SHARDS 4
#define START_MS 1000
#define SUSPECT_MS 400
#define MOST_S 2.0
#define MOST_BYTES 200.0

typedef struct world {
    uint32_t n_nodes;
    uint32_t n_tables;
    uint32_t n_partitions;
    uint32_t replicas;
    ps_registry_t *registry;
    ps_overseer_t *overseer;
    uint64_t now_ms;
    uint64_t lost; /* incarnation; 0: none */
    size_t n_commits;
    size_t n_changes;
    size_t n_fences;
    size_t n_messages;
    uint64_t bytes;
    double told_partitions; /* changed partitions, for each node that was told */
    double idle_partitions; /* … of which the node has no copy */
    double decide_s;
    double tell_s;
} world_t;

static void need(psd_status_t rc, const char *what)
{
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "registry_size: %s: %s\n", what, psd_status_text(rc));
        exit(1);
    }
}

static double cpu_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void apply(world_t *self, ps_command_t *command)
{
    need(ps_registry_apply(self->registry, command, self->now_ms, NULL), "apply");
    ps_command_done(command);
}

/* ---- the cluster ---- */

static void start_node(world_t *self, uint32_t i)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    ps_route_t shards[SHARDS] = {0};
    ps_node_t node = {.incarnation = i + 1, .n_shards = SHARDS, .shards = shards};

    (void)snprintf(node.name, sizeof node.name, "node-%03" PRIu32, i);
    (void)snprintf(node.control, sizeof node.control, "tcp://10.20.30.%" PRIu32 ":7101", i);
    for (uint32_t k = 0; k < SHARDS; k++) {
        (void)snprintf(shards[k].tcp, sizeof shards[k].tcp, "tcp://10.20.30.%" PRIu32 ":%" PRIu32,
                       i, 7200 + k);
        (void)snprintf(shards[k].ipc, sizeof shards[k].ipc, "ipc:///run/psd/shard-%" PRIu32 ".ipc",
                       k);
    }
    need(ps_registry_plan_node(self->registry, &node, 1, &command, NULL), "plan a node");
    apply(self, &command);
}

static void make_table(world_t *self, uint32_t i)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    (void)snprintf(spec.name, sizeof spec.name, "table-%04" PRIu32, i);
    spec.n_rows = 1000000;
    spec.n_partitions = self->n_partitions;
    spec.replicas = self->replicas;
    need(ps_registry_plan_table(self->registry, &spec, 1, &command, NULL), "plan a table");
    apply(self, &command);
}

static void beat_all(world_t *self)
{
    for (size_t i = 0; i < ps_registry_n_nodes(self->registry); i++) {
        const ps_node_t *node = ps_registry_node_at(self->registry, i);

        if (node->incarnation != self->lost) {
            need(ps_registry_node_beat(self->registry, node->name, node->incarnation, 0,
                                       self->now_ms, NULL),
                 "a heartbeat");
        }
    }
}

static void make(world_t *self)
{
    const ps_registry_args_t args = {.default_partitions = 4,
                                     .lost_after_ms = 3000,
                                     .join_within_ms = 30000,
                                     .tables_max = self->n_tables,
                                     .jobs_max = 4,
                                     .nodes_max = self->n_nodes,
                                     .copies_max = self->replicas + 1,
                                     .suspect_after_ms = SUSPECT_MS};
    ps_overseer_args_t oversees = {.incarnation = 1, .suspect_after_ms = SUSPECT_MS};
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_id_t uuid = {.bytes = {1}};

    self->now_ms = START_MS;
    need(ps_registry_new(&args, &self->registry, NULL), "a registry");
    need(ps_registry_plan_cluster(self->registry, "size", &uuid, 1, &command, NULL), "a cluster");
    apply(self, &command);
    for (uint32_t i = 0; i < self->n_nodes; i++) {
        start_node(self, i);
    }
    self->now_ms += START_MS; /* leases from before the start have ended */
    beat_all(self);
    for (uint32_t i = 0; i < self->n_tables; i++) {
        make_table(self, i);
    }
    oversees.registry = self->registry;
    need(ps_overseer_new(&oversees, self->now_ms, &self->overseer, NULL), "an overseer");
    for (size_t i = 0; i < self->n_nodes; i++) {
        need(ps_overseer_add(self->overseer, ps_registry_node_at(self->registry, i), i + 1, NULL),
             "a node");
    }
}

/* ---- telling ---- */

static bool has_copy(const ps_copies_t *copies, uint64_t incarnation)
{
    for (uint32_t i = 0; i < copies->n; i++) {
        if (copies->at[i].incarnation == incarnation) {
            return true;
        }
    }
    return false;
}

static void count(world_t *self, const ps_buffer_t *bytes, uint64_t incarnation)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};

    self->n_messages++;
    self->bytes += bytes->size;
    need(ps_node_message_decode((ps_bytes_t){.data = bytes->data, .size = bytes->size}, &message,
                                NULL),
         "read a message");
    self->told_partitions += (double)message.n_places;
    for (size_t i = 0; message.kind == PS_NODE_PLACES && i < message.n_places; i++) {
        self->idle_partitions += has_copy(&message.places[i].copies, incarnation) ? 0 : 1;
    }
}

/* Sends all that is due; each node applies it and says so. */
static void tell(world_t *self)
{
    bool more = true;

    while (more) {
        ps_sending_round_t round = {0};
        double begin = cpu_s();

        more = false;
        while (ps_overseer_next(self->overseer, self->now_ms, &round)) {
            PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
            const uint64_t incarnation = round.incarnation;
            const uint64_t serial = round.serial;
            ps_sent_t sent = ps_overseer_encode(self->overseer, &round, &bytes);

            ps_overseer_sent(self->overseer, &round, sent);
            more = more || sent == PS_SENT;
            if (sent == PS_SENT) {
                (void)ps_overseer_told(self->overseer, incarnation, serial, PSD_OK, "");
                self->tell_s += cpu_s() - begin;
                count(self, &bytes, incarnation);
                begin = cpu_s();
                break; /* what was told is gone from the list under the round */
            }
        }
        self->tell_s += cpu_s() - begin;
    }
}

/* ---- deciding ---- */

static void answer_fence(world_t *self, const ps_fence_t *fence)
{
    const ps_report_t position = {.kind = PS_REPORT_POSITION,
                                  .table = fence->table,
                                  .partition = fence->partition,
                                  .epoch = fence->epoch,
                                  .lsn = 5,
                                  .lsn_epoch = 1};

    for (uint32_t i = 0; i < fence->n; i++) {
        if (fence->to[i] != self->lost) {
            (void)ps_registry_fenced(self->registry, fence->to[i], &position);
        }
    }
}

/* All that is to be decided now. */
static void decide(world_t *self)
{
    bool more = true;

    while (more) {
        PSD_AUTO(ps_decision_done) ps_decision_t decision = {0};
        double begin = cpu_s();

        need(ps_registry_decide(self->registry, self->now_ms, 1, &decision, NULL), "decide");
        more = decision.kind != PS_DECIDE_NOTHING;
        if (decision.kind == PS_DECIDE_COMMIT) {
            self->n_commits++;
            self->n_changes += decision.command.n_changes;
            need(ps_registry_apply(self->registry, &decision.command, self->now_ms, NULL), "apply");
        }
        self->n_fences += decision.n_fences;
        self->decide_s += cpu_s() - begin;
        begin = cpu_s();
        for (size_t i = 0; i < decision.command.n_changes; i++) {
            if (i == 0 ||
                decision.command.changes[i].table != decision.command.changes[i - 1].table) {
                ps_overseer_tell_table(self->overseer, decision.command.changes[i].table);
            }
        }
        self->tell_s += cpu_s() - begin;
        for (size_t i = 0; i < decision.n_fences; i++) {
            answer_fence(self, &decision.fences[i]);
        }
        tell(self);
    }
}

/* ---- the figures ---- */

static void forget_figures(world_t *self)
{
    self->n_commits = 0;
    self->n_changes = 0;
    self->n_fences = 0;
    self->n_messages = 0;
    self->bytes = 0;
    self->told_partitions = 0;
    self->idle_partitions = 0;
    self->decide_s = 0;
    self->tell_s = 0;
}

static void print(const world_t *self, const char *what)
{
    (void)printf("%-24s %6zu partitions changed by %zu commands, %zu fences; decided in %.3f s, "
                 "told in %.3f s; %zu messages, %.1f MB, %.0f bytes a partition and node; "
                 "%.0f of %.0f to nodes without a copy\n",
                 what, self->n_changes, self->n_commits, self->n_fences, self->decide_s,
                 self->tell_s, self->n_messages, (double)self->bytes / 1e6,
                 self->told_partitions > 0 ? (double)self->bytes / self->told_partitions : 0.0,
                 self->idle_partitions, self->told_partitions);
}

static void pass(world_t *self, uint64_t ms)
{
    for (uint64_t end_ms = self->now_ms + ms; self->now_ms < end_ms;) {
        self->now_ms += SUSPECT_MS / 4;
        beat_all(self);
        decide(self);
        ps_overseer_tick(self->overseer, self->now_ms, false);
    }
}

int main(int n_args, char **args)
{
    world_t self = {.n_nodes = 100, .n_tables = 1000, .n_partitions = 100, .replicas = 2};
    double per_partition = 0;
    double begin = cpu_s();
    bool good = true;

    if (n_args == 5) {
        self.n_nodes = (uint32_t)strtoul(args[1], NULL, 10);
        self.n_tables = (uint32_t)strtoul(args[2], NULL, 10);
        self.n_partitions = (uint32_t)strtoul(args[3], NULL, 10);
        self.replicas = (uint32_t)strtoul(args[4], NULL, 10);
    }
    make(&self);
    (void)printf("%" PRIu32 " nodes, %" PRIu32 " tables of %" PRIu32 " partitions, %" PRIu32
                 " copies: made in %.3f s\n",
                 self.n_nodes, self.n_tables, self.n_partitions, self.replicas, cpu_s() - begin);
    tell(&self);
    print(&self, "all nodes come");
    forget_figures(&self);
    pass(&self, 1000);
    print(&self, "a second of quiet");
    forget_figures(&self);
    self.lost = self.n_nodes / 2 + 1;
    pass(&self, 1000);
    print(&self, "a node is lost");
    per_partition = self.told_partitions > 0 ? (double)self.bytes / self.told_partitions : 0.0;
    good = self.n_changes > 0 && self.decide_s + self.tell_s <= MOST_S &&
           per_partition <= MOST_BYTES && self.idle_partitions <= 0;
    (void)printf("%.3f s of processor time, at most %.1f; %.0f bytes, at most %.0f; %s\n",
                 self.decide_s + self.tell_s, MOST_S, per_partition, MOST_BYTES,
                 good ? "good" : "NOT good");
    ps_overseer_destroy(&self.overseer);
    ps_registry_destroy(&self.registry);
    return good ? 0 : 1;
}
