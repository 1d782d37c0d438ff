/* SPDX-License-Identifier: Apache-2.0 */
/* Time, and the loop. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim_cluster_lead.h"

#define QUIET_MS 600      /* from the last change to the end … */
#define LEVEL_MS 5000     /* … while a copy does not know of it */
#define EVENTS_MAX 400000 /* more than any world needs */
#define CHOICE_MS 500     /* for members to choose one that leads */

void cluster_stop(const char *what)
{
    (void)fprintf(stderr, "the simulator needs %s\n", what);
    abort();
}

void cluster_trace(cluster_t *self, const char *format, ...)
{
    va_list args;

    if (self->trace == NULL) {
        return;
    }
    (void)fprintf(self->trace, "[%6" PRIu64 "] ", self->now_ms);
    va_start(args, format);
    (void)vfprintf(self->trace, format, args);
    va_end(args);
    (void)fputc('\n', self->trace);
}

void cluster_fail(cluster_t *self, const char *format, ...)
{
    va_list args;

    if (self->failed) {
        return;
    }
    self->failed = true;
    va_start(args, format);
    (void)vsnprintf(self->violation, sizeof self->violation, format, args);
    va_end(args);
    cluster_trace(self, "VIOLATION %s", self->violation);
}

/* ---- time ---- */

static bool is_before(const cluster_event_t *a, const cluster_event_t *b)
{
    return a->at_ms < b->at_ms || (a->at_ms == b->at_ms && a->order < b->order);
}

static size_t sift_up(cluster_t *self, size_t i)
{
    cluster_event_t *events = self->events;

    while (i > 0 && is_before(&events[i], &events[(i - 1) / 2])) {
        cluster_event_t parent = events[(i - 1) / 2];

        events[(i - 1) / 2] = events[i];
        events[i] = parent;
        i = (i - 1) / 2;
    }
    return i;
}

static void sift_down(cluster_t *self)
{
    cluster_event_t *events = self->events;
    size_t i = 0;

    for (;;) {
        size_t least = i;

        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < self->n_events; k++) {
            least = is_before(&events[k], &events[least]) ? k : least;
        }
        if (least == i) {
            return;
        }
        cluster_event_t child = events[least];

        events[least] = events[i];
        events[i] = child;
        i = least;
    }
}

/* Puts back an event, or a new one; borrowed until the next call. */
static cluster_event_t *put(cluster_t *self, const cluster_event_t *event)
{
    cluster_need(ps_grow(&self->events, &self->capacity, self->n_events + 1, sizeof *self->events),
                 "memory for an event");
    self->events[self->n_events++] = *event;
    return &self->events[sift_up(self, self->n_events - 1)];
}

cluster_event_t *cluster_at(cluster_t *self, uint64_t at_ms, cluster_event_kind_t kind, uint64_t a)
{
    cluster_event_t event = {.at_ms = at_ms > self->now_ms ? at_ms : self->now_ms,
                             .order = self->order++,
                             .kind = kind,
                             .a = a};

    return put(self, &event);
}

static bool next_event(cluster_t *self, cluster_event_t *ret_event)
{
    if (self->n_events == 0) {
        return false;
    }
    *ret_event = self->events[0];
    self->events[0] = self->events[--self->n_events];
    sift_down(self);
    return true;
}

/* ---- the loop ---- */

/* Where it happens. */
static uint32_t place_of(const cluster_t *self, const cluster_event_t *event)
{
    switch (event->kind) {
    case CLUSTER_MESSAGE:
    case CLUSTER_GONE:
        if (event->b == 0) {
            return self->conns[event->a].node;
        }
        return self->conns[event->a].client != CLUSTER_NOBODY ? CLUSTER_CLIENTS
                                                              : self->conns[event->a].from_node;
    case CLUSTER_LETTER:
        if (event->letter->to == CLUSTER_REGISTRY && cluster_is_replicated(self)) {
            return event->letter->member;
        }
        return cluster_is_to_client(event->letter->kind) ? CLUSTER_CLIENTS : event->letter->to;
    case CLUSTER_SHARD_TICK:
    case CLUSTER_BEAT_TIME:
    case CLUSTER_DISK_TURN:
    case CLUSTER_IMAGE_TURN:
        return (uint32_t)event->a;
    case CLUSTER_QUORUM:
    case CLUSTER_MEMBER_TICK:
    case CLUSTER_MEMBER_FLUSH:
    case CLUSTER_MEMBER_TAKE:
    case CLUSTER_DATABASE:
    case CLUSTER_DATABASE_SENT:
        return (uint32_t)event->a;
    case CLUSTER_REGISTRY_TICK:
        return cluster_is_replicated(self) ? (uint32_t)event->a : CLUSTER_REGISTRY;
    case CLUSTER_CHECKPOINT:
        return cluster_is_replicated(self) ? CLUSTER_CLIENTS : CLUSTER_REGISTRY;
    case CLUSTER_CLIENT_TICK:
    case CLUSTER_CLIENT_LINE:
    case CLUSTER_ALIVE_TIME:
    case CLUSTER_ASK_AGAIN:
    case CLUSTER_IDENTITY:
    case CLUSTER_REQUEST:
    case CLUSTER_FAULTS:
    case CLUSTER_NODE_START:
    default:
        return CLUSTER_CLIENTS;
    }
}

static void deliver(cluster_t *self, cluster_event_t *event)
{
    const cluster_letter_t *letter = event->letter;
    bool to_client = cluster_is_to_client(letter->kind);

    if (letter->from == CLUSTER_REGISTRY && !cluster_is_of_client(letter->kind)) {
        self->heard_ms[to_client ? CLUSTER_CLIENTS : letter->to] = self->now_ms;
    }
    if (letter->kind == CLUSTER_ROUTES) {
        cluster_client_letter(self, letter);
    } else if (letter->kind == CLUSTER_GRANT) {
        cluster_request_answer(self, letter);
    } else if (to_client) {
        cluster_worker_letter(self, letter);
    } else if (letter->to != CLUSTER_REGISTRY) {
        cluster_node_letter(self, letter);
    } else if (cluster_lead_takes(self, event)) {
        cluster_registry_letter(self, letter);
    }
}

/* Of a member that lives still. */
static void handle_member(cluster_t *self, const cluster_event_t *event)
{
    uint32_t at = (uint32_t)event->a;

    if (event->kind == CLUSTER_QUORUM) {
        cluster_member_message(self, at, (ps_bytes_t){event->bytes.data, event->bytes.size});
    } else if (event->kind == CLUSTER_DATABASE) {
        cluster_take_database(self, event);
    } else if (self->members[at].life != event->incarnation || event->incarnation == 0) {
        return;
    } else if (event->kind == CLUSTER_MEMBER_TICK) {
        cluster_member_tick(self, at);
    } else if (event->kind == CLUSTER_MEMBER_FLUSH) {
        cluster_member_flushed(self, at);
    } else if (event->kind == CLUSTER_DATABASE_SENT) {
        cluster_db_t db;

        memcpy(&db, event->bytes.size > 0 ? event->bytes.data : (const uint8_t *)"",
               event->bytes.size);
        cluster_member_sent(self, at, (uint32_t)event->b, event->bytes.size > 0 ? &db : NULL);
    } else {
        cluster_member_take(self, at);
    }
}

static void gone(cluster_t *self, const cluster_event_t *event)
{
    const cluster_conn_t *conn = &self->conns[event->a];
    ps_event_t told = {.kind = PS_EVENT_GONE, .conn = event->a};

    if (event->b == 0) {
        cluster_node_step(self, conn->node, conn->shard, &told);
    } else if (conn->client != CLUSTER_NOBODY) {
        cluster_client_relinked(self, conn->client, conn->link);
    } else if (self->nodes[conn->from_node].incarnation == conn->from_incarnation) {
        told.conn = conn->link;
        cluster_node_step(self, conn->from_node, conn->from_shard, &told);
    }
}

/* Of a node that lives still. */
static void handle_turn(cluster_t *self, const cluster_event_t *event)
{
    if (self->nodes[event->a].incarnation != event->incarnation) {
        return;
    }
    if (event->kind == CLUSTER_DISK_TURN) {
        cluster_disk_turn(self, (uint32_t)event->a, (uint32_t)event->b);
    } else {
        cluster_images_turn(self, (uint32_t)event->a, (uint32_t)event->b);
    }
}

static void handle(cluster_t *self, cluster_event_t *event)
{
    switch ((int)event->kind) {
    case CLUSTER_MESSAGE:
        cluster_arrive(self, event);
        break;
    case CLUSTER_LETTER:
        deliver(self, event);
        break;
    case CLUSTER_SHARD_TICK:
        cluster_node_tick(self, (uint32_t)event->a, (uint32_t)event->b);
        break;
    case CLUSTER_CLIENT_TICK:
        cluster_client_tick(self, (uint32_t)event->a);
        break;
    case CLUSTER_ALIVE_TIME:
        cluster_worker_alive(self, (uint32_t)event->a);
        break;
    case CLUSTER_ASK_AGAIN:
        cluster_worker_again(self, (uint32_t)event->a, event->b);
        break;
    case CLUSTER_CLIENT_LINE:
        cluster_client_line(self, (uint32_t)event->a);
        break;
    case CLUSTER_IDENTITY:
        cluster_client_identity(self, (uint32_t)event->a);
        break;
    case CLUSTER_REGISTRY_TICK:
        if (cluster_lead_takes(self, event)) {
            cluster_registry_tick(self);
        }
        break;
    case CLUSTER_REQUEST:
        cluster_request_time(self);
        break;
    case CLUSTER_BEAT_TIME:
        if (self->nodes[event->a].incarnation == event->b) {
            cluster_node_beat(self, (uint32_t)event->a);
        }
        break;
    case CLUSTER_GONE:
        gone(self, event);
        break;
    case CLUSTER_FAULTS:
        cluster_faults(self);
        break;
    case CLUSTER_CHECKPOINT:
        if (cluster_lead_takes(self, event)) {
            cluster_checkpoint_time(self);
        }
        break;
    case CLUSTER_DISK_TURN:
    case CLUSTER_IMAGE_TURN:
        handle_turn(self, event);
        break;
    case CLUSTER_NODE_START:
        if (self->nodes[event->a].starts) {
            cluster_node_start(self, (uint32_t)event->a);
        }
        break;
    default:
        handle_member(self, event);
    }
}

/* ---- start and end ---- */

/* One leads, and all nodes know what there is. */
static bool is_ready(const cluster_t *self)
{
    size_t n = 0;

    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        n += self->nodes[i].alive ? 1 : 0;
    }
    return self->registry->machine != NULL && !self->registry->waits &&
           ps_overseer_n_nodes(self->registry->overseer) == n && cluster_registry_is_settled(self);
}

/* Its members choose one that leads, before anything goes wrong. */
static void choose_leader(cluster_t *self)
{
    while (!is_ready(self) && cluster_step(self)) {
        cluster_registry_newest(self);
    }
    self->begins = false;
    cluster_at(self, self->now_ms, CLUSTER_REQUEST, 0);
}

static void start(cluster_t *self)
{
    self->now_ms = CLUSTER_START_MS - (cluster_is_replicated(self) ? CHOICE_MS : 0);
    if (self->trace != NULL) {
        cluster_plan_print(&self->plan, self->trace);
    }
    self->begins = cluster_is_replicated(self);
    cluster_registry_begin(self);
    if (cluster_is_replicated(self)) {
        choose_leader(self);
    }
    cluster_faults_start(self);
    cluster_checkpoint_start(self);
    cluster_clients_start(self);
}

static void done(cluster_t *self)
{
    for (size_t i = 0; i < self->n_events; i++) {
        cluster_event_done(&self->events[i]);
    }
    ps_free(self->events);
    ps_free(self->conns);
    self->events = NULL;
    self->conns = NULL;
    cluster_nodes_done(self);
    cluster_registry_done(self);
    cluster_members_done(self);
    cluster_clients_done(self);
}

/* As many copies are in sync as wanted, and know it. */
static bool is_whole(const cluster_t *self)
{
    const ps_table_t *table = cluster_registry_table(self);

    for (uint32_t i = 0; table != NULL && i < self->plan.n_partitions; i++) {
        const ps_copies_t *copies = &table->copies[i];

        if (copies->fenced || ps_copies_n_whole(copies) < self->plan.replicas) {
            return false;
        }
    }
    return table != NULL;
}

static bool all_finished(const cluster_t *self, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!self->clients[i].finished || self->now_ms < self->clients[i].lost_ms) {
            return false;
        }
    }
    return true;
}

/* What a job's workers pushed in a clock that they did not finish is there for all when the
 * shards know that the job has ended. */
static bool all_know_the_end(const cluster_t *self)
{
    return !self->plan.job ||
           (self->registry->overseer != NULL && cluster_registry_is_settled(self));
}

/* The last one reads everything when all others have finished. */
static bool is_over(cluster_t *self)
{
    if (self->failed || self->now_ms < CLUSTER_CALM_MS || !is_whole(self) ||
        !all_finished(self, self->plan.n_clients) || (!self->reading && !all_know_the_end(self))) {
        return self->failed;
    }
    if (!self->reading) {
        self->reading = true;
        cluster_client_start(self, self->plan.n_clients);
    }
    if (!self->clients[self->plan.n_clients].finished || !cluster_members_are_level(self)) {
        return false;
    }
    return self->now_ms >=
           self->changed_ms + (cluster_copies_are_level(self) ? QUIET_MS : LEVEL_MS);
}

/* Clients that have not finished, and why. */
static void say_what_waits(cluster_t *self)
{
    char text[300] = "";
    size_t used = 0;

    for (uint32_t i = 0; i <= self->plan.n_clients; i++) {
        const cluster_client_t *client = &self->clients[i];

        for (size_t k = 0; k < client->n_ops && used + 120 < sizeof text; k++) {
            if (!client->ops[k].done) {
                used += (size_t)snprintf(text + used, sizeof text - used,
                                         "; client %u op %zu: %.80s", i, k + 1,
                                         ps_session_reason(client->session, self->now_ms, k + 1));
                break;
            }
        }
    }
    cluster_fail(self, "A4: not at its end%s%s", is_whole(self) ? "" : ", copies are missing",
                 text);
    if (!cluster_members_are_level(self)) {
        cluster_trace(self, "members of the registry are late");
    }
}

/* When it can happen; now_ms: now. */
static uint64_t possible_ms(const cluster_t *self, const cluster_event_t *event)
{
    uint64_t frozen_ms = cluster_frozen(self, place_of(self, event));
    bool is_of_member = event->kind == CLUSTER_QUORUM || event->kind == CLUSTER_MEMBER_TICK ||
                        event->kind == CLUSTER_DATABASE || event->kind == CLUSTER_DATABASE_SENT;
    uint64_t busy_ms = is_of_member ? cluster_member_busy(self, (uint32_t)event->a) : 0;

    if (frozen_ms != 0) {
        return frozen_ms;
    }
    return busy_ms == 0 || busy_ms > self->now_ms ? busy_ms : self->now_ms + 1;
}

void cluster_put(cluster_t *self, cluster_event_t *event, uint64_t at_ms)
{
    event->at_ms = at_ms;
    (void)put(self, event);
}

bool cluster_step(cluster_t *self)
{
    cluster_event_t event;
    uint64_t at_ms = 0;

    if (!next_event(self, &event)) {
        cluster_fail(self, "nothing happens any more");
        return false;
    }
    self->now_ms = event.at_ms;
    at_ms = possible_ms(self, &event);
    if (at_ms != 0) {
        cluster_put(self, &event, at_ms);
        return true;
    }
    cluster_registry_newest(self);
    handle(self, &event);
    cluster_registry_newest(self);
    cluster_event_done(&event);
    if (++self->n_handled > EVENTS_MAX || self->now_ms > CLUSTER_END_MS) {
        say_what_waits(self);
    }
    return !self->failed;
}

const char *cluster_run(const cluster_plan_t *plan, FILE *trace, cluster_t *self)
{
    memset(self, 0, sizeof *self);
    self->plan = *plan;
    self->rng.state = ~plan->seed + (plan->luck << 32);
    self->trace = trace;
    self->registry = &self->registries[0];
    start(self);
    while (!is_over(self) && cluster_step(self)) {
        /* the world goes on */
    }
    if (!self->failed) {
        cluster_check_copies(self);
    }
    done(self);
    return self->failed ? self->violation : NULL;
}
