/* SPDX-License-Identifier: Apache-2.0 */
/* A node: its shards, their effects, and its agent. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/shard/shard_state.h"
#include "sim_cluster_lead.h"

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
    ps_agent_report(self->nodes[number].agent, report);
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

/* Posts what the agent says. */
static void speak(cluster_t *self, uint32_t number)
{
    const cluster_node_t *node = &self->nodes[number];
    ps_bytes_t bytes;

    while (ps_agent_next_message(node->agent, &bytes)) {
        cluster_letter_t letter = {.kind = CLUSTER_AGENT,
                                   .from = number,
                                   .to = CLUSTER_REGISTRY,
                                   .incarnation = node->incarnation,
                                   .joins = self->registry->life};

        cluster_need(ps_buffer_append(&letter.bytes, bytes.data, bytes.size),
                     "memory for a message");
        cluster_post(self, &letter);
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
    speak(self, number); /* reports */
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

/* ---- tasks of its agent ---- */

/* Records of a copy that the map does not show as whole may begin anywhere. */
static void forget_records(cluster_shard_t *shard, uint32_t at, uint64_t incarnation,
                           const ps_table_t *table)
{
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        const ps_copy_t *copy = ps_copies_on(&table->copies[i], incarnation);

        if (copy == NULL || copy->shard != at || !ps_copy_is_whole(copy)) {
            shard->copies[i].known = false;
        }
    }
}

/* false: the registry must send it again. */
static bool run_table(cluster_t *self, uint32_t number, const ps_table_t *table)
{
    cluster_node_t *node = &self->nodes[number];

    for (uint32_t at = 0; at < self->plan.n_shards[number]; at++) {
        if (!cluster_disk_table(self, number, at, &table->spec)) {
            return false;
        }
        forget_records(&node->shards[at], at, node->incarnation, table);
        cluster_node_step(self, number, at,
                          &(ps_event_t){.kind = PS_EVENT_TABLE,
                                        .table = table->id,
                                        .spec = &table->spec,
                                        .routes = table->routes,
                                        .n_routes = table->spec.n_partitions,
                                        .copies = table->copies});
    }
    return true;
}

static void run_clocks(cluster_t *self, uint32_t number, uint32_t job, ps_answers_t *answers)
{
    uint32_t n = self->plan.n_shards[number];

    *answers = (ps_answers_t){.at = ps_alloc(n, sizeof *answers->at), .n = n};
    cluster_need(answers->at != NULL, "memory for answers");
    for (uint32_t at = 0; at < n; at++) {
        ps_shard_answer_t *answer = &answers->at[at];

        answer->shard = at;
        cluster_need(ps_shard_clocks(self->nodes[number].shards[at].machine,
                                     job == 0 ? self->job : job, &answer->clocks, &answer->n_clocks,
                                     NULL) == PSD_OK,
                     "memory for clocks");
    }
}

static bool run_task(cluster_t *self, uint32_t number, const ps_agent_task_t *task,
                     ps_answers_t *answers)
{
    if (task->kind == PS_TASK_TABLE) {
        return run_table(self, number, task->table);
    }
    if (task->kind == PS_TASK_ASK) {
        run_clocks(self, number, task->id, answers);
    } else if (task->kind == PS_TASK_JOB) {
        for (uint32_t at = 0; at < self->plan.n_shards[number]; at++) {
            cluster_node_step(self, number, at,
                              &(ps_event_t){.kind = PS_EVENT_JOB, .job = task->job});
        }
    } else if (task->kind == PS_TASK_FENCE) {
        cluster_node_step(self, number, task->fence.shard,
                          &(ps_event_t){.kind = PS_EVENT_FENCE,
                                        .table = task->fence.table,
                                        .partition = task->fence.partition,
                                        .epoch = task->fence.epoch});
    }
    return true;
}

/* Runs what the agent wants. A task may come back while others wait. */
static void run(cluster_t *self, uint32_t number)
{
    cluster_node_t *node = &self->nodes[number];
    ps_agent_task_t task;
    ps_agent_note_t note;

    while (ps_agent_next_note(node->agent, &note)) {
        cluster_trace(self, "node %u: note %d of its agent %s", number, (int)note.kind, note.text);
        if (note.kind == PS_AGENT_REFUSED && note.serial == 0) {
            cluster_fail(self, "node %u does not understand: %s", number, note.text);
        }
    }
    while (ps_agent_next_task(node->agent, &task)) {
        ps_answers_t answers = {0};
        bool done = cluster_disk_joined(self, number) && run_task(self, number, &task, &answers);

        ps_agent_began(node->agent, ++node->n_tasks, done ? PSD_OK : PSD_BUSY, "its disk fails");
        ps_agent_finished(node->agent, node->n_tasks, PSD_OK, "", &answers, self->now_ms);
    }
    speak(self, number);
}

/* As the daemon does: to the member that leads, as far as is known here. */
static void follow(cluster_t *self, uint32_t number)
{
    cluster_node_t *node = &self->nodes[number];
    uint32_t member = cluster_lead_belief(self, number);

    if (member != node->moved_to) {
        cluster_trace(self, "node %u turns to member %u", number, member);
        node->moved_to = member;
        ps_agent_move(node->agent, BEAT_MS, self->now_ms);
    }
}

void cluster_node_beat(cluster_t *self, uint32_t number)
{
    const cluster_node_t *node = &self->nodes[number];

    if (node->alive) {
        if (cluster_is_replicated(self)) {
            follow(self, number);
        }
        ps_agent_tick(node->agent, self->now_ms);
        run(self, number);
        cluster_at(self, self->now_ms + BEAT_MS, CLUSTER_BEAT_TIME, number)->b = node->incarnation;
    }
}

/* What an earlier leader says gives the shards nothing to do. */
static void check_term(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_node_t *node = &self->nodes[letter->to];
    ps_agent_task_t task;

    if (letter->term >= node->term) {
        node->term = letter->term;
    } else if (ps_agent_next_task(node->agent, &task)) {
        cluster_fail(self,
                     "L4: node %u obeys task %d of term %" PRIu64 ", after one of term %" PRIu64,
                     letter->to, (int)task.kind, letter->term, node->term);
    }
}

void cluster_node_letter(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_node_t *node = &self->nodes[letter->to];

    if (!node->alive || letter->incarnation != node->incarnation) {
        return; /* its connection went with its earlier life */
    }
    if (letter->kind >= CLUSTER_ARM) {
        if (letter->term >= node->term) {
            cluster_images_letter(self, letter);
        }
        return;
    }
    ps_agent_take(node->agent, (ps_bytes_t){.data = letter->bytes.data, .size = letter->bytes.size},
                  self->now_ms);
    check_term(self, letter);
    if (ps_agent_deadline(node->agent) <= self->now_ms) {
        ps_agent_tick(node->agent, self->now_ms);
    }
    run(self, letter->to);
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
    ps_agent_destroy(&node->agent);
    node->alive = false;
}

static void new_agent(cluster_t *self, uint32_t number)
{
    cluster_node_t *node = &self->nodes[number];
    ps_agent_args_t args = {.node = {.incarnation = node->incarnation,
                                     .n_shards = self->plan.n_shards[number],
                                     .shards = node->routes,
                                     .kept = node->kept},
                            .damage = "",
                            .cluster = CLUSTER_UUID,
                            .heartbeat_ms = BEAT_MS};

    cluster_name(number, args.node.name);
    (void)snprintf(args.node.control, sizeof args.node.control, "tcp://%s:9", args.node.name);
    for (uint32_t i = 0; i < args.node.n_shards; i++) {
        (void)snprintf(node->routes[i].tcp, sizeof node->routes[i].tcp, "tcp://%s:%u",
                       args.node.name, i);
    }
    cluster_need(ps_agent_new(&args, self->now_ms, &node->agent, NULL) == PSD_OK,
                 "memory for an agent");
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
    node->term = 0;
    node->starts = false;
    node->kept = self->plan.disk;
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
    new_agent(self, number);
    self->n_recoveries += node->kept ? 1 : 0;
    if (cluster_has_member(self, number)) {
        cluster_member_start(self, number);
    }
    cluster_at(self, self->now_ms, CLUSTER_BEAT_TIME, number)->b = node->incarnation;
}

void cluster_node_crash(cluster_t *self, uint32_t number, cluster_loss_t loss)
{
    static const char *const losses[] = {"", ", and loses what is not flushed",
                                         ", and loses its disk"};

    cluster_trace(self, "node %u crashes%s", number, self->plan.disk ? losses[loss] : "");
    if (cluster_has_member(self, number)) {
        cluster_member_crash(self, number, loss != CLUSTER_WRITTEN);
    }
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
