/* SPDX-License-Identifier: Apache-2.0 */
/* The node: its shards, and the registry's part that sends them the job. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sim.h"

#define TELL_MS 20 /* until the last shard knows of a change */

static void plan_tick(sim_t *sim, uint32_t shard)
{
    uint64_t at_ms = ps_shard_deadline(sim->shards[shard]);

    if (at_ms < sim->shard_wake_ms[shard]) {
        sim->shard_wake_ms[shard] = at_ms;
        sim_at(sim, at_ms > sim->now_ms ? at_ms : sim->now_ms, SIM_EVENT_SHARD_TICK, shard);
    }
}

static void perform(sim_t *sim, uint32_t shard, const ps_outbox_t *outbox)
{
    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];
        char text[256];

        if (effect->kind == PS_EFFECT_SEND) {
            sim_send(sim, effect->to, false, &effect->message, effect->payload,
                     sim->plan.shard.chunk_bytes);
        } else if (effect->kind == PS_EFFECT_RECORD) {
            sim_check_record(sim, shard, &effect->record, effect->payload);
            sim_copy_record(sim, shard, &effect->record, effect->payload);
        } else if (sim->trace != NULL && effect->kind == PS_EFFECT_NOTE) {
            ps_note_print(&effect->note, text, sizeof text, NULL);
            sim_trace(sim, "  shard %u: %s", shard, text);
        }
    }
}

void sim_node_event(sim_t *sim, uint32_t shard, ps_event_t *event)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc;

    event->now_ms = sim->now_ms;
    rc = ps_shard_step(sim->shards[shard], event, &outbox, err);
    if (rc != PSD_OK) {
        sim_fail(sim, "shard %u refused an event: %s", shard, psd_error_text(err));
    }
    perform(sim, shard, &outbox);
    plan_tick(sim, shard);
}

void sim_node_tick(sim_t *sim, uint32_t shard)
{
    ps_event_t event = {.kind = PS_EVENT_TICK};

    sim->shard_wake_ms[shard] = UINT64_MAX;
    sim_node_event(sim, shard, &event);
}

void sim_node_told(sim_t *sim, uint32_t shard, const ps_job_t *job)
{
    ps_event_t event = {.kind = PS_EVENT_JOB, .job = job};

    if (sim->trace != NULL) {
        char text[128] = "";
        size_t used = 0;

        for (size_t i = 0; i < job->n_workers; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, " %u:%s@%llu",
                                     job->workers[i].worker,
                                     ps_worker_state_name(job->workers[i].state),
                                     (unsigned long long)job->workers[i].start);
        }
        sim_trace(sim, "shard %u is told job version %llu:%s", shard,
                  (unsigned long long)job->version, text);
    }
    sim_node_event(sim, shard, &event);
    if (job->version > sim->told[shard]) {
        sim->told[shard] = job->version;
    }
    sim_node_join(sim);
}

void sim_node_tell(sim_t *sim)
{
    sim->job.version++;
    for (uint32_t i = 0; i < sim->plan.n_shards; i++) {
        ps_job_t *copy = ps_alloc(1, sizeof *copy);

        sim_need(copy != NULL && ps_job_copy(&sim->job, copy, NULL) == PSD_OK, "memory for a job");
        sim_at(sim, sim->now_ms + ps_rng_below(&sim->net, TELL_MS), SIM_EVENT_JOB, i)->job = copy;
    }
}

static bool all_told(const sim_t *sim)
{
    for (uint32_t i = 0; i < sim->plan.n_shards; i++) {
        if (sim->told[i] < sim->job.version) {
            return false;
        }
    }
    return true;
}

/* The clock that each rank has finished at its most advanced partition. */
static void gather_clocks(sim_t *sim, uint64_t clocks[SIM_WORKERS_MAX])
{
    memset(clocks, 0, SIM_WORKERS_MAX * sizeof *clocks);
    for (uint32_t shard = 0; shard < sim->plan.n_shards; shard++) {
        ps_clock_info_t *infos = NULL;
        size_t n = 0;

        sim_need(ps_shard_clocks(sim->shards[shard], SIM_JOB, &infos, &n, NULL) == PSD_OK,
                 "memory for clocks");
        for (size_t i = 0; i < n; i++) {
            if (infos[i].max > clocks[infos[i].worker]) {
                clocks[infos[i].worker] = infos[i].max;
            }
        }
        ps_free(infos);
    }
}

/* The start of a worker that joins now, as the registry sets it: an expected
 * worker held all others at 0. */
static uint64_t agree_start(sim_t *sim, uint32_t rank)
{
    uint64_t clocks[SIM_WORKERS_MAX];
    uint64_t highest = 0;
    uint64_t slowest = UINT64_MAX;

    if (rank == sim->plan.late && sim->plan.expected) {
        return 0;
    }
    gather_clocks(sim, clocks);
    for (size_t i = 0; i < sim->job.n_workers; i++) {
        const ps_worker_t *worker = &sim->job.workers[i];
        uint64_t clock = clocks[worker->worker];

        if (clock > highest) {
            highest = clock;
        }
        if (worker->state == PS_WORKER_RUNNING && clock < slowest) {
            slowest = clock;
        }
    }
    if (sim->job.max_delay == 0) {
        return highest;
    }
    return slowest == UINT64_MAX ? 0 : slowest;
}

static void start_worker(sim_t *sim, const ps_worker_t *worker)
{
    for (uint32_t i = 0; i < sim->plan.n_clients; i++) {
        if (sim->clients[i].worker == worker->worker && sim->clients[i].life == worker->joins &&
            !sim->clients[i].running) {
            sim_client_start(sim, i, worker->start);
        }
    }
}

/* Continues a join when every shard knows the job. */
void sim_node_join(sim_t *sim)
{
    if (!all_told(sim)) {
        return;
    }
    for (size_t i = 0; i < sim->job.n_workers; i++) {
        ps_worker_t *worker = &sim->job.workers[i];

        if (worker->state == PS_WORKER_JOINING) {
            worker->start = agree_start(sim, worker->worker);
            worker->state = PS_WORKER_RUNNING;
            sim_trace(sim, "worker %u starts at clock %llu", worker->worker,
                      (unsigned long long)worker->start);
            sim_node_tell(sim);
            return;
        }
        if (worker->state == PS_WORKER_RUNNING) {
            start_worker(sim, worker);
        }
    }
}

static void add_worker(sim_t *sim, uint32_t rank)
{
    ps_worker_t *worker = &sim->job.workers[sim->job.n_workers++];

    *worker = (ps_worker_t){
        .worker = rank, .state = PS_WORKER_RUNNING, .n_members = sim->plan.n_members, .joins = 1};
    if (rank == sim->plan.late) {
        worker->state = PS_WORKER_EXPECTED;
        worker->joins = 0;
    }
}

void sim_node_start(sim_t *sim)
{
    sim_plan_t *plan = &sim->plan;

    sim->job = (ps_job_t){.id = SIM_JOB, .max_delay = plan->max_delay, .version = 0};
    (void)snprintf(sim->job.name, sizeof sim->job.name, "job");
    sim->job.workers = ps_alloc(SIM_WORKERS_MAX, sizeof *sim->job.workers);
    sim_need(sim->job.workers != NULL, "memory for workers");
    for (uint32_t i = 0; i < plan->n_workers; i++) {
        if (i != plan->late || plan->expected) {
            add_worker(sim, i);
        }
    }
    for (uint32_t i = 0; i < plan->spec.n_partitions; i++) {
        sim->routes[i] = (ps_route_t){.partition = i,
                                      .shard = i % plan->n_shards,
                                      .epoch = 5,
                                      .incarnation = SIM_INCARNATION};
        (void)snprintf(sim->routes[i].tcp, sizeof sim->routes[i].tcp, "tcp://node:%u",
                       1000 + i % plan->n_shards);
    }
    for (uint32_t i = 0; i < plan->n_shards; i++) {
        ps_shard_args_t args = plan->shard;
        ps_event_t event = {.kind = PS_EVENT_TABLE,
                            .table = SIM_TABLE,
                            .spec = &plan->spec,
                            .routes = sim->routes,
                            .n_routes = plan->spec.n_partitions};

        args.shard = i;
        sim->shard_wake_ms[i] = UINT64_MAX;
        sim_need(ps_shard_new(&args, &sim->shards[i], NULL) == PSD_OK, "memory for a shard");
        sim_copy_start(sim, &args, &event);
        sim_node_event(sim, i, &event);
    }
    sim_node_tell(sim);
}

void sim_node_print_waiting(sim_t *sim, char *text, size_t size)
{
    size_t used = strlen(text);

    for (uint32_t shard = 0; shard < sim->plan.n_shards; shard++) {
        ps_waiting_info_t *infos = NULL;
        size_t n = 0;

        if (ps_shard_waiting(sim->shards[shard], SIM_JOB, &infos, &n, NULL) != PSD_OK) {
            continue;
        }
        for (size_t i = 0; i < n && used + 80 < size; i++) {
            used += (size_t)snprintf(text + used, size - used,
                                     "; shard %u partition %u holds a %s of worker %u for clock "
                                     "%llu",
                                     shard, infos[i].partition, infos[i].is_pull ? "pull" : "push",
                                     infos[i].worker, (unsigned long long)infos[i].for_clock);
        }
        ps_free(infos);
    }
}
