/* SPDX-License-Identifier: Apache-2.0 */
/* The workers' clocks, and why a job does not move. */
#include "server/nodes/job_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/facts/node_names.h"

#define STAYS_MOST 64      /* workers of a plan in which a push is looked for */
#define STAY_MOST_MS 10000 /* that a push may be with relays */

static ps_worker_view_t *find(const ps_job_view_t *self, uint32_t rank)
{
    const ps_worker_t *worker = ps_job_worker(self->job, rank);

    return worker == NULL ? NULL : &self->workers[worker - self->job->workers];
}

static void take_clocks(const ps_job_view_t *self, const ps_shard_answer_t *call)
{
    for (size_t i = 0; i < call->n_clocks; i++) {
        ps_worker_view_t *worker = find(self, call->clocks[i].worker);

        if (worker != NULL && worker->clock < call->clocks[i].max) {
            worker->clock = call->clocks[i].max;
        }
    }
}

static const char *name_of(const void *registry, uint64_t incarnation)
{
    const ps_node_t *node = ps_registry_node_by_incarnation(registry, incarnation);

    return node == NULL ? NULL : node->name;
}

static bool adds_up(const ps_job_view_t *self, uint32_t table)
{
    const ps_table_t *known = ps_registry_table_by_id(self->registry, table);

    return known != NULL && known->spec.combine != PS_COMBINE_EACH && known->spec.n_col_slices <= 1;
}

/* Of several held requests of a worker it shows the one that has waited longest. */
static void take_waiting(const ps_job_view_t *self, uint32_t shard, const ps_shard_answer_t *call)
{
    for (size_t i = 0; i < call->n_waiting; i++) {
        const ps_waiting_info_t *info = &call->waiting[i];
        ps_worker_view_t *worker = find(self, info->worker);

        if (worker == NULL ||
            (worker->wait != PS_WAIT_NONE && worker->since_ms <= info->since_ms)) {
            continue;
        }
        worker->wait = info->is_pull ? PS_WAIT_PULL : PS_WAIT_PUSH;
        worker->since_ms = info->since_ms;
        worker->shard = shard;
        worker->for_clock = info->for_clock;
        worker->table = info->table;
        worker->partition = info->partition;
        worker->adds_up = adds_up(self, info->table);
        ps_node_names_put(info->reason, name_of, self->registry, worker->reason,
                          sizeof worker->reason);
    }
}

static void take_waiters(const ps_job_view_t *self, ps_waits_for_t kind, ps_wait_kind_t wait)
{
    const ps_waiter_t *waiter = NULL;

    while ((waiter = ps_waiters_next(self->waiters, waiter, kind, self->job->id, PS_ANY_WORKER)) !=
           NULL) {
        ps_worker_view_t *worker = find(self, waiter->worker);

        if (worker != NULL && worker->wait == PS_WAIT_NONE) {
            worker->wait = wait;
            worker->since_ms = waiter->since_ms;
            worker->queue = waiter->queue;
        }
    }
}

static void take_registry(ps_job_view_t *self)
{
    for (size_t i = 0; i < self->job->n_workers; i++) {
        ps_worker_view_t *worker = &self->workers[i];
        uint64_t clock = 0;

        worker->is = &self->job->workers[i];
        worker->clock = worker->is->start;
        worker->seen = ps_registry_last_seen(self->registry, self->job->id, worker->is->worker,
                                             &worker->seen_ms, &clock);
        if (worker->seen && clock > worker->clock) {
            worker->clock = clock;
        }
    }
}

/* The least and greatest clock of the live workers; of all workers when none is live. */
static void settle_spread(ps_job_view_t *self)
{
    bool any_live = false;
    bool first = true;

    for (size_t i = 0; i < self->job->n_workers; i++) {
        any_live = any_live || ps_worker_is_live(self->workers[i].is);
        self->n_waiting += self->workers[i].wait != PS_WAIT_NONE ? 1 : 0;
    }
    for (size_t i = 0; i < self->job->n_workers; i++) {
        const ps_worker_view_t *worker = &self->workers[i];

        if (any_live && !ps_worker_is_live(worker->is)) {
            continue;
        }
        if (first || worker->clock < self->min) {
            self->min = worker->clock;
        }
        if (first || worker->clock > self->max) {
            self->max = worker->clock;
        }
        first = false;
    }
}

bool ps_job_runs(const ps_registry_t *registry, const ps_job_t *job)
{
    return strcmp(ps_registry_job_state(registry, job->id), "running") == 0;
}

psd_status_t ps_job_view_init(ps_job_view_t *self, const ps_registry_t *registry,
                              const ps_waiters_t *waiters, const ps_answers_t *answers,
                              const ps_job_t *job, psd_error_t *err)
{
    *self = (ps_job_view_t){.registry = registry,
                            .job = job,
                            .waiters = waiters,
                            .answers = answers,
                            .now_ms = ps_now_ms()};
    self->workers = ps_alloc(job->n_workers, sizeof *self->workers);
    if (self->workers == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to look at a job");
    }
    take_registry(self);
    for (uint32_t i = 0; i < answers->n; i++) {
        take_clocks(self, &answers->at[i]);
        take_waiting(self, i, &answers->at[i]);
    }
    ps_waiters_ranks(waiters, PS_FOR_BARRIER, job->id, &self->at_barrier);
    take_waiters(self, PS_FOR_BARRIER, PS_WAIT_BARRIER);
    take_waiters(self, PS_FOR_SLICE, PS_WAIT_SLICE);
    settle_spread(self);
    return PSD_OK;
}

void ps_job_view_done(ps_job_view_t *self)
{
    ps_free(self->workers);
    *self = (ps_job_view_t){0};
}

/* The worker's clock at the least advanced partition of a shard. */
static uint64_t clock_at(const ps_job_view_t *self, uint32_t shard, const ps_worker_view_t *worker)
{
    const ps_shard_answer_t *call = &self->answers->at[shard];

    for (size_t i = 0; i < call->n_clocks; i++) {
        if (call->clocks[i].worker == worker->is->worker) {
            return call->clocks[i].min;
        }
    }
    return worker->is->start;
}

bool ps_job_view_holds(const ps_job_view_t *self, const ps_worker_view_t *waiter, size_t i,
                       uint64_t *ret_clock)
{
    const ps_worker_view_t *other = &self->workers[i];

    if (!ps_worker_is_live(other->is)) {
        return false;
    }
    if (waiter->wait == PS_WAIT_BARRIER) {
        *ret_clock = other->clock;
        return !ps_ranks_has(&self->at_barrier, other->is->worker);
    }
    if (waiter->wait == PS_WAIT_SLICE) {
        uint32_t slice = 0;

        *ret_clock = other->clock;
        return ps_registry_queue_given(self->registry, self->job->id, waiter->queue,
                                       other->is->worker, &slice) > 0;
    }
    *ret_clock = clock_at(self, waiter->shard, other);
    return *ret_clock < waiter->for_clock;
}

/* ---- on the way through relays ---- */

typedef struct finish {
    const ps_job_view_t *view;
    uint64_t clock;
} finish_t;

static bool is_live(const ps_worker_view_t *worker)
{
    return worker != NULL && worker->is->state == PS_WORKER_RUNNING;
}

/* No relay waits for one who is gone. A pull waits for the clock that its worker has finished,
 * which heartbeats say later. */
static bool has_finished(const void *context, uint32_t rank)
{
    const finish_t *self = context;
    const ps_worker_view_t *worker = find(self->view, rank);

    return !is_live(worker) || worker->clock >= self->clock ||
           (worker->wait == PS_WAIT_PULL && worker->for_clock >= self->clock);
}

/* When that worker finished the clock, as far as known. */
static uint64_t finished_ms(const ps_job_view_t *self, const ps_worker_view_t *worker,
                            uint64_t clock)
{
    const ps_watched_t *watched = ps_watch_find(self->watch, worker->is->worker);

    if (watched != NULL && watched->joins == worker->is->joins && watched->clock >= clock) {
        return watched->clock_ms;
    }
    return worker->wait == PS_WAIT_PULL ? worker->since_ms : self->now_ms;
}

/* By the plan, the relay that has the push of that worker which another waits for. false: it has
 * finished no such clock, finished it longer ago than a relay holds a push, or pushed directly. In
 * a large job the search would take too long. */
static bool find_stay(const ps_job_view_t *self, const ps_worker_view_t *waiter,
                      const ps_worker_view_t *other, ps_overlay_stay_t *ret_stay)
{
    const finish_t finish = {.view = self, .clock = waiter->for_clock};

    return self->watch != NULL && self->watch->overlay.facts.n_members <= STAYS_MOST &&
           (waiter->wait == PS_WAIT_PULL || waiter->wait == PS_WAIT_PUSH) && waiter->adds_up &&
           is_live(other) && has_finished(&finish, other->is->worker) &&
           self->now_ms < finished_ms(self, other, waiter->for_clock) + STAY_MOST_MS &&
           ps_overlay_job_stay(&self->watch->overlay, other->is->worker,
                               waiter->table + waiter->partition, waiter->for_clock, has_finished,
                               &finish, ret_stay);
}

static void print_stay(const ps_overlay_stay_t *stay, const ps_worker_view_t *other, bool is_own,
                       double for_s, char ret_text[PS_HOLDER_SIZE])
{
    char whose[40] = "its own push";
    char then[48] = "goes on to the node";

    if (!is_own) {
        (void)snprintf(whose, sizeof whose, "the push of worker %" PRIu32, other->is->worker);
    }
    if (stay->waits_for != PS_OVERLAY_NODES) {
        (void)snprintf(then, sizeof then, "waits for worker %" PRIu32, stay->waits_for);
    }
    (void)snprintf(ret_text, PS_HOLDER_SIZE,
                   "%s (with the relay of worker %" PRIu32 " for %.1f s, which %s)", whose,
                   stay->relay, for_s, then);
}

void ps_job_view_print(const ps_job_view_t *self, const ps_worker_view_t *waiter, size_t i,
                       uint64_t clock, char ret_text[PS_HOLDER_SIZE])
{
    const ps_worker_view_t *other = &self->workers[i];
    ps_overlay_stay_t stay = {.relay = 0};
    uint64_t since_ms = 0;

    if (find_stay(self, waiter, other, &stay)) {
        since_ms = finished_ms(self, other, waiter->for_clock);
        print_stay(&stay, other, other == waiter,
                   self->now_ms > since_ms ? (double)(self->now_ms - since_ms) / 1000.0 : 0,
                   ret_text);
    } else {
        ps_holder_print(self->registry, self->job->id, other->is, clock, ret_text, PS_HOLDER_SIZE);
    }
}

void ps_job_view_where(const ps_job_view_t *self, const ps_worker_view_t *waiter,
                       char ret_text[PS_WHERE_SIZE])
{
    const ps_table_t *table = NULL;

    if (waiter->wait == PS_WAIT_BARRIER) {
        (void)snprintf(ret_text, PS_WHERE_SIZE, "barrier");
        return;
    }
    if (waiter->wait == PS_WAIT_SLICE) {
        (void)snprintf(ret_text, PS_WHERE_SIZE, "queue %s", waiter->queue);
        return;
    }
    table = ps_registry_table_by_id(self->registry, waiter->table);
    (void)snprintf(ret_text, PS_WHERE_SIZE, "table %s partition %" PRIu32,
                   table == NULL ? "?" : table->spec.name, waiter->partition);
}

void ps_holder_print(const ps_registry_t *registry, uint32_t job, const ps_worker_t *worker,
                     uint64_t clock, char *ret_text, size_t size)
{
    uint64_t seen_ms = 0;
    uint64_t said = 0;
    uint64_t now_ms = ps_now_ms();

    if (worker->state == PS_WORKER_EXPECTED) {
        (void)snprintf(ret_text, size, "worker %" PRIu32 " (not joined yet)", worker->worker);
    } else if (worker->state == PS_WORKER_JOINING) {
        (void)snprintf(ret_text, size, "worker %" PRIu32 " (joining)", worker->worker);
    } else if (ps_registry_last_seen(registry, job, worker->worker, &seen_ms, &said)) {
        (void)snprintf(ret_text, size,
                       "worker %" PRIu32 " at clock %" PRIu64 " (last seen %.1f s ago)",
                       worker->worker, clock, (double)(now_ms - seen_ms) / 1000.0);
    } else {
        (void)snprintf(ret_text, size, "worker %" PRIu32 " at clock %" PRIu64, worker->worker,
                       clock);
    }
}

const char *ps_worker_view_state(const ps_worker_view_t *self)
{
    if (self->is->state == PS_WORKER_RUNNING && self->wait != PS_WAIT_NONE) {
        return "waiting";
    }
    return ps_worker_state_name(self->is->state);
}
