/* SPDX-License-Identifier: Apache-2.0 */
/* Clients: what they ask for, again and again until it ends, and whether what
 * they are told can be. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "sim_cluster.h"

#define RESEND_MS 120
#define CLIENT_PLACE (CLUSTER_NODES_MAX + 1) /* among the cuts */
#define CONN_FIRST 100

/* ---- what it does ---- */

static cluster_op_t *
add_op(cluster_t *self, uint32_t number, ps_kind_t kind)
{
    cluster_client_t *client = &self->clients[number];

    if (client->n_ops == CLUSTER_OPS_MAX) {
        cluster_stop("fewer operations");
    }
    client->ops[client->n_ops] = (cluster_op_t){.kind = kind};
    return &client->ops[client->n_ops++];
}

/* Pushes and pulls; with clocks when the job has them. */
static void
write_script(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    uint32_t n_clocks = self->plan.bsp ? 6 : 1;
    uint32_t n_pushes = 0;
    uint64_t seq = 0;

    client->memory = !self->plan.bsp && ps_rng_below(&self->rng, 4) == 0;
    client->pace_ms =
        ps_rng_below(&self->rng, 2) == 0 ? 0 : ps_rng_below(&self->rng, 120);
    for (uint32_t clock = 0; clock < n_clocks; clock++) {
        uint32_t n = self->plan.bsp
                         ? (uint32_t)ps_rng_below(&self->rng, 4)
                         : 8 + (uint32_t)ps_rng_below(&self->rng, 16);

        for (uint32_t i = 0; i < n; i++) {
            cluster_op_t *push = add_op(self, number, PS_KIND_PUSH);

            push->row = number * CLUSTER_PUSHES_MAX + n_pushes++;
            push->ack = client->memory ? PS_ACK_MEMORY : PS_ACK_DEFAULT;
            push->pull = ps_rng_below(&self->rng, 5) == 0;
            push->seq = ++seq;
            push->clock = clock;
            self->push_clock[push->row] = clock + 1;
            if (!self->plan.bsp && ps_rng_below(&self->rng, 3) == 0) {
                add_op(self, number, PS_KIND_PULL)->after = seq;
            }
        }
        if (self->plan.bsp) {
            cluster_op_t *mark = add_op(self, number, PS_KIND_MARK);
            cluster_op_t *pull = add_op(self, number, PS_KIND_PULL);

            mark->seq = ++seq;
            mark->clock = clock + 1;
            pull->after = seq;
            pull->clock = clock + 1;
        }
    }
    add_op(self, number, PS_KIND_PULL)->clock = self->plan.bsp ? n_clocks : 0;
    client->ops[client->n_ops - 1].after = seq;
    client->window = 1 + ps_rng_below(&self->rng, 4);
}

void
cluster_clients_start(cluster_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_clients; i++) {
        write_script(self, i);
        (void)cluster_at(self, self->now_ms + ps_rng_below(&self->rng, 50),
                         CLUSTER_CLIENT, i);
    }
}

/* ---- sending ---- */

static void
send(cluster_t *self,
     uint32_t number,
     const ps_message_t *message,
     const ps_payload_t *payload)
{
    cluster_send(self, CLIENT_PLACE, self->clients[number].node, false,
                 CONN_FIRST + number, message, payload);
}

static void
say_hello(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    ps_message_t message = {.kind = PS_KIND_HELLO};

    message.hello =
        (ps_msg_hello_t){.version_min = PS_VERSION_MIN,
                         .version_max = PS_VERSION,
                         .client = {{(uint8_t)(number + 1)}},
                         .incarnation = self->nodes[client->node].incarnation,
                         .session = number + 1};
    send(self, number, &message, NULL);
}

#define ADDRESS(number_of_op, client)                      \
    .request = (number_of_op) + 1, .table = CLUSTER_TABLE, \
    .epoch = (client)->epoch
#define WORKER(self, number, op)               \
    .job = (self)->plan.bsp ? CLUSTER_JOB : 0, \
    .worker = (self)->plan.bsp ? (number) : 0, \
    .joins = (self)->plan.bsp ? 1 : 0, .clock = (op)->clock

static void
send_push(cluster_t *self, uint32_t number, size_t at)
{
    const cluster_client_t *client = &self->clients[number];
    const cluster_op_t *op = &client->ops[at];
    uint8_t key[8];
    uint8_t one[8];
    ps_message_t message = {.kind = PS_KIND_PUSH};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;

    message.push = (ps_msg_push_t){
        ADDRESS(at, client),  .seq = op->seq,      WORKER(self, number, op),
        .timeout_ms = 300,    .ack = op->ack,      .pull = op->pull ? 1 : 0,
        .rows = PS_ROWS_LIST, .type = PS_TYPE_I64, .n_rows = 1,
        .n_cols = 1,          .n_values = 1};
    ps_store_u64(key, op->row);
    ps_store_u64(one, 1);
    payload = ps_payload_copy((ps_bytes_t){key, 8}, (ps_bytes_t){NULL, 0},
                              (ps_bytes_t){one, 8});
    if (payload == NULL) {
        cluster_stop("memory for a push");
    }
    send(self, number, &message, payload);
}

static void
send_op(cluster_t *self, uint32_t number, size_t at)
{
    const cluster_client_t *client = &self->clients[number];
    cluster_op_t *op = &self->clients[number].ops[at];
    ps_message_t message = {.kind = op->kind};

    if (op->kind == PS_KIND_PUSH) {
        send_push(self, number, at);
    } else if (op->kind == PS_KIND_MARK) {
        message.mark =
            (ps_msg_mark_t){ADDRESS(at, client), .seq = op->seq,
                            WORKER(self, number, op), .timeout_ms = 300};
        send(self, number, &message, NULL);
    } else {
        message.pull = (ps_msg_pull_t){ADDRESS(at, client),
                                       .after = op->after,
                                       WORKER(self, number, op),
                                       .rows = PS_ROWS_RANGE,
                                       .type = PS_TYPE_I64,
                                       .n_rows = CLUSTER_ROWS,
                                       .n_cols = 1};
        send(self, number, &message, NULL);
    }
    if (!op->sent && op->kind == PS_KIND_PULL) {
        memcpy(op->seen, self->acked, sizeof op->seen);
    }
    op->sent = true;
}

/* A mark waits for every pull before it, and a pull comes alone, so that what
 * it must see is known. */
static bool
may_go(const cluster_client_t *client, size_t at)
{
    if (at >= client->n_done + client->window) {
        return false;
    }
    for (size_t i = client->n_done; i < at; i++) {
        const cluster_op_t *before = &client->ops[i];

        if (!before->done &&
            (before->kind == PS_KIND_PULL ||
             (client->ops[at].kind == PS_KIND_MARK && before->pull))) {
            return false;
        }
    }
    return true;
}

static void
send_new(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];

    while (client->n_done < client->n_ops && client->ops[client->n_done].done) {
        client->n_done++;
    }
    for (size_t i = client->n_done; i < client->n_ops && may_go(client, i);
         i++) {
        if (!client->ops[i].sent && self->now_ms >= client->next_ms) {
            send_op(self, number, i);
            client->sent_ms = self->now_ms;
            client->next_ms = self->now_ms + client->pace_ms;
        }
    }
}

/* Everything that is unanswered, in order. */
static void
send_again(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];

    client->node = self->registry.primary;
    client->epoch = self->registry.epoch;
    client->sent_ms = self->now_ms;
    say_hello(self, number);
    for (size_t i = client->n_done; i < client->n_ops && may_go(client, i);
         i++) {
        if (client->ops[i].sent && !client->ops[i].done) {
            send_op(self, number, i);
        }
    }
}

void
cluster_client_tick(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];

    if (client->broken || client->n_done == client->n_ops) {
        return;
    }
    if (self->now_ms >= client->sent_ms + RESEND_MS) {
        send_again(self, number);
    }
    send_new(self, number);
    (void)cluster_at(self, self->now_ms + 10 + ps_rng_below(&self->rng, 30),
                     CLUSTER_CLIENT, number);
}

/* ---- what it is told ---- */

static void
check_pull(cluster_t *self,
           uint32_t number,
           const cluster_op_t *op,
           ps_bytes_t values)
{
    for (uint32_t row = 0; row < CLUSTER_ROWS; row++) {
        uint64_t value = ps_load_u64(values.data + 8 * row);
        uint64_t clock = self->push_clock[row];

        if (value > 1) {
            cluster_fail(self, "W1: row %u was added to %" PRIu64 " times", row,
                         value);
        } else if (self->plan.bsp && clock > 0 &&
                   value != (clock <= op->clock ? 1 : 0)) {
            cluster_fail(self,
                         "C2: client %u in clock %" PRIu64 " sees %" PRIu64
                         " of row %u, pushed in clock %" PRIu64,
                         number, op->clock + 1, value, row, clock);
        } else if (!self->plan.bsp && value == 0 && op->seen[row]) {
            cluster_fail(self,
                         "W1: row %u was acknowledged, and client %u does not "
                         "see it",
                         row, number);
        }
    }
}

static void
end_push(cluster_t *self, const cluster_op_t *op, uint8_t level)
{
    uint8_t wanted = op->ack == PS_ACK_DEFAULT ? PS_ACK_REPLICA : op->ack;

    if (op->kind != PS_KIND_PUSH) {
        return;
    }
    if (level < wanted) {
        cluster_fail(self, "W2: row %u is acknowledged at level %u, not %u",
                     op->row, level, wanted);
    }
    self->acked[op->row] = self->acked[op->row] || level >= PS_ACK_REPLICA;
}

static cluster_op_t *
op_of(cluster_client_t *client, uint64_t request)
{
    return request == 0 || request > client->n_ops ||
                   client->ops[request - 1].done
               ? NULL
               : &client->ops[request - 1];
}

/* Pushes before the oldest one under way are missing: they were acknowledged
 * at memory, if at all. */
static void
told_gap(cluster_t *self, uint32_t number, const ps_msg_refused_t *refused)
{
    uint64_t expected = refused->detail;
    cluster_client_t *client = &self->clients[number];

    for (size_t i = 0; i < client->n_ops; i++) {
        const cluster_op_t *op = &client->ops[i];

        if (op->done && op->seq >= expected && refused->epoch > op->epoch) {
            client->broken = true;
        }
    }
    if (client->broken && !client->memory) {
        cluster_fail(self,
                     "W1: client %u is asked for seq %" PRIu64
                     ", which was acknowledged",
                     number, expected);
    }
}

static void
told_refusal(cluster_t *self, uint32_t number, const ps_msg_refused_t *refused)
{
    if (refused->status == PSD_GAP) {
        told_gap(self, number, refused);
    } else if (refused->status != PSD_BUSY && refused->status != PSD_NO_TABLE &&
               refused->status != PSD_NO_SESSION &&
               refused->status != PSD_DEADLINE) {
        cluster_fail(self, "client %u is refused: %s", number, refused->text);
    }
}

void
cluster_client_received(cluster_t *self,
                        uint32_t number,
                        const ps_message_t *message,
                        const ps_body_t *body)
{
    cluster_client_t *client = &self->clients[number];
    cluster_op_t *op = NULL;

    if (client->broken) {
        return;
    }
    if (message->kind == PS_KIND_ACK) {
        op = op_of(client, message->ack.request);
        if (op != NULL && message->ack.epoch >= client->epoch && !op->pull) {
            end_push(self, op, message->ack.level);
            op->epoch = message->ack.epoch;
            op->done = true;
        }
    } else if (message->kind == PS_KIND_VALUES) {
        op = op_of(client, message->values.request);
        if (op != NULL && message->values.epoch >= client->epoch) {
            if (op->kind == PS_KIND_PULL) {
                check_pull(self, number, op, body->values);
            } else {
                end_push(self, op, message->values.level);
            }
            op->epoch = message->values.epoch;
            op->done = true;
        }
    } else if (message->kind == PS_KIND_REFUSED) {
        told_refusal(self, number, &message->refused);
    } else if (message->kind == PS_KIND_PARKED) {
        cluster_trace(self, "  client %u: %s", number, message->parked.text);
    }
    send_new(self, number);
}

void
cluster_clients_finish(cluster_t *self)
{
    const cluster_registry_t *registry = &self->registry;
    uint32_t n_in_sync = 0;

    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        n_in_sync += registry->in_sync[i] && self->nodes[i].shard != NULL;
    }
    if (self->nodes[registry->primary].shard == NULL || registry->fencing ||
        n_in_sync < 2) {
        return; /* what waits for a second copy waits for good */
    }
    for (uint32_t i = 0; i < self->plan.n_clients; i++) {
        const cluster_client_t *client = &self->clients[i];

        if (client->memory && self->n_promotions > 0) {
            continue; /* it may wait behind a push that was lost */
        }
        if (!client->broken && client->n_done < client->n_ops) {
            cluster_fail(self, "client %u never ends operation %zu of %zu", i,
                         client->n_done, client->n_ops);
        }
    }
}
