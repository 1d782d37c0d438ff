/* SPDX-License-Identifier: Apache-2.0 */
/* A client: a session of the core, and the script that it follows. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sim.h"

#define THINK_MS 30 /* most between two lines of a script */
#define BULK_BYTES                                           \
    40 /* every other client sends what is larger by another \
          connection; nothing is large enough for the rest */

static void plan_step(sim_t *sim, sim_client_t *client)
{
    if (!client->planned && !client->killed && !client->finished) {
        client->planned = true;
        sim_at(sim, sim->now_ms + 1 + ps_rng_below(&sim->net, THINK_MS), SIM_EVENT_STEP,
               client->number);
    }
}

static void plan_tick(sim_t *sim, sim_client_t *client)
{
    uint64_t at_ms = ps_session_deadline(client->session);

    if (at_ms < client->wake_ms) {
        client->wake_ms = at_ms;
        sim_at(sim, at_ms > sim->now_ms ? at_ms : sim->now_ms, SIM_EVENT_CLIENT_TICK,
               client->number);
    }
}

/* Pulls the rows that a pull did not get, as a new operation. */
static void ask_again(sim_t *sim, sim_client_t *client, const sim_op_t *op, size_t n_done)
{
    sim_op_t *again = NULL;

    sim_need(
        ps_grow(&client->redo, &client->redo_capacity, client->n_redo + 1, sizeof *client->redo),
        "memory for an operation");
    again = &client->redo[client->n_redo++];
    *again = *op;
    again->step.kind = op->step.kind == SIM_SUM ? SIM_SUM : SIM_PULL;
    again->step.n_rows -= (uint32_t)n_done;
    memmove(again->step.rows, op->step.rows + n_done,
            again->step.n_rows * sizeof *again->step.rows);
    plan_step(sim, client);
}

static void end_refused(sim_t *sim, sim_client_t *client, sim_op_t *op,
                        const ps_msg_refused_t *refused)
{
    op->status = (psd_status_t)refused->status;
    if (refused->text[0] == '\0') {
        sim_fail(sim, "A4: client %u: a refusal without a reason", client->number);
    }
    if (op->step.bad && op->status == PSD_RANGE) {
        return;
    }
    if (!sim_is_push(op->step.kind) && op->status == PSD_DEADLINE && op->step.timeout_ms > 0) {
        ask_again(sim, client, op, 0);
        return;
    }
    sim_fail(sim, "client %u: operation in clock %llu was refused: %s %s", client->number,
             (unsigned long long)op->clock, psd_status_name(op->status), refused->text);
}

static void end_op(sim_t *sim, sim_client_t *client, uint64_t number, const ps_message_t *message,
                   const ps_payload_t *payload)
{
    sim_op_t *op = NULL;

    sim_need(number >= 1 && number <= client->n_ops, "an operation known");
    op = &client->ops[number - 1];
    if (op->done) {
        sim_fail(sim, "client %u: operation %llu ended twice", client->number,
                 (unsigned long long)number);
        return;
    }
    sim_trace(sim, "  client %u: op %llu ends as %s", client->number, (unsigned long long)number,
              ps_kind_name(message->kind));
    op->done = true;
    op->status = PSD_OK;
    client->n_open--;
    if (message->kind == PS_KIND_REFUSED) {
        end_refused(sim, client, op, &message->refused);
    } else if (op->step.bad) {
        sim_fail(sim, "client %u: a bad push was taken", client->number);
    } else if (message->kind == PS_KIND_VALUES) {
        if (message->values.n_done == 0 || message->values.n_done > op->step.n_rows) {
            sim_fail(sim, "VALUES of %llu rows", (unsigned long long)message->values.n_done);
            return;
        }
        if (op->step.kind == SIM_SUM) {
            sim_check_sum(sim, client, number - 1, message, payload);
        } else {
            sim_check_values(sim, client, number - 1, message, payload);
        }
        if (message->values.n_done < op->step.n_rows) {
            ask_again(sim, client, op, message->values.n_done);
        }
    }
    plan_step(sim, client);
}

static void perform(sim_t *sim, sim_client_t *client, const ps_outbox_t *outbox)
{
    const char *why = "";

    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];

        if (effect->kind == PS_EFFECT_OPEN) {
            sim_need(effect->to == client->n_links && effect->to < SIM_LINKS_MAX, "links in order");
            client->n_links++;
            (void)sim_conn_new(sim, client->number, effect->to);
            if (!ps_session_link_is_bulk(client->session, effect->to)) {
                ps_session_allow_bulk(client->session, effect->to);
            }
        } else if (effect->kind == PS_EFFECT_SEND &&
                   !sim_relay_takes(sim, client, effect->to, &effect->message, effect->payload)) {
            sim_filter_send(sim, client, effect->to, &effect->message, effect->payload);
        } else if (effect->kind == PS_EFFECT_DONE) {
            end_op(sim, client, effect->to, &effect->message, effect->payload);
        }
    }
    if (ps_session_broken(client->session, &why) != PSD_OK) {
        sim_fail(sim, "client %u is broken: %s", client->number, why);
    }
    plan_tick(sim, client);
}

static const char *kind_name(sim_step_kind_t kind)
{
    static const char *const names[] = {"",     "push", "pushpull", "pull",
                                        "mark", "wait", "scale",    "sum"};

    return names[kind];
}

static void set_op(sim_step_kind_t kind, ps_op_start_t *start)
{
    const double two = 2;

    if (kind == SIM_SCALE) {
        start->op = PS_CHANGE_SCALE;
        memcpy(&start->operand, &two, sizeof start->operand);
    } else if (kind == SIM_SUM) {
        start->op = PS_READ_SUM;
    }
}

/* Starts one operation and writes it into the ledger. */
static void start_op(sim_t *sim, sim_client_t *client, const sim_step_t *step, uint32_t partition,
                     size_t line)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_op_start_t start = {.kind = PS_KIND_MARK, .table = SIM_TABLE, .partition = partition};
    uint64_t number = 0;
    psd_status_t rc;

    if (!client->reader) {
        start.worker = (ps_op_worker_t){.job = SIM_JOB,
                                        .worker = client->worker,
                                        .member = client->member,
                                        .joins = client->life,
                                        .clock = client->clock};
    }
    sim_need(ps_grow(&client->ops, &client->ops_capacity, client->n_ops + 1, sizeof *client->ops),
             "memory for an operation");
    client->ops[client->n_ops] =
        (sim_op_t){.step = *step, .partition = partition, .clock = client->clock, .line = line};
    client->n_ops++;
    client->n_open++;
    sim_trace(sim, "client %u (worker %u, clock %llu): op %zu, %s to partition %u", client->number,
              client->worker, (unsigned long long)client->clock, client->n_ops,
              kind_name(step->kind), partition);
    if (step->kind != SIM_MARK) {
        payload = sim_slice_make(sim, client, step, &start.slice);
        start.payload = payload;
        start.kind = sim_is_push(step->kind) ? PS_KIND_PUSH : PS_KIND_PULL;
        start.pull = step->kind == SIM_PUSHPULL;
        start.marks = step->marks;
        start.timeout_ms = sim_is_push(step->kind) ? 0 : step->timeout_ms;
        set_op(step->kind, &start);
    }
    rc = ps_session_start(client->session, sim->now_ms, &start, &outbox, &number, NULL);
    sim_need(rc == PSD_OK && number == client->n_ops, "an operation that starts");
    perform(sim, client, &outbox);
}

/* Cuts a line of the script by partitions, as lib/client does. The result
 * has a bit for each partition that was asked; no mark goes to those in
 * `not_to`. */
static uint32_t start_line(sim_t *sim, sim_client_t *client, const sim_step_t *step,
                           uint32_t not_to)
{
    uint32_t asked = 0;

    static_assert(SIM_PARTITIONS_MAX <= 32, "a bit for each");
    for (uint32_t p = 0; p < sim->plan.spec.n_partitions; p++) {
        sim_step_t part = *step;

        part.n_rows = 0;
        for (uint32_t i = 0; i < step->n_rows; i++) {
            if (sim_partition_of(&sim->plan, step->rows[i]) == p) {
                part.rows[part.n_rows] = step->rows[i];
                part.deltas[part.n_rows++] = step->deltas[i];
            }
        }
        if (part.n_rows > 0 || (step->kind == SIM_MARK && (not_to >> p & 1) == 0)) {
            start_op(sim, client, &part, p, client->at);
            asked |= UINT32_C(1) << p;
        }
    }
    return asked;
}

/* The last push of a clock may also be its mark. */
static bool ends_clock(const sim_client_t *client)
{
    const sim_step_t *step = &client->script[client->at];

    return (step->kind == SIM_PUSH || step->kind == SIM_SCALE) && !client->reader &&
           client->at + 1 < client->n_steps && step[1].kind == SIM_MARK &&
           (client->number + client->at) % 2 == 0;
}

/* Does one line, or two as one. */
static void do_line(sim_t *sim, sim_client_t *client)
{
    sim_step_t step = client->script[client->at];
    uint32_t marked = 0;

    if (ends_clock(client)) {
        step.marks = true;
        marked = start_line(sim, client, &step, 0);
        client->at++;
        step = client->script[client->at];
    }
    if (step.kind == SIM_MARK) {
        client->clock++; /* the mark says that this clock is finished */
    }
    (void)start_line(sim, client, &step, marked);
}

/* All of it has ended. */
static void say_bye(sim_t *sim, sim_client_t *client)
{
    const ps_message_t bye = {.kind = PS_KIND_BYE, .bye = {.session = client->number + 1}};

    sim_trace(sim, "client %u says BYE", client->number);
    for (size_t i = 0; i < client->n_links; i++) {
        sim_send(sim, client->conn_of[i], true, &bye, NULL, 0);
    }
    sim_send_late(sim, client);
    ps_session_destroy(&client->session);
}

void sim_client_step(sim_t *sim, uint32_t number)
{
    sim_client_t *client = &sim->clients[number];

    client->planned = false;
    if (client->killed || client->finished) {
        return;
    }
    while (client->n_redo > 0) {
        sim_op_t again = client->redo[--client->n_redo];

        start_op(sim, client, &again.step, again.partition, again.line);
    }
    if (client->at >= client->n_steps) {
        if (client->n_open == 0) {
            client->finished = true;
            sim_trace(sim, "client %u is through", number);
            say_bye(sim, client);
        }
        return;
    }
    if (client->script[client->at].kind == SIM_WAIT) {
        if (client->n_open > 0) {
            return; /* the end of each operation comes here again */
        }
    } else {
        do_line(sim, client);
    }
    client->at++;
    plan_step(sim, client);
}

/* Some clients start with an old map: another shard, a lower epoch. */
static void learn_routes(sim_t *sim, sim_client_t *client)
{
    ps_route_t routes[SIM_PARTITIONS_MAX];
    uint32_t n = sim->plan.spec.n_partitions;
    bool old = ps_rng_below(&sim->net, 4) == 0;

    memcpy(routes, sim->routes, sizeof routes);
    for (uint32_t i = 0; old && i < n; i++) {
        routes[i].epoch--;
        routes[i].shard = (routes[i].shard + 1) % sim->plan.n_shards;
        (void)snprintf(routes[i].tcp, sizeof routes[i].tcp, "tcp://node:%u",
                       1000 + routes[i].shard);
    }
    sim_need(ps_session_routes(client->session, SIM_TABLE, routes, n, NULL) == PSD_OK, "routes");
}

void sim_client_start(sim_t *sim, uint32_t number, uint64_t clock)
{
    sim_client_t *client = &sim->clients[number];
    ps_session_args_t args = {.cluster = sim->plan.shard.cluster,
                              .session = number + 1,
                              .bulk_bytes = number % 2 == 0 ? BULK_BYTES : 0,
                              .filters = PS_FILTER_BITS_ALL,
                              .resend_ms = sim->plan.resend_ms};

    args.client.bytes[0] = (uint8_t)(number + 1);
    sim_need(ps_session_new(&args, &client->session, NULL) == PSD_OK, "memory for a session");
    client->running = true;
    client->wake_ms = UINT64_MAX;
    client->clock = clock;
    sim_filter_choose(sim, client);
    learn_routes(sim, client);
    /* A worker that starts later has that many fewer clocks to do. */
    for (uint64_t passed = 0; passed < clock && client->at < client->n_steps; client->at++) {
        passed += client->script[client->at].kind == SIM_MARK;
    }
    sim_trace(sim, "client %u starts, worker %u at clock %llu", number, client->worker,
              (unsigned long long)clock);
    plan_step(sim, client);
}

void sim_client_received(sim_t *sim, uint32_t number, uint64_t link, const ps_message_t *message,
                         ps_payload_t *payload)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *plain = NULL;
    sim_client_t *client = &sim->clients[number];
    ps_message_t copy = *message;

    if (client->session == NULL || sim_relay_hears(message)) {
        return;
    }
    plain = sim_filter_received(sim, client, link, &copy, payload);
    ps_session_received(client->session, sim->now_ms, link, &copy, plain, &outbox);
    perform(sim, client, &outbox);
}

void sim_client_tick(sim_t *sim, uint32_t number)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    sim_client_t *client = &sim->clients[number];

    if (client->session == NULL) {
        return;
    }
    client->wake_ms = UINT64_MAX;
    ps_session_tick(client->session, sim->now_ms, &outbox);
    perform(sim, client, &outbox);
}

void sim_client_relinked(sim_t *sim, uint32_t number, uint64_t link)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    sim_client_t *client = &sim->clients[number];

    if (client->session == NULL) {
        return;
    }
    ps_session_relinked(client->session, sim->now_ms, link, &outbox);
    perform(sim, client, &outbox);
}

void sim_client_kill(sim_t *sim, uint32_t number)
{
    sim_client_t *client = &sim->clients[number];

    sim_trace(sim, "client %u is killed", number);
    client->killed = true;
    for (size_t i = 0; i < client->n_links; i++) {
        sim_lane_break(sim, client->conn_of[i]);
    }
    ps_session_destroy(&client->session);
}
