/* SPDX-License-Identifier: Apache-2.0 */
/* What a seed means, time, the network between all, and the loop. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim_cluster.h"
#include "wire/message.h"

#define EVENTS_MAX 100000 /* more than any world needs */

void
cluster_stop(const char *what)
{
    (void)fprintf(stderr, "the simulator needs %s\n", what);
    abort();
}

void
cluster_trace(cluster_t *self, const char *format, ...)
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

void
cluster_fail(cluster_t *self, const char *format, ...)
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

cluster_event_t *
cluster_at(cluster_t *self,
           uint64_t at_ms,
           cluster_event_kind_t kind,
           uint32_t to)
{
    cluster_event_t *event = NULL;

    if (!ps_grow(&self->events, &self->capacity, self->n_events + 1,
                 sizeof *self->events)) {
        cluster_stop("memory for an event");
    }
    event = &self->events[self->n_events++];
    *event = (cluster_event_t){
        .at_ms = at_ms, .order = self->order++, .kind = kind, .to = to};
    return event;
}

static void
event_done(cluster_event_t *event)
{
    ps_buffer_done(&event->bytes);
    ps_free(event->map);
    event->map = NULL;
}

static bool
next_event(cluster_t *self, cluster_event_t *ret_event)
{
    size_t first = 0;

    for (size_t i = 1; i < self->n_events; i++) {
        const cluster_event_t *a = &self->events[i];
        const cluster_event_t *b = &self->events[first];

        if (a->at_ms < b->at_ms ||
            (a->at_ms == b->at_ms && a->order < b->order)) {
            first = i;
        }
    }
    if (self->n_events == 0) {
        return false;
    }
    *ret_event = self->events[first];
    self->events[first] = self->events[--self->n_events];
    return true;
}

/* ---- network ---- */

static bool
is_calm(const cluster_t *self)
{
    return self->now_ms >= CLUSTER_CALM_MS;
}

uint64_t
cluster_way(cluster_t *self, uint32_t from, uint32_t to)
{
    const cluster_plan_t *plan = &self->plan;

    for (size_t i = 0; i < 2; i++) {
        if (plan->cut_from[i] == from && plan->cut_to[i] == to &&
            self->now_ms >= plan->cut_ms[i] &&
            self->now_ms < plan->cut_end_ms[i]) {
            return 0;
        }
    }
    return self->now_ms + 1 + ps_rng_below(&self->rng, plan->delay_ms);
}

static void
put(ps_buffer_t *bytes, ps_bytes_t part)
{
    if (part.size > 0 && !ps_buffer_append(bytes, part.data, part.size)) {
        cluster_stop("memory for a message");
    }
}

static void
put_message(ps_buffer_t *bytes,
            const ps_message_t *message,
            const ps_payload_t *payload)
{
    uint8_t header[PS_HEADER_MAX];
    size_t size = ps_message_encode(message, header);

    put(bytes, (ps_bytes_t){header, size});
    if (payload != NULL) {
        put(bytes, payload->keys);
        put(bytes, payload->index);
        for (size_t i = 0; i < payload->n_spans; i++) {
            put(bytes, payload->spans[i]);
        }
    }
}

void
cluster_send(cluster_t *self,
             uint32_t from,
             uint32_t to,
             bool to_client,
             uint64_t conn,
             const ps_message_t *message,
             const ps_payload_t *payload)
{
    uint32_t n =
        !is_calm(self) && ps_rng_below(&self->rng, 1000) < self->plan.repeat
            ? 2
            : 1;

    if (!is_calm(self) && ps_rng_below(&self->rng, 1000) < self->plan.loss) {
        n = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at_ms =
            cluster_way(self, from, to_client ? CLUSTER_NODES_MAX + 1 : to);
        cluster_event_t *event = NULL;

        if (at_ms != 0) {
            event = cluster_at(self, at_ms, CLUSTER_MESSAGE, to);
            event->to_client = to_client;
            event->conn = conn;
            event->sender = from;
            put_message(&event->bytes, message, payload);
        }
    }
}

static void
arrive(cluster_t *self, const cluster_event_t *event)
{
    ps_bytes_t frame = {event->bytes.data, event->bytes.size};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_message_t message;
    ps_body_t body = {0};

    if (ps_message_decode(&frame, 1, &message, &body, err) != PSD_OK) {
        cluster_fail(self, "a message cannot be read: %s", psd_error_text(err));
        return;
    }
    if (event->to_client) {
        cluster_client_received(self, event->to, &message, &body);
        return;
    }
    if (body.keys.size + body.index.size + body.values.size > 0) {
        payload = ps_payload_copy(body.keys, body.index, body.values);
        if (payload == NULL) {
            cluster_stop("memory for a body");
        }
    }
    cluster_node_step(self, event->to,
                      &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                    .conn = event->conn,
                                    .message = &message,
                                    .payload = payload});
}

/* ---- plan ---- */

static uint64_t
below(cluster_t *self, uint64_t bound)
{
    return ps_rng_below(&self->rng, bound);
}

static void
plan_faults(cluster_t *self)
{
    cluster_plan_t *plan = &self->plan;
    uint32_t places = CLUSTER_NODES_MAX + 1;

    plan->loss = below(self, 2) == 0 ? 0 : (uint32_t)below(self, 150);
    plan->repeat = below(self, 2) == 0 ? 0 : (uint32_t)below(self, 200);
    plan->delay_ms = 1 + (uint32_t)below(self, below(self, 3) == 0 ? 60 : 8);
    plan->crash = UINT32_MAX;
    plan->frozen = UINT32_MAX;
    if (below(self, 2) == 0) {
        plan->crash =
            (uint32_t)below(self, below(self, 2) == 0 ? 1 : plan->n_nodes);
        plan->crash_ms = 1050 + below(self, 1500);
    }
    if (below(self, 3) == 0) {
        plan->frozen = (uint32_t)below(self, plan->n_nodes);
        plan->freeze_ms = 1050 + below(self, 1500);
        plan->freeze_end_ms = plan->freeze_ms + below(self, 1400);
    }
    for (size_t i = 0; i < 2; i++) {
        plan->cut_from[i] = UINT32_MAX;
        if (below(self, 3) == 0) {
            plan->cut_from[i] =
                below(self, 3) == 0 ? 0 : (uint32_t)below(self, places);
            plan->cut_to[i] = below(self, 3) == 0
                                  ? CLUSTER_REGISTRY
                                  : (uint32_t)below(self, places + 1);
            plan->cut_ms[i] = 1050 + below(self, 1500);
            plan->cut_end_ms[i] = plan->cut_ms[i] + below(self, 1400);
        }
    }
}

static void
make_plan(cluster_t *self)
{
    cluster_plan_t *plan = &self->plan;

    plan->n_nodes = below(self, 4) == 0 ? 2 : 3;
    plan->n_clients = 1 + (uint32_t)below(self, CLUSTER_CLIENTS_MAX);
    plan->bsp = below(self, 3) == 0;
    plan->tail_bytes = below(self, 3) == 0 ? 2000 : 0;
    plan->flight_bytes = below(self, 2) == 0 ? 400 : 0;
    ps_table_spec_init(&plan->spec);
    (void)snprintf(plan->spec.name, sizeof plan->spec.name, "t");
    plan->spec.n_rows = CLUSTER_ROWS;
    plan->spec.type = PS_TYPE_I64;
    plan->spec.n_partitions = 1;
    plan->spec.n_col_slices = 1;
    plan->spec.replicas = plan->n_nodes;
    plan->spec.ack = PS_ACK_REPLICA;
    plan_faults(self);
}

/* ---- the loop ---- */

static void
handle(cluster_t *self, cluster_event_t *event)
{
    bool for_node = event->kind == CLUSTER_TICK ||
                    event->kind == CLUSTER_TELL ||
                    event->kind == CLUSTER_FENCE ||
                    (event->kind == CLUSTER_MESSAGE && !event->to_client);
    cluster_node_t *node = for_node ? &self->nodes[event->to] : NULL;

    if (node != NULL && node->shard == NULL) {
        return;
    }
    if (event->kind == CLUSTER_MESSAGE) {
        arrive(self, event);
    } else if (event->kind == CLUSTER_CLIENT) {
        cluster_client_tick(self, event->to);
    } else if (event->kind == CLUSTER_REGISTRY_TICK) {
        cluster_registry_tick(self);
    } else {
        cluster_node_event(self, event);
    }
}

/* What comes for a node that is frozen waits. */
static bool
is_deferred(cluster_t *self, cluster_event_t *event)
{
    const cluster_plan_t *plan = &self->plan;
    bool at_node = event->kind != CLUSTER_CLIENT && !event->to_client &&
                   event->kind != CLUSTER_REGISTRY_TICK &&
                   event->kind != CLUSTER_POSITION;
    cluster_event_t *later = NULL;

    if (!at_node || event->to != plan->frozen ||
        self->now_ms < plan->freeze_ms || self->now_ms >= plan->freeze_end_ms) {
        return false;
    }
    later = cluster_at(self, plan->freeze_end_ms, event->kind, event->to);
    *later = (cluster_event_t){.at_ms = plan->freeze_end_ms,
                               .order = later->order,
                               .kind = event->kind,
                               .to = event->to,
                               .sender = event->sender,
                               .conn = event->conn,
                               .bytes = event->bytes,
                               .map = event->map,
                               .epoch = event->epoch,
                               .lsn = event->lsn,
                               .from = event->from};
    return true;
}

/* What a node had handed to its kernel for other nodes is lost with it. */
static void
lose_sent(cluster_t *self, uint32_t node)
{
    for (size_t i = self->n_events; i > 0; i--) {
        cluster_event_t *event = &self->events[i - 1];

        if (event->kind == CLUSTER_MESSAGE && !event->to_client &&
            event->sender == node) {
            event_done(event);
            *event = self->events[--self->n_events];
        }
    }
}

static void
crash(cluster_t *self)
{
    const cluster_plan_t *plan = &self->plan;

    if (plan->crash < plan->n_nodes && self->now_ms >= plan->crash_ms &&
        self->nodes[plan->crash].shard != NULL) {
        cluster_trace(self, "node %u crashes", plan->crash);
        ps_shard_destroy(&self->nodes[plan->crash].shard);
        if (ps_rng_below(&self->rng, 2) == 0) {
            lose_sent(self, plan->crash);
        }
    }
}

static void
start(cluster_t *self)
{
    self->now_ms = 1000;
    make_plan(self);
    cluster_trace(self,
                  "%u nodes, %u clients%s; loss %u repeat %u delay %u; crash "
                  "%d at %" PRIu64 "; freeze %d %" PRIu64 "..%" PRIu64,
                  self->plan.n_nodes, self->plan.n_clients,
                  self->plan.bsp ? ", max_delay 0" : "", self->plan.loss,
                  self->plan.repeat, self->plan.delay_ms, (int)self->plan.crash,
                  self->plan.crash_ms, (int)self->plan.frozen,
                  self->plan.freeze_ms, self->plan.freeze_end_ms);
    for (size_t i = 0; i < 2; i++) {
        if (self->plan.cut_from[i] != UINT32_MAX) {
            cluster_trace(self, "cut %u -> %u %" PRIu64 "..%" PRIu64,
                          self->plan.cut_from[i], self->plan.cut_to[i],
                          self->plan.cut_ms[i], self->plan.cut_end_ms[i]);
        }
    }
    cluster_nodes_start(self);
    cluster_clients_start(self);
}

static void
done(cluster_t *self)
{
    for (size_t i = 0; i < self->n_events; i++) {
        event_done(&self->events[i]);
    }
    ps_free(self->events);
    self->events = NULL;
    cluster_nodes_done(self);
}

const char *
cluster_run(uint64_t seed, FILE *trace, cluster_t *self)
{
    cluster_event_t event;

    memset(self, 0, sizeof *self);
    self->rng.state = seed;
    self->trace = trace;
    start(self);
    while (!self->failed && next_event(self, &event)) {
        self->now_ms = event.at_ms;
        if (++self->n_handled > EVENTS_MAX) {
            cluster_fail(self, "it never rests: event %d for %u",
                         (int)event.kind, event.to);
        }
        if (self->now_ms >= CLUSTER_END_MS) {
            event_done(&event);
            break;
        }
        crash(self);
        if (!is_deferred(self, &event)) {
            handle(self, &event);
            event_done(&event);
        }
    }
    if (!self->failed) {
        cluster_clients_finish(self);
        cluster_nodes_compare(self);
    }
    done(self);
    return self->failed ? self->violation : NULL;
}

uint64_t
cluster_search(uint64_t first, uint64_t n, bool verbose)
{
    cluster_t *world = ps_alloc(1, sizeof *world);
    uint64_t n_answers = 0;
    uint64_t n_promotions = 0;
    uint64_t found = UINT64_MAX;

    if (world == NULL) {
        cluster_stop("memory for a world");
    }
    for (uint64_t seed = first; seed < first + n && found == UINT64_MAX;
         seed++) {
        if (cluster_run(seed, verbose ? stdout : NULL, world) != NULL) {
            found = seed;
            (void)printf("seed %" PRIu64 ": %s\n", seed, world->violation);
        }
        n_answers += world->n_answers;
        n_promotions += world->n_promotions;
    }
    ps_free(world);
    if (found == UINT64_MAX) {
        (void)printf("%" PRIu64 " seeds from %" PRIu64 ": clean; %" PRIu64
                     " answers, %" PRIu64 " promotions\n",
                     n, first, n_answers, n_promotions);
        if (n >= 100 && (n_promotions < n / 4 || n_answers < 10 * n)) {
            (void)printf("so few promotions and answers prove nothing\n");
            return first;
        }
    }
    return found;
}
