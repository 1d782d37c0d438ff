/* SPDX-License-Identifier: Apache-2.0 */
/* One world from its seeds. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sim_overlay.h"

#define EVENTS_MAX 1000000 /* of one world */
#define PATIENCE_MS 60000  /* after the faults end, everything must finish within this */
#define LOST_MS 600        /* most until a killed worker is declared lost, … */
#define SOON_MS 30         /* … often less than this */
#define AGAIN_MS 1500      /* most until it joins again */

_Noreturn void overlay_stop(const char *what)
{
    (void)fprintf(stderr, "the simulator needs %s\n", what);
    abort();
}

void overlay_fail(overlay_t *self, const char *format, ...)
{
    va_list args;

    if (self->failed) {
        return;
    }
    self->failed = true;
    va_start(args, format);
    (void)vsnprintf(self->violation, sizeof self->violation, format, args);
    va_end(args);
    overlay_trace(self, "VIOLATION %s", self->violation);
}

void overlay_trace(overlay_t *self, const char *format, ...)
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

/* ---- events ---- */

static void kill_worker(overlay_t *self, uint64_t which)
{
    uint32_t rank = self->plan.ranks[self->plan.killed[which]];

    for (size_t i = 0; i < self->n_lives; i++) {
        overlay_life_t *life = &self->lives[i];

        if (!life->is_reader && life->rank == rank && life->joins == 1 && !life->is_through) {
            overlay_worker_kill(self, life);
            overlay_at(self,
                       self->now_ms +
                           overlay_below(self, overlay_below(self, 2) == 0 ? SOON_MS : LOST_MS),
                       OVERLAY_EVENT_LOST, rank)
                ->b = which;
        }
    }
}

static void lose_worker(overlay_t *self, uint32_t rank, bool comes_again)
{
    ps_job_worker(&self->job, rank)->state = PS_WORKER_LOST;
    overlay_node_tell(self);
    overlay_at(self, self->now_ms + overlay_below(self, LOST_MS), OVERLAY_EVENT_TREE, 1);
    if (comes_again) {
        overlay_at(self, self->now_ms + overlay_below(self, AGAIN_MS), OVERLAY_EVENT_AGAIN, rank);
    }
}

static void join_again(overlay_t *self, uint32_t rank)
{
    ps_worker_t *worker = ps_job_worker(&self->job, rank);

    worker->state = PS_WORKER_JOINING;
    worker->joins++;
    overlay_node_tell(self);
}

static void change_plan(overlay_t *self, bool is_regular)
{
    overlay_tree_change(self);
    if (is_regular && self->weather.plan_ms > 0 && !overlay_is_calm(self)) {
        overlay_at(self,
                   self->now_ms + 1 + overlay_below(self, UINT64_C(2) * self->weather.plan_ms),
                   OVERLAY_EVENT_TREE, 0);
    }
}

static void learn_routes(overlay_t *self, overlay_life_t *life, bool is_courier)
{
    ps_session_t *session = is_courier ? life->relay.courier.session : life->client.session;

    if (session == NULL) {
        return;
    }
    overlay_need(ps_session_routes(session, OVERLAY_TABLE, self->routes,
                                   self->plan.spec.n_partitions, NULL) == PSD_OK,
                 "routes");
    if (is_courier) {
        overlay_relay_turn(self, life);
    } else {
        overlay_worker_tick(self, life);
    }
}

static void on_desk(overlay_t *self, overlay_life_t *life, const overlay_event_t *event)
{
    overlay_desk_t *desk = event->desk;

    if (event->b != life->relay.life) {
        return; /* of a relay that has forgotten it */
    }
    if (event->kind == OVERLAY_EVENT_TO_DESK) {
        if (life->relay.machine != NULL) {
            overlay_relay_from_desk(self, life, desk);
        }
    } else if (life->client.session == NULL) {
        return;
    } else if (desk->kind == OVERLAY_DESK_PLAN) {
        life->lends = desk->version;
    } else if (desk->kind == OVERLAY_DESK_NEWS) {
        overlay_lend_hear(self, life, desk);
    } else if (desk->kind == OVERLAY_DESK_ROWS) {
        overlay_rows_hear(self, life, desk);
    }
}

/* What happens to a worker or its relay, if it does not stand still. */
static void do_life(overlay_t *self, overlay_event_t *event)
{
    overlay_life_t *life = overlay_life(self, event->a);
    bool is_relay = event->kind == OVERLAY_EVENT_RELAY || event->kind == OVERLAY_EVENT_TO_DESK ||
                    event->kind == OVERLAY_EVENT_PLAN;
    uint64_t until_ms = life->still_ms;

    if (is_relay && life->relay.still_ms > until_ms) {
        until_ms = life->relay.still_ms;
    }
    if (until_ms > self->now_ms) {
        overlay_later(self, until_ms, event);
        return;
    }
    switch ((int)event->kind) {
    case OVERLAY_EVENT_CLIENT:
        overlay_worker_tick(self, life);
        break;
    case OVERLAY_EVENT_RELAY:
        overlay_relay_tick(self, life);
        break;
    case OVERLAY_EVENT_STEP:
        overlay_worker_step(self, life);
        break;
    case OVERLAY_EVENT_ROUTES:
        learn_routes(self, life, event->b == 1);
        break;
    case OVERLAY_EVENT_PLAN:
        overlay_relay_plan(self, life, event->tree);
        break;
    case OVERLAY_EVENT_RELINKED:
        if (event->c == 1) {
            overlay_courier_relinked(self, life, event->b);
        } else {
            overlay_worker_relinked(self, life, event->b);
        }
        break;
    case OVERLAY_EVENT_READY:
        if (life->relay.machine != NULL && life->relay.life == event->c) {
            overlay_ways_ready(self, life, (uint32_t)event->b);
        }
        break;
    default:
        on_desk(self, life, event);
        break;
    }
}

static void do_event(overlay_t *self, overlay_event_t *event)
{
    ps_event_t gone = {.kind = PS_EVENT_GONE, .conn = event->b};

    switch (event->kind) {
    case OVERLAY_EVENT_PACKET:
        overlay_arrive(self, event);
        break;
    case OVERLAY_EVENT_NODE:
        overlay_node_tick(self, (uint32_t)event->a);
        break;
    case OVERLAY_EVENT_JOB:
        overlay_node_told(self, (uint32_t)event->a, event->job);
        break;
    case OVERLAY_EVENT_FAULT:
        overlay_fault(self);
        break;
    case OVERLAY_EVENT_GONE:
        overlay_node_event(self, (uint32_t)event->a, &gone);
        break;
    case OVERLAY_EVENT_TREE:
        change_plan(self, event->a == 0);
        break;
    case OVERLAY_EVENT_KILL:
        kill_worker(self, event->a);
        break;
    case OVERLAY_EVENT_LOST:
        lose_worker(self, (uint32_t)event->a, event->b == 0 && self->plan.again);
        break;
    case OVERLAY_EVENT_AGAIN:
        join_again(self, (uint32_t)event->a);
        break;
    case OVERLAY_EVENT_TAKE_OVER:
        overlay_node_take_over(self, (uint32_t)event->a);
        break;
    case OVERLAY_EVENT_TABLE:
        overlay_node_table(self, (uint32_t)event->a);
        break;
    case OVERLAY_EVENT_CLIENT:
    case OVERLAY_EVENT_RELAY:
    case OVERLAY_EVENT_STEP:
    case OVERLAY_EVENT_ROUTES:
    case OVERLAY_EVENT_PLAN:
    case OVERLAY_EVENT_TO_DESK:
    case OVERLAY_EVENT_OF_DESK:
    case OVERLAY_EVENT_RELINKED:
    case OVERLAY_EVENT_READY:
    default:
        do_life(self, event);
        break;
    }
}

/* ---- the world ---- */

static bool comes_again(const overlay_t *self, const ps_worker_t *worker)
{
    return self->plan.again && worker->joins == 1 &&
           worker->worker == self->plan.ranks[self->plan.killed[0]];
}

static bool all_ended(const overlay_t *self)
{
    for (size_t i = 0; i < self->job.n_workers; i++) {
        const ps_worker_t *worker = &self->job.workers[i];

        if (worker->state != PS_WORKER_FINISHED &&
            (worker->state != PS_WORKER_LOST || comes_again(self, worker))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < self->plan.n_shards; i++) {
        if (self->told[i].version < self->job.version) {
            return false;
        }
    }
    return true;
}

static void fail_to_end(overlay_t *self)
{
    char text[1024] = "";
    size_t used = 0;

    for (size_t i = 0; i < self->n_lives; i++) {
        const overlay_life_t *life = &self->lives[i];

        for (size_t k = 0;
             k < life->n_ops && life->client.session != NULL && used + 160 < sizeof text; k++) {
            if (!life->ops[k].done) {
                used += (size_t)snprintf(
                    text + used, sizeof text - used, "; worker %u op %zu of partition %u: %.80s",
                    life->rank, k + 1, life->ops[k].partition,
                    ps_session_reason(life->client.session, self->now_ms, k + 1));
                break;
            }
        }
    }
    overlay_fail(self, "A4: not at its end long after the weather is calm%s", text);
}

static void start(overlay_t *self)
{
    const overlay_plan_t *plan = &self->plan;

    for (uint32_t i = 0; i < plan->n_ranks; i++) {
        self->lives[self->n_lives] =
            (overlay_life_t){.number = (uint32_t)self->n_lives, .rank = plan->ranks[i], .joins = 1};
        self->n_lives++;
    }
    if (plan->again) {
        self->lives[self->n_lives] = (overlay_life_t){
            .number = (uint32_t)self->n_lives, .rank = plan->ranks[plan->killed[0]], .joins = 2};
        self->n_lives++;
    }
    self->lives[self->n_lives] = (overlay_life_t){
        .number = (uint32_t)self->n_lives, .rank = UINT32_MAX, .joins = 1, .is_reader = true};
    self->n_lives++;
    overlay_node_start(self);
    if (self->weather.has_relays) {
        overlay_at(self, 1, OVERLAY_EVENT_TREE, 0);
        overlay_fault_start(self);
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (plan->killed[i] != UINT32_MAX) {
            overlay_at(self, 50 + overlay_below(self, 1500), OVERLAY_EVENT_KILL, i);
        }
    }
}

static bool is_over(overlay_t *self)
{
    overlay_life_t *reader = &self->lives[self->n_lives - 1];

    if (!self->is_reading && all_ended(self)) {
        self->is_reading = true;
        overlay_worker_start(self, reader, 0);
    }
    if (self->now_ms > self->weather.calm_ms + PATIENCE_MS || self->n_events_done > EVENTS_MAX) {
        fail_to_end(self);
    }
    return self->failed || (self->is_reading && reader->client.session == NULL);
}

static void check_end(overlay_t *self)
{
    overlay_node_check_log(self);
    for (uint32_t i = 0; i < self->plan.n_shards; i++) {
        ps_shard_info_t info;

        ps_shard_info(self->shards[i], &info);
        if (!self->failed && (info.held_requests > 0 || info.held_bytes > 0) &&
            self->plan.killed[0] == UINT32_MAX) {
            overlay_fail(self, "A4: shard %u still holds %" PRIu64 " requests, %" PRIu64 " bytes",
                         i, (uint64_t)info.held_requests, (uint64_t)info.held_bytes);
        }
    }
}

static void done(overlay_t *self)
{
    overlay_event_t event;

    while (overlay_next(self, &event)) {
        overlay_event_drop(&event);
    }
    ps_free(self->events);
    for (size_t i = 0; i < self->n_lives; i++) {
        overlay_worker_done(&self->lives[i]);
    }
    for (uint32_t i = 0; i < OVERLAY_SHARDS_MAX; i++) {
        ps_shard_destroy(&self->shards[i]);
        ps_job_done(&self->told[i]);
    }
    for (size_t i = 0; i < self->n_logged; i++) {
        ps_buffer_done(&self->log[i].bytes);
    }
    ps_free(self->log);
    ps_outbox_done(&self->replayed);
    ps_free(self->conns);
    ps_job_done(&self->job);
    ps_table_spec_done(&self->plan.spec);
}

void overlay_run(uint64_t workload, uint64_t weather, FILE *trace, overlay_result_t *ret_result)
{
    overlay_t *self = ps_alloc(1, sizeof *self);
    overlay_event_t event;

    overlay_need(self != NULL, "memory for a world");
    self->trace = trace;
    self->workload = workload;
    self->net.state = ps_hash_u64(weather ^ (UINT64_C(1) << 60));
    overlay_plan_make(workload, &self->plan);
    overlay_weather_make(weather, &self->weather);
    start(self);
    while (!is_over(self)) {
        if (!overlay_next(self, &event)) {
            fail_to_end(self);
            break;
        }
        self->now_ms = event.at_ms;
        self->n_events_done++;
        do_event(self, &event);
        overlay_event_drop(&event);
    }
    if (!self->failed) {
        check_end(self);
    }
    *ret_result = (overlay_result_t){.failed = self->failed,
                                     .is_repeatable = !overlay_is_timed(self) &&
                                                      self->plan.killed[0] == UINT32_MAX,
                                     .n_events = self->n_events_done,
                                     .n_pulls = self->n_pulls,
                                     .n_bundles = self->n_bundles,
                                     .n_sums = self->n_sums,
                                     .n_relayed = self->n_relayed,
                                     .n_rows = self->n_rows,
                                     .n_back = self->n_back,
                                     .n_forgot = self->n_forgot,
                                     .n_turned = self->n_turned};
    (void)snprintf(ret_result->violation, sizeof ret_result->violation, "%s", self->violation);
    for (size_t i = 0; i < self->n_lives; i++) {
        ret_result->digest += self->lives[i].digest;
    }
    done(self);
    ps_free(self);
}
