/* SPDX-License-Identifier: Apache-2.0 */
/* A client: the core's session, which follows its script and asks the registry
 * when a shard is silent. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "sim_cluster.h"

#define RESEND_MS 100
#define CLOSING_MS 500 /* time for the nodes to learn that a worker is lost */
#define SILENCE_MS 100 /* silence of a shard, after which it asks the registry */
#define ASK_MS 50      /* until it asks again */
#define TABLE_MS 100   /* until all nodes know a new table */
#define BULK_BYTES 200 /* a pull's answer is larger */

static void plan_line(cluster_t *self, uint32_t number)
{
    const cluster_client_t *client = &self->clients[number];

    if (!client->finished) {
        (void)cluster_at(self, self->now_ms + 1 + cluster_below(self, client->pace_ms),
                         CLUSTER_CLIENT_LINE, number);
    }
}

/* A shard is silent: its partitions may have moved. */
static void ask_in_doubt(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    uint32_t tables[PS_DOUBT_MAX];
    ps_silent_t silent[PS_SILENT_MAX];
    size_t n = 0;
    size_t n_silent = 0;
    uint64_t since_ms = ps_session_doubt(client->session, tables, &n);

    if (since_ms == UINT64_MAX || self->now_ms < since_ms + SILENCE_MS ||
        self->now_ms < client->ask_ms) {
        return;
    }
    client->ask_ms = self->now_ms + ASK_MS;
    n_silent = ps_session_silent(client->session, silent);
    cluster_trace(self, "client %u asks the registry", number);
    for (size_t i = 0; i < n_silent; i++) {
        cluster_post(self, &(cluster_letter_t){.kind = CLUSTER_ASK,
                                               .from = number,
                                               .to = CLUSTER_REGISTRY,
                                               .incarnation = silent[i].incarnation,
                                               .shard = silent[i].shard,
                                               .number = self->now_ms - silent[i].since_ms});
    }
}

static void plan_tick(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    uint64_t at_ms = ps_session_deadline(client->session);
    uint32_t tables[PS_DOUBT_MAX];
    size_t n = 0;

    if (ps_session_doubt(client->session, tables, &n) != UINT64_MAX &&
        at_ms > self->now_ms + ASK_MS) {
        at_ms = self->now_ms + ASK_MS;
    }
    if (at_ms < client->wake_ms) {
        client->wake_ms = at_ms;
        (void)cluster_at(self, at_ms, CLUSTER_CLIENT_TICK, number);
    }
}

/* ---- how operations end ---- */

static void end_op(cluster_t *self, uint32_t number, const ps_effect_t *effect)
{
    cluster_client_t *client = &self->clients[number];
    const ps_message_t *message = &effect->message;
    cluster_op_t *op = &client->ops[effect->to - 1];
    const cluster_line_t *line = &client->lines[op->line];

    if (op->done) {
        cluster_fail(self, "client %u: operation %" PRIu64 " ended twice", number, effect->to);
    }
    op->done = true;
    client->n_open--;
    self->n_answers++;
    cluster_trace(self, "client %u: op %" PRIu64 " ends as %s", number, effect->to,
                  ps_kind_name(message->kind));
    if (ps_session_broken(client->session, NULL) != PSD_OK) {
        return; /* all of them end like it */
    }
    if (message->kind == PS_KIND_REFUSED && message->refused.status == PSD_WORKER_LOST) {
        cluster_worker_lost(self, number, op->joins);
        plan_line(self, number);
        return;
    }
    if (message->kind == PS_KIND_REFUSED) {
        cluster_fail(self, "client %u: operation %" PRIu64 " is refused: %s", number, effect->to,
                     message->refused.text);
    } else if (op->seq > 0) {
        cluster_check_seq(self, number, op,
                          message->kind == PS_KIND_ACK ? message->ack.level
                                                       : message->values.level);
    }
    if (line->kind == CLUSTER_PUSH) {
        cluster_check_push(
            self, line, message->kind == PS_KIND_ACK ? message->ack.level : message->values.level);
    } else if (line->kind == CLUSTER_PULL) {
        cluster_check_pull(self, number, op, message, effect->payload);
    }
    plan_line(self, number);
}

static void open_link(cluster_t *self, uint32_t number, uint64_t link)
{
    cluster_client_t *client = &self->clients[number];

    cluster_need(link == client->n_links && link < CLUSTER_LINKS_MAX, "links in order");
    client->conn_of[link] = cluster_connect(self, (cluster_conn_t){.client = number, .link = link},
                                            ps_session_link(client->session, link)->tcp);
    client->n_links++;
    if (!ps_session_link_is_bulk(client->session, link)) {
        ps_session_allow_bulk(client->session, link);
    }
}

static void look_whether_broken(cluster_t *self, uint32_t number)
{
    const char *why = "";
    psd_status_t status = ps_session_broken(self->clients[number].session, &why);
    /* A restarted registry counts the silence from its start. */
    uint64_t from_ms = self->now_ms > CLUSTER_CALM_MS ? self->now_ms : CLUSTER_CALM_MS;

    if (status != PSD_OK && !self->clients[number].finished) {
        cluster_trace(self, "client %u is broken: %s", number, why);
        cluster_check_broken(self, number, status, why);
        self->clients[number].finished = true;
        self->clients[number].lost_ms = self->plan.job ? from_ms + CLUSTER_LOST_MS + CLOSING_MS : 0;
    }
}

/* A partition has evicted its session. */
static void ask_identity(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    uint32_t table = 0;
    uint32_t partition = 0;

    if (!client->asks_identity && ps_session_wants_identity(client->session, &table, &partition)) {
        cluster_trace(self, "client %u was forgotten by partition %u", number, partition);
        client->asks_identity = true;
        (void)cluster_at(self, self->now_ms + 1 + cluster_below(self, 50), CLUSTER_IDENTITY,
                         number);
    }
}

void cluster_client_identity(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    uint32_t n = ++client->n_more;
    const ps_identity_t added = {.client = {.bytes = {2, (uint8_t)number, (uint8_t)n}},
                                 .session = number + 1 + (uint64_t)n * CLUSTER_SESSIONS_STEP};

    cluster_need(added.session <= CLUSTER_SESSIONS_MAX, "a session more");
    client->asks_identity = false;
    self->n_identities++;
    cluster_need(ps_session_add_identity(client->session, &added, NULL) == PSD_OK,
                 "memory for an identity");
    cluster_client_tick(self, number);
}

/* All of it has ended. */
static void say_bye(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];

    cluster_trace(self, "client %u says BYE", number);
    client->ended = true;
    for (uint64_t i = 0; i < client->n_links; i++) {
        const ps_message_t bye = {.kind = PS_KIND_BYE,
                                  .bye = {.session = ps_session_number(client->session, i)}};

        cluster_send(self, client->conn_of[i], false, &bye, NULL);
    }
    cluster_send_late(self, number);
}

static void perform(cluster_t *self, uint32_t number, const ps_outbox_t *outbox)
{
    cluster_client_t *client = &self->clients[number];

    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];

        if (effect->kind == PS_EFFECT_OPEN) {
            open_link(self, number, effect->to);
        } else if (effect->kind == PS_EFFECT_SEND) {
            cluster_send(self, client->conn_of[effect->to], false, &effect->message,
                         effect->payload);
        } else if (effect->kind == PS_EFFECT_DONE) {
            end_op(self, number, effect);
        }
    }
    look_whether_broken(self, number);
    ask_identity(self, number);
    ask_in_doubt(self, number);
    plan_tick(self, number);
}

/* ---- its script ---- */

static cluster_op_t *add_op(cluster_t *self, uint32_t number, uint32_t partition)
{
    cluster_client_t *client = &self->clients[number];
    cluster_op_t *op = NULL;

    cluster_need(ps_grow(&client->ops, &client->capacity, client->n_ops + 1, sizeof *client->ops),
                 "memory for an operation");
    op = &client->ops[client->n_ops++];
    *op = (cluster_op_t){.line = client->at,
                         .partition = partition,
                         .clock = client->clock,
                         .joins = client->worker.joins};
    op->seq = client->lines[client->at].kind == CLUSTER_PULL ? 0 : ++client->n_seqs[partition];
    client->n_open++;
    return op;
}

static ps_payload_t *fill_push(cluster_t *self, const cluster_line_t *line, ps_op_start_t *start)
{
    uint8_t key[8];
    uint8_t one[8];
    ps_payload_t *payload = NULL;

    ps_store_u64(key, (uint64_t)line->partition * CLUSTER_ROWS + line->row);
    ps_store_u64(one, 1);
    payload = ps_payload_copy((ps_bytes_t){key, 8}, (ps_bytes_t){NULL, 0}, (ps_bytes_t){one, 8});
    cluster_need(payload != NULL, "memory for a push");
    start->kind = PS_KIND_PUSH;
    start->slice = (ps_slice_t){.rows = PS_ROWS_LIST,
                                .cols = PS_COLS_ALL,
                                .type = PS_TYPE_I64,
                                .n_rows = 1,
                                .n_cols = 1,
                                .n_values = 1};
    start->ack = line->ack;
    start->pull = line->pull;
    start->payload = payload;
    (void)self;
    return payload;
}

/* The present push is the last one of its clock, and may also be its mark. */
static bool ends_clock(const cluster_t *self, uint32_t number)
{
    const cluster_client_t *client = &self->clients[number];
    const cluster_line_t *line = &client->lines[client->at];

    return self->plan.job && !client->reader && line->kind == CLUSTER_PUSH && !line->pull &&
           line->ack == PS_ACK_DEFAULT && client->at + 1 < client->n_lines &&
           line[1].kind == CLUSTER_MARK && (number + client->at) % 2 == 0;
}

static void start_op(cluster_t *self, uint32_t number, uint32_t partition)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    cluster_client_t *client = &self->clients[number];
    const cluster_line_t *line = &client->lines[client->at];
    cluster_op_t *op = add_op(self, number, partition);
    ps_op_start_t start = {.kind = PS_KIND_MARK, .table = self->table, .partition = partition};
    uint64_t id = 0;

    if (self->plan.job && !client->reader) {
        start.worker = (ps_op_worker_t){.job = self->job,
                                        .worker = number,
                                        .joins = client->worker.joins,
                                        .clock = client->clock};
    }
    if (line->kind == CLUSTER_PUSH) {
        payload = fill_push(self, line, &start);
        start.marks = ends_clock(self, number);
        self->pushed[partition][line->row].started = true;
        self->pushed[partition][line->row].clock = client->clock;
        self->pushed[partition][line->row].doubtful =
            number < CLUSTER_WORKERS_MAX && client->worker.joins > 0 &&
            self->facts.lost[number] >= client->worker.joins;
    } else if (line->kind == CLUSTER_PULL) {
        start.kind = PS_KIND_PULL;
        start.slice = (ps_slice_t){.rows = PS_ROWS_RANGE,
                                   .cols = PS_COLS_ALL,
                                   .type = PS_TYPE_I64,
                                   .first_row = (uint64_t)partition * CLUSTER_ROWS,
                                   .n_rows = CLUSTER_ROWS,
                                   .n_cols = 1};
        cluster_check_begins(self, number, op);
    }
    cluster_trace(self,
                  "client %u, clock %" PRIu64 ": op %zu, %s partition %u, row "
                  "%u",
                  number, client->clock, client->n_ops, ps_kind_name(start.kind), partition,
                  line->row);
    cluster_need(ps_session_start(client->session, self->now_ms, &start, &outbox, &id, NULL) ==
                         PSD_OK &&
                     id == client->n_ops,
                 "an operation that starts");
    perform(self, number, &outbox);
}

static void do_line(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    const cluster_line_t *line = &client->lines[client->at];
    uint32_t marked = CLUSTER_NOBODY;

    if (ends_clock(self, number)) {
        marked = line->partition;
        start_op(self, number, marked);
        client->at++;
        line++;
    }
    if (line->kind == CLUSTER_MARK) {
        client->clock++; /* the mark says that this clock is finished */
        for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
            if (i != marked) {
                start_op(self, number, i);
            }
        }
    } else if (line->kind > CLUSTER_WAIT) {
        cluster_worker_line(self, number, line);
    } else if (line->kind != CLUSTER_WAIT) {
        start_op(self, number, line->partition);
    }
}

void cluster_client_line(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    bool waits = client->n_open >= client->window;

    if (client->finished) {
        return;
    }
    if (client->at == client->n_lines) {
        client->finished = client->n_open == 0 && client->worker.asked == 0;
        if (client->finished && !client->reader) {
            say_bye(self, number);
        }
        return;
    }
    if (!cluster_worker_is_ready(self, number)) {
        return;
    }
    if (client->lines[client->at].kind == CLUSTER_WAIT ||
        client->lines[client->at].kind == CLUSTER_LEAVE) {
        waits = client->n_open > 0;
    }
    if (!waits) { /* the end of each operation comes here again */
        do_line(self, number);
        client->at++;
        plan_line(self, number);
    }
}

/* ---- events ---- */

static void learn(cluster_t *self, uint32_t number, const ps_route_t *routes)
{
    cluster_need(ps_session_routes(self->clients[number].session, self->table, routes,
                                   self->plan.n_partitions, NULL) == PSD_OK,
                 "routes that are taken");
}

void cluster_client_start(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    ps_session_args_t args = {.cluster = {.bytes = {1}},
                              .client = {.bytes = {2, (uint8_t)number}},
                              .session = number + 1,
                              .bulk_bytes = number % 2 == 0 ? BULK_BYTES : 0,
                              .resend_ms = RESEND_MS};

    cluster_need(ps_session_new(&args, &client->session, NULL) == PSD_OK, "memory for a session");
    client->wake_ms = UINT64_MAX;
    cluster_script_make(self, number);
    learn(self, number, cluster_registry_table(self)->routes);
    (void)cluster_at(self, self->now_ms + TABLE_MS, CLUSTER_CLIENT_LINE, number);
    cluster_worker_start(self, number);
}

void cluster_clients_start(cluster_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_clients; i++) {
        cluster_client_start(self, i);
    }
}

void cluster_clients_done(cluster_t *self)
{
    for (uint32_t i = 0; i <= CLUSTER_CLIENTS_MAX; i++) {
        ps_session_destroy(&self->clients[i].session);
        for (size_t k = 0; k < self->clients[i].n_late; k++) {
            ps_buffer_done(&self->clients[i].late[k].bytes);
        }
        ps_free(self->clients[i].ops);
        self->clients[i].ops = NULL;
    }
}

void cluster_client_tick(cluster_t *self, uint32_t number)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    cluster_client_t *client = &self->clients[number];

    client->wake_ms = UINT64_MAX;
    if (client->ended) {
        return;
    }
    ps_session_tick(client->session, self->now_ms, &outbox);
    perform(self, number, &outbox);
}

void cluster_client_relinked(cluster_t *self, uint32_t number, uint64_t link)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    if (self->clients[number].ended) {
        return;
    }
    ps_session_relinked(self->clients[number].session, self->now_ms, link, &outbox);
    perform(self, number, &outbox);
}

void cluster_client_received(cluster_t *self, uint32_t number, uint64_t link,
                             const ps_message_t *message, ps_payload_t *payload)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    if (self->clients[number].ended) {
        return;
    }
    ps_session_received(self->clients[number].session, self->now_ms, link, message, payload,
                        &outbox);
    perform(self, number, &outbox);
}

/* The registry sends the routes. */
void cluster_client_letter(cluster_t *self, const cluster_letter_t *letter)
{
    for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
        cluster_trace(self, "client %u is told partition %u, epoch %" PRIu64 ": node %d",
                      letter->to, i, letter->routes[i].epoch,
                      (int)cluster_node_of(self, letter->routes[i].incarnation));
    }
    learn(self, letter->to, letter->routes);
    cluster_client_tick(self, letter->to);
}
