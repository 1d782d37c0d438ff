/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's process: the core's state machine, commands that are stored
 * before they are applied, and its overseer. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/command_code.h"
#include "protocol/replica/replicas.h"
#include "sim_cluster_lead.h"

#define LOOK_MS 50         /* tick interval when nothing happens */
#define SUSPECT_MS 400     /* silence of a node */
#define UNREACHED_MS 300   /* … of a shard, for a client */
#define GONE_MS 1200       /* … of a worker, where they come and go */
#define PATIENCE_MS 600000 /* timeout for workers that are expected */
#define DECISIONS_MAX 1000

void cluster_name(uint32_t node, char name[CLUSTER_NAME_SIZE])
{
    (void)snprintf(name, CLUSTER_NAME_SIZE, "n%u", node);
}

ps_registry_t *cluster_registry_new(const cluster_t *self)
{
    const ps_registry_args_t args = {.default_partitions = 1,
                                     .lost_after_ms = self->plan.comes ? GONE_MS : CLUSTER_LOST_MS,
                                     .join_within_ms = PATIENCE_MS,
                                     .tables_max = 4,
                                     .jobs_max = 4,
                                     .nodes_max = CLUSTER_NODES_MAX,
                                     .disk = true,
                                     .copies_max = 3,
                                     .suspect_after_ms = SUSPECT_MS,
                                     .unreached_after_ms = UNREACHED_MS,
                                     .repair_after_ms = CLUSTER_REPAIR_MS};
    ps_registry_t *machine = NULL;

    cluster_need(ps_registry_new(&args, &machine, NULL) == PSD_OK, "memory for a registry");
    return machine;
}

static void new_machine(cluster_t *self)
{
    memset(self->registry->joining, 0, sizeof self->registry->joining);
    self->registry->machine = cluster_registry_new(self);
}

/* Called after the stored state is loaded. The registry is on none of the
 * nodes. */
static void new_overseer(cluster_t *self)
{
    const ps_overseer_args_t args = {.registry = self->registry->machine,
                                     .incarnation = UINT64_MAX,
                                     .suspect_after_ms = SUSPECT_MS,
                                     .term = self->registry->term};

    cluster_need(ps_overseer_new(&args, self->now_ms, &self->registry->overseer, NULL) == PSD_OK,
                 "memory for an overseer");
}

/* As the control part does. */
void cluster_registry_tell(cluster_t *self, const ps_command_t *command)
{
    ps_overseer_t *overseer = self->registry->overseer;

    if (command->n_changes > 0 || command->kind == PS_COMMAND_TABLE) {
        const ps_table_t *table = ps_registry_table(self->registry->machine, "t");

        ps_overseer_tell_table(overseer, table->id);
    }
    if (command->kind == PS_COMMAND_JOB || command->kind == PS_COMMAND_JOB_TABLE) {
        ps_overseer_tell_job(overseer, command->job.id);
    }
}

/* What a log would hold of it. */
static ps_command_t from_bytes(const ps_command_t *command)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_command_t copy = {0};

    cluster_need(ps_command_encode(command, &bytes) &&
                     ps_command_decode((ps_bytes_t){bytes.data, bytes.size}, &copy, NULL) == PSD_OK,
                 "a command in bytes");
    return copy;
}

/* It is alone: stored, then applied. */
static void store(cluster_t *self, const ps_command_t *command)
{
    cluster_registry_t *registry = self->registry;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cluster_need(
        ps_grow(&registry->log, &registry->capacity, registry->n_log + 1, sizeof *registry->log),
        "memory for a command");
    cluster_job_note(self, command);
    registry->log[registry->n_log++] = from_bytes(command);
    if (ps_registry_apply(registry->machine, command, self->now_ms, err) != PSD_OK) {
        cluster_fail(self, "a planned command does not fit: %s", psd_error_text(err));
    }
    registry->hash = ps_registry_hash(registry->machine);
    self->changed_ms = self->now_ms;
}

bool cluster_registry_commit(cluster_t *self, ps_command_t *command)
{
    if (command->kind == 0) {
        return true;
    }
    if (self->registry->term == 0) {
        store(self, command);
    } else if (!cluster_member_commit(self, command)) {
        return false;
    }
    if (command->kind == PS_COMMAND_COPIES) {
        cluster_trace(self, "registry, epoch %" PRIu64 ": %s", command->epoch, command->text);
    }
    cluster_registry_tell(self, command);
    ps_command_done(command);
    return true;
}

bool cluster_registry_is(const cluster_t *self, uint32_t life)
{
    return self->registry->machine != NULL && self->registry->life == life;
}

/* A command planned at the start cannot be refused. */
static void commit_planned(cluster_t *self, psd_status_t planned, ps_command_t *command)
{
    cluster_need(planned == PSD_OK && cluster_registry_commit(self, command), "a plan");
}

/* ---- sending ---- */

/* Takes the bytes. */
static void post(cluster_t *self, uint32_t node, uint64_t incarnation, ps_buffer_t *bytes)
{
    cluster_post(self, &(cluster_letter_t){.kind = CLUSTER_OVERSEER,
                                           .from = CLUSTER_REGISTRY,
                                           .to = node,
                                           .incarnation = incarnation,
                                           .bytes = *bytes});
    *bytes = (ps_buffer_t){0};
}

/* A connection to a node: of one life of the registry. */
static uint64_t conn_of(uint32_t life, uint32_t node)
{
    return (uint64_t)life << 32 | node;
}

static ps_sent_t send(cluster_t *self, const ps_sending_round_t *round)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_sent_t sent = ps_overseer_encode(self->registry->overseer, round, &bytes);

    if (sent == PS_SENT) {
        post(self, (uint32_t)round->conn, round->incarnation, &bytes);
    }
    return sent;
}

static void send_due(cluster_t *self)
{
    ps_overseer_t *overseer = self->registry->overseer;
    ps_sending_round_t round = {0};

    while (ps_overseer_next(overseer, self->now_ms, &round)) {
        ps_overseer_sent(overseer, &round, send(self, &round));
    }
}

static void tell_fence(cluster_t *self, const ps_fence_t *fence)
{
    const ps_table_t *table = cluster_registry_table(self);

    self->n_fences++;
    for (uint32_t i = 0; table != NULL && i < fence->n; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        uint32_t node = cluster_node_of(self, fence->to[i]);
        const ps_copy_t *copy = ps_copies_on(&table->copies[fence->partition], fence->to[i]);
        const ps_copy_fence_t its = {.shard = copy == NULL ? 0 : copy->shard,
                                     .table = fence->table,
                                     .partition = fence->partition,
                                     .epoch = fence->epoch};

        if (copy != NULL && node != CLUSTER_NOBODY) {
            cluster_need(
                ps_overseer_encode_fence(self->registry->overseer, fence->to[i], &its, &bytes),
                "memory for a fence");
            post(self, node, fence->to[i], &bytes);
        }
    }
}

/* ---- deciding ---- */

/* It crashes after it has stored a decision and before it sends it. */
static bool falls(cluster_t *self)
{
    cluster_plan_t *plan = &self->plan;

    if (plan->falls == 0 || self->begins || self->now_ms <= CLUSTER_START_MS ||
        self->now_ms >= CLUSTER_CALM_MS || plan->n_faults == CLUSTER_FAULTS_MAX ||
        cluster_below(self, 1000) >= plan->falls) {
        return false;
    }
    plan->faults[plan->n_faults++] =
        (cluster_fault_t){.kind = CLUSTER_CRASH,
                          .who = CLUSTER_REGISTRY,
                          .to = self->registry->at,
                          .begun = true,
                          .at_ms = self->now_ms,
                          .end_ms = self->now_ms + 20 + cluster_below(self, 500)};
    (void)cluster_at(self, plan->faults[plan->n_faults - 1].end_ms, CLUSTER_FAULTS, 0);
    cluster_registry_crash(self, self->registry->at);
    return true;
}

/* Does everything that is due, until nothing is left. */
static void decide(cluster_t *self)
{
    cluster_registry_t *registry = self->registry;
    uint32_t life = registry->life;
    uint64_t at_ms = 0;

    ps_overseer_tick(registry->overseer, self->now_ms, false);
    cluster_job_decide(self);
    if (!cluster_registry_is(self, life)) {
        return;
    }
    for (int i = 0; i < DECISIONS_MAX; i++) {
        PSD_AUTO(ps_decision_done) ps_decision_t decision = {0};

        cluster_need(ps_registry_decide(registry->machine, self->now_ms, self->now_ms, &decision,
                                        NULL) == PSD_OK,
                     "memory for a decision");
        if (decision.kind == PS_DECIDE_NOTHING) {
            break;
        }
        if (decision.kind == PS_DECIDE_COMMIT &&
            (!cluster_registry_commit(self, &decision.command) || falls(self))) {
            return;
        }
        send_due(self);
        for (size_t k = 0; k < decision.n_fences; k++) {
            tell_fence(self, &decision.fences[k]);
        }
    }
    send_due(self);
    at_ms = ps_registry_decide_at(registry->machine);
    at_ms = at_ms < self->now_ms + LOOK_MS ? at_ms : self->now_ms + LOOK_MS;
    at_ms = at_ms > self->now_ms ? at_ms : self->now_ms + 1;
    if (at_ms < registry->wake_ms) {
        registry->wake_ms = at_ms;
        (void)cluster_at(self, at_ms, CLUSTER_REGISTRY_TICK, registry->at);
    }
}

void cluster_registry_tick(cluster_t *self)
{
    self->registry->wake_ms = UINT64_MAX;
    if (self->registry->machine != NULL && self->registry->overseer != NULL) {
        decide(self);
    }
}

/* ---- letters received ---- */

/* As the control part does. PSD_DENIED: its earlier life seems to be alive;
 * PSD_NOT_LEADER: this process has ended. */
static psd_status_t take_announcement(cluster_t *self, uint64_t conn, ps_node_message_t *message)
{
    const cluster_registry_t *registry = self->registry;
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    ps_node_t *node = &message->node;
    const ps_node_t *known = ps_registry_node(registry->machine, node->name);

    node->incarnation = message->incarnation;
    if (known != NULL && known->up && known->incarnation != message->incarnation) {
        return PSD_DENIED;
    }
    if (known == NULL || known->incarnation != message->incarnation) {
        if (ps_registry_plan_node(registry->machine, node, self->now_ms, &command, NULL) !=
            PSD_OK) {
            return PSD_DENIED;
        }
        cluster_trace(self, "registry: node %s joins", node->name);
        if (!cluster_registry_commit(self, &command)) {
            return PSD_NOT_LEADER;
        }
    }
    cluster_need(ps_overseer_add(registry->overseer, node, conn, NULL) == PSD_OK &&
                     ps_overseer_beat(registry->overseer, node->incarnation, message->epoch,
                                      self->now_ms, NULL) == PSD_OK,
                 "a node that has come");
    return PSD_OK;
}

static void take_report(cluster_t *self, uint64_t incarnation, const ps_report_t *report)
{
    if (report->kind == PS_REPORT_POSITION || report->kind == PS_REPORT_PARTIAL) {
        (void)ps_registry_fenced(self->registry->machine, incarnation, report);
    } else {
        (void)ps_registry_report(self->registry->machine, incarnation, report);
    }
}

static psd_status_t take_message(cluster_t *self, uint64_t conn, ps_node_message_t *message)
{
    ps_tell_view_t refused;
    psd_status_t rc = PSD_OK;

    if (message->kind == PS_NODE_ANNOUNCE) {
        return take_announcement(self, conn, message);
    }
    rc = ps_overseer_take(self->registry->overseer, conn, message, self->now_ms, &refused, NULL);
    for (size_t i = 0; rc == PSD_OK && i < message->n_reports; i++) {
        take_report(self, message->incarnation, &message->reports[i]);
    }
    return rc;
}

static void hear_agent(cluster_t *self, const cluster_letter_t *letter)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t heard = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = ps_node_message_decode(
        (ps_bytes_t){.data = letter->bytes.data, .size = letter->bytes.size}, &message, err);

    if (rc != PSD_OK) {
        cluster_fail(self, "the registry does not understand: %s", psd_error_text(err));
        return;
    }
    rc = take_message(self, conn_of(letter->joins, letter->from), &message);
    if (rc == PSD_NOT_LEADER) {
        return;
    }
    if (rc != PSD_OK || message.kind == PS_NODE_ANNOUNCE || message.kind == PS_NODE_BEAT) {
        cluster_need(ps_overseer_encode_heard(self->registry->overseer, &message, rc, "", &heard),
                     "memory for a message");
        post(self, letter->from, letter->incarnation, &heard);
    }
}

ps_route_t *cluster_registry_routes(const cluster_t *self)
{
    const ps_table_t *table = cluster_registry_table(self);
    size_t n = self->plan.n_partitions;
    ps_route_t *routes = ps_alloc(n, sizeof *routes);

    cluster_need(routes != NULL, "memory for routes");
    memcpy(routes, table->routes, n * sizeof *routes);
    return routes;
}

/* A client's letter. What was heard of others may be old. */
static void hear_client(cluster_t *self, const cluster_letter_t *letter)
{
    if (self->registry->term != 0 && !cluster_member_may_answer(self)) {
        return; /* it asks again */
    }
    if (letter->kind == CLUSTER_ASK) {
        (void)ps_registry_unreached(self->registry->machine, letter->incarnation, letter->shard,
                                    letter->number, self->now_ms);
        cluster_post(self, &(cluster_letter_t){.kind = CLUSTER_ROUTES,
                                               .from = CLUSTER_REGISTRY,
                                               .to = letter->from,
                                               .routes = cluster_registry_routes(self)});
    } else if (letter->kind == CLUSTER_WISH) {
        cluster_request_letter(self, letter);
    } else {
        cluster_job_letter(self, letter);
    }
}

void cluster_registry_letter(cluster_t *self, const cluster_letter_t *letter)
{
    uint32_t life = self->registry->life;

    if (self->registry->machine == NULL) {
        return;
    }
    if (letter->kind == CLUSTER_AGENT) {
        hear_agent(self, letter);
    } else if (letter->kind == CLUSTER_ARMED) {
        cluster_checkpoint_letter(self, letter);
    } else {
        hear_client(self, letter);
    }
    if (cluster_registry_is(self, life)) {
        decide(self);
    }
}

void cluster_registry_open(cluster_t *self)
{
    new_overseer(self);
    decide(self);
}

/* ---- start and end ---- */

/* The nodes that are there at the start need no letter to join. */
static void join_at_once(cluster_t *self, uint32_t number)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};
    const cluster_node_t *node = &self->nodes[number];
    ps_bytes_t bytes;

    cluster_node_start(self, number);
    ps_agent_tick(node->agent, self->now_ms);
    cluster_need(ps_agent_next_message(node->agent, &bytes) &&
                     ps_node_message_decode(bytes, &message, NULL) == PSD_OK &&
                     take_announcement(self, conn_of(self->registry->life, number), &message) ==
                         PSD_OK,
                 "a node that joins");
}

static void forget_log(cluster_registry_t *registry)
{
    for (size_t i = 0; i < registry->n_log; i++) {
        ps_command_done(&registry->log[i]);
    }
    ps_free(registry->log);
    registry->log = NULL;
}

/* What is stored so far is all that its members have. */
static void become_replicated(cluster_t *self)
{
    cluster_registry_t *registry = self->registry;

    cluster_story_begin(self, registry->log, registry->n_log);
    forget_log(registry);
    ps_overseer_destroy(&registry->overseer);
    ps_registry_destroy(&registry->machine);
    *registry = (cluster_registry_t){0};
    cluster_registry_newest(self);
    cluster_members_start(self);
}

void cluster_registry_begin(cluster_t *self)
{
    const ps_id_t uuid = CLUSTER_UUID;
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    ps_table_spec_t spec;

    self->registry = &self->registries[0];
    self->registry->wake_ms = UINT64_MAX;
    self->registry->life = ++self->n_registries;
    new_machine(self);
    new_overseer(self);
    commit_planned(
        self,
        ps_registry_plan_cluster(self->registry->machine, "c", &uuid, self->now_ms, &command, NULL),
        &command);
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        if (!cluster_is_absent(self, i)) {
            join_at_once(self, i);
        }
    }
    cluster_spec_make(&self->plan, &spec);
    commit_planned(
        self, ps_registry_plan_table(self->registry->machine, &spec, self->now_ms, &command, NULL),
        &command);
    self->table = ps_registry_table(self->registry->machine, "t")->id;
    if (self->plan.job) {
        cluster_job_begin(self);
    }
    if (cluster_is_replicated(self)) {
        become_replicated(self);
    } else {
        decide(self);
    }
}

void cluster_registry_done(cluster_t *self)
{
    for (uint32_t i = 0; i <= CLUSTER_NODES_MAX; i++) {
        cluster_registry_t *registry = &self->registries[i];

        ps_overseer_destroy(&registry->overseer);
        for (size_t k = 0; k < registry->n_held; k++) {
            cluster_event_done(&registry->held[k]);
        }
        ps_free(registry->held);
    }
    if (!cluster_is_replicated(self)) {
        ps_registry_destroy(&self->registries[0].machine);
    }
    forget_log(&self->registries[0]);
}

void cluster_registry_crash(cluster_t *self, uint32_t at)
{
    if (cluster_is_replicated(self)) {
        cluster_member_crash(self, at, cluster_below(self, 2) == 0);
        return;
    }
    cluster_trace(self, "the registry crashes");
    ps_overseer_destroy(&self->registry->overseer);
    ps_registry_destroy(&self->registry->machine);
    cluster_checkpoint_forget(self);
    if (cluster_below(self, 2) == 0) {
        cluster_lose_letters(self, CLUSTER_REGISTRY);
    }
}

void cluster_registry_restart(cluster_t *self, uint32_t at)
{
    cluster_registry_t *registry = self->registry;

    if (cluster_is_replicated(self)) {
        if (at < CLUSTER_NODES_MAX && self->nodes[at].alive) {
            cluster_member_start(self, at);
        }
        return;
    }
    if (registry->machine != NULL) {
        return;
    }
    registry->life = ++self->n_registries;
    cluster_trace(self, "the registry starts with %zu commands", registry->n_log);
    new_machine(self);
    for (size_t i = 0; i < registry->n_log; i++) {
        cluster_need(ps_registry_apply(registry->machine, &registry->log[i], self->now_ms, NULL) ==
                         PSD_OK,
                     "a stored command that fits");
    }
    if (registry->n_log > 0 && ps_registry_hash(registry->machine) != registry->hash) {
        cluster_fail(self, "from bytes, the commands make another state");
    }
    new_overseer(self);
    (void)cluster_at(self, self->now_ms, CLUSTER_FAULTS, 0); /* drains wait */
    decide(self);
}

bool cluster_registry_drain(cluster_t *self, uint32_t node, bool drain)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    char name[CLUSTER_NAME_SIZE];

    cluster_name(node, name);
    if (ps_registry_plan_node_state(self->registry->machine, name,
                                    drain ? PS_NODE_DRAINING : PS_NODE_UP, false, self->now_ms,
                                    &command, NULL) == PSD_OK) {
        cluster_trace(self, "registry: node %u %s", node, drain ? "drains" : "stays");
        if (!cluster_registry_commit(self, &command)) {
            return false;
        }
    }
    decide(self);
    return true;
}
